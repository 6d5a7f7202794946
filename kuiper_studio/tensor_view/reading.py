"""Decides which dimensions of an array are channels, rows and columns. No Qt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from engine.text import format_shape

if TYPE_CHECKING:
    from engine.axes import ViewPlan

__all__ = ["FixedAxis", "Kind", "Reading", "read_plan", "read_shape"]


class Kind(Enum):
    """Kind of display of a value."""

    PLANES = "pictures"
    VECTOR = "bars"
    NUMBER = "a number"
    EMPTY = "nothing"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class FixedAxis:
    """A dimension with one selected index.

    Attributes
    ----------
    axis : int
    name : str
        For its control.
    size : int
    """

    axis: int
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Reading:
    """The roles of an array's dimensions.

    Attributes
    ----------
    kind : Kind
    shape : tuple of int
    channel_axis, row_axis, column_axis : int or None
        None for no such dimension. A vector runs along `column_axis`.
    fixed : tuple of FixedAxis
        The others, in order.
    note : str
        Description of the reading.
    color_axis : int or None
        The dimension of which three positions are red, green and blue.
    """

    kind: Kind
    shape: tuple[int, ...]
    channel_axis: int | None = None
    row_axis: int | None = None
    column_axis: int | None = None
    fixed: tuple[FixedAxis, ...] = ()
    note: str = ""
    color_axis: int | None = None

    @property
    def channels(self) -> int:
        """Number of channels; 1 for no such dimension."""
        return self.shape[self.channel_axis] if self.channel_axis is not None else 1

    @property
    def plane(self) -> tuple[int, int]:
        """Rows and columns of one picture."""
        rows = self.shape[self.row_axis] if self.row_axis is not None else 1
        return rows, self.shape[self.column_axis] if self.column_axis is not None else 1

    @property
    def names(self) -> tuple[str, ...]:
        """What the dimensions are called where their meaning is not known."""
        names = ["entries"] * len(self.shape)
        for axis in self.fixed:
            names[axis.axis] = axis.name.lower()
        for number, name in (
            (self.channel_axis, "channels"), (self.row_axis, "rows"),
            (self.column_axis, "columns" if self.kind is Kind.PLANES else "entries"),
        ):  # fmt: skip
            if number is not None:
                names[number] = name
        return tuple(names)

    def index(
        self,
        fixed: tuple[int, ...],
        channel: int,
        row: int,
        column: int,
        color: int = 0,
    ) -> tuple[int, ...]:
        """Return the index into the array of an element of a picture."""
        found = [0] * len(self.shape)
        for axis, place in zip(self.fixed, fixed, strict=True):
            found[axis.axis] = place
        for number, place in (
            (self.channel_axis, channel), (self.row_axis, row), (self.column_axis, column),
            (self.color_axis, color),
        ):  # fmt: skip
            if number is not None:
                found[number] = place
        return tuple(found)


def read_shape(shape: tuple[int, ...], *, channels_last: bool = False) -> Reading:
    """Decide the role of each dimension of an array.

    Parameters
    ----------
    shape : tuple of int
    channels_last : bool
        Whether the channel is the last dimension of three or more.

    Returns
    -------
    Reading
        Four dimensions and more are batch, channel, further ones, rows, columns; three are
        channel, rows, columns (a batch of one picture each looks the same); two are rows
        and columns. An array that is longer than 1 in one dimension only is a vector, and
        so are channels of one pixel.
    """
    channels_last &= len(shape) > 2
    if 0 in shape:
        return Reading(Kind.EMPTY, shape, note="a dimension is 0, so there are no numbers")
    long = [axis for axis, size in enumerate(shape) if size > 1]
    if not long:
        return Reading(Kind.NUMBER, shape, fixed=_fixed(shape, range(len(shape))))
    if len(long) == 1:
        return _vector(shape, long[0])
    pixels = shape[1:-1] if channels_last else shape[2:]
    if len(shape) >= 4 and set(pixels) == {1}:
        return _vector(shape, len(shape) - 1 if channels_last else 1)
    rows, columns = len(shape) - 2 - channels_last, len(shape) - 1 - channels_last
    channel = len(shape) - 1 if channels_last else {2: None, 3: 0}.get(len(shape), 1)
    others = [axis for axis in range(rows) if axis != channel]
    fixed = _fixed(shape, others, depth=1 if channels_last else 2)
    reading = Reading(Kind.PLANES, shape, channel, rows, columns, fixed)
    names = {axis.axis: axis.name.lower() for axis in reading.fixed}
    names |= {rows: "rows", columns: "columns"}
    if channel is not None:
        names[channel] = "channel"
    words = " × ".join(names[axis] for axis in range(len(shape)))
    return replace(reading, note=f"{format_shape(shape)} read as {words}")


def read_plan(plan: ViewPlan) -> Reading:
    """Return the roles of the dimensions of a folded array."""
    shape = plan.folded_shape
    rows, columns = len(shape) - 2, len(shape) - 1
    channel = rows - 1 if plan.has_channels else None
    others = range(rows - plan.has_channels)
    fixed = tuple(
        [FixedAxis(axis, plan.roles[axis].name.capitalize(), shape[axis]) for axis in others]
    )
    words = " × ".join([role.name for role in plan.roles])
    note = f"{format_shape(plan.shape)} folded to {format_shape(shape)}: {words}"
    if channel is None and shape[rows] == 1:  # a single token
        fixed = (*fixed, FixedAxis(rows, plan.roles[rows].name.capitalize(), 1))
        return Reading(Kind.VECTOR, shape, None, None, columns, fixed, note)
    return Reading(Kind.PLANES, shape, channel, rows, columns, fixed, note)


def _vector(shape: tuple[int, ...], axis: int) -> Reading:
    others = [other for other in range(len(shape)) if other != axis]
    note = f"{format_shape(shape)} shown as {shape[axis]} bars"
    return Reading(Kind.VECTOR, shape, None, None, axis, _fixed(shape, others), note)


def _fixed(
    shape: tuple[int, ...], axes: list[int] | range, depth: int = 2
) -> tuple[FixedAxis, ...]:
    names = {0: "Batch"} if len(shape) > 3 or len(axes) < 2 else {}
    if len(shape) == 5:
        names[depth] = "Depth"
    return tuple(FixedAxis(axis, names.get(axis, f"Axis {axis}"), shape[axis]) for axis in axes)
