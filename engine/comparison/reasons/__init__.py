"""Finds out why an operator, or an input, differs from a reference's.

Each module holds one family of hypotheses: functions that return alternatives of an operator.
`explanation` tries them on the data. A reason is only given if it was tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lazy_import import lazy_names

if TYPE_CHECKING:
    from engine.comparison.reasons.case import make_case
    from engine.comparison.reasons.explanation import (
        Explanation,
        explain,
        find_explanation,
    )
    from engine.comparison.reasons.preprocessing import diagnose_input
    from engine.comparison.reasons.reason import KINDS, Change, Reason
    from engine.comparison.reasons.results import is_activation
    from engine.comparison.reasons.surroundings import Surroundings
    from engine.comparison.reasons.tails import Tail, forward_all

__all__ = [
    "KINDS",
    "Change",
    "Explanation",
    "Reason",
    "Surroundings",
    "Tail",
    "diagnose_input",
    "explain",
    "find_explanation",
    "forward_all",
    "is_activation",
    "make_case",
]

_REASON = "engine.comparison.reasons.reason"
_EXPLANATION = "engine.comparison.reasons.explanation"
_TAILS = "engine.comparison.reasons.tails"
_HOME = {
    "KINDS": _REASON,
    "Change": _REASON,
    "Explanation": _EXPLANATION,
    "Reason": _REASON,
    "Surroundings": "engine.comparison.reasons.surroundings",
    "Tail": _TAILS,
    "diagnose_input": "engine.comparison.reasons.preprocessing",
    "explain": _EXPLANATION,
    "find_explanation": _EXPLANATION,
    "forward_all": _TAILS,
    "is_activation": "engine.comparison.reasons.results",
    "make_case": "engine.comparison.reasons.case",
}

__getattr__ = lazy_names(__name__, _HOME)
