"""The table of functions of the expression language.

Numbers follow PyTorch eager. On tensors the result has the promoted dtype
(`engine.promotion`), and functions that need floats turn bools and integers into float32.
Where all arguments are Python scalars the result is one too, computed in 64 bits, as
TorchScript does with sizes and literals. Division by zero, logarithms of zero and overflow
give inf and nan and never a warning; only integer division by zero is an error.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import describe_shapes
from engine.promotion import (
    as_operand,
    category,
    float_dtype,
    is_numbers,
    is_scalar,
    result_dtype,
)
from engine.special import erf
from engine.values import describe_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.promotion import DType
    from engine.values import Array, Value

    Kernel = Callable[..., Any]

__all__ = ["FUNCTIONS", "Elementwise", "Function", "truncated_quotient"]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the expression language.

    Attributes
    ----------
    name : str
    least, most : int
        Number of arguments.
    apply : callable
        Takes that many values and returns one. Raises TypeError, ValueError, IndexError or
        ArithmeticError if they do not fit.
    """

    name: str
    least: int
    most: int
    apply: Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Applies a kernel to promoted arguments.

    Attributes
    ----------
    kernel : callable
        Takes arrays of one dtype.
    domain : str
        Allowed categories of the promoted dtype: ``b``, ``i``, ``f``, ``c``.
    floats : bool
        Whether bools and integers become floats.
    on_scalars : callable, optional
        Function to call if all arguments are Python scalars.
    """

    kernel: Kernel
    domain: str
    floats: bool = False
    on_scalars: Kernel | None = None

    def __call__(self, *args: Value) -> Value:
        """Compute on tensors, Python scalars, or both.

        A list of numbers counts as a tensor with one dimension.
        """
        for arg in args:
            known = isinstance(arg, (np.ndarray, np.generic)) or is_scalar(arg)
            if not (known or is_numbers(arg)):
                raise TypeError(f"takes tensors and numbers, not {describe_value(arg)}")
        if all(map(is_scalar, args)):
            return self._scalars(args)
        return self._tensors(args)

    def _scalars(self, args: tuple[Any, ...]) -> Value:
        if self.on_scalars is not None:
            result: Value = self.on_scalars(*args)
            return result
        dtype = np.result_type(*(_SCALAR_DTYPES[type(arg)] for arg in args))
        if dtype.kind == "b" and self.domain != "bi":  # only logic keeps Python's bools
            dtype = np.dtype(np.int64)
        if self.floats and dtype.kind == "i":
            dtype = np.dtype(np.float64)
        value: Value = self._compute(args, dtype).item()
        return value

    def _tensors(self, args: tuple[Any, ...]) -> Array:
        dtype = result_dtype(*args)
        return self._compute(args, float_dtype(dtype) if self.floats else dtype)

    def _compute(self, args: tuple[Any, ...], dtype: DType) -> Array:
        if "bifc"[category(dtype)] not in self.domain:
            raise TypeError(f"is not defined for {dtype}")
        # float16 is computed in float32 and rounded once, as in PyTorch on CPUs.
        half = dtype == np.float16
        arrays = [as_operand(arg, np.dtype(np.float32) if half else dtype) for arg in args]
        try:
            with np.errstate(all="ignore"):
                result = np.asarray(self.kernel(*arrays))
                rounded = half and result.dtype.kind == "f"
                return result.astype(np.float16) if rounded else result
        except ValueError:
            shapes = describe_shapes(array.shape for array in arrays)
            raise ValueError(f"cannot broadcast shapes {shapes}") from None


_SCALAR_DTYPES: Final[dict[type, Any]] = {
    bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128,
}  # fmt: skip


def _sign(x: Array) -> Array:
    # Not np.sign: PyTorch's sign of nan is 0.
    if x.dtype.kind == "b":
        return x
    sign: Array = (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)
    return sign


def _logaddexp(x: Array, y: Array) -> Array:
    if x.dtype.kind != "c":
        return np.asarray(np.logaddexp(x, y))
    swap = x.real < y.real
    larger, smaller = np.where(swap, y, x), np.where(swap, x, y)
    return np.asarray(larger + np.log1p(np.exp(smaller - larger)))


def _square(x: Array) -> Array:
    square: Array = np.square(x.astype(np.int64) if x.dtype.kind == "b" else x)
    return square


def _reciprocal(x: Array) -> Array:
    quotient: Array = np.divide(x.dtype.type(1), x)
    return quotient


def _rsqrt(x: Array) -> Array:
    return _reciprocal(np.sqrt(x))


def _rounding(kernel: Kernel) -> Elementwise:
    """Rounding keeps integer tensors as they are and makes a Python float an int."""

    def on_tensors(x: Array) -> Array:
        return x.copy() if x.dtype.kind in "iu" else kernel(x)

    def on_scalars(x: Any) -> int | float:  # noqa: ANN401
        if isinstance(x, int):
            return int(x)
        if isinstance(x, complex):
            raise TypeError("is not defined for complex numbers")
        rounded = float(kernel(x))
        return int(rounded) if math.isfinite(rounded) else rounded

    return Elementwise(on_tensors, "if", on_scalars=on_scalars)


def _by_integer(kernel: Kernel) -> Kernel:
    """A division in which an integer divisor of zero is an error, as in PyTorch."""

    def divide(a: Array, b: Array) -> Array:
        if b.dtype.kind in "iu" and not np.all(b):
            raise ZeroDivisionError("divides integers by zero")
        result: Array = kernel(a, b)
        return result

    return divide


def _power(base: Array, exponent: Array) -> Array:
    if base.dtype.kind not in "iu" or not np.any(exponent < 0):
        return np.power(base, exponent)
    # An integer to a negative power is its truncated reciprocal: 0, 1 or -1.
    unit = np.abs(base) == 1
    inverse = np.power(base, exponent & 1) * unit
    return np.where(exponent < 0, inverse, np.power(base, np.maximum(exponent, 0)))


def _scalar_power(base: Any, exponent: Any) -> Value:  # noqa: ANN401
    integers = isinstance(base, int) and isinstance(exponent, int) and exponent >= 0
    dtype = np.int64 if integers else np.result_type(np.float64, type(base), type(exponent))
    with np.errstate(all="ignore"):
        value: Value = np.power(np.array(base, dtype), np.array(exponent, dtype)).item()
        return value


def _size(value: Value, dim: Any = None) -> Value:  # noqa: ANN401
    if not isinstance(value, np.ndarray):
        raise TypeError(f"takes a tensor, not {describe_value(value)}")
    if dim is None:
        return value.shape
    index = operator.index(dim)
    if not -value.ndim <= index < value.ndim:
        raise IndexError(f"a tensor of {value.ndim} dimensions has no dimension {index}")
    return int(value.shape[index])


def _to_scalar(convert: type) -> Callable[[Value], Value]:
    """A cast to a Python number, of a number or of a tensor with one element."""

    def cast(value: Value) -> Value:
        if isinstance(value, (np.ndarray, np.generic)) and value.size == 1:
            value = value.item()
        if not is_scalar(value):
            raise TypeError(f"takes one number, not {describe_value(value)}")
        result: Value = convert(value)
        return result

    return cast


def _to_dtype(dtype: DType) -> Callable[[Value], Value]:
    """A cast to a dtype; a number becomes a 0-d tensor."""

    def cast(value: Value) -> Value:
        if not (isinstance(value, (np.ndarray, np.generic)) or is_scalar(value)):
            raise TypeError(f"takes tensors and numbers, not {describe_value(value)}")
        if np.iscomplexobj(value) and dtype.kind not in "bc":
            value = value.real
        return as_operand(value, dtype)

    return cast


_UNARY: Final[dict[str, Callable[..., Value]]] = {
    "abs": Elementwise(np.abs, "ifc"),
    "ceil": _rounding(np.ceil),
    "erf": Elementwise(erf, "bif", floats=True),
    "floor": _rounding(np.floor),
    "neg": Elementwise(np.negative, "ifc"),
    "reciprocal": Elementwise(_reciprocal, "bifc", floats=True),
    "round": _rounding(np.rint),
    "rsqrt": Elementwise(_rsqrt, "bifc", floats=True),
    "sign": Elementwise(_sign, "bif"),
    "square": Elementwise(_square, "bifc"),
    "trunc": _rounding(np.trunc),
    **{
        name: Elementwise(kernel, "bifc", floats=True)
        for name, kernel in {
            "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
            "atan": np.arctan, "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh,
            "exp": np.exp, "expm1": np.expm1, "log": np.log, "log10": np.log10,
            "log1p": np.log1p, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt,
            "tan": np.tan, "tanh": np.tanh,
        }.items()
    },
    "bool": _to_scalar(bool),
    "float": _to_scalar(float),
    "int": _to_scalar(int),
}  # fmt: skip

_BINARY: Final[dict[str, Callable[..., Value]]] = {
    "add": Elementwise(np.add, "bifc"),
    "and": Elementwise(np.bitwise_and, "bi"),
    "atan2": Elementwise(np.arctan2, "bif", floats=True),
    "div": Elementwise(np.divide, "bifc", floats=True),
    "floor_divide": Elementwise(_by_integer(np.floor_divide), "if"),
    "fmod": Elementwise(_by_integer(np.fmod), "if"),
    "logaddexp": Elementwise(_logaddexp, "bifc", floats=True),
    "lshift": Elementwise(np.left_shift, "i"),
    "max": Elementwise(np.maximum, "bif"),
    "maximum": Elementwise(np.maximum, "bif"),
    "min": Elementwise(np.minimum, "bif"),
    "minimum": Elementwise(np.minimum, "bif"),
    "mul": Elementwise(np.multiply, "bifc"),
    "or": Elementwise(np.bitwise_or, "bi"),
    "pow": Elementwise(_power, "ifc", on_scalars=_scalar_power),
    "remainder": Elementwise(_by_integer(np.remainder), "if"),
    "rshift": Elementwise(np.right_shift, "i"),
    "sub": Elementwise(np.subtract, "ifc"),
    "xor": Elementwise(np.bitwise_xor, "bi"),
}

# PyTorch's names of its dtypes. NumPy has neither bfloat16 nor half-precision complex
# numbers; the engine holds the values of both in the next wider type.
_DTYPES: Final = {
    "bool": np.bool_,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
    "int8": np.int8, "int16": np.int16, "short": np.int16, "int32": np.int32,
    "int": np.int32, "int64": np.int64, "long": np.int64,
    "float16": np.float16, "half": np.float16, "bfloat16": np.float32,
    "float32": np.float32, "float": np.float32, "float64": np.float64, "double": np.float64,
    "complex32": np.complex64, "chalf": np.complex64, "complex64": np.complex64,
    "cfloat": np.complex64, "complex128": np.complex128, "cdouble": np.complex128,
}  # fmt: skip

FUNCTIONS: Final[dict[str, Function]] = {
    function.name: function
    for function in (
        *(Function(name, 1, 1, apply) for name, apply in _UNARY.items()),
        *(Function(name, 2, 2, apply) for name, apply in _BINARY.items()),
        *(
            Function(f"torch.{name}", 1, 1, _to_dtype(np.dtype(dtype)))
            for name, dtype in _DTYPES.items()
        ),
        Function("size", 1, 2, _size),
    )
}


def truncated_quotient(a: Array, b: Array) -> Array:
    """Quotient of integers, cut towards zero.

    Raises
    ------
    ZeroDivisionError
        If a divisor is zero.
    """
    quotient = _by_integer(np.floor_divide)(a, b)
    return np.asarray(quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype))
