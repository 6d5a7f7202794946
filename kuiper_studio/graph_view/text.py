"""Short texts in boxes."""

from __future__ import annotations

from typing import Final

from engine.text import format_brief

__all__ = ["format_range", "split_expression"]

_MOST_DIGITS: Final = 3


def format_range(low: float, high: float, room: int) -> str:
    """Format a range as ``0…2.57`` with as many digits as fit into `room` characters."""
    text = ""
    for digits in range(_MOST_DIGITS, 0, -1):
        text = f"{format_brief(low, digits)}…{format_brief(high, digits)}"
        if len(text) <= room:
            break
    return text


def split_expression(expression: str) -> tuple[str, str]:
    """Split an expression into its outermost function and its operands with brackets."""
    head, bracket, rest = expression.partition("(")
    return head, bracket + rest
