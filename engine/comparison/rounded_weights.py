"""Operators with other weights, and how much the rounding of weights changes a result."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.half_rounding import LEAST_FLOAT16
from engine.errors import EngineError
from engine.pnnx import Attribute

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.runtime import RuntimeOperator
    from engine.values import Array

__all__ = ["float16_steps", "is_as_large", "stored_weights", "with_weights"]

_ENOUGH: Final = 64  # least independent errors in all simulations, for a stable deviation
_MOST: Final = 16  # simulations
_FEW_AXES: Final = 2  # up to this rank the last axis counts channels, not the first
# Factor of the simulated deviation. Independent errors: few may exceed it.
_DEVIATION: Final = 1.5
_FOR_FEW: Final = 3.0
_LARGEST: Final = 2.0  # factor of the largest simulated error


def stored_weights(operator: RuntimeOperator) -> dict[str, Array]:
    """Return the weights of an operator that are in the file; empty if it cannot run."""
    if not operator.has_attributes or operator.error is not None:
        return {}
    try:
        return {key: a.array for key, a in operator.attributes.items() if a.is_stored}
    except EngineError:
        return {}


def with_weights(operator: RuntimeOperator, weights: Mapping[str, Array]) -> RuntimeOperator:
    """Return a copy of an operator with other weights."""
    return operator.copy_with(
        {key: Attribute.from_array(array) for key, array in weights.items()}
    )


def float16_steps(weight: Array) -> Array:
    """Return how far the numbers reach that are stored as the same float16 one.

    Parameters
    ----------
    weight : ndarray of float16

    Returns
    -------
    ndarray of float32
    """
    sizes = np.abs(weight)
    with np.errstate(all="ignore"):
        steps = np.spacing(sizes).astype(np.float32)
    if not ((sizes > 0) & (sizes < LEAST_FLOAT16)).any():
        steps[sizes == 0] = 2 * LEAST_FLOAT16
    return steps


def is_as_large(
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
