"""Element-wise operators of ONNX that PyTorch lacks, or defines differently."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import LayerError
from engine.layers import activations
from engine.layers.activations import elementwise, sigmoid
from engine.layers.annotations import OperandOf
from engine.layers.arguments import cast, require_array
from engine.layers.elementwise import Operand
from engine.layers.onnx.arguments import dtype_of_code
from engine.layers.registry import register
from engine.promotion import promote
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["bit_shift", "cast_like", "clip", "mod", "where"]

# Activations

# PyTorch's, with the same arguments
for _type, _function in {
    "Celu": activations.celu,
    "Elu": activations.elu,
    "HardSwish": activations.hardswish,
    "Mish": activations.mish,
    "Relu": activations.relu,
    "Softplus": activations.softplus,
    "Softsign": activations.softsign,
}.items():
    register(_type)(_function)


@elementwise("HardSigmoid")
def hard_sigmoid(x: Array, alpha: float = 0.2, beta: float = 0.5) -> Array:
    """``max(0, min(1, alpha * x + beta))``: ONNX ``HardSigmoid``.

    Parameters
    ----------
    alpha : float
        Slope in the middle.
    beta : float
        Value at 0.
    """
    result: Array = np.clip(alpha * x + beta, 0, 1)
    return result


@elementwise("LeakyRelu")
def leaky_relu(x: Array, alpha: float = 0.01) -> Array:
    """``x`` where it is positive, otherwise ``alpha * x``: ONNX ``LeakyRelu``.

    Parameters
    ----------
    alpha : float
        Slope on the negative side.
    """
    return np.where(x < 0, alpha * x, x)


@elementwise("Selu")
def selu(
    x: Array, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875
) -> Array:
    """``gamma * x`` where x is positive, else ``gamma * alpha * (exp(x) - 1)``: ONNX ``Selu``.

    Parameters
    ----------
    alpha : float
        Sets the lower limit, ``-gamma * alpha``.
    gamma : float
        Factor of the result.
    """
    return gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


@elementwise("Shrink", integers=True)
def shrink(x: Array, lambd: float = 0.5, bias: float = 0.0) -> Array:
    """``x`` moved towards 0 by `bias`, and 0 from ``-lambd`` to ``lambd``: ONNX ``Shrink``.

    Parameters
    ----------
    lambd : float
        Threshold up to which the result is 0.
    bias : float
        Amount that other values move towards 0.
    """
    shrunk = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))
    return shrunk.astype(x.dtype, copy=False)


@elementwise("Swish")
def swish(x: Array, alpha: float = 1.0) -> Array:
    """``x * sigmoid(alpha * x)``: ONNX ``Swish``.

    Parameters
    ----------
    alpha : float
        Factor of the sigmoid's argument.
    """
    return x * sigmoid(alpha * x)


@elementwise("ThresholdedRelu")
def thresholded_relu(x: Array, alpha: float = 1.0) -> Array:
    """``x`` where it is more than `alpha`, otherwise 0: ONNX ``ThresholdedRelu``.

    Parameters
    ----------
    alpha : float
        The threshold.
    """
    return np.where(x > alpha, x, 0)


@register("PRelu")
def prelu(x: Array, slope: Array) -> Array:
    """``x`` where it is not negative, otherwise ``slope * x``: ONNX ``PRelu``.

    Parameters
    ----------
    x : ndarray of any shape
    slope : ndarray that broadcasts to it

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    return np.where(x < 0, slope * x, x).astype(x.dtype, copy=False)


# Of several operands


def _fold(*data: Operand, join: Callable[[Array, Array], Array]) -> Array:
    if not data:
        raise LayerError("there is no operand")
    return reduce(join, promote(*data))


@register("Max")
def maximum(*data: Operand) -> Array:
    """Largest of all operands, element by element: ONNX ``Max``.

    Parameters
    ----------
    *data : ndarray, broadcast to one shape

    Returns
    -------
    ndarray of the common shape
    """
    return _fold(*data, join=np.maximum)


@register("Min")
def minimum(*data: Operand) -> Array:
    """Smallest of all operands, element by element: ONNX ``Min``.

    Parameters
    ----------
    *data : ndarray, broadcast to one shape

    Returns
    -------
    ndarray of the common shape
    """
    return _fold(*data, join=np.minimum)


@register("Sum")
def total(*data: Operand) -> Array:
    """Sum of all operands, element by element: ONNX ``Sum``.

    Parameters
    ----------
    *data : ndarray, broadcast to one shape

    Returns
    -------
    ndarray of the common shape
    """
    return _fold(*data, join=np.add)


@register("Mean")
def mean(*data: Operand) -> Array:
    """Mean of all operands, element by element: ONNX ``Mean``.

    Parameters
    ----------
    *data : ndarray, broadcast to one shape

    Returns
    -------
    ndarray of the common shape
    """
    summed = total(*data)
    return np.asarray(summed / len(data)).astype(summed.dtype, copy=False)


@register("Where")
def where(condition: Operand, x: Operand, y: Operand) -> Array:
    """Elements of one tensor or of another: ONNX ``Where``.

    Parameters
    ----------
    condition : bool ndarray
    x, y : ndarray
        Elements where `condition` is true, and where it is false. All are broadcast to one
        shape.

    Returns
    -------
    ndarray of the common shape
    """
    return np.where(np.asarray(condition), *promote(x, y))


@register("Clip")
def clip(input: Array, min: Value = None, max: Value = None) -> Array:
    """Limit elements to a range: ONNX ``Clip``.

    Parameters
    ----------
    input : ndarray of any shape
    min, max : number, or ndarray of shape (), optional
        Ends of the range; none by default.

    Returns
    -------
    ndarray of the input's shape and dtype
    """
    for end, choose in ((min, np.maximum), (max, np.minimum)):
        if end is not None:
            input = choose(input, cast(np.asarray(end), input.dtype))
    return input


@register("Mod")
def mod(a: Operand, b: Operand, fmod: int = 0) -> Array:
    """Remainder of a division: ONNX ``Mod``.

    Parameters
    ----------
    a, b : ndarray, broadcast to one shape
    fmod : int
        Whether the remainder has the sign of the dividend, instead of the divisor's.

    Returns
    -------
    ndarray of the common shape
    """
    left, right = promote(a, b)
    return np.asarray((np.fmod if fmod else np.mod)(left, right))


@register("BitShift")
def bit_shift(x: Operand, y: Operand, direction: str) -> Array:
    """Bits moved to one side: ONNX ``BitShift``.

    Parameters
    ----------
    x, y : unsigned integer ndarray, broadcast to one shape
        Numbers, and the number of bits to shift by.
    direction : str
        ``LEFT`` or ``RIGHT``.

    Returns
    -------
    ndarray of the common shape
    """
    left, right = promote(x, y)
    return np.asarray((np.left_shift if direction == "LEFT" else np.right_shift)(left, right))


@register("IsInf")
def is_inf(x: Array, detect_negative: int = 1, detect_positive: int = 1) -> Array:
    """Whether elements are infinite: ONNX ``IsInf``.

    Parameters
    ----------
    x : ndarray of any shape
    detect_negative, detect_positive : int
        Whether minus infinity counts, and plus infinity.

    Returns
    -------
    bool ndarray of the same shape
    """
    result = np.zeros(x.shape, np.bool_)
    if detect_negative:
        result |= np.isneginf(x)
    if detect_positive:
        result |= np.isposinf(x)
    return result


@register("IsNaN")
def is_nan(x: Array) -> Array:
    """Whether elements are NaN: ONNX ``IsNaN``.

    Returns
    -------
    bool ndarray of the input's shape
    """
    return np.isnan(x)


# Dtypes


@register("Cast")
def cast_to(
    input: OperandOf[Value], to: int, saturate: int = 1, round_mode: str = "up"
) -> Array:
    """Convert to another dtype: ONNX ``Cast``.

    Parameters
    ----------
    input : ndarray of any shape
    to : int
        ONNX's number of the dtype.
    saturate, round_mode
        No effect: only for dtypes of at most eight bits, which are unsupported.

    Returns
    -------
    ndarray of the same shape
    """
    return cast(np.asarray(input), dtype_of_code(to))


@register("CastLike")
def cast_like(
    input: OperandOf[Value],
    target_type: OperandOf[Value],
    saturate: int = 1,
    round_mode: str = "up",
) -> Array:
    """Convert to the dtype of another tensor: ONNX ``CastLike``.

    Parameters
    ----------
    input : ndarray of any shape
    target_type : ndarray
        Determines the dtype.
    saturate, round_mode
        No effect: only for dtypes of at most eight bits, which are unsupported.

    Returns
    -------
    ndarray of the same shape
    """
    return cast(np.asarray(input), require_array(target_type, "target_type").dtype)


@register("BitCast")
def bit_cast(input: Array, to: int) -> Array:
    """Read the same bits as another dtype: ONNX ``BitCast``.

    Parameters
    ----------
    input : ndarray of any shape
    to : int
        ONNX's number of a dtype of the same width.

    Returns
    -------
    ndarray of the same shape
        A view of `input`.
    """
    dtype = dtype_of_code(to)
    if dtype.itemsize != input.dtype.itemsize:
        raise LayerError(f"{input.dtype} and {dtype} have different widths")
    return input.view(dtype)
