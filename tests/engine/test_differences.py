"""How far results are from those that were expected."""

from __future__ import annotations

import numpy as np
import pytest

from engine.differences import Difference, agrees, difference

NAN, INF = np.nan, np.inf


def f32(*values):
    return np.array(values, np.float32)


def test_where_it_is_largest():
    expected = np.zeros((2, 3, 4), np.float32)
    expected[1, 2, 3] = 200
    found = expected.copy()
    found[0, 1, 2] = 3
    found[1, 0, 0] = -5
    assert difference([found], [expected]) == Difference(
        largest=5.0, relative=0.025, beyond=2, count=24, place=(1, 0, 0), found=-5.0,
        expected=0.0,
    )  # fmt: skip


def test_equal():
    x = f32(1, NAN, INF, -INF, -0.0)
    assert difference([x], [x.copy()]) == Difference(count=5)
    assert difference([x], [x.copy()]).agrees


# found, expected, tolerance, whether they agree
CASES = {
    "rounding": (f32(1.0001), f32(1), 1e-3, True),
    "more than rounding": (f32(1.01), f32(1), 1e-3, False),
    "a finer tolerance": (f32(1.0001), f32(1), 1e-5, False),
    "small beside a large one": (f32(0.0009, 1000), f32(0, 1000), 1e-3, True),
    "beyond the absolute part": (f32(0.002, 10), f32(0, 10), 1e-3, False),
    "as fine as float32 adds": (f32(0.5, 1e6), f32(0, 1e6), 1e-3, True),
    "all small": (f32(1.1e-6), f32(1e-6), 1e-3, False),
    "zeros": (f32(1e-9), f32(0), 1e-3, False),
    "a NaN too many": (f32(NAN, 1), f32(1, 1), 1e-3, False),
    "a NaN too few": (f32(1, 1), f32(NAN, 1), 1e-3, False),
    "another infinity": (f32(INF, 1), f32(-INF, 1), 1e-3, False),
    "an infinity for a large one": (f32(INF, 1), f32(3e38, 1), 1e-3, False),
    "a large one for an infinity": (f32(3e38, 1), f32(INF, 1), 1e-3, False),
    "nothing finite": (f32(NAN, INF), f32(NAN, INF), 1e-3, True),
    "nothing": (f32(), f32(), 1e-3, True),
    "integers": (np.array([10**6 + 1]), np.array([10**6]), 1e-3, False),
    "integers beyond doubles": (np.array([2**60 + 1]), np.array([2**60]), 1e-3, False),
    "bools": (np.array([True, False]), np.array([True, True]), 1e-3, False),
    "complex": (np.array([1 + 1.00001j]), np.array([1 + 1j]), 1e-3, True),
    "complex, otherwise": (np.array([1 - 1j]), np.array([1 + 1j]), 1e-3, False),
    "half": (np.float16([1.001]), np.float16([1]), 1e-3, True),
    "a number": (np.float32(2).reshape(()), np.float32(1).reshape(()), 1e-3, False),
    "another shape": (f32(1, 2), f32(1, 2).reshape(1, 2), 1e-3, False),
    "another dtype": (f32(1), np.array([1.0]), 1e-3, False),
    "a Python number": (3, 3, 1e-3, True),
    "a float for an int": (3.0, 3, 1e-3, False),
    "a bool for an int": (True, 1, 1e-3, False),
    "NaN itself": (NAN, NAN, 1e-3, True),
    "a number for a tensor": (1.0, f32(1), 1e-3, False),
    "tuples": ((f32(1), (f32(2), 3)), (f32(1), (f32(2), 3)), 1e-3, True),
    "tuples within": ((f32(1), (f32(2), 3)), (f32(1), (f32(2.5), 3)), 1e-3, False),
    "shorter": ((f32(1),), (f32(1), f32(1)), 1e-3, False),
    "texts": (np.array(["a"]), np.array(["b"]), 1e-3, False),
}


@pytest.mark.parametrize(("found", "expected", "tolerance", "same"), CASES.values(),
                         ids=CASES.keys())  # fmt: skip
def test_agreement(found, expected, tolerance, same):
    assert agrees([found], [expected], tolerance) is same
    assert difference([found], [expected], tolerance).agrees is same


@pytest.mark.parametrize(
    ("found", "expected", "unlike"),
    [
        (f32(1, 2), f32(1), "shape 2 instead of 1"),
        (f32(1), np.float64([1]), "float32 instead of float64"),
        (1, f32(1), "1 instead of a tensor"),
        (None, 2, "None instead of 2"),
        ((1, 2), 1, "2 results instead of 1"),
    ],
)
def test_what_makes_them_unlike(found, expected, unlike):
    assert difference([found], [expected]).unlike == unlike


def test_the_worst_member_of_several():
    rng = np.random.default_rng(1)
    expected = [rng.normal(size=200_000).astype(np.float32) for _ in range(3)]
    found = [x.copy() for x in expected]
    found[0][7] += 0.5
    found[2][150_000] += 4
    found[2][3] = NAN
    found[2][3] = expected[2][3]
    result = difference(found, expected)
    assert (result.member, result.place, result.beyond) == (2, (150_000,), 2)
    assert result.count == 600_000
    assert result.largest == pytest.approx(4, rel=1e-6)
    assert result.relative == pytest.approx(4 / np.abs(expected[2]).max(), rel=1e-6)


def test_views_and_order():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    changed = x.copy()
    changed[1, 0, 2] = 99
    assert difference([changed.T], [x.T]).place == (2, 0, 1)
    assert difference([np.asfortranarray(changed)], [x]).place == (1, 0, 2)


def test_a_lone_infinity():
    result = difference([f32(1, INF)], [f32(1, 5)])
    assert (result.largest, result.relative, result.beyond) == (INF, INF, 1)
    assert (result.found, result.expected, result.place) == (INF, 5.0, (1,))
