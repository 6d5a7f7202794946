"""Differences of neighbours, and areas under points."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

ROWS = np.array([[1, 4, 9, 16], [2, 2, 1, 0]], np.float32)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [[3, 5, 7], [0, -1, -1]]),
        ({"n": 2}, [[2, 2], [-1, 0]]),
        ({"n": 9}, [[], []]),
        ({"n": 0}, ROWS),
        ({"dim": 0}, [[1, -2, -8, -16]]),
        ({"prepend": np.zeros((2, 1), np.float32)}, [[1, 3, 5, 7], [2, 0, -1, -1]]),
        ({"append": np.array([[20], [5]]), "n": 2}, [[2, 2, -3], [-1, 0, 6]]),
    ],
)
def test_differences(run, params, expected):
    joined = [name for name in ("prepend", "append") if name in params]
    operands = [params.pop(name) for name in joined]
    result = run("torch.diff", ROWS, *operands, names=("input", *joined), **params)
    assert result.tolist() == np.asarray(expected).tolist()
    assert result.dtype == np.float32


def test_differences_of_bools(run):
    result = run("torch.diff", np.array([True, True, False]))
    assert result.tolist() == [False, True]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [21.5, 4]),
        ({"dx": 0.5}, [10.75, 2]),
        ({"x": 2}, [43, 8]),
        ({"x": np.array([0, 1, 3, 4])}, [28, 5.5]),
        ({"x": np.array([[0, 1, 3, 4], [4, 3, 2, 0]])}, [28, -4.5]),
        ({"dim": 0}, [1.5, 3, 5, 8]),
        ({"dim": 0, "x": np.array([1, 3])}, [3, 6, 10, 16]),
    ],
)
def test_area(run, params, expected):
    x = [params.pop("x")] if "x" in params else []
    result = run("torch.trapezoid", ROWS, *x, names=("y", "x")[: 1 + len(x)], **params)
    assert result.tolist() == expected
    assert result.dtype == np.float32


def test_running_area(run):
    result = run("torch.cumulative_trapezoid", ROWS)
    assert result.tolist() == [[2.5, 9, 21.5], [2, 3.5, 4]]


def test_area_under_integers(run):
    result = run("torch.trapz", np.array([1, 2, 4]))
    assert (result.item(), result.dtype) == (4.5, np.float32)


@pytest.mark.parametrize("x", [np.zeros(3), np.zeros((3, 4))])
def test_points_that_do_not_fit(run, x):
    with pytest.raises(LayerError):
        run("torch.trapezoid", ROWS, x)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"dim": 1}, [[3, 4, 6, 7], [0, -0.5, -1, -1]]),
        ({"dim": -1, "spacing": 2}, [[1.5, 2, 3, 3.5], [0, -0.25, -0.5, -0.5]]),
        ({"dim": 1, "edge_order": 2}, [[2, 4, 6, 8], [0.5, -0.5, -1, -1]]),
        ({"dim": 1, "spacing": np.array([0, 1, 3, 4])}, [[3, 17 / 6, 11 / 2, 7], [0, -1 / 6]]),
    ],
)
def test_slope(run, params, expected):
    spacing = [params.pop("spacing")] if "spacing" in params else []
    (result,) = run("torch.gradient", ROWS, *spacing, **params)
    for row, numbers in zip(result, expected, strict=True):
        np.testing.assert_allclose(row[: len(numbers)], numbers, rtol=1e-6)


def test_slope_along_every_dimension(run):
    rows, columns = run("torch.gradient", ROWS, spacing=(2, 1.0))
    assert rows.tolist() == [[0.5, -1, -4, -8]] * 2
    assert columns[0].tolist() == [3, 4, 6, 7]


@pytest.mark.parametrize(
    "params", [{"edge_order": 2}, {"dim": 1, "edge_order": 3}, {"dim": 1, "spacing": (1, 2)}]
)
def test_no_slope(run, params):
    with pytest.raises(LayerError):
        run("torch.gradient", ROWS, **params)
