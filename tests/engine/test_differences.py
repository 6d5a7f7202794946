"""How far results are from those that were expected."""

from __future__ import annotations

import numpy as np
import pytest

from engine.differences import Difference, Spot, agrees, difference

NAN, INF = np.nan, np.inf


def f32(*values):
    return np.array(values, np.float32)


def test_the_largest_difference_is_located():
    expected = np.zeros((2, 3, 4), np.float32)
    expected[1, 2, 3] = 200
    found = expected.copy()
    found[0, 1, 2] = 3
    found[1, 0, 0] = -5
    assert difference([found], [expected]) == Difference(
        largest=5.0, relative=0.025, beyond=2, count=24, place=(1, 0, 0), found=-5.0,
        expected=0.0, of_element=1.0, element=Spot(place=(0, 1, 2), found=3.0, expected=0.0),
    )  # fmt: skip


def test_relative_to_the_element():
    """Of sums only those that are not next to nothing beside the largest number."""
    expected = f32(1000, 0.25, 1e-4, 2e-8, 0)
    found = f32(1001, 0.5, 6e-4, 12e-8, 0)
    sums = difference([found], [expected])
    assert (sums.largest, sums.relative, sums.place) == (1.0, 0.001, (0,))
    assert (sums.of_element, sums.element) == (0.5, Spot(0, (1,), 0.5, 0.25))
    alone = difference([found[2:]], [expected[2:]], elementwise=True)
    assert alone.of_element == pytest.approx(5 / 6)
    assert alone.place == (0,)
    assert (alone.beyond, alone.agrees) == (2, False)
    assert f"{alone.element}" == "at [0]: 0.000600000028, not 9.99999975e−5"


# found, expected, whether they agree element by element, and as sums beside a 1
BY_ELEMENT = {
    "rounding": (1.0001e-8, 1e-8, True, True),
    "six times": (12e-8, 2e-8, False, True),
    "a hundredth": (1.01e-8, 1e-8, False, True),
    "nothing left": (0, 2e-8, False, True),
    "something too many": (2e-8, 0, False, True),
    "flushed": (0, 1.1e-38, True, True),
    "flushed on the way": (0, -1e-36, True, True),
    "another sign": (-1e-8, 1e-8, False, True),
    "half": (0.5, 1, False, False),
    "infinite": (INF, 1e38, False, False),
    "another NaN": (1, NAN, False, False),
    "the same NaN": (NAN, NAN, True, True),
}


@pytest.mark.parametrize(("found", "expected", "alone", "summed"), BY_ELEMENT.values(),
                         ids=BY_ELEMENT.keys())  # fmt: skip
def test_agreement_element_by_element(found, expected, alone, summed):
    mine, theirs = f32(1, found), f32(1, expected)
    assert agrees([mine], [theirs], elementwise=True) is alone
    assert agrees([mine], [theirs]) is summed


def test_no_element_differs_by_more_than_both_together():
    found, expected = f32(1e-8, 0, -3, 1), f32(0, 1e-8, 3, 100)
    assert difference([found], [expected], elementwise=True).of_element == 2
    assert agrees([found], [expected], 2, elementwise=True)
    assert difference([f32(1, INF)], [f32(1, 3e38)], elementwise=True).of_element == INF


def test_integers_are_equal_or_not_element_by_element():
    one, other = np.array([10**6 + 1]), np.array([10**6])
    assert not agrees([one], [other], elementwise=True)
    assert agrees([one], [one.copy()], elementwise=True)


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
def test_other_shapes_and_dtypes_differ(found, expected, unlike):
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
