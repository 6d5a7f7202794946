"""Measures the channels of operands, input after input.

One pass over an operand, while it lies in the processor's cache, finds ranges, sums and sums of
squares, in float64. Channels are measured again where that is not enough: where little would be
left of the squares after the mean is taken off, where elements are not finite, and where
float64 cannot hold their squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from engine.values import Array

__all__ = ["Elements", "Measured", "Measurer", "as_real"]

_SHORT: Final = 16  # elements of rows for which a loop is not worth its start
_NOWHERE: Final = (np.nan, np.nan)  # no element is at or beyond these
# The integers that have the bits of a float, and the largest of them.
_BITS: Final = {
    np.dtype(real): (whole, whole(np.iinfo(whole).max))
    for real, whole in ((np.float32, np.int32), (np.float64, np.int64))
}


class Elements(NamedTuple):
    """What an operand holds, for each input of a batch.

    Attributes
    ----------
    array : ndarray of float32 or float64
        The first axis are the inputs.
    blocked : bool
        Whether it has the shape (inputs, groups, pixels, b) and is C-contiguous: groups of b
        channels, which are the axis behind the inputs otherwise.
    """

    array: Array
    blocked: bool = False

    @property
    def pixels(self) -> int:
        """Elements of a channel that is blocked; otherwise elements of an input."""
        return int(self.array.shape[2] if self.blocked else self.array[0].size)

    @property
    def width(self) -> int:
        """Channels that are innermost where they are blocked; otherwise 1."""
        return int(self.array.shape[3]) if self.blocked else 1


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
        Numbers of finite elements, zeros, NaN, positive and negative infinities and saturated
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
        read: Callable[[int], Elements],
        seen: Callable[[int, Elements, float, float], None],
    ) -> Measured:
        """Measure the next inputs.

        Parameters
        ----------
        inputs : int
            Their number.
        read : callable
            Returns the elements of an operand. Only channels of the first axis may be blocked.
        seen : callable
            Called with each operand, its elements, which lie in the cache then, and the least
            and the largest finite one; inf and -inf if there are none.

        Returns
        -------
        Measured
            The channels of all operands, one operand after the other.
        """
        facts = np.empty((4, inputs, self._begins[-1]))
        counts = np.empty((6, inputs, self._begins[-1]), np.int64)
        sizes: list[int] = []
        for place, axis in enumerate(self._axes):
            elements = read(place)
            sizes.append(elements.array[0].size // max(self._channels[place], 1))
            if sizes[-1]:
                ends, first = self._ends[place] or _NOWHERE, self._begins[place]
                low, high = _measure(elements, axis, ends, first, facts, counts)
            else:
                low, high = np.inf, -np.inf
                at = slice(*self._begins[place : place + 2])
                facts[:2, :, at] = np.array([low, high])[:, np.newaxis, np.newaxis]
                facts[2:, :, at] = counts[:, :, at] = 0
            seen(place, elements, low, high)
        return Measured(np.repeat(sizes, self._channels), facts, counts)


def _measure(
    elements: Elements,
    axis: int,
    ends: tuple[float, float],
    first: int,
    facts: Array,
    counts: Array,
) -> tuple[float, float]:
    """Measure the channels of one operand, in the order in which it lies in memory."""
    from engine.datasets.compiled import measure_columns, measure_rows

    if elements.blocked:
        array, innermost = elements.array.view(), True
    else:
        array, innermost = _arranged(elements.array, axis)
    array.setflags(write=False)  # of one type for Numba, whatever it was
    whole, most = _BITS[array.dtype]
    measure = measure_columns if innermost else measure_rows
    real = array.dtype.type
    return measure(
        array, array.view(whole), most, (real(ends[0]), real(ends[1])), first, facts, counts
    )


def _arranged(array: Array, axis: int) -> tuple[Array, bool]:
    """Return (inputs, channels, size); or (inputs, 1, size, channels), and true."""
    inputs, channels = len(array), array.shape[axis] if axis else 1
    innermost = axis == array.ndim - 1 and array.ndim > 2
    if axis > 1 and not innermost:
        array = np.moveaxis(array, axis, 1)
    shape = (inputs, -1, channels) if innermost else (inputs, channels, -1)
    array = np.ascontiguousarray(array).reshape(shape)
    if array.shape[2] <= _SHORT and array.shape[1] > array.shape[2]:
        array, innermost = np.ascontiguousarray(array.swapaxes(1, 2)), not innermost
    return (array[:, np.newaxis] if innermost else array), innermost
