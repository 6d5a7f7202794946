"""Handing tensors on: unchanged, copied, converted."""

from __future__ import annotations

import numpy as np
import pytest

from engine.layers.copying import clone, identity, to, type_as

X = np.array([1.5, -2.5, 0.0], np.float32)


def test_identity_copies_nothing():
    assert identity(X) is X


@pytest.mark.parametrize(
    "kwargs", [{}, {"memory_format": "torch.channels_last"}, {"p": 0.5, "inplace": True}]
)
@pytest.mark.parametrize("operator_type", ["nn.Identity", "Tensor.contiguous", "torch.detach"])
def test_identity_takes_anything(run, operator_type, kwargs):
    np.testing.assert_array_equal(run(operator_type, X, **kwargs), X)


def test_clone_copies():
    copy = clone(X)
    assert not np.shares_memory(copy, X)
    np.testing.assert_array_equal(copy, X)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("torch.int", np.array([1, -2, 0], np.int32)),
        ("torch.bool", np.array([True, True, False])),
        ("torch.half", X.astype(np.float16)),
        (None, X),
    ],
)
def test_to(run, dtype, expected):
    result = run("Tensor.to", X, dtype=dtype, copy=False, memory_format="torch.preserve_format")
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)


def test_to_the_dtype_of_another_tensor(run):
    assert run("aten::to", X, np.zeros(1, np.int64)).tolist() == [1, -2, 0]


@pytest.mark.parametrize(("number", "dtype"), [(0.6, "f4"), (3, "i8"), (True, "?")])
def test_a_number_is_a_tensor_without_dimensions(run, number, dtype):
    same = run("Tensor.to", number)
    np.testing.assert_array_equal(same, np.array(number, dtype), strict=True)
    double = run("Tensor.to", number, dtype="torch.double")
    np.testing.assert_array_equal(double, np.array(number, dtype).astype("f8"), strict=True)


def test_to_copies_when_told():
    assert to(X, "torch.float") is X
    assert not np.shares_memory(to(X, "torch.float", copy=True), X)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, 1.0),
        (1 + 2**-8, 1.0),
        (1 + 3 * 2**-8, 1 + 2**-6),
        (1 + 2**-8 + 2**-20, 1 + 2**-7),
        (-3.14159, -3.140625),
        (3.4e38, np.inf),
        (np.inf, np.inf),
        (np.nan, np.nan),
    ],
)
def test_bfloat16_rounds_to_eight_bits(value, expected):
    result = to(np.array([[value]], np.float32), "torch.bfloat16")
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, [[expected]])


def test_type_as():
    assert type_as(X, np.zeros(3, np.int8)).tolist() == [1, -2, 0]
    assert type_as(X, X) is X


def test_copy_into_another(run):
    result = run("Tensor.copy", np.zeros((2, 3), np.int64), X, names=("self", "src"))
    assert result.dtype == np.int64
    assert result.tolist() == [[1, -2, 0]] * 2
