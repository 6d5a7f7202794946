"""The inputs with the largest and the least values, found while they come."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.datasets.studies import Arrays
    from engine.values import Array

__all__ = ["Ranking", "merge_ranked"]

_SIGNS: Final = (1.0, -1.0)


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
        self._names = names
        self._best = [
            (np.full((rows, top), np.nan), np.full((rows, top), -1, np.int64)) for _ in names
        ]

    def add(self, indices: npt.NDArray[np.int64], values: Array) -> None:
        """Add inputs behind those that came before.

        Parameters
        ----------
        indices : ndarray
            Of the inputs.
        values : ndarray of float64, shape (inputs, rows)
            What is not finite counts as unknown.
        """
        from engine.datasets.compiled import rank

        inputs = np.repeat(indices, values.shape[1]).reshape(values.shape)
        for sign, best in zip(_SIGNS, self._best, strict=True):
            rank(values, inputs, sign, *best)

    def finish(self) -> Arrays:
        """Return values and inputs, ranked; NaN and -1 where there are no more."""
        found: Arrays = {}
        for name, best in zip(self._names, self._best, strict=True):
            found |= {f"{name}_values": best[0], f"{name}_inputs": best[1]}
        return found


def merge_ranked(one: Arrays, other: Arrays, name: str, *, largest: bool) -> Arrays:
    """Merge the ranked inputs of two ranges; those of `one` come first.

    Raises
    ------
    ValueError
        If their shapes differ.
    """
    from engine.datasets.compiled import rank

    names = f"{name}_values", f"{name}_inputs"
    shapes = {arrays[each].shape for arrays in (one, other) for each in names}
    if len(shapes) > 1:  # of a file that is damaged: compiled code would read beyond it
        raise ValueError(f"ranked inputs have the shapes {sorted(shapes)}")
    best = [one[each].copy() for each in names]
    more = [np.ascontiguousarray(other[each].T) for each in names]
    rank(more[0], more[1], _SIGNS[not largest], best[0], best[1])
    return dict(zip(names, best, strict=True))
