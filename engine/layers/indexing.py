"""Operators that take or replace elements by index tensors.

Indices are integers from -N to N - 1 unless documented otherwise. An index out of range is an
error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine import expression
from engine.errors import (
    ExpressionError,
    InferStatus,
    LayerError,
    ParameterError,
    describe_shapes,
)
from engine.layers.arguments import along, axis_of, cast
from engine.layers.elementwise import Operand
from engine.layers.expression import expression_text
from engine.layers.index_places import (
    Join,
    flat_positions,
    join_at,
    normalize_indices,
    replace_at,
    require_integers,
    take_along,
)
from engine.layers.layer import Layer, OperatorCall
from engine.layers.registry import register
from engine.promotion import as_operand, result_dtype
from engine.text import format_shape
from engine.values import Array, Value, describe_value

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Index", "gather", "index_put", "index_select", "scatter", "scatter_add", "take"]

Places = tuple[Any, ...]


@register("Tensor.index", "aten::index")
class Index(Layer):
    """Take elements by one list of indices per dimension: ``x[[0, 2], :, mask]``.

    Parameters
    ----------
    expr : str, optional
        Constant lists, such as ``[None,[1,0]]``. None selects a whole dimension, a bool list
        the true elements, and integer lists are broadcast against each other, as in NumPy. If
        not constant, the lists are the second input.
    """

    def __init__(self, operator: OperatorCall, expr: Any = None) -> None:
        self._constant: Places | None = None
        self._annotated = operator.output_shape
        if expr is None:
            return
        try:
            parsed = expression.parse(expression_text(expr), operand_count=0)
            self._constant = to_numpy_index(parsed.evaluate(()))
        except (ExpressionError, LayerError) as exc:
            raise ParameterError("expr", str(exc)) from exc

    @override
    def forward(self, input: Array, expr: Value = None) -> Array:
        """Take the elements.

        Parameters
        ----------
        input : ndarray of any shape
        expr : tuple of None, int or bool ndarray, optional

        Returns
        -------
        ndarray
            A copy.
        """
        if self._constant is not None and self._takes_everything(input):
            return input.reshape([1] * self._added(input) + list(input.shape)).copy()
        places = (
            to_numpy_index(expr)
            if self._constant is None
            else self._restore_indices(input.ndim)
        )
        sole = _find_only_axis(places)
        if sole is not None:
            return take_along(input, sole, places[sole])
        return np.asarray(input[places])

    def _takes_everything(self, input: Array) -> bool:
        """Whether indices of which pnnx kept only the first zero took all elements in order.

        Masks of transformers are indexed by ranges: ``mask[batch[:, None, None, None], keys]``,
        where the range of keys has sizes of 1 before it. pnnx writes ``[[0],[0]]``. The result
        has the sizes of the mask, behind others of 1.
        """
        places, stated = self._constant or (), self._annotated
        if stated is None or len(stated) <= input.ndim or len(places) != input.ndim:
            return False
        starts = all(isinstance(each, np.ndarray) and each.tolist() == [0] for each in places)
        ahead = self._added(input)
        return starts and tuple(stated) == (1,) * ahead + input.shape

    def _added(self, input: Array) -> int:
        """Return how many dimensions the result has more than the input."""
        return len(self._annotated or ()) - input.ndim

    def _restore_indices(self, ndim: int) -> Places:
        """Restore the shapes of constant indices.

        pnnx writes an index tensor as if it had one dimension, with only as many elements as
        its first dimension has. The annotation states the number of dimensions of the result.
        For a single index tensor it also states their sizes.
        """
        places = self._constant or ()
        lists = [item for item in places if isinstance(item, np.ndarray)]
        used = sum(item.ndim if item.dtype == np.bool_ else 1 for item in lists)
        rank = ndim - used + max((item.ndim for item in lists), default=0)
        if self._annotated is None or len(self._annotated) == rank or not lists:
            return places
        sole = _find_only_axis(places)
        if sole is not None:
            shape = self._annotated[sole : len(self._annotated) - (ndim - sole - 1)]
            whole = _reshape_index(places[sole], shape)
            if whole is not None:
                return (*places[:sole], whole, *places[sole + 1 :])
        raise LayerError(
            f"expr holds {describe_shapes(item.shape for item in lists)} constant indices, "
            f"which cannot give the output {format_shape(self._annotated)} that the file "
            "states: the exporter wrote a part of a table of several dimensions; index by "
            "table.flatten() in the model, reshape the result, and export it again"
        )


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
        Add instead of replacing; repeated indices add repeatedly. If not, the last one counts.

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    result, places = input.copy("C"), to_numpy_index(indices)
    new = cast(np.asarray(values), input.dtype)
    try:
        if not accumulate:
            result[places] = new
        elif any(isinstance(item, slice) or item.dtype == np.bool_ for item in places):
            np.add.at(result, places, new)
        else:
            _add_rows(result, places, new)
    except ValueError as exc:
        raise LayerError(str(exc), InferStatus.kInferArraySizeMismatch) from exc
    return result


def _add_rows(result: Array, places: Places, new: Array) -> None:
    """Add to the elements at indices of the first dimensions."""
    depth, shape = len(places), result.shape
    if depth > len(shape):
        raise LayerError(f"{depth} lists of indices are too many for {len(shape)} dimensions")
    rows: Array = np.zeros((), np.intp)
    for axis, index in enumerate(places):
        rows = rows * shape[axis] + normalize_indices(index, shape[axis], axis)
    new = np.broadcast_to(new, rows.shape + shape[depth:])
    table = result.reshape(math.prod(shape[:depth]), math.prod(shape[depth:]))
    new = new.reshape(rows.size, table.shape[1])
    join_at(np.add.at, table, 0, np.broadcast_to(rows.reshape(-1, 1), new.shape), new)


@register("torch.index_select", "Tensor.index_select", "aten::index_select")
def index_select(input: Array, dim: int, index: Array) -> Array:
    """Take indices of one dimension: ``torch.index_select``.

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
    selected = take_along(np.atleast_1d(input), axis, np.atleast_1d(index))
    return selected.reshape(()) if input.ndim == 0 else selected


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
    return take_along(input.reshape(-1), 0, index)


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
        No effect at inference.

    Returns
    -------
    ndarray of shape (a, K, b)
        A copy: element (i, j, k) is ``input[i, index[i, j, k], k]``.
    """
    if not index.size:  # of any number of dimensions, as in PyTorch
        return np.empty(index.shape, input.dtype)
    axis, places = _match_index(input, dim, index)
    whole = tuple(slice(0, size) for size in places.shape)
    places = flat_positions(np.atleast_1d(input).shape, axis, places, whole)
    return input.reshape(-1).take(places).reshape(index.shape)


@register("torch.take_along_dim", "Tensor.take_along_dim", "aten::take_along_dim")
def take_along_dim(input: Array, indices: Array, dim: int | None = None) -> Array:
    """Take elements by indices along a dimension, with broadcasting: ``torch.take_along_dim``.

    Parameters
    ----------
    input : ndarray of any shape
    indices : integer ndarray, broadcast with `input` in the other dimensions
    dim : int, optional
        By default the flattened tensor is indexed.

    Returns
    -------
    ndarray
        A copy.
    """
    if dim is None:
        return take_along(input.reshape(-1), 0, indices.reshape(-1))
    return np.take_along_axis(input, require_integers(indices), axis_of(dim, input.ndim))


# How an old and a new element are combined
_JOIN: Final[dict[str | None, Join]] = {
    None: replace_at,
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
        ``"add"`` to or ``"multiply"`` the old elements. Without it the last one counts.
    value : number
        Instead of `src`.

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy: ``result[i, index[i, j, k], k] = src[i, j, k]``.
    """
    if reduce not in _JOIN:
        raise LayerError(f"reduce is {reduce!r}, not one of {', '.join(filter(None, _JOIN))}")
    source = np.asarray(value if src is None else src)
    if source.ndim:
        source = source[tuple(slice(size) for size in index.shape)]
    axis, places = _match_index(input, dim, index)
    new = np.broadcast_to(cast(source, input.dtype), index.shape).reshape(places.shape)
    result = np.atleast_1d(input.copy("C"))
    join_at(_JOIN[reduce], result, axis, places, new)
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
    """Combine elements by index along a dimension: ``torch.scatter_reduce``.

    Parameters
    ----------
    input, dim, index, src
        As for ``torch.scatter``.
    reduce : str
        ``"sum"``, ``"prod"``, ``"amax"``, ``"amin"`` or ``"mean"``.
    include_self : bool
        Whether to include the old elements.

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
    """Add at indices of one dimension: ``torch.index_add``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dim : int
    index : integer ndarray of shape (K,)
        Repeated indices add repeatedly.
    source : ndarray of shape (A, K, B)
    alpha : number
        Factor of `source`.

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy.
    """
    axis, result = axis_of(dim, input.ndim), np.atleast_1d(input.copy("C"))
    factor = as_operand(alpha, result_dtype(source, alpha))
    new = np.atleast_1d(cast(source * factor, input.dtype))
    places = normalize_indices(np.atleast_1d(index), result.shape[axis], axis)
    fits = (*result.shape[:axis], places.size, *result.shape[axis + 1 :])
    if new.shape != fits:
        raise LayerError(
            f"{places.size} indices of dim {axis} take a source of {format_shape(fits)}, not "
            f"{format_shape(new.shape)}",
            InferStatus.kInferArraySizeMismatch,
        )
    join_at(np.add.at, result, axis, _expand_index(places, axis, new), new)
    return result.reshape(input.shape)


@register("torch.index_copy", "Tensor.index_copy", "aten::index_copy")
def index_copy(input: Array, dim: int, index: Array, source: Array) -> Array:
    """Replace indices of one dimension: ``torch.index_copy``.

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
    """Combine slices at indices of one dimension: ``torch.index_reduce``.

    Parameters
    ----------
    input, dim, index, source
        As in ``torch.index_add``.
    reduce : str
        ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``.
    include_self : bool
        Whether to include the old elements.

    Returns
    -------
    ndarray of shape (A, N, B)
        A copy.
    """
    places = _expand_index(index, axis_of(dim, input.ndim), source) if source.ndim else index
    return scatter_reduce(input, dim, places, source, reduce, include_self)


@register("torch.put", "Tensor.put", "aten::put")
def put(input: Array, index: Array, source: Array, accumulate: bool = False) -> Array:
    """Replace elements by their index in the flattened tensor: ``torch.put``.

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
    flat, places = result.reshape(-1), require_integers(index).reshape(-1)
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
    """Fill indices of one dimension: ``torch.index_fill``.

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
    """Copy a tensor and normalise the index; a 0-d tensor gets one dimension."""
    places = along(axis_of(dim, input.ndim), np.atleast_1d(require_integers(index)))
    return np.atleast_1d(input.copy()), places


def to_numpy_index(indices: Value) -> Places:
    """Convert PyTorch's list of indices to NumPy's index; None is a whole dimension."""
    items = indices if isinstance(indices, tuple) else (indices,)
    return tuple(slice(None) if item is None else _index_array(item) for item in items)


def _find_only_axis(places: Places) -> int | None:
    """Return the axis of the only index, if it has integers and all other axes are whole."""
    given = [axis for axis, item in enumerate(places) if isinstance(item, np.ndarray)]
    return given[0] if len(given) == 1 and places[given[0]].dtype != np.bool_ else None


def _reshape_index(index: Array, shape: Sequence[object]) -> Array | None:
    """Reshape an index; None if the shape does not fit or is unknown."""
    sizes = [size for size in shape if isinstance(size, int)]
    if len(sizes) != len(shape) or math.prod(sizes) != index.size:
        return None
    return index.reshape(sizes)


def _index_array(item: Value) -> Array:
    array = np.asarray(item)
    if array.size == 0 and not isinstance(item, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype == np.uint8:  # masks of old versions of PyTorch
        array = array.astype(np.bool_)
    if array.dtype.kind not in "iub":
        raise LayerError(f"{describe_value(item)} of {array.dtype} cannot be an index")
    return array


def _match_index(input: Array, dim: Value, index: Array) -> tuple[int, Array]:
    """Return the axis and the normalised indices along it.

    The index may not be larger than the tensor in the other dimensions.
    """
    array, places = np.atleast_1d(input), np.atleast_1d(index)
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
    return axis, normalize_indices(places, array.shape[axis], axis)


def _expand_index(index: Array, axis: int, source: Array) -> Array:
    """Broadcast one index per position of an axis to one per element; a view."""
    column = index.reshape(-1, *(1,) * (source.ndim - axis - 1))
    return np.broadcast_to(column, source.shape)


def _lowest(array: Array) -> Any:
    if array.dtype.kind in "fb":
        return -np.inf if array.dtype.kind == "f" else False
    return np.iinfo(array.dtype).min


def _highest(array: Array) -> Any:
    if array.dtype.kind in "fb":
        return np.inf if array.dtype.kind == "f" else True
    return np.iinfo(array.dtype).max
