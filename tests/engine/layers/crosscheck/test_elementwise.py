"""Element-wise maps, conditions and promotion against PyTorch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

torch = pytest.importorskip("torch")

SPECIAL = np.array(
    [0.0, -0.0, 1, -1, 0.5, -0.5, 2.5, -2.5, 1e3, -700, 1e-8, np.inf, -np.inf, np.nan]
)
DTYPES = ["bool", "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8", "c16"]
RNG = np.random.default_rng(3)


def sample(dtype, shape=(3, 4), offset=0):
    dtype = np.dtype(dtype)
    values = np.arange(np.prod(shape)).reshape(shape) % 7 + offset
    if dtype.kind == "b":
        return values % 2 == 0
    if dtype.kind == "u":
        return values.astype(dtype)
    if dtype.kind == "i":
        return (values - 3).astype(dtype)
    if dtype.kind == "c":
        return ((values - 3) / 2 + 1j * (values % 3)).astype(dtype)
    return ((values - 3) / 2).astype(dtype)


# fmt: off
UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "deg2rad",
    "erf", "erfc", "exp", "exp2", "expm1", "floor", "frac", "isfinite", "isinf", "isnan",
    "isneginf", "isposinf", "lgamma", "log", "log10", "log1p", "log2", "logical_not", "logit",
    "neg", "positive", "rad2deg", "reciprocal", "round", "rsqrt", "sgn", "sign", "signbit",
    "sin", "sinc", "sinh", "sqrt", "square", "tan", "trunc", "bitwise_not", "angle", "conj",
    "real",
]
BINARY = [
    "add", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "copysign", "div", "eq", "float_power", "floor_divide", "fmax", "fmin",
    "fmod", "gcd", "ge", "gt", "heaviside", "hypot", "lcm", "le", "logaddexp", "logaddexp2",
    "logical_and", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "ne",
    "nextafter", "pow", "remainder", "rsub", "sub", "true_divide", "xlogy",
]
# fmt: on


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_unary(agree, name, dtype):
    agree(f"torch.{name}", sample(dtype), loose=4)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_special_values(agree, name, dtype):
    with np.errstate(all="ignore"):
        agree(f"torch.{name}", SPECIAL.astype(dtype), loose=4)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", DTYPES)
def test_binary(agree, name, dtype):
    if name.startswith("logaddexp") and np.dtype(dtype).kind != "f":
        pytest.skip("PyTorch lacks it for integers, we lack it for complex numbers")
    if name in {"pow", "float_power"} and np.dtype(dtype).kind == "c":
        pytest.skip("see test_complex_powers: powers of zero differ in their NaN")
    agree(f"torch.{name}", sample(dtype), sample(dtype, offset=1)[:1], loose=4)


@pytest.mark.parametrize(
    "name", ["add", "atan2", "div", "eq", "fmod", "lt", "maximum", "mul", "pow"]
)
@pytest.mark.parametrize(
    "pair", list(itertools.permutations(["bool", "u1", "i4", "f2", "f4", "f8"], 2))
)
@pytest.mark.parametrize("second", ["array", "scalar"])
def test_promotion(agree, name, pair, second):
    other = sample(pair[1], (4,), offset=4)
    other = other if second == "array" else np.asarray(other[1])
    agree(f"torch.{name}", np.abs(sample(pair[0])), other, loose=4)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "pow", "eq", "lt", "remainder", "fmod", "floor_divide"]
)
@pytest.mark.parametrize("dtype", ["bool", "u1", "i8", "f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("number", [True, 3, 2.5, -1.5])
def test_python_numbers(agree, name, dtype, number):
    if (name == "sub" and "bool" in {dtype, type(number).__name__}) or (
        name == "pow" and dtype == type(number).__name__
    ):
        pytest.skip("PyTorch does not subtract bools, we do not raise them to a power")
    agree(f"torch.{name}", sample(dtype), number, loose=4)


@pytest.mark.parametrize("name", BINARY)
def test_special_pairs(agree, name):
    left, right = np.meshgrid(SPECIAL.astype(np.float32), SPECIAL.astype(np.float32))
    with np.errstate(all="ignore"):
        agree(f"torch.{name}", left.copy(), right.copy(), loose=4)


@pytest.mark.parametrize("alpha", [2, -1, 0.5])
@pytest.mark.parametrize("dtype", ["i4", "f4", "c8"])
@pytest.mark.parametrize("name", ["add", "sub", "rsub"])
def test_alpha(agree, name, dtype, alpha):
    if dtype == "i4" and alpha == 0.5:
        pytest.skip("PyTorch refuses a fraction of integers, we promote")
    agree(f"torch.{name}", sample(dtype), sample(dtype, offset=1), alpha=alpha)


@pytest.mark.parametrize("rounding_mode", [None, "trunc", "floor", "up"])
@pytest.mark.parametrize("dtype", ["i4", "i8", "u1", "f4", "f8"])
def test_rounded_division(agree, dtype, rounding_mode):
    left, right = sample(dtype), sample(dtype, (4,), offset=4)
    agree("torch.div", left, right, rounding_mode=rounding_mode)


@pytest.mark.parametrize("decimals", [0, 1, 2, -1, -2])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_round_to_decimals(agree, dtype, decimals):
    agree("torch.round", RNG.normal(0, 50, 40).astype(dtype), decimals=decimals, loose=2)


LIMITS = [None, 0, 1, -0.5, np.array([0.0, -1.0, 1.0, 0.5], np.float32), np.array(0.25)]


@pytest.mark.parametrize("low", LIMITS, ids=str)
@pytest.mark.parametrize("high", LIMITS, ids=str)
@pytest.mark.parametrize("dtype", ["i4", "f2", "f4"])
def test_clamp(agree, dtype, low, high):
    if isinstance(low, np.ndarray) != isinstance(high, np.ndarray) and None not in (
        low if low is None else 0,
        high if high is None else 0,
    ):
        pytest.skip("PyTorch has no overload for a tensor and a number")
    with_nan = sample(dtype)
    if dtype != "i4":
        with_nan[0, 0] = np.nan

    agree("torch.clamp", with_nan, low, high)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
@pytest.mark.parametrize("value", [1, 0.5])
def test_three_operands(agree, name, value):
    x = sample("f4", offset=4)
    agree(f"torch.{name}", x, x[:1], x[:, :1], value=value)


@pytest.mark.parametrize("weight", [0.25, sample("f4", (4,))], ids=["number", "tensor"])
def test_lerp(agree, weight):
    agree("torch.lerp", sample("f4"), sample("f4", offset=2), weight, loose=2)


@pytest.mark.parametrize("kwargs", [{}, {"nan": 1.5}, {"posinf": 9.0, "neginf": -9.0}], ids=str)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i4"])
def test_nan_to_num(agree, dtype, kwargs):
    with np.errstate(all="ignore"):
        x = SPECIAL.astype(dtype) if dtype[0] == "f" else sample(dtype)
    agree("torch.nan_to_num", x, **kwargs)


@pytest.mark.parametrize(
    "pair", list(itertools.product(["bool", "i4", "f2", "f4", "f8"], repeat=2))
)
@pytest.mark.parametrize("second", ["array", "scalar"])
def test_where(agree, pair, second):
    other = sample(pair[1], (4,))
    agree(
        "torch.where",
        sample("bool"),
        sample(pair[0]),
        other if second == "array" else other[:1].reshape(()),
    )


@pytest.mark.parametrize("number", [True, 3, 2.5])
@pytest.mark.parametrize("dtype", ["bool", "i4", "f2", "f4"])
def test_where_of_a_number(agree, dtype, number):
    agree("torch.where", sample("bool"), sample(dtype), number)
    agree("torch.where", sample("bool"), number, sample(dtype))


def test_where_alone(agree):
    agree("torch.where", sample("bool"), function=torch.where)


@pytest.mark.parametrize(
    "value", [0, 2, -1.5, float("-inf"), np.array(3.5), np.array(2)], ids=str
)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_masked_fill(agree, dtype, value):
    agree("torch.masked_fill", sample(dtype), sample("bool")[0], value)


@pytest.mark.parametrize("x", [sample("f4"), sample("i8"), np.array(2.0), np.array(0)], ids=str)
def test_nonzero(agree, x):
    agree("torch.nonzero", x)


@pytest.mark.parametrize("mask", [sample("bool"), sample("bool")[0], sample("bool")[:, :1]])
def test_masked_select(agree, mask):
    agree("torch.masked_select", sample("f4"), mask)


def test_masked_scatter(agree):
    agree("torch.masked_scatter", sample("f4"), sample("bool"), np.arange(12, dtype=np.float32))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["complex", "polar"])
def test_complex_of_parts(agree, name, dtype):
    agree(f"torch.{name}", sample(dtype), sample(dtype, (4,)), loose=2)


@pytest.mark.parametrize("name", ["imag", "view_as_real"])
@pytest.mark.parametrize("dtype", ["c8", "c16", "f4"])
def test_parts_of_complex(agree, name, dtype):
    agree(f"torch.{name}", sample(dtype))


@pytest.mark.parametrize("shape", [(3, 2), (2,), (3, 4)])
def test_view_as_complex(agree, shape):
    agree("torch.view_as_complex", sample("f4", shape))


CASTS = [
    "uint8",
    "int8",
    "int16",
    "int",
    "long",
    "half",
    "float",
    "double",
    "bool",
    "complex64",
]


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", CASTS)
def test_casts(agree, source, target):
    agree("Tensor.to", sample(source), dtype=f"torch.{target}")


@pytest.mark.parametrize("target", ["int8", "int16", "uint8", "int"])
def test_casts_wrap_around(agree, target):
    agree(
        "Tensor.to", np.array([300.7, -129.2, 40000, -1.9], np.float32), dtype=f"torch.{target}"
    )


def test_bfloat16_is_rounded(agree):
    x = RNG.standard_normal(1000).astype(np.float32)
    x[:3] = np.inf, np.nan, 3.3895e38

    def rounded(t, dtype):
        return t.to(dtype).float()

    agree("Tensor.to", x, dtype="torch.bfloat16", function=rounded)
