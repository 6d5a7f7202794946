"""Values of a batch, and statistics of them, as a library has them in memory."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from engine.datasets.model import OperandFacts
from engine.datasets.statistics import StatisticsStudy
from engine.datasets.values import BatchValues
from engine.values import LazyArray

WIDTH = 4


def blocked(images, padding=0):
    """Return images of (N, C, H, W) as a library holds them in blocks, some channels unused."""
    samples, channels, height, width = images.shape
    groups = (channels + padding) // WIDTH
    stored = np.zeros((samples, groups, height, width, WIDTH), np.float32)
    for c in range(channels):
        stored[:, c // WIDTH, :, :, c % WIDTH] = images[:, c]
    stored.flags.writeable = False

    def arrange(_, shape):
        return images.reshape(shape).copy()

    return LazyArray(stored, images.shape, images.dtype, arrange, lambda blocks: blocks)


def images_of(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def test_blocks_are_given_as_they_are_stored():
    images = images_of((3, 8, 5, 2))
    held = blocked(images)
    values = BatchValues({"x": held}, {"x": True}, 2)  # the third only fills the batch
    found = values.blocks("x")
    assert found.shape == (2, 2, 10, WIDTH)
    assert np.may_share_memory(found, held.stored)
    assert not found.flags.writeable
    for n, c, pixel in np.ndindex(2, 8, 10):
        assert found[n, c // WIDTH, pixel, c % WIDTH] == images[n, c, pixel // 2, pixel % 2]


@pytest.mark.parametrize("case", ["materialised", "padded", "an array", "another layout"])
def test_elements_that_lie_otherwise_are_not_given_as_blocks(case):
    images = images_of((1, 7 if case == "padded" else 8, 3, 3))
    held = blocked(images, padding=1 if case == "padded" else 0)
    if case == "materialised":
        assert held.array is not None
    elif case == "an array":
        held = images
    elif case == "another layout":
        held = LazyArray(images, images.shape, images.dtype, lambda stored, _: stored)
    values = BatchValues({"x": held}, {"x": True})
    assert values.blocks("x") is None
    np.testing.assert_array_equal(values["x"], images)


def test_channels_that_have_become_something_else_are_not_given_as_blocks():
    images = images_of((1, 8, 3, 3))
    held = blocked(images)
    held.shape = (1, 72)
    values = BatchValues({"x": held}, {"x": True})
    assert values.blocks("x") is None


@pytest.mark.parametrize("histograms", ["sampled", "exact"])
def test_statistics_do_not_depend_on_how_elements_lie(histograms):
    """Also the elements that a histogram takes as a sample are the same."""
    facts = OperandFacts(
        "x", "a", "nn.ReLU6", (8, 16, 9), "float32", True, 0, ("", "", ""), False
    )
    model = SimpleNamespace(
        spec=SimpleNamespace(operands=[facts]), parameters=lambda _: {}, facts={"x": facts}
    )
    study = StatisticsStudy(histograms=histograms, sample=100)
    gathered = []
    for hold in (blocked, lambda images: images):
        gatherer = study.start(model)
        for turn in range(3):
            values = BatchValues({"x": hold(images_of((2, 8, 16, 9), turn))}, {"x": True}, 2)
            gatherer.add([2 * turn, 2 * turn + 1], values)
        gathered.append(gatherer.finish())
    for name, found in gathered[0].items():
        np.testing.assert_allclose(found, gathered[1][name], rtol=1e-12, err_msg=name)
    everything = 6 * 8 * 16 * 9
    assert gathered[0]["elements"].sum() == everything
    counted = gathered[0]["histogram"].sum()
    assert counted == everything if histograms == "exact" else 0 < counted < everything / 3
