"""Base of small dialogs: an entry, a line for its error, OK and Cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtWidgets import QLayout

__all__ = ["Missing", "Question", "show_problem"]


class Missing(str):
    """A sentence that asks for what is still to be chosen: nothing is wrong yet."""

    __slots__ = ()


def show_problem(label: QLabel, sentence: str) -> None:
    """Show why a dialog cannot go on, in the colour of errors unless it is `Missing`."""
    role = "secondary" if isinstance(sentence, Missing) else "error"
    if label.property("role") != role:
        label.setProperty("role", role)
        label.style().unpolish(label)
        label.style().polish(label)
    label.setText(sentence)


class Question(QDialog):
    """A small dialog; subclasses make its entry and check it.

    Parameters
    ----------
    name : str
        Object name of the dialog is ``nameDialog``, that of the line for errors ``nameError``.
    title : str
    width : int
    """

    def __init__(
        self, name: str, title: str, width: int, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(f"{name}Dialog")
        self.setWindowTitle(title)
        self.setFixedWidth(width)
        self._error = QLabel(" ")  # keeps the height of the line
        self._error.setObjectName(f"{name}Error")
        self._error.setProperty("role", "error")
        self._error.setWordWrap(True)
        self.ok = QPushButton()
        self.ok.setProperty("role", "primary")
        self.ok.setDefault(True)
        self.ok.clicked.connect(self.accept)

    def build(self, parts: Sequence[QWidget | QLayout]) -> None:
        """Stack parts, the line for errors and the buttons."""
        cancel = QPushButton("Cancel")
        cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.ok)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(8)
        for part in (*parts, self._error, buttons):
            if isinstance(part, QWidget):
                column.addWidget(part)
            else:
                column.addLayout(part)

    def show_error(self, sentence: str) -> None:
        """Show an error, or what is `Missing`, and disable OK; ``""`` for none."""
        show_problem(self._error, sentence or " ")
        self.ok.setEnabled(not sentence)
