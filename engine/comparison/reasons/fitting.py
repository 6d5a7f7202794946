"""Fits numbers to data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.values import Array

__all__ = ["fit_number", "least_squares", "plain_numbers"]

_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_STEPS: Final = 28  # steps of the section search: to 1e-6 of the interval


def fit_number(score: Callable[[float], float], grid: Iterable[float]) -> float:
    """Find the number with the highest score.

    Parameters
    ----------
    score : callable
        Has one maximum between the neighbours of the grid's best number; -inf where undefined.
    grid : iterable of float
        Increasing.

    Returns
    -------
    float
        A number of few digits, if one scores as high.
    """
    numbers = list(grid)
    scores = [score(number) for number in numbers]
    best = max(range(len(numbers)), key=scores.__getitem__)
    low, high = numbers[max(best - 1, 0)], numbers[min(best + 1, len(numbers) - 1)]
    found, top = _section(score, low, high)
    if scores[best] >= top:
        return numbers[best]
    for plain in plain_numbers(found):
        if score(plain) >= top - 1e-6:
            return plain
    return found


def _section(score: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Narrow an interval by golden-section search, in logarithms if it spans powers of ten."""
    powers = low > 0 and high / low > 3
    if powers:
        low, high = math.log(low), math.log(high)

    def value(at: float) -> float:
        return math.exp(at) if powers else at

    inner = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    scores = score(value(inner[0])), score(value(inner[1]))
    for _ in range(_STEPS):
        if scores[0] >= scores[1]:
            high = inner[1]
            inner = high - _GOLDEN * (high - low), inner[0]
            scores = score(value(inner[0])), scores[0]
        else:
            low = inner[0]
            inner = inner[1], low + _GOLDEN * (high - low)
            scores = scores[1], score(value(inner[1]))
    best = 0 if scores[0] >= scores[1] else 1
    return value(inner[best]), scores[best]


def plain_numbers(number: float) -> list[float]:
    """Return a number rounded to 1, 2, ... digits; fractions of 1 as well."""
    if not number or not math.isfinite(number):
        return [number]
    inverse = 1 / number
    fractions = [1 / round(inverse)] if abs(inverse) > 1.5 else []
    return [float(f"{number:.{digits}g}") for digits in (1, 2, 3, 4)] + fractions


def least_squares(rows: Array, results: Array) -> Array:
    """Solve linear equations; several times faster than with singular values.

    Parameters
    ----------
    rows : ndarray of shape (P, K)
    results : ndarray of shape (P,) or (P, O)

    Returns
    -------
    ndarray of float64 and shape (K,) or (K, O)
        The smallest solution where there are fewer equations than unknowns.
    """
    wide = rows.astype(np.float64)
    few = len(wide) < wide.shape[1]
    gram = wide @ wide.T if few else wide.T @ wide
    gram[np.diag_indices_from(gram)] += 1e-10 * max(float(np.trace(gram)) / len(gram), 1e-300)
    inverse = np.linalg.inv(gram)

    def solve(targets: Array) -> Array:
        found: Array = wide.T @ (inverse @ targets) if few else inverse @ (wide.T @ targets)
        return found

    solution = solve(results)
    for _ in range(2):  # corrects the error of rounding and of the small diagonal
        solution += solve(results - wide @ solution)
    return solution
