"""Ranks along the flow: components, topological order and layers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Dag", "assign_layers", "connected_components", "make_dag"]


@dataclass(frozen=True, slots=True)
class Dag:
    """A directed graph without cycles.

    Attributes
    ----------
    successors, predecessors : sequence of sequence of int
        Without repetition, in the order of the edges.
    order : sequence of int
        A topological order.
    heights : sequence of int
        Edges on the longest path from each node to a sink.
    """

    successors: Sequence[Sequence[int]]
    predecessors: Sequence[Sequence[int]]
    order: Sequence[int]
    heights: Sequence[int]


def connected_components(count: int, pairs: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Nodes of each weakly connected component, ascending; components by their first node."""
    parent = list(range(count))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for source, target in pairs:
        a, b = root(source), root(target)
        parent[max(a, b)] = min(a, b)
    members: dict[int, list[int]] = {}
    for node in range(count):
        members.setdefault(root(node), []).append(node)
    return list(members.values())


def make_dag(count: int, pairs: Iterable[tuple[int, int]]) -> Dag:
    """Order a graph.

    Raises
    ------
    ValueError
        If it has a cycle.
    """
    successors: list[list[int]] = [[] for _ in range(count)]
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for source, target in dict.fromkeys(pairs):
        successors[source].append(target)
        predecessors[target].append(source)
    waiting = [len(sources) for sources in predecessors]
    ready = deque(node for node in range(count) if not waiting[node])
    order: list[int] = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for target in successors[node]:
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    if len(order) < count:
        raise ValueError("a graph with a cycle has no layers")
    heights = [0] * count
    for node in reversed(order):
        if successors[node]:
            heights[node] = 1 + max(heights[target] for target in successors[node])
    return Dag(successors, predecessors, order, heights)


def assign_layers(dag: Dag) -> list[int]:
    """Longest-path layers of one connected component.

    What does not depend on the start of the longest chain (constants, second inputs and what
    is computed from them alone) is moved as late as its consumers allow, beside them.
    """
    layers = [0] * len(dag.order)
    main = max(
        (node for node in dag.order if not dag.predecessors[node]),
        key=lambda node: (dag.heights[node], -node),
    )
    reached = [False] * len(dag.order)
    reached[main] = True
    for node in dag.order:
        for source in dag.predecessors[node]:
            layers[node] = max(layers[node], layers[source] + 1)
            reached[node] = reached[node] or reached[source]
    for node in reversed(dag.order):
        if not reached[node] and dag.successors[node]:
            layers[node] = min(layers[target] for target in dag.successors[node]) - 1
    return layers
