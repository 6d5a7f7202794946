"""Bags of embeddings."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from engine.errors import LayerError

TABLE = np.array([[1, 10], [2, 20], [4, 40]], np.float32)
INDICES = np.array([0, 1, 2, 2])
OFFSETS = np.array([0, 3, 3])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"mode": "sum"}, [[7, 70], [0, 0], [4, 40]]),
        ({"mode": "mean"}, [[7 / 3, 70 / 3], [0, 0], [4, 40]]),
        ({"mode": "max"}, [[4, 40], [0, 0], [4, 40]]),
        ({"mode": "mean", "padding_idx": 2}, [[1.5, 15], [0, 0], [0, 0]]),
        ({"mode": "sum", "include_last_offset": True}, [[7, 70], [0, 0]]),
    ],
)
def test_by_hand(run, params, expected):
    weights = {"weight": TABLE}
    y = run("nn.EmbeddingBag", INDICES, OFFSETS, weights=weights, **params)
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def test_rows_are_bags(run):
    y = run("F.embedding_bag", INDICES.reshape(2, 2), TABLE, mode="sum")
    np.testing.assert_array_equal(y, [[3, 30], [8, 80]])


def test_traced(run):
    shares = np.array([1, 2, 0.5, 0], np.float32)
    operands = (TABLE, INDICES, OFFSETS, False, 0, False, shares, False)
    y = run("aten::embedding_bag", *operands, None)
    np.testing.assert_array_equal(y[0], [[7, 70], [0, 0], [0, 0]])
    assert len(y) == 4
    without_last_row = run("aten::embedding_bag", *operands, -1)
    np.testing.assert_array_equal(without_last_row[0], [[5, 50], [0, 0], [0, 0]])


@pytest.mark.parametrize(
    ("operands", "params", "sentence"),
    [
        ((INDICES, TABLE), {}, "or one list with offsets of the bags; the shapes are 4"),
        ((INDICES, TABLE, OFFSETS + 1), {}, "offsets must begin with 0, rise and stay below 4"),
        ((INDICES, TABLE, np.array([0, 3, 1])), {}, "offsets must begin with 0, rise and stay"),
        ((INDICES, TABLE, np.array([0, 3, 5])), {}, "offsets must begin with 0, rise and stay"),
        (
            (INDICES, TABLE, OFFSETS),
            {"mode": "product"},
            "mode product is not one of sum, mean",
        ),
    ],
)
def test_refusals(run, operands, params, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("F.embedding_bag", *operands, **params)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding_idx", [None, 1])
def test_against_pytorch(run, mode, padding_idx):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    table = rng.standard_normal((6, 4), dtype=np.float32)
    indices, offsets = rng.integers(0, 6, 12), np.array([0, 2, 2, 9])
    expected = torch.nn.functional.embedding_bag(
        *map(torch.from_numpy, (indices, table, offsets)), mode=mode, padding_idx=padding_idx
    )
    y = run("F.embedding_bag", indices, table, offsets, mode=mode, padding_idx=padding_idx)
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("mode", "join"), [("sum", sum), ("mean", None), ("max", max)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_many_bags(run, mode, join, dtype):
    """Empty ones, ones of padding alone, and rows behind the last."""
    rng = np.random.default_rng(5)
    indices, table = rng.integers(0, 4, 500), rng.integers(-9, 9, (4, 3)).astype(dtype)
    offsets = np.sort(np.concatenate([[0, 0], rng.integers(0, 490, 200)]))
    y = run(
        "F.embedding_bag", indices, table, offsets, mode=mode, padding_idx=1,
        include_last_offset=True,
    )  # fmt: skip
    assert (y.shape, y.dtype) == ((201, 3), dtype)
    for bag, (start, stop) in enumerate(pairwise(offsets)):
        rows = [table[i].astype(float) for i in indices[start:stop] if i != 1]
        for column in range(3):
            numbers = [row[column] for row in rows]
            expected = sum(numbers) / len(numbers) if join is None and numbers else 0
            expected = join(numbers) if join is not None and numbers else expected
            assert y[bag, column] == dtype(expected)
