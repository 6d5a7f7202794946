"""Operators that reorder dimensions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError
from engine.layers.permute import permute

X = np.arange(24).reshape(2, 3, 4)


def moved(x, dims):
    """Slow permutation: each element carried to its place."""
    result = np.empty([x.shape[d] for d in dims], x.dtype)
    for place, value in np.ndenumerate(x):
        result[tuple(place[d] for d in dims)] = value
    return result


@pytest.mark.parametrize("operator_type", ["torch.permute", "Tensor.permute"])
@pytest.mark.parametrize("dims", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (-1, -3, -2)])
def test_permute(run, operator_type, dims):
    expected = moved(X, [d % 3 for d in dims])
    np.testing.assert_array_equal(run(operator_type, X, dims=dims), expected)


def test_permute_is_a_view():
    assert np.shares_memory(permute(X, (2, 1, 0)), X)


@pytest.mark.parametrize("dims", [(0, 1), (0, 0, 1), (0, 1, 3), None])
def test_dims_that_do_not_order(run, dims):
    with pytest.raises(LayerError):
        run("torch.permute", X, dims=dims)


@pytest.mark.parametrize(("dim0", "dim1", "dims"), [(0, 2, (2, 1, 0)), (-1, 1, (0, 2, 1))])
@pytest.mark.parametrize("operator_type", ["torch.transpose", "torch.swapaxes"])
def test_transpose(run, operator_type, dim0, dim1, dims):
    np.testing.assert_array_equal(run(operator_type, X, dim0=dim0, dim1=dim1), moved(X, dims))


def test_t(run):
    np.testing.assert_array_equal(run("torch.t", X[0]), moved(X[0], (1, 0)))
    np.testing.assert_array_equal(run("torch.t", X[0, 0]), [0, 1, 2, 3])
    with pytest.raises(LayerError, match="3 dimensions, not 0 or 1 or 2"):
        run("torch.t", X)


def test_reversed_dims(run):
    np.testing.assert_array_equal(run("aten::numpy_T", X), moved(X, (2, 1, 0)))
    np.testing.assert_array_equal(run("aten::numpy_T", X[0, 0]), [0, 1, 2, 3])


@pytest.mark.parametrize(
    ("source", "destination", "dims"), [(0, -1, (1, 2, 0)), ((0, 1), (2, 0), (1, 2, 0))]
)
def test_movedim(run, source, destination, dims):
    result = run("torch.movedim", X, source=source, destination=destination)
    np.testing.assert_array_equal(result, moved(X, dims))


def test_movedim_of_unequal_numbers(run):
    with pytest.raises(LayerError, match="2 dimensions cannot move to 1 positions"):
        run("torch.movedim", X, source=(0, 1), destination=0)


def test_adjoint(run):
    x = np.array([[1 + 2j, 3, 5j]])
    assert run("torch.adjoint", x).tolist() == [[1 - 2j], [3], [-5j]]
    assert run("aten::mH", x.real).tolist() == [[1], [3], [0]]
    assert run("aten::mT", x).tolist() == [[1 + 2j], [3], [5j]]
    assert run("aten::mT", np.zeros((2, 3, 4))).shape == (2, 4, 3)
    with pytest.raises(LayerError, match="cannot be transposed as a matrix"):
        run("aten::mT", np.zeros(3))
