"""The state of boxes and edges, which changes while a model runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.text import format_brief, format_shape
from kuiper_studio.item_models.comparison_rows import DifferenceKind, look_of
from kuiper_studio.item_models.difference_marks import DifferenceMark, operator_marks
from kuiper_studio.item_models.overlays import Overlay, OverlayModel
from kuiper_studio.item_models.statuses import DISPLAY_STATUS, DisplayStatus
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.graph_view.scene import Scene
    from kuiper_studio.session import Record, StudioSession

__all__ = ["SceneState"]

NONE: Final = -1


# Looking up an enum member takes longer than the rest of a query.
_EXECUTED: Final = DisplayStatus.EXECUTED
_PLAIN: Final = DisplayStatus.PLAIN
_FAILED: Final = DisplayStatus.FAILED
_CURRENT: Final = DisplayStatus.CURRENT
_SHOWN: Final = tuple(DisplayStatus)  # by number
_CARRIED: Final = {DifferenceKind.INHERITED: 1, DifferenceKind.BORN: 2}
_HAS_NEXT: Final = frozenset({RunState.READY, RunState.STOPPED, RunState.RUNNING})


class SceneState:
    """The run as the boxes and edges of a scene show it.

    Parameters
    ----------
    scene : Scene
    session : StudioSession, optional
        None for a plain drawing of the model.

    Attributes
    ----------
    states : ndarray of shape (N,), int8
        A DisplayStatus for each box; CURRENT is not among them, see `shown`.
    current : int
        The box that runs next, or NONE.
    position : int
        The box of the session's position, also if it cannot run; or NONE.
    suspect : int
        The box that a failure hints at, or NONE.
    selected : int
        The selected box, or NONE.
    picked : str
        The operand of the last clicked edge, ``""`` for none.
    breakpoints, bookmarks : frozenset of int
    supplied : frozenset of int
        Boxes of operators whose output is overridden.
    marks : dict of int to DifferenceMark
        What a comparison says about boxes; empty without a comparison.
    carried : ndarray of shape (E,), int8
        For each edge 1 if it carries an inherited difference, 2 if one that is born at its
        source, else 0.
    differences : dict of str to str
        How far operands are from the reference's, for edges that carry a difference.
    found : ndarray of shape (N,), bool, or None
        The boxes that the user looks for; others are dimmed. None while nothing is looked for.
    summaries : dict of int to Summary
    generation : int
        Number of times that values were dropped.
    """

    def __init__(self, scene: Scene, session: StudioSession | None = None) -> None:
        self.scene = scene
        self._session = session
        plain = DisplayStatus.PLAIN if session is None else DisplayStatus.PENDING
        self.states: npt.NDArray[np.int8] = np.full(len(scene.boxes), plain, np.int8)
        self.current = NONE
        self.position = NONE
        self.suspect = NONE
        self.selected = NONE
        self.picked = ""
        self.breakpoints: frozenset[int] = frozenset()
        self.bookmarks: frozenset[int] = frozenset()
        self.supplied: frozenset[int] = frozenset()
        self.marks: dict[int, DifferenceMark] = {}
        self.carried: npt.NDArray[np.int8] = np.zeros(len(scene.edges), np.int8)
        self.differences: dict[str, str] = {}
        self.found: npt.NDArray[np.bool_] | None = None
        self.summaries: dict[int, Summary] = {}
        self.generation = 0
        self._shapes: dict[str, str] = {}
        self._overlays = OverlayModel(session) if session is not None else None
        self._overlay: Overlay | None = None
        self._sources = np.array([edge.source for edge in scene.edges], np.intp)
        self._targets = np.array([edge.target for edge in scene.edges], np.intp)
        if session is not None:
            self.refresh()
            self.follow_comparison()

    # Following the session

    def refresh(self) -> None:
        """Read everything again, after values were dropped or another model was opened."""
        session = self._session
        if session is None:
            return
        self.generation += 1
        self.summaries.clear()
        self._shapes.clear()
        self.follow_overlay()
        for box in self.scene.boxes:
            self.states[box.index] = DISPLAY_STATUS[session.status(box.name)]
        self.follow_position()
        self.follow_selection()
        self.follow_breakpoints()
        self.follow_bookmarks()
        self.follow_supplies()

    def apply(self, records: Iterable[Record]) -> list[int]:
        """Apply new records; return the boxes that changed."""
        self.follow_overlay()
        changed = []
        for record in records:
            self.states[record.index] = DISPLAY_STATUS[record.status]
            self.summaries.pop(record.index, None)
            for name in record.outputs:
                self._shapes.pop(name, None)
            changed.append(record.index)
        return changed

    def revert(self, operator: str) -> int:
        """Clear the state of an operator whose step was undone; return its box."""
        box = self.scene.index[operator]
        if self._session is not None:
            self.states[box] = DISPLAY_STATUS[self._session.status(operator)]
        self.summaries.pop(box, None)
        for number in self.scene.edges_of[box]:
            self._shapes.pop(self.scene.edges[number].operand, None)
        self._shapes.pop(self.scene.boxes[box].operand, None)
        self.follow_overlay()
        return box

    def follow_position(self) -> None:
        """Read the position and whether the run has failed."""
        session = self._session
        if session is None:
            return
        known = session.position
        self.position = known if known < len(self.scene.boxes) else NONE
        self.current = self.position if session.state in _HAS_NEXT else NONE
        suspect = session.failure.suspect if session.failure is not None else ""
        self.suspect = self.scene.index.get(suspect, NONE)
        blocked = self.states == DisplayStatus.BLOCKED
        if session.state is RunState.FAILED and self.position != NONE:
            self.states[self.position] = DisplayStatus.FAILED
            self._block_behind(self.position)
        elif blocked.any():
            for index in np.flatnonzero(blocked).tolist():
                status = session.status(self.scene.boxes[index].name)
                self.states[index] = DISPLAY_STATUS[status]

    def follow_selection(self) -> None:
        """Read the selection."""
        if self._session is not None:
            self.selected = self.scene.index.get(self._session.selected, NONE)

    def follow_breakpoints(self) -> None:
        """Read the breakpoints."""
        if self._session is not None:
            index = self.scene.index
            names = self._session.breakpoints
            self.breakpoints = frozenset(index[name] for name in names if name in index)

    def follow_bookmarks(self) -> None:
        """Read the bookmarks."""
        if self._session is not None:
            self.bookmarks = self._session.bookmarks.indices

    def follow_supplies(self) -> None:
        """Read the overrides."""
        session = self._session
        if session is None or session.graph is None:
            return
        producers = (session.graph.operand(name).producer for name in session.supplied)
        before = self.supplied
        self.supplied = frozenset(p.index for p in producers if p is not None)
        for index in before ^ self.supplied:
            self.states[index] = DISPLAY_STATUS[session.status(self.scene.boxes[index].name)]

    def follow_comparison(self) -> None:
        """Read what the comparison with a reference says."""
        session = self._session
        if session is None:
            return
        index = self.scene.index
        self.marks = {
            index[name]: mark for name, mark in operator_marks(session).items() if name in index
        }
        self.carried[:] = 0
        self.differences.clear()
        rows = session.comparing.rows if self.marks else {}
        for number, edge in enumerate(self.scene.edges if rows else ()):
            row = rows.get(edge.operand)
            if row is not None:
                self.carried[number] = _CARRIED.get(look_of(row).kind, 0)
                if self.carried[number] and row.measures is not None:
                    text = format_brief(row.measures.relative, 2)
                    self.differences[edge.operand] = f"≠ {text}"
        self.follow_overlay()

    def follow_finding(self) -> None:
        """Read which operators the user looks for."""
        found = self._session.finding.marks if self._session is not None else None
        fits = found is not None and len(found) == len(self.scene.boxes)
        self.found = found if fits else None

    def follow_overlay(self) -> None:
        """Read what boxes are coloured by, when somebody asks for it."""
        if self._overlays is not None:
            self._overlays.forget()

    def _block_behind(self, failed: int) -> None:
        """Mark boxes that can no longer run; boxes are in execution order."""
        blocked = {failed}
        for index in range(failed, len(self.scene.boxes)):
            if index not in blocked:
                continue
            for number in self.scene.edges_of[index]:
                target = self.scene.edges[number].target
                if target > index and self.states[target] == DisplayStatus.PENDING:
                    self.states[target] = DisplayStatus.BLOCKED
                    blocked.add(target)

    # Pictures

    def detach(self, *, overlay: bool) -> None:
        """Read what is read on demand, and follow the session no more.

        Parameters
        ----------
        overlay : bool
            Whether boxes keep the colours of a quantity.
        """
        for edge in self.scene.edges:
            self.shape(edge.operand)
        for box in self.scene.boxes:
            self.shape(box.operand)
        self._overlay = self.overlay if overlay else None
        self._session = self._overlays = None

    def hide_run(self) -> None:
        """Show the model alone, as before any run, without marks of the user."""
        self.states[:] = DisplayStatus.PLAIN
        self.current = self.position = self.suspect = self.selected = NONE
        self.picked, self.found = "", None
        self.breakpoints = self.bookmarks = self.supplied = frozenset()
        self.marks, self.differences = {}, {}
        self.carried[:] = 0

    # Queries

    @property
    def overlay(self) -> Overlay | None:
        """What boxes are coloured by; None where it is their family."""
        return self._overlays.shown if self._overlays is not None else self._overlay

    def shown(self, index: int) -> DisplayStatus:
        """Return the status that a box shows."""
        state = _SHOWN[int(self.states[index])]
        if index == self.current and state is not _FAILED:
            return _CURRENT
        return state

    def computed(self, edge: int) -> bool:
        """Return whether an edge has a value; without a session every edge has."""
        return self.states[self.scene.edges[edge].source] in (_EXECUTED, _PLAIN)

    def computed_among(self, edges: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return which of some edges have a value; see `computed`."""
        return np.isin(self.states[self._sources[edges]], (_EXECUTED, _PLAIN))

    def is_dimmed(self, index: int) -> bool:
        """Return whether a box is none of those that the user looks for."""
        return self.found is not None and not self.found[index]

    def dimmed_among(self, edges: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return which of some edges do not join two boxes that the user looks for."""
        if self.found is None:
            return np.zeros(len(edges), np.bool_)
        return ~(self.found[self._sources[edges]] & self.found[self._targets[edges]])

    def shape(self, operand: str) -> str:
        """Return the computed shape of an operand without batch 1; ``""`` for none."""
        if operand not in self._shapes and self._session is not None:
            shape = getattr(self._session.tensors.metadata(operand), "shape", None)
            self._shapes[operand] = (
                "" if shape is None else format_shape(shape, drop_batch=True)
            )
        return self._shapes.get(operand, "")

    def has_value(self, index: int) -> bool:
        """Return whether the value that a box shows is computed."""
        operand = self.scene.boxes[index].operand
        return self._session is not None and self._session.tensors.has_value(operand)

    def adopt_summary(self, index: int) -> bool:
        """Read the summary of the value that a box shows, if the session has it."""
        if self._session is None:
            return False
        found = self._session.tensors.summary(self.scene.boxes[index].operand)
        if found is not None:
            self.summaries[index] = found
        return found is not None

    def lit(self) -> set[int]:
        """Return the highlighted edges.

        These are the clicked edge, or the edges of the selected box. While the selection only
        follows the run, no edge is highlighted. An edge that carries a difference keeps its
        colour unless it was clicked.
        """
        edges: set[int] = set()
        if self.picked:
            edges.update(
                number
                for number, edge in enumerate(self.scene.edges)
                if edge.operand == self.picked
            )
        elif self.selected not in (NONE, self.position):
            beside = self.scene.edges_of[self.selected]
            edges.update(n for n in beside if not self.marks or not self.carried[n])
        return edges

    def count(self, state: DisplayStatus) -> int:
        """Return how many boxes are in a state."""
        return int(np.count_nonzero(self.states == state))
