"""Pooling of regions of interest: converts boxes of any size to images of one size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import require_steps
from engine.layers.custom_operators import register_extension
from engine.layers.layer import Ints, Outputs
from engine.layers.registry import register
from engine.layers.windows import new_output, per_axis, working_dtype
from engine.values import Array

__all__ = [
    "Samples",
    "check_boxes",
    "find_image",
    "place_samples",
    "roi_align",
    "roi_align_extension",
    "roi_pool",
]

_MOST_SAMPLES: Final = 1 << 16  # along one axis of a region; a box with more is invalid


@register("torchvision.ops.RoIAlign", "torchvision.ops.roi_align")
def roi_align(
    input: Array,
    boxes: OperandOf[Any],
    output_size: Ints = 1,
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
) -> Array:
    """Average bilinear samples of each part of a box: ``torchvision.ops.RoIAlign``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H, W)
    boxes : ndarray of shape (K, 5), or tuple of N ndarrays of shape (K', 4)
        Index of the image and corners x1, y1, x2, y2; or the corners for each image.
    output_size : int or tuple of int
        Number of rows and columns of parts of a box.
    spatial_scale : float
        Factor from the boxes' coordinates to pixels.
    sampling_ratio : int
        Samples along each axis of a part; if below 1, as many as there are pixels.
    aligned : bool
        Whether pixel centres are at half-integer coordinates, instead of integers.

    Returns
    -------
    ndarray of shape (K, C, *output_size)
    """
    rois = check_boxes(input, boxes)
    counts = per_axis("output_size", output_size, 2, least=1)
    dtype = working_dtype(input.dtype)
    output = new_output((len(rois), input.shape[1], *counts), dtype)
    for number, roi in enumerate(rois):
        part = input[find_image(roi, len(input))].astype(dtype, copy=False)
        axes = place_samples(roi, input.shape, counts, spatial_scale, sampling_ratio, aligned)
        for axis, samples in enumerate(axes, 1):
            part = _average_parts(part, axis, samples)
        output[number] = part
    return output.astype(input.dtype, copy=False)


@register_extension("torchvision::roi_align")
def roi_align_extension(
    input: Array,
    rois: Array,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Array:
    """Average bilinear samples of each part of a box; as ``torchvision.ops.RoIAlign``."""
    size = (pooled_height, pooled_width)
    return roi_align(input, rois, size, spatial_scale, sampling_ratio, aligned)


class Samples(NamedTuple):
    """Where the parts of a box read along an axis; arrays of shape (parts, samples).

    Attributes
    ----------
    lower, upper : ndarray of int64
        The pixels on both sides of each sample.
    rest, share : ndarray of float32
        Their weights; 0 outside of the image.
    """

    lower: Array
    upper: Array
    rest: Array
    share: Array


def place_samples(
    roi: Array,
    shape: tuple[int, ...],
    counts: Sequence[int],
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
) -> tuple[Samples, Samples]:
    """Return where a box reads along rows and columns.

    Parameters
    ----------
    roi : ndarray of shape (5,)
    shape : (int, int, int, int)
        Of the images.
    counts : (int, int)
        Number of rows and columns of parts.
    spatial_scale, sampling_ratio, aligned
        As in `roi_align`.
    """
    # Single precision, as in PyTorch, gives the same number of samples.
    corners = roi[1:].astype(np.float32, copy=False) * np.float32(spatial_scale)
    x1, y1, x2, y2 = corners - np.float32(0.5 if aligned else 0)
    found = []
    for size, count, start, stop in (
        (shape[2], counts[0], y1, y2), (shape[3], counts[1], x1, x2)
    ):  # fmt: skip
        length = stop - start if aligned else max(stop - start, np.float32(1))
        found.append(_place_along(size, start, length, count, sampling_ratio))
    return found[0], found[1]


def _place_along(
    size: int, start: float, length: float, count: int, sampling_ratio: int
) -> Samples:
    part = np.float32(length) / np.float32(count)
    samples = _count_samples(np.float32(sampling_ratio) if sampling_ratio > 0 else part)
    steps = (np.arange(samples, dtype=np.float32) + np.float32(0.5)) * part / max(1, samples)
    places = start + np.arange(count, dtype=np.float32)[:, np.newaxis] * part + steps
    outside = ~((places >= -1) & (places <= size))
    places = np.clip(np.where(outside, 0, places), 0, size - 1)
    lower = places.astype(np.int64)
    share = np.where(outside, 0, places - lower)
    return Samples(
        lower, np.minimum(lower + 1, size - 1), np.where(outside, 0, 1) - share, share
    )


def _average_parts(image: Array, axis: int, samples: Samples) -> Array:
    """Average the samples of each part along an axis.

    Parameters
    ----------
    image : ndarray of shape (..., A, ...)
        A at `axis`.
    samples : Samples
        Of B parts.

    Returns
    -------
    ndarray of shape (..., B, ...)
    """
    lower, upper = samples.lower, samples.upper
    rest, share = (each.astype(image.dtype) for each in (samples.rest, samples.share))
    count, each = lower.shape
    size = image.shape[axis]
    shape = (*image.shape[:axis], count, *image.shape[axis + 1 :])
    if not each:
        return np.zeros(shape, image.dtype)
    if each > 2 * size:  # many samples per pixel: add them up per pixel first
        weights = np.zeros((count, size), image.dtype)
        parts = np.arange(count)[:, np.newaxis]
        np.add.at(weights, (parts, lower), rest)
        np.add.at(weights, (parts, upper), share)
        total = np.moveaxis(np.tensordot(weights / each, image, (1, axis)), 0, axis)
        return np.ascontiguousarray(total)
    total = np.zeros(shape, image.dtype)
    column = (-1, *(1,) * (image.ndim - axis - 1))
    for sample in range(each):
        total += np.take(image, lower[:, sample], axis) * rest[:, sample].reshape(column)
        total += np.take(image, upper[:, sample], axis) * share[:, sample].reshape(column)
    total /= each
    return total


def _count_samples(samples: np.float32) -> int:
    if not samples <= _MOST_SAMPLES:
        raise LayerError(f"{samples:g} samples in each part of a box are too many")
    return math.ceil(samples)


@register("torchvision.ops.RoIPool", "torchvision.ops.roi_pool")
def roi_pool(
    input: Array, boxes: OperandOf[Any], output_size: Ints = 1, spatial_scale: float = 1.0
) -> Array:
    """Largest value of each part of a box: ``torchvision.ops.RoIPool``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H, W)
    boxes, output_size, spatial_scale
        As in ``torchvision.ops.RoIAlign``; corners are rounded to pixels.

    Returns
    -------
    ndarray of shape (K, C, *output_size)
        0 for a part without pixels.
    """
    rois = check_boxes(input, boxes)
    counts = per_axis("output_size", output_size, 2, least=1)
    output = new_output((len(rois), input.shape[1], *counts), input.dtype, 0)
    corners = rois[:, 1:].astype(np.float32, copy=False) * np.float32(spatial_scale)
    for number, corner in enumerate(corners):
        image = input[find_image(rois[number], len(input))]
        # Round halves away from zero, as C does.
        x1, y1, x2, y2 = (int(np.copysign(np.floor(abs(c) + 0.5), c)) for c in corner)
        rows, of_rows = _split_axis(y1, y2, counts[0], image.shape[1])
        columns, of_columns = _split_axis(x1, x2, counts[1], image.shape[2])
        largest = np.zeros((len(image), len(rows), len(columns)), image.dtype)
        for row, (top, bottom) in enumerate(rows):
            for column, (left, right) in enumerate(columns):
                part = image[:, top:bottom, left:right]
                if part.shape[1] and part.shape[2]:
                    largest[:, row, column] = part.max((1, 2))
        output[number] = largest[:, of_rows[:, np.newaxis], of_columns]
    return output


@register_extension("torchvision::roi_pool")
def roi_pool_extension(
    input: Array, rois: Array, spatial_scale: float, pooled_height: int, pooled_width: int
) -> Outputs:
    """Largest value of each part of a box; as ``torchvision.ops.RoIPool``."""
    return Outputs((roi_pool(input, rois, (pooled_height, pooled_width), spatial_scale),))


def _split_axis(first: int, last: int, count: int, size: int) -> tuple[Array, Array]:
    """Split an axis into parts. If there are more parts than pixels, many are equal.

    Returns
    -------
    bounds : ndarray of shape (D, 2)
        Start and stop inside the image of each different part.
    places : ndarray of shape (count,)
        Index into `bounds` of each part.
    """
    part = np.float32(max(last - first + 1, 1)) / np.float32(count)
    places = np.arange(count, dtype=np.float32)
    starts = np.floor(places * part).astype(np.int64) + first
    stops = np.ceil((places + 1) * part).astype(np.int64) + first
    pairs = np.stack([np.clip(starts, 0, size), np.clip(stops, 0, size)], 1)
    bounds, of_parts = np.unique(pairs, axis=0, return_inverse=True)
    return bounds, of_parts.reshape(-1)


def check_boxes(input: Array, boxes: Any) -> Array:
    """Check the boxes and combine them to one array of shape (K, 5)."""
    if isinstance(boxes, tuple):
        numbered = [
            np.concatenate([np.full((len(b), 1), n, b.dtype), b], 1)
            for n, b in enumerate(boxes)
        ]
        boxes = np.concatenate(numbered) if numbered else np.zeros((0, 5), np.float32)
    if input.ndim != 4 or boxes.ndim != 2 or boxes.shape[1] != 5 or 0 in input.shape[2:]:
        raise LayerError(
            "the input must be N×C×H×W and the boxes K×5; their shapes are "
            f"{describe_shapes([input.shape, boxes.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    require_steps(len(boxes), "boxes")
    rois: Array = boxes
    return rois


def find_image(roi: Array, count: int) -> int:
    """Return the number of the image, of so many, that a box is in.

    Raises
    ------
    LayerError
        If there is no such image.
    """
    number = int(roi[0])
    if not 0 <= number < count:
        raise LayerError(f"a box is in image {number} of {count}")
    return number
