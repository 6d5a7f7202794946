"""The state of boxes and edges, which changes while a model runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.text import format_brief, format_duration, format_shape
from kuiper_studio.item_models.comparison_rows import DifferenceKind, look_of
from kuiper_studio.item_models.difference_marks import DifferenceMarks, operator_marks
from kuiper_studio.item_models.overlays import Overlay, OverlayModel
from kuiper_studio.item_models.statuses import (
    BY_SEVERITY,
    DISPLAY_STATUS,
    DisplayStatus,
    recorded_statuses,
)
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from engine.runtime import RuntimeOperator
    from kuiper_studio.engine_service.summary import Summary
    from kuiper_studio.graph_view.scene import Scene
    from kuiper_studio.layout.groups import Group
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
_BY_SEVERITY: Final = np.array(BY_SEVERITY, np.int8)
_SEVERITY: Final = np.argsort(_BY_SEVERITY)
_HAS_NEXT: Final = frozenset({RunState.READY, RunState.STOPPED, RunState.RUNNING})


class SceneState:
    """The run as the boxes and edges of a scene show it.

    Parameters
    ----------
    scene : Scene
    session : StudioSession, optional
        None for a plain drawing of the model.
    former : SceneState, optional
        That of the same model with other groups open, which knows the run already.

    Attributes
    ----------
    states : ndarray of shape (N,), int8
        A DisplayStatus for each box, the worst one of a closed group; CURRENT is not among
        them, see `shown`.
    executed : ndarray of shape (N,), int64
        Number of executed operators in each box.
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
    picked_group : Group or None
        The group that the user has clicked, instead of an operator.
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
    found_counts : ndarray of shape (N,), int64
        How many operators of each box are.
    summaries : dict of int to Summary
    special_counts : ndarray of shape (3, N), int64
        How many operators of each box gave NaN, +Inf and -Inf, as far as that is measured.
    generation : int
        Number of times that values were dropped.
    """

    def __init__(
        self,
        scene: Scene,
        session: StudioSession | None = None,
        former: SceneState | None = None,
    ) -> None:
        self.scene = scene
        self._session = session
        plain = DisplayStatus.PLAIN if session is None else DisplayStatus.PENDING
        self._operators: npt.NDArray[np.int8] = np.full(scene.operator_count, plain, np.int8)
        self.states = self._operators
        self.executed: npt.NDArray[np.intp] = np.zeros(len(scene.boxes), np.intp)
        self.current = NONE
        self.position = NONE
        self.suspect = NONE
        self.selected = NONE
        self.picked = ""
        self.picked_group: Group | None = None
        self.breakpoints: frozenset[int] = frozenset()
        self.bookmarks: frozenset[int] = frozenset()
        self.supplied: frozenset[int] = frozenset()
        self.marks = DifferenceMarks[int]()
        self.carried: npt.NDArray[np.int8] = np.zeros(len(scene.edges), np.int8)
        self.differences: dict[str, str] = {}
        self.found: npt.NDArray[np.bool_] | None = None
        self.found_counts: npt.NDArray[np.intp] = np.zeros(len(scene.boxes), np.intp)
        self.summaries: dict[int, Summary] = {}
        self.special_counts: npt.NDArray[np.intp] = np.zeros((3, len(scene.boxes)), np.intp)
        self.generation = 0
        self._shapes: dict[str, str] = {}
        self._overlays = OverlayModel(session) if session is not None else None
        self._overlay: Overlay | None = None  # of a state that follows no session
        self._seconds: npt.NDArray[np.float64] = np.zeros(scene.operator_count)
        self._group_values: tuple[Overlay, dict[tuple[int, int], str]] | None = None
        self._folded_overlay: tuple[Overlay, Overlay] | None = None
        self._supplied: frozenset[int] = frozenset()  # operators
        self._sources = np.array([edge.source for edge in scene.edges], np.intp)
        self._targets = np.array([edge.target for edge in scene.edges], np.intp)
        self._producers = np.array([edge.producer for edge in scene.edges], np.intp)
        self._gather()
        if session is None:
            return
        if former is None:
            self.refresh()
        else:
            self._adopt(former)
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
        self._operators[:] = DisplayStatus.PENDING
        self._seconds[:] = 0.0
        self._note(session.snapshot.records[:])
        # Of most operators that have not run nothing else can be true.
        ran, graph = len(session.snapshot.records), self.scene.graph
        unsupported = graph.unsupported if graph is not None else ()
        self._read_statuses(each.index for each in unsupported if each.index >= ran)
        self._follow_all()

    def _note(self, records: Sequence[Record]) -> npt.NDArray[np.intp]:
        """Take over what records say; return their operators."""
        places = np.array([record.index for record in records], np.intp)
        self._operators[places] = recorded_statuses(records)
        self._seconds[places] = [record.seconds for record in records]
        return places

    def _read_statuses(self, places: Iterable[int]) -> None:
        """Read the statuses of some operators."""
        session = self._session
        if session is None:
            return
        for place in places:
            status = session.status(self._graph_operators[place].name)
            self._operators[place] = DISPLAY_STATUS[status]

    def _adopt(self, former: SceneState) -> None:
        self.generation = former.generation
        self._operators[:] = former._operators
        self._seconds[:] = former._seconds
        self._supplied = former._supplied
        for box, summary in former.summaries.items():
            index = former.scene.boxes[box].index
            here = self.scene.box_of(index)
            if self.scene.boxes[here].card is None:
                self.summaries[here] = summary
        self._follow_all()

    def _follow_all(self) -> None:
        self.follow_position()
        self.follow_selection()
        self.follow_breakpoints()
        self.follow_bookmarks()
        self.follow_supplies()
        self.follow_measures()

    @property
    def _graph_operators(self) -> Sequence[RuntimeOperator]:
        return self.scene.graph.operators if self.scene.graph is not None else ()

    def _gather(self) -> None:
        """Find the states of boxes from those of their operators."""
        executed = self._operators == DisplayStatus.EXECUTED
        if not self.scene.is_folded:
            self.executed = executed.astype(np.intp)
            return
        starts = self.scene.starts
        worst = np.maximum.reduceat(_SEVERITY[self._operators], starts)
        self.states = _BY_SEVERITY[worst]
        self.executed = np.add.reduceat(executed.astype(np.intp), starts)

    def apply(self, records: Sequence[Record]) -> set[int]:
        """Apply new records; return the boxes that changed."""
        self.follow_overlay()
        changed = set(self.scene.boxes_of(self._note(records).tolist()))
        for box in changed & self.summaries.keys():
            del self.summaries[box]
        if len(records) > len(self._shapes):
            self._shapes.clear()  # they are looked up again when they are painted
        else:
            for name in (name for record in records for name in record.outputs):
                self._shapes.pop(name, None)
        self._gather()
        self.follow_measures()
        return changed

    def revert(self, operator: str) -> int:
        """Clear the state of an operator whose step was undone; return its box."""
        box = self.scene.index[operator]
        if self._session is not None and self.scene.graph is not None:
            index = self.scene.graph.operator(operator).index
            self._operators[index] = DISPLAY_STATUS[self._session.status(operator)]
            self._gather()
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
        is_inside = known < self.scene.operator_count
        self.position = self.scene.box_of(known) if is_inside else NONE
        self.current = self.position if session.state in _HAS_NEXT else NONE
        suspect = session.failure.suspect if session.failure is not None else ""
        self.suspect = self.scene.index.get(suspect, NONE)
        blocked = self._operators == DisplayStatus.BLOCKED
        if session.state is RunState.FAILED and is_inside:
            self._operators[known] = DisplayStatus.FAILED
            self._block_behind(known)
        elif blocked.any():
            # Those that have run keep what their records said.
            ran = len(session.snapshot.records)
            self._read_statuses((ran + np.flatnonzero(blocked[ran:])).tolist())
        self._gather()

    def follow_selection(self) -> None:
        """Read the selection."""
        if self._session is not None:
            self.selected = self.scene.index.get(self._session.selected, NONE)

    @property
    def place(self) -> int | None:
        """An operator of what is selected: it, or the first of a group; None for nothing."""
        if self.picked_group is not None:
            return self.picked_group.first
        if self._session is None:
            return None
        name, graph = self._session.selected, self._session.graph
        return graph.operator(name).index if name and graph is not None else None

    @property
    def closed_group(self) -> Group | None:
        """The closed group that is selected, or that the selected operator is in."""
        group = self.picked_group
        if group is None and self.selected != NONE:
            card = self.scene.boxes[self.selected].card
            group = card.group if card is not None else None
        if group is None or self.scene.frame_of(group) is not None:
            return None
        return group

    def follow_breakpoints(self) -> None:
        """Read the breakpoints."""
        if self._session is not None:
            index = self.scene.index
            names = self._session.breakpoints
            self.breakpoints = frozenset(index[name] for name in names if name in index)

    def follow_bookmarks(self) -> None:
        """Read the bookmarks."""
        if self._session is not None:
            self.bookmarks = self.scene.boxes_of(self._session.bookmarks.indices)

    def follow_supplies(self) -> None:
        """Read the overrides."""
        session = self._session
        if session is None or session.graph is None:
            return
        producers = (session.graph.operand(name).producer for name in session.supplied)
        before = self._supplied
        self._supplied = frozenset(p.index for p in producers if p is not None)
        self.supplied = self.scene.boxes_of(self._supplied)
        for index in before ^ self._supplied:
            status = session.status(self._graph_operators[index].name)
            self._operators[index] = DISPLAY_STATUS[status]
        self._gather()

    def follow_comparison(self) -> None:
        """Read what the comparison with a reference says."""
        session = self._session
        if session is None:
            return
        index = self.scene.index
        self.marks = DifferenceMarks()
        for name, mark in operator_marks(session).items():
            if name in index:
                self.marks.add(index[name], mark)
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
        if found is None or len(found) != self.scene.operator_count or not len(found):
            self.found = None
            return
        self.found_counts = np.add.reduceat(found.astype(np.intp), self.scene.starts)
        self.found = self.found_counts > 0

    def follow_measures(self) -> None:
        """Read where NaN and infinities are, also in closed groups."""
        session = self._session
        if session is None or not self.scene.is_folded:
            return
        table = session.measuring.table
        if len(table.nan) == self.scene.operator_count:
            special = (table.nan > 0, np.isposinf(table.high), np.isneginf(table.low))
            counts = np.array(special, np.intp)
            self.special_counts = np.add.reduceat(counts, self.scene.starts, axis=1)

    def follow_overlay(self) -> None:
        """Read what boxes are coloured by, when somebody asks for it."""
        if self._overlays is not None:
            self._overlays.forget()

    def _block_behind(self, failed: int) -> None:
        """Mark operators that can no longer run."""
        blocked = {failed}
        for operator in self._graph_operators[failed + 1 :]:
            if self._operators[operator.index] == DisplayStatus.PENDING and any(
                operand.producer is not None and operand.producer.index in blocked
                for operand in operator.inputs
            ):
                self._operators[operator.index] = DisplayStatus.BLOCKED
                blocked.add(operator.index)

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
        self.marks, self.differences = DifferenceMarks(), {}
        self.carried[:] = 0

    # Queries

    @property
    def overlay(self) -> Overlay | None:
        """What boxes are coloured by; None where it is their family."""
        of_operators = self.operator_overlay
        if of_operators is None or not self.scene.is_folded:
            return of_operators
        if self._folded_overlay is None or self._folded_overlay[0] is not of_operators:
            folded = of_operators.gathered(self.scene.starts)
            self._folded_overlay = of_operators, folded
        return self._folded_overlay[1]

    @property
    def operator_overlay(self) -> Overlay | None:
        """What operators are coloured by, each by itself."""
        return self._overlays.shown if self._overlays is not None else self._overlay

    def shown(self, index: int) -> DisplayStatus:
        """Return the status that a box shows."""
        state = _SHOWN[int(self.states[index])]
        if index == self.current and state is not _FAILED:
            return _CURRENT
        return state

    def computed(self, edge: int) -> bool:
        """Return whether an edge has a value; without a session every edge has."""
        return self._operators[self.scene.edges[edge].producer] in (_EXECUTED, _PLAIN)

    def computed_among(self, edges: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
        """Return which of some edges have a value; see `computed`."""
        return np.isin(self._operators[self._producers[edges]], (_EXECUTED, _PLAIN))

    def executed_in(self, first: int, last: int) -> int:
        """Return how many of some consecutive operators have run."""
        return int(np.count_nonzero(self._operators[first : last + 1] == _EXECUTED))

    def group_text(self, group: Group) -> str:
        """Return what an open group's title says: value, time, or how many operators ran.

        Its value is what the graph is coloured by.
        """
        value, first, last = self._group_value(group), group.first, group.last
        executed = self.executed_in(first, last)
        if value or not executed:
            return value
        if executed < group.size:
            return f"{executed} run"
        return format_duration(float(self._seconds[first : last + 1].sum()))

    def _group_value(self, group: Group) -> str:
        overlay, key = self.operator_overlay, (group.first, group.last)
        if overlay is None:
            return ""
        if self._group_values is None or self._group_values[0] is not overlay:
            self._group_values = overlay, {}
        known = self._group_values[1]
        if key not in known:
            known[key] = overlay.group_text(*key)
        return known[key]

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
        box = self.scene.boxes[index]
        if self._session is None or box.card is not None:
            return False
        return self._session.tensors.has_value(box.operand)

    def adopt_summary(self, index: int) -> bool:
        """Read the summary of the value that a box shows, if the session has it."""
        if self._session is None:
            return False
        found = self._session.tensors.summary(self.scene.boxes[index].operand)
        if found is not None:
            self.summaries[index] = found
        return found is not None

    def special_seen(self) -> tuple[bool, bool, bool]:
        """Return whether a box has the mark of NaN, of +Inf and of -Inf."""
        known = [self.summaries[n] for n in self.summaries if self.shown(n) is _EXECUTED]
        nan, pinf, ninf = (bool(counts.any()) for counts in self.special_counts)
        return (
            nan or any(each.nan for each in known),
            pinf or any(each.pinf for each in known),
            ninf or any(each.ninf for each in known),
        )

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
        """Return how many operators are in a state."""
        return int(np.count_nonzero(self._operators == state))
