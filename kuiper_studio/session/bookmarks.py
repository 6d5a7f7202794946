"""The operators that the user has bookmarked in the shown model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.text import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.runtime import RuntimeGraph
    from kuiper_studio.session.undoing import Undoing

__all__ = ["Bookmarks"]


class Bookmarks(QObject):
    """Bookmarked operators.

    Parameters
    ----------
    graph : callable
        Returns the shown graph, or None.
    undoing : Undoing
        Keeps what was before a change of the user.

    Signals
    -------
    changed
        There are others.
    chosen_changed
        The user has set or removed one.
    """

    changed = Signal()
    chosen_changed = Signal()

    def __init__(
        self,
        graph: Callable[[], RuntimeGraph | None],
        undoing: Undoing,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._get_graph, self._undoing = graph, undoing
        self._indices: dict[str, int] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the bookmarked operators, in execution order."""
        return tuple(sorted(self._indices, key=self._indices.__getitem__))

    @property
    def indices(self) -> frozenset[int]:
        """Indices of the bookmarked operators."""
        return frozenset(self._indices.values())

    def __contains__(self, name: object) -> bool:
        return name in self._indices

    def toggle(self, name: str) -> None:
        """Set or remove the bookmark of an operator."""
        if name in self._indices:
            left = [each for each in self._indices if each != name]
            self._change(f"bookmark of {name} removed", left)
        else:
            self._change(f"bookmark of {name} set", (*self._indices, name))

    def restore(self, names: Iterable[str]) -> None:
        """Set the bookmarks of the shown model, as far as it has the operators."""
        self._set(names)

    def clear(self) -> None:
        """Remove all bookmarks; silent when there are none."""
        if self._indices:
            self._change(f"{format_count(len(self._indices), 'bookmark')} removed", ())

    def reset(self) -> None:
        """Forget the bookmarks, because another model is shown."""
        self._set(())

    def after(self, index: int) -> str:
        """Return the bookmark after an operator, the first one after the last; or ``""``."""
        later = [name for name in self.names if self._indices[name] > index]
        return next(iter((*later, *self.names)), "")

    def before(self, index: int) -> str:
        """Return the bookmark before an operator, the last one before the first; or ``""``."""
        earlier = [name for name in self.names if self._indices[name] < index]
        return next(iter((*reversed(earlier), *reversed(self.names))), "")

    def _change(self, change: str, names: Iterable[str]) -> None:
        self._undoing.note(change, partial(self._choose, self.names))
        self._choose(names)

    def _choose(self, names: Iterable[str]) -> None:
        self._set(names)
        self.chosen_changed.emit()

    def _set(self, names: Iterable[str]) -> None:
        graph = self._get_graph()
        wanted = set(names)
        found = graph.operators if graph is not None and wanted else ()
        indices = {each.name: each.index for each in found if each.name in wanted}
        if indices != self._indices:
            self._indices = indices
            self.changed.emit()
