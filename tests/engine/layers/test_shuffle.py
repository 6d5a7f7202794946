"""Moving elements between channels and pixels, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import InferStatus, LayerError


def counted(*shape):
    return np.arange(np.prod(shape)).reshape(shape)


@pytest.mark.parametrize("groups", [1, 2, 3, 6])
@pytest.mark.parametrize("operator_type", ["nn.ChannelShuffle", "F.channel_shuffle"])
def test_channel_shuffle(run, operator_type, groups):
    x = counted(2, 6, 2, 3)
    expected = np.empty_like(x)
    per_group = 6 // groups
    for channel in range(6):
        group, member = divmod(channel, per_group)
        expected[:, member * groups + group] = x[:, channel]
    np.testing.assert_array_equal(run(operator_type, x, groups=groups), expected)


@pytest.mark.parametrize("r", [1, 2, 3])
@pytest.mark.parametrize("batch", [(), (2,), (2, 2)], ids=len)
def test_pixel_shuffle(run, r, batch):
    x = counted(*batch, 2 * r * r, 3, 4)
    expected = np.empty((*batch, 2, 3 * r, 4 * r), x.dtype)
    for c, row, col in np.ndindex(2, 3 * r, 4 * r):
        source = c * r * r + (row % r) * r + col % r
        expected[..., c, row, col] = x[..., source, row // r, col // r]
    np.testing.assert_array_equal(run("nn.PixelShuffle", x, upscale_factor=r), expected)
    back = run("nn.PixelUnshuffle", expected, downscale_factor=r)
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize(
    ("operator_type", "shape", "kwargs", "reason"),
    [
        ("nn.ChannelShuffle", (1, 5, 2), {"groups": 2}, "5 channels cannot be divided"),
        ("nn.ChannelShuffle", (1, 4, 2), {"groups": 0}, "4 channels cannot be divided"),
        ("nn.PixelShuffle", (6, 2, 2), {"upscale_factor": 2}, "6 channels cannot be divided"),
        ("nn.PixelUnshuffle", (1, 3, 4), {"downscale_factor": 2}, "3 rows cannot be divided"),
        ("nn.PixelUnshuffle", (1, 4, 3), {"downscale_factor": 2}, "3 columns cannot be"),
    ],
)
def test_what_cannot_be_divided(run, operator_type, shape, kwargs, reason):
    with pytest.raises(LayerError, match=reason) as caught:
        run(operator_type, np.zeros(shape), **kwargs)
    assert caught.value.status is InferStatus.kInferArraySizeMismatch


@pytest.mark.parametrize("operator_type", ["nn.ChannelShuffle", "nn.PixelShuffle"])
def test_too_few_dimensions(run, operator_type):
    name = "groups" if operator_type == "nn.ChannelShuffle" else "upscale_factor"
    with pytest.raises(LayerError, match="shape 4×4 has no channels"):
        run(operator_type, np.zeros((4, 4)), **{name: 2})
