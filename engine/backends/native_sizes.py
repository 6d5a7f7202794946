"""Limits for libraries: sizes that they count in 32 bits, and scratch memory.

Libraries check few of their arguments. ncnn computes the sides of a padded image and the
offsets of a kernel's taps in 32 bits. It pads a copy, and after an overflow it writes beyond
that copy. ONNX Runtime divides by a square that may be zero. So every lowering checks sizes
here first. NumPy, which does not pad and counts in 64 bits, computes the rest.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from engine.backends.lowering import LoweringError
from engine.memory_bound import current_room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.layers.windows import Windows

__all__ = ["require_elements", "require_scratch", "require_spread", "require_windows"]

_LARGEST_NUMBER: Final = 1 << 15  # largest kernel, stride, dilation or padding
_MOST_ELEMENTS: Final = 1 << 29  # largest operand: 2 GiB of float32
_MOST_IN_A_ROW: Final = 1 << 24
# Largest number of elements of a plane, and of the rows between windows or taps; libraries
# process up to 16 channels together.
_MOST_OF_A_PLANE: Final = 1 << 26
# Largest scratch memory in bytes, and largest ratio of a padded image or gathered windows to
# all operands.
_MOST_SCRATCH: Final = 1 << 30
_SMALL: Final = 1 << 20  # number of elements that is always allowed
_MOST_PADDED: Final = 4
_MOST_GATHERED: Final = 128
_MOST_LOOKED_AT: Final = (
    1 << 32
)  # elements that poolings visit; the reference computes axis by axis
_ITEM: Final = 4  # bytes


def require_elements(*shapes: Sequence[int]) -> None:
    """Check the sizes of operands and results.

    Raises
    ------
    LoweringError
        If one has too many elements.
    """
    if any(math.prod(shape) > _MOST_ELEMENTS for shape in shapes):
        raise LoweringError("too many elements")


def require_scratch(elements: int) -> None:
    """Check a library's scratch memory, as a number of float32.

    Raises
    ------
    LoweringError
        If it is too much, or more than is left.
    """
    if elements * _ITEM > min(_MOST_SCRATCH, current_room().left):
        raise LoweringError("too much scratch memory")


def require_windows(
    windows: Windows, shape: Sequence[int], channels: int, *, gathered: int = 0
) -> None:
    """Check windows that slide over images.

    Parameters
    ----------
    windows : Windows
    shape : sequence of int
        Of the images, (N, C, H...).
    channels : int
        Of the result.
    gathered : int, optional
        Channels whose windows are gathered for a matrix product; 0 for a pooling, which reads
        each element of each window.

    Raises
    ------
    LoweringError
        If a library should not compute it.
    LayerError
        If no window fits.
    """
    samples, own, *sizes = shape
    counts = windows.counts(sizes)
    padded = _pad_sizes(windows, sizes)
    result = samples * channels * math.prod(counts)
    _require_numbers(windows)
    _require_image(windows, padded)
    require_elements(shape, (result,))
    around = math.prod(shape) + result
    _require_few(samples * own * math.prod(padded), _MOST_PADDED, around)
    if gathered:
        columns = gathered * windows.tap_count * math.prod(counts)
        _require_few(columns, _MOST_GATHERED, around)
        require_scratch(columns)
    elif result * windows.tap_count > _MOST_LOOKED_AT:
        raise LoweringError("windows of too many elements")


def require_spread(
    windows: Windows, shape: Sequence[int], channels: int, output_padding: Sequence[int] = ()
) -> None:
    """Check the windows of a transposed convolution.

    Parameters
    ----------
    windows : Windows
        The padding is removed from the result.
    shape : sequence of int
        Of the images, (N, C, H...).
    channels : int
        Of the result.
    output_padding : sequence of int, optional

    Raises
    ------
    LoweringError
        If a library should not compute it.
    """
    samples, _, *sizes = shape
    given = windows.spread_sizes(sizes, output_padding or (0,) * windows.rank)
    if min(given) < 1:
        raise LoweringError("an empty result")
    whole = _pad_sizes(windows, given)
    _require_numbers(windows)
    _require_image(windows, whole)
    result = samples * channels * math.prod(given)
    require_elements(shape, (result,))
    around = math.prod(shape) + result
    _require_few(samples * channels * math.prod(whole), _MOST_PADDED, around)
    columns = channels * windows.tap_count * math.prod(sizes)
    _require_few(columns, _MOST_GATHERED, around)
    require_scratch(columns)


def _pad_sizes(windows: Windows, sizes: Sequence[int]) -> list[int]:
    return [
        size + before + after
        for size, (before, after) in zip(sizes, windows.padding, strict=True)
    ]


def _require_numbers(windows: Windows) -> None:
    borders = (number for pair in windows.padding for number in pair)
    numbers = (*windows.kernel, *windows.stride, *windows.dilation, *borders)
    if max(numbers) > _LARGEST_NUMBER or min(numbers) < 0:
        raise LoweringError("a number beyond the limits")


def _require_image(windows: Windows, sides: Sequence[int]) -> None:
    if max(sides) > _MOST_IN_A_ROW or math.prod(sides) > _MOST_OF_A_PLANE:
        raise LoweringError("too large an image")
    if windows.rank > 1:
        steps = max(*windows.stride[:-1], *windows.dilation[:-1])
        if math.prod(sides[1:]) * steps > _MOST_OF_A_PLANE:
            raise LoweringError("too large an image for these strides")


def _require_few(elements: int, times: int, around: int) -> None:
    if elements > max(_SMALL, times * around):
        raise LoweringError("much more scratch memory than operands and results")
