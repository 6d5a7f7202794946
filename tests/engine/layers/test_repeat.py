"""Operators that repeat elements."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError
from engine.layers.repeat import expand

ROW = np.array([[1, 2, 3]])


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((2, 3), [[1, 2, 3], [1, 2, 3]]),
        ((-1, -1), [[1, 2, 3]]),
        ((2, 1, 3), [[[1, 2, 3]], [[1, 2, 3]]]),
        ((2, -1, 3), [[[1, 2, 3]], [[1, 2, 3]]]),
        ((0, 3), np.zeros((0, 3))),
    ],
)
def test_expand(run, sizes, expected):
    np.testing.assert_array_equal(run("Tensor.expand", ROW, sizes=sizes), expected)
    by_operand = run("Tensor.expand", ROW, sizes, names=("mask", ""))
    np.testing.assert_array_equal(by_operand, expected)


def test_expand_copies_nothing():
    assert np.shares_memory(expand(ROW, (5, 3)), ROW)


@pytest.mark.parametrize("sizes", [(2, 4), (3,), (-1, 1, 3), (1, 2, 6)])
def test_expand_that_does_not_fit(run, sizes):
    with pytest.raises(LayerError, match="shape 1×3 cannot be expanded to"):
        run("Tensor.expand", ROW, sizes=sizes)


def test_expand_as(run):
    assert run("Tensor.expand_as", ROW, np.zeros((2, 3))).tolist() == [[1, 2, 3]] * 2


def test_broadcast_tensors(run):
    one, other, number = run("aten::broadcast_tensors", (ROW, np.zeros((2, 1)), np.array(5)))
    assert one.tolist() == [[1, 2, 3]] * 2
    assert other.tolist() == [[0, 0, 0]] * 2
    assert number.tolist() == [[5, 5, 5]] * 2
    assert run("torch.broadcast_tensors", ()) == ()


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        ((ROW, np.zeros((2, 2))), "cannot broadcast shapes"),
        ((ROW, 2.0), "a member of the list is float, not a tensor"),
        (ROW, "not a list of tensors"),
    ],
)
def test_broadcast_tensors_refusals(run, tensors, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("aten::broadcast_tensors", tensors)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((2, 1), [[1, 2, 3], [1, 2, 3]]),
        ((1, 2), [[1, 2, 3, 1, 2, 3]]),
        ((2, 1, 1), [[[1, 2, 3]], [[1, 2, 3]]]),
    ],
)
def test_repeat(run, sizes, expected):
    np.testing.assert_array_equal(run("Tensor.repeat", ROW, sizes=sizes), expected)
    np.testing.assert_array_equal(run("torch.tile", ROW, dims=sizes), expected)


def test_tile_counts_from_the_back(run):
    assert run("torch.tile", ROW, dims=(2,)).tolist() == [[1, 2, 3, 1, 2, 3]]


def test_repeat_wants_all_dimensions(run):
    with pytest.raises(LayerError, match="has fewer numbers than the input's 2 dimensions"):
        run("Tensor.repeat", ROW, sizes=(2,))
    with pytest.raises(LayerError, match="repeated -1 times"):
        run("Tensor.repeat", ROW, sizes=(-1, 1))


@pytest.mark.parametrize(
    ("repeats", "dim", "expected"),
    [
        (2, None, [1, 1, 2, 2, 3, 3]),
        (2, 0, [[1, 2, 3], [1, 2, 3]]),
        (2, 1, [[1, 1, 2, 2, 3, 3]]),
        (np.array([2, 0, 1]), 1, [[1, 1, 3]]),
        (np.array([2]), -1, [[1, 1, 2, 2, 3, 3]]),
    ],
)
def test_repeat_interleave(run, repeats, dim, expected):
    result = run("torch.repeat_interleave", ROW, repeats, dim=dim)
    np.testing.assert_array_equal(result, expected)


def test_repeat_interleave_of_counts_alone(run):
    assert run("torch.repeat_interleave", np.array([2, 0, 3])).tolist() == [0, 0, 2, 2, 2]


@pytest.mark.parametrize("repeats", [np.array([-1, 1, 1]), np.array([0.5, 1, 1])])
def test_wrong_repeats(run, repeats):
    with pytest.raises(LayerError, match="repeats must be integers of at least 0"):
        run("torch.repeat_interleave", ROW, repeats, dim=1)


def test_broadcast_to(run):
    assert run("aten::broadcast_to", np.array([1, 2]), (2, -1)).tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((2, 3), [[0, 1, 2], [3, 4, 5]]),
        ((1, 3), [[3, 5, 7]]),
        ((3,), [3, 5, 7]),
        ((2, 1), [[3], [12]]),
        (None, 15),
    ],
)
def test_sum_to_size(run, size, expected):
    x = np.arange(6).reshape(2, 3)
    assert run("Tensor.sum_to_size", x, size=size).tolist() == expected


@pytest.mark.parametrize("size", [(1, 2, 3), (2,), (2, 2)])
def test_sum_to_no_size(run, size):
    with pytest.raises(LayerError, match="cannot be added up"):
        run("Tensor.sum_to_size", np.zeros((2, 3)), size=size)


def test_the_sum_of_a_scalar_is_of_integers(run):
    result = run("aten::sum_to_size", np.array(True), ())
    assert (result.item(), result.dtype) == (1, np.int64)
    assert run("aten::sum_to_size", np.array([True]), (1,)).dtype == np.bool_
