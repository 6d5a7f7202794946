from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import UnknownNameError
from engine.runtime.reach import find_between, find_constant, find_downstream, find_upstream

# in -> a -> b -> join -> out; in -> c -> join; b -> d (no consumer); other -> alone
DIAMOND = (
    "pnnx.Input in 0 1 0",
    "F.relu a 1 1 0 1",
    "F.relu b 1 1 1 2",
    "F.relu c 1 1 0 3",
    "pnnx.Expression join 3 1 2 3 2 4 expr=add(add(@0,@1),@2)",
    "F.relu d 1 1 2 5",
    "pnnx.Input other 0 1 6",
    "F.relu alone 1 1 6 7",
    "pnnx.Output out 1 0 4",
)


@pytest.fixture
def graph(make_pair):
    return engine.load(make_pair(*DIAMOND))


@pytest.mark.parametrize(
    ("name", "upstream", "downstream"),
    [
        ("in", {"in"}, {"in", "a", "b", "c", "join", "d", "out"}),
        ("b", {"in", "a", "b"}, {"b", "join", "d", "out"}),
        ("join", {"in", "a", "b", "c", "join"}, {"join", "out"}),
        ("alone", {"other", "alone"}, {"alone"}),
    ],
)
def test_upstream_and_downstream(graph, name, upstream, downstream):
    def names(found):
        assert list(found) == sorted(found)
        return {graph.operators[index].name for index in found}

    assert names(find_upstream(graph, name)) == upstream
    assert names(find_downstream(graph, name)) == downstream


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("in", "join", {"in", "a", "b", "c", "join"}),
        ("join", "in", {"in", "a", "b", "c", "join"}),
        ("a", "out", {"a", "b", "join", "out"}),
        ("b", "c", set()),
        ("alone", "in", set()),
        ("a", "a", {"a"}),
    ],
)
def test_between(graph, one, other, expected):
    found = find_between(graph, one, other)

    assert {graph.operators[index].name for index in found} == expected


def test_constants_depend_on_no_input(make_pair):
    lines = (
        "pnnx.Input in 0 1 0",
        "torch.zeros made 0 1 1 size=(3)",
        "F.relu from_made 1 1 1 2",
        "F.relu from_in 1 1 0 3",
        "pnnx.Expression both 2 1 2 3 4 expr=add(@0,@1)",
        "F.relu after 1 1 4 5",
        "pnnx.Expression made_twice 2 1 1 2 6 expr=add(@0,@1)",
        "pnnx.Output out 1 0 5",
        "pnnx.Output constant_out 1 0 6",
    )
    graph = engine.load(make_pair(*lines))
    found = {graph.operators[index].name for index in find_constant(graph)}
    assert found == {"made", "from_made", "made_twice", "constant_out"}


def test_unknown_names_are_refused(graph):
    with pytest.raises(UnknownNameError):
        find_upstream(graph, "nobody")


def test_random_graphs_agree_with_a_slow_closure(make_pair):
    rng = np.random.default_rng(5)
    count = 40
    edges, lines = np.zeros((count + 1, count + 1), bool), ["pnnx.Input n0 0 1 0"]
    for node in range(1, count + 1):
        sources = sorted(set(rng.integers(0, node, size=2).tolist()))
        edges[sources, node] = True
        expression = "add(@0,@1)" if len(sources) == 2 else "neg(@0)"
        taken = " ".join(map(str, sources))
        lines.append(
            f"pnnx.Expression n{node} {len(sources)} 1 {taken} {node} expr={expression}"
        )
    graph = engine.load(make_pair(*lines))
    reached = edges | np.eye(count + 1, dtype=bool)
    for middle in range(count + 1):  # Warshall
        reached |= reached[:, [middle]] & reached[[middle], :]
    names = [int(operator.name[1:]) for operator in graph.operators]
    for node in rng.integers(0, count + 1, size=12).tolist():
        found = {names[index] for index in find_downstream(graph, f"n{node}")}
        assert found == set(np.flatnonzero(reached[node]).tolist())
        end = int(rng.integers(node, count + 1))
        between = {names[index] for index in find_between(graph, f"n{node}", f"n{end}")}
        expected = reached[node] & reached[:, end]
        assert between == set(np.flatnonzero(expected).tolist())
