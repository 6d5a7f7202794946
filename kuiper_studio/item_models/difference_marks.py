"""What a comparison with a reference says about each operator."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from engine.text import format_brief
from kuiper_studio.item_models.comparison_rows import (
    UNMATCHED,
    DifferenceKind,
    DifferenceLook,
    look_of,
)

if TYPE_CHECKING:
    from engine.comparison import Comparison, Row
    from engine.runtime import RuntimeGraph
    from kuiper_studio.session import StudioSession
    from kuiper_studio.session.comparing import Comparing

__all__ = ["DifferenceMark", "DifferenceMarks", "operator_marks"]

PlaceT = TypeVar("PlaceT")

_K = DifferenceKind
# The worst operand of an operator decides; the last kind is the worst.
_SEVERITY: Final = (_K.EQUAL, _K.OTHER, _K.INHERITED, _K.BORN)
_COUNTED: Final = {
    _K.BORN: "born",
    _K.INHERITED: "inherited",
    _K.EQUAL: "equal",
    _K.OTHER: "not compared",
}


@dataclass(frozen=True, slots=True)
class DifferenceMark:
    """The mark of one operator.

    Attributes
    ----------
    look : DifferenceLook
    relative : float or None
        Largest difference over the reference's largest element; None where there is no such
        number.
    born : float or None
        The part of it that is born here.
    reason : str
        Why it was not compared, or what its status means here; ``""`` for none.
    """

    look: DifferenceLook
    relative: float | None = None
    born: float | None = None
    reason: str = ""

    @property
    def kind(self) -> DifferenceKind:
        """The group of the operator."""
        return self.look.kind

    @property
    def text(self) -> str:
        """The mark in words."""
        number = ""
        if self.relative is not None:
            number = f"difference {format_brief(self.relative)} of the reference's maximum"
        return ", ".join(filter(None, (self.look.word, number, self.reason)))

    def _rank(self) -> tuple[int, float]:
        relative = -1.0 if self.relative is None else self.relative
        return _SEVERITY.index(self.kind), relative

    def is_worse_than(self, other: DifferenceMark) -> bool:
        """Return whether this mark stands for an operator that has both."""
        return self._rank() > other._rank()


class DifferenceMarks(dict[PlaceT, DifferenceMark], Generic[PlaceT]):
    """Marks by operator, or by what stands for several."""

    def add(self, place: PlaceT, mark: DifferenceMark) -> None:
        """Add a mark, unless there is a worse one."""
        known = self.get(place)
        if known is None or mark.is_worse_than(known):
            self[place] = mark

    @cached_property
    def count_text(self) -> str:
        """How many there are of each group, in words, once all are added."""
        counts = Counter(mark.kind for mark in self.values())
        found = ((counts[kind], word) for kind, word in _COUNTED.items())
        return ", ".join(f"{count} {word}" for count, word in found if count)

    @cached_property
    def looks(self) -> dict[DifferenceKind, DifferenceLook]:
        """How the first of each kind looks, once all are added."""
        looks: dict[DifferenceKind, DifferenceLook] = {}
        for mark in self.values():
            looks.setdefault(mark.kind, mark.look)
        return looks


# Of the present comparison of each session: five views ask for the marks at once.
_present: Final[
    WeakKeyDictionary[Comparing, tuple[Comparison, RuntimeGraph, DifferenceMarks[str]]]
] = WeakKeyDictionary()


def operator_marks(session: StudioSession) -> DifferenceMarks[str]:
    """Return the marks of the session's comparison by operator; none without a comparison.

    An operator without an output has no mark.
    """
    comparison, graph = session.comparing.comparison, session.graph
    if comparison is None or graph is None:
        _present.pop(session.comparing, None)
        return DifferenceMarks()
    known = _present.get(session.comparing)
    if known is None or known[0] is not comparison or known[1] is not graph:
        known = comparison, graph, _make_marks(comparison, graph)
        _present[session.comparing] = known
    return known[2]


def _make_marks(comparison: Comparison, graph: RuntimeGraph) -> DifferenceMarks[str]:
    marks = DifferenceMarks[str]()
    for lost in comparison.unmatched.ours:
        producer = graph.operand(lost.operand).producer
        if producer is not None:
            marks.add(producer.name, DifferenceMark(UNMATCHED, reason=lost.reason))
    for row in comparison.rows:
        marks.add(row.operator.name, _mark_of(row))
    return marks


def _mark_of(row: Row) -> DifferenceMark:
    # Without measures, for another shape, all of the distance is born.
    relative = row.measures.relative if row.measures is not None else row.born
    return DifferenceMark(look_of(row), relative, row.born, row.reason)
