"""Inputs over the whole range of float32, and errors in units in the last place."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

__all__ = ["BOUNDS", "FEW", "RANGES", "largest_by_range", "pairs", "points", "units"]

# What a library may be off, element by element, in units in the last place: what PyTorch's own
# activations are off.
FEW: Final = 4.0
# Differences up to here are none: libraries flush what is below the smallest normal number,
# 1.2e-38, to 0, also on the way to a result that is a hundred times as large. PyTorch's SiLU
# of -89 is -0, and should be -2e-37.
FLUSHED: Final = 2.0**-119
BOUNDS: Final = (
    -np.inf, -88.0, -17.0, -5.0, -1.0, -1e-4, 0.0, 1e-4, 1.0, 5.0, 17.0, 88.0, np.inf,
)  # fmt: skip
RANGES: Final = tuple(pairwise(BOUNDS))
# Where formulas change, cancel or come to an end.
_SPECIAL: Final = (0, 0.5, 1, 2, 3, 6, 9, 11, 17.3, 17.7, 20, 88.4, 89, 104)
_WINDOW: Final = 1.5
_EXPONENTS: Final = 255  # those of numbers, the first of what is below the smallest normal one


def points(count: int, seed: int = 0) -> np.ndarray:
    """Numbers of float32: half of any size, half near special places; zeros, no infinities."""
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
    """Two such arrays, in no order."""
    first, second = points(count), points(count, seed=1)
    return first, np.random.default_rng(2).permutation(second)


def units(found: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Errors of float32 results in units in the last place of what is right, in float64.

    Infinite where one is NaN and the other is not, or where an infinity is a number that is
    not next to it.
    """
    with np.errstate(all="ignore"):
        rounded = right.astype(np.float32)
        distance = np.abs(found.astype(np.float64) - right)
        unit = np.spacing(np.abs(rounded)).astype(np.float64)
        # The largest numbers are followed by infinity, whose neighbours are as far apart.
        error = distance / np.where(np.isfinite(unit), unit, 2.0**104)
    same = (found == rounded) | (np.isnan(found) & np.isnan(rounded))
    error[same & ~(error < 1)] = 0.0
    error[distance <= FLUSHED] = 0.0
    error[np.isnan(error)] = np.inf
    return error


def largest_by_range(inputs: np.ndarray, error: np.ndarray) -> list[float]:
    """Largest error in each of `RANGES` of the input; 0 where there is none."""
    return [
        float(error[(inputs >= low) & (inputs < high)].max(initial=0.0)) for low, high in RANGES
    ]
