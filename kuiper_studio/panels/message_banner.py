"""A banner with an error and advice."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from engine.errors import capitalized
from kuiper_studio.icons import icon, pixmap
from kuiper_studio.item_models.text import tip_text, with_short_words

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent

    from kuiper_studio.theme import Theme

__all__ = ["MessageBanner", "make_close_button", "mark_differences", "paint_strip"]

_LONGEST_WORD: Final = 64  # characters
_SHAPE: Final = re.compile(r"(?<![\w×.])\d+(?:×\d+)+(?![\w×])")


def mark_differences(text: str, color: str) -> str:
    """Return the HTML of a sentence, with the differing dimensions of its shapes highlighted.

    Parameters
    ----------
    text : str
        Plain; shapes are written ``1×64×54×54``.
    color : str
        ``#RRGGBB`` of the highlighted dimensions.

    Returns
    -------
    str
        Shapes are compared with the others of their rank.
    """
    shapes = [match[0].split("×") for match in _SHAPE.finditer(text)]

    def differs(dims: list[str], place: int) -> bool:
        return len({s[place] for s in shapes if len(s) == len(dims)}) > 1

    def mark(match: re.Match[str]) -> str:
        dims = match[0].split("×")
        dims_html = [
            f'<b style="color:{color}">{dim}</b>' if differs(dims, place) else dim
            for place, dim in enumerate(dims)
        ]
        return f"<span style=\"font-family:'JetBrains Mono'\">{'×'.join(dims_html)}</span>"

    return _SHAPE.sub(mark, html.escape(text))


def make_close_button(theme: Theme) -> QToolButton:
    """The close button of a banner."""
    button = QToolButton()
    button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
    button.setIcon(icon("close", theme, "text"))
    button.setIconSize(QSize(14, 14))
    button.setToolTip("Close this message")
    button.setAccessibleName("Close this message")
    return button


def paint_strip(
    widget: QWidget, theme: Theme, background: str, edge: str, below: str = ""
) -> None:
    """Paint a banner in the colours of tokens; the line below has the edge's, or another."""
    painter = QPainter(widget)
    painter.fillRect(widget.rect(), theme.color(background))
    painter.fillRect(0, 0, 4, widget.height(), theme.color(edge))
    painter.fillRect(0, widget.height() - 1, widget.width(), 1, theme.color(below or edge))
    painter.end()


class MessageBanner(QFrame):
    """Title, reason and advice, with buttons below.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    closed
        The close button was pressed.
    """

    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self._texts = ("", "", "", "")
        self._icon = QLabel()
        self._title, self._reason, self._hint = QLabel(), QLabel(), QLabel()
        for label in (self._title, self._reason, self._hint):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.RichText)
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._buttons = QHBoxLayout()
        self._buttons.setSpacing(8)
        self._buttons.setContentsMargins(0, 6, 0, 0)
        self._buttons.addStretch(1)
        grid = QGridLayout(self)
        grid.setContentsMargins(20, 12, 14, 13)
        grid.setHorizontalSpacing(10)
        grid.setVerticalSpacing(3)
        grid.setColumnStretch(1, 1)
        grid.addWidget(self._icon, 0, 0, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self._title, 0, 1)
        close = make_close_button(theme)
        close.clicked.connect(self.closed)
        grid.addWidget(close, 0, 2, Qt.AlignmentFlag.AlignTop)
        grid.addWidget(self._reason, 1, 1)
        grid.addWidget(self._hint, 2, 1)
        grid.addLayout(self._buttons, 3, 1)
        theme.changed.connect(self._refresh)
        self.hide()

    def show_message(self, title: str, reason: str, hint: str = "", detail: str = "") -> None:
        """Show a message.

        Parameters
        ----------
        title, reason, hint : str
            A sentence each; `hint` says what to do and may be empty.
        detail : str
            Text beside the title in a quieter colour.
        """
        self._texts = (title, capitalized(reason), capitalized(hint), detail)
        self._refresh()
        self.show()

    def clear(self) -> None:
        """Hide the banner."""
        self._texts = ("", "", "", "")
        self.hide()

    def plain_text(self) -> str:
        """Return the message for the clipboard."""
        title, reason, hint, detail = self._texts
        first = f"{title} ({detail})" if detail else title
        return "\n".join(line for line in (first, reason, hint) if line)

    def add_button(self, text: str, role: str = "") -> QPushButton:
        """Add a button below the text."""
        button = QPushButton(text)
        button.setProperty("role", role)
        self._buttons.insertWidget(self._buttons.count() - 1, button)
        return button

    def _refresh(self) -> None:
        title, reason, hint, detail = (
            with_short_words(text, _LONGEST_WORD) for text in self._texts
        )
        theme = self.theme
        quiet = theme.color("text2").name()
        self._icon.setPixmap(pixmap("error", theme, "fail", 20, self.devicePixelRatioF()))
        head = f'<span style="font-size:14px;font-weight:600">{html.escape(title)}</span>'
        if detail:
            head += (
                f'<span style="font-size:14px;color:{quiet}"> · {html.escape(detail)}</span>'
            )
        self._title.setText(head)
        self._reason.setText(mark_differences(reason, theme.color("fail").name()))
        self._hint.setText(f'<span style="color:{quiet}">{html.escape(hint)}</span>')
        self._hint.setVisible(bool(hint))
        self.setAccessibleName(self.plain_text())
        is_whole = (title, reason, hint, detail) == self._texts
        self._reason.setToolTip("" if is_whole else tip_text(self.plain_text()))
        self.update()

    # Overrides of Qt methods

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        paint_strip(self, self.theme, "failBg", "fail")
