"""Converts images from NCHWc, the layout that libraries use between operators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["nchwc_to_nchw"]


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
    np.copyto(
        ordered.reshape(samples, groups, size, pixels),
        blocks.reshape(samples, groups, pixels, size).swapaxes(2, 3),
    )
    channels = math.prod(shape) // (samples * pixels)
    return np.ascontiguousarray(ordered[:, :channels]).reshape(shape)
