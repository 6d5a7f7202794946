"""Reads indices that people type, and writes regions as text. No Qt."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from engine.text import format_count, format_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.values import Array

__all__ = ["MOST_COPIED", "Region", "array_text", "csv_text", "find_label", "parse_place"]

MOST_COPIED: Final = 1 << 16
"""Numbers that are copied as text."""
_SEPARATORS: Final = re.compile(r"\s*,\s*|\s+")
_ENTRY: Final = re.compile(r"([-+]?\d{1,18})|([-+]?\d{1,18})?:([-+]?\d{1,18})?")

Place: TypeAlias = "int | slice"


@dataclass(frozen=True, slots=True)
class Region:
    """A rectangle of a picture.

    Attributes
    ----------
    top, left : int
        First row and column.
    bottom, right : int
        One past the last ones; larger than `top` and `left`.
    """

    top: int
    left: int
    bottom: int
    right: int

    @property
    def plane(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.bottom - self.top, self.right - self.left

    @property
    def slices(self) -> tuple[slice, slice]:
        """Index into a picture of shape (H, W)."""
        return slice(self.top, self.bottom), slice(self.left, self.right)

    def within(self, plane: tuple[int, int]) -> Region | None:
        """Return what is inside a picture; None for nothing."""
        top, left = max(self.top, 0), max(self.left, 0)
        bottom, right = min(self.bottom, plane[0]), min(self.right, plane[1])
        return Region(top, left, bottom, right) if top < bottom and left < right else None

    @staticmethod
    def around(one: tuple[int, int], other: tuple[int, int]) -> Region:
        """Return the least region with two elements, by row and column."""
        (top, bottom), (left, right) = (sorted(pair) for pair in zip(one, other, strict=True))
        return Region(top, left, bottom + 1, right + 1)


def find_label(
    text: str, labels: Sequence[str], shape: Sequence[int], axis: int | None
) -> tuple[int, ...] | None:
    """Return the first element of the row, or the entry, with a label.

    Parameters
    ----------
    text : str
        The label, or the part of it that no other label has; case and spaces around it matter
        only where several labels fit.
    labels : sequence of str
    shape : sequence of int
        Of the array.
    axis : int or None
        The dimension whose positions have the labels.

    Returns
    -------
    tuple of int or None
        None where the labels are not of this array, or several labels fit.
    """
    wanted = text.strip().casefold()
    if axis is None or not wanted or 0 in shape:
        return None
    folded = [label.strip().casefold() for label in labels]
    tests: tuple[Callable[[int], bool], ...] = (
        lambda place: labels[place] == text,
        lambda place: labels[place].strip() == text.strip(),
        lambda place: folded[place] == wanted,
        lambda place: wanted in folded[place],
    )
    for test in tests:
        fitting = [place for place in range(len(labels)) if test(place)]
        if len(fitting) == 1:
            return tuple([fitting[0] if each == axis else 0 for each in range(len(shape))])
    return None


def parse_place(text: str, shape: Sequence[int]) -> tuple[Place, ...]:
    """Read an index as a person writes it: ``0, 12, 7, 3`` or ``12 0:8 -1``.

    Parameters
    ----------
    text : str
        An entry for each dimension, separated by commas or spaces, in brackets or not. Leading
        dimensions of size 1 may be left out. Negative numbers count from the end.
    shape : sequence of int

    Returns
    -------
    tuple of int or slice
        One per dimension, within the shape; slices have both ends.

    Raises
    ------
    ValueError
        In a sentence, if it is no index into that shape.
    """
    bare = text.strip().removeprefix("[").removesuffix("]").strip().removesuffix(",")
    entries = _SEPARATORS.split(bare) if bare else []
    missing = len(shape) - len(entries)
    if not entries or missing < 0 or any(size != 1 for size in shape[:missing]):
        wanted = format_count(len(shape), "number")
        raise ValueError(f"an index into {format_shape(tuple(shape))} has {wanted}")
    entries = ["0"] * missing + entries
    return tuple(
        _parse_entry(entry, axis, size)
        for axis, (entry, size) in enumerate(zip(entries, shape, strict=True))
    )


def _parse_entry(entry: str, axis: int, size: int) -> Place:
    found = _ENTRY.fullmatch(entry)
    if found is None:
        raise ValueError(f"{entry[:20]!r} is neither a number nor a range such as 0:8")
    number, first, last = found.groups()
    if number is not None:
        place = int(number) + size * (int(number) < 0)
        if not 0 <= place < size:
            raise ValueError(f"dimension {axis} has indices 0 to {size - 1}, not {number}")
        return place
    start, stop, _ = slice(int(first) if first else None, int(last) if last else None).indices(
        size
    )
    if start >= stop:
        raise ValueError(f"the range {entry} of dimension {axis}, of size {size}, is empty")
    return slice(start, stop)


def array_text(array: Array) -> str:
    """Write an array as NumPy does, with all its elements.

    Parameters
    ----------
    array : ndarray of at most `MOST_COPIED` elements
    """
    with np.printoptions(threshold=MOST_COPIED + 1, linewidth=100):
        return np.array_repr(array)


def csv_text(array: Array) -> str:
    """Write a matrix as lines of numbers in full precision, separated by commas.

    Parameters
    ----------
    array : ndarray of shape (H, W)
    """
    return "".join(",".join([str(number) for number in row]) + "\n" for row in array)
