"""Elements picked by steps in memory, and windows along a dimension."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import along, as_int, as_ints, axis_of
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.layers.slicing import scattered
from engine.layers.windows import require_memory
from engine.values import Array, Value

__all__ = ["as_strided", "as_strided_scatter", "unfold"]


@register("torch.as_strided", "Tensor.as_strided", "aten::as_strided")
def as_strided(
    input: Array, size: Ints | None, stride: Ints | None, storage_offset: int | None = None
) -> Array:
    """Pick elements by their places in memory: ``torch.as_strided``.

    Element (i, j, ...) is the one at ``storage_offset + i * stride[0] + j * stride[1] + ...``
    in row-major order. PyTorch looks at the memory behind its input, which a view shares
    with others; here the input itself counts, as if it were whole.

    Parameters
    ----------
    input : ndarray of any shape
    size : ints
        Shape of the result.
    stride : ints
        Steps in elements, from 0.
    storage_offset : int, optional
        Place of the first element; 0 by default.

    Returns
    -------
    ndarray of shape `size`
        A copy.
    """
    picked: Array = input.reshape(-1)[_places(input, size, stride, storage_offset)]
    return picked


@register("torch.as_strided_scatter", "Tensor.as_strided_scatter", "aten::as_strided_scatter")
def as_strided_scatter(
    input: Array,
    src: Array,
    size: Ints | None,
    stride: Ints | None,
    storage_offset: int | None = None,
) -> Array:
    """Replace elements by their places in memory: ``torch.as_strided_scatter``.

    Parameters
    ----------
    input, size, stride, storage_offset
        As in ``torch.as_strided``.
    src : ndarray of shape `size`

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    places = _places(input, size, stride, storage_offset)
    return scattered(input, np.unravel_index(places, input.shape), src)


def _places(input: Array, size: Value, stride: Value, storage_offset: Value) -> Array:
    sizes, strides = as_ints(size, "size"), as_ints(stride, "stride")
    offset = 0 if storage_offset is None else as_int(storage_offset, "storage_offset")
    if len(sizes) != len(strides) or min((*sizes, *strides, offset), default=0) < 0:
        raise LayerError(f"size {sizes} and stride {strides} do not belong together")
    last = offset + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))
    if 0 not in sizes and last >= input.size:
        raise LayerError(f"element {last} is beyond the input's {input.size}")
    places = np.full((1,) * len(sizes), offset)
    require_memory(sizes, places.dtype)
    for axis, (n, step) in enumerate(zip(sizes, strides, strict=True)):
        shape = [1] * len(sizes)
        shape[axis] = n
        places = places + (np.arange(n) * step).reshape(shape)
    return places


@register("Tensor.unfold", "aten::unfold")
def unfold(input: Array, dimension: int, size: int, step: int) -> Array:
    """Take windows along a dimension: ``Tensor.unfold``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dimension : int
        Where the windows lie.
    size : int
        Of a window, at most N.
    step : int
        From one window to the next.

    Returns
    -------
    ndarray of shape (A, (N - size) // step + 1, B, size)
        A view of `input` in which overlapping windows share memory.
    """
    axis = axis_of(dimension, input.ndim, "dimension")
    width, distance = as_int(size, "size"), as_int(step, "step")
    array = np.atleast_1d(input)
    if not 0 <= width <= array.shape[axis] or distance < 1:
        raise LayerError(
            f"there are no windows of size {width} at steps of {distance} in a dimension of "
            f"{array.shape[axis]}"
        )
    windows = np.lib.stride_tricks.sliding_window_view(array, width, axis)
    view: Array = windows[along(axis, slice(None, None, distance))]
    return view.reshape(view.shape[1:]) if input.ndim == 0 else view
