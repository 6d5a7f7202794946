"""Products of matrices around a softmax, as attention is written without its own operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from engine.runtime import RuntimeOperator

__all__ = ["BETWEEN", "PRODUCTS", "SOFTMAX", "find_product", "summed_places"]

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
_MOST_STEPS: Final = 8


def find_product(softmax: RuntimeOperator) -> RuntimeOperator | None:
    """Return the product of matrices that a softmax normalises; None if there is none."""
    operator = softmax
    for _ in range(_MOST_STEPS):
        producer = operator.inputs[0].producer if operator.inputs else None
        if producer is None or producer.type in PRODUCTS:
            return producer
        if producer.type not in BETWEEN:
            return None
        operator = producer
    return None


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
