"""Measures the distance of a tensor from the reference's; holds the tolerances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.statistics import Accumulator, Scratch, add_up, statistics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.statistics import TensorStatistics
    from engine.values import Array, ArrayMetadata

__all__ = [
    "Measures",
    "Meter",
    "Tolerances",
    "distances",
    "largest_size",
    "measure",
    "relative_distance",
]

_CHUNK: Final = 1 << 18  # elements; fewer calls outweigh what stays in a near cache
_PERMILLE: Final = 1e-3
# Squares between these neither over- nor underflow in float32, nor do sums of a row.
_NARROW: Final = (1e-15, 1e15)
_ROUNDED: Final = 1 - 2.0**-22  # of the largest difference: what rounding in float32 may hide
# Relative to the largest element: smaller ones are sums that cancelled to mere rounding.
_FLOOR: Final = 1e-5
_FILL: Final = 1e3  # least size of what masks are filled with; and times all other elements


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

    def of(self, array: Array | ArrayMetadata) -> float:
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
        `max_abs`, relative to the largest finite element of the reference. A number below -1000
        that several elements have, a thousand times larger than all others, does not count: it
        is what a mask is filled with.
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
    return Meter().measure(found, expected)[0]


class Meter:
    """Measures tensors one after the other, in the same working memory. Not thread-safe.

    On one thread: a second one waits longer for the interpreter than its chunks take.
    """

    def __init__(self) -> None:
        self._memory = _Memory()

    def measure(
        self, found: Array, expected: Array
    ) -> tuple[Measures, TensorStatistics, TensorStatistics]:
        """Measure the distance of a tensor from the reference's, and describe both.

        Parameters
        ----------
        found, expected : ndarray of the same shape, numbers of any dtype
            Not copied as a whole.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            sums = _Sums(found, expected, self._memory)
            for start, mine, theirs in _chunks(found, expected):
                sums.add(start, mine, theirs)
        return sums.measures(found.shape), *sums.statistics(found, expected)


def relative_distance(found: Array, expected: Array) -> float:
    """Return only `Measures.relative`, which is quicker."""
    largest, rounded = 0.0, []
    for _, mine, theirs in _chunks(found, expected):
        top = _largest_distance(mine, theirs)
        if top == math.inf:
            return math.inf
        if top and mine.dtype == np.float32:
            rounded.append((top, mine, theirs))
        largest = max(largest, top)
    if rounded:
        least, largest = largest * _ROUNDED, 0.0
        for top, mine, theirs in rounded:
            if top >= least:
                largest = max(largest, _exact_distance(mine, theirs, top))
    return _relative(largest, largest_size(expected))


def _largest_distance(mine: Array, theirs: Array) -> float:
    """Return the largest distance in a chunk; of float32 chunks rounded to float32."""
    with np.errstate(invalid="ignore", over="ignore"):
        apart = mine - theirs
        if apart.dtype.kind == "c":
            top = float(np.abs(apart).max())
        else:
            top = max(float(apart.max()), -float(apart.min()))
    if math.isfinite(top):
        return top
    distance, _ = distances(*_doubled(mine, theirs))
    return float(distance.max())


def _exact_distance(mine: Array, theirs: Array, top: float) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return _exact_top(mine, theirs, np.abs(mine - theirs), top)[0]


def _exact_top(mine: Array, theirs: Array, apart: Array, top: float) -> tuple[float, int]:
    """Return the largest distance of float32 chunks in float64, and where it is first.

    Parameters
    ----------
    apart : ndarray of float32
        Rounded distances; any of those near the largest one may be the true largest.
    top : float
        Their maximum.
    """
    places = np.flatnonzero(apart >= np.float32(top * _ROUNDED))
    exact = np.abs(mine[places].astype(np.float64) - theirs[places])
    first = int(exact.argmax())
    return float(exact[first]), int(places[first])


class _Memory:
    """Memory for chunks of float32; allocating it for each takes as long as the sums."""

    def __init__(self) -> None:
        self.scratch = Scratch()
        self._arrays = np.empty((2, 0), np.float32)

    def arrays(self, size: int) -> Array:
        """Return two arrays of shape (size,), which the next call gives again."""
        if self._arrays.shape[1] < size:
            self._arrays = np.empty((2, size), np.float32)
        return self._arrays[:, :size]


class _Sums:
    """Adds up what the measures need, chunk by chunk.

    Parameters
    ----------
    found, expected : ndarray
        All elements, for what must be known before the first chunk.
    memory : _Memory
    """

    def __init__(self, found: Array, expected: Array, memory: _Memory) -> None:
        self._memory = memory
        self._narrow = found.dtype == expected.dtype == np.float32
        self._described = tuple(Accumulator(scratch=memory.scratch) for _ in range(2))
        self._squares: list[float] = []  # of the reference's chunks
        if self._narrow:
            theirs = self._described[1]
            self._squares = [theirs.add(chunk) for _, _, chunk in _chunks(found, expected)]
            scale = max(-theirs.low, theirs.high) if theirs.finite else 0.0
            self._scale = _without_fill(expected, theirs.low, scale)
        else:
            self._scale = largest_size(expected)
        self._floor = _FLOOR * self._scale
        self._count = self._wrong = self._within = 0
        self._largest, self._where, self._max_rel = 0.0, -1, 0.0
        self._absolute = self._square = self._mine = self._theirs = self._dot = 0.0

    def add(self, start: int, mine: Array, theirs: Array) -> None:
        self._count += mine.size
        if not self._narrow or not self._add_narrow(start, mine, theirs):
            self._add_wide(start, *_doubled(mine, theirs))

    def _add_narrow(self, start: int, mine: Array, theirs: Array) -> bool:
        """Add a chunk of float32 without copies in float64, if its squares fit float32."""
        own, other = self._described[0].add(mine), self._squares[start // _CHUNK]
        apart, room = self._memory.arrays(mine.size)
        np.subtract(mine, theirs, out=apart)
        top = float(np.maximum.reduce(np.abs(apart, out=apart)))
        low, high = _NARROW
        # Nothing is larger than the scale and the largest difference.
        if not (
            (top == 0 or low < top < high) and (self._scale == 0 or low < self._scale < high)
        ):
            return False
        total, square = add_up(apart) if top else (0.0, 0.0)
        self._mine += own
        self._theirs += other
        self._dot += (own + other - square) / 2
        self._square += square
        if not top:
            self._within += mine.size
            return True
        if top * (1 + 2.0**-22) >= self._largest:
            exact, place = _exact_top(mine, theirs, apart, top)
            if exact > self._largest:
                self._largest, self._where = exact, start + place
        self._absolute += total
        # Behind a ReLU they are their own sizes.
        sizes = theirs if self._described[1].low >= 0 else np.abs(theirs, out=room)
        self._add_relative(apart, sizes, room)
        return True

    def _add_wide(self, start: int, mine: Array, theirs: Array) -> None:
        distance, wrong = distances(mine, theirs)
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
        self._within -= wrong
        sizes = np.abs(theirs)
        self._add_relative(distance, sizes, sizes)

    def _add_relative(self, distance: Array, sizes: Array, room: Array) -> None:
        """Add what is relative to each element; `room` takes the quotients."""
        if self._floor:
            # np.maximum of an array and a number takes four times as long.
            np.clip(sizes, self._floor, np.inf, out=room)
            np.divide(distance, room, out=room)
            self._max_rel = max(self._max_rel, float(np.maximum.reduce(room)))
            self._within += int(np.count_nonzero(room <= _PERMILLE))
        else:
            self._within += int(np.count_nonzero(distance == 0))

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

    def statistics(
        self, found: Array, expected: Array
    ) -> tuple[TensorStatistics, TensorStatistics]:
        """Return the statistics of both tensors, whose chunks were added."""
        if not self._narrow:
            return statistics(found, threads=1), statistics(expected, threads=1)
        one, other = self._described
        return one.statistics(found), other.statistics(expected)


def _relative(largest: float, scale: float) -> float:
    if not largest:
        return 0.0
    return largest / scale if scale else max(largest, 1.0)


def _place(index: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    if index < 0:
        return ()
    return tuple(int(each) for each in np.unravel_index(index, shape))


def _dot(one: Array, other: Array) -> float:
    # Not by BLAS: its threads spin after every product.
    return float(np.einsum("i,i->", one, other.conj()).real)


def _finite(values: Array) -> Array:
    return np.where(np.isfinite(values), values, 0.0)


def distances(mine: Array, theirs: Array) -> tuple[Array, int]:
    """Return how far elements are from the reference's.

    Parameters
    ----------
    mine, theirs : ndarray of the same shape, float64 or complex128

    Returns
    -------
    ndarray of that shape, float64
        Absolute differences: 0 where both are NaN or the same infinity, inf where one is NaN or
        infinite and the other is not the same.
    int
        Number of these infinities.
    """
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
    """Yield flat chunks of both, with the index of their start.

    They are float32 if both tensors are, else float64 or complex128.
    """
    mine, theirs = found.reshape(-1), expected.reshape(-1)
    narrow = mine.dtype == theirs.dtype == np.float32
    for start in range(0, mine.size, _CHUNK):
        piece = slice(start, start + _CHUNK)
        chunks = mine[piece], theirs[piece]
        yield (start, *(chunks if narrow else _doubled(*chunks)))


def _doubled(mine: Array, theirs: Array) -> tuple[Array, Array]:
    """Convert to float64 or complex128."""
    complex_ = "c" in (mine.dtype.kind, theirs.dtype.kind)
    work = np.complex128 if complex_ else np.float64
    return mine.astype(work, copy=False), theirs.astype(work, copy=False)


def largest_size(expected: Array) -> float:
    """Return the number that `Measures.relative` is relative to."""
    if not expected.size:
        return 0.0
    if expected.dtype.kind in "fiu":
        low, high = float(expected.min()), float(expected.max())
        if math.isfinite(low) and math.isfinite(high):
            return _without_fill(expected, low, max(abs(low), abs(high)))
    sizes = np.abs(expected.astype(np.complex128 if expected.dtype.kind == "c" else np.float64))
    return float(sizes.max(where=np.isfinite(sizes), initial=0.0))


def _without_fill(expected: Array, low: float, scale: float) -> float:
    """Return the largest absolute value, without what a mask is filled with."""
    if low > -_FILL or scale != -low:
        return scale
    others = expected[expected != expected.dtype.type(low)]
    if not others.size or expected.size - others.size < 2:
        return scale
    rest = max(abs(float(others.min())), abs(float(others.max())))
    return rest if 0 < rest <= scale / _FILL else scale
