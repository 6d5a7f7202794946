"""The table of results by operator: it sorts, and its rows lead to operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QModelIndex, QRect, Qt, Signal, Slot
from PySide6.QtWidgets import QHeaderView, QWidget
from typing_extensions import override

from kuiper_studio.item_models.operator_rows import ROW_ROLE, Face, SortModel
from kuiper_studio.panels.table import Index, RowDelegate, Table
from kuiper_studio.sort_header import SortHeader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QPainter, QResizeEvent

    from kuiper_studio.item_models.operator_rows import OperatorRowsModel
    from kuiper_studio.theme import Theme

__all__ = ["ResultDelegate", "ResultTable"]

_FIRST: Final = 0  # the column of marks, whose width is fixed


class ResultDelegate(RowDelegate):
    """Paints the cells of a `ResultTable` as its model says.

    It asks the model itself: through the sorted rows, an answer takes several calls of Python.

    Attributes
    ----------
    cut_left : frozenset of int
        Columns whose ends are what tells their texts apart, such as dotted names.
    """

    cut_left: frozenset[int] = frozenset()

    def __init__(self, theme: Theme, table: ResultTable) -> None:
        super().__init__(theme, table)
        self._rows: dict[int, Any] = {}  # by their place in the table
        self._fonts = {Face.TEXT: self.ui, Face.BOLD: self.bold, Face.MONO: self.small_mono}

    @override
    def begin_painting(self) -> None:
        self._rows.clear()

    @override
    def draw_cell(
        self, painter: QPainter, rect: QRect, index: Index, *, selected: bool
    ) -> None:
        place, table = index.row(), self.parent()
        if place not in self._rows and isinstance(table, ResultTable):
            self._rows[place] = table.shown.row_at(index)
        self.draw_value(painter, rect, self._rows[place], index.column(), selected=selected)

    def draw_value(
        self,
        painter: QPainter,
        rect: QRect,
        row: Any,  # noqa: ANN401 - of the model
        column: int,
        *,
        selected: bool,
    ) -> None:
        """Paint a cell of a row."""
        table = self.parent()
        if not isinstance(table, ResultTable):
            return
        rows = table.rows_model
        look = rows.look(row, column)
        color = self.theme.color("selTxt" if selected else look.token)
        area = rect.adjusted(3, 0, -3, 0)
        is_left = column in self.cut_left
        cut = Qt.TextElideMode.ElideLeft if is_left else Qt.TextElideMode.ElideMiddle
        text, font = rows.text(row, column), self._fonts[look.face]
        self.draw_text(painter, area, text, font, color, rows.alignment(column), cut)


class ResultTable(Table):
    """Rows of an `OperatorRowsModel`; a click on a title sorts them.

    Parameters
    ----------
    name : str
        Its objectName.
    title : str
        Its accessible name.
    rows : OperatorRowsModel
    widths : mapping of int to int
        Of the columns, in pixels.
    theme : Theme

    Attributes
    ----------
    rows_model : OperatorRowsModel
    shown : SortModel
        The sorted and filtered rows.

    Signals
    -------
    row_chosen
        The row that became the current one.
    """

    row_chosen = Signal(object)

    def __init__(
        self,
        name: str,
        title: str,
        rows: OperatorRowsModel[Any],
        widths: Mapping[int, int],
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(theme, parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.rows_model = rows
        self.shown: SortModel[Any] = SortModel(rows, self)
        self.setModel(self.shown)
        self.setItemDelegate(ResultDelegate(theme, self))
        header = SortHeader(theme, self)
        self.prepare_header()
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        for column, width in widths.items():
            self.setColumnWidth(column, width)
        header.setMinimumSectionSize(widths[_FIRST])
        header.setSectionResizeMode(_FIRST, QHeaderView.ResizeMode.Fixed)
        self.selectionModel().currentRowChanged.connect(self._on_row_changed)

    def go_to(self, operator: str) -> None:
        """Make the first row of an operator the current one; none where it is not shown."""
        current = self.currentIndex().data(ROW_ROLE)
        if current is not None and current.operator.name == operator:
            return
        index = self.shown.index_of(self.rows_model.place_of(operator))
        self.setCurrentIndex(index)
        if index.isValid():
            self.scrollTo(index)

    # Override of a Qt method

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the current row in view when texts above take room, or a scroll bar appears."""
        current = self.visualRect(self.currentIndex())
        was_seen = current.top() < event.oldSize().height() and current.bottom() > 0
        super().resizeEvent(event)
        if self.currentIndex().isValid() and was_seen:
            self.scrollTo(self.currentIndex())

    @Slot(QModelIndex, QModelIndex)
    def _on_row_changed(self, index: QModelIndex, _before: QModelIndex) -> None:
        row = index.data(ROW_ROLE)
        if row is not None:
            self.row_chosen.emit(row)
