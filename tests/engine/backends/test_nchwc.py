"""Conversion of images from NCHWc to NCHW, against a loop."""

from __future__ import annotations

import numpy as np
import pytest

from engine.backends.nchwc import nchwc_to_nchw


@pytest.mark.parametrize("cached", [1, 320, 1 << 15])  # bytes: parts of 1 to all 12 pixels
@pytest.mark.parametrize("size", [1, 4, 16])
@pytest.mark.parametrize("channels", [1, 5, 16, 20, 32])
def test_order(monkeypatch, channels, size, cached):
    monkeypatch.setattr("engine.backends.nchwc._CACHED", cached)
    groups = -(-channels // size)
    shape = 2, groups, 3, 4, size
    blocks = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    memory = blocks.ravel()
    expected = np.empty((2, channels, 3, 4), np.float32)
    for sample, channel, row, column in np.ndindex(expected.shape):
        group, within = divmod(channel, size)
        place = (((sample * groups + group) * 3 + row) * 4 + column) * size + within
        expected[sample, channel, row, column] = memory[place]
    found = nchwc_to_nchw(blocks, expected.shape)
    np.testing.assert_array_equal(found, expected, strict=True)
    assert found.flags.c_contiguous
    assert not np.may_share_memory(found, blocks)


def test_another_shape_and_gaps_between_groups():
    memory = np.arange(2 * 8, dtype=np.float32).reshape(2, 8)
    blocks = memory[:, :6].reshape(1, 2, 1, 3, 2)
    expected = np.array([[0, 2, 4, 1, 3, 5], [8, 10, 12, 9, 11, 13]], np.float32)
    np.testing.assert_array_equal(nchwc_to_nchw(blocks, (2, 6)), expected, strict=True)
