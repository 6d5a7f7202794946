"""Layers of ncnn's own format, whose values have no batch dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.axes.factors import Rank
from engine.axes.layout import Kind
from engine.axes.registry import rule
from engine.axes.rules.convolution import convolve, resample
from engine.axes.rules.elementwise import broadcast, keep
from engine.axes.rules.joining import join_dims
from engine.axes.rules.matmul import multiply
from engine.axes.rules.moving import cut
from engine.axes.rules.reduction import drop
from engine.axes.rules.shaping import reshape
from engine.ncnn.types import AXES, PERMUTE_ORDERS

if TYPE_CHECKING:
    from engine.axes.call import Call, Results
    from engine.axes.factors import Dims

__all__: list[str] = []

_SPATIAL: Final = {"1D": 1, "3D": 3}

rule("BinaryOp", "Eltwise")(broadcast)
rule("Reshape", "Flatten", "Squeeze", "ExpandDims")(reshape)


@rule("Convolution", "ConvolutionDepthWise", "Deconvolution", "DeconvolutionDepthWise",
      "Convolution1D", "ConvolutionDepthWise1D", "Deconvolution1D", "DeconvolutionDepthWise1D",
      "Convolution3D", "ConvolutionDepthWise3D", "Deconvolution3D",
      "DeconvolutionDepthWise3D")  # fmt: skip
def convolution(call: Call) -> Results:
    """Replace channels, and resample positions."""
    spatial = _SPATIAL.get(call.operator.type[-2:], 2)
    dims = call.first
    if not call.claim_image(dims, spatial) or dims is None:
        return []
    return [convolve(call, dims, spatial)]


@rule("Pooling", "Pooling1D", "Pooling3D", "Interp", "Padding", "Crop", "PixelShuffle", "Reorg")
def resize(call: Call) -> Results:
    """Resample positions; a pooling over all of them leaves the channels."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None:
        return []
    if call.operator.type.startswith("Pooling"):
        call.claim_image(dims, _SPATIAL.get(call.operator.type[-2:], 2))
    if len(shape) == 1 < len(dims):
        return [call.fit(dims[:1])]
    return [resample(call, dims, shape)]


@rule("BatchNorm", "InstanceNorm", "GroupNorm", "Scale", "PReLU", "LRN")
def normalize(call: Call) -> Results:
    """Normalise each channel."""
    if call.first:
        call.factors.claim(call.first[0], Kind.FEATURE, Rank.EXPECTED)
    return keep(call)


@rule("InnerProduct", "Gemm", "Embed")
def linear(call: Call) -> Results:
    """Replace the features of each position."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None or not shape:
        return []
    if call.operator.type == "Gemm" and len(call.inputs) > 1:
        return [None]
    lead = dims if call.operator.type == "Embed" else dims[: len(shape) - 1]
    if call.operator.type == "Embed":
        call.factors.claim(dims[-1], Kind.TOKEN, Rank.STATED)
    made = (call.factors.make(shape[-1]),)
    call.factors.claim(made, Kind.FEATURE, Rank.EXPECTED)
    return [call.fit((*lead, made))]


@rule("LayerNorm", "RMSNorm")
def normalize_last(call: Call) -> Results:
    """Normalise the features of each position."""
    if call.first:
        call.factors.claim(call.first[-1], Kind.FEATURE, Rank.EXPECTED)
    return keep(call)


@rule("MultiHeadAttention")
def attend_by_heads(call: Call) -> Results:
    """Attend; the result has the positions of the queries."""
    dims = call.first
    if dims is None or call.shape is None or len(dims) != 2 or len(call.shape) != 2:
        return []
    call.claim(dims, (Kind.TOKEN, Kind.FEATURE), Rank.EXPECTED)
    made = (call.factors.make(call.shape[-1]),)
    call.factors.claim(made, Kind.FEATURE, Rank.EXPECTED)
    return [call.fit((dims[0], made))]


@rule("SDPA")
def attend(call: Call) -> Results:
    """Weigh values by the match of queries and keys, head by head."""
    query, key, value = (*call.inputs[:3], None, None, None)[:3]
    if query is None or key is None or value is None:
        return []
    if not len(query) == len(key) == len(value) == 3:
        return []
    factors = call.factors
    factors.unify(query[0], key[0])
    factors.unify(key[0], value[0])
    factors.unify(query[2], key[2])
    factors.unify(key[1], value[1])
    call.claim(query, (Kind.HEAD, Kind.TOKEN, Kind.FEATURE), Rank.STATED)
    return [call.fit((*query[:2], value[2]))]


@rule("MatMul")
def matmul(call: Call) -> Results:
    """Multiply matrices."""
    if len(call.inputs) < 2:
        return []
    one, other = call.inputs[:2]
    if call.integer("transB", 0) and other is not None and len(other) > 1:
        other = (*other[:-2], other[-1], other[-2])
    return [multiply(call, one, other)]


@rule("Permute")
def permute(call: Call) -> Results:
    """Order dimensions."""
    dims = call.first
    orders = PERMUTE_ORDERS.get(len(dims), ()) if dims is not None else ()
    number = call.integer("order_type", 0)
    if dims is None or not 0 <= number < len(orders):
        return []
    own = AXES[len(dims)]
    return [call.fit([dims[own.index(name)] for name in orders[number][::-1]])]


@rule("Split", "Noop")
def copy(call: Call) -> Results:
    """Return the same value several times."""
    dims = call.first
    return [] if dims is None else [call.fit(dims, at) for at in range(len(call.shapes))]


@rule("Concat")
def concatenate(call: Call) -> Results:
    """Concatenate along a dimension."""
    shape = call.shape
    place = call.place("axis", len(shape)) if shape else None
    return [] if place is None else [join_dims(call, place)]


@rule("Slice")
def slice_(call: Call) -> Results:
    """Split a dimension into ranges."""
    dims = call.first
    place = call.place("axis", len(dims)) if dims else None
    if dims is None or place is None:
        return []
    return [_range(call, dims, place, at) for at in range(len(call.shapes))]


def _range(call: Call, dims: Dims, place: int, at: int) -> Dims | None:
    shape = call.shapes[at]
    if shape is None or len(shape) != len(dims):
        return None
    before = [other[place] if other else None for other in call.shapes[:at]]
    sizes = [size for size in before if isinstance(size, int)]
    start = sum(sizes) if len(sizes) == len(before) else None
    found = list(dims)
    found[place] = cut(call, dims[place], start, shape[place])
    return call.fit(found, at)


@rule("Reduction")
def reduce(call: Call) -> Results:
    """Reduce dimensions."""
    dims = call.first
    return [] if dims is None else [drop(call, dims, call.places("axes", len(dims)))]


@rule("LSTM", "GRU", "RNN")
def recur(call: Call) -> Results:
    """Follow a sequence in time."""
    dims, shape = call.first, call.shape
    if dims is None or shape is None or len(dims) != 2 or len(shape) != 2:
        return []
    call.claim(dims, (Kind.TIME, Kind.FEATURE), Rank.EXPECTED)
    made = (call.factors.make(shape[-1]),)
    call.factors.claim(made, Kind.FEATURE, Rank.EXPECTED)
    return [call.fit((dims[0], made))]
