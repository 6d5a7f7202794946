"""Distributions of error measures over inputs, of many rows at once, that merge exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from engine.datasets.studies import Arrays
    from engine.values import Array

__all__ = ["MEASURES", "WORST", "Distributions", "merge_distributions", "quantile"]

MEASURES: Final = ("relative", "nmse", "max_abs", "cosine")
WORST: Final = 16  # inputs of a row that are kept, those with the largest relative distance

_COUNTED: Final = 2  # of the measures, the first ones, have a histogram
_PER_OCTAVE: Final = 16
_LOWEST, _HIGHEST = -64, 16  # octaves
_BINS: Final = (_HIGHEST - _LOWEST) * _PER_OCTAVE + 2  # one below and one above all


class Distributions:
    """The distributions of the rows of a comparison.

    The histogram has 16 bins an octave, so a quantile is off by at most 2.2 %. Counts, maxima
    and histograms do not depend on the order of the inputs.

    Parameters
    ----------
    rows : int
    """

    def __init__(self, rows: int) -> None:
        self._arrays: Arrays = {
            "compared": np.zeros(rows, np.int64),
            "not_compared": np.zeros(rows, np.int64),
            "infinite": np.zeros(rows, np.int64),
            "sums": np.zeros((rows, len(MEASURES))),
            "largest": np.full((rows, len(MEASURES)), -np.inf),
            "least": np.full((rows, len(MEASURES)), np.inf),
            "histogram": np.zeros((rows, _COUNTED, _BINS), np.int64),
            "worst_values": np.full((rows, WORST), -1.0),
            "worst_inputs": np.full((rows, WORST), -1, np.int64),
        }

    def skip(self, row: int) -> None:
        """Count an input for which a row has nothing to compare."""
        self._arrays["not_compared"][row] += 1

    def add(self, row: int, index: int, numbers: tuple[float, ...]) -> None:
        """Add the measures of one input, in the order of `MEASURES`.

        Parameters
        ----------
        row : int
        index : int
            Of the input.
        numbers : tuple of float
            Those that are not finite count as infinite, and are left out of the sums.
        """
        arrays = self._arrays
        values = np.array(numbers)
        arrays["compared"][row] += 1
        arrays["infinite"][row] += not np.isfinite(values[0])
        finite = np.isfinite(values)
        arrays["sums"][row, finite] += values[finite]
        arrays["largest"][row] = np.fmax(arrays["largest"][row], values)
        arrays["least"][row] = np.fmin(arrays["least"][row], values)
        for place, value in enumerate(numbers[:_COUNTED]):
            arrays["histogram"][row, place, _bin_of(value)] += 1
        if numbers[0] > arrays["worst_values"][row, -1]:
            added = {"worst_values": values[:1], "worst_inputs": np.array([index])}
            for name, array in _worst({n: arrays[n][row] for n in added}, added).items():
                arrays[name][row] = array

    def finish(self) -> Arrays:
        """Return the arrays; the first axis of each are the rows."""
        return self._arrays


def merge_distributions(one: Arrays, other: Arrays) -> Arrays:
    """Merge the arrays of two sets of inputs."""
    merged = {
        name: one[name] + other[name]
        for name in ("compared", "not_compared", "infinite", "sums", "histogram")
    }
    merged["largest"] = np.fmax(one["largest"], other["largest"])
    merged["least"] = np.fmin(one["least"], other["least"])
    return merged | _worst(one, other)


def _worst(one: Arrays, other: Arrays) -> Arrays:
    """Return the worst inputs of both: the largest values, of equal ones the first input."""
    values, inputs = (
        np.concatenate([one[name], other[name]], axis=-1)
        for name in ("worst_values", "worst_inputs")
    )
    order = np.lexsort((inputs, -values))[..., :WORST]
    return {
        "worst_values": np.take_along_axis(values, order, -1),
        "worst_inputs": np.take_along_axis(inputs, order, -1),
    }


def _bin_of(value: float) -> int:
    if not value > 0:  # also NaN, which no measure is
        return 0
    place = np.floor((np.log2(value) - _LOWEST) * _PER_OCTAVE)
    return int(np.clip(place, -1, _BINS - 2)) + 1


def quantile(counts: Array, share: float) -> float:
    """Return the value that a share of the inputs do not exceed.

    Parameters
    ----------
    counts : ndarray of int64
        A histogram of one row and measure.
    share : float

    Returns
    -------
    float
        The middle of a bin, on the logarithmic scale; 0 below all, inf above all, NaN for no
        inputs.
    """
    total = int(counts.sum())
    if not total:
        return float("nan")
    place = int(np.searchsorted(np.cumsum(counts), max(1.0, np.ceil(share * total))))
    if place in {0, _BINS - 1}:
        return float("inf") if place else 0.0
    return float(2.0 ** (_LOWEST + (place - 0.5) / _PER_OCTAVE))
