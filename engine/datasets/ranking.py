"""The inputs with the largest and the least values, found while they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.datasets.studies import Arrays
    from engine.values import Array

__all__ = ["Ranking", "merge_ranked"]

_AT_ONCE: Final = 64  # inputs that wait to be ranked


class Ranking:
    """Ranks inputs by many values at once, the first of equals before the others.

    Parameters
    ----------
    names : (str, str)
        Of the inputs with the largest values, and with the least.
    rows : int
        Values of an input.
    top : int
        Inputs that are kept of each row.
    """

    def __init__(self, names: tuple[str, str], rows: int, top: int) -> None:
        self._names, self._top = names, top
        self._waiting: list[Array] = []
        self._indices: list[npt.NDArray[np.int64]] = []
        nothing = np.full((rows, top), np.nan), np.full((rows, top), -1, np.int64)
        self._kept = [nothing, nothing]

    def add(self, indices: npt.NDArray[np.int64], values: Array) -> None:
        """Add inputs behind those that came before.

        Parameters
        ----------
        indices : ndarray
            Of the inputs.
        values : ndarray of float64, shape (inputs, rows)
            What is not finite counts as unknown. Kept until it is ranked.
        """
        self._indices.append(indices)
        self._waiting.append(values)
        if sum(map(len, self._indices)) >= _AT_ONCE:
            self._rank()

    def finish(self) -> Arrays:
        """Return values and inputs, ranked; NaN and -1 where there are no more."""
        if self._waiting:
            self._rank()
        found: Arrays = {}
        for name, kept, largest in zip(self._names, self._kept, (True, False), strict=True):
            found |= _named(name, *_sorted(*kept, largest=largest))
        return found

    def _rank(self) -> None:
        values = np.ascontiguousarray(np.concatenate(self._waiting).T)
        inputs = np.broadcast_to(np.concatenate(self._indices), values.shape)
        self._waiting, self._indices = [], []
        known = np.isfinite(values)
        if not known.all():
            values, inputs = np.where(known, values, np.nan), np.where(known, inputs, -1)
        self._kept = [
            _first(
                np.concatenate([kept[0], values], axis=1),
                np.concatenate([kept[1], inputs], axis=1),
                self._top,
                largest=largest,
            )
            for kept, largest in zip(self._kept, (True, False), strict=True)
        ]


def merge_ranked(one: Arrays, other: Arrays, name: str, *, largest: bool) -> Arrays:
    """Merge the ranked inputs of two ranges; those of `one` come first."""
    values, inputs = (
        np.concatenate([one[f"{name}_{what}"], other[f"{name}_{what}"]], axis=1)
        for what in ("values", "inputs")
    )
    first = _first(values, inputs, one[f"{name}_values"].shape[1], largest=largest)
    return _named(name, *_sorted(*first, largest=largest))


def _named(name: str, values: Array, inputs: Array) -> Arrays:
    return {f"{name}_values": values, f"{name}_inputs": inputs}


def _keys(values: Array, *, largest: bool) -> Array:
    """Return numbers, the least of which come first."""
    keys = -values if largest else values.copy()
    keys[np.isnan(keys)] = np.inf
    return keys


def _first(values: Array, inputs: Array, top: int, *, largest: bool) -> tuple[Array, Array]:
    """Return the first `top` entries of each row, not sorted but in their order."""
    keys = _keys(values, largest=largest)
    bound = np.partition(keys, top - 1, axis=1)[:, top - 1 : top]
    chosen = keys <= bound
    tied = np.flatnonzero(np.count_nonzero(chosen, axis=1) > top)
    if tied.size:
        below = keys[tied] < bound[tied]
        equal = keys[tied] == bound[tied]
        left = top - np.count_nonzero(below, axis=1)[:, np.newaxis]
        chosen[tied] = below | (equal & (np.cumsum(equal, axis=1) <= left))
    return values[chosen].reshape(-1, top), inputs[chosen].reshape(-1, top)


def _sorted(values: Array, inputs: Array, *, largest: bool) -> tuple[Array, Array]:
    order = np.argsort(_keys(values, largest=largest), axis=1, kind="stable")
    return (
        np.take_along_axis(values, order, axis=1),
        np.take_along_axis(inputs, order, axis=1),
    )
