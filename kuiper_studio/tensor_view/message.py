"""The message in place of a picture: a number, a text, or why there is no value."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from kuiper_studio.elided_label import WrappedLabel
from kuiper_studio.theme import restyle

__all__ = ["Message"]

_LONGEST_WORD: Final = 48  # characters


class Message(QFrame):
    """A centred headline and a line below it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "base")
        self.setObjectName("tensorMessage")
        self.title = WrappedLabel("title", _LONGEST_WORD)
        self.detail = WrappedLabel("secondary", _LONGEST_WORD)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 12, 24, 12)
        column.setSpacing(6)
        column.addStretch(1)
        for label in (self.title, self.detail):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            column.addWidget(label)
        column.addStretch(1)

    def show_text(self, title: str, detail: str = "", *, number: bool = False) -> None:
        """Show two lines; a number has a large font."""
        self.title.setText(title)
        self.detail.setText(detail)
        self.detail.setVisible(bool(detail))
        face = 'font-family: "JetBrains Mono", monospace; font-size: 28px;' if number else ""
        restyle(self.title, face)
        self.setAccessibleName(f"{title}. {detail}")
