"""Operators that cut a tensor into several."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.errors import LayerError
from engine.layers import OperatorCall, build_layer
from engine.layers.split import chunk, split

X = np.arange(7)
GRID = np.arange(12).reshape(3, 4)


def lists(parts):
    assert type(parts) is tuple
    return [part.tolist() for part in parts]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        (3, [[0, 1, 2], [3, 4, 5], [6]]),
        (7, [[0, 1, 2, 3, 4, 5, 6]]),
        (9, [[0, 1, 2, 3, 4, 5, 6]]),
        ((1, 4, 2), [[0], [1, 2, 3, 4], [5, 6]]),
        ((7,), [[0, 1, 2, 3, 4, 5, 6]]),
        ((0, 7), [[], [0, 1, 2, 3, 4, 5, 6]]),
    ],
)
def test_split(run, sizes, expected):
    assert lists(run("torch.split", X, split_size_or_sections=sizes)) == expected


@pytest.mark.parametrize("sizes", [0, -1, (3, 3), (8, -1), (1, 7)])
def test_split_that_does_not_fit(run, sizes):
    with pytest.raises(LayerError):
        run("torch.split", X, split_size_or_sections=sizes)


def test_parts_are_views():
    assert all(np.shares_memory(part, GRID) for part in split(GRID, 2, 1))


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        (1, [[0, 1, 2, 3, 4, 5, 6]]),
        (2, [[0, 1, 2, 3], [4, 5, 6]]),
        pytest.param(5, [[0, 1], [2, 3], [4, 5], [6]], id="fewer come out"),
        (9, [[i] for i in range(7)]),
    ],
)
def test_chunk(run, chunks, expected):
    assert lists(run("torch.chunk", X, chunks=chunks)) == expected


def test_unsafe_forms(run):
    # PyTorch's own GRU and LSTM cells cut with them; "unsafe" is about gradients.
    assert lists(run("aten::unsafe_chunk", X, 2, 0)) == lists(run("torch.chunk", X, chunks=2))
    sizes = {"split_size_or_sections": 2}
    assert lists(run("torch.unsafe_split", X, **sizes)) == lists(run("torch.split", X, **sizes))


def test_chunk_of_nothing(run):
    assert lists(run("torch.chunk", X[:0], chunks=3)) == [[], [], []]
    with pytest.raises(LayerError, match="chunks is 0"):
        run("torch.chunk", X, chunks=0)


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({"indices": (2, 5)}, [[0, 1], [2, 3, 4], [5, 6]]),
        ({"indices": (5, 2)}, [[0, 1, 2, 3, 4], [], [2, 3, 4, 5, 6]]),
        ({"indices": (-1, 9)}, [[0, 1, 2, 3, 4, 5], [6], []]),
        ({"sections": 3}, [[0, 1, 2], [3, 4], [5, 6]]),
        ({"indices_or_sections": 2}, [[0, 1, 2, 3], [4, 5, 6]]),
        ({"indices": 2}, [[0, 1, 2, 3], [4, 5, 6]]),
    ],
)
def test_tensor_split(run, kwargs, expected):
    assert lists(run("torch.tensor_split", X, **kwargs)) == expected


@pytest.mark.parametrize(
    ("dim", "expected"),
    [(0, GRID.tolist()), (1, [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]])],
)
def test_unbind(run, dim, expected):
    assert lists(run("torch.unbind", GRID, dim=dim)) == expected
    assert lists(run("torch.unbind", GRID, dim=dim - 2)) == expected


def test_what_onnx_leaves_out():
    call = OperatorCall(
        "op", "torch.split", {"split_size_or_sections": None, "dim": None}, {}, ("",), 3
    )
    assert lists(build_layer(call).forward(X)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert lists(chunk(X, 2, None)) == [[0, 1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("operator_type", ["torch.split", "torch.chunk", "torch.unbind"])
def test_a_scalar_cannot_be_cut(run, operator_type):
    more = {"torch.split": {"split_size_or_sections": 1}, "torch.chunk": {"chunks": 1}}
    with pytest.raises(LayerError, match="a 0-d tensor cannot be split"):
        run(operator_type, np.array(1.0), **more.get(operator_type, {}))


@pytest.mark.parametrize(
    ("annotation", "is_list"), [("#1=(2,3)f32", False), ("", True)], ids=["tensor", "list"]
)
def test_one_part_may_stand_for_the_list(make_pair, annotation, is_list):
    """pnnx unpacks a list of one into its member, whose shape it then writes."""
    graph = engine.load(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(2,3)f32",
            f"torch.chunk cut 1 1 0 1 chunks=1 dim=1 $input=0 #0=(2,3)f32 {annotation}",
            "pnnx.Output out 1 0 1",
        )
    )
    session = engine.Session(graph, backend="numpy")
    session.feed([np.ones((2, 3), np.float32)])
    session.run()
    assert isinstance(session.value("1"), tuple) == is_list
    assert session.outputs()[0].shape == (2, 3)


@pytest.mark.parametrize(
    ("name", "shape", "indices", "expected"),
    [
        ("hsplit", (6,), 3, [(2,)] * 3),
        ("hsplit", (2, 6), (1, 4), [(2, 1), (2, 3), (2, 2)]),
        ("vsplit", (4, 3), 2, [(2, 3), (2, 3)]),
        ("dsplit", (1, 2, 4), (3,), [(1, 2, 3), (1, 2, 1)]),
    ],
)
def test_the_reverse_of_stacking(run, name, shape, indices, expected):
    x = np.arange(np.prod(shape)).reshape(shape)
    parts = run(f"torch.{name}", x, indices)
    assert [part.shape for part in parts] == expected
    axis = {"hsplit": min(x.ndim, 2) - 1, "vsplit": 0, "dsplit": 2}[name]
    np.testing.assert_array_equal(np.concatenate(parts, axis), x)


@pytest.mark.parametrize(
    ("name", "shape", "indices", "sentence"),
    [
        ("hsplit", (5,), 2, "5 elements cannot be split into 2 parts of one size"),
        ("vsplit", (4,), 2, "needs 2 dimensions, it has 1"),
        ("dsplit", (4, 4), 2, "needs 3 dimensions, it has 2"),
        ("hsplit", (), 1, "needs 1 dimensions, it has 0"),
    ],
)
def test_what_stacking_does_not_give(run, name, shape, indices, sentence):
    with pytest.raises(LayerError, match=sentence):
        run(f"torch.{name}", np.zeros(shape), indices)
