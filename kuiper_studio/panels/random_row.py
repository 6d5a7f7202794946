"""A line that marks a random operator and shows its seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from engine.errors import capitalized
from kuiper_studio.icons import pixmap

if TYPE_CHECKING:
    from kuiper_studio.theme import Theme

__all__ = ["RandomRow"]


class RandomRow(QWidget):
    """A die, ``Random, seed 7``, and a link to change it; hidden for all other operators.

    Signals
    -------
    seed_requested
        The user wants to choose the seed.
    """

    seed_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._die = QLabel()
        self._text = QLabel()
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setObjectName("propertiesRandom")
        self._text.setProperty("role", "secondary")
        change = QPushButton("Change…")
        change.setObjectName("propertiesSeed")
        change.setProperty("role", "link")
        change.setToolTip("Set the random seed")
        change.clicked.connect(self.seed_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(5)
        row.addWidget(self._die)
        row.addWidget(self._text)
        row.addSpacing(4)
        row.addWidget(change)
        row.addStretch(1)

    def show_text(self, text: str) -> None:
        """Show ``random, seed 7``; hide the line for ``""``."""
        self._text.setText(capitalized(text))
        scale = self.devicePixelRatioF()
        self._die.setPixmap(pixmap("dice", self._theme, "text2", 13, scale))
        self.setVisible(bool(text))
