"""Where each dimension of an array goes: rows, columns, mosaic, colour or slider. No Qt."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from engine.text import format_shape
from kuiper_studio.tensor_view.reading import FixedAxis, Kind, Reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "COLORS",
    "AxisRole",
    "Roles",
    "ShownAxis",
    "are_possible",
    "offered_roles",
    "read_roles",
    "roles_from_names",
    "roles_of",
    "swap_roles",
    "with_role",
]

COLORS: Final = 3  # red, green and blue


class AxisRole(Enum):
    """Where an axis goes; the value is its word on the chip."""

    ROW = "rows"
    COLUMN = "columns"
    FACET = "mosaic"
    COLOR = "colour"
    SLIDER = "slider"


Roles: TypeAlias = tuple[AxisRole, ...]
"""One per dimension; only `AxisRole.SLIDER` occurs more than once."""


@dataclass(frozen=True, slots=True)
class ShownAxis:
    """An axis longer than 1, as its chip shows it.

    Attributes
    ----------
    axis : int
        Of the folded array.
    name : str
        What it is.
    size : int
    role : AxisRole
    place : int
        The chosen index of a slider or of the mosaic; 0 for others.
    offered : tuple of AxisRole
        The roles that it may have.
    """

    axis: int
    name: str
    size: int
    role: AxisRole
    place: int
    offered: tuple[AxisRole, ...]

    @property
    def is_stepped(self) -> bool:
        """Whether one index of it is chosen."""
        return self.role in {AxisRole.SLIDER, AxisRole.FACET}


def roles_of(reading: Reading) -> Roles:
    """Return the roles of the dimensions of an array as it is read."""
    roles = [AxisRole.SLIDER] * len(reading.shape)
    for axis, role in (
        (reading.row_axis, AxisRole.ROW),
        (reading.column_axis, AxisRole.COLUMN),
        (reading.channel_axis, AxisRole.FACET),
        (reading.color_axis, AxisRole.COLOR),
    ):
        if axis is not None:
            roles[axis] = role
    return tuple(roles)


def roles_from_names(named: Mapping[str, Sequence[str]]) -> dict[str, Roles]:
    """Return remembered roles by the meaning of axes; those of other versions are left out."""
    known = AxisRole.__members__
    return {
        meaning: tuple([known[name] for name in names])
        for meaning, names in named.items()
        if all(name in known for name in names)
    }


def are_possible(roles: Sequence[AxisRole], shape: tuple[int, ...]) -> bool:
    """Whether an array can be shown with these roles: it needs rows or columns."""
    if len(roles) != len(shape):
        return False
    counts = Counter(roles)
    del counts[AxisRole.SLIDER]
    if any(count > 1 for count in counts.values()):
        return False
    colors = [size for size, role in zip(shape, roles, strict=True) if role is AxisRole.COLOR]
    return bool(counts[AxisRole.ROW] or counts[AxisRole.COLUMN]) and all(
        size >= COLORS for size in colors
    )


def with_role(roles: Roles, axis: int, role: AxisRole) -> Roles:
    """Give an axis a role; the axis that had it takes the other's."""
    if role is not AxisRole.SLIDER and role in roles:
        return swap_roles(roles, axis, roles.index(role))
    return (*roles[:axis], role, *roles[axis + 1 :])


def swap_roles(roles: Roles, one: int, other: int) -> Roles:
    """Exchange the roles of two axes."""
    changed = list(roles)
    changed[one], changed[other] = changed[other], changed[one]
    return tuple(changed)


@lru_cache(maxsize=256)  # each tensor asks, and has the axes of others
def offered_roles(roles: Roles, shape: tuple[int, ...], axis: int) -> tuple[AxisRole, ...]:
    """Return the roles that an axis may have, its own one included."""
    return tuple(
        [role for role in AxisRole if are_possible(with_role(roles, axis, role), shape)]
    )


def read_roles(shape: tuple[int, ...], roles: Roles, names: Sequence[str]) -> Reading:
    """Return how an array is read whose axes have these roles.

    Parameters
    ----------
    shape : tuple of int
    roles : Roles
        That are possible.
    names : sequence of str
        What the axes are.
    """
    places = {role: axis for axis, role in enumerate(roles) if role is not AxisRole.SLIDER}
    row, column = places.get(AxisRole.ROW), places.get(AxisRole.COLUMN)
    channel, color = places.get(AxisRole.FACET), places.get(AxisRole.COLOR)
    fixed = tuple(
        [
            FixedAxis(axis, names[axis].capitalize(), size)
            for axis, size in enumerate(shape)
            if roles[axis] is AxisRole.SLIDER
        ]
    )
    kind = Kind.PLANES
    if channel is None and color is None and (row is None or column is None):
        kind, row, column = Kind.VECTOR, None, row if column is None else column
    words = [
        f"{name} as {role.value}"
        for name, role, size in zip(names, roles, shape, strict=True)
        if size > 1
    ]
    note = f"{format_shape(shape)} shown with {', '.join(words)}"
    return Reading(kind, shape, channel, row, column, fixed, note, color)
