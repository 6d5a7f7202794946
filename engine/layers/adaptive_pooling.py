"""Pooling to a given output size, for any input size.

Window ``o`` of an axis reaches from ``floor(o * size / count)`` to ``ceil((o + 1) * size /
count)``; neighbours may overlap and differ in length by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from typing_extensions import override

from engine.errors import InferStatus, LayerError
from engine.layers.arguments import as_int, require_steps
from engine.layers.layer import Layer, OperatorCall
from engine.layers.pooling import divide_sums, largest_of_axis, lowest
from engine.layers.registry import register
from engine.layers.windows import (
    AxisTap,
    axis_taps,
    reduce_axis,
    require_image,
    spatial_rank,
    working_dtype,
)
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "AdaptiveAveragePool",
    "AdaptiveMaxPool",
    "adaptive_average",
    "adaptive_largest",
    "window_bounds",
]


# Longer windows are reduced one by one: they are few, and their elements are many steps.
_LONGEST_TAPPED: Final = 4096


class _AdaptivePool(Layer):
    """Base of both poolings: the output size, a parameter or an operand."""

    def __init__(self, call: OperatorCall, output_size: Any = None) -> None:
        self.rank = spatial_rank(call)
        self._output_size = output_size

    def counts(self, input: Array, output_size: Value) -> tuple[int, ...]:
        """Output size along each spatial axis; None and pnnx's 0 keep the input's."""
        require_image(input, self.rank)
        wanted = self._output_size if output_size is None else output_size
        if isinstance(wanted, np.ndarray):
            wanted = tuple(wanted.reshape(-1).tolist())
        sizes = wanted if isinstance(wanted, tuple) else (wanted,) * self.rank
        if len(sizes) != self.rank:
            raise LayerError(f"output_size={wanted} needs {self.rank} numbers")
        numbers = [0 if size is None else as_int(size, "output_size") for size in sizes]
        spatial = input.shape[-self.rank :]
        if 0 in spatial or min(numbers) < 0:
            raise LayerError(
                f"spatial size {spatial} cannot be pooled to output_size={tuple(numbers)}",
                InferStatus.kInferArraySizeMismatch,
            )
        return tuple(n or size for n, size in zip(numbers, spatial, strict=True))


@register(
    "nn.AdaptiveAvgPool1d", "nn.AdaptiveAvgPool2d", "nn.AdaptiveAvgPool3d",
    "F.adaptive_avg_pool1d", "F.adaptive_avg_pool2d", "F.adaptive_avg_pool3d",
    "torch.adaptive_avg_pool1d", "aten::adaptive_avg_pool1d", "aten::adaptive_avg_pool2d",
    "aten::adaptive_avg_pool3d", "aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d",
)  # fmt: skip
class AdaptiveAveragePool(_AdaptivePool):
    """Mean of each window, to a given size: ``torch.nn.AdaptiveAvgPool2d`` and its kin.

    Window o of an axis of size H covers ``floor(o * H / Hout)`` to ``ceil((o + 1) * H /
    Hout)``, exclusive.

    Parameters
    ----------
    output_size : int or tuple of int
        None or 0 keeps an axis as it is; may also be an operand.
    """

    @override
    def forward(self, input: Array, output_size: Value = None) -> Array:
        return adaptive_average(input, self.counts(input, output_size))


@register(
    "nn.AdaptiveMaxPool1d", "nn.AdaptiveMaxPool2d", "nn.AdaptiveMaxPool3d",
    "F.adaptive_max_pool1d", "F.adaptive_max_pool2d", "F.adaptive_max_pool3d",
    "torch.adaptive_max_pool1d", "aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d",
    "aten::adaptive_max_pool3d",
)  # fmt: skip
class AdaptiveMaxPool(_AdaptivePool):
    """Largest value of each window, to a given size: ``torch.nn.AdaptiveMaxPool2d``, ....

    Window o of an axis of size H covers ``floor(o * H / Hout)`` to ``ceil((o + 1) * H /
    Hout)``, exclusive.

    Parameters
    ----------
    output_size : int or tuple of int
        None or 0 keeps an axis as it is; may also be an operand.
    return_indices : bool
        Whether to return a pair: the values, and int64 indices into the flattened (H...) of
        each channel. Raw ``aten::`` operators always return both.
    """

    def __init__(
        self, call: OperatorCall, output_size: Any = None, return_indices: bool = False
    ) -> None:
        super().__init__(call, output_size)
        self._return_indices = return_indices or call.type.startswith("aten::")

    @override
    def forward(self, input: Array, output_size: Value = None) -> Array | tuple[Array, Array]:
        counts = self.counts(input, output_size)
        if not self._return_indices:
            return adaptive_largest(input, counts)
        values, sizes = input, input.shape[-self.rank :]
        indices = np.broadcast_to(np.arange(np.prod(sizes)).reshape(sizes), input.shape)
        for axis in range(-1, -self.rank - 1, -1):
            taps = _axis_taps(sizes[axis], counts[axis])
            values, indices = largest_of_axis(values, indices, axis, counts[axis], taps)
        return values, indices


def adaptive_average(input: Array, counts: tuple[int, ...]) -> Array:
    """Average the last axes to a given size.

    Parameters
    ----------
    input : ndarray of shape (..., H...)
    counts : tuple of int
        H'...

    Returns
    -------
    ndarray of shape (..., H'...)
        A new array.
    """
    total = _reduce_windows(
        input.astype(working_dtype(input.dtype), copy=False), counts, np.add, 0
    )
    divisor = np.ones((), np.int64)
    for size, count in zip(input.shape[-len(counts) :], counts, strict=True):
        starts, stops = window_bounds(size, count)
        divisor = divisor[..., np.newaxis] * (stops - starts)
    return divide_sums(total, divisor, input.dtype)


def adaptive_largest(input: Array, counts: tuple[int, ...]) -> Array:
    """Take the largest numbers of the last axes to a given size.

    Parameters
    ----------
    input : ndarray of shape (..., H...)
    counts : tuple of int
        H'...

    Returns
    -------
    ndarray of shape (..., H'...)
        A new array.
    """
    return _reduce_windows(input, counts, np.maximum, lowest(input.dtype))


def _reduce_windows(
    image: Array, counts: tuple[int, ...], combine: Callable[..., Array], initial: object
) -> Array:
    """Reduce the last axes to `counts` windows each; a new array."""
    for axis, count in enumerate(counts, -len(counts)):
        size = image.shape[axis]
        if count == 1:
            image = combine.reduce(image, axis=axis, keepdims=True)  # type: ignore[attr-defined]
        elif size // count >= _LONGEST_TAPPED:
            image = _reduce_one_by_one(image, axis, count, combine)
        else:
            taps = _axis_taps(size, count)
            image = reduce_axis(image, axis, count, taps, combine, initial)
    return image


def _reduce_one_by_one(
    image: Array, axis: int, count: int, combine: Callable[..., Array]
) -> Array:
    """Reduce an axis to `count` windows, none of which is empty; a new array."""
    require_steps(count, "windows")
    shape = list(image.shape)
    shape[axis] = count
    result = np.empty(shape, image.dtype)
    source, target = np.moveaxis(image, axis, -1), np.moveaxis(result, axis, -1)
    bounds = zip(*window_bounds(image.shape[axis], count), strict=True)
    for place, (start, stop) in enumerate(bounds):
        window, found = source[..., start:stop], target[..., place]
        combine.reduce(window, axis=-1, dtype=image.dtype, out=found)  # type: ignore[attr-defined]
    return result


def window_bounds(size: int, count: int) -> tuple[Array, Array]:
    """Return start and stop of each window.

    Parameters
    ----------
    size, count : int
        Of the input and of the output along an axis.

    Returns
    -------
    starts, stops : ndarray of shape (count,)
    """
    positions = np.arange(count)
    return positions * size // count, -(-(positions + 1) * size // count)


def _axis_taps(size: int, count: int) -> Iterator[AxisTap]:
    if size % count == 0:  # windows of one length, side by side
        yield from axis_taps(size, count, size // count, size // count, 1, 0)
        return
    starts, stops = window_bounds(size, count)
    longest = int((stops - starts).max())
    require_steps(longest, "positions of a window")
    for tap in range(longest):
        outputs = np.flatnonzero(starts + tap < stops)
        yield outputs, starts[outputs] + tap
