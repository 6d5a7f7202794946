"""Normalisation and scaling of channels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import LayerError, describe_shapes
from engine.layers import normalization as torch_normalization
from engine.layers.ncnn.table import layer
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["find_trailing_axes", "per_channel"]


def per_channel(values: Array, input: Array) -> Array:
    """Reshape one number per channel, or one for all, to broadcast with the input.

    Parameters
    ----------
    values : ndarray of shape (C,) or (1,)
    input : ndarray of shape (C, ...)

    Raises
    ------
    LayerError
        If the numbers do not fit.
    """
    if values.size not in {1, input.shape[0]}:
        raise LayerError(f"{values.size} numbers do not fit {input.shape[0]} channels")
    return values.reshape(-1, *(1,) * (input.ndim - 1)).astype(np.float32)


def _require_channels(count: int, input: Array) -> None:
    if count != input.shape[0]:
        raise LayerError(f"the layer is for {count} channels, the input has {input.shape[0]}")


@layer("BatchNorm")
def batch_norm(
    input: Array,
    slope: Array,
    mean: Array,
    var: Array,
    bias: Array,
    channels: int = 0,
    eps: float = 0.0,
) -> Array:
    """Normalise each channel by stored statistics.

    ``(x - mean) / sqrt(var + eps) * slope + bias``.

    Parameters
    ----------
    input : ndarray of shape (C, ...)
    slope, mean, var, bias : ndarray of shape (C,)
    channels : int
        C.
    eps : float
    """
    _require_channels(channels, input)
    result = torch_normalization.batch_norm(input[np.newaxis], mean, var, slope, bias, eps=eps)
    return np.asarray(result[0])


@layer("Scale")
def scale(
    *inputs: Array,
    scale: Array | None = None,
    bias: Array | None = None,
    scale_data_size: int = 0,
    bias_term: int = 0,
) -> Array:
    """Multiply each channel by a factor, and add a bias.

    Parameters
    ----------
    inputs : ndarray of shape (C, ...), and the factors if there is no such weight scale, bias :
    ndarray of shape (C,), optional scale_data_size, bias_term : int
        C, and whether there is a bias.
    """
    x = inputs[0]
    factors = scale if scale is not None else inputs[1] if len(inputs) > 1 else None
    if factors is None or factors.size != x.shape[0]:
        raise LayerError(f"the factors do not fit {x.shape[0]} channels")
    result = x * per_channel(factors, x)
    return np.asarray(result if bias is None else result + per_channel(bias, x))


@layer("Bias")
def bias(input: Array, bias: Array, bias_data_size: int = 0) -> Array:
    """Add a number to each channel.

    Parameters
    ----------
    input : ndarray of shape (C, ...)
    bias : ndarray of shape (C,)
    bias_data_size : int
        C.
    """
    _require_channels(bias_data_size, input)
    return np.asarray(input + per_channel(bias, input))


def find_trailing_axes(size: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes of the last axes that hold `size` numbers: a row, a plane or a channel.

    Raises
    ------
    LayerError
        If there are none.
    """
    for count in range(1, max(2, len(shape))):
        if math.prod(shape[-count:]) == size:
            return shape[-count:]
    text = describe_shapes([shape])
    raise LayerError(f"{size} numbers fit neither a row nor a channel of {text}")


@layer("LayerNorm")
def layer_norm(
    input: Array,
    gamma: Array | None = None,
    beta: Array | None = None,
    affine_size: int = 0,
    eps: float = 0.001,
    affine: int = 1,
) -> Array:
    """Normalise each row, or each channel, by its own mean and variance.

    Parameters
    ----------
    input : ndarray of shape (..., H, W)
    gamma, beta : ndarray of shape (W,) or (H * W,), optional
    affine_size : int
        W or H * W.
    eps : float
    affine : int
        Whether there are gamma and beta.
    """
    shape = find_trailing_axes(affine_size, input.shape)
    weight, bias = _reshape_weights(shape, gamma, beta)
    return torch_normalization.layer_norm(input, shape, weight, bias, eps)


@layer("RMSNorm")
def rms_norm(
    input: Array,
    gamma: Array | None = None,
    affine_size: int = 0,
    eps: float = 0.001,
    affine: int = 1,
) -> Array:
    """Divide each row, or each channel, by the root of its mean square.

    Parameters
    ----------
    input : ndarray of shape (..., H, W)
    gamma : ndarray of shape (W,) or (H * W,), optional
    affine_size : int
        W or H * W.
    eps : float
    affine : int
        Whether there is gamma.
    """
    shape = find_trailing_axes(affine_size, input.shape)
    (weight,) = _reshape_weights(shape, gamma)
    return torch_normalization.rms_norm(input, shape, weight, eps)


def _reshape_weights(shape: Sequence[int], *weights: Array | None) -> list[Array | None]:
    return [None if weight is None else weight.reshape(shape) for weight in weights]


@layer("GroupNorm")
def group_norm(
    input: Array,
    gamma: Array | None = None,
    beta: Array | None = None,
    group: int = 1,
    channels: int = 0,
    eps: float = 0.001,
    affine: int = 1,
) -> Array:
    """Normalise groups of channels by their own mean and variance.

    Parameters
    ----------
    input : ndarray of shape (C, ...)
    gamma, beta : ndarray of shape (C,), optional
    group, channels : int
        C / group channels share mean and variance.
    eps : float
    affine : int
        Whether there are gamma and beta.
    """
    _require_channels(channels, input)
    result = torch_normalization.group_norm(input[np.newaxis], group, gamma, beta, eps)
    return np.asarray(result[0])


@layer("InstanceNorm")
def instance_norm(
    input: Array,
    gamma: Array | None = None,
    beta: Array | None = None,
    channels: int = 0,
    eps: float = 0.001,
    affine: int = 1,
) -> Array:
    """Normalise each channel by its own mean and variance.

    A matrix or a vector is one channel, with the first gamma and beta.

    Parameters
    ----------
    input : ndarray of shape (C, H, W) or (C, D, H, W), (H, W) or (W,)
    gamma, beta : ndarray of shape (C,), optional
    channels : int
        C.
    eps : float
    affine : int
        Whether there are gamma and beta.
    """
    image = input if input.ndim > 2 else input[np.newaxis]
    if affine and input.ndim > 2:
        _require_channels(channels, image)
    if affine and gamma is not None and beta is not None:
        gamma, beta = gamma[: len(image)], beta[: len(image)]
    result = torch_normalization.group_norm(image[np.newaxis], len(image), gamma, beta, eps)
    return np.asarray(result.reshape(input.shape))


@layer("MVN")
def mean_variance(
    input: Array, normalize_variance: int = 0, across_channels: int = 0, eps: float = 0.0001
) -> Array:
    """Subtract the mean of each channel or of all, and divide by the deviation.

    Parameters
    ----------
    input : ndarray of shape (C, H, W)
    normalize_variance, across_channels : int
        Whether to divide, and whether all channels share one mean.
    eps : float
        Added to the standard deviation.
    """
    axes = tuple(range(0 if across_channels else 1, input.ndim))
    result = input - input.mean(axes, keepdims=True, dtype=np.float32)
    if normalize_variance:
        deviation = np.sqrt(np.square(result).mean(axes, keepdims=True, dtype=np.float32))
        result = result / (deviation + np.float32(eps))
    return np.asarray(result)


@layer("LRN")
def local_response_norm(
    input: Array,
    region_type: int = 0,
    local_size: int = 5,
    alpha: float = 1.0,
    beta: float = 0.75,
    bias: float = 1.0,
) -> Array:
    """Divide by a power of the sum of squares of neighbouring channels, or pixels.

    Parameters
    ----------
    input : ndarray of shape (C, H, W)
    region_type : int
        0 across channels, 1 within each.
    local_size : int
        Of the neighbourhood.
    alpha, beta, bias : float
    """
    if not 1 <= local_size <= max(input.shape) * 2 or region_type not in {0, 1}:
        raise LayerError(
            f"local_size={local_size} or region_type={region_type} is out of range"
        )
    squares = np.square(input)
    axes = (0,) if region_type == 0 else (input.ndim - 2, input.ndim - 1)
    count = local_size ** len(axes)
    for axis in axes:
        squares = _window_sums(squares, axis, local_size)
    factor = np.float32(alpha / count)
    return np.asarray(input * (np.float32(bias) + factor * squares) ** np.float32(-beta))


def _window_sums(x: Array, axis: int, size: int) -> Array:
    """Sum `size` neighbours along an axis, with the number itself in the middle."""
    before = size // 2
    total = np.zeros_like(x)
    moved, target = np.moveaxis(x, axis, 0), np.moveaxis(total, axis, 0)
    for offset in range(-before, size - before):
        low, high = max(0, -offset), min(len(moved), len(moved) - offset)
        if low < high:
            target[low:high] += moved[low + offset : high + offset]
    return total


@layer("Quantize")
def quantize(input: Array, scale: Array, scale_data_size: int = 1) -> Array:
    """Multiply by a scale and round to int8.

    Parameters
    ----------
    input : ndarray of shape (C, ...)
    scale : ndarray of shape (1,) or (C,)
    scale_data_size : int

    Returns
    -------
    ndarray of int8
        From -127 to 127; halves are rounded away from 0.
    """
    return to_int8(input * per_channel(scale, input))


def to_int8(x: Array) -> Array:
    """Round to int8, halves away from 0, limited to -127 to 127."""
    rounded = np.copysign(np.floor(np.abs(x) + np.float32(0.5)), x)
    return np.clip(rounded, -127, 127).astype(np.int8)


@layer("Dequantize")
def dequantize(
    input: Array,
    scale: Array,
    bias: Array | None = None,
    scale_data_size: int = 1,
    bias_data_size: int = 0,
) -> Array:
    """Multiply integers by a scale, and add a bias.

    Parameters
    ----------
    input : ndarray of shape (C, ...)
    scale : ndarray of shape (1,) or (C,)
    bias : ndarray of shape (1,) or (C,), optional
    scale_data_size, bias_data_size : int
    """
    result = input.astype(np.float32) * per_channel(scale, input)
    return np.asarray(result if bias is None else result + per_channel(bias, input))


@layer("Normalize")
def normalize(
    input: Array,
    scale: Array,
    across_spatial: int = 0,
    channel_shared: int = 0,
    eps: float = 0.0001,
    scale_data_size: int = 0,
    across_channel: int = 1,
    eps_mode: int = 0,
) -> Array:
    """Divide by the length of a vector, and multiply each channel by a factor.

    Parameters
    ----------
    input : ndarray of shape (C, ...)
    scale : ndarray of shape (C,) or (1,)
    across_spatial, across_channel : int
        Whether the vector has the elements of a channel, of a position, or all.
    channel_shared : int
        Whether there is one factor.
    eps : float
    scale_data_size : int
        C, or 1.
    eps_mode : int
        How `eps` keeps the length ``sqrt(s)`` from 0: 0 ``sqrt(s + eps)``, 1
        ``max(sqrt(s), eps)``, 2 ``sqrt(max(s, eps))``.
    """
    channels = len(input) if input.ndim > 2 else 1
    if not (across_spatial or across_channel):
        return input
    if not channel_shared and scale.size < channels:
        raise LayerError(f"{scale.size} factors do not fit {channels} channels")
    x = input.reshape(channels, -1)
    axes = tuple(axis for axis, across in enumerate((across_channel, across_spatial)) if across)
    total = np.square(x).sum(axes, keepdims=True)
    limit = np.float32(eps)
    if eps_mode == 0:
        length = np.sqrt(total + limit)
    elif eps_mode == 1:
        length = np.maximum(np.sqrt(total), limit)
    else:
        length = np.sqrt(np.maximum(total, limit))
    factors = scale[:1] if channel_shared else scale[:channels]
    return np.asarray(x / length * factors[:, np.newaxis]).reshape(input.shape)
