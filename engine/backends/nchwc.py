"""Images in NCHWc, as libraries have them between their operators."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["nchwc_to_nchw"]


def nchwc_to_nchw(blocks: Array, shape: tuple[int, ...]) -> Array:
    """Bring images from NCHWc into NCHW.

    Parameters
    ----------
    blocks : ndarray of shape (N, G, H, W, b)
        The numbers of b channels side by side; behind the last channel of a sample there may
        be padding.
    shape : tuple of int
        Of the result: (N, C, H, W), or another one of as many elements.

    Returns
    -------
    ndarray
        C-contiguous, of its own memory.
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
