"""Compares a session with a reference: what differs, where it begins, and why.

>>> import engine
>>> comparison = engine.compare(session, engine.open_reference("dump/"))  # doctest: +SKIP
>>> comparison.verdict, comparison.origins  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.lazy_import import lazy_names

if TYPE_CHECKING:
    from engine.comparison.comparison import compare
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
    from engine.comparison.rows import (
        Comparison,
        Origin,
        Row,
        Status,
        Unmatched,
        UnmatchedTensor,
    )

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

_ROWS = "engine.comparison.rows"
_CORRECTIONS = "engine.comparison.corrections"
_REFERENCES = "engine.comparison.references"
_HOME = {
    "Comparison": _ROWS,
    "Measures": "engine.comparison.measures",
    "Origin": _ROWS,
    "Reference": _REFERENCES,
    "Row": _ROWS,
    "Status": _ROWS,
    "Tolerances": "engine.comparison.measures",
    "Unmatched": _ROWS,
    "UnmatchedTensor": _ROWS,
    "compare": "engine.comparison.comparison",
    "corrections_path": _CORRECTIONS,
    "open_data": _REFERENCES,
    "open_reference": _REFERENCES,
    "open_reference_for": _REFERENCES,
    "read_corrections": _CORRECTIONS,
    "write_corrections": _CORRECTIONS,
}

__getattr__ = lazy_names(__name__, _HOME)
