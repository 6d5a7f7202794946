"""Shapes, and Python numbers of tensors."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

X = np.zeros((2, 3, 4))


@pytest.mark.parametrize(("dim", "expected"), [(0, 2), (-1, 4), (None, (2, 3, 4))])
def test_size(run, dim, expected):
    assert run("Tensor.size", X, dim=dim) == expected


@pytest.mark.parametrize(("x", "dim"), [(X, 3), (np.array(1.0), 0), (5, 0)])
def test_no_size(run, x, dim):
    with pytest.raises(LayerError):
        run("Tensor.size", x, dim=dim)


def test_counts(run):
    assert run("Tensor.dim", X) == 3
    assert run("torch.numel", X) == 24


@pytest.mark.parametrize(
    ("operator_type", "value", "expected"),
    [
        ("aten::Int", np.array([2.7]), 2),
        ("aten::Int", -2.7, -2),
        ("aten::Float", np.array(3), 3.0),
        ("aten::Bool", np.array([[0.5]]), True),
        ("aten::Complex", np.array(2.0), 2 + 0j),
        ("aten::len", X, 2),
        ("aten::len", (X, X, 5), 3),
        ("Tensor.item", np.array(1.5), 1.5),
        ("Tensor.item", np.array([True]), True),
    ],
)
def test_python_numbers(run, operator_type, value, expected):
    result = run(operator_type, value)
    assert result == expected
    assert type(result) is type(expected)


def test_complex_of_two_numbers(run):
    assert run("aten::Complex", 2, np.array(-1.5)) == 2 - 1.5j


@pytest.mark.parametrize(
    ("value", "dtype"), [(3, "int64"), (0.5, "float64"), (True, "bool"), (1j, "complex128")]
)
def test_tensors_of_numbers(run, value, dtype):
    result = run("prim::NumToTensor", value)
    assert (result.shape, result.dtype, result.item()) == ((), np.dtype(dtype), value)


@pytest.mark.parametrize("value", [3, None, np.array(2.0)])
def test_no_length(run, value):
    with pytest.raises(LayerError, match="has no length"):
        run("aten::len", value)


@pytest.mark.parametrize("value", [X, "word", None, (1,)])
def test_not_one_number(run, value):
    with pytest.raises(LayerError, match="is not one number"):
        run("Tensor.item", value)
