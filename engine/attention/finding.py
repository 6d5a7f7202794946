"""Finds the attentions of a graph by its operators; computes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.axes.products import BETWEEN, PRODUCTS, SOFTMAX, find_product, mixes_heads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator

__all__ = ["MODULES", "NCNN_FUNCTION", "Attention", "find_attentions", "find_blocks"]

MODULES: Final = frozenset({"nn.MultiheadAttention", "ncnn.MultiHeadAttention"})
NCNN_FUNCTION: Final = "ncnn.SDPA"
_FUNCTIONS: Final = frozenset(
    {"F.scaled_dot_product_attention", "aten::scaled_dot_product_attention", NCNN_FUNCTION}
)
# Between the softmax and the product with the values there may also stand:
_AFTER: Final = BETWEEN | {
    "nn.Dropout", "F.dropout", "nn.Identity", "Tensor.slice", "torch.transpose",
}  # fmt: skip
_COPY: Final = "ncnn.Split"  # the same value for each consumer
_MOST_STEPS: Final = 8
# How far the projections of one input may be from it: a linear layer, a split into heads.
_MOST_PROJECTION: Final = 12


@dataclass(frozen=True, slots=True)
class Attention:
    """An attention of a graph.

    Attributes
    ----------
    operator : str
        The operator that computes it as a whole, or the softmax.
    query, key, value : str
        Operands: what is projected, what is split into heads, or the factors of the products.
    output : str
        Operand with the result: of the operator, or of the product with the values.
    weights : str
        Operand with the weights; ``""`` if the operator keeps none.
    scores : str
        Operand that the softmax normalises; ``""`` without one.
    """

    operator: str
    query: str
    key: str
    value: str
    output: str
    weights: str = ""
    scores: str = ""

    @property
    def operands(self) -> tuple[str, ...]:
        """Its operands, the earliest first, each once."""
        names = (self.query, self.key, self.value, self.scores, self.weights, self.output)
        return tuple(dict.fromkeys([name for name in names if name]))


def find_attentions(graph: RuntimeGraph) -> tuple[Attention, ...]:
    """Find the attentions of a graph, in execution order.

    Parameters
    ----------
    graph : RuntimeGraph

    Returns
    -------
    tuple of Attention
        Operators that compute an attention as a whole, and softmax operators along the last
        dimension that stand between two products of matrices.
    """
    found = (_find(operator) for operator in graph.operators)
    return tuple([attention for attention in found if attention is not None])


def _find(operator: RuntimeOperator) -> Attention | None:
    if operator.type in MODULES or operator.type in _FUNCTIONS:
        return _fused(operator)
    return _written_out(operator) if operator.type in SOFTMAX else None


def _fused(operator: RuntimeOperator) -> Attention | None:
    """Return the attention of one operator."""
    if not operator.inputs or not operator.outputs:
        return None
    operands = [
        operand.name
        for operand, name in zip(operator.inputs, operator.input_names, strict=True)
        if not name.endswith("mask")
    ]
    if operator.type.startswith("ncnn.") and operator.params.get("attn_mask"):
        operands = operands[:-1]  # ncnn has no names of operands; the mask is the last
    if operator.type in _FUNCTIONS and len(operator.inputs) < 3:
        return None
    query, *others = operands[:3] or [operator.inputs[0].name]
    key, value = (*others, *[(others or [query])[-1]] * 2)[:2]
    return Attention(operator.name, query, key, value, operator.outputs[0].name)


def _written_out(softmax: RuntimeOperator) -> Attention | None:
    """Return the attention of a softmax between two products."""
    if len(softmax.inputs) != 1 or len(softmax.outputs) != 1 or not _is_over_keys(softmax):
        return None
    first, last = find_product(softmax), _product_after(softmax)
    if first is None or last is None or len(first.inputs) < 2:
        return None
    second, place = last
    query, key = first.inputs[-2:]  # torch.baddbmm takes what it adds first
    weights = softmax.outputs[0]
    used = second.inputs[place]
    if used.producer is not None and used.producer.type == "Tensor.slice":
        weights = used  # without that of a sink, which has no value
    return Attention(
        softmax.name,
        query.name,
        key.name,
        second.inputs[1 - place].name,
        second.outputs[0].name,
        weights.name,
        softmax.inputs[0].name,
    )


def _is_over_keys(softmax: RuntimeOperator) -> bool:
    if softmax.type.startswith("ncnn."):  # its files have no shapes; products have 3 or 4
        return softmax.params.get("axis") in {-1, 2, 3}
    dim = softmax.params.get("dim")
    shape = softmax.inputs[0].shape
    return dim == -1 or (shape is not None and dim == len(shape) - 1)


def _product_after(softmax: RuntimeOperator) -> tuple[RuntimeOperator, int] | None:
    """Return the product of the weights with the values, and the place of the weights."""
    operands: tuple[RuntimeOperand, ...] = softmax.outputs
    for _ in range(_MOST_STEPS):
        following: RuntimeOperator | None = None
        for operand in operands:
            for consumer in operand.consumers:
                if consumer.type in PRODUCTS and len(consumer.inputs) == 2:
                    return consumer, consumer.inputs.index(operand)
                if consumer.type == _COPY or (
                    (consumer.type in _AFTER or mixes_heads(consumer))
                    and len(consumer.outputs) == 1
                ):
                    following = following or consumer
        if following is None:
            return None
        operands = following.outputs
    return None


# Blocks


def find_blocks(
    graph: RuntimeGraph, attentions: Iterable[Attention], last: Attention
) -> tuple[Attention, ...]:
    """Return the self-attentions that mix the tokens of an attention, up to itself.

    Parameters
    ----------
    graph : RuntimeGraph
    attentions : iterable of Attention
        Of the graph.
    last : Attention

    Returns
    -------
    tuple of Attention
        In execution order, `last` at the end; empty if `last` is no self-attention. What a
        decoder reads of an encoder is not among them.
    """
    by_output = {each.output: each for each in attentions}
    if not _is_of_itself(graph, last):
        return ()
    found = {last.operator: last}
    seen: set[str] = set()
    waiting = [last.query]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        attention = by_output.get(name)
        if attention is not None:
            if _is_of_itself(graph, attention):
                found[attention.operator] = attention
            waiting.append(attention.query)
            continue
        producer = graph.operands[name].producer
        if producer is not None:
            waiting += [operand.name for operand in producer.inputs]
    return tuple(sorted(found.values(), key=lambda each: graph.operator(each.operator).index))


def _is_of_itself(graph: RuntimeGraph, attention: Attention) -> bool:
    """Whether queries and keys come of the same tokens."""
    if attention.query == attention.key:
        return True
    sources = _sources(graph.operands[attention.query])
    return not sources.isdisjoint(_sources(graph.operands[attention.key]))


def _sources(operand: RuntimeOperand) -> set[str]:
    found = {operand.name}
    for _ in range(_MOST_PROJECTION):
        producer = operand.producer
        if producer is None or not producer.inputs:
            break
        operand = producer.inputs[0]
        found.add(operand.name)
    return found
