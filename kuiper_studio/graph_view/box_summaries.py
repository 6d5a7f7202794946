"""The summaries of values that boxes show: requested when boxes are seen, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kuiper_studio.graph_view.state import NONE
from kuiper_studio.item_models.statuses import DisplayStatus

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.session import StudioSession

__all__ = ["BoxSummaries"]


class BoxSummaries:
    """Has a scene's boxes show summaries of what they hold.

    Parameters
    ----------
    session : StudioSession
        That the summaries come from.
    state : SceneState
        That shows them.
    """

    def __init__(self, session: StudioSession, state: SceneState) -> None:
        self._session, self._state = session, state
        self._asked: set[int] = set()

    def want(self, boxes: Iterable[int]) -> bool:
        """Request the summaries of boxes that ran; return whether some are known already."""
        state, known = self._state, False
        for box in boxes:
            if (
                box not in self._asked
                and state.states[box] == DisplayStatus.EXECUTED
                and state.has_value(box)
            ):
                self._asked.add(box)
                if state.adopt_summary(box):
                    known = True
                else:  # see `take`
                    self._session.tensors.want(state.scene.boxes[box].operand)
        return known

    def take(self, operand: str) -> bool:
        """Show a summary that has arrived; return whether a box does.

        The box of its producer does, and that of an output of the model.
        """
        graph, scene = self._session.graph, self._state.scene
        if graph is None:
            return False
        shared = graph.operand(operand)
        beside = [shared.producer, *shared.consumers]
        found = {scene.index.get(each.name, NONE) for each in beside if each is not None}
        shown = [
            self._state.adopt_summary(box)
            for box in found - {NONE}
            if scene.boxes[box].operand == operand
        ]
        return any(shown)

    def forget(self, boxes: Iterable[int]) -> None:
        """Request those of some boxes again: they hold other values."""
        self._asked.difference_update(boxes)

    def forget_all(self) -> None:
        """Request all again."""
        self._asked.clear()
