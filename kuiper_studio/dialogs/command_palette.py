"""The command palette: finds commands, operators and operands by a few letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QListView, QVBoxLayout
from typing_extensions import override

from engine.text import format_count
from kuiper_studio.dialogs.palette_model import MAX_FOUND, PaletteModel
from kuiper_studio.dialogs.palette_row import HEADING, ROW, PaletteRowDelegate
from kuiper_studio.icons import mark_as_search
from kuiper_studio.item_models.text import elided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QWidget

    from engine.runtime import RuntimeOperand
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["CommandPalette"]

WIDTH: Final = 620
ROWS_SHOWN: Final = 13
_TOP: Final = 46
_RECENT: Final = 5


class CommandPalette(QFrame):
    """A box over the window; Enter runs, Esc closes.

    Parameters
    ----------
    session : StudioSession
        Its operators and operands are searched too, and shown when chosen.
    theme : Theme
    parent : QWidget
        The window that it opens over.
    """

    def __init__(self, session: StudioSession, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setObjectName("commandPalette")
        self.setAccessibleName("Command palette")
        self.setProperty("role", "popup")
        self._session = session
        self._theme = theme
        self._window = parent
        self._recent: list[QAction] = []
        self.model = PaletteModel(self)
        self.box = self._make_box()
        self.list = self._make_list()
        self._nothing = QLabel()
        self._nothing.setObjectName("paletteNothing")
        self._nothing.setProperty("role", "tertiary")
        self._nothing.setTextFormat(Qt.TextFormat.PlainText)
        self._nothing.setContentsMargins(14, 8, 14, 12)
        self._count = QLabel()
        self._count.setObjectName("paletteCount")
        self._count.setProperty("role", "caption")
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 8, 1, 1)
        column.setSpacing(0)
        top = QHBoxLayout()
        top.setContentsMargins(8, 0, 8, 6)
        top.addWidget(self.box)
        column.addLayout(top)
        column.addWidget(self.list)
        column.addWidget(self._nothing)
        column.addWidget(self._make_foot())

    def open_with(self, actions: Sequence[QAction]) -> None:
        """Open with an empty box over the parent window.

        Parameters
        ----------
        actions : sequence of QAction
            Commands to search, beside the session's operators and operands.
        """
        self.model.set_sources(actions, self._session.graph, self._recent)
        self.box.clear()
        window = self._window.window()
        self.setFixedWidth(min(WIDTH, max(280, window.width() - 40)))
        self._on_text_changed("")
        left = (window.width() - self.width()) // 2
        self.move(window.mapToGlobal(QPoint(left, _TOP)))
        self.show()
        self.box.setFocus()

    def run_selected(self) -> None:
        """Run the chosen entry, unless it is disabled."""
        index = self.list.currentIndex()
        if not index.isValid():
            return
        entry = self.model.entry(index.row())
        if not entry.enabled:
            return
        # Close the popup first: a command may open a dialog.
        self.hide()
        if entry.action is not None:
            self._remember(entry.action)
            entry.action.trigger()
        elif entry.operator is not None:
            self._session.select(entry.operator.name)
        elif entry.operand is not None:
            self._show_operand(entry.operand)

    def _remember(self, action: QAction) -> None:
        others = [known for known in self._recent if known is not action]
        self._recent = [action, *others][:_RECENT]

    def _show_operand(self, operand: RuntimeOperand) -> None:
        if operand.producer is not None:
            self._session.select(operand.producer.name)
        self._session.show_operand(operand.name)

    # Building

    def _make_box(self) -> QLineEdit:
        box = QLineEdit()
        box.setObjectName("paletteBox")
        box.setPlaceholderText("Search commands, operators and operands")
        box.setAccessibleName("Search commands, operators and operands")
        mark_as_search(box, self._theme)
        box.textChanged.connect(self._on_text_changed)
        box.installEventFilter(self)
        return box

    def _make_list(self) -> QListView:
        view = QListView()
        view.setObjectName("paletteList")
        view.setAccessibleName("Results")
        view.setModel(self.model)
        view.setItemDelegate(PaletteRowDelegate(self._theme, view))
        view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        view.setMouseTracking(True)
        view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.entered.connect(self._on_entered)
        view.clicked.connect(self._on_clicked)
        return view

    def _make_foot(self) -> QFrame:
        foot = QFrame()
        foot.setProperty("role", "foot")
        foot.setFixedHeight(26)
        row = QHBoxLayout(foot)
        row.setContentsMargins(14, 0, 14, 0)
        hint = QLabel("↑↓ choose    Enter run    #12 operator 12    @ operators    > commands")
        hint.setProperty("role", "caption")
        row.addWidget(hint)
        row.addStretch(1)
        row.addWidget(self._count)
        return foot

    # Answers

    @Slot(str)
    def _on_text_changed(self, text: str) -> None:
        self.model.find(text)
        count, found = self.model.rowCount(), self.model.found
        self.list.setVisible(count > 0)
        self.list.setFixedHeight(self._list_height())
        self._nothing.setVisible(count == 0)
        self._nothing.setText(
            f"Nothing matches “{elided(text.strip(), 40)}”. Try part of a command, or of an "
            "operator's type or name."
        )
        shown = f"first {MAX_FOUND} of " if found > MAX_FOUND else ""
        self._count.setText(f"{shown}{format_count(found)} found" if text.strip() else "")
        # Enter must not run something else where the best match is not available now.
        if count and (not text.strip() or self.model.entry(0).enabled):
            self._choose(range(count))
        self.list.scrollToTop()
        self.adjustSize()

    def _list_height(self) -> int:
        """Return the height of all rows, or the available height."""
        rows = (self.model.entry(row) for row in range(self.model.rowCount()))
        wanted = sum(HEADING if entry.is_heading else ROW for entry in rows)
        room = self._window.window().height() - _TOP - 100
        return min(wanted, ROWS_SHOWN * ROW, max(room, 3 * ROW))

    def _choose(self, rows: Sequence[int]) -> None:
        """Select the first of some rows that is enabled."""
        enabled = next((row for row in rows if self.model.entry(row).enabled), None)
        if enabled is not None:
            self.list.setCurrentIndex(self.model.index(enabled))

    @Slot(QModelIndex)
    def _on_entered(self, index: QModelIndex) -> None:
        if self.model.entry(index.row()).enabled:
            self.list.setCurrentIndex(index)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        if self.model.entry(index.row()).enabled:
            self.list.setCurrentIndex(index)
            self.run_selected()

    def _move(self, step: int) -> None:
        """Move the selection: a step wraps around, a page stops at the ends."""
        count = self.model.rowCount()
        row = self.list.currentIndex().row()
        if not count:
            return
        if abs(step) == 1:
            row = max(row, 0) if step < 0 else row  # from no row up to the last one
            self._choose([(row + step * turn) % count for turn in range(1, count + 1)])
            if self.list.currentIndex().row() <= 1:
                self.list.scrollToTop()  # scrolls to the heading
            return
        target = min(max(0, row + step), count - 1)
        onward, back = range(target, count), range(target, -1, -1)
        self._choose([*onward, *back] if step > 0 else [*back, *onward])

    # Overrides of Qt methods

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is not self.box or not isinstance(event, QKeyEvent):
            return super().eventFilter(watched, event)
        if event.type() is not QEvent.Type.KeyPress:
            return super().eventFilter(watched, event)
        steps = {
            Qt.Key.Key_Down: 1,
            Qt.Key.Key_Up: -1,
            Qt.Key.Key_PageDown: ROWS_SHOWN - 1,
            Qt.Key.Key_PageUp: 1 - ROWS_SHOWN,
        }
        key = Qt.Key(event.key())
        if key in steps:
            self._move(steps[key])
        elif key in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            self.run_selected()
        elif key is Qt.Key.Key_Escape:
            self.hide()
        else:
            return super().eventFilter(watched, event)
        return True
