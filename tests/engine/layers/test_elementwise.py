"""Element-wise maps against Python's own arithmetic, one element at a time."""

from __future__ import annotations

import cmath
import math
import operator

import numpy as np
import pytest

from engine.errors import InferStatus, LayerError
from engine.layers.elementwise import OPERATIONS

NAN, INF = math.nan, math.inf


def _sign(x):
    return (x > 0) - (x < 0)


def _slope(function, x, h=1e-3):
    """Derivative by differences, the error of which is of the fourth order."""
    near, far = function(x + h) - function(x - h), function(x + 2 * h) - function(x - 2 * h)
    return (8 * near - far) / (12 * h)


def _inverse(function, y):
    """Where a rising function takes a value, found by halving."""
    low, high = -10.0, 10.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < y else (low, middle)
    return low


# What each operation of the table gives for one element, and where it is tried.
UNARY = {
    "abs": abs, "acos": math.acos, "acosh": lambda x: math.acosh(x + 1), "asin": math.asin,
    "asinh": math.asinh, "atan": math.atan, "atanh": lambda x: math.atanh(x / 2),
    "ceil": math.ceil, "cos": math.cos, "cosh": math.cosh, "deg2rad": math.radians,
    "digamma": lambda x: _slope(math.lgamma, x), "erfinv": lambda x: _inverse(math.erf, x),
    "i0": lambda x: sum((x / 2) ** (2 * k) / math.factorial(k) ** 2 for k in range(20)),
    "erf": math.erf, "erfc": math.erfc, "exp": math.exp, "exp2": lambda x: 2**x,
    "expm1": math.expm1, "floor": math.floor, "frac": lambda x: x - math.trunc(x),
    "isfinite": math.isfinite, "isinf": math.isinf, "isnan": math.isnan,
    "isneginf": lambda x: x == -INF, "isposinf": lambda x: x == INF,
    "lgamma": math.lgamma, "log": math.log, "log10": math.log10, "log1p": math.log1p,
    "log2": math.log2, "logical_not": lambda x: not x,
    "neg": operator.neg, "positive": operator.pos,
    "rad2deg": math.degrees, "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: x**-0.5,
    "sgn": _sign, "sign": _sign, "signbit": lambda x: math.copysign(1, x) < 0,
    "sin": math.sin, "sinc": lambda x: math.sin(math.pi * x) / (math.pi * x),
    "sinh": math.sinh, "sqrt": math.sqrt, "square": lambda x: x * x, "tan": math.tan,
    "trunc": math.trunc,
}  # fmt: skip
BINARY = {
    "atan2": math.atan2, "copysign": math.copysign, "eq": operator.eq, "floor_divide":
    lambda a, b: math.floor(a / b), "fmax": max, "fmin": min, "fmod": math.fmod,
    "ge": operator.ge, "gt": operator.gt, "heaviside": lambda a, b: float(a > 0) if a else b,
    "hypot": math.hypot, "ldexp": lambda a, b: a * 2**b, "le": operator.le,
    "logaddexp": lambda a, b: math.log(math.exp(a) + math.exp(b)),
    "logaddexp2": lambda a, b: math.log2(2**a + 2**b),
    "logical_and": lambda a, b: bool(a and b), "logical_or": lambda a, b: bool(a or b),
    "logical_xor": lambda a, b: bool(a) != bool(b), "lt": operator.lt, "maximum": max,
    "minimum": min, "mul": operator.mul, "ne": operator.ne,
    "nextafter": lambda a, b: float(np.nextafter(np.float32(a), np.float32(b))),
    "remainder": operator.mod, "true_divide": operator.truediv,
    "xlogy": lambda a, b: a * math.log(b) if a else 0.0,
}  # fmt: skip
OF_INTEGERS = {
    "bitwise_not": operator.invert, "bitwise_and": operator.and_, "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor, "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift, "gcd": math.gcd, "lcm": math.lcm,
}  # fmt: skip

BETWEEN_0_AND_1 = np.array([[0.125, 0.25, 0.5], [0.75, 0.875, 0.0625]], np.float32)


def test_every_operation_has_a_row_here():
    assert {row.name for row in OPERATIONS} == {*UNARY, *BINARY, *OF_INTEGERS}


@pytest.mark.parametrize("form", ["torch", "Tensor", "aten"])
@pytest.mark.parametrize("name", UNARY)
def test_unary(run, form, name):
    x = BETWEEN_0_AND_1 + 1 if name == "acosh" else BETWEEN_0_AND_1
    x = x / 2 if name == "atanh" else x
    result = run(f"{form}::{name}" if form == "aten" else f"{form}.{name}", x)
    expected = np.array([[UNARY[name](v) for v in row] for row in BETWEEN_0_AND_1.tolist()])
    assert result.dtype == (np.bool_ if expected.dtype == np.bool_ else np.float32)
    np.testing.assert_allclose(result, expected, rtol=2e-6)


@pytest.mark.parametrize("name", BINARY)
def test_binary(run, name):
    other = np.array([0.5, 0.25, 2], np.float32)
    result = run(f"torch.{name}", BETWEEN_0_AND_1, other)
    expected = np.vectorize(BINARY[name])(BETWEEN_0_AND_1.astype(float), other.astype(float))
    assert result.dtype == (np.bool_ if expected.dtype == np.bool_ else np.float32)
    np.testing.assert_allclose(result, expected, rtol=2e-6)


@pytest.mark.parametrize("name", OF_INTEGERS)
def test_of_integers(run, name):
    x, y = np.array([[12, 7, 1]], np.int32), np.array([[3], [1]], np.int32)
    operands = (x,) if name == "bitwise_not" else (x, y)
    result = run(f"torch.{name}", *operands)
    assert result.dtype == np.int32
    for place, value in np.ndenumerate(result):
        assert value == OF_INTEGERS[name](
            *(int(np.broadcast_to(o, result.shape)[place]) for o in operands)
        )


def test_i0(run):
    result = run("torch.i0", np.array([0.0, 1, -3]))
    np.testing.assert_allclose(result, [1, 1.2660658777520084, 4.880792585865024])
    assert run("torch.i0", np.array(1, np.float32)).shape == ()


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("abs", -INF, INF), ("acos", 2, NAN), ("ceil", -0.5, -0.0), ("exp", 1000, INF),
        ("log", 0, -INF), ("log", -1, NAN), ("lgamma", 0, INF), ("lgamma", -3, INF),
        ("lgamma", -INF, INF), ("reciprocal", 0, INF), ("round", NAN, NAN), ("rsqrt", 0, INF),
        ("sign", NAN, 0), ("sign", -INF, -1), ("sqrt", -1, NAN), ("sinc", 0, 1),
        ("floor", INF, INF), ("isnan", NAN, True), ("isinf", -INF, True), ("erf", INF, 1),
        ("signbit", -0.0, True), ("log1p", -1, -INF), ("trunc", -INF, -INF),
    ],
)  # fmt: skip
def test_unary_at_the_edge(run, name, x, expected):
    result = run(f"torch.{name}", np.array([x], np.float32))
    np.testing.assert_array_equal(result, [expected])


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("div", 1, 0, INF), ("div", 0, 0, NAN), ("remainder", -1, 3, 2), ("fmod", -1, 3, -1),
        ("remainder", 1, -3, -2), ("floor_divide", -1, 3, -1), ("maximum", 1, NAN, NAN),
        ("minimum", NAN, 1, NAN), ("fmax", 1, NAN, 1), ("fmin", NAN, NAN, NAN),
        ("pow", 0, 0, 1), ("pow", -8, 1 / 3, NAN), ("pow", 0, -1, INF), ("eq", NAN, NAN, False),
        ("ne", NAN, NAN, True), ("lt", NAN, 1, False), ("atan2", 0, -1, math.pi),
        ("logaddexp", -INF, -INF, -INF), ("logaddexp", 1000, 0, 1000), ("xlogy", 0, 0, 0),
        ("xlogy", 0, NAN, NAN), ("heaviside", NAN, 1, 0), ("hypot", 3, 4, 5),
        ("copysign", 2, -0.0, -2),
    ],
)  # fmt: skip
def test_binary_at_the_edge(run, name, a, b, expected):
    result = run(f"torch.{name}", np.array([a], np.float32), np.array([b], np.float32))
    np.testing.assert_allclose(result, [expected], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("add", np.zeros(2, "f4"), np.zeros(2, "f8"), "f8"),
        ("add", np.zeros(2, "f4"), np.zeros((), "f8"), "f4"),
        ("add", np.zeros(2, "f2"), 2.5, "f2"),
        ("add", np.zeros(2, "i8"), 2.5, "f4"),
        ("add", np.zeros(2, "i4"), 2, "i4"),
        ("add", np.zeros(2, "u1"), np.zeros(2, "i1"), "i2"),
        ("add", np.zeros(2, "?"), np.zeros(2, "?"), "?"),
        ("mul", np.zeros(2, "i8"), np.zeros(2, "f2"), "f2"),
        ("mul", np.zeros(2, "f4"), 1j, "c8"),
        ("div", np.ones(2, "i4"), np.ones(2, "i4"), "f4"),
        ("div", np.ones(2, "f8"), np.ones(2, "i4"), "f8"),
        ("floor_divide", np.ones(2, "i4"), np.ones(2, "i4"), "i4"),
        ("pow", np.ones(2, "i4"), 0.5, "f4"),
        ("eq", np.ones(2, "i4"), 0.5, "?"),
        ("lt", np.ones(2, "f2"), np.ones(2, "f2"), "?"),
        ("float_power", np.ones(2, "f2"), 2, "f8"),
    ],
)
def test_dtypes(run, name, a, b, expected):
    assert run(f"torch.{name}", a, b).dtype == expected


@pytest.mark.parametrize("name", ["sqrt", "exp", "sin", "erf", "rsqrt", "lgamma"])
@pytest.mark.parametrize("dtype", ["?", "u1", "i4", "i8"])
def test_floats_of_integers(run, name, dtype):
    assert run(f"torch.{name}", np.ones(2, dtype)).dtype == np.float32


@pytest.mark.parametrize("name", ["ceil", "floor", "round", "trunc", "abs", "neg", "square"])
def test_integers_stay(run, name):
    assert run(f"torch.{name}", np.array([-3, 3], np.int32)).dtype == np.int32


def test_complex_numbers(run):
    x = np.array([1 + 2j, -1j, 0], np.complex64)
    np.testing.assert_allclose(run("torch.exp", x), [cmath.exp(v) for v in x], rtol=1e-6)
    np.testing.assert_allclose(run("torch.abs", x), [math.sqrt(5), 1, 0], rtol=1e-6)
    np.testing.assert_allclose(run("torch.sgn", x), [x[0] / abs(x[0]), -1j, 0], rtol=1e-6)
    np.testing.assert_allclose(run("torch.exp2", x), [2 ** complex(v) for v in x], rtol=1e-6)


@pytest.mark.parametrize(
    ("operator_type", "operands", "expected"),
    [("aten::add", (2, 3), 5), ("aten::mul", (2, 2.5), 5.0), ("aten::floordiv", (7, 2), 3),
     ("aten::eq", (2, 2), True), ("aten::neg", (4,), -4)],
)  # fmt: skip
def test_python_numbers_give_python_numbers(run, operator_type, operands, expected):
    result = run(operator_type, *operands)
    assert result == expected
    assert type(result) is type(expected)


def test_by_names(run):
    operands = (np.array([1.0]), np.array([4.0]))
    assert run("torch.true_divide", *operands, names=("other", "input")).tolist() == [4]
    assert run("torch.ge", np.array([1.0]), names=("input",), other=1).tolist() == [True]


def test_shapes_that_do_not_fit(run):
    with pytest.raises(LayerError, match="cannot broadcast shapes 2, 3") as caught:
        run("torch.mul", np.ones(2), np.ones(3))
    assert caught.value.status is InferStatus.kInferArraySizeMismatch


def test_a_list_of_numbers_is_a_small_tensor(run):
    # pnnx writes constant vectors of ONNX so; their dtype gives way to that of a tensor.
    result = run("torch.lt", np.array([[1], [3]], np.int32), other=(0, 2, 4))
    np.testing.assert_array_equal(result, [[False, True, True], [False, False, True]])
    product = run("torch.mul", np.array([1, 2], np.int32), other=(3, 4))
    np.testing.assert_array_equal(product, np.array([3, 8], np.int32), strict=True)
    chosen = run("torch.where", np.array([True, False]), input=(1.0, 2.0), other=0.5)
    np.testing.assert_array_equal(chosen, np.float32([1, 0.5]), strict=True)


@pytest.mark.parametrize(
    ("name", "operands", "reason"),
    [
        ("bitwise_and", (np.ones(2), np.ones(2)), "not defined for float64"),
        ("lt", (np.ones(2, "c8"), np.ones(2)), "not defined for complex"),
        ("floor_divide", (np.ones(2, int), np.array([1, 0])), "divides integers by zero"),
        ("positive", (np.ones(2, bool),), "not defined for bool"),
        ("mul", (np.ones(2), (1, "a")), "takes tensors and numbers, not tuple of 2"),
    ],
)
def test_what_is_not_defined(run, name, operands, reason):
    with pytest.raises(LayerError, match=reason):
        run(f"torch.{name}", *operands)


def test_complex_numbers_times_a_power_of_two(run):
    result = run("torch.ldexp", np.array([1 + 2j], np.complex64), np.array([3]))
    np.testing.assert_allclose(result, np.array([8 + 16j], np.complex64), rtol=1e-6)
