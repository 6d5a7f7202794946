"""Carries out the commands that find operators: search, paths, bookmarks, and undo."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence

from engine.text import format_count
from kuiper_studio.item_models.text import caption_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from PySide6.QtGui import QAction
    from PySide6.QtWidgets import QMenu, QWidget

    from engine.runtime import RuntimeOperator
    from kuiper_studio.graph_view import GraphView
    from kuiper_studio.session import StudioSession

__all__ = ["FindCommands"]

_LISTED: Final = 30  # bookmarks in the menu
_NATIVE: Final = QKeySequence.SequenceFormat.NativeText


class FindCommands(QObject):
    """Marks operators, steps through them, and goes to bookmarks.

    Parameters
    ----------
    session : StudioSession
    graph_view : GraphView
        Shows the find bar.
    chosen : callable
        Returns the operators that are selected in the list.
    actions : mapping of str to QAction
        Of all commands; the menu of bookmarks shows their keys.
    window : QWidget
    """

    def __init__(
        self,
        session: StudioSession,
        graph_view: GraphView,
        chosen: Callable[[], tuple[RuntimeOperator, ...]],
        actions: Mapping[str, QAction],
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._graph_view, self._chosen = session, graph_view, chosen
        self._actions = actions

    # Search

    def find(self) -> None:
        """Open the find bar."""
        self._graph_view.find_bar.open_bar()

    def clear(self) -> None:
        """Mark nothing, and close the find bar."""
        self._graph_view.find_bar.close_bar()

    # Paths

    def mark_upstream(self) -> None:
        """Mark what the selected operator depends on."""
        self._session.finding.mark_upstream(self._session.selected)

    def mark_downstream(self) -> None:
        """Mark what depends on the selected operator."""
        self._session.finding.mark_downstream(self._session.selected)

    def mark_paths(self) -> None:
        """Mark the paths between two operators.

        These are the two that are selected in the list; else the selected one and the one that
        is selected next.
        """
        chosen = self._chosen()
        if len(chosen) == 2:
            self._session.finding.mark_paths(chosen[0].name, chosen[1].name)
        else:
            self._session.finding.begin_paths(self._session.selected)

    # Bookmarks

    def toggle_bookmark(self) -> None:
        """Set or remove the bookmark of the selected operator."""
        session = self._session
        session.bookmarks.toggle(session.selected)
        count = format_count(len(session.bookmarks.names), "bookmark")
        done = "set" if session.selected in session.bookmarks else "removed"
        session.workspace.announce(f"bookmark {done}: {session.selected}; {count}")

    def next_bookmark(self) -> None:
        """Select the next bookmarked operator."""
        self._session.select(self._session.bookmarks.after(self._place))

    def previous_bookmark(self) -> None:
        """Select the previous bookmarked operator."""
        self._session.select(self._session.bookmarks.before(self._place))

    def go_to_bookmark(self, number: int) -> None:
        """Select the bookmark of a number, from 1, in execution order."""
        names = self._session.bookmarks.names
        if number <= len(names):
            self._session.select(names[number - 1])
        else:
            count = format_count(len(names), "bookmark")
            self._session.workspace.announce(f"no bookmark {number}, only {count}")

    def undo(self) -> None:
        """Undo the last change of bookmarks or breakpoints, and say which it was."""
        undoing = self._session.undoing
        change = undoing.last
        undoing.undo()
        self._session.workspace.announce(f"undone: {change}")

    @property
    def _place(self) -> int:
        graph, selected = self._session.graph, self._session.selected
        return graph.operator(selected).index if graph is not None and selected else -1

    def fill_bookmarks(self, menu: QMenu) -> None:
        """Fill the menu of bookmarks."""
        menu.clear()
        graph, names = self._session.graph, self._session.bookmarks.names
        for number, name in enumerate(names[:_LISTED], 1):
            type_ = graph.operator(name).type if graph is not None else ""
            digit = f"&{number % 10} " if number <= 10 else ""
            command = self._actions.get(f"edit.goToBookmark{number}")
            key = command.shortcut().toString(_NATIVE) if command is not None else ""
            text = f"{digit}{caption_text(f'{name} · {type_}')}"
            action = menu.addAction(f"{text}\t{key}" if key else text)
            action.triggered.connect(partial(self._session.select, name))
        left = len(names) - _LISTED
        text = f"{format_count(left, 'more bookmark')}" if left > 0 else "No bookmarks yet"
        if left > 0 or not names:
            menu.addAction(text).setEnabled(False)
