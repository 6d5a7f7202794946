"""Carries out the commands that colour the operators of the graph by a quantity."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QActionGroup

from engine.errors import NumbersFileError
from engine.text import format_count, format_names
from kuiper_studio.session.overlaying import OverlayKind
from kuiper_studio.surfaces import Surface

if TYPE_CHECKING:
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QMenu, QWidget

    from kuiper_studio.commands import Commands
    from kuiper_studio.file_dialogs import FileDialogs
    from kuiper_studio.graph_view import GraphView
    from kuiper_studio.session import StudioSession

__all__ = ["OverlayCommands"]

_FILES: Final = "Numbers by operator (*.csv *.json)"
_REMEMBERED: Final = "graph/colorBy"
_COMMAND_OF: Final = {
    OverlayKind.FAMILY: "view.colorByFamily",
    OverlayKind.TIME: "view.colorByTime",
    OverlayKind.MACS: "view.colorByMacs",
    OverlayKind.MEMORY: "view.colorByMemory",
    OverlayKind.WEIGHTS: "view.colorByWeights",
    OverlayKind.ZEROS: "view.colorByZeros",
    OverlayKind.LARGEST: "view.colorByLargest",
    OverlayKind.NONFINITE: "view.colorByNonfinite",
    OverlayKind.ERROR: "view.colorByError",
    OverlayKind.OWN: "view.colorByOwn",
}


class OverlayCommands(QObject):
    """Chooses what operators are coloured by, and goes to those with the most of it.

    Parameters
    ----------
    session : StudioSession
    settings : QSettings
        Remembers the choice.
    dialogs : FileDialogs
    commands : Commands
    graph_view : GraphView
        Has the values.
    window : QWidget

    Signals
    -------
    failed
        Title and reason.
    """

    failed = Signal(str, str)

    def __init__(
        self,
        session: StudioSession,
        settings: QSettings,
        dialogs: FileDialogs,
        commands: Commands,
        graph_view: GraphView,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._session, self._settings, self._dialogs = session, settings, dialogs
        self._commands, self._graph_view = commands, graph_view
        group = QActionGroup(self)
        for command in _COMMAND_OF.values():
            group.addAction(commands.actions[command])
        session.overlaying.changed.connect(self._show_choice)
        self._show_choice()

    def fill_menu(self, menu: QMenu) -> None:
        """Fill the menu of quantities."""
        menu.clear()
        self._commands.fill(menu, Surface.COLOR_BY)

    def restore(self) -> None:
        """Choose what was chosen in the last run; a file of numbers is not read again."""
        kind = self._settings.value(_REMEMBERED)
        if kind in {each.value for each in OverlayKind}:
            self._session.overlaying.choose(OverlayKind(kind))

    # Choices

    def by_family(self) -> None:
        """Give operators the colours of their families."""
        self._choose(OverlayKind.FAMILY)

    def by_time(self) -> None:
        """Colour by the times of the run."""
        self._choose(OverlayKind.TIME)

    def by_macs(self) -> None:
        """Colour by multiply-accumulates."""
        self._choose(OverlayKind.MACS)

    def by_memory(self) -> None:
        """Colour by the memory of the outputs."""
        self._choose(OverlayKind.MEMORY)

    def by_weights(self) -> None:
        """Colour by the bytes of the weights."""
        self._choose(OverlayKind.WEIGHTS)

    def by_zeros(self) -> None:
        """Colour by the share of zeros."""
        self._choose(OverlayKind.ZEROS)

    def by_largest(self) -> None:
        """Colour by the largest absolute value."""
        self._choose(OverlayKind.LARGEST)

    def by_nonfinite(self) -> None:
        """Colour by NaN and infinities."""
        self._choose(OverlayKind.NONFINITE)

    def by_error(self) -> None:
        """Colour by the difference from the reference."""
        self._choose(OverlayKind.ERROR)

    def by_own(self) -> None:
        """Ask for a file of numbers, and colour by them."""
        self._show_choice()  # until there are numbers
        path = self._dialogs.choose("numbers", "Choose numbers by operator", _FILES)
        if path:
            self.use_numbers(path)

    def use_numbers(self, path: str) -> None:
        """Colour by the numbers of a file."""
        try:
            found = self._session.overlaying.use_numbers(Path(path))
        except NumbersFileError as exc:
            self.failed.emit("The numbers cannot be used", str(exc))
            return
        text = f"{format_count(len(found.values), 'number')} from {Path(path).name}"
        if found.unknown:
            names = format_count(len(found.unknown), "name")
            text += f"; {names} of no operator: {format_names(found.unknown)}"
        self._session.workspace.announce(text)

    def _choose(self, kind: OverlayKind) -> None:
        self._settings.setValue(_REMEMBERED, kind.value)
        self._session.overlaying.choose(kind)
        self._show_choice()

    @Slot()
    def _show_choice(self) -> None:
        command = _COMMAND_OF[self._session.overlaying.kind]
        self._commands.actions[command].setChecked(True)

    # Operators by their value

    def go_to_most(self) -> None:
        """Select the operator with the largest value."""
        self._go_to(0)

    def go_to_next_most(self) -> None:
        """Select the operator with the next smaller value, the largest after the smallest."""
        graph, selected = self._session.graph, self._session.selected
        overlay = self._graph_view.overlay
        if graph is None or overlay is None:
            return
        index = graph.operator(selected).index if selected else -1
        places = np.flatnonzero(overlay.ranked == index)
        self._go_to(int(places[0]) + 1 if len(places) else 0)

    def _go_to(self, place: int) -> None:
        graph, overlay = self._session.graph, self._graph_view.overlay
        if graph is None or overlay is None:
            return
        ranked = overlay.ranked
        if not len(ranked):
            self._session.workspace.announce(f"{overlay.title}: {overlay.none_text}")
            return
        place %= len(ranked)
        index = int(ranked[place])
        operator = graph.operators[index]
        self._session.select(operator.name)
        count = format_count(len(ranked))
        self._session.workspace.announce(
            f"{overlay.title}: {overlay.text(index)}, number {place + 1} of {count}"
        )
