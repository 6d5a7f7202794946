"""Stores matches, and measures what is born at them."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.aligning.elements import varies
from engine.comparison.aligning.limits import CONFIRMING, NEAR, ROUNDED
from engine.comparison.aligning.result import Born
from engine.comparison.aligning.state import Reading
from engine.comparison.aligning.values import shape_in_file
from engine.comparison.measures import Meter, relative_distance
from engine.comparison.pairs import Numbers
from engine.cost import is_free
from engine.errors import EngineError
from engine.text import format_shape

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.comparison.aligning.state import Sides, State
    from engine.comparison.aligning.structure import Structure
    from engine.comparison.aligning.trials import Trials
    from engine.comparison.aligning.values import Values
    from engine.comparison.matching import Match
    from engine.comparison.measures import Measures
    from engine.runtime import RuntimeOperator
    from engine.values import Array, Value

__all__ = ["Matches"]

_FEW: Final = 5  # results that do not show how much a reference rounds
_RECENT: Final = 64
_UNUSUAL: Final = 30.0  # multiple of the usual rounding
_NOT_COMPUTED: Final = "what it reads cannot be computed, nor is it shown by the reference"


class Matches:
    """The matches that are known, with what is born at each.

    Parameters
    ----------
    sides : Sides
    state : State
    values : Values
    structure : Structure
    trials : Trials
    """

    def __init__(
        self,
        sides: Sides,
        state: State,
        values: Values,
        structure: Structure,
        trials: Trials,
    ) -> None:
        self._sides, self._state, self._values = sides, state, values
        self._structure, self._trials, self._meter = structure, trials, Meter()
        self._measured_with: dict[str, Reading] = {}  # that the numbers of our run belong to
        self._rounding: list[float] = []  # distances of results on the reference's own inputs
        self._weighted: list[float] = []  # those of operators with weights, perhaps float16

    def add(
        self,
        operand: str,
        match: Match,
        shape: tuple[int, ...],
        result: Value,
        waiting: frozenset[str] = frozenset(),
    ) -> None:
        """Match an operand, measure what is born there, and confirm what it follows from.

        Parameters
        ----------
        operand : str
        match : Match
        shape : tuple of int
            In which to read the reference's tensor.
        result : Value
            What our operator gives on the reference's inputs; None if it fails.
        waiting : frozenset of str
            Unconfirmed stand-ins that it was computed from.
        """
        state = self._state
        state.result.matches[operand], state.result.shapes[operand] = match, shape
        if self._measured_with.get(operand) != Reading(match.key, shape, match.layout):
            state.result.numbers.pop(operand, None)
        state.as_run.pop(operand, None)
        state.taken.setdefault(match.key, operand)
        producer = self._sides.session.graph.operand(operand).producer
        computes = producer is not None and not producer.is_input
        if isinstance(result, np.ndarray) or computes:
            born = self._measure(operand, match, shape, result)
            group = sorted(waiting - {operand}, key=self._sides.place_of)
            state.result.born[operand] = replace(born, group=tuple(group))
            self._confirm(operand, match.key, result, born, waiting)
        state.stand_ins.pop(operand, None)
        state.waiting.pop(operand, None)

    def adopt(self, operand: str, match: Match, shape: tuple[int, ...]) -> None:
        """Match an operand whose producer cannot be computed; nothing is known of that one."""
        state = self._state
        state.result.matches[operand], state.result.shapes[operand] = match, shape
        producer = self._sides.session.graph.operand(operand).producer
        why = _NOT_COMPUTED
        if producer is not None and producer.error is not None:
            why = producer.reason
        state.result.born[operand] = Born(1.0, why, measured=False)
        state.taken.setdefault(match.key, operand)
        state.failures.pop(operand, None)
        state.waiting.pop(operand, None)

    def has_result(self, operand: str, result: Value) -> bool:
        """Whether a result is the tensor that an operand is matched with, if it is."""
        match = self._state.result.matches.get(operand)
        if match is None:
            return True
        shape = self._state.result.shapes[operand]
        return self._measure(operand, match, shape, result).relative <= ROUNDED

    # Confirming

    def _confirm(
        self, operand: str, key: str, result: Value, born: Born, waiting: frozenset[str]
    ) -> None:
        """Take stand-ins as the reference's values, if its next tensor follows from them."""
        producer = self._sides.session.graph.operand(operand).producer
        limit = NEAR if self._values.is_quantised(producer) else self._confirming()
        self._note_rounding(producer, born, waiting)
        if not waiting:
            return
        if born.relative >= limit or born.note or not varies(result):
            return
        if self._repeats_upstream(operand, key, waiting) or self._is_part(producer, result):
            return
        if not any(self._trials.has_another(name, key) for name in waiting):
            self._state.confirmed |= waiting

    def _note_rounding(
        self, producer: RuntimeOperator | None, born: Born, waiting: Collection[str]
    ) -> None:
        if waiting or born.relative >= CONFIRMING:
            return
        self._rounding.append(born.relative)
        if producer is not None and producer.has_attributes:
            self._weighted.append(born.relative)

    def _confirming(self) -> float:
        """Return the distance up to which a result confirms what it was computed from.

        Where the results so far differ by the rounding of float32, so does a right one; a small
        fault that later layers dilute differs by more.
        """
        if len(self._rounding) < _FEW:
            return CONFIRMING
        usual = median((self._weighted or self._rounding)[-_RECENT:])
        return min(CONFIRMING, max(self._sides.tolerance, _UNUSUAL * usual))

    def _repeats_upstream(self, operand: str, key: str, stand_ins: Collection[str]) -> bool:
        """Whether a tensor follows from stand-ins only because these repeat their inputs.

        What another reader of the same tensor gives, an operand upstream has already, or it is
        a step within that reader.
        """
        if not any(name in self._state.repeated for name in stand_ins):
            return False
        structure = self._structure
        return structure.is_taken_upstream(key, operand) or structure.is_step(key, operand)

    def _is_part(self, producer: RuntimeOperator | None, result: Value) -> bool:
        """Whether a result is a part of a stand-in, whose other parts may be wrong."""
        if producer is None or not is_free(producer.type) or not isinstance(result, np.ndarray):
            return False
        whole = [self._state.stand_ins.get(operand.name) for operand in producer.inputs]
        return any(isinstance(each, np.ndarray) and each.size > result.size for each in whole)

    # Measuring

    def _measure(
        self, operand: str, match: Match, shape: tuple[int, ...], result: Value
    ) -> Born:
        """Return how far a result is from a tensor of the reference, or why it cannot be."""
        if not isinstance(result, np.ndarray):
            return self._born_without_tensor(operand, result)
        try:
            array = self._sides.reference.read(match.key)
        except EngineError as exc:
            return Born(1.0, str(exc), measured=False)
        if result.size != array.size:
            shapes = format_shape(result.shape), format_shape(array.shape)
            return Born(1.0, f"it gives {shapes[0]}, the reference {shapes[1]}")
        theirs = match.layout.to_ours(array, shape)
        if result.shape != shape:
            return self._born_in_other_shape(operand, match, result, theirs)
        numbers = self._numbers_of_run(operand, match, theirs)
        if numbers is not None and self._values.tensor_of_run(operand) is result:
            distance = numbers.relative
        else:
            distance = relative_distance(result, theirs)
        return Born(distance if np.isfinite(distance) else 1.0)

    def _numbers_of_run(self, operand: str, match: Match, theirs: Array) -> Measures | None:
        """Measure our run for the row, now that the tensor is read, if it is not yet done.

        Parameters
        ----------
        operand : str
        match : Match
        theirs : ndarray
            The tensor that it is matched with, in our layout.

        Returns
        -------
        Measures or None
            None if our run has nothing of this shape.
        """
        known, run = self._state.result.numbers, self._values.tensor_of_run(operand)
        if run is None or run.shape != theirs.shape:
            return None
        if operand not in known:
            known[operand] = Numbers(*self._meter.measure(run, theirs))
            self._measured_with[operand] = Reading(match.key, theirs.shape, match.layout)
        return known[operand].measures

    def _born_without_tensor(self, operand: str, result: Value) -> Born:
        failure = self._state.failures.get(operand)
        if failure is None:
            return Born(1.0, f"it gives {type(result).__name__}, no tensor")
        producer = self._sides.session.graph.operand(operand).producer
        unknown = producer is not None and (producer.error is not None or producer.random)
        return Born(1.0, failure, measured=not unknown)

    def _born_in_other_shape(
        self, operand: str, match: Match, result: Array, theirs: Array
    ) -> Born:
        """Return what is born at a result of another shape with as many elements.

        Nothing is, if the shape differs upstream already.
        """
        if self._is_misshapen_above(operand) and not match.layout.axes:
            distance = relative_distance(result.reshape(-1), theirs.reshape(-1))
            if distance <= self._sides.tolerance:
                return Born(distance)
        shapes = format_shape(result.shape), format_shape(theirs.shape)
        return Born(1.0, f"it gives {shapes[0]} instead of {shapes[1]}")

    def _is_misshapen_above(self, operand: str) -> bool:
        """Whether an input already has, or is read in, another shape than the reference's.

        One that the file states is right, though a reference computes it with fewer axes, as a
        product of matrices.
        """
        producer = self._sides.session.graph.operand(operand).producer
        for source in producer.inputs if producer is not None else ():
            born = self._state.result.born.get(source.name)
            reading = self._state.reading_of(source.name)
            if born is not None and born.note:
                return True
            if reading is None or self._sides.has_plain_shape(reading):
                continue
            if reading.shape != shape_in_file(source):
                return True
        return False
