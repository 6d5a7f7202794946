"""Collects the summaries of all values of a run, for a picture of the whole graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot

from kuiper_studio.graph_view.scene import make_scene
from kuiper_studio.graph_view.state import SceneState
from kuiper_studio.item_models.statuses import DisplayStatus

if TYPE_CHECKING:
    from engine.runtime import RuntimeGraph
    from kuiper_studio.session import StudioSession

__all__ = ["SummaryCollector"]


class SummaryCollector(QObject):
    """Requests the summaries of a run's values from the engine.

    Evicted values are recomputed; a value that cannot be has no summary. It stops when the
    run's values are dropped.

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
        self._remaining = {
            box.operand: box.index
            for box in self._state.scene.boxes
            if self._state.shown(box.index) is DisplayStatus.EXECUTED
            and self._state.has_value(box.index)
        }
        session.tensors.recalled.connect(self._on_recalled)
        for gone in (session.values_reset, session.stepped_back, session.graph_changed):
            gone.connect(self.deleteLater)

    def start(self) -> None:
        """Start; `finished` may be emitted before this returns."""
        for operand in reversed(self._remaining):  # the last request is served first
            self._session.tensors.want(operand)
        for operand in tuple(self._remaining):
            self._take(operand)
        self._finish()

    @Slot(object)
    def _on_recalled(self, operand: str) -> None:
        if operand in self._remaining:
            self._take(operand)
            self._finish()

    def _take(self, operand: str) -> None:
        taken = self._state.adopt_summary(self._remaining[operand])
        if taken or self._session.tensors.is_given_up(operand):
            del self._remaining[operand]

    def _finish(self) -> None:
        if not self._remaining:
            self.finished.emit(self._state.summaries)
            self.deleteLater()
