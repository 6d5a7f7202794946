"""Element-wise operators with arguments of their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

A = np.array([1, -2, 3.5], np.float32)
B = np.array([4, 0.5, -2], np.float32)
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "kwargs", "expected"),
    [
        ("add", {}, [5, -1.5, 1.5]),
        ("add", {"alpha": 2}, [9, -1, -0.5]),
        ("sub", {"alpha": 0.5}, [-1, -2.25, 4.5]),
        ("rsub", {}, [3, 2.5, -5.5]),
        ("rsub", {"alpha": 2}, [2, 4.5, -9]),
        ("div", {}, [0.25, -4, -1.75]),
        ("div", {"rounding_mode": "floor"}, [0, -4, -2]),
        ("div", {"rounding_mode": "trunc"}, [0, -4, -1]),
        ("pow", {}, [1, NAN, 3.5**-2]),
    ],
)
def test_two_operands(run, name, kwargs, expected):
    result = run(f"torch.{name}", A, B, **kwargs)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("floor", [-3, 2, -3, 2]), ("trunc", [-2, 2, -2, 2]), (None, [-2.5, 2.5, -2.5, 2.5])],
)
def test_division_of_integers(run, mode, expected):
    a, b = np.array([-5, -5, 5, 5]), np.array([2, -2, -2, 2])
    result = run("torch.div", a, b, rounding_mode=mode)
    assert result.tolist() == expected
    assert result.dtype == (np.int64 if mode else np.float32)


def test_division_faults(run):
    with pytest.raises(LayerError, match="rounding_mode 'up' is neither"):
        run("torch.div", A, B, rounding_mode="up")
    with pytest.raises(LayerError, match="divides integers by zero"):
        run("torch.div", np.array([1]), np.array([0]), rounding_mode="trunc")


@pytest.mark.parametrize(
    ("eps", "expected"),
    [(None, [NAN, -INF, 0, INF]), (0.2, [-math.log(4)] * 2 + [0, math.log(4)])],
)
def test_logit(run, eps, expected):
    x = np.array([-1, 0, 0.5, 1], np.float32)
    result = run("torch.logit", x, eps=eps)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("decimals", "expected"),
    [(0, [0, 2, 2, -2, 26]), (1, [0.5, 1.5, 2.5, -1.5, 26.2]), (-1, [0, 0, 0, 0, 30])],
)
def test_round(run, decimals, expected):
    x = np.array([0.5, 1.5, 2.5, -1.5, 26.15], np.float32)
    np.testing.assert_allclose(run("torch.round", x, decimals=decimals), expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({"min": 0, "max": 2}, [0, 1, 2, NAN]),
        ({"min": 0}, [0, 1, 3, NAN]),
        ({"max": 2, "min": None}, [-1, 1, 2, NAN]),
        pytest.param({"min": 5, "max": 2}, [2, 2, 2, NAN], id="the upper limit counts"),
    ],
)
def test_clamp(run, kwargs, expected):
    x = np.array([-1, 1, 3, NAN], np.float32)
    np.testing.assert_array_equal(run("torch.clamp", x, **kwargs), expected)


def test_clamp_by_tensors(run):
    low, high = np.array([0, 2], np.float32), np.array([[1], [3]], np.float32)
    result = run("torch.clamp", np.array([[1.5, 1.5]], np.float32), low, high)
    assert result.tolist() == [[1, 1], [1.5, 2]]


def test_clamp_of_integers_by_floats(run):
    result = run("torch.clamp", np.array([0, 5]), min=0.5)
    assert result.dtype == np.float32
    assert result.tolist() == [0.5, 5]


def test_clamp_without_limits(run):
    with pytest.raises(LayerError, match="neither min nor max"):
        run("torch.clamp", A)


def test_one_limit(run):
    assert run("torch.clamp_min", A, 0).tolist() == [1, 0, 3.5]
    assert run("torch.clamp_max", A, 0).tolist() == [0, -2, 0]


def test_three_operands(run):
    assert run("torch.addcmul", A, B, B, value=2).tolist() == [33, -1.5, 11.5]
    assert run("torch.addcdiv", A, B, B, value=2).tolist() == [3, 0, 5.5]
    assert run("torch.lerp", A, B, 0.5).tolist() == [2.5, -0.75, 0.75]


def test_nan_to_num(run):
    x = np.array([NAN, INF, -INF, 1], np.float32)
    largest = np.finfo(np.float32).max
    assert run("torch.nan_to_num", x).tolist() == [0, largest, -largest, 1]
    assert run("torch.nan_to_num", x, nan=5.0, posinf=6.0, neginf=7.0).tolist() == [5, 6, 7, 1]
    assert run("torch.nan_to_num", np.array([1, 2])).tolist() == [1, 2]
