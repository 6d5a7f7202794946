"""Measures the channels of operands, input after input.

One pass over an operand, while it lies in the processor's cache, finds ranges, sums and sums of
squares, in float64. Channels are measured again where that is not enough: where little would be
left of the squares after the mean is taken off, where elements are not finite, and where
float64 cannot hold their squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from engine.values import Array

__all__ = ["Measured", "Measurer", "as_real"]

_SHORT: Final = 16  # elements of rows for which a loop is not worth its start
_NOWHERE: Final = (np.nan, np.nan)  # no element is at or beyond these
# The integers that have the bits of a float, and the largest of them.
_BITS: Final = {
    np.dtype(real): (whole, whole(np.iinfo(whole).max))
    for real, whole in ((np.float32, np.int32), (np.float64, np.int64))
}


@dataclass(frozen=True, slots=True)
class Measured:
    """What channels of operands hold, for each input by itself.

    Attributes
    ----------
    size : ndarray of int64, shape (channels,)
        Elements of a channel.
    facts : ndarray of float64, shape (4, inputs, channels)
        Least, largest and mean of the finite elements, and the sum of the squared distances
        from the mean; inf, -inf, 0 and 0 where there are none.
    counts : ndarray of int64, shape (6, inputs, channels)
        Numbers of finite elements, zeros, NaN, infinities, negative infinities and saturated
        elements.
    """

    size: npt.NDArray[np.int64]
    facts: npt.NDArray[np.float64]
    counts: npt.NDArray[np.int64]


def as_real(array: Array) -> Array:
    """Convert numbers to float32 or float64, exactly; complex ones by their magnitude."""
    if array.dtype.kind == "c":
        array = np.abs(array)
    if array.dtype in _BITS:
        return array
    small = array.dtype.itemsize <= 2
    return array.astype(np.float32 if small else np.float64)


class Measurer:
    """Measures every channel of every input.

    Parameters
    ----------
    axes : sequence of int
        Axis of the channels of each operand, in arrays of shape (inputs, …); 0 where there are
        none, and all elements of an input count as one channel.
    channels : sequence of int
        Their numbers.
    ends : sequence of (float, float) or None
        Elements of an operand are saturated at most at the first, or at least at the second.
    """

    def __init__(
        self,
        axes: Sequence[int],
        channels: Sequence[int],
        ends: Sequence[tuple[float, float] | None],
    ) -> None:
        self._axes, self._channels, self._ends = axes, channels, ends
        self._begins: list[int] = np.cumsum([0, *channels]).tolist()

    def measure(
        self,
        inputs: int,
        read: Callable[[int], Array],
        seen: Callable[[int, Array, float, float], None],
    ) -> Measured:
        """Measure the next inputs.

        Parameters
        ----------
        inputs : int
            Their number.
        read : callable
            Returns the array of an operand, of float32 or float64.
        seen : callable
            Called with each operand, its array, which lies in the cache then, and its least and
            largest finite element; inf and -inf if there are none.

        Returns
        -------
        Measured
            The channels of all operands, one operand after the other.
        """
        facts = np.empty((4, inputs, self._begins[-1]))
        counts = np.empty((6, inputs, self._begins[-1]), np.int64)
        sizes: list[int] = []
        for place, axis in enumerate(self._axes):
            array = read(place)
            channels = array.shape[axis] if axis else 1
            sizes.append(array[0].size // max(channels, 1))
            if sizes[-1]:
                ends, first = self._ends[place] or _NOWHERE, self._begins[place]
                low, high = _measure(array, axis, ends, first, facts, counts)
            else:
                low, high = np.inf, -np.inf
                at = slice(*self._begins[place : place + 2])
                facts[:2, :, at] = np.array([low, high])[:, np.newaxis, np.newaxis]
                facts[2:, :, at] = counts[:, :, at] = 0
            seen(place, array, low, high)
        return Measured(np.repeat(sizes, self._channels), facts, counts)


def _measure(
    array: Array,
    axis: int,
    ends: tuple[float, float],
    first: int,
    facts: Array,
    counts: Array,
) -> tuple[float, float]:
    """Measure the channels of one operand, in the order in which it lies in memory."""
    from engine.datasets.compiled import measure_columns, measure_rows

    inputs, channels = len(array), array.shape[axis] if axis else 1
    is_last = axis == array.ndim - 1 and array.ndim > 2
    if axis > 1 and not is_last:
        array = np.moveaxis(array, axis, 1)
    shape = (inputs, -1, channels) if is_last else (inputs, channels, -1)
    array = np.ascontiguousarray(array).reshape(shape)
    if array.shape[2] <= _SHORT and array.shape[1] > array.shape[2]:
        array, is_last = np.ascontiguousarray(array.swapaxes(1, 2)), not is_last
    array.setflags(write=False)  # of one type for Numba, whatever it was
    whole, most = _BITS[array.dtype]
    measure = measure_columns if is_last else measure_rows
    real = array.dtype.type
    return measure(
        array, array.view(whole), most, (real(ends[0]), real(ends[1])), first, facts, counts
    )
