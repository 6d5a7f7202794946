"""Choosing elements by a condition."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

X = np.array([[1, 2], [3, 4]], np.float32)
MASK = np.array([[True, False], [False, True]])


@pytest.mark.parametrize(
    ("a", "b", "expected", "dtype"),
    [
        (X, -X, [[1, -2], [-3, 4]], "f4"),
        (X, 0, [[1, 0], [0, 4]], "f4"),
        (2.5, X, [[2.5, 2], [3, 2.5]], "f4"),
        (np.array([1, 2]), np.array(0.5), [[1, 0.5], [0.5, 2]], "f8"),
        (True, False, [[True, False], [False, True]], "?"),
        (X[0], X[:, :1], [[1, 1], [3, 2]], "f4"),
    ],
)
def test_where(run, a, b, expected, dtype):
    result = run("torch.where", MASK, a, b)
    assert result.dtype == dtype
    assert result.tolist() == expected


def test_where_with_a_parameter(run):
    result = run("torch.where", MASK, X, names=("condition", "other"), input=9)
    assert result.tolist() == [[9, 2], [3, 9]]


def test_where_alone(run):
    rows, cols = run("torch.where", MASK)
    assert (rows.tolist(), cols.tolist()) == ([0, 1], [0, 1])


@pytest.mark.parametrize(
    ("value", "expected"),
    [(9, [[9, 2], [3, 9]]), (-np.inf, [[-np.inf, 2], [3, -np.inf]]),
     (np.array(0.5), [[0.5, 2], [3, 0.5]])],
)  # fmt: skip
def test_masked_fill(run, value, expected):
    result = run("Tensor.masked_fill", X, MASK, value)
    assert result.dtype == np.float32
    assert result.tolist() == expected


def test_masked_fill_broadcasts(run):
    result = run("Tensor.masked_fill", X[0], MASK, names=("input", "mask"), value=0)
    assert result.tolist() == [[0, 2], [1, 0]]


def test_masked_scatter_stretches_the_input(run):
    mask = np.array([[True, False], [False, True]])
    result = run("Tensor.masked_scatter", np.array([1, 2]), mask, np.array([8, 9]))
    assert result.tolist() == [[8, 2], [1, 9]]


def test_masked_select(run):
    assert run("torch.masked_select", X, MASK).tolist() == [1, 4]
    assert run("torch.masked_select", X, np.array([True, False])).tolist() == [1, 3]


def test_masked_scatter(run):
    source = np.array([7, 8, 9], np.float32)
    assert run("Tensor.masked_scatter", X, MASK, source).tolist() == [[7, 2], [3, 8]]
    with pytest.raises(LayerError, match="the mask selects 2 elements, source has 1"):
        run("Tensor.masked_scatter", X, MASK, source[:1])


@pytest.mark.parametrize(
    ("x", "expected"),
    [(np.array([[0, 2], [3, 0]]), [[0, 1], [1, 0]]), (np.zeros(3), np.zeros((0, 1))),
     (np.array(5), np.zeros((1, 0))), (np.array(0), np.zeros((0, 0)))],
)  # fmt: skip
def test_nonzero(run, x, expected):
    result = run("torch.nonzero", x)
    assert result.dtype == np.int64
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    "operator_type", ["torch.where", "Tensor.masked_fill", "torch.masked_select"]
)
def test_shapes_that_do_not_fit(run, operator_type):
    mask = np.ones(3, bool)
    operands = {"torch.where": (mask, X, X), "Tensor.masked_fill": (X, mask, 0)}
    with pytest.raises(LayerError, match="cannot broadcast shapes"):
        run(operator_type, *operands.get(operator_type, (X, mask)))


def test_argwhere(run):
    assert run("aten::argwhere", np.array([[0, 2], [3, 0]])).tolist() == [[0, 1], [1, 0]]


def test_places_by_dimension(run):
    rows, columns = run("aten::nonzero_numpy", np.array([[0, 3], [1, 0]]))
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    for operator_type in ("aten::nonzero_numpy", "torch.where"):
        (alone,) = run(operator_type, np.array(True))
        assert (alone.tolist(), alone.dtype) == ([0], np.int64)
