"""Counts of absolute values, which grow with them and merge exactly."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.datasets.histograms import PowerHistogram

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from engine.values import Array

__all__ = ["BINS", "Magnitudes"]

BINS: Final = 1 << 14


class Magnitudes:
    """The absolute values that a layer's input has over many inputs of the model.

    One pass over the data is enough: see `PowerHistogram`, whose bins do not depend on the
    order of the inputs nor on that of merging. There are eight times as many as thresholds are
    searched in, so that those can be spread over the range that the values have in the end.

    Attributes
    ----------
    histogram : PowerHistogram
        Of finite values other than 0, from 0 on.
    zeros, nonfinite : int
        Numbers of zeros, and of NaN and infinities.
    per_input : int
        Largest number of elements that one input gave.
    """

    def __init__(self) -> None:
        self.histogram = PowerHistogram(BINS)
        self.zeros = self.nonfinite = self.per_input = 0

    @property
    def largest(self) -> float:
        """Largest finite absolute value."""
        return max(self.histogram.high, 0.0)

    @property
    def count(self) -> int:
        """Number of finite values."""
        return self.zeros + int(self.histogram.counts.sum())

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
        self.histogram.cover(0.0, float(sizes.max(initial=0.0)))
        self.histogram.add(sizes)
        zeros = int(sizes.size - np.count_nonzero(sizes))
        self.histogram.counts[0] -= zeros
        self.zeros += zeros

    def merge(self, other: Magnitudes) -> None:
        """Add what another has counted; it stays as it is."""
        self.histogram.merge(other.histogram)
        self.zeros += other.zeros
        self.nonfinite += other.nonfinite
        self.per_input = max(self.per_input, other.per_input)

    def spread(self, bins: int) -> npt.NDArray[np.float64]:
        """Return counts in equal bins from 0 to the largest value, without zeros.

        These bins need not begin where the stored ones do: the values of one are taken as
        spread evenly over it.
        """
        last = math.ldexp(self.largest, -self.histogram.exponent)
        below = np.interp(np.linspace(0.0, last, bins + 1), np.arange(BINS + 1), self._below())
        below[-1] = self.histogram.counts.sum()
        return np.diff(below)

    def quantile(self, share: float) -> float:
        """Return the value that a share of the finite values, zeros included, do not exceed.

        Within one bin, which is at most 1 / 8192 of the largest value.
        """
        wanted = share * self.count - self.zeros
        if wanted <= 0:
            return 0.0
        place = int(np.searchsorted(self._below(), wanted))
        return min(self.largest, math.ldexp(place, self.histogram.exponent))

    def to_arrays(self) -> dict[str, Array]:
        """Return everything as arrays."""
        scalars = (self.histogram.exponent, self.zeros, self.nonfinite, self.per_input)
        return {
            "counts": self.histogram.counts,
            "largest": np.array(self.largest),
            "scalars": np.array(scalars, np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Array]) -> Magnitudes:
        """Return what `to_arrays` was called on."""
        made = cls()
        made.histogram.counts = arrays["counts"].copy()
        made.histogram.low, made.histogram.high = 0.0, float(arrays["largest"])
        exponent, made.zeros, made.nonfinite, made.per_input = map(int, arrays["scalars"])
        made.histogram.exponent = exponent
        return made

    def _below(self) -> npt.NDArray[np.float64]:
        """Return how many values lie below the end of each bin."""
        return np.concatenate([[0.0], np.cumsum(self.histogram.counts)])
