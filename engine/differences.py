"""Measures the differences between results and expected results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from typing_extensions import override

from engine.array_files import is_numeric
from engine.text import format_complex, format_count, format_shape
from engine.values import flatten_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.values import Array, Value

__all__ = ["TOLERANCE", "Difference", "Spot", "agrees", "difference"]

TOLERANCE: Final = 1e-3

_CHUNK: Final = 1 << 16  # elements; with their temporaries they fit a second-level cache
# Rounding of sums in float32, relative to the largest number.
_FINEST: Final = 1e-6
# Times the smallest normal number: smaller differences do not count. Libraries flush subnormal
# numbers to 0, also in intermediate results.
_FLUSHED: Final = 128.0


@dataclass(frozen=True, slots=True)
class Spot:
    """An element of one of the results.

    Attributes
    ----------
    member : int
        Index of the array, with nested tuples flattened.
    place : tuple of int
        Index in it.
    found, expected : float or complex
        The elements there.
    """

    member: int = 0
    place: tuple[int, ...] = ()
    found: complex = 0.0
    expected: complex = 0.0

    @override
    def __str__(self) -> str:
        member = f"of result {self.member} " if self.member else ""
        place = f"at {list(self.place)}" if self.place else "in its one number"
        found, expected = format_complex(self.found, 9), format_complex(self.expected, 9)
        return f"{member}{place}: {found}, not {expected}"


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference between results and expected results.

    Attributes
    ----------
    largest : float
        Largest absolute difference of two elements; inf if one is NaN or infinite and the other
        is not the same.
    relative : float
        `largest`, relative to the largest of the expected numbers.
    beyond : int
        Number of elements that differ by more than the tolerance.
    count : int
        Number of elements.
    member : int
        Index of the array with the largest difference, with nested tuples flattened.
    place : tuple of int
        Index of the element with the largest difference; empty for no difference.
    found, expected : float or complex
        The elements there.
    unlike : str
        Why the two cannot be compared, e.g. different shapes; ``""`` if they can.
    of_element : float
        Largest difference of two elements, relative to the larger of the two: 0.83 where one
        is six times the other; inf as for `largest`. Where elements are sums, those that
        cancel to less than the tolerance allows do not count.
    element : Spot
        Its position.
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
    of_element: float = 0.0
    element: Spot = Spot()

    @property
    def agrees(self) -> bool:
        """Whether nothing differs by more than the tolerance."""
        return not self.beyond and not self.unlike

    @property
    def where(self) -> str:
        """The largest difference as text; ``""`` for none."""
        return str(self._spot) if self.largest else ""

    @property
    def _spot(self) -> Spot:
        return Spot(self.member, self.place, self.found, self.expected)

    @property
    def words(self) -> str:
        """The positions of the largest differences as text; ``""`` for none."""
        if not self.of_element or self.element == self._spot:
            return self.where
        return f"{self.where}; of the element {self.element}"


def agrees(
    found: Sequence[Value],
    expected: Sequence[Value],
    tolerance: float = TOLERANCE,
    *,
    elementwise: bool = False,
) -> bool:
    """Return whether results equal the expected ones up to rounding; see `difference`."""
    return difference(found, expected, tolerance, elementwise=elementwise).agrees


def difference(
    found: Sequence[Value],
    expected: Sequence[Value],
    tolerance: float = TOLERANCE,
    *,
    elementwise: bool = False,
) -> Difference:
    """Compare results with the expected ones.

    Parameters
    ----------
    found, expected : sequence of Value
        One per output.
    tolerance : float
        Relative; absolute if the largest number is below 1. Integers and other values must be
        equal.
    elementwise : bool
        Whether each element is computed by itself, so that the tolerance is relative to it
        alone. Elements that are sums may cancel to anything.

    Returns
    -------
    Difference
        Of the array with the largest difference.
    """
    mine, theirs = list(flatten_value(tuple(found))), list(flatten_value(tuple(expected)))
    if len(mine) != len(theirs):
        return Difference(
            unlike=f"{format_count(len(mine), 'result')} instead of {len(theirs)}"
        )
    worst = apart = Difference()
    count = beyond = 0
    for member, (one, other) in enumerate(zip(mine, theirs, strict=True)):
        unlike = _unlike(one, other)
        if unlike:
            return Difference(member=member, unlike=unlike)
        if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
            new = _of_arrays(one, other, tolerance, member, elementwise=elementwise)
            if new.unlike:
                return new
            count, beyond = count + new.count, beyond + new.beyond
            if (new.beyond > 0, new.largest) > (worst.beyond > 0, worst.largest):
                worst = new
            apart = max(apart, new, key=lambda each: each.of_element)
    return replace(
        worst, beyond=beyond, count=count, of_element=apart.of_element, element=apart.element
    )


def _unlike(found: Value, expected: Value) -> str:
    if not isinstance(found, np.ndarray) or not isinstance(expected, np.ndarray):
        mine, theirs = _word(found), _word(expected)
        return "" if mine == theirs else f"{mine} instead of {theirs}"
    if found.shape != expected.shape:
        return f"shape {format_shape(found.shape)} instead of {format_shape(expected.shape)}"
    if found.dtype != expected.dtype:
        return f"{found.dtype} instead of {expected.dtype}"
    return ""


def _word(value: Value) -> str:
    return "a tensor" if isinstance(value, np.ndarray) else repr(value)


class _Allowed:
    """Return the allowed differences of elements.

    Parameters and meaning are as for `difference`.
    """

    def __init__(self, expected: Array, tolerance: float, *, elementwise: bool) -> None:
        rounded = expected.dtype.kind in "fc"
        self.scale = _largest_number(expected)
        self._elementwise = elementwise and rounded
        self._relative = tolerance if rounded else 0.0
        self._flushed = _FLUSHED * float(np.finfo(expected.dtype).tiny) if rounded else 0.0
        self._absolute = self._flushed
        if rounded and not elementwise:
            self._absolute = max(tolerance * min(1.0, self.scale), _FINEST * self.scale)

    def beyond(self, distance: Array, found: Array, expected: Array) -> int:
        """Count the differences that are too large, for numbers of these sizes."""
        sizes = np.maximum(found, expected) if self._elementwise else expected
        allowed = self._absolute + self._relative * sizes
        return int(np.count_nonzero((distance > allowed) | np.isinf(distance)))

    def of_elements(self, distance: Array, found: Array, expected: Array) -> Array:
        """Return differences relative to the larger of two numbers; 0 if they do not count."""
        larger = np.maximum(found, expected)
        small = distance <= self._flushed if self._elementwise else larger <= self._absolute
        counts = (distance > 0) & ~small & np.isfinite(distance)
        result = np.divide(distance, larger, out=np.zeros_like(distance), where=counts)
        result[np.isinf(distance)] = np.inf
        return result


def _of_arrays(
    found: Array, expected: Array, tolerance: float, member: int, *, elementwise: bool
) -> Difference:
    if not (is_numeric(found) and is_numeric(expected)):
        unlike = "" if np.array_equal(found, expected) else "other contents"
        return Difference(count=found.size, member=member, unlike=unlike)
    allowed = _Allowed(expected, tolerance, elementwise=elementwise)
    largest, where, beyond = 0.0, -1, 0
    of_element, element = 0.0, -1
    for start, mine, theirs in _chunks(found, expected):
        distance = _distance(mine, theirs)
        top = int(distance.argmax())
        if not distance[top]:
            continue
        if distance[top] > largest:
            largest, where = float(distance[top]), start + top
        sizes = _sizes(mine), _sizes(theirs)
        beyond += allowed.beyond(distance, *sizes)
        relative = allowed.of_elements(distance, *sizes)
        top = int(relative.argmax())
        if relative[top] > of_element:
            of_element, element = float(relative[top]), start + top
    if where < 0:
        return Difference(count=found.size, member=member)
    spot = _spot(found, expected, member, where)
    return Difference(
        largest, largest / allowed.scale if allowed.scale else np.inf, beyond, found.size,
        member, spot.place, spot.found, spot.expected, of_element=of_element,
        element=_spot(found, expected, member, element) if element >= 0 else Spot(),
    )  # fmt: skip


def _spot(found: Array, expected: Array, member: int, index: int) -> Spot:
    place = tuple(int(each) for each in np.unravel_index(index, found.shape))
    return Spot(member, place, found[place].item(), expected[place].item())


def _chunks(found: Array, expected: Array) -> Iterator[tuple[int, Array, Array]]:
    """Yield flat chunks of both arrays, with the index of their start."""
    mine, theirs = found.reshape(-1), expected.reshape(-1)
    for start in range(0, mine.size, _CHUNK):
        piece = slice(start, start + _CHUNK)
        yield start, mine[piece], theirs[piece]


def _distance(found: Array, expected: Array) -> Array:
    """Return absolute differences; inf where NaN or an infinity differs."""
    work = np.complex128 if found.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        distance: Array = np.abs(found.astype(work) - expected.astype(work))
    same = (found == expected) | (np.isnan(found) & np.isnan(expected))
    distance[same] = 0.0
    distance[np.isnan(distance)] = np.inf
    distance[~same & (distance == 0)] = 1.0  # integers that float64 cannot distinguish
    return distance


def _largest_number(array: Array) -> float:
    largest = 0.0
    for _, piece, _ in _chunks(array, array):
        size = _sizes(piece)
        largest = max(largest, float(size.max(where=np.isfinite(size), initial=0.0)))
    return largest if largest or not array.size or np.isfinite(array).any() else 1.0


def _sizes(array: Array) -> Array:
    """Return absolute values in float64, also of bools."""
    return np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64))
