"""Each element once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

X = np.array([[3, 1, 3], [2, 2, 1]])
SLICES = np.array([[1, 1, 0, 1], [2, 2, 5, 2]])


def lists(results):
    return [result.tolist() for result in results]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, [[1, 2, 3], [], []]),
        ({"return_inverse": True}, [[1, 2, 3], [[2, 0, 2], [1, 1, 0]], []]),
        ({"return_counts": True}, [[1, 2, 3], [], [2, 2, 2]]),
    ],
)
def test_unique(run, flags, expected):
    assert lists(run("torch.unique", X, **flags)) == expected


def test_unique_slices(run):
    results = run("aten::unique_dim", SLICES, 1, True, True, True)
    assert lists(results) == [[[0, 1], [5, 2]], [1, 1, 0, 1], [1, 3]]


@pytest.mark.parametrize("operator_type", ["torch.unique", "torch.unique_consecutive"])
def test_nan_is_equal_to_nothing(run, operator_type):
    values, _, counts = run(operator_type, np.array([math.nan, math.nan]), return_counts=True)
    assert np.isnan(values).tolist() == [True, True]
    assert counts.tolist() == [1, 1]


def test_consecutive(run):
    results = run("torch.unique_consecutive", X, return_inverse=True, return_counts=True)
    assert lists(results) == [[3, 1, 3, 2, 1], [[0, 1, 2], [3, 3, 4]], [1, 1, 1, 2, 1]]


def test_consecutive_slices(run):
    results = run("aten::unique_dim_consecutive", SLICES, -1, True, True)
    assert lists(results) == [[[1, 0, 1], [2, 5, 2]], [0, 0, 1, 2], [2, 1, 1]]


def test_of_nothing(run):
    for operator_type in ("torch.unique", "torch.unique_consecutive"):
        results = run(operator_type, np.empty(0), return_inverse=True, return_counts=True)
        assert lists(results) == [[], [], []]


@pytest.mark.parametrize("operator_type", ["torch.unique", "torch.unique_consecutive"])
def test_no_slices(run, operator_type):
    with pytest.raises(LayerError, match="no slices"):
        run(operator_type, np.array(5), dim=0)
