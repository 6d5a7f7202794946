"""The operators that were selected one after the other, to go back to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QObject, Slot

if TYPE_CHECKING:
    from kuiper_studio.session import StudioSession
    from kuiper_studio.session.asking import Place

__all__ = ["SelectionHistory"]

_LIMIT: Final = 200


class _Entry(NamedTuple):
    """An operator that was selected, and the element that was explained there."""

    operator: str
    place: Place | None = None


class SelectionHistory(QObject):
    """Goes back and forward through the selections, as a browser does through pages.

    Elements that were explained count, too. The selection that steps move along counts once,
    wherever it has come to.

    Parameters
    ----------
    session : StudioSession
    """

    def __init__(self, session: StudioSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._entries: list[_Entry] = []
        self._place = -1
        self._follows = False  # whether the present one is where the run stands
        self._moving = False
        session.graph_changed.connect(self._on_graph_changed)
        session.selection_changed.connect(self._on_selection_changed)
        session.explaining.moved.connect(self._on_explained)

    @property
    def can_go_back(self) -> bool:
        """Whether something was selected before."""
        return self._place > 0

    @property
    def can_go_forward(self) -> bool:
        """Whether one has gone back."""
        return self._place < len(self._entries) - 1

    def go_back(self) -> None:
        """Select what was selected before."""
        if self.can_go_back:
            self._go_to(self._place - 1)

    def go_forward(self) -> None:
        """Select what was selected before one went back."""
        if self.can_go_forward:
            self._go_to(self._place + 1)

    def _go_to(self, place: int) -> None:
        self._place, self._moving, self._follows = place, True, False
        entry = self._entries[place]
        try:
            self._session.select(entry.operator)
            if entry.place is not None:
                self._session.explain(entry.place.operand, entry.place.index)
        finally:
            self._moving = False

    @Slot()
    def _on_graph_changed(self) -> None:
        self._entries, self._place, self._follows = [], -1, False

    @Slot(str)
    def _on_selection_changed(self, name: str) -> None:
        if self._moving or not name:
            return
        follows = self._session.is_current(name)
        self._enter(_Entry(name), replaces=follows and self._follows)
        self._follows = follows

    @Slot(object)
    def _on_explained(self, place: Place) -> None:
        if self._moving or not self._entries or self._entries[self._place].place == place:
            return
        # A walk upstream has selected the operator just before.
        present = self._entries[self._place]
        self._enter(present._replace(place=place), replaces=present.place is None)
        self._follows = False

    def _enter(self, entry: _Entry, *, replaces: bool) -> None:
        """Go to another entry, and forget those that one had gone back from."""
        del self._entries[self._place + 1 :]
        if replaces:
            self._entries[self._place] = entry
        else:
            self._entries.append(entry)
            del self._entries[:-_LIMIT]
        self._place = len(self._entries) - 1
