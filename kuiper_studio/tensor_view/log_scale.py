"""The logarithmic scale of colours: where a value lies between the ends of a range."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["from_log", "to_log"]

_LINEAR: Final = 1e-3  # up to this part of the largest absolute end a symlog scale is linear
_LEAST: Final = 1e-300  # of that part


def to_log(
    values: Array, low: float | Array, high: float | Array
) -> tuple[Array, Array, Array]:
    """Return values and ends of a range on a logarithmic scale.

    A range above 0 has a logarithmic scale. Another has a symmetric one (symlog): linear up to
    a thousandth of the largest absolute end, so that zeros and both signs have a place.

    Parameters
    ----------
    values : ndarray
        Real.
    low, high : float or ndarray
        `low` below `high`; arrays broadcast against `values`.

    Returns
    -------
    values, low, high : ndarray, floating
        Values outside the range are at its ends; NaN and infinities stay what they are.
    """
    low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
    kept = np.clip(np.asarray(values, np.float64), low, high)
    moved = _moved(kept, low, high)
    special = ~np.isfinite(values)
    moved[special] = values[special]
    return moved, _moved(low, low, high), _moved(high, low, high)


def from_log(share: float, low: float, high: float) -> float:
    """Return the value at a share of the way between the ends, the inverse of `to_log`."""
    first, last = (
        float(_moved(np.array(e), np.array(low), np.array(high))) for e in (low, high)
    )
    place = first * (1 - share) + last * share
    if low > 0:
        return min(max(math.exp(place), low), high)
    return math.copysign(math.expm1(abs(place)) * _threshold(low, high), place)


def _moved(values: Array, low: Array, high: Array) -> Array:
    is_above = low > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        above = np.log(values) if is_above.any() else values
    if is_above.all():
        return np.asarray(above)
    linear = np.maximum(np.maximum(np.abs(low), np.abs(high)) * _LINEAR, _LEAST)
    symmetric = np.copysign(np.log1p(np.abs(values) / linear), values)
    return np.asarray(np.where(is_above, above, symmetric))


def _threshold(low: float, high: float) -> float:
    return max(max(abs(low), abs(high)) * _LINEAR, _LEAST)
