"""What lies between the tensors that a reference shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.comparison.reasons import Tail, forward_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["Span"]

_MOST: Final = 64  # operators of a span; the rest lies too far upstream


@dataclass(frozen=True)
class Span:
    """An operator whose result the reference shows, and those upstream that it does not show.

    Attributes
    ----------
    end : RuntimeOperand
        The result that it shows.
    operators : tuple of RuntimeOperator
        In execution order, with the one that gives `end`; at most 64, the nearest.
    starts : tuple of RuntimeOperand
        The results upstream that it shows again.
    """

    end: RuntimeOperand
    operators: tuple[RuntimeOperator, ...]
    starts: tuple[RuntimeOperand, ...]

    @classmethod
    def above(cls, end: RuntimeOperand, is_shown: Callable[[RuntimeOperand], bool]) -> Span:
        """Return the span that ends with an operand.

        Parameters
        ----------
        end : RuntimeOperand
        is_shown : callable
            Whether the reference shows the result of an operand.
        """
        found: dict[int, RuntimeOperator] = {}
        starts: dict[str, RuntimeOperand] = {}
        waiting = {} if end.producer is None else {end.producer.index: end.producer}
        while waiting and len(found) < _MOST:
            index = max(waiting)
            operator = found[index] = waiting.pop(index)
            for operand in operator.inputs:
                if is_shown(operand):
                    starts[operand.name] = operand
                elif operand.producer is not None and operand.producer.index not in found:
                    waiting[operand.producer.index] = operand.producer
        return cls(end, tuple([found[i] for i in sorted(found)]), tuple(starts.values()))

    def tail(
        self,
        operator: RuntimeOperator,
        values: Callable[[RuntimeOperand], Value],
        shown_as: tuple[int, ...] | None = None,
    ) -> Tail | None:
        """Return what follows one of the operators; None if it gives `end`.

        Parameters
        ----------
        operator : RuntimeOperator
        values : callable
            Returns the value of an operand that does not depend on `operator`.
        shown_as : tuple of int, optional
            Shape of the reference's tensor.
        """
        if self.end in operator.outputs:
            return None
        changed = {operand.name for operand in operator.outputs}
        followers = []
        given: dict[str, Value] = {}
        for each in self.operators:
            if not any(operand.name in changed for operand in each.inputs):
                continue
            followers.append(each)
            given |= {o.name: values(o) for o in each.inputs if o.name not in changed}
            changed |= {operand.name for operand in each.outputs}
        return Tail(operator.outputs, followers, self.end, given, shown_as)

    def compute(
        self,
        values: Callable[[RuntimeOperand], Value],
        twins: Iterable[RuntimeOperator] = (),
    ) -> Value:
        """Return `end` as computed from `starts`; None if an operator refuses or is random.

        Parameters
        ----------
        values : callable
            Returns the value of an operand that no operator of the span gives.
        twins : iterable of RuntimeOperator
            Copies with other weights, in place of the operators of the same index.
        """
        others = {twin.index: twin for twin in twins}
        operators = [others.get(o.index, o) for o in self.operators if not o.is_input]
        if any(operator.random for operator in operators):
            return None
        given = {operand.name for each in operators for operand in each.outputs}
        needed = {o.name: o for each in operators for o in each.inputs if o.name not in given}
        known = {name: values(operand) for name, operand in needed.items()}
        return forward_all(operators, known, self.end)
