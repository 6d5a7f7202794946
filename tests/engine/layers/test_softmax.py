"""Softmax and its kin."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

# Exponentials of logarithms: shares can be seen.
X = np.log(np.array([[1, 2, 1], [4, 3, 1]], np.float32))


@pytest.mark.parametrize(
    ("operator_type", "dim", "expected"),
    [
        ("nn.Softmax", -1, [[0.25, 0.5, 0.25], [0.5, 0.375, 0.125]]),
        ("F.softmax", 0, [[0.2, 0.4, 0.5], [0.8, 0.6, 0.5]]),
        ("torch.softmax", 1, [[0.25, 0.5, 0.25], [0.5, 0.375, 0.125]]),
        ("Tensor.softmax", None, [[0.25, 0.5, 0.25], [0.5, 0.375, 0.125]]),
        ("F.softmin", 0, [[0.8, 0.6, 0.5], [0.2, 0.4, 0.5]]),
    ],
)
def test_shares(run, operator_type, dim, expected):
    y = run(operator_type, X, dim=dim)
    np.testing.assert_allclose(y, expected, rtol=1e-5)
    assert y.dtype == np.float32


def test_log_softmax(run):
    y = run("nn.LogSoftmax", X, dim=1)
    np.testing.assert_allclose(y[0], np.log([0.25, 0.5, 0.25]), rtol=1e-5)
    np.testing.assert_allclose(run("F.log_softmax", X, dim=1), y)


@pytest.mark.parametrize(("ndim", "axis"), [(1, 0), (2, 1), (3, 0), (4, 1)])
def test_axis_when_none_is_given(run, ndim, axis):
    y = run("F.softmax", np.ones((2, 3, 4, 5)[:ndim], "f4"))
    np.testing.assert_allclose(y.sum(axis), 1, rtol=1e-6)


def test_softmax2d_is_over_channels(run):
    y = run("nn.Softmax2d", np.zeros((1, 4, 2, 2), "f4"))
    np.testing.assert_array_equal(y, np.full((1, 4, 2, 2), 0.25))
    np.testing.assert_array_equal(run("nn.Softmax2d", np.zeros((4, 2, 2), "f4")), y[0])


def test_large_values(run):
    x = np.array([1000, 1000, -1000], np.float32)
    np.testing.assert_array_equal(run("F.softmax", x, dim=0), [0.5, 0.5, 0])
    half = math.log(0.5)
    np.testing.assert_allclose(
        run("F.log_softmax", x, dim=0), [half, half, half - 2000], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("dtype", "asked", "expected"),
    [("f2", None, "f2"), ("f8", None, "f8"), ("f2", "torch.float", "f4"), ("i8", None, "f4")],
)
def test_dtypes(run, dtype, asked, expected):
    y = run("F.softmax", np.ones(4, dtype), dim=0, dtype=asked)
    assert y.dtype == np.dtype(expected)
    np.testing.assert_array_equal(y, np.full(4, 0.25))


def test_scalar_and_empty(run):
    assert run("F.softmax", np.array(3.0, np.float32), dim=0) == 1
    assert run("F.softmax", np.zeros((0, 2), "f4"), dim=0).shape == (0, 2)


def test_wrong_dim(run):
    with pytest.raises(LayerError, match="dim 2 is not in a tensor of 2 dimensions"):
        run("F.softmax", X, dim=2)


@pytest.mark.parametrize("name", ["softmax", "softmin", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_against_pytorch(run, name, dim, dtype):
    torch = pytest.importorskip("torch")
    x = (np.random.default_rng(0).standard_normal((3, 4, 50)) * 10).astype(dtype)
    expected = getattr(torch.nn.functional, name)(torch.from_numpy(x), dim=dim).numpy()
    found = run(f"F.{name}", x, dim=dim)
    assert found.dtype == expected.dtype
    tolerance = {np.float16: 1e-3, np.float32: 1e-5, np.float64: 1e-12}[dtype]
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
