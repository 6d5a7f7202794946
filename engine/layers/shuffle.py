"""Operators that move elements between channels, and between channels and pixels."""

from __future__ import annotations

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.registry import register
from engine.values import Array

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]


@register("nn.ChannelShuffle", "F.channel_shuffle", "torch.channel_shuffle")
@register("aten::channel_shuffle")
def channel_shuffle(input: Array, groups: int) -> Array:
    """Interleave groups of channels: ``nn.ChannelShuffle``.

    Channel ``c`` of group ``g`` becomes channel ``c * groups + g``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
    groups : int
        Divides C.

    Returns
    -------
    ndarray of shape (N, C, ...)
        A copy, unless there is one group.
    """
    if input.ndim < 3:
        raise LayerError(f"shape {describe_shapes([input.shape])} has no channels to shuffle")
    count, channels, *rest = input.shape
    _require_divisible(channels, groups, "channels", "groups")
    grouped = input.reshape(count, groups, channels // groups, *rest)
    return grouped.swapaxes(1, 2).reshape(input.shape)


@register("nn.PixelShuffle", "F.pixel_shuffle", "torch.pixel_shuffle", "aten::pixel_shuffle")
def pixel_shuffle(input: Array, upscale_factor: int) -> Array:
    """Rearrange channels into blocks of r x r pixels: ``nn.PixelShuffle``.

    Parameters
    ----------
    input : ndarray of shape (..., C * r * r, H, W)
    upscale_factor : int
        r, at least 1.

    Returns
    -------
    ndarray of shape (..., C, H * r, W * r)
        A copy, unless r is 1.
    """
    *batch, channels, rows, cols = _pixels_of(input)
    r = upscale_factor
    _require_divisible(channels, r * r, "channels", "pixels")
    split = input.reshape(*batch, channels // (r * r), r, r, rows, cols)
    b = len(batch)
    moved = split.transpose(*range(b + 1), b + 3, b + 1, b + 4, b + 2)
    return moved.reshape(*batch, channels // (r * r), rows * r, cols * r)


@register(
    *("nn.PixelUnshuffle", "F.pixel_unshuffle"),
    *("torch.pixel_unshuffle", "aten::pixel_unshuffle"),
)
def pixel_unshuffle(input: Array, downscale_factor: int) -> Array:
    """Rearrange blocks of r x r pixels into channels: ``nn.PixelUnshuffle``.

    Parameters
    ----------
    input : ndarray of shape (..., C, H * r, W * r)
    downscale_factor : int
        r, at least 1.

    Returns
    -------
    ndarray of shape (..., C * r * r, H, W)
        A copy, unless r is 1.
    """
    *batch, channels, rows, cols = _pixels_of(input)
    r = downscale_factor
    _require_divisible(rows, r, "rows", "pixels")
    _require_divisible(cols, r, "columns", "pixels")
    split = input.reshape(*batch, channels, rows // r, r, cols // r, r)
    b = len(batch)
    moved = split.transpose(*range(b + 1), b + 2, b + 4, b + 1, b + 3)
    return moved.reshape(*batch, channels * r * r, rows // r, cols // r)


def _pixels_of(array: Array) -> tuple[int, ...]:
    if array.ndim < 3:
        raise LayerError(f"shape {describe_shapes([array.shape])} has no channels and pixels")
    return array.shape


def _require_divisible(count: int, divisor: int, counted: str, parts: str) -> None:
    if divisor < 1 or count % divisor:
        raise LayerError(
            f"{count} {counted} cannot be divided into {parts} by {divisor}",
            InferStatus.kInferArraySizeMismatch,
        )
