"""The table of element-wise functions of one, two or three tensors.

Functions that expressions also have are in the expressions' own table, so that both compute the
same numbers. The other kernels are here. All operands are promoted to a common dtype
(`engine.promotion`) and broadcast. Python numbers give a Python number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.errors import InferStatus, LayerError
from engine.expression.functions import FUNCTIONS, Elementwise
from engine.layers.exactness import mark_elementwise
from engine.layers.registry import register
from engine.promotion import Numbers, Scalar
from engine.special import digamma, erfinv
from engine.values import Array, Value

__all__ = ["OPERATIONS", "Operation", "apply"]

Operand = Array | Scalar | Numbers


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the table.

    Attributes
    ----------
    name : str
        PyTorch's name, without ``torch.``.
    summary : str
        What the function computes, for its documentation.
    compute : callable
        Called with the operands.
    operands : int
        Number of operands.
    aliases : tuple of str
        Other names in PyTorch.
    result : str
        Note on the result's dtype, for its documentation.
    """

    name: str
    summary: str
    compute: Callable[..., Value]
    operands: int
    aliases: tuple[str, ...] = ()
    result: str = "promoted dtype"


def apply(compute: Callable[..., Value], *operands: Value) -> Value:
    """Run a computation and convert its errors to a `LayerError`."""
    try:
        return compute(*operands)
    except ValueError as exc:
        raise LayerError(str(exc), InferStatus.kInferArraySizeMismatch) from exc
    except (ArithmeticError, TypeError) as exc:
        raise LayerError(str(exc)) from exc


# Kernels that expressions lack


def _make_loop(function: Callable[[float], float], at_pole: float) -> Callable[[Array], Array]:
    """Apply a function of Python's `math` to each element; `at_pole` where it is undefined."""

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


def _exp2(x: Array) -> Array:
    return np.power(2, x) if x.dtype.kind == "c" else np.exp2(x)


def _i0(x: Array) -> Array:
    return np.i0(x).reshape(x.shape)  # NumPy adds a dimension to a 0-d array


def _ldexp(x: Array, power: Array) -> Array:
    return np.asarray(x * _exp2(power))


def _signbit(x: Array) -> Array:
    return x < 0 if x.dtype.kind in "biu" else np.signbit(x)


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
    ("expm1", "exponential minus one, exact near 0", ()),
    ("floor", "largest integer that is not greater", ()),
    ("log", "natural logarithm", ()),
    ("log10", "logarithm to base 10", ()),
    ("log1p", "logarithm of one plus the input, exact near 0", ()),
    ("neg", "the negative", ("negative",)),
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
    ("bitwise_left_shift", "lshift", "bits shifted to the left", ("__lshift__",)),
    ("bitwise_or", "or", "bitwise or", ("__or__",)),
    ("bitwise_right_shift", "rshift", "bits shifted to the right", ("__rshift__",)),
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
        Operation(name, summary, Elementwise(kernel, domain, floats=True), 1, (), _FLOATS)
        for name, summary, kernel, domain in (
            ("deg2rad", "radians of degrees", np.deg2rad, "bif"),
            ("digamma", "logarithmic derivative of gamma", digamma, "bif"),
            ("erfc", "complementary error function", _make_loop(math.erfc, math.nan), "bif"),
            ("erfinv", "inverse of the error function", erfinv, "bif"),
            ("exp2", "power of 2", _exp2, "bifc"),
            ("i0", "modified Bessel function of order 0", _i0, "bif"),
            ("lgamma", "logarithm of gamma", _make_loop(math.lgamma, math.inf), "bif"),
            ("rad2deg", "degrees of radians", np.rad2deg, "bif"),
            ("sinc", "``sin(pi x) / (pi x)``", np.sinc, "bifc"),
            ("log2", "logarithm to base 2", np.log2, "bifc"),
        )
    ),
    Operation("frac", "fractional part", Elementwise(_frac, "f"), 1, (), "input's dtype"),
    Operation("bitwise_not", "bitwise not", Elementwise(np.invert, "bi"), 1,
              ("__invert__",), "input's dtype"),
    Operation("positive", "the input itself", Elementwise(_positive, "bifc"), 1,
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
            ("signbit", "negative; -0.0 counts as negative", _signbit, "bif"),
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
            ("logical_xor", "exactly one is not zero", np.logical_xor, "bifc", ()),
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
            ("hypot", "length of the vector of both", np.hypot, "f", False),
            ("ldexp", "input times 2 to the power of the other", _ldexp, "bifc", True),
            ("lcm", "least common multiple", np.lcm, "i", False),
            ("logaddexp2", "``logaddexp`` to base 2", np.logaddexp2, "bif", True),
            ("nextafter", "next number towards the other", np.nextafter, "f", False),
            ("xlogy", "input times the logarithm of the other", _xlogy, "bif", True),
        )
    ),
)  # fmt: skip

_NOTES: Final = """{summary}, element by element: ``torch.{name}``.

    Parameters
    ----------
    {arguments}

    Returns
    -------
    ndarray of the {shape}
        Of the {result}. Numbers alone give a number.
    """


def _make_unary(compute: Callable[..., Value]) -> Callable[..., Value]:
    def operation(input: Operand) -> Value:
        return apply(compute, input)

    return operation


def _make_binary(compute: Callable[..., Value]) -> Callable[..., Value]:
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


# Names in ``torch.special``
_SPECIAL: Final = {
    **{name: name for name in ("erf", "erfc", "exp2", "expm1", "log1p", "sinc", "xlogy")},
    "lgamma": "gammaln",
}


def _register_all() -> None:
    """Register the ``torch.``, ``Tensor.`` and ``aten::`` types of the whole table."""
    for row in OPERATIONS:
        make = _make_unary if row.operands == 1 else _make_binary
        function = mark_elementwise(make(row.compute))
        function.__name__ = function.__qualname__ = row.name
        function.__doc__ = _NOTES.format(
            name=row.name,
            summary=row.summary[0].upper() + row.summary[1:],
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
        if row.name in _SPECIAL:
            name = _SPECIAL[row.name]
            register(f"torch.special.{name}", f"aten::special_{name}")(function)


_register_all()
