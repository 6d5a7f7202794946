"""Operators that read the same elements under another shape."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import InferStatus, LayerError
from engine.layers.reshape import resolve_shape

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize("operator_type", ["Tensor.reshape", "Tensor.view", "torch.reshape"])
@pytest.mark.parametrize(
    ("source", "shape", "expected"),
    [
        ((2, 3, 4), (6, 4), (6, 4)),
        ((2, 3, 4), (-1,), (24,)),
        ((2, 3, 4), (4, -1, 2), (4, 3, 2)),
        pytest.param((2, 3, 4), (0, -1), (2, 12), id="0 keeps the dimension"),
        pytest.param((2, 3, 4), (0, 0, 2, 2), (2, 3, 2, 2), id="0 keeps dimensions"),
        pytest.param((1,), None, (), id="pnnx writes () as None"),
        ((), (1, 1), (1, 1)),
        ((), 1, (1,)),
        ((0, 3), (3, 0), (3, 0)),
        ((0, 3), (-1, 3), (0, 3)),
        ((4,), np.array([2, 2]), (2, 2)),
        ((4,), (2, np.array(2)), (2, 2)),
    ],
)
def test_reshape(run, operator_type, source, shape, expected):
    x = np.arange(np.prod(source), dtype=np.float32).reshape(source)
    result = run(operator_type, x, shape, names=("input", "shape"))
    assert result.shape == expected
    np.testing.assert_array_equal(result.ravel(), x.ravel())


def test_reshape_by_a_parameter(run):
    assert run("Tensor.reshape", X, names=("mask",), shape=(2, 12)).shape == (2, 12)


def test_reshape_is_a_view():
    shared = X.reshape(resolve_shape((4, -1), X.shape))
    assert np.shares_memory(shared, X)


def test_reshape_reads_moved_dimensions_in_order(run):
    assert run("torch.reshape", X.transpose(2, 0, 1), shape=(-1,))[:4].tolist() == [0, 4, 8, 12]


@pytest.mark.parametrize("shape", [(5, 5), (-1, 5), (-1, -1), (-2, 12), (24, 0)])
def test_reshape_that_does_not_fit(run, shape):
    with pytest.raises(LayerError, match="24 elements of shape 2×3×4 do not fit") as caught:
        run("Tensor.reshape", X, shape=shape)
    assert caught.value.status is InferStatus.kInferArraySizeMismatch


def test_reshape_as(run):
    assert run("Tensor.reshape_as", X, np.zeros((4, 6))).shape == (4, 6)


@pytest.mark.parametrize(
    ("operator_type", "kwargs", "expected"),
    [
        ("torch.flatten", {}, (24,)),
        ("torch.flatten", {"start_dim": 1}, (2, 12)),
        ("torch.flatten", {"start_dim": 0, "end_dim": 1}, (6, 4)),
        ("torch.flatten", {"start_dim": -2, "end_dim": -1}, (2, 12)),
        ("torch.flatten", {"start_dim": 1, "end_dim": 1}, (2, 3, 4)),
        ("nn.Flatten", {}, (2, 12)),
        ("nn.Flatten", {"start_dim": 0, "end_dim": -2}, (6, 4)),
        ("Tensor.unflatten", {"dim": 2, "sizes": (2, -1)}, (2, 3, 2, 2)),
        ("Tensor.unflatten", {"dim": -2, "sizes": (1, 3)}, (2, 1, 3, 4)),
        ("nn.Unflatten", {"dim": 0, "unflattened_size": (1, 2)}, (1, 2, 3, 4)),
        ("torch.unsqueeze", {"dim": 0}, (1, 2, 3, 4)),
        ("torch.unsqueeze", {"dim": None}, (2, 3, 4)),
        ("torch.unsqueeze", {"dim": -1}, (2, 3, 4, 1)),
        ("torch.unsqueeze", {"dim": (0, 4)}, (1, 2, 3, 4, 1)),
        ("torch.unsqueeze", {"dim": (-1, -2, 0)}, (1, 2, 3, 4, 1, 1)),
    ],
)
def test_other_shapes(run, operator_type, kwargs, expected):
    result = run(operator_type, X, **kwargs)
    assert result.shape == expected
    np.testing.assert_array_equal(result.ravel(), X.ravel())


@pytest.mark.parametrize(
    ("dim", "expected"),
    [(None, (2, 3)), (0, (2, 1, 3, 1)), (1, (1, 2, 1, 3, 1)), ((0, -1), (2, 1, 3)),
     ((0, 1), (2, 1, 3, 1))],
)  # fmt: skip
def test_squeeze(run, dim, expected):
    x = np.zeros((1, 2, 1, 3, 1))
    assert run("torch.squeeze", x, dim=dim).shape == expected


def test_flatten_of_a_scalar(run):
    assert run("torch.flatten", np.array(2.0)).shape == (1,)


def test_flatten_backwards(run):
    with pytest.raises(LayerError, match="start_dim 2 comes after end_dim 0"):
        run("torch.flatten", X, start_dim=2, end_dim=0)
