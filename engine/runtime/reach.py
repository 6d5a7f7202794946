"""Which operators an operator depends on, which depend on it, what lies between, and constants.

Each takes time linear in the edges that it goes along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from engine.runtime.graph import RuntimeGraph
    from engine.runtime.operator import RuntimeOperator

__all__ = ["find_between", "find_constant", "find_downstream", "find_upstream"]


def find_upstream(graph: RuntimeGraph, name: str) -> tuple[int, ...]:
    """Return an operator and all that it depends on.

    Parameters
    ----------
    graph : RuntimeGraph
    name : str
        Of an operator.

    Returns
    -------
    tuple of int
        Indices in execution order, ascending.

    Raises
    ------
    UnknownNameError
        If there is no such operator.
    """
    return tuple(sorted(_reach(graph.operator(name), _producers)))


def find_downstream(graph: RuntimeGraph, name: str) -> tuple[int, ...]:
    """Return an operator and all that depend on it; see `find_upstream`."""
    return tuple(sorted(_reach(graph.operator(name), _consumers)))


def find_between(graph: RuntimeGraph, one: str, other: str) -> tuple[int, ...]:
    """Return the operators on the paths between two, both included.

    Parameters
    ----------
    graph : RuntimeGraph
    one, other : str
        Names of operators, in any order.

    Returns
    -------
    tuple of int
        Indices in execution order, ascending; empty if neither depends on the other.

    Raises
    ------
    UnknownNameError
        If there is no such operator.
    """
    ends = sorted((graph.operator(one), graph.operator(other)), key=lambda each: each.index)
    return tuple(sorted(_reach(ends[0], _consumers) & _reach(ends[1], _producers)))


def find_constant(graph: RuntimeGraph) -> frozenset[int]:
    """Return the operators that depend on no input of the model.

    Parameters
    ----------
    graph : RuntimeGraph

    Returns
    -------
    frozenset of int
        Indices in execution order: constants, and what is computed from constants alone.
    """
    found: set[int] = set()
    for operator in graph.operators:
        from_constants = all(each.index in found for each in _producers(operator))
        if not operator.is_input and from_constants:
            found.add(operator.index)
    return frozenset(found)


def _reach(
    start: RuntimeOperator, beside: Callable[[RuntimeOperator], Iterable[RuntimeOperator]]
) -> set[int]:
    found, waiting = {start.index}, [start]
    while waiting:
        for each in beside(waiting.pop()):
            if each.index not in found:
                found.add(each.index)
                waiting.append(each)
    return found


def _producers(operator: RuntimeOperator) -> Iterable[RuntimeOperator]:
    return [each.producer for each in operator.inputs if each.producer is not None]


def _consumers(operator: RuntimeOperator) -> Iterable[RuntimeOperator]:
    return [each for operand in operator.outputs for each in operand.consumers]
