"""Ranks along the flow: from generations to layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Dag", "assign_layers", "make_dag"]


@dataclass(frozen=True, slots=True)
class Dag:
    """One connected component, which has no cycles.

    Attributes
    ----------
    successors, predecessors : sequence of sequence of int
        Without duplicates, in the order of the edges.
    generations : sequence of int
        Edges on the longest path to each node.
    order : sequence of int
        The nodes by generation, which is a topological order.
    heights : sequence of int
        Edges on the longest path from each node to a sink.
    """

    successors: Sequence[Sequence[int]]
    predecessors: Sequence[Sequence[int]]
    generations: Sequence[int]
    order: Sequence[int]
    heights: Sequence[int]


def make_dag(pairs: Iterable[tuple[int, int]], generations: Sequence[int]) -> Dag:
    """List the neighbours of each node, and sort the nodes.

    Parameters
    ----------
    pairs : iterable of (int, int)
        Edges, with duplicates.
    generations : sequence of int
        Of each node.
    """
    count = len(generations)
    successors: list[list[int]] = [[] for _ in range(count)]
    predecessors: list[list[int]] = [[] for _ in range(count)]
    for source, target in dict.fromkeys(pairs):
        successors[source].append(target)
        predecessors[target].append(source)
    order = sorted(range(count), key=generations.__getitem__)
    heights = [0] * count
    for node in reversed(order):
        if successors[node]:
            heights[node] = 1 + max([heights[target] for target in successors[node]])
    return Dag(successors, predecessors, generations, order, heights)


def assign_layers(dag: Dag) -> list[int]:
    """Return the layers of a connected component: generations, with some nodes moved later.

    Nodes that do not depend on the start of the longest chain (constants, second inputs and
    what is computed from them alone) move as late as their consumers allow.
    """
    layers = list(dag.generations)
    starts = [node for node in dag.order if not dag.predecessors[node]]
    if len(starts) == 1:
        return layers
    reached = [False] * len(layers)
    reached[max(starts, key=lambda node: (dag.heights[node], -node))] = True
    for node in dag.order:
        reached[node] = reached[node] or any(reached[n] for n in dag.predecessors[node])
    for node in reversed(dag.order):
        if not reached[node] and dag.successors[node]:
            layers[node] = min(layers[target] for target in dag.successors[node]) - 1
    return layers
