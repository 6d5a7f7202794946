"""Item model of the history of a place: one row per operand."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt
from typing_extensions import override

from engine.provenance.records import Relation
from engine.text import format_count, format_number
from kuiper_studio.item_models.operator_rows import (
    CellLook,
    Column,
    Face,
    OperatorRowsModel,
    index_column,
    name_column,
    number_column,
    text_column,
)
from kuiper_studio.item_models.provenance_texts import format_element

if TYPE_CHECKING:
    from engine.provenance.records import PlaceHistory, Visit

__all__ = ["VISIT_WIDTHS", "HistoryRowsModel", "VisitColumn"]


class VisitColumn(IntEnum):
    """Columns of the table."""

    INDEX = 0
    OPERATOR = 1
    ELEMENT = 2
    VALUE = 3
    STRIP = 4
    MINIMUM = 5
    MAXIMUM = 6


_C = VisitColumn
VISIT_WIDTHS: Final[dict[int, int]] = {
    _C.INDEX: 30,
    _C.OPERATOR: 88,
    _C.ELEMENT: 112,
    _C.VALUE: 56,
    _C.STRIP: 50,
    _C.MINIMUM: 50,
    _C.MAXIMUM: 50,
}
_COLUMNS: Final[dict[VisitColumn, Column[Visit]]] = {
    _C.INDEX: index_column(),
    _C.OPERATOR: name_column("The operator that computed the operand"),
    _C.ELEMENT: text_column(
        "element",
        "The element at the place that is farthest from zero; a click goes there",
        lambda row: format_element(row.operand, row.index),
    ),
    _C.VALUE: number_column("value", "Its value", lambda row: row.value, format_number),
    _C.MINIMUM: number_column(
        "min",
        "Least of all values at the place",
        lambda row: row.minimum,
    ),
    _C.MAXIMUM: number_column(
        "max",
        "Largest of all values at the place",
        lambda row: row.maximum,
    ),
    _C.STRIP: Column(
        "all",
        "All values at the place in order, such as the channels; sorted by their number",
        lambda row: format_count(row.count, "value"),
        lambda row: float(row.count),
        Qt.AlignmentFlag.AlignLeft,
    ),
}


class HistoryRowsModel(OperatorRowsModel["Visit"]):
    """What operands have at a place, in execution order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__([_COLUMNS[column] for column in VisitColumn], parent)

    def show(self, history: PlaceHistory | None) -> None:
        """Show a history, or none."""
        self.show_rows(history.visits if history is not None else ())

    @override
    def describe(self, row: Visit) -> str:
        where = "at the place" if row.is_placed else "in all: the operand has no such place"
        count = f"{format_count(row.count, 'value')} {where}"
        mean = f"mean {format_number(row.mean)}, {100 * row.zeros / row.count:.3g} % zeros"
        special = f", {row.non_finite} NaN or infinite" if row.non_finite else ""
        element = f"{format_element(row.operand, row.index)} = {row.value:.9g}"
        lines = [super().describe(row), element, count, mean + special]
        return "\n".join([*lines, _RELATIONS[row.relation]])

    @override
    def look(self, row: Visit, column: int) -> CellLook:
        is_picked = row.relation is Relation.PICKED
        dim = row.relation is Relation.BESIDE or not row.is_placed
        token = "warn" if row.non_finite else "text3" if dim else "text2"
        if column == VisitColumn.OPERATOR:
            return CellLook("text3" if dim else "text", Face.BOLD if is_picked else Face.TEXT)
        if column == VisitColumn.ELEMENT:
            return CellLook("link")
        return CellLook(token)


_RELATIONS: Final = {
    Relation.PICKED: "The operator of the picked element",
    Relation.UPSTREAM: "Upstream of the picked element's operator",
    Relation.DOWNSTREAM: "Downstream of the picked element's operator",
    Relation.BESIDE: "Neither upstream nor downstream of the picked element's operator",
}
