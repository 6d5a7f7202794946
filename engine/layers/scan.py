"""Running sums, products and extremes along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np

from engine.expression.functions import FUNCTIONS
from engine.layers.arguments import as_dtype, axis_of, cast, require_order
from engine.layers.layer import Outputs
from engine.layers.reduction import accumulator
from engine.layers.registry import register
from engine.promotion import DEFAULT_INT, float_dtype
from engine.values import Array, Value

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


@register("torch.cumsum", "Tensor.cumsum", "aten::cumsum")
def cumsum(input: Array, dim: int, dtype: Value = None) -> Array:
    """Running sum along a dimension: ``torch.cumsum``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int
    dtype : str, optional
        Dtype to convert the input to first.

    Returns
    -------
    ndarray of the same shape
        Of the input's dtype; int64 for bools and integers.
    """
    return _run_scan(np.cumsum, input, dim, dtype)


@register("torch.cumprod", "Tensor.cumprod", "aten::cumprod")
def cumprod(input: Array, dim: int, dtype: Value = None) -> Array:
    """Running product along a dimension: ``torch.cumprod``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int
    dtype : str, optional
        Dtype to convert the input to first.

    Returns
    -------
    ndarray of the same shape
        Of the input's dtype; int64 for bools and integers.
    """
    return _run_scan(np.cumprod, input, dim, dtype)


@register("torch.logcumsumexp", "Tensor.logcumsumexp", "aten::logcumsumexp")
def logcumsumexp(input: Array, dim: int) -> Array:
    """Running logarithm of the sum of exponentials: ``torch.logcumsumexp``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int

    Returns
    -------
    ndarray of the same shape
        Of the input's dtype; float32 for bools and integers.
    """
    dtype = float_dtype(input.dtype)
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        return cast(input, dtype)
    wide = input.astype(accumulator(dtype))
    if dtype.kind == "c":  # NumPy's logaddexp supports real numbers only
        slices = accumulate(np.moveaxis(wide, axis, 0), FUNCTIONS["logaddexp"].apply)
        return cast(np.stack([*slices], axis), dtype) if wide.size else wide.astype(dtype)
    with np.errstate(all="ignore"):
        return cast(np.asarray(np.logaddexp.accumulate(wide, axis)), dtype)


@register("torch.cummax", "Tensor.cummax", "aten::cummax")
def cummax(input: Array, dim: int) -> Outputs:
    """Running maximum along a dimension, with its index: ``torch.cummax``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int

    Returns
    -------
    values, indices : ndarray, int64 ndarray of the same shape
        Indices are of the last of equal elements. NaN is larger than every number.
    """
    return _run_extreme(input, dim, np.maximum)


@register("torch.cummin", "Tensor.cummin", "aten::cummin")
def cummin(input: Array, dim: int) -> Outputs:
    """Running minimum along a dimension, with its index: ``torch.cummin``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int

    Returns
    -------
    values, indices : ndarray, int64 ndarray of the same shape
        Indices are of the last of equal elements. NaN is smaller than every number.
    """
    return _run_extreme(input, dim, np.minimum)


def _run_scan(scan: Callable[..., Any], input: Array, dim: Value, dtype: Value) -> Array:
    wanted = as_dtype(dtype)
    if wanted is not None:
        input = cast(input, wanted)
    result_dtype = wanted or (input.dtype if input.dtype.kind in "fc" else DEFAULT_INT)
    axis = axis_of(dim, input.ndim)
    with np.errstate(all="ignore"):
        scanned = scan(input, axis if input.ndim else None, accumulator(input.dtype))
        return cast(np.asarray(scanned), result_dtype).reshape(input.shape)


def _run_extreme(input: Array, dim: Value, choose: Any) -> Outputs:
    require_order(input)
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        return Outputs((input, np.zeros((), np.int64)))
    with np.errstate(all="ignore"):
        values = choose.accumulate(input, axis)
    met = (input == values) | np.isnan(input)
    shape = [1] * input.ndim
    shape[axis] = -1
    places = np.where(met, np.arange(input.shape[axis]).reshape(shape), 0)
    return Outputs((values, np.maximum.accumulate(places, axis)))
