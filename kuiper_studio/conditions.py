"""When commands are enabled, and what is missing where they are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from engine.errors import capitalized

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QAction

__all__ = ["Condition", "always", "enable", "missing_of", "need", "show_missing"]

StateT = TypeVar("StateT")

_MISSING: Final = "missing"  # property of an action


@dataclass(frozen=True, slots=True)
class Condition(Generic[StateT]):
    """A condition of commands; called with a state it tells whether it holds.

    Attributes
    ----------
    parts : tuple of (callable, str)
        All of them must hold. Each has what is missing where it does not; the first such part
        speaks for the whole.
    """

    parts: tuple[tuple[Callable[[StateT], bool], str], ...] = ()

    def __call__(self, state: StateT) -> bool:
        """Return whether all parts hold."""
        return all(holds(state) for holds, _ in self.parts)

    def __and__(self, other: Condition[StateT]) -> Condition[StateT]:
        return Condition(self.parts + other.parts)

    def missing(self, state: StateT) -> str:
        """Return what is missing; ``""`` where the condition holds."""
        return next((text for holds, text in self.parts if not holds(state)), "")


def need(holds: Callable[[StateT], bool], missing: str) -> Condition[StateT]:
    """Return a condition of one part."""
    return Condition(((holds, missing),))


always: Final[Condition[Any]] = Condition()
"""Holds in every state."""


def enable(action: QAction, missing: str) -> None:
    """Enable the action of a command, or disable it and tell what is missing."""
    if missing != missing_of(action):
        action.setProperty(_MISSING, missing)
        show_missing(action)
    action.setEnabled(not missing)


def missing_of(action: QAction) -> str:
    """Return what is missing for an action; ``""`` if nothing is, or it is not known."""
    return str(action.property(_MISSING) or "")


def show_missing(action: QAction) -> None:
    """Tell in an action's tool tip, below what the command does, what is missing for it."""
    tip, missing = action.toolTip().partition("\n")[0], missing_of(action)
    action.setToolTip(f"{tip}\n{capitalized(missing)}" if missing else tip)
