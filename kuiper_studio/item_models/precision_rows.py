"""Item model of a format of lower precision: one row per operator."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QObject, QSortFilterProxyModel, Qt
from typing_extensions import override

from engine.text import format_brief
from kuiper_studio.item_models.rows_model import Index, RowsModel, place_of_operator
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from engine.precision import OperatorPrecision
    from kuiper_studio.engine_service.protocol import PrecisionResult

__all__ = [
    "OPERATOR_ROLE",
    "PROBLEM_ROLE",
    "PrecisionColumn",
    "PrecisionRowsModel",
    "PrecisionSortModel",
]

OPERATOR_ROLE: Final = Qt.ItemDataRole.UserRole + 1
PROBLEM_ROLE: Final = Qt.ItemDataRole.UserRole + 2
_SORT_ROLE: Final = Qt.ItemDataRole.UserRole + 3


class PrecisionColumn(IntEnum):
    """Columns of the table."""

    KEEP = 0
    INDEX = 1
    OPERATOR = 2
    AT_OUTPUT = 3
    HEADROOM = 4
    UNDERFLOW = 5
    ALONE = 6
    CUMULATIVE = 7
    WEIGHTS = 8


_C = PrecisionColumn
_HEADERS: Final = {
    _C.KEEP: ("", "Whether the operator has to stay in float32 for the wanted error (f32)"),
    _C.INDEX: ("#", "Index of the operator in execution order"),
    _C.OPERATOR: ("Operator", "The operator whose weights and outputs are in the format"),
    _C.AT_OUTPUT: ("model error", "Error of the model's output with this operator alone"),
    _C.HEADROOM: ("headroom", "Largest number of the format over the largest value"),
    _C.UNDERFLOW: ("underflow", "Share of the values that become 0 or subnormal"),
    _C.ALONE: ("output error", "Error of the operator's own output with this operator alone"),
    _C.CUMULATIVE: (
        "cumulative error",
        "Error of the operator's own output with all operators before it in the format",
    ),
    _C.WEIGHTS: ("weight error", "Error of the weights by storing them"),
}  # fmt: skip
_NUMBERS: Final = frozenset(_C) - {_C.KEEP, _C.OPERATOR}


class PrecisionRowsModel(RowsModel):
    """Operators of a `Simulation`, in execution order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__([_HEADERS[column] for column in PrecisionColumn], _NUMBERS, parent)
        self._rows: tuple[OperatorPrecision, ...] = ()
        self._kept: frozenset[int] = frozenset()

    def show(self, result: PrecisionResult | None) -> None:
        """Show a format, or none."""
        self.beginResetModel()
        self._rows = result.simulation.operators if result is not None else ()
        kept = result.kept.kept if result is not None and result.kept is not None else ()
        self._kept = frozenset(label.index for label in kept)
        self.endResetModel()

    def place_of(self, operator: str) -> int:
        """Return the row of an operator; -1 for none."""
        return place_of_operator(self._rows, operator)

    def text(self) -> str:
        """Return all rows as tab-separated lines, titles first."""
        titles = [_HEADERS[column][0] or "keep" for column in PrecisionColumn]
        lines = [titles, *([self._display(r, c) for c in PrecisionColumn] for r in self._rows)]
        return "\n".join("\t".join(line) for line in lines)

    def _display(self, row: OperatorPrecision, column: int) -> str:
        match column:
            case PrecisionColumn.KEEP:
                return "f32" if row.operator.index in self._kept else ""
            case PrecisionColumn.INDEX:
                return str(row.operator.index)
            case PrecisionColumn.OPERATOR:
                return row.operator.name
        number = _number(row, column)
        if number is None:
            return "–"
        return f"{number:.1%}" if column == PrecisionColumn.UNDERFLOW else format_brief(number)

    def _sort_key(self, row: OperatorPrecision, column: int) -> float | str:
        match column:
            case PrecisionColumn.KEEP:
                return float(row.operator.index in self._kept)
            case PrecisionColumn.INDEX:
                return row.operator.index
            case PrecisionColumn.OPERATOR:
                return row.operator.name
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
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return self._display(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                label = row.operator
                return tip_text(f"#{label.index} {label.type} {label.name}")
            case _ if role == OPERATOR_ROLE:
                return row.operator.name
            case _ if role == PROBLEM_ROLE:
                return _overflows(row) or row.operator.index in self._kept
        return self._sort_key(row, column) if role == _SORT_ROLE else None


def _overflows(row: OperatorPrecision) -> bool:
    headroom = row.outputs.headroom if row.outputs is not None else None
    return headroom is not None and headroom < 1


def _number(row: OperatorPrecision, column: int) -> float | None:
    match column:
        case PrecisionColumn.AT_OUTPUT:
            return row.at_output.relative if row.at_output is not None else None
        case PrecisionColumn.ALONE:
            return row.alone.relative
        case PrecisionColumn.CUMULATIVE:
            return row.cumulative.relative
        case PrecisionColumn.WEIGHTS:
            return row.weights.loss.relative if row.weights is not None else None
    if row.outputs is None:
        return None
    is_headroom = column == PrecisionColumn.HEADROOM
    return row.outputs.headroom if is_headroom else row.outputs.underflow


class PrecisionSortModel(QSortFilterProxyModel):
    """Sorts the rows of a `PrecisionRowsModel`."""

    def __init__(self, source: PrecisionRowsModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.setSortRole(_SORT_ROLE)
        self.setSourceModel(source)
