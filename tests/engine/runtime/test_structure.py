"""Components and generations of graphs, by hand."""

from __future__ import annotations

import networkx as nx
import pytest

import engine
from engine.runtime.structure import find_structure


def structure_of(count, edges):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    return find_structure(graph)


@pytest.mark.parametrize(
    ("count", "edges", "components", "generations"),
    [
        pytest.param(0, [], (), (), id="nothing"),
        pytest.param(1, [], ((0,),), (0,), id="one"),
        pytest.param(3, [(0, 1), (1, 2)], ((0, 1, 2),), (0, 1, 2), id="chain"),
        pytest.param(3, [(0, 1), (1, 2), (0, 2)], ((0, 1, 2),), (0, 1, 2), id="skip"),
        # 3 feeds 1, and 4 → 2 is a graph by itself.
        pytest.param(
            5, [(0, 1), (3, 1), (4, 2)], ((0, 1, 3), (2, 4)), (0, 1, 1, 0, 0), id="two"
        ),
    ],
)
def test_structure(count, edges, components, generations):
    assert structure_of(count, edges) == (components, generations)


def test_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        structure_of(3, [(0, 1), (1, 2), (2, 0)])


def test_of_a_model(make_pair):
    # in0 → relu → add → out, and in0 → add, which takes it twice; in1 → neg by themselves.
    graph = engine.load(
        make_pair(
            "pnnx.Input in0 0 1 0 #0=(2)f32",
            "pnnx.Input in1 0 1 4 #4=(2)f32",
            "nn.ReLU relu 1 1 0 1",
            "torch.neg neg 1 1 4 5",
            "pnnx.Expression add 3 1 1 0 0 2 expr=add(add(@0,@1),@2)",
            "pnnx.Output out 1 0 2",
        )
    )
    assert [operator.name for operator in graph.operators] == [
        "in0", "in1", "relu", "neg", "add", "out",
    ]  # fmt: skip
    assert graph.structure == (((0, 2, 4, 5), (1, 3)), (0, 0, 1, 1, 2, 3))
    assert graph.structure is graph.structure
