"""Recognises ties: differences from taking another of several equal elements.

It is undefined which of several equal elements an operator takes, and rounding makes elements
equal or unequal. So indexes that differ are compared by the elements at these indexes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.runtime import RuntimeOperator
    from engine.values import Array

__all__ = ["is_tie"]

_AXIS_NAMES: Final = ("dim", "axis")
# Operators that return indexes along an axis, and their default axis.
_LAST: Final = -1
_CHOOSERS: Final[Mapping[str, int]] = {
    "torch.topk": _LAST, "torch.sort": _LAST, "torch.argsort": _LAST, "torch.kthvalue": _LAST,
    "torch.max": _LAST, "torch.min": _LAST, "torch.median": _LAST, "torch.mode": _LAST,
    "torch.cummax": _LAST, "torch.cummin": _LAST, "Tensor.topk": _LAST, "Tensor.sort": _LAST,
    "Tensor.argsort": _LAST, "TopK": _LAST,
}  # fmt: skip
_ARGUMENTS: Final = frozenset(
    {"torch.argmax", "torch.argmin", "Tensor.argmax", "Tensor.argmin", "ArgMax", "ArgMin"}
)
_SUPPRESSION: Final = frozenset(
    {"torchvision.ops.nms", "torchvision::nms", "NonMaxSuppression"}
)


def is_tie(
    operator: RuntimeOperator,
    inputs: Mapping[int, Array],
    found: Array,
    expected: Array,
    tolerance: float,
) -> bool:
    """Whether two results of an operator differ only by the choice among equal elements.

    Parameters
    ----------
    operator : RuntimeOperator
    inputs : mapping of int to ndarray
        Those that are tensors, by position.
    found, expected : ndarray of the same shape
        Its integer output, ours and the reference's.
    tolerance : float
        Up to which two elements are equal, relative to the largest one.
    """
    source = inputs.get(0)
    if source is None or found.shape != expected.shape or expected.dtype.kind not in "iuf":
        return False
    if operator.type in _SUPPRESSION:
        return _same_scores(inputs.get(1), found, expected, tolerance)
    if operator.type not in _CHOOSERS and operator.type not in _ARGUMENTS:
        return False
    axis = _axis_of(operator.params, operator.type)
    if axis is None:
        source, axis = source.reshape(-1), 0
        found, expected = found.reshape(-1), expected.reshape(-1)
    elif not -source.ndim <= axis < source.ndim:
        return False
    elif found.ndim == source.ndim - 1:  # the axis is not kept
        found, expected = (np.expand_dims(each, axis) for each in (found, expected))
    one, other = _taken(source, found, axis), _taken(source, expected, axis)
    return one is not None and other is not None and _equal(one, other, source, tolerance)


def _axis_of(params: Mapping[str, Any], kind: str) -> int | None:
    """Return the axis along which an operator chooses; None for all elements."""
    named = next((params[name] for name in _AXIS_NAMES if name in params), None)
    if isinstance(named, int) and not isinstance(named, bool):
        return named
    return None if kind in _ARGUMENTS else _CHOOSERS[kind]


def _taken(source: Array, indexes: Array, axis: int) -> Array | None:
    if indexes.ndim != source.ndim:
        return None
    places = indexes.astype(np.int64)
    size = source.shape[axis]
    if places.size and (places.min() < -size or places.max() >= size):
        return None
    shape = [n for i, n in enumerate(indexes.shape) if i != axis % source.ndim]
    wanted = [n for i, n in enumerate(source.shape) if i != axis % source.ndim]
    return np.take_along_axis(source, places, axis) if shape == wanted else None


def _equal(one: Array, other: Array, source: Array, tolerance: float) -> bool:
    if source.dtype.kind not in "fiu":
        return bool(np.array_equal(one, other))
    finite = source[np.isfinite(source)] if source.dtype.kind == "f" else source
    scale = float(np.abs(finite).max(initial=0)) if finite.size else 0.0
    with np.errstate(invalid="ignore"):  # of infinities
        apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
    same = (
        (one == other) | (np.isnan(one) & np.isnan(other))
        if one.dtype.kind == "f"
        else one == other
    )
    return bool((same | (apart <= tolerance * scale)).all())


def _same_scores(scores: Array | None, found: Array, expected: Array, tolerance: float) -> bool:
    if scores is None or scores.ndim != 1:
        return False
    places = [each.astype(np.int64).reshape(-1) for each in (found, expected)]
    if any(p.size and (p.min() < 0 or p.max() >= scores.size) for p in places):
        return False
    return _equal(scores[places[0]], scores[places[1]], scores, tolerance)
