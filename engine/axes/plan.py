"""Plans how to show an array by its layout: positions folded to pictures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from engine.axes.layout import SPATIAL, Axis, Kind, Layout

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["Role", "ViewPlan", "parts_of", "plan_view"]

_CHANNELS: Final = frozenset({Kind.CHANNEL, Kind.FEATURE, Kind.CLASS, Kind.VOCABULARY})
_OF_MATRICES: Final = (Kind.INPUT, Kind.OUTPUT)
_SCORES: Final = frozenset({Kind.QUERY, Kind.KEY})
_BESIDE: Final = frozenset(
    {Kind.CLASS_TOKEN, Kind.DISTILLATION_TOKEN, Kind.REGISTER_TOKEN, Kind.TOKEN, Kind.BOX}
)
_SPECTROGRAM: Final = (Kind.FREQUENCY, Kind.TIME)
_FOLDED: Final = frozenset({Kind.TOKEN, Kind.WINDOW, Kind.BOX, Kind.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Role:
    """An axis of a folded array.

    Attributes
    ----------
    name : str
        In words, such as ``rows``.
    cells : tuple of int
        The parts of the array's dimensions that the axis consists of, outermost first.
    shift : int
        Positions by which the array is rolled along the axis; folding undoes the roll.
    """

    name: str
    cells: tuple[int, ...]
    shift: int = 0


@dataclass(frozen=True, slots=True)
class ViewPlan:
    """A plan of how an array becomes pictures.

    Attributes
    ----------
    shape : tuple of int
        Of the array.
    starts, stops : tuple of int
        The folded range of each dimension; a class token is outside.
    cells : tuple of tuple of int
        Sizes of the parts of each dimension, outermost first.
    roles : tuple of Role
        Axes of the folded array: any number of others, channels if there are any, rows,
        columns.
    has_channels : bool
    """

    shape: tuple[int, ...]
    starts: tuple[int, ...]
    stops: tuple[int, ...]
    cells: tuple[tuple[int, ...], ...]
    roles: tuple[Role, ...]
    has_channels: bool

    @property
    def folded_shape(self) -> tuple[int, ...]:
        """Shape of the folded array."""
        sizes = self.sizes
        return tuple([math.prod([sizes[cell] for cell in role.cells]) for role in self.roles])

    @property
    def is_whole(self) -> bool:
        """Whether every element of the array is shown."""
        whole = zip(self.starts, self.stops, self.shape, strict=True)
        return all(start == 0 and stop == size for start, stop, size in whole)

    def fold(self, array: Array) -> Array:
        """Fold an array.

        Parameters
        ----------
        array : ndarray of shape `shape`

        Returns
        -------
        ndarray of shape `folded_shape`
            A view; a copy only if windows are joined.
        """
        ranges = zip(self.starts, self.stops, strict=True)
        part = array[tuple(slice(start, stop) for start, stop in ranges)]
        order = [cell for role in self.roles for cell in role.cells]
        folded = part.reshape(self.sizes).transpose(order).reshape(self.folded_shape)
        for place, role in enumerate(self.roles):
            if role.shift:
                folded = np.roll(folded, -role.shift, place)
        return folded

    def index(self, place: tuple[int, ...]) -> tuple[int, ...]:
        """Return the index into the array of an element of the folded array.

        Parameters
        ----------
        place : tuple of int
            Within `folded_shape`.
        """
        sizes = self.sizes
        at = [0] * len(sizes)
        for role, position in zip(self.roles, place, strict=True):
            total = math.prod([sizes[cell] for cell in role.cells])
            rest = (position + role.shift) % total
            for cell in reversed(role.cells):
                rest, at[cell] = divmod(rest, sizes[cell])
        found = []
        first = 0
        for start, parts in zip(self.starts, self.cells, strict=True):
            flat = 0
            for size, position in zip(parts, at[first:], strict=False):
                flat = flat * size + position
            first += len(parts)
            found.append(start + flat)
        return tuple(found)

    def place(self, index: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the index in the folded array of an element of the array; None if outside."""
        at: list[int] = []
        for start, stop, parts, position in zip(
            self.starts, self.stops, self.cells, index, strict=True
        ):
            if not start <= position < stop:
                return None
            rest = position - start
            found = []
            for size in reversed(parts):
                rest, inner = divmod(rest, size)
                found.append(inner)
            at += found[::-1]
        sizes = self.sizes
        places = []
        for role in self.roles:
            flat = 0
            for cell in role.cells:
                flat = flat * sizes[cell] + at[cell]
            total = math.prod([sizes[cell] for cell in role.cells])
            places.append((flat - role.shift) % total)
        return tuple(places)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Sizes of all parts, in the order of the dimensions."""
        return tuple([size for parts in self.cells for size in parts])


def plan_view(layout: Layout, shape: tuple[int, ...], part: int = -1) -> ViewPlan | None:
    """Plan how to show an array whose positions are not its last two dimensions.

    Parameters
    ----------
    layout : Layout
    shape : tuple of int
        Of the array.
    part : int, optional
        Which of `parts_of` is shown of a dimension that joins several: a class token, for
        example. By default the first grid. Without a grid, its positions are rows of features.

    Returns
    -------
    ViewPlan or None
        None if the array is best shown as it is, or does not fit the layout.
    """
    if layout.shape != shape or 0 in shape:
        return None
    joined = _joined(layout)
    folded = [
        _fold_axis(axis, size, part if axis is joined else -1)
        for axis, size in zip(layout.axes, shape, strict=True)
    ]
    ranges = [each for each in folded if each is not None]
    leaves = [leaf for each in ranges for leaf in each.leaves]
    roles = _roles(leaves) or (_row_roles(leaves) if part >= 0 else None)
    roles = roles or _head_roles(leaves) or _time_roles(leaves)
    if roles is None or len(ranges) < len(folded):
        return None
    starts = tuple([each.start for each in ranges])
    stops = tuple([each.stop for each in ranges])
    cells = tuple([tuple([_size(leaf) for leaf in each.leaves]) for each in ranges])
    plan = ViewPlan(shape, starts, stops, cells, *roles)
    return plan if _moves(plan) else None


class _Range(NamedTuple):
    """The range of a dimension that is shown, and what it consists of."""

    start: int
    stop: int
    leaves: tuple[Axis, ...]


def _fold_axis(axis: Axis, size: int, part: int) -> _Range | None:
    """Return what is shown of an axis; None if its parts do not fit its size."""
    start, folded = _part_of(axis, part)
    leaves = _leaves(folded)
    count = math.prod([leaf.size for leaf in leaves if isinstance(leaf.size, int)])
    if not count or start + count > size or (folded is axis and count != size):
        return None
    return _Range(start, start + count, leaves)


def parts_of(layout: Layout) -> tuple[tuple[Axis, ...], int]:
    """Return what is joined along one dimension, and which of it is shown by default.

    Returns
    -------
    tuple of Axis
        Such as a class token and a grid of tokens, or the grids of several scales; empty
        where no dimension joins any.
    int
        Index of the first grid.
    """
    joined = _joined(layout)
    if joined is None:
        return (), -1
    return joined.segments, next(k for k, each in enumerate(joined.segments) if each.grid)


def _joined(layout: Layout) -> Axis | None:
    """Return the dimension that joins a grid and something else, if there is exactly one."""
    found = [axis for axis in layout.axes if any(each.grid for each in axis.segments)]
    return found[0] if len(found) == 1 else None


def _size(axis: Axis) -> int:
    return axis.size if isinstance(axis.size, int) else 1


def _part_of(axis: Axis, part: int) -> tuple[int, Axis]:
    """Return a part of a concatenated axis, by default its first grid, and where it begins."""
    position = 0
    for number, segment in enumerate(axis.segments):
        if number == part or (part < 0 and segment.grid):
            return position, segment
        position += _size(segment)
    return 0, axis


def _leaves(axis: Axis) -> tuple[Axis, ...]:
    """Return the parts of a dimension; parts of windows are marked."""
    found: list[Axis] = []
    for part in axis.factors if axis.kind in _FOLDED and axis.factors else (axis,):
        inner = part.factors if part.kind in {Kind.WINDOW, Kind.TOKEN} else ()
        kind = Kind.WINDOW if Kind.WINDOW in {part.kind, axis.kind} else None
        for leaf in inner or (part,):
            is_outer = kind is not None and leaf.kind in SPATIAL
            found.append(Axis(kind, leaf.size, (leaf,)) if is_outer and kind else leaf)
    return tuple(found)


def _roles(axes: list[Axis]) -> tuple[tuple[Role, ...], bool] | None:
    """Give each part a role; None unless there are rows and columns exactly once.

    Of a spectrogram they are frequencies and time.
    """
    kinds = [_kind(axis) for axis in axes]
    sides = _SPECTROGRAM if {*kinds} >= {*_SPECTROGRAM} else (Kind.ROW, Kind.COLUMN)
    sides_of = {side: [n for n, kind in enumerate(kinds) if kind is side] for side in sides}
    if not _is_image(axes, [*sides_of.values()]) or any(a.kind in _SCORES for a in axes):
        return None
    planes: dict[Kind, list[int]] = {}
    channels, others = [], []
    for number, kind in enumerate(kinds):
        if kind in SPATIAL and kind not in sides:
            planes.setdefault(kind, []).append(number)
        elif kind in _CHANNELS:
            channels.append(number)
        elif kind not in sides:
            others.append(number)
    # The last of several dimensions of channels is that of the picture.
    alone = [Role(axes[n].kind.value, (n,)) for n in sorted((*others, *channels[:-1]))]
    channel = [Role(axes[n].kind.value, (n,)) for n in channels[-1:]]
    outer = [_spatial_role(axes, kind, cells) for kind, cells in planes.items()]
    inner = [_spatial_role(axes, kind, cells) for kind, cells in sides_of.items()]
    return (*alone, *outer, *channel, *inner), bool(channels)


def _is_image(axes: list[Axis], sides: list[list[int]]) -> bool:
    """Whether rows and columns make one image, both whole or both in windows."""
    depths = {len(cells) for cells in sides}
    windows = {sum(axes[cell].kind is Kind.WINDOW for cell in cells) for cells in sides}
    if depths in ({1}, {2}) and windows == {max(depths) - 1}:
        return True
    # Patches in patches of Hiera, whose order is not that of the grid.
    return all(_is_ordered(axes, cells) for cells in sides)


def _kind(axis: Axis) -> Kind:
    """Return what a part is along, also of windows."""
    return (axis.factors[0] if axis.kind is Kind.WINDOW and axis.factors else axis).kind


def _row_roles(axes: list[Axis]) -> tuple[tuple[Role, ...], bool] | None:
    """Give tokens beside a grid the rows and features the columns; None without features."""
    channels = [number for number, axis in enumerate(axes) if axis.kind in _CHANNELS]
    tokens = [number for number, axis in enumerate(axes) if axis.kind in _BESIDE]
    if not channels or len(tokens) != 1 or any(axis.kind in _SCORES for axis in axes):
        return None
    last = (tokens[0], channels[-1])
    shown = (*[number for number in range(len(axes)) if number not in last], *last)
    return tuple([Role(axes[number].kind.value, (number,)) for number in shown]), False


def _head_roles(axes: list[Axis]) -> tuple[tuple[Role, ...], bool] | None:
    """Give the heads of a projection's weight a picture each; None for other arrays."""
    heads = [number for number, axis in enumerate(axes) if axis.kind is Kind.HEAD]
    parts = [number for number, axis in enumerate(axes) if axis.kind is Kind.PART]
    plane = [number for number in range(len(axes)) if number not in (*heads, *parts)]
    kinds = {axes[number].kind for number in plane}
    if len(heads) != 1 or kinds not in ({Kind.FEATURE, each} for each in _OF_MATRICES):
        return None
    shown = (*parts, *heads, *plane)
    return tuple([Role(axes[number].kind.value, (number,)) for number in shown]), True


def _time_roles(axes: list[Axis]) -> tuple[tuple[Role, ...], bool] | None:
    """Let time before features run from left to right, as users of sound expect it."""
    kinds = [axis.kind for axis in axes]
    if kinds[-2:-1] != [Kind.TIME] or kinds[-1] not in _CHANNELS:
        return None
    shown = (*range(len(axes) - 2), len(axes) - 1, len(axes) - 2)
    return tuple([Role(axes[number].kind.value, (number,)) for number in shown]), False


def _is_ordered(axes: list[Axis], cells: list[int]) -> bool:
    """Whether it is known which part of rows or columns is inside which."""
    long = [cell for cell in cells if axes[cell].size != 1]
    return bool(cells) and len({_stride(axes[cell]) for cell in long}) == len(long)


def _stride(axis: Axis) -> int:
    """Return how far positions are apart, also those of windows."""
    return axis.factors[0].stride if axis.factors else axis.stride


def _spatial_role(axes: list[Axis], kind: Kind, cells: list[int]) -> Role:
    """Return the role of windows and of the positions inside them, the widest apart first."""
    windows = [cell for cell in cells if axes[cell].kind is Kind.WINDOW]
    order = sorted(cells, key=lambda cell: (-_stride(axes[cell]), cell not in windows))
    shift = axes[windows[0]].factors[0].shift if windows else 0
    return Role(kind.value, tuple(order), shift)


def _moves(plan: ViewPlan) -> bool:
    """Whether folding gives pictures that the array itself does not have."""
    if plan.folded_shape[-2:] == (1, 1):
        return False
    if not plan.is_whole or plan.folded_shape[-2:] != plan.shape[-2:]:
        return True
    order = [cell for role in plan.roles for cell in role.cells if plan.sizes[cell] != 1]
    return any(one > other for one, other in pairwise(order))
