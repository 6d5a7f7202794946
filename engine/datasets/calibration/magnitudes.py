"""A histogram of absolute values that grows with them and merges exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = ["BINS", "Magnitudes"]

BINS: Final = 1 << 14
_LOWEST: Final = -100  # exponent; what is smaller falls into the first bin


def _no_counts() -> npt.NDArray[np.int64]:
    return np.zeros(BINS, np.int64)


@dataclass(slots=True, eq=False)
class Magnitudes:
    """The absolute values that a layer's input has over many inputs of the model.

    `BINS` equal bins reach from 0 to a power of two. When a larger value comes, neighbours are
    joined and the reach doubles, so the counts are those of a histogram that had the last reach
    from the start: they depend neither on the order of the inputs nor on that of merging. At
    least half of the bins lie below the largest value. One pass over the data is enough.

    Attributes
    ----------
    counts : ndarray of int64 of shape (BINS,)
        Of finite values other than 0.
    exponent : int
        The bins end at ``2 ** exponent``.
    largest : float
        Largest finite absolute value.
    zeros, nonfinite : int
        Numbers of zeros, and of NaN and infinities.
    per_input : int
        Largest number of elements that one input gave.
    """

    counts: npt.NDArray[np.int64] = field(default_factory=_no_counts, repr=False)
    exponent: int = _LOWEST
    largest: float = 0.0
    zeros: int = 0
    nonfinite: int = 0
    per_input: int = 0

    @property
    def count(self) -> int:
        """Number of finite values."""
        return self.zeros + int(self.counts.sum())

    def add(self, array: Array) -> None:
        """Count the values of one input.

        Parameters
        ----------
        array : ndarray
            Of real numbers.
        """
        self.per_input = max(self.per_input, array.size)
        sizes = np.abs(array.astype(np.float32, copy=False).reshape(-1))
        finite = np.isfinite(sizes)
        if not finite.all():
            self.nonfinite += int(sizes.size - np.count_nonzero(finite))
            sizes = sizes[finite]
        largest = float(sizes.max(initial=0.0))
        self.largest = max(self.largest, largest)
        self._reach(max(math.frexp(largest)[1], _LOWEST))
        # Exact, because the factor is a power of two.
        places = (sizes * np.float32(2.0 ** (BINS.bit_length() - 1 - self.exponent))).astype(
            np.intp
        )
        found = np.bincount(places, minlength=BINS)
        zeros = int(sizes.size - np.count_nonzero(sizes))
        found[0] -= zeros
        self.zeros += zeros
        self.counts += found

    def merge(self, other: Magnitudes) -> None:
        """Add what another has counted; it stays as it is."""
        self._reach(other.exponent)
        self.counts += _joined(other.counts, self.exponent - other.exponent)
        self.largest = max(self.largest, other.largest)
        self.zeros += other.zeros
        self.nonfinite += other.nonfinite
        self.per_input = max(self.per_input, other.per_input)

    def histogram(self, bins: int) -> npt.NDArray[np.float64]:
        """Return counts in equal bins from 0 to the largest value, without zeros.

        The bins need not begin where the stored ones do: the values of one are taken as spread
        evenly over it.
        """
        edges = np.linspace(0.0, self._in_bins(self.largest), bins + 1)
        below = np.interp(edges, np.arange(BINS + 1), self._cumulative())
        below[-1] = self.counts.sum()
        return np.diff(below)

    def quantile(self, share: float) -> float:
        """Return the value that a share of the finite values, zeros included, do not exceed.

        Within one bin: 1 / 8192 of the largest value.
        """
        wanted = share * self.count - self.zeros
        place = int(np.searchsorted(self._cumulative(), wanted))
        return min(self.largest, math.ldexp(place / BINS, self.exponent)) if wanted > 0 else 0.0

    def _cumulative(self) -> npt.NDArray[np.float64]:
        return np.concatenate([[0.0], np.cumsum(self.counts)])

    def _in_bins(self, value: float) -> float:
        return math.ldexp(value, -self.exponent) * BINS

    def _reach(self, exponent: int) -> None:
        if exponent > self.exponent:
            self.counts = _joined(self.counts, exponent - self.exponent)
            self.exponent = exponent


def _joined(counts: npt.NDArray[np.int64], doublings: int) -> npt.NDArray[np.int64]:
    """Return the counts in bins that are as many times twice as wide."""
    joined = np.zeros_like(counts)
    width = min(1 << min(doublings, BINS.bit_length()), BINS)
    sums = counts.reshape(-1, width).sum(1)
    joined[: sums.size] = sums
    return joined
