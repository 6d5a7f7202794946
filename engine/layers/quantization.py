"""Quantisation: tensors whose elements have few, evenly spaced values.

A quantised tensor is stored here as float32: the numbers that its integers represent, rounded
to a multiple of the scale and clipped to the range. So any operator may read it, and
``dequantize`` returns its input. PyTorch's kernels add up integers; results differ by one
rounding at most.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError
from engine.layers.activations import relu
from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_int, axis_of
from engine.layers.concatenate import cat
from engine.layers.convolution import Convolution
from engine.layers.custom_operators import register_extension
from engine.layers.layer import Ints, Layer, OperatorCall
from engine.layers.linear import Linear
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.promotion import float_dtype
from engine.values import Array, Value

__all__ = ["fake_quantize", "quantize"]

_RANGES: Final[dict[str, tuple[int, int]]] = {
    "qint8": (-(1 << 7), (1 << 7) - 1),
    "quint8": (0, (1 << 8) - 1),
    "qint32": (-(1 << 31), (1 << 31) - 1),
}
_NAME_OF_CODE: Final = {12: "qint8", 13: "quint8", 14: "qint32"}  # of ``c10::ScalarType``


def quantize(
    input: Array,
    scale: float,
    zero_point: int,
    dtype: str = "quint8",
    *,
    round_first: bool = False,
) -> Array:
    """Round to the numbers that a quantised dtype can represent.

    Parameters
    ----------
    input : ndarray of any shape
    scale : float
        Step between neighbouring numbers.
    zero_point : int
        The integer that represents 0.
    dtype : str
        ``quint8``, ``qint8`` or ``qint32``.
    round_first : bool
        Round before adding `zero_point`, as PyTorch's sums and products do. If `zero_point` is
        odd, halves round the other way. (PyTorch's vectorised sums do so for the last few
        elements only.)

    Returns
    -------
    float32 ndarray of the same shape
        ``(q - zero_point) * scale`` with ``q = round(input / scale + zero_point)``, clipped to
        the dtype's range; halves round to the even integer.
    """
    if not scale > 0:
        raise LayerError(f"scale={scale} is not positive")
    low, high = _RANGES[dtype]
    x = input.astype(np.float32, copy=False)
    places, offset = x * np.float32(1 / scale), np.float32(zero_point)
    places = np.rint(places) + offset if round_first else np.rint(places + offset)
    places = np.clip(np.where(np.isnan(places), low, places), low, high)
    result: Array = (places - np.float32(zero_point)) * np.float32(scale)
    return result.astype(np.float32, copy=False)


@register("nn.quantized.Quantize")
def quantize_module(
    input: Array, scale: float, zero_point: int, dtype: str = "quint8"
) -> Array:
    """Quantise a tensor: ``torch.ao.nn.quantized.Quantize``.

    Parameters
    ----------
    input : ndarray of any shape
    scale : float
    zero_point : int
    dtype : str
        No effect: pnnx writes ``torch.qint8`` for every dtype, but PyTorch's quantised layers
        use quint8. Only a negative `zero_point` proves qint8.

    Returns
    -------
    float32 ndarray of the same shape
        The numbers that the quantised tensor represents.
    """
    return quantize(input, scale, zero_point, "qint8" if zero_point < 0 else "quint8")


@register("torch.quantize_per_tensor", "aten::quantize_per_tensor")
def quantize_per_tensor(
    input: Array, scale: Value, zero_point: Value, dtype: str | int
) -> Array:
    """Quantise a tensor: ``torch.quantize_per_tensor``.

    Parameters
    ----------
    input : ndarray of any shape
    scale : float, or ndarray with one element
    zero_point : int, or ndarray with one element
    dtype : str
        ``torch.quint8``, ``torch.qint8`` or ``torch.qint32``.

    Returns
    -------
    float32 ndarray of the same shape
        The numbers that the quantised tensor represents.
    """
    name = _NAME_OF_CODE.get(dtype, "") if isinstance(dtype, int) else dtype
    name = name.removeprefix("torch.")
    if name not in _RANGES:
        raise LayerError(f"dtype {dtype} is not one of {', '.join(_RANGES)}")
    return quantize(
        input, _check_number(scale, "scale"), as_int(zero_point, "zero_point"), name
    )


@register("nn.quantized.DeQuantize", "torch.dequantize", "Tensor.dequantize")
@register("aten::dequantize")
def dequantize(input: OperandOf[Value]) -> Value:
    """Return the numbers of a quantised tensor: ``torch.dequantize``.

    Returns
    -------
    Value
        `input` itself (see `engine.layers.quantization`).
    """
    return input


def _check_number(value: Value, name: str) -> float:
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise LayerError(f"{name} is not one number")
    return float(array.item())


def _dequantize_weight(weight: Array, scales: Array | None, zero_points: Array | None) -> Array:
    """Dequantise a weight that is quantised per output channel."""
    if weight.dtype.kind == "f":
        return weight
    if scales is None or zero_points is None:
        raise ParameterError(
            "weight.q_per_channel_scales",
            "the weight is quantised as a whole, and pnnx does not store its scale",
        )
    column = (-1, *(1,) * (weight.ndim - 1))
    shifted = weight.astype(np.float64) - np.asarray(zero_points).reshape(column)
    real: Array = (shifted * np.asarray(scales).reshape(column)).astype(np.float32)
    return real


class _Quantized(Layer):
    """A layer that computes with dequantised operands, then quantises the result."""

    def __init__(self, layer: Layer, scale: float, zero_point: int, rectified: bool) -> None:
        self._layer, self._rectified = layer, rectified
        self._scale, self._zero_point = scale, zero_point

    @override
    def forward(self, input: Array) -> Array:
        result = self._layer.forward(input)
        if not isinstance(result, np.ndarray):
            raise LayerError("there is nothing to quantise")
        if self._rectified:
            result = relu(result)
        dtype = "qint8" if self._zero_point < 0 else "quint8"
        return quantize(result, self._scale, self._zero_point, dtype)


@register("nn.quantized.Conv2d", "nn.intrinsic.quantized.ConvReLU2d")
class QuantizedConv2d(_Quantized):
    """Quantised convolution: ``torch.ao.nn.quantized.Conv2d``, and ``ConvReLU2d``.

    As ``nn.Conv2d`` with dequantised operands; the result is quantised
    with `scale` and `zero_point`.

    Parameters
    ----------
    weight : int8 ndarray of shape (O, C / groups, Kh, Kw)
    weight_q_per_channel_scales, weight_q_per_channel_zero_points : ndarray of shape (O,)
    bias : ndarray of shape (O,), optional
    scale : float
    zero_point : int
    stride, padding, dilation, groups, padding_mode
        As in ``nn.Conv2d``.
    in_channels, out_channels, kernel_size : int
        Only checked against the weight's shape.
    """

    def __init__(
        self,
        call: OperatorCall,
        weight: Array,
        scale: float,
        zero_point: int,
        bias: Array | None = None,
        weight_q_per_channel_scales: Array | None = None,
        weight_q_per_channel_zero_points: Array | None = None,
        stride: Ints = 1,
        padding: Ints = 0,
        dilation: Ints = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        in_channels: int | None = None,
        out_channels: int | None = None,
        kernel_size: Ints | None = None,
    ) -> None:
        real = _dequantize_weight(
            weight, weight_q_per_channel_scales, weight_q_per_channel_zero_points
        )
        layer = Convolution(
            real, bias, stride, padding, dilation, groups, padding_mode,
            in_channels, out_channels, kernel_size,
        )  # fmt: skip
        super().__init__(layer, scale, zero_point, rectified="ReLU" in call.type)


@register("nn.quantized.Linear", "nn.intrinsic.quantized.LinearReLU")
class QuantizedLinear(_Quantized):
    """Quantised matrix product: ``torch.ao.nn.quantized.Linear``, and ``LinearReLU``.

    As ``nn.Linear`` with dequantised operands; the result is quantised
    with `scale` and `zero_point`.

    Parameters
    ----------
    weight : int8 ndarray of shape (O, I)
    weight_q_per_channel_scales, weight_q_per_channel_zero_points : ndarray of shape (O,)
    bias : ndarray of shape (O,), optional
    scale : float
    zero_point : int
    in_features, out_features : int
        Only checked against the weight's shape.
    """

    def __init__(
        self,
        call: OperatorCall,
        weight: Array,
        scale: float,
        zero_point: int,
        bias: Array | None = None,
        weight_q_per_channel_scales: Array | None = None,
        weight_q_per_channel_zero_points: Array | None = None,
        in_features: int | None = None,
        out_features: int | None = None,
    ) -> None:
        real = _dequantize_weight(
            weight, weight_q_per_channel_scales, weight_q_per_channel_zero_points
        )
        layer = Linear(real, bias, in_features, out_features)
        super().__init__(layer, scale, zero_point, rectified="ReLU" in call.type)


@register("nn.quantized.cat")
@register_extension("quantized::cat")
def quantized_cat(
    tensors: OperandOf[Value], dim: int, scale: Value, zero_point: Value
) -> Array:
    """Join quantised tensors: ``torch.ao.nn.quantized.QFunctional.cat``.

    Parameters
    ----------
    tensors : tuple of ndarray
    dim : int
    scale : float
    zero_point : int
        Quantisation of the result.

    Returns
    -------
    float32 ndarray
    """
    joined = cat(tensors, dim=as_int(dim, "dim"))
    return quantize(joined, _check_number(scale, "scale"), as_int(zero_point, "zero_point"))


@register_extension("quantized::add")
def quantized_add(input: Array, other: Array, scale: Value, zero_point: Value) -> Array:
    """Add quantised tensors: ``torch.ao.nn.quantized.QFunctional.add``; as its ``cat``."""
    return _requantize(input + other, scale, zero_point)


@register_extension("quantized::add_relu")
def quantized_add_relu(input: Array, other: Array, scale: Value, zero_point: Value) -> Array:
    """Add quantised tensors and drop negative sums: ``QFunctional.add_relu``."""
    return _requantize(relu(input + other), scale, zero_point)


@register_extension("quantized::mul")
def quantized_mul(input: Array, other: Array, scale: Value, zero_point: Value) -> Array:
    """Multiply quantised tensors: ``torch.ao.nn.quantized.QFunctional.mul``."""
    return _requantize(input * other, scale, zero_point)


def _requantize(result: Array, scale: Value, zero_point: Value) -> Array:
    """Quantise the result of quantised arithmetic."""
    place = as_int(zero_point, "zero_point")
    return quantize(result, _check_number(scale, "scale"), place, round_first=True)


# Simulated quantisation, in models from quantisation-aware training


def fake_quantize(
    input: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int
) -> Array:
    """Round to multiples of a scale, within a range.

    Parameters
    ----------
    input : ndarray of any shape
    scale, zero_point : ndarray that broadcasts to it
    quant_min, quant_max : int
        Ends of the range.

    Returns
    -------
    ndarray of the input's shape and dtype
        ``(q - zero_point) * scale`` with ``q = round(input / scale) + zero_point``, clipped to
        the range; halves round to the even integer.
    """
    if not np.all(scale > 0):
        raise LayerError("a scale is not positive")
    dtype = float_dtype(input.dtype)
    work = working_dtype(dtype)
    steps = np.asarray(scale, work)
    with np.errstate(all="ignore"):
        places = np.rint(input.astype(work, copy=False) * (1 / steps)) + zero_point
        places = np.where(np.isnan(places), quant_min, places)
        result = (np.clip(places, quant_min, quant_max) - zero_point) * steps
    return np.asarray(result, dtype)


@register("torch.fake_quantize_per_tensor_affine", "aten::fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor(
    input: Array, scale: Value, zero_point: Value, quant_min: int, quant_max: int
) -> Array:
    """Simulate quantisation: ``torch.fake_quantize_per_tensor_affine``.

    Parameters
    ----------
    input : ndarray of any shape
    scale : float, or ndarray with one element
    zero_point : int, or ndarray with one element
    quant_min, quant_max : int
        Ends of the range of integers.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    step = np.float64(_check_number(scale, "scale"))
    zero = np.int64(as_int(zero_point, "zero_point"))
    return fake_quantize(input, np.asarray(step), np.asarray(zero), quant_min, quant_max)


@register("torch.fake_quantize_per_channel_affine", "aten::fake_quantize_per_channel_affine")
def fake_quantize_per_channel(
    input: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int
) -> Array:
    """Simulate quantisation of each channel: ``torch.fake_quantize_per_channel_affine``.

    Parameters
    ----------
    input : ndarray of shape (..., C, ...)
        C at `axis`.
    scale, zero_point : ndarray of shape (C,)
    axis, quant_min, quant_max : int

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    place = axis_of(axis, input.ndim, "axis")
    channels = input.shape[place] if input.ndim else 1
    if scale.shape != (channels,) or zero_point.shape != (channels,):
        raise LayerError(f"there are {channels} channels, but {scale.size} scales")
    column = (-1, *(1,) * (input.ndim - place - 1))
    zeros = np.rint(zero_point).reshape(column)
    return fake_quantize(input, scale.reshape(column), zeros, quant_min, quant_max)
