"""Element-wise maps of one, two or three tensors, as one table.

What an expression can compute too comes from the expressions' own table, so that both give
the same numbers; the kernels here are the rest. All share one frame: operands are promoted
to a common dtype (`engine.promotion`) and broadcast; Python numbers give a Python number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.errors import InferStatus, LayerError
from engine.expression.functions import FUNCTIONS, Elementwise
from engine.layers.registry import register
from engine.promotion import Scalar
from engine.values import Array, Value

__all__ = ["OPERATIONS", "Operation", "apply"]

Operand = Array | Scalar


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the table.

    Attributes
    ----------
    name : str
        PyTorch's, after ``torch.``.
    summary : str
        What it gives, for its documentation.
    compute : callable
        Takes the operands.
    operands : int
    aliases : tuple of str
        Other names that PyTorch has for it.
    result : str
        A word on the dtype, for its documentation.
    """

    name: str
    summary: str
    compute: Callable[..., Value]
    operands: int
    aliases: tuple[str, ...] = ()
    result: str = "promoted dtype"


def apply(compute: Callable[..., Value], *operands: Value) -> Value:
    """Run a computation; what does not fit becomes a `LayerError`."""
    try:
        return compute(*operands)
    except ValueError as exc:
        raise LayerError(str(exc), InferStatus.kInferArraySizeMismatch) from exc
    except (ArithmeticError, TypeError) as exc:
        raise LayerError(str(exc)) from exc


# Kernels that expressions lack


def _looped(function: Callable[[float], float], at_pole: float) -> Callable[[Array], Array]:
    """A function of Python's `math`, element by element; `at_pole` where it has no value."""

    def one(value: float) -> float:
        try:
            return function(value)
        except (ValueError, OverflowError):
            return at_pole

    loop = np.frompyfunc(one, 1, 1)

    def kernel(x: Array) -> Array:
        return np.asarray(loop(x)).astype(x.dtype)

    return kernel


def _frac(x: Array) -> Array:
    return np.asarray(x - np.trunc(x))


def _logit(x: Array) -> Array:
    return np.asarray(np.log(x / (1 - x)))


def _sgn(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.asarray(FUNCTIONS["sign"].apply(x))
    length = np.abs(x)
    return np.where(length == 0, 0, x / length).astype(x.dtype)


def _positive(x: Array) -> Array:
    if x.dtype.kind == "b":
        raise TypeError("is not defined for bool")
    return x


def _xlogy(x: Array, y: Array) -> Array:
    return np.where((x == 0) & ~np.isnan(y), 0, x * np.log(y)).astype(x.dtype)


def _heaviside(x: Array, values: Array) -> Array:
    below = np.where(x < 0, 0, 1).astype(x.dtype)
    return np.where(np.isnan(x), 0, np.where(x == 0, values, below)).astype(x.dtype)


_UNARY: Final = (
    ("abs", "absolute value", ("absolute",)),
    ("acos", "inverse cosine", ("arccos",)),
    ("acosh", "inverse hyperbolic cosine", ("arccosh",)),
    ("asin", "inverse sine", ("arcsin",)),
    ("asinh", "inverse hyperbolic sine", ("arcsinh",)),
    ("atan", "inverse tangent", ("arctan",)),
    ("atanh", "inverse hyperbolic tangent", ("arctanh",)),
    ("ceil", "smallest integer that is not less", ()),
    ("cos", "cosine", ()),
    ("cosh", "hyperbolic cosine", ()),
    ("erf", "error function", ()),
    ("exp", "exponential", ()),
    ("expm1", "exponential less one, exact near 0", ()),
    ("floor", "largest integer that is not greater", ()),
    ("log", "natural logarithm", ()),
    ("log10", "logarithm to base 10", ()),
    ("log1p", "logarithm of one more, exact near 0", ()),
    ("neg", "negative", ("negative",)),
    ("reciprocal", "reciprocal", ()),
    ("rsqrt", "reciprocal of the square root", ()),
    ("sign", "sign: -1, 0 or 1", ()),
    ("sin", "sine", ()),
    ("sinh", "hyperbolic sine", ()),
    ("sqrt", "square root", ()),
    ("square", "square", ()),
    ("tan", "tangent", ()),
    ("trunc", "integer part", ("fix",)),
)

_BINARY: Final = (
    # name, name in an expression, summary, aliases
    ("atan2", "atan2", "angle of the point (other, input)", ("arctan2",)),
    ("bitwise_and", "and", "bitwise and", ("__and__",)),
    ("bitwise_left_shift", "lshift", "bits moved to the left", ("__lshift__",)),
    ("bitwise_or", "or", "bitwise or", ("__or__",)),
    ("bitwise_right_shift", "rshift", "bits moved to the right", ("__rshift__",)),
    ("bitwise_xor", "xor", "bitwise exclusive or", ("__xor__",)),
    ("floor_divide", "floor_divide", "quotient rounded down", ("floordiv",)),
    ("fmod", "fmod", "remainder with the sign of the input", ()),
    ("logaddexp", "logaddexp", "logarithm of the sum of the exponentials", ()),
    ("maximum", "maximum", "larger of two, NaN where either is", ()),
    ("minimum", "minimum", "smaller of two, NaN where either is", ()),
    ("mul", "mul", "product", ("multiply",)),
    ("remainder", "remainder", "remainder with the sign of the divisor", ()),
    ("true_divide", "div", "quotient", ()),
)

_TRUTH: Final = "bool"
_FLOATS: Final = "input's dtype, float32 for bools and integers"

OPERATIONS: Final[tuple[Operation, ...]] = (
    *(
        Operation(name, summary, FUNCTIONS[name].apply, 1, aliases, "input's dtype")
        if name in {"abs", "ceil", "floor", "neg", "sign", "square", "trunc"}
        else Operation(name, summary, FUNCTIONS[name].apply, 1, aliases, _FLOATS)
        for name, summary, aliases in _UNARY
    ),
    *(
        Operation(name, summary, FUNCTIONS[function].apply, 2, aliases)
        for name, function, summary, aliases in _BINARY
    ),
    *(
        Operation(name, summary, Elementwise(kernel, "bif", floats=True), 1, aliases, _FLOATS)
        for name, summary, kernel, aliases in (
            ("deg2rad", "radians of degrees", np.deg2rad, ()),
            ("erfc", "complement of the error function", _looped(math.erfc, math.nan), ()),
            ("exp2", "power of 2", np.exp2, ()),
            ("frac", "fractional part", _frac, ()),
            ("lgamma", "logarithm of the gamma function", _looped(math.lgamma, math.inf), ()),
            ("logit", "logarithm of the odds", _logit, ()),
            ("rad2deg", "degrees of radians", np.rad2deg, ()),
            ("sinc", "sin(pi x) / (pi x)", np.sinc, ()),
        )
    ),
    Operation("log2", "logarithm to base 2", Elementwise(np.log2, "bifc", floats=True), 1,
              (), _FLOATS),
    Operation("bitwise_not", "bits turned over", Elementwise(np.invert, "bi"), 1,
              ("__invert__",), "input's dtype"),
    Operation("positive", "input itself", Elementwise(_positive, "bifc"), 1,
              (), "input's dtype"),
    Operation("sgn", "sign, or direction of a complex number", Elementwise(_sgn, "bifc"), 1,
              (), "input's dtype"),
    *(
        Operation(name, f"whether it is {summary}", Elementwise(kernel, domain), 1, (), _TRUTH)
        for name, summary, kernel, domain in (
            ("isfinite", "neither infinite nor NaN", np.isfinite, "bifc"),
            ("isinf", "infinite", np.isinf, "bifc"),
            ("isnan", "NaN", np.isnan, "bifc"),
            ("isneginf", "minus infinity", np.isneginf, "bif"),
            ("isposinf", "plus infinity", np.isposinf, "bif"),
            ("signbit", "negative, zeros told apart", np.signbit, "if"),
            ("logical_not", "zero", np.logical_not, "bifc"),
        )
    ),
    *(
        Operation(name, f"whether {summary}", Elementwise(kernel, domain), 2, aliases, _TRUTH)
        for name, summary, kernel, domain, aliases in (
            ("eq", "both are equal", np.equal, "bifc", ("__is__",)),
            ("ge", "the first is not less", np.greater_equal, "bif", ("greater_equal",)),
            ("gt", "the first is greater", np.greater, "bif", ("greater",)),
            ("le", "the first is not greater", np.less_equal, "bif", ("less_equal",)),
            ("lt", "the first is less", np.less, "bif", ("less",)),
            ("ne", "they differ", np.not_equal, "bifc", ("not_equal", "__isnot__")),
            ("logical_and", "both are not zero", np.logical_and, "bifc", ()),
            ("logical_or", "either is not zero", np.logical_or, "bifc", ()),
            ("logical_xor", "one alone is not zero", np.logical_xor, "bifc", ()),
        )
    ),
    *(
        Operation(name, summary, Elementwise(kernel, domain, floats=floats), 2)
        for name, summary, kernel, domain, floats in (
            ("copysign", "input with the sign of the other", np.copysign, "bif", True),
            ("fmax", "larger of two, NaN only where both are", np.fmax, "bif", False),
            ("fmin", "smaller of two, NaN only where both are", np.fmin, "bif", False),
            ("gcd", "greatest common divisor", np.gcd, "i", False),
            ("heaviside", "0, `other` or 1 by the sign", _heaviside, "bif", False),
            ("hypot", "length of the vector of both", np.hypot, "if", False),
            ("lcm", "least common multiple", np.lcm, "i", False),
            ("logaddexp2", "logaddexp to base 2", np.logaddexp2, "bif", True),
            ("nextafter", "next number towards the other", np.nextafter, "f", False),
            ("xlogy", "input times the logarithm of the other", _xlogy, "bif", True),
        )
    ),
)  # fmt: skip

_NOTES: Final = """{summary}: ``torch.{name}``.

    Parameters
    ----------
    {arguments}

    Returns
    -------
    ndarray of the {shape}
        Of the {result}. Numbers alone give a number.
    """


def _unary(compute: Callable[..., Value]) -> Callable[..., Value]:
    def operation(input: Operand) -> Value:
        return apply(compute, input)

    return operation


def _binary(compute: Callable[..., Value]) -> Callable[..., Value]:
    def operation(input: Operand, other: Operand) -> Value:
        return apply(compute, input, other)

    return operation


# Python's operators in TorchScript
_TORCHSCRIPT_ONLY: Final = frozenset(
    [
        "__and__",
        "__is__",
        "__isnot__",
        "__invert__",
        "__lshift__",
        "__or__",
        "__rshift__",
        "__xor__",
        "floordiv",
    ]
)


def _register_all() -> None:
    """Register ``torch.``, ``Tensor.`` and ``aten::`` forms of the whole table."""
    for row in OPERATIONS:
        function = (_unary if row.operands == 1 else _binary)(row.compute)
        function.__name__ = function.__qualname__ = row.name
        function.__doc__ = _NOTES.format(
            name=row.name,
            summary=row.summary.capitalize(),
            arguments="input : ndarray of any shape"
            if row.operands == 1
            else "input, other : ndarray, broadcast to one shape, or number",
            shape="input's shape" if row.operands == 1 else "common shape",
            result=row.result,
        )
        for name in (row.name, *row.aliases):
            register(f"aten::{name}")(function)
            if name not in _TORCHSCRIPT_ONLY:
                register(f"torch.{name}", f"Tensor.{name}")(function)


_register_all()


# Operations with arguments of their own


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
    return _plus(input, other, alpha)


def _plus(input: Value, other: Value, alpha: Value = 1) -> Value:
    return apply(FUNCTIONS["add"].apply, input, _scaled(other, alpha))


def _times(input: Value, other: Value) -> Value:
    return apply(FUNCTIONS["mul"].apply, input, other)


def _scaled(operand: Value, alpha: Value) -> Value:
    return operand if isinstance(alpha, (int, float)) and alpha == 1 else _times(operand, alpha)


@register("torch.sub", "Tensor.sub", "aten::sub", "torch.subtract", "Tensor.subtract")
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
    return apply(FUNCTIONS["sub"].apply, input, _scaled(other, alpha))


@register("torch.rsub", "Tensor.rsub", "aten::rsub")
def rsub(input: Operand, other: Operand, alpha: Scalar = 1) -> Value:
    """Difference ``other - alpha * input``: ``torch.rsub``; as ``torch.sub``."""
    return apply(FUNCTIONS["sub"].apply, other, _scaled(input, alpha))


@register("torch.div", "Tensor.div", "aten::div", "torch.divide", "Tensor.divide")
def div(input: Operand, other: Operand, rounding_mode: str | None = None) -> Value:
    """Quotient: ``torch.div``.

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
        return apply(Elementwise(_divide_and_cut, "if"), input, other)
    if rounding_mode is not None:
        raise LayerError(f"rounding_mode {rounding_mode!r} is neither 'trunc' nor 'floor'")
    return apply(FUNCTIONS["div"].apply, input, other)


def _divide_and_cut(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(np.trunc(a / b))
    if not np.all(b):
        raise ZeroDivisionError("divides integers by zero")
    quotient = a // b
    return np.asarray(quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype))


@register("torch.pow", "Tensor.pow", "aten::pow")
def power(input: Operand, exponent: Operand) -> Value:
    """Power: ``torch.pow``.

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
    kernel = Elementwise(_double_power, "bifc")
    return apply(kernel, input, exponent)


def _double_power(base: Array, exponent: Array) -> Array:
    wide = np.complex128 if base.dtype.kind == "c" else np.float64
    return np.asarray(np.power(base.astype(wide), exponent.astype(wide)))


@register("torch.round", "Tensor.round", "aten::round")
def round_to(input: Operand, decimals: int = 0) -> Value:
    """Nearest integer, halves to the even one: ``torch.round``.

    Parameters
    ----------
    input : ndarray of any shape
    decimals : int
        Round to so many places behind the point, or before it where negative.

    Returns
    -------
    ndarray of the input's shape
        Of the input's dtype.
    """
    if decimals == 0 or not isinstance(input, np.ndarray) or input.dtype.kind != "f":
        return apply(FUNCTIONS["round"].apply, input)
    scale = 10.0 ** abs(decimals)
    wide = input.astype(np.float64)
    with np.errstate(all="ignore"):
        rounded = (
            np.rint(wide * scale) / scale if decimals > 0 else np.rint(wide / scale) * scale
        )
    return np.asarray(rounded, input.dtype)


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
        Where the lower limit is above the upper one, the upper one counts.

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
    return _plus(input, _times(tensor1, tensor2), value)


@register("torch.addcdiv", "Tensor.addcdiv", "aten::addcdiv")
def addcdiv(input: Array, tensor1: Array, tensor2: Array, value: Scalar = 1) -> Value:
    """Sum with a quotient, ``input + value * tensor1 / tensor2``: ``torch.addcdiv``."""
    return _plus(input, div(tensor1, tensor2), value)


@register("torch.lerp", "Tensor.lerp", "aten::lerp")
def lerp(input: Array, end: Array, weight: Operand) -> Value:
    """Point between two, ``input + weight * (end - input)``: ``torch.lerp``."""
    return _plus(input, _times(weight, sub(end, input)))


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
        In place of NaN; 0 by default.
    posinf, neginf : number, optional
        In place of infinities; the dtype's largest and smallest by default.

    Returns
    -------
    ndarray of the same shape and dtype
    """
    if input.dtype.kind not in "fc":
        return input
    return np.nan_to_num(input, nan=nan or 0.0, posinf=posinf, neginf=neginf)
