"""Layers of one's own for the operators of contrast.pnnx.param: an example to start from.

    kuiper-studio samples/layers/contrast.pnnx.param --layers samples/layers/my_layers.py \
        --input samples/unet/scene_1.png
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from engine.errors import LayerError, ParameterError
from engine.layers import Layer, register
from engine.values import Array


@register("contrast_net.Squash")
def squash(input: Array, steepness: float = 2.0) -> Array:
    """Squash to between -1 and 1: ``s * x / (1 + abs(s * x))``.

    Parameters
    ----------
    input : ndarray of any shape
    steepness : float
        The slope at 0; this model's file does not give it.

    Returns
    -------
    ndarray of the input's shape
    """
    x = steepness * input
    return x / (1 + np.abs(x))


@register("contrast_net.LocalContrast")
class LocalContrast(Layer):
    """Each value less the mean around it, divided by the spread around it.

    ``gain * (x - mean) / sqrt(mean of (x - mean) ** 2 + eps)``; means are over windows of
    `size` x `size` values, of which only those inside the image count.

    Parameters
    ----------
    gain : ndarray of shape (C,)
        Factor of each channel.
    size : int
        Rows and columns of a window; odd.
    eps : float
        Keeps the divisor from 0 where nothing differs.
    """

    def __init__(self, gain: Array, size: int = 9, eps: float = 1e-3) -> None:
        if size % 2 == 0:
            raise ParameterError("size", f"size={size} is even, so a window has no middle")
        self._gain = gain.reshape(-1, 1, 1)
        self._size, self._eps = size, eps

    def forward(self, input: Array) -> Array:
        """Compute the output from an input of shape (N, C, H, W), which may not be changed."""
        if input.ndim != 4 or input.shape[1] != len(self._gain):
            raise LayerError(f"the input is not an image of {len(self._gain)} channels")
        difference = input - self._around(input)
        spread = np.sqrt(self._around(difference**2) + np.float32(self._eps))
        return self._gain * difference / spread

    def _around(self, x: Array) -> Array:
        """Mean of the window around each value."""
        count = self._sums(np.ones_like(x[:1, :1]))
        return self._sums(x) / count

    def _sums(self, x: Array) -> Array:
        half = self._size // 2
        padded = np.pad(x, ((0, 0), (0, 0), (half, half), (half, half)))
        windows = sliding_window_view(padded, (self._size, self._size), axis=(2, 3))
        return windows.sum(axis=(4, 5))
