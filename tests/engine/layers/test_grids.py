"""Grids, combinations and triangles."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

A, B = np.array([1, 2, 3]), np.array([8, 9])


def test_meshgrid(run):
    first, second = run("torch.meshgrid", A, B)
    assert first.tolist() == [[1, 1], [2, 2], [3, 3]]
    assert second.tolist() == [[8, 9]] * 3


def test_meshgrid_of_columns_and_rows(run):
    first, second = run("aten::meshgrid", (A, B), "xy")
    assert first.tolist() == [[1, 2, 3]] * 2
    assert second.tolist() == [[8] * 3, [9] * 3]


def test_meshgrid_of_three(run):
    grids = run("aten::meshgrid", (A, np.array(5), B), "xy")
    assert [grid.shape for grid in grids] == [(1, 3, 2)] * 3
    assert [grid[0, 2, 1] for grid in grids] == [3, 5, 9]


@pytest.mark.parametrize(
    ("tensors", "indexing", "sentence"),
    [
        ((A, B), "ji", "indexing=ji is neither ij nor xy"),
        ((A, B.astype(float)), "ij", "differ in dtype"),
        ((A, np.zeros((2, 2))), "ij", "vectors are needed"),
        ((), "ij", "vectors are needed"),
    ],
)
def test_no_grid(run, tensors, indexing, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("torch.meshgrid", tensors, indexing=indexing)


def test_cartesian_product(run):
    expected = [[1, 8], [1, 9], [2, 8], [2, 9], [3, 8], [3, 9]]
    assert run("torch.cartesian_prod", A, B).tolist() == expected
    assert run("aten::cartesian_prod", (A, B)).tolist() == expected
    assert run("torch.cartesian_prod", A).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("r", "again", "expected"),
    [
        (2, False, [[1, 2], [1, 3], [2, 3]]),
        (2, True, [[1, 1], [1, 2], [1, 3], [2, 2], [2, 3], [3, 3]]),
        (3, False, [[1, 2, 3]]),
        (4, False, []),
        (0, False, []),
    ],
)
def test_combinations(run, r, again, expected):
    result = run("torch.combinations", A, r=r, with_replacement=again)
    assert result.tolist() == expected
    assert result.shape == ((0,) if r == 0 else (len(expected), r))


@pytest.mark.parametrize(
    ("name", "offset", "expected"),
    [
        ("tril", 0, [[0, 1, 1], [0, 0, 1]]),
        ("tril", 1, [[0, 0, 1, 1, 1], [0, 1, 0, 1, 2]]),
        ("triu", 1, [[0, 0, 1], [1, 2, 2]]),
    ],
)
def test_triangles(run, name, offset, expected):
    result = run(f"torch.{name}_indices", row=2, col=3, offset=offset)
    assert (result.tolist(), result.dtype) == (expected, np.int64)
