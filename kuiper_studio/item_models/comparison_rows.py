"""Item model of a comparison with a reference: one row per operand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt
from typing_extensions import override

from engine.text import format_brief, format_shape
from kuiper_studio.item_models.operator_rows import (
    CellLook,
    Column,
    Face,
    OperatorRowsModel,
    index_column,
    name_column,
    number_column,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.comparison import Comparison, Measures, Row

__all__ = [
    "BORN",
    "DIFFERING",
    "UNMATCHED",
    "ComparisonRowsModel",
    "DifferenceColumn",
    "DifferenceKind",
    "DifferenceLook",
    "look_of",
]


class DifferenceKind(Enum):
    """The groups of rows that the panel can show alone."""

    ALL = "All"
    BORN = "Born"
    INHERITED = "Inherited"
    EQUAL = "Equal"
    OTHER = "Other"


DIFFERING: Final = frozenset({DifferenceKind.BORN, DifferenceKind.INHERITED})
"""The groups of rows that differ."""


@dataclass(frozen=True, slots=True)
class DifferenceLook:
    """How the status of a row looks.

    Attributes
    ----------
    glyph, token, word : str
        Mark, its colour, and the status in words.
    kind : DifferenceKind
    """

    glyph: str
    token: str
    word: str
    kind: DifferenceKind


_K = DifferenceKind
BORN: Final = DifferenceLook("≠", "div", "born here", _K.BORN)
"""How an origin looks."""
# By the value of `engine.comparison.Status`: the window's process does not import the engine's
# comparison, which imports the layers.
_LOOKS: Final = {
    "same": DifferenceLook("=", "text3", "equal", _K.EQUAL),
    "rounding": DifferenceLook("=", "text3", "differs by rounding only", _K.EQUAL),
    "inherited": DifferenceLook("≠", "div", "inherited from upstream", _K.INHERITED),
    "origin": BORN,
    "tie": DifferenceLook("≈", "text2", "another choice among equal elements", _K.EQUAL),
    "random": DifferenceLook("≈", "text2", "random numbers", _K.OTHER),
    "float16 weights": DifferenceLook("≈", "text2", "float16 weights", _K.EQUAL),
    "int8": DifferenceLook("≈", "text2", "int8", _K.EQUAL),
    "not compared": DifferenceLook("?", "text2", "not compared", _K.OTHER),
}
_EXCUSED: Final = DifferenceLook("≈", "text2", "inherited from what is no fault", _K.EQUAL)
UNMATCHED: Final = DifferenceLook("?", "text2", "not matched", _K.OTHER)
"""How an operand without a counterpart looks, which has no row."""


def look_of(row: Row) -> DifferenceLook:
    """Return how the status of a row looks."""
    return _EXCUSED if row.excused else _LOOKS[row.status.value]


class DifferenceColumn(IntEnum):
    """Columns of the table."""

    STATUS = 0
    INDEX = 1
    OPERATOR = 2
    ERROR = 3
    BORN = 4
    MAX_ABS = 5
    COSINE = 6
    SNR = 7
    INHERITED = 8
    MATCHED = 9


def _format(number: float) -> str:
    return format_brief(number) if math.isfinite(number) else "–"


def _number(title: str, tip: str, value: Callable[[Row], float | None]) -> Column[Row]:
    return number_column(title, tip, value, _format)


def _measure(title: str, tip: str, value: Callable[[Measures], float | None]) -> Column[Row]:
    """Return a column of a measure, which rows that were not compared do not have."""
    return _number(
        title, tip, lambda row: value(row.measures) if row.measures is not None else None
    )


_C = DifferenceColumn
_COLUMNS: Final[dict[DifferenceColumn, Column[Row]]] = {
    _C.STATUS: Column(
        "",
        "Whether the operand is equal (=), differs (≠), or was not compared (?)",
        lambda row: look_of(row).glyph,
        lambda row: list(_LOOKS).index(row.status.value),
        Qt.AlignmentFlag.AlignHCenter,
    ),
    _C.INDEX: index_column(),
    _C.OPERATOR: name_column("The operator that computes the operand"),
    _C.MATCHED: Column(
        "Matched by",
        "What the reference's tensor was found by, and the confidence",
        lambda row: f"{row.matched_by} {row.confidence:.2f}",
        lambda row: row.confidence,
        Qt.AlignmentFlag.AlignLeft,
    ),
    _C.MAX_ABS: _measure(
        "max abs", "Largest absolute difference of two elements", lambda found: found.max_abs
    ),
    _C.ERROR: _measure(
        "error",
        "Largest difference over the reference's largest element; the tolerance is for this",
        lambda found: found.relative,
    ),
    _C.COSINE: _measure(
        "cosine", "Cosine of the angle between both tensors", lambda found: found.cosine
    ),
    _C.SNR: _measure(
        "dB",
        "Signal-to-noise ratio in decibels; – for equal tensors",
        lambda found: found.snr_db,
    ),
    _C.BORN: _number(
        "born",
        "Difference of this operator alone, on the reference's inputs",
        lambda row: row.born,
    ),
    _C.INHERITED: _number(
        "inherited",
        "The rest of the difference, from operators upstream",
        lambda row: row.inherited,
    ),
}


class ComparisonRowsModel(OperatorRowsModel["Row"]):
    """Rows of a `Comparison`, in execution order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__([_COLUMNS[column] for column in DifferenceColumn], parent)

    def show(self, comparison: Comparison | None) -> None:
        """Show a comparison, or none."""
        self.show_rows(comparison.rows if comparison is not None else ())

    def count(self, kind: DifferenceKind) -> int:
        """Return the number of rows of a group."""
        if kind is DifferenceKind.ALL:
            return len(self.rows)
        return sum(look_of(row).kind is kind for row in self.rows)

    # Overrides of `OperatorRowsModel`

    @override
    def spoken(self, row: Row, column: int) -> str:
        is_status = column == DifferenceColumn.STATUS
        return look_of(row).word if is_status else super().spoken(row, column)

    @override
    def describe(self, row: Row) -> str:
        lines = [
            super().describe(row),
            f"operand {row.operand}, {format_shape(row.shape)}: {look_of(row).word}",
            f"reference {row.reference}, {format_shape(row.reference_shape)}",
        ]
        if row.layout.name:
            lines[-1] += f", {row.layout.name}"
        return "\n".join([*lines, row.reason] if row.reason else lines)

    @override
    def look(self, row: Row, column: int) -> CellLook:
        found = look_of(row)
        match column:
            case DifferenceColumn.STATUS:
                return CellLook(found.token, Face.BOLD)
            case DifferenceColumn.OPERATOR:
                is_born = found.kind is DifferenceKind.BORN
                return CellLook("text", Face.BOLD if is_born else Face.TEXT)
            case DifferenceColumn.MATCHED:
                return CellLook()
        return CellLook(found.token if found.kind in DIFFERING else "text2")
