"""Docks of results, which make their panels when they are first shown."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from PySide6.QtWidgets import QWidget

    from kuiper_studio.panels.panel import Panel

__all__ = ["TITLES", "ResultDock"]

# Of the docks by name, in the order of their tabs and of F6.
TITLES: Final[Mapping[str, str]] = {
    "comparison": "Comparison",
    "precision": "Precision",
    "provenance": "Provenance",
    "attention": "Attention",
    "history": "History of a place",
    "overlay": "Over the input",
    "output": "Output",
    "dataSet": "Data set",
}


class ResultDock(QDockWidget):
    """A dock that is hidden until there is a result, and has no panel before.

    Hidden widgets cost as much as others: the style sheet is applied to each of them, at the
    start and with every change of the theme.

    Parameters
    ----------
    name : str
        Its objectName, and that of the panel.
    make_panel : callable
        Makes the panel and puts it into this dock; called once, when the dock is first shown.
    before : QDockWidget
        After which Tab comes to this one: a dock with a panel, or one of results.
    parent : QWidget
    """

    def __init__(
        self,
        name: str,
        make_panel: Callable[[], Panel],
        before: QDockWidget,
        parent: QWidget,
    ) -> None:
        super().__init__(TITLES[name], parent)
        self.setObjectName(name)
        self._make_panel = make_panel
        self.before = before

    def take_tab_place(self) -> None:
        """Have Tab come to a panel that was just put here in its place, not at the end."""
        before = self.before
        while isinstance(before, ResultDock) and before.widget() is None:
            before = before.before
        if before.window() is self.window():  # neither floats
            for first, second in pairwise((*_tab_stops(before)[-1:], *_tab_stops(self))):
                self.setTabOrder(first, second)

    # Overrides of Qt methods

    @override
    def setVisible(self, visible: bool) -> None:
        if visible and self.widget() is None:
            self._make_panel()
        super().setVisible(visible)


def _tab_stops(dock: QDockWidget) -> list[QWidget]:
    """Return what Tab reaches in a dock, in its order."""
    found = []
    widget = dock.nextInFocusChain()
    while widget is not None and widget is not dock:
        takes_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if takes_tab and widget.focusProxy() is None and dock.isAncestorOf(widget):
            found.append(widget)
        widget = widget.nextInFocusChain()
    return found
