"""Fits single numbers to data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["fit_number", "plain_numbers"]

_GOLDEN: Final = (math.sqrt(5) - 1) / 2
_STEPS: Final = 28  # of the section: to 1e-6 of the interval


def fit_number(score: Callable[[float], float], grid: Iterable[float]) -> float:
    """Find the number with the highest score.

    Parameters
    ----------
    score : callable
        Has one maximum between the neighbours of the best number of the grid; -inf where it
        has no value.
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
    """Narrow an interval by golden section; in powers, if it spans some."""
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
