"""Channels are measured as one pass of NumPy in float64 measures them."""

from __future__ import annotations

import numpy as np
import pytest

from engine.datasets.measuring import Elements, Measurer

# Long, short, bundled and single rows, a channel axis behind others, none, and more elements
# than a block has.
OPERANDS = (
    ((3, 40, 50), 1), ((3, 40, 50), 1), ((5, 7, 7), 1), ((4, 7, 7), 1), ((9, 6), 2),
    ((6,), 1), ((11, 13), 0), ((2, 257, 300), 1), ((7, 4, 3), 2),
)  # fmt: skip


ENDS = (None, (-1.5, 1.5), None, (-np.inf, 0.5), (0.0, 2.0), None, (0.25, 0.75), (-2, 2), None)


def rows_of(array, axis):
    moved = np.moveaxis(array, axis, 1) if axis else array[:, np.newaxis]
    return moved.reshape(*moved.shape[:2], -1).astype(np.float64)


def expected(arrays):
    rows = [rows_of(array, axis) for array, (_, axis) in zip(arrays, OPERANDS, strict=True)]
    joined = {
        "saturated": np.concatenate(
            [
                ((row <= ends[0]) | (row >= ends[1])).sum(axis=2) if ends else 0 * row[..., 0]
                for row, ends in zip(rows, ENDS, strict=True)
            ],
            axis=1,
        )
    }
    with np.errstate(invalid="ignore"):
        for name, of in {
            "low": lambda x: np.where(np.isfinite(x), x, np.inf).min(axis=2),
            "high": lambda x: np.where(np.isfinite(x), x, -np.inf).max(axis=2),
            "mean": lambda x: np.nanmean(np.where(np.isfinite(x), x, np.nan), axis=2),
            "std": lambda x: np.nanstd(np.where(np.isfinite(x), x, np.nan), axis=2),
            "finite": lambda x: np.isfinite(x).sum(axis=2),
            "zeros": lambda x: (x == 0).sum(axis=2),
            "nan": lambda x: np.isnan(x).sum(axis=2),
            "pinf": lambda x: (x == np.inf).sum(axis=2),
            "ninf": lambda x: (x == -np.inf).sum(axis=2),
        }.items():
            joined[name] = np.concatenate([of(each) for each in rows], axis=1)
    return joined


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("offset", "scale"), [(0, 1), (20, 1), (1000, 1), (0, 1e-20), (3, 1e30)]
)
def test_every_input_is_measured(batch, dtype, offset, scale):
    rng = np.random.default_rng(0)
    measurer = Measurer(
        [axis for _, axis in OPERANDS],
        [shape[axis - 1] if axis else 1 for shape, axis in OPERANDS],
        ENDS,
    )
    for turn in range(3):  # the later ones start from the means of those before
        move = offset if turn < 2 else -offset
        arrays = [
            ((rng.standard_normal((batch, *shape)) + move) * scale).astype(dtype)
            for shape, _ in OPERANDS
        ]
        arrays[0][:, 1, ::3] = 0
        arrays[4][:, 0, :2] = np.nan, 4
        arrays[4][:, 1, :2] = np.inf, -np.inf
        arrays[5][:, 2] = 0
        seen = []
        found = measurer.measure(
            batch,
            lambda place, arrays=arrays: Elements(arrays[place]),
            lambda *what, seen=seen: seen.append(what),
        )
        wanted = expected(arrays)
        for place, (which, (array, _), low, high) in enumerate(seen):
            assert which == place
            assert array is arrays[place]
            finite = array[np.isfinite(array)]
            assert (low, high) == (finite.min(), finite.max())
        low, high, mean, squares = found.facts
        names = ("finite", "zeros", "nan", "pinf", "ninf", "saturated")
        exact = dict(zip(names, found.counts, strict=True))
        for name, values in (exact | {"low": low, "high": high}).items():
            np.testing.assert_array_equal(values, wanted[name], err_msg=name)
        spread = wanted["std"]
        assert np.all(np.abs(mean - wanted["mean"]) <= 1e-9 * spread)
        std = np.sqrt(squares / wanted["finite"])
        np.testing.assert_allclose(std, spread, rtol=1e-7, atol=0)


@pytest.mark.parametrize("shape", [(2, 0, 5), (2, 3, 0)])
def test_operands_without_elements(shape):
    """Of no channels, as NonZero may leave, or of channels of no elements."""
    seen = []
    empty = np.ones(shape, np.float32)
    found = Measurer([1], [shape[1]], [None]).measure(
        2, lambda _: Elements(empty), lambda *what: seen.append(what[2:])
    )
    assert seen == [(np.inf, -np.inf)]
    assert found.size.tolist() == [0] * shape[1]
    assert found.counts.shape == (6, 2, shape[1])
    assert not found.counts.any()


def test_channels_are_measured_as_a_library_has_them():
    """Two inputs of six channels in groups of three, as from channels one after the other."""
    images = np.random.default_rng(1).standard_normal((2, 6, 35)).astype(np.float32)
    images[1, 4, 7] = np.nan
    blocks = np.ascontiguousarray(images.reshape(2, 2, 3, 35).swapaxes(2, 3))
    blocks.flags.writeable = False
    measurer = Measurer([1], [6], [(-0.5, 0.5)])
    found = measurer.measure(2, lambda _: Elements(blocks, blocked=True), lambda *_: None)
    assert found.size.tolist() == [35] * 6
    np.testing.assert_array_equal(found.facts[0], np.nanmin(images, axis=2))
    np.testing.assert_array_equal(found.facts[1], np.nanmax(images, axis=2))
    mean = np.nanmean(images.astype(np.float64), axis=2)
    np.testing.assert_allclose(found.facts[2], mean, rtol=1e-12)
    assert found.counts[0].tolist() == [[35] * 6, [35, 35, 35, 35, 34, 35]]
    np.testing.assert_array_equal(found.counts[5], (abs(images) >= 0.5).sum(axis=2))
