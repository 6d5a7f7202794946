"""One recent model on the start page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QFontMetrics, QGuiApplication, QPainter
from PySide6.QtWidgets import QAbstractButton, QMenu, QSizePolicy, QToolButton, QWidget
from typing_extensions import override

from engine.paths import exists
from engine.text import format_count
from kuiper_studio.focus_ring import draw_focus_ring
from kuiper_studio.icons import icon, pixmap
from kuiper_studio.item_models.text import tip_text
from kuiper_studio.menus import make_menu
from kuiper_studio.panels.recents import RecentModel, Recents, folder_text, when_text
from kuiper_studio.resource_paths import home_folder

if TYPE_CHECKING:
    from PySide6.QtGui import QContextMenuEvent, QPaintEvent, QResizeEvent

    from kuiper_studio.theme import Theme

__all__ = ["RecentRow"]

HEIGHT = 40


class RecentRow(QAbstractButton):
    """Name, folder, size and time of a model; a pin at the right.

    Parameters
    ----------
    entry : RecentModel
    recents : Recents
        List in which the pin button pins the entry.
    theme : Theme

    Signals
    -------
    chosen : str
        Its path; not emitted for a missing file.
    """

    chosen = Signal(str)

    def __init__(
        self, entry: RecentModel, recents: Recents, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.entry = entry
        self._recents = recents
        self._theme = theme
        self.missing = not exists(entry.path)
        self._name = Path(entry.path).name
        self._folder = folder_text(entry.path, home_folder())
        self._size = (
            "file not found" if self.missing else format_count(entry.operators, "operator")
        )
        self._when = when_text(entry.opened, recents.now())
        self.setToolTip(tip_text(entry.path))
        self.setAccessibleName(f"{self._name} in {self._folder}, {self._size}, {self._when}")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setCursor(
            Qt.CursorShape.ArrowCursor if self.missing else Qt.CursorShape.PointingHandCursor
        )
        self.pin = self._make_pin()
        self.clicked.connect(self._choose)
        theme.changed.connect(self.update)

    def _make_pin(self) -> QToolButton:
        pin = QToolButton(self)
        pin.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        pinned = self.entry.pinned
        name, token = ("pin-filled", "focus") if pinned else ("pin", "text3")
        pin.setIcon(icon(name, self._theme, token))
        pin.setIconSize(QSize(15, 15))
        tip = f"{'Unpin' if pinned else 'Pin'} {self._name}"
        pin.setToolTip(tip_text(tip))
        pin.setAccessibleName(tip)
        pin.setCursor(Qt.CursorShape.ArrowCursor)
        pin.clicked.connect(self._toggle_pin)
        return pin

    @Slot()
    def _choose(self) -> None:
        if not self.missing:
            self.chosen.emit(self.entry.path)

    @Slot()
    def _toggle_pin(self) -> None:
        self._recents.set_pinned(self.entry.path, pinned=not self.entry.pinned)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(400, HEIGHT)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        size = self.pin.sizeHint()
        self.pin.setGeometry(
            self.width() - size.width() - 8, (HEIGHT - size.height()) // 2,
            size.width(), size.height(),
        )  # fmt: skip

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = self._make_menu()
        menu.popup(event.globalPos())

    def _make_menu(self) -> QMenu:
        menu = make_menu(self, once=True)
        menu.addAction(self.pin.toolTip(), self._toggle_pin)
        menu.addAction("Remove from the list", lambda: self._recents.remove(self.entry.path))
        path = self.entry.path
        menu.addAction("Copy path", lambda: QGuiApplication.clipboard().setText(path))
        return menu

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        theme, area = self._theme, self.rect()
        painter = QPainter(self)
        if self.underMouse() and not self.missing:
            painter.fillRect(area, theme.color("hover"))
        painter.fillRect(0, 0, self.width(), 1, theme.color("line"))
        glyph, token = ("warning", "text3") if self.missing else ("file", "text")
        drawn = pixmap(glyph, theme, token, 16, self.devicePixelRatioF())
        painter.drawPixmap(10, (HEIGHT - 16) // 2, drawn)
        middle = self.width() * 340 // 622
        name_token = "text3" if self.missing else "text"
        self._write(
            painter, QRect(36, 4, middle - 44, 16), self._name, theme.mono_font(12), name_token
        )
        self._write(
            painter, QRect(36, 21, middle - 44, 14), self._folder, theme.ui_font(11), "text3"
        )
        plain = theme.ui_font()
        self._write(painter, QRect(middle, 0, 130, HEIGHT), self._size, plain, "text2")
        right = QRect(middle + 100, 0, self.width() - middle - 144, HEIGHT)
        self._write(painter, right, self._when, plain, "text2", Qt.AlignmentFlag.AlignRight)
        if self.hasFocus():
            draw_focus_ring(painter, theme, area)
        painter.end()

    def _write(
        self,
        painter: QPainter,
        area: QRect,
        text: str,
        font: QFont,
        token: str,
        align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft,
    ) -> None:
        painter.setFont(font)
        painter.setPen(self._theme.color(token))
        shown = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideMiddle, area.width())
        painter.drawText(area, align | Qt.AlignmentFlag.AlignVCenter, shown)
