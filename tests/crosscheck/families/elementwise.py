"""Element-wise maps, comparisons, promotion; random expressions of them."""

from __future__ import annotations

import operator

import torch

from crosscheck.draw import FLOATS, INTEGERS, Draw
from crosscheck.specification import Case, spec, specs

# What they are defined for, as (low, high).
UNARY = {
    "abs": (-9, 9), "acos": (-1, 1), "acosh": (1, 9), "asin": (-1, 1), "asinh": (-9, 9),
    "atan": (-9, 9), "atanh": (-0.99, 0.99), "ceil": (-9, 9), "cos": (-9, 9), "cosh": (-3, 3),
    "deg2rad": (-360, 360), "erf": (-3, 3), "erfc": (-3, 3), "exp": (-5, 5), "exp2": (-5, 5),
    "expm1": (-3, 3), "floor": (-9, 9), "frac": (-9, 9), "lgamma": (0.1, 9), "log": (0.1, 9),
    "log10": (0.1, 9), "log1p": (-0.9, 9), "log2": (0.1, 9), "logit": (0.01, 0.99),
    "neg": (-9, 9), "positive": (-9, 9), "rad2deg": (-9, 9), "reciprocal": (0.2, 3),
    "relu": (-9, 9), "round": (-9, 9), "rsqrt": (0.1, 9), "sgn": (-2, 2), "sigmoid": (-9, 9),
    "sign": (-2, 2), "signbit": (-2, 2), "sin": (-9, 9), "sinc": (-3, 3), "sinh": (-3, 3),
    "sqrt": (0, 9), "square": (-9, 9), "tan": (-1.4, 1.4), "tanh": (-3, 3), "trunc": (-9, 9),
    "isfinite": (-9, 9), "isinf": (-9, 9), "isnan": (-9, 9), "isneginf": (-1, 1),
    "isposinf": (-1, 1), "logical_not": (-1, 1), "nan_to_num": (-9, 9), "angle": (-9, 9),
}  # fmt: skip
EXPRESSIONS = {
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf",
    "exp", "expm1", "floor", "log", "log10", "log1p", "neg", "reciprocal", "round", "rsqrt",
    "sign", "sin", "sinh", "sqrt", "square", "tan", "trunc",
}  # fmt: skip
NAMED = {"lgamma", "positive", "logical_not"}
FUNCTIONAL = {"relu", "sigmoid", "tanh"}


def written(name: str) -> str:
    """Operator type that pnnx writes."""
    if name in EXPRESSIONS:
        return "pnnx.Expression"
    if name in FUNCTIONAL:
        return f"F.{name}"
    return f"torch.{name}" if name in NAMED else f"aten::{name}"


@specs({name: (written(name),) for name in UNARY})
def unary(draw: Draw, name: str):
    low, high = UNARY[name]
    shape = draw.shape(draw.integer(0, 4), 1, 5)
    kind = draw.turn("float32", "float32", "float64", "int", "special")
    function = getattr(torch, name)
    if kind == "int":
        return Case(function, draw.integers(int(low), int(high), *shape))
    x = draw.uniform(
        low, high, *shape, dtype=torch.float64 if kind == "float64" else torch.float
    )
    if kind == "special" and x.ndim:
        special = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 0.5, 1.5, 2.5])
        x = torch.cat([x.flatten(), special])
    return Case(function, x)


COMPLEXES = (torch.complex64, torch.complex128)
COMPLEX = (
    "abs", "acos", "acosh", "angle", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp",
    "exp2", "expm1", "isfinite", "log", "log10", "log1p", "log2", "neg", "reciprocal", "rsqrt",
    "sgn", "sigmoid", "sin", "sinh", "sqrt", "square", "tan", "tanh",
)  # fmt: skip


@specs(dict.fromkeys(COMPLEX, ()))
def of_complex_numbers(draw: Draw, name: str):
    x = draw.normal(*draw.shape(draw.integer(0, 3), 1, 4), dtype=draw.turn(*COMPLEXES))
    return Case(getattr(torch, name), x)


BINARY = {
    "add": "pnnx.Expression", "sub": "pnnx.Expression", "mul": "pnnx.Expression",
    "div": "pnnx.Expression", "pow": "pnnx.Expression", "atan2": "pnnx.Expression",
    "floor_divide": "pnnx.Expression", "fmod": "pnnx.Expression",
    "remainder": "pnnx.Expression", "maximum": "pnnx.Expression",
    "minimum": "pnnx.Expression", "max": "pnnx.Expression", "min": "pnnx.Expression",
    "logaddexp": "pnnx.Expression", "eq": "torch.eq", "ne": "torch.ne",
    "ge": "torch.ge", "gt": "torch.gt", "le": "torch.le", "lt": "torch.lt",
    "logical_and": "torch.logical_and", "logical_or": "torch.logical_or",
    "logical_xor": "torch.logical_xor", "copysign": "aten::copysign",
    "fmax": "aten::fmax", "fmin": "aten::fmin", "hypot": "aten::hypot",
    "logaddexp2": "aten::logaddexp2", "nextafter": "aten::nextafter",
    "float_power": "aten::float_power", "heaviside": "aten::heaviside",
    "xlogy": "aten::xlogy", "true_divide": "pnnx.Expression",
}  # fmt: skip
NUMBERS = {
    "add", "sub", "mul", "div", "pow", "floor_divide", "fmod", "remainder", "eq", "ne", "ge",
    "gt", "le", "lt", "copysign", "float_power", "xlogy", "true_divide",
}  # fmt: skip
REAL_ONLY = {"logaddexp", "logaddexp2", "nextafter", "hypot"}


def operands(draw: Draw, dtypes=FLOATS):
    shape = draw.shape(draw.integer(0, 4), 1, 4)
    both = [draw.broadcastable(shape), shape]
    left, right = draw.shuffled(both)
    return draw.tensor(*left, dtype=draw.one(*dtypes)), draw.tensor(
        *right, dtype=draw.one(*dtypes)
    )


@specs({name: (kind,) for name, kind in BINARY.items()})
def binary(draw: Draw, name: str):
    function = getattr(torch, name)
    kind = draw.turn("tensors", "number", "mixed")
    if kind == "mixed" and name not in REAL_ONLY:
        x, y = operands(draw, (*FLOATS, *INTEGERS, torch.bool))
    else:
        x, y = operands(draw, (draw.one(*FLOATS),))
    if name in {"div", "floor_divide", "remainder", "fmod"} and not y.is_floating_point():
        y = torch.where(y == 0, torch.ones_like(y), y)  # by zero it is refused, or anything
    if name in {"pow", "float_power"}:
        x, y = x.abs() if x.dtype != torch.bool else x, y.abs() if y.dtype != torch.bool else y
    if kind == "number" and name in NUMBERS:
        number = draw.one(2, 3, 2.5, 0.5, -1.5)
        if draw.flag() and name in {"add", "sub", "mul", "div", "pow"}:
            swapped = getattr(operator, {"div": "truediv"}.get(name, name))
            x = x.abs() + 0.5
            return Case(lambda x: swapped(abs(number), x), x)
        return Case(lambda x: function(x, number), x)
    return Case(function, x, y)


BITWISE = (
    "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
)  # fmt: skip


@specs({name: (f"torch.{name}",) for name in BITWISE})
def bitwise(draw: Draw, name: str):
    function = getattr(torch, name)
    shift = name.endswith("shift")
    dtypes = INTEGERS if shift else (*INTEGERS, torch.bool)
    x, y = operands(draw, (draw.one(*dtypes),) if draw.flag() else dtypes)
    if shift:
        y = y.abs() % 5
    if draw.turn(True, False):
        return Case(function, x, y)
    number = draw.integer(0, 5)
    return Case(lambda x: function(x, number), x)


@spec("torch.bitwise_not")
def bitwise_not(draw: Draw):
    x = draw.tensor(*draw.shape(draw.integer(0, 3)), dtype=draw.one(*INTEGERS, torch.bool))
    return Case(torch.bitwise_not, x)


@specs({"gcd": ("aten::gcd",), "lcm": ("aten::lcm",)})
def divisors(draw: Draw, name: str):
    x, y = operands(draw, INTEGERS)
    return Case(getattr(torch, name), x, y)


@specs({"add": ("pnnx.Expression",), "sub": ("pnnx.Expression",), "rsub": ("pnnx.Expression",)})
def with_alpha(draw: Draw, name: str):
    function = getattr(torch, name)
    alpha = draw.one(2, 3, -1, 0.5)
    x, y = operands(draw, (torch.float32,))
    return Case(lambda x, y: function(x, y, alpha=alpha), x, y)


@specs({"addcmul": ("aten::addcmul",), "addcdiv": ("aten::addcdiv",), "lerp": ("aten::lerp",)})
def ternary(draw: Draw, name: str):
    function = getattr(torch, name)
    shape = draw.shape(draw.integer(1, 3), 1, 4)
    x, y, z = (draw.normal(*draw.broadcastable(shape)) for _ in range(3))
    value = draw.number(-2, 2)
    if name == "lerp":
        return (
            Case(draw.one(lambda x, y: torch.lerp(x, y, value)), x, y)
            if draw.flag()
            else Case(torch.lerp, x, y, z)
        )
    z = z.abs() + 0.5
    return Case(lambda x, y, z: function(x, y, z, value=value), x, y, z)


@spec("torch.clamp")
def clamp(draw: Draw):
    x = draw.tensor(*draw.shape(draw.integer(0, 4), 1, 4), dtype=draw.one(*FLOATS, torch.int64))
    low, high = draw.one(None, -1, -0.5, 0), draw.one(None, 1, 0.25, -2)
    if draw.flag(0.2):
        return Case(torch.clamp, x.float(), draw.normal(), draw.normal())
    return Case(lambda x: x.clamp(low, high), x)


@specs({"clamp_min": ("torch.clamp",), "clamp_max": ("torch.clamp",)})
def clamp_one_side(draw: Draw, name: str):
    limit = draw.one(0, 0.5, -1)
    return Case(lambda x: getattr(x, name)(limit), draw.normal(*draw.shape(3)))


@spec("torch.where")
def where(draw: Draw):
    shape = draw.shape(draw.integer(1, 4), 1, 4)
    dtypes = (*FLOATS, torch.int64, torch.int32, torch.bool)
    x = draw.tensor(*draw.broadcastable(shape), dtype=draw.one(*dtypes))
    y = draw.tensor(*draw.broadcastable(shape), dtype=draw.one(*dtypes))
    condition = draw.booleans(*shape)
    match draw.turn("tensors", "right number", "left number", "condition"):
        case "tensors":
            return Case(torch.where, condition, x, y)
        case "right number":
            number = draw.one(0, 2.5, -1)
            return Case(lambda c, x: torch.where(c, x, number), condition, x)
        case "left number":
            number = draw.one(0, 2.5, -1)
            return Case(lambda c, x: torch.where(c, number, x), condition, x)
        case _:
            return Case(torch.where, condition)


@spec("Tensor.masked_fill")
def masked_fill(draw: Draw):
    shape = draw.shape(draw.integer(1, 4), 1, 4)
    x = draw.tensor(*shape, dtype=draw.one(*FLOATS, torch.int64))
    value = (
        draw.one(0, 2, -1.5, float("-inf")) if x.is_floating_point() else draw.integer(-3, 3)
    )
    mask = draw.booleans(*draw.broadcastable(shape))
    return Case(lambda x, m: x.masked_fill(m, value), x, mask)


@spec("Tensor.to")
def cast(draw: Draw):
    # Not to half and bfloat16: pnnx drops those casts.
    dtypes = (
        *FLOATS,
        torch.int64,
        torch.int32,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.bool,
    )
    source, target = draw.one(*dtypes), draw.one(*dtypes)
    x = draw.tensor(*draw.shape(draw.integer(0, 3)), dtype=source)
    if source.is_floating_point and target == torch.uint8:
        x = x.abs()
    if draw.flag():
        return Case(lambda x: x.to(target), x)
    name = {
        torch.float32: "float", torch.float64: "double", torch.int64: "long",
        torch.int32: "int", torch.uint8: "byte", torch.int8: "char", torch.int16: "short",
        torch.bool: "bool",
    }[target]  # fmt: skip
    return Case(lambda x: getattr(x, name)(), x)


@spec("Tensor.type_as")
def type_as(draw: Draw):
    dtypes = (*FLOATS, torch.int64, torch.int32, torch.bool)
    x, y = (draw.tensor(*draw.shape(2), dtype=draw.one(*dtypes)) for _ in range(2))
    return Case(lambda x, y: x.type_as(y), x, y)


@specs({"floor": (), "trunc": ()})
def rounded_quotient(draw: Draw, mode: str):
    # pnnx writes floor as a plain quotient; trunc as one rounded down, which is the same for
    # positive numbers.
    x, y = (draw.uniform(0.5, 9, *draw.shape(1, 3, 3)) for _ in range(2))
    if mode == "floor":
        return Case(torch.floor_divide, x, y)
    return Case(lambda x, y: torch.div(x, y, rounding_mode="trunc"), x, y)


# Expressions ------------------------------------------------------------------------------

# Functions that any number may go through.
TOTAL = (
    torch.abs, torch.asinh, torch.atan, torch.ceil, torch.cos, torch.erf, torch.floor,
    torch.neg, torch.round, torch.sign, torch.sin, torch.square, torch.trunc,
    lambda x: torch.sqrt(x.abs() + 0.25), lambda x: torch.log(x.abs() + 0.5),
    lambda x: torch.rsqrt(x.square() + 1), lambda x: torch.reciprocal(x.abs() + 1),
    lambda x: torch.exp(-x.abs()), lambda x: torch.log1p(x.abs()),
    lambda x: torch.expm1(-x.abs()), lambda x: torch.log10(x.square() + 0.1),
)  # fmt: skip
JOINING = (
    operator.add, operator.sub, operator.mul, torch.maximum, torch.minimum, torch.atan2,
    lambda x, y: x / (y.abs() + 0.5), torch.logaddexp,
    lambda x, y: torch.pow(x.abs() + 0.5, torch.sin(y)),
)  # fmt: skip
NUMBERED = (
    lambda x, n: x + n, lambda x, n: n - x, lambda x, n: x * n, lambda x, n: x / (n + 0.1),
    lambda x, n: n / (x.abs() + 1), lambda x, n: x**2, lambda x, n: x.abs() ** 0.5,
    lambda x, n: torch.sub(x, x, alpha=n), lambda x, n: torch.remainder(x, abs(n) + 1),
    lambda x, n: torch.fmod(x, abs(n) + 1), lambda x, n: x % (abs(n) + 0.5),
)  # fmt: skip


@spec("pnnx.Expression", tolerance=2e-4)
def expression(draw: Draw):
    """A random tree over three operands, some parts used twice."""
    shape = draw.shape(draw.integer(1, 3), 1, 4)
    inputs = [draw.normal(*draw.broadcastable(shape)) for _ in range(3)]
    steps = []
    for known in range(3, draw.integer(4, 14)):
        kind = draw.one("unary", "binary", "binary", "number")
        a, b = draw.integer(max(0, known - 4), known - 1), draw.integer(0, known - 1)
        function = draw.one(*{"unary": TOTAL, "binary": JOINING, "number": NUMBERED}[kind])
        steps.append((kind, function, a, b, draw.one(1, 2, -1, 0.5, draw.number(-3, 3))))

    def compute(*values):
        known = list(values)
        for kind, function, a, b, number in steps:
            match kind:
                case "unary":
                    known.append(function(known[a]))
                case "binary":
                    known.append(function(known[a], known[b]))
                case _:
                    known.append(function(known[a], number))
        return known[-1], known[-2] + known[0]

    return Case(compute, *inputs)


@spec("pnnx.Expression")
def integer_expression(draw: Draw):
    """Whole numbers, with Python's operators."""
    shape = draw.shape(2, 1, 4)
    x, y = (draw.integers(1, 30, *shape) for _ in range(2))
    n = draw.integer(1, 7)
    chosen = draw.turn(
        lambda x, y: (x + y) // n, lambda x, y: x % n + y, lambda x, y: (x & y) | (x ^ n),
        lambda x, y: (x << 2) - (y >> 1), lambda x, y: x * y - n, lambda x, y: x // y + x % y,
        lambda x, y: x / y, lambda x, y: x**2 + y, lambda x, y: -x + abs(y - x),
        lambda x, y: ~x + y, lambda x, y: torch.minimum(x, y) * 0.5,
        lambda x, y: (x > y) & (x < 20), lambda x, y: (x > n) | (y == n),
    )  # fmt: skip
    return Case(chosen, x, y)
