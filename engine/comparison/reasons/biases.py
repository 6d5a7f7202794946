"""Biases that act inside an operator, fitted to its results."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.inner_weights import RECURRENT
from engine.comparison.reasons.reason import Change
from engine.comparison.reasons.teacher_forcing import forced_directions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case
    from engine.values import Array

__all__ = ["inner_biases"]

_TYPES: Final = (*RECURRENT, "MultiheadAttention")
_MOST_NUMBERS: Final = 1 << 8  # of a bias: the operator runs once for each
_MOST_WORK: Final = 1 << 22  # numbers of a bias times results
_ROUNDS: Final = 12  # of the Gauss-Newton method
_SLOW: Final = 0.5  # of what was left before a round; a fit that comes near leaves less
_MOST_SLOW: Final = 2  # rounds
_STEP: Final = 1e-2
# Of the largest slope; the rounding of results leaves less to numbers without effect, such as
# biases of keys, which a softmax takes out.
_LEAST_SLOPE: Final = 1e-4
_LEAST: Final = 0.999  # of fitted biases: they explain part of a wrong weight, too


def inner_biases(case: Case) -> Iterator[Alternative]:
    """Return the biases of gates and projections that fit the results best, one at a time."""
    expected = case.expected[0] if isinstance(case.expected, tuple) else case.expected
    if not any(word in case.type for word in _TYPES) or not isinstance(expected, np.ndarray):
        return
    if expected.dtype.kind != "f" or not np.isfinite(expected).all():
        return
    directions = {each.ending: each for each in forced_directions(case)}
    for name, bias in case.weights.items():
        if "bias" not in name or bias.dtype.kind != "f" or not case.may_differ(name):
            continue
        forced = directions.get(name[name.find("_l") :])
        if forced is not None:
            found = forced.fit_bias(name)
        elif bias.size > _MOST_NUMBERS or bias.size * expected.size > _MOST_WORK:
            continue
        else:
            found = _fitted(case, name, bias, expected)
        if found is None:
            continue
        changed = int(np.count_nonzero(found != bias))
        added = _added_to(case, name, found != bias)
        which = f"{name}, or of {added} that is added to it," if added else name
        yield Alternative(
            "bias",
            f"{changed} of {bias.size} numbers of {which} differ. Take the reference's.",
            (Change(name, found),), weights={name: found}, fitted=changed, least=_LEAST,
        )  # fmt: skip


def _added_to(case: Case, name: str, differ: Array) -> str:
    """Return the bias of the state that is added to all numbers that differ; ``""`` for none.

    Only their sum counts, so no data tell which one is wrong. ncnn has one bias for both.
    """
    other = name.replace("bias_ih", "bias_hh")
    if other == name or other not in case.weights or case.twin is not None:
        return ""
    # What a GRU adds to the state for its new gate is multiplied by the reset gate.
    count = differ.size * 2 // 3 if "GRU" in case.type else differ.size
    return other if case.may_differ(other) and not differ[count:].any() else ""


def _fitted(case: Case, name: str, bias: Array, expected: Array) -> Array | None:
    """Return the bias that fits best, by the Gauss-Newton method; None if none comes near."""
    now, slopes = bias.astype(np.float64), np.zeros((1, bias.size))
    move, last, slow = np.zeros_like(now), math.inf, 0
    for _ in range(_ROUNDS):
        base = _result(case, name, now)
        if base is None or base.shape != expected.shape:
            return None
        miss = (expected - base).reshape(-1)
        left = float(np.square(miss).sum())
        if left > last:  # too far
            move /= 2
            now -= move
            continue
        if bool((np.abs(miss) <= np.max(case.discrepancy.floor)).all()):
            break
        slow += left > _SLOW * last
        if slow > _MOST_SLOW:
            return None
        found = _slopes_at(case, name, now, base)
        if found is None:
            return None
        slopes, last = found, left
        move = np.linalg.lstsq(slopes, miss, rcond=_LEAST_SLOPE)[0].reshape(now.shape)
        now += move
        if np.abs(move).max(initial=0.0) <= 1e-5 * max(np.abs(now).max(initial=0.0), 1e-30):
            break
    size = float(np.abs(now).max(initial=0.0))
    # Of a number that is right, rounding leaves no more than it changes itself.
    changes = np.abs(slopes).max(0).reshape(now.shape) * np.abs(now - bias)
    is_other = (np.abs(now - bias) > 1e-4 * size) & (changes > np.max(case.discrepancy.floor))
    found = np.where(is_other, now, bias).astype(bias.dtype)
    found.flags.writeable = False
    return found


def _slopes_at(case: Case, name: str, bias: Array, base: Array) -> Array | None:
    """Return by how much each number of a bias moves each result; None without a result."""
    slopes = np.empty((base.size, bias.size))
    for place in range(bias.size):
        other = bias.copy()
        other.flat[place] += _STEP
        result = _result(case, name, other)
        if result is None:
            return None
        slopes[:, place] = (result - base).reshape(-1) / _STEP
    return slopes


def _result(case: Case, name: str, bias: Array) -> Array | None:
    weights = {name: bias.astype(case.weights[name].dtype)}
    result = case.result_of(Alternative("bias", "", weights=weights))
    first = result[0] if isinstance(result, tuple) and result else result
    return first.astype(np.float64) if isinstance(first, np.ndarray) else None
