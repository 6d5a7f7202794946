"""Grid sampling and affine grids."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError

RNG = np.random.default_rng(4)
IMAGE = np.array([[[[1, 2], [3, 4]]]], np.float32)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("position", "params", "expected"),
    [
        ((-1, -1), {"align_corners": True}, 1),
        ((1, -1), {"align_corners": True}, 2),
        ((-1, 1), {"align_corners": True}, 3),
        ((0, 0), {"align_corners": True}, 2.5),
        ((0, 0), {"align_corners": False}, 2.5),
        ((-1, -1), {"align_corners": False}, 0.25),  # a quarter of the pixel is inside
        ((-1, -1), {"align_corners": False, "padding_mode": "border"}, 1),
        ((3, -1), {"align_corners": True}, 0),
        ((3, -1), {"align_corners": True, "padding_mode": "border"}, 2),
        ((3, -1), {"align_corners": True, "padding_mode": "reflection"}, 1),
        ((0.4, -0.6), {"mode": "nearest"}, 2),
        ((0.4, -0.6), {"mode": 1, "padding_mode": 2}, 2),
        ((math.nan, 0), {"mode": "nearest"}, 0),
        ((math.nan, 0), {}, math.nan),  # weights of no number, as in PyTorch on CPUs
        ((math.inf, 0), {}, math.nan),
        ((0, -math.inf), {"mode": "bicubic"}, math.nan),
        ((math.nan, -1), {"align_corners": True, "padding_mode": "border"}, 1),
        ((math.inf, -1), {"align_corners": True, "padding_mode": "border"}, 2),
        ((-1e30, 1), {"align_corners": True, "padding_mode": "border"}, 3),
        ((1e30, 0), {}, 0),
        ((1e10, 1e10), {"mode": "nearest"}, 0),
    ],
)
def test_by_hand(run, position, params, expected):
    grid = np.array(position, np.float32).reshape(1, 1, 1, 2)
    result = run("F.grid_sample", IMAGE, grid, **params).item()
    assert result == pytest.approx(expected, nan_ok=True)


def test_what_is_not_sampled_does_not_show(run):
    image = IMAGE.copy()
    image[0, 0, 1, 1] = np.nan
    grid = np.array([-1, -1], np.float32).reshape(1, 1, 1, 2)
    assert run("F.grid_sample", image, grid).item() == 0.25


def test_affine_grid_by_hand(run):
    shifted = np.array([[[1, 0, 10], [0, 2, 0]]], np.float32)
    y = run("F.affine_grid", shifted, size=(1, 1, 2, 3), align_corners=True)
    x = [9, 10, 11]
    np.testing.assert_array_equal(y[0, ..., 0], [x, x])
    np.testing.assert_array_equal(y[0, ..., 1], [[-2] * 3, [2] * 3])
    inner = run("F.affine_grid", shifted, size=(1, 1, 2, 4), align_corners=False)
    np.testing.assert_allclose(inner[0, 0, :, 0], [9.25, 9.75, 10.25, 10.75])


@pytest.mark.parametrize(
    ("shapes", "params", "sentence"),
    [
        ([(1, 1, 2, 2), (1, 3, 3, 3)], {}, "input and grid do not fit: .* 1×1×2×2, 1×3×3×3"),
        ([(1, 2, 2), (1, 3, 2)], {}, "input and grid do not fit"),
        ([(1, 1, 2, 2), (1, 3, 3, 2)], {"mode": "area"}, "mode area does not sample"),
        ([(1, 1, 2, 2, 2), (1, 1, 1, 1, 3)], {"mode": "bicubic"}, "mode bicubic does not"),
        ([(1, 1, 2, 2), (1, 3, 3, 2)], {"padding_mode": "wrap"}, "padding_mode wrap is not"),
        ([(1, 1, 0, 2), (1, 3, 3, 2)], {}, "the image has no pixels"),
    ],
)
def test_refusals(run, shapes, params, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("F.grid_sample", *(some(*shape) for shape in shapes), **params)


def test_an_image_of_integers(run):
    with pytest.raises(LayerError, match="the image is of int64, and its pixels cannot be"):
        run("F.grid_sample", IMAGE.astype(np.int64), some(1, 2, 2, 2))


def test_maps_that_do_not_fit(run):
    with pytest.raises(
        LayerError, match="maps of shape 2×2×3 do not fit an image of shape 3×1"
    ):
        run("F.affine_grid", some(2, 2, 3), size=(3, 1, 4, 4))


def test_a_position_in_three_dimensions_that_is_no_number(run):
    image = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 2, 2)
    grid = np.array([math.nan, -1, -1], np.float32).reshape(1, 1, 1, 1, 3)
    assert run("F.grid_sample", image, grid, align_corners=True).item() == 0
    border = run("F.grid_sample", image, grid, align_corners=True, padding_mode="border")
    assert border.item() == 2  # the last pixel: PyTorch's loops differ from its vectors


@pytest.mark.parametrize("channels", [1, 6])
def test_many_small_images(run, channels):
    """As where a network looks a few pixels up around every pixel of another image."""
    images, grid = some(300, channels, 3, 4), RNG.uniform(-1, 1, (300, 3, 3, 2))
    expected = np.zeros((300, channels, 3, 3))
    for number, row, column in np.ndindex(300, 3, 3):
        x, y = (grid[number, row, column] + 1) / 2 * (3, 2)
        for i, j in np.ndindex(3, 4):
            share = max(0, 1 - abs(y - i)) * max(0, 1 - abs(x - j))
            expected[number, :, row, column] += share * images[number, :, i, j]
    y = run("F.grid_sample", images, grid.astype(np.float32), align_corners=True)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_pixels_that_are_not_finite_stay_where_they_are(run):
    """Beside a position that lies on a pixel there is one that counts for nothing."""
    image = np.array([[[[1, 2, math.inf], [3, 4, math.nan], [5, 6, 7]]]], np.float32)
    grid = np.array([[[-1, -1], [-1, 1]], [[0, 1.5], [-1.5, 0]]], np.float32)[np.newaxis]
    y = run("F.grid_sample", image, grid, align_corners=True)
    assert y.tolist() == [[[[1, 5], [3, 1.5]]]]


SHAPES = [
    ((2, 3, 5, 7), (2, 6, 5, 2)),
    ((2, 3, 1, 3), (2, 6, 5, 2)),
    ((2, 3, 4, 3, 6), (2, 6, 5, 4, 3)),
    ((40, 1, 6, 5), (40, 3, 3, 2)),
    ((3, 9, 6, 5), (3, 7, 8, 2)),
    ((1, 9, 40, 50), (1, 2, 3, 2)),
    ((2, 5, 4, 1, 6), (2, 6, 5, 4, 3)),
    ((1, 2, 30, 30), (1, 200, 300, 2)),
]


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize(("shape", "positions"), SHAPES)
def test_against_pytorch(run, shape, positions, mode, padding_mode, align_corners):
    torch = pytest.importorskip("torch")
    if mode == "bicubic" and len(shape) == 5:
        return
    image, grid = some(*shape), 1.7 * some(*positions)
    params = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
    sample = torch.nn.functional.grid_sample
    for number in (None, math.nan, math.inf, -math.inf, 1e4, -1.0, 1.0):
        if number is not None:
            grid[..., 0, len(shape) % 2] = number
        expected = sample(*map(torch.from_numpy, (image, grid)), **params)
        y = run("F.grid_sample", image, grid, **params)
        np.testing.assert_allclose(y, expected.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 1, 3, 4, 5), (2, 1, 1, 2, 1)])
def test_affine_grids_against_pytorch(run, size, align_corners):
    torch = pytest.importorskip("torch")
    rank = len(size) - 2
    theta = some(2, rank, rank + 1)
    expected = torch.nn.functional.affine_grid(torch.from_numpy(theta), size, align_corners)
    y = run("F.affine_grid", theta, size=size, align_corners=align_corners)
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-5, atol=1e-6)
