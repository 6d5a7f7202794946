"""Operators that take or replace elements by tensors of indices.

Indices are integers from -N to N - 1 unless it says otherwise; what lies outside is an
error, not memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from typing_extensions import override

from engine import expression
from engine.errors import ExpressionError, InferStatus, LayerError, ParameterError
from engine.layers.arguments import along, axis_of, cast
from engine.layers.elementwise import Operand
from engine.layers.expression import expression_text
from engine.layers.layer import Layer
from engine.layers.registry import register
from engine.promotion import as_operand, result_dtype
from engine.values import Array, Value, describe_value

__all__ = ["Index", "gather", "index_put", "index_select", "scatter", "scatter_add", "take"]

Places = tuple[Any, ...]


@register("Tensor.index", "aten::index")
class Index(Layer):
    """Take elements by one list of indices per dimension: ``x[[0, 2], :, mask]``.

    Parameters
    ----------
    expr : str, optional
        The lists, such as ``[None,[1,0]]``, when they are constants: None takes a whole
        dimension, a list of bools what is true, and integer lists are broadcast against
        each other, as in NumPy. Otherwise they are the second input.
    """

    def __init__(self, expr: Any = None) -> None:
        self._constant: Value = None
        if expr is None:
            return
        try:
            parsed = expression.parse(expression_text(expr), operand_count=0)
            self._constant = parsed.evaluate(())
        except ExpressionError as exc:
            raise ParameterError("expr", str(exc)) from exc

    @override
    def forward(self, input: Array, indices: Value = None) -> Array:
        """Take the elements.

        Parameters
        ----------
        input : ndarray of any shape
        indices : tuple of None, int or bool ndarray, optional

        Returns
        -------
        ndarray
            A copy.
        """
        return np.asarray(input[_places(indices if self._constant is None else self._constant)])


@register("Tensor.index_put", "torch.index_put", "aten::index_put")
def index_put(input: Array, indices: Value, values: Operand, accumulate: bool = False) -> Array:
    """Replace elements by one list of indices per dimension: ``Tensor.index_put``.

    Parameters
    ----------
    input : ndarray of any shape
    indices : tuple of None, int or bool ndarray
        As for ``Tensor.index``.
    values : ndarray, broadcast to what is replaced, or number
    accumulate : bool
        Add instead; an index that comes twice adds twice. Otherwise the last one counts.

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    result, places = input.copy(), _places(indices)
    new = cast(np.asarray(values), input.dtype)
    try:
        if accumulate:
            np.add.at(result, places, new)
        else:
            result[places] = new
    except ValueError as exc:
        raise LayerError(str(exc), InferStatus.kInferArraySizeMismatch) from exc
    return result


@register("torch.index_select", "Tensor.index_select", "aten::index_select")
def index_select(input: Array, dim: int, index: Array) -> Array:
    """Take places of one dimension: ``torch.index_select``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    index : integer ndarray of shape (K,) or ()
        From 0 to N - 1.

    Returns
    -------
    ndarray of shape (A, K, B); of shape () for a 0-d input
        A copy.
    """
    axis = axis_of(dim, input.ndim)
    taken = np.atleast_1d(input)[along(axis, np.atleast_1d(_integers(index)))]
    return taken.reshape(()) if input.ndim == 0 else np.asarray(taken)


@register("torch.take", "Tensor.take", "aten::take")
def take(input: Array, index: Array) -> Array:
    """Take elements of the flattened tensor: ``torch.take``.

    Parameters
    ----------
    input : ndarray of any shape
    index : integer ndarray of any shape

    Returns
    -------
    ndarray of the shape of `index`
        A copy.
    """
    return np.asarray(input.reshape(-1)[_integers(index)])


@register("torch.gather", "Tensor.gather", "aten::gather")
def gather(input: Array, dim: int, index: Array, sparse_grad: bool = False) -> Array:
    """Take elements, each by its own index along a dimension: ``torch.gather``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    index : integer ndarray of shape (a, K, b)
        Not larger than `input` in the other dimensions.
    sparse_grad : bool
        Of no effect at inference.

    Returns
    -------
    ndarray of shape (a, K, b)
        A copy: element (i, j, k) is ``input[i, index[i, j, k], k]``.
    """
    if not index.size:  # of any number of dimensions, as in PyTorch
        return np.empty(index.shape, input.dtype)
    return np.asarray(np.atleast_1d(input)[_grid(input, dim, index)]).reshape(index.shape)


@register("torch.take_along_dim", "Tensor.take_along_dim", "aten::take_along_dim")
def take_along_dim(input: Array, indices: Array, dim: int | None = None) -> Array:
    """Take elements by indices along a dimension, with broadcasting: ``torch.take_along_dim``.

    Parameters
    ----------
    input : ndarray of any shape
    indices : integer ndarray, broadcast with `input` in the other dimensions
    dim : int, optional
        The flattened tensor is meant without it.

    Returns
    -------
    ndarray
        A copy.
    """
    if dim is None:
        return np.asarray(input.reshape(-1)[_integers(indices).reshape(-1)])
    return np.take_along_axis(input, _integers(indices), axis_of(dim, input.ndim))


# How an element that is there already and one that comes are joined
_JOIN: Final[dict[str, Callable[[Array, Places, Array], None]]] = {
    "add": np.add.at,
    "sum": np.add.at,
    "multiply": np.multiply.at,
    "prod": np.multiply.at,
    "amax": np.maximum.at,
    "amin": np.minimum.at,
}


@register("torch.scatter", "Tensor.scatter", "aten::scatter")
def scatter(
    input: Array,
    dim: int,
    index: Array,
    src: Operand | None = None,
    reduce: str | None = None,
    *,
    value: Operand | None = None,
) -> Array:
    """Replace elements, each by its own index along a dimension: ``torch.scatter``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    index : integer ndarray of shape (a, K, b)
    src : ndarray, at least of the shape of `index`, or number
    reduce : str, optional
        ``"add"`` or ``"multiply"`` to what is there; otherwise the last one counts.
    value : number
        Instead of `src`.

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy: ``result[i, index[i, j, k], k] = src[i, j, k]``.
    """
    source = np.asarray(value if src is None else src)
    if source.ndim:
        source = source[tuple(slice(size) for size in index.shape)]
    result, places = np.atleast_1d(input.copy()), _grid(input, dim, index)
    new = np.broadcast_to(cast(source, input.dtype), index.shape).reshape(
        np.atleast_1d(index).shape
    )
    if reduce is None:
        result[places] = new
    elif reduce in _JOIN:
        _JOIN[reduce](result, places, new)
    else:
        raise LayerError(f"reduce is {reduce!r}, not one of {', '.join(_JOIN)}")
    return result.reshape(input.shape)


@register("torch.scatter_add", "Tensor.scatter_add", "aten::scatter_add")
def scatter_add(input: Array, dim: int, index: Array, src: Array) -> Array:
    """Add to elements, each by its own index along a dimension: ``torch.scatter_add``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    index : integer ndarray of shape (a, K, b)
    src : ndarray, at least of the shape of `index`

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy: ``result[i, index[i, j, k], k] += src[i, j, k]``.
    """
    return scatter(input, dim, index, src, "add")


@register("torch.scatter_reduce", "Tensor.scatter_reduce", "aten::scatter_reduce")
def scatter_reduce(
    input: Array, dim: int, index: Array, src: Array, reduce: str, include_self: bool = True
) -> Array:
    """Join elements by index along a dimension: ``torch.scatter_reduce``.

    Parameters
    ----------
    input, dim, index, src
        As for ``torch.scatter``.
    reduce : str
        ``"sum"``, ``"prod"``, ``"amax"``, ``"amin"`` or ``"mean"``.
    include_self : bool
        Count what is there already.

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    if not include_self:
        neutral = {"prod": 1, "amax": _lowest(input), "amin": _highest(input)}.get(reduce, 0)
        start = scatter(input, dim, index, neutral)
    else:
        start = input
    if reduce != "mean":
        return scatter(start, dim, index, src, reduce)
    total = scatter(start.astype(np.float64), dim, index, src, "sum")
    counts = np.full(input.shape, int(include_self))
    counts = np.maximum(scatter(counts, dim, index, 1, "sum"), 1)
    quotient = total / counts if input.dtype.kind in "fc" else np.floor_divide(total, counts)
    return cast(quotient, input.dtype)


@register("torch.index_add", "Tensor.index_add", "aten::index_add")
def index_add(input: Array, dim: int, index: Array, source: Array, alpha: float = 1) -> Array:
    """Add to places of one dimension: ``torch.index_add``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    index : integer ndarray of shape (K,)
        A place that comes twice is added to twice.
    source : ndarray of shape (A, K, B)
    alpha : number
        Times what is added.

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy.
    """
    result, places = _copy_and_places(input, dim, index)
    factor = as_operand(alpha, result_dtype(source, alpha))
    np.add.at(result, places, cast(source * factor, input.dtype))
    return result.reshape(input.shape)


@register("torch.index_copy", "Tensor.index_copy", "aten::index_copy")
def index_copy(input: Array, dim: int, index: Array, source: Array) -> Array:
    """Replace places of one dimension: ``torch.index_copy``.

    Parameters
    ----------
    input, dim, index, source
        As in ``torch.index_add``.

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy.
    """
    result, places = _copy_and_places(input, dim, index)
    result[places] = cast(source, input.dtype)
    return result.reshape(input.shape)


@register("torch.index_reduce", "Tensor.index_reduce", "aten::index_reduce")
def index_reduce(
    input: Array, dim: int, index: Array, source: Array, reduce: str, include_self: bool = True
) -> Array:
    """Join slices to places of one dimension: ``torch.index_reduce``.

    Parameters
    ----------
    input, dim, index, source
        As in ``torch.index_add``.
    reduce : str
        ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
    include_self : bool
        Count what is there already.

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy.
    """
    behind = source.ndim - axis_of(dim, input.ndim) - 1
    column = (-1, *(1,) * behind) if source.ndim else ()
    places = np.broadcast_to(_integers(index).reshape(column), source.shape)
    return scatter_reduce(input, dim, places, source, reduce, include_self)


@register("torch.put", "Tensor.put", "aten::put")
def put(input: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Replace elements by their place in the flattened tensor: ``torch.put``.

    Parameters
    ----------
    input : ndarray of any shape
    index : integer ndarray of any shape
    source : ndarray with as many elements as `index`
    accumulate : bool
        Whether to add instead.

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    result = input.copy()
    flat, places = result.reshape(-1), _integers(index).reshape(-1)
    values = cast(source, input.dtype).reshape(-1)
    if values.size != places.size:
        raise LayerError(f"{places.size} places do not take {values.size} elements")
    if accumulate:
        np.add.at(flat, places, values)
    else:
        flat[places] = values
    return result


@register("torch.index_fill", "Tensor.index_fill", "aten::index_fill")
def index_fill(input: Array, dim: int, index: Array, value: Operand) -> Array:
    """Fill places of one dimension: ``torch.index_fill``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    index : integer ndarray of shape (K,)
    value : number, or ndarray of shape ()

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy.
    """
    result, places = _copy_and_places(input, dim, index)
    result[places] = cast(np.asarray(value), input.dtype)
    return result.reshape(input.shape)


def _copy_and_places(input: Array, dim: Value, index: Array) -> tuple[Array, Places]:
    """Copy a tensor, with a dimension for the index to go along where there is none."""
    places = along(axis_of(dim, input.ndim), np.atleast_1d(_integers(index)))
    return np.atleast_1d(input.copy()), places


def _places(indices: Value) -> Places:
    """NumPy's index of PyTorch's list: None is a whole dimension."""
    items = indices if isinstance(indices, tuple) else (indices,)
    return tuple(slice(None) if item is None else _index_array(item) for item in items)


def _index_array(item: Value) -> Array:
    array = np.asarray(item)
    if array.size == 0 and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype == np.uint8:  # an old way to write a mask
        array = array.astype(np.bool_)
    if array.dtype.kind not in "iub":
        raise LayerError(f"{describe_value(item)} of {array.dtype} cannot be an index")
    return array


def _integers(index: Array) -> Array:
    if index.dtype.kind not in "iu":
        raise LayerError(f"indices have the dtype {index.dtype}, not an integer one")
    return index


def _grid(input: Array, dim: Value, index: Array) -> Places:
    """Index of ``input[i, index[i, j, k], k]`` for the second of three dims."""
    array, places = np.atleast_1d(input), np.atleast_1d(_integers(index))
    axis = axis_of(dim, input.ndim)
    fits = array.ndim == places.ndim and all(
        wanted <= there
        for d, (wanted, there) in enumerate(zip(places.shape, array.shape, strict=True))
        if d != axis
    )
    if not fits:
        raise LayerError(
            f"an index of shape {index.shape} does not fit an input of shape {input.shape}",
            InferStatus.kInferArraySizeMismatch,
        )
    grid = list(np.ogrid[tuple(slice(size) for size in places.shape)])
    grid[axis] = places
    return tuple(grid)


def _lowest(array: Array) -> Any:
    if array.dtype.kind in "fb":
        return -np.inf if array.dtype.kind == "f" else False
    return np.iinfo(array.dtype).min


def _highest(array: Array) -> Any:
    if array.dtype.kind in "fb":
        return np.inf if array.dtype.kind == "f" else True
    return np.iinfo(array.dtype).max
