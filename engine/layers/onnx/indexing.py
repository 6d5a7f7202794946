"""Operators of ONNX that take, replace and choose elements by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import along, as_int, as_ints, axis_of, cast
from engine.layers.extremes import topk
from engine.layers.indexing import gather, scatter
from engine.layers.layer import OperatorCall, Outputs
from engine.layers.registry import register
from engine.layers.scan import cumprod, cumsum
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["gather_nd", "scatter_elements", "scatter_nd", "slice_axes", "top_k"]


@register("Gather")
def gather_axis(data: Array, indices: Any, axis: int = 0) -> Array:
    """Take indices of one axis: ONNX ``Gather``.

    Parameters
    ----------
    data : ndarray of shape (A, N, B)
    indices : integer ndarray of shape (K...), ints or int
        From -N to N - 1.
    axis : int
        Dimension to index.

    Returns
    -------
    ndarray of shape (A, K..., B)
        A copy.
    """
    return np.asarray(np.take(data, np.asarray(indices), axis_of(axis, data.ndim, "axis")))


@register("GatherElements")
def gather_elements(data: Array, indices: Array, axis: int = 0) -> Array:
    """Take elements, each by its own index along an axis: ONNX ``GatherElements``.

    Parameters
    ----------
    data : ndarray of shape (A, N, B)
    indices : integer ndarray of shape (a, K, b)
        From -N to N - 1.
    axis : int
        Dimension to index.

    Returns
    -------
    ndarray of shape (a, K, b)
        A copy.
    """
    return gather(data, axis, indices)


@register("GatherND")
def gather_nd(data: Array, indices: Array, batch_dims: int = 0) -> Array:
    """Take elements or parts by vectors of indices: ONNX ``GatherND``.

    Parameters
    ----------
    data : ndarray of shape (B..., N...)
    indices : integer ndarray of shape (B..., K..., D)
        Vectors of D indices into the first dimensions after the batch.
    batch_dims : int
        Number of batch dimensions B of both.

    Returns
    -------
    ndarray of shape (B..., K..., what remains of N...)
        A copy.
    """
    depth = indices.shape[-1]
    if indices.shape[:batch_dims] != data.shape[:batch_dims] or (
        batch_dims + depth > data.ndim
    ):
        raise _make_shape_error(data, indices)
    batch = np.ogrid[tuple(slice(size) for size in indices.shape[:-1])][:batch_dims]
    vectors = (indices[..., place] for place in range(depth))
    return np.asarray(data[(*batch, *vectors)])


_JOIN: Final[dict[str, Callable[..., None] | None]] = {
    "none": None,
    "add": np.add.at,
    "mul": np.multiply.at,
    "max": np.maximum.at,
    "min": np.minimum.at,
}
_PYTORCHS: Final = {"none": None, "add": "add", "mul": "multiply", "max": "amax", "min": "amin"}


@register("ScatterElements", "Scatter")
def scatter_elements(
    data: Array, indices: Array, updates: Array, axis: int = 0, reduction: str = "none"
) -> Array:
    """Replace elements, each by its own index along an axis: ONNX ``ScatterElements``.

    Parameters
    ----------
    data : ndarray of shape (A, N, B)
    indices : integer ndarray of shape (a, K, b)
        From -N to N - 1.
    updates : ndarray of the same shape
        New values.
    axis : int
        Dimension to index.
    reduction : str
        ``none`` replaces elements; ``add``, ``mul``, ``max`` and ``min`` combine them.

    Returns
    -------
    ndarray of the shape of `data`
        A copy.
    """
    _require_reduction(reduction)
    return scatter(data, axis, indices, updates, _PYTORCHS[reduction])


@register("ScatterND")
def scatter_nd(data: Array, indices: Array, updates: Array, reduction: str = "none") -> Array:
    """Replace elements or parts by vectors of indices: ONNX ``ScatterND``.

    Parameters
    ----------
    data : ndarray of shape (N...)
    indices : integer ndarray of shape (K..., D)
        Vectors of D indices into the first dimensions.
    updates : ndarray of shape (K..., what remains of N...)
        New values.
    reduction : str
        ``none`` replaces elements; ``add``, ``mul``, ``max`` and ``min`` combine them.

    Returns
    -------
    ndarray of the shape of `data`
        A copy.
    """
    _require_reduction(reduction)
    depth = indices.shape[-1]
    new = np.asarray(updates)
    if depth > data.ndim or new.shape != (*indices.shape[:-1], *data.shape[depth:]):
        raise _make_shape_error(data, indices, new)
    result = data.copy()
    places = tuple(indices[..., place] for place in range(depth))
    join = _JOIN[reduction]
    if join is None:
        result[places] = cast(new, data.dtype)
    else:
        join(result, places, cast(new, data.dtype))
    return result


@register("TensorScatter")
def tensor_scatter(
    past_cache: Array,
    update: Array,
    write_indices: Array | None = None,
    axis: int = -2,
    mode: str = "linear",
) -> Array:
    """Write new steps into a cache: ONNX ``TensorScatter``.

    Parameters
    ----------
    past_cache : ndarray of shape (N, ..., L, ...)
    update : ndarray of shape (N, ..., S, ...)
        New steps.
    write_indices : int64 ndarray of shape (N,), optional
        Position at which each sample's steps are written; 0 by default.
    axis : int
        The dimension of the steps.
    mode : str
        ``linear``, or ``circular`` to continue at the start after the end.

    Returns
    -------
    ndarray of the shape of `past_cache`
        A copy.
    """
    result = past_cache.copy()
    place = axis_of(axis, past_cache.ndim, "axis") - 1
    length, steps = past_cache.shape[place + 1], update.shape[place + 1]
    starts = np.zeros(len(past_cache), np.int64) if write_indices is None else write_indices
    for sample, start in enumerate(starts):
        places = start + np.arange(steps)
        if mode == "circular":
            places %= length
        elif steps and places[-1] >= length:
            raise LayerError(f"{steps} steps from {start} on exceed a cache of {length}")
        result[sample][along(place, places)] = update[sample]
    return result


def _require_reduction(reduction: str) -> None:
    if reduction not in _JOIN:
        raise LayerError(f"reduction is {reduction}, not one of {', '.join(_JOIN)}")


def _make_shape_error(*arrays: Array) -> LayerError:
    return LayerError(
        "data, indices and updates do not fit each other: their shapes are "
        f"{describe_shapes([array.shape for array in arrays])}",
        InferStatus.kInferArraySizeMismatch,
    )


@register("Slice")
def slice_axes(
    data: Array,
    call: OperatorCall,
    starts: Any,
    ends: Any,
    axes: Any = None,
    steps: Any = None,
) -> Array:
    """Take ranges of axes: ONNX ``Slice``.

    Parameters
    ----------
    data : ndarray of any shape
    starts, ends : ints
        As in Python's slices; larger numbers are the end.
    axes : ints, optional
        The dimensions; the first ones by default.
    steps : ints, optional
        1 by default; negative ones go backwards.

    Returns
    -------
    ndarray
        A view of `data`.
    """
    shape = call.output_shape
    if shape is not None and len(shape) != data.ndim:
        # A slice has as many dimensions as its input: pnnx drops ``Shape`` before one.
        data = np.array(data.shape, np.int64)
    firsts, lasts = as_ints(starts, "starts"), as_ints(ends, "ends")
    numbers = range(len(firsts)) if axes is None else as_ints(axes, "axes")
    strides = (1,) * len(firsts) if steps is None else as_ints(steps, "steps")
    if not len(firsts) == len(lasts) == len(numbers) == len(strides):
        raise LayerError("starts, ends, axes and steps are not equally long")
    index = [slice(None)] * data.ndim
    for number, first, last, stride in zip(numbers, firsts, lasts, strides, strict=True):
        axis = axis_of(number, data.ndim, "axis")
        if not stride:
            raise LayerError("a step is 0")
        # For a negative step a very low end means "to the first element", not an index.
        end = None if stride < 0 and last < -data.shape[axis] else last
        index[axis] = slice(first, end, stride)
    return data[tuple(index)]


@register("ReverseSequence")
def reverse_sequence(
    input: Array, sequence_lens: OperandOf[Any], time_axis: int = 0, batch_axis: int = 1
) -> Array:
    """Reverse the first steps of each sample: ONNX ``ReverseSequence``.

    Parameters
    ----------
    input : ndarray of at least two dimensions
    sequence_lens : int64 ndarray of shape (N,)
        Number of steps of each sample to reverse.
    time_axis, batch_axis : int
        The dimensions of the steps and of the samples: 0 and 1 in either order.

    Returns
    -------
    ndarray of the same shape
        A copy.
    """
    result = input.copy()
    for sample, length in enumerate(as_ints(sequence_lens, "sequence_lens")):
        whole = [slice(None)] * 2
        part: list[Any] = [*whole]
        part[batch_axis], part[time_axis] = sample, slice(0, length)
        result[tuple(part)] = np.flip(input[tuple(part)], 0)
    return result


@register("TopK")
def top_k(x: Array, k: Any, axis: int = -1, largest: int = 1, sorted: int = 1) -> Outputs:
    """Largest or smallest elements along an axis, with their indices: ONNX ``TopK``.

    Parameters
    ----------
    x : ndarray of shape (A, N, B)
    k : int
        How many.
    axis : int
        Dimension to search.
    largest : int
        Whether to return the largest elements instead of the smallest.
    sorted : int
        No effect: the result is always sorted; equal elements keep their order.

    Returns
    -------
    ndarray and int64 ndarray of shape (A, k, B)
    """
    return topk(x, as_int(k, "k"), axis, bool(largest))


@register("Hardmax")
def hardmax(input: Array, axis: int = -1) -> Array:
    """1 at the first largest element along an axis, 0 elsewhere: ONNX ``Hardmax``.

    Parameters
    ----------
    input : ndarray of any shape
    axis : int
        Dimension to search.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    place = axis_of(axis, input.ndim, "axis")
    result = np.zeros_like(input)
    np.put_along_axis(result, input.argmax(place, keepdims=True), 1, place)
    return result


@register("NonZero")
def non_zero(x: Array) -> Array:
    """Indices of all elements that are not zero: ONNX ``NonZero``.

    Parameters
    ----------
    x : ndarray of D dimensions

    Returns
    -------
    int64 ndarray of shape (D, K)
        In row-major order.
    """
    return np.array(np.nonzero(np.atleast_1d(x)), np.int64)


@register("Compress")
def compress(input: Array, condition: Array, axis: int | None = None) -> Array:
    """Take the indices at which a condition is true: ONNX ``Compress``.

    Parameters
    ----------
    input : ndarray of any shape
    condition : bool ndarray of shape (K,)
        May be shorter than the axis.
    axis : int, optional
        Dimension to index; the flattened tensor by default.

    Returns
    -------
    ndarray
        A copy.
    """
    return np.compress(np.asarray(condition).reshape(-1), input, axis)


@register("OneHot")
def one_hot(indices: OperandOf[Value], depth: Any, values: Array, axis: int = -1) -> Array:
    """Vectors with one of two values at the index of each class: ONNX ``OneHot``.

    Parameters
    ----------
    indices : ndarray of shape (A, B)
        Classes, from -depth to depth - 1; others are ignored.
    depth : int
        Number of classes.
    values : ndarray of shape (2,)
        The values for other classes and for the class itself.
    axis : int
        The dimension of the classes in the result.

    Returns
    -------
    ndarray of shape (A, depth, B)
        Of the dtype of `values`.
    """
    classes = np.asarray(indices)
    count = int(np.asarray(depth).item())
    place = axis_of(axis, classes.ndim + 1, "axis")
    column = (count, *(1,) * (classes.ndim - place))
    numbers = np.arange(count).reshape(column)
    known = (classes >= -count) & (classes < count)
    hit = np.expand_dims(np.where(known, classes % max(count, 1), -1), place) == numbers
    return np.asarray(np.where(hit, values[1], values[0]), values.dtype)


@register("Unique")
def unique(x: Array, axis: int | None = None, sorted: int = 1) -> Outputs:
    """Elements without duplicates, and their indices: ONNX ``Unique``.

    Parameters
    ----------
    x : ndarray of any shape
    axis : int, optional
        Compare whole slices along this dimension; elements by default.
    sorted : int
        Whether the result is sorted, instead of in the order of first occurrence.

    Returns
    -------
    ndarray
        The different values.
    int64 ndarray of shape (K,)
        Index of the first occurrence of each value.
    int64 ndarray of shape (N,)
        Index in the first result of each element of the input.
    int64 ndarray of shape (K,)
        Number of occurrences of each value.
    """
    found, first, number, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=axis
    )
    number = number.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        found = np.take(found, order, 0 if axis is None else axis)
        first, counts = first[order], counts[order]
        number = np.argsort(order)[number]
    return Outputs((found, *(a.astype(np.int64) for a in (first, number, counts))))


@register("Trilu")
def trilu(input: Array, k: Any = 0, upper: int = 1) -> Array:
    """Matrices with zeros below or above a diagonal: ONNX ``Trilu``.

    Parameters
    ----------
    input : ndarray of shape (..., H, W)
    k : int
        Number of the diagonal; positive ones are above the main one.
    upper : int
        Whether to keep the upper triangle and set the elements below to zero, or the reverse.

    Returns
    -------
    ndarray of the same shape
        A copy.
    """
    return (np.triu if upper else np.tril)(input, as_int(k, "k"))


@register("CumSum")
def cum_sum(x: Array, axis: Any, exclusive: int = 0, reverse: int = 0) -> Array:
    """Running sums along an axis: ONNX ``CumSum``.

    Parameters
    ----------
    x : ndarray of any shape
    axis : int
        Dimension to compute along.
    exclusive : int
        Whether a sum excludes its own element.
    reverse : int
        Whether to start at the end.

    Returns
    -------
    ndarray of the same shape and dtype
    """
    return _accumulate(cumsum, x, axis, exclusive, reverse, 0)


@register("CumProd")
def cum_prod(x: Array, axis: Any, exclusive: int = 0, reverse: int = 0) -> Array:
    """Running products along an axis: ONNX ``CumProd``.

    Parameters
    ----------
    x, axis, exclusive, reverse
        As in ``CumSum``.

    Returns
    -------
    ndarray of the same shape and dtype
    """
    return _accumulate(cumprod, x, axis, exclusive, reverse, 1)


def _accumulate(
    scan: Callable[..., Array], x: Array, axis: Any, exclusive: int, reverse: int, start: int
) -> Array:
    place = axis_of(axis, x.ndim, "axis")
    if reverse:
        x = np.flip(x, place)
    if exclusive:
        first = np.full_like(x[along(place, slice(0, 1))], start)
        x = np.concatenate([first, x[along(place, slice(0, -1))]], place)
    result = cast(scan(x, place), x.dtype)
    return np.flip(result, place) if reverse else result
