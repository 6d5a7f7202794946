"""What the rules for gradients share: numbers in float64, and slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.provenance.call import Operand

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from engine.values import Array

__all__ = [
    "STEP",
    "Gradient",
    "accumulate",
    "find_slopes",
    "softmax",
    "steps_of",
    "unbroadcast",
    "wide",
]

Gradient: TypeAlias = "npt.NDArray[np.float64]"

STEP: Final = 1e-6  # of a difference quotient, relative to the element
_SMALLER: Final = (1e-9, 1e-12, 1e-16, 1e-20)  # steps that tell whether a kink is beside
_KINK: Final = 1e-3  # slopes at both sides that differ by more belong to a kink


def wide(operand: Operand | Array) -> Array:
    """Return the numbers of an operand or a weight in float64."""
    value = operand.value if isinstance(operand, Operand) else operand
    return np.asarray(value, np.float64)


def unbroadcast(gradient: Array, shape: tuple[int, ...]) -> Gradient:
    """Sum a gradient over the dimensions along which an operand was broadcast."""
    found = gradient.sum(axis=tuple(range(gradient.ndim - len(shape))))
    axes = tuple([axis for axis, size in enumerate(shape) if size != found.shape[axis]])
    summed: Gradient = found.sum(axis=axes, keepdims=True)
    return summed


def find_slopes(quotients: Callable[[float], tuple[Array, Array]]) -> Gradient:
    """Return the slopes of a function; at a kink the smaller one, so that ReLU has none at 0.

    Where the slopes at both sides differ, a kink may lie beside the element instead of at it,
    as in a network of small numbers. Smaller steps tell.

    Parameters
    ----------
    quotients : callable
        Returns the quotients of differences above and below, for a step relative to each
        element (but at least to 1); NaN where the step is lost in rounding.
    """
    above, below = quotients(STEP)
    kinks = _differ(above, below)
    found = np.where(kinks, _smaller(above, below), (above + below) / 2)
    for step in _SMALLER:
        if not kinks.any():
            break
        above, below = quotients(step)
        resolved = kinks & ~_differ(above, below) & ~np.isnan(above) & ~np.isnan(below)
        found = np.where(resolved, (above + below) / 2, found)
        kinks &= ~resolved
    return np.where(np.isfinite(found), found, 0.0)


def _differ(above: Array, below: Array) -> Array:
    far = np.maximum(np.abs(above), np.abs(below))
    return np.asarray(np.abs(above - below) > _KINK * np.maximum(far, 1e-9))


def _smaller(above: Array, below: Array) -> Array:
    return np.where(np.abs(above) < np.abs(below), above, below)


def steps_of(x: Array, step: float) -> tuple[Array, Array]:
    """Return the steps up and down of elements as they are left by rounding; NaN for none."""
    size = step * np.maximum(1.0, np.abs(x))
    steps = (x + size) - x, (x - size) - x
    up, down = (np.where(each == 0, np.nan, each) for each in steps)
    return up, down


def softmax(values: Array, axis: int | tuple[int, ...] = -1) -> Array:
    """Return the softmax along an axis; zeros where nothing is finite."""
    peak = values.max(axis=axis, keepdims=True)
    powers = np.exp(values - np.where(np.isfinite(peak), peak, 0.0))
    sums = powers.sum(axis=axis, keepdims=True)
    shares: Array = powers / np.where(sums > 0, sums, 1.0)
    return shares


def accumulate(found: dict[str, Gradient], name: str, part: Gradient) -> None:
    """Add a gradient by an operand, which may be given for several arguments."""
    before = found.get(name)
    found[name] = part if before is None else before + part
