"""Quantisation in ONNX: integers that represent evenly spaced numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import axis_of
from engine.layers.layer import Ints, Outputs
from engine.layers.onnx.arguments import dtype_of_code
from engine.layers.onnx.convolution import conv
from engine.layers.registry import register
from engine.values import Array

if TYPE_CHECKING:
    from engine.promotion import DType

__all__ = ["dequantize_linear", "quantize_linear"]


@register("QuantizeLinear")
def quantize_linear(
    x: Array,
    y_scale: Any,
    y_zero_point: Any = None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Array:
    """Quantise numbers to integers: ONNX ``QuantizeLinear``.

    Parameters
    ----------
    x : ndarray of any shape
    y_scale : number, or ndarray
        Step between neighbouring numbers: one, one per index of the axis, or one per block.
    y_zero_point : integer, or ndarray of the shape of `y_scale`, optional
        The integer that represents 0. Its dtype is the result's.
    axis : int
        The dimension with its own scales.
    block_size : int
        Number of neighbouring indices of the axis with a common scale.
    output_dtype : int
        ONNX's number of the dtype, if there is no zero point.
    precision, saturate : int
        No effect: only for unsupported dtypes.

    Returns
    -------
    integer ndarray of the same shape
        ``round(x / y_scale) + y_zero_point``, clipped to the dtype's range; halves round to
        the even integer.
    """
    scale, zero = _spread(x, y_scale, y_zero_point, axis, block_size)
    dtype = np.dtype(np.uint8)
    if output_dtype:
        dtype = dtype_of_code(output_dtype)
    if isinstance(y_zero_point, np.ndarray):
        dtype = y_zero_point.dtype
    return _round_and_clip(x / scale, zero, dtype)


@register("DequantizeLinear")
def dequantize_linear(
    x: Array,
    x_scale: Any,
    x_zero_point: Any = None,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Array:
    """Convert quantised integers to numbers: ONNX ``DequantizeLinear``.

    Parameters
    ----------
    x : integer ndarray of any shape
    x_scale : number, or ndarray
        As in ``QuantizeLinear``.
    x_zero_point : integer, or ndarray, optional
        The integer that represents 0.
    axis : int
        The dimension with its own scales.
    block_size : int
        Number of neighbouring indices of the axis with a common scale.
    output_dtype : int
        ONNX's number of the dtype; that of `x_scale` by default.

    Returns
    -------
    ndarray of the same shape
        ``(x - x_zero_point) * x_scale``.
    """
    scale, zero = _spread(x, x_scale, x_zero_point, axis, block_size)
    dtype = x_scale.dtype if isinstance(x_scale, np.ndarray) else np.dtype(np.float32)
    if output_dtype:
        dtype = dtype_of_code(output_dtype)
    shifted = x.astype(np.int64) - zero.astype(np.int64)
    return (shifted.astype(scale.dtype) * scale).astype(dtype, copy=False)


@register("DynamicQuantizeLinear")
def dynamic_quantize_linear(x: Array) -> Outputs:
    """Round to uint8 over the range of the input: ONNX ``DynamicQuantizeLinear``.

    Parameters
    ----------
    x : ndarray of any shape

    Returns
    -------
    uint8 ndarray of the same shape
    float32 ndarray of shape ()
        Distance of neighbouring numbers.
    uint8 ndarray of shape ()
        The integer that represents 0.
    """
    low, high = (np.float32(end) for end in (x.min(initial=0), x.max(initial=0)))
    scale = np.asarray((high - low) / np.float32(255), np.float32)
    zero = np.asarray(np.clip(np.rint(-low / scale), 0, 255) if scale else 0, np.uint8)
    return Outputs((_round_and_clip(x / scale, zero, zero.dtype), scale, zero))


@register("MatMulInteger")
def matmul_integer(a: Array, b: Array, a_zero_point: Any = 0, b_zero_point: Any = 0) -> Array:
    """Matrix product of integers, less their zero points: ONNX ``MatMulInteger``.

    Parameters
    ----------
    a, b : int8 or uint8 ndarray of shape (..., L, M) and (..., M, N)
    a_zero_point : integer, or ndarray of shape (L,)
        The integer that represents 0 in `a`.
    b_zero_point : integer, or ndarray of shape (N,)
        The integer that represents 0 in `b`.

    Returns
    -------
    int32 ndarray of shape (..., L, N)
    """
    return _multiply_integers(a, a_zero_point, b, b_zero_point).astype(np.int32)


@register("QLinearMatMul")
def qlinear_matmul(
    a: Array,
    a_scale: Any,
    a_zero_point: Any,
    b: Array,
    b_scale: Any,
    b_zero_point: Any,
    y_scale: Any,
    y_zero_point: Any,
) -> Array:
    """Matrix product of quantised matrices: ONNX ``QLinearMatMul``.

    Parameters
    ----------
    a, b : integer ndarray of shape (..., L, M) and (..., M, N)
    a_scale, b_scale, y_scale : number, or ndarray
        Step between neighbouring numbers of the operands and of the result.
    a_zero_point, b_zero_point, y_zero_point : integer, or ndarray
        The integer that represents 0.

    Returns
    -------
    integer ndarray of shape (..., L, N)
        Of the dtype of `y_zero_point`.
    """
    product = _multiply_integers(a, a_zero_point, b, b_zero_point)
    left = np.asarray(a_scale, np.float64)
    scales = (left[..., np.newaxis] if left.ndim else left) * np.asarray(b_scale, np.float64)
    dtype = y_zero_point.dtype if isinstance(y_zero_point, np.ndarray) else a.dtype
    return _round_and_clip(product * (scales / y_scale), np.asarray(y_zero_point), dtype)


@register("QLinearConv")
def qlinear_conv(
    x: Array,
    x_scale: Any,
    x_zero_point: Any,
    w: Array,
    w_scale: Any,
    w_zero_point: Any,
    y_scale: Any,
    y_zero_point: Any,
    b: Array | None = None,
    kernel_shape: Ints | None = None,
    strides: Ints = 1,
    pads: Ints = 0,
    dilations: Ints = 1,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> Array:
    """Convolution of quantised tensors: ONNX ``QLinearConv``.

    Parameters
    ----------
    x, w : integer ndarray
        As in ``Conv``.
    x_scale, y_scale : number
        Step between neighbouring numbers of the input and of the result.
    x_zero_point, y_zero_point : integer
        The integer that represents 0.
    w_scale, w_zero_point : number, or ndarray of shape (O,)
        The weight's.
    b : int32 ndarray of shape (O,), optional
        In steps of ``x_scale * w_scale``.
    kernel_shape, strides, pads, dilations, group, auto_pad
        As in ``Conv``.

    Returns
    -------
    integer ndarray of shape (N, O, H'...)
        Of the dtype of `y_zero_point`.
    """
    shape = (-1, *(1,) * (w.ndim - 1))
    left = x.astype(np.float64) - np.asarray(x_zero_point, np.float64)
    right = w.astype(np.float64) - np.asarray(w_zero_point, np.float64).reshape(shape)
    bias = None if b is None else b.astype(np.float64)
    sums = conv(left, right, bias, kernel_shape, strides, pads, dilations, group, auto_pad)
    steps = np.asarray(w_scale, np.float64).reshape(shape[:-1]) * x_scale / y_scale
    dtype = y_zero_point.dtype if isinstance(y_zero_point, np.ndarray) else x.dtype
    return _round_and_clip(sums * steps, np.asarray(y_zero_point), dtype)


def _multiply_integers(a: Array, a_zero_point: Any, b: Array, b_zero_point: Any) -> Array:
    """Matrix product of integers, less their zero points, in int64."""
    zero = np.asarray(a_zero_point, np.int64)
    left = a.astype(np.int64) - (zero[..., np.newaxis] if zero.ndim == 1 else zero)
    result: Array = np.matmul(left, b.astype(np.int64) - np.asarray(b_zero_point, np.int64))
    return result


def _round_and_clip(x: Array, zero: Array, dtype: DType) -> Array:
    """Round to integers, halves to even, add the zero point, and clip to a dtype's range."""
    if dtype.kind not in "iu":
        raise LayerError(f"there is no quantisation to {dtype} here")
    ends = np.iinfo(dtype)
    places = np.rint(x) + zero.astype(np.float64)
    result: Array = np.clip(np.nan_to_num(places), ends.min, ends.max).astype(dtype)
    return result


def _spread(x: Array, scale: Any, zero: Any, axis: int, block: int) -> tuple[Array, Array]:
    """Reshape scales and zero points so that they broadcast to the input's shape."""
    scales = np.asarray(scale)
    if scales.dtype.kind != "f" or not isinstance(scale, np.ndarray):
        scales = scales.astype(np.float32)
    zeros = np.zeros(scales.shape, np.int64) if zero is None else np.asarray(zero)
    if scales.size == 1:
        return scales.reshape(()), zeros.reshape(())
    place = axis_of(axis, x.ndim, "axis")
    if block and scales.ndim == x.ndim:
        if block < 1:
            raise LayerError(f"block_size={block} is less than 1")
        blocks = np.arange(x.shape[place]) // block
        scales, zeros = (np.take(values, blocks, place) for values in (scales, zeros))
        return scales, zeros
    column = (-1, *(1,) * (x.ndim - place - 1))
    return scales.reshape(column), zeros.reshape(column)
