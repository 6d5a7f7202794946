"""Non-maximum suppression of boxes."""

from __future__ import annotations

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import require_steps
from engine.layers.custom_operators import register_extension
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.promotion import float_dtype
from engine.values import Array

__all__ = ["nms"]


@register("torchvision.ops.nms")
@register_extension("torchvision::nms")
def nms(boxes: Array, scores: Array, iou_threshold: float) -> Array:
    """Choose boxes that no better box overlaps: ``torchvision.ops.nms``.

    Parameters
    ----------
    boxes : ndarray of shape (N, 4)
        Corners x1, y1, x2, y2.
    scores : ndarray of shape (N,)
    iou_threshold : float
        A box is dropped if its intersection with a better remaining box is more than this
        share of their union.

    Returns
    -------
    int64 ndarray of shape (K,)
        Indices of the remaining boxes, best first.
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise LayerError(
            "boxes and scores do not fit: their shapes are "
            f"{describe_shapes([boxes.shape, scores.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    require_steps(len(boxes), "boxes")
    order = np.argsort(-scores.astype(np.float64), kind="stable")
    # Compute in the boxes' own precision, as PyTorch does, so that ties are broken equally.
    corners = boxes.astype(working_dtype(float_dtype(boxes.dtype)), copy=False)[order]
    areas = np.prod(corners[:, 2:] - corners[:, :2], axis=1)
    alive = np.ones(len(order), np.bool_)
    for best in range(len(order)):
        if not alive[best]:
            continue
        later = slice(best + 1, None)
        lower = np.maximum(corners[best, :2], corners[later, :2])
        upper = np.minimum(corners[best, 2:], corners[later, 2:])
        shared = np.prod(np.maximum(upper - lower, 0), axis=1)
        with np.errstate(all="ignore"):
            overlap = shared / (areas[best] + areas[later] - shared)
        alive[later] &= ~(overlap > iou_threshold)
    return order[alive].astype(np.int64, copy=False)
