"""Finds a reference's tensor by a fingerprint, without comparing all elements.

A fingerprint consists of the elements at fixed positions. The positions depend only on the
number of elements, so a fingerprint holds for every shape.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
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
_FILL: Final = 1e3  # least size of what masks are filled with, or add
_APART: Final = 1e2  # times that it is larger than all other elements
_FILLED: Final = 1e-2  # of it, what is added to it at most


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


class _Group:
    """The fingerprints of the tensors with the same number of elements."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.samples: list[Array] = []
        self.digests: dict[str, bytes] = {}
        self.copies: dict[bytes, list[str]] = {}

    def add(self, key: str, row: Array) -> None:
        self.keys.append(key)
        self.samples.append(row)
        # Zeros and NaNs have several patterns of bits.
        pattern = np.where(np.isnan(row), np.nan, row + 0.0)
        digest = self.digests[key] = hashlib.sha256(pattern.data).digest()
        self.copies.setdefault(digest, []).append(key)

    @cached_property
    def rows(self) -> _Rows:
        """The fingerprints as a matrix, once all are there."""
        return _Rows(np.stack(self.samples))


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
        rows, norms, filled = self._finite, self._sizes, _filled(own)
        if filled is not None:
            most = _FILLED * float(np.abs(own).max())
            others = (np.abs(rows - own)[:, filled] > most).any(axis=1)
            unlike = others if unlike is None else others | unlike
            rows, own = (np.where(filled, 0.0, each) for each in (rows, own))
            norms = _norms(rows)
        apart = _norms(rows - own)
        sizes = np.maximum(norms, _norms(own[np.newaxis]))
        relative: Array = np.divide(apart, sizes, out=np.zeros_like(apart), where=sizes > 0)
        relative[np.isnan(relative)] = np.inf
        if unlike is not None:
            relative[unlike] = np.inf
        return relative


def _filled(own: Array) -> Array | None:
    """Return which elements are what a mask is filled with or adds; None for no mask.

    Such large numbers would hide that all others differ.
    """
    low = float(own.min(initial=0.0))
    if low > -_FILL:
        return None
    filled = own < low / 2
    rest = float(np.abs(own).max(initial=0.0, where=~filled))
    return filled if rest * _APART <= -low and not filled.all() else None


def _norms(rows: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(dot_rows(rows, rows)))


class FingerprintIndex:
    """The fingerprints of a reference's tensors.

    Names tell most tensors of some references. So those of files, which tell their shapes
    without being read, are read when a fingerprint of their size is first looked at.

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
        self._reference = reference
        self._keys: dict[int, list[str]] = {}  # by number of elements
        self._samples: dict[str, Array] = {}  # of tensors that had to be read
        self._groups: dict[int, _Group] = {}
        self._failures: list[EngineError] = []
        for tensor in reference.tensors:
            try:
                array = reference.read(tensor.key) if tensor.describe is None else None
                metadata = array if array is not None else reference.describe(tensor.key)
            except EngineError as exc:
                self.unreadable[tensor.key] = str(exc)
                self._failures.append(exc)
                continue
            if not is_numeric(metadata):
                self.unreadable[tensor.key] = f"it holds {metadata.dtype}, not numbers"
                continue
            self.shapes[tensor.key] = metadata.shape
            self._keys.setdefault(metadata.size, []).append(tensor.key)
            if array is not None:
                self._samples[tensor.key] = sample(array, positions_of(array.size))

    def require_any(self) -> None:
        """Check that a tensor can be read.

        Raises
        ------
        EngineError
            If none can, as when the files are gone: what the first one met.
        """
        if self._failures and not self.shapes:
            raise self._failures[0]

    def _group(self, size: int) -> _Group:
        """Return the fingerprints of the tensors with a number of elements."""
        group = self._groups.get(size)
        if group is None:
            group = self._groups[size] = _Group()
            for key in self._keys.get(size, ()):
                row = self._samples.pop(key, None)
                if row is None:
                    try:
                        row = sample(self._reference.read(key), positions_of(size))
                    except EngineError as exc:  # the file has changed, or its disk fails
                        self.unreadable[key] = str(exc)
                        continue
                group.add(key, row)
        return group

    def of_size(self, size: int) -> tuple[str, ...]:
        """Return the tensors with a number of elements, in order."""
        return tuple(self._keys.get(size, ()))

    def equal(self, one: str, other: str) -> bool:
        """Whether two tensors have the same fingerprint."""
        return self._digest(one) == self._digest(other)

    def _digest(self, key: str) -> bytes:
        group = self._group(math.prod(self.shapes[key]))
        return group.digests.get(key, key.encode())  # what cannot be read is like no other

    def copies(self, key: str) -> list[str]:
        """Return a tensor and those of its size with its fingerprint, in order."""
        group = self._group(math.prod(self.shapes[key]))
        return group.copies.get(self._digest(key), [key])

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
        if not is_numeric(array):
            return []
        group = self._group(array.size)
        if not group.keys:
            return []
        flat = self._within(array, group, None, limit, excluded)
        if flat:
            return flat
        found: list[Similar] = []
        for shape in dict.fromkeys(self.shapes[key] for key in group.keys):
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
        distances = group.rows.distances(own)
        found = []
        for place in np.flatnonzero(distances <= limit):
            key = group.keys[place]
            shape = self.shapes[key]
            if key in excluded or (other is not None and shape != other[0]):
                continue
            layout = other[1] if other is not None else _same(array.shape, shape)
            samples = group.samples[place], own
            found.append(Similar(key, layout, float(distances[place]), samples))
        return sorted(found, key=lambda each: each.distance)


def _same(ours: tuple[int, ...], theirs: tuple[int, ...]) -> Layout:
    return next(layout for layout in layouts_between(ours, theirs) if not layout.axes)
