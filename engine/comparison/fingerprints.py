"""Finds a reference's tensor by a fingerprint, without comparing all elements.

A fingerprint consists of the elements at fixed positions. The positions depend only on the
number of elements, so a fingerprint holds for every shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.layouts import Layout, layouts_between
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.comparison.references import Reference
    from engine.values import Array

__all__ = ["FingerprintIndex", "Similar", "is_telling", "positions_of", "sample"]

_POSITIONS: Final = 512
_TELLING: Final = 1 / 64  # least share of the elements that differ from the commonest one


@lru_cache(maxsize=1024)
def positions_of(size: int) -> Array:
    """Return the positions of a fingerprint, ascending, for a number of elements."""
    if size <= _POSITIONS:
        return np.arange(size)
    drawn = np.random.default_rng(size).integers(0, size, _POSITIONS)
    return np.unique(drawn)


def sample(array: Array, positions: Array) -> Array:
    """Return elements of a tensor by flat position, as float64; complex ones by magnitude."""
    if array.flags.c_contiguous:
        taken = array.reshape(-1)[positions]
    else:
        taken = array[np.unravel_index(positions, array.shape)]
    taken = np.abs(taken) if taken.dtype.kind == "c" else taken
    return taken.astype(np.float64)


def is_telling(array: Array) -> bool:
    """Whether equal elements tell tensors apart; those of zeros and constants do not.

    Parameters
    ----------
    array : ndarray of numbers
    """
    if not array.size:
        return False
    own = sample(array, positions_of(array.size))
    commonest = int(np.unique(own, return_counts=True)[1].max())
    return own.size - commonest > _TELLING * own.size


@dataclass(frozen=True, slots=True)
class Similar:
    """A reference's tensor with a near fingerprint.

    Attributes
    ----------
    key : str
    layout : Layout
    distance : float
        Of the fingerprints, relative to the larger one; 0 for equal ones.
    unlike : float
        The same, relative to how much the elements vary; 1 where they do not. Tensors around
        a common value are near, but unlike.
    """

    key: str
    layout: Layout
    distance: float
    unlike: float


@dataclass(slots=True)
class _Group:
    """The tensors with the same number of elements."""

    keys: list[str] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    samples: list[Array] = field(default_factory=list)
    matrix: Array | None = None

    def rows(self) -> Array:
        if self.matrix is None:
            self.matrix = np.stack(self.samples)
        return self.matrix


class FingerprintIndex:
    """The fingerprints of a reference's tensors.

    Parameters
    ----------
    reference : Reference

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Of every tensor that can be read, by key.
    unreadable : dict of str to str
        Why a tensor cannot be compared, by key.
    """

    def __init__(self, reference: Reference) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.unreadable: dict[str, str] = {}
        self._groups: dict[int, _Group] = {}
        self._rows: dict[str, Array] = {}
        for tensor in reference.tensors:
            try:
                array = reference.array(tensor.key)
            except EngineError as exc:
                self.unreadable[tensor.key] = str(exc)
                continue
            if not is_numeric(array):
                self.unreadable[tensor.key] = f"it holds {array.dtype}, not numbers"
                continue
            self._add(tensor.key, array)

    def _add(self, key: str, array: Array) -> None:
        self.shapes[key] = array.shape
        group = self._groups.setdefault(array.size, _Group())
        group.keys.append(key)
        group.shapes.append(array.shape)
        row = sample(array, positions_of(array.size))
        group.samples.append(row)
        self._rows[key] = row

    def of_size(self, size: int) -> tuple[str, ...]:
        """Return the tensors with a number of elements, in order."""
        group = self._groups.get(size)
        return tuple(group.keys) if group is not None else ()

    def equal(self, one: str, other: str) -> bool:
        """Whether two tensors have the same fingerprint."""
        return np.array_equal(self._rows[one], self._rows[other], equal_nan=True)

    def similar(
        self, array: Array, limit: float, excluded: Collection[str] = ()
    ) -> list[Similar]:
        """Return the nearest tensors, nearest first.

        Tensors in another layout count only if none is near in the same layout.

        Parameters
        ----------
        array : ndarray
        limit : float
            Largest distance.
        excluded : collection of str
            Keys to leave out.
        """
        group = self._groups.get(array.size)
        if group is None or not is_numeric(array):
            return []
        flat = self._within(array, group, None, limit, excluded)
        if flat:
            return flat
        found: list[Similar] = []
        for shape in dict.fromkeys(group.shapes):
            for layout in layouts_between(array.shape, shape):
                if layout.axes:
                    found += self._within(array, group, (shape, layout), limit, excluded)
        return sorted(found, key=lambda each: each.distance)

    def _within(
        self,
        array: Array,
        group: _Group,
        other: tuple[tuple[int, ...], Layout] | None,
        limit: float,
        excluded: Collection[str],
    ) -> list[Similar]:
        positions = positions_of(array.size)
        if other is not None:
            positions = other[1].sample(array.shape, positions)
        own = sample(array, positions)
        distances = _distances(group.rows(), own)
        found = []
        for place in np.flatnonzero(distances <= limit):
            key, shape = group.keys[place], group.shapes[place]
            if key in excluded or (other is not None and shape != other[0]):
                continue
            layout = other[1] if other is not None else _same(array.shape, shape)
            unlike = _unlike(group.samples[place], own)
            found.append(Similar(key, layout, float(distances[place]), unlike))
        return sorted(found, key=lambda each: each.distance)


def _same(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Layout:
    return next(layout for layout in layouts_between(ours, theirs) if not layout.axes)


def _distances(rows: Array, own: Array) -> Array:
    """Return relative distances; inf where NaN and infinities are at other positions."""
    special = ~np.isfinite(own)
    others = ~np.isfinite(rows)
    unlike = np.zeros(len(rows), bool)
    if special.any() or others.any():
        same = (rows == own) | (np.isnan(rows) & np.isnan(own))
        unlike = ((special | others) & ~same).any(axis=1)
        rows, own = np.where(others, 0.0, rows), np.where(special, 0.0, own)
    with np.errstate(over="ignore"):
        apart = np.linalg.norm(rows - own, axis=1)
        sizes = np.maximum(np.linalg.norm(rows, axis=1), np.linalg.norm(own))
    relative: Array = np.divide(apart, sizes, out=np.zeros_like(apart), where=sizes > 0)
    relative[unlike | np.isnan(relative)] = np.inf
    return relative


def _unlike(row: Array, own: Array) -> float:
    """Return the distance of two fingerprints relative to their variation, at most 1."""
    finite = np.isfinite(row) & np.isfinite(own)
    row, own = row[finite], own[finite]
    if not row.size:
        return 1.0
    with np.errstate(over="ignore", invalid="ignore"):
        apart = np.linalg.norm(row - own)
        varies = max(np.linalg.norm(each - each.mean()) for each in (row, own))
    return min(1.0, float(apart / varies)) if 0 < varies < np.inf else 1.0
