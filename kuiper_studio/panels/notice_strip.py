"""A strip over the centre that tells something in a line and offers what to do."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget
from typing_extensions import override

from kuiper_studio.icons import pixmap
from kuiper_studio.item_models.text import tip_text, with_short_words
from kuiper_studio.panels.message_banner import make_close_button, paint_strip

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from kuiper_studio.theme import Theme

__all__ = ["NoticeStrip"]

_LONGEST_WORD: Final = 64  # characters


class NoticeStrip(QFrame):
    """Icon, text, buttons and a close button in a row.

    Parameters
    ----------
    theme : Theme

    Attributes
    ----------
    close_button : QToolButton
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._notice = ("", "")
        self._icon, self._text = QLabel(), QLabel()
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.RichText)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.close_button = make_close_button(theme)
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(20, 5, 14, 6)
        self._row.setSpacing(10)
        self._row.addWidget(self._icon)
        self._row.addWidget(self._text, 1)
        self._row.addWidget(self.close_button)
        theme.changed.connect(self._show_icon)
        self._show_icon()
        self.hide()

    def add_button(self, text: str) -> QPushButton:
        """Add a button before the close button."""
        button = QPushButton(text)
        self._row.insertWidget(self._row.count() - 1, button)
        return button

    def show_notice(self, title: str, text: str) -> None:
        """Show a title in bold and a text, of a sentence or two each; the title has no stop."""
        if (title, text) != self._notice:
            self._notice = title, text
            shown = (
                with_short_words(title, _LONGEST_WORD),
                with_short_words(text, _LONGEST_WORD),
            )
            self._text.setText(f"<b>{html.escape(shown[0])}.</b> {html.escape(shown[1])}")
            self._text.setToolTip("" if shown == self._notice else tip_text(self.plain_text()))
            self.setAccessibleName(self.plain_text())
        self.show()

    def clear(self) -> None:
        """Show nothing."""
        self._notice = ("", "")
        self.hide()

    def plain_text(self) -> str:
        """The text of the notice; ``""`` for none."""
        title, text = self._notice
        return f"{title}. {text}" if title else ""

    @Slot()
    def _show_icon(self) -> None:
        scale = self.devicePixelRatioF()
        self._icon.setPixmap(pixmap("warning", self._theme, "warn", 16, scale))
        self.update()

    # Override of a Qt method

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        paint_strip(self, self._theme, "curBg", "warn")
