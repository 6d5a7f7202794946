"""Walks through our graph on the reference's values, and matches what it computes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.aligning.ahead import Ahead
from engine.comparison.aligning.calls import function_of
from engine.comparison.aligning.limits import EXACT
from engine.comparison.aligning.result import Born
from engine.comparison.aligning.state import Reading
from engine.comparison.aligning.values import shape_in_file
from engine.comparison.layouts import SAME_LAYOUT
from engine.comparison.matching import CONTENT, HAND, INPUT, NAME, Match
from engine.comparison.measures import relative_distance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.comparison.aligning.content import Content
    from engine.comparison.aligning.tools import Tools
    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

__all__ = ["Walk"]

_ADDED: Final = 0.1  # share of the tolerance that rounding in one operator may add
_MOST_UNCONFIRMED: Final = 12  # consecutive stand-ins where the reference is dense


class Walk:
    """Computes our operators from the reference's values, in order.

    Parameters
    ----------
    tools : Tools
    content : Content
    """

    def __init__(self, tools: Tools, content: Content) -> None:
        sides = self._sides = tools.sides
        self._matcher, self._state, self._values = sides.matcher, tools.state, tools.values
        self._matches, self._content = tools.matches, content
        self._structure = tools.structure
        self._ahead = Ahead(sides, tools.state, tools.values, self.known)
        dense = 2 * len(sides.index.shapes) >= len(sides.session.graph.operands)
        self._limit = _MOST_UNCONFIRMED if dense else len(sides.operators)

    def run(self, progress: Callable[[int, int], None] | None) -> None:
        """Visit all operators."""
        with self._ahead.computing():
            for operator in self._sides.operators:
                if progress is not None:
                    progress(operator.index, len(self._sides.operators))
                self._visit(operator)

    def revise_near(self) -> None:
        """Match operands anew that are only near to a tensor which another operand gives.

        The sums of one tensor with either half of another are alike: a wrong one may be nearer
        to the other one's tensor than to its own.
        """
        state, copies = self._state, self._sides.index.copies
        matches = state.result.matches
        if not any(map(self._is_only_near, matches)):
            return  # copies are found among elements: tensors that names told would be read
        shared = Counter(copies(match.key)[0] for match in matches.values())
        for operator in self._sides.operators:
            for operand in operator.outputs:
                name = operand.name
                if name not in matches or not self._is_only_near(name):
                    continue
                if shared[copies(matches[name].key)[0]] < 2:
                    continue
                givers = self._structure.givers(matches[name].key, name)
                if givers:
                    state.forget(name)
                    for giver in givers:
                        state.taken.setdefault(matches[giver].key, giver)
                    self._visit(operator)
                    self.refresh({name})

    def _is_only_near(self, operand: str) -> bool:
        """Whether an operand is matched by its elements, which are near and not the same."""
        match = self._state.result.matches[operand]
        born = self._state.result.born.get(operand)
        if born is None or born.note or match.matched_by != CONTENT:
            return False
        return born.relative > EXACT

    # Changing matches

    def replace(
        self, operand: str, match: Match, shape: tuple[int, ...], result: Value
    ) -> None:
        """Match an operand instead of its stand-in, and recompute what follows."""
        waiting = self._state.waiting.get(operand, frozenset())
        self._matches.add(operand, match, shape, result, waiting)
        self.refresh({operand})

    def shift(self, operand: RuntimeOperand, match: Match, shape: tuple[int, ...]) -> None:
        """Match an operand anew, and recompute what follows."""
        producer = operand.producer
        assert producer is not None  # noqa: S101 - the caller has looked
        self._state.forget(operand.name)
        arguments = self._values.arguments(producer)
        result = self._values.compute_one(producer, operand, arguments)
        self._matches.add(operand.name, match, shape, result)
        self.refresh({operand.name})

    def refresh(self, changed: Iterable[str] = ()) -> None:
        """Recompute the results of operands that changed, and compute those that waited."""
        changed, shapes = {*changed}, self._state.result.shapes
        for operator in self._sides.operators:
            if operator.is_output or operator.is_input:
                continue
            stale = any(operand.name in changed for operand in operator.inputs)
            waits = operator.index in self._state.blocked
            if not (self._values.knows_inputs(operator) if waits else stale):
                continue
            names = [operand.name for operand in operator.outputs]
            before = {name: (self._state.forget(name), shapes.get(name)) for name in names}
            self._visit(operator)
            for name, (match, shape) in before.items():
                now = self._state.result.matches.get(name)
                same = now is not None and match is not None and now.is_same_as(match)
                if not same or shapes.get(name) != shape:
                    changed.add(name)

    def leave_run(self, operands: Iterable[RuntimeOperand]) -> None:
        """Compute stand-ins that are our run's values from the reference's values instead.

        How far they are from the reference is unknown, because it does not show them.
        """
        state, level = self._state, [*operands]
        producers: dict[int, RuntimeOperator] = {}
        while level:
            operand = level.pop()
            producer = operand.producer
            if producer is None or producer.is_input or operand.name not in state.stand_ins:
                continue
            if state.as_run.pop(operand.name, None) is not None:
                producers[producer.index] = producer
                level += producer.inputs
        for _, producer in sorted(producers.items()):
            arguments = self._values.arguments(producer)
            if arguments is None:
                continue
            results, failure = self._values.compute(producer, arguments)
            for operand, result in zip(producer.outputs, results, strict=True):
                if operand.name in state.stand_ins and not failure:
                    state.stand_ins[operand.name] = result

    # Visiting the operators

    def _visit(self, operator: RuntimeOperator) -> None:
        if operator.is_output:
            return
        if operator.is_input:
            for operand in operator.outputs:
                self._match_input(operand)
            return
        self._state.blocked.discard(operator.index)
        waiting = self._state.waiting_for(operator)
        if len(waiting - self._state.given_up) > self._limit:
            self._state.blocked.add(operator.index)
        elif not self._take_run(operator, waiting):
            self._compute(operator, waiting)

    def _compute(self, operator: RuntimeOperator, waiting: frozenset[str]) -> None:
        """Compute an operator from the reference's values, if they are known."""
        self.leave_run(operator.inputs)
        arguments = self._values.arguments(operator)
        if arguments is None:
            self._state.blocked.add(operator.index)
            return
        computed = self._ahead.take(operator)
        results, failure = computed or self._values.compute(operator, arguments)
        self._ahead.go_on(operator)
        self._settle_all(operator, results, waiting, failure)

    def _take_run(self, operator: RuntimeOperator, waiting: frozenset[str]) -> bool:
        """Take the results of our run, if its inputs were the reference's up to rounding.

        If they agree with the reference's results as well, or are not shown there, the operator
        need not compute again: what it adds to the distance is born there. If it adds more than
        rounding, it computes. Where our run does not agree, nothing changes.
        """
        results = self._values.of_run(operator)
        if results is None:
            return False
        state, born = self._state, self._state.result.born
        open_ = [o.name for o in operator.outputs if not state.is_matched(o.name)]
        above = [state.as_run[operand.name] for operand in operator.inputs]
        inherited = max(above, default=0.0)
        self._settle_all(operator, results, waiting)
        found = {name: born.get(name, Born(inherited)) for name in open_}
        agrees = all(b.relative <= self._sides.tolerance and not b.note for b in found.values())
        added = {name: max(0.0, each.relative - inherited) for name, each in found.items()}
        if agrees and max(added.values(), default=0.0) <= _ADDED * self._sides.tolerance:
            for name in born.keys() & added:
                born[name] = replace(found[name], relative=added[name])
        else:
            before = {name: state.forget(name) for name in open_}
            if not agrees:
                return False
            self._compute(operator, waiting)
            matches = state.result.matches
            if any(matches.get(name) != match for name, match in before.items()):
                return True
        state.as_run.update({name: each.relative for name, each in found.items()})
        return True

    # One operand

    def _match_input(self, operand: RuntimeOperand) -> None:
        name = operand.name
        fed = self._sides.session.value(name)
        if not isinstance(fed, np.ndarray):
            return
        found = self._match_of_input(operand, fed)
        if found is not None:
            self._matches.add(name, *found, None)
        else:  # the reference does not show the input: take it as the same
            self._state.stand_ins[name] = fed
        distance = self._distance_of_fed(name, fed)
        if distance <= self._sides.tolerance:
            self._state.as_run[name] = distance

    def _match_of_input(
        self, operand: RuntimeOperand, fed: Array
    ) -> tuple[Match, tuple[int, ...]] | None:
        """Return the match by hand, position, name or elements, and the shape."""
        for key, matched_by in (
            (self._matcher.corrected(operand.name), HAND),
            (self._matcher.inputs.get(operand.name), INPUT),
            (self._matcher.named(operand), NAME),
        ):
            reading = self._sides.fit(key, [fed.shape])
            if reading is not None:
                return reading.match(matched_by, 1.0), reading.shape
        similar = self._sides.index.similar(fed, EXACT)
        if not similar:
            return None
        first = min(similar, key=lambda each: self._sides.reference.index[each.key])
        return Match(first.key, CONTENT, 0.9, first.layout), fed.shape

    def _distance_of_fed(self, operand: str, fed: Array) -> float:
        reading = self._state.reading_of(operand)
        if reading is None:
            return 0.0
        theirs = self._values.read(operand, reading)
        if theirs is None or theirs.shape != fed.shape:
            return np.inf
        return relative_distance(fed, theirs)

    def _settle_all(
        self,
        operator: RuntimeOperator,
        results: Sequence[Value],
        waiting: frozenset[str],
        failure: str = "",
    ) -> None:
        for operand, result in zip(operator.outputs, results, strict=True):
            if not self._state.is_matched(operand.name):
                self._settle(operator, operand, result, waiting, failure)

    def _settle(
        self,
        operator: RuntimeOperator,
        operand: RuntimeOperand,
        result: Value,
        waiting: frozenset[str],
        failure: str,
    ) -> None:
        """Match an operand by hand, name or content, or use our result as its stand-in."""
        name = operand.name
        if failure:
            self._state.fail(name, failure, waiting)
        known = self.known(operand, result)
        if known is not None:
            match, shape = self._as_of_inputs(operator, *known)
            self._matches.add(name, match, shape, result, waiting)
            return
        if failure:
            return
        if (
            not isinstance(result, np.ndarray)
            or not is_numeric(result)
            or not result.size
            or self._matcher.is_corrected(name)  # it has no counterpart
        ):
            self._state.stand_in(name, result, waiting)
            return
        found = self._content.match_of(operator, operand, result)
        if found is not None and not self._is_of_inputs(operand, found, result):
            if self._is_own_move(operator, found, result):
                found = replace(found, layout=SAME_LAYOUT)
            shape = self._shape_of_found(operand, found, result)
            self._matches.add(name, found, shape, result, waiting)
            return
        self._state.stand_in(name, result, waiting | {name})
        repeated = self._content.repeated_by(operator, operand, result)
        if repeated is not None:
            self._state.repeated[name] = repeated

    def _is_of_inputs(self, operand: RuntimeOperand, match: Match, result: Array) -> bool:
        """Whether a wrong shape has the elements of a tensor that was split upstream.

        As parts have that are joined again along a wrong axis.
        """
        stated = shape_in_file(operand)
        if stated is None or stated == result.shape:
            return False
        upstream = self._structure.is_taken_upstream(match.key, operand.name)
        return upstream and self._values.changes_shape(operand, match.key, stated)

    def _is_own_move(self, operator: RuntimeOperator, match: Match, result: Array) -> bool:
        """Whether the reference moves the same axes of the same tensor, to the same shape.

        Then another order of its elements is no other layout, but the operator's fault: rows
        and columns of a square image look the same.
        """
        call = self._structure.calls.by_output.get(match.key)
        if not match.layout.axes or call is None or len(operator.inputs) != 1:
            return False
        source = self._state.reading_of(operator.inputs[0].name)
        return (
            source is not None
            and call.inputs == (source.key,)
            and function_of(call.type) == function_of(operator.type)
            and self._sides.is_plain(source)
            and self._sides.index.shapes[match.key] == result.shape
        )

    def _shape_of_found(
        self, operand: RuntimeOperand, match: Match, result: Array
    ) -> tuple[int, ...]:
        """Return the shape of a tensor with a result's elements: its own, if ours is a fault.

        A join along a wrong axis may give the same elements in another shape.
        """
        theirs = self._sides.index.shapes[match.key]
        if not match.layout.axes and self._values.changes_shape(operand, match.key, theirs):
            return theirs
        return result.shape

    def known(
        self, operand: RuntimeOperand, result: Value
    ) -> tuple[Match, tuple[int, ...]] | None:
        """Return the match by hand or name, and the shape; None for none."""
        if self._matcher.is_corrected(operand.name):
            key, matched_by = self._matcher.corrected(operand.name), HAND
        else:
            key, matched_by = self._matcher.named(operand), NAME
        reading = self._values.fit(key, operand, result)
        return (reading.match(matched_by, 1.0), reading.shape) if reading is not None else None

    def _as_of_inputs(
        self, operator: RuntimeOperator, match: Match, shape: tuple[int, ...]
    ) -> tuple[Match, tuple[int, ...]]:
        """Read a tensor of the same name in its own layout, if the inputs are read in theirs.

        A reference that has the inputs in our layout has the output in ours, too: another one
        is a fault of the operator.
        """
        sides, state = self._sides, self._state
        if match.matched_by != NAME or sides.is_plain(Reading(match.key, shape, match.layout)):
            return match, shape
        for operand in operator.inputs:
            known = state.result.matches.get(operand.name)
            reading = state.reading_of(operand.name)
            if known is None or known.matched_by not in {NAME, INPUT}:
                return match, shape
            if reading is None or not sides.is_plain(reading):
                return match, shape
        theirs = Reading(match.key, sides.index.shapes[match.key])
        return theirs.match(NAME, match.confidence), theirs.shape
