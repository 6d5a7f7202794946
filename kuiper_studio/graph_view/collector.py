"""Summaries of every value of a run, for a picture of the whole graph."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from kuiper_studio.graph_view.scene import make_scene
from kuiper_studio.graph_view.state import BoxState, SceneState
from kuiper_studio.graph_view.summary import Summary, summarise

if TYPE_CHECKING:
    from engine.runtime import RuntimeGraph
    from kuiper_studio.session import StudioSession

__all__ = ["SummaryCollector"]


class SummaryCollector(QObject):
    """Goes through the values of a run, one after the other.

    At once, unless a memory limit has dropped some; those are computed again on the engine's
    thread meanwhile. What cannot be has no summary. Gives up when the run's values go.

    Parameters
    ----------
    session : StudioSession
    graph : RuntimeGraph

    Signals
    -------
    finished : dict of int to Summary
        By index of the operator.
    """

    finished = Signal(object)

    def __init__(
        self, session: StudioSession, graph: RuntimeGraph, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._session = session
        self._state = SceneState(make_scene(graph), session)
        self._remaining = deque(
            box.index
            for box in self._state.scene.boxes
            if self._state.shown(box.index) is BoxState.EXECUTED
            and self._state.has_value(box.index)
        )
        self._found: dict[int, Summary] = {}
        session.recalled.connect(self._on_recalled)
        for gone in (session.values_reset, session.stepped_back, session.graph_changed):
            gone.connect(self.deleteLater)

    def start(self) -> None:
        """Begin; `finished` may be emitted before this returns."""
        while self._remaining:
            index = self._remaining[0]
            operand = self._state.scene.boxes[index].operand
            if self._state.at_hand(index):
                self._found[index] = summarise(self._state.value(index))
            elif not self._session.is_given_up(operand):
                self._session.want(operand)
                return  # until it is at hand
            self._remaining.popleft()
        self.finished.emit(self._found)
        self.deleteLater()

    @Slot(str)
    def _on_recalled(self, operand: str) -> None:
        if self._remaining and self._state.scene.boxes[self._remaining[0]].operand == operand:
            self.start()
