"""The error function against the standard library's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.special import erf


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(np.float16, 1e-3), (np.float32, 5e-7), (np.float64, 1e-15)]
)
def test_relative_error(dtype, tolerance):
    x = np.concatenate([np.linspace(-6, 6, 40_001), np.logspace(-7, 0, 5_000)]).astype(dtype)
    expected = np.array([math.erf(value) for value in x.tolist()])
    result = erf(x)
    assert result.dtype == dtype
    normal = np.abs(expected) > np.finfo(dtype).tiny
    error = np.abs(result[normal] - expected[normal]) / np.abs(expected[normal])
    assert error.max() < tolerance
    assert np.abs(result).max() == 1


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_special_values(dtype):
    x = np.array([0.0, -0.0, math.inf, -math.inf, math.nan], dtype)
    np.testing.assert_array_equal(erf(x), [0, 0, 1, -1, math.nan])


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3), (40_000, 2)])
def test_any_shape_and_strides(shape):
    x = np.random.default_rng(2).normal(size=shape[::-1]).astype(np.float32).T
    result = erf(x)
    assert isinstance(result, np.ndarray)
    assert result.shape == shape
    assert all(
        math.isclose(result[i], math.erf(x[i]), rel_tol=1e-6)
        for i in list(np.ndindex(shape))[:1000]
    )


def test_the_argument_is_left_alone():
    x = np.array([5.0, -5.0], np.float32)
    x.flags.writeable = False
    assert not np.shares_memory(erf(x), x)
