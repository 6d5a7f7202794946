"""Inputs over the whole range of float32, and errors in units in the last place."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

__all__ = ["BOUNDS", "FEW", "RANGES", "largest_by_range", "pairs", "points", "units"]

# Allowed error of each element in units in the last place: the error of PyTorch's activations.
FEW: Final = 4.0
# Smaller differences do not count: libraries flush numbers below the smallest normal one,
# 1.2e-38, to 0, also in intermediate results. PyTorch's SiLU of -89 is -0 instead of -2e-37.
FLUSHED: Final = 2.0**-119
BOUNDS: Final = (
    -np.inf, -88.0, -17.0, -5.0, -1.0, -1e-4, 0.0, 1e-4, 1.0, 5.0, 17.0, 88.0, np.inf,
)  # fmt: skip
RANGES: Final = tuple(pairwise(BOUNDS))
# Numbers where formulas change, cancel or overflow.
_SPECIAL: Final = (0, 0.5, 1, 2, 3, 6, 9, 11, 17.3, 17.7, 20, 88.4, 89, 104)
_WINDOW: Final = 1.5
_EXPONENTS: Final = 255  # exponents of finite numbers; the first is that of subnormal ones


def points(count: int, seed: int = 0) -> np.ndarray:
    """Draw float32 numbers: half of any size, half near special points; no infinities."""
    rng = np.random.default_rng(seed)
    each = count // (4 * _EXPONENTS) + 1
    exponents = np.arange(_EXPONENTS, dtype=np.uint32)[:, None] << 23
    any_size = (exponents | rng.integers(0, 1 << 23, (_EXPONENTS, each), np.uint32)).ravel()
    near = count // (4 * len(_SPECIAL)) + 1
    windows = [
        place + rng.uniform(-_WINDOW, _WINDOW, near).astype(np.float32) for place in _SPECIAL
    ]
    found = np.concatenate([any_size.view(np.float32), *windows])
    zeros = np.zeros(8, np.float32)
    return np.concatenate([found, -found, zeros, -zeros]).astype(np.float32)


def pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw two such arrays, shuffled."""
    first, second = points(count), points(count, seed=1)
    return first, np.random.default_rng(2).permutation(second)


def units(found: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return errors of float32 results in units in the last place of the exact float64 results.

    Infinite if only one of both is NaN, or if one is infinite and the other is not next to it.
    """
    with np.errstate(all="ignore"):
        rounded = right.astype(np.float32)
        distance = np.abs(found.astype(np.float64) - right)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        # The spacing above the largest number is infinite; use the spacing below it.
        error = distance / np.where(np.isfinite(unit), unit, 2.0**104)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    error[same & ~(error < 1)] = 0.0
    error[distance <= FLUSHED] = 0.0
    error[np.isnan(error)] = np.inf
    return error


def largest_by_range(inputs: np.ndarray, error: np.ndarray) -> list[float]:
    """Return the largest error in each of `RANGES` of the input; 0 for an empty range."""
    return [
        float(error[(inputs >= low) & (inputs < high)].max(initial=0.0)) for low, high in RANGES
    ]
