"""Activations: functions of one element, each a formula in a table of decorated functions.

`elementwise` wraps every formula. It passes flat chunks of floats that fit into the processor's
cache, so that a formula may use many NumPy passes. It computes float16 in float32, as PyTorch
does, and returns the input's dtype.
"""

from __future__ import annotations

import math
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Final, ParamSpec

import numpy as np
from numpy.random import Generator

from engine.errors import InferStatus, LayerError
from engine.layers.annotations import WeightOf
from engine.layers.arguments import axis_of
from engine.layers.exactness import mark_elementwise
from engine.layers.random_numbers import uniform
from engine.layers.registry import register
from engine.layers.windows import working_dtype
from engine.promotion import float_dtype
from engine.special import erf, erfc_of_positive, gelu_of_negative
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["elementwise", "prelu", "refine_gelu", "refine_gelu_by_tanh", "sigmoid"]

P = ParamSpec("P")

_RUN: Final = 1 << 16  # most elements of a chunk that a formula gets
# Above this value a library's GELU is accurate to 3 ulp. At -6 it has no correct digit left.
_INEXACT_GELU: Final = np.float32(-1)
# Elements of a chunk that is searched for inexact values. Few values are usually inexact, and
# each call of a formula has a fixed cost.
_REFINED_RUN: Final = 1 << 18

# Klambauer et al., "Self-Normalizing Neural Networks", 2017; digits as in PyTorch.
_SELU_ALPHA: Final = 1.6732632423543772
_SELU_SCALE: Final = 1.0507009873554805


def elementwise(
    *types: str,
    integers: bool = False,
    random_unless: Mapping[str, Value] | None = None,
    unused: str = "",
) -> Callable[[Callable[Concatenate[Array, P], Array]], Callable[Concatenate[Array, P], Array]]:
    """Register a formula for operator types.

    Parameters
    ----------
    *types : str
    integers : bool
        Whether integers stay integers; otherwise they become float32.
    random_unless : mapping of str to Value, optional
    unused : str, optional
        As for `register`.

    Returns
    -------
    decorator
        For a function whose first argument is a 1-D array of floats.
    """

    def decorate(
        formula: Callable[Concatenate[Array, P], Array],
    ) -> Callable[Concatenate[Array, P], Array]:
        @register(*types, random_unless=random_unless, unused=unused)
        @wraps(formula)
        def layer(input: Array, /, *args: P.args, **kwargs: P.kwargs) -> Array:
            dtype = input.dtype
            if not (integers and dtype.kind in "iu"):
                dtype = float_dtype(dtype)
            work = working_dtype(dtype)
            flat = np.ascontiguousarray(input).reshape(-1)
            result = np.empty(flat.size, dtype)
            for start in range(0, flat.size, _RUN):
                run = flat[start : start + _RUN].astype(work, copy=False)
                result[start : start + _RUN] = formula(run, *args, **kwargs)
            return result.reshape(input.shape)

        return mark_elementwise(layer)

    return decorate


@elementwise("nn.ReLU", "F.relu", "torch.relu", "Tensor.relu", "aten::relu", integers=True)
def relu(input: Array) -> Array:
    """``max(x, 0)``: ``torch.nn.ReLU``."""
    return np.maximum(input, 0)


@elementwise("nn.ReLU6", "F.relu6", "aten::relu6", integers=True)
def relu6(input: Array) -> Array:
    """``min(max(x, 0), 6)``: ``torch.nn.ReLU6``."""
    return np.clip(input, 0, 6)


@elementwise("nn.Hardtanh", "F.hardtanh", "aten::hardtanh", integers=True)
def hardtanh(input: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """``min(max(x, min_val), max_val)``: ``torch.nn.Hardtanh``."""
    return np.clip(input, min_val, max_val)


@elementwise("nn.Threshold", "F.threshold", "torch.threshold", "aten::threshold", integers=True)
def threshold(input: Array, threshold: float, value: float) -> Array:
    """``x`` above `threshold`, else `value`: ``torch.nn.Threshold``."""
    return np.where(input <= threshold, value, input)


@elementwise("nn.LeakyReLU", "F.leaky_relu", "aten::leaky_relu")
def leaky_relu(input: Array, negative_slope: float = 0.01) -> Array:
    """``x`` where positive, else ``negative_slope * x``: ``torch.nn.LeakyReLU``."""
    return _apply_slopes(input, input * negative_slope, 0 < negative_slope <= 1)


def _apply_slopes(x: Array, weighted: Array, flat: bool) -> Array:
    """`x` where positive, else `weighted`; `flat` if all slopes are above 0 and at most 1."""
    # A condition for each element would take eight times as long.
    return np.maximum(x, weighted) if flat else np.where(x > 0, x, weighted)


@elementwise(
    "nn.RReLU",
    "F.rrelu",
    "torch.rrelu",
    "aten::rrelu",
    random_unless={"training": False},
    unused="generator",
)
def rrelu(
    input: Array,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *,
    rng: Generator,
) -> Array:
    """Leaky ReLU whose slope is random while training: ``torch.nn.RReLU``.

    In training each element has its own slope, drawn evenly from `lower` to `upper`. At
    inference the slope is ``(lower + upper) / 2``. pnnx does not write `training` for
    ``nn.RReLU``.
    """
    if lower > upper:
        raise LayerError(f"there is no slope from lower={lower} to upper={upper}")
    slope: Array | float = (lower + upper) / 2
    if training:
        slope = uniform(rng, input.shape, input.dtype) * (upper - lower) + lower
    return np.where(input > 0, input, input * slope)


@elementwise("nn.ELU", "F.elu", "aten::elu")
def elu(
    input: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> Array:
    """``x`` where positive, else ``alpha * (exp(x) - 1)``: ``torch.nn.ELU``.

    Raw ``aten::`` operators also have `scale`, a factor of the result, and `input_scale`, a
    factor of x in the exponential.
    """
    below = alpha * np.expm1(input * input_scale)
    return scale * np.where(input > 0, input, below).astype(input.dtype, copy=False)


@elementwise("nn.SELU", "F.selu", "torch.selu", "aten::selu")
def selu(input: Array) -> Array:
    """``1.0507 * (x where positive, else 1.67326 * (exp(x) - 1))``: ``torch.nn.SELU``."""
    return np.where(input > 0, _SELU_SCALE * input, _SELU_SCALE * _SELU_ALPHA * np.expm1(input))


@elementwise("nn.CELU", "F.celu", "torch.celu", "aten::celu")
def celu(input: Array, alpha: float = 1.0) -> Array:
    """``x`` where positive, else ``alpha * (exp(x / alpha) - 1)``: ``torch.nn.CELU``."""
    return np.where(input > 0, input, alpha * np.expm1(input / alpha))


@elementwise("nn.Sigmoid", "F.sigmoid", "torch.sigmoid", "Tensor.sigmoid", "aten::sigmoid")
def sigmoid(input: Array) -> Array:
    """``1 / (1 + exp(-x))``: ``torch.nn.Sigmoid``."""
    result = _compute_divisor(input)
    return np.reciprocal(result, out=result)


@elementwise("nn.LogSigmoid", "F.logsigmoid", "aten::log_sigmoid")
def logsigmoid(input: Array) -> Array:
    """``log(1 / (1 + exp(-x)))``: ``torch.nn.LogSigmoid``."""
    result: Array = np.minimum(input, 0) - np.log1p(np.exp(-np.abs(input)))
    return result


@elementwise("nn.Hardsigmoid", "F.hardsigmoid", "aten::hardsigmoid")
def hardsigmoid(input: Array) -> Array:
    """``min(max(x + 3, 0), 6) / 6``: ``torch.nn.Hardsigmoid``."""
    result: Array = np.clip(input + 3, 0, 6) / 6
    return result


@elementwise("nn.SiLU", "F.silu", "aten::silu")
def silu(input: Array) -> Array:
    """``x / (1 + exp(-x))``, also called swish: ``torch.nn.SiLU``."""
    result = _compute_divisor(input)
    return np.divide(input, result, out=result)


@elementwise("nn.Hardswish", "F.hardswish", "aten::hardswish")
def hardswish(input: Array) -> Array:
    """``x * min(max(x + 3, 0), 6) / 6``: ``torch.nn.Hardswish``."""
    result: Array = input * (np.clip(input + 3, 0, 6) / 6)
    return result


@elementwise("nn.Mish", "F.mish", "aten::mish")
def mish(input: Array) -> Array:
    """``x * tanh(log(1 + exp(x)))``: ``torch.nn.Mish``."""
    result: Array = input * np.tanh(np.logaddexp(input, input.dtype.type(0)))
    return result


@elementwise("nn.GELU", "F.gelu", "aten::gelu")
def gelu(input: Array, approximate: str = "none") -> Array:
    """``x`` times the normal distribution function of x: ``torch.nn.GELU``.

    ``x / 2 * (1 + erf(x / sqrt(2)))``, or with ``approximate=tanh`` ``x / 2 * (1 +
    tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))``.
    """
    if approximate == "none":
        root = np.sqrt(0.5).astype(input.dtype)
        result: Array = 0.5 * input * (1 + erf(input * root, fine=False))
        return _recompute(input < -0.5, input, result, _gelu_of_negative)
    if approximate != "tanh":
        raise LayerError(f"approximate={approximate} is neither none nor tanh")
    return _recompute(input < -0.5, input, _gelu_by_tanh(input), _in_double(_gelu_by_tanh))


def refine_gelu(input: Array, result: Array) -> None:
    """Replace inexact elements of a library's GELU, in place.

    Parameters
    ----------
    input, result : ndarray of float32 and shape (N,)
    """
    _refine(input, result, _gelu_of_negative)


def refine_gelu_by_tanh(input: Array, result: Array) -> None:
    """Replace inexact elements like `refine_gelu`, for ``approximate=tanh``."""
    _refine(input, result, _in_double(_gelu_by_tanh))


def _refine(input: Array, result: Array, formula: Callable[[Array], Array]) -> None:
    with np.errstate(all="ignore"):
        for start in range(0, input.size, _REFINED_RUN):
            run = slice(start, start + _REFINED_RUN)
            x = input[run]
            _recompute(x < _INEXACT_GELU, x, result[run], formula)


def _gelu_of_negative(x: Array) -> Array:
    """Compute GELU of negative numbers, where ``1 + erf`` would cancel."""
    if x.dtype == np.float32:
        return gelu_of_negative(x)
    result: Array = x / 2 * erfc_of_positive(-x * math.sqrt(0.5), in_float32=False)
    return result


def _gelu_by_tanh(x: Array) -> Array:
    """``x / (1 + exp(-2 u))``: equals ``x / 2 * (1 + tanh(u))`` without cancellation."""
    root = -2 * math.sqrt(2 / math.pi)
    result: Array = x / (1 + np.exp(x * (root + 0.044715 * root * (x * x))))
    return result


@elementwise("nn.Softplus", "F.softplus", "aten::softplus")
def softplus(input: Array, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """``log(1 + exp(beta * x)) / beta``: ``torch.nn.Softplus``.

    ``x`` itself where ``beta * x`` is above `threshold`.
    """
    scaled = input * beta
    return np.where(scaled > threshold, input, np.log1p(np.exp(scaled)) / beta)


@elementwise("nn.Tanh", "F.tanh", "torch.tanh", "Tensor.tanh", "aten::tanh")
def tanh(input: Array) -> Array:
    """Hyperbolic tangent: ``torch.nn.Tanh``."""
    return np.tanh(input)


@elementwise("nn.Tanhshrink", "F.tanhshrink")
def tanhshrink(input: Array) -> Array:
    """``x - tanh(x)``: ``torch.nn.Tanhshrink``."""
    result: Array = input - np.tanh(input)
    return _recompute(np.abs(input) < 1, input, result, _in_double(_tanhshrink_of_small))


def _tanhshrink_of_small(x: Array) -> Array:
    """``x - tanh(x)`` of small numbers by its series, because the difference cancels."""
    square = x * x
    return np.where(square < 1e-6, x * square / 3 * (1 - 0.4 * square), x - np.tanh(x))


@elementwise("nn.Softsign", "F.softsign")
def softsign(input: Array) -> Array:
    """``x / (1 + abs(x))``: ``torch.nn.Softsign``."""
    result: Array = input / (1 + np.abs(input))
    return result


@elementwise("nn.Hardshrink", "F.hardshrink", "torch.hardshrink", "aten::hardshrink")
def hardshrink(input: Array, lambd: float = 0.5) -> Array:
    """0 from ``-lambd`` to ``lambd``, else ``x``: ``torch.nn.Hardshrink``."""
    return np.where(np.abs(input) <= lambd, 0, input)


@elementwise("nn.Softshrink", "F.softshrink", "aten::softshrink")
def softshrink(input: Array, lambd: float = 0.5) -> Array:
    """``x`` moved towards 0 by `lambd`, at most to 0: ``torch.nn.Softshrink``."""
    result: Array = input - np.clip(input, -lambd, lambd)
    return result


@register("nn.PReLU", "F.prelu", "torch.prelu", "aten::prelu")
@mark_elementwise
def prelu(input: Array, weight: WeightOf[Array], num_parameters: int | None = None) -> Array:
    """``x`` where positive, else ``weight * x``: ``torch.nn.PReLU``.

    Parameters
    ----------
    input : ndarray of shape (N, C, ...), or of any shape
    weight : ndarray of shape (C,) or (1,)
        One slope per channel (axis 1), or one for all.

    Returns
    -------
    ndarray of the same shape
    """
    channels = input.shape[1] if input.ndim > 1 else 1
    if weight.size not in {1, channels}:
        raise LayerError(
            f"the input has {channels} channels, the weight has {weight.size} numbers",
            InferStatus.kInferArraySizeMismatch,
        )
    x = input.astype(working_dtype(input.dtype), copy=False)
    slope = weight.astype(x.dtype).reshape(-1, *(1,) * max(input.ndim - 2, 0))
    if weight.size == 1:
        slope = slope.reshape(())
    flat = bool(np.all((slope > 0) & (slope <= 1)))
    return _apply_slopes(x, x * slope, flat).astype(input.dtype, copy=False)


@register("nn.GLU", "F.glu", "aten::glu")
def glu(input: Array, dim: int = -1) -> Array:
    """Multiply one half by the sigmoid of the other: ``torch.nn.GLU``.

    Parameters
    ----------
    input : ndarray of shape (..., 2 D, ...)
        2 D at axis `dim`.

    Returns
    -------
    ndarray of shape (..., D, ...)
    """
    axis = axis_of(dim, input.ndim)
    if input.ndim == 0 or input.shape[axis] % 2:
        raise LayerError(
            f"axis {axis} must have an even size to be halved; the shape is {input.shape}",
            InferStatus.kInferArraySizeMismatch,
        )
    first, second = np.split(input, 2, axis)
    result: Array = first * sigmoid(second)
    return result


def _recompute(
    where: Array, x: Array, result: Array, formula: Callable[[Array], Array]
) -> Array:
    """Compute the selected elements again and write them to the result."""
    places = np.flatnonzero(where)  # indices are many times as fast as a bool mask
    if places.size:
        # `put` takes three times as long for another dtype.
        result[places] = formula(x.take(places)).astype(result.dtype, copy=False)
    return result


def _in_double(formula: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Wrap a formula so that it computes in double precision."""
    return lambda x: formula(x.astype(np.float64))


def _compute_divisor(x: Array) -> Array:
    """``1 + exp(-x)`` in one new array."""
    result: Array = np.exp(-x)
    result += 1
    return result
