"""What an operator costs: multiply-accumulates, operations, bytes moved, parameters.

Conventions, as published tables use them: one multiply-accumulate (MAC) is two floating
point operations; biases are not counted as MACs; activations, normalisations and
element-wise operators count one operation per output element; shape operators and
everything unknown count none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Value

__all__ = ["Cost", "ValueSource", "cost"]

Shape = tuple[int, ...]


class ValueSource(Protocol):
    """Whatever knows the values computed so far, such as a session."""

    def has_value(self, operand: str, /) -> bool:
        """Whether an operand has been computed."""
        ...

    def value(self, operand: str, /) -> Value:
        """Value of an operand that has been computed."""
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one execution.

    Attributes
    ----------
    macs : int
        Multiply-accumulates.
    flops : int
        Floating point operations.
    nbytes : int
        Bytes of inputs, outputs and weights together.
    parameters : int
        Weight elements.
    """

    macs: int = 0
    flops: int = 0
    nbytes: int = 0
    parameters: int = 0


def cost(operator: RuntimeOperator, session: ValueSource | None = None) -> Cost:
    """Cost of an operator.

    Parameters
    ----------
    operator : RuntimeOperator
    session : ValueSource, optional
        Where given, shapes are those of its values; else those that the file states.

    Returns
    -------
    Cost
        With zeros where a shape is not known.
    """
    inputs = [_shape(operand, session) for operand in operator.inputs]
    outputs = [_shape(operand, session) for operand in operator.outputs]
    weights = {name: a.shape for name, a in operator.attributes.items()}
    parameters = sum(math.prod(shape) for shape in weights.values())
    nbytes = sum(a.nbytes for a in operator.attributes.values())
    for operand, shape in zip(
        [*operator.inputs, *operator.outputs], inputs + outputs, strict=True
    ):
        itemsize = operand.dtype.itemsize if operand.dtype is not None else 4
        nbytes += math.prod(shape) * itemsize if shape is not None else 0
    out = outputs[0] if outputs else None
    if out is None:
        return Cost(nbytes=nbytes, parameters=parameters)
    known = [shape for shape in inputs if shape is not None]
    macs = _macs(operator, known, out, weights.get("weight")) if known else 0
    flops = 2 * macs if macs else _elementwise(operator) * math.prod(out)
    return Cost(macs, flops, nbytes, parameters)


def _shape(operand: RuntimeOperand, session: ValueSource | None) -> Shape | None:
    if session is not None and session.has_value(operand.name):
        value = session.value(operand.name)
        return value.shape if isinstance(value, np.ndarray) else None
    if operand.shape is None:
        return None
    known = tuple(dim for dim in operand.shape if isinstance(dim, int))
    return known if len(known) == len(operand.shape) else None


def _macs(
    operator: RuntimeOperator, inputs: list[Shape], out: Shape, weight: Shape | None
) -> int:
    bare = operator.type.rpartition(".")[2]
    for prefix, rule in _RULES.items():
        if bare.startswith(prefix):
            if weight is None and len(inputs) > 1:
                weight = inputs[1]
            return rule(inputs, out, weight)
    return 0


def _convolution(_inputs: list[Shape], out: Shape, weight: Shape | None) -> int:
    # Per output element: input channels of its group times the kernel's size.
    return math.prod(out) * math.prod(weight[1:]) if weight else 0


def _transposed(inputs: list[Shape], _out: Shape, weight: Shape | None) -> int:
    # Per input element: output channels of its group times the kernel's size.
    return math.prod(inputs[0]) * math.prod(weight[1:]) if weight else 0


def _linear(_inputs: list[Shape], out: Shape, weight: Shape | None) -> int:
    return math.prod(out) * weight[-1] if weight else 0


def _product(inputs: list[Shape], out: Shape, _weight: Shape | None) -> int:
    return math.prod(out) * inputs[0][-1] if inputs[0] else 0


def _attention(inputs: list[Shape], _out: Shape, _weight: Shape | None) -> int:
    """Scores and weighted sum of scaled dot product attention: (…, L, E) with (…, S, E)."""
    if len(inputs) < 3:
        return 0
    query, key, value = inputs[:3]
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


_RULES: Final[dict[str, Callable[[list[Shape], Shape, Shape | None], int]]] = {
    "ConvTranspose": _transposed,
    "conv_transpose": _transposed,
    "Conv": _convolution,
    "conv": _convolution,
    "Linear": _linear,
    "linear": _linear,
    "matmul": _product,
    "bmm": _product,
    "mm": _product,
    "scaled_dot_product_attention": _attention,
}  # the longer prefixes come first

_FREE: Final = (
    "view", "reshape", "permute", "transpose", "flatten", "cat", "stack", "slice", "split",
    "chunk", "unbind", "squeeze", "unsqueeze", "expand", "contiguous", "clone", "identity",
    "dropout", "input", "output", "attribute", "tuple", "list", "select", "index", "size",
    "pad", "embedding", "repeat", "narrow", "to", "type",
)  # fmt: skip


def _elementwise(operator: RuntimeOperator) -> int:
    """Operations per output element of an operator that has no MACs."""
    bare = operator.type.rpartition(".")[2].rpartition("::")[2].lower()
    if bare.startswith(_FREE):
        return 0
    expression = operator.params.get("expr")
    if isinstance(expression, str):
        return expression.count("(")
    return 1
