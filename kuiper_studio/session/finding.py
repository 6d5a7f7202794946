"""The operators that the user looks for, by a search or along edges; views mark them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from engine.errors import SearchError
from engine.runtime.reach import find_between, find_downstream, find_upstream
from engine.search import OperatorIndex, Search, parse_search
from engine.values import ArrayMetadata
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    from engine.runtime import RuntimeGraph, RuntimeOperand
    from engine.shapes import ExportedShape
    from kuiper_studio.session.measuring import Measuring
    from kuiper_studio.session.tensors import Tensors

__all__ = ["Finding"]


class Finding(QObject):
    """Operators of the shown model that are marked, to step through.

    Parameters
    ----------
    graph : callable
        Returns the shown graph, or None.
    tensors : Tensors
        Source of computed shapes.
    measuring : Measuring
        Source of what is known of values.

    Attributes
    ----------
    text : str
        The search as typed; ``""`` for none.
    error : str
        What is wrong with it, in one sentence; the marks stay those of the last valid one.
    title : str
        What the marked operators are, without a search: ``upstream of conv1``.
    operators : tuple of int
        Indices of the marked operators in execution order.
    unknown : int
        Number of operators that may match once they have been computed and measured.
    start : str
        The operator whose paths to the next selected one are wanted; ``""`` for none.

    Signals
    -------
    changed
        What is marked, the error, or the start has changed.
    """

    changed = Signal()

    def __init__(
        self,
        graph: Callable[[], RuntimeGraph | None],
        tensors: Tensors,
        measuring: Measuring,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._get_graph, self._tensors, self._measuring = graph, tensors, measuring
        self._index: OperatorIndex | None = None
        self._search = Search()
        self._marks: npt.NDArray[np.bool_] | None = None
        self.text = self.error = self.title = self.start = ""
        self.operators: tuple[int, ...] = ()
        self.unknown = 0
        measuring.changed.connect(self._on_measured)

    # What is marked

    @property
    def is_on(self) -> bool:
        """Whether operators are marked, or none of them matches a search."""
        return self._marks is not None

    @property
    def marks(self) -> npt.NDArray[np.bool_] | None:
        """Whether each operator is marked, shape (N,); None while nothing is looked for."""
        return self._marks

    def place_of(self, index: int) -> int:
        """Return the position of an operator among the marked ones; -1 if it is not marked."""
        place = bisect_left(self.operators, index)
        is_marked = place < len(self.operators) and self.operators[place] == index
        return place if is_marked else -1

    def after(self, index: int) -> int:
        """Return the marked operator after one, the first one after the last; -1 for none."""
        if not self.operators:
            return -1
        return self.operators[bisect_right(self.operators, index) % len(self.operators)]

    def before(self, index: int) -> int:
        """Return the marked operator before one, the last one before the first; -1 for none."""
        if not self.operators:
            return -1
        return self.operators[bisect_left(self.operators, index) - 1]

    # Marking

    def prepare(self) -> None:
        """Make what searches look up, in turns of the event loop, before the first key."""
        if self._get_graph() is not None:
            self._prepare_next(self._indexed().prepare())

    def _prepare_next(self, columns: Iterator[None]) -> None:
        def make_one() -> None:
            if next(columns, self) is not self:
                take_turn(self, make_one)

        take_turn(self, make_one)

    def search(self, text: str) -> None:
        """Mark the operators that a text finds; an empty one marks nothing."""
        self.text, self.start = text, ""
        try:
            search = parse_search(text)
        except SearchError as exc:
            self.error = str(exc)
            self.changed.emit()
            return
        self._search = search
        self._measuring.want("search", on=search.needs_values)
        self._find()

    def mark_upstream(self, operator: str) -> None:
        """Mark an operator and all that it depends on."""
        graph = self._get_graph()
        if graph is not None:
            self._mark(find_upstream(graph, operator), f"upstream of {operator}")

    def mark_downstream(self, operator: str) -> None:
        """Mark an operator and all that depend on it."""
        graph = self._get_graph()
        if graph is not None:
            self._mark(find_downstream(graph, operator), f"downstream of {operator}")

    def mark_paths(self, one: str, other: str) -> None:
        """Mark the operators on the paths between two, both included."""
        graph = self._get_graph()
        if graph is not None:
            ends = sorted((one, other), key=lambda name: graph.operator(name).index)
            found = find_between(graph, one, other)
            self._mark(found, f"on paths from {ends[0]} to {ends[1]}")

    def begin_paths(self, operator: str) -> None:
        """Mark the paths from an operator to the one that is selected next."""
        self.clear()
        self.start = operator
        self.changed.emit()

    @Slot(object)
    def follow_selection(self, operator: str) -> None:
        """Mark the paths to the selected operator, if its paths are wanted."""
        if self.start and operator not in ("", self.start):
            self.mark_paths(self.start, operator)

    def clear(self) -> None:
        """Mark nothing; silent when nothing is looked for."""
        if self.is_on or self.text or self.start:
            self._drop()
            self.changed.emit()

    # Following the session

    @Slot()
    def reset(self) -> None:
        """Forget everything, because another model is shown."""
        self._index = None
        self._drop()
        self.changed.emit()

    @Slot()
    def refresh(self) -> None:
        """Search again, because operators may have other shapes now."""
        if self._index is not None:
            self._index.forget_shapes()
        if self.text and not self.error:
            self._find()

    @Slot()
    def _on_measured(self) -> None:
        if self._search.needs_values and not self.error:
            self._find()

    def _find(self) -> None:
        graph = self._get_graph()
        if graph is None or not self._search.terms:
            self._drop(keeps_text=True)
            self.changed.emit()
            return
        try:
            found = self._search.find(self._indexed(), self._measuring.table)
        except SearchError as exc:
            self.error = str(exc)
            self.changed.emit()
            return
        self.title = self.error = ""
        self.unknown = found.unknown
        self._take(tuple(found.operators.tolist()), len(graph.operators))

    def _mark(self, operators: tuple[int, ...], title: str) -> None:
        graph = self._get_graph()
        self._drop()
        self.title = title
        self._take(operators, len(graph.operators) if graph is not None else 0)

    def _take(self, operators: tuple[int, ...], count: int) -> None:
        self.operators = operators
        self._marks = np.zeros(count, np.bool_)
        self._marks[list(operators)] = True
        self.changed.emit()

    def _drop(self, *, keeps_text: bool = False) -> None:
        if not keeps_text:
            self.text = ""
            self._search = Search()
        if not self._search.needs_values:
            self._measuring.want("search", on=False)
        self.error = self.title = self.start = ""
        self.operators, self.unknown, self._marks = (), 0, None

    def _indexed(self) -> OperatorIndex:
        if self._index is None:
            graph = self._get_graph()
            operators = graph.operators if graph is not None else ()
            self._index = OperatorIndex(operators, self._shape_of)
        return self._index

    def _shape_of(self, operand: RuntimeOperand) -> ExportedShape | None:
        computed = self._tensors.metadata(operand.name)
        return computed.shape if isinstance(computed, ArrayMetadata) else operand.shape
