"""Searching sorted numbers, one-hot vectors and counting."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

STEPS = np.array([1.0, 3.0, 3.0, 7.0], np.float32)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [0, 1, 1, 4]),
        ({"right": True}, [0, 1, 3, 4]),
        ({"right": True, "out_int32": True}, [0, 1, 3, 4]),
    ],
)
def test_bucketize(run, params, expected):
    places = run("torch.bucketize", np.array([0, 2, 3, 9], np.float32), STEPS, **params)
    assert places.tolist() == expected
    assert places.dtype == (np.int32 if "out_int32" in params else np.int64)


def test_rows_of_sequences(run):
    sequences, values = np.stack([STEPS, STEPS * 2]), np.array([[3.0], [3.0]], np.float32)
    found = run("torch.searchsorted", sequences, values, side="right")
    assert found.tolist() == [[3], [1]]
    order = np.array([3, 0, 1, 2])
    shuffled = np.array([3.0, 3.0, 7.0, 1.0])
    names = ("", "", "sorter")
    assert run("torch.searchsorted", shuffled, 5.0, order, names=names).item() == 3


def test_one_hot(run):
    classes = np.array([[2, 0]])
    assert run("F.one_hot", classes).tolist() == [[[0, 0, 1], [1, 0, 0]]]
    assert run("aten::one_hot", classes, 4).tolist() == [[[0, 0, 1, 0], [1, 0, 0, 0]]]


def test_bincount(run):
    numbers = np.array([1, 3, 1])
    assert run("torch.bincount", numbers, minlength=5).tolist() == [0, 2, 0, 1, 0]
    weighted = run("torch.bincount", numbers, np.array([0.5, 1, 2], np.float32))
    assert weighted.tolist() == [0, 2.5, 0, 1]
    assert weighted.dtype == np.float32


@pytest.mark.parametrize(
    ("name", "operands", "params", "sentence"),
    [
        (
            "F.one_hot",
            (np.array([3]),),
            {"num_classes": 3},
            "a class is not one of the 3 classes",
        ),
        ("F.one_hot", (STEPS,), {}, "float32 cannot be 8 classes"),
        ("torch.bincount", (np.array([-1]),), {}, "only whole numbers of at least 0"),
        ("torch.searchsorted", (STEPS, STEPS), {"side": "up"}, "side=up with right=False"),
        ("torch.searchsorted", (STEPS[None], STEPS), {}, "do not fit values of shape 4"),
    ],
)
def test_refusals(run, name, operands, params, sentence):
    with pytest.raises(LayerError, match=sentence):
        run(name, *operands, **params)


@pytest.mark.parametrize("right", [True, False])
def test_against_pytorch(run, right):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    sequence = np.sort(rng.integers(0, 20, (3, 9)).astype(np.float32))
    values = rng.integers(-2, 22, (3, 30)).astype(np.float32)
    expected = torch.searchsorted(*map(torch.from_numpy, (sequence, values)), right=right)
    found = run("torch.searchsorted", sequence, values, right=right)
    np.testing.assert_array_equal(found, expected.numpy())
