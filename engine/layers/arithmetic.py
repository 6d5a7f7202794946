"""Element-wise operators with arguments of their own: scaled sums, roundings, limits."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.expression.functions import (
    FUNCTIONS,
    Elementwise,
    truncated_quotient,
)
from engine.layers.arguments import cast
from engine.layers.elementwise import Operand, apply
from engine.layers.registry import register
from engine.promotion import Scalar, as_operand, result_dtype
from engine.values import Array, Value

__all__ = ["add", "clamp", "div", "nan_to_num", "power", "round_to", "sub"]


@register("torch.add", "Tensor.add", "aten::add")
def add(input: Operand, other: Operand, alpha: Scalar = 1) -> Value:
    """Sum ``input + alpha * other``: ``torch.add``.

    Parameters
    ----------
    input, other : ndarray, broadcast to one shape, or number
    alpha : number

    Returns
    -------
    ndarray of the common shape
        Of the promoted dtype.
    """
    return _add(input, other, alpha)


def _add(input: Value, other: Value, alpha: Value = 1) -> Value:
    return apply(FUNCTIONS["add"].apply, input, _scale(other, alpha))


def _multiply(input: Value, other: Value) -> Value:
    return apply(FUNCTIONS["mul"].apply, input, other)


def _scale(operand: Value, alpha: Value) -> Value:
    return (
        operand if isinstance(alpha, (int, float)) and alpha == 1 else _multiply(operand, alpha)
    )


@register("torch.sub", "Tensor.sub", "aten::sub")
@register("torch.subtract", "Tensor.subtract", "aten::subtract")
def sub(input: Operand, other: Operand, alpha: Scalar = 1) -> Value:
    """Difference ``input - alpha * other``: ``torch.sub``.

    Parameters
    ----------
    input, other : ndarray, broadcast to one shape, or number
    alpha : number

    Returns
    -------
    ndarray of the common shape
        Of the promoted dtype.
    """
    return apply(FUNCTIONS["sub"].apply, input, _scale(other, alpha))


@register("torch.rsub", "Tensor.rsub", "aten::rsub")
def rsub(input: Operand, other: Operand, alpha: Scalar = 1) -> Value:
    """Difference ``other - alpha * input``: ``torch.rsub``; as ``torch.sub``."""
    return apply(FUNCTIONS["sub"].apply, other, _scale(input, alpha))


@register("torch.div", "Tensor.div", "aten::div")
@register("torch.divide", "Tensor.divide", "aten::divide")
def div(
    input: Operand,
    other: Operand,
    rounding_mode: str | None = None,
) -> Value:
    """Quotient, optionally rounded: ``torch.div``.

    Parameters
    ----------
    input, other : ndarray, broadcast to one shape, or number
    rounding_mode : str, optional
        ``"trunc"`` cuts towards zero, ``"floor"`` rounds down; both keep the promoted
        dtype.

    Returns
    -------
    ndarray of the common shape
        Of the promoted dtype; without a mode, float32 for bools and integers.
    """
    if rounding_mode == "floor":
        return apply(FUNCTIONS["floor_divide"].apply, input, other)
    if rounding_mode == "trunc":
        return apply(Elementwise(_truncate_quotient, "if"), input, other)
    if rounding_mode is not None:
        raise LayerError(f"rounding_mode {rounding_mode!r} is neither 'trunc' nor 'floor'")
    return apply(FUNCTIONS["div"].apply, input, other)


def _truncate_quotient(a: Array, b: Array) -> Array:
    return np.asarray(np.trunc(a / b)) if a.dtype.kind == "f" else truncated_quotient(a, b)


@register("torch.pow", "Tensor.pow", "aten::pow")
def power(input: Operand, exponent: Operand) -> Value:
    """Power, ``input ** exponent``: ``torch.pow``.

    Parameters
    ----------
    input, exponent : ndarray, broadcast to one shape, or number

    Returns
    -------
    ndarray of the common shape
        Of the promoted dtype.
    """
    return apply(FUNCTIONS["pow"].apply, input, exponent)


@register("torch.float_power", "Tensor.float_power", "aten::float_power")
def float_power(input: Operand, exponent: Operand) -> Value:
    """Power in double precision: ``torch.float_power``; as ``torch.pow``."""
    dtype = np.result_type(np.float64, result_dtype(input, exponent))
    base = as_operand(input, dtype)
    return apply(FUNCTIONS["pow"].apply, base, as_operand(exponent, dtype))


@register("torch.round", "Tensor.round", "aten::round")
@register("torch.special.round", "aten::special_round")
def round_to(input: Operand, decimals: int = 0) -> Value:
    """Nearest integer, halves to the even one: ``torch.round``.

    Parameters
    ----------
    input : ndarray of any shape
    decimals : int
        Number of decimal places to round to; negative numbers round to tens, hundreds, ….

    Returns
    -------
    ndarray of the input's shape
        Of the input's dtype.
    """
    if decimals == 0 or not isinstance(input, np.ndarray) or input.dtype.kind != "f":
        return apply(FUNCTIONS["round"].apply, input)
    # In the input's own precision, as PyTorch does: 26.15 in float32 becomes 26.2.
    wide = input.astype(np.float32) if input.dtype == np.float16 else input
    scale = wide.dtype.type(10.0 ** abs(decimals))
    with np.errstate(all="ignore"):
        if decimals > 0:
            return cast(np.asarray(np.rint(wide * scale) / scale), input.dtype)
        return cast(np.asarray(np.rint(wide / scale) * scale), input.dtype)


@register("torch.logit", "Tensor.logit", "aten::logit")
@register("torch.special.logit", "aten::special_logit")
def logit(input: Operand, eps: float | None = None) -> Value:
    """Logarithm of the odds, ``log(x / (1 - x))``: ``torch.logit``.

    Parameters
    ----------
    input : ndarray of any shape
    eps : float, optional
        Limit x to the range from `eps` to ``1 - eps`` first. By default x below 0 or
        above 1 gives NaN.

    Returns
    -------
    ndarray of the input's shape
        Of the input's dtype; float32 for bools and integers.
    """

    def kernel(x: Array) -> Array:
        if eps is not None:
            x = np.clip(x, x.dtype.type(eps), x.dtype.type(1 - eps))
        return np.asarray(np.log(x / (1 - x)))

    return apply(Elementwise(kernel, "bif", floats=True), input)


@register(
    *("torch.clamp", "Tensor.clamp", "aten::clamp"),
    *("torch.clip", "Tensor.clip", "aten::clip"),
)
def clamp(input: Array, min: Operand | None = None, max: Operand | None = None) -> Value:
    """Limit to a range: ``torch.clamp``.

    Parameters
    ----------
    input : ndarray of any shape
    min, max : ndarray, broadcast to the input's shape, or number, optional
        If the lower limit is above the upper one, the upper one applies.

    Returns
    -------
    ndarray of the common shape
        Of the promoted dtype; NaN stays.
    """
    limits = [limit for limit in (min, max) if limit is not None]
    if not limits:
        raise LayerError("neither min nor max is given")

    def kernel(x: Array, *bounds: Array) -> Array:
        left = list(bounds)
        if min is not None:
            x = np.maximum(x, left.pop(0))
        return np.minimum(x, left.pop()) if left else x

    return apply(Elementwise(kernel, "bif"), input, *limits)


@register("torch.clamp_min", "Tensor.clamp_min", "aten::clamp_min")
def clamp_min(input: Array, min: Operand) -> Value:
    """Limit from below: ``torch.clamp`` with a `min` alone."""
    return clamp(input, min)


@register("torch.clamp_max", "Tensor.clamp_max", "aten::clamp_max")
def clamp_max(input: Array, max: Operand) -> Value:
    """Limit from above: ``torch.clamp`` with a `max` alone."""
    return clamp(input, None, max)


@register("torch.addcmul", "Tensor.addcmul", "aten::addcmul")
def addcmul(input: Array, tensor1: Array, tensor2: Array, value: Scalar = 1) -> Value:
    """Sum with a product, ``input + value * tensor1 * tensor2``: ``torch.addcmul``."""
    return _add(input, _multiply(tensor1, tensor2), value)


@register("torch.addcdiv", "Tensor.addcdiv", "aten::addcdiv")
def addcdiv(input: Array, tensor1: Array, tensor2: Array, value: Scalar = 1) -> Value:
    """Sum with a quotient, ``input + value * tensor1 / tensor2``: ``torch.addcdiv``."""
    return _add(input, div(tensor1, tensor2), value)


@register("torch.lerp", "Tensor.lerp", "aten::lerp")
def lerp(input: Array, end: Array, weight: Operand) -> Value:
    """Point between two, ``input + weight * (end - input)``: ``torch.lerp``."""
    return _add(input, _multiply(weight, sub(end, input)))


@register("torch.nan_to_num", "Tensor.nan_to_num", "aten::nan_to_num")
def nan_to_num(
    input: Array,
    nan: float | None = None,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Array:
    """Replace NaN and infinities: ``torch.nan_to_num``.

    Parameters
    ----------
    input : ndarray of any shape
    nan : number
        Replacement of NaN; 0 by default.
    posinf, neginf : number, optional
        Replacements of infinities; the largest and smallest number of the dtype by default.

    Returns
    -------
    ndarray of the same shape and dtype
    """
    if input.dtype.kind not in "fc":
        return input
    return np.nan_to_num(input, nan=nan or 0.0, posinf=posinf, neginf=neginf)
