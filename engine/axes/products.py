"""Products of matrices around a softmax, as attention is written without its own operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.runtime import RuntimeOperator

__all__ = [
    "BETWEEN",
    "PRODUCTS",
    "SOFTMAX",
    "find_product",
    "mixes_heads",
    "summed_places",
]

PRODUCTS: Final = frozenset(
    {"torch.matmul", "torch.bmm", "torch.einsum", "torch.baddbmm", "ncnn.MatMul"}
)
SOFTMAX: Final = frozenset(
    {"F.softmax", "nn.Softmax", "torch.softmax", "Tensor.softmax", "ncnn.Softmax"}
)
BETWEEN: Final = frozenset(
    {"pnnx.Expression", "Tensor.reshape", "Tensor.view", "Tensor.masked_fill", "torch.where",
     "F.tanh", "Tensor.float", "Tensor.to", "Tensor.type_as", "torch.clamp", "Tensor.expand",
     "ncnn.BinaryOp", "ncnn.UnaryOp", "ncnn.Eltwise", "ncnn.Split", "ncnn.Reshape"}
)  # fmt: skip
"""Operators between a product and its softmax: scale, bounds, mask and bias."""
# Scores of several kinds of keys, such as words and entities, or words and a sink.
_JOINS: Final = frozenset({"torch.cat", "torch.concat"})
_HEADS_LAST: Final = ((0, 2, 3, 1), (0, 3, 1, 2))  # to the last dimension, and back
_MOST_STEPS: Final = 8
_MOST_OPERATORS: Final = 24


def find_product(softmax: RuntimeOperator) -> RuntimeOperator | None:
    """Return the product of matrices that a softmax normalises; None if there is none.

    Of several the one of the first operands, to which others such as a bias are added.
    """
    waiting = [(softmax.inputs[0].producer, 1)] if softmax.inputs else []
    for _ in range(_MOST_OPERATORS):
        if not waiting:
            break
        operator, steps = waiting.pop()
        if operator is not None and operator.type in PRODUCTS:
            return operator
        if operator is None or steps == _MOST_STEPS:
            continue
        if operator.type in BETWEEN | _JOINS or mixes_heads(operator):
            waiting += [(operand.producer, steps + 1) for operand in operator.inputs[::-1]]
    return None


def mixes_heads(operator: RuntimeOperator) -> bool:
    """Whether an operator makes scores of the heads from those of all, as talking heads do.

    That is a convolution of single positions, or a linear layer between two permutes.
    """
    shape = operator.inputs[0].shape if operator.inputs else None
    if shape is None or len(shape) != 4:
        return False
    params = operator.params
    if operator.type == "Tensor.permute":
        return params.get("dims") in _HEADS_LAST
    if operator.type == "nn.Linear":
        return params.get("in_features") == params.get("out_features") == shape[-1]
    return (
        operator.type == "nn.Conv2d"
        and params.get("kernel_size") == (1, 1)
        and params.get("in_channels") == params.get("out_channels")
    )


def summed_places(product: RuntimeOperator) -> tuple[int, ...]:
    """Return the dimensions of the first operand that a product sums over."""
    if product.type != "torch.einsum":
        return (-1,)
    left, arrow, right = (
        str(product.params.get("equation", "")).replace(" ", "").partition("->")
    )
    words = left.split(",")
    if len(words) != 2 or not arrow or "." in left:
        return ()
    summed = {letter for letter in words[0] if letter in words[1] and letter not in right}
    return tuple([place for place, letter in enumerate(words[0]) if letter in summed])
