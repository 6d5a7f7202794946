"""How far results are from those that were expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.array_files import is_numeric
from engine.errors import spell_shape
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.values import Array, Value

__all__ = ["TOLERANCE", "Difference", "agrees", "difference"]

TOLERANCE: Final = 1e-3

_CHUNK: Final = 1 << 16  # elements; with their temporaries they fit a second-level cache
# float32 cannot add up more finely, relative to the largest number.
_FINEST: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Difference:
    """What is different between results and expected ones.

    Attributes
    ----------
    largest : float
        Largest absolute difference of two elements; inf where one is NaN or infinite and the
        other is not the same.
    relative : float
        `largest`, relative to the largest of the expected numbers.
    beyond : int
        Number of elements that differ by more than the tolerance.
    count : int
        Number of elements.
    member : int
        Which of the arrays has the largest difference, nested tuples taken apart.
    place : tuple of int
        Index of the element with the largest difference; empty where nothing differs.
    found, expected : float or complex
        The elements there.
    unlike : str
        What makes the two incomparable, e.g. another shape; ``""`` for nothing.
    """

    largest: float = 0.0
    relative: float = 0.0
    beyond: int = 0
    count: int = 0
    member: int = 0
    place: tuple[int, ...] = ()
    found: complex = 0.0
    expected: complex = 0.0
    unlike: str = ""

    @property
    def agrees(self) -> bool:
        """Whether nothing differs by more than the tolerance."""
        return not self.beyond and not self.unlike

    @property
    def where(self) -> str:
        """The largest difference in words; ``""`` where there is none."""
        if not self.largest:
            return ""
        member = f"of result {self.member} " if self.member else ""
        place = f"at {list(self.place)}" if self.place else "in its one number"
        return f"{member}{place}: {self.found:.9g}, not {self.expected:.9g}"


def agrees(
    found: Sequence[Value], expected: Sequence[Value], tolerance: float = TOLERANCE
) -> bool:
    """Whether results are the expected ones, up to rounding; see `difference`."""
    return difference(found, expected, tolerance).agrees


def difference(
    found: Sequence[Value], expected: Sequence[Value], tolerance: float = TOLERANCE
) -> Difference:
    """Compare results with the expected ones.

    Parameters
    ----------
    found, expected : sequence of Value
        One per output.
    tolerance : float
        Relative, and absolute beside a largest number of 1 or more. Integers and other
        values must be equal.

    Returns
    -------
    Difference
        Of the array where it is largest.
    """
    mine, theirs = list(flatten_value(tuple(found))), list(flatten_value(tuple(expected)))
    if len(mine) != len(theirs):
        return Difference(unlike=f"{len(mine)} results instead of {len(theirs)}")
    worst = Difference()
    count = beyond = 0
    for member, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        unlike = _unlike(one, other)
        if unlike:
            return Difference(member=member, unlike=unlike)
        if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
            new = _of_arrays(one, other, tolerance, member)
            if new.unlike:
                return new
            count, beyond = count + new.count, beyond + new.beyond
            if (new.beyond > 0, new.largest) > (worst.beyond > 0, worst.largest):
                worst = new
    return Difference(
        worst.largest, worst.relative, beyond, count, worst.member, worst.place, worst.found,
        worst.expected,
    )  # fmt: skip


def _unlike(found: Value, expected: Value) -> str:
    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
        mine, theirs = _word(found), _word(expected)
        return "" if mine == theirs else f"{mine} instead of {theirs}"
    if found.shape != expected.shape:
        return f"shape {spell_shape(found.shape)} instead of {spell_shape(expected.shape)}"
    if found.dtype != expected.dtype:
        return f"{found.dtype} instead of {expected.dtype}"
    return ""


def _word(value: Value) -> str:
    return "a tensor" if isinstance(value, np.ndarray) else repr(value)


def _of_arrays(found: Array, expected: Array, tolerance: float, member: int) -> Difference:
    if not (is_numeric(found) and is_numeric(expected)):
        unlike = "" if np.array_equal(found, expected) else "other contents"
        return Difference(count=found.size, member=member, unlike=unlike)
    scale = _largest_number(expected)
    exact = expected.dtype.kind not in "fc"
    absolute = 0.0 if exact else max(tolerance * min(1.0, scale), _FINEST * scale)
    largest, where, beyond = 0.0, -1, 0
    for start, mine, theirs in _chunks(found, expected):
        distance = _distance(mine, theirs)
        top = int(distance.argmax())
        if not distance[top]:
            continue
        if distance[top] > largest:
            largest, where = float(distance[top]), start + top
        allowed = absolute if exact else absolute + tolerance * _sizes(theirs)
        beyond += int(np.count_nonzero((distance > allowed) | np.isinf(distance)))
    if where < 0:
        return Difference(count=found.size, member=member)
    place = tuple(int(index) for index in np.unravel_index(where, found.shape))
    return Difference(
        largest, largest / scale if scale else np.inf, beyond, found.size, member, place,
        found[place].item(), expected[place].item(),
    )  # fmt: skip


def _chunks(found: Array, expected: Array) -> Iterator[tuple[int, Array, Array]]:
    """Flat pieces of both, with the index that they begin at."""
    mine, theirs = found.reshape(-1), expected.reshape(-1)
    for start in range(0, mine.size, _CHUNK):
        piece = slice(start, start + _CHUNK)
        yield start, mine[piece], theirs[piece]


def _distance(found: Array, expected: Array) -> Array:
    """Absolute differences; inf where NaN or an infinity is not the same on both sides."""
    work = np.complex128 if found.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        distance: Array = np.abs(found.astype(work) - expected.astype(work))
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    distance[same] = 0.0
    distance[np.isnan(distance)] = np.inf
    distance[~same & (distance == 0)] = 1.0  # integers that no double tells apart
    return distance


def _largest_number(array: Array) -> float:
    largest = 0.0
    for _, piece, _ in _chunks(array, array):
        size = _sizes(piece)
        largest = max(largest, float(size.max(where=np.isfinite(size), initial=0.0)))
    return largest if largest or not array.size or np.isfinite(array).any() else 1.0


def _sizes(array: Array) -> Array:
    """Absolute values in double precision, of bools too."""
    return np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
