"""Distinguishes differences due to float16 weights from faults.

float16 is how pnnx stores the weights of ncnn.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.comparison.half_rounding import LEAST_FLOAT16, round_as_pnnx
from engine.comparison.measures import largest_size, relative_distance
from engine.comparison.reasons.case import make_case
from engine.comparison.reasons.sampling import make_screen
from engine.comparison.rounded_weights import (
    float16_steps,
    is_as_large,
    stored_weights,
    with_weights,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.runtime import RuntimeOperand, RuntimeOperator
    from engine.values import Array, Value

    Weights: TypeAlias = dict[RuntimeOperator, dict[str, Array]]
    Change: TypeAlias = Callable[[Array], Array]
    Compute: TypeAlias = Callable[[Sequence[RuntimeOperator]], Array | None]

__all__ = ["explain_by_float16"]

_CERTAIN: Final = 2.0  # times the tolerance: sums of a part are rounded in another way
_HOPELESS: Final = 10.0  # times what rounding changes: a difference that it does not explain


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
    stored = {operator: stored_weights(operator) for operator in operators}
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
            with_weights(operator, {key: rounded(each) for key, each in own.items()})
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
    rounded[np.abs(weight) < LEAST_FLOAT16] = 0
    return rounded


def _round_as_pnnx(weight: Array) -> Array:
    return round_as_pnnx(weight).astype(np.float32)


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
    result = compute([with_weights(operator, exact)])
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
                with_weights(operator, {k: _unround(w, generator) for k, w in own.items()})
                for operator, own in weights.items()
            ]
        )

    ours = compute([])
    return ours is not None and is_as_large(ours, theirs, compute_finer)


def _unround(weight: Array, generator: np.random.Generator) -> Array:
    """Return random float32 numbers that round to these float16 numbers."""
    offsets = generator.random(weight.shape, np.float32) - np.float32(0.5)
    result: Array = weight.astype(np.float32) + offsets * float16_steps(weight)
    return result
