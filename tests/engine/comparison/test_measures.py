"""Measures, against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.comparison.measures import measure, relative_distance


def test_by_hand():
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


def test_a_constant_operator_is_not_hidden():
    zeros = np.zeros(4, np.float32)
    assert measure(zeros, zeros).cosine is None
    found = measure(np.full(4, 1e-7, np.float32), zeros)
    assert (found.relative, found.within_permille, found.nmse) == (1.0, 0.0, 1.0)
    assert measure(zeros, np.float32([1, 2, 3, 4])).cosine is None


@pytest.mark.parametrize("size", [0, 1, 1 << 16, (1 << 16) + 3, 300_000])
def test_in_chunks(size):
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
