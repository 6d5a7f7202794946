"""Sliding windows over an image: their positions, and reductions over them.

An image is an array whose last axes are spatial (L; H, W; or D, H, W); everything here works
for any number of them. A window is a grid of *taps*. Output ``o`` of an axis reads, at tap
``t``, position ``o * stride + t * dilation - padding`` of the input. Layers loop over the
taps, not over the pixels, and compute which outputs of a tap are inside the image. So nothing
is padded, and each step is one NumPy pass over a strided view. Taps that only read padding are
skipped without visiting them, because a window may be arbitrarily large.
"""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from engine.errors import InferStatus, LayerError, ParameterError, describe_shapes
from engine.layers.arguments import require_steps
from engine.memory_bound import require_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.layers.layer import Ints, OperatorCall
    from engine.promotion import DType
    from engine.values import Array

__all__ = [
    "AxisTap",
    "Windows",
    "axis_taps",
    "blocks",
    "new_output",
    "per_axis",
    "ready",
    "reduce_axis",
    "require_image",
    "spatial_rank",
    "working_dtype",
]

# Outputs of an axis whose tap is inside the image, and the inputs that they read. Two slices,
# or two index arrays if windows are not evenly spaced.
AxisTap: TypeAlias = tuple[Any, Any]


def spatial_rank(call: OperatorCall) -> int:
    """Count the spatial axes that an operator type names: 2 for ``nn.MaxPool2d``."""
    found = re.search(r"([123])d(?:_with_indices)?$", call.type)
    if found is None:
        raise ParameterError("", f"operator type {call.type} does not contain 1d, 2d or 3d")
    return int(found[1])


def per_axis(name: str, value: Ints, rank: int, least: int = 0) -> tuple[int, ...]:
    """Expand a parameter to each spatial axis.

    Parameters
    ----------
    name : str
        Of the parameter.
    value : int or tuple of int
        One number stands for all axes.
    rank : int
        Number of spatial axes.
    least : int
        Smallest number allowed.

    Returns
    -------
    tuple of `rank` ints

    Raises
    ------
    ParameterError
        If there are more or fewer numbers, or one is too small.
    """
    numbers = value if isinstance(value, tuple) else (value,)
    if len(numbers) == 1:
        numbers *= rank
    if len(numbers) != rank:
        raise ParameterError(
            name, f"{name}={value} has {len(numbers)} numbers; {rank} spatial axes need {rank}"
        )
    if any(number < least for number in numbers):
        raise ParameterError(name, f"{name}={value} must not be less than {least}")
    return numbers


def require_image(input: Array, rank: int, name: str = "input") -> None:
    """Check that there are `rank` spatial axes, a channel axis and perhaps a batch axis.

    Raises
    ------
    LayerError
        With the shape.
    """
    if input.ndim not in {rank + 1, rank + 2}:
        raise LayerError(
            f"{name} has {input.ndim} dimensions, not {rank + 2} (or {rank + 1} without a "
            f"batch): its shape is {describe_shapes([input.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )


def working_dtype(dtype: DType) -> DType:
    """Find the dtype to compute in: float32 for float16, as PyTorch does; else the same."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def ready(array: Array, dtype: DType) -> Array:
    """Prepare a weight for computing: aligned, contiguous and of a dtype.

    Parameters
    ----------
    array : ndarray of any shape
        A weight may start at any byte of the file.
    dtype : dtype

    Returns
    -------
    ndarray of the same shape
        A view if the weight needs no conversion.
    """
    plain: Array = np.require(np.asarray(array), dtype, ["C", "A"])
    return plain


def new_output(shape: Sequence[int], dtype: DType, fill: object = None) -> Array:
    """Allocate an output within the memory bound.

    Parameters
    ----------
    shape : sequence of int
    dtype : dtype
    fill : scalar, optional
        Uninitialised by default.

    Raises
    ------
    LayerError
        See `require_memory`.
    """
    require_memory(shape, dtype)
    return np.empty(shape, dtype) if fill is None else np.full(shape, fill, dtype)


def axis_taps(
    size: int, count: int, kernel: int, stride: int, dilation: int, before: int
) -> Iterator[tuple[slice, slice]]:
    """Yield, for each tap that reads the image, its outputs and the inputs that they read.

    Parameters
    ----------
    size, count : int
        Input and output size of the axis.
    kernel, stride, dilation : int
    before : int
        Padding before the first position; a negative number skips positions.

    Yields
    ------
    outputs, inputs : slice
        Of equal length, not empty; in the order of the taps.
    """
    for _, outputs, inputs in _numbered_taps(size, count, kernel, stride, dilation, before):
        yield outputs, inputs


def _numbered_taps(
    size: int, count: int, kernel: int, stride: int, dilation: int, before: int
) -> Iterator[tuple[int, slice, slice]]:
    """Like `axis_taps`, with the number of each tap."""
    for tap in _find_taps(size, count, kernel, stride, dilation, before):
        offset = tap * dilation - before
        first = max(0, -(offset // stride))
        last = min(count, (size - 1 - offset) // stride + 1)
        if first < last:
            start = first * stride + offset
            stop = start + (last - first - 1) * stride + 1
            yield tap, slice(first, last), slice(start, stop, stride)


def _find_taps(
    size: int, count: int, kernel: int, stride: int, dilation: int, before: int
) -> Iterator[int]:
    """Return the taps of an axis that may read the image, and few others, in order."""

    def within(low: int, high: int) -> range:
        """Return the taps `low` to `high` positions after the start of their window."""
        return range(max(0, -(-low // dilation)), min(kernel - 1, high // dilation) + 1)

    if stride <= size:  # the distance of windows is less than the length of the image
        yield from within(before - (count - 1) * stride, before + size - 1)
        return
    # The distance of windows exceeds the length of the image: one by one, the last one first.
    extent = (kernel - 1) * dilation
    last = min(count - 1, (before + size - 1) // stride)
    first = max(0, -((extent - before) // stride))
    for output in range(last, first - 1, -1):
        begin = before - output * stride
        yield from within(begin, begin + size - 1)


@dataclass(frozen=True, slots=True)
class Windows:
    """Shape and spacing of windows; one number (or pair) per spatial axis.

    Attributes
    ----------
    kernel, stride, dilation : tuple of int
    padding : tuple of (int, int)
        Positions before and after the image.
    """

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    dilation: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]

    @property
    def rank(self) -> int:
        """Number of spatial axes."""
        return len(self.kernel)

    @property
    def tap_count(self) -> int:
        """Number of taps of a window."""
        return math.prod(self.kernel)

    @property
    def is_pointwise(self) -> bool:
        """Whether each window is one position of the image itself."""
        return self.tap_count == 1 and not any(map(any, self.padding))

    def counts(self, sizes: Sequence[int], *, ceil_mode: bool = False) -> tuple[int, ...]:
        """Number of windows along each axis.

        Parameters
        ----------
        sizes : sequence of int
            Spatial sizes of the input.
        ceil_mode : bool
            Whether a last window may extend beyond the end. It must start inside the image
            or the padding before it.

        Raises
        ------
        LayerError
            If a count is not positive; with the numbers of the formula.
        """
        return tuple(
            self._count(axis, size, ceil_mode=ceil_mode) for axis, size in enumerate(sizes)
        )

    def _count(self, axis: int, size: int, *, ceil_mode: bool) -> int:
        stride, (before, after) = self.stride[axis], self.padding[axis]
        extent = self.dilation[axis] * (self.kernel[axis] - 1) + 1
        room = size + before + after - extent
        count = room // stride + 1
        if ceil_mode:
            count = -(-room // stride) + 1
            if (count - 1) * stride >= size + before:
                count -= 1
        if count <= 0:
            raise LayerError(
                f"spatial axis {axis + 1} of {self.rank} has no room for a window: size "
                f"{size} + padding {before} + {after} is less than its extent {extent} "
                f"({self.dilation[axis]} × ({self.kernel[axis]} − 1) + 1)",
                InferStatus.kInferArraySizeMismatch,
            )
        return count

    def spread_sizes(
        self, sizes: Sequence[int], output_padding: Sequence[int]
    ) -> tuple[int, ...]:
        """Spatial sizes that all windows cover together, with one window per input position.

        Parameters
        ----------
        sizes : sequence of int
            Spatial sizes of the input.
        output_padding : sequence of int
            Positions added at the end.

        Returns
        -------
        tuple of int
            Without the padding, which is cut off. May be less than 1.
        """
        return tuple(
            (size - 1) * stride - before - after + dilation * (kernel - 1) + behind + 1
            for size, stride, (before, after), dilation, kernel, behind in zip(
                sizes, self.stride, self.padding, self.dilation, self.kernel, output_padding,
                strict=True,
            )
        )  # fmt: skip

    def axis_taps(self, axis: int, size: int, count: int) -> Iterator[tuple[slice, slice]]:
        """Taps of one axis (see the function `axis_taps`)."""
        return axis_taps(
            size,
            count,
            self.kernel[axis],
            self.stride[axis],
            self.dilation[axis],
            self.padding[axis][0],
        )

    def taps(
        self, sizes: Sequence[int], block: Sequence[slice]
    ) -> Iterator[tuple[int, tuple[slice, ...], tuple[slice, ...]]]:
        """Taps of a block of outputs that read the image, in row-major order.

        Parameters
        ----------
        sizes : sequence of int
            Spatial sizes of the input.
        block : sequence of slice
            Outputs of interest along each axis.

        Yields
        ------
        tap : int
            Number of the tap.
        outputs, inputs : tuple of slice
            Outputs counted from the start of `block`.
        """
        axes = [
            list(
                _numbered_taps(
                    sizes[axis],
                    part.stop - part.start,
                    self.kernel[axis],
                    self.stride[axis],
                    self.dilation[axis],
                    self.padding[axis][0] - part.start * self.stride[axis],
                )
            )
            for axis, part in enumerate(block)
        ]
        require_steps(math.prod(map(len, axes)), "positions of a window")
        for taps in itertools.product(*axes):
            number = 0
            for (tap, _, _), kernel in zip(taps, self.kernel, strict=True):
                number = number * kernel + tap
            yield number, tuple([t[1] for t in taps]), tuple([t[2] for t in taps])


def blocks(counts: Sequence[int], nbytes: int, limit: int) -> Iterator[tuple[slice, ...]]:
    """Split an image into boxes of consecutive positions.

    Parameters
    ----------
    counts : sequence of int
        Spatial sizes of the image.
    nbytes : int
        Bytes per position.
    limit : int
        Largest number of bytes of a box; a single position may exceed it.

    Yields
    ------
    tuple of slice
        In row-major order.
    """
    axis = 0
    while axis < len(counts) - 1 and math.prod(counts[axis + 1 :]) * nbytes > limit:
        axis += 1
    step = max(1, limit // (math.prod(counts[axis + 1 :]) * nbytes))
    inner = tuple(slice(0, count) for count in counts[axis + 1 :])
    for lead in np.ndindex(*counts[:axis]):
        outer = tuple(slice(i, i + 1) for i in lead)
        for start in range(0, counts[axis], step):
            yield (*outer, slice(start, min(start + step, counts[axis])), *inner)


def reduce_axis(
    image: Array,
    axis: int,
    count: int,
    taps: Iterator[AxisTap],
    combine: Callable[..., Array],
    initial: object,
) -> Array:
    """Reduce windows along one axis.

    Parameters
    ----------
    image : ndarray of shape (..., A, ...)
        A at `axis`.
    axis : int
    count : int
        Number of windows, B.
    taps : iterator of AxisTap
    combine : ufunc
        With an argument ``out``, e.g. ``numpy.maximum``.
    initial : scalar
        Value of a window without any tap.

    Returns
    -------
    ndarray of shape (..., B, ...)
        A new array.
    """
    shape = list(image.shape)
    shape[axis] = count
    result = new_output(shape, image.dtype, initial)
    lead = (slice(None),) * (axis % image.ndim)
    for outputs, inputs in taps:
        target = result[(*lead, outputs)]
        combine(target, image[(*lead, inputs)], out=target)
        if not isinstance(outputs, slice):  # indexing by an array copies
            result[(*lead, outputs)] = target
    return result
