"""Biases that act inside an operator, fitted to its results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.inner_weights import RECURRENT
from engine.comparison.reasons.reason import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case
    from engine.values import Array

__all__ = ["inner_biases"]

_TYPES: Final = (*RECURRENT, "MultiheadAttention")
_MOST_NUMBERS: Final = 1 << 8  # of a bias: the operator runs once for each
_MOST_WORK: Final = 1 << 22  # numbers of a bias times results
_ROUNDS: Final = 8  # of the Gauss-Newton method
_STEP: Final = 1e-2
_LEAST: Final = 0.999  # of fitted biases: they explain part of a wrong weight, too


def inner_biases(case: Case) -> Iterator[Alternative]:
    """Return the biases of gates and projections that fit the results best, one at a time."""
    expected = case.expected[0] if isinstance(case.expected, tuple) else case.expected
    if not any(word in case.type for word in _TYPES) or not isinstance(expected, np.ndarray):
        return
    if expected.dtype.kind != "f" or not np.isfinite(expected).all():
        return
    for name, bias in case.weights.items():
        if "bias" not in name or bias.dtype.kind != "f" or not case.may_differ(name):
            continue
        if bias.size > _MOST_NUMBERS or bias.size * expected.size > _MOST_WORK:
            continue
        found = _fitted(case, name, bias, expected)
        if found is None:
            continue
        changed = int(np.count_nonzero(found != bias))
        yield Alternative(
            "bias",
            f"{changed} of {bias.size} numbers of {name} differ. Take the reference's.",
            (Change(name, found),), weights={name: found}, fitted=changed, least=_LEAST,
        )  # fmt: skip


def _fitted(case: Case, name: str, bias: Array, expected: Array) -> Array | None:
    """Return the bias that fits best, by the Gauss-Newton method; None if the layer refuses."""
    now, slopes = bias.astype(np.float64), np.zeros((1, bias.size))
    for _ in range(_ROUNDS):
        base = _result(case, name, now)
        if base is None or base.shape != expected.shape:
            return None
        miss = (expected - base).reshape(-1)
        slopes = np.empty((miss.size, now.size))
        for place in range(now.size):
            other = now.copy()
            other.flat[place] += _STEP
            result = _result(case, name, other)
            if result is None:
                return None
            slopes[:, place] = (result - base).reshape(-1) / _STEP
        move, *_ = np.linalg.lstsq(slopes, miss, rcond=1e-6)
        now += move.reshape(now.shape)
        if np.abs(move).max(initial=0.0) <= 1e-5 * max(np.abs(now).max(initial=0.0), 1e-30):
            break
    size = float(np.abs(now).max(initial=0.0))
    # Of a number that is right, rounding leaves no more than it changes itself.
    changes = np.abs(slopes).max(0).reshape(now.shape) * np.abs(now - bias)
    is_other = (np.abs(now - bias) > 1e-4 * size) & (changes > np.max(case.discrepancy.floor))
    found = np.where(is_other, now, bias).astype(bias.dtype)
    found.flags.writeable = False
    return found


def _result(case: Case, name: str, bias: Array) -> Array | None:
    weights = {name: bias.astype(case.weights[name].dtype)}
    result = case.result_of(Alternative("bias", "", weights=weights))
    first = result[0] if isinstance(result, tuple) and result else result
    return first.astype(np.float64) if isinstance(first, np.ndarray) else None
