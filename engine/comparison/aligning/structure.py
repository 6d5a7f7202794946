"""Where one of our operators stands in the reference's graph, by what is matched around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from engine.comparison.aligning.calls import Calls, is_composite, is_layer
from engine.comparison.aligning.limits import AHEAD, EXACT
from engine.runtime.reach import find_downstream

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.comparison.aligning.state import Sides, State
    from engine.runtime import RuntimeOperator

__all__ = ["Above", "Structure"]

_MOST_ABOVE: Final = 12  # operators upstream that the reference does not show


class Above(NamedTuple):
    """What is upstream of an operator, up to the nearest tensors that are matched.

    Attributes
    ----------
    tensors : set of str
        Their keys.
    operators : tuple of RuntimeOperator
        Ours from there to the operator, including it.
    steps : int
        How many follow each other.
    """

    tensors: set[str]
    operators: tuple[RuntimeOperator, ...]
    steps: int


class Structure:
    """The surroundings of our operators in the reference.

    Parameters
    ----------
    sides : Sides
    state : State

    Attributes
    ----------
    calls : Calls
        Of the reference.
    """

    def __init__(self, sides: Sides, state: State) -> None:
        self._sides, self._state = sides, state
        self._reference = sides.reference
        self.calls = Calls(sides.reference)

    def above(self, operator: RuntimeOperator) -> Above:
        """Return the nearest matched tensors upstream, and the operators between."""
        found: set[str] = set()
        seen, level, steps = {operator.index: operator}, [operator], 0
        while level and steps < _MOST_ABOVE:
            steps += 1
            above: list[RuntimeOperator] = []
            for each in level:
                found.update(self._state.inputs_of(each))
                above += [
                    operand.producer
                    for operand in each.inputs
                    if not self._state.is_matched(operand.name)
                    and operand.producer is not None
                    and operand.producer.index not in seen
                ]
                seen |= {producer.index: producer for producer in above}
            level = above
        return Above(found, tuple(seen.values()), steps)

    def below(self, operator: RuntimeOperator) -> set[str]:
        """Return the tensors near the matched ones upstream of an operator."""
        above = self.above(operator)
        return self.calls.near(above.tensors, AHEAD * above.steps)

    def is_reached(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether a tensor comes a few calls behind the matched tensors upstream.

        Where the reference does not show the call, its order decides, if it is known.
        """
        if not self.above(operator).tensors:
            return True
        if key not in self.calls.by_output:
            return self._reference.ordered and self.is_behind(operator, key)
        return key in self.below(operator)

    def is_behind(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether a tensor comes behind an operator's inputs in the reference's order.

        Any tensor does, where the order is unknown.
        """
        if not self._reference.ordered:
            return True
        places = self._reference.index
        inputs = [places.get(each, -1) for each in self._state.inputs_of(operator)]
        return places[key] > max(inputs, default=-1)

    def has_more_layers(self, operator: RuntimeOperator, key: str) -> bool:
        """Whether more layers than ours lead from the matched tensors upstream to another one.

        Attention and recurrent layers are several in some references.
        """
        sources, between, _ = self.above(operator)
        ours = [each.type for each in between if is_layer(each.type)]
        if not sources or any(map(is_composite, ours)):
            return False
        return self.calls.count_layers(key, sources, len(ours)) > len(ours)

    def is_taken_upstream(self, key: str, operand: str) -> bool:
        """Whether a tensor, or a copy of it, is matched with an operand before a given one."""
        taken, place = self._state.taken, self._sides.place_of(operand)
        return any(
            other in taken and self._sides.place_of(taken[other]) < place
            for other in self._sides.index.copies(key)
        )

    def is_step(self, key: str, operand: str) -> bool:
        """Whether a tensor only leads to what operands have that do not read a given one.

        As the steps of a normalization do, which the reference computes in several calls.
        """
        graph, consumers = self._sides.session.graph, self._reference.consumers
        producer = graph.operand(operand).producer
        below = {*find_downstream(graph, producer.name)} if producer is not None else set()
        level, found = {key}, False
        for _ in range(AHEAD):
            calls = [call for each in level for call in consumers.get(each, ())]
            made = {output for call in calls for output in call.outputs}
            level = made - self._state.taken.keys()
            for each in made - level:
                reader = graph.operand(self._state.taken[each]).producer
                if reader is None or reader.index in below:
                    return False
                found = True
        return found and not level

    def givers(self, key: str, operand: str) -> list[str]:
        """Return the operands, not computed from a given one, that give a tensor.

        Up to rounding. None if that leaves one of several tensors with the same elements to the
        given operand.
        """
        graph, copies = self._sides.session.graph, self._sides.index.copies(key)
        producer = graph.operand(operand).producer
        if producer is None or self._state.taken.keys().isdisjoint(copies):
            return []
        equal = [name for name in self._matched_with(copies) if self._is_equal(name)]
        if len(equal) < len(copies):
            return []
        below = {*find_downstream(graph, producer.name)}
        makers = {name: graph.operand(name).producer for name in equal}
        apart = [name for name, by in makers.items() if by is None or by.index not in below]
        return apart if len(apart) >= len(copies) else []

    def _matched_with(self, keys: Collection[str]) -> list[str]:
        return [o for o, match in self._state.result.matches.items() if match.key in keys]

    def _is_equal(self, operand: str) -> bool:
        """Whether an operand gives the tensor that it is matched with, up to rounding."""
        born = self._state.result.born.get(operand)
        return born is not None and born.relative <= EXACT and not born.note
