"""A session and a reference whose tensors are matched, and what is known of each operand."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

import numpy as np

from engine.comparison.explaining import Known
from engine.comparison.known_weights import KnownWeights
from engine.comparison.requantised import dequantise, find_requantised
from engine.comparison.rows import Status
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.comparison.aligning import Alignment
    from engine.comparison.measures import Tolerances
    from engine.comparison.references import Reference
    from engine.comparison.rows import Row
    from engine.inputs import SourceImage
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.session import Session
    from engine.values import Array, Value

__all__ = ["Aligned"]


class Aligned:
    """Both sides of a comparison, and the rows that are made of them.

    Parameters
    ----------
    session : Session
        At its end.
    reference : Reference
    alignment : Alignment
    tolerances : Tolerances
    check_cancelled : callable
        Called between steps that take long; an exception ends the comparison.
    images : mapping of str to SourceImage
        What inputs were made from, by operand.

    Attributes
    ----------
    requantised : mapping of str to float
        Scales of our results that are int8, by operand.
    rows : dict of str to Row
        By operand, in execution order. Each step of the comparison may replace some.
    known : Known
    """

    def __init__(
        self,
        session: Session,
        reference: Reference,
        alignment: Alignment,
        tolerances: Tolerances,
        check_cancelled: Callable[[], None],
        images: Mapping[str, SourceImage],
    ) -> None:
        self.session, self.reference = session, reference
        self.alignment, self.tolerances = alignment, tolerances
        self.check_cancelled = check_cancelled
        self.requantised = find_requantised(session.graph)
        self.rows: dict[str, Row] = {}
        unread = tuple(
            each
            for each in session.graph.operators
            if each.outputs and not any(operand.consumers for operand in each.outputs)
        )
        self.known = Known(
            self.ours, self.theirs, alignment.computed, self.is_shown, self.repeats,
            self._feeds, self._agrees, self._lost, KnownWeights(reference, self._key_of),
            unread, images,
        )  # fmt: skip

    def ours(self, operand: RuntimeOperand) -> Value:
        """Return our value, with numbers for int8 results; None if there is none."""
        if not self.session.has_value(operand.name):
            return None
        return self.as_numbers(operand, self.session.value(operand.name))

    def as_numbers(self, operand: RuntimeOperand, value: Value) -> Value:
        """Return a result of ours as the numbers that it stands for, if it is int8."""
        return dequantise(value, self.requantised.get(operand.name))

    def theirs(self, operand: RuntimeOperand) -> Array | None:
        """Return the reference's tensor in our layout; None where there is none."""
        match = self.alignment.matches.get(operand.name)
        if match is None:
            return None
        try:
            array = self.reference.array(match.key)
        except EngineError:
            return None
        shape = self.alignment.shapes[operand.name]
        return match.layout.to_ours(array, shape) if math.prod(shape) == array.size else array

    def given(self, operand: RuntimeOperand) -> Value:
        """Return the reference's value, or what stands in for it, in the operand's dtype."""
        value = self.known.value(operand)
        if not isinstance(value, np.ndarray) or operand.dtype is None:
            return value
        return value.astype(operand.dtype, copy=False)

    def given_inputs(self, operator: RuntimeOperator) -> dict[int, Array]:
        """Return the reference's inputs of an operator that it shows, by position."""
        found: dict[int, Array] = {}
        for place, operand in enumerate(operator.inputs):
            if self.is_shown(operand):
                value = self.given(operand)
                if isinstance(value, np.ndarray):
                    found[place] = value
        return found

    def is_shown(self, operand: RuntimeOperand) -> bool:
        """Whether the reference has a tensor for an operand."""
        return operand.name in self.alignment.matches

    def repeats(self, operand: RuntimeOperand) -> bool:
        """Whether an operand has only the tensor of its producer's own input, unchanged."""
        producer, matches = operand.producer, self.alignment.matches
        if producer is None or len(producer.inputs) != 1:
            return False
        name, source = operand.name, producer.inputs[0].name
        if name not in matches or source not in matches:
            return False
        shapes = self.alignment.shapes
        return matches[name].is_same_as(matches[source]) and shapes[name] == shapes[source]

    def downstream(self, begins: Callable[[Row], bool]) -> set[str]:
        """Return the operands whose rows satisfy a condition, and all downstream."""
        found: set[str] = set()
        for operator in self.session.graph.operators:
            above = any(operand.name in found for operand in operator.inputs)
            for operand in operator.outputs:
                row = self.rows.get(operand.name)
                if above or (row is not None and begins(row)):
                    found.add(operand.name)
        return found

    def _feeds(self, operand: RuntimeOperand, end: RuntimeOperand) -> bool:
        """Whether the reference's call that gives the tensor of `end` reads an operand's."""
        key, result = self._key_of(operand), self._key_of(end)
        readers = self.reference.consumers.get(key, ()) if key is not None else ()
        return any(result in call.outputs for call in readers)

    def _agrees(self, operand: RuntimeOperand) -> bool:
        """Whether our operator gives the reference's tensor on its inputs."""
        row = self.rows.get(operand.name)
        return row is not None and row.born is not None and row.status is not Status.ORIGIN

    def _lost(self, operand: RuntimeOperand) -> dict[str, Array]:
        """Return the inputs of the reference's own call that our operator does not read.

        As a constant is, if the export has lost the sum that reads it.
        """
        calls = [o for o in self.reference.operators if self._key_of(operand) in o.outputs]
        read = operand.producer.inputs if operand.producer is not None else ()
        known = {self._key_of(each) for each in read}
        found: dict[str, Array] = {}
        for key in dict.fromkeys(key for call in calls for key in call.inputs):
            if key not in known and key in self.reference.by_key:
                with contextlib.suppress(EngineError):
                    found[key] = self.reference.array(key)
        return found

    def _key_of(self, operand: RuntimeOperand) -> str | None:
        match = self.alignment.matches.get(operand.name)
        return match.key if match is not None else None
