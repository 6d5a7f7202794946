"""The operators that were selected one after the other, to go back to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Slot

if TYPE_CHECKING:
    from kuiper_studio.session import StudioSession

__all__ = ["SelectionHistory"]

_LIMIT: Final = 200


class SelectionHistory(QObject):
    """Goes back and forward through the selections, as a browser does through pages.

    The selection that steps move along counts once, wherever it has come to.

    Parameters
    ----------
    session : StudioSession
    """

    def __init__(self, session: StudioSession, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._names: list[str] = []
        self._place = -1
        self._follows = False  # whether the present one is where the run stands
        self._moving = False
        session.graph_changed.connect(self._on_graph_changed)
        session.selection_changed.connect(self._on_selection_changed)

    @property
    def can_go_back(self) -> bool:
        """Whether something was selected before."""
        return self._place > 0

    @property
    def can_go_forward(self) -> bool:
        """Whether one has gone back."""
        return self._place < len(self._names) - 1

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
        try:
            self._session.select(self._names[place])
        finally:
            self._moving = False

    @Slot()
    def _on_graph_changed(self) -> None:
        self._names, self._place, self._follows = [], -1, False

    @Slot(str)
    def _on_selection_changed(self, name: str) -> None:
        if self._moving or not name:
            return
        follows = self._session.is_current(name)
        del self._names[self._place + 1 :]
        if follows and self._follows:
            self._names[self._place] = name
        else:
            self._names.append(name)
            del self._names[:-_LIMIT]
        self._place, self._follows = len(self._names) - 1, follows
