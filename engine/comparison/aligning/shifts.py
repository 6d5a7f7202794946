"""Matches inputs of an operator further downstream, or an operator with its own input.

Two faults shift everything behind them: a function of the reference that ours lacks, and one of
ours that the reference lacks. In the first case an operator's input is a tensor further down,
in the second its result is the input again.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.aligning.calls import function_of
from engine.comparison.aligning.elements import is_normalized_of
from engine.comparison.aligning.evidence import is_guess
from engine.comparison.aligning.limits import AHEAD, CONFIRMING
from engine.comparison.aligning.result import Born
from engine.comparison.matching import ALIGNMENT, HAND, NAME, OUTPUT, WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.aligning.state import Reading
    from engine.comparison.aligning.tools import Tools
    from engine.comparison.aligning.walk import Walk
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["Shifts"]

_EXPRESSION: Final = "pnnx.Expression"
_ARITHMETIC: Final = frozenset({"add", "sub", "rsub", "mul", "div", "neg", "pow"})


class Shifts:
    """Finds functions that only one side has.

    Parameters
    ----------
    tools : Tools
    walk : Walk
    """

    def __init__(self, tools: Tools, walk: Walk) -> None:
        self._sides, self._state, self._values = tools.sides, tools.state, tools.values
        self._calls, self._trials = tools.structure.calls, tools.trials
        self._matches, self._walk = tools.matches, walk

    def shift_inputs(
        self, operator: RuntimeOperator, operand: RuntimeOperand, *, over_layers: bool = False
    ) -> bool:
        """Match an input with a tensor further downstream, if the operator then agrees.

        Then an operator whose activation is missing in ours is matched with the activation's
        output. Return whether that was so.

        Parameters
        ----------
        operator : RuntimeOperator
        operand : RuntimeOperand
            Its result.
        over_layers : bool
            Whether to try tensors behind layers, which are left out else: an operator with the
            weights of a later one agrees with that one's input, too.
        """
        if any(map(self._is_blank, operator.inputs)):
            return False
        for source in dict.fromkeys(operator.inputs):
            if not self._may_shift(source, operand):
                continue
            if over_layers and self._is_certain(source):
                continue
            for reading in self._further(source, over_layers=over_layers):
                if self._is_of_expression(operator, source, reading.key):
                    continue
                if self._agrees_with(operator, operand, source, reading):
                    if not self._is_one_too_many(operator, operand):
                        match = reading.match(ALIGNMENT, 0.8)
                        self._walk.shift(source, match, reading.shape)
                        if not self._state.is_matched(operand.name):
                            self._state.given_up.add(operand.name)
                    return True
        return False

    def take_inputs_of_call(self, operator: RuntimeOperator, operand: RuntimeOperand) -> bool:
        """Match inputs with those of the reference's own call, if the operator then agrees.

        Where a sum is lost upstream, what follows may have given other tensors by chance.
        Return whether an input was matched anew.
        """
        now = self._state.reading_of(operand.name)
        call = self._calls.by_output.get(now.key) if now is not None else None
        if call is None or len(call.inputs) != len(operator.inputs) or len(call.inputs) < 2:
            return False
        readings = {}
        for source, key in zip(operator.inputs, call.inputs, strict=True):
            own = self._state.reading_of(source.name)
            shape = own.shape if own is not None else None
            other = self._sides.fit(key, [shape] if shape is not None else [])
            if other is None:
                return False
            if other != own:
                if self._state.taken.get(key, source.name) != source.name:
                    return False  # an operand that is read elsewhere is rather exchanged
                readings[source.name] = other
        if not readings or not all(map(self._may_replace, operator.inputs)):
            return False
        values = {name: self._values.read(name, each) for name, each in readings.items()}
        result = self._values.compute_one(
            operator, operand, self._values.arguments(operator, values)
        )
        if result is None or not self._matches.has_result(operand.name, result):
            return False
        for source in dict.fromkeys(operator.inputs):
            if source.name in readings:
                reading = readings[source.name]
                self._walk.shift(source, reading.match(ALIGNMENT, 0.8), reading.shape)
        return True

    def _may_replace(self, source: RuntimeOperand) -> bool:
        match, producer = self._state.result.matches.get(source.name), source.producer
        if match is None or producer is None or producer.is_input or producer.is_constant:
            return match is not None
        return match.matched_by not in {HAND, OUTPUT, NAME}

    def skip(self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value) -> bool:
        """Match an operator that the reference lacks with its own input, if that fits."""
        if self._is_in_reference(operator):
            return False
        changes = operand.name not in self._state.repeated
        moves, may_move = self._values.only_moves(operator, result), self._values.may_move
        for key in self._state.inputs_of(operator):
            reading = self._values.fit(key, operand, result)
            if reading is None or (moves and not may_move(operator, operand, reading, result)):
                continue
            if self._trials.confirms(operand, reading, anew=changes):
                match = reading.match(ALIGNMENT, 0.7)
                if not moves and self._hide_input(operator, operand):
                    arguments = self._values.arguments(operator)
                    result = self._values.compute_one(operator, operand, arguments)
                self._walk.replace(operand.name, match, reading.shape, result)
                return True
        return False

    def _hide_input(self, operator: RuntimeOperator, operand: RuntimeOperand) -> bool:
        """Unmatch the input of a function that is to take its tensor, if it differs from that.

        One fault is likelier than two: rather than a wrong layer and a function too many, the
        reference fuses the two, and shows only the last. Return whether that was so.
        """
        if operator.has_attributes or len(operator.inputs) != 1:
            return False
        (source,) = operator.inputs
        match, producer = self._state.result.matches.get(source.name), source.producer
        born = self._state.result.born.get(source.name)
        if match is None or producer is None or producer.is_input or born is None:
            return False
        if not is_guess(match.matched_by) or born.relative <= self._sides.tolerance:
            return False
        if len(producer.outputs) != 1 or len(source.consumers) != 1:
            return False
        value = self._values.compute_one(producer, source, self._values.arguments(producer))
        if value is None:
            return False
        self._state.forget(source.name)
        self._state.stand_in(source.name, value, frozenset({source.name}))
        self._state.given_up.add(source.name)
        self._state.waiting[operand.name] = frozenset({source.name, operand.name})
        return True

    def _is_one_too_many(self, operator: RuntimeOperator, operand: RuntimeOperand) -> bool:
        """Match an operator without weights with its own input, if what follows agrees then.

        Not one that agrees on a further tensor together with another input: a function of the
        own input alone is often found, as the ReLU that comes both before a sum and behind it.
        """
        if self._state.is_matched(operand.name) or operator.has_attributes:
            return False
        if len({each.name for each in operator.inputs}) > 1:
            return False
        return self.skip(operator, operand, self._state.stand_ins.get(operand.name))

    def _may_shift(self, source: RuntimeOperand, operand: RuntimeOperand) -> bool:
        """Whether an input may be another tensor than the one that it is matched with."""
        match, producer = self._state.result.matches.get(source.name), source.producer
        if match is None or producer is None or producer.is_input:
            return False
        if match.matched_by in {HAND, OUTPUT} or len(producer.outputs) != 1:
            return False
        born = self._state.result.born.get(source.name, Born(np.inf)).relative
        return born <= self._sides.tolerance or not self._state.is_matched(operand.name)

    def _is_of_expression(
        self, operator: RuntimeOperator, source: RuntimeOperand, key: str
    ) -> bool:
        """Whether a tensor further on is arithmetic that an expression of ours should do.

        pnnx writes arithmetic that is read once into the expression that reads it, so there it
        is lost.
        """
        producer, now = source.producer, self._state.reading_of(source.name)
        if operator.type != _EXPRESSION or now is None or len(source.consumers) != 1:
            return False
        call = self._calls.by_output.get(key)
        if producer is None or producer.type == _EXPRESSION or call is None:
            return False
        return function_of(call.type) in _ARITHMETIC and call.inputs == (now.key,)

    def _is_blank(self, source: RuntimeOperand) -> bool:
        """Whether a constant is zeros that the reference lacks: it may have lost its numbers.

        Then what it does in the reference is missing, as that of a function that ours lacks.
        """
        if source.producer is None or not source.producer.is_constant:
            return False
        value = self._values.tensor_of_run(source.name)
        return value is not None and not value.any() and not self._state.is_matched(source.name)

    def _is_certain(self, source: RuntimeOperand) -> bool:
        """Whether a layer with the weights or name of the reference's gives its tensor."""
        matched_by = self._state.result.matches[source.name].matched_by
        born = self._state.result.born.get(source.name, Born(np.inf)).relative
        return matched_by in {WEIGHTS, NAME} and born <= CONFIRMING

    def _agrees_with(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        source: RuntimeOperand,
        reading: Reading,
    ) -> bool:
        """Whether an operator gives a tensor of the reference from another one as its input.

        An input that is only normalized stays: a normalization gives the same twice.
        """
        value, now = self._values.read(source.name, reading), self._value_of(source)
        if value is None or (isinstance(now, np.ndarray) and np.array_equal(value, now)):
            return False  # a copy makes no difference
        arguments = self._values.arguments(operator, {source.name: value})
        result = self._values.compute_one(operator, operand, arguments)
        return (
            self._trials.is_new(operand.name, result, reading.key)
            and self._matches.has_result(operand.name, result)
            and not is_normalized_of(value, now)
        )

    def _further(self, source: RuntimeOperand, *, over_layers: bool) -> Iterator[Reading]:
        """Yield tensors beside and behind the one that an operand is matched with."""
        now, producer = self._state.reading_of(source.name), source.producer
        if now is None or producer is None:
            return
        value = self._value_of(source)
        moves = self._values.only_moves(producer, value)
        beside = [] if over_layers else self._beside(source, now.key)
        after = self._after(now.key, over_layers=over_layers)
        for key in dict.fromkeys([*beside, *after]):
            reading = self._sides.fit(key, [now.shape])
            if reading is None or (moves and not self._values.has_elements_of(key, value)):
                continue
            if not self._is_of_another(key, source):
                yield reading

    def _is_in_reference(self, operator: RuntimeOperator) -> bool:
        """Whether the reference has a call that reads a constant of ours."""
        constants = [o.name for o in operator.inputs if o.producer and o.producer.is_constant]
        keys = [self._state.key_of(name) for name in constants]
        return any(key in self._sides.reference.consumers for key in keys)

    def _is_of_another(self, key: str, source: RuntimeOperand) -> bool:
        """Whether a call reads a constant that another operator of ours reads.

        Then ours does not lack it, but what it reads may be exchanged.
        """
        call, graph = self._calls.by_output.get(key), self._sides.session.graph
        for each in call.inputs if call is not None else ():
            operand = graph.operands.get(self._state.taken.get(each, ""))
            if operand is None or operand.producer is None or not operand.producer.is_constant:
                continue
            if operand.consumers and not {*operand.consumers} & {*source.consumers}:
                return True
        return False

    def _value_of(self, source: RuntimeOperand) -> Value:
        reading = self._state.reading_of(source.name)
        return self._values.read(source.name, reading) if reading is not None else None

    def _after(self, key: str, *, over_layers: bool) -> list[str]:
        """Return those of the next tensors of the same size that are behind layers, or not."""
        places, near = self._sides.reference.index, self._calls.near({key})
        keys = [each for each in self._free_like(key) if places[each] > places[key]]
        keys.sort(key=lambda each: (each not in near, places[each]))
        return [
            each
            for each in keys[:AHEAD]
            if bool(self._calls.count_layers(each, {key}, 0)) == over_layers
        ]

    def _beside(self, operand: RuntimeOperand, key: str) -> list[str]:
        """Return tensors of other calls that read the same, if two of our operands have one.

        A cosine that is a sine in ours has the tensor of the sine beside it.
        """
        producer, matches = operand.producer, self._state.result.matches.values()
        if producer is None or sum(match.key == key for match in matches) < 2:
            return []
        near = self._calls.near(self._state.inputs_of(producer), 1)
        return [each for each in self._free_like(key) if each in near]

    def _free_like(self, key: str) -> list[str]:
        """Return the tensors of the same size that no operand has.

        No constant: other weights are no result of a function that one side lacks.
        """
        size, known = math.prod(self._sides.index.shapes[key]), self._sides.reference.by_key
        keys = self._sides.index.of_size(size)
        free = [each for each in keys if each not in self._state.taken]
        return [each for each in free if known[each].role != "constant"]
