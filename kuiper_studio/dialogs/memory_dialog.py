"""Asks for the memory limit and the memory bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QRadioButton, QWidget

from engine.cost import memory
from engine.memory_bound import default_bound
from engine.text import format_bytes, format_exact_bytes, parse_bytes
from kuiper_studio.dialogs.question import Question

if TYPE_CHECKING:
    from kuiper_studio.session import StudioSession

__all__ = ["MemoryDialog"]

_WIDTH: Final = 460
_OFFERED: Final = 500_000_000
_PURPOSE: Final = (
    "Every computed value is kept. With a limit, old values are evicted and recomputed when "
    "you look at them: the same numbers, after a moment."
)
_PURPOSE_OF_BOUND: Final = (
    "The bound protects this machine's memory: an operator that would exceed it, together with "
    "the values in memory, fails before it allocates."
)


class MemoryDialog(Question):
    """Asks for a memory limit, or for none, and for the memory bound.

    Parameters
    ----------
    session : StudioSession

    Attributes
    ----------
    limit : int or None
        The chosen limit in bytes; valid once the dialog is accepted.
    bound : int or None
        Likewise; None for half of the machine's memory.
    """

    def __init__(self, session: StudioSession, parent: QWidget | None = None) -> None:
        super().__init__("memory", "Memory", _WIDTH, parent)
        self.limit, self.bound = session.memory.limit, session.memory.bound
        self.everything = QRadioButton("&Keep every value")
        self.limited = QRadioButton("Keep at &most")
        self.amount = QLineEdit(
            format_exact_bytes(_OFFERED if self.limit is None else self.limit)
        )
        self.amount.setAccessibleName("Memory limit")
        self.most = QLineEdit("" if self.bound is None else format_exact_bytes(self.bound))
        self.most.setAccessibleName("Memory bound")
        self.most.setPlaceholderText(
            f"{format_bytes(default_bound())}, half of this machine's memory"
        )
        self._arrange(_facts(session))
        (self.everything if self.limit is None else self.limited).setChecked(True)
        self.amount.textEdited.connect(self._choose_limited)
        self.amount.textChanged.connect(self._check)
        self.most.textChanged.connect(self._check)
        self.limited.toggled.connect(self._check)
        if self.limit is not None:
            self.amount.setFocus()
            self.amount.selectAll()
        self._check()

    def _arrange(self, facts: str) -> None:
        purpose, explained = QLabel(_PURPOSE), QLabel(facts)
        purpose.setWordWrap(True)
        explained.setObjectName("memoryFacts")
        explained.setProperty("role", "secondary")
        explained.setWordWrap(True)
        explained.setVisible(bool(facts))
        entry = QHBoxLayout()
        entry.setSpacing(8)
        entry.addWidget(self.limited)
        entry.addWidget(self.amount, 1)
        refused = QLabel("&Refuse more than")
        refused.setBuddy(self.most)
        bound = QHBoxLayout()
        bound.setSpacing(8)
        bound.addWidget(refused)
        bound.addWidget(self.most, 1)
        purpose_of_bound = QLabel(_PURPOSE_OF_BOUND)
        purpose_of_bound.setWordWrap(True)
        self.build((purpose, explained, self.everything, entry, purpose_of_bound, bound))

    @Slot()
    def _choose_limited(self) -> None:
        """Choose a limit when the user types an amount."""
        self.limited.setChecked(True)

    @Slot()
    def _check(self) -> None:
        sentence = ""
        try:
            self.limit = parse_bytes(self.amount.text()) if self.limited.isChecked() else None
            self.bound = parse_bytes(self.most.text()) if self.most.text().strip() else None
        except ValueError as exc:
            sentence = f"{exc}."
        self.show_error(sentence)
        self.ok.setText("Use limit" if self.limited.isChecked() else "Keep every value")


def _facts(session: StudioSession) -> str:
    """Return how much memory the values of the open model take."""
    taken = memory(session.graph, session.tensors) if session.graph is not None else None
    if taken is None or not taken.total:
        return ""
    return (
        f"A pass of this model keeps {format_bytes(taken.total)}. Its operators need "
        f"{format_bytes(taken.needed)} at once, which is the lowest limit that has an effect."
    )
