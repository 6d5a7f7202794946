"""Pooling of regions of interest."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from engine.errors import LayerError

RAMP = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)  # 4 * row + column
BOX = np.array([[0, 0, 0, 2, 2]], np.float32)


def test_align_by_hand(run):
    # The average over [0, 2] x [0, 2] of a ramp is its value in the middle, (1, 1).
    y = run("torchvision.ops.RoIAlign", RAMP, BOX, output_size=1, sampling_ratio=2)
    np.testing.assert_allclose(y, [[[[5]]]])
    halves = run("torchvision.ops.RoIAlign", RAMP, BOX, output_size=(1, 2), sampling_ratio=2)
    np.testing.assert_allclose(halves, [[[[4.5, 5.5]]]])
    aligned = run("torchvision.ops.RoIAlign", RAMP, BOX * 2, aligned=True, spatial_scale=0.5)
    assert aligned.item() == (0 + 1 + 4 + 5) / 4  # samples at 0 and 1 on both axes


def test_pool_by_hand(run):
    y = run("torchvision.ops.RoIPool", RAMP, BOX, output_size=(2, 1))
    np.testing.assert_array_equal(y, [[[[6], [10]]]])
    outside = np.array([[0, 9, 9, 12, 12]], np.float32)
    np.testing.assert_array_equal(run("torchvision.ops.RoIPool", RAMP, outside), [[[[0]]]])


@pytest.mark.parametrize("name", ["torchvision.ops.RoIAlign", "torchvision.ops.RoIPool"])
def test_boxes_of_each_image(run, name):
    images = np.random.default_rng(1).random((2, 3, 6, 6), dtype=np.float32)
    lists = (np.array([[0, 0, 3, 3], [1, 2, 5, 5]], np.float32), np.array([[2, 2, 4, 5.0]]))
    one = np.array([[0, 0, 0, 3, 3], [0, 1, 2, 5, 5], [1, 2, 2, 4, 5]], np.float32)
    np.testing.assert_array_equal(
        run(name, images, lists, output_size=2), run(name, images, one, output_size=2)
    )


@pytest.mark.parametrize(
    ("box", "sentence"),
    [
        ([[2, 0, 0, 1, 1]], "a box is in image 2 of 1"),
        ([[0, 0, 1, 1]], "the input must be N×C×H×W and the boxes K×5"),
        ([[0, 0, 0, 1e9, 1]], "samples in each part of a box are too many"),
    ],
)
def test_wrong_boxes(run, box, sentence):
    with pytest.raises(LayerError, match=sentence):
        run("torchvision.ops.RoIAlign", RAMP, np.array(box, np.float32))


def sampled(image, y, x):
    """Value of one channel between its pixels, as RoIAlign defines it."""
    rows, columns = image.shape
    if not (-1 <= y <= rows and -1 <= x <= columns):
        return 0.0
    y, x = min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)
    total = 0.0
    for row in (math.floor(y), math.floor(y) + 1):
        for column in (math.floor(x), math.floor(x) + 1):
            share = max(0, 1 - abs(y - row)) * max(0, 1 - abs(x - column))
            total += share * image[min(row, rows - 1), min(column, columns - 1)]
    return total


def slow_part(image, box, size, place, sampling_ratio, aligned):
    """Average of the samples in one part of a box."""
    x1, y1, x2, y2 = (float(c) - (0.5 if aligned else 0) for c in box)
    height, width = y2 - y1, x2 - x1
    if not aligned:
        height, width = max(height, 1), max(width, 1)
    height, width = height / size[0], width / size[1]
    down = sampling_ratio if sampling_ratio > 0 else math.ceil(height)
    across = sampling_ratio if sampling_ratio > 0 else math.ceil(width)
    total = sum(
        sampled(
            image,
            y1 + (place[0] + (i + 0.5) / down) * height,
            x1 + (place[1] + (j + 0.5) / across) * width,
        )
        for i in range(down)
        for j in range(across)
    )
    return total / max(down * across, 1) if down > 0 and across > 0 else 0.0


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("sampling_ratio", [-1, 1, 3])
@pytest.mark.parametrize(("size", "scale"), [((3, 2), 1.0), ((4, 4), 0.5)])
def test_align_against_a_slow_loop(run, size, scale, sampling_ratio, aligned):
    rng = np.random.default_rng(2)
    images = rng.standard_normal((2, 1, 9, 11), dtype=np.float32)
    corners = rng.integers(-8, 40, (12, 4)) / 2
    corners[::2, 2:] = corners[::2, :2] + np.abs(corners[::2, 2:])  # the others may be empty
    boxes = np.concatenate([rng.integers(0, 2, (12, 1)), corners], 1).astype(np.float32)
    y = run(
        "torchvision.ops.RoIAlign", images, boxes, output_size=size, spatial_scale=scale,
        sampling_ratio=sampling_ratio, aligned=aligned,
    )  # fmt: skip
    for number, place in itertools.product(range(12), np.ndindex(*size)):
        image, box = images[int(boxes[number, 0]), 0], boxes[number, 1:] * scale
        expected = slow_part(image, box, size, place, sampling_ratio, aligned)
        assert y[number, 0][place] == pytest.approx(expected, rel=1e-4, abs=1e-5)
    bare = run(
        "pnnx.custom_op.torchvision.roi_align", images, boxes, names=("arg_0", "arg_1"),
        arg_2=scale, arg_3=size[0], arg_4=size[1], arg_5=sampling_ratio, arg_6=aligned,
    )  # fmt: skip
    np.testing.assert_array_equal(bare, y)


def test_bare_arguments_of_pooling(run):
    name = "pnnx.custom_op.torchvision.roi_pool"
    (y,) = run(name, RAMP, BOX, names=("arg_0", "arg_1"), arg_2=1.0, arg_3=2, arg_4=1)
    np.testing.assert_array_equal(y, [[[[6], [10]]]])
