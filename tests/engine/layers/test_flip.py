"""Turning tensors around and along."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

GRID = np.array([[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ((0,), [[4, 5, 6], [1, 2, 3]]),
        ((-1,), [[3, 2, 1], [6, 5, 4]]),
        ((0, 1), [[6, 5, 4], [3, 2, 1]]),
        (None, GRID),
    ],
)
def test_flip(run, dims, expected):
    np.testing.assert_array_equal(run("torch.flip", GRID, dims=dims), expected)


def test_flip_twice_along_one(run):
    with pytest.raises(LayerError, match="has a dimension twice"):
        run("torch.flip", GRID, dims=(0, -2))


@pytest.mark.parametrize(
    ("shifts", "dims", "expected"),
    [
        (1, 1, [[3, 1, 2], [6, 4, 5]]),
        ((-1,), (0,), [[4, 5, 6], [1, 2, 3]]),
        ((1, 1), (0, 1), [[6, 4, 5], [3, 1, 2]]),
        ((1, 1), (1, 1), [[2, 3, 1], [5, 6, 4]]),
        ((2,), None, [[5, 6, 1], [2, 3, 4]]),
        (7, -1, [[3, 1, 2], [6, 4, 5]]),
    ],
)
def test_roll(run, shifts, dims, expected):
    np.testing.assert_array_equal(run("torch.roll", GRID, shifts=shifts, dims=dims), expected)


def test_roll_by_unequal_numbers(run):
    with pytest.raises(LayerError, match="not equally many"):
        run("torch.roll", GRID, shifts=(1, 2), dims=(0,))


@pytest.mark.parametrize(
    ("k", "dims", "expected"),
    [
        (1, (0, 1), [[3, 6], [2, 5], [1, 4]]),
        (2, (0, 1), [[6, 5, 4], [3, 2, 1]]),
        (-1, (0, -1), [[4, 1], [5, 2], [6, 3]]),
        (1, (1, 0), [[4, 1], [5, 2], [6, 3]]),
        (5, (0, 1), [[3, 6], [2, 5], [1, 4]]),
    ],
)
def test_turn_by_right_angles(run, k, dims, expected):
    np.testing.assert_array_equal(run("torch.rot90", GRID, k=k, dims=dims), expected)


def test_turn_without_a_plane(run):
    with pytest.raises(LayerError, match="dims has 1 numbers, a plane has 2"):
        run("aten::rot90", GRID, 1, (0,))


def test_up_and_down_left_and_right(run):
    assert run("aten::fliplr", GRID).tolist() == [[3, 2, 1], [6, 5, 4]]
    assert run("aten::flipud", GRID).tolist() == [[4, 5, 6], [1, 2, 3]]
