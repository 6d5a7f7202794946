"""Functions of the elements at one position, and expressions of them."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.errors import EngineError
from engine.expression import Call as Node
from engine.expression import OperandRef
from engine.layers import arithmetic, choosing, copying, dropout
from engine.layers.activations import glu, prelu
from engine.layers.expression import Expression
from engine.layers.ncnn import activations as ncnn
from engine.layers.ncnn import normalization as ncnn_channels
from engine.layers.ncnn import shapes as ncnn_shapes
from engine.layers.ncnn.arithmetic import BinaryOp, eltwise
from engine.provenance.arithmetic import add_up, format_index, multiply
from engine.provenance.call import NoBreakdownError, Operand, rounding, take
from engine.provenance.records import Breakdown, Factor, Interval, Kind, Step, Terms
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Value

__all__ = [
    "FUNCTIONS",
    "SCALINGS",
    "aligned_shape",
    "explain_function",
    "halved_axis",
    "locate_elementwise",
    "read_scaling",
    "require_broadcast",
]

FUNCTIONS: Final = (
    arithmetic.add, arithmetic.sub, arithmetic.rsub, arithmetic.div, arithmetic.power,
    arithmetic.float_power, arithmetic.round_to, arithmetic.logit, arithmetic.clamp,
    arithmetic.clamp_min, arithmetic.clamp_max, arithmetic.addcmul, arithmetic.addcdiv,
    arithmetic.lerp, arithmetic.nan_to_num, choosing.masked_fill, copying.to,
    dropout.dropout, dropout.feature_dropout, dropout.alpha_dropout,
    dropout.feature_alpha_dropout,
    ncnn.relu, ncnn.clip, ncnn.hard_swish, ncnn.hard_sigmoid, ncnn.sigmoid, ncnn.swish,
    ncnn.tanh, ncnn.mish, ncnn.softplus, ncnn.bnll, ncnn.gelu, ncnn.elu, ncnn.celu, ncnn.selu,
    ncnn.shrink, ncnn.threshold, ncnn.absolute, ncnn.erf, ncnn.dropout, ncnn.power, ncnn.exp,
    ncnn.log, ncnn.UnaryOp, BinaryOp, eltwise,
)  # fmt: skip
SCALINGS: Final = (ncnn_channels.scale, ncnn_channels.bias)
_NCNN_UNARY: Final = (
    "abs", "neg", "floor", "ceil", "square", "sqrt", "rsqrt", "exp", "log", "sin", "cos", "tan",
    "asin", "acos", "atan", "reciprocal", "tanh", "log10", "round", "trunc", "sign", "expm1",
    "sinh", "asinh", "cosh", "acosh", "atanh", "log1p",
)  # fmt: skip
_NCNN_BINARY: Final = (
    "add", "sub", "mul", "div", "max", "min", "pow", "rsub", "rdiv", "rpow", "atan2", "ratan2",
    "fmod", "rfmod", "logaddexp", "floor_divide", "rfloor_divide", "remainder", "rremainder",
)  # fmt: skip
_NCNN_NAMES: Final[dict[Any, tuple[str, ...]]] = {
    ncnn.UnaryOp: _NCNN_UNARY,
    BinaryOp: _NCNN_BINARY,
    eltwise: ("product", "sum", "max"),
}


def _first_axis(call: Call, operand: Operand) -> int:
    """Return the dimension of the result that an operand's first one is aligned with."""
    missing = len(call.shape) - operand.ndim
    if missing < 0:
        raise NoBreakdownError("the result has fewer dimensions than an operand")
    if not missing or call.layer_code is not BinaryOp:
        return missing
    other = next(each for each in call.arrays if each.ndim > operand.ndim)
    is_row = operand.ndim == 1 and operand.shape[0] != other.shape[0]
    return missing if is_row else 0  # channels come first in ncnn


def _places(
    call: Call, operand: Operand, index: Sequence[Any], whole: Any = 0
) -> list[Any]:  # fmt: skip
    """Return an item for each dimension of an operand that is broadcast."""
    first = _first_axis(call, operand)
    own = index[first : first + operand.ndim]
    return [item if size > 1 else whole for item, size in zip(own, operand.shape, strict=True)]


def aligned_shape(call: Call, operand: Operand) -> tuple[int, ...]:
    """Return the shape of an operand as it is broadcast: with the inner axes of ncnn."""
    inner = len(call.shape) - operand.ndim - _first_axis(call, operand)
    return (*operand.shape, *(1,) * inner)


def require_broadcast(call: Call) -> None:
    """Refuse operators whose result has another shape than the operands together."""
    if np.broadcast_shapes(*[aligned_shape(call, each) for each in call.arrays]) != call.shape:
        raise NoBreakdownError("the result has another shape than the operands")


@locates(*FUNCTIONS, prelu, ncnn.prelu)
def locate_elementwise(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the same positions of all operands."""
    if call.layer_code in {prelu, ncnn.prelu}:
        return {
            each.name: each.whole if place else box for place, each in enumerate(call.arrays)
        }
    if call.operator.random:
        raise NoBreakdownError(f"{call.operator.type} draws random numbers")
    require_broadcast(call)
    used = _used_operands(call)
    return {
        each.name: tuple(_places(call, each, box, Interval(0, 1)))
        for place, each in enumerate(call.inputs)
        if isinstance(each, Operand) and (used is None or place in used)
    }


def _used_operands(call: Call) -> set[int] | None:
    """Return which operands an expression reads beyond their sizes; None for all."""
    if not isinstance(call.layer, Expression):
        return None
    found: set[int] = set()
    stack: list[set[int]] = []
    for node in call.layer.expression.nodes:
        first = len(stack) - len(node.children)
        below = set().union(*stack[first:])
        del stack[first:]
        if isinstance(node, OperandRef):
            below = {node.operand}
        elif isinstance(node, Node) and node.name == "size":
            below = set()
        stack.append(below)
        found = below
    return found


@explains(*FUNCTIONS)
def explain_function(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Compute the operator on the elements alone, in float64."""
    if call.operator.random:
        raise NoBreakdownError(f"{call.operator.type} draws random numbers")
    require_broadcast(call)
    factors = _factors(call, index)
    if isinstance(call.layer, Expression):
        total, error = _evaluate(call, call.layer, factors)
        text = call.layer.expression.normal
        for place, factor in reversed(factors.items()):
            own = factor.indices[0].tolist()
            text = text.replace(f"@{place}", f"{factor.name}{format_index(own)}")
        formula = f"y{format_index(index)} = {text}"
    else:
        total = _compute(call, factors)
        own = rounding(call.dtype)
        sizes = sum(float(abs(factor.values[0])) for factor in factors.values())
        error = 8 * own * (abs(total) + sizes)
        name = _name_of(call)
        texts = [
            f"{factor.name}{format_index(factor.indices[0].tolist())}"
            for factor in factors.values()
        ]
        formula = f"y{format_index(index)} = {name}({', '.join(texts)})"
    if not np.isfinite(error):
        error = np.inf
    return Breakdown(Kind.FUNCTION, formula, _columns(factors), total, float(error))


def _name_of(call: Call) -> str:
    """Return the name of the function; several are one type of ncnn."""
    kind, names = call.operator.params.get("op_type", 0), _NCNN_NAMES.get(call.layer_code)
    if names is not None and isinstance(kind, int):
        return names[kind]
    return call.operator.type.rpartition(".")[2].rpartition(":")[2].lower()


def _factors(call: Call, index: tuple[int, ...]) -> dict[int, Factor]:
    """Return the element of each operand, by the operand's place."""
    return {
        place: take(
            each, each.name, np.array([_places(call, each, index)], np.int64).reshape(1, -1)
        )
        for place, each in enumerate(call.inputs)
        if isinstance(each, Operand)
    }


def _columns(factors: Mapping[int, Factor]) -> Terms:
    """Return the elements as terms of one factor each."""
    values = np.array([factor.values[0] for factor in factors.values()])
    return Terms(tuple(factors.values()), values, (len(values),), ("operand",))


def _one(operand: Operand, factor: Factor) -> Any:
    """Return an element as an array with the dimensions of its operand."""
    dtype = np.float64 if operand.dtype.kind == "f" else operand.dtype
    return factor.values.astype(dtype).reshape((1,) * operand.ndim)


def _compute(call: Call, factors: Mapping[int, Factor]) -> float:
    values: list[Value] = [
        _one(each, factors[place]) if isinstance(each, Operand) else each
        for place, each in enumerate(call.inputs)
    ]
    try:
        found = call.forward(values)
    except EngineError as exc:
        raise NoBreakdownError(f"one element alone has no result: {exc}") from exc
    if np.size(found) != 1:  # type: ignore[arg-type]
        raise NoBreakdownError("one element alone has another result")
    return float(np.asarray(found).reshape(-1)[0])


def _evaluate(
    call: Call, layer: Expression, factors: Mapping[int, Factor]
) -> tuple[float, float]:
    """Compute an expression in float64, and how far rounding may take it in its own dtype."""
    unit = 4 * rounding(call.dtype)
    stack: list[tuple[Any, float]] = []
    for node in layer.expression.nodes:
        first = len(stack) - len(node.children)
        below = stack[first:]
        del stack[first:]
        if isinstance(node, OperandRef):
            operand = call.inputs[node.operand]
            if isinstance(operand, Operand):
                operand = _one(operand, factors[node.operand])
            stack.append((operand, 0.0))
        elif isinstance(node, Node):
            stack.append(_apply(call, layer, node, below, unit))
        elif node.children:
            raise NoBreakdownError("the expression makes a list")
        else:
            stack.append((node.value, 0.0))  # type: ignore[attr-defined]
    value, error = stack[-1]
    if np.size(value) != 1:
        raise NoBreakdownError("the expression has no single value")
    return float(np.asarray(value).reshape(-1)[0]), error


def _apply(
    call: Call, layer: Expression, node: Node, below: Sequence[tuple[Any, float]], unit: float
) -> tuple[Any, float]:
    """Apply a function to values with errors: at the values, and where their errors end."""
    apply = layer.functions[node.name].apply
    if node.name == "size":
        ref = node.children[0]
        operand = call.inputs[ref.operand] if isinstance(ref, OperandRef) else None
        if not isinstance(operand, Operand):
            raise NoBreakdownError("the expression reads the size of a result")
        blank = np.broadcast_to(np.zeros((), np.float32), operand.shape)
        return apply(blank, *[value for value, _ in below[1:]]), 0.0
    with np.errstate(all="ignore"):
        value = apply(*[each for each, _ in below])
        exact = float(np.real(np.asarray(value).reshape(-1)[0]))
        error = unit * abs(exact)
        if any(each for _, each in below):
            ends = [
                (value,) if not each else (value - each, value + each) for value, each in below
            ]
            errors = [
                abs(float(np.asarray(apply(*corner)).reshape(-1)[0]) - exact)
                for corner in itertools.islice(itertools.product(*ends), 16)
            ]
            error += max(errors)
    return value, error


@explains(prelu, ncnn.prelu)
def explain_prelu(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Multiply a negative element by the slope of its channel."""
    given = list(call.arguments.values())
    input, weight = given[0], given[1]
    if not isinstance(input, Operand):
        raise NoBreakdownError("the input is no operand")
    x = take(input, "input", np.array([index], np.int64))
    axis, label = (0, "slope") if call.layer_code is ncnn.prelu else (1, "weight")
    channel = index[axis] if len(index) > axis and weight.shape[0] > 1 else 0
    slope = take(weight, label, np.array([[channel] + [0] * (weight.ndim - 1)], np.int64))
    value = float(x.values[0])
    total = value if value > 0 else value * float(slope.values[0])
    name = f"{x.name}{format_index(index)}"
    formula = (
        f"y{format_index(index)} = {name} if {name} > 0, else {slope.name}[{channel}] · {name}"
    )
    terms = Terms((x, slope), np.array([total]), (1,), ("term",))
    steps = (Step("slope", float(slope.values[0])),)
    error = 8 * rounding(call.dtype) * abs(total)
    return Breakdown(Kind.FUNCTION, formula, terms, total, error, steps=steps)


@locates(copying.type_as)
def locate_converted(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the same positions; of the other tensor only the dtype counts."""
    return {call.array("input").name: box}


@explains(copying.type_as)
def explain_converted(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Convert an element to another dtype."""
    x = take(call.array("input"), "input", np.array([index], np.int64))
    with np.errstate(all="ignore"):
        total = float(x.values.astype(call.dtype)[0])
    formula = f"y{format_index(index)} = {call.dtype}({x.name}{format_index(index)})"
    terms = Terms((x,), x.values, (1,), ("term",))
    return Breakdown(Kind.FUNCTION, formula, terms, total, 0.0)


def halved_axis(call: Call) -> int:
    """Return the dimension whose halves a gated unit multiplies."""
    name = "axis" if call.layer_code is ncnn_shapes.glu else "dim"
    return int(call.arguments[name]) % call.array("input").ndim


def _in_second_half(call: Call, index: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of the gate of an element."""
    operand, axis = call.array("input"), halved_axis(call)
    half = operand.shape[axis] // 2
    return (*index[:axis], index[axis] + half, *index[axis + 1 :])


@explains(glu, ncnn_shapes.glu)
def explain_glu(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Multiply an element of one half by the sigmoid of one of the other."""
    operand = call.array("input")
    other = _in_second_half(call, index)
    factors = {
        place: take(operand, operand.name, np.array([at], np.int64))
        for place, at in enumerate((index, other))
    }
    first, second = (float(each.values[0]) for each in factors.values())
    with np.errstate(over="ignore"):
        total = float(first / (1 + np.exp(-second)))
    names = [f"{operand.name}{format_index(at)}" for at in (index, other)]
    formula = f"y{format_index(index)} = {names[0]} · sigmoid({names[1]})"
    error = 8 * rounding(call.dtype) * abs(total) * (1 + abs(second))
    return Breakdown(Kind.FUNCTION, formula, _columns(factors), total, error)


@locates(glu, ncnn_shapes.glu)
def locate_glu(call: Call, box: Box) -> Mapping[str, Box]:
    """Return both halves."""
    operand, axis = call.array("input"), halved_axis(call)
    return {operand.name: (*box[:axis], operand.whole[axis], *box[axis + 1 :])}


def read_scaling(call: Call) -> tuple[Operand, Any, Any]:
    """Return the input of a scaling of channels, the factors and the bias or None."""
    given = call.arguments
    if call.layer_code is ncnn_channels.bias:
        return call.array("input"), None, given["bias"]
    input, *others = call.arrays
    return input, others[0] if given["scale"] is None else given["scale"], given["bias"]


@explains(*SCALINGS)
def explain_scaled(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Multiply an element by the factor of its channel, and add a bias."""
    input, scale, bias = read_scaling(call)
    channel = np.array([[index[0]]], np.int64)
    factors = [take(input, "input", np.array([index], np.int64))]
    name = f"{factors[0].name}{format_index(index)}"
    if scale is not None:
        factors.append(take(scale, "scale", channel))
        name += f" · {factors[1].name}[{index[0]}]"
    offset, label = None, ""
    if bias is not None:
        offset, label = float(take(bias, "bias", channel).values[0]), f"bias[{index[0]}]"
    formula = f"y{format_index(index)} = {f'{label} + ' if label else ''}{name}"
    return add_up(call, formula, multiply(factors, (1,), ("term",)), offset, label)


@locates(*SCALINGS)
def locate_scaled(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the same positions, and the factors of their channels."""
    input, scale, _ = read_scaling(call)
    found = {input.name: box}
    if isinstance(scale, Operand):
        found[scale.name] = scale.whole
    return found
