"""Moments of merged sets, against NumPy on all numbers at once."""

from __future__ import annotations

import numpy as np

from engine.datasets.moments import Moments


def moments_of(*sets):
    """Describe sets of numbers, by their definition."""
    kept = [np.array(each, np.float64) for each in sets]
    return Moments(
        np.array([len(each) for each in kept]),
        np.array([each.mean() if len(each) else 0.0 for each in kept]),
        np.array([((each - each.mean()) ** 2).sum() if len(each) else 0.0 for each in kept]),
        np.array([each.min(initial=np.inf) for each in kept]),
        np.array([each.max(initial=-np.inf) for each in kept]),
    )


def check(found, *sets):
    wanted = moments_of(*sets)
    np.testing.assert_array_equal(found.finite, wanted.finite)
    np.testing.assert_array_equal((found.low, found.high), (wanted.low, wanted.high))
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-14)
    np.testing.assert_allclose(found.squares, wanted.squares, rtol=1e-14)


def test_each_set_is_merged_with_that_at_its_place():
    found = moments_of([1, 2, 6], [4], [-5, 5])
    found.merge(moments_of([10], [7, 7, 1], [0.5]))
    check(found, [1, 2, 6, 10], [4, 7, 7, 1], [-5, 5, 0.5])


def test_no_numbers_change_nothing():
    found = moments_of([1, 3], [], [])
    found.merge(moments_of([], [2, 4], []))
    check(found, [1, 3], [2, 4], [])


def test_no_numbers_weigh_nothing_beside_numbers_whose_square_overflows():
    found = moments_of([1e200], [])
    found.merge(moments_of([], [-1e200]))
    check(found, [1e200], [-1e200])


def test_what_is_read_is_a_copy():
    arrays = moments_of([1, 2]).to_arrays("level")
    found = Moments.from_arrays(arrays, "level")
    found.merge(moments_of([9]))
    check(Moments.from_arrays(arrays, "level"), [1, 2])
    check(found, [1, 2, 9])
