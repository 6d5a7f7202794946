"""Compares a session with a reference: what differs, where it begins, and why.

>>> import engine
>>> comparison = engine.compare(session, engine.open_reference("dump/"))  # doctest: +SKIP
>>> comparison.verdict, comparison.origins  # doctest: +SKIP
"""

from __future__ import annotations

from engine.comparison.comparison import Comparison, compare
from engine.comparison.corrections import (
    corrections_path,
    read_corrections,
    write_corrections,
)
from engine.comparison.measures import Measures, Tolerances
from engine.comparison.references import (
    Reference,
    open_data,
    open_reference,
    open_reference_for,
)
from engine.comparison.rows import Origin, Row, Status, Unmatched, UnmatchedTensor

__all__ = [
    "Comparison",
    "Measures",
    "Origin",
    "Reference",
    "Row",
    "Status",
    "Tolerances",
    "Unmatched",
    "UnmatchedTensor",
    "compare",
    "corrections_path",
    "open_data",
    "open_reference",
    "open_reference_for",
    "read_corrections",
    "write_corrections",
]
