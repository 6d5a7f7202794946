"""What the user has marked, to go back by one change at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Undoing"]

_MOST: Final = 100  # changes that can be undone


class Undoing(QObject):
    """Changes of bookmarks and breakpoints of the shown model, the last one first.

    Signals
    -------
    changed
        There is another last change, or none.
    """

    changed = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._changes: list[tuple[str, Callable[[], None]]] = []

    @property
    def last(self) -> str:
        """What the last change was, ``""`` if there is none."""
        return self._changes[-1][0] if self._changes else ""

    def note(self, change: str, undo: Callable[[], None]) -> None:
        """Keep how a change is undone.

        Parameters
        ----------
        change : str
            What it was, as part of a sentence.
        undo : callable
            Brings back what was before, and notes nothing.
        """
        self._changes = [*self._changes, (change, undo)][-_MOST:]
        self.changed.emit()

    def undo(self) -> None:
        """Undo the last change; silent when there is none."""
        if self._changes:
            _, undo = self._changes.pop()
            undo()
            self.changed.emit()

    def reset(self) -> None:
        """Forget all changes, because another model is shown."""
        self._changes.clear()
        self.changed.emit()
