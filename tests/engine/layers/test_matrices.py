"""Cross products, diagonals and triangles."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

M = np.arange(1, 13, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("operator_type", ["torch.cross", "torch.linalg.cross"])
def test_cross(run, operator_type):
    a, b = np.array([[1, 2, 3], [1, 0, 0]]), np.array([[4, 5, 6], [0, 1, 0]])
    assert run(operator_type, a, b, dim=1).tolist() == [[-3, 6, -3], [0, 0, 1]]


def test_cross_takes_the_first_dimension_of_three(run):
    a, b = np.array([[1], [2], [3]]), np.array([[4], [5], [6]])
    assert run("torch.cross", a, b, dim=None).tolist() == [[-3], [6], [-3]]


@pytest.mark.parametrize(
    ("shape", "dim", "reason"),
    [((2, 2), None, "no dimension of 2×2 has size 3"), ((3, 2), 1, "dim 1 has size 2, not 3")],
)
def test_no_cross(run, shape, dim, reason):
    with pytest.raises(LayerError, match=reason):
        run("torch.cross", np.zeros(shape), np.zeros(shape), dim=dim)


@pytest.mark.parametrize(
    ("x", "diagonal", "expected"),
    [
        (M, 0, [1, 6, 11]),
        (M, 1, [2, 7, 12]),
        (M, -2, [9]),
        (np.array([1, 2]), 0, [[1, 0], [0, 2]]),
        (np.array([1]), -1, [[0, 0], [1, 0]]),
    ],
)
def test_diag(run, x, diagonal, expected):
    assert run("torch.diag", x, diagonal=diagonal).tolist() == expected


def test_diagonal_and_trace(run):
    assert run("torch.diagonal", M, offset=1).tolist() == [2, 7, 12]
    assert run("torch.diagonal", M[None], dim1=2, dim2=1, offset=-1).tolist() == [[2, 7, 12]]
    assert run("torch.trace", M) == 18


def test_triangles(run):
    assert run("torch.tril", M).tolist() == [[1, 0, 0, 0], [5, 6, 0, 0], [9, 10, 11, 0]]
    assert run("torch.triu", M, diagonal=1).tolist() == [
        [0, 2, 3, 4],
        [0, 0, 7, 8],
        [0, 0, 0, 12],
    ]
    with pytest.raises(LayerError, match="shape 4 holds no matrices"):
        run("torch.tril", M[0])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [[[1, 0], [0, 2]], [[3, 0], [0, 4]]]),
        ({"offset": 1}, [[[0, 1, 0], [0, 0, 2], [0] * 3], [[0, 3, 0], [0, 0, 4], [0] * 3]]),
        (
            {"offset": -1, "dim1": -1, "dim2": -2},
            [[[0, 1, 0], [0, 0, 2], [0] * 3], [[0, 3, 0], [0, 0, 4], [0] * 3]],
        ),
        ({"dim1": 0, "dim2": 2}, [[[1, 0], [3, 0]], [[0, 2], [0, 4]]]),
    ],
)
def test_diagonals_made_matrices(run, params, expected):
    x = np.array([[1, 2], [3, 4]])
    result = run("torch.diag_embed", x, **params)
    np.testing.assert_array_equal(result, expected)


def test_no_diagonal(run):
    with pytest.raises(LayerError, match="both be dimension 1"):
        run("torch.diag_embed", np.zeros(2), dim1=1, dim2=-1)
    with pytest.raises(LayerError, match="is no diagonal"):
        run("torch.diag_embed", np.array(2.0))


def test_diagflat(run):
    result = run("torch.diagflat", np.array([[1], [2]]), offset=-1)
    assert result.tolist() == [[0, 0, 0], [1, 0, 0], [0, 2, 0]]


@pytest.mark.parametrize(
    ("offset", "src", "expected"),
    [(0, [8, 9], [[8, 1, 1], [1, 9, 1]]), (2, [8], [[1, 1, 8], [1, 1, 1]])],
)
def test_diagonal_scatter(run, offset, src, expected):
    x = np.ones((2, 3), int)
    assert run("torch.diagonal_scatter", x, np.array(src), offset=offset).tolist() == expected
    with pytest.raises(LayerError, match="the part and its replacement differ in shape"):
        run("torch.diagonal_scatter", x, np.zeros(4), offset=offset)


def test_linalg_diagonal(run):
    x = np.arange(8).reshape(2, 2, 2)
    assert run("torch.linalg.diagonal", x).tolist() == [[0, 3], [4, 7]]
