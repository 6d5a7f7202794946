"""The cost of an operator: multiply-accumulates, operations, bytes moved, parameters.

Conventions, as published tables use them:

- A multiply-accumulate (MAC) is two floating point operations. Convolutions, products of
  matrices, attention and recurrent layers are counted in MACs; adding a bias counts none.
- Normalisations, activations, pooling and everything element-wise count one operation for
  each element of their largest operand; operators that only move elements count none.
- Parameters are trained numbers, without running statistics, tables of integers and constants
  from the code. pnnx folds a batch norm into the convolution before it, so that a channel has
  one bias where PyTorch has weight and bias of the norm.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from engine.values import ArrayMetadata, value_nbytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator
    from engine.shapes import ExportedShape
    from engine.values import Value, ValueMetadata

__all__ = ["Cost", "Memory", "ValueSource", "cost", "is_free", "memory"]

Shape = tuple[int, ...]


class ValueSource(Protocol):
    """A source of computed values, such as a session."""

    def has_value(self, operand: str, /) -> bool:
        """Whether an operand has been computed."""
        ...

    def metadata(self, operand: str, /) -> ValueMetadata:
        """Return the metadata of a computed operand's value."""
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of one execution.

    Attributes
    ----------
    macs : int
        Multiply-accumulates.
    flops : int
        Floating point operations: twice the MACs, or those of an operator without any.
    nbytes : int
        Bytes of inputs, outputs and weights together.
    parameters : int
        Elements of trained weights.
    output_nbytes, weight_nbytes : int
        The part of the bytes that its outputs and its weights take.
    """

    macs: int = 0
    flops: int = 0
    nbytes: int = 0
    parameters: int = 0
    output_nbytes: int = 0
    weight_nbytes: int = 0


def cost(operator: RuntimeOperator, session: ValueSource | None = None) -> Cost:
    """Compute the cost of an operator.

    Parameters
    ----------
    operator : RuntimeOperator
    session : ValueSource, optional
        Source of actual shapes; without it the file's shapes are used.

    Returns
    -------
    Cost
        With zeros for unknown shapes.
    """
    inputs = [_metadata(operand, session) for operand in operator.inputs]
    outputs = [_metadata(operand, session) for operand in operator.outputs]
    call = _Call(operator, inputs, outputs)
    input_nbytes = sum(map(_operand_nbytes, operator.inputs, inputs))
    output_nbytes = sum(map(_operand_nbytes, operator.outputs, outputs))
    weight_nbytes = parameters = 0
    if operator.has_attributes:
        weight_nbytes = sum(attribute.nbytes for attribute in operator.attributes.values())
        parameters = _parameters(operator)
    nbytes = input_nbytes + output_nbytes + weight_nbytes
    rule = _RULES.get(call.kind)
    macs = rule(call) if rule is not None else 0
    flops = 2 * macs if rule is not None else _elementwise(call)
    return Cost(macs, flops, nbytes, parameters, output_nbytes, weight_nbytes)


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory that the values of one pass take.

    Attributes
    ----------
    total : int
        Bytes of all that is computed.
    needed : int
        The most bytes that exist at once if each value is dropped after its last consumer.
    """

    total: int = 0
    needed: int = 0


def memory(graph: RuntimeGraph, session: ValueSource | None = None) -> Memory:
    """Compute the memory of the values of one pass, without inputs and weights.

    Parameters
    ----------
    graph : RuntimeGraph
    session : ValueSource, optional
        As for `cost`.

    Returns
    -------
    Memory
        Values of unknown size count as 0.
    """
    total = needed = alive = 0
    uses = {name: len(operand.consumers) for name, operand in graph.operands.items()}
    sizes: dict[str, int] = {}
    for operator in graph.operators:
        if not operator.is_input and operator.type != "pnnx.Attribute":
            for operand in operator.outputs:
                sizes[operand.name] = nbytes = _operand_nbytes(
                    operand, _metadata(operand, session)
                )
                total, alive = total + nbytes, alive + nbytes
        needed = max(needed, alive)
        for operand in operator.inputs:
            uses[operand.name] -= 1
        for operand in {*operator.inputs, *operator.outputs}:
            # The model's outputs stay.
            if not uses[operand.name] and not any(c.is_output for c in operand.consumers):
                alive -= sizes.get(operand.name, 0)
    return Memory(total, needed)


class _Call:
    """An operator with the shapes of one execution."""

    def __init__(
        self,
        operator: RuntimeOperator,
        inputs: Iterable[ValueMetadata],
        outputs: Iterable[ValueMetadata],
    ) -> None:
        self.kind = _kind(operator.type)
        self.params: Mapping[str, Value] = operator.params
        self.weights: dict[str, Shape] = {}
        if operator.has_attributes:
            self.weights = {name: a.shape for name, a in operator.attributes.items()}
        self.names = operator.input_names
        self.inputs = list(map(_shape, operator.inputs, inputs))
        self.outputs = list(map(_shape, operator.outputs, outputs))

    def argument(self, name: str, position: int) -> Shape | None:
        """Return the shape of an argument: a weight, a named input, or one by position."""
        if name in self.weights:
            return self.weights[name]
        if name in self.names:
            return self.inputs[self.names.index(name)]
        return self.input(position) if not any(self.names) else None

    def input(self, position: int = 0) -> Shape | None:
        """Return the shape of an input; None if it is missing or unknown."""
        return self.inputs[position] if position < len(self.inputs) else None

    @property
    def output(self) -> Shape | None:
        """Shape of the first output."""
        return self.outputs[0] if self.outputs else None


@lru_cache(maxsize=1024)
def _kind(operator_type: str) -> str:
    """Return the last part of a type in lower case, as nn.Conv2d and F.conv2d cost the same."""
    return re.split("[.:]+", operator_type)[-1].lower()


def _metadata(operand: RuntimeOperand, session: ValueSource | None) -> ValueMetadata:
    """Return the metadata of an operand's value; None if there is none."""
    if session is not None and session.has_value(operand.name):
        return session.metadata(operand.name)
    return None


def _shape(operand: RuntimeOperand, metadata: ValueMetadata) -> Shape | None:
    if metadata is None:
        return _known(operand.shape)
    return metadata.shape if isinstance(metadata, ArrayMetadata) else None


# Cached: in long models shapes recur.
@lru_cache(maxsize=4096)
def _known(shape: ExportedShape | None) -> Shape | None:
    if shape is None:
        return None
    known = tuple(dim for dim in shape if isinstance(dim, int))
    return known if len(known) == len(shape) else None


@lru_cache(maxsize=4096)
def _elements(shape: ExportedShape | None) -> int:
    known = _known(shape)
    return math.prod(known) if known is not None else 0


def _operand_nbytes(operand: RuntimeOperand, metadata: ValueMetadata) -> int:
    if metadata is not None:
        return value_nbytes(metadata)
    itemsize = operand.dtype.itemsize if operand.dtype is not None else 4
    return _elements(operand.shape) * itemsize


# Parameters

_STATISTICS: Final = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_CONSTANT: Final = re.compile(r"pnnx_\d+")  # pnnx's names of constants from the code


def _parameters(operator: RuntimeOperator) -> int:
    return sum(
        attribute.size
        for name, attribute in operator.attributes.items()
        if name not in _STATISTICS
        and not _CONSTANT.fullmatch(name)
        and attribute.dtype.kind in "fc"
    )


# Multiply-accumulates


def _convolution(call: _Call) -> int:
    """Each output element needs its group's input channels times the kernel."""
    out, weight = call.output, call.argument("weight", 1)
    return math.prod(out) * math.prod(weight[1:]) if out is not None and weight else 0


def _transposed(call: _Call) -> int:
    """Each input element goes to its group's output channels times the kernel."""
    taken, weight = call.argument("input", 0), call.argument("weight", 1)
    if taken is None:
        taken = call.input()
    return math.prod(taken) * math.prod(weight[1:]) if taken is not None and weight else 0


def _linear(call: _Call) -> int:
    out, weight = call.output, call.argument("weight", 1)
    return math.prod(out) * weight[-1] if out is not None and weight else 0


def _product(left: str, position: int) -> Callable[[_Call], int]:
    """Product of matrices: each output element needs a row of the left factor."""

    def rule(call: _Call) -> int:
        out, factor = call.output, call.argument(left, position)
        return math.prod(out) * factor[-1] if out is not None and factor else 0

    return rule


def _grouped(call: _Call) -> int:
    """Every row of a group is multiplied with that group's matrix."""
    left, right = call.argument("mat_a", 0), call.argument("mat_b", 1)
    if not left or not right:
        return 0
    groups = left[0] if len(left) == len(right) == 3 else 1
    return groups * math.prod(left[-2:]) * right[-1]


def _einsum(call: _Call) -> int:
    """The product of all index sizes of two factors; none for a single factor.

    More than two factors are multiplied one after the other.
    """
    equation = call.params.get("equation")
    if not isinstance(equation, str) or len(call.inputs) < 2:
        return 0
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, call.inputs, strict=False):
        if shape is None:
            return 0
        before, dots, after = term.partition("...")
        spread = [f"...{i}" for i in range(len(shape) - len(before) - len(after), 0, -1)]
        labels = [*before, *(spread if dots else ()), *after]
        for label, size in zip(labels, shape, strict=False):
            sizes[label] = max(size, sizes.get(label, 1))
    return math.prod(sizes.values()) * (len(terms) - 1)


def _attention(call: _Call) -> int:
    """Scores and weighted sum: query (…, L, E), key (…, S, E), value (…, S, V)."""
    query, key, value = (
        call.argument(name, place) for place, name in enumerate(("query", "key", "value"))
    )
    if not query or not key or not value or len(key) < 2:
        return 0
    return math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _multihead_attention(call: _Call) -> int:
    """Four projections and the attention itself; one input is query, key and value."""
    pairs = zip(call.names, call.inputs, strict=True)
    given = [shape for name, shape in pairs if "mask" not in name]
    projection = call.weights.get("out_proj.weight")
    if not projection or not given or any(not shape or len(shape) < 2 for shape in given):
        return 0
    shapes = [shape for shape in given if shape is not None]
    query, key = shapes[0], shapes[min(1, len(shapes) - 1)]
    value = shapes[min(2, len(shapes) - 1)]
    embedding = projection[0]
    asked, known = math.prod(query[:-1]), math.prod(key[:-1])
    length = key[1] if call.params.get("batch_first") and len(key) > 2 else key[0]
    projected = asked * (query[-1] + embedding) + known * (key[-1] + value[-1])
    return projected * embedding + 2 * asked * length * embedding


def _encoder_layer(call: _Call) -> int:
    """A fused transformer layer: every matrix among its inputs meets every token."""
    tokens = call.input()
    if not tokens or len(tokens) < 2:
        return 0
    matrices = sum(math.prod(s) for s in call.inputs[1:] if s is not None and len(s) == 2)
    return math.prod(tokens[:-1]) * (matrices + 2 * tokens[-2] * tokens[-1])


def _recurrent(call: _Call) -> int:
    """Each step goes through the matrices of all layers and directions."""
    steps = call.input()
    matrices = sum(math.prod(s) for n, s in call.weights.items() if n.startswith("weight_"))
    return math.prod(steps[:-1]) * matrices if steps else 0


def _detect(call: _Call) -> int:
    """A 1x1 convolution on each level of YOLOv5's head."""
    weights = (call.weights.get(f"m.{level}.weight") for level in range(len(call.inputs)))
    pairs = zip(call.inputs, weights, strict=True)
    return sum(math.prod(shape) * weight[0] for shape, weight in pairs if shape and weight)


_RULES: Final[Mapping[str, Callable[[_Call], int]]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _convolution),
    **dict.fromkeys(("deformconv2d", "deform_conv2d", "bilinear"), _convolution),
    **{f"convtranspose{n}d": _transposed for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _transposed for n in (1, 2, 3)},
    "linear": _linear,
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "inner"), _product("input", 0)),
    "addmm": _product("mat1", 1),
    "addmv": _product("mat", 1),
    "baddbmm": _product("batch1", 1),
    **dict.fromkeys(("_grouped_mm", "grouped_mm"), _grouped),
    "einsum": _einsum,
    "scaled_dot_product_attention": _attention,
    "multiheadattention": _multihead_attention,
    "_transformer_encoder_layer_fwd": _encoder_layer,
    **dict.fromkeys(("rnn", "lstm", "gru"), _recurrent),
    "detect": _detect,
}


# Operations of everything else

# Types without arithmetic, in lower case.
_FREE_TYPES: Final = """
    _to_copy alias alpha_dropout alphadropout arange argwhere attribute bool
    broadcast_tensors broadcast_to cat channel_shuffle channelshuffle chunk circularpad1d
    circularpad2d circularpad3d clone concat concatenate constantpad1d constantpad2d
    constantpad3d contiguous copy detach diag diagonal dim dropout dropout1d dropout2d
    dropout3d dropoutnd embedding empty empty_like expand expand_as eye
    feature_alpha_dropout feature_dropout featurealphadropout fill flatten flip float
    floatimplicit fold full full_like gather identity imag index index_fill index_put
    index_select input int intimplicit item lift_fresh linspace listconstruct listunpack
    masked_fill masked_scatter masked_select moveaxis movedim narrow new_empty new_full
    new_ones new_zeros nonzero numel numpy_t ones ones_like output pad permute pixel_shuffle
    pixel_unshuffle pixelshuffle pixelunshuffle real reflectionpad1d reflectionpad2d
    reflectionpad3d repeat repeat_interleave replicationpad1d replicationpad2d
    replicationpad3d reshape reshape_as resolve_conj roll scalarimplicit scatter select
    select_scatter size slice slice_copy slice_scatter sliceindexes split split_with_sizes
    squeeze stack swapaxes swapdims t take take_along_dim tensor_split tile to transpose
    tril triu tupleconstruct tupleunpack type_as unbind unflatten unfold unsqueeze
    upsample_nearest upsamplingnearest2d view view_as view_as_complex view_as_real where
    zeropad1d zeropad2d zeropad3d zeros zeros_like
"""
_FREE: Final = frozenset(_FREE_TYPES.split())
_FREE_OF_NCNN: Final = frozenset({
    "Concat", "Crop", "Dropout", "ExpandDims", "Flatten", "Flip", "MemoryData", "Noop",
    "Permute", "PixelShuffle", "Reorg", "Reshape", "ShuffleChannel", "Slice", "Squeeze", "Tile",
})  # fmt: skip


def is_free(operator_type: str) -> bool:
    """Return whether operators of a type have no arithmetic, as views have none.

    Only types of PyTorch and of ncnn are known.
    """
    namespace, _, name = operator_type.partition(".")
    if namespace == "ncnn":
        return name in _FREE_OF_NCNN
    return namespace in {"nn", "F", "torch", "Tensor"} and _kind(operator_type) in _FREE


def _elementwise(call: _Call) -> int:
    if call.kind in _FREE or call.output is None:
        return 0
    expression = call.params.get("expr")
    if call.kind == "expression" and isinstance(expression, str):
        each = expression.count("(")  # every bracket is a call
        return each * math.prod(call.output)
    known = [math.prod(shape) for shape in (*call.inputs, call.output) if shape is not None]
    return max(known)
