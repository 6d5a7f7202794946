"""Operators that join tensors."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import InferStatus, LayerError

A = np.array([[1, 2], [3, 4]], np.float32)
B = np.array([[5, 6]], np.float32)


@pytest.mark.parametrize(
    ("tensors", "dim", "expected"),
    [
        ((A, B), 0, [[1, 2], [3, 4], [5, 6]]),
        ((A, A), 1, [[1, 2, 1, 2], [3, 4, 3, 4]]),
        ((A, A), -1, [[1, 2, 1, 2], [3, 4, 3, 4]]),
        ((A,), 0, A),
        ((B, B, B), 0, [[5, 6]] * 3),
        pytest.param((A, np.zeros(0, np.float32)), 0, A, id="shape (0,) is left out"),
        ((A, np.zeros((0, 2), np.float32)), 0, A),
    ],
)
def test_cat(run, tensors, dim, expected):
    np.testing.assert_array_equal(run("torch.cat", *tensors, dim=dim), expected)
    np.testing.assert_array_equal(run("torch.cat", tensors, dim=dim), expected)


def test_cat_takes_the_same_operand_twice_by_name(run):
    result = run("torch.cat", B, B, names=("tensors", "tensors"), dim=0)
    assert result.tolist() == [[5, 6], [5, 6]]


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [(("f4", "f8"), "f8"), (("i8", "f2"), "f2"), (("u1", "i1"), "i2"), (("?", "i4"), "i4")],
)
def test_cat_promotes(run, dtypes, expected):
    result = run("torch.cat", *(np.ones(2, d) for d in dtypes), dim=0)
    assert result.dtype == expected
    assert result.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "tensors", [(A, np.ones((2, 3))), (A, np.ones(2)), (np.array(1.0),) * 2]
)
def test_cat_of_shapes_that_do_not_fit(run, tensors):
    with pytest.raises(LayerError, match="cannot be joined along dim 0") as caught:
        run("torch.cat", *tensors, dim=0)
    assert caught.value.status is InferStatus.kInferArraySizeMismatch


@pytest.mark.parametrize("tensors", [(), ((),)])
def test_nothing_to_join(run, tensors):
    with pytest.raises(LayerError, match="nothing to join") as caught:
        run("torch.cat", *tensors, dim=0)
    assert caught.value.status is InferStatus.kInferInputsEmpty


def test_joining_what_is_no_tensor(run):
    with pytest.raises(LayerError, match="operand 1 is int, not a tensor"):
        run("torch.cat", A, 3, dim=0)


@pytest.mark.parametrize(
    ("dim", "expected"),
    [
        (0, [[[5, 6]], [[7, 8]]]),
        (1, [[[5, 6], [7, 8]]]),
        (2, [[[5, 7], [6, 8]]]),
        (-1, [[[5, 7], [6, 8]]]),
    ],
)
def test_stack(run, dim, expected):
    np.testing.assert_array_equal(run("torch.stack", B, B + 2, dim=dim), expected)


def test_stack_of_scalars(run):
    assert run("torch.stack", np.array(1), np.array(2), dim=0).tolist() == [1, 2]


def test_stack_of_different_shapes(run):
    with pytest.raises(LayerError, match="shapes 2×2, 1×2 are not all the same"):
        run("torch.stack", A, B)


V = np.array([1, 2])


@pytest.mark.parametrize(
    ("operator_type", "tensors", "expected"),
    [
        ("hstack", (V, V + 2), [1, 2, 3, 4]),
        ("hstack", (B, B), [[5, 6, 5, 6]]),
        ("hstack", (np.array(1), V), [1, 1, 2]),
        ("vstack", (V, V + 2), [[1, 2], [3, 4]]),
        ("vstack", (B, V), [[5, 6], [1, 2]]),
        ("row_stack", (V, V), [[1, 2], [1, 2]]),
        ("dstack", (V, V + 2), [[[1, 3], [2, 4]]]),
        ("dstack", (B, B + 2), [[[5, 7], [6, 8]]]),
        ("column_stack", (V, V + 2), [[1, 3], [2, 4]]),
        ("column_stack", (V[:, np.newaxis], V), [[1, 1], [2, 2]]),
    ],
)
def test_stacking_by_name(run, operator_type, tensors, expected):
    assert run(f"torch.{operator_type}", *tensors).tolist() == expected
    assert run(f"aten::{operator_type}", tensors).tolist() == expected


def test_block_diag(run):
    result = run("torch.block_diag", np.array([[1, 2]]), np.array(3.0), np.array([4, 5]))
    expected = [[1, 2, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 4, 5]]
    assert (result.tolist(), result.dtype) == (expected, np.float64)
    with pytest.raises(LayerError, match="not all matrices"):
        run("torch.block_diag", np.zeros((1, 1, 1)))


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((), [(1,), (1, 1), (1, 1, 1)]),
        ((3,), [(3,), (1, 3), (1, 3, 1)]),
        ((2, 3), [(2, 3), (2, 3), (2, 3, 1)]),
        ((1, 2, 3), [(1, 2, 3)] * 3),
    ],
)
def test_at_least(run, shape, expected):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for count, wanted in enumerate(expected, 1):
        result = run(f"torch.atleast_{count}d", x)
        assert (result.shape, result.reshape(-1).tolist()) == (wanted, x.reshape(-1).tolist())
        both = run(f"aten::atleast_{count}d", (x, x))
        assert [array.shape for array in both] == [wanted, wanted]
