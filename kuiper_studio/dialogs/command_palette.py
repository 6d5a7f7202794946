"""The command palette: every command and operator, found by a few letters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QRect, QSize, Qt, Slot
from PySide6.QtGui import (
    QColor,
    QFont,
    QFontMetricsF,
    QKeyEvent,
    QPainter,
    QPen,
    QTextCharFormat,
    QTextLayout,
    QTextOption,
)
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLineEdit,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.dialogs.palette_model import (
    Index,
    PaletteEntry,
    PaletteModel,
    PaletteRole,
)
from kuiper_studio.families import family_of
from kuiper_studio.icons import icon

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QAction

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["CommandPalette"]

WIDTH: Final = 560
ROW: Final = 28
ROWS_SHOWN: Final = 12


class _EntryDelegate(QStyledItemDelegate):
    """Text with the matched letters strong, group beside it, shortcut at the right."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        return QSize(200, ROW)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        theme = self._theme
        rect: QRect = option.rect
        entry: PaletteEntry = index.data(PaletteRole.ENTRY)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if selected:
            painter.fillRect(rect, theme.color("sel"))
        alpha = 1.0 if entry.enabled else 0.55
        main = theme.color(
            "selTxt" if selected else "text" if entry.enabled else "text3", alpha
        )
        quiet = theme.color("selTxt" if selected else "text3", alpha)
        self._draw_mark(painter, rect, entry, main)
        right = self._draw_shortcut(painter, rect, entry.shortcut, quiet)
        font = theme.mono_font(12) if entry.operator is not None else theme.ui_font()
        left = rect.left() + 36
        strong = theme.color("selTxt" if selected else "link", alpha)
        width = self._draw_text(painter, QPoint(left, rect.top()), entry, font, (main, strong))
        small = theme.ui_font(11)
        painter.setFont(small)
        painter.setPen(quiet)
        beside = QRect(left + width + 10, rect.top(), right - left - width - 16, rect.height())
        shown = painter.fontMetrics().elidedText(
            entry.group, Qt.TextElideMode.ElideMiddle, max(0, beside.width())
        )
        painter.drawText(beside, Qt.AlignmentFlag.AlignVCenter, shown)
        painter.restore()

    def _draw_mark(
        self, painter: QPainter, rect: QRect, entry: PaletteEntry, color: QColor
    ) -> None:
        """Icon of a command, family bar of an operator."""
        if entry.operator is not None:
            token = family_of(entry.operator.type).token
            bar = QRect(rect.left() + 20, rect.center().y() - 6, 3, 14)
            painter.fillRect(bar, self._theme.color(token))
        elif entry.action is not None and not entry.action.icon().isNull():
            painter.setOpacity(color.alphaF())
            entry.action.icon().paint(painter, rect.left() + 12, rect.top() + 6, 16, 16)
            painter.setOpacity(1)

    def _draw_shortcut(self, painter: QPainter, rect: QRect, keys: str, color: QColor) -> int:
        """Key cap; returns where it begins."""
        if not keys:
            return rect.right() - 10
        painter.setFont(self._theme.ui_font(11))
        width = painter.fontMetrics().horizontalAdvance(keys) + 12
        cap = QRect(rect.right() - 12 - width, rect.top() + 5, width, ROW - 11)
        painter.setPen(QPen(color, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(cap, 3, 3)
        painter.drawText(cap, Qt.AlignmentFlag.AlignCenter, keys)
        return cap.left()

    @staticmethod
    def _draw_text(
        painter: QPainter,
        origin: QPoint,
        entry: PaletteEntry,
        font: QFont,
        colors: tuple[QColor, QColor],
    ) -> int:
        """Draw the text, matched letters in the second colour; returns its width."""
        layout = QTextLayout(entry.text, font)
        layout.setTextOption(QTextOption(Qt.AlignmentFlag.AlignLeft))
        strong = QTextCharFormat()
        strong.setForeground(colors[1])
        strong.setFontWeight(QFont.Weight.DemiBold)
        ranges = []
        for place in entry.places:
            part = QTextLayout.FormatRange()
            part.start, part.length, part.format = place, 1, strong
            ranges.append(part)
        layout.setFormats(ranges)
        layout.beginLayout()
        line = layout.createLine()
        line.setLineWidth(WIDTH)
        layout.endLayout()
        painter.setPen(colors[0])
        height = QFontMetricsF(font).height()
        layout.draw(painter, QPoint(origin.x(), round(origin.y() + (ROW - height) / 2)))
        return round(line.naturalTextWidth())


class CommandPalette(QFrame):
    """A box over the window; Enter runs, Esc closes.

    Parameters
    ----------
    session : StudioSession
        Its operators can be found too, and are selected when chosen.
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
        self.model = PaletteModel(self)
        self.box = QLineEdit()
        self.box.setObjectName("paletteBox")
        self.box.setPlaceholderText("Command or operator; > commands only, @ operators only")
        self.box.setAccessibleName("Command or operator")
        self.box.addAction(
            icon("search", theme, "text3"), QLineEdit.ActionPosition.LeadingPosition
        )
        self.box.textChanged.connect(self._on_text_changed)
        self.box.installEventFilter(self)
        self.list = self._make_list()
        self._nothing = QLabel("Nothing fits. @ finds operators, > commands.")
        self._nothing.setProperty("role", "tertiary")
        self._nothing.setContentsMargins(12, 6, 12, 8)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 8, 1, 4)
        column.setSpacing(6)
        top = QVBoxLayout()
        top.setContentsMargins(8, 0, 8, 0)
        top.addWidget(self.box)
        column.addLayout(top)
        column.addWidget(self.list)
        column.addWidget(self._nothing)

    def open_with(self, actions: Sequence[QAction]) -> None:
        """Open with an empty box over the parent window."""
        graph = self._session.graph
        self.model.set_sources(actions, graph.operators if graph is not None else ())
        self.box.clear()
        self._on_text_changed("")
        window = self._window.window()
        self.setFixedWidth(min(WIDTH, max(280, window.width() - 40)))
        self.move(window.mapToGlobal(QPoint((window.width() - self.width()) // 2, 40)))
        self.show()
        self.box.setFocus()

    def run_selected(self) -> None:
        """Run the chosen entry; one that is not available does nothing."""
        index = self.list.currentIndex()
        if not index.isValid():
            return
        entry = self.model.entry(index.row())
        if not entry.enabled:
            return
        # First away with the popup: a command may open a dialog.
        self.hide()
        if entry.action is not None:
            entry.action.trigger()
        elif entry.operator is not None:
            self._session.select(entry.operator.name)

    def _make_list(self) -> QListView:
        view = QListView()
        view.setObjectName("paletteList")
        view.setAccessibleName("What fits")
        view.setModel(self.model)
        view.setItemDelegate(_EntryDelegate(self._theme, view))
        view.setUniformItemSizes(True)
        view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        view.setMouseTracking(True)
        view.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.entered.connect(view.setCurrentIndex)
        view.clicked.connect(self._on_clicked)
        return view

    @Slot(str)
    def _on_text_changed(self, text: str) -> None:
        self.model.find(text)
        count = self.model.rowCount()
        self.list.setVisible(count > 0)
        self._nothing.setVisible(count == 0)
        self.list.setFixedHeight(min(count, ROWS_SHOWN) * ROW + 2)
        enabled = (row for row in range(count) if self.model.entry(row).enabled)
        self.list.setCurrentIndex(self.model.index(next(enabled, 0)))
        self.list.scrollToTop()
        self.adjustSize()

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        self.list.setCurrentIndex(index)
        self.run_selected()

    def _move(self, step: int) -> None:
        count = self.model.rowCount()
        if not count:
            return
        row = self.list.currentIndex().row()
        # One step goes round; a page stops at the ends.
        row = (row + step) % count if abs(step) == 1 else min(max(0, row + step), count - 1)
        self.list.setCurrentIndex(self.model.index(row))

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
            Qt.Key.Key_PageDown: ROWS_SHOWN,
            Qt.Key.Key_PageUp: -ROWS_SHOWN,
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
