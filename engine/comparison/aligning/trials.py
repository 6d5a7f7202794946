"""Trials: what our operators give with a tensor of the reference in place of an operand.

A guess is confirmed if the operators that read the operand then give tensors of the reference
again, which they do not for any other tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.aligning.calls import function_of, is_composite
from engine.comparison.aligning.elements import is_normalized, varies
from engine.comparison.aligning.limits import AHEAD, CONFIRMING, EXACT, NEAR, ROUNDED
from engine.comparison.layouts import repeats_elements
from engine.comparison.measures import relative_distance
from engine.cost import is_free

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.comparison.aligning.state import Reading, Sides, State
    from engine.comparison.aligning.structure import Structure
    from engine.comparison.aligning.values import Values
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["Trials"]

_MOST: Final = 4  # operators that one trial runs
_MOST_MOVES: Final = 8  # those that only move elements apart
_OF_COMPOSITE: Final = 24  # calls that may compute an attention or a recurrent layer
_FIRST: Final = 1 << 16  # elements, of which some must differ


class _Distance(NamedTuple):
    """How far an operator is from the operand that is tried: all, and those that act."""

    steps: int
    acting: int


class _Walk:
    """The operators behind an operand that is tried, in the order in which they run.

    Parameters
    ----------
    values : mapping of str to Value
        What is taken, by operand.
    readers : iterable of RuntimeOperator
        The first operators.

    Attributes
    ----------
    given : dict of str to Value
        What is taken, and what operators gave.
    runs : int
        Operators that were run.
    """

    def __init__(self, values: Mapping[str, Value], readers: Iterable[RuntimeOperator]) -> None:
        self.given = dict(values)
        self.runs = 0
        self._moves = 0  # of the runs, those that only move elements
        self._told: set[str] = set()  # operands that more than plain functions gave
        self._waiting = {each.index: _Distance(1, 1) for each in readers}

    @property
    def goes_on(self) -> bool:
        """Whether another operator is to be run."""
        is_short = self.runs - self._moves < _MOST and self._moves < _MOST_MOVES
        return is_short and bool(self._waiting)

    def next(self, operators: Sequence[RuntimeOperator]) -> tuple[RuntimeOperator, _Distance]:
        """Return the next operator, and how far it is."""
        distance = self._waiting.pop(index := min(self._waiting))
        return operators[index], distance

    def count(self, operator: RuntimeOperator) -> None:
        """Count an operator that is run."""
        self.runs += 1
        self._moves += _only_moves(operator)

    def tells(self, operator: RuntimeOperator) -> bool:
        """Whether an operator has weights or another input, or follows one that has."""
        is_plain = not operator.has_attributes and len(operator.inputs) <= 1
        return not is_plain or any(operand.name in self._told for operand in operator.inputs)

    def follow(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Value,
        distance: _Distance,
        *,
        tells: bool,
    ) -> None:
        """Take a result of an operator, and go on with what reads it, if that is near."""
        self.given[operand.name] = result
        if tells:
            self._told.add(operand.name)
        if distance.acting < AHEAD:
            acting = distance.acting + (not _only_moves(operator))
            further = _Distance(distance.steps + 1, acting)
            self._waiting |= {each.index: further for each in operand.consumers}


def _only_moves(operator: RuntimeOperator) -> bool:
    """Whether an operator only moves elements of its input."""
    return is_free(operator.type) and len(operator.inputs) == 1


class Trials:
    """Runs our operators on tensors that may be an operand's.

    Parameters
    ----------
    sides : Sides
    state : State
    values : Values
    structure : Structure
    """

    def __init__(
        self, sides: Sides, state: State, values: Values, structure: Structure
    ) -> None:
        self._sides, self._state, self._values = sides, state, values
        self._structure = structure

    def confirms(
        self,
        operand: RuntimeOperand,
        reading: Reading,
        *,
        telling: bool = False,
        anew: bool = False,
    ) -> bool:
        """Whether operators downstream give the reference's tensors when they take this one.

        A plain function, such as a ReLU, gives them of every tensor that the reference applies
        it to. With `telling` an operator with weights or another input must be among them. With
        `anew` a tensor that follows without the trial as well does not count.
        """
        value = self._values.read(operand.name, reading)
        if value is None:
            return False
        return self.leads_on(
            {operand.name: value}, operand, reading.key, telling=telling, anew=anew
        )

    def leads_on(
        self,
        values: Mapping[str, Value],
        start: RuntimeOperand,
        key: str,
        *,
        telling: bool = False,
        anew: bool = False,
        reader: RuntimeOperator | None = None,
    ) -> bool:
        """Whether what follows an operand gives tensors behind the one that it takes.

        Operators that only move elements do not count as steps, except to what agrees with the
        reference without the trial as well.

        Parameters
        ----------
        values : mapping of str to Value
            What is taken, by operand.
        start : RuntimeOperand
        key : str
            The tensor that `start` takes.
        telling, anew : bool
            See `confirms`.
        reader : RuntimeOperator, optional
            The only one of those that read `start` to follow.
        """
        walk = _Walk(values, start.consumers if reader is None else (reader,))
        limit = ROUNDED
        while walk.goes_on:
            operator, distance = walk.next(self._sides.operators)
            arguments = self._arguments(operator, walk.given)
            if arguments is None:
                continue
            walk.count(operator)
            limit = NEAR if self._values.is_quantised(operator) else limit
            results, failure = self._values.compute(operator, arguments)
            if failure:
                continue
            tells = walk.tells(operator)
            is_near = distance.steps <= AHEAD and walk.runs <= _MOST and not anew
            for operand, result in zip(operator.outputs, results, strict=True):
                if (
                    (tells or not telling)
                    and self.is_new(operand.name, result, key, limit)
                    and (is_near or not self._gives_anyway(operand, result))
                ):
                    return True
                walk.follow(operator, operand, result, distance, tells=tells)
        return False

    def _arguments(
        self, operator: RuntimeOperator, given: Mapping[str, Value]
    ) -> list[Value] | None:
        """Return what an operator takes; None if it is unknown, or cannot be repeated."""
        if operator.is_output or operator.random:
            return None
        return self._values.arguments(operator, given)

    def _gives_anyway(self, operand: RuntimeOperand, result: Value) -> bool:
        """Whether a result agrees with the reference without a trial already, and is the same.

        As what is multiplied by the zeros that a recurrent state begins with.
        """
        end, born = self._state.reading_of(operand.name), self._state.result.born
        if end is None or operand.name not in born:
            return False
        agrees = born[operand.name].relative <= CONFIRMING and not born[operand.name].note
        return agrees and self._gives(operand, result, end)

    def is_hidden(self, operand: RuntimeOperand, reading: Reading) -> bool:
        """Whether what follows gives the tensors that it is matched with of another one, too.

        As a normalization does whose weight is zero.
        """
        value = self._values.read(operand.name, reading)
        given: dict[str, Value] = {operand.name: value}
        waiting = {each.index for each in operand.consumers}
        trials, hidden = 0, False
        while waiting and trials < _MOST:
            waiting.discard(index := min(waiting))
            operator = self._sides.operators[index]
            arguments = self._arguments(operator, given)
            if arguments is None:
                return False
            trials += 1
            results, failure = self._values.compute(operator, arguments)
            for output, result in zip(operator.outputs, results, strict=True):
                end = self._state.reading_of(output.name)
                end = end or self._state.repeated.get(output.name)
                if end is None:
                    given[output.name] = result
                    waiting |= {each.index for each in output.consumers}
                elif failure or not self._gives(output, result, end):
                    return False
                else:
                    hidden = True
        return hidden and not waiting

    def _gives(self, operand: RuntimeOperand, result: Value, reading: Reading) -> bool:
        """Whether a result is a tensor of the reference."""
        theirs = self._values.read(operand.name, reading)
        if not isinstance(result, np.ndarray) or theirs is None or result.shape != theirs.shape:
            return False
        return relative_distance(result, theirs) <= CONFIRMING

    def is_new(self, operand: str, result: Value, key: str, limit: float = ROUNDED) -> bool:
        """Whether a result equals a tensor downstream of a given one, and is not only that one.

        What only moves elements, as a permutation, or repeats them does so with any tensor. A
        tensor that an operand upstream has confirms nothing either: a normalization gives it
        again from twice its input.
        """
        if not isinstance(result, np.ndarray) or not is_numeric(result) or result.size < 2:
            return False
        first = result.reshape(-1)[:_FIRST]
        if (first == first[0]).all():
            return False
        index, reference = self._sides.index, self._sides.reference
        places = reference.index
        found = any(
            not index.equal(each.key, key)
            and (not reference.ordered or places[each.key] > places[key])
            and not self._structure.is_taken_upstream(each.key, operand)
            and varies(reference.array(each.key))  # any that hardly varies is near a constant
            for each in index.similar(result, limit, {key})
        )
        return found and not repeats_elements(result, reference.array(key))

    # What belongs elsewhere

    def is_fused(self, operand: RuntimeOperand, result: Value, reading: Reading) -> bool:
        """Whether a tensor belongs rather to a downstream operator that is fused with ours.

        A fused operator stands for the last of its group. That one does not change the tensor,
        as an activation does not change its own output, and its result is nearer. Where the
        reference applies that function to the tensor, nothing is fused.
        """
        value = self._values.read(operand.name, reading)
        if value is None or not isinstance(result, np.ndarray) or result.shape != value.shape:
            return False
        for consumer in operand.consumers:
            arguments = self._values.arguments(consumer, {operand.name: value})
            if consumer.is_output or arguments is None:
                continue
            if function_of(consumer.type) in self._structure.calls.functions_of(reading.key):
                continue
            again, _ = self._values.compute(consumer, arguments)
            for output, unchanged in zip(consumer.outputs, again, strict=True):
                given = self._state.stand_ins.get(output.name)
                if (
                    isinstance(given, np.ndarray)
                    and isinstance(unchanged, np.ndarray)
                    and given.shape == value.shape == unchanged.shape
                    and np.array_equal(unchanged, value)
                    and relative_distance(given, value) < relative_distance(result, value)
                ):
                    return True
        return False

    def given_without(self, operator: RuntimeOperator, operand: RuntimeOperand) -> set[str]:
        """Return the tensors that what reads a function gives of the function's own input.

        If they are the reference's, the function is one too many, or changes nothing.
        """
        if operator.has_attributes or len(operator.inputs) != 1 or len(operand.consumers) != 1:
            return set()
        (reader,), arguments = operand.consumers, self._values.arguments(operator)
        if reader.is_output or reader.random or arguments is None:
            return set()
        given = self._values.arguments(reader, {operand.name: arguments[0]})
        result = self._values.compute_one(reader, reader.outputs[0], given)
        if not isinstance(result, np.ndarray) or not is_numeric(result):
            return set()
        similar = self._sides.index.similar(result, EXACT)
        return {each.key for each in similar}.difference(self._state.inputs_of(operator))

    def is_step_of_norm(self, operand: RuntimeOperand, result: Value, reading: Reading) -> bool:
        """Whether a tensor belongs rather inside a normalization that reads an operand.

        Some references normalize, scale and shift in calls of their own. What is normalized
        already is confirmed by the normalization, which does not change it. A tensor that the
        reference normalizes is none, however it looks: blocks of a new network add little.
        """
        if is_normalized(result) or not any(
            "norm" in function_of(consumer.type) for consumer in operand.consumers
        ):
            return False
        if any("norm" in each for each in self._structure.calls.functions_of(reading.key)):
            return False
        return is_normalized(self._values.read(operand.name, reading))

    def has_another(self, operand: str, key: str) -> bool:
        """Whether the reference has another tensor for a stand-in, upstream of a tensor.

        Both lead to the reference's tensors: what follows hides the difference, as a softmax
        hides an offset and a normalization a scale.
        """
        target = self._sides.session.graph.operand(operand)
        result, producer = self._state.stand_ins.get(operand), target.producer
        if producer is None or not isinstance(result, np.ndarray):
            return False
        known = [self._state.key_of(each.name) for each in producer.inputs]
        if not known or None in known:
            return False
        places = self._sides.reference.index
        calls = _OF_COMPOSITE if is_composite(producer.type) else AHEAD
        for other in self._structure.calls.near(self._state.inputs_of(producer), calls):
            if other in self._state.taken or other in known or places[other] >= places[key]:
                continue
            reading = self._values.fit(other, target, result)
            if reading is None or self.is_fused(target, result, reading):
                continue
            if self.confirms(target, reading):
                return True
        return False
