"""Distinguishes differences due to rounded weights from faults.

float16 is how pnnx stores the weights of ncnn; int8 is how ncnn's own tools quantise layers,
whose inputs are rounded too.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.comparison.measures import largest_size, measure, relative_distance
from engine.comparison.reasons.case import make_case
from engine.comparison.reasons.sampling import make_screen
from engine.errors import EngineError
from engine.pnnx import Attribute, Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

    Weights: TypeAlias = dict[RuntimeOperator, dict[str, Array]]
    Change: TypeAlias = Callable[[Array], Array]
    Compute: TypeAlias = Callable[[Sequence[RuntimeOperator]], Array | None]

__all__ = [
    "explain_by_float16",
    "explain_by_int8",
    "explain_by_reference_int8",
    "find_clipping",
]

_ENOUGH: Final = 64  # least independent errors in all simulations, for a stable deviation
_MOST: Final = 16  # simulations
_FEW_AXES: Final = 2  # up to this rank the last axis counts channels, not the first
# Factor of the simulated deviation. Independent errors: few may exceed it.
_DEVIATION: Final = 1.5
_FOR_FEW: Final = 3.0
_LARGEST: Final = 2.0  # factor of the largest simulated error
_HALF: Final = 1 << 12  # of the last digit of float16, in the bits of float32
_CERTAIN: Final = 2.0  # times the tolerance: sums of a part are rounded in another way
_KEPT: Final = 0xFFFF_E000  # the bits of float32 that float16 keeps
_HOPELESS: Final = 10.0  # times what rounding changes: a difference that it does not explain
_NORMAL: Final = float(np.finfo(np.float16).smallest_normal)  # ncnn writes 0 for smaller ones
# Of an input rounded to int8. Rounding alone errs by 0.29 steps; numbers beyond 127 steps are
# clipped, which calibration does to few of them.
_MOST_STEPS: Final = 2.0
_LEAST_COSINE: Final = 0.99
_INT8: Final = 127
_ROUNDED_BY: Final = 0.51  # steps; the digits of float32 add to the half
_BY_FLOAT16: Final = _INT8 / 2**11  # steps that float16 adds, from which ncnn's tools quantise


def explain_by_float16(
    compute: Compute,
    own: Callable[[], Array | None],
    operators: Iterable[RuntimeOperator],
    known: Mapping[str, Array],
    theirs: Array,
    tolerance: float,
    given: Callable[[RuntimeOperand], Value],
) -> str:
    """Find which side's float16 weights explain a difference.

    Parameters
    ----------
    compute : callable
        Takes copies of some of the operators. Returns what the reference should show, computed
        with these copies from what it shows upstream; None without a result.
    own : callable
        Returns the same without copies.
    operators : iterable of RuntimeOperator
        The one whose result is shown, and those upstream whose results are not.
    known : mapping of str to ndarray
        The reference's weights for that result, by the reference's names; empty if unknown.
    theirs : ndarray
        The reference's result.
    tolerance : float
        Relative distance up to which results are the same.
    given : callable
        Returns the reference's value of an operand.

    Returns
    -------
    str
        A sentence; ``""`` if neither side's weights do.
    """
    operators = tuple(operators)
    stored = {operator: _stored(operator) for operator in operators}
    exact, rounded = _of_dtype(stored, np.float32), _of_dtype(stored, np.float16)
    is_far: Callable[[Weights, Change], bool] = _never
    if exact and len(operators) == 1:
        is_far = _make_screen(own(), operators[0], given, theirs, tolerance)
    if exact and _is_of_rounded_weights(compute, own(), exact, theirs, tolerance, is_far):
        return "the reference's weights are float16"
    if rounded and (
        _is_of_known_weights(compute, rounded, known, theirs, tolerance)
        or _is_of_exact_weights(compute, rounded, theirs)
    ):
        return "the model's weights are float16"
    return ""


def _of_dtype(weights: Weights, dtype: type[np.generic]) -> Weights:
    """Return the weights of a dtype, of the operators that have some."""
    chosen = {
        operator: {key: each for key, each in own.items() if each.dtype == dtype}
        for operator, own in weights.items()
    }
    return {operator: own for operator, own in chosen.items() if own}


def _stored(operator: RuntimeOperator) -> dict[str, Array]:
    """Return the weights of an operator that are in the file; empty if it cannot run."""
    if not operator.has_attributes or operator.error is not None:
        return {}
    try:
        return {key: a.array for key, a in operator.attributes.items() if a.is_stored}
    except EngineError:
        return {}


def _with_weights(operator: RuntimeOperator, weights: Mapping[str, Array]) -> RuntimeOperator:
    return operator.copy_with(
        {key: Attribute.from_array(array) for key, array in weights.items()}
    )


def _is_of_rounded_weights(
    compute: Compute,
    ours: Array | None,
    weights: Weights,
    theirs: Array,
    tolerance: float,
    is_far: Callable[[Weights, Change], bool],
) -> bool:
    """Whether operators agree after their float32 weights are rounded to float16.

    `is_far` rules out most of what does not, on a small part.
    """
    most = 0.0
    for chosen, rounded in _roundings(weights):
        if is_far(chosen, rounded):
            continue
        twins = [
            _with_weights(operator, {key: rounded(each) for key, each in own.items()})
            for operator, own in chosen.items()
        ]
        found = compute(twins)
        if found is None or found.shape != theirs.shape:
            return False
        distance = relative_distance(found, theirs)
        if distance <= tolerance:
            return True
        if ours is not None and ours.shape == found.shape:
            most = max(most, relative_distance(found, ours))
            if rounded is _cut and distance > _HOPELESS * most:
                return False
    return False


def _make_screen(
    ours: Array | None,
    operator: RuntimeOperator,
    given: Callable[[RuntimeOperand], Value],
    theirs: Array,
    tolerance: float,
) -> Callable[[Weights, Change], bool]:
    """Return a function that tells on a small part that changed weights do not agree."""
    if ours is None or ours.shape != theirs.shape:
        return _never
    inputs = [given(operand) for operand in operator.inputs]
    case = make_case(operator, inputs, theirs, ours=ours)
    distance_of = make_screen(case) if case is not None else None
    if distance_of is None:
        return _never
    most = _CERTAIN * tolerance * largest_size(theirs)

    def is_far(weights: Weights, change: Change) -> bool:
        distance = distance_of(weights[operator].keys(), change)
        return distance is not None and distance > most

    return is_far


def _never(weights: Weights, change: Change) -> bool:  # noqa: ARG001
    return False


def _roundings(weights: Weights) -> Iterator[tuple[Weights, Change]]:
    """Return weights and ways to round them.

    The likeliest is first; all weights and `_cut`, which change most, follow.
    """
    matrices = {operator: _matrices(operator, own) for operator, own in weights.items()}
    counts = [sum(map(len, each.values())) for each in (matrices, weights)]
    if counts[0] == counts[1]:
        return itertools.product([weights], _WAYS)
    ways = [(weights, way) for way in _WAYS]
    if not counts[0]:
        return iter(ways)
    first, *others = [(matrices, way) for way in _WAYS]
    return itertools.chain([first], ways[:2], others, ways[2:])


def _matrices(operator: RuntimeOperator, weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the weights that pnnx rounds: no biases, factors of channels, or constants."""
    if operator.is_constant:
        return {}
    return {key: each for key, each in weights.items() if each.ndim > 1}


def _round(weight: Array) -> Array:
    """Round to the nearest float16, halves to even."""
    with np.errstate(over="ignore"):
        return weight.astype(np.float16).astype(np.float32)


def _round_to_zero(weight: Array) -> Array:
    """Round, and numbers that float16 holds with fewer digits to 0."""
    rounded = _round(weight)
    rounded[np.abs(weight) < _NORMAL] = 0
    return rounded


def _round_as_pnnx(weight: Array) -> Array:
    """Round as `_round_to_zero`, but halves away from 0."""
    bits = np.ascontiguousarray(weight).view(np.uint32)
    # Half of the last digit that float16 keeps is added; the digits behind it are dropped.
    away = ((bits + np.uint32(_HALF)) & np.uint32(_KEPT)).view(np.float32)
    rounded = _round(np.where(np.isfinite(weight), away, weight))
    rounded[np.abs(weight) < _NORMAL] = 0
    return rounded


def _cut(weight: Array) -> Array:
    """Drop the digits that float16 does not keep, as ncnn does while it loads some layers."""
    with np.errstate(over="ignore"):
        near = weight.astype(np.float16)
    away = np.abs(near.astype(np.float32)) > np.abs(weight)
    bits = near.view(np.uint16) - away.astype(np.uint16)  # the next one towards 0
    return bits.view(np.float16).astype(np.float32)


_WAYS: Final = (_round_as_pnnx, _cut, _round_to_zero, _round)


def _is_of_known_weights(
    compute: Compute,
    weights: Weights,
    known: Mapping[str, Array],
    theirs: Array,
    tolerance: float,
) -> bool:
    """Whether our float16 weights are the reference's rounded, and agree before rounding."""
    if len(weights) != 1:
        return False
    ((operator, own),) = weights.items()
    exact: dict[str, Array] = {}
    for key, each in own.items():
        found = known.get(key)
        if found is None or found.size != each.size or found.dtype != np.float32:
            return False
        exact[key] = found.reshape(each.shape)
        if not any(np.array_equal(way(exact[key]), each) for way in _WAYS):
            return False
    result = compute([_with_weights(operator, exact)])
    if result is None or result.shape != theirs.shape:
        return False
    return relative_distance(result, theirs) <= tolerance


def _is_of_exact_weights(compute: Compute, weights: Weights, theirs: Array) -> bool:
    """Whether the difference is as large as rounding to our weights may cause.

    The weights before rounding are unknown. So rounding is simulated: weights are drawn from
    the numbers that round to our float16 ones.
    """

    def compute_finer(generator: np.random.Generator) -> Array | None:
        return compute(
            [
                _with_weights(operator, {k: _unround(w, generator) for k, w in own.items()})
                for operator, own in weights.items()
            ]
        )

    ours = compute([])
    return ours is not None and _is_as_large(ours, theirs, compute_finer)


def _is_as_large(
    ours: Array,
    theirs: Array,
    compute_finer: Callable[[np.random.Generator], Array | None],
) -> bool:
    """Whether a difference is as large as those between our result and simulated ones."""
    if ours.shape != theirs.shape or not ours.size:
        return False
    with np.errstate(all="ignore"):
        error = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    generator = np.random.default_rng(0)  # a fixed seed gives the same verdict each time
    squares, largest, number, count = 0.0, 0.0, 1.0, 1
    done = 0
    while done < count:
        other = compute_finer(generator)
        if other is None or other.shape != ours.shape:
            return False
        with np.errstate(all="ignore"):
            simulated = np.abs(ours.astype(np.float64) - other.astype(np.float64))
        if not done:
            number = _independent_errors(simulated)
            count = min(_MOST, math.ceil(_ENOUGH / number))
        done += 1
        squares += float(np.square(simulated).mean())
        largest = max(largest, float(simulated.max()))
    times = _DEVIATION + _FOR_FEW / math.sqrt(number)
    small = math.sqrt(float(np.square(error).mean())) <= times * math.sqrt(squares / done)
    return small and float(error.max()) <= _LARGEST * largest


def _independent_errors(errors: Array) -> float:
    """Return how many independent errors a result has.

    Errors of channels are independent. Fewer count where few channels have most of the error,
    such as behind an activation that returns 0 for most.
    """
    axis = (-1 if errors.ndim <= _FEW_AXES else 0) if errors.ndim else None
    if axis is None:
        return 1.0
    powers = np.square(np.moveaxis(errors, axis, 0).reshape(errors.shape[axis], -1)).mean(1)
    total = float(np.square(powers).sum())
    return max(1.0, float(powers.sum()) ** 2 / total) if total > 0 else 1.0


def _unround(weight: Array, generator: np.random.Generator) -> Array:
    """Return random float32 numbers that round to these float16 numbers."""
    sizes = np.abs(weight)
    with np.errstate(all="ignore"):
        steps = np.spacing(sizes).astype(np.float32)
    if not ((sizes > 0) & (sizes < _NORMAL)).any():
        steps[sizes == 0] = 2 * _NORMAL
    offsets = generator.random(weight.shape, np.float32) - np.float32(0.5)
    result: Array = weight.astype(np.float32) + offsets * steps
    return result


def explain_by_int8(
    compute: Compute,
    inputs: Mapping[RuntimeOperator, Value],
    theirs: Array,
    tolerance: float,
    scale: float | None = None,
) -> str:
    """Find whether the rounding of quantised layers of ncnn explains a difference.

    The layers are computed in float32 from their int8 weights: that must differ from the
    reference as rounding weights to int8 does. The rounding of an input needs no simulation,
    because the input and its scale are known. It must keep the input as it is, up to few
    clipped numbers.

    Parameters
    ----------
    compute : callable
        As for `explain_by_float16`.
    inputs : mapping of RuntimeOperator to Value
        The reference's input of each quantised layer, or what stands in for it.
    theirs : ndarray
        The reference's result.
    tolerance : float
        Relative distance up to which results are the same.
    scale : float, optional
        Steps per unit of our result, if that is int8 too: then it must keep the one in float32.

    Returns
    -------
    str
        A sentence; ``""`` if it does not.
    """
    found = {operator: _read_quantised(operator, array) for operator, array in inputs.items()}
    layers = {operator: each for operator, each in found.items() if each is not None}
    if len(layers) < len(found):
        return ""

    def compute_finer(generator: np.random.Generator) -> Array | None:
        twins = []
        for operator, (weight, scales) in layers.items():
            offsets = generator.random(weight.shape, np.float32) - np.float32(0.5)
            twins.append(_in_float(operator, (weight + offsets) / scales))
        return compute(twins)

    exact = compute([_in_float(o, weight / scales) for o, (weight, scales) in layers.items()])
    if exact is None or exact.shape != theirs.shape:
        return ""
    if scale is not None:
        ours = compute([])
        if ours is None or not _is_kept(ours, exact, scale):
            return ""
    same = relative_distance(exact, theirs) <= tolerance
    return "it computes in int8" if same or _is_as_large(exact, theirs, compute_finer) else ""


def explain_by_reference_int8(
    compute: Callable[[Sequence[RuntimeOperator], Mapping[str, Value]], Array | None],
    inputs: Mapping[RuntimeOperator, Value],
    known: Mapping[str, Array],
    theirs: Array,
    tolerance: float,
) -> str:
    """Find whether a difference is that the reference computes in int8.

    Its int8 weight must be ours rounded, and our operator must give its result from that weight
    and from the input as rounded by its scale.

    Parameters
    ----------
    compute : callable
        Takes copies of operators, and values by operand in place of the reference's. Returns
        the result; None without one.
    inputs : mapping of RuntimeOperator to Value
        The input of each of our operators with a weight.
    known : mapping of str to ndarray
        The reference's weights, by ncnn's names.
    theirs : ndarray
        The reference's result.
    tolerance : float
        Relative distance up to which results are the same.

    Returns
    -------
    str
        A sentence; ``""`` if it is not.
    """
    names = ("weight", "weight_int8_scales", "bottom_int8_scales")
    if len(inputs) != 1 or not known.keys() >= {*names}:
        return ""
    ((operator, array),) = inputs.items()
    whole, scales, bottom = (known[name] for name in names)
    weight = _stored(operator).get("weight")
    if weight is None or whole.dtype != np.int8 or weight.shape != whole.shape:
        return ""
    if not isinstance(array, np.ndarray) or not bottom.size:
        return ""
    if not scales.size or len(weight) % scales.size:
        return ""
    steps = np.repeat(scales, len(weight) // scales.size)
    steps = steps.reshape(-1, *(1,) * (weight.ndim - 1)).astype(np.float32)
    rounded = _round_input(array, float(bottom[0]))
    if rounded is None or not np.isfinite(steps).all() or not steps.all():
        return ""
    is_ours = (np.abs(weight * steps - whole) <= _ROUNDED_BY + _BY_FLOAT16).all()
    if not is_ours or not _is_kept(rounded, array, float(bottom[0])):
        return ""
    twin = _with_weights(operator, {"weight": whole / steps})
    found = compute([twin], {operator.inputs[0].name: rounded})
    if found is None or found.shape != theirs.shape:
        return ""
    same = relative_distance(found, theirs) <= tolerance
    if "top_int8_scales" in known:  # its result is rounded, too, and some of it the other way
        top = float(known["top_int8_scales"][0])
        again = _round_input(found, top)
        apart = np.inf if again is None else np.abs(again - theirs).max(initial=0) * abs(top)
        same = bool(apart <= 2 * _ROUNDED_BY)
    return "the reference computes in int8" if same else ""


def _read_quantised(operator: RuntimeOperator, array: Value) -> tuple[Array, Array] | None:
    """Return the int8 weight of a layer, as float32, and its scales in a shape that fits.

    None if it cannot be read, or its scale does not keep the input.
    """
    stored = _stored(operator)
    weight, scales = stored.get("weight"), stored.get("weight_int8_scales")
    steps = stored.get("bottom_int8_scales")
    if weight is None or scales is None or steps is None or weight.dtype != np.int8:
        return None
    if not isinstance(array, np.ndarray):
        return None
    kept = _round_input(array, float(steps[0]))
    if kept is None or not _is_kept(kept, array, float(steps[0])):
        return None
    per_output = np.repeat(scales, len(weight) // scales.size)
    per_output = per_output.reshape(-1, *(1,) * (weight.ndim - 1)).astype(np.float32)
    if not np.isfinite(per_output).all() or not per_output.all():
        return None
    return weight.astype(np.float32), per_output


def _in_float(operator: RuntimeOperator, weight: Array) -> RuntimeOperator:
    """Return a copy of a quantised layer that computes in float32."""
    whole = {"weight": Attribute.from_array(weight)}
    return operator.copy_with(whole, {"int8_scale_term": Parameter.parse("0")})


def find_clipping(operator: RuntimeOperator, array: Value) -> str:
    """Describe how much of a quantised layer's input its scale clips; ``""`` for little."""
    steps = operator.attributes.get("bottom_int8_scales")
    if steps is None or not isinstance(array, np.ndarray):
        return ""
    try:
        scale = float(steps.array[0])
    except EngineError:
        return ""
    kept = _round_input(array, scale)
    if kept is None or _is_kept(kept, array, scale):
        return ""
    clipped = np.count_nonzero(np.abs(array) * abs(scale) > _INT8 + 0.5) / array.size
    return (
        f"its input scale {scale:g} clips {clipped:.1%} of the numbers"
        if clipped
        else f"its input scale {scale:g} is too small for the numbers"
    )


def _round_input(array: Array, scale: float) -> Array | None:
    """Return an input as a quantised layer reads it; None for one that it cannot."""
    if not math.isfinite(scale) or not scale or array.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        steps = array * np.float32(scale)
        whole = np.trunc(steps + np.copysign(np.float32(0.5), steps))  # halves away from 0
        return np.asarray(np.clip(whole, -_INT8, _INT8) / np.float32(scale))


def _is_kept(rounded: Array, array: Array, scale: float) -> bool:
    """Whether an input is kept when it is rounded, up to few clipped numbers."""
    found = measure(rounded, array)
    near = found.cosine is None or found.cosine >= _LEAST_COSINE
    return near and found.rmse * abs(scale) <= _MOST_STEPS
