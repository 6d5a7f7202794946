"""Every function against what PyTorch 2.13 gives, typed here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import ExpressionError
from engine.expression import FUNCTIONS, parse

inf, nan = math.inf, math.nan


def apply(name, *args):
    return FUNCTIONS[name].apply(*args)


def check(result, expected, dtype, rtol=2e-6):
    assert isinstance(result, np.ndarray)
    assert result.dtype == np.dtype(dtype)
    np.testing.assert_allclose(result, expected, rtol=rtol, atol=1e-7)


FLOATS = [-1.5, -0.5, 0.0, 0.5, 2.0, inf, nan]
UNARY_ON_FLOATS = [
    ("abs", [1.5, 0.5, 0, 0.5, 2, inf, nan]),
    ("acos", [nan, 2.094395, 1.570796, 1.047198, nan, nan, nan]),
    ("acosh", [nan, nan, nan, nan, 1.316958, inf, nan]),
    ("asin", [nan, -0.5235988, 0, 0.5235988, nan, nan, nan]),
    ("asinh", [-1.194763, -0.4812118, 0, 0.4812118, 1.443635, inf, nan]),
    ("atan", [-0.9827937, -0.4636476, 0, 0.4636476, 1.107149, 1.570796, nan]),
    ("atanh", [nan, -0.5493062, 0, 0.5493062, nan, nan, nan]),
    ("ceil", [-1, -0, 0, 1, 2, inf, nan]),
    ("cos", [0.0707372, 0.8775826, 1, 0.8775826, -0.4161468, nan, nan]),
    ("cosh", [2.35241, 1.127626, 1, 1.127626, 3.762196, inf, nan]),
    ("erf", [-0.9661052, -0.5204999, 0, 0.5204999, 0.9953223, 1, nan]),
    ("exp", [0.2231302, 0.6065307, 1, 1.648721, 7.389056, inf, nan]),
    ("expm1", [-0.7768698, -0.3934693, 0, 0.6487213, 6.389056, inf, nan]),
    ("floor", [-2, -1, 0, 0, 2, inf, nan]),
    ("log", [nan, nan, -inf, -0.6931472, 0.6931472, inf, nan]),
    ("log10", [nan, nan, -inf, -0.30103, 0.30103, inf, nan]),
    ("log1p", [nan, -0.6931472, 0, 0.4054651, 1.098612, inf, nan]),
    ("neg", [1.5, 0.5, -0, -0.5, -2, -inf, nan]),
    ("reciprocal", [-0.6666667, -2, inf, 2, 0.5, 0, nan]),
    ("round", [-2, -0, 0, 0, 2, inf, nan]),
    ("rsqrt", [nan, nan, inf, 1.414214, 0.7071068, 0, nan]),
    ("sign", [-1, -1, 0, 1, 1, 1, 0]),
    ("sin", [-0.997495, -0.4794255, 0, 0.4794255, 0.9092974, nan, nan]),
    ("sinh", [-2.129279, -0.5210953, 0, 0.5210953, 3.62686, inf, nan]),
    ("sqrt", [nan, nan, 0, 0.7071068, 1.414214, inf, nan]),
    ("square", [2.25, 0.25, 0, 0.25, 4, inf, nan]),
    ("tan", [-14.10142, -0.5463025, 0, 0.5463025, -2.18504, nan, nan]),
    ("tanh", [-0.9051483, -0.4621172, 0, 0.4621172, 0.9640276, 1, nan]),
    ("trunc", [-1, -0, 0, 0, 2, inf, nan]),
]


@pytest.mark.parametrize(("name", "expected"), UNARY_ON_FLOATS)
@pytest.mark.parametrize(
    ("dtype", "rtol"), [(np.float16, 2e-3), (np.float32, 2e-6), (np.float64, 1e-6)]
)
def test_unary_on_floats(name, expected, dtype, rtol):
    check(apply(name, np.array(FLOATS, dtype)), expected, dtype, rtol)


@pytest.mark.parametrize(("name", "expected"), UNARY_ON_FLOATS)
def test_unary_on_a_zero_dimensional_tensor(name, expected):
    result = apply(name, np.array(FLOATS[3], np.float32))
    check(result, expected[3], np.float32)
    assert result.shape == ()


INTEGERS = [-2, 0, 1, 3]


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("abs", "int64", [2, 0, 1, 3]),
        ("acos", "float32", [nan, 1.570796, 0, nan]),
        ("acosh", "float32", [nan, nan, 0, 1.762747]),
        ("asin", "float32", [nan, 0, 1.570796, nan]),
        ("asinh", "float32", [-1.443635, 0, 0.8813736, 1.818447]),
        ("atan", "float32", [-1.107149, 0, 0.7853982, 1.249046]),
        ("atanh", "float32", [nan, 0, inf, nan]),
        ("ceil", "int64", [-2, 0, 1, 3]),
        ("cos", "float32", [-0.4161468, 1, 0.5403023, -0.9899925]),
        ("cosh", "float32", [3.762196, 1, 1.543081, 10.06766]),
        ("erf", "float32", [-0.9953223, 0, 0.8427008, 0.9999779]),
        ("exp", "float32", [0.1353353, 1, 2.718282, 20.08554]),
        ("expm1", "float32", [-0.8646647, 0, 1.718282, 19.08554]),
        ("floor", "int64", [-2, 0, 1, 3]),
        ("log", "float32", [nan, -inf, 0, 1.098612]),
        ("log10", "float32", [nan, -inf, 0, 0.4771213]),
        ("log1p", "float32", [nan, 0, 0.6931472, 1.386294]),
        ("neg", "int64", [2, 0, -1, -3]),
        ("reciprocal", "float32", [-0.5, inf, 1, 0.3333333]),
        ("round", "int64", [-2, 0, 1, 3]),
        ("rsqrt", "float32", [nan, inf, 1, 0.5773503]),
        ("sign", "int64", [-1, 0, 1, 1]),
        ("sin", "float32", [-0.9092974, 0, 0.841471, 0.14112]),
        ("sinh", "float32", [-3.62686, 0, 1.175201, 10.01787]),
        ("sqrt", "float32", [nan, 0, 1, 1.732051]),
        ("square", "int64", [4, 0, 1, 9]),
        ("tan", "float32", [2.18504, 0, 1.557408, -0.1425465]),
        ("tanh", "float32", [-0.9640276, 0, 0.7615942, 0.9950548]),
        ("trunc", "int64", [-2, 0, 1, 3]),
    ],
)
def test_unary_on_integers(name, dtype, expected):
    check(apply(name, np.array(INTEGERS)), expected, dtype)


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("sign", "bool", [True, False]),
        ("square", "int64", [1, 0]),
        ("sqrt", "float32", [1, 0]),
        ("erf", "float32", [0.8427008, 0]),
        ("reciprocal", "float32", [1, inf]),
    ],
)
def test_unary_on_bools(name, dtype, expected):
    check(apply(name, np.array([True, False])), expected, dtype)


COMPLEX = [1 + 2j, -0.5j, 3.0]


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("abs", "float32", [2.23607, 0.5, 3]),
        ("acos", "complex64", [1.14372 - 1.52857j, 1.5708 + 0.481212j, -1.76275j]),
        ("cos", "complex64", [2.03272 - 3.0519j, 1.12763, -0.989992]),
        ("exp", "complex64", [-1.1312 + 2.47173j, 0.877583 - 0.479426j, 20.0855]),
        ("expm1", "complex64", [-2.1312 + 2.47173j, -0.122417 - 0.479426j, 19.0855]),
        ("log", "complex64", [0.804719 + 1.10715j, -0.693147 - 1.5708j, 1.09861]),
        ("log1p", "complex64", [1.03972 + 0.785398j, 0.111572 - 0.463648j, 1.38629]),
        ("neg", "complex64", [-1 - 2j, 0.5j, -3]),
        ("reciprocal", "complex64", [0.2 - 0.4j, 2j, 0.333333]),
        ("rsqrt", "complex64", [0.568864 - 0.351578j, 1 + 1j, 0.57735]),
        ("sqrt", "complex64", [1.27202 + 0.786151j, 0.5 - 0.5j, 1.73205]),
        ("square", "complex64", [-3 + 4j, -0.25, 9]),
        ("tanh", "complex64", [1.16674 - 0.243458j, -0.546302j, 0.995055]),
    ],
)
def test_unary_on_complex_numbers(name, dtype, expected):
    check(apply(name, np.array(COMPLEX, np.complex64)), expected, dtype, rtol=1e-5)


LEFT = [7.5, -7.5, 7.5, -7.5, 0.0, 2.0, nan, 1.0]
RIGHT = [2.0, 2.0, -2.0, -2.0, 0.0, inf, 1.0, 0.0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", [9.5, -5.5, 5.5, -9.5, 0, inf, nan, 1]),
        ("sub", [5.5, -9.5, 9.5, -5.5, 0, -inf, nan, 1]),
        ("mul", [15, -15, -15, 15, 0, inf, nan, 0]),
        ("div", [3.75, -3.75, -3.75, 3.75, nan, 0, nan, inf]),
        ("floor_divide", [3, -4, -4, 3, nan, 0, nan, inf]),
        ("remainder", [1.5, 0.5, -0.5, -1.5, nan, 2, nan, nan]),
        ("fmod", [1.5, -1.5, 1.5, -1.5, nan, 2, nan, nan]),
        ("pow", [56.25, 56.25, 0.01777778, 0.01777778, 1, inf, nan, 1]),
        ("atan2", [1.310194, -1.310194, 1.831399, -1.831399, 0, 0, nan, 1.570796]),
        ("max", [7.5, 2, 7.5, -2, 0, inf, nan, 1]),
        ("min", [2, -7.5, -2, -7.5, 0, 2, nan, 0]),
        ("maximum", [7.5, 2, 7.5, -2, 0, inf, nan, 1]),
        ("minimum", [2, -7.5, -2, -7.5, 0, 2, nan, 0]),
        (
            "logaddexp",
            [7.504078, 2.000075, 7.500075, -1.995922, 0.6931472, inf, nan, 1.313262],
        ),
    ],
)
def test_binary_on_floats(name, expected):
    result = apply(name, np.array(LEFT, np.float32), np.array(RIGHT, np.float32))
    check(result, expected, np.float32)


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("add", "int64", [9, -5, 5, -9, 5, 5]),
        ("sub", "int64", [5, -9, 9, -5, -1, -5]),
        ("mul", "int64", [14, -14, -14, 14, 6, 0]),
        ("div", "float32", [3.5, -3.5, -3.5, 3.5, 0.6666667, 0]),
        ("floor_divide", "int64", [3, -4, -4, 3, 0, 0]),
        ("remainder", "int64", [1, 1, -1, -1, 2, 0]),
        ("fmod", "int64", [1, -1, 1, -1, 2, 0]),
        ("pow", "int64", [49, 49, 0, 0, 8, 0]),
        ("atan2", "float32", [1.292497, -1.292497, 1.849096, -1.849096, 0.5880026, 0]),
        ("max", "int64", [7, 2, 7, -2, 3, 5]),
        ("min", "int64", [2, -7, -2, -7, 2, 0]),
        ("maximum", "int64", [7, 2, 7, -2, 3, 5]),
        ("minimum", "int64", [2, -7, -2, -7, 2, 0]),
        ("and", "int64", [2, 0, 6, -8, 2, 0]),
        ("or", "int64", [7, -5, -1, -1, 3, 5]),
        ("xor", "int64", [5, -5, -7, 7, 1, 5]),
        ("lshift", "int64", [28, -28, 0, 0, 16, 0]),
        ("rshift", "int64", [1, -2, 0, -1, 0, 0]),
    ],
)
def test_binary_on_integers(name, dtype, expected):
    left, right = np.array([7, -7, 7, -7, 2, 0]), np.array([2, 2, -2, -2, 3, 5])
    check(apply(name, left, right), expected, dtype)


def test_integers_to_powers_of_either_sign():
    base, exponent = np.array([2, 5, -1, -1, 3]), np.array([-1, 0, -3, -2, 2])
    check(apply("pow", base, exponent), [0, 1, -1, 1, 9], "int64")


def test_logaddexp_of_complex_numbers():
    """The sum of 2 and 3j has the logarithm log(13) / 2 + atan(3 / 2) j, in either order."""
    two, three = np.array(math.log(2), "complex64"), np.array(math.log(3) + 1.5707963j)
    three = three.astype("complex64")
    for operands in ((two, three), (three, two)):
        check(apply("logaddexp", *operands), 1.2824747 + 0.9827937j, "complex64")


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("add", "bool", [True, True, True, False]),
        ("mul", "bool", [True, False, False, False]),
        ("div", "float32", [1, inf, 0, nan]),
        ("atan2", "float32", [0.7853982, 1.570796, 0, 0]),
        ("max", "bool", [True, True, True, False]),
        ("minimum", "bool", [True, False, False, False]),
        ("and", "bool", [True, False, False, False]),
        ("or", "bool", [True, True, True, False]),
        ("xor", "bool", [False, True, True, False]),
    ],
)
def test_binary_on_bools(name, dtype, expected):
    left, right = np.array([True, True, False, False]), np.array([True, False, True, False])
    check(apply(name, left, right), expected, dtype)


@pytest.mark.parametrize(
    ("exponent", "expected"), [(-1, [0, -1, 0, 1, 0]), (-2, [0, 1, 0, 1, 0])]
)
@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integers_to_negative_powers(dtype, exponent, expected):
    base = np.array([-2, -1, 0, 1, 2], dtype)
    check(apply("pow", base, np.full(5, exponent, dtype)), expected, dtype)


@pytest.mark.parametrize("amount", [63, 64, 200, -1])
def test_shifts_beyond_the_width(amount):
    x = np.array([3, -3])
    left = [-(2**63), -(2**63)] if amount == 63 else [0, 0]
    check(apply("lshift", x, amount), left, np.int64)
    check(apply("rshift", x, amount), [0, -1], np.int64)


def test_integers_wrap():
    check(apply("add", np.array([250], np.uint8), 10), [4], np.uint8)
    check(apply("add", np.array([1], np.uint8), -2), [255], np.uint8)
    check(apply("add", np.array([1], np.uint8), 300), [45], np.uint8)
    check(apply("pow", np.array([2], np.int8), 9), [0], np.int8)
    check(apply("neg", np.array([1], np.uint8)), [255], np.uint8)
    assert apply("add", 2**63 - 1, 1) == -(2**63)


def test_halves_are_rounded_once():
    half = np.array([3.0], np.float16)
    check(apply("add", half, 1e-8), [3.0], np.float16)
    check(apply("mul", half, 1e5), [inf], np.float16)
    # 70000 itself is no half; the quotient is
    check(apply("div", half, 70000), [4.2856e-05], np.float16, rtol=1e-3)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_integer_division_by_zero_is_an_error(name):
    with pytest.raises(ZeroDivisionError, match="divides integers by zero"):
        apply(name, np.array([1, 2]), np.array([1, 0]))
    with pytest.raises(ZeroDivisionError, match="divides integers by zero"):
        apply(name, 3, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add(1,2)", 3),
        ("add(True,True)", 2),
        ("add(1,2.5)", 3.5),
        ("sub(True,2)", -1),
        ("mul(0.1,0.2)", 0.1 * 0.2),  # in 64 bits
        ("div(1,2)", 0.5),
        ("div(1,0)", inf),
        ("div(-1.0,0)", -inf),
        ("floor_divide(-7,2)", -4),
        ("floor_divide(1.0,0.0)", inf),
        ("remainder(-7,2)", 1),
        ("fmod(-7,2)", -1),
        ("pow(2,10)", 1024),
        ("pow(2,-1)", 0.5),
        ("pow(True,0)", 1),
        ("pow(2.0,0.5)", 2.0**0.5),
        ("pow(1j,2)", -1 + 0j),
        ("pow(10,1000000000000)", 0),  # wraps like every 64-bit integer, and at once
        ("lshift(1,1000000000000)", 0),
        ("and(6,3)", 2),
        ("and(True,False)", False),
        ("xor(True,3)", 2),
        ("max(1,2.5)", 2.5),
        ("min(True,0)", 0),
        ("sqrt(2)", 2.0**0.5),
        ("sqrt(True)", 1.0),
        ("log(0)", -inf),
        ("exp(1000)", inf),
        ("erf(0.5)", 0.5204998778130465),
        ("abs(-3)", 3),
        ("abs(3+4j)", 5.0),
        ("neg(True)", -1),
        ("sign(-2.5)", -1.0),
        ("square(3)", 9),
        ("reciprocal(4)", 0.25),
        ("ceil(1.5)", 2),
        ("floor(-1.5)", -2),
        ("floor(7)", 7),
        ("floor(True)", 1),
        ("round(2.5)", 2),
        ("trunc(-2.5)", -2),
        ("floor(inf)", inf),
        ("mul(2,1.5+1j)", 3 + 2j),
        ("int(2.9)", 2),
        ("int(True)", 1),
        ("float(3)", 3.0),
        ("bool(0.5)", True),
        ("int(floor(mul(torch.float(7),0.5)))", 3),
    ],
)
def test_scalars_stay_python(text, expected):
    result = parse(text).evaluate([])
    assert type(result) is type(expected)
    assert result == pytest.approx(expected, rel=1e-15, abs=0)


def test_nan_of_scalars():
    assert math.isnan(parse("sqrt(-1)").evaluate([]))
    assert math.isnan(parse("floor(nan)").evaluate([]))
    assert math.isnan(parse("max(nan,1)").evaluate([]))


def test_size():
    x = np.zeros((2, 3, 5))
    assert parse("size(@0)").evaluate([x]) == (2, 3, 5)
    assert parse("size(@0,1)").evaluate([x]) == 3
    assert parse("size(@0,-1)").evaluate([x]) == 5
    assert parse("size(@0,@1)").evaluate([x, np.array(1)]) == 3
    assert parse("size(@0)").evaluate([np.array(1.0)]) == ()


@pytest.mark.parametrize(
    ("name", "value"),
    [("int", np.array([2.9], np.float32)), ("int", np.array(2.9)), ("int", np.float32(2.9))],
)
def test_one_element_becomes_a_number(name, value):
    result = apply(name, value)
    assert type(result) is int
    assert result == 2


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("bool", "bool"), ("uint8", "uint8"), ("int8", "int8"), ("short", "int16"),
        ("int", "int32"), ("long", "int64"), ("int64", "int64"), ("half", "float16"),
        ("bfloat16", "float32"), ("float", "float32"), ("double", "float64"),
        ("chalf", "complex64"), ("cfloat", "complex64"), ("complex128", "complex128"),
    ],
)  # fmt: skip
def test_casts(name, dtype):
    check(apply(f"torch.{name}", np.array([0.0, 1.0])), [0, 1], dtype)
    scalar = apply(f"torch.{name}", 1)
    check(scalar, 1, dtype)
    assert scalar.shape == ()


def test_casts_cut_and_drop():
    check(apply("torch.long", np.array([-1.7, 1.7])), [-1, 1], np.int64)
    check(apply("torch.bool", np.array([0.0, 0.1, nan])), [False, True, True], np.bool_)
    check(apply("torch.float", np.array([1 + 2j])), [1.0], np.float32)
    check(apply("torch.bool", np.array([2j, 0j])), [True, False], np.bool_)
    check(apply("torch.float", 1 + 2j), 1.0, np.float32)
    check(apply("torch.half", np.array([1e6])), [inf], np.float16)
    x = np.ones(2, np.float32)
    assert apply("torch.float", x) is x


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("add(@0,None)", 0, "add: takes tensors and numbers, not None"),
        ("mul(1,sqrt(same))", 6, "sqrt: takes tensors and numbers, not str"),
        ("neg([@0,1])", 0, "neg: takes tensors and numbers, not tuple of 2"),
        ("torch.long([1])", 0, "torch.long: takes tensors and numbers, not tuple of 1"),
        ("neg(torch.bool(@0))", 0, "neg: is not defined for bool"),
        ("and(@0,1)", 0, "and: is not defined for float32"),
        ("and(1.5,1)", 0, "and: is not defined for float64"),
        ("max(@0,1j)", 0, "max: is not defined for complex64"),
        ("floor(1j)", 0, "floor: is not defined for complex numbers"),
        ("add(1,add(@0,@1))", 6, "add: cannot broadcast shapes 2×3, 4"),
        ("floor_divide(1,0)", 0, "floor_divide: divides integers by zero"),
        ("size(1,2)", 0, "size: takes a tensor, not int"),
        ("size(@0,2)", 0, "size: a tensor of 2 dimensions has no dimension 2"),
        ("size(@0,-3)", 0, "size: a tensor of 2 dimensions has no dimension -3"),
        ("int(@0)", 0, "int: takes one number, not (2, 3)"),
        ("int(None)", 0, "int: takes one number, not None"),
        ("int(nan)", 0, "int: cannot convert float NaN to integer"),
        ("int(inf)", 0, "int: cannot convert float infinity to integer"),
    ],
)
def test_errors_of_evaluation_point_at_the_function(text, position, reason):
    operands = [np.zeros((2, 3), np.float32), np.zeros(4, np.float32)]
    with pytest.raises(ExpressionError) as caught:
        parse(text).evaluate(operands)
    assert (caught.value.position, caught.value.reason) == (position, reason)


def test_names_of_the_table():
    assert all(name == function.name for name, function in FUNCTIONS.items())
    assert all(1 <= f.least <= f.most <= 2 for f in FUNCTIONS.values())
