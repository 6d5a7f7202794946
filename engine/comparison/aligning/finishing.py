"""What is left when all is decided: the ends of the model, and what could not be computed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.comparison.aligning.limits import EXACT
from engine.comparison.matching import CONTENT, HAND, OUTPUT
from engine.comparison.measures import relative_distance

if TYPE_CHECKING:
    from engine.comparison.aligning.state import Reading
    from engine.comparison.aligning.tools import Tools
    from engine.comparison.aligning.walk import Walk
    from engine.runtime import RuntimeOperator

__all__ = ["Finishing"]


class Finishing:
    """Matches what is left.

    Parameters
    ----------
    tools : Tools
    walk : Walk
    """

    def __init__(self, tools: Tools, walk: Walk) -> None:
        self._sides, self._state, self._values = tools.sides, tools.state, tools.values
        self._calls, self._matches, self._walk = tools.structure.calls, tools.matches, walk

    def finish(self) -> None:
        """Complete the result."""
        self._match_ends()
        state, result = self._state, self._state.result
        for operator in self._sides.operators:
            if operator.index in state.blocked:
                self._match_unreached(operator)
        for name, reading in state.repeated.items():
            if name in state.stand_ins and not state.is_matched(name):
                match, value = reading.match(CONTENT, 0.8), state.stand_ins[name]
                self._matches.add(name, match, reading.shape, value)
        known = state.confirmed | result.matches.keys()
        for name, born in result.born.items():
            # What differs itself confirms nothing of what it was computed from.
            right = known if born.relative <= self._sides.tolerance else result.matches
            group = tuple(operand for operand in born.group if operand not in right)
            result.born[name] = replace(born, group=group)
        result.stand_ins = frozenset(state.confirmed - result.matches.keys())
        result.computed = state.stand_ins

    def _match_ends(self) -> None:
        """Match an output with the reference's, if the reference goes on computing.

        Our result is then a tensor within the reference: the model lacks its last operators.
        """
        ends, calls = self._sides.matcher.outputs, len(self._sides.reference.operators)
        used = {match.key for match in self._state.result.matches.values()}
        for name, key in ends.items():
            match = self._state.result.matches.get(name)
            operand = self._sides.session.graph.operand(name)
            if match is None or match.matched_by == HAND or match.key in ends.values():
                continue
            if key in used or operand.producer is None or operand.producer.is_input:
                continue
            end = self._sides.fit(key, [self._state.result.shapes[name]])
            if end is None or key not in self._calls.near({match.key}, calls):
                continue
            if self._differs_from_end(name, end):
                self._walk.shift(operand, end.match(OUTPUT, 0.9), end.shape)

    def _differs_from_end(self, operand: str, end: Reading) -> bool:
        """Whether the tensor that an output is matched with is not the reference's output."""
        now = self._state.reading_of(operand)
        inside = self._values.read(operand, now) if now is not None else None
        ours = self._values.read(operand, end)
        if inside is None or ours is None:
            return False
        return relative_distance(inside, ours) > EXACT

    def _match_unreached(self, operator: RuntimeOperator) -> None:
        """Match by name what cannot be computed because an operator upstream fails.

        The reference has it, so the failure is a difference. An operator that has no layer, or
        draws random numbers, is none.
        """
        state = self._state
        sources = [o for o in operator.inputs if o.name in state.failures]
        for source in sources:
            producer = source.producer
            if producer is None or producer.error is not None or producer.random:
                return
        if not sources or any(state.is_matched(o.name) for o in sources):
            return
        above = state.waiting_for(operator)
        for operand in operator.outputs:
            state.fail(operand.name, state.failures[sources[0].name], above)
            known = self._walk.known(operand, None)
            if known is not None:
                self._matches.add(operand.name, *known, None, above)
