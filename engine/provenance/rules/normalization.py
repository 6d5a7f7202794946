"""Normalisations: an element is scaled and shifted by statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from engine.layers import normalization as layers
from engine.layers.arguments import as_ints, axes_of
from engine.layers.ncnn import normalization as ncnn
from engine.provenance.arithmetic import format_index, grid, make_factor, multiply
from engine.provenance.call import NoBreakdownError, Operand, rounding, take
from engine.provenance.records import Breakdown, Interval, Kind, Step, Terms
from engine.provenance.table import explains, locates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.provenance.call import Call
    from engine.provenance.records import Box
    from engine.values import Array

__all__ = [
    "READERS",
    "Normalization",
    "explain_normalization",
    "locate_neighbours",
    "locate_normalization",
    "read_normalization",
]

_Weight = Any  # an operand, an array or None


class Normalization(NamedTuple):
    """The arguments of a normalisation.

    Attributes
    ----------
    axes : tuple of int
        That share their statistics, or empty with stored ones.
    groups : int
        Number of groups of channels that have their own statistics; 0 if there are none.
    mean, variance : Operand, ndarray or None
        Stored statistics by channel.
    weight, bias : Operand, ndarray or None
    by_channel : bool
        Whether weight and bias belong to the second dimension; else to the last ones.
    eps : float
    centred : bool
        Whether the mean is subtracted.
    channel : int
        Dimension of the channels.
    """

    axes: tuple[int, ...]
    weight: _Weight
    bias: _Weight
    eps: float
    by_channel: bool = True
    mean: _Weight = None
    variance: _Weight = None
    groups: int = 0
    centred: bool = True
    channel: int = 1


def _stored(call: Call, arguments: tuple[Any, ...], eps: float, *, own: bool) -> Normalization:
    mean, variance, weight, bias = arguments
    ndim = call.array("input").ndim
    if own or mean is None or variance is None:
        return Normalization((0, *range(2, ndim)), weight, bias, eps)
    return Normalization((), weight, bias, eps, mean=mean, variance=variance)


def _batch(call: Call) -> Normalization:
    given, layer = call.arguments, call.layer
    if isinstance(layer, layers.BatchNorm):
        return _stored(call, layer.arguments, layer.eps, own=False)
    names = ("running_mean", "running_var", "weight", "bias")
    arguments = tuple([given[name] for name in names])
    return _stored(call, arguments, given["eps"], own=bool(given["training"]))


def _instance(call: Call) -> Normalization:
    given, layer, ndim = call.arguments, call.layer, call.array("input").ndim
    if isinstance(layer, layers.InstanceNorm):
        mean, variance, weight, bias = layer.arguments
        eps, own, channel = layer.eps, layer.own, ndim - layer.rank - 1
    else:
        mean, variance = given["running_mean"], given["running_var"]
        weight, bias, eps = given["weight"], given["bias"], given["eps"]
        own, channel = bool(given["use_input_stats"]), 1
    if not own:
        return Normalization(
            (), weight, bias, eps, mean=mean, variance=variance, channel=channel
        )
    return Normalization(tuple(range(channel + 1, ndim)), weight, bias, eps, channel=channel)


def _group(call: Call) -> Normalization:
    given, ndim = call.arguments, call.array("input").ndim
    axes, groups = tuple(range(2, ndim)), given["num_groups"]
    return Normalization(axes, given["weight"], given["bias"], given["eps"], groups=groups)


def _last(call: Call) -> Normalization:
    given, input = call.arguments, call.array("input")
    shape = given["normalized_shape"]
    if isinstance(shape, Operand):
        shape = shape.value
    axes = tuple(range(input.ndim - len(as_ints(shape, "normalized_shape")), input.ndim))
    centred = "bias" in given
    eps = given["eps"]
    if eps is None:
        eps = float(np.finfo(np.float32 if input.dtype == np.float16 else input.dtype).eps)
    return Normalization(
        axes, given["weight"], given.get("bias"), eps, by_channel=False, centred=centred
    )


def _ncnn_batch(call: Call) -> Normalization:
    given = call.arguments
    return Normalization(
        (), given["slope"], given["bias"], given["eps"], mean=given["mean"],
        variance=given["var"], channel=0,
    )  # fmt: skip


def _ncnn_groups(call: Call) -> Normalization:
    given, input = call.arguments, call.array("input")
    groups = given.get("group", input.shape[0])
    axes = tuple(range(1, input.ndim))
    return Normalization(
        axes, given["gamma"], given["beta"], given["eps"], groups=groups, channel=0
    )


def _ncnn_last(call: Call) -> Normalization:
    given, input = call.arguments, call.array("input")
    shape = ncnn.find_trailing_axes(given["affine_size"], input.shape)
    weight, bias = (
        None if each is None else each.reshape(shape)
        for each in (given["gamma"], given.get("beta"))
    )
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    return Normalization(
        axes, weight, bias, given["eps"], by_channel=False, centred="beta" in given
    )


READERS: dict[Any, Any] = {
    ncnn.batch_norm: _ncnn_batch,
    ncnn.group_norm: _ncnn_groups,
    ncnn.instance_norm: _ncnn_groups,
    ncnn.layer_norm: _ncnn_last,
    ncnn.rms_norm: _ncnn_last,
    layers.BatchNorm: _batch,
    layers.batch_norm: _batch,
    layers.InstanceNorm: _instance,
    layers.instance_norm: _instance,
    layers.group_norm: _group,
    layers.layer_norm: _last,
    layers.rms_norm: _last,
    layers.native_layer_norm: _last,
    layers.native_group_norm: _group,
}


def read_normalization(call: Call) -> Normalization:
    """Return the arguments of a normalisation."""
    return READERS[call.layer_code](call)  # type: ignore[no-any-return]


def _region(found: Normalization, input: Operand, box: Box) -> Box:
    """Return the elements whose statistics a region uses."""
    region = list(box)
    for axis in found.axes:
        region[axis] = Interval.whole(input.shape[axis])
    if found.groups:
        channels = box[found.channel]
        per_group = input.shape[found.channel] // found.groups
        first, last = channels.start // per_group, (channels.stop - 1) // per_group
        region[found.channel] = Interval(first * per_group, (last + 1) * per_group)
    return tuple(region)


@locates(*READERS)
def locate_normalization(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the elements with the same statistics, and the weights where they are computed."""
    found, input = read_normalization(call), call.array("input")
    if call.place:  # statistics of other shapes
        return {each.name: each.whole for each in call.arrays}
    regions: dict[str, Box] = {input.name: _region(found, input, box)}
    for other in (found.mean, found.variance, found.weight, found.bias):
        if isinstance(other, Operand):
            regions[other.name] = other.whole
    return regions


@explains(*READERS)
def explain_normalization(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Scale and shift an element; both numbers follow from statistics."""
    found, input = read_normalization(call), call.array("input")
    if call.place:
        raise NoBreakdownError("the statistics have no breakdown")
    if call.dtype.kind != "f":
        raise NoBreakdownError("integers are not normalised")
    axes = (found.channel,) if found.by_channel else found.axes
    at = grid(*[[index[axis]] for axis in axes])
    weight = _number(found.weight, "weight", at, 1.0)
    bias = _number(found.bias, "bias", at, 0.0)
    mean, variance, count, magnitude = _statistics(found, input, index)
    size = f" of {count} elements" if count else ""
    x = take(input, "input", grid(*[[place] for place in index]))
    with np.errstate(all="ignore"):
        root = math.sqrt(variance + found.eps) if variance + found.eps > 0 else math.nan
        scale = weight / root if root else math.inf
        shift = bias - mean * scale
        product = float(x.values[0]) * scale
        total = product + shift
    factor = make_factor("scale", np.array([scale]))
    terms = Terms((x, factor), np.array([product]), (1,), ("term",))
    name = "mean square" if not found.centred else "variance"
    steps = [
        *([Step(f"mean{size}", mean)] if found.centred else []),
        Step(f"{name}{size}", variance),
        Step("eps", found.eps),
        *([Step("weight", weight)] if found.weight is not None else []),
        *([Step("bias", bias)] if found.bias is not None else []),
    ]
    formula = _formula(found, x.name, index, name)
    condition = (
        1 + mean * mean / (variance + found.eps) if variance + found.eps > 0 else math.inf
    )
    spread = abs(scale) * (abs(float(x.values[0])) + magnitude) + abs(bias)
    spread += abs(total - bias) * condition
    own = rounding(call.dtype)
    work = min(own, rounding(np.dtype(np.float32)))
    error = 8 * (math.sqrt(max(count, 1)) + 4) * work * spread + 2 * own * abs(total)
    offset = shift if found.centred or found.bias is not None else None
    return Breakdown(
        Kind.NORMALISED, formula, terms, total, error if math.isfinite(error) else math.inf,
        offset, "shift" if offset is not None else "", steps=tuple(steps),
    )  # fmt: skip


def _statistics(
    found: Normalization, input: Operand, index: tuple[int, ...]
) -> tuple[float, float, int, float]:
    """Return mean and variance, the number of their elements, and the mean magnitude.

    The number is 0 for stored statistics.
    """
    if found.mean is not None:
        channel = grid([index[found.channel]])
        mean = _number(found.mean, "running_mean", channel, 0.0)
        return mean, _number(found.variance, "running_var", channel, 1.0), 0, abs(mean)
    place = tuple([Interval(at, at + 1) for at in index])
    region = _region(found, input, place)
    part = input.value[tuple([slice(each.start, each.stop) for each in region])]
    wide = part.astype(np.float64)
    mean = float(wide.mean()) if found.centred else 0.0
    variance = float(np.square(wide - mean).mean())
    return mean, variance, wide.size, float(np.abs(wide).mean())


def _formula(found: Normalization, name: str, index: tuple[int, ...], spread: str) -> str:
    element = f"{name}{format_index(index)}"
    centred = f"({element} − mean)" if found.centred else element
    weight = " · weight" if found.weight is not None else ""
    bias = " + bias" if found.bias is not None else ""
    return f"y{format_index(index)} = {centred} / √({spread} + eps){weight}{bias}"


def _number(source: _Weight, name: str, at: Array, default: float) -> float:
    return default if source is None else float(take(source, name, at).values[0])


@locates(layers.local_response_norm)
def locate_neighbours(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the neighbouring channels."""
    input = call.array("input")
    return {input.name: (box[0], _neighbours(call, box[1]), *box[2:])}


def _neighbours(call: Call, channels: Interval) -> Interval:
    """Return the channels beside some, which share their squares."""
    size = int(call.arguments["size"])
    low, high = channels.start - size // 2, channels.stop + (size - 1) // 2
    return Interval.cut(low, high, call.array("input").shape[1])


@explains(layers.local_response_norm)
def explain_neighbours(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Divide an element by a power of the squares of its neighbours."""
    given = call.arguments
    channels = _neighbours(call, Interval(index[1], index[1] + 1))
    rows = [[place] for place in index]
    squares = take(
        call.array("input"),
        "input",
        grid(rows[0], range(channels.start, channels.stop), *rows[2:]),
    )
    total = float(np.square(squares.values).sum())
    alpha, beta, k = (float(given[name]) for name in ("alpha", "beta", "k"))
    base = k + alpha / int(given["size"]) * total
    steps = Step(f"Σ x² of {len(squares.values)} channels", total), Step("base", base)
    text = f"({k:g} + {alpha:g}/{given['size']} · Σ x²)^{beta:g}"
    return _scaled(call, index, base**-beta, text, steps)


@locates(ncnn.local_response_norm)
def locate_ncnn_neighbours(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the neighbouring channels or pixels."""
    return {call.array("input").name: _ncnn_neighbours(call, box)}


def _ncnn_neighbours(call: Call, box: Box) -> Box:
    input, size = call.array("input"), int(call.arguments["local_size"])
    axes = (0,) if call.arguments["region_type"] == 0 else (input.ndim - 2, input.ndim - 1)
    before, after = size // 2, size - size // 2 - 1
    return tuple([
        Interval.cut(each.start - before, each.stop + after, input.shape[axis])
        if axis in axes else each
        for axis, each in enumerate(box)
    ])  # fmt: skip


@explains(ncnn.local_response_norm)
def explain_ncnn_neighbours(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Divide an element by a power of the squares of its neighbours."""
    given, input = call.arguments, call.array("input")
    region = _ncnn_neighbours(call, tuple([Interval(at, at + 1) for at in index]))
    part = input.value[tuple([slice(each.start, each.stop) for each in region])]
    total = float(np.square(part.astype(np.float64)).sum())
    alpha, beta, bias = (float(given[name]) for name in ("alpha", "beta", "bias"))
    count = int(given["local_size"]) ** (1 if given["region_type"] == 0 else 2)
    base = bias + alpha / count * total
    steps = Step(f"Σ x² of {part.size} neighbours", total), Step("base", base)
    text = f"({bias:g} + {alpha:g}/{count} · Σ x²)^{beta:g}"
    return _scaled(call, index, base**-beta, text, steps)


def _scaled(
    call: Call, index: tuple[int, ...], scale: float, text: str, steps: tuple[Step, ...]
) -> Breakdown:
    """Make the breakdown of an element that is divided by a number."""
    x = take(call.array("input"), "input", grid(*[[place] for place in index]))
    total = float(x.values[0]) * scale
    terms = multiply([x, make_factor("scale", np.array([scale]))], (1,), ("term",))
    formula = f"y{format_index(index)} = {x.name}{format_index(index)} / {text}"
    error = 64 * rounding(call.dtype) * abs(total)
    return Breakdown(Kind.NORMALISED, formula, terms, total, error, steps=steps)


@locates(layers.normalize)
def locate_unit(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the whole vector."""
    input = call.array("input")
    axes = axes_of(call.arguments["dim"], input.ndim)
    region = [Interval.whole(input.shape[axis]) if axis in axes else each
              for axis, each in enumerate(box)]  # fmt: skip
    return {input.name: tuple(region)}


@explains(layers.normalize)
def explain_unit(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Divide an element by the length of its vector."""
    given, input = call.arguments, call.array("input")
    axes = axes_of(given["dim"], input.ndim)
    part = input.value[tuple([slice(None) if axis in axes else at
                              for axis, at in enumerate(index)])]  # fmt: skip
    lengths, order = np.abs(part.astype(np.float64)), float(given["p"])
    with np.errstate(all="ignore"):
        length = float(np.linalg.norm(lengths.reshape(-1), order))
    divisor = max(length, float(given["eps"]))
    steps = Step(f"length of {part.size} elements", length), Step("eps", float(given["eps"]))
    scale = 1 / divisor if divisor else math.inf
    return _scaled(call, index, scale, "max(length, eps)", steps)


def unit_axes(call: Call) -> tuple[int, ...]:
    """Return the dimensions that ncnn's Normalize makes a unit vector of."""
    given, ndim = call.arguments, call.array("input").ndim
    channel = 1 if ndim > 2 else 0  # otherwise there is one channel
    along = tuple(range(channel)) if given["across_channel"] else ()
    return along + (tuple(range(channel, ndim)) if given["across_spatial"] else ())


def unit_length(call: Call, squares: Array) -> Array:
    """Return the lengths of vectors with these sums of squares, as ncnn bounds them."""
    eps, mode = float(call.arguments["eps"]), call.arguments["eps_mode"]
    if mode == 0:
        return np.asarray(np.sqrt(squares + eps))
    if mode == 1:
        return np.maximum(np.sqrt(squares), eps)
    return np.asarray(np.sqrt(np.maximum(squares, eps)))


def unit_factors(call: Call) -> Array:
    """Return what each channel is multiplied by afterwards, to broadcast."""
    given, input = call.arguments, call.array("input")
    if not (given["across_spatial"] or given["across_channel"]):
        raise NoBreakdownError("a layer without vectors returns its input")
    shared = bool(given["channel_shared"]) or input.ndim < 3
    factors = given["scale"][:1] if shared else given["scale"][: input.shape[0]]
    wide = np.asarray(factors, np.float64)
    return wide.reshape(-1, *[1] * (input.ndim - 1))


@locates(ncnn.normalize)
def locate_ncnn_unit(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the whole vector."""
    input, axes = call.array("input"), unit_axes(call)
    region = [Interval.whole(input.shape[axis]) if axis in axes else each
              for axis, each in enumerate(box)]  # fmt: skip
    return {input.name: tuple(region)}


@explains(ncnn.normalize)
def explain_ncnn_unit(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Divide an element by the length of its vector, and multiply by the channel's factor."""
    input, axes, factors = call.array("input"), unit_axes(call), unit_factors(call)
    part = input.value[tuple([slice(None) if axis in axes else slice(at, at + 1)
                              for axis, at in enumerate(index)])]  # fmt: skip
    squares = np.square(part.astype(np.float64)).sum()
    length = float(unit_length(call, squares))
    factor = float(factors.flat[index[0] if len(factors) > 1 else 0])
    steps = Step(f"length of {part.size} elements", length), Step("factor", factor)
    return _scaled(
        call, index, factor / length if length else math.inf, "length · factor", steps
    )


@locates(ncnn.mean_variance)
def locate_centred(call: Call, box: Box) -> Mapping[str, Box]:
    """Return the channels with the same statistics."""
    input = call.array("input")
    whole = input.whole
    return {input.name: whole if call.arguments["across_channels"] else (box[0], *whole[1:])}


@explains(ncnn.mean_variance)
def explain_centred(call: Call, index: tuple[int, ...]) -> Breakdown:
    """Subtract the mean, and divide by the deviation."""
    given, input = call.arguments, call.array("input")
    part = input.value if given["across_channels"] else input.value[index[0]]
    wide = part.astype(np.float64)
    mean, deviation = float(wide.mean()), float(wide.std())
    divisor = deviation + float(given["eps"]) if given["normalize_variance"] else 1.0
    scale = 1 / divisor if divisor else math.inf
    x = take(input, "input", grid(*[[place] for place in index]))
    product, shift = float(x.values[0]) * scale, -mean * scale
    terms = multiply([x, make_factor("scale", np.array([scale]))], (1,), ("term",))
    by = " / (deviation + eps)" if given["normalize_variance"] else ""
    formula = f"y{format_index(index)} = ({x.name}{format_index(index)} − mean){by}"
    size = f" of {part.size} elements"
    steps = Step(f"mean{size}", mean), Step(f"deviation{size}", deviation)
    magnitude = abs(scale) * (abs(float(x.values[0])) + float(np.abs(wide).mean()))
    error = 8 * (math.sqrt(part.size) + 4) * rounding(call.dtype) * magnitude
    return Breakdown(
        Kind.NORMALISED, formula, terms, product + shift, error, shift, "shift", steps=steps
    )
