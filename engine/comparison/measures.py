"""Measures the distance of a tensor from the reference's; holds the tolerances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.values import Array

__all__ = ["Measures", "Tolerances", "measure", "relative_distance"]

_CHUNK: Final = 1 << 16  # elements; with their temporaries they fit a second-level cache
_PERMILLE: Final = 1e-3
# Relative to the largest element: smaller ones are sums that cancelled to mere rounding.
_FLOOR: Final = 1e-5


@dataclass(frozen=True, slots=True)
class Tolerances:
    """Distances up to which two tensors are the same.

    Attributes
    ----------
    float32, float16 : float
        Largest difference relative to the reference's largest element; by the dtype of the
        reference. float64 counts as float32: the result is rounded to it.
    cosine, rmse : float
        For 8-bit integers: least cosine, and largest root of the mean square relative to the
        reference's largest element.
    """

    float32: float = 1e-4
    float16: float = 1e-2
    cosine: float = 0.99
    rmse: float = 0.7

    def of(self, array: Array) -> float:
        """Return the largest relative difference to a reference; 0 for integers."""
        if array.dtype.kind not in "fc":
            return 0.0
        return self.float16 if array.dtype.itemsize == 2 else self.float32


@dataclass(frozen=True, slots=True)
class Measures:
    """The distance of a tensor from the reference's.

    Attributes
    ----------
    count : int
        Number of elements.
    max_abs : float
        Largest absolute difference; inf if one is NaN or infinite and the other is not the
        same.
    relative : float
        `max_abs`, relative to the largest finite element of the reference.
    max_rel : float
        Largest difference relative to the reference's element. Elements below 1e-5 of the
        largest one count as 1e-5 of it.
    nmse : float
        Sum of the squared differences, relative to the sum of the reference's squares.
    cosine : float or None
        None if either tensor is all zeros.
    within_permille : float
        Share of the elements within a thousandth of the reference's, relative as in `max_rel`.
    non_finite : int
        Number of elements that are NaN or infinite in one and not the same in the other.
    worst_index : tuple of int
        First index with `max_abs`; empty for no difference.
    mae, rmse : float
        Mean of the absolute differences, and root of the mean of their squares. Where `mae` is
        far below `rmse`, few elements differ; where both are near, there is a common bias.
    """

    count: int = 0
    max_abs: float = 0.0
    relative: float = 0.0
    max_rel: float = 0.0
    nmse: float = 0.0
    cosine: float | None = None
    within_permille: float = 1.0
    non_finite: int = 0
    worst_index: tuple[int, ...] = ()
    mae: float = 0.0
    rmse: float = 0.0

    @property
    def snr_db(self) -> float:
        """Signal-to-noise ratio in dB; inf for equal tensors."""
        return -10 * math.log10(self.nmse) if self.nmse > 0 else math.inf


def measure(found: Array, expected: Array) -> Measures:
    """Measure the distance of a tensor from the reference's.

    Parameters
    ----------
    found, expected : ndarray of the same shape, numbers of any dtype
        Not copied as a whole.
    """
    sums = _Sums(expected)
    for start, mine, theirs in _chunks(found, expected):
        sums.add(start, mine, theirs)
    return sums.measures(found.shape)


def relative_distance(found: Array, expected: Array) -> float:
    """Return only `Measures.relative`, which is quicker."""
    scale = _scale(expected)
    largest = 0.0
    for _, mine, theirs in _chunks(found, expected):
        with np.errstate(invalid="ignore", over="ignore"):
            top = float(np.abs(mine - theirs).max())
        if not math.isfinite(top):
            distance, wrong = _distance(mine, theirs)
            if wrong:
                return math.inf
            top = float(distance.max())
        largest = max(largest, top)
    return _relative(largest, scale)


class _Sums:
    def __init__(self, expected: Array) -> None:
        self._scale = _scale(expected)
        self._floor = _FLOOR * self._scale
        self._count = self._wrong = self._within = 0
        self._largest, self._where, self._max_rel = 0.0, -1, 0.0
        self._absolute = self._square = self._mine = self._theirs = self._dot = 0.0

    def add(self, start: int, mine: Array, theirs: Array) -> None:
        distance, wrong = _distance(mine, theirs)
        self._count += distance.size
        top = int(distance.argmax())
        if distance[top] > self._largest:
            self._largest, self._where = float(distance[top]), start + top
        square = _dot(theirs, theirs)
        if not np.isfinite(distance[top]) or not math.isfinite(square):
            mine, theirs = _finite(mine), _finite(theirs)
            square = _dot(theirs, theirs)
        if wrong:
            self._wrong += wrong
            distance = np.where(np.isinf(distance), 0.0, distance)
        self._mine += _dot(mine, mine)
        self._theirs += square
        self._dot += _dot(mine, theirs)
        self._absolute += float(distance.sum())
        self._square += _dot(distance, distance)
        sizes = np.abs(theirs)
        np.maximum(sizes, self._floor, out=sizes)
        if self._floor:
            np.divide(distance, sizes, out=sizes)
            self._max_rel = max(self._max_rel, float(sizes.max()))
            self._within += int(np.count_nonzero(sizes <= _PERMILLE)) - wrong
        else:
            self._within += int(np.count_nonzero(distance == 0)) - wrong

    def measures(self, shape: tuple[int, ...]) -> Measures:
        count = self._count
        if not count:
            return Measures()
        norm = math.sqrt(self._mine) * math.sqrt(self._theirs)
        relative = _relative(self._largest, self._scale)
        return Measures(
            count=count,
            max_abs=self._largest,
            relative=relative,
            max_rel=math.inf if self._wrong else self._max_rel if self._floor else relative,
            nmse=self._square / self._theirs if self._theirs else float(self._square > 0),
            cosine=max(-1.0, min(1.0, self._dot / norm)) if norm else None,
            within_permille=max(0, self._within) / count,
            non_finite=self._wrong,
            worst_index=_place(self._where, shape),
            mae=self._absolute / count,
            rmse=math.sqrt(self._square / count),
        )


def _relative(largest: float, scale: float) -> float:
    if not largest:
        return 0.0
    return largest / scale if scale else max(largest, 1.0)


def _place(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    if index < 0:
        return ()
    return tuple(int(each) for each in np.unravel_index(index, shape))


def _dot(one: Array, other: Array) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        # Not by BLAS: its threads spin after every product.
        return float(np.einsum("i,i->", one, other.conj()).real)


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)


def _distance(mine: Array, theirs: Array) -> tuple[Array, int]:
    """Return absolute differences, and the number of elements that are finite in only one."""
    with np.errstate(invalid="ignore", over="ignore"):
        distance: Array = np.abs(mine - theirs)
    top = distance.max(initial=0.0)
    if np.isfinite(top):
        return distance, 0
    same = (mine == theirs) | (np.isnan(mine) & np.isnan(theirs))
    distance[same] = 0.0
    wrong = ~np.isfinite(distance)
    distance[wrong] = np.inf
    return distance, int(np.count_nonzero(wrong))


def _chunks(found: Array, expected: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield flat chunks of both in float64 or complex128, with the index of their start."""
    complex_ = "c" in (found.dtype.kind, expected.dtype.kind)
    work = np.complex128 if complex_ else np.float64
    mine, theirs = found.reshape(-1), expected.reshape(-1)
    for start in range(0, mine.size, _CHUNK):
        piece = slice(start, start + _CHUNK)
        yield start, mine[piece].astype(work), theirs[piece].astype(work)


def _scale(expected: Array) -> float:
    """Return the largest absolute value of the finite elements."""
    if not expected.size:
        return 0.0
    if expected.dtype.kind in "fiu":
        low, high = float(expected.min()), float(expected.max())
        if math.isfinite(low) and math.isfinite(high):
            return max(abs(low), abs(high))
    sizes = np.abs(expected.astype(np.complex128 if expected.dtype.kind == "c" else np.float64))
    return float(sizes.max(where=np.isfinite(sizes), initial=0.0))
