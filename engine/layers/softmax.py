"""Softmax and related functions."""

from __future__ import annotations

import numpy as np

from engine.layers.arguments import as_dtype, axis_of
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.promotion import DType, float_dtype
from engine.values import Array

__all__ = ["log_softmax", "softmax", "softmax2d", "softmin"]


@register("nn.Softmax", "F.softmax", "torch.softmax", "Tensor.softmax", "aten::softmax")
@register("torch.special.softmax", "aten::special_softmax")
@register("aten::_softmax", operands="input dim _")
def softmax(input: Array, dim: int | None = None, dtype: str | int | None = None) -> Array:
    """Exponentials that sum to 1 along an axis: ``torch.nn.Softmax``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int, optional
        The axis. By default 0 for 0, 1 and 3 dimensions, and 1 otherwise.
    dtype : str, optional
        Dtype to convert the input to first, e.g. ``torch.float``.

    Returns
    -------
    ndarray of the same shape
        ``exp(x) / sum(exp(x))``, computed relative to the largest value.
    """
    shifted, axis, result_dtype = _prepare(input, dim, dtype)
    powers = np.exp(shifted)
    powers /= powers.sum(axis, keepdims=True)
    return powers.reshape(input.shape).astype(result_dtype, copy=False)


@register("nn.Softmin", "F.softmin")
def softmin(input: Array, dim: int | None = None, dtype: str | int | None = None) -> Array:
    """Softmax of the negative: ``torch.nn.Softmin``.

    Parameters and result as for softmax.
    """
    return softmax(np.negative(input), dim, dtype)


@register("nn.LogSoftmax", "F.log_softmax", "torch.log_softmax", "Tensor.log_softmax")
@register("aten::log_softmax", "torch.special.log_softmax", "aten::special_log_softmax")
@register("aten::_log_softmax", operands="input dim _")
def log_softmax(input: Array, dim: int | None = None, dtype: str | int | None = None) -> Array:
    """Logarithm of the softmax along an axis: ``torch.nn.LogSoftmax``.

    Parameters
    ----------
    input : ndarray of any shape
    dim, dtype
        As for softmax.

    Returns
    -------
    ndarray of the same shape
        ``x - log(sum(exp(x)))``, computed relative to the largest value.
    """
    shifted, axis, result_dtype = _prepare(input, dim, dtype)
    shifted -= np.log(np.exp(shifted).sum(axis, keepdims=True))
    return shifted.reshape(input.shape).astype(result_dtype, copy=False)


@register("nn.Softmax2d")
def softmax2d(input: Array) -> Array:
    """Softmax over the channels of each position: ``torch.nn.Softmax2d``.

    Parameters
    ----------
    input : ndarray of shape (N, C, H, W) or (C, H, W)

    Returns
    -------
    ndarray of the same shape
    """
    return softmax(input, -3)


def _prepare(
    input: Array, dim: int | None, dtype: str | int | None
) -> tuple[Array, int, DType]:
    """Return values relative to the largest along the axis, the axis, the result's dtype."""
    given = as_dtype(dtype)
    result_dtype = float_dtype(input.dtype) if given is None else given
    if dim is None:
        dim = 0 if input.ndim in {0, 1, 3} else 1
    axis = axis_of(dim, input.ndim)
    x = np.atleast_1d(input).astype(working_dtype(result_dtype), copy=False)
    return x - x.max(axis, keepdims=True, initial=-np.inf), axis, result_dtype
