"""What a function of each element must have been given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.values import Array, Value

__all__ = ["Inverse", "invert_elements"]

_PROBES: Final = 16  # elements that are changed to see which others follow
_ROUNDS: Final = 20  # of Newton's method
_SAME: Final = 1e-6  # relative difference of equal elements
_NEAR: Final = 1e-3  # relative difference of solved elements
_MOSTLY: Final = 0.5  # share of the elements that must be solved
_FLAT: Final = 1e-4  # slope below which a result does not tell a number


class Inverse(NamedTuple):
    """What an operator should give.

    Attributes
    ----------
    wanted : ndarray
    told : ndarray of bool
        Where what is shown tells the number; the others are the nearest possible ones.
    """

    wanted: Array
    told: Array


def invert_elements(
    function: Callable[[Array], Value], ours: Value, expected: Array
) -> Inverse | None:
    """Solve for each element by Newton's method; None if elements depend on others.

    Parameters
    ----------
    function : callable
    ours : Value
        What it is given. Where it loses a number, as a ReLU does, the nearest possible one is
        taken.
    expected : ndarray of float
        What it should give.
    """
    x = expected
    if isinstance(ours, np.ndarray) and ours.shape == x.shape and ours.dtype.kind == "f":
        x = ours
    if not x.size or not _is_separate(function, x):
        return None
    x = np.where(np.isfinite(x), x, 0).astype(x.dtype)
    scale = float(np.abs(expected).max(initial=0.0, where=np.isfinite(expected))) or 1.0
    # A corner that is as near as what counts as equal has to be seen.
    least_step = max(1e-5, 4 * _SAME * scale)
    best, least = x, np.full(x.shape, np.inf)
    restarted, told = np.zeros(x.shape, bool), np.zeros(x.shape, bool)
    for _ in range(_ROUNDS):
        step = np.maximum(1e-3 * np.abs(x), least_step).astype(x.dtype)
        ends = [function(each) for each in (x, x + step, x - step)]
        if not all(isinstance(each, np.ndarray) for each in ends):
            return None
        middle, upper, lower = (np.asarray(each, np.float64) for each in ends)
        miss = expected - middle
        slope = (upper - lower) / (2 * step)
        flat = np.abs(slope) < _FLAT
        # At a corner, as that of a ReLU at 0, one side is flat.
        sides = np.sort([np.abs(upper - middle), np.abs(middle - lower)], axis=0)
        smooth = ~flat & (sides[0] >= sides[1] / 2)
        better = np.abs(miss) < least
        best, told = np.where(better, x, best), np.where(better, smooth, told)
        least = np.where(better, np.abs(miss), least)
        open_ = least > _SAME * scale
        if not open_.any():
            break
        move = np.divide(miss, slope, out=np.zeros(x.shape), where=~flat)
        move = np.clip(move, -1 - np.abs(x), 1 + np.abs(x))
        # Where the function is flat, as a ReLU below 0, the shown number is a good start.
        jump = flat & open_ & ~restarted
        restarted |= jump
        x = np.where(jump, expected, np.where(open_, x + move, x)).astype(x.dtype)
    solved = least <= _NEAR * scale
    return Inverse(best, told & solved) if solved.mean() > _MOSTLY else None


def _is_separate(function: Callable[[Array], Value], x: Array) -> bool:
    """Whether each element that is shown depends on the same given element only."""
    places = np.random.default_rng(0).choice(x.size, min(_PROBES, x.size), replace=False)
    other = x.copy().reshape(-1)
    other[places] += 1 + np.abs(other[places])
    before, after = function(x), function(other.reshape(x.shape))
    if not (isinstance(before, np.ndarray) and isinstance(after, np.ndarray)):
        return False
    if before.shape != x.shape or after.shape != x.shape:
        return False
    changed = np.flatnonzero(before != after)
    return bool(changed.size) and set(changed.tolist()) <= set(places.tolist())
