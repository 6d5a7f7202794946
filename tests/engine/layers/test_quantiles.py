"""Order statistics and histograms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

NAN = math.nan
X = np.array([[4, 1, 3, 2], [8, 5, 7, 6]], np.float32)
HOLES = np.array([[4, NAN, 3, 2], [NAN, NAN, NAN, NAN]], np.float32)


@pytest.mark.parametrize(
    ("interpolation", "expected"),
    [
        ("linear", [1.75, 5.75]),
        ("lower", [1, 5]),
        ("higher", [2, 6]),
        ("midpoint", [1.5, 5.5]),
        ("nearest", [2, 6]),
    ],
)
def test_quantile(run, interpolation, expected):
    result = run("torch.quantile", X, q=0.25, dim=1, interpolation=interpolation)
    assert (result.tolist(), result.dtype) == (expected, np.float32)


@pytest.mark.parametrize(
    ("q", "dim", "keepdim", "expected"),
    [
        (0.5, None, False, 4.5),
        (1.0, None, True, [[8]]),
        (0.5, 0, True, [[6, 3, 5, 4]]),
        (np.array([0, 1], np.float32), -1, False, [[1, 5], [4, 8]]),
        (np.array([0, 0.5], np.float32), 1, True, [[[1], [5]], [[2.5], [6.5]]]),
        (np.array([0.5], np.float32), None, False, [4.5]),
    ],
)
def test_shares_and_dims(run, q, dim, keepdim, expected):
    result = run("torch.quantile", X, q, dim=dim, keepdim=keepdim)
    assert result.tolist() == expected


def test_nan(run):
    plain = run("torch.quantile", HOLES, q=0.5, dim=1)
    assert np.isnan(plain).all()
    left_out = run("torch.nanquantile", HOLES, q=0.5, dim=1)
    np.testing.assert_array_equal(left_out, [3, NAN])
    values, indices = run("torch.nanmedian", HOLES[:, [1, 2, 0, 3]], dim=1)
    np.testing.assert_array_equal(values, [3, NAN])
    assert indices.tolist()[0] == 1
    assert run("torch.nanmedian", HOLES).item() == 3
    assert np.isnan(run("torch.nanmedian", HOLES[:0])).all()


@pytest.mark.parametrize(
    ("x", "params"),
    [
        (X, {"q": 1.5}),
        (X, {"q": 0.5, "interpolation": "cubic"}),
        (np.array([1, 2]), {"q": 0.5}),
        (X[:0], {"q": 0.5}),
    ],
)
def test_no_quantile(run, x, params):
    with pytest.raises(LayerError):
        run("torch.quantile", x, **params)


def test_aminmax(run):
    assert [r.tolist() for r in run("torch.aminmax", X)] == [1, 8]
    assert [r.tolist() for r in run("torch.aminmax", X, dim=1)] == [[1, 5], [4, 8]]
    assert [r.shape for r in run("torch.aminmax", X, dim=0, keepdim=True)] == [(1, 4)] * 2


@pytest.mark.parametrize(
    ("dim", "expected"), [(None, 3), (0, [1, 0, 2]), ((0, 1), 3), (-1, [2, 1])]
)
def test_count_nonzero(run, dim, expected):
    result = run("torch.count_nonzero", np.array([[1.5, 0, NAN], [0, 0, -2]]), dim=dim)
    assert (result.tolist(), result.dtype) == (expected, np.int64)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"bins": 4, "min": 0, "max": 8}, [1, 2, 2, 3]),
        ({"bins": 2}, [4, 4]),
        ({"bins": 3, "min": 2, "max": 5}, [1, 1, 2]),
    ],
)
def test_histc(run, params, expected):
    result = run("torch.histc", X, **params)
    assert (result.tolist(), result.dtype) == (expected, np.float32)


def test_histc_of_equal_elements(run):
    assert run("torch.histc", np.full(3, 5.0), bins=4).tolist() == [0, 0, 3, 0]


def test_histogram(run):
    counts, edges = run("torch.histogram", X, bins=2, range=(0.0, 8.0))
    assert (counts.tolist(), edges.tolist()) == ([3, 5], [0, 4, 8])
    counts, edges = run("torch.histogram", X, np.array([1, 2, 8.0], np.float32), density=True)
    np.testing.assert_allclose(counts, [1 / 8, 7 / 48], rtol=1e-6)
    counts, _ = run("aten::histogram", X, 2, (0.0, 8.0), X, False)
    assert counts.tolist() == [1 + 2 + 3, 4 + 5 + 6 + 7 + 8]


@pytest.mark.parametrize("params", [{"bins": 0}, {"min": 2, "max": 1}])
def test_no_histogram(run, params):
    with pytest.raises(LayerError, match="there are no"):
        run("torch.histc", X, **params)
