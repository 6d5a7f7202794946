"""The shape of a graph: what is connected, and what depends on what, as networkx finds it."""

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
        Places of the nodes of each weakly connected component, ascending; in the order of
        their first nodes.
    generations : tuple of int
        Edges on the longest path to each node.
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

    place = {node: index for index, node in enumerate(graph)}
    members = (
        tuple(sorted(map(place.__getitem__, nodes)))
        for nodes in nx.weakly_connected_components(graph)
    )
    generations = dict.fromkeys(graph, 0)
    try:
        for number, nodes in enumerate(nx.topological_generations(graph)):
            generations.update(dict.fromkeys(nodes, number))
    except nx.NetworkXUnfeasible:
        raise ValueError("a graph with a cycle has no generations") from None
    return GraphStructure(tuple(sorted(members)), tuple(generations.values()))
