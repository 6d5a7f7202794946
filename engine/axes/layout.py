"""Meanings of the dimensions of an operand, and their words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeAlias

__all__ = ["Axis", "Kind", "Layout", "Size"]

Size: TypeAlias = int | str | None
"""Number of positions; a str is a symbol of the file, None is unknown."""


class Kind(Enum):
    """Meaning of an axis; the value is its name in texts."""

    BATCH = "batch"
    CHANNEL = "channels"
    FEATURE = "features"
    ROW = "rows"
    COLUMN = "columns"
    DEPTH = "planes"
    TIME = "time"
    FREQUENCY = "frequencies"
    TOKEN = "tokens"  # noqa: S105 - no password
    CLASS_TOKEN = "class"  # noqa: S105 - no password
    DISTILLATION_TOKEN = "distillation"  # noqa: S105 - no password
    REGISTER_TOKEN = "registers"  # noqa: S105 - no password
    WINDOW = "windows"
    HEAD = "heads"
    QUERY = "queries"
    KEY = "keys"
    DISTANCE = "distances"
    BOX = "boxes"
    COORDINATE = "coordinates"
    CLASS = "classes"
    VOCABULARY = "vocabulary"
    LAYER = "layers"
    PART = "parts"
    EXPERT = "experts"
    LEVEL = "levels"
    POINT = "points"
    FILTER = "filters"
    OUTPUT = "outputs"
    INPUT = "inputs"
    UNKNOWN = "?"


SPATIAL: Final = frozenset({Kind.DEPTH, Kind.TIME, Kind.FREQUENCY, Kind.ROW, Kind.COLUMN})
"""Kinds of axes along which positions have neighbours: of an image, a volume, a signal
or a spectrogram."""
SEQUENCE: Final = frozenset({Kind.TOKEN, Kind.QUERY, Kind.KEY, Kind.BOX})
"""Kinds of axes whose positions may fold to a grid."""


_DEEPEST: Final = 3  # segments of windows of rows


@dataclass(frozen=True, slots=True)
class Axis:
    """Meaning of one dimension, or of a part of one.

    Attributes
    ----------
    kind : Kind
    size : int, str or None
    factors : tuple of Axis
        The axes that the dimension flattens, outermost first; empty if it flattens none.
    segments : tuple of Axis
        The axes that the dimension concatenates; empty if it concatenates none.
    shift : int
        Positions by which the axis was rolled.
    stride : int
        Distance of neighbouring positions, where the axis is a part of a longer one: of whole
        windows, or of the positions of a window that consists of every n-th. 1 otherwise.
    """

    kind: Kind
    size: Size
    factors: tuple[Axis, ...] = ()
    segments: tuple[Axis, ...] = ()
    shift: int = 0
    stride: int = 1

    @property
    def grid(self) -> tuple[Axis, ...]:
        """The spatial factors that the positions fold to; empty if there are none."""
        found = tuple([axis for axis in self.factors if axis.kind in SPATIAL])
        return found if len(found) > 1 else ()

    @property
    def is_named(self) -> bool:
        """Whether the meaning is known; an axis without two positions needs none."""
        if self.kind is Kind.UNKNOWN and self.factors:
            return all(factor.is_named for factor in self.factors)
        return self.kind is not Kind.UNKNOWN or self.size in {0, 1}

    def to_plain(self) -> dict[str, object]:
        """Return the axis as plain data for JSON."""
        return {
            "kind": self.kind.name,
            "size": self.size,
            "factors": [axis.to_plain() for axis in self.factors],
            "segments": [axis.to_plain() for axis in self.segments],
            "shift": self.shift,
            "stride": self.stride,
        }

    @classmethod
    def from_plain(cls, plain: Any, depth: int = 0) -> Axis:  # noqa: ANN401 - from JSON
        """Read an axis from the data of `to_plain`.

        Raises
        ------
        ValueError, TypeError, KeyError, AttributeError
            If the data are not those of an axis.
        """
        if depth > _DEEPEST:
            raise ValueError("axes are nested too deeply")
        size, shift = plain["size"], plain["shift"]
        if not isinstance(size, str | None) and not _is_count(size):
            raise TypeError("a size must be a number of positions")
        if not isinstance(shift, int):
            raise TypeError("a shift must be a number")
        stride = plain.get("stride", 1)  # files of older versions have none
        if not _is_count(stride):
            raise TypeError("a stride must be a number of positions")
        factors, segments = (
            tuple([cls.from_plain(each, depth + 1) for each in plain[key]])
            for key in ("factors", "segments")
        )
        return cls(Kind[plain["kind"]], size, factors, segments, shift, stride)

    def text(self) -> str:
        """Return the axis in words: ``class + 7×7 tokens``."""
        if self.segments and self.kind in SEQUENCE:
            return _segments_text(self)
        grid = self.grid
        if grid and self.kind in SEQUENCE | {Kind.WINDOW}:
            return f"{_sizes(grid)} {self.kind.value}"
        if self.kind is Kind.UNKNOWN and self.factors:
            return "·".join([factor.text() for factor in self.factors])
        if self.kind is Kind.WINDOW and len(self.factors) == 1:
            return f"{self.factors[0].kind.value} of windows"
        return self.kind.value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _sizes(axes: tuple[Axis, ...]) -> str:
    """Return the sizes of a grid: one for rows, one for columns, also of patches in patches."""
    sides: dict[Kind, list[Size]] = {}
    for axis in axes:
        sides.setdefault(axis.kind, []).append(axis.size)
    return "×".join([_product(sizes) for sizes in sides.values()])


def _product(sizes: list[Size]) -> str:
    known = [size for size in sizes if isinstance(size, int)]
    if len(known) == len(sizes):
        return str(math.prod(known))
    return "·".join(["?" if size is None else str(size) for size in sizes])


def _segments_text(axis: Axis) -> str:
    words = []
    following = (*axis.segments[1:], None)
    for segment, after in zip(axis.segments, following, strict=True):
        if segment.grid and after is not None and after.grid:
            words.append(_sizes(segment.grid))  # only the last scale is followed by the word
        elif segment.grid:
            words.append(f"{_sizes(segment.grid)} {axis.kind.value}")
        elif segment.size == 1:
            words.append(segment.kind.value)
        else:
            words.append(f"{segment.size} {segment.kind.value}")
    return " + ".join(words)


@dataclass(frozen=True, slots=True)
class Layout:
    """Meanings of all dimensions of an operand.

    Attributes
    ----------
    axes : tuple of Axis
        One per dimension.
    """

    axes: tuple[Axis, ...]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Meaning of each dimension."""
        return tuple([axis.kind for axis in self.axes])

    @property
    def is_named(self) -> bool:
        """Whether every dimension has a meaning."""
        return all(axis.is_named for axis in self.axes)

    @property
    def shape(self) -> tuple[Size, ...]:
        """Size of each dimension."""
        return tuple([axis.size for axis in self.axes])

    def text(self) -> str:
        """Return the layout in words: ``class + 7×7 tokens × features``.

        Returns
        -------
        str
            Dimensions of size 1 are left out; ``""`` if nothing is known.
        """
        shown = [
            axis
            for axis in self.axes
            if axis.size != 1 and (axis.size != 0 or axis.kind is not Kind.UNKNOWN)
        ]
        if not any(axis.kind is not Kind.UNKNOWN or axis.is_named for axis in shown):
            return ""
        return " × ".join([axis.text() for axis in shown])
