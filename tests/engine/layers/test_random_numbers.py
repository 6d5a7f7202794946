"""What every random operator builds on: dtypes, shapes, limits and distributions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError
from engine.layers.random_numbers import chances, standard_normal, uniform

FLOATS = [np.float16, np.float32, np.float64]
COMPLEX = [np.complex64, np.complex128]
SHAPE = (300, 500)  # 150 000 numbers: a deviation of the mean of .0026 per unit


@pytest.fixture
def rng():
    return np.random.default_rng(11)


@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform(rng, dtype):
    drawn = uniform(rng, SHAPE, np.dtype(dtype))
    assert (drawn.shape, drawn.dtype) == (SHAPE, dtype)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    wide = drawn.astype(np.float64)
    assert abs(wide.mean() - 1 / 2) < 0.005
    assert abs(wide.var() - 1 / 12) < 0.002
    assert abs((wide < 0.25).mean() - 0.25) < 0.01


@pytest.mark.parametrize("dtype", FLOATS)
def test_standard_normal(rng, dtype):
    drawn = standard_normal(rng, SHAPE, np.dtype(dtype))
    assert (drawn.shape, drawn.dtype) == (SHAPE, dtype)
    wide = drawn.astype(np.float64)
    assert abs(wide.mean()) < 0.013
    assert abs(wide.var() - 1) < 0.02
    assert abs((np.abs(wide) < 1).mean() - 0.6827) < 0.01


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers(rng, dtype):
    even = uniform(rng, SHAPE, np.dtype(dtype))
    normal = standard_normal(rng, SHAPE, np.dtype(dtype))
    assert (even.shape, even.dtype, normal.dtype) == (SHAPE, dtype, dtype)
    for part in (even.real, even.imag):
        assert abs(part.mean() - 1 / 2) < 0.005
    for part in (normal.real, normal.imag):
        assert abs(part.mean()) < 0.013
        assert abs(part.var() - 1 / 2) < 0.02
    assert abs((normal.real * normal.imag).mean()) < 0.01


@pytest.mark.parametrize("draw", [uniform, standard_normal])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,)])
def test_small_shapes(rng, draw, shape):
    assert np.shape(draw(rng, shape, np.dtype(np.float32))) == shape


@pytest.mark.parametrize("draw", [uniform, standard_normal])
@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.bool_])
def test_integers_are_refused(rng, draw, dtype):
    with pytest.raises(LayerError, match="gives floats"):
        draw(rng, (2,), np.dtype(dtype))


@pytest.mark.parametrize("draw", [uniform, standard_normal])
def test_absurd_sizes_are_refused_before_memory_is_taken(rng, draw):
    with pytest.raises(LayerError, match="would take"):
        draw(rng, (1 << 20, 1 << 20), np.dtype(np.float32))


def test_chances(rng):
    p = np.array([0, 0.1, 0.5, 1])
    shares = chances(rng, (50_000, 4), p).mean(0)
    assert shares[[0, 3]].tolist() == [0, 1]
    np.testing.assert_allclose(shares[1:3], [0.1, 0.5], atol=0.012)
    assert not chances(rng, (1000,), 0.0).any()
    assert chances(rng, (1000,), 1.0).all()
