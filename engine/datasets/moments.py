"""Count, mean, squared distances from the mean, and range of numbers, merged without loss.

Sets are merged in float64 by the formulas of Chan, Golub and LeVeque.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.datasets.studies import Arrays

__all__ = ["Moments"]


@dataclass(slots=True)
class Moments:
    """Describes N sets of finite numbers, by arrays of shape (N,).

    Attributes
    ----------
    finite : ndarray of int64
        Number of numbers.
    mean, squares : ndarray of float64
        0 for no numbers. `squares` is the sum of the squared distances from the mean.
    low, high : ndarray of float64
        inf and -inf for no numbers.
    """

    finite: npt.NDArray[np.int64]
    mean: npt.NDArray[np.float64]
    squares: npt.NDArray[np.float64]
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]

    @classmethod
    def none(cls, count: int) -> Moments:
        """Describe sets without numbers."""
        return cls(
            np.zeros(count, np.int64),
            np.zeros(count),
            np.zeros(count),
            np.full(count, np.inf),
            np.full(count, -np.inf),
        )

    @classmethod
    def from_arrays(cls, arrays: Arrays, prefix: str) -> Moments:
        """Return copies of what `to_arrays` made."""
        return cls(**{name: arrays[f"{prefix}_{name}"].copy() for name in cls.__slots__})

    def to_arrays(self, prefix: str) -> Arrays:
        """Return everything by name."""
        return {f"{prefix}_{name}": getattr(self, name) for name in self.__slots__}

    def merge(self, other: Moments) -> None:
        """Add the numbers of other sets, each to the one at its place."""
        count = self.finite + other.finite
        share = other.finite / np.maximum(count, 1)
        apart = other.mean - self.mean
        # In this order 0 numbers weigh nothing, even where a square would overflow.
        self.squares += other.squares + apart * (self.finite * share) * apart
        self.mean += apart * share
        self.finite = count
        np.minimum(self.low, other.low, out=self.low)
        np.maximum(self.high, other.high, out=self.high)
