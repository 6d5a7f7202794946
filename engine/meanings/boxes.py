"""Boxes of detectors: formats, overlap and non-maximum suppression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.meanings.names import NAMES, class_names
from engine.meanings.registry import Option
from engine.meanings.results import Boxes

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.meanings.registry import ReadingContext
    from engine.values import Array

__all__ = [
    "BOX_OPTIONS",
    "corners_of",
    "overlaps",
    "select_boxes",
    "suppress",
    "turned_corners",
    "turned_overlaps",
]

_MOST_CANDIDATES: Final = 4096  # that suppression compares
MOST_BOXES: Final = 300
_TINY: Final = 1e-9  # least variance of a box

_THRESHOLD: Final = Option(
    "threshold", "Threshold", "fraction", 0.25, "Boxes with a lower score are left out"
)
_OVERLAP: Final = Option(
    "iou", "Overlap", "fraction", 0.45,
    "Of boxes of a class whose intersection over union is greater, the surest one is shown; "
    "1 shows all",
)  # fmt: skip
BOX_OPTIONS: Final = (_THRESHOLD, _OVERLAP, NAMES)


def corners_of(centred: Array) -> npt.NDArray[np.float64]:
    """Return left, top, right, bottom for boxes given as centre x and y, width and height."""
    centred = centred.astype(np.float64)
    half = centred[..., 2:] / 2
    return np.concatenate([centred[..., :2] - half, centred[..., :2] + half], -1)


def overlaps(box: Array, others: Array) -> Array:
    """Return intersection over union of a box with others, all as corners."""
    low = np.maximum(box[:2], others[:, :2])
    high = np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=1)
    union = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], axis=1) - shared
    found: Array = np.where(union > 0, shared / np.where(union > 0, union, 1), 0.0)
    return found


def turned_corners(turned: Array) -> npt.NDArray[np.float64]:
    """Return the four corners of turned boxes.

    Parameters
    ----------
    turned : ndarray of shape (N, 5)
        Centre x and y, width, height, and the angle in radians, clockwise as y points down.

    Returns
    -------
    ndarray of shape (N, 4, 2)
        x and y, in order around the box.
    """
    x, y, width, height, angle = turned.astype(np.float64).T[:, :, np.newaxis]
    across = np.array([-0.5, 0.5, 0.5, -0.5]) * width
    down = np.array([-0.5, -0.5, 0.5, 0.5]) * height
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([x + across * cosine - down * sine, y + across * sine + down * cosine], -1)


def turned_overlaps(box: Array, others: Array) -> Array:
    """Return how much a turned box overlaps with others, from 0 to 1.

    Boxes are compared as normal distributions (Llerena et al., *Probabilistic
    Intersection-over-Union for Training and Evaluation of Oriented Object Detectors*, 2021),
    as YOLO does.

    Parameters
    ----------
    box : ndarray of shape (5,)
        Centre x and y, width, height and angle.
    others : ndarray of shape (N, 5)
    """
    ours, theirs = _covariances(box[np.newaxis]), _covariances(others)
    down, across, both = (one + other for one, other in zip(theirs, ours, strict=True))
    x, y = (others[:, :2] - box[:2]).astype(np.float64).T
    area = np.maximum(down * across - both**2, _TINY)
    far = (down * y**2 + across * x**2 - 2 * both * x * y) / area / 4
    areas = [
        np.clip(one * other - mixed**2, _TINY, None) for one, other, mixed in (ours, theirs)
    ]
    unlike = np.log(np.maximum(area / (4 * np.sqrt(areas[0] * areas[1])), 1.0)) / 2
    found: Array = 1 - np.sqrt(1 - np.exp(-(far + unlike)))
    return found


def _covariances(turned: Array) -> tuple[Array, Array, Array]:
    """Return variances of x and y, and their covariance, of boxes as distributions."""
    width, height = turned[:, 2:4].astype(np.float64).T ** 2 / 12
    cosine, sine = np.cos(turned[:, 4]), np.sin(turned[:, 4])
    return (
        width * cosine**2 + height * sine**2,
        width * sine**2 + height * cosine**2,
        (width - height) * cosine * sine,
    )


def suppress(
    corners: Array,
    scores: Array,
    classes: Array,
    limit: float,
    turned: Array | None = None,
) -> npt.NDArray[np.int64]:
    """Return the places of boxes to keep, the surest first and at most `MOST_BOXES`.

    Of boxes of one class whose intersection over union is above the limit, the one of the
    highest score stays.

    Parameters
    ----------
    corners : ndarray of shape (N, 4)
    scores, classes : ndarray of shape (N,)
    limit : float
    turned : ndarray of shape (N, 5), optional
        Turned boxes, compared by `turned_overlaps`.
    """
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while order.size and len(kept) < MOST_BOXES:
        first, order = order[0], order[1:]
        kept.append(int(first))
        found = (
            overlaps(corners[first], corners[order])
            if turned is None
            else turned_overlaps(turned[first], turned[order])
        )
        again = found > limit
        order = order[~(again & (classes[order] == classes[first]))]
    return np.array(kept, np.int64)


def select_boxes(
    context: ReadingContext,
    corners: Array,
    scores: Array,
    *,
    classes: Array | None = None,
    names: tuple[str, ...] | None = None,
    suppresses: bool = True,
    turned: Array | None = None,
    note: str = "",
) -> tuple[Boxes, npt.NDArray[np.int64]]:
    """Choose boxes by threshold and suppression.

    Parameters
    ----------
    context : ReadingContext
        With the options `BOX_OPTIONS`.
    corners : ndarray of shape (N, 4)
        In pixels of the input.
    scores : ndarray of shape (N, C), or (N,) with `classes`
    classes : ndarray of shape (N,), optional
    names : tuple of str, optional
        Of the classes; by default by their number.
    suppresses : bool
        Whether boxes that overlap are suppressed.
    turned : ndarray of shape (N, 5), optional
        Turned boxes, within `corners`.
    note : str

    Returns
    -------
    Boxes
    ndarray of int64
        The place of each among the candidates.
    """
    if classes is None:
        count = scores.shape[1]
        classes, scores = scores.argmax(1), scores.max(1)
    else:
        count = int(classes.max(initial=0)) + 1
    usable = np.isfinite(corners).all(1) & np.isfinite(scores)
    usable &= (corners[:, 2:] >= corners[:, :2]).all(1)
    passed = np.flatnonzero(usable & (scores >= context.number("threshold")))
    best = passed
    if passed.size > _MOST_CANDIDATES:
        best = passed[np.argsort(-scores[passed], kind="stable")[:_MOST_CANDIDATES]]
    limit = context.number("iou") if suppresses else 1.0
    angled = turned[best] if turned is not None else None
    kept = best[suppress(corners[best], scores[best], classes[best], limit, turned=angled)]
    if names is None:
        names = class_names(count, context.labels, context.text("names"))
    numbers = classes[kept].astype(np.int64)
    size = context.ends.size or _extent(corners[kept])
    boxes = Boxes(
        corners[kept].astype(np.float64),
        scores[kept].astype(np.float64),
        numbers,
        tuple(names[n] if 0 <= n < len(names) else str(n) for n in numbers.tolist()),
        size,
        len(corners),
        int(passed.size),
        turned=turned[kept].astype(np.float64) if turned is not None else None,
        note=note,
    )
    return boxes, kept


def _extent(corners: Array) -> tuple[int, int]:
    """Return the size of a picture that holds boxes, where none is known."""
    right, bottom = (float(corners[:, edge].max(initial=1.0)) for edge in (2, 3))
    return max(1, round(bottom)), max(1, round(right))
