"""Exports a layout to networkx, GraphML and JSON."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import networkx as nx

    from kuiper_studio.layout.model import Layout

__all__ = ["FILE_FORMATS", "format_graph", "write_attributes"]

_NOT_IN_XML: Final = re.compile(
    "[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)  # of XML 1.0
_NODE_ATTRIBUTES: Final = (
    "index", "type", "x", "y", "width", "height", "layer", "row", "component",
)  # fmt: skip


def write_attributes(
    graph: nx.MultiDiGraph, sizes: Sequence[tuple[float, float]], layout: Layout
) -> None:
    """Write a layout into the graph that was laid out.

    Nodes get `x` and `y` of their top left corner, `width`, `height`, `layer`, `row` and
    `component`; edges get a `route`, a list of points. The graph itself gets its `orientation`.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        As `RuntimeGraph.to_networkx` gives it: the key of an edge is the operand that it
        carries and the position among the consumer's inputs.
    sizes : sequence of (float, float)
        Width and height of each node.
    layout : Layout
    """
    graph.graph["orientation"] = layout.orientation
    columns = zip(
        graph.nodes.values(), layout.positions.tolist(), sizes,
        layout.layers.tolist(), layout.rows.tolist(), layout.components.tolist(),
        strict=True,
    )  # fmt: skip
    for node, (x, y), (width, height), layer, row, component in columns:
        node.update(
            x=x, y=y, width=width, height=height, layer=layer, row=row, component=component
        )
    place = {node: index for index, node in enumerate(graph)}
    routes = dict(zip(layout.lines, layout.routes, strict=True))
    for source, target, (operand, _), edge in graph.edges(keys=True, data=True):
        edge["route"] = routes[place[source], place[target], operand].tolist()


def format_graph(graph: nx.MultiDiGraph, form: str) -> bytes:
    """Format a graph with its layout as a file.

    Nodes keep `index`, `type` and the layout's attributes. Edges are numbered in the order of
    their consumers, and have the `operand`, the index among the consumer's inputs (`input`)
    and the `route`.

    Parameters
    ----------
    graph : networkx.MultiDiGraph
        As `write_attributes` leaves it.
    form : {'graphml', 'json'}
        JSON is what `networkx.node_link_data` gives with ``edges="edges"``. GraphML has no
        lists, so a route is a text there, ``"112.0,47.0 165.0,47.0"``. Characters that XML
        cannot hold become replacement characters; the name of such a node is followed by its
        index, so that it stays unique.
    """
    return _SPELLINGS[form](graph)


def _as_graphml(graph: nx.MultiDiGraph) -> bytes:
    import networkx as nx

    names = {}
    for place, node in enumerate(graph):
        name = _as_xml(node)
        names[node] = name if name == node else f"{name} {place}"  # other names have no spaces
    written = nx.relabel_nodes(_for_file(graph, _format_route), names)
    for _, attributes in written.nodes(data=True):
        attributes["type"] = _as_xml(attributes["type"])
    for _, _, attributes in written.edges(data=True):
        attributes["operand"] = _as_xml(attributes["operand"])
    file = io.BytesIO()
    nx.write_graphml_xml(written, file)
    return file.getvalue()


def _as_node_link(graph: nx.MultiDiGraph) -> bytes:
    import networkx as nx

    data = nx.node_link_data(_for_file(graph, list), edges="edges")
    return json.dumps(data, allow_nan=False).encode("ascii")


_SPELLINGS: Final[dict[str, Callable[[nx.MultiDiGraph], bytes]]] = {
    "graphml": _as_graphml,
    "json": _as_node_link,
}
FILE_FORMATS: Final = tuple(_SPELLINGS)


def _for_file(
    graph: nx.MultiDiGraph, spell: Callable[[list[list[float]]], object]
) -> nx.MultiDiGraph:
    """Copy attributes that files can hold; number edges in the order of their consumers."""
    import networkx as nx

    written = nx.MultiDiGraph(**graph.graph)
    for node, attributes in graph.nodes(data=True):
        written.add_node(node, **{name: attributes[name] for name in _NODE_ATTRIBUTES})
    place = {node: index for index, node in enumerate(graph)}
    edges = sorted(
        graph.in_edges(keys=True, data=True), key=lambda edge: (place[edge[1]], edge[2][1])
    )
    for number, (source, target, (operand, position), attributes) in enumerate(edges):
        written.add_edge(
            source, target, number,
            operand=operand, input=position, route=spell(attributes["route"]),
        )  # fmt: skip
    return written


def _format_route(route: list[list[float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in route)


def _as_xml(text: str) -> str:
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
