"""The table of all lists in the window, and its delegate."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.focus_ring import draw_focus_ring, is_by_keyboard

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent, QObject
    from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPaintEvent

    from kuiper_studio.theme import Theme

__all__ = ["ROW_HEIGHT", "Index", "RowDelegate", "Table"]

Index = QModelIndex | QPersistentModelIndex
ROW_HEIGHT = 22
_ENDS = {  # whether it is the last row
    QAbstractItemView.CursorAction.MoveHome: False,
    QAbstractItemView.CursorAction.MoveEnd: True,
}


class Table(QTableView):
    """A table without grid and row numbers; rows are hovered as a whole.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._hovered_row = -1
        self._pointer: QPoint | None = None  # while it is over the table
        self._ringed = False
        self._empty_text = ""
        self._selected: list[tuple[int, int]] = []  # first and last rows, while it is painted
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setMouseTracking(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.verticalHeader().hide()
        self.verticalHeader().setMinimumSectionSize(1)
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.set_row_height(ROW_HEIGHT)
        self.prepare_header()
        self.show_header(shown=True)
        theme.changed.connect(self.viewport().update)

    def prepare_header(self) -> None:
        """Give the column titles the looks of all lists."""
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setMinimumSectionSize(1)
        header.setFixedHeight(ROW_HEIGHT)

    def paints_selected(self, row: int) -> bool:
        """Whether a row that is being painted is selected."""
        return any(first <= row <= last for first, last in self._selected)

    def set_row_height(self, pixels: int) -> None:
        """Set the height of all rows."""
        self.verticalHeader().setDefaultSectionSize(pixels)

    def show_header(self, *, shown: bool) -> None:
        """Show or hide the column titles."""
        self.horizontalHeader().setVisible(shown)
        self.setProperty("headed", shown)

    def set_empty_text(self, text: str) -> None:
        """Set the text of an empty table."""
        self._empty_text = text
        self.viewport().update()

    def _hover(self, pointer: QPoint | None) -> None:
        """Mark the row under the mouse, which is at this place of the viewport."""
        self._pointer = pointer
        row = self.indexAt(pointer).row() if pointer is not None else -1
        if row != self._hovered_row:
            for each in (row, self._hovered_row):
                top, height = self.rowViewportPosition(each), self.rowHeight(each)
                self.viewport().update(0, top, self.viewport().width(), height)
            self._hovered_row = row

    # Overrides of Qt methods

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._hover(event.position().toPoint())
        super().mouseMoveEvent(event)

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)
        super().leaveEvent(event)

    @override
    def scrollContentsBy(self, dx: int, dy: int) -> None:
        super().scrollContentsBy(dx, dy)
        self._hover(self._pointer)  # another row is there now

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ringed = is_by_keyboard(event)
        super().focusInEvent(event)
        self.viewport().update()

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ringed = False
        super().focusOutEvent(event)
        self.viewport().update()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        # Enter activates the item, not the window's default button.
        if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter} and not event.modifiers():
            if self.currentIndex().isValid():
                self.activated.emit(self.currentIndex())
            return
        super().keyPressEvent(event)

    @override
    def moveCursor(
        self, action: QAbstractItemView.CursorAction, modifiers: Qt.KeyboardModifier
    ) -> QModelIndex:
        # Rows are selected as a whole, so Home and End go to the first and last row. In
        # Qt's table they go to the first and last cell of the row.
        rows = self.model().rowCount()
        if rows and action in _ENDS:
            column = max(self.currentIndex().column(), 0)
            return self.model().index(rows - 1 if _ENDS[action] else 0, column)
        return super().moveCursor(action, modifiers)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        self._selected = []
        if self.model() is not None:
            chosen = self.selectionModel().selection()
            parts = [chosen.at(place) for place in range(chosen.size())]
            self._selected = [(part.top(), part.bottom()) for part in parts]
        model, painter = self.model(), QPainter(self.viewport())
        self._paint_cells(painter, event)
        if self._empty_text and model.rowCount() == 0:
            painter.setFont(self._theme.ui_font())
            painter.setPen(self._theme.color("text3"))
            area = self.viewport().rect().adjusted(12, 10, -12, -10)
            flags = Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignHCenter
            wrapped = flags.value | Qt.TextFlag.TextWordWrap.value
            painter.drawText(area, wrapped, self._empty_text)
        if self._ringed:
            draw_focus_ring(painter, self._theme, self.viewport().rect())
        painter.end()

    def _paint_cells(self, painter: QPainter, event: QPaintEvent) -> None:
        """Paint the cells of the rows that are to be painted.

        Qt's own table asks the style sheet for a background of each, which it has not, and that
        takes nearly as long as the cells.
        """
        delegate, model, area = self.itemDelegate(), self.model(), event.rect()
        if not isinstance(delegate, RowDelegate):
            return
        delegate.begin_painting()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        columns = [
            (column, self.columnViewportPosition(column), width)
            for column in range(self.horizontalHeader().count())
            if (width := self.columnWidth(column))
        ]
        first, last = self.rowAt(area.top()), self.rowAt(area.bottom())
        below = last + 1 if last >= 0 else model.rowCount()
        for row in range(first if first >= 0 else below, below):
            top, height = self.rowViewportPosition(row), self.rowHeight(row)
            line = QRect(area.left(), top, area.width(), height)
            if not event.region().intersects(line):
                continue
            selected = self.paints_selected(row)
            if selected or row == self._hovered_row:
                painter.fillRect(line, self._theme.color("sel" if selected else "hover"))
            for column, left, width in columns:
                painter.save()
                delegate.draw_cell(
                    painter,
                    QRect(left, top, width, height),
                    model.index(row, column),
                    selected=selected,
                )
                painter.restore()


class RowDelegate(QStyledItemDelegate):
    """Paints cells with the theme's fonts and colours; subclasses paint the contents.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.ui = theme.ui_font()
        self.bold = theme.ui_font(weight=600)
        self.mono = theme.mono_font()
        self.small_mono = theme.mono_font(10)

    def begin_painting(self) -> None:
        """Forget what was kept of rows, for their other cells, when they were last painted."""

    def draw_cell(
        self, painter: QPainter, rect: QRect, index: Index, *, selected: bool
    ) -> None:
        """Paint the contents of a cell over its background."""
        color = self.theme.color("selTxt" if selected else "text")
        text = str(index.data(Qt.ItemDataRole.DisplayRole) or "")
        self.draw_text(painter, rect.adjusted(6, 0, -4, 0), text, self.ui, color)

    @staticmethod
    def draw_text(
        painter: QPainter,
        rect: QRect,
        text: str,
        font: QFont,
        color: QColor,
        align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
        cut: Qt.TextElideMode = Qt.TextElideMode.ElideMiddle,
    ) -> None:
        """Paint one line, elided as `cut` says."""
        painter.setFont(font)
        painter.setPen(color)
        shown = _elided(text, font, rect.width(), cut)
        painter.drawText(rect, align | Qt.AlignmentFlag.AlignVCenter, shown)

    # Overrides of Qt methods

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(super().sizeHint(option, index).width(), ROW_HEIGHT)


@lru_cache(maxsize=8192)  # rows are repainted at every step
def _elided(text: str, font: QFont, width: int, cut: Qt.TextElideMode) -> str:
    return QFontMetrics(font).elidedText(text, cut, width)
