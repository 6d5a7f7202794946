"""Sampling an image at positions of a grid, and affine grids.

Positions are normalised: -1 and 1 are the image's edges, or with ``align_corners`` the
centres of its corner pixels. The last axis of a grid holds x, y (and z), in this order,
while the image's spatial axes are (D,) H, W.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import as_ints
from engine.layers.layer import Ints
from engine.layers.registry import register
from engine.layers.resampling import cubic_kernel
from engine.layers.windows import new_output, working_dtype
from engine.values import Array

if TYPE_CHECKING:
    from engine.promotion import DType

__all__ = ["affine_grid", "grid_sample", "sample_pixels"]

# PyTorch's numbers, which traced graphs have, and ONNX's names for the same.
_MODES: Final[dict[int | str, str]] = {
    0: "bilinear", 1: "nearest", 2: "bicubic", "linear": "bilinear", "cubic": "bicubic",
}  # fmt: skip
_PADDING_MODES: Final[dict[int | str, str]] = {0: "zeros", 1: "border", 2: "reflection"}

_FARTHEST: Final = 1 << 30  # a position so far outside is as good as any farther one


@register("F.affine_grid", "aten::affine_grid_generator")
def affine_grid(theta: Array, size: Ints | Array, align_corners: bool | None = None) -> Array:
    """Where an affine map puts the positions of an image: ``F.affine_grid``.

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
    """Take an image's values at given positions: ``F.grid_sample``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H, W) or (N, C, D, H, W)
    grid : ndarray of shape (N, H', W', 2) or (N, D', H', W', 3)
    mode : str
        ``bilinear`` (of eight neighbours in three dimensions), ``nearest`` or ``bicubic``.
    padding_mode : str
        What is outside of the image: ``zeros``, ``border`` (the nearest pixel) or
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
    if method not in _METHODS or (method == "bicubic" and rank != 2):
        raise LayerError(f"mode {mode} does not sample an image of {rank} spatial axes")
    if padding not in _PADDING_MODES.values():
        raise LayerError(f"padding_mode {padding_mode} is none of zeros, border, reflection")
    dtype = working_dtype(input.dtype)
    axes = [
        _Axis(size, padding, bool(align_corners), _pixels(grid, place, size, align_corners))
        for place, size in zip(range(rank - 1, -1, -1), input.shape[2:], strict=True)
    ]
    counts = grid.shape[1:-1]
    output = new_output((*input.shape[:2], math.prod(counts)), dtype)
    for number, image in enumerate(input):
        own = [axis.of_sample(number) for axis in axes]
        output[number] = _METHODS[method](_with_outside(image, dtype), own)
    return output.reshape(*input.shape[:2], *counts).astype(input.dtype, copy=False)


def sample_pixels(image: Array, rows: Array, columns: Array) -> Array:
    """Take an image's values between its pixels, bilinearly; 0 outside.

    Parameters
    ----------
    image : ndarray of shape (C, H, W)
    rows, columns : ndarray of shape (P,)
        Of the image's dtype.

    Returns
    -------
    ndarray of shape (C, P)
        A new array.
    """
    axes = [
        _Axis(size, "zeros", align_corners=True, pixels=pixels)
        for size, pixels in zip(image.shape[1:], (rows, columns), strict=True)
    ]
    return _linear(_with_outside(image, image.dtype), axes)


def _with_outside(image: Array, dtype: DType) -> Array:
    """Flatten (C, H, W) to (C, H * W + 1): one more position, 0, for all that is outside."""
    flat = image.astype(dtype, copy=False).reshape(len(image), -1)
    return np.concatenate([flat, np.zeros((len(flat), 1), dtype)], 1)


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
    if 0 in input.shape[2:]:
        raise LayerError("the image has no pixels", InferStatus.kInferInputsEmpty)


def _pixels(grid: Array, place: int, size: int, align_corners: bool | None) -> Array:
    """Coordinates along one axis in pixels, of shape (N, positions)."""
    x = grid[..., place].reshape(len(grid), -1)
    x = x.astype(working_dtype(grid.dtype), copy=False)
    pixels: Array = (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2
    return pixels


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial axis of an image and where it is sampled.

    Attributes
    ----------
    size : int
    padding : str
    align_corners : bool
    pixels : ndarray of shape (N, P), or (P,) for one sample
    """

    size: int
    padding: str
    align_corners: bool
    pixels: Array

    def of_sample(self, number: int) -> _Axis:
        """The same for one sample."""
        return _Axis(self.size, self.padding, self.align_corners, self.pixels[number])

    def inside(self, pixels: Array) -> Array:
        """Move coordinates into the image as the padding says; (P,)."""
        last = self.size - 1
        if self.padding == "reflection":
            low, span = (0.0, last) if self.align_corners else (-0.5, self.size)
            pixels = _reflected(pixels, low, span)
        if self.padding != "zeros":
            pixels = np.clip(pixels, 0, last)
        pixels = np.where(np.isnan(pixels), -_FARTHEST, pixels)
        return np.clip(pixels, -_FARTHEST, _FARTHEST)

    def index(self, pixels: Array) -> tuple[Array, Array]:
        """Whole coordinates as indices, and whether they are in the image; (P,)."""
        whole = pixels.astype(np.int64)
        return whole, (whole >= 0) & (whole < self.size)


def _reflected(pixels: Array, low: float, span: float) -> Array:
    """Mirror coordinates at `low` and `low + span` as often as it takes."""
    if span == 0:
        return np.zeros_like(pixels)
    distance = np.abs(pixels - pixels.dtype.type(low))
    extra = np.fmod(distance, pixels.dtype.type(span))
    odd = np.floor(distance / pixels.dtype.type(span)) % 2 == 1
    mirrored: Array = np.where(odd, span - extra, extra).astype(pixels.dtype)
    mirrored += pixels.dtype.type(low)
    return mirrored


def _taken(flat: Array, axes: list[_Axis], corner: tuple[Array, ...]) -> Array:
    """Values at whole coordinates, 0 outside of the image; (C, P)."""
    places = np.zeros(corner[0].shape, np.int64)
    valid = np.ones(corner[0].shape, np.bool_)
    for axis, pixels in zip(axes, corner, strict=True):
        index, inside = axis.index(pixels)
        places = places * axis.size + index
        valid &= inside
    return np.take(flat, np.where(valid, places, flat.shape[1] - 1), axis=1)


def _mixed(
    flat: Array, axes: list[_Axis], neighbours: list[list[tuple[Array, Array]]]
) -> Array:
    """Sum of the values at all combinations of neighbours, weighted; (C, P).

    `neighbours` are coordinates and weights for each axis.
    """
    total: Array = np.zeros((len(flat), len(axes[0].pixels)), flat.dtype)
    for combination in itertools.product(*neighbours):
        weight = math.prod(share for _, share in combination)
        total += _taken(flat, axes, tuple(p for p, _ in combination)) * weight
    return total


def _nearest(flat: Array, axes: list[_Axis]) -> Array:
    return _taken(flat, axes, tuple(np.rint(axis.inside(axis.pixels)) for axis in axes))


def _linear(flat: Array, axes: list[_Axis]) -> Array:
    neighbours = []
    for axis in axes:
        pixels = axis.inside(axis.pixels)
        lower = np.floor(pixels)
        share = (pixels - lower).astype(flat.dtype)
        neighbours.append([(lower, 1 - share), (lower + 1, share)])
    return _mixed(flat, axes, neighbours)


def _cubic(flat: Array, axes: list[_Axis]) -> Array:
    neighbours = []
    for axis in axes:
        lower = np.floor(axis.pixels)
        share = axis.pixels - lower
        neighbours.append(
            [
                (axis.inside(lower + offset), cubic_kernel(share - offset).astype(flat.dtype))
                for offset in range(-1, 3)
            ]
        )
    return _mixed(flat, axes, neighbours)


_METHODS: Final[dict[str, Callable[[Array, list[_Axis]], Array]]] = {
    "nearest": _nearest,
    "bilinear": _linear,
    "bicubic": _cubic,
}
