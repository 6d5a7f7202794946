"""Deformable convolution."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.errors import LayerError

DEFORM = "torchvision.ops.DeformConv2d"
RNG = np.random.default_rng(6)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_no_offset_is_a_convolution(run):
    weights = {"weight": some(4, 3, 3, 3), "bias": some(4)}
    x, offset = some(2, 3, 6, 7), np.zeros((2, 18, 6, 7), np.float32)
    y = run(DEFORM, x, offset, weights=weights, padding=1)
    plain = run("nn.Conv2d", x, weights=weights, padding=1)
    np.testing.assert_allclose(y, plain, rtol=1e-4, atol=1e-5)


def test_offsets_and_mask_by_hand(run):
    x = np.array([[[[1, 2], [3, 4]]]], np.float32)
    weights = {"weight": np.full((1, 1, 1, 1), 10, np.float32)}
    offset = np.zeros((1, 2, 2, 2), np.float32)
    offset[0, :, 0, 0] = 1, 0.5  # one row down, half a column right: between 3 and 4
    offset[0, :, 1, 1] = 0, 0.75  # three quarters out of the image
    y = run(DEFORM, x, offset, weights=weights)
    np.testing.assert_allclose(y, [[[[35, 20], [30, 10]]]])
    mask = np.array([[[[0.5, 1], [0, 2]]]], np.float32)
    masked = run(DEFORM, x, offset, mask, weights=weights)
    np.testing.assert_allclose(masked, [[[[17.5, 20], [0, 20]]]])


@pytest.mark.parametrize(
    ("shapes", "sentence"),
    [
        ([(3, 6, 6), (1, 18, 4, 4)], "the input must be N×C×H×W"),
        ([(1, 3, 6, 6), (1, 17, 4, 4)], "the offsets must be 1×.a multiple of 18.×4×4"),
        ([(1, 3, 6, 6), (1, 18, 5, 4)], "their shape is 1×18×5×4"),
        ([(1, 3, 6, 6), (1, 18, 4, 4), (1, 8, 4, 4)], "the mask must be 1×9×4×4"),
    ],
)
def test_wrong_shapes(run, shapes, sentence):
    with pytest.raises(LayerError, match=sentence):
        run(DEFORM, *(some(*shape) for shape in shapes), weights={"weight": some(4, 3, 3, 3)})


def between(image, y, x):
    """Value of (C, H, W) between its pixels, 0 outside."""
    total = np.zeros(len(image))
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            if 0 <= row < image.shape[1] and 0 <= column < image.shape[2]:
                share = (1 - abs(y - row)) * (1 - abs(x - column))
                total += share * image[:, row, column]
    return total


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize(
    ("groups", "offset_groups", "stride", "padding", "dilation", "bias"),
    [
        (1, 1, (1, 1), (0, 0), (1, 1), True),
        (2, 1, (2, 1), (1, 1), (1, 1), False),
        (1, 2, (1, 1), (1, 2), (2, 1), True),
        (2, 4, (2, 2), (2, 2), (2, 2), True),
    ],
)
def test_against_a_slow_loop(
    run, groups, offset_groups, stride, padding, dilation, bias, masked
):
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    weights = {"weight": some(4, 4 // groups, 3, 2)} | ({"bias": some(4)} if bias else {})
    x = some(1, 4, 6, 5)
    rows, columns = run("nn.Conv2d", x, weights=weights, **options).shape[2:]
    offset = 2 * some(1, 2 * offset_groups * 6, rows, columns)
    mask = some(1, offset_groups * 6, rows, columns)
    operands = [x, offset, mask] if masked else [x, offset]
    y = run(DEFORM, *operands, weights=weights, bias=bias, kernel_size=(3, 2), **options)
    expected = np.zeros((4, rows, columns))
    for i, j, tap, channel in itertools.product(
        range(rows), range(columns), range(6), range(4)
    ):
        number = channel * offset_groups // 4 * 6 + tap
        down, right = offset[0, 2 * number : 2 * number + 2, i, j]
        value = between(
            x[0, channel : channel + 1],
            i * stride[0] - padding[0] + tap // 2 * dilation[0] + down,
            j * stride[1] - padding[1] + tap % 2 * dilation[1] + right,
        )[0]
        if masked:
            value *= mask[0, number, i, j]
        group, own = divmod(channel, 4 // groups)
        for out in range(group * 4 // groups, (group + 1) * 4 // groups):
            expected[out, i, j] += value * weights["weight"][out, own, tap // 2, tap % 2]
    if bias:
        expected += weights["bias"][:, None, None]
    np.testing.assert_allclose(y[0], expected, rtol=1e-3, atol=1e-4)
    flat = (
        x, weights["weight"], offset, mask, weights.get("bias"), *stride, *padding, *dilation,
        groups, offset_groups, masked,
    )  # fmt: skip
    np.testing.assert_array_equal(run("torchvision::deform_conv2d", *flat), y)
