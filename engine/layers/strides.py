"""Operators that read memory by strides, and windows along a dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import along, as_int, as_ints, axis_of
from engine.layers.layer import NOWHERE, Ints, OperatorCall, Storage
from engine.layers.registry import register
from engine.layers.slicing import replace_part
from engine.memory_bound import require_extent, require_memory
from engine.values import Array, Value

__all__ = ["as_strided", "as_strided_scatter", "unfold"]


_ADVICE: Final = "use slices or unfold instead of as_strided in the model, and export it again"


@register("torch.as_strided", "Tensor.as_strided", "aten::as_strided")
def as_strided(
    input: Array,
    size: Ints | None,
    stride: Ints | None,
    storage_offset: int | None = None,
    base: Array | None = None,
    *,
    call: OperatorCall = NOWHERE,
) -> Array:
    """Read elements of the storage by strides: ``torch.as_strided``.

    Element (i, j, ...) of the result is element ``storage_offset + i * stride[0] + j *
    stride[1] + ...``, in row-major order, of the tensor that `input` is a view of, or of
    `input` itself.

    Parameters
    ----------
    input : ndarray of any shape
    size : ints
        Shape of the result.
    stride : ints
        Steps in elements, from 0.
    storage_offset : int, optional
        Index of the first element; by default the input's. pnnx always drops this argument.
    base : ndarray of any shape, optional
        The tensor that `input` is a view of in PyTorch; building the graph finds it.

    Returns
    -------
    ndarray of shape `size`
        May be a view.
    """
    steps = _Steps.read(size, stride, storage_offset)
    if base is None or call.storage is None:
        _require_known(call)
        return steps.picked(input)
    if _reads_base(steps, input, base, call.storage):
        return steps.beginning(call.storage.offset).picked(base)
    return steps.picked(input)


@register("torch.as_strided_scatter", "Tensor.as_strided_scatter", "aten::as_strided_scatter")
def as_strided_scatter(
    input: Array,
    src: Array,
    size: Ints | None,
    stride: Ints | None,
    storage_offset: int | None = None,
    base: Array | None = None,
    *,
    call: OperatorCall = NOWHERE,
) -> Array:
    """Replace elements of the storage by strides: ``torch.as_strided_scatter``.

    Parameters
    ----------
    input, size, stride, storage_offset, base
        As in ``torch.as_strided``.
    src : ndarray of shape `size`

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    steps = _Steps.read(size, stride, storage_offset)
    memory, own = input, _Steps(input.shape, _make_row_major(input.shape), 0)
    if base is None or call.storage is None:
        _require_known(call)
    elif _reads_base(steps, input, base, call.storage):
        memory, steps = base, steps.beginning(call.storage.offset)
        own = _Steps(input.shape, call.storage.strides, call.storage.offset)
    places = steps.picked(np.arange(memory.size))
    changed = replace_part(memory.reshape(-1), (places,), src)
    return own.picked(changed)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Sizes, strides and offset of a strided read.

    Attributes
    ----------
    sizes, strides : tuple of int
    offset : int or None
        None for the input's own.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int | None

    @staticmethod
    def read(size: Value, stride: Value, storage_offset: Value) -> _Steps:
        """Check the arguments of an operator."""
        sizes, strides = as_ints(size, "size"), as_ints(stride, "stride")
        offset = None if storage_offset is None else as_int(storage_offset, "storage_offset")
        if len(sizes) != len(strides) or min((*sizes, *strides, offset or 0), default=0) < 0:
            raise LayerError(f"size {sizes} and stride {strides} do not belong together")
        return _Steps(sizes, strides, offset)

    def beginning(self, offset: int) -> _Steps:
        """Return the same steps with a default offset."""
        return self if self.offset is not None else replace(self, offset=offset)

    @property
    def last(self) -> int:
        """Index of the last element; -1 if there is none."""
        if 0 in self.sizes:
            return -1
        pairs = zip(self.sizes, self.strides, strict=True)
        return (self.offset or 0) + sum((n - 1) * step for n, step in pairs)

    def picked(self, memory: Array) -> Array:
        """Read elements of an array in row-major order; a view if the array is contiguous."""
        if self.last >= memory.size:
            raise LayerError(f"element {self.last} is beyond the input's {memory.size}")
        require_memory(self.sizes, memory.dtype)
        if self.last < 0:
            return np.empty(self.sizes, memory.dtype)
        flat = memory.reshape(-1)[self.offset or 0 :]
        steps = [
            step * flat.strides[0] if n > 1 else 0
            for n, step in zip(self.sizes, self.strides, strict=True)
        ]
        return np.lib.stride_tricks.as_strided(flat, self.sizes, steps, writeable=False)


def _require_known(call: OperatorCall) -> None:
    if call.storage is not None:
        raise LayerError(f"it reads PyTorch's memory, and {call.storage.unknown}; {_ADVICE}")


def _reads_base(steps: _Steps, input: Array, base: Array, storage: Storage) -> bool:
    """Return whether the operator reads the storage of the base, not that of a copy.

    pnnx drops ``contiguous``, so the model may have copied the view. If that makes a
    difference, the strides decide, because they usually derive from the tensor's.

    Raises
    ------
    LayerError
        If the strides do not decide it.
    """
    behind, ordered = steps.beginning(storage.offset), _make_row_major(input.shape)
    view = _Steps(input.shape, storage.strides, storage.offset)
    if steps.last >= input.size or _select_long(view) == _select_long(
        _Steps(input.shape, ordered, 0)
    ):
        return True
    if behind.last >= base.size:
        return False
    places = np.arange(base.size)
    if np.array_equal(behind.picked(places), steps.picked(view.picked(places))):
        return True
    mine = _select_long(steps)
    of_view, of_copy = (
        _count_common(mine, _select_long(replace(view, strides=s)))
        for s in (view.strides, ordered)
    )
    if of_view == of_copy:
        raise LayerError(
            f"its input is a view in PyTorch, of strides {storage.strides}, and whether the "
            f"model made it contiguous is not in the file, for pnnx drops that; {_ADVICE}"
        )
    return of_view > of_copy


def _make_row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _select_long(steps: _Steps) -> tuple[int, ...]:
    """Return the strides along dimensions larger than 1."""
    return tuple(step for n, step in zip(steps.sizes, steps.strides, strict=True) if n > 1)


def _count_common(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """Return the length of the longest common subsequence of two lists."""
    longest = [0] * (len(second) + 1)
    for number in first:
        before = longest.copy()
        for place, other in enumerate(second):
            best = (
                before[place] + 1 if number == other else max(before[place + 1], longest[place])
            )
            longest[place + 1] = best
    return longest[-1]


@register("Tensor.unfold", "aten::unfold")
def unfold(input: Array, dimension: int, size: int, step: int) -> Array:
    """Take windows along a dimension: ``Tensor.unfold``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    dimension : int
        Dimension of the windows.
    size : int
        Size of a window, at most N.
    step : int
        Distance of the starts of neighbouring windows.

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
    places = (array.shape[axis] - width) // distance + 1
    others = array.size // max(array.shape[axis], 1)
    require_extent((others, places, width), array.dtype)
    windows = np.lib.stride_tricks.sliding_window_view(array, width, axis)
    view: Array = windows[along(axis, slice(None, None, distance))]
    return view.reshape(view.shape[1:]) if input.ndim == 0 else view
