"""ONNX's reductions; the other names of ``Reduce...`` are cross-checked with its package."""

from __future__ import annotations

import numpy as np
import pytest

X = np.array([[1, 5, 2], [4, 3, 4]], np.float32)


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        ("ReduceMax", {}, [[5]]),
        ("ReduceMax", {"axes": (1,)}, [[5], [4]]),
        ("ReduceMax", {"axes": -1, "keepdims": 0}, [5, 4]),
        ("ReduceMin", {"axes": (0,)}, [[1, 3, 2]]),
        ("ReduceSum", {"axes": (0, 1), "keepdims": 0}, 19),
        ("ReduceMean", {"axes": (1,)}, [[8 / 3], [11 / 3]]),
        ("ReduceProd", {"axes": (1,)}, [[10], [48]]),
        ("ReduceL1", {"axes": (0,)}, [[5, 8, 6]]),
        ("ReduceL2", {"axes": (0,)}, [[17**0.5, 34**0.5, 20**0.5]]),
        ("ReduceSumSquare", {"axes": (0,)}, [[17, 34, 20]]),
        ("ReduceLogSum", {"axes": (0,)}, [[np.log(5), np.log(8), np.log(6)]]),
        ("ReduceLogSumExp", {"axes": (0,)}, [[np.log(np.exp(1) + np.exp(4)),
                                              np.log(np.exp(5) + np.exp(3)),
                                              np.log(np.exp(2) + np.exp(4))]]),
    ],
)  # fmt: skip
def test_reduce(run, operator_type, params, expected):
    result = run(operator_type, X, **params)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, np.array(expected, np.float32), rtol=1e-6, strict=True)


def test_axes_may_be_an_operand(run):
    result = run("ReduceSum", X, np.array([0], np.int64), keepdims=0)
    np.testing.assert_array_equal(result, [5, 8, 6])


def test_without_axes_each_element_may_be_reduced_alone(run):
    np.testing.assert_array_equal(run("ReduceSum", X, noop_with_empty_axes=1), X)
    np.testing.assert_array_equal(run("ReduceSumSquare", X, noop_with_empty_axes=1), X * X)


def test_extremes_of_nothing(run):
    nothing = np.zeros((2, 0), np.float32)
    np.testing.assert_array_equal(run("ReduceMax", nothing, axes=1), [[-np.inf], [-np.inf]])
    np.testing.assert_array_equal(
        run("ReduceMin", nothing.astype(np.int8), axes=1), [[127]] * 2
    )


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        ("ArgMax", {}, [[1, 0, 1]]),
        ("ArgMax", {"axis": 1}, [[1], [0]]),
        ("ArgMax", {"axis": 1, "select_last_index": 1}, [[1], [2]]),
        ("ArgMin", {"axis": -1, "keepdims": 0}, [0, 1]),
    ],
)
def test_index_of_the_extreme(run, operator_type, params, expected):
    result = run(operator_type, X, **params)
    np.testing.assert_array_equal(result, np.array(expected, np.int64), strict=True)
