"""Asks for the random seed."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from engine.errors import capitalized
from engine.inputs import parse_seed
from engine.text import format_count
from kuiper_studio.dialogs.question import Missing, Question
from kuiper_studio.icons import icon

if TYPE_CHECKING:
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["SeedDialog"]

_WIDTH: Final = 420
_ANY_BELOW: Final = 1_000_000  # random seeds of few digits are easy to write down


class SeedDialog(Question):
    """Asks for a seed.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Attributes
    ----------
    seed : int
        The chosen seed; valid once the dialog is accepted.
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("seed", "Random seed", _WIDTH, parent)
        self.seed = session.seed
        self.number = QLineEdit(str(session.seed))
        self.number.setAccessibleName("Random seed")
        self.number.selectAll()
        self.ok.setText("Use seed")
        self._arrange(_purpose(session), theme)
        self.number.textChanged.connect(self._check)

    def _arrange(self, purpose: str, theme: Theme) -> None:
        explained = QLabel(purpose)
        explained.setObjectName("seedPurpose")
        explained.setWordWrap(True)
        any_seed = QToolButton()
        any_seed.setIcon(icon("dice", theme, "text"))
        any_seed.setIconSize(QSize(16, 16))
        any_seed.setToolTip("Random seed")
        any_seed.setAccessibleName("Choose a seed at random")
        any_seed.clicked.connect(self._choose_any)
        entry = QHBoxLayout()
        entry.setSpacing(6)
        entry.addWidget(self.number, 1)
        entry.addWidget(any_seed)
        self.build((explained, entry))

    @Slot()
    def _choose_any(self) -> None:
        self.number.setText(str(secrets.randbelow(_ANY_BELOW)))

    @Slot()
    def _check(self) -> None:
        sentence, text = "", self.number.text().strip()
        try:
            self.seed = parse_seed(text)
        except ValueError as exc:
            sentence = f"{capitalized(str(exc))}."
        self.show_error(sentence if text else Missing(sentence))


def _purpose(session: StudioSession) -> str:
    operators = session.graph.operators if session.graph is not None else ()
    count = sum(operator.random for operator in operators)
    here = "This model has no random operator."
    if count:
        here = f"This model has {format_count(count, 'random operator')}."
    return (
        f"{here} The same seed gives the same numbers each time, also after stepping back. "
        "PyTorch draws other numbers from the same seed."
    )
