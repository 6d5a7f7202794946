"""Finds the connected components and topological generations of a graph, with networkx."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["GraphStructure", "find_structure"]


class GraphStructure(NamedTuple):
    """Components and generations of a graph without cycles.

    Attributes
    ----------
    components : tuple of tuple of int
        Node indices of each weakly connected component, ascending. Components are ordered by
        their first node.
    generations : tuple of int
        For each node, the number of edges on the longest path to it.
    """

    components: tuple[tuple[int, ...], ...]
    generations: tuple[int, ...]


def find_structure(graph: nx.DiGraph) -> GraphStructure:
    """Find components and generations.

    Raises
    ------
    ValueError
        If the graph has a cycle.
    """
    import networkx as nx

    index_of = {node: index for index, node in enumerate(graph)}
    members = (
        tuple(sorted(map(index_of.__getitem__, nodes)))
        for nodes in nx.weakly_connected_components(graph)
    )
    generations = dict.fromkeys(graph, 0)
    try:
        for number, nodes in enumerate(nx.topological_generations(graph)):
            generations.update(dict.fromkeys(nodes, number))
    except nx.NetworkXUnfeasible:
        raise ValueError("a graph with a cycle has no generations") from None
    return GraphStructure(tuple(sorted(members)), tuple(generations.values()))
