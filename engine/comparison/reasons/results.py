"""Alternatives visible in the results alone: activation, scale, bias, order."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.comparison.reasons.case import Alternative, apply_layer
from engine.comparison.reasons.fitting import plain_numbers
from engine.comparison.reasons.inner_weights import OUTPUT_BIAS, OUTPUT_WEIGHT
from engine.comparison.reasons.normalizing import norm_family
from engine.comparison.reasons.parameters import format_value
from engine.comparison.reasons.reason import Change
from engine.comparison.reasons.sliding import sliding_of
from engine.ncnn.types import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.comparison.reasons.case import Case
    from engine.values import Array

__all__ = [
    "channel_axes",
    "describe_factor",
    "describe_numbers",
    "functions_giving",
    "is_activation",
    "nearest_rows",
    "other_activation",
    "other_bias",
    "other_channel_order",
    "other_layout",
    "other_scale",
]


# Name, operator type, and parameters; the simplest first.
_ACTIVATIONS: Final[tuple[tuple[str, str, dict[str, Any]], ...]] = (
    ("relu", "F.relu", {}),
    ("relu6", "F.relu6", {}),
    ("sigmoid", "F.sigmoid", {}),
    ("tanh", "F.tanh", {}),
    ("silu", "F.silu", {}),
    ("gelu", "F.gelu", {}),
    ("gelu with approximate='tanh'", "F.gelu", {"approximate": "tanh"}),
    ("hardswish", "F.hardswish", {}),
    ("hardsigmoid", "F.hardsigmoid", {}),
    ("hardtanh", "F.hardtanh", {}),
    ("leaky_relu with slope 0.01", "F.leaky_relu", {"negative_slope": 0.01}),
    ("leaky_relu with slope 0.1", "F.leaky_relu", {"negative_slope": 0.1}),
    ("leaky_relu with slope 0.2", "F.leaky_relu", {"negative_slope": 0.2}),
    ("elu", "F.elu", {}),
    ("selu", "F.selu", {}),
    ("celu", "F.celu", {}),
    ("mish", "F.mish", {}),
    ("softplus", "F.softplus", {}),
    ("softsign", "F.softsign", {}),
    ("logsigmoid", "F.logsigmoid", {}),
    ("tanhshrink", "F.tanhshrink", {}),
    ("hardshrink", "F.hardshrink", {}),
    ("softshrink", "F.softshrink", {}),
    ("exp", "torch.exp", {}),
    ("abs", "torch.abs", {}),
)
_ACTIVATION_TYPES: Final = frozenset(
    {type_.rpartition(".")[2] for _, type_, _ in _ACTIVATIONS}
    | {"prelu", "rrelu", "softmax", "log_softmax", "softmin", "threshold", "logsoftmax",
       "leakyrelu", "clamp", "clip", "glu", "swish"}
)  # fmt: skip
_ALIKE: Final = 1e-3  # by which equal positions differ at most
_OF_ONE_ROW: Final = 3e-2  # share of rows that are no multiple of one, and tell too little
_EXACT: Final = 0.995  # share from which a function counts as the reference's
_LEAST: Final = 0.9  # share of an order that each channel names by itself
_PROBES: Final = 32  # numbers that stand for a channel
_FEW_PLACES: Final = 16  # positions of a channel that its like may have by chance
_FEW_NUMBERS: Final = 6  # channels that may be in another order by chance
_FEW_ELEMENTS: Final = 1 << 16
_CLAMPED: Final = 3  # equal elements that show a bound
_LEAST_FACTOR: Final = 1e-6
_LOW_VALUES: Final = 16  # numbers of a list in a text
_MOST_CHANNELS: Final = 1 << 12
_VARIES: Final = 4.0  # times as much as one trial, rounding of weights may vary over a channel


def is_activation(operator_type: str) -> bool:
    """Return whether operators of a type are activations."""
    return operator_type.rpartition(".")[2].rpartition("::")[2].lower() in _ACTIVATION_TYPES


def other_activation(case: Case) -> Iterator[Alternative]:
    """Return activations that only the reference applies, or only we."""
    ours, expected = case.pair or (case.ours, None)
    if not isinstance(ours, np.ndarray) or ours.dtype.kind != "f":
        return
    if expected is not None and expected.dtype.kind != "f":
        return
    if expected is None and case.tail is None:
        return
    own = is_activation(case.type)
    if own:
        yield Alternative(
            "activation_extra",
            f"The reference returns the input unchanged, the file has {case.type}. Remove it.",
            result=case.input,
            least=_EXACT,
        )
    yield from _more_activations(case, ours, expected)
    if expected is None:
        return
    if case.inputs:  # a bound or a slope that fits stored numbers is chance
        yield from _clamped(ours, expected)
        if "PReLU" not in case.type:  # whose slopes are weights
            yield from _leaky(case, ours, expected)
    if not own and not _has_zero_weight(case):
        for name, function in functions_giving(expected, ours):
            single = "softmax" not in name
            text = f"The file applies {name} here, the reference does not. Remove it."
            yield Alternative(
                "activation_extra", text, after=function, by_element=single, swapped=True,
                least=_EXACT,
            )  # fmt: skip


def _has_zero_weight(case: Case) -> bool:
    """Whether a matrix of the file is zero, which makes zeros of everything."""
    matrices = [each for each in case.weights.values() if each.ndim > 1 and each.size > 1]
    return any(not each.any() for each in matrices)


def _more_activations(case: Case, ours: Array, expected: Array | None) -> Iterator[Alternative]:
    """Return activations that the reference applies to the result, or instead of ours."""
    for name, function in functions_giving(ours, expected):
        if "PReLU" in case.type and name.startswith("leaky"):
            continue
        single = "softmax" not in name
        text = f"The reference applies {name} here, the file does not. Add it."
        yield Alternative(
            "activation_missing", text, after=function, by_element=single, least=_EXACT
        )
        if is_activation(case.type):
            text = f"The reference applies {name} instead of {case.type}. Use {name}."
            yield Alternative(
                "activation_missing", text, result=case.input, after=function,
                by_element=single, least=_EXACT,
            )  # fmt: skip


def functions_giving(
    ours: Array, expected: Array | None
) -> Iterator[tuple[str, Callable[[Array], Array]]]:
    """Return functions whose results can be the expected ones.

    Parameters
    ----------
    ours : ndarray
        What they take.
    expected : ndarray or None
        None if it is unknown: then all element-wise functions.

    Yields
    ------
    str
        A name for people.
    callable
        Element-wise, or a softmax.
    """
    low, high = _range(expected) if expected is not None else (math.inf, -math.inf)
    for name, type_, params in _ACTIVATIONS:
        if _can_give(name, low, high):
            yield name, partial(_apply, type_, params)
    if expected is None:
        return
    sums_to_one = low >= 0 and high <= 1.001
    if ours.ndim and (sums_to_one or high <= 0):
        name, type_ = (
            ("softmax", "F.softmax") if sums_to_one else ("log_softmax", "F.log_softmax")
        )
        for axis in range(ours.ndim):
            yield f"{name} over axis {axis}", partial(_apply, f"F.{name}", {"dim": axis})


def _range(array: Array) -> tuple[float, float]:
    """Return the smallest and the largest finite number."""
    finite = np.isfinite(array)
    return (
        float(array.min(initial=np.inf, where=finite)),
        float(array.max(initial=-np.inf, where=finite)),
    )


def _can_give(name: str, low: float, high: float) -> bool:
    """Return whether a function can give a range; this saves computing most functions."""
    bounds = {
        "relu": (0, np.inf), "relu6": (0, 6), "sigmoid": (0, 1), "tanh": (-1, 1),
        "silu": (-0.279, np.inf), "gelu": (-0.171, np.inf), "hardswish": (-0.376, np.inf),
        "hardsigmoid": (0, 1), "hardtanh": (-1, 1), "elu": (-1, np.inf),
        "selu": (-1.7582, np.inf), "celu": (-1, np.inf), "mish": (-0.309, np.inf),
        "softplus": (0, np.inf), "softsign": (-1, 1), "logsigmoid": (-np.inf, 0),
        "exp": (0, np.inf), "abs": (0, np.inf),
    }  # fmt: skip
    least, most = bounds.get(name.partition(" ")[0], (-np.inf, np.inf))
    slack = 1e-3
    return low >= least - slack and high <= most + slack


def _apply(type_: str, params: dict[str, Any], x: Array) -> Array:
    result = apply_layer(type_, x, **params)
    return x if result is None else result


def _clamped(ours: Array, expected: Array) -> Iterator[Alternative]:
    """Return clamping to the range of the expected numbers."""
    low, high = _range(expected)
    lowest, highest = _range(ours)
    # A constant is no clamped result, whatever ours is.
    if low == high or (lowest >= low and highest <= high):
        return
    for least, most in ((low, np.inf), (-np.inf, high), (low, high)):
        bounds = [bound for bound in (least, most) if np.isfinite(bound)]
        # Several elements that differ in ours lie at a bound.
        if any(np.unique(ours[expected == bound]).size < _CLAMPED for bound in bounds):
            continue
        text = (
            f"The reference clamps to {least:.6g} … {most:.6g} here, the file does not. "
            f"Add the clamp."
        )
        yield Alternative(
            "activation_missing", text, after=partial(np.clip, a_min=least, a_max=most),
            fitted=len(bounds), least=_EXACT,
        )  # fmt: skip


def _leaky(case: Case, ours: Array, expected: Array) -> Iterator[Alternative]:
    """Return the leaky ReLU whose slope fits.

    A layer without positive elements is only scaled by it.
    """
    x = case.input if is_activation(case.type) else ours
    if x is None or x.shape != expected.shape or x.dtype.kind != "f":
        return
    if x is ours and not (x > 0).any():
        return
    negative = x < 0
    square = float(np.square(x[negative], dtype=np.float64).sum())
    if not square:
        return
    product = float((x[negative].astype(np.float64) * expected[negative]).sum())
    slope = _plain(product / square)
    if slope in {0.0, 1.0}:
        return
    text = f"The reference applies leaky_relu with slope {slope:.6g} here. Apply the same."
    after = partial(_apply, "F.leaky_relu", {"negative_slope": slope})
    result = x if is_activation(case.type) else None
    yield Alternative(
        "activation_missing", text, result=result, after=after, fitted=1, least=_EXACT
    )


def channel_axes(case: Case) -> tuple[int, ...]:
    """Return the axes of the result along which the bias lies.

    For a layer norm these are all normalised axes; an operator without channels has none.
    """
    shape = case.expected_shape
    if shape is None or not shape:
        return ()
    windows = sliding_of(case)
    if windows is not None:
        return (len(shape) - windows.rank - 1,)
    family = norm_family(case)
    if family in {"layer", "rms"}:
        count = case.value("normalized_shape")
        length = len(count) if isinstance(count, tuple) else 1
        return tuple(range(len(shape) - length, len(shape)))
    if family:
        return (1,)
    if case.type.startswith(PREFIX):  # a layer of ncnn has no batch axis
        return (0,) if len(shape) in {2, 3, 4} else ()
    linear = "inear" in case.type or case.type.endswith(("addmm", "matmul"))
    if linear or OUTPUT_WEIGHT in case.weights:
        return (len(shape) - 1,)
    return (1,) if len(shape) in {3, 4, 5} else ()


def other_bias(case: Case) -> Iterator[Alternative]:
    """Return an offset of each channel, or of all elements."""
    if case.float_pair is None:
        return
    ours, expected = (array.astype(np.float64) for array in case.float_pair)
    residual = expected - ours
    if not np.isfinite(residual).all():
        return
    name = OUTPUT_BIAS if OUTPUT_WEIGHT in case.weights else "bias"
    bias = case.weights.get(name)
    if bias is not None:
        yield Alternative(
            "bias", "The reference has no bias, the file has one. Drop the bias.",
            (Change(name, None),), result=ours - _spread_bias(case, bias, ours),
        )  # fmt: skip
    known = residual if case.told is None else residual[case.told]
    few = known.reshape(-1)[:: max(known.size // _FEW_ELEMENTS, 1)]
    offset = float(np.median(few)) if few.size else 0.0
    yield Alternative(
        "bias", f"The reference is ours plus {offset:.6g} everywhere. Add that to the bias.",
        result=ours + offset, fitted=1, least=_EXACT,
    )  # fmt: skip
    axes = channel_axes(case)
    if not axes or "bias" not in case.arguments:
        return
    if case.differing and not case.differing & {"bias", OUTPUT_BIAS}:
        return  # another weight does, which offsets may seem to explain
    others = tuple(axis for axis in range(residual.ndim) if axis not in axes)
    if residual.size < 2 * math.prod(residual.shape[axis] for axis in axes):
        return  # one element per channel tells nothing
    offsets = _offsets(residual, others, case.told)
    offsets[np.abs(offsets) <= case.discrepancy.floor_over(others)] = 0
    if _varies_beyond_rounding(case, residual - offsets, offsets, others):
        return
    spread = ours - ours.mean(others, keepdims=True)
    many = 2 * np.count_nonzero(offsets) > offsets.size
    if many and _length(spread) <= _ALIKE * _length(ours):
        return  # nor do several equal ones, unless most channels agree
    wanted = offsets.reshape([residual.shape[axis] for axis in axes])
    if bias is not None and bias.shape == wanted.shape:
        wanted = wanted + bias
    yield Alternative(
        "bias", _describe_bias(bias, wanted, offsets), (Change(name, _as_weight(wanted)),),
        result=ours + offsets, fitted=int(np.count_nonzero(offsets)), least=0.995,
    )  # fmt: skip


def _varies_beyond_rounding(
    case: Case, left: Array, offsets: Array, others: tuple[int, ...]
) -> bool:
    """Whether what offsets leave is more than rounding of weights can leave, which they absorb.

    Where inputs hardly vary, most of what rounding changes is an offset as well, and so is
    most of what a wrong weight does.
    """
    noise = case.rounding_trial
    if noise is None:
        return False
    limit = _VARIES * noise.std(others, keepdims=True)
    where = True if case.told is None else case.told
    count = np.maximum(np.sum(np.broadcast_to(where, left.shape), others, keepdims=True), 1)
    size = np.sqrt(np.square(left).sum(others, keepdims=True, where=where) / count)
    moved = offsets != 0  # of many channels, some vary more by chance
    return bool(np.count_nonzero((size > limit) & moved) * 2 > np.count_nonzero(moved))


def _offsets(residual: Array, axes: tuple[int, ...], told: Array | None) -> Array:
    """Return means along axes, of the elements that are known.

    Where none is, as in a channel that a ReLU closes everywhere, it is the smallest offset that
    gives all elements.
    """
    if told is None:
        return np.asarray(residual.mean(axes, keepdims=True))
    count = told.sum(axes, keepdims=True)
    means = residual.sum(axes, keepdims=True, where=told) / np.maximum(count, 1)
    ends = [residual.min(axes, keepdims=True), residual.max(axes, keepdims=True)]
    return np.asarray(np.where(count > 0, means, np.where(-ends[0] > ends[1], *ends)))


def _spread_bias(case: Case, bias: Array, result: Array) -> Array | float:
    """Shape a bias so that it broadcasts to the result."""
    shape = [1] * result.ndim
    axes = channel_axes(case)
    for axis in axes:
        shape[axis] = result.shape[axis]
    sizes = [result.shape[axis] for axis in axes]
    return bias.reshape(shape) if list(bias.shape) == sizes else 0.0


def _as_weight(values: Array) -> Array:
    result = values.astype(np.float32)
    result.flags.writeable = False
    return result


def _describe_bias(bias: Array | None, wanted: Array, offsets: Array) -> str:
    changed = np.flatnonzero(offsets)
    numbers = wanted.reshape(-1)
    if bias is None:
        words = describe_numbers(numbers)
        return f"The reference has a bias, the file has none. Set bias={words}."
    if changed.size == 1:
        place = int(changed[0])
        return (
            f"The bias of channel {place} is {numbers[place]:.6g} in the reference, "
            f"{bias.reshape(-1)[place]:.6g} in the file. Set it."
        )
    return (
        f"The bias of {changed.size} of {numbers.size} channels differs. "
        f"Set bias={describe_numbers(numbers)}."
    )


def describe_numbers(numbers: Array) -> str:
    """Format a few numbers, or the first of many."""
    flat = numbers.reshape(-1)
    words = ", ".join(f"{float(number):.4g}" for number in flat[:_LOW_VALUES])
    return f"({words}, …)" if flat.size > _LOW_VALUES else f"({words})"


def other_scale(case: Case) -> Iterator[Alternative]:
    """Return a factor of all elements, of the weight, or of each channel."""
    if case.float_pair is None:
        return
    ours, expected = (array.astype(np.float64) for array in case.float_pair)
    weight, bias = case.weights.get("weight"), case.weights.get("bias")
    factor = _factor(ours, expected, case.told)
    if factor is not None:
        yield Alternative(
            "scale", f"The reference is {describe_factor(factor)} everywhere. Scale by it.",
            (Change("scale", factor),), result=ours * factor, fitted=1, least=_EXACT,
        )  # fmt: skip
    if not case.may_differ("weight"):
        weight = None
    if weight is not None and bias is not None and weight.dtype.kind == "f":
        shift = _spread_bias(case, bias, ours)
        factor = _factor(ours - shift, expected - shift, case.told)
        if factor is not None:
            scaled = _as_weight(weight * factor)
            yield Alternative(
                "scale",
                f"The reference is {describe_factor(factor)} before the bias. "
                "Scale the weight or the input by it.",
                (Change("weight", scaled),), result=(ours - shift) * factor + shift,
                fitted=1, least=_EXACT,
            )  # fmt: skip
    if norm_family(case) and not case.weights.keys() >= {"weight", "bias"}:
        return  # such factors are its own weight, which is wrong or lost
    yield from _channel_scales(case, ours, expected)
    # Statistics of a norm, folded into the weight; a norm's own weight is such a factor.
    if weight is not None and weight.ndim > 1 and bias is not None:
        yield from _channel_scales(case, ours, expected, _spread_bias(case, bias, ours))


def _channel_scales(
    case: Case, ours: Array, expected: Array, shift: Array | float = 0.0
) -> Iterator[Alternative]:
    """Return a factor for each channel of the result without a shift, which stays."""
    ours, expected = ours - shift, expected - shift
    axes = channel_axes(case)
    others = tuple(axis for axis in range(ours.ndim) if axis not in axes)
    if len(axes) != 1 or not others or _is_of_one_row(np.moveaxis(ours, axes[0], -1)):
        return
    where = True if case.told is None else case.told
    squares = np.square(ours).sum(others, keepdims=True, where=where)
    products = (ours * expected).sum(others, keepdims=True, where=where)
    factors = np.divide(products, squares, out=np.ones_like(squares), where=squares > 0)
    moved = np.abs(ours).max(others, keepdims=True) * np.abs(factors - 1)
    factors[moved <= case.discrepancy.floor_over(others)] = 1  # rounding
    same = np.isclose(factors, 1, atol=1e-5)
    # If only a few channels differ, the weight is more likely wrong.
    if np.count_nonzero(~same) * 2 <= same.size or (factors <= 0).all():
        return
    # Where most are zero, they say no more than that the reference is.
    if np.count_nonzero(abs(factors) < _LEAST_FACTOR) * 2 > factors.size:
        return
    numbers = factors.reshape(-1)
    before = "" if isinstance(shift, float) else " before the bias"
    yield Alternative(
        "scale",
        f"Each channel of the reference has its own factor{before}: "
        f"{describe_numbers(numbers)}. Scale the channels by it.",
        (Change("scale", _as_weight(numbers)),), result=ours * factors + shift,
        fitted=numbers.size, least=_EXACT,
    )  # fmt: skip


def _is_of_one_row(values: Array) -> bool:
    """Whether all rows are multiples of one.

    Then a factor for each channel gives whatever is expected, if that is so as well.
    """
    rows = values.reshape(-1, values.shape[-1])
    longest = rows[np.square(rows).sum(1).argmax()]
    square = float(longest @ longest)
    if not square or not np.isfinite(square):
        return True
    left = rows - np.outer(np.vecdot(rows, longest) / square, longest)
    return _length(left) <= _OF_ONE_ROW * _length(rows)


def _length(values: Array) -> float:
    """Return the root of the sum of squares."""
    # Not by BLAS, as `numpy.linalg.norm`: its threads are waited for longer than this takes.
    return math.sqrt(float(np.square(values).sum()))


def _factor(ours: Array, expected: Array, told: Array | None) -> float | None:
    where = True if told is None else told
    square = float(np.square(ours).sum(where=where))
    if not square or not np.isfinite(square):
        return None
    factor = float((ours * expected).sum(where=where)) / square
    # A smaller one says no more than that the reference is zero.
    known = np.isfinite(factor) and abs(factor) >= _LEAST_FACTOR
    return _plain(factor) if known else None


def _plain(number: float) -> float:
    """Return a number of few digits within rounding."""
    near = [
        plain for plain in plain_numbers(number) if abs(plain - number) <= 2e-6 * abs(number)
    ]
    return near[0] if near else number


def describe_factor(factor: float) -> str:
    """Format a factor of our numbers, ``1/255 of ours``."""
    inverse = 1 / factor
    if abs(factor) < 1 and abs(inverse - round(inverse)) < 1e-4 * abs(inverse):
        return f"1/{round(inverse)} of ours"
    return f"{format_value(factor)} times ours"


def other_channel_order(case: Case) -> Iterator[Alternative]:
    """Return another order of the result's channels, or of concatenated operands."""
    joins = case.type.rpartition(".")[2] in {"cat", "concat", "concatenate", "stack"}
    if joins and 2 <= len(case.inputs) <= _LOW_VALUES:
        count = len(case.inputs)
        orders = [tuple(range(count))[::-1], *_swaps(count)]
        for order in orders:
            text = f"The reference joins the operands in the order {order}. Reorder them."
            inputs = [case.inputs[place] for place in order]
            yield Alternative(
                "channel_order", text, (Change("operands", order),), inputs=inputs
            )
    if case.pair is None:
        return
    ours, expected = case.pair
    weighted = case.weight() is not None or OUTPUT_WEIGHT in case.weights
    kind = "weight_layout" if weighted else "channel_order"
    for axis in dict.fromkeys((*channel_axes(case), 1, ours.ndim - 1)):
        if not 0 <= axis < ours.ndim or len(channel_axes(case)) > 1:
            continue
        matched = _matched(ours, expected, axis)
        if matched is not None:
            found, least = matched
            numbers = ", ".join(map(str, found[:_LOW_VALUES]))
            more = ", …" if len(found) > _LOW_VALUES else ""
            what = "outputs of the weight" if kind == "weight_layout" else "channels"
            yield Alternative(
                kind,
                f"The reference has the {what} in the order ({numbers}{more}) of ours. "
                "Use that order.",
                (Change("order", tuple(map(int, found[:_MOST_CHANNELS]))),),
                result=np.take(ours, found, axis),
                least=least,
            )


def _swaps(count: int) -> Iterator[tuple[int, ...]]:
    for one in range(count):
        for other in range(one + 1, count):
            order = list(range(count))
            order[one], order[other] = order[other], order[one]
            yield tuple(order)
    yield from ((*range(n, count), *range(n)) for n in range(1, count))


def _matched(ours: Array, expected: Array, axis: int) -> tuple[Array, float] | None:
    """Return our nearest channel for each expected one, and the least share of that order.

    None if that is not a reordering. Channels that are alike, as those that an activation
    clears, are nearest to the same one. Then those choose first that something is nearest to.
    """
    count = ours.shape[axis]
    if not 2 <= count <= _MOST_CHANNELS or (ours.size == count and count < _FEW_NUMBERS):
        return None
    mine, theirs = (
        np.moveaxis(array, axis, 0).reshape(count, -1) for array in (ours, expected)
    )
    distances = _row_distances(mine, theirs)
    found, least = distances.argmin(1), _LEAST
    if len(set(found.tolist())) < count:
        if mine.shape[1] < _FEW_PLACES:  # some order fits any few numbers
            return None
        found, least = _assigned(distances), _EXACT
    return (found, least) if (found != np.arange(count)).any() else None


def nearest_rows(mine: Array, theirs: Array) -> Array:
    """Return the place of the nearest row of `mine` for each row of `theirs`."""
    return np.asarray(_row_distances(mine, theirs).argmin(1))


def _row_distances(mine: Array, theirs: Array) -> Array:
    """Return the distance of each row of `theirs` to each of `mine`, by a few projections."""
    one, other = (each.astype(np.float64) for each in (theirs, mine))
    probe = np.random.default_rng(0).standard_normal((other.shape[1], _PROBES))
    return _squared_distances(one @ probe, other @ probe)


def _squared_distances(one: Array, other: Array) -> Array:
    """Return the squared distances of the rows of two matrices."""
    sizes = np.square(one).sum(1)[:, np.newaxis] + np.square(other).sum(1)
    return np.asarray(sizes - 2 * one @ other.T)


def _assigned(distances: Array) -> Array:
    """Return a column for each row, each once: the nearest that no row before has taken."""
    found = np.empty(len(distances), np.intp)
    for row in np.argsort(distances.min(1), kind="stable"):
        found[row] = distances[row].argmin()
        distances[:, found[row]] = np.inf
    return found


def other_layout(case: Case) -> Iterator[Alternative]:
    """Return the result with its axes in another order, such as NHWC."""
    ours, expected = case.ours, case.wanted
    if not (isinstance(ours, np.ndarray) and isinstance(expected, np.ndarray)):
        return
    if ours.ndim != expected.ndim or ours.ndim < 3 or ours.size != expected.size:
        return
    last = tuple(range(ours.ndim))
    orders = {
        "NHWC": (0, *last[2:], 1),
        "NCHW": (0, ours.ndim - 1, *last[1:-1]),
        "with rows and columns exchanged": (*last[:-2], last[-1], last[-2]),
        "with batch and the next axis exchanged": (1, 0, *last[2:]),
    }
    for words, order in orders.items():
        moved = ours.transpose(order)
        text = f"The reference's result is {words}. Transpose it by {order}."
        changes = (Change("dims", order),)
        yield Alternative("input_layout", text, changes, result=moved)
        if moved.shape != expected.shape:
            text = f"The reference reads the same memory as {words}. Transpose it by {order}."
            yield Alternative(
                "input_layout", text, changes, result=moved.reshape(expected.shape)
            )
