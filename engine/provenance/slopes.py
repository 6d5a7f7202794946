"""What the rules for gradients share: numbers in float64, and slopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.provenance.call import Operand

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = ["STEP", "Gradient", "accumulate", "slope_between", "softmax", "unbroadcast", "wide"]

Gradient: TypeAlias = "npt.NDArray[np.float64]"

STEP: Final = 1e-6  # of a difference quotient, relative to the element
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


def slope_between(above: Array, below: Array) -> Array:
    """Return the slope; at a kink the smaller one, so that ReLU has none at 0."""
    far = np.maximum(np.abs(above), np.abs(below))
    kink = np.abs(above - below) > _KINK * np.maximum(far, 1e-9)
    smaller = np.where(np.abs(above) < np.abs(below), above, below)
    found = np.where(kink, smaller, (above + below) / 2)
    return np.where(np.isfinite(found), found, 0.0)


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
