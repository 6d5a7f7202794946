"""What the parts of an alignment share: both sides, and what is known so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from engine.comparison.aligning.result import Alignment
from engine.comparison.layouts import SAME_LAYOUT, Layout
from engine.comparison.matching import Match

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.comparison.fingerprints import FingerprintIndex
    from engine.comparison.matching import Matcher
    from engine.comparison.references import Reference
    from engine.runtime import RuntimeOperator
    from engine.session import Session
    from engine.values import Value

__all__ = ["Reading", "Sides", "State"]


class Reading(NamedTuple):
    """A tensor of the reference, and how to read it for one of our operands.

    Attributes
    ----------
    key : str
        Of the reference's tensor.
    shape : tuple of int
        Ours.
    layout : Layout
    """

    key: str
    shape: tuple[int, ...]
    layout: Layout = SAME_LAYOUT

    def match(self, matched_by: str, confidence: float) -> Match:
        """Return it as a match."""
        return Match(self.key, matched_by, confidence, self.layout)


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of an alignment.

    Attributes
    ----------
    session : Session
        At its end.
    reference : Reference
    index : FingerprintIndex
        Of the reference.
    matcher : Matcher
    tolerance : float
        Relative distance up to which a value of our run stands for the reference's.
    """

    session: Session
    reference: Reference
    index: FingerprintIndex
    matcher: Matcher
    tolerance: float

    @property
    def operators(self) -> tuple[RuntimeOperator, ...]:
        """Ours, in execution order."""
        return self.session.graph.operators

    def fit(self, key: str | None, shapes: Sequence[tuple[int, ...]]) -> Reading | None:
        """Return how to read a tensor in the first of our shapes that fits; None for none."""
        found = self.matcher.layout(key, shapes) if key is not None else None
        return Reading(key, *found) if key is not None and found is not None else None

    def is_plain(self, reading: Reading) -> bool:
        """Whether only axes of size 1 differ from the shape that the reference has."""
        return not reading.layout.axes and self.has_plain_shape(reading)

    def has_plain_shape(self, reading: Reading) -> bool:
        """Whether shapes are equal up to axes of size 1."""
        theirs = self.index.shapes[reading.key]
        return [n for n in theirs if n > 1] == [n for n in reading.shape if n > 1]

    def place_of(self, operand: str) -> int:
        """Return the index of an operand in our graph."""
        return self.session.graph.operand(operand).index


@dataclass(slots=True)
class State:
    """What is known of our operands so far, by name.

    Attributes
    ----------
    result : Alignment
        Grows with the walk.
    taken : dict of str to str
        Operands by the tensors that they were the first to be matched with.
    as_run : dict of str to float
        Operands whose value in our run is the reference's up to rounding, and by how much.
    stand_ins : dict of str to Value
        What our operators give, where no tensor of the reference is known.
    repeated : dict of str to Reading
        Stand-ins that are equal to an input of their operator.
    waiting : dict of str to frozenset of str
        By stand-in, itself and the unconfirmed ones that it was computed from.
    confirmed : set of str
        Stand-ins from which a tensor of the reference followed.
    given_up : set of str
        Stand-ins that were decided upon and stay unmatched.
    blocked : set of int
        Indexes of operators that could not be computed, because nothing is known upstream.
    failures : dict of str to str
        Why an operator gave no value.
    """

    result: Alignment = field(default_factory=Alignment)
    taken: dict[str, str] = field(default_factory=dict)
    as_run: dict[str, float] = field(default_factory=dict)
    stand_ins: dict[str, Value] = field(default_factory=dict)
    repeated: dict[str, Reading] = field(default_factory=dict)
    waiting: dict[str, frozenset[str]] = field(default_factory=dict)
    confirmed: set[str] = field(default_factory=set)
    given_up: set[str] = field(default_factory=set)
    blocked: set[int] = field(default_factory=set)
    failures: dict[str, str] = field(default_factory=dict)

    def is_matched(self, operand: str) -> bool:
        """Whether a tensor of the reference is matched with an operand."""
        return operand in self.result.matches

    def reading_of(self, operand: str) -> Reading | None:
        """Return how the tensor is read that an operand is matched with; None for none."""
        match = self.result.matches.get(operand)
        if match is None:
            return None
        return Reading(match.key, self.result.shapes[operand], match.layout)

    def key_of(self, operand: str) -> str | None:
        """Return the tensor that an operand is matched with, or that it repeats."""
        reading = self.reading_of(operand) or self.repeated.get(operand)
        return reading.key if reading is not None else None

    def inputs_of(self, operator: RuntimeOperator) -> tuple[str, ...]:
        """Return the known tensors of an operator's inputs, each once."""
        keys = (self.key_of(operand.name) for operand in operator.inputs)
        return tuple(dict.fromkeys(key for key in keys if key is not None))

    def waiting_for(self, operator: RuntimeOperator) -> frozenset[str]:
        """Return the unconfirmed stand-ins upstream of an operator."""
        sets = (self.waiting.get(operand.name, frozenset()) for operand in operator.inputs)
        return frozenset().union(*sets) - self.confirmed

    def stand_in(self, operand: str, value: Value, waiting: frozenset[str]) -> None:
        """Continue with our own value of an operand."""
        self.stand_ins[operand], self.waiting[operand] = value, waiting

    def fail(self, operand: str, failure: str, waiting: frozenset[str]) -> None:
        """Note that there is no value of an operand."""
        self.failures[operand], self.waiting[operand] = failure, waiting | {operand}

    def forget(self, operand: str) -> Match | None:
        """Forget what is known of an operand, and return its match."""
        for known in (self.stand_ins, self.waiting, self.repeated, self.failures, self.as_run):
            known.pop(operand, None)
        self.given_up.discard(operand)
        self.result.born.pop(operand, None)
        match = self.result.matches.pop(operand, None)
        if match is not None and self.taken.get(match.key) == operand:
            del self.taken[match.key]
        return match
