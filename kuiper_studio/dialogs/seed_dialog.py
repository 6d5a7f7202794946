"""Ask for the seed that operators that are random draw by."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Slot
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from engine.inputs import parse_seed
from kuiper_studio.icons import icon

if TYPE_CHECKING:
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["SeedDialog"]

_WIDTH: Final = 420
_ANY_BELOW: Final = 1_000_000  # seeds that the die gives are easy to write down


class SeedDialog(QDialog):
    """Asks for a seed.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Attributes
    ----------
    seed : int
        What was asked for; of use once the dialog is accepted.
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("seedDialog")
        self.setWindowTitle("Random seed")
        self.seed = session.seed
        self._error = QLabel(" ")  # keeps its line free
        self._error.setObjectName("seedError")
        self._error.setProperty("role", "error")
        self._error.setWordWrap(True)
        self.number = QLineEdit(str(session.seed))
        self.number.setAccessibleName("Random seed")
        self.number.selectAll()
        self._ok = QPushButton("Use seed")
        self._ok.setProperty("role", "primary")
        self._ok.setDefault(True)
        self._build(_purpose(session), theme)
        self.number.textChanged.connect(self._check)
        self._ok.clicked.connect(self.accept)

    def _build(self, purpose: str, theme: Theme) -> None:
        explained = QLabel(purpose)
        explained.setObjectName("seedPurpose")
        explained.setWordWrap(True)
        any_seed = QToolButton()
        any_seed.setIcon(icon("dice", theme, "text"))
        any_seed.setIconSize(QSize(16, 16))
        any_seed.setToolTip("Any seed")
        any_seed.setAccessibleName("Any seed")
        any_seed.clicked.connect(self._choose_any)
        cancel = QPushButton("Cancel")
        cancel.clicked.connect(self.reject)
        entry = QHBoxLayout()
        entry.setSpacing(6)
        entry.addWidget(self.number, 1)
        entry.addWidget(any_seed)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(cancel)
        buttons.addWidget(self._ok)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(8)
        column.addWidget(explained)
        column.addLayout(entry)
        column.addWidget(self._error)
        column.addLayout(buttons)
        self.setFixedWidth(_WIDTH)

    @Slot()
    def _choose_any(self) -> None:
        self.number.setText(str(secrets.randbelow(_ANY_BELOW)))

    @Slot()
    def _check(self) -> None:
        try:
            self.seed = parse_seed(self.number.text().strip())
        except ValueError as exc:
            sentence = str(exc)
            self._error.setText(f"{sentence[:1].upper()}{sentence[1:]}.")
            self._ok.setEnabled(False)
        else:
            self._error.setText(" ")
            self._ok.setEnabled(True)


def _purpose(session: StudioSession) -> str:
    operators = session.graph.operators if session.graph is not None else ()
    count = sum(operator.random for operator in operators)
    here = {0: "No operator of this model is random.", 1: "One operator here is random."}.get(
        count, f"{count} operators here are random."
    )
    return (
        f"{here} The same seed gives the same numbers each time, also after stepping back. "
        "They are NumPy's: PyTorch draws others from the same seed."
    )
