"""The members of operands that are lists or tuples, as far as the graph says them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from engine.runtime.operator import RuntimeOperand

__all__ = ["LISTS", "members_of"]

LISTS: Final = frozenset({"prim::TupleConstruct", "prim::ListConstruct"})
"""Operators whose output is a list of their inputs."""


def members_of(operands: Iterable[RuntimeOperand]) -> Iterator[RuntimeOperand]:
    """Yield operands; instead of a list that an operator makes, its members.

    Parameters
    ----------
    operands : iterable of RuntimeOperand

    Yields
    ------
    RuntimeOperand
        In the order of `engine.values.flatten_value`. An operand that is no list stands for
        itself.

    Notes
    -----
    Lists that hold a list twice, again and again, have more members than can be counted: take
    only as many as are needed.
    """
    waiting = [*operands][::-1]
    while waiting:
        operand = waiting.pop()
        producer = operand.producer
        if producer is not None and producer.type in LISTS:
            waiting += reversed(producer.inputs)
        else:
            yield operand
