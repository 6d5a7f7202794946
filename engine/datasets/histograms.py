"""Histograms that can be merged without an error, whatever the order.

A bin is as wide as a power of two, and its ends are multiples of its width. So two bins of one
width are exactly one of the double width, the place of a number is exact, and a histogram grows
with its range by joining its bins in pairs. The width is the least with which the range of all
numbers takes at most 2 048 bins. It depends on that range alone, not on the order in which
numbers came; and more than 1 024 bins are in use, unless the numbers themselves are coarser.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = ["BINS", "PowerHistogram"]

BINS: Final = 2048
_DIGITS: Final = 24  # bits of float32: narrower bins would only separate its own steps
_NARROWEST: Final = -120  # exponent; the inverse of a width must be a finite float32
_FARTHEST: Final = 62  # bits that an int64 can be shifted by


class PowerHistogram:
    """Counts finite numbers in bins whose width is a power of two.

    Parameters
    ----------
    bins : int

    Attributes
    ----------
    counts : ndarray of int64, shape (bins,)
    exponent : int
        Of the width of a bin.
    first : int
        The first bin begins at this multiple of the width.
    low, high : float
        The range that it covers; inf and -inf before there is one.
    """

    def __init__(self, bins: int = BINS) -> None:
        self.counts: npt.NDArray[np.int64] = np.zeros(bins, np.int64)
        self.exponent = _NARROWEST
        self.first = 0
        self.low, self.high = math.inf, -math.inf

    def cover(self, low: float, high: float) -> None:
        """Cover a range of finite numbers, joining bins where it takes more than there are."""
        if low >= self.low and high <= self.high:
            return
        self.low, self.high = min(self.low, low), max(self.high, high)
        exponent = _exponent_of(self.low, self.high, len(self.counts))
        first = _place(self.low, exponent)
        if (exponent, first) == (self.exponent, self.first):
            return
        moved = np.zeros_like(self.counts)
        used = np.flatnonzero(self.counts)
        if used.size:
            places = (used + self.first) >> min(exponent - self.exponent, _FARTHEST)
            np.add.at(moved, places - first, self.counts[used])
        self.counts, self.exponent, self.first = moved, exponent, first

    def add(self, values: Array) -> None:
        """Count all finite numbers of an array.

        Parameters
        ----------
        values : ndarray of float32 or float64
            It covers their range.
        """
        size = max(values.size, 1)
        self.add_runs(values.reshape(1, -1), np.zeros(1, np.int64), size, 1, (size, 1))

    def add_runs(
        self,
        values: Array,
        begins: npt.NDArray[np.int64],
        run: int,
        step: int,
        order: tuple[int, int],
    ) -> None:
        """Count finite numbers in runs of neighbours, which are evenly spread.

        Parameters
        ----------
        values : ndarray of float32 or float64, shape (inputs, elements)
            It covers their range.
        begins : ndarray, shape (inputs,)
            The first run of each input that counts.
        run : int
            Length of a run. What is left behind the last one counts if all runs do.
        step : int
            One run in so many counts.
        order : (int, int)
            Elements of a channel, and channels that are innermost in groups of them: runs are
            those of the channels one after the other. The size and 1 for elements that lie in
            their order.
        """
        from engine.datasets.compiled import count_runs

        size = values.shape[1]
        values = values.view()
        values.setflags(write=False)  # of one type for Numba, whatever it was
        count_runs(
            values,
            begins * run,
            size if step == 1 else size // run * run,
            run,
            run * step,
            order,
            2.0**-self.exponent,
            self.first,
            self.counts,
        )

    def merge(self, other: PowerHistogram) -> None:
        """Add the counts of another one."""
        if other.low > other.high:
            return
        self.cover(other.low, other.high)
        used = np.flatnonzero(other.counts)
        places = (used + other.first) >> min(self.exponent - other.exponent, _FARTHEST)
        merged = self.counts.copy()  # it may belong to a result that is kept
        np.add.at(merged, places - self.first, other.counts[used])
        self.counts = merged

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """Ends of the bins, of shape (bins + 1,)."""
        last = self.first + len(self.counts)
        return np.asarray(np.arange(self.first, last + 1) * 2.0**self.exponent)


def _place(value: float, exponent: int) -> int:
    return math.floor(math.ldexp(value, -exponent))


def _exponent_of(low: float, high: float, bins: int) -> int:
    """Return the least exponent with which a range takes at most so many bins."""
    exponent, largest = _NARROWEST, max(-low, high)
    if largest > 0:
        exponent = max(exponent, math.frexp(largest)[1] - _DIGITS)
    if high > low:
        spread = math.frexp(high / bins - low / bins)[1] - 2  # no range overflows so
        exponent = max(exponent, spread)
    while _place(high, exponent) - _place(low, exponent) >= bins:
        exponent += 1
    return exponent
