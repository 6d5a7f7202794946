"""How the gradient of one element goes back through an operator, in float64.

A rule takes the gradient by an operator's output and returns those by its inputs. Together with
the rules of `engine.provenance.rules`, which say what an element consists of, they give the
weight that each position of an given has.
"""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from engine.layers.activations import prelu
from engine.layers.adaptive_pooling import AdaptiveAveragePool, AdaptiveMaxPool
from engine.layers.attention import prepare_attention, scaled_dot_product_attention
from engine.layers.binding import code_of
from engine.layers.concatenate import cat
from engine.layers.exactness import is_elementwise
from engine.layers.expression import Expression
from engine.layers.multihead_attention import MultiheadAttention
from engine.layers.ncnn import activations as ncnn_activations
from engine.layers.ncnn import shapes as ncnn_shapes
from engine.layers.ncnn.convolution import NcnnConvolution, NcnnDeconvolution
from engine.layers.ncnn.pooling import Pooling
from engine.layers.ncnn.products import InnerProduct, MultiHeadAttention
from engine.layers.pooling import AveragePool, MaxPool, count_taps_inside
from engine.layers.softmax import log_softmax, softmin
from engine.provenance.call import NoBreakdownError, Operand
from engine.provenance.rules.convolution import CONVOLUTIONS, read_convolution
from engine.provenance.rules.elementwise import (
    FUNCTIONS,
    SCALINGS,
    aligned_shape,
    read_scaling,
    require_broadcast,
)
from engine.provenance.rules.moving import joined_members, moved_numbers
from engine.provenance.rules.normalization import READERS, read_normalization
from engine.provenance.rules.pooling import pool_reads
from engine.provenance.rules.products import PRODUCTS, read_product
from engine.provenance.rules.reduction import MEANS, SUMS, reduced_axes
from engine.provenance.rules.resizing import RESIZES, resize_taps
from engine.provenance.rules.softmax import CODES, softmax_axis
from engine.provenance.table import find_moved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from engine.provenance.call import Call
    from engine.provenance.rules.windows import AxisReads
    from engine.values import Array, Value

__all__ = ["go_back"]

Gradient: TypeAlias = "npt.NDArray[np.float64]"
Backward: TypeAlias = "Callable[[Call, Gradient], Mapping[str, Gradient]]"

_STEP: Final = 1e-6  # of a difference quotient, relative to the element
_KINK: Final = 1e-3  # slopes at both sides that differ by more belong to a kink


def go_back(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Return the gradients by an operator's inputs.

    Parameters
    ----------
    call : Call
    gradient : ndarray of float64
        By the output; of its shape.

    Returns
    -------
    mapping of str to ndarray of float64
        By operand; one that is missing has no influence.

    Raises
    ------
    NoBreakdownError
        If there is no rule for the operator, or not for these arguments.
    """
    layer = call.layer
    rule = _moved if find_moved(layer) is not None else _RULES.get(code_of(layer))
    if rule is None and (is_elementwise(layer) or isinstance(layer, Expression)):
        rule = _function
    if rule is None:
        raise NoBreakdownError("no rule says what passes through")
    return rule(call, gradient)


def _wide(operand: Operand | Array) -> Array:
    value = operand.value if isinstance(operand, Operand) else operand
    return np.asarray(value, np.float64)


def _unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Gradient:
    """Sum a gradient over the dimensions along which an operand was broadcast."""
    found = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    axes = tuple([axis for axis, size in enumerate(shape) if size != found.shape[axis]])
    summed: Gradient = found.sum(axis=axes, keepdims=True)
    return summed


# Moves and joins


def _moved(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each element back what it was moved from."""
    found = {}
    for operand, flat, places in moved_numbers(call):
        sums: Any = np.bincount(
            flat, gradient.reshape(-1)[places], minlength=int(np.prod(operand.shape))
        )
        found[operand.name] = sums.reshape(operand.shape)
    return found


def _joined(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Cut the gradient at the seams."""
    members, axis = joined_members(call)
    seams = np.cumsum([member.shape[axis] for member in members])[:-1]
    found: dict[str, Gradient] = {}
    for member, part in zip(members, np.split(gradient, seams, axis), strict=True):
        found[member.name] = found.get(member.name, 0.0) + part
    return found


# Functions of elements


def _function(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the slope, a quotient of differences in float64."""
    if call.operator.random:
        raise NoBreakdownError(f"{call.operator.type} draws random numbers")
    if call.layer_code is not prelu:
        require_broadcast(call)
    values: list[Any] = [
        _wide(each) if isinstance(each, Operand) and each.dtype.kind == "f"
        else each.value if isinstance(each, Operand) else each
        for each in call.inputs
    ]  # fmt: skip
    middle = _forward(call, values)
    found: dict[str, Gradient] = {}
    done = set()
    for each in call.arrays:
        if each.dtype.kind != "f" or each.name in done:
            continue
        done.add(each.name)
        steps = _STEP * np.maximum(1.0, np.abs(_wide(each)))
        aligned = aligned_shape(call, each) if call.layer_code is not prelu else each.shape
        spread = np.broadcast_to(steps.reshape(aligned), call.shape)
        sides = []
        for sign in (1.0, -1.0):
            moved = [
                value + sign * steps if isinstance(given, Operand) and given.name == each.name
                else value
                for given, value in zip(call.inputs, values, strict=True)
            ]  # fmt: skip
            with np.errstate(all="ignore"):
                sides.append((_forward(call, moved) - middle) / (sign * spread))
        back = _unbroadcast(_slope(*sides) * gradient, aligned)
        found[each.name] = back.reshape(each.shape)
    return found


def _slope(above: Array, below: Array) -> Array:
    """Return the slope; at a kink the smaller one, so that ReLU has none at 0."""
    far = np.maximum(np.abs(above), np.abs(below))
    kink = np.abs(above - below) > _KINK * np.maximum(far, 1e-9)
    smaller = np.where(np.abs(above) < np.abs(below), above, below)
    found = np.where(kink, smaller, (above + below) / 2)
    return np.where(np.isfinite(found), found, 0.0)


def _forward(call: Call, values: Sequence[Value]) -> Array:
    with np.errstate(all="ignore"):
        found = call.operator.forward(list(values))[call.place]
    if not isinstance(found, np.ndarray) or found.shape != call.shape:
        raise NoBreakdownError("the result has another shape in float64")
    return found.astype(np.float64)


def _scaled(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Multiply by the factors of the channels."""
    given, scale, _ = read_scaling(call)
    if isinstance(scale, Operand):
        raise NoBreakdownError("computed factors of channels are not followed")
    if scale is None:
        return {given.name: gradient}
    return {given.name: gradient * _wide(scale).reshape(-1, *(1,) * (given.ndim - 1))}


def _before_activation(call: Call, gradient: Gradient) -> Gradient:
    """Return the gradient by the sums to which a layer of ncnn applies an activation."""
    layer = call.layer
    if not isinstance(layer, (NcnnConvolution, NcnnDeconvolution, InnerProduct)):
        return gradient
    if not layer.activation[0]:
        return gradient
    plain: Any = copy.copy(layer)
    plain.activation = 0, ()
    sums = np.asarray(plain.forward(*[each.value for each in call.arrays]), np.float64)
    steps = _STEP * np.maximum(1.0, np.abs(sums))
    ends = [
        ncnn_activations.activate(sums + sign * steps, *layer.activation)
        for sign in (0.0, 1.0, -1.0)
    ]
    return gradient * _slope((ends[1] - ends[0]) / steps, (ends[0] - ends[2]) / steps)


def _normalised(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Scale back, less what goes through the statistics."""
    found, given = read_normalization(call), call.array("input")
    x = _wide(given)
    weight = np.ones(()) if found.weight is None else _wide(found.weight)
    shape = [1] * given.ndim
    shape[found.channel if given.ndim > found.channel else 0] = -1
    if found.by_channel:
        weight = weight.reshape(shape) if weight.ndim else weight
    scaled = gradient * weight
    if found.mean is not None:
        variance = _wide(found.variance).reshape(shape)
        return {given.name: scaled / np.sqrt(variance + found.eps)}
    axes = found.axes
    if found.groups:
        parts = (*x.shape[: found.channel], found.groups, -1)
        x, scaled, axes = x.reshape(parts), scaled.reshape(parts), (found.channel + 1,)
    mean = x.mean(axes, keepdims=True) if found.centred else 0.0
    spread = np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + found.eps)
    normal = (x - mean) / spread
    back = scaled - normal * (scaled * normal).mean(axes, keepdims=True)
    if found.centred:
        back -= scaled.mean(axes, keepdims=True)
    return {given.name: (back / spread).reshape(given.shape)}


# Sums of products


def _product(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Contract with all other factors."""
    found, gradient = read_product(call), _before_activation(call, gradient)
    result: dict[str, Gradient] = {}
    for place, member in enumerate(found.members):
        if not isinstance(member.array, Operand):
            continue
        if len(set(member.labels)) < len(member.labels):
            raise NoBreakdownError("a diagonal is summed")
        others = [each for number, each in enumerate(found.members) if number != place]
        arrays = [gradient * found.alpha, *(_wide(each.array) for each in others)]
        labels = [found.result, *(each.labels for each in others)]
        known = "".join(labels)
        kept = "".join([label for label in member.labels if label in known])
        back = np.einsum(",".join(labels) + "->" + kept, *arrays, optimize=True)
        full = back.reshape([
            back.shape[kept.index(label)] if label in kept else 1 for label in member.labels
        ])  # fmt: skip
        shape = np.broadcast_shapes(full.shape, member.array.shape)
        back = _unbroadcast(np.broadcast_to(full, shape), member.array.shape)
        result[member.array.name] = result.get(member.array.name, 0.0) + back
    offset = found.offset
    if offset is not None and isinstance(offset.array, Operand):
        if not found.result.endswith(offset.labels):
            raise NoBreakdownError("a column that is added is not followed")
        back = _unbroadcast(gradient * found.beta, offset.array.shape)
        result[offset.array.name] = result.get(offset.array.name, 0.0) + back
    return result


def _convolved(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Spread the gradient over the window by the kernel, one tap after the other."""
    found, gradient = read_convolution(call), _before_activation(call, gradient)
    given, rank, groups = found.input, found.rank, found.groups
    if not rank:  # an image of ncnn of one pixel
        shape = (groups, found.per_group, found.taken)
        back = np.einsum(
            "go,goc->gc", gradient.reshape(shape[:2]), _wide(found.weight).reshape(shape)
        )
        return {given.name: back.reshape(given.shape)}
    samples = given.shape[0] if given.ndim > rank + 1 else 1
    result = np.zeros((samples, groups, found.taken, *given.shape[-rank:]))
    flowing = gradient.reshape((samples, groups, found.per_group, *call.shape[-rank:]))
    kernel = _wide(found.weight)
    taps = kernel.shape[2:]
    kernel = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
    if not found.inputs_first:
        kernel = kernel.swapaxes(1, 2)  # shape (groups, inputs, outputs, taps)
    area = _occupied(flowing, rank)
    part = flowing[_within(area)]
    for tap in np.ndindex(*taps):
        sources, targets = _tap(found.reads, area, tap)
        taken = part[_mesh(sources)]
        flat = taken.reshape(*taken.shape[:3], -1)
        weights = kernel[_within(tap)]
        back = weights * flat if weights.shape[1:] == (1, 1) else weights @ flat
        _add(result, targets, back.reshape(*back.shape[:3], *taken.shape[3:]))
    return {given.name: result.reshape(given.shape)}


def _mesh(places: Sequence[Array]) -> Any:  # noqa: ANN401 - an index
    """Return an index of positions along the last dimensions."""
    return (..., *np.ix_(*places))


def _within(places: Sequence[Any]) -> Any:  # noqa: ANN401 - an index
    """Return an index into the last dimensions."""
    return (..., *places)


def _add(result: Array, places: Sequence[Array], part: Array) -> None:
    """Add at positions along the last dimensions, of which some may come more than once."""
    if all(len(np.unique(each)) == len(each) for each in places):
        result[_mesh(places)] += part
    else:
        np.add.at(result, _mesh(places), part)


def _occupied(gradient: Gradient, rank: int) -> tuple[slice, ...]:
    """Return the smallest region along the last dimensions with all that is not zero."""
    places: Array = np.any(gradient, axis=tuple(range(gradient.ndim - rank)))
    found = []
    for axis in range(rank):
        line = np.flatnonzero(
            places.any(axis=tuple(each for each in range(rank) if each != axis))
        )
        found.append(slice(int(line[0]), int(line[-1]) + 1) if line.size else slice(0, 0))
    return tuple(found)


def _tap(
    reads: Sequence[AxisReads], area: Sequence[slice], tap: Sequence[int]
) -> tuple[list[Array], list[Array]]:
    """Return the outputs within an area that have a tap, and the positions it reads."""
    sources, targets = [], []
    for axis, part, number in zip(reads, area, tap, strict=True):
        places = axis.positions(np.arange(part.start, part.stop))[:, number]
        inside = np.flatnonzero(places >= 0)
        sources.append(inside)
        targets.append(places[inside])
    return sources, targets


def _taps(
    reads: Sequence[AxisReads], counts: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], list[Array], list[Array]]]:
    """Yield each tap of a window with its outputs and positions."""
    area = [slice(0, count) for count in counts]
    lengths = [axis.positions(np.zeros(1, np.int64)).shape[1] for axis in reads]
    for tap in itertools.product(*map(range, lengths)):
        yield tap, *_tap(reads, area, tap)


def _largest(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give the gradient to the element that was chosen, the first of equal ones."""
    if call.place:
        raise NoBreakdownError("the index of an element has no slope")
    if isinstance(call.layer, Pooling) and call.layer.is_global:
        raise NoBreakdownError("the largest of all positions is not followed")
    reads, given = pool_reads(call), call.array("input")
    counts = call.shape[-len(reads) :]
    values = _wide(given)
    best = np.full(call.shape, -np.inf)
    chosen = np.full(call.shape, -1)
    taps = list(_taps(reads, counts))
    for number, (_, sources, targets) in enumerate(taps):
        at, read = _mesh(sources), values[_mesh(targets)]
        better = (read > best[at]) | (chosen[at] < 0)
        best[at] = np.where(better, read, best[at])
        chosen[at] = np.where(better, number, chosen[at])
    result = np.zeros(given.shape)
    for number, (_, sources, targets) in enumerate(taps):
        at = _mesh(sources)
        _add(result, targets, np.where(chosen[at] == number, gradient[at], 0.0))
    return {given.name: result}


def _averaged(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Share the gradient among the elements of the window."""
    reads, given, layer = pool_reads(call), call.array("input"), call.layer
    rank = len(reads)
    counts, sizes = call.shape[-rank:], given.shape[-rank:]
    divisor: Any = np.ones(())
    for axis, (read, size, count) in enumerate(zip(reads, sizes, counts, strict=True)):
        if isinstance(layer, AveragePool):
            line = count_taps_inside(
                layer.windows, axis, size, count, padded=layer.count_include_pad
            )
        else:
            line = (read.positions(np.arange(count)) >= 0).sum(axis=1)
        divisor = np.multiply.outer(divisor, np.maximum(line, 1))
    if isinstance(layer, AveragePool) and layer.divisor_override is not None:
        divisor = float(layer.divisor_override)
    if isinstance(layer, Pooling) and layer.counts_pad:
        windows = layer.require_shapes(given.shape)
        divisor = divisor if windows is None else float(windows.windows.tap_count)
    shared = gradient / divisor
    result = np.zeros(given.shape)
    for _, sources, targets in _taps(reads, counts):
        _add(result, targets, shared[_mesh(sources)])
    return {given.name: result}


def _pooled(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Go back through a pooling of ncnn."""
    layer, given = call.layer, call.array("input")
    if not isinstance(layer, Pooling) or layer.kind == 0:
        return _largest(call, gradient)
    if not layer.is_global:
        return _averaged(call, gradient)
    count = np.prod(given.shape[1:])
    shared = gradient.reshape(-1, *(1,) * (given.ndim - 1)) / count
    return {given.name: np.broadcast_to(shared, given.shape).copy()}


def _resized(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give each neighbour its share."""
    (reads, shares), given = resize_taps(call), call.arrays[0]
    result = np.zeros(given.shape)
    for tap, sources, targets in _taps(reads, call.shape[-len(reads) :]):
        part = gradient[_mesh(sources)]
        for axis, (share, number, kept) in enumerate(zip(shares, tap, sources, strict=True)):
            line = share[number, kept]
            part = part * line.reshape([-1 if each == axis else 1 for each in range(len(tap))])
        _add(result, targets, part)
    return {given.name: result}


def _reduced(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Give every element of a sum, or of a mean, the same."""
    given = call.array("input")
    axes = reduced_axes(call)
    kept = [1 if axis in axes else size for axis, size in enumerate(given.shape)]
    layer, is_mean = call.layer, call.layer_code in MEANS
    if isinstance(layer, ncnn_shapes.Reduction):
        if layer.operation not in {0, 3}:
            raise NoBreakdownError("only sums and means are followed")
        gradient, is_mean = gradient * float(layer.coefficient), layer.operation == 3
    count = np.prod([given.shape[axis] for axis in axes]) if is_mean else 1
    back = np.broadcast_to(gradient.reshape(kept) / count, given.shape)
    return {given.name: back.copy()}


# Softmax and attention


def _softmax(values: Array, axis: int = -1) -> Array:
    peak = values.max(axis=axis, keepdims=True)
    powers = np.exp(values - np.where(np.isfinite(peak), peak, 0.0))
    sums = powers.sum(axis=axis, keepdims=True)
    shares: Array = powers / np.where(sums > 0, sums, 1.0)
    return shares


def _shared(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    given, axis = call.array("input"), softmax_axis(call)
    sign = -1.0 if call.layer_code is softmin else 1.0
    shares = _softmax(sign * _wide(given), axis)
    if call.layer_code is log_softmax:
        back = gradient - shares * gradient.sum(axis=axis, keepdims=True)
    else:
        back = shares * (gradient - (gradient * shares).sum(axis=axis, keepdims=True))
    return {given.name: sign * back}


def _attended(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    given = call.arguments
    operands = [call.array(name) for name in ("query", "key", "value")]
    if given["dropout_p"] or given["enable_gqa"]:
        raise NoBreakdownError("attention with dropout or shared heads is not followed")
    mask = given["attn_mask"]
    if isinstance(mask, Operand):
        mask = mask.value
    query, key, value = (_wide(each) for each in operands)
    _, _, mask = prepare_attention(
        query, key, value, mask, is_causal=given["is_causal"], enable_gqa=False
    )
    scale = given["scale"]
    backs = _attend_backward(query, key, value, mask, scale, gradient)
    found: dict[str, Gradient] = {}
    for operand, back in zip(operands, backs, strict=True):
        own = _unbroadcast(back, operand.shape)
        found[operand.name] = found.get(operand.name, 0.0) + own
    return found


def _attend_backward(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    scale: float | None,
    gradient: Gradient,
) -> tuple[Array, Array, Array]:
    """Return the gradients by queries, keys and values; any batch dimensions."""
    factor = 1 / np.sqrt(max(1, query.shape[-1])) if scale is None else float(scale)
    scores = query @ key.swapaxes(-1, -2) * factor
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    shares = _softmax(scores)
    by_value = shares.swapaxes(-1, -2) @ gradient
    by_share = gradient @ value.swapaxes(-1, -2)
    by_score = shares * (by_share - (by_share * shares).sum(axis=-1, keepdims=True)) * factor
    return by_score @ key, by_score.swapaxes(-1, -2) @ query, by_value


def _multihead(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Go back through the output projection, the heads and the projections of the inputs."""
    layer, operands = call.layer, call.arrays
    if not isinstance(layer, MultiheadAttention) or call.place or layer.has_extra_keys:
        raise NoBreakdownError("these outputs or keys of the attention are not followed")
    if len({each.name for each in operands}) != len(call.inputs) or len(operands) > 3:
        raise NoBreakdownError("an attention with a mask is not followed")
    flat = operands[0].ndim == 2

    def batched(array: Array) -> Array:
        """Return an array with the samples first."""
        if flat:
            return array[np.newaxis]
        return array if layer.batch_first else array.swapaxes(0, 1)

    used = (operands * 3)[:3] if len(operands) == 1 else (*operands, operands[-1])[:3]
    inputs = [batched(_wide(each)) for each in used]
    heads = [
        _split(x @ _wide(each.weight).T + (0 if each.bias is None else each.bias), layer.heads)
        for x, each in zip(inputs, layer.projections, strict=True)
    ]
    mixed = _split(batched(gradient) @ _wide(layer.output.weight), layer.heads)
    query, key, value = heads
    backs = _attend_backward(query, key, value, None, None, mixed)
    found: dict[str, Gradient] = {}
    for operand, back, projection in zip(used, backs, layer.projections, strict=True):
        joined = back.swapaxes(1, 2).reshape(back.shape[0], back.shape[2], -1)
        own = joined @ _wide(projection.weight)
        if flat:
            own = own[0]
        elif not layer.batch_first:
            own = own.swapaxes(0, 1)
        found[operand.name] = found.get(operand.name, 0.0) + own
    return found


def _ncnn_multihead(call: Call, gradient: Gradient) -> Mapping[str, Gradient]:
    """Do the same for the module of ncnn, which has no batch."""
    layer, operands = call.layer, call.arrays
    if not isinstance(layer, MultiHeadAttention) or layer.has_mask:
        raise NoBreakdownError("an attention with a mask is not followed")
    used: tuple[Operand, ...] = layer.split(operands)[:3]
    names = ("q", "k", "v")
    heads = [
        _split((_wide(each) @ _wide(layer.weights[name][0]).T + layer.weights[name][1])[None],
               layer.heads)
        for name, each in zip(names, used, strict=True)
    ]  # fmt: skip
    mixed = _split((gradient @ _wide(layer.weights["out"][0]))[np.newaxis], layer.heads)
    query, key, value = heads
    backs = _attend_backward(query, key, value, None, layer.scale, mixed)
    found: dict[str, Gradient] = {}
    for name, operand, back in zip(names, used, backs, strict=True):
        joined = back[0].swapaxes(0, 1).reshape(back.shape[2], -1)
        own = joined @ _wide(layer.weights[name][0])
        found[operand.name] = found.get(operand.name, 0.0) + own
    return found


def _split(array: Array, heads: int) -> Array:
    samples, length, width = array.shape
    return array.reshape(samples, length, heads, width // heads).swapaxes(1, 2)


_RULES: Final[dict[Any, Backward]] = {
    **dict.fromkeys((*FUNCTIONS, prelu, ncnn_activations.prelu), _function),
    **dict.fromkeys(SCALINGS, _scaled),
    **dict.fromkeys(PRODUCTS, _product),
    **dict.fromkeys(CONVOLUTIONS, _convolved),
    Pooling: _pooled,
    **dict.fromkeys((MaxPool, AdaptiveMaxPool), _largest),
    **dict.fromkeys((AveragePool, AdaptiveAveragePool), _averaged),
    **dict.fromkeys(RESIZES, _resized),
    **dict.fromkeys((*SUMS, *MEANS, ncnn_shapes.Reduction), _reduced),
    **dict.fromkeys(CODES, _shared),
    **dict.fromkeys(READERS, _normalised),
    **dict.fromkeys((cat, ncnn_shapes.concat), _joined),
    scaled_dot_product_attention: _attended,
    MultiheadAttention: _multihead,
    MultiHeadAttention: _ncnn_multihead,
}  # fmt: skip
