"""Recurrent layers whose steps start from the reference's states.

Over a whole sequence one wrong number spreads to all results. Where each step starts from what
the reference gives at the one before, it changes results of its own unit alone. So the numbers
of all units are fitted at once, each to its own results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.comparison.reasons.case import Alternative
from engine.comparison.reasons.reason import Change
from engine.errors import EngineError
from engine.layers import build_layer
from engine.layers.recurrent import GRU, LSTM, RNN

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.comparison.reasons.case import Case
    from engine.values import Array

__all__ = ["Forced", "forced_directions", "wrong_units"]

_MOST_STEPS: Final = 256  # of a sequence; the first tell as much as all
_ROUNDS: Final = 16  # of the Gauss-Newton method
_STEP: Final = 1e-3
_FARTHEST: Final = 1.5  # move of a round: gates saturate, and slopes there tell nothing
# Of the largest slope; the rounding of results leaves less to numbers without effect.
_LEAST_SLOPE: Final = 1e-4
_FEW_OF: Final = 8  # at most one unit in this many counts as few
_SETTLED: Final = 1e-7  # a move, relative to the largest number of a bias


@dataclass(frozen=True, eq=False)
class Forced:
    """One direction of a recurrent layer.

    Attributes
    ----------
    case : Case
    number : int
        Of the direction.
    x : ndarray of shape (L, N, I)
        In its order, like the others.
    before : ndarray of shape (L, N, H)
        The reference's hidden states before each step.
    after : ndarray of shape (L, N, H)
        Those after it.
    """

    case: Case
    number: int
    x: Array
    before: Array
    after: Array

    @property
    def ending(self) -> str:
        """With which the names of its weights end."""
        return "_l0_reverse" if self.number else "_l0"

    def miss(self, **weights: Array) -> Array | None:
        """Return what the reference's states exceed ours by with other weights, (L, N, H)."""
        self.case.check_cancelled()
        self.case.spend(self.case.work)
        call = self.case.changed_call(Alternative("", "", weights=weights))
        try:
            layer = build_layer(call, self.case.table)
        except EngineError:
            return None
        assert isinstance(layer, (RNN, GRU, LSTM))  # noqa: S101 - as `forced_directions` says
        memory = (np.zeros(self.before.shape[1:]),) if isinstance(layer, LSTM) else ()
        found: Array = self.after - layer.follow(self.number, self.x, self.before, memory)
        return found

    def fit_bias(self, name: str) -> Array | None:
        """Return a bias with the numbers that fit best.

        A unit takes the number of one gate alone, if that explains as much as those of all.
        """
        ours = self.case.weights[name]
        start = ours.astype(np.float64).reshape(-1, self.after.shape[-1])  # (gates, H)
        miss = self.miss()
        if miss is None:
            return None
        best, left = start, np.square(miss).sum((0, 1))
        enough = miss.shape[0] * miss.shape[1] * float(np.max(self.case.discrepancy.floor)) ** 2
        every = tuple(range(len(start)))
        for gates in (*((gate,) for gate in every), every):
            if (left <= enough).all():
                break
            found = self._fit(name, start, gates)
            if found is None:
                return None
            # Of those that explain all, the first is the simplest.
            better = (found[1] < left) & (left > enough)
            best, left = np.where(better, found[0], best), np.where(better, found[1], left)
        result = best.reshape(-1).astype(ours.dtype)
        result.flags.writeable = False
        return result

    def _fit(
        self, name: str, start: Array, gates: tuple[int, ...]
    ) -> tuple[Array, Array] | None:
        """Fit some gates of a bias by the Gauss-Newton method.

        Returns the bias, (gates, H), and what is left of the squares of each unit.
        """
        now, move, left = start, np.zeros_like(start), np.full(start.shape[1], np.inf)
        for _ in range(_ROUNDS):
            trial = now + move
            miss = self.miss(**{name: trial.reshape(-1)})
            if miss is None:
                return None
            squares = np.square(miss).sum((0, 1))
            better = squares < left
            now, left = np.where(better, trial, now), np.where(better, squares, left)
            wanted = self._move(name, now, gates) if better.any() else move
            move = np.where(better, wanted, move / 2)  # what is not better was too far
            if np.abs(move).max() <= _SETTLED * max(float(np.abs(now).max()), 1e-30):
                break
        return now, left

    def _move(self, name: str, bias: Array, gates: tuple[int, ...]) -> Array:
        """Return by how much to move some gates of a bias, as if results were linear in it."""
        base, units = self.miss(**{name: bias.reshape(-1)}), bias.shape[1]
        assert base is not None  # noqa: S101 - it has run with this bias
        slopes = []
        for gate in gates:
            other = bias.copy()
            other[gate] += _STEP
            moved = self.miss(**{name: other.reshape(-1)})
            assert moved is not None  # noqa: S101 - as above
            slopes.append((base - moved).reshape(-1, units).T / _STEP)
        inverse = np.linalg.pinv(np.stack(slopes, -1), rcond=_LEAST_SLOPE)
        result = np.zeros_like(bias)
        moves = (inverse @ base.reshape(-1, units).T[..., np.newaxis])[..., 0].T
        result[list(gates)] = np.clip(moves, -_FARTHEST, _FARTHEST)
        return result


def wrong_units(case: Case) -> Iterator[Alternative]:
    """Return the rows of few units as those that must be wrong, where all others agree."""
    floor = np.max(case.discrepancy.floor)
    for forced in forced_directions(case):
        miss = forced.miss()
        if miss is None:
            return
        (units,) = np.nonzero(np.abs(miss).max((0, 1)) > floor)
        if not 0 < len(units) <= max(1, miss.shape[2] // _FEW_OF):
            continue
        names = [n for n in case.weights if n.endswith(forced.ending) and case.may_differ(n)]
        which = f"unit {units[0]}" if len(units) == 1 else f"units {tuple(units.tolist())}"
        yield Alternative(
            "weight_values",
            f"From the reference's state before each step, only {which} of {miss.shape[2]} "
            f"differs: so do its rows of {' or '.join(names)}. Take the reference's.",
            tuple(Change(name, None) for name in names),
            result=case.wanted,
            solved=True,
        )


def forced_directions(case: Case) -> Iterator[Forced]:
    """Return the directions of a recurrent layer of which all states but the last are known.

    Nothing for stacked layers, whose inner results the reference does not show, and for layers
    with a projection or with states of their own at the beginning.
    """
    wanted = case.wanted[0] if isinstance(case.wanted, tuple) else case.wanted
    x, entry = case.input, case.table.get(case.type)
    plain = entry is not None and entry.target in {RNN, GRU, LSTM}
    single = case.value("num_layers", 1) == 1 and not case.value("proj_size", 0)
    if not plain or not single or len(case.inputs) != 1 or x is None or case.told is not None:
        return
    if not isinstance(wanted, np.ndarray) or not np.isfinite(wanted).all():
        return
    if wanted.ndim != x.ndim or wanted.dtype.kind != "f":
        return
    both, x = (_in_steps(case, each) for each in (wanted, x))
    count = 2 if case.value("bidirectional") else 1
    if both.shape[:2] != x.shape[:2] or both.shape[2] % count:
        return
    for number, after in enumerate(np.split(both, count, 2)):
        order = slice(None, None, -1) if number else slice(None)
        own = after[order][:_MOST_STEPS]
        before = np.concatenate([np.zeros_like(own[:1]), own[:-1]])
        yield Forced(case, number, x[order][:_MOST_STEPS], before, own)


def _in_steps(case: Case, array: Array) -> Array:
    """Return a sequence as (L, N, ...) in float64."""
    whole = array.astype(np.float64)
    if whole.ndim == 2:
        return whole[:, np.newaxis]
    return whole.swapaxes(0, 1) if case.value("batch_first") else whole
