"""What a comparison with a reference says about each operator."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.text import format_brief
from kuiper_studio.item_models.comparison_rows import (
    UNMATCHED,
    DifferenceKind,
    DifferenceLook,
    look_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.comparison import Row
    from kuiper_studio.session import StudioSession

__all__ = ["DifferenceMark", "count_text", "operator_marks"]

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


def operator_marks(session: StudioSession) -> dict[str, DifferenceMark]:
    """Return the marks of the session's comparison by operator; none without a comparison.

    An operator without an output has no mark.
    """
    comparison, graph = session.comparing.comparison, session.graph
    if comparison is None or graph is None:
        return {}
    marks: dict[str, DifferenceMark] = {}

    def add(operator: str, mark: DifferenceMark) -> None:
        known = marks.get(operator)
        if known is None or mark.is_worse_than(known):
            marks[operator] = mark

    for lost in comparison.unmatched.ours:
        producer = graph.operand(lost.operand).producer
        if producer is not None:
            add(producer.name, DifferenceMark(UNMATCHED, reason=lost.reason))
    for row in comparison.rows:
        add(row.operator.name, _mark_of(row))
    return marks


def _mark_of(row: Row) -> DifferenceMark:
    # Without measures, for another shape, all of the distance is born.
    relative = row.measures.relative if row.measures is not None else row.born
    return DifferenceMark(look_of(row), relative, row.born, row.reason)


def count_text(marks: Iterable[DifferenceMark]) -> str:
    """Return how many operators each group has, in words."""
    counts = Counter(mark.kind for mark in marks)
    found = ((counts[kind], word) for kind, word in _COUNTED.items())
    return ", ".join(f"{count} {word}" for count, word in found if count)
