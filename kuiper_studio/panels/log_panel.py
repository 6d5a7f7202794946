"""The log panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QRect, QSize, Slot
from PySide6.QtGui import QAction, QGuiApplication, QPainter
from PySide6.QtWidgets import QHeaderView, QVBoxLayout, QWidget
from typing_extensions import override

from kuiper_studio.icons import icon
from kuiper_studio.item_models import LEVEL_ROLE, LogColumn, LogModel
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.table import Index, RowDelegate, Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["LogPanel"]

_TOKENS: Final = {"error": "fail", "warning": "warn"}
_ROW: Final = 20


class _LogDelegate(RowDelegate):
    """Paints time, level in its colour, and text."""

    @override
    def draw_cell(
        self, painter: QPainter, rect: QRect, index: Index, *, selected: bool
    ) -> None:
        level = index.data(LEVEL_ROLE)
        column = index.column()
        font, token = self.mono, "text2"
        if column == LogColumn.TEXT:
            token = "text"  # noqa: S105 - a colour
        elif column == LogColumn.LEVEL and level in _TOKENS:
            font, token = self.theme.mono_font(weight=700), _TOKENS[level]
        color = self.theme.color("selTxt" if selected else token)
        left = 12 if column == LogColumn.TIME else 4
        self.draw_text(painter, rect.adjusted(left, 0, -6, 0), index.data(), font, color)


class _LogTable(Table):
    """The table of lines; Ctrl+C copies the selected one."""

    def copy(self) -> None:
        """Copy the selected line."""
        if self.currentIndex().isValid():
            row = self.currentIndex().row()
            texts = [self.model().index(row, c).data() for c in LogColumn]
            QGuiApplication.clipboard().setText("\t".join(texts))


class LogPanel(Panel):
    """The session's log, the latest line in view.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("log", "Log", session, theme, parent)
        self.model = LogModel(session, self)
        self._table: _LogTable | None = None  # made when the log is first shown
        self._copy = self._make_action("copy", "Copy all lines", self._copy_all)
        self._clear = self._make_action("clear", "Clear the log", self.model.clear)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._at_end = True
        self.model.rowsInserted.connect(self._on_count_changed)
        self.model.rowsRemoved.connect(self._on_count_changed)
        self.model.modelReset.connect(self._on_count_changed)
        self._on_count_changed()

    @property
    def table(self) -> _LogTable:
        """The lines."""
        return self._table or self._make_table()

    def _make_table(self) -> _LogTable:
        table = self._table = _LogTable(self.theme, self)
        table.setObjectName("logTable")
        table.setAccessibleName("Log")
        table.setModel(self.model)
        table.setItemDelegate(_LogDelegate(self.theme, table))
        table.show_header(shown=False)
        table.set_row_height(_ROW)
        table.set_empty_text("The log is empty.")
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.resizeSection(LogColumn.TIME, 100)
        header.resizeSection(LogColumn.LEVEL, 66)
        header.setSectionResizeMode(LogColumn.TEXT, QHeaderView.ResizeMode.Stretch)
        self._column.addWidget(table)
        bar = table.verticalScrollBar()
        bar.valueChanged.connect(self._on_scrolled)
        bar.rangeChanged.connect(self._on_range_changed)
        return table

    def _make_action(self, icon_name: str, text: str, slot: Callable[[], None]) -> QAction:
        action = QAction(icon(icon_name, self.theme), text, self)
        action.setToolTip(text)
        action.triggered.connect(slot)
        return action

    @Slot()
    def _on_count_changed(self) -> None:
        count = self.model.rowCount()
        self.set_suffix(str(count) if count else "")

    @Slot(int)
    def _on_scrolled(self, position: int) -> None:
        self._at_end = position >= self.table.verticalScrollBar().maximum()

    @Slot(int, int)
    def _on_range_changed(self, _low: int, high: int) -> None:
        # Stay at the end unless the user has scrolled back.
        if self._at_end:
            self.table.verticalScrollBar().setValue(high)

    def _copy_all(self) -> None:
        QGuiApplication.clipboard().setText(self.model.text())

    # Overrides of Qt methods

    @override
    def title_actions(self) -> tuple[QAction, ...]:
        return (self._copy, self._clear)

    @override
    def setVisible(self, visible: bool) -> None:
        if visible and self._table is None:
            self._make_table()
        super().setVisible(visible)

    @override
    def sizeHint(self) -> QSize:
        return QSize(600, 108)
