"""Decides what the stand-ins are that nothing confirms, the first one first.

A decision changes what is known downstream, and so undoes others there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.comparison.aligning.calls import COPY, function_of, is_layer
from engine.comparison.aligning.elements import is_normalized_of
from engine.comparison.aligning.evidence import is_guess
from engine.comparison.aligning.labels import leads_to_twin
from engine.comparison.aligning.limits import CONFIRMING
from engine.comparison.matching import ALIGNMENT, WEIGHTS
from engine.comparison.measures import relative_distance
from engine.comparison.reasons import is_activation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from engine.comparison.aligning.evidence import Candidate, Evidence
    from engine.comparison.aligning.layout_repairs import LayoutRepairs
    from engine.comparison.aligning.shifts import Shifts
    from engine.comparison.aligning.state import Reading
    from engine.comparison.aligning.tools import Tools
    from engine.comparison.aligning.walk import Walk
    from engine.comparison.matching import Match
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["Decisions"]

_MOST: Final = 3  # times the number of operators
_TELLING: Final = 1.5  # evidence that names a match, even if a trial confirms it
_ENOUGH: Final = 2.0  # evidence for a match that no trial confirms
_CONFIRMED: Final = 5.0  # what a trial counts


class _Choice(NamedTuple):
    """A candidate with the result of its trial."""

    reading: Reading
    match: Match
    score: float
    is_placed: bool = False

    @property
    def is_confirmed(self) -> bool:
        """Whether a trial confirms it, or as much evidence."""
        return self.score >= _CONFIRMED

    @property
    def is_named(self) -> bool:
        """Whether name or weights speak for what a trial confirms."""
        return self.is_confirmed and not is_guess(self.match.matched_by)

    @property
    def is_sure(self) -> bool:
        """Whether its place speaks for it, too."""
        return self.is_confirmed and self.is_placed

    @property
    def is_enough(self) -> bool:
        """Whether it is to be matched."""
        return self.is_confirmed or (self.score >= _ENOUGH and self.is_placed)


class Decisions:
    """Matches stand-ins by evidence, trials and repairs.

    Parameters
    ----------
    tools : Tools
    walk : Walk
    evidence : Evidence
    layouts : LayoutRepairs
    shifts : Shifts
    """

    def __init__(
        self,
        tools: Tools,
        walk: Walk,
        evidence: Evidence,
        layouts: LayoutRepairs,
        shifts: Shifts,
    ) -> None:
        self._sides, self._state, self._values = tools.sides, tools.state, tools.values
        self._structure, self._labels = tools.structure, tools.labels
        self._trials, self._matches = tools.trials, tools.matches
        self._walk, self._evidence = walk, evidence
        self._layouts, self._shifts = layouts, shifts

    def decide_all(self, progress: Callable[[int, int], None] | None) -> None:
        """Decide until nothing is open, within a bound."""
        total = len(self._sides.operators)
        for _ in range(_MOST * total):
            open_ = self._first_open()
            if open_ is None:
                break
            if progress is not None:
                progress(open_[0].index, total)
            self._decide(*open_)

    def revise_origins(self) -> bool:
        """Match the inputs of operators that differ in another way, if they agree then.

        A linear layer without its bias gives a tensor of a reference that adds the bias in a
        call of its own. Return whether an input was matched so.
        """
        revised, least = False, max(self._sides.tolerance, CONFIRMING)
        for operator in self._sides.operators:
            for operand in operator.outputs:
                born = self._state.result.born.get(operand.name)
                if born is not None and born.measured and born.relative > least:
                    revised |= (
                        self._layouts.repair_inputs(operator)
                        or self._shifts.shift_inputs(operator, operand)
                        or self._shifts.take_inputs_of_call(operator, operand)
                    )
        return revised

    def revise_confirmed(self) -> bool:
        """Decide on layers whose own tensor is another than ours, though what follows agrees.

        That hides the difference: a norm whose weight is zero gives the same of everything.
        Return whether a tensor was matched so.
        """
        state, revised = self._state, False
        for operator in self._sides.operators:
            for operand in operator.outputs:
                if not self._differs_from_own(operator, operand):
                    continue
                state.confirmed.discard(operand.name)
                self._decide(operator, operand)
                if state.is_matched(operand.name):
                    revised = True
                else:
                    state.confirmed.add(operand.name)
                    state.given_up.discard(operand.name)
        return revised

    def _differs_from_own(self, operator: RuntimeOperator, operand: RuntimeOperand) -> bool:
        """Whether a confirmed stand-in differs from a tensor of the same weights or name.

        Not if an operand has that tensor: the reference has fused ours with others. A name
        alone may be that of a part of ours; then what follows gives other results of it.
        """
        state, name = self._state, operand.name
        result = state.stand_ins.get(name)
        if name not in state.confirmed or state.is_matched(name):
            return False
        if not operator.has_attributes or not isinstance(result, np.ndarray):
            return False
        for key, _, matched_by in self._labels.evidence(operator):
            reading = self._values.fit(key, operand, result)
            if reading is None:
                continue
            if matched_by != WEIGHTS and not self._trials.is_hidden(operand, reading):
                continue
            if not state.taken.keys().isdisjoint(self._sides.index.copies(key)):
                continue
            theirs = self._values.read(name, reading)
            if theirs is not None and theirs.shape == result.shape:
                return relative_distance(result, theirs) > CONFIRMING
        return False

    # What is open

    def _first_open(self) -> tuple[RuntimeOperator, RuntimeOperand] | None:
        """Return the first operand with an unconfirmed stand-in."""
        for operator in self._sides.operators:
            for operand in operator.outputs:
                if self._is_open(operator, operand.name) and self._matters(operand):
                    return operator, operand
        return None

    def _is_open(self, operator: RuntimeOperator, operand: str) -> bool:
        state = self._state
        if state.is_matched(operand) or operand in state.given_up:
            return False
        fails = operand in state.failures and operator.index not in state.blocked
        waits = operand in state.waiting.get(operand, ()) and operand not in state.confirmed
        return fails or waits

    def _matters(self, operand: RuntimeOperand) -> bool:
        """Whether a result computed from an operand is unconfirmed too."""
        state = self._state
        return any(
            consumer.is_output
            or consumer.index in state.blocked
            or any(self._is_unsure(below.name, operand.name) for below in consumer.outputs)
            for consumer in operand.consumers
        )

    def _is_unsure(self, operand: str, above: str) -> bool:
        """Whether an operand is neither matched nor confirmed, or differs with another one."""
        state, born = self._state, self._state.result.born.get(operand)
        if not state.is_matched(operand) and operand not in state.confirmed:
            return True
        return born is not None and above in born.group

    # One operand

    def _decide(self, operator: RuntimeOperator, operand: RuntimeOperand) -> None:
        """Match an operand by its evidence and by trial, or leave it unmatched."""
        self._walk.leave_run([operand])
        result = self._state.stand_ins.get(operand.name)
        if (
            self._match_all_of_failed(operator)
            or self._layouts.repair_inputs(operator)
            or self._shifts.shift_inputs(operator, operand)
        ):
            return
        best = self._choose(operator, operand, result)
        is_sure = best is not None and best.is_sure
        if not (is_sure or leads_to_twin(operator)) and self._shifts.shift_inputs(
            operator, operand, over_layers=True
        ):
            return
        is_next = best is not None and self._is_next(operator, operand, result, best)
        if not is_next and self._shifts.skip(operator, operand, result):
            return
        if best is None or not best.is_enough:
            self._state.given_up.add(operand.name)
            self._walk.refresh()
            return
        self._walk.replace(operand.name, best.match, best.reading.shape, result)

    def _choose(
        self, operator: RuntimeOperator, operand: RuntimeOperand, result: Value
    ) -> _Choice | None:
        """Return the first candidate that a trial confirms, or the one with most evidence.

        If what follows agrees without a trial as well, that tells less of a candidate: another
        one may come that it agrees with only then. But one that our result equals is ours, and
        a guess comes after what has the name or the weights of ours.
        """
        best: _Choice | None = None
        for candidate in self._evidence.candidates(operator, operand, result):
            if best is not None and best.is_named and is_guess(candidate.matched_by):
                continue
            choice = self._try(operator, operand, candidate)
            settles = choice.is_confirmed and (
                self._is_own(operand, result, choice)
                or self._confirms_anew(operator, operand, choice)
            )
            if settles or best is None or choice.score > best.score:
                best = choice
            if settles:
                break
        if best is None:
            return None
        placed = self._labels.is_placed(operator, operand, best.reading.key)
        if placed and is_guess(best.match.matched_by) and not best.is_confirmed:
            # Moved from a wrong input, elements lead to the tensor of another operand; and a
            # copy is like the next sum of a residual block.
            copies = operator.type == COPY
            placed = not copies and not self._values.only_moves(operator, result)
        return best._replace(is_placed=placed)

    def _is_own(self, operand: RuntimeOperand, result: Value, choice: _Choice) -> bool:
        """Whether our result equals what is chosen."""
        theirs = self._values.read(operand.name, choice.reading)
        if not isinstance(result, np.ndarray) or theirs is None or theirs.shape != result.shape:
            return False
        return relative_distance(result, theirs) <= CONFIRMING

    def _confirms_anew(
        self, operator: RuntimeOperator, operand: RuntimeOperand, choice: _Choice
    ) -> bool:
        """Whether something agrees with the reference only if an operand is what is chosen."""
        telling = self._structure.has_more_layers(operator, choice.reading.key)
        return self._trials.confirms(operand, choice.reading, telling=telling, anew=True)

    def _try(
        self, operator: RuntimeOperator, operand: RuntimeOperand, candidate: Candidate
    ) -> _Choice:
        reading, evidence, matched_by = candidate
        telling = self._structure.has_more_layers(operator, reading.key)
        if not self._trials.confirms(operand, reading, telling=telling):
            match = reading.match(matched_by, min(0.9, 0.3 + 0.15 * evidence))
            return _Choice(reading, match, evidence)
        named = matched_by if evidence >= _TELLING else ALIGNMENT
        match = reading.match(named, min(0.95, 0.8 + 0.05 * evidence))
        return _Choice(reading, match, evidence + _CONFIRMED)

    def _is_next(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Value,
        choice: _Choice,
    ) -> bool:
        """Whether a sure tensor is what the reference computes from an operator's inputs next.

        What agrees further on belongs rather to another operator of the same kind, and what is
        the input normalized to a normalization downstream; nor does an activation give the sum
        at the end of a residual block that starts at its input. Nor what another function
        gives, where what follows agrees on the activation's own input as well: shares of a
        whole are the same when they are divided by their sum again. Names and weights tell by
        themselves; and the weights of the next layer give its result of this one's input, too.
        """
        if not choice.is_sure:
            return False
        if is_layer(operator.type) or not is_guess(choice.match.matched_by):
            return True
        key, calls = choice.reading.key, self._structure.calls
        near = calls.near(self._state.inputs_of(operator), 1)
        if key in calls.by_output and key not in near:
            return False
        if is_activation(operator.type) and (
            self._ends_block(operator, key) or self._is_of_other_call(operator, key)
        ):
            return False
        value = self._values.read(operand.name, choice.reading)
        return not self._normalizes(operator, value) or self._normalizes(operator, result)

    def _is_of_other_call(self, operator: RuntimeOperator, key: str) -> bool:
        call = self._structure.calls.by_output.get(key)
        return call is not None and function_of(call.type) != function_of(operator.type)

    def _ends_block(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether layers lead from what an operator reads to a tensor, which reads it too."""
        known, calls = self._state.inputs_of(operator), self._structure.calls
        call = calls.by_output.get(key)
        if call is None or is_layer(call.type):
            return False
        return any(calls.count_layers(each, known, 0) for each in call.inputs)

    def _normalizes(self, operator: RuntimeOperator, value: Value) -> bool:
        """Whether a tensor is an input of an operator, normalized."""
        arguments = self._values.arguments(operator) or []
        return any(is_normalized_of(value, each) for each in arguments)

    # Operators that fail

    def _match_all_of_failed(self, operator: RuntimeOperator) -> bool:
        """Match all results of an operator that fails at once, if what follows agrees then.

        Each alone leads nowhere: what follows often reads several of them.
        """
        outputs = operator.outputs
        if len(outputs) < 2 or not all(o.name in self._state.failures for o in outputs):
            return False
        for keys in self._sets_of_results(operator):
            readings = self._fit_all(outputs, keys)
            if not readings or not self._lead_on(outputs, readings):
                continue
            for operand, reading in zip(outputs, readings, strict=True):
                waiting = self._state.waiting.get(operand.name, frozenset())
                match = reading.match(ALIGNMENT, 0.8)
                self._matches.add(operand.name, match, reading.shape, None, waiting)
            self._walk.refresh(operand.name for operand in outputs)
            return True
        return False

    def _fit_all(self, outputs: Sequence[RuntimeOperand], keys: Sequence[str]) -> list[Reading]:
        """Return how to read a tensor for each result; empty if one does not fit."""
        pairs = zip(keys, outputs, strict=True)
        readings = [self._values.fit(key, operand, None) for key, operand in pairs]
        fitting = [each for each in readings if each is not None]
        return fitting if len(fitting) == len(outputs) else []

    def _lead_on(self, outputs: Sequence[RuntimeOperand], readings: Sequence[Reading]) -> bool:
        """Whether what follows one of several results gives tensors further on."""
        pairs = list(zip(outputs, readings, strict=True))
        values = {o.name: self._values.read(o.name, reading) for o, reading in pairs}
        return any(self._trials.leads_on(values, o, reading.key) for o, reading in pairs)

    def _sets_of_results(self, operator: RuntimeOperator) -> Iterator[tuple[str, ...]]:
        """Return tensors near the inputs of an operator, one for each of its results.

        Of one call; or, where the reference takes the parts one by one, the next ones.
        """
        calls, places = self._structure.calls, self._sides.reference.index
        near = calls.near(self._state.inputs_of(operator))
        keys = sorted(near - self._state.taken.keys(), key=places.__getitem__)
        count = len(operator.outputs)
        sets = [calls.by_output[key].outputs for key in keys]
        yield from dict.fromkeys(c for c in sets if len(c) == count and near.issuperset(c))
        first = operator.outputs[0]
        fits = [key for key in keys if self._values.fit(key, first, None) is not None]
        if len(fits) >= count:
            yield tuple(fits[:count])
