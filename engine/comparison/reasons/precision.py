"""Alternatives of precision: numbers rounded to float16, bfloat16 or int8."""

from __future__ import annotations

import itertools
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.discrepancy import step_over
from engine.comparison.reasons.fitting import least_squares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from engine.comparison.reasons.case import Case
    from engine.values import Array, Value

__all__ = ["ROUNDINGS", "explained_by_rounding", "other_precision"]

_LEAST: Final = 0.9
# Relative differences that are too large for rounding.
_LARGEST: Final = {
    "float16": 0.02,
    "bfloat16": 0.1,
    "int8": 0.4,
    "int8 by channel": 0.4,
    "uint8": 0.4,
}
_WIDER: Final = 1.25
_ELEMENTS: Final = 1 << 16
_MOST_PLACES: Final = 512
_SURE: Final = 1e-12  # error, relative to the weights, up to which a number counts as rounded
# already


def _to_float16(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(x.dtype)


def _to_bfloat16(x: Array) -> Array:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) & np.uint32(0xFFFF0000)  # nearest even
    result: Array = rounded.view(np.float32).astype(x.dtype, copy=False).reshape(x.shape)
    return result if np.isfinite(x).all() else np.asarray(np.where(np.isfinite(x), result, x))


def _to_int8(x: Array) -> Array:
    """Round to 127 steps of the largest number."""
    step = float(np.abs(x).max(initial=0.0)) / 127
    return (np.round(x / step) * step).astype(x.dtype) if 0 < step < math.inf else x


def _to_int8_by_channel(x: Array) -> Array:
    """Round each index of the first axis to 127 steps of its largest number."""
    if x.ndim < 2:
        return _to_int8(x)
    steps = np.abs(x).max(tuple(range(1, x.ndim)), keepdims=True) / 127
    steps[steps == 0] = 1
    result: Array = (np.round(x / steps) * steps).astype(x.dtype)
    return result


def _to_uint8(x: Array) -> Array:
    """Round to 255 steps between the smallest and the largest number, one of them 0."""
    low, high = min(float(x.min(initial=0.0)), 0.0), max(float(x.max(initial=0.0)), 0.0)
    step = (high - low) / 255
    if not 0 < step < math.inf:
        return x
    zero = round(-low / step)
    return ((np.clip(np.round(x / step) + zero, 0, 255) - zero) * step).astype(x.dtype)


ROUNDINGS: Final[Mapping[str, Callable[[Array], Array]]] = MappingProxyType(
    {
        "float16": _to_float16,
        "bfloat16": _to_bfloat16,
        "int8": _to_int8,
        "int8 by channel": _to_int8_by_channel,
        "uint8": _to_uint8,
    }
)
"""Rounds an array of floats to each precision."""


def other_precision(case: Case) -> Iterator[Alternative]:
    """Return results with weights, inputs and outputs rounded, on either side."""
    if case.float_pair is None:
        return
    few = slice(None, None, step_over(case.float_pair[0].shape, _ELEMENTS))
    ours, expected = (array.reshape(-1)[few].astype(np.float64) for array in case.float_pair)
    with np.errstate(all="ignore"):
        size = float(np.abs(ours - expected).mean() / np.abs(expected).mean())
    floats = {n: w for n, w in case.weights.items() if w.dtype.kind == "f"}
    low = min(0.0, *(float(array.min(initial=0.0)) for array in case.float_pair))
    high = max(0.0, *(float(array.max(initial=0.0)) for array in case.float_pair))
    for words, rounded in ROUNDINGS.items():
        if not size <= _LARGEST[words]:
            continue
        if "int8" in words:  # biases stay as they are
            floats = {n: w for n, w in floats.items() if w.ndim > 1}
        moves = _largest_move(low, high, words)
        weights = {n: rounded(w) for n, w in floats.items()}
        inputs = _rounded_inputs(case, rounded)
        for what in _places(bool(floats), words):
            text = (
                f"The reference computes with {' and '.join(what)} in {words}. "
                f"Convert the model to that precision, or compare with one in float32."
            )
            yield Alternative(
                "precision",
                text,
                weights=weights if "weights" in what else {},
                inputs=inputs if "inputs" in what else None,
                after=rounded if "outputs" in what else None,
                by_element="int8" not in words,
                moves=moves,
                least=_LEAST,
            )
        text = f"Our result is rounded to {words}, the reference's is not. Use float32."
        yield Alternative(
            "precision", text, after=rounded, by_element="int8" not in words, moves=moves,
            swapped=True, least=_LEAST,
        )  # fmt: skip


def _largest_move(low: float, high: float, words: str) -> float:
    """Return by how much rounding to 8 bits may change an element; 0 for floats.

    With what is rounded before, the range may be somewhat wider than that of the results.
    """
    if "int8" not in words or not math.isfinite(high - low):
        return 0.0
    step = (high - low) / 255 if words == "uint8" else max(-low, high) / 127
    return _WIDER * step / 2


def _places(weighty: bool, words: str) -> Iterator[tuple[str, ...]]:  # noqa: FBT001
    names = ("outputs", "weights", "inputs") if weighty else ("outputs", "inputs")
    if words == "int8 by channel":
        yield from [("weights",)] if weighty else []
        return
    for count in range(1, len(names) + 1):
        yield from itertools.combinations(names, count)


def _rounded_inputs(case: Case, rounded: Callable[[Array], Array]) -> list[Value]:
    return [
        rounded(value) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value
        for value in case.inputs
    ]


def explained_by_rounding(rows: Array, residual: Array, weights: Array, channels: Array) -> str:
    """Name the precision of our rounded weights, if the rounding explains the difference.

    All weights must be numbers of that precision, and the smallest change of weights that
    explains the difference must be no larger than a rounding error.

    Parameters
    ----------
    rows : ndarray of shape (P, G, K)
    residual : ndarray of shape (P, O)
    weights : ndarray of shape (O, K)
    channels : ndarray of int
        Those that differ.

    Returns
    -------
    str
        ``""`` for none.
    """
    if channels.size * 2 < len(weights) or weights.dtype.kind != "f":
        return ""
    for words in ("float16", "bfloat16", "int8", "int8 by channel"):
        if not _is_rounded(weights, words):
            continue
        few = channels[:4]
        changes = []
        for channel in few:
            group = int(channel) * rows.shape[1] // len(weights)
            matrix = rows[:_MOST_PLACES, group].astype(np.float64)
            target = residual[:_MOST_PLACES, channel]
            change = least_squares(matrix, target)
            left = float(np.square(target - matrix @ change).sum())
            if left > 0.02 * float(np.square(target).sum()):
                return ""
            changes.append(float(np.sqrt(np.square(change).mean())))
        if max(changes) <= 1.5 * _step(weights, words):
            return words
    return ""


def _is_rounded(weights: Array, words: str) -> bool:
    size = float(np.abs(weights).max(initial=0.0))
    few = weights[:1, :_MOST_PLACES]
    if not size:
        return False
    if words in {"float16", "bfloat16"} and not np.array_equal(ROUNDINGS[words](few), few):
        return False
    if np.unique(weights[:, :_MOST_PLACES]).size < 3:
        return False
    tolerance = max(_SURE, 4e-7 if "int8" in words else 0.0) * size
    return bool(np.abs(ROUNDINGS[words](weights) - weights).max() <= tolerance)


def _step(weights: Array, words: str) -> float:
    """Return the standard deviation of the rounding errors of numbers of this size."""
    size = float(np.sqrt(np.square(weights, dtype=np.float64).mean()))
    if words == "float16":
        return size * 2.0**-11
    if words == "bfloat16":
        return size * 2.0**-8
    return float(np.abs(weights).max()) / 127 / math.sqrt(12)
