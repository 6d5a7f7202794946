"""Tells differences that come from weights stored in float16, by either side, from faults."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.measures import relative_distance
from engine.errors import EngineError
from engine.pnnx import Attribute

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.runtime import RuntimeOperator
    from engine.values import Array

__all__ = ["explain_by_float16"]

_ENOUGH: Final = 64  # channels of all simulations, so that their deviation is well known
_MOST: Final = 16  # simulations
_FEW_AXES: Final = 2  # up to which the last axis counts channels, not the first
# Times the simulated deviation. Channels err independently: few of them may err by more.
_DEVIATION: Final = 1.5
_FOR_FEW: Final = 3.0
_LARGEST: Final = 2.0  # times the largest simulated error


def explain_by_float16(
    compute: Callable[[RuntimeOperator], Array | None],
    operator: RuntimeOperator,
    theirs: Array,
    tolerance: float,
) -> str:
    """Say which side's float16 weights explain a difference.

    Parameters
    ----------
    compute : callable
        Returns the result of a copy of the operator on the reference's inputs; None if it has
        none.
    operator : RuntimeOperator
    theirs : ndarray
        The reference's result.
    tolerance : float
        Relative distance up to which results are the same.

    Returns
    -------
    str
        ``""`` if neither does.
    """
    if not operator.has_attributes or operator.error is not None:
        return ""
    try:
        stored = {key: a.array for key, a in operator.attributes.items() if a.is_stored}
    except EngineError:
        return ""
    exact = {key: array for key, array in stored.items() if array.dtype == np.float32}
    rounded = {key: array for key, array in stored.items() if array.dtype == np.float16}
    if exact and _is_of_rounded_weights(compute, operator, exact, theirs, tolerance):
        return "the reference's weights are float16"
    if rounded and _is_of_exact_weights(compute, operator, rounded, theirs):
        return "the model's weights are float16"
    return ""


def _with_weights(operator: RuntimeOperator, weights: dict[str, Array]) -> RuntimeOperator:
    return operator.with_attributes(
        {key: Attribute.from_array(array) for key, array in weights.items()}
    )


def _is_of_rounded_weights(
    compute: Callable[[RuntimeOperator], Array | None],
    operator: RuntimeOperator,
    weights: dict[str, Array],
    theirs: Array,
    tolerance: float,
) -> bool:
    """Whether the operator agrees once its float32 weights are rounded through float16."""
    with np.errstate(over="ignore"):
        rounded = {k: w.astype(np.float16).astype(np.float32) for k, w in weights.items()}
    found = compute(_with_weights(operator, rounded))
    if found is None or found.shape != theirs.shape:
        return False
    return relative_distance(found, theirs) <= tolerance


def _is_of_exact_weights(
    compute: Callable[[RuntimeOperator], Array | None],
    operator: RuntimeOperator,
    weights: dict[str, Array],
    theirs: Array,
) -> bool:
    """Whether the difference is as large as that of rounding weights to ours.

    Nobody knows the weights from before. So the rounding is simulated: numbers anywhere between
    the two neighbours of a float16 number are rounded to it.
    """
    ours = compute(operator)
    if ours is None or ours.shape != theirs.shape or not ours.size:
        return False
    with np.errstate(all="ignore"):
        error = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    channels = ours.shape[-1 if ours.ndim <= _FEW_AXES else 0] if ours.ndim else 1
    count = min(_MOST, math.ceil(_ENOUGH / channels))
    generator = np.random.default_rng(0)  # the same verdict each time
    squares = largest = 0.0
    for _ in range(count):
        finer = {key: _unround(weight, generator) for key, weight in weights.items()}
        other = compute(_with_weights(operator, finer))
        if other is None or other.shape != ours.shape:
            return False
        with np.errstate(all="ignore"):
            simulated = np.abs(ours.astype(np.float64) - other.astype(np.float64))
        squares += float(np.square(simulated).mean()) / count
        largest = max(largest, float(simulated.max()))
    times = _DEVIATION + _FOR_FEW / math.sqrt(channels)
    small = math.sqrt(float(np.square(error).mean())) <= times * math.sqrt(squares)
    return small and float(error.max()) <= _LARGEST * largest


def _unround(weight: Array, generator: np.random.Generator) -> Array:
    """Return float32 numbers, any of those that are rounded to these float16 numbers."""
    with np.errstate(all="ignore"):
        steps = np.spacing(np.abs(weight)).astype(np.float32)
    offsets = generator.random(weight.shape, np.float32) - np.float32(0.5)
    result: Array = weight.astype(np.float32) + offsets * steps
    return result
