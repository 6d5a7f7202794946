"""Item model of a comparison with a reference: one row per operand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import (
    QObject,
    QSortFilterProxyModel,
    Qt,
)
from typing_extensions import override

from engine.text import format_brief, format_shape
from kuiper_studio.item_models.rows_model import Index, RowsModel, place_of_operator
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from engine.comparison import Comparison, Row

__all__ = [
    "ROW_ROLE",
    "STATUS_ROLE",
    "UNMATCHED",
    "ComparisonRowsModel",
    "DifferenceColumn",
    "DifferenceFilterModel",
    "DifferenceKind",
    "DifferenceLook",
    "look_of",
]

ROW_ROLE: Final = Qt.ItemDataRole.UserRole + 1
STATUS_ROLE: Final = Qt.ItemDataRole.UserRole + 2
_SORT_ROLE: Final = Qt.ItemDataRole.UserRole + 3


class DifferenceKind(Enum):
    """The groups of rows that the panel can show alone."""

    ALL = "All"
    BORN = "Born"
    INHERITED = "Inherited"
    EQUAL = "Equal"
    OTHER = "Other"


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
# By the value of `engine.comparison.Status`: the window's process does not import the engine's
# comparison, which imports the layers.
_LOOKS: Final = {
    "same": DifferenceLook("=", "text3", "equal", _K.EQUAL),
    "rounding": DifferenceLook("=", "text3", "differs by rounding only", _K.EQUAL),
    "inherited": DifferenceLook("≠", "div", "inherited from upstream", _K.INHERITED),
    "origin": DifferenceLook("≠", "div", "born here", _K.BORN),
    "tie": DifferenceLook("≈", "text2", "another choice among equal elements", _K.EQUAL),
    "random": DifferenceLook("≈", "text2", "random numbers", _K.OTHER),
    "float16 weights": DifferenceLook("≈", "text2", "float16 weights", _K.EQUAL),
    "not compared": DifferenceLook("?", "text2", "not compared", _K.OTHER),
}
UNMATCHED: Final = DifferenceLook("?", "text2", "not matched", _K.OTHER)
"""How an operand without a counterpart looks, which has no row."""


def look_of(row: Row) -> DifferenceLook:
    """Return how the status of a row looks."""
    return _LOOKS[row.status.value]


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


_C = DifferenceColumn
_HEADERS: Final = {
    _C.STATUS: ("", "Whether the operand is equal (=), differs (≠), or was not compared (?)"),
    _C.INDEX: ("#", "Index of the operator in execution order"),
    _C.OPERATOR: ("Operator", "The operator that computes the operand"),
    _C.MATCHED: ("Matched by", "What the reference's tensor was found by, and the confidence"),
    _C.MAX_ABS: ("max abs", "Largest absolute difference of two elements"),
    _C.ERROR: (
        "error",
        "Largest difference over the reference's largest element; the tolerance is for this",
    ),
    _C.COSINE: ("cosine", "Cosine of the angle between both tensors"),
    _C.SNR: ("dB", "Signal-to-noise ratio in decibels; – for equal tensors"),
    _C.BORN: ("born", "Difference of this operator alone, on the reference's inputs"),
    _C.INHERITED: ("inherited", "The rest of the difference, from operators upstream"),
}
_NUMBERS: Final = frozenset(_C) - {_C.STATUS, _C.OPERATOR, _C.MATCHED}


class ComparisonRowsModel(RowsModel):
    """Rows of a `Comparison`, in execution order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__([_HEADERS[column] for column in DifferenceColumn], _NUMBERS, parent)
        self._rows: tuple[Row, ...] = ()

    def show(self, comparison: Comparison | None) -> None:
        """Show a comparison, or none."""
        self.beginResetModel()
        self._rows = comparison.rows if comparison is not None else ()
        self.endResetModel()

    def count(self, kind: DifferenceKind) -> int:
        """Return the number of rows of a group."""
        if kind is DifferenceKind.ALL:
            return len(self._rows)
        return sum(look_of(row).kind is kind for row in self._rows)

    def place_of(self, operator: str) -> int:
        """Return the first row of an operator; -1 for none."""
        return place_of_operator(self._rows, operator)

    def _display(self, row: Row, column: int) -> str:
        match column:
            case DifferenceColumn.STATUS:
                return look_of(row).glyph
            case DifferenceColumn.INDEX:
                return str(row.operator.index)
            case DifferenceColumn.OPERATOR:
                return row.operator.name
            case DifferenceColumn.MATCHED:
                return f"{row.matched_by} {row.confidence:.2f}"
        number = _number(row, column)
        return "–" if number is None or not math.isfinite(number) else format_brief(number)

    def _sort_key(self, row: Row, column: int) -> float | str:
        match column:
            case DifferenceColumn.STATUS:
                return list(_LOOKS).index(row.status.value)
            case DifferenceColumn.INDEX:
                return row.operator.index
            case DifferenceColumn.OPERATOR:
                return row.operator.name
            case DifferenceColumn.MATCHED:
                return row.confidence
        number = _number(row, column)
        return -math.inf if number is None else number

    @override
    def count_rows(self) -> int:
        return len(self._rows)

    # Overrides of Qt methods

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._display(row, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                is_status = column == DifferenceColumn.STATUS
                return look_of(row).word if is_status else self._display(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return tip_text(_describe(row))
            case _ if role == ROW_ROLE:
                return row
            case _ if role == STATUS_ROLE:
                return look_of(row)
        return self._sort_key(row, column) if role == _SORT_ROLE else None


def _number(row: Row, column: int) -> float | None:
    match column:
        case DifferenceColumn.BORN:
            return row.born
        case DifferenceColumn.INHERITED:
            return row.inherited
    measures = row.measures
    if measures is None:
        return None
    match column:
        case DifferenceColumn.MAX_ABS:
            return measures.max_abs
        case DifferenceColumn.ERROR:
            return measures.relative
        case DifferenceColumn.COSINE:
            return measures.cosine
    return measures.snr_db


def _describe(row: Row) -> str:
    """Describe a row in some lines."""
    lines = [
        f"#{row.operator.index} {row.operator.type} {row.operator.name}",
        f"operand {row.operand}, {format_shape(row.shape)}: {look_of(row).word}",
        f"reference {row.reference}, {format_shape(row.reference_shape)}",
    ]
    if row.layout.name:
        lines[-1] += f", {row.layout.name}"
    return "\n".join([*lines, row.reason] if row.reason else lines)


class DifferenceFilterModel(QSortFilterProxyModel):
    """Sorts the rows of a `ComparisonRowsModel`, and shows one group of them or all."""

    def __init__(self, source: ComparisonRowsModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._kind = DifferenceKind.ALL
        self.setSortRole(_SORT_ROLE)
        self.setSourceModel(source)

    def show_only(self, kind: DifferenceKind) -> None:
        """Show one group of rows, or all."""
        self._kind = kind
        self.invalidate()

    # Overrides of Qt methods

    @override
    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        index = self.sourceModel().index(source_row, 0, source_parent)
        look: DifferenceLook = index.data(STATUS_ROLE)
        return self._kind in {DifferenceKind.ALL, look.kind}
