"""Choosing elements by their order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError
from engine.layers import Outputs
from engine.layers.partition import order_by_nth_element

X = np.array([[3, 1, 2], [5, 9, 5]], np.float32)
NAN = math.nan


def check(outputs, values, indices):
    assert isinstance(outputs, Outputs)
    assert outputs[1].dtype == np.int64
    np.testing.assert_array_equal(outputs[0], values)
    np.testing.assert_array_equal(outputs[1], indices)


@pytest.mark.parametrize(
    ("name", "dim", "keepdim", "values", "indices"),
    [
        ("max", 0, False, [5, 9, 5], [1, 1, 1]),
        ("max", 1, True, [[3], [9]], [[0], [1]]),
        ("min", -1, False, [1, 5], [1, 0]),
        ("min", 0, True, [[3, 1, 2]], [[0, 0, 0]]),
        ("median", 0, False, [3, 1, 2], [0, 0, 0]),
        ("median", 0, True, [[3, 1, 2]], [[0, 0, 0]]),
    ],
)
def test_along_a_dimension(run, name, dim, keepdim, values, indices):
    check(run(f"torch.{name}", X, dim=dim, keepdim=keepdim), values, indices)


@pytest.mark.parametrize(
    ("row", "value", "index"), [([7, 1, 4], 4, 2), ([7, 1, 4, 2], 2, 3), ([3], 3, 0)]
)
def test_median_is_the_lower_of_two(run, row, value, index):
    check(run("torch.median", np.array(row), dim=0), value, index)


@pytest.mark.parametrize(("name", "expected"), [("max", 9), ("min", 1), ("median", 3)])
def test_of_all(run, name, expected):
    result = run(f"torch.{name}", X)
    assert result.shape == ()
    assert result == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("max", [[3, 2, 2], [5, 9, 5]]), ("min", [[2, 1, 2], [2, 2, 2]])]
)
def test_of_two_tensors(run, name, expected):
    two = np.array(2.0, np.float32)
    np.testing.assert_array_equal(
        run(f"torch.{name}", X, two, names=("input", "other")), expected
    )
    np.testing.assert_array_equal(run(f"aten::{name}", X, two), expected)


@pytest.mark.parametrize("name", ["max", "min", "median"])
def test_nan_is_chosen(run, name):
    x = np.array([[1, NAN, 0, NAN], [1, 2, 0, 3]], np.float32)
    values, indices = run(f"torch.{name}", x, dim=1)
    assert math.isnan(values[0])
    assert indices[0] == 1
    assert not math.isnan(values[1])
    assert math.isnan(run(f"torch.{name}", x))


@pytest.mark.parametrize(
    ("name", "kwargs", "expected"),
    [
        ("argmax", {}, 4),
        ("argmax", {"dim": 1}, [0, 1]),
        ("argmin", {"dim": 1, "keepdim": True}, [[1], [0]]),
        ("argmin", {"keepdim": True}, [[1]]),
        ("argmax", {"dim": -2}, [1, 1, 1]),
    ],
)
def test_indices(run, name, kwargs, expected):
    result = run(f"torch.{name}", X, **kwargs)
    assert result.dtype == np.int64
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("kwargs", "values", "indices"),
    [
        ({"k": 2}, [[3, 2], [9, 5]], [[0, 2], [1, 0]]),
        ({"k": 2, "largest": False}, [[1, 2], [5, 5]], [[1, 2], [0, 2]]),
        ({"k": 1, "dim": 0}, [[5, 9, 5]], [[1, 1, 1]]),
        ({"k": 0}, np.zeros((2, 0)), np.zeros((2, 0))),
    ],
)
def test_topk(run, kwargs, values, indices):
    check(run("torch.topk", X, **kwargs), values, indices)


def test_topk_counts_nan_largest(run):
    x = np.array([1, NAN, 3], np.float32)
    check(run("torch.topk", x, k=2), [NAN, 3], [1, 2])
    check(run("torch.topk", x, k=2, largest=False), [1, 3], [0, 2])


@pytest.mark.parametrize("k", [-1, 4])
def test_topk_of_too_many(run, k):
    with pytest.raises(LayerError, match=f"k is {k}, there are 3 elements along dim -1"):
        run("torch.topk", X, k=k)


def test_unsorted_topk_in_pytorchs_order(run):
    """Stored from PyTorch 2.13 on a CPU."""
    x = np.array([5, 1, 8, 3, 9, 2, 7, 6, 4, 0], np.float32)
    check(run("torch.topk", x, k=4, sorted=False), [8, 9, 7, 6], [2, 4, 6, 7])


@pytest.mark.parametrize("nth", range(12))
def test_partition_has_the_property_of_nth_element(nth):
    for seed in range(20):
        keys = np.random.default_rng(seed).integers(0, 6, 12).tolist()
        order = order_by_nth_element(keys, nth)
        assert sorted(order) == list(range(12))
        moved = [keys[place] for place in order]
        assert moved[nth] == sorted(keys)[nth]
        assert max(moved[: nth + 1]) <= min(moved[nth:])


def test_partition_of_what_misleads_quick_select():
    keys = [*range(0, 2000, 2), *range(1, 2000, 2), *range(2000, 0, -1)]
    moved = [keys[place] for place in order_by_nth_element(keys, 700)]
    assert moved[700] == sorted(keys)[700]


@pytest.mark.parametrize(
    ("descending", "values", "indices"),
    [(False, [[1, 2, 3], [5, 5, 9]], [[1, 2, 0], [0, 2, 1]]),
     (True, [[3, 2, 1], [9, 5, 5]], [[0, 2, 1], [1, 0, 2]])],
)  # fmt: skip
def test_sort(run, descending, values, indices):
    check(run("torch.sort", X, descending=descending), values, indices)
    np.testing.assert_array_equal(run("torch.argsort", X, descending=descending), indices)


def test_sort_of_unsigned(run):
    x = np.array([0, 255, 7], np.uint8)
    check(run("torch.sort", x, descending=True), [255, 7, 0], [1, 2, 0])


@pytest.mark.parametrize(
    ("k", "keepdim", "values", "indices"),
    [(1, False, [1, 5], [1, 0]), (2, True, [[2], [5]], [[2], [2]]), (3, False, [3, 9], [0, 1])],
)
def test_kthvalue(run, k, keepdim, values, indices):
    check(run("torch.kthvalue", X, k=k, keepdim=keepdim), values, indices)


@pytest.mark.parametrize("k", [0, 4])
def test_kthvalue_out_of_range(run, k):
    with pytest.raises(LayerError, match=f"k is {k}"):
        run("torch.kthvalue", X, k=k)


@pytest.mark.parametrize(
    ("operator_type", "kwargs"),
    [("torch.max", {"dim": 0}), ("torch.min", {}), ("torch.sort", {}), ("torch.argmax", {})],
)
def test_complex_numbers_have_no_order(run, operator_type, kwargs):
    with pytest.raises(LayerError, match="complex numbers have no order"):
        run(operator_type, X.astype(np.complex64), **kwargs)


@pytest.mark.parametrize("operator_type", ["torch.max", "torch.sort", "torch.median"])
def test_scalars(run, operator_type):
    check(run(operator_type, np.array(4.0), dim=0), 4, 0)


def test_msort(run):
    x = np.array([[3, 1], [2, 5], [4, 0]])
    assert run("aten::msort", x).tolist() == [[2, 0], [3, 1], [4, 5]]


def test_mode(run):
    x = np.array([[3, 1, 3, 1, 2], [5, 5, 5, 0, 0]])
    values, indices = run("torch.mode", x)
    assert (values.tolist(), indices.tolist()) == ([1, 5], [3, 2])
    values, indices = run("torch.mode", x, dim=0, keepdim=True)
    assert (values.tolist(), indices.tolist()) == ([[3, 1, 3, 0, 0]], [[0, 0, 0, 1, 1]])
    values, indices = run("torch.mode", np.array(7))
    assert (values.item(), indices.item(), values.shape) == (7, 0, ())
