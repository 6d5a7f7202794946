"""Finds out why an operator, or an input, differs from a reference's.

Each module holds one family of hypotheses: functions that return alternatives of an operator.
`explanation` tries them on the data. A reason is only given if it was tried.
"""

from __future__ import annotations

from engine.comparison.reasons.explanation import (
    Explanation,
    explain,
    find_explanation,
)
from engine.comparison.reasons.preprocessing import diagnose_input
from engine.comparison.reasons.reason import KINDS, Change, Reason
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
]
