"""Ways to resize images."""

from __future__ import annotations

import numpy as np
import pytest

from engine.image_resizing import ImageResizer, shrunk, with_channels

pytest.importorskip("PIL")

IMAGE = np.random.default_rng(1).integers(0, 256, (37, 53, 3), dtype=np.uint8)


@pytest.mark.parametrize("whole", [(20, 30), (15, 80), (60, 90), (37, 53)])
@pytest.mark.parametrize(
    "arguments",
    [
        {"mode": "nearest"},
        {"mode": "nearest-exact"},
        {"mode": "bilinear"},
        {"mode": "bilinear", "align_corners": True},
        {"mode": "bilinear", "antialias": True},
        {"mode": "bicubic"},
        {"mode": "bicubic", "antialias": True},
        {"mode": "area"},
    ],
    ids=lambda arguments: " ".join(map(str, arguments.values())),
)
def test_parts_are_those_of_torch(arguments, whole):
    torch = pytest.importorskip("torch")
    planes = torch.tensor(IMAGE).permute(2, 0, 1)[None].float()
    expected = torch.nn.functional.interpolate(planes, whole, **arguments)[0]
    expected = expected.clamp(0, 255).permute(1, 2, 0).numpy()
    resizer = ImageResizer(IMAGE)
    found = resizer.interpolate(whole, arguments)
    np.testing.assert_allclose(found, expected, atol=1e-3)
    part = resizer.interpolate(whole, arguments, (3, 5), (10, 20))
    np.testing.assert_allclose(part, expected[3:13, 5:25], atol=1e-3)


def test_whole_numbers_of_means():
    image = np.array([[[0], [1], [4], [250]]], np.uint8)
    found = ImageResizer(image).resize((1, 2), "opencv-bilinear")  # halfway between pixels
    np.testing.assert_array_equal(found[..., 0], [[0, 127]])
    assert found.dtype == np.uint8


def test_channels():
    colours = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 9, 9]]], np.uint8)
    grey = [[76, 150, 29, 9]]  # 0.299, 0.587 and 0.114 of 255
    np.testing.assert_array_equal(with_channels(colours, 3), colours)
    np.testing.assert_array_equal(with_channels(colours, 1)[..., 0], grey)
    np.testing.assert_array_equal(with_channels(np.uint8(grey), 1)[..., 0], grey)
    three = np.moveaxis(with_channels(np.uint8(grey), 3), 2, 0)
    np.testing.assert_array_equal(three, [grey] * 3)


@pytest.mark.parametrize("channels", [1, 3])
def test_an_image_is_shrunk_by_whole_blocks(channels):
    image = IMAGE[..., :channels]
    found = shrunk(image, (12, 9))  # blocks of 3 × 3, and what is left of them
    assert found.shape == (13, 18, channels)
    for row in range(12):
        for column in range(17):
            block = image[3 * row : 3 * row + 3, 3 * column : 3 * column + 3]
            mean = block.reshape(-1, channels).mean(axis=0)
            assert np.abs(found[row, column] - mean).max() < 1
    assert shrunk(image, (19, 27)) is image
