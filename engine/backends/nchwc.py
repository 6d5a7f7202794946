"""Converts images from NCHWc, the layout that libraries use between operators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["nchwc_to_nchw"]

_CACHED: Final = 1 << 15  # bytes of a group that stay in the nearest cache


def nchwc_to_nchw(blocks: Array, shape: tuple[int, ...]) -> Array:
    """Convert images from NCHWc to NCHW.

    Parameters
    ----------
    blocks : ndarray of shape (N, G, H, W, b)
        Blocks of b channels innermost; after the last channel of a sample there may be
        padding.
    shape : tuple of int
        Shape of the result: (N, C, H, W), or another one with as many elements.

    Returns
    -------
    ndarray
        C-contiguous, in its own memory.
    """
    samples, groups, height, width, size = blocks.shape
    pixels = height * width
    ordered = np.empty((samples, groups * size, pixels), blocks.dtype)
    planes = ordered.reshape(samples, groups, size, pixels)
    packed = blocks.reshape(samples, groups, pixels, size).swapaxes(2, 3)
    # Each channel is read for itself, a pixel far from the next: so a part at a time.
    step = max(1, _CACHED // (size * blocks.itemsize))
    for begin in range(0, pixels, step):
        part = np.s_[..., begin : begin + step]
        np.copyto(planes[part], packed[part])
    channels = math.prod(shape) // (samples * pixels)
    return np.ascontiguousarray(ordered[:, :channels]).reshape(shape)
