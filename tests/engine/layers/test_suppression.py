"""Non-maximum suppression, and the way extensions' operators stand in files."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

BOXES = np.array(
    [[0, 0, 10, 10], [0, 0, 10, 8], [20, 20, 30, 30], [0, 0, 10, 5], [5, 5, 5, 5]], np.float32
)
SCORES = np.array([0.5, 0.9, 0.7, 0.8, 0.1], np.float32)


# Box 1 is the best; it shares 8/10 with box 0 and 5/8 with box 3; box 4 has no area.
@pytest.mark.parametrize(
    ("threshold", "expected"), [(0.7, [1, 3, 2, 4]), (0.6, [1, 2, 4]), (0.8, [1, 3, 2, 0, 4])]
)
def test_by_hand(run, threshold, expected):
    kept = run("torchvision.ops.nms", BOXES, SCORES, iou_threshold=threshold)
    assert kept.tolist() == expected
    assert kept.dtype == np.int64


def test_bare_arguments(run):
    name = "pnnx.custom_op.torchvision.nms"
    kept = run(name, BOXES, SCORES, names=("arg_0", "arg_1"), arg_2=0.6)
    assert kept.tolist() == [1, 2, 4]
    assert run(name, BOXES, SCORES, arg_2=0.6).tolist() == [1, 2, 4]
    turned = run(name, SCORES, BOXES, names=("arg_1", "arg_0"), arg_2=0.6)
    assert turned.tolist() == [1, 2, 4]


def test_other_parameters(run):
    with pytest.raises(ParameterError, match="'iou' is not an argument number"):
        run("pnnx.custom_op.torchvision.nms", BOXES, SCORES, iou=0.6)


def test_no_boxes(run):
    none = np.zeros((0, 4), np.float32)
    assert run("torchvision::nms", none, none[:, 0], 0.5).shape == (0,)


def test_other_shapes(run):
    with pytest.raises(LayerError, match="boxes and scores do not fit: .* 5×4, 4"):
        run("torchvision::nms", BOXES, SCORES[:4], 0.5)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_against_a_slow_loop(run, threshold):
    rng = np.random.default_rng(1)
    corners = rng.integers(0, 50, (100, 2))
    boxes = np.concatenate([corners, corners + rng.integers(1, 40, (100, 2))], 1)
    scores = rng.integers(0, 20, 100) / 16
    waiting = sorted(range(100), key=lambda number: (-scores[number], number))
    expected = []
    while waiting:
        best, *waiting = waiting
        expected.append(best)
        waiting = [n for n in waiting if overlap(boxes[best], boxes[n]) <= threshold]
    kept = run("torchvision.ops.nms", boxes.astype(np.float32), scores, iou_threshold=threshold)
    assert kept.tolist() == expected


def overlap(one, other):
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0) * max(height, 0)
    areas = ((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return shared / (sum(areas) - shared)
