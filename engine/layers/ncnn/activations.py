"""Activations: separate layers, and those that another layer applies to its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.errors import LayerError, ParameterError
from engine.layers import activations as torch_activations
from engine.layers.layer import Layer
from engine.layers.ncnn.table import layer
from engine.special import erf as special_erf
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["activate", "check_activation"]

_LARGEST: Final = float(np.finfo(np.float32).max)
# Parameters that each `activation_type` takes.
_PARAMS: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 0, 5: 0, 6: 2}


def check_activation(kind: int, params: Sequence[float]) -> None:
    """Check the activation of a layer.

    Raises
    ------
    ParameterError
        If there is no such activation, or it lacks parameters.
    """
    if kind not in _PARAMS or len(params) < _PARAMS[kind]:
        raise ParameterError(
            "activation_type",
            f"activation_type={kind} with {len(params)} parameters is not one of ncnn",
        )


def activate(x: Array, kind: int, params: Sequence[float]) -> Array:
    """Apply the activation of a layer.

    Parameters
    ----------
    x : ndarray
    kind : int
        0 none, 1 ReLU, 2 leaky ReLU, 3 clip, 4 sigmoid, 5 Mish, 6 hard swish.
    params : sequence of float
        The slope of 2, the limits of 3, or alpha and beta of 6.

    Returns
    -------
    ndarray of the same shape
    """
    if kind == 1:
        return relu(x)
    if kind == 2:
        return relu(x, params[0])
    if kind == 3:
        return clip(x, params[0], params[1])
    if kind == 4:
        return torch_activations.sigmoid(x)
    if kind == 5:
        return torch_activations.mish(x)
    if kind == 6:
        return hard_swish(x, params[0], params[1])
    return x


@layer("ReLU")
def relu(input: Array, slope: float = 0.0) -> Array:
    """Replace negative numbers by 0, or by `slope` times themselves."""
    if not slope:
        return torch_activations.relu(input)
    return torch_activations.leaky_relu(input, slope)


@layer("Clip")
def clip(input: Array, min: float = -_LARGEST, max: float = _LARGEST) -> Array:
    """Limit numbers to `min` and `max`."""
    low, high = np.float32(min), np.float32(max)
    return np.asarray(np.minimum(np.maximum(input, low), high))


@layer("HardSwish")
def hard_swish(input: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Multiply by a line that is clipped at 0 and 1: ``x * clip(alpha * x + beta, 0, 1)``."""
    return np.asarray(input * hard_sigmoid(input, alpha, beta))


@layer("HardSigmoid")
def hard_sigmoid(input: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """Clip a line at 0 and 1: ``clip(alpha * x + beta, 0, 1)``."""
    line = np.float32(alpha) * input + np.float32(beta)
    return np.asarray(np.clip(line, np.float32(0), np.float32(1)))


@layer("Sigmoid")
def sigmoid(input: Array) -> Array:
    """Compute ``1 / (1 + exp(-x))``."""
    return torch_activations.sigmoid(input)


@layer("Swish")
def swish(input: Array) -> Array:
    """Compute ``x / (1 + exp(-x))``."""
    return torch_activations.silu(input)


@layer("TanH")
def tanh(input: Array) -> Array:
    """Compute the hyperbolic tangent."""
    return torch_activations.tanh(input)


@layer("Mish")
def mish(input: Array) -> Array:
    """Compute ``x * tanh(log(1 + exp(x)))``."""
    return torch_activations.mish(input)


@layer("Softplus")
def softplus(input: Array) -> Array:
    """Compute ``log(1 + exp(x))``."""
    return torch_activations.softplus(input)


@layer("BNLL")
def bnll(input: Array) -> Array:
    """Compute ``log(1 + exp(x))``."""
    return torch_activations.softplus(input)


@layer("GELU")
def gelu(input: Array, fast_gelu: int = 0) -> Array:
    """Compute ``x * Phi(x)``; with `fast_gelu` by a formula with tanh."""
    return torch_activations.gelu(input, "tanh" if fast_gelu else "none")


@layer("ELU")
def elu(input: Array, alpha: float = 0.1) -> Array:
    """Replace negative numbers by ``alpha * (exp(x) - 1)``."""
    return torch_activations.elu(input, alpha)


@layer("CELU")
def celu(input: Array, alpha: float = 1.0) -> Array:
    """Replace negative numbers by ``alpha * (exp(x / alpha) - 1)``."""
    return torch_activations.celu(input, alpha)


@layer("SELU")
def selu(input: Array, alpha: float = 1.67326324, lambd: float = 1.050700987) -> Array:
    """Replace negative numbers by ``alpha * (exp(x) - 1)``, and multiply all by `lambd`."""
    return np.asarray(torch_activations.elu(input, alpha) * np.float32(lambd))


@layer("Shrink")
def shrink(input: Array, bias: float = 0.0, lambd: float = 0.5) -> Array:
    """Move numbers towards 0 by `bias`, and set those within `lambd` to 0."""
    moved = input - np.copysign(np.float32(bias), input)
    return np.where(np.abs(input) > np.float32(lambd), moved, np.float32(0))


@layer("Threshold")
def threshold(input: Array, threshold: float = 0.0) -> Array:
    """Compare with a threshold: 1 above it, else 0."""
    return np.asarray((input > np.float32(threshold)).astype(np.float32))


@layer("PReLU")
def prelu(input: Array, slope: Array, num_slope: int = 0) -> Array:
    """Multiply negative numbers by a slope, one for all or one per channel.

    Parameters
    ----------
    input : ndarray of shape (C, ...)
    slope : ndarray of shape (1,) or (C,)
    num_slope : int
    """
    if num_slope not in {1, input.shape[0]} or slope.size != num_slope:
        raise LayerError(f"{slope.size} slopes do not fit {input.shape[0]} channels")
    slopes = slope.reshape(-1, *(1,) * (input.ndim - 1)).astype(np.float32)
    return np.where(input < 0, input * slopes, input)


@layer("AbsVal")
def absolute(input: Array) -> Array:
    """Return the absolute value."""
    return np.abs(input)


@layer("Erf")
def erf(input: Array) -> Array:
    """Compute the error function."""
    return np.asarray(special_erf(input))


@layer("Dropout")
def dropout(input: Array, scale: float = 1.0) -> Array:
    """Multiply by `scale`; inference drops nothing."""
    return input if scale == 1 else np.asarray(input * np.float32(scale))


@layer("Power")
def power(input: Array, power: float = 1.0, scale: float = 1.0, shift: float = 0.0) -> Array:
    """Compute ``(shift + x * scale) ** power``."""
    return np.asarray(_apply_line(input, scale, shift) ** np.float32(power))


@layer("Exp")
def exp(input: Array, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> Array:
    """Compute ``base ** (shift + x * scale)``; a base of -1 means e."""
    line = _apply_line(input, scale, shift)
    return np.asarray(np.exp(line) if base == -1 else np.float32(base) ** line)


@layer("Log")
def log(input: Array, base: float = -1.0, scale: float = 1.0, shift: float = 0.0) -> Array:
    """Compute the logarithm of ``shift + x * scale``; a base of -1 means e."""
    result = np.log(_apply_line(input, scale, shift))
    return np.asarray(result if base == -1 else result / np.log(np.float32(base)))


def _apply_line(x: Array, scale: float, shift: float) -> Array:
    return np.asarray(x * np.float32(scale) + np.float32(shift))


_UNARY: Final[tuple[Callable[[Array], Array], ...]] = (
    np.abs, np.negative, np.floor, np.ceil, np.square, np.sqrt,
    lambda x: 1 / np.sqrt(x),
    np.exp, np.log, np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan,
    np.reciprocal, np.tanh, np.log10, np.rint, np.trunc, np.sign, np.expm1, np.sinh,
    np.arcsinh, np.cosh, np.arccosh, np.arctanh, np.log1p,
)  # fmt: skip


@layer("UnaryOp")
class UnaryOp(Layer):
    """Apply a function to each number.

    Parameters
    ----------
    op_type : int
        0 abs, 1 neg, 2 floor, 3 ceil, 4 square, 5 sqrt, 6 rsqrt, 7 exp, 8 log, 9 sin, 10 cos,
        11 tan, 12 asin, 13 acos, 14 atan, 15 reciprocal, 16 tanh, 17 log10, 18 round,
        19 trunc, 20 sign, 21 expm1, 22 sinh, 23 asinh, 24 cosh, 25 acosh, 26 atanh, 27 log1p.
    """

    def __init__(self, op_type: int = 0) -> None:
        if not 0 <= op_type < len(_UNARY):
            raise ParameterError("op_type", f"op_type={op_type} is not a function of ncnn")
        self._function = _UNARY[op_type]

    @override
    def forward(self, input: Array) -> Array:
        return np.asarray(self._function(input))
