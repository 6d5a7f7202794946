"""Where to clip the input of a quantised layer: KL, ACIQ, min-max, percentile.

KL and ACIQ are those of ncnn's ``tools/quantize/ncnn2table.cpp`` (0207b6b, 2026). Deviations:
the histogram is of `Magnitudes`, so a count near the edge of a bin may lie in its neighbour;
sums are in float64; and ACIQ's threshold is at most the largest value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import numpy as np

from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from engine.datasets.calibration.magnitudes import Magnitudes

__all__ = ["METHODS", "PERCENTILE", "Method", "find_threshold", "kl_threshold"]

Method: TypeAlias = Literal["kl", "aciq", "minmax", "percentile"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
PERCENTILE: Final = 99.99

_HISTOGRAM_BINS: Final = 2048
_LEVELS: Final = 128
_EPSILON: Final = 0.0001  # keeps empty bins out of the logarithm
_ACIQ_ALPHA: Final = 3.92403714  # best clip of a Gaussian for 8 bits, in standard deviations
# From the expected range of a sample of a Gaussian to its standard deviation.
_ACIQ_GAUSSIAN: Final = 0.5 * 0.35 * (1 + math.sqrt(math.pi * math.log(4)))


def find_threshold(
    magnitudes: Magnitudes, method: Method, percentile: float = PERCENTILE
) -> float:
    """Return the absolute value that int8's 127 stands for.

    Parameters
    ----------
    magnitudes : Magnitudes
    method : {"kl", "aciq", "minmax", "percentile"}
    percentile : float
        Of the absolute values, for that method.

    Returns
    -------
    float
        0 if every value is 0; else positive and at most about the largest value.

    Raises
    ------
    EngineError
        If there is no such method.
    """
    found = _METHODS.get(method)
    if found is None:
        raise EngineError(f"there is no method {method!r}; choose {', '.join(METHODS)}")
    return found(magnitudes, percentile) if magnitudes.largest else 0.0


def kl_threshold(histogram: npt.NDArray[np.float64]) -> float:
    """Return where clipping and 128 levels change a distribution the least.

    Parameters
    ----------
    histogram : ndarray of shape (N,)
        Of absolute values, without zeros; N is more than 128.

    Returns
    -------
    float
        In bins: the middle of the last bin that is not clipped, plus one.

    Notes
    -----
    For each threshold of 128 to N - 1 bins the clipped distribution P is compared with Q, which
    is P spread evenly over each of 128 equal levels. So the cumulative Q is the cumulative P,
    joined by straight lines between the edges of the levels. The smallest Kullback-Leibler
    divergence wins.
    """
    share = histogram / histogram.sum()
    below = np.concatenate([[0.0], np.cumsum(share)])
    edges = np.arange(len(below))
    fractions = np.arange(_LEVELS + 1) / _LEVELS
    best, least = _LEVELS, math.inf
    for threshold in range(_LEVELS, len(share)):
        clipped = share[:threshold] + _EPSILON
        clipped[-1] += 1.0 - below[threshold]
        levels = fractions * threshold
        spread = np.interp(edges[: threshold + 1], levels, np.interp(levels, edges, below))
        divergence = float(clipped @ np.log(clipped / (np.diff(spread) + _EPSILON)))
        if divergence < least:
            best, least = threshold, divergence
    return best + 0.5


def _kl(magnitudes: Magnitudes, _percentile: float) -> float:
    bins = kl_threshold(magnitudes.spread(_HISTOGRAM_BINS))
    return bins * magnitudes.largest / _HISTOGRAM_BINS


def _aciq(magnitudes: Magnitudes, _percentile: float) -> float:
    count = magnitudes.per_input
    if count <= 1:
        return magnitudes.largest
    deviation = magnitudes.largest * 2 * _ACIQ_GAUSSIAN / math.sqrt(2 * math.log(count))
    return min(_ACIQ_ALPHA * deviation, magnitudes.largest)


def _minmax(magnitudes: Magnitudes, _percentile: float) -> float:
    return magnitudes.largest


def _percentile(magnitudes: Magnitudes, percentile: float) -> float:
    """Return a percentile, or the largest value where almost all are 0."""
    return magnitudes.quantile(percentile / 100) or magnitudes.largest


_METHODS: Final[Mapping[str, Callable[[Magnitudes, float], float]]] = {
    "kl": _kl,
    "aciq": _aciq,
    "minmax": _minmax,
    "percentile": _percentile,
}
