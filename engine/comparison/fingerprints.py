"""Finds a reference's tensor by a fingerprint, without comparing all elements.

A fingerprint consists of the elements at fixed positions. The positions depend only on the
number of elements, so a fingerprint holds for every shape.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.comparison.layouts import Layout, layouts_between
from engine.errors import EngineError
from engine.statistics import dot_rows

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
    own[np.isnan(own)] = np.inf  # all equal
    own.sort()
    starts = np.concatenate(([0], np.flatnonzero(own[1:] != own[:-1]) + 1, [own.size]))
    commonest = int((starts[1:] - starts[:-1]).max())
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
    samples : tuple of ndarray
        Both fingerprints, the reference's first.
    """

    key: str
    layout: Layout
    distance: float
    samples: tuple[Array, Array] = field(repr=False, compare=False)

    @property
    def unlike(self) -> float:
        """The distance relative to how much the elements vary; 1 where they do not.

        Tensors around a common value are near, but unlike.
        """
        finite = np.isfinite(self.samples[0]) & np.isfinite(self.samples[1])
        row, own = (each[finite] for each in self.samples)
        if not row.size:
            return 1.0
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.linalg.norm(row - own)
            varies = max(np.linalg.norm(each - each.mean()) for each in (row, own))
        return min(1.0, float(apart / varies)) if 0 < varies < np.inf else 1.0


@dataclass(slots=True)
class _Group:
    """The tensors with the same number of elements."""

    keys: list[str] = field(default_factory=list)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    samples: list[Array] = field(default_factory=list)
    rows: _Rows | None = None

    def distances(self, own: Array) -> Array:
        """Return relative distances; inf where NaN and infinities are at other positions."""
        if self.rows is None:
            self.rows = _Rows(np.stack(self.samples))
        return self.rows.distances(own)


class _Rows:
    """Fingerprints as the rows of a matrix."""

    def __init__(self, rows: Array) -> None:
        self._rows = rows
        others = ~np.isfinite(rows)
        self._special = others if others.any() else None
        self._finite = rows if self._special is None else np.where(others, 0.0, rows)
        self._sizes = _norms(self._finite)

    def distances(self, own: Array) -> Array:
        special = ~np.isfinite(own)
        unlike: Array | None = None
        if self._special is not None or special.any():
            same = (self._rows == own) | (np.isnan(self._rows) & np.isnan(own))
            others = special if self._special is None else special | self._special
            unlike = (others & ~same).any(axis=1)
            own = np.where(special, 0.0, own)
        apart = _norms(self._finite - own)
        sizes = np.maximum(self._sizes, _norms(own[np.newaxis]))
        relative: Array = np.divide(apart, sizes, out=np.zeros_like(apart), where=sizes > 0)
        relative[np.isnan(relative)] = np.inf
        if unlike is not None:
            relative[unlike] = np.inf
        return relative


def _norms(rows: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(dot_rows(rows, rows)))


class FingerprintIndex:
    """The fingerprints of a reference's tensors.

    Parameters
    ----------
    reference : Reference

    Attributes
    ----------
    shapes : dict of str to tuple of int
        Of every tensor that can be read, by key.
    dtypes : dict of str to dtype
        Of these.
    unreadable : dict of str to str
        Why a tensor cannot be compared, by key.
    """

    def __init__(self, reference: Reference) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, np.dtype[np.generic]] = {}
        self.unreadable: dict[str, str] = {}
        self._groups: dict[int, _Group] = {}
        self._digests: dict[str, bytes] = {}
        self._copies: dict[bytes, list[str]] = {}
        for tensor in reference.tensors:
            try:
                array = reference.read(tensor.key)
            except EngineError as exc:
                self.unreadable[tensor.key] = str(exc)
                continue
            if not is_numeric(array):
                self.unreadable[tensor.key] = f"it holds {array.dtype}, not numbers"
                continue
            self._add(tensor.key, array)

    def _add(self, key: str, array: Array) -> None:
        self.shapes[key], self.dtypes[key] = array.shape, array.dtype
        group = self._groups.setdefault(array.size, _Group())
        group.keys.append(key)
        group.shapes.append(array.shape)
        row = sample(array, positions_of(array.size))
        group.samples.append(row)
        # Zeros and NaNs have several patterns of bits.
        pattern = np.where(np.isnan(row), np.nan, row + 0.0)
        digest = self._digests[key] = hashlib.sha256(pattern.data).digest()
        self._copies.setdefault(digest, []).append(key)

    def of_size(self, size: int) -> tuple[str, ...]:
        """Return the tensors with a number of elements, in order."""
        group = self._groups.get(size)
        return tuple(group.keys) if group is not None else ()

    def equal(self, one: str, other: str) -> bool:
        """Whether two tensors have the same fingerprint."""
        return self._digests[one] == self._digests[other]

    def copies(self, key: str) -> list[str]:
        """Return a tensor and those of its size with its fingerprint, in order."""
        size = math.prod(self.shapes[key])
        others = self._copies[self._digests[key]]
        return [each for each in others if math.prod(self.shapes[each]) == size]

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
        distances = group.distances(own)
        found = []
        for place in np.flatnonzero(distances <= limit):
            key, shape = group.keys[place], group.shapes[place]
            if key in excluded or (other is not None and shape != other[0]):
                continue
            layout = other[1] if other is not None else _same(array.shape, shape)
            samples = group.samples[place], own
            found.append(Similar(key, layout, float(distances[place]), samples))
        return sorted(found, key=lambda each: each.distance)


def _same(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Layout:
    return next(layout for layout in layouts_between(ours, theirs) if not layout.axes)
