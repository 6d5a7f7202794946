"""Sampling an image at positions of a grid, and affine grids.

Positions are normalised: -1 and 1 are the image's edges, or with ``align_corners`` the
centres of its corner pixels. The last axis of a grid holds x, y (and z), in this order,
while the image's spatial axes are (D,) H, W.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import as_ints
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.layers.resampling import cubic_kernel
from engine.layers.windows import blocks, new_output, working_dtype
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from engine.promotion import DType

__all__ = ["Neighbour", "affine_grid", "find_neighbours", "grid_sample", "sample_pixels"]

# Modes by PyTorch's number in traced graphs, and by ONNX's name.
_MODES: Final[dict[int | str, str]] = {
    0: "bilinear", 1: "nearest", 2: "bicubic", "linear": "bilinear", "cubic": "bicubic",
}  # fmt: skip
_PADDING_MODES: Final[dict[int | str, str]] = {0: "zeros", 1: "border", 2: "reflection"}

_FARTHEST: Final = 1 << 30  # positions are limited to this, far outside any image

_TAPS: Final = {"nearest": 1, "bilinear": 2, "bicubic": 4}  # along each axis
_WORKED_OUT: Final = 24  # temporary numbers per position, besides its values
_CHUNK: Final = 1 << 22  # bytes of one block, which fit into a cache
_EVERYWHERE: Final = np.ones((), np.bool_)
_ALONE: Final = 1 << 15  # samples with at least so many elements are processed one by one


@register("F.affine_grid", "aten::affine_grid_generator")
def affine_grid(theta: Array, size: Ints | Array, align_corners: bool | None = None) -> Array:
    """Positions of an image under an affine map: ``F.affine_grid``.

    Parameters
    ----------
    theta : ndarray of shape (N, 2, 3) or (N, 3, 4)
        Matrices of the maps, the shift in the last column.
    size : tuple of int
        (N, C, H, W) or (N, C, D, H, W).
    align_corners : bool
        Whether -1 and 1 are the centres of the outermost pixels, rather than their edges.

    Returns
    -------
    ndarray of shape (N, H, W, 2) or (N, D, H, W, 3)
    """
    sizes = as_ints(size, "size")
    rank = len(sizes) - 2
    if rank not in {2, 3} or theta.shape != (sizes[0], rank, rank + 1):
        raise LayerError(
            f"maps of shape {describe_shapes([theta.shape])} do not fit an image of shape "
            f"{describe_shapes([sizes])}",
            InferStatus.kInferArraySizeMismatch,
        )
    work = working_dtype(theta.dtype)
    maps = theta.astype(work, copy=False)
    grid = new_output((sizes[0], *sizes[2:], rank), work)
    grid[:] = maps[:, :, rank].reshape(-1, *(1,) * rank, rank)
    for place, count in enumerate(sizes[:1:-1]):  # x belongs to the last axis
        line = np.linspace(-1, 1, count) if count > 1 else np.zeros(count)
        if not align_corners:
            line *= (count - 1) / max(count, 1)
        column = line.astype(work).reshape(-1, *(1,) * (place + 1))
        grid += column * maps[:, :, place].reshape(-1, *(1,) * rank, rank)
    return grid.astype(theta.dtype, copy=False)


@register(
    *("F.grid_sample", "aten::grid_sampler"),
    *("torch.grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d"),
)
def grid_sample(
    input: Array,
    grid: Array,
    mode: str | int = "bilinear",
    padding_mode: str | int = "zeros",
    align_corners: bool | None = None,
) -> Array:
    """Sample an image at given positions: ``F.grid_sample``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H, W) or (N, C, D, H, W)
    grid : ndarray of shape (N, H', W', 2) or (N, D', H', W', 3)
    mode : str
        ``bilinear`` (of eight neighbours in three dimensions), ``nearest`` or ``bicubic``.
    padding_mode : str
        Values outside the image: ``zeros``, ``border`` (the nearest pixel) or
        ``reflection``.
    align_corners : bool
        Whether -1 and 1 are the centres of the outermost pixels, rather than their edges.

    Returns
    -------
    ndarray of shape (N, C, H', W') or (N, C, D', H', W')
    """
    method = _MODES.get(mode, str(mode))
    padding = _PADDING_MODES.get(padding_mode, str(padding_mode))
    rank = input.ndim - 2
    _require_fit(input, grid)
    if method not in _TAPS or (method == "bicubic" and rank != 2):
        raise LayerError(f"mode {mode} does not sample an image of {rank} spatial axes")
    if padding not in _PADDING_MODES.values():
        raise LayerError(f"padding_mode {padding_mode} is not one of zeros, border, reflection")
    work = working_dtype(input.dtype)
    counts = grid.shape[1:-1]
    positions = grid.reshape(len(grid), math.prod(counts), rank)
    output = new_output((*input.shape[:2], positions.shape[1]), work)
    source = _Source(input, work, method)
    axes = [
        _Axis(size, padding, align_corners=bool(align_corners), exact=rank == 2)
        for size in input.shape[2:]
    ]
    for samples, part in source.parts(output.shape):
        # The last coordinate of a position is along the image's first axis.
        columns = np.moveaxis(positions[samples, part, ::-1], -1, 0)
        pixels = [axis.pixels(column) for axis, column in zip(axes, columns, strict=True)]
        output[samples, :, part] = source.sampled(samples, axes, pixels)
    return output.reshape(*input.shape[:2], *counts).astype(input.dtype, copy=False)


def find_neighbours(
    sizes: Sequence[int],
    grid: Array,
    mode: str | int,
    padding_mode: str | int,
    *,
    align_corners: bool,
) -> list[list[Neighbour]]:
    """Return the pixels that positions are sampled from, and their weights.

    Parameters
    ----------
    sizes : sequence of int
        Of the image's spatial axes.
    grid : ndarray of shape (P, number of axes)
        Normalised positions.
    mode, padding_mode, align_corners
        As in ``F.grid_sample``.

    Returns
    -------
    list of list of Neighbour
        For each axis of the image; arrays of shape (P,) or ().
    """
    method = _MODES.get(mode, str(mode))
    padding = _PADDING_MODES.get(padding_mode, str(padding_mode))
    axes = [
        _Axis(size, padding, align_corners=align_corners, exact=len(sizes) == 2)
        for size in sizes
    ]
    columns = np.moveaxis(grid[:, ::-1], -1, 0)
    return [
        _NEIGHBOURS[method](axis, axis.pixels(column))
        for axis, column in zip(axes, columns, strict=True)
    ]


def sample_pixels(images: Array, rows: Array, columns: Array) -> Array:
    """Sample images bilinearly; 0 outside.

    Parameters
    ----------
    images : ndarray of shape (N, C, H, W)
    rows, columns : ndarray of shape (N, P)
        Of the images' dtype, in pixels.

    Returns
    -------
    ndarray of shape (N, C, P)
        A new array.
    """
    axes = [_Axis(size, "zeros", align_corners=True, exact=False) for size in images.shape[2:]]
    output = new_output((*images.shape[:2], rows.shape[1]), images.dtype)
    source = _Source(images, images.dtype, "bilinear")
    for samples, part in source.parts(output.shape):
        pixels = [rows[samples, part], columns[samples, part]]
        output[samples, :, part] = source.sampled(samples, axes, pixels)
    return output


def _require_fit(input: Array, grid: Array) -> None:
    rank = input.ndim - 2
    if rank not in {2, 3} or (
        grid.ndim != input.ndim or grid.shape[-1] != rank or len(grid) != len(input)
    ):
        raise LayerError(
            f"input and grid do not fit: their shapes are "
            f"{describe_shapes([input.shape, grid.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    if input.dtype.kind != "f":
        raise LayerError(f"the image is of {input.dtype}, and its pixels cannot be weighted")
    if 0 in input.shape[2:]:
        raise LayerError("the image has no pixels", InferStatus.kInferInputsEmpty)


class Neighbour(NamedTuple):
    """A neighbouring pixel of each position along one axis; all arrays of shape (n, P).

    Attributes
    ----------
    place : int64 ndarray
        Index of the pixel, clipped to the image.
    share : ndarray
        Weight of the pixel.
    inside : bool ndarray
        Whether the pixel is inside the image.
    """

    place: Array
    share: Array
    inside: Array

    def weighed(self) -> Neighbour:
        """Return the neighbours with weight 0 outside the image."""
        return Neighbour(self.place, self.share * self.inside, _EVERYWHERE)


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial axis of an image, and its padding.

    Attributes
    ----------
    size : int
    padding : str
    align_corners : bool
    exact : bool
        Whether a position that is not finite gives NaN, as in PyTorch's vectorised code for two
        dimensions. If not, it counts as outside, as in PyTorch's loops for three.
    """

    size: int
    padding: str
    align_corners: bool
    exact: bool

    def pixels(self, x: Array) -> Array:
        """Convert coordinates from -1 to 1 to pixels."""
        x = x.astype(working_dtype(x.dtype), copy=False)
        scaled: Array = x + 1
        if self.align_corners:
            scaled *= (self.size - 1) / 2
        else:
            scaled *= self.size / 2
            scaled -= 0.5
        return scaled

    def padded(self, pixels: Array) -> Array:
        """Move coordinates into the image according to the padding."""
        last = self.size - 1
        if self.padding == "reflection":
            low, span = (0.0, last) if self.align_corners else (-0.5, self.size)
            pixels = _reflect(pixels, low, span)
        if self.padding != "zeros":
            if self.exact:
                return np.fmin(np.fmax(pixels, 0), last)  # NaN becomes the first pixel
            return np.fmax(np.fmin(pixels, last), 0)  # NaN becomes the last pixel
        if not math.isfinite(pixels.sum(dtype=np.float64)):
            other = np.nan if self.exact else -_FARTHEST
            pixels = np.where(np.isfinite(pixels), pixels, other)
        return pixels

    def neighbour(self, whole: Array, share: Array) -> Neighbour:
        """Return the pixel at integer coordinates."""
        nearest = np.fmin(np.fmax(whole, 0), self.size - 1)
        return Neighbour(nearest.astype(np.intp), share, nearest == whole)

    def pair(self, pixels: Array) -> tuple[Array, list[Array]]:
        """Return the first of two neighbouring pixels, and the weight of each.

        The second weight is missing if the axis has one pixel. The pixels are always in the
        image. For a position outside, the weights of the nearest pixels decrease to 0.
        """
        pixels = self.padded(pixels)
        first = np.clip(np.floor(pixels), 0, max(self.size - 2, 0))
        beyond = pixels - first
        shares = []
        for _ in range(min(self.size, 2)):
            share = np.abs(beyond)
            np.subtract(1, share, out=share)
            shares.append(np.maximum(share, 0, out=share))
            beyond -= 1
        return first.astype(np.intp), shares


def _reflect(pixels: Array, low: float, span: float) -> Array:
    """Reflect coordinates at `low` and `low + span` until they are between them."""
    if span == 0:
        return np.zeros_like(pixels)
    distance = np.abs(pixels - low)
    distance -= np.floor(distance / (2 * span)) * (2 * span)
    mirrored: Array = np.minimum(distance, 2 * span - distance)
    mirrored += low
    return mirrored


def _nearest(axis: _Axis, pixels: Array) -> list[Neighbour]:
    return [axis.neighbour(np.rint(axis.padded(pixels)), np.ones(()))]


def _linear(axis: _Axis, pixels: Array) -> list[Neighbour]:
    pixels = axis.padded(pixels)
    lower = np.floor(pixels)
    share = pixels - lower
    return [axis.neighbour(lower, 1 - share), axis.neighbour(lower + 1, share)]


def _cubic(axis: _Axis, pixels: Array) -> list[Neighbour]:
    lower = np.floor(pixels)
    share = pixels - lower
    return [
        axis.neighbour(axis.padded(lower + offset), cubic_kernel(share - offset))
        for offset in range(-1, 3)
    ]


_NEIGHBOURS: Final[dict[str, Callable[[_Axis, Array], list[Neighbour]]]] = {
    "nearest": _nearest,
    "bilinear": _linear,
    "bicubic": _cubic,
}


class _Source:
    """Reads pixels of images by index.

    Parameters
    ----------
    images : ndarray of shape (N, C, ...)
    dtype : dtype
        Dtype to compute in.
    method : str
    """

    def __init__(self, images: Array, dtype: DType, method: str) -> None:
        self._method, self._dtype, self._sizes = method, dtype, images.shape[2:]
        area = math.prod(self._sizes)
        self._planes = np.arange(images.shape[1]).reshape(-1, 1) * area
        pixels = np.ascontiguousarray(images, dtype)
        self._images: Array = pixels.reshape(*images.shape[:2], area)
        self._pixels: Array = pixels.reshape(-1)

    def parts(self, shape: tuple[int, ...]) -> Iterator[tuple[slice, slice]]:
        """Split an output (N, C, P) into blocks of samples, or of positions of one sample."""
        samples, channels, positions = shape
        if not math.prod(shape):
            return
        nbytes = (6 * channels + _WORKED_OUT) * self._dtype.itemsize
        limit = _CHUNK if channels * positions < _ALONE else min(_CHUNK, nbytes * positions)
        for part in blocks((samples, positions), nbytes, limit):
            yield part[0], part[1]

    def sampled(self, samples: slice, axes: Sequence[_Axis], pixels: Sequence[Array]) -> Array:
        """Sample at positions, given in pixels along each axis; (n, C, P)."""
        pairs = list(zip(axes, pixels, strict=True))
        exact = self._method == "nearest"
        if self._method == "bilinear":
            values = self._interpolate_neighbours(samples, pairs)
        else:
            values = self._interpolate(samples, pairs, exact=exact)
        # Results that are not finite may come from pixels with weight 0 or outside the image.
        if not (exact or math.isfinite(values.sum(dtype=np.float64))):
            values = self._interpolate(samples, pairs, exact=True)
        return values

    def _interpolate_neighbours(
        self, samples: slice, pairs: list[tuple[_Axis, Array]]
    ) -> Array:
        """Interpolate between neighbouring pixels."""
        places, shares = self._origins(samples), []
        for axis, pixels in pairs:
            first, own = axis.pair(pixels)
            places = places * axis.size + first
            shares.append(own)

        def reached(depth: int, step: int) -> Array:
            if depth == len(shares):
                return self._values(samples, places, step)
            step *= self._sizes[depth]
            own = shares[depth]
            return self._sum_weighted(
                (reached(depth + 1, step + more) for more in range(len(own))), own
            )

        return reached(0, 0)

    def _interpolate(
        self, samples: slice, pairs: list[tuple[_Axis, Array]], *, exact: bool
    ) -> Array:
        """Interpolate between any pixels; `exact` ignores values of pixels outside."""
        neighbours = [_NEIGHBOURS[self._method](*pair) for pair in pairs]
        if not exact:
            neighbours = [[one.weighed() for one in found] for found in neighbours]

        def reached(depth: int, places: Array, inside: Array) -> Array:
            if depth == len(neighbours):
                values = self._values(samples, places)
                if inside.all():
                    return values
                return np.where(inside[:, np.newaxis], values, self._dtype.type(0))
            places = places * self._sizes[depth]
            found = neighbours[depth]
            return self._sum_weighted(
                (reached(depth + 1, places + n.place, inside & n.inside) for n in found),
                [n.share for n in found],
            )

        return reached(0, self._origins(samples), _EVERYWHERE)

    def _sum_weighted(self, values: Iterable[Array], shares: Sequence[Array]) -> Array:
        """Sum values times their weights, reusing the memory of the values."""
        total: Array | None = None
        for value, share in zip(values, shares, strict=True):
            if share.ndim:  # otherwise it is 1
                np.multiply(value, share[:, np.newaxis], out=value, casting="same_kind")
            total = value if total is None else np.add(total, value, out=total)
        return np.asarray(total)

    def _origins(self, samples: slice) -> Array:
        """Index of the first pixel of each sample in all images; (n, 1)."""
        if samples.stop - samples.start == 1:
            return np.zeros((1, 1), np.intp)  # a single image is indexed directly
        return np.arange(samples.start, samples.stop).reshape(-1, 1) * len(self._planes)

    def _values(self, samples: slice, places: Array, step: int = 0) -> Array:
        """Read pixels at indices (n, P), plus `step`, of all channels; (n, C, P).

        The index of a NaN position may be wrong; its weights are NaN too.
        """
        taken: Array
        if samples.stop - samples.start == 1:
            taken = self._images[samples].take(places[0] + step, 2, mode="clip")
        else:
            taken = self._pixels[step:].take(places[:, np.newaxis] + self._planes, mode="clip")
        return taken
