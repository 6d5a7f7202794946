"""Lowers operators to nodes of a subgraph.

Each lowering returns the name of its result, or a pair of the name and the final shape. For
several outputs it returns a tuple of these. Operands are float32, and indices int64.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.backends.lowering import LoweringError, LoweringTable, Operand
from engine.backends.native_sizes import require_scratch, require_spread, require_windows
from engine.backends.node_kinds import BINARY_FUNCTIONS, INTEGER_KINDS, UNARY_FUNCTIONS
from engine.expression import Call, Constant, OperandRef
from engine.layers import registration
from engine.layers.activations import (
    gelu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    mish,
    prelu,
    refine_gelu,
    refine_gelu_by_tanh,
    relu,
    relu6,
    sigmoid,
    silu,
    softsign,
)  # fmt: skip
from engine.layers.adaptive_pooling import AdaptiveAveragePool
from engine.layers.arguments import axis_of
from engine.layers.attention import scaled_dot_product_attention
from engine.layers.concatenate import cat
from engine.layers.convolution import Convolution
from engine.layers.expression import Expression
from engine.layers.linear import Linear
from engine.layers.matmul import bmm, matmul, mm
from engine.layers.multihead_attention import MultiheadAttention
from engine.layers.normalization import BatchNorm, group_norm, layer_norm
from engine.layers.onnx import meanings
from engine.layers.pooling import AveragePool, MaxPool
from engine.layers.shuffle import channel_shuffle, pixel_shuffle
from engine.layers.softmax import log_softmax, softmax
from engine.layers.transposed_convolution import TransposedConvolution

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.backends.subgraph import Result, Subgraph
    from engine.layers import OperatorCall
    from engine.layers.windows import Windows
    from engine.values import Array

__all__ = ["LOWERINGS"]

LOWERINGS: Final[LoweringTable[Subgraph, Result]] = LoweringTable()

_LONG_SEQUENCE: Final = 32  # minimum rows for a separate matrix product


# Convolutions and products


def _add_batch_axis(operand: Operand, rank: int) -> tuple[tuple[int, ...], bool]:
    """Return the shape with a batch axis, and whether the operand lacked it."""
    single = len(operand.shape) == rank + 1
    return ((1, *operand.shape) if single else operand.shape), single


def _window_attributes(windows: Windows) -> dict[str, Any]:
    befores, afters = zip(*windows.padding, strict=True)
    return {
        "kernel_shape": windows.kernel,
        "strides": windows.stride,
        "dilations": windows.dilation,
        "pads": (*befores, *afters),
    }


@LOWERINGS.register(Convolution)
def _convolution(graph: Subgraph, layer: Convolution, input: Operand) -> Result:
    if layer.padding_mode != "zeros":
        raise LoweringError("padding other than zeros")
    shape, single = _add_batch_axis(input, layer.windows.rank)
    if shape[1] != layer.weight.shape[1] * layer.groups:
        raise LoweringError("other channels")  # ONNX Runtime would read beyond the image
    outputs, inputs = layer.weight.shape[:2]
    require_windows(layer.windows, shape, outputs, gathered=inputs)
    weights = [graph.constant(w) for w in (layer.weight, layer.bias) if w is not None]
    result = graph.node(
        "Conv",
        graph.read(input, shape),
        *weights,
        group=layer.groups,
        **_window_attributes(layer.windows),
    )
    if not single:
        return result
    counts = layer.windows.counts(shape[2:])
    return result, (layer.weight.shape[0], *counts)


@LOWERINGS.register(TransposedConvolution)
def _transposed_convolution(
    graph: Subgraph, layer: TransposedConvolution, input: Operand
) -> Result:
    shape, single = _add_batch_axis(input, layer.windows.rank)
    if single or shape[1] != layer.weight.shape[0]:
        raise LoweringError("no batch axis, or other channels")
    channels = layer.weight.shape[1] * layer.groups
    require_spread(layer.windows, shape, channels, layer.output_padding)
    weights = [graph.constant(w) for w in (layer.weight, layer.bias) if w is not None]
    return graph.node(
        "ConvTranspose",
        graph.read(input, shape),
        *weights,
        group=layer.groups,
        output_padding=layer.output_padding,
        **_window_attributes(layer.windows),
    )


@LOWERINGS.register(Linear)
def _linear(graph: Subgraph, layer: Linear, input: Operand) -> Result:
    outputs, size = layer.weight.shape
    rows = math.prod(input.shape[:-1])
    weights = [graph.constant(w) for w in (layer.weight, layer.bias) if w is not None]
    result = graph.node("Gemm", graph.read(input, (rows, size)), *weights, transB=1)
    return result, (*input.shape[:-1], outputs)


@LOWERINGS.register(matmul)
def _matmul(graph: Subgraph, input: Any, other: Any) -> Result:
    read = [graph.read(operand, integers=True) for operand in (input, other)]
    return graph.node("MatMul", *read)


@LOWERINGS.register(mm)
def _mm(graph: Subgraph, input: Operand, mat2: Operand) -> Result:
    if (len(input.shape), len(mat2.shape)) != (2, 2):
        raise LoweringError("no matrices")
    return _matmul(graph, input, mat2)


@LOWERINGS.register(bmm)
def _bmm(graph: Subgraph, input: Operand, mat2: Operand) -> Result:
    if len(input.shape) != 3 or input.shape[:1] != mat2.shape[:-2]:
        raise LoweringError("no batches of matrices, or unequal ones")
    return _matmul(graph, input, mat2)


# Pooling


@LOWERINGS.register(MaxPool)
def _max_pool(graph: Subgraph, layer: MaxPool, input: Operand) -> Result:
    shape, single = _add_batch_axis(input, layer.windows.rank)
    if layer.return_indices or single:
        raise LoweringError("indices, or no batch axis")
    _require_own_sizes(layer.windows, shape, ceil_mode=layer.ceil_mode)
    require_windows(layer.windows, shape, shape[1])
    graph.require_above_infinity(input)  # ONNX Runtime ignores both
    return graph.node(
        "MaxPool",
        graph.read(input),
        ceil_mode=int(layer.ceil_mode),
        **_window_attributes(layer.windows),
    )


@LOWERINGS.register(AveragePool)
def _average_pool(graph: Subgraph, layer: AveragePool, input: Operand) -> Result:
    shape, single = _add_batch_axis(input, layer.windows.rank)
    if layer.divisor_override is not None or single or layer.ceil_mode:
        raise LoweringError("a divisor of its own, a partial window, or no batch axis")
    attributes = _window_attributes(layer.windows)
    if set(attributes.pop("dilations")) != {1}:
        raise LoweringError("dilation")
    require_windows(layer.windows, shape, shape[1])
    return graph.node(
        "AveragePool",
        graph.read(input, shape),
        count_include_pad=int(layer.count_include_pad),
        **attributes,
    )


def _require_own_sizes(windows: Windows, shape: tuple[int, ...], *, ceil_mode: bool) -> None:
    """Refuse a last window that starts after the image, which ONNX counts."""
    if ceil_mode and windows.counts(shape[2:], ceil_mode=True) != windows.counts(shape[2:]):
        raise LoweringError("a partial last window")


@LOWERINGS.register(AdaptiveAveragePool)
def _adaptive(graph: Subgraph, layer: AdaptiveAveragePool, input: Operand) -> Result:
    counts = layer.counts(np.broadcast_to(np.float32(0), input.shape), None)
    spatial = input.shape[-layer.rank :]
    if counts == spatial or any(count != 1 for count in counts):
        raise LoweringError("windows of several sizes")
    lead = input.shape[: -layer.rank]
    rows = graph.read(input, (1, math.prod(lead), *spatial))
    return graph.node("GlobalAveragePool", rows), (*lead, *counts)


# Element by element


# All of these are accurate to a few units in the last place, element by element
# (tests/accuracy). ONNX Runtime's own Tanh, Elu, Softplus, Mish, HardSwish and Gelu with
# approximate=tanh are not.
_ACTIVATIONS: Final[tuple[tuple[Callable[..., Array], str], ...]] = (
    (relu, "Relu"), (sigmoid, "Sigmoid"), (silu, "Swish"), (softsign, "Softsign"),
)  # fmt: skip


def _make_lowering(kind: str) -> Callable[..., Any]:
    integers = kind in INTEGER_KINDS

    def lower(graph: Subgraph, input: Operand) -> Result:
        return graph.node(kind, graph.read(input, integers=integers))

    return lower


for _function, _kind in _ACTIVATIONS:
    LOWERINGS.register(_function)(_make_lowering(_kind))
for _name, _kind in UNARY_FUNCTIONS.items():
    _entry = registration(f"torch.{_name}")
    if _entry is not None:
        LOWERINGS.register(_entry.target)(_make_lowering(_kind))


@LOWERINGS.register(relu6)
def _relu6(graph: Subgraph, input: Operand) -> Result:
    return _hardtanh(graph, input, 0.0, 6.0)


@LOWERINGS.register(hardtanh)
def _hardtanh(
    graph: Subgraph, input: Operand, min_val: float = -1.0, max_val: float = 1.0
) -> Result:
    if not min_val <= max_val:
        raise LoweringError("bounds in another order, or NaN")
    low, high = graph.constant(float(min_val)), graph.constant(float(max_val))
    return graph.node("Clip", graph.read(input), low, high)


@LOWERINGS.register(hardsigmoid)
def _hardsigmoid(graph: Subgraph, input: Operand) -> str:
    # Adding 3 first is exact for small results; ``x / 6 + 0.5`` rounds before.
    moved = graph.node("Add", graph.read(input), graph.constant(3.0))
    return graph.node("HardSigmoid", moved, alpha=1 / 6, beta=0.0)


@LOWERINGS.register(hardswish)
def _hardswish(graph: Subgraph, input: Operand) -> Result:
    return graph.node("Mul", graph.read(input), _hardsigmoid(graph, input))


@LOWERINGS.register(mish)
def _mish(graph: Subgraph, input: Operand) -> Result:
    """Lower to ``x n / (n + 2)`` with n = e (e + 2), e = exp(x), which does not cancel."""
    read, two = graph.read(input), graph.constant(2.0)
    # From 20 on the quotient is 1.
    power = graph.node("Exp", graph.node("Clip", read, "", graph.constant(20.0)))
    product = graph.node("Mul", power, graph.node("Add", power, two))
    quotient = graph.node("Div", product, graph.node("Add", product, two))
    return graph.node("Mul", read, quotient)


@LOWERINGS.register(gelu)
def _gelu(graph: Subgraph, input: Operand, approximate: str = "none") -> Result:
    read = graph.read(input)
    if approximate == "none":
        graph.refine(input, refine_gelu)  # the libraries' ``1 + erf`` cancels
        return graph.node("Gelu", read, approximate="none")
    graph.refine(input, refine_gelu_by_tanh)  # the exponential's operand is rounded
    # 1 + tanh(u) is 2 / (1 + exp(-2 u)), which does not cancel.
    root = -2 * math.sqrt(2 / math.pi)
    cubic = graph.node("Mul", graph.node("Mul", read, read), graph.constant(0.044715 * root))
    factor = graph.node("Add", cubic, graph.constant(root))
    power = graph.node("Exp", graph.node("Mul", read, factor))
    return graph.node("Div", read, graph.node("Add", power, graph.constant(1.0)))


@LOWERINGS.register(leaky_relu)
def _leaky_relu(graph: Subgraph, input: Operand, negative_slope: float = 0.01) -> Result:
    read = graph.read(input)
    return graph.node("LeakyRelu", read, alpha=float(negative_slope))


@LOWERINGS.register(prelu)
def _prelu(
    graph: Subgraph, input: Operand, weight: Array, num_parameters: int | None = None
) -> Result:
    slope = graph.read(weight, (-1, *(1,) * max(len(input.shape) - 2, 0)))
    return graph.node("PRelu", graph.read(input), slope)


@LOWERINGS.register(Expression, meanings.OnnxExpression)
def _expression(graph: Subgraph, layer: Expression, *operands: Any) -> Result:
    """Lower arithmetic of tensors of one dtype and numbers; NumPy computes the rest."""
    if not all(isinstance(operand, Operand) for operand in operands):
        raise LoweringError("an operand that is not a tensor")
    if len({operand.dtype for operand in operands}) != 1:
        raise LoweringError("mixed dtypes")
    integers = operands[0].dtype == np.int64
    numbers = int if integers else (int, float)
    names: list[str] = []
    for node in layer.expression.nodes:
        if isinstance(node, OperandRef):
            names.append(graph.read(operands[node.operand], integers=True))
        elif isinstance(node, Constant) and isinstance(node.value, numbers):
            names.append(graph.constant(node.value if integers else float(node.value)))
        elif isinstance(node, Call):
            arguments = [names[child.index] for child in node.children]
            names.append(graph.node(*_map_call(node, arguments, integers=integers)))
        else:
            raise LoweringError(f"{node.label} in an expression")
    return names[-1]


def _map_call(node: Call, arguments: list[str], *, integers: bool) -> tuple[str, ...]:
    """Return the kind of node for a call, and its arguments."""
    if node.name == "square":
        return "Mul", *arguments * 2
    kind = UNARY_FUNCTIONS.get(node.name) or BINARY_FUNCTIONS.get(node.name)
    if kind is None or all(isinstance(child, Constant) for child in node.children):
        raise LoweringError(f"{node.name} in an expression")
    if integers and kind not in INTEGER_KINDS:
        raise LoweringError(f"{node.name} of integers")
    return kind, *arguments


# Normalisation


@LOWERINGS.register(BatchNorm)
def _batch_norm(graph: Subgraph, layer: BatchNorm, input: Operand) -> Result:
    mean, variance, weight, bias = layer.arguments
    if mean is None or variance is None:
        raise LoweringError("no stored statistics")
    if len(input.shape) not in layer.ndims - {2}:
        raise LoweringError("no spatial axis, or too many")
    ones, zeros = np.ones(mean.shape, np.float32), np.zeros(mean.shape, np.float32)
    return graph.node(
        "BatchNormalization",
        graph.read(input),
        graph.constant(ones if weight is None else weight),
        graph.constant(zeros if bias is None else bias),
        graph.constant(mean),
        graph.constant(variance),
        epsilon=layer.eps,
    )


@LOWERINGS.register(layer_norm)
def _layer_norm(
    graph: Subgraph,
    input: Operand,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    elementwise_affine: bool = True,
) -> Result:
    if isinstance(normalized_shape, Operand):
        raise LoweringError("a computed shape")
    sizes = normalized_shape if isinstance(normalized_shape, tuple) else (normalized_shape,)
    if input.shape[len(input.shape) - len(sizes) :] != sizes:
        raise LoweringError("another shape")
    size = math.prod(sizes)
    scale = np.ones(size, np.float32) if weight is None else weight
    read = [
        graph.read(input, (math.prod(input.shape) // size, size)),
        graph.read(scale, (size,)),
    ]
    if bias is not None:
        read.append(graph.read(bias, (size,)))
    return graph.node("LayerNormalization", *read, axis=-1, epsilon=eps), input.shape


@LOWERINGS.register(group_norm)
def _group_norm(
    graph: Subgraph,
    input: Operand,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    num_channels: int | None = None,
    affine: bool = True,
) -> Result:
    samples, channels, *rest = input.shape
    if channels % num_groups:
        raise LoweringError("channels that cannot be divided into groups")
    groups = (samples, num_groups, math.prod((channels, *rest)) // num_groups)
    ones = graph.constant(np.ones(num_groups, np.float32))
    zeros = graph.constant(np.zeros(num_groups, np.float32))
    read = graph.read(input, groups)
    normal = graph.node("InstanceNormalization", read, ones, zeros, epsilon=eps)
    if weight is None and bias is None:
        return normal, input.shape
    result = graph.node("Reshape", normal, graph.integers(samples, channels, -1))
    for kind, array in (("Mul", weight), ("Add", bias)):
        if array is not None:
            result = graph.node(kind, result, graph.read(array, (1, channels, 1)))
    return result, input.shape


@LOWERINGS.register(softmax)
def _softmax(graph: Subgraph, input: Operand, dim: Any = None, dtype: Any = None) -> Result:
    return _lower_along_axis(graph, "Softmax", input, dim, dtype)


@LOWERINGS.register(log_softmax)
def _log_softmax(graph: Subgraph, input: Operand, dim: Any = None, dtype: Any = None) -> Result:
    return _lower_along_axis(graph, "LogSoftmax", input, dim, dtype)


def _lower_along_axis(graph: Subgraph, kind: str, input: Operand, dim: Any, dtype: Any) -> str:
    if dtype is not None or dim is None or not input.shape:
        raise LoweringError("a dtype, or no dim")
    return graph.node(kind, graph.read(input), axis=axis_of(dim, len(input.shape)))


# Attention


@LOWERINGS.register(scaled_dot_product_attention)
def _attention(
    graph: Subgraph, query: Operand, key: Operand, value: Operand, attn_mask: Any = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Result:  # fmt: skip
    if dropout_p or is_causal or enable_gqa or len(query.shape) < 3:
        raise LoweringError("dropout, a causal mask, or shared heads")
    batch = np.broadcast_shapes(*(operand.shape[:-2] for operand in (query, key, value)))
    mask = None
    if attn_mask is not None:
        wanted = (*batch, query.shape[-2], key.shape[-2])
        if np.broadcast_shapes(attn_mask.shape, wanted) != wanted:
            raise LoweringError("a mask of another shape")
        mask = graph.read(attn_mask)
    graph.require_finite()  # the node returns NaN for a query without a key
    require_scratch(math.prod(batch) * query.shape[-2] * key.shape[-2])
    keys = graph.read(key)
    order = (*range(len(key.shape) - 2), len(key.shape) - 1, len(key.shape) - 2)
    factor = 1 / math.sqrt(max(1, query.shape[-1])) if scale is None else scale
    scores = graph.node(
        "MatMul",
        graph.node("Mul", graph.read(query), graph.constant(float(factor))),
        graph.node("Transpose", keys, perm=order),
    )
    if mask is not None:
        scores = graph.node("Add", scores, mask)
    return graph.node("MatMul", graph.node("Softmax", scores, axis=-1), graph.read(value))


@LOWERINGS.register(MultiheadAttention)
def _multihead(
    graph: Subgraph, layer: MultiheadAttention, *operands: Any, attn_mask: Any = None
) -> Result:
    """Lower self-attention or attention to other sequences, without returned weights."""
    if not layer.is_plain or any(len(operand.shape) != 3 for operand in operands):
        raise LoweringError("weights, extra keys, or no batch axis")
    sequences = [*operands, *[operands[-1]] * (3 - len(operands))]
    if len({s.shape[0 if layer.batch_first else 1] for s in sequences}) > 1:
        raise LoweringError("unequal batches")
    graph.require_finite()  # the node returns NaN for a query whose scores are all -inf
    outputs, width = layer.output.weight.shape
    natural = (*sequences[0].shape[:2], outputs)
    require_scratch(layer.heads * math.prod(_sizes_of_scores(layer, sequences)))
    mask = "" if attn_mask is None else _mask(graph, layer, sequences, attn_mask)
    if _is_of_windows(layer, sequences):
        rows = _fused_attention(graph, layer, sequences[0], mask)
        return _product(graph, rows, layer.output), natural
    factors = 1 / math.sqrt(width // layer.heads), 1.0, 1.0
    heads = [
        _heads(graph, layer, projection, sequence, factor, last=place == 1)
        for place, (projection, sequence, factor) in enumerate(
            zip(layer.projections, sequences, factors, strict=True)
        )
    ]
    scores = graph.node("MatMul", heads[0], heads[1])
    if mask:
        scores = graph.node("Add", scores, mask)
    mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), heads[2])
    order = (0, 2, 1, 3) if layer.batch_first else (2, 0, 1, 3)
    rows = graph.node(
        "Reshape", graph.node("Transpose", mixed, perm=order), graph.integers(-1, width)
    )
    return _product(graph, rows, layer.output), natural


def _sizes_of_scores(
    layer: MultiheadAttention, sequences: Sequence[Any]
) -> tuple[int, int, int]:
    """Return N, L and S of a head's scores."""
    samples, length = (0, 1) if layer.batch_first else (1, 0)
    queries, keys = sequences[0].shape, sequences[1].shape
    return queries[samples], queries[length], keys[length]


def _is_of_windows(layer: MultiheadAttention, sequences: Sequence[Any]) -> bool:
    """Return whether this is self-attention of several long samples, as of windows of an image.

    For a single sample, or short ones, three products with all samples at once are faster.
    """
    samples, length, _ = sequences[0].shape
    alike = len({sequence.name for sequence in sequences}) == 1
    return alike and layer.batch_first and samples > 1 and length >= _LONG_SEQUENCE


def _fused_attention(
    graph: Subgraph, layer: MultiheadAttention, sequence: Operand, mask: str
) -> str:
    """Lower projections and attention to one node, which returns the heads side by side.

    It is ``Attention`` of ONNX Runtime's docs/ContribOperators.md. All threads work head by
    head, and nothing is transposed between the products.
    """
    weights = np.concatenate([linear.weight for linear in layer.projections])
    shifts = [
        np.zeros(len(linear.weight), np.float32) if linear.bias is None else linear.bias
        for linear in layer.projections
    ]
    mixed = graph.node(
        "Attention",
        graph.read(sequence),
        graph.constant(np.ascontiguousarray(weights.T)),
        graph.constant(np.concatenate(shifts)),
        *(["", "", mask] if mask else []),
        num_heads=layer.heads,
    )
    rows = math.prod(sequence.shape[:2])
    return graph.node("Reshape", mixed, graph.integers(rows, layer.output.weight.shape[1]))


def _mask(
    graph: Subgraph, layer: MultiheadAttention, sequences: Sequence[Any], mask: Any
) -> str:
    """Return a mask to add, of shape (N, H, L, S) or (1, 1, L, S)."""
    samples, *scores = _sizes_of_scores(layer, sequences)
    if mask.shape == (samples * layer.heads, *scores):
        return graph.read(mask, (samples, layer.heads, *scores))
    if mask.shape == tuple(scores):
        return graph.read(mask, (1, 1, *scores))
    raise LoweringError("a mask of another shape, or no mask")


def _heads(
    graph: Subgraph, layer: MultiheadAttention, projection: Linear, sequence: Operand,
    factor: float, *, last: bool,
) -> str:  # fmt: skip
    """Multiply by a factor, in shape (N, H, L, D), or with `last` (N, H, D, L)."""
    rows = graph.read(sequence, (math.prod(sequence.shape[:2]), sequence.shape[2]))
    first, second = sequence.shape[:2]
    split = graph.node(
        "Reshape",
        _product(graph, rows, projection, factor),
        graph.integers(first, second, layer.heads, -1),
    )
    batch, row = (0, 1) if layer.batch_first else (1, 0)
    return str(
        graph.node("Transpose", split, perm=(batch, 2, 3, row) if last else (batch, 2, row, 3))
    )


def _product(graph: Subgraph, rows: str, linear: Linear, factor: float = 1.0) -> str:
    weights = [graph.constant(w) for w in (linear.weight, linear.bias) if w is not None]
    return graph.node("Gemm", rows, *weights, transB=1, alpha=factor, beta=factor)


# Moving elements


@LOWERINGS.register(cat)
def _cat(graph: Subgraph, *tensors: Any, dim: int = 0) -> Result:
    if not all(isinstance(t, Operand) and len(t.shape) > 0 for t in tensors):
        raise LoweringError("a list, or numbers")
    if len({(t.dtype, len(t.shape)) for t in tensors}) > 1:
        raise LoweringError("mixed dtypes, or an empty tensor")
    axis = axis_of(dim, len(tensors[0].shape))
    read = [graph.read(t, integers=True) for t in tensors]
    return graph.node("Concat", *read, axis=axis)


@LOWERINGS.register(meanings.cat)
def _cat_in_onnx(graph: Subgraph, *tensors: Any, call: OperatorCall, dim: int = 0) -> Result:
    if all(len(shape or ()) == 1 for shape in call.output_shapes):
        raise LoweringError("perhaps a list of sizes")
    return _cat(graph, *tensors, dim=dim)


@LOWERINGS.register(channel_shuffle)
def _channel_shuffle(graph: Subgraph, input: Operand, groups: int) -> Result:
    samples, channels, *rest = input.shape
    if groups < 1 or channels % groups or not rest:
        raise LoweringError("channels that cannot be shared out, or nothing but channels")
    split = (samples, groups, channels // groups, math.prod(rest))
    read = graph.read(input, split, integers=True)
    return graph.node("Transpose", read, perm=(0, 2, 1, 3)), input.shape


@LOWERINGS.register(pixel_shuffle)
def _pixel_shuffle(graph: Subgraph, input: Operand, upscale_factor: int) -> Result:
    # ONNX Runtime divides by the square, in 64 bits.
    if len(input.shape) != 4 or upscale_factor < 1 or input.shape[1] % upscale_factor**2:
        raise LoweringError("no batch axis, or channels that cannot be shared out")
    return graph.node("DepthToSpace", graph.read(input), blocksize=upscale_factor, mode="CRD")
