"""Normalisations of ONNX, whose weights are operands."""

from __future__ import annotations

from typing import Final

import numpy as np

from engine.layers.arguments import axes_of, axis_of, cast
from engine.layers.layer import Ints, Outputs
from engine.layers.linear_algebra import det
from engine.layers.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    local_response_norm,
)
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.values import Array

__all__ = ["layer_normalization"]

register("Det")(det)


@register("BatchNormalization")
def batch_normalization(
    x: Array,
    scale: Array,
    b: Array,
    input_mean: Array,
    input_var: Array,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    spatial: int = 1,
) -> Array | Outputs:
    """Normalise each channel by given statistics: ONNX ``BatchNormalization``.

    Parameters
    ----------
    x : ndarray of shape (N, C, ...)
    scale, b : ndarray of shape (C,)
        Scale and shift of the normalised values.
    input_mean, input_var : ndarray of shape (C,)
    epsilon : float
        Added to the variance.
    momentum : float
        Weight of the old statistics in the new ones.
    training_mode : int
        Whether to use the input's own statistics.
    spatial : int
        No effect.

    Returns
    -------
    ndarray of shape (N, C, ...)
    ndarray of shape (C,)
        New mean, in training.
    ndarray of shape (C,)
        New variance, in training.
    """
    result = batch_norm(x, input_mean, input_var, scale, b, bool(training_mode), eps=epsilon)
    if not training_mode:
        return result
    others = (0, *range(2, x.ndim))
    return Outputs(
        (
            result,
            cast(input_mean * momentum + x.mean(others) * (1 - momentum), input_mean.dtype),
            cast(input_var * momentum + x.var(others) * (1 - momentum), input_var.dtype),
        )
    )


@register("InstanceNormalization")
def instance_normalization(
    input: Array, scale: Array, b: Array, epsilon: float = 1e-5
) -> Array:
    """Normalise each channel of each sample: ONNX ``InstanceNormalization``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...)
    scale, b : ndarray of shape (C,)
        Scale and shift of the normalised values.
    epsilon : float
        Added to the variance.

    Returns
    -------
    ndarray of shape (N, C, ...)
    """
    return instance_norm(input, weight=scale, bias=b, eps=epsilon)


@register("GroupNormalization")
def group_normalization(
    x: Array,
    scale: Array,
    bias: Array,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Array:
    """Normalise groups of channels of each sample: ONNX ``GroupNormalization``.

    Parameters
    ----------
    x : ndarray of shape (N, C, ...)
    scale, bias : ndarray of shape (C,), or (num_groups,) before opset 21
        Scale and shift of the normalised values.
    num_groups : int
        C / num_groups channels share their statistics.
    epsilon : float
        Added to the variance.
    stash_type : int
        No effect: statistics are computed in float32 at least.

    Returns
    -------
    ndarray of shape (N, C, ...)
    """
    repeats = x.shape[1] // max(scale.size, 1)
    return group_norm(
        x, num_groups, np.repeat(scale, repeats), np.repeat(bias, repeats), epsilon
    )


@register("LayerNormalization")
def layer_normalization(
    x: Array,
    scale: Array,
    b: Array | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Outputs:
    """Normalise over the last axes: ONNX ``LayerNormalization``.

    Parameters
    ----------
    x : ndarray of shape (A..., S...)
    scale, b : ndarray that broadcasts to the input
        Scale and shift of the normalised values.
    axis : int
        The first dimension of S.
    epsilon : float
        Added to the variance.
    stash_type : int
        No effect: statistics are computed in float32 at least.

    Returns
    -------
    ndarray of shape (A..., S...)
    ndarray of shape (A..., 1...)
        Mean.
    ndarray of shape (A..., 1...)
        Reciprocal of the standard deviation.
    """
    axes = tuple(range(axis_of(axis, x.ndim, "axis"), x.ndim))
    wide = x.astype(working_dtype(x.dtype), copy=False)
    mean = wide.mean(axes, keepdims=True)
    deviation = wide - mean
    inverse = 1 / np.sqrt(np.square(deviation).mean(axes, keepdims=True) + epsilon)
    result = deviation * inverse * scale
    if b is not None:
        result = result + b
    return Outputs((cast(np.asarray(result), x.dtype), mean, inverse.astype(mean.dtype)))


@register("RMSNormalization")
def rms_normalization(
    x: Array, scale: Array, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Array:
    """Divide by the root mean square of the last axes: ONNX ``RMSNormalization``.

    Parameters
    ----------
    x : ndarray of shape (A..., S...)
    scale : ndarray that broadcasts to the input
        Scale of the normalised values.
    axis : int
        The first dimension of S.
    epsilon : float
        Added to the mean square.
    stash_type : int
        No effect: statistics are computed in float32 at least.

    Returns
    -------
    ndarray of shape (A..., S...)
    """
    axes = tuple(range(axis_of(axis, x.ndim, "axis"), x.ndim))
    wide = x.astype(working_dtype(x.dtype), copy=False)
    inverse = 1 / np.sqrt(np.square(wide).mean(axes, keepdims=True) + epsilon)
    return cast(np.asarray(wide * inverse * scale), x.dtype)


@register("LpNormalization")
def lp_normalization(input: Array, axis: int = -1, p: int = 2) -> Array:
    """Divide by the norm along an axis: ONNX ``LpNormalization``.

    Parameters
    ----------
    input : ndarray of any shape
    axis : int
        Dimension to compute along.
    p : int
        1 or 2.

    Returns
    -------
    ndarray of the same shape
        0 where the norm is 0.
    """
    norm = np.linalg.norm(input, p, axis_of(axis, input.ndim, "axis"), keepdims=True)
    return cast(np.asarray(np.where(norm == 0, 0, input / norm)), input.dtype)


_VARIANCE_FLOOR: Final = 1e-9


@register("MeanVarianceNormalization")
def mean_variance_normalization(x: Array, axes: Ints = (0, 2, 3)) -> Array:
    """Subtract the mean and divide by the deviation: ONNX ``MeanVarianceNormalization``.

    Parameters
    ----------
    x : ndarray of any shape
    axes : ints
        Dimensions that share their statistics.

    Returns
    -------
    ndarray of the same shape
    """
    chosen = axes_of(axes, x.ndim, "axes")
    wide = x.astype(working_dtype(x.dtype), copy=False)
    deviation = wide - wide.mean(chosen, keepdims=True)
    variance = np.square(deviation).mean(chosen, keepdims=True)
    return cast(np.asarray(deviation / (np.sqrt(variance) + _VARIANCE_FLOOR)), x.dtype)


@register("LRN")
def lrn(
    x: Array, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Array:
    """Normalise over neighbouring channels: ONNX ``LRN``.

    Parameters
    ----------
    x : ndarray of shape (N, C, ...)
    size : int
        Number of neighbouring channels, (size - 1) // 2 of them before.
    alpha, beta, bias : float
        ``x / (bias + alpha / size * sum over neighbours of x ** 2) ** beta``.

    Returns
    -------
    ndarray of the same shape
    """
    if size % 2:
        return local_response_norm(x, size, alpha, beta, bias)
    # An even neighbourhood has one channel more before in PyTorch, and after in ONNX.
    return np.flip(local_response_norm(np.flip(x, 1), size, alpha, beta, bias), 1)
