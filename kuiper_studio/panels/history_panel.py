"""The panel of the history of a place: what every operator has where the user picked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QModelIndex, QRect, Qt, Signal, Slot
from PySide6.QtGui import QImage
from typing_extensions import override

from engine.text import format_count
from kuiper_studio.item_models.history_rows import VISIT_WIDTHS, HistoryRowsModel, VisitColumn
from kuiper_studio.item_models.operator_rows import ROW_ROLE
from kuiper_studio.item_models.provenance_texts import format_element
from kuiper_studio.panels.panel import Panel, plain_label
from kuiper_studio.panels.provenance_maps import color_about_zero
from kuiper_studio.panels.result_dock import TITLES
from kuiper_studio.panels.result_table import ResultDelegate, ResultTable
from kuiper_studio.session.asking import Place

if TYPE_CHECKING:
    from PySide6.QtGui import QPainter
    from PySide6.QtWidgets import QWidget

    from engine.provenance.records import PlaceHistory, Visit
    from engine.values import Array
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["HistoryPanel", "strip_image"]

_HINT: Final = (
    "Click an element of the tensor, or press an arrow key in it, then Analyse → History of "
    "this place (Shift+P)."
)


def strip_image(values: Array) -> QImage:
    """Make a picture one pixel high of numbers, coloured by `color_about_zero`.

    Parameters
    ----------
    values : ndarray of float32, shape (N,)
    """
    pixels = np.ascontiguousarray(color_about_zero(values[np.newaxis]))
    width = values.size
    return QImage(pixels.data, width, 1, 4 * width, QImage.Format.Format_RGBA8888).copy()


class _Delegate(ResultDelegate):
    """Paints the values at the place as a strip."""

    cut_left = frozenset({int(VisitColumn.OPERATOR)})

    @override
    def draw_value(
        self, painter: QPainter, rect: QRect, row: Visit, column: int, *, selected: bool
    ) -> None:
        if column != VisitColumn.STRIP:
            super().draw_value(painter, rect, row, column, selected=selected)
            return
        painter.drawImage(rect.adjusted(3, 4, -6, -4), strip_image(row.strip))


class HistoryPanel(Panel):
    """What every operator has at the place of the picked element.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    visit_chosen : Place
        The user wants to see an element.
    """

    visit_chosen = Signal(object)

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("history", TITLES["history"], session, theme, parent)
        self.model = HistoryRowsModel(self)
        self.table = ResultTable(
            "historyTable", "Operators at the place", self.model, VISIT_WIDTHS, theme, self
        )
        self.table.setItemDelegate(_Delegate(theme, self.table))
        self.table.horizontalHeader().setStretchLastSection(True)
        self.table.sortByColumn(VisitColumn.INDEX, Qt.SortOrder.AscendingOrder)
        self.title = plain_label("historyTitle", "subtitle")
        self.place = plain_label("historyPlace", "secondary")
        self._follows = False  # while the selection moves the current row
        self._build()
        session.tracing.changed.connect(self._show)
        session.selection_changed.connect(self._on_selection_changed)
        self.table.row_chosen.connect(self._on_row_chosen)
        self.table.clicked.connect(self._on_clicked)
        self._show()

    @override
    def keyboard_target(self) -> QWidget:
        return self.table

    def _build(self) -> None:
        self.lay_out_head((self.title, self.place), self.table)

    # Slots

    @Slot()
    def _show(self) -> None:
        tracing = self.session.tracing
        place, found = tracing.place, tracing.found
        element = format_element(place.operand, place.index) if place is not None else ""
        self.title.setText(element or "No place chosen")
        if place is None:
            self.place.setText(_HINT)
        elif found is not None:
            self.place.setText(_describe(found))
        elif tracing.reason:
            self.place.setText(tracing.reason[:1].upper() + tracing.reason[1:] + ".")
        else:
            self.place.setText("The engine is at work.")
        self._follows = True
        try:
            self.model.show(found)
            self.table.go_to(self.session.selected)
        finally:
            self._follows = False

    @Slot(str)
    def _on_selection_changed(self, operator: str) -> None:
        self._follows = True
        try:
            self.table.go_to(operator)
        finally:
            self._follows = False

    @Slot(object)
    def _on_row_chosen(self, row: Visit) -> None:
        if not self._follows:
            self.visit_chosen.emit(Place(row.operand, row.index))

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        """Go to an element also where its row is the current one already."""
        row: Visit = index.data(ROW_ROLE)
        self.visit_chosen.emit(Place(row.operand, row.index))


def _describe(found: PlaceHistory) -> str:
    """Say what the rows are."""
    if not found.place:
        return "The element has no rows, columns or tokens: each row is a whole operand."
    text = f"{found.place[:1].upper()}{found.place[1:]}"
    if found.left_out:
        text += f" · {format_count(found.left_out, 'operand')} without it left out"
    return text
