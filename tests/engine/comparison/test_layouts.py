"""Layouts, against NumPy's transpositions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.comparison.layouts import layouts_between


@pytest.mark.parametrize(
    ("ours", "axes", "name"),
    [
        ((1, 3, 4, 5), (0, 2, 3, 1), "NHWC"),
        ((1, 4, 5, 3), (0, 3, 1, 2), "NCHW"),
        ((2, 3, 4, 5), (0, 2, 3, 1), "NHWC"),
        ((4, 7), (1, 0), "transposed"),
        ((1, 6, 7), (0, 2, 1), "transposed"),
    ],
)
def test_the_axes_are_restored(ours, axes, name):
    array = np.arange(np.prod(ours)).reshape(ours)
    theirs = array.transpose(axes)
    layouts = [each for each in layouts_between(ours, theirs.shape) if each.axes]
    right = [each for each in layouts if np.array_equal(each.to_ours(theirs, ours), array)]
    assert [each.name for each in right] == [name]
    positions = np.arange(0, array.size, 3)
    places = right[0].sample(ours, positions)
    np.testing.assert_array_equal(array.reshape(-1)[places], theirs.reshape(-1)[positions])


def test_the_same_order():
    assert [(e.axes, e.name) for e in layouts_between((1, 3, 4), (3, 4))] == [
        ((), "no batch axis")
    ]
    assert [(e.axes, e.name) for e in layouts_between((3, 4), (1, 3, 4))] == [
        ((), "with batch axis")
    ]
    assert [e.name for e in layouts_between((1, 2, 8), (4, 4))] == ["reshaped"]
    assert list(layouts_between((1, 2), (3,))) == []
