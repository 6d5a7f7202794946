"""The tensors that an operand may be, where no result is equal to one.

Each kind of evidence counts: the place among the outputs, equal weights, an equal name,
elements that are alike, and the order of the reference. Trials then tell which is right.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.aligning.calls import COPY, function_of
from engine.comparison.aligning.elements import varies
from engine.comparison.aligning.limits import ALIKE, EXACT
from engine.comparison.matching import ALIGNMENT, CONTENT, NAME, OUTPUT, WEIGHTS
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from engine.comparison.aligning.state import Reading
    from engine.comparison.aligning.tools import Tools
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["Candidate", "Evidence", "is_guess"]

_IN_ORDER: Final = 32  # tensors tried downstream of the inputs
_OF_OUTPUT: Final = 4.0
_OF_ELEMENTS: Final = 2.0  # for equal ones
_OF_ORDER: Final = 0.5  # for the next one
_PER_PLACE: Final = 0.01  # less for each one further
_OF_CALLS: Final = 0.7  # for one that is computed from the inputs in a few calls
_OF_INPUTS: Final = 1.5  # how much sooner one is tried that is computed from all of them


class Candidate(NamedTuple):
    """A tensor that may be an operand's.

    Attributes
    ----------
    reading : Reading
    evidence : float
        How much speaks for it; 2 is enough without a trial.
    matched_by : str
        What speaks for it first.
    """

    reading: Reading
    evidence: float
    matched_by: str


class _Tally:
    """Evidence by tensor."""

    def __init__(self) -> None:
        self.amounts: dict[str, float] = {}
        self.first: dict[str, str] = {}

    def add(self, key: str, amount: float, matched_by: str) -> None:
        self.amounts[key] = self.amounts.get(key, 0.0) + amount
        self.first.setdefault(key, matched_by)


class Evidence:
    """Finds what an operand may be.

    Parameters
    ----------
    tools : Tools
    """

    def __init__(self, tools: Tools) -> None:
        self._index, self._matcher = tools.sides.index, tools.sides.matcher
        self._reference, self._state = tools.sides.reference, tools.state
        self._values, self._structure = tools.values, tools.structure
        self._labels, self._trials = tools.labels, tools.trials

    def candidates(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> Iterator[Candidate]:
        """Yield the tensors of an operand's size, best first.

        A tensor of a downstream operator that the reference fused with ours is no candidate. If
        weights or name say that it is ours as well, the reference does not show our operand. An
        operator that only moves elements gives no others, whatever is wrong with it.
        """
        only_moves = self._values.only_moves(operator, result)
        without = self._trials.given_without(operator, operand)
        for key, evidence, matched_by in self._weigh(operator, operand, result):
            guessed, may_move = is_guess(matched_by), self._values.may_move
            reading = self._values.fit(key, operand, result)
            if reading is None and operator.type != COPY:
                reading = self._values.fit_own(key, operand)
            if reading is None:
                continue
            if guessed and key in without:
                continue
            if guessed and only_moves and not may_move(operator, operand, reading, result):
                continue
            if self._trials.is_step_of_norm(operand, result, reading):
                continue
            if not self._trials.is_fused(operand, result, reading):
                yield Candidate(reading, evidence, matched_by)
            elif matched_by in {WEIGHTS, NAME}:
                return

    def _weigh(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> Iterator[tuple[str, float, str]]:
        """Yield tensors with evidence, best first.

        A copy of a tensor that an operand upstream has is none, unless the result equals it.
        """
        tally, pinned = _Tally(), self._matcher.outputs.get(operand.name)
        if pinned is not None:
            tally.add(pinned, _OF_OUTPUT, OUTPUT)
        for named in self._labels.evidence(operator):
            tally.add(*named)
        own = self._state.inputs_of(operator)
        equal = self._add_alike(tally, result, own)
        near = self._structure.calls.near(own)
        for rank, key in enumerate(self._following(operator, operand, result)):
            in_order = _OF_ORDER - _PER_PLACE * rank
            tally.add(key, in_order + (_OF_CALLS if key in near else 0.0), ALIGNMENT)
        # Where ours has a wrong size, nothing states the right one; and where it reads a wrong
        # tensor from further down, the right result comes before that.
        for key in sorted(near - tally.amounts.keys(), key=self._reference.index.__getitem__):
            tally.add(key, _OF_CALLS, ALIGNMENT)
        for key in self._before_readers(operand, self._free(operator, tally, pinned)):
            guessed = is_guess(tally.first[key]) and key not in equal
            taken = guessed and self._structure.is_taken_upstream(key, operand.name)
            # What norms of zeros give is all equal; then the call tells.
            if taken and (key not in near or self._varies(key)):
                continue
            yield key, tally.amounts[key], tally.first[key]

    def _varies(self, key: str) -> bool:
        """Whether a tensor has unequal elements."""
        try:
            return varies(self._reference.array(key))
        except EngineError:
            return True

    def _add_alike(self, tally: _Tally, result: Value, own: Sequence[str]) -> set[str]:
        """Add the tensors that are like a result; return those that are equal."""
        if not isinstance(result, np.ndarray) or not is_numeric(result):
            return set()
        similar = self._index.similar(result, ALIKE, own)
        for each in similar:
            alike = 1 - max(each.distance, each.unlike)
            tally.add(each.key, _OF_ELEMENTS * alike, CONTENT)
        return {each.key for each in similar if each.distance <= EXACT}

    def _free(self, operator: RuntimeOperator, tally: _Tally, pinned: str | None) -> list[str]:
        """Return the tensors that are no other operand's, the likeliest first."""
        twins = [key for key in tally.amounts if self._labels.is_of_twin(operator, key)]
        others = {*self._state.inputs_of(operator)}
        others = others.union(*(self._index.copies(key) for key in twins), self._state.taken)
        free = [key for key in tally.amounts if key == pinned or key not in others]
        shared = self._shared_inputs(operator)
        return sorted(free, key=lambda key: -tally.amounts[key] - _OF_INPUTS * shared[key])

    def _shared_inputs(self, operator: RuntimeOperator) -> Mapping[str, float]:
        """Return the share of an operator's inputs beyond one that lead to a tensor.

        Where one of three branches is exchanged, the other two tell which sum it is.
        """
        own = self._state.inputs_of(operator)
        found = Counter(key for each in {*own} for key in self._structure.calls.near({each}))
        return defaultdict(
            float,
            {key: (count - 1) / (len(own) - 1) for key, count in found.items() if count > 1},
        )

    def _before_readers(self, operand: RuntimeOperand, keys: Sequence[str]) -> list[str]:
        """Return tensors, the input of a call that our reader makes before its output.

        Where a sum before a ReLU is lost, say, what is left may be like the ReLU's output.
        """
        functions = {function_of(consumer.type) for consumer in operand.consumers}
        found: list[str] = []
        for key in keys:
            call = self._structure.calls.by_output.get(key)
            if call is not None and function_of(call.type) in functions:
                found += [each for each in call.inputs if each in keys]
            found.append(key)
        return list(dict.fromkeys(found))

    def _following(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> list[str]:
        """Return the next tensors of an operand's size downstream of its inputs, in order."""
        sizes = {math.prod(shape) for shape in self._values.shapes_of(operand, result)}
        constant = operator.is_constant
        keys = [
            key
            for size in sizes
            for key in self._index.of_size(size)
            if (constant or self._structure.is_behind(operator, key))
            and (self._reference.by_key[key].role == "constant") == constant
            and key not in self._state.taken
        ]
        return sorted(keys, key=self._reference.index.__getitem__)[:_IN_ORDER]


def is_guess(matched_by: str) -> bool:
    """Whether neither name, weights nor position speak for a tensor."""
    return matched_by in {CONTENT, ALIGNMENT}
