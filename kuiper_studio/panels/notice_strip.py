"""A strip over the centre that tells something in a line and offers what to do."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QFont, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget
from typing_extensions import override

from kuiper_studio.icons import pixmap
from kuiper_studio.item_models.text import tip_text, with_short_words
from kuiper_studio.panels.message_banner import make_close_button, paint_strip

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from kuiper_studio.theme import Theme

__all__ = ["NoticeStrip"]

_LONGEST_WORD: Final = 64  # characters
_MOST_LINES: Final = 2
_MORE: Final = "more…"
_LESS: Final = "less"


class _FoldedText(QLabel):
    """A title in bold and a text, on two lines at most until the user wants more."""

    def __init__(self) -> None:
        super().__init__()
        self._title = self._body = ""
        self._is_unfolded = False
        self.setWordWrap(True)
        self.setTextFormat(Qt.TextFormat.RichText)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.linkActivated.connect(self._toggle)

    def show_parts(self, title: str, body: str) -> None:
        """Show another title and text, folded."""
        self._title, self._body, self._is_unfolded = title, body, False
        self._fold()

    @Slot(str)
    def _toggle(self, _link: str) -> None:
        self._is_unfolded = not self._is_unfolded
        self._fold()

    def _fold(self) -> None:
        whole, link = f"{self._title} {self._body}", ""
        if not self._fits(whole):
            link = _LESS if self._is_unfolded else _MORE
            if not self._is_unfolded:
                whole = self._cut(whole)
        title, body = whole[: len(self._title)], whole[len(self._title) :]
        html_link = f' <a href="#">{link}</a>' if link else ""
        shown = f"<b>{html.escape(title)}</b>{html.escape(body)}{html_link}"
        if shown != self.text():
            self.setText(shown)

    def _cut(self, whole: str) -> str:
        """Return the first words of a text, as many as there is room for before the link."""
        words = whole.split(" ")
        few, many = 0, len(words)
        while many - few > 1:
            middle = (few + many) // 2
            fits = self._fits(f"{' '.join(words[:middle])} … {_MORE}")
            few, many = (middle, many) if fits else (few, middle)
        return f"{' '.join(words[:few])} …"

    def _fits(self, text: str) -> bool:
        """Return whether a text takes no more lines than it may, the title in bold."""
        bold = QTextLayout.FormatRange()
        bold.start, bold.length = 0, min(len(self._title), len(text))
        look = QTextCharFormat()
        look.setFontWeight(QFont.Weight.Bold)
        bold.format = look
        layout = QTextLayout(text, self.font())
        layout.setFormats([bold])
        layout.beginLayout()
        for _ in range(_MOST_LINES):
            line = layout.createLine()
            if line.isValid():
                line.setLineWidth(self.contentsRect().width())
        fits = not layout.createLine().isValid()
        layout.endLayout()
        return fits

    # Override of a Qt method

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold()


class NoticeStrip(QFrame):
    """Icon, text, buttons and a close button in a row.

    A text of more than two lines ends with a link to the rest.

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
        self._icon, self._text = QLabel(), _FoldedText()
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
            self._text.show_parts(f"{shown[0]}.", shown[1])
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
