"""Special functions, the error function against the standard library's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.special import digamma, erf, erfinv, gelu_of_negative


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


def test_gelu_of_negative():
    """Down to where float32 has no normal numbers any more, in more than one run."""
    x = -np.concatenate([np.linspace(0.5, 12.9, 60_001), np.logspace(-0.3, 1.1, 20_001)])
    x = x.astype(np.float32)
    expected = np.array([v / 2 * math.erfc(-v / math.sqrt(2)) for v in x.tolist()])
    found = gelu_of_negative(x)
    assert found.dtype == np.float32
    assert np.all(
        np.abs(found - expected) <= 4 * np.spacing(np.abs(expected.astype(np.float32)))
    )
    far = np.array([-15, -16, -17, -1e6, -1e19, -3e38], np.float32)
    np.testing.assert_array_equal(gelu_of_negative(far), 0)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_gelu_of_infinity():
    """It is infinity times 0, as PyTorch computes it."""
    assert np.isnan(gelu_of_negative(np.array([-math.inf], np.float32))).all()


def test_erfinv():
    y = np.concatenate([np.linspace(-0.999, 0.999, 999), [1e-9, 1 - 1e-9]])
    np.testing.assert_allclose([math.erf(x) for x in erfinv(y)], y, rtol=1e-12)
    ends = erfinv(np.array([1, -1, 0, 1.5, math.nan], np.float32))
    np.testing.assert_array_equal(ends, np.array([math.inf, -math.inf, 0, math.nan, math.nan]))
    assert ends.dtype == np.float32


def test_digamma():
    euler = 0.5772156649015329
    x = np.array([1, 2, 0.5, 100, -0.5, -1.5])
    expected = [-euler, 1 - euler, -euler - 2 * math.log(2), 4.600161852738087,
                0.03648997397857652, 0.7031566406452432]  # fmt: skip
    np.testing.assert_allclose(digamma(x), expected, rtol=1e-12)
    poles = digamma(np.array([0.0, -0.0, -1, -7]))
    np.testing.assert_array_equal(poles, [-math.inf, math.inf, math.nan, math.nan])
