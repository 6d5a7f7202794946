"""Short texts in boxes and on edges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from kuiper_studio.item_models import text
from kuiper_studio.item_models.text import MINUS, dtype_text

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MINUS", "dtype_text", "number_text", "range_text", "shape_text", "split_expression"]

_MOST_DIGITS: Final = 3


def shape_text(shape: Sequence[int | str | None] | None, *, with_batch: bool = False) -> str:
    """Shape as ``64×56×56``.

    Parameters
    ----------
    shape : sequence of int, str or None, or None
        A None dimension is unknown; None as a whole gives ``""``.
    with_batch : bool
        Keep a leading 1, which is left out otherwise.
    """
    return text.shape_text(shape, drop_batch=not with_batch)


def number_text(value: float, digits: int = _MOST_DIGITS) -> str:
    """Number in `digits` significant digits, without needless zeros."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{digits}g}"
    mantissa, e, exponent = text.partition("e")
    if e:
        text = _unpowered(mantissa, int(exponent), value)
    return text.replace("-", MINUS)


def _unpowered(mantissa: str, exponent: int, value: float) -> str:
    """Write numbers up to five digits out, others with a short exponent."""
    if 0 <= exponent < 5:
        return f"{value:.0f}"
    return f"{mantissa}e{exponent}"


def range_text(low: float, high: float, room: int) -> str:
    """Range as ``0…2.57``, in as many digits as fit into `room` characters."""
    text = ""
    for digits in range(_MOST_DIGITS, 0, -1):
        text = f"{number_text(low, digits)}…{number_text(high, digits)}"
        if len(text) <= room:
            break
    return text


def split_expression(expression: str) -> tuple[str, str]:
    """Outermost function of an expression, and its operands with their brackets."""
    head, bracket, rest = expression.partition("(")
    return head, bracket + rest
