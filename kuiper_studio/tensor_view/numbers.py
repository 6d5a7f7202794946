"""Formats and parses numbers of the tensor view. No Qt."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.text import MINUS, format_brief

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "format_bound",
    "format_range",
    "format_tick",
    "format_ticks",
    "nice_ticks",
    "parse_number",
]

_BOX_ROOM = 8  # characters in a text box
_PLACES = 20  # of a range that are told apart
_LEAST_SPAN = 1e-300  # with steps that floats can distinguish


def format_tick(value: float, step: float) -> str:
    """Format one of several numbers that are `step` apart, without needless digits.

    Three figures of the step: ``0``, ``0.4``, ``−1.275``, ``3e−6``, ``1.5e5``.
    """
    if abs(value) < step * 1e-9:
        return "0"
    size = max(abs(value), step)
    if size >= 1e5 or size < 1e-3:
        return _exponent(value, step)
    decimals = max(0, 2 - math.floor(math.log10(step))) if step > 0 else 6
    return _tidy(f"{value:.{min(decimals, 12)}f}")


def format_ticks(ticks: Sequence[float]) -> list[str]:
    """Format the numbers of an axis with equal decimals: ``0.5``, ``1.0``, ``1.5``."""
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    texts = [format_tick(tick, step) for tick in ticks]
    if any("e" in text for text in texts):
        return texts
    decimals = max((len(text.partition(".")[2]) for text in texts), default=0)
    return [f"{tick:.{decimals}f}".replace("-", MINUS) for tick in ticks]


def format_range(low: float, high: float) -> str:
    """Format a range: ``0 … 1.6``."""
    step = (high - low) / 100
    if not math.isfinite(step) or step <= 0:
        return f"{format_brief(low)} … {format_brief(high)}"
    return f"{format_tick(low, step)} … {format_tick(high, step)}"


def format_bound(value: float, other: float) -> str:
    """Format one end of a range, with enough digits to place it between the ends.

    Six digits if the box has room, at least three. More where rounding would move it by a
    twentieth of the range, as about a constant.
    """
    for digits in (6, 5, 4, 3):
        text = _tidy(f"{value:.{digits}g}")
        fits = len(text) <= _BOX_ROOM or digits == 3
        # Rounding the largest numbers may overflow.
        if fits and parse_number(text) is not None and _is_placed(value, other, digits):
            return text
    for digits in range(6, 18):
        if _is_placed(value, other, digits):
            return _tidy(f"{value:.{digits}g}")
    return _tidy(repr(value))


def _is_placed(value: float, other: float, digits: int) -> bool:
    """Return whether rounding to some digits keeps a number in its place to another."""
    text = f"{value:.{digits}g}"
    if value == other:
        return True
    moved = abs(float(text) - value)
    return text != f"{other:.{digits}g}" and _PLACES * moved <= abs(value - other)


def parse_number(text: str) -> float | None:
    """Parse a finite number with any minus and decimal sign; None if it is not one."""
    plain = text.strip().replace(MINUS, "-").replace(",", ".").replace("_", "")
    try:
        value = float(plain)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return at most `most` evenly spaced round numbers inside a range.

    Parameters
    ----------
    low, high : float
        `low` is below `high`.
    most : int, optional

    Returns
    -------
    list of float
        Steps are 1, 2 or 5 times a power of ten.
    """
    span = high - low
    if not math.isfinite(span) or span < _LEAST_SPAN:
        return []
    power = 10.0 ** math.floor(math.log10(span / most))
    for factor in (1, 2, 5, 10, 20):
        step = power * factor
        first, last = math.ceil(low / step), math.floor(high / step)
        if last - first + 1 <= most:
            return [float(f"{number * step:.12g}") for number in range(first, last + 1)]
    return []


def _exponent(value: float, step: float) -> str:
    digits = 1
    if value and step:
        digits = max(0, math.floor(math.log10(abs(value))) - math.floor(math.log10(step)) + 2)
    mantissa, _, power = np.format_float_scientific(
        value, precision=min(digits, 12), trim="-", exp_digits=1
    ).partition("e")
    return _tidy(mantissa) + ("e" + power.replace("+", "").replace("-", MINUS) if power else "")


def _tidy(text: str) -> str:
    if "e" in text:
        mantissa, power = text.split("e")
        text = f"{mantissa}e{int(power)}"
    elif "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", MINUS)
