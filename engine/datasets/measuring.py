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

__all__ = ["Measured", "Measurer", "as_real"]

_SHORT: Final = 16  # elements of rows for which a loop is not worth its start
_HELD: Final = (1e-140, 1e140)  # float64 holds squares of numbers between these, and their sum
# Too much has cancelled if less than one in so many is left of the squares. Of these a sum has
# lost less than 10⁻¹⁴, and so the rest less than one in five millions.
_LEFT: Final = 1 << 24
# The integers that have the bits of a float, and the largest of them.
_BITS: Final = {
    np.dtype(real): (whole, whole(np.iinfo(whole).max))
    for real, whole in ((np.float32, np.int32), (np.float64, np.int64))
}


@dataclass(slots=True)
class Measured:
    """What channels of operands hold, for each input by itself.

    Attributes
    ----------
    size : ndarray of int64, shape (channels,)
        Elements of a channel.
    low, high, mean, squares : ndarray of float64, shape (inputs, channels)
        Of the finite elements; inf, -inf, 0 and 0 where there are none. `squares` is the sum of
        the squared distances from the mean.
    finite, zeros, nan, pinf, ninf : ndarray of int64, shape (inputs, channels)
        Numbers of such elements.
    is_finite : bool
        Whether all elements are finite.
    """

    size: npt.NDArray[np.int64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]
    mean: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]
    finite: npt.NDArray[np.int64]
    zeros: npt.NDArray[np.int64]
    nan: npt.NDArray[np.int64]
    pinf: npt.NDArray[np.int64]
    ninf: npt.NDArray[np.int64]
    is_finite: bool = True


def as_real(array: Array) -> Array:
    """Convert numbers to float32 or float64, exactly; complex ones by their magnitude."""
    if array.dtype.kind == "c":
        array = np.abs(array)
    if array.dtype in {np.dtype(np.float32), np.dtype(np.float64)}:
        return array
    small = array.dtype.itemsize <= 2
    return array.astype(np.float32 if small else np.float64)


class _Sums(NamedTuple):
    """Least, largest, sum, sum of squares and zeros of channels, by inputs."""

    low: Array
    high: Array
    total: Array
    squares: Array
    zeros: Array


class Measurer:
    """Measures every channel of every input.

    Parameters
    ----------
    axes : sequence of int
        Axis of the channels of each operand, in arrays of shape (inputs, …); 0 where there are
        none, and all elements of an input count as one channel.
    channels : sequence of int
        Their numbers.
    """

    def __init__(self, axes: Sequence[int], channels: Sequence[int]) -> None:
        self._axes, self._channels = axes, channels
        self._begins: list[int] = np.cumsum([0, *channels]).tolist()

    def measure(
        self, read: Callable[[int], Array], seen: Callable[[int, Array], None]
    ) -> Measured:
        """Measure the next inputs.

        Parameters
        ----------
        read : callable
            Returns the array of an operand, of float32 or float64. It may be called again
            for the same one.
        seen : callable
            Called with each operand and its array, which lies in the cache then.

        Returns
        -------
        Measured
            The channels of all operands, one operand after the other.
        """
        sums: _Sums | None = None
        sizes: list[int] = []
        for place, axis in enumerate(self._axes):
            array = read(place)
            layout = _Layout(array, axis)
            if sums is None:
                shape = len(array), self._begins[-1]
                low, high, total, squares = (np.empty(shape) for _ in range(4))
                sums = _Sums(low, high, total, squares, np.empty(shape, np.int64))
            layout.sum(self._begins[place], sums)
            sizes.append(layout.size)
            seen(place, array)
        assert sums is not None  # noqa: S101 - there are operands
        return self._measured(sums, np.repeat(sizes, self._channels), read)

    def _measured(
        self, sums: _Sums, size: npt.NDArray[np.int64], read: Callable[[int], Array]
    ) -> Measured:
        low, high, total, squares, zeros = sums
        with np.errstate(all="ignore"):  # what is not finite, or overflows, is measured again
            mean = total / np.maximum(size, 1)
            apart = np.maximum(squares - total * mean, 0.0)
            mean = np.minimum(np.maximum(mean, low), high)
            biggest = np.maximum(-low, high)
            known = (biggest > _HELD[0]) & (biggest < _HELD[1]) & (apart * _LEFT >= squares)
            known |= biggest == 0  # all are zeros
        known |= size == 0
        none = np.zeros(low.shape, np.int64)
        measured = Measured(
            size, low, high, mean, apart, none + size, zeros, none, none.copy(), none.copy()
        )
        if not size.all():
            mean[:, size == 0] = 0.0
        if not known.all():
            inputs, columns = np.nonzero(~known)
            self._measure_again(measured, inputs, columns, read)
        return measured

    def _measure_again(
        self, measured: Measured, inputs: Array, columns: Array, read: Callable[[int], Array]
    ) -> None:
        """Measure some channels again, whose sums could not be used."""
        from engine.datasets.compiled import measure_any

        owners = np.searchsorted(self._begins, columns, side="right") - 1
        for place in np.unique(owners).tolist():
            layout = _Layout(read(place), self._axes[place])
            own = owners == place
            at = inputs[own], columns[own]
            facts, counts = np.empty((4, len(at[0]))), np.empty((5, len(at[0])), np.int64)
            measure_any(layout.by_channels, at[0], at[1] - self._begins[place], facts, counts)
            measured.low[at], measured.high[at] = facts[:2]
            measured.mean[at], measured.squares[at] = facts[2:]
            measured.finite[at], measured.zeros[at] = counts[:2]
            measured.nan[at], measured.pinf[at], measured.ninf[at] = counts[2:]
            measured.is_finite &= bool((counts[0] == layout.size).all())


class _Layout:
    """An operand by inputs, channels and elements, in the order in which it lies in memory.

    Parameters
    ----------
    array : ndarray of shape (inputs, …)
    axis : int
        Of the channels, 0 for none.

    Attributes
    ----------
    size : int
        Of a channel.
    """

    def __init__(self, array: Array, axis: int) -> None:
        inputs, channels = len(array), array.shape[axis] if axis else 1
        self.size = array[0].size // max(channels, 1)
        is_last = axis == array.ndim - 1 and array.ndim > 2
        if axis > 1 and not is_last:
            array = np.moveaxis(array, axis, 1)
        shape = (inputs, self.size, channels) if is_last else (inputs, channels, self.size)
        array = np.ascontiguousarray(array).reshape(shape)
        if shape[2] <= _SHORT and shape[1] > shape[2]:
            array, is_last = np.ascontiguousarray(array.swapaxes(1, 2)), not is_last
        array.setflags(write=False)  # of one type for Numba, whatever it was
        self._array, self._is_last = array, is_last

    @property
    def by_channels(self) -> Array:
        """The elements in the shape (inputs, channels, size)."""
        return self._array.swapaxes(1, 2) if self._is_last else self._array

    def sum(self, first: int, to: _Sums) -> None:
        """Sum the elements of each channel.

        Parameters
        ----------
        first : int
            Place of the first channel among those of all operands.
        to : _Sums
        """
        from engine.datasets.compiled import sum_columns, sum_rows

        if not self.size:
            channels = slice(first, first + self.by_channels.shape[1])
            for target, value in zip(to, (np.inf, -np.inf, 0.0, 0.0, 0), strict=True):
                target[:, channels] = value
            return
        whole, most = _BITS[self._array.dtype]
        sum_all = sum_columns if self._is_last else sum_rows
        sum_all(self._array, self._array.view(whole), most, first, *to)
