"""Whether tensors are equal, or nearly so."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

X = np.array([1, 1000, math.nan, math.inf, 0], np.float32)
Y = np.array([1.000005, 1001, math.nan, math.inf, 1e-9], np.float32)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [True, False, False, True, True]),
        ({"rtol": 1e-2}, [True, True, False, True, True]),
        ({"equal_nan": True}, [True, False, True, True, True]),
        ({"rtol": 0, "atol": 0}, [False, False, False, True, False]),
    ],
)
def test_isclose(run, params, expected):
    assert run("torch.isclose", X, Y, **params).tolist() == expected
    assert run("torch.allclose", X, Y, **params) is all(expected)


def test_isclose_of_two_dtypes(run):
    with pytest.raises(LayerError, match="float32 and int64 cannot be compared"):
        run("torch.isclose", X, np.zeros(5, int))


@pytest.mark.parametrize(
    ("other", "expected"), [([1, 2], True), ([1, 3], False), ([[1, 2]], False)]
)
def test_equal(run, other, expected):
    assert run("torch.equal", np.array([1, 2]), np.array(other)) is expected


@pytest.mark.parametrize(
    ("elements", "others", "params", "expected"),
    [
        (np.array([[1, 2], [3, 4]]), np.array([4, 1, 7]), {}, [[True, False], [False, True]]),
        (np.array([1, 2]), np.array([2]), {"invert": True}, [True, False]),
        (np.array([1.5, 2]), 2, {}, [False, True]),
        (2, np.array([1, 2]), {"assume_unique": True}, True),
    ],
)
def test_isin(run, elements, others, params, expected):
    assert run("torch.isin", elements, others, **params).tolist() == expected


def test_isreal(run):
    assert run("torch.isreal", np.array([1, 2j, 3 + 0j])).tolist() == [True, False, True]
    assert run("torch.isreal", np.array([1, 2])).tolist() == [True, True]
