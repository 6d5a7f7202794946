"""A section of a panel that folds under its header."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QPainter
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QTabBar, QVBoxLayout, QWidget
from typing_extensions import override

from kuiper_studio.focus_ring import draw_focus_ring
from kuiper_studio.icons import pixmap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QKeyEvent, QPaintEvent

    from kuiper_studio.theme import Theme

__all__ = ["Section", "SectionHead", "SectionTabs"]

HEAD_HEIGHT = 24


class SectionHead(QAbstractButton):
    """Header: chevron, bold title and monospaced suffix; checked while unfolded.

    Parameters
    ----------
    title : str
    theme : Theme
    """

    def __init__(self, title: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._suffix = ""
        self.setText(title)
        self.setAccessibleName(title)
        self.setCheckable(True)
        self.setChecked(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def set_suffix(self, text: str) -> None:
        """Change the text beside the title."""
        self._suffix = text
        self.setAccessibleDescription(text)
        self.update()

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(120, HEAD_HEIGHT)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        theme, area = self._theme, self.rect()
        painter = QPainter(self)
        painter.fillRect(area, theme.color("hover" if self.underMouse() else "window"))
        painter.setPen(theme.color("line"))
        painter.drawLine(area.topLeft(), area.topRight())
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        chevron = "chevron-down" if self.isChecked() else "chevron-right"
        drawn = pixmap(chevron, theme, "text2", 12, self.devicePixelRatioF())
        painter.drawPixmap(8, (area.height() - 12) // 2, drawn)
        bold = theme.ui_font(weight=600)
        painter.setFont(bold)
        painter.setPen(theme.color("text"))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(area.adjusted(26, 0, -8, 0), middle, self.text())
        left = 26 + QFontMetrics(bold).horizontalAdvance(self.text()) + 8
        mono = theme.mono_font()
        painter.setFont(mono)
        painter.setPen(theme.color("text2"))
        room = QRect(left, 0, area.width() - left - 8, area.height())
        suffix = QFontMetrics(mono).elidedText(
            self._suffix, Qt.TextElideMode.ElideRight, room.width()
        )
        painter.drawText(room, middle, suffix)
        if self.hasFocus():
            draw_focus_ring(painter, theme, area)
        painter.end()


class Section(QWidget):
    """A header and a body that it folds.

    Parameters
    ----------
    title : str
        ``""`` for a body without a header.
    body : QWidget
    theme : Theme
    """

    def __init__(
        self, title: str, body: QWidget, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.head = SectionHead(title, theme)
        self.body = body
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(body)
        self.head.setVisible(bool(title))
        self.head.toggled.connect(body.setVisible)

    def unfold(self) -> None:
        """Show the body."""
        self.head.setChecked(True)


class SectionTabs(QTabBar):
    """Tabs that lead to the sections of a panel.

    Parameters
    ----------
    titles : iterable of str

    Signals
    -------
    chosen : int
        The user chose the tab with the mouse or a key. Scrolling selects tabs, too, but
        must not scroll again.
    """

    chosen = Signal(int)

    def __init__(self, titles: Iterable[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDrawBase(False)
        self.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        self.setExpanding(False)
        for title in titles:
            self.addTab(title)
        self.tabBarClicked.connect(self.chosen)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        before = self.currentIndex()
        super().keyPressEvent(event)
        if self.currentIndex() != before:
            self.chosen.emit(self.currentIndex())
