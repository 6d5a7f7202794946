"""Pooling of regions of an image, whose corners are an operand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import LayerError, ParameterError, describe_shapes
from engine.layers.ncnn.table import layer
from engine.memory_bound import require_memory
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MOST: Final = 1 << 12  # bins along one axis, and samples of a bin
_FARTHEST: Final = 1e6  # a corner in pixels; ncnn's integers would overflow


def _corners_of(rois: Array, scale: float) -> tuple[np.float32, ...]:
    """Return x1, y1, x2 and y2 of a region in pixels of the image, as float32.

    Raises
    ------
    LayerError
        If there are fewer than four numbers, or one is too large.
    """
    if rois.size < 4 or rois.ndim > 2:
        raise LayerError(f"{describe_shapes([rois.shape])} are not the corners of a region")
    corners = rois.reshape(-1)[:4].astype(np.float32)
    if not (np.abs(corners) * max(abs(scale), 1) < _FARTHEST).all():
        raise LayerError(f"the region {corners.tolist()} is far outside the image")
    return tuple(corners)


def _require_bins(image: Array, width: int, height: int, channels: int) -> None:
    if image.ndim != 3:
        raise LayerError(f"{describe_shapes([image.shape])} is not an image")
    if not (1 <= width <= _MOST and 1 <= height <= _MOST):
        raise ParameterError("pooled_width", f"{height}×{width} bins are out of range")
    require_memory((channels, height, width), np.dtype(np.float32))


def _round(number: np.float32) -> np.float32:
    """Round halves away from 0, as C does."""
    return np.float32(math.copysign(math.floor(abs(number) + np.float32(0.5)), number))


def _bins(height: int, width: int) -> Iterator[tuple[int, int]]:
    return ((row, column) for row in range(height) for column in range(width))


def _clip(number: float, size: int) -> int:
    return min(max(int(number), 0), size)


@layer("ROIPooling")
def roi_pooling(
    input: Array,
    rois: Array,
    pooled_width: int = 0,
    pooled_height: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """Return the maximum of each bin of a region.

    Parameters
    ----------
    input : ndarray of shape (C, H, W)
    rois : ndarray of at least 4 numbers
        x1, y1, x2 and y2, both corners included.
    pooled_width, pooled_height : int
    spatial_scale : float
        Factor from the corners to pixels.

    Returns
    -------
    ndarray of shape (C, pooled_height, pooled_width)
        0 for an empty bin.

    Notes
    -----
    Some builds of ncnn divide with less precision. Where an edge of a bin is a whole number,
    theirs may have a pixel more.
    """
    _require_bins(input, pooled_width, pooled_height, len(input))
    scaled = [corner * np.float32(spatial_scale) for corner in _corners_of(rois, spatial_scale)]
    x1, y1, x2, y2 = (int(_round(corner)) for corner in scaled)
    bin_w = np.float32(max(x2 - x1 + 1, 1)) / np.float32(pooled_width)
    bin_h = np.float32(max(y2 - y1 + 1, 1)) / np.float32(pooled_height)
    return _pool(
        input,
        (len(input), pooled_height, pooled_width),
        lambda row: (y1 + math.floor(row * bin_h), y1 + math.ceil((row + 1) * bin_h)),
        lambda column: (x1 + math.floor(column * bin_w), x1 + math.ceil((column + 1) * bin_w)),
        lambda part, _: part.max((1, 2)),
    )


@layer("PSROIPooling")
def position_sensitive_roi_pooling(
    input: Array,
    rois: Array,
    pooled_width: int = 7,
    pooled_height: int = 7,
    spatial_scale: float = 0.0625,
    output_dim: int = 0,
) -> Array:
    """Return the mean of each bin of a region, each bin in channels of its own.

    Parameters
    ----------
    input : ndarray of shape (output_dim * pooled_height * pooled_width, H, W)
    rois : ndarray of at least 4 numbers
    pooled_width, pooled_height, output_dim : int
    spatial_scale : float

    Returns
    -------
    ndarray of shape (output_dim, pooled_height, pooled_width)
        0 for an empty bin.
    """
    _require_bins(input, pooled_width, pooled_height, output_dim)
    shape = (output_dim, pooled_height, pooled_width)
    if output_dim < 1 or len(input) != math.prod(shape):
        raise LayerError(
            f"{len(input)} channels are not those of {describe_shapes([shape])} bins"
        )
    scale = np.float32(spatial_scale)
    corners = _corners_of(rois, spatial_scale)
    x1, y1 = (_round(corner) * scale for corner in corners[:2])
    x2, y2 = (_round(corner + np.float32(1)) * scale for corner in corners[2:])
    bin_w = max(x2 - x1, np.float32(0.1)) / np.float32(pooled_width)
    bin_h = max(y2 - y1, np.float32(0.1)) / np.float32(pooled_height)

    def mean(part: Array, place: tuple[int, int]) -> Array:
        own = part.reshape(*shape, *part.shape[1:])[:, place[0], place[1]]
        return np.asarray(own.mean((1, 2), dtype=np.float32))

    return _pool(
        input,
        shape,
        lambda row: (math.floor(y1 + row * bin_h), math.ceil(y1 + (row + 1) * bin_h)),
        lambda column: (math.floor(x1 + column * bin_w), math.ceil(x1 + (column + 1) * bin_w)),
        mean,
    )


def _pool(
    image: Array,
    shape: tuple[int, int, int],
    rows_of: Callable[[int], tuple[int, int]],
    columns_of: Callable[[int], tuple[int, int]],
    reduce: Callable[[Array, tuple[int, int]], Array],
) -> Array:
    result = np.zeros(shape, np.float32)
    for place in _bins(*shape[1:]):
        top, bottom = (_clip(edge, image.shape[1]) for edge in rows_of(place[0]))
        left, right = (_clip(edge, image.shape[2]) for edge in columns_of(place[1]))
        if bottom > top and right > left:
            result[:, place[0], place[1]] = reduce(image[:, top:bottom, left:right], place)
    return result


@layer("ROIAlign")
def roi_align(
    input: Array,
    rois: Array,
    pooled_width: int = 0,
    pooled_height: int = 0,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    aligned: int = 0,
    version: int = 0,
) -> Array:
    """Return the mean of samples of each bin of a region, interpolated between pixels.

    Parameters
    ----------
    input : ndarray of shape (C, H, W)
    rois : ndarray of at least 4 numbers
        x1, y1, x2 and y2.
    pooled_width, pooled_height : int
    spatial_scale : float
        Factor from the corners to pixels.
    sampling_ratio : int
        Samples of a bin along an axis; 0 for about one a pixel.
    aligned : int
        Whether pixels are points between whole numbers.
    version : int
        0 cuts bins at the border of the image; 1, as in PyTorch, ignores samples outside.

    Returns
    -------
    ndarray of shape (C, pooled_height, pooled_width)

    Raises
    ------
    LayerError
        If version 0 would read below or right of the image.
    """
    _require_bins(input, pooled_width, pooled_height, len(input))
    if version not in {0, 1} or not 0 <= sampling_ratio <= _MOST:
        raise ParameterError("version", "it is none that ncnn computes")
    scale, offset = np.float32(spatial_scale), np.float32(0.5 if aligned else 0)
    x1, y1, x2, y2 = (corner * scale - offset for corner in _corners_of(rois, spatial_scale))
    least = np.float32(-np.inf if aligned else 1)
    extents = max(y2 - y1, least), max(x2 - x1, least)
    axes = [
        _Axis(start, extent, count, size, sampling_ratio, version)
        for start, extent, count, size in zip(
            (y1, x1), extents, (pooled_height, pooled_width), input.shape[1:], strict=True
        )
    ]
    result = np.zeros((len(input), pooled_height, pooled_width), np.float32)
    for place in _bins(pooled_height, pooled_width):
        rows, columns = (axis.samples(place[i]) for i, axis in enumerate(axes))
        total = rows.count * columns.count
        if total:
            mixed = np.einsum("chw,ih,jw->c", input, rows.shares, columns.shares)
            result[:, place[0], place[1]] = mixed / np.float32(total)
    return result


class _Samples:
    """Samples of a bin along an axis.

    Attributes
    ----------
    shares : ndarray of shape (samples, size)
        What each takes of the pixels.
    count : int
        By which the sum is divided.
    """

    def __init__(self, shares: Array, count: int) -> None:
        self.shares, self.count = shares, count


class _Axis:
    """One axis of a region."""

    def __init__(
        self,
        start: np.float32,
        extent: np.float32,
        bins: int,
        size: int,
        ratio: int,
        version: int,
    ) -> None:
        self._start, self._size, self._ratio, self._version = start, size, ratio, version
        self._step = extent / np.float32(bins)

    def samples(self, place: int) -> _Samples:
        """Return the samples of a bin."""
        first, last = (self._start + np.float32(place + end) * self._step for end in (0, 1))
        if self._version == 0:
            first, last = (np.clip(edge, 0, np.float32(self._size)) for edge in (first, last))
            count = self._ratio or math.ceil(last - first)
            if last <= first:
                return _Samples(np.zeros((0, self._size), np.float32), 0)
        else:
            count = self._ratio or math.ceil(self._step)
        if count > _MOST:
            raise LayerError(f"a bin of {count} samples is too large")
        places = (np.arange(count, dtype=np.float32) + np.float32(0.5)) * self._step
        places = first + places / np.float32(max(count, 1))
        return _Samples(self._shares(places), max(count, self._version))

    def _shares(self, places: Array) -> Array:
        shares = np.zeros((len(places), self._size), np.float32)
        for share, place in zip(shares, places, strict=True):
            if self._version and not -1 <= place <= self._size:
                continue
            at = max(place, np.float32(0)) if self._version else place
            low = int(at)
            if low >= self._size and not self._version:
                raise LayerError("a sample lies outside the image, where ncnn would read")
            low = min(low, self._size - 1)
            if low + 1 >= self._size:
                share[low] = 1
            else:
                share[low : low + 2] = low + 1 - at, at - low
        return shares
