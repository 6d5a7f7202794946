"""Measures, against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.comparison.measures import measure, relative_distance


def test_measures_worked_out_by_hand():
    found = measure(np.float32([[1, 2], [3, 5]]), np.float32([[1, 2], [3, 4]]))
    assert (found.count, found.max_abs, found.relative, found.max_rel) == (4, 1.0, 0.25, 0.25)
    assert found.nmse == pytest.approx(1 / 30)
    assert found.snr_db == pytest.approx(10 * math.log10(30))
    assert found.cosine == pytest.approx(34 / math.sqrt(39 * 30))
    assert (found.within_permille, found.worst_index) == (0.75, (1, 1))
    assert (found.mae, found.rmse, found.non_finite) == (0.25, 0.5, 0)


def test_equal_tensors():
    found = measure(np.float32([1, -2]), np.float32([1, -2]))
    assert (found.max_abs, found.worst_index, found.within_permille) == (0.0, (), 1.0)
    assert found.snr_db == math.inf


def test_special_numbers_are_not_cleaned_away():
    nan, inf = math.nan, math.inf
    found = measure(np.float32([nan, inf, 1, 0]), np.float32([nan, inf, nan, 0]))
    assert (found.non_finite, found.worst_index, found.max_abs) == (1, (2,), inf)
    assert found.within_permille == 0.75
    same = measure(np.float32([nan, -inf, 2]), np.float32([nan, -inf, 2]))
    assert (same.non_finite, same.max_abs, same.within_permille) == (0, 0.0, 1.0)
    assert relative_distance(np.float32([inf]), np.float32([-inf])) == inf
    assert relative_distance(np.float32([nan, -inf]), np.float32([nan, -inf])) == 0


def test_a_constant_operator_is_not_hidden():
    zeros = np.zeros(4, np.float32)
    assert measure(zeros, zeros).cosine is None
    found = measure(np.full(4, 1e-7, np.float32), zeros)
    assert (found.relative, found.within_permille, found.nmse) == (1.0, 0.0, 1.0)
    assert measure(zeros, np.float32([1, 2, 3, 4])).cosine is None


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 16) + 3, 300_000])
def test_measures_in_chunks_equal_those_at_once(size):
    rng = np.random.default_rng(size)
    a, b = rng.standard_normal((2, size)).astype(np.float32)
    found = measure(a, b)
    if size:
        apart = np.abs(a.astype(float) - b)
        assert found.max_abs == apart.max()
        assert found.worst_index == (int(apart.argmax()),)
        assert found.nmse == pytest.approx((apart**2).sum() / (b.astype(float) ** 2).sum())
        assert relative_distance(a, b) == found.relative == apart.max() / np.abs(b).max()


def test_integers_and_complex_numbers():
    assert measure(np.int64([1, 2]), np.int64([1, 4])).max_abs == 2
    assert measure(np.complex64([1 + 1j]), np.complex64([1])).max_abs == 1
    assert measure(np.bool_([True, False]), np.bool_([True, True])).max_abs == 1


def slow(found, expected):
    """By definition, in float64 and one element after the other where that matters."""
    a, b = found.astype(float).reshape(-1), expected.astype(float).reshape(-1)
    apart = np.abs(a - b)
    scale = np.abs(b).max()
    relative = apart / np.maximum(np.abs(b), 1e-5 * scale)
    return {
        "max_abs": apart.max(), "relative": apart.max() / scale, "max_rel": relative.max(),
        "nmse": (apart / scale) @ (apart / scale) / ((b / scale) @ (b / scale)),
        "cosine": (a / scale) @ (b / scale)
        / np.sqrt(((a / scale) @ (a / scale)) * ((b / scale) @ (b / scale))),
        "mae": apart.mean(), "rmse": np.sqrt(np.mean((apart / scale) ** 2)) * scale,
    }  # fmt: skip


@pytest.mark.parametrize("scale", [1e-36, 1e-20, 1e-9, 1.0, 1e9, 1e20, 1e37])
@pytest.mark.parametrize("share", [1e-6, 1e-2, 1.0])
def test_float32_of_any_size(scale, share):
    """Their squares over- or underflow float32, and their differences round."""
    rng = np.random.default_rng(5)
    b = (scale * rng.standard_normal((3, 70, 350))).astype(np.float32)
    a = (b + share * scale * rng.standard_normal(b.shape)).astype(np.float32)
    found = measure(a, b)
    expected = slow(a, b)
    for name, number in expected.items():
        assert getattr(found, name) == pytest.approx(number, rel=2e-6), name
    assert found.max_abs == expected["max_abs"]
    assert relative_distance(a, b) == found.relative == expected["relative"]


def test_differences_that_float32_rounds_alike():
    """The true largest one is named, not the first of those that round to the same."""
    b = np.full(200_000, 2**-24, np.float32)
    a = np.ones_like(b)
    b[150_000] = -(2.0**-24)
    found = measure(a, b)
    assert (found.max_abs, found.worst_index) == (1 + 2.0**-24, (150_000,))


def test_the_difference_of_large_numbers_is_finite():
    a, b = np.float32([3e38, 1]), np.float32([-3e38, 1])
    found = measure(a, b)
    assert (found.non_finite, found.relative) == (0, 2.0)
    assert relative_distance(a, b) == 2.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("fill", [-1e4, float(np.finfo(np.float32).min)])
def test_what_a_mask_is_filled_with_is_no_scale(fill, dtype):
    expected = np.array([[1, fill, fill], [-2, 3, fill]], dtype)
    found = expected.copy()
    found[1, 1] += 0.3
    assert measure(found, expected).relative == pytest.approx(0.1)
    assert relative_distance(found, expected) == pytest.approx(0.1)
    filled = np.array([0, fill, 0, fill], dtype)  # the mask itself
    assert relative_distance(filled / 2, filled) == pytest.approx(0.5)
    one = np.array([1, -1e4, 2, 3], dtype)  # a single large number may be a result
    assert relative_distance(one + 1, one) == pytest.approx(1e-4)
