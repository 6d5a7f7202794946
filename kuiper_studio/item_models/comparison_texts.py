"""What a comparison says in words: the verdict, and why an operator differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.text import format_count

if TYPE_CHECKING:
    from engine.comparison import Comparison, Origin
    from engine.comparison.reasons import Reason

__all__ = [
    "MOST_SHOWN",
    "describe_beginning",
    "explain_origin",
    "format_share",
    "format_verdict",
    "shown_reasons",
    "split_reason",
]

MOST_SHOWN: Final = 3
"""How many origins, reasons or outputs are shown of a list."""


def format_verdict(comparison: Comparison) -> str:
    """Return the verdict with its mark: ``≠ Differs: 2 origins``."""
    if comparison.advice:
        return "? Nothing compared"
    if comparison.verdict == "same":
        return ", ".join(filter(None, ("= Same", comparison.reservation)))
    return f"≠ Differs: {format_count(len(comparison.origins), 'origin')}"


def describe_beginning(comparison: Comparison) -> str:
    """Return the first origins in words: ``The difference begins in #3 conv1.``."""
    origins = comparison.origins
    names = ", ".join(f"#{o.operator.index} {o.operator.name}" for o in origins[:MOST_SHOWN])
    more = f" and {len(origins) - MOST_SHOWN} more" if len(origins) > MOST_SHOWN else ""
    return f"The difference begins in {names}{more}."


def shown_reasons(origin: Origin) -> tuple[Reason, ...]:
    """Return the reasons of an origin that are shown, the likeliest first."""
    return origin.reasons[:MOST_SHOWN]


def format_share(reason: Reason) -> str:
    """Return the share of the difference that a reason explains: ``99.8 %``."""
    return f"{100 * reason.explains:.1f} %"


def split_reason(reason: Reason) -> tuple[str, str]:
    """Return the difference and the change to make, which a reason's text ends with."""
    difference, stop, change = reason.text.rpartition(". ")
    return (f"{difference}.", change) if stop else (reason.text, "")


def explain_origin(origin: Origin) -> str:
    """Return what is wrong with an origin, and a line for each shown reason."""
    reasons = [f"{format_share(each)}  {each.text}" for each in shown_reasons(origin)]
    return "\n".join([origin.text, *(reasons or [origin.unexplained])])
