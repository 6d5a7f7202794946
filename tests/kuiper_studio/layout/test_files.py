"""A layout as attributes of its graph, and as files that networkx opens again."""

from __future__ import annotations

import io
import json
import xml.etree.ElementTree as ET

import networkx as nx
import pytest

from kuiper_studio.layout import LayoutRequest, layout
from kuiper_studio.layout.files import format_graph, write_attributes

SIZES = ((112.0, 94.0), (112.0, 94.0), (120.0, 94.0), (112.0, 94.0))
TYPES = ("pnnx.Input", "nn.ReLU", "pnnx.Expression", "pnnx.Output")
# By hand: layers 53 apart, the skip 40 above the chain, from the middle of a top to the next.
CORNERS = [(0.0, 40.0), (165.0, 40.0), (330.0, 40.0), (503.0, 40.0)]
ROUTES = {
    ("in", "relu", "0", 0): [[112.0, 87.0], [165.0, 87.0]],
    ("relu", "add", "1", 0): [[277.0, 87.0], [330.0, 87.0]],
    ("in", "add", "0", 1): [[56.0, 40.0], [56.0, 0.0], [390.0, 0.0], [390.0, 40.0]],
    ("in", "add", "0", 2): [[56.0, 40.0], [56.0, 0.0], [390.0, 0.0], [390.0, 40.0]],
    ("add", "out", "2", 0): [[450.0, 87.0], [503.0, 87.0]],
}


def laid_out(names=("in", "relu", "add", "out"), operand="0"):
    """A chain of four with a skip over one; the third takes the first's operand twice."""
    graph = nx.MultiDiGraph()
    for index, (name, kind) in enumerate(zip(names, TYPES, strict=True)):
        graph.add_node(name, operator=object(), index=index, type=kind)
    first, second, third, last = names
    graph.add_edge(first, second, (operand, 0))
    graph.add_edge(second, third, ("1", 0))
    graph.add_edge(first, third, (operand, 1))
    graph.add_edge(first, third, (operand, 2))
    graph.add_edge(third, last, ("2", 0))
    # Each operand once on its way to a consumer.
    lines = ((0, 1, operand), (1, 2, "1"), (0, 2, operand), (2, 3, "2"))
    write_attributes(
        graph, SIZES, layout(LayoutRequest([range(4)], [0, 1, 2, 3], lines, SIZES))
    )
    return graph


def opened(form, graph):
    written = format_graph(graph, form)
    if form == "graphml":
        return nx.read_graphml(io.BytesIO(written))
    return nx.node_link_graph(json.loads(written), edges="edges")


def as_points(route):
    if isinstance(route, str):
        return [[float(number) for number in point.split(",")] for point in route.split()]
    return route


def test_attributes():
    graph = laid_out()
    assert graph.graph["orientation"] == "left-right"
    assert [(node["x"], node["y"]) for node in graph.nodes.values()] == CORNERS
    assert [node["layer"] for node in graph.nodes.values()] == [0, 1, 2, 3]
    assert graph.nodes["add"]["width"] == 120
    routes = {
        (s, t, *key): data["route"] for s, t, key, data in graph.edges(keys=True, data=True)
    }
    assert routes == ROUTES


def test_second_component_and_row():
    # 0 → 1 → 3 and 0 → 2 → 3, and 4 by itself.
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(5))
    for source, target, position in [(0, 1, 0), (0, 2, 0), (1, 3, 0), (2, 3, 1)]:
        graph.add_edge(source, target, (str(source), position))
    lines = ((0, 1, "0"), (0, 2, "0"), (1, 3, "1"), (2, 3, "2"))
    sizes = ((112.0, 94.0),) * 5
    request = LayoutRequest([range(4), [4]], [0, 1, 1, 2, 0], lines, sizes)
    write_attributes(graph, sizes, layout(request))
    assert [node["row"] for node in graph.nodes.values()] == [0, 0, 1, 0, 0]
    assert [node["layer"] for node in graph.nodes.values()] == [0, 1, 1, 2, 0]
    assert [node["component"] for node in graph.nodes.values()] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("form", ["graphml", "json"])
def test_files_open_again(form):
    graph = opened(form, laid_out())
    assert graph.is_directed()
    assert graph.graph["orientation"] == "left-right"
    assert list(graph) == ["in", "relu", "add", "out"]
    assert dict(graph.nodes["add"]) == {
        "index": 2, "type": "pnnx.Expression", "x": 330.0, "y": 40.0, "width": 120.0,
        "height": 94.0, "layer": 2, "row": 0, "component": 0,
    }  # fmt: skip
    assert [(node["x"], node["y"]) for node in graph.nodes.values()] == CORNERS
    assert {
        (source, target, data["operand"], data["input"]): as_points(data["route"])
        for source, target, data in graph.edges(data=True)
    } == ROUTES


@pytest.mark.parametrize("form", ["graphml", "json"])
def test_graph_of_nothing(form):
    graph = nx.MultiDiGraph()
    write_attributes(graph, (), layout(LayoutRequest((), (), (), ())))
    assert len(opened(form, graph)) == 0


def test_graphml_has_types_and_texts():
    root = ET.fromstring(format_graph(laid_out(), "graphml"))
    space = "{http://graphml.graphdrawing.org/xmlns}"
    types = {key.get("attr.name"): key.get("attr.type") for key in root.findall(f"{space}key")}
    assert types == {
        "orientation": "string", "index": "long", "type": "string", "x": "double",
        "y": "double", "width": "double", "height": "double", "layer": "long", "row": "long",
        "component": "long", "operand": "string", "input": "long", "route": "string",
    }  # fmt: skip
    edges = root.findall(f".//{space}edge")
    assert sorted(edge.get("id") for edge in edges) == ["0", "1", "2", "3", "4"]
    assert "112.0,87.0 165.0,87.0" in [data.text for data in edges[0]]


NAMES = ("a/../b", '<x y="&amp;">', "ключ\N{GRINNING FACE}", "c]]>")


@pytest.mark.parametrize("form", ["graphml", "json"])
def test_names_are_escaped(form):
    graph = opened(form, laid_out(NAMES, operand="<0>&\"'"))
    assert list(graph) == list(NAMES)
    assert {data["operand"] for *_, data in graph.edges(data=True)} == {"<0>&\"'", "1", "2"}


def test_names_that_xml_cannot_hold():
    # No control characters, no half of a pair: they would be the same name without the index.
    names = ("a\x01", "a\x02", "a\ud800", "a\ufffd")
    assert list(opened("json", laid_out(names))) == list(names)
    graph = opened("graphml", laid_out(names, operand="\x1b[2J"))
    assert list(graph) == ["a\ufffd 0", "a\ufffd 1", "a\ufffd 2", "a\ufffd"]
    assert {data["operand"] for *_, data in graph.edges(data=True)} == {"\ufffd[2J", "1", "2"}
