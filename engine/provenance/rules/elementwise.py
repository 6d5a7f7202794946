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
from engine.provenance.arithmetic import format_index
from engine.provenance.call import NoBreakdownError, Operand, rounding, take
from engine.provenance.records import Breakdown, Factor, Interval, Kind, Step, Terms
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Value

__all__ = ["FUNCTIONS", "explain_function", "locate_elementwise", "require_broadcast"]

FUNCTIONS: Final = (
    arithmetic.add, arithmetic.sub, arithmetic.rsub, arithmetic.div, arithmetic.power,
    arithmetic.float_power, arithmetic.round_to, arithmetic.logit, arithmetic.clamp,
    arithmetic.clamp_min, arithmetic.clamp_max, arithmetic.addcmul, arithmetic.addcdiv,
    arithmetic.lerp, arithmetic.nan_to_num, choosing.masked_fill, copying.to,
    copying.type_as,
    dropout.dropout,
)  # fmt: skip


def _places(operand: Operand, index: Sequence[Any], whole: Any = 0) -> list[Any]:
    """Return an item for each dimension of an operand that is broadcast."""
    if operand.ndim > len(index):
        raise NoBreakdownError("the result has fewer dimensions than an operand")
    own = index[len(index) - operand.ndim :]
    return [item if size > 1 else whole for item, size in zip(own, operand.shape, strict=True)]


def require_broadcast(call: Call) -> None:
    """Refuse operators whose result has another shape than the operands together."""
    if np.broadcast_shapes(*[each.shape for each in call.arrays]) != call.shape:
        raise NoBreakdownError("the result has another shape than the operands")


@locates(*FUNCTIONS, prelu)
def locate_elementwise(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the same positions of all operands."""
    if call.layer_code is prelu:
        return {
            each.name: each.whole if place else box for place, each in enumerate(call.arrays)
        }
    if call.operator.random:
        raise NoBreakdownError(f"{call.operator.type} draws random numbers")
    require_broadcast(call)
    used = _used_operands(call)
    return {
        each.name: tuple(_places(each, box, Interval(0, 1)))
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
        name = call.operator.type.rpartition(".")[2].rpartition(":")[2].lower()
        texts = [
            f"{factor.name}{format_index(factor.indices[0].tolist())}"
            for factor in factors.values()
        ]
        formula = f"y{format_index(index)} = {name}({', '.join(texts)})"
    if not np.isfinite(error):
        error = np.inf
    return Breakdown(Kind.FUNCTION, formula, _columns(factors), total, float(error))


def _factors(call: Call, index: tuple[int, ...]) -> dict[int, Factor]:
    """Return the element of each operand, by the operand's place."""
    return {
        place: take(each, each.name, np.array([_places(each, index)], np.int64).reshape(1, -1))
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
        found = call.operator.forward(values)[call.place]
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


@explains(prelu)
def explain_prelu(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Multiply a negative element by the slope of its channel."""
    given = list(call.arguments.values())
    input, weight = given[0], given[1]
    if not isinstance(input, Operand):
        raise NoBreakdownError("the input is no operand")
    x = take(input, "input", np.array([index], np.int64))
    channel = index[1] if len(index) > 1 and weight.shape[0] > 1 else 0
    slope = take(weight, "weight", np.array([[channel] + [0] * (weight.ndim - 1)], np.int64))
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


def _in_second_half(call: Call, index: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index of the gate of an element."""
    operand, dim = call.array("input"), call.arguments["dim"]
    axis = dim % operand.ndim
    half = operand.shape[axis] // 2
    return (*index[:axis], index[axis] + half, *index[axis + 1 :])


@explains(glu)
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


@locates(glu)
def locate_glu(call: Call, box: Box) -> Mapping[str, Box]:
    """Return both halves."""
    operand = call.array("input")
    axis = call.arguments["dim"] % operand.ndim
    return {operand.name: (*box[:axis], operand.whole[axis], *box[axis + 1 :])}
