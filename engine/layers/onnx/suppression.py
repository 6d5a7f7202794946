"""Non-maximum suppression of ONNX: per class, for boxes of several images."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from engine.layers.onnx.arguments import numbers_of
from engine.layers.registry import register
from engine.layers.suppression import nms
from engine.values import Array

__all__ = ["non_max_suppression"]


@register("NonMaxSuppression")
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Any = 0,
    iou_threshold: Any = 0.0,
    score_threshold: Any = None,
    center_point_box: int = 0,
) -> Array:
    """Choose boxes of each class that no better box overlaps: ONNX ``NonMaxSuppression``.

    Parameters
    ----------
    boxes : ndarray of shape (N, B, 4)
        Two opposite corners y1, x1, y2, x2.
    scores : ndarray of shape (N, C, B)
    max_output_boxes_per_class : int
        Largest number of boxes per class; 0 by default.
    iou_threshold : float
        A box is dropped if its intersection with a better remaining box is more than this
        share of their union.
    score_threshold : float, optional
        Boxes with lower or equal scores are dropped.
    center_point_box : int
        Whether a box is given by its centre and size: x, y, w, h.

    Returns
    -------
    int64 ndarray of shape (K, 3)
        Image, class and box, class by class, best first.
    """
    most = int(_get_number(max_output_boxes_per_class, 0))
    overlap, least = _get_number(iou_threshold, 0.0), _get_number(score_threshold, -np.inf)
    found = [np.zeros((0, 3), np.int64)]
    for image, kind in itertools.product(*map(range, scores.shape[:2])):
        own = scores[image, kind]
        candidates = np.flatnonzero(own > least)
        corners = _find_corners(boxes[image][candidates], center_point_box)
        kept = candidates[nms(corners, own[candidates], overlap)[:most]]
        found.append(np.stack([np.full(len(kept), image), np.full(len(kept), kind), kept], 1))
    return np.concatenate(found).astype(np.int64)


def _get_number(value: Any, default: float) -> float:
    numbers = numbers_of(value)
    return float(numbers[0]) if numbers.size else default


def _find_corners(boxes: Array, center_point_box: int) -> Array:
    """Lower and upper corners of boxes."""
    if center_point_box:
        centre, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([centre - half, centre + half], 1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], 1)
