"""Lays out boxes inside frames: each frame by itself, then as one box of what is around it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from kuiper_studio.layout.arrange import layout
from kuiper_studio.layout.model import Floats, Layout, LayoutRequest, Line, Orientation

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

__all__ = ["TAB_HEIGHT", "LevelLayouts", "Nest", "NestedRequest", "lay_out_nested"]

_Point: TypeAlias = tuple[float, float]

TAB_HEIGHT: Final = 24.0
"""Height of the line in which a frame has its name."""
_PADDING: Final = 12.0
_PORT: Final = 14.0  # length of the room in which edges turn behind a frame's border
_PORT_PITCH: Final = 8.0
_ASIDE: Final = 7.0  # distance from a frame at which an edge from a lane comes down
_CENTRED: Final = 60.0  # breadth that a frame may grow, so that its main chain is in its middle
_MOST_TURNS: Final = 5  # of edges beside each other
_IN: Final = -1  # in place of an item: the frame's border
_OUT: Final = -2


@dataclass(frozen=True, slots=True)
class Nest:
    """A frame, or the whole graph.

    Attributes
    ----------
    items : tuple of int or Nest
        Boxes and frames in topological order.
    name_width : float
        Width of the name on the frame.
    """

    items: tuple[int | Nest, ...]
    name_width: float = 0.0

    def boxes(self) -> list[int]:
        """Return all boxes inside, in order."""
        found: list[int] = []
        for item in self.items:
            found += [item] if isinstance(item, int) else item.boxes()
        return found

    def frames(self) -> list[Nest]:
        """Return the frames inside, an outer one before those in it."""
        found: list[Nest] = []
        for item in self.items:
            if not isinstance(item, int):
                found += [item, *item.frames()]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class NestedRequest:
    """Boxes in frames to lay out; see `LayoutRequest`.

    Attributes
    ----------
    nest : Nest
        The whole graph.
    lines : tuple of (int, int, str)
    sizes : tuple of (float, float)
    orientation : {'left-right', 'top-down'}
    label_widths : tuple of float
    """

    nest: Nest
    lines: tuple[Line, ...]
    sizes: tuple[tuple[float, float], ...]
    orientation: Orientation = "left-right"
    label_widths: tuple[float, ...] = ()


class LevelLayouts:
    """The layouts of frames, to be used again where a frame has the same content.

    Whoever opens one group after another lays out only what changes. Any thread may use it.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, Layout] = {}
        self._used: dict[Hashable, Layout] = {}

    def find(self, key: Hashable) -> Layout | None:
        """Return the layout of some content, None where it is not known."""
        found = self._known.get(key)
        if found is not None:
            self._used[key] = found
        return found

    def add(self, key: Hashable, made: Layout) -> None:
        """Keep the layout of some content."""
        self._used[key] = made

    def turn(self) -> None:
        """Forget what the last graph did not need."""
        self._known, self._used = self._used, {}


def lay_out_nested(
    request: NestedRequest,
    cancelled: Callable[[], bool] | None = None,
    known: LevelLayouts | None = None,
) -> Layout:
    """Lay boxes out in their frames.

    An edge out of a frame, or into one, passes its border in the flow's direction. The result's
    `layers` and `rows` are the places of boxes along and across the flow in whole pixels.

    Parameters
    ----------
    request : NestedRequest
    cancelled : callable, optional
        See `layout`.
    known : LevelLayouts, optional
        What was laid out before.

    Returns
    -------
    Layout
        Its `frames` are in the order of `Nest.frames`.
    """
    known = known or LevelLayouts()
    result = _Nester(request, cancelled, known).result()
    known.turn()
    return result


@dataclass(slots=True, eq=False)
class _Level:
    """What is in one frame, in coordinates along and across the flow, from the frame's corner.

    Attributes
    ----------
    lines : dict of (int, int, str) to int
        Numbers of lines between items; `_IN` and `_OUT` are the frame's border.
    """

    nest: Nest
    parent: int  # number of the level around it, -1 for none
    place: int  # among the parent's items
    lines: dict[Line, int] = field(default_factory=dict)
    widths: list[float] = field(default_factory=list)
    borders: dict[int, int] = field(default_factory=dict)  # nodes of the border, where used
    layout: Layout = field(default_factory=lambda: Layout("left-right"))
    shift: _Point = (0.0, 0.0)
    size: _Point = (0.0, 0.0)
    corner: _Point = (0.0, 0.0)  # in the scene

    def line(self, source: int, target: int, operand: str, width: float) -> int:
        """Return the number of a line, a new one if there is none."""
        key = (source, target, operand)
        if key not in self.lines:
            self.lines[key] = len(self.lines)
            self.widths.append(0.0)
        number = self.lines[key]
        self.widths[number] = max(self.widths[number], width)
        return number


class _Nester:
    """Lays out one request."""

    def __init__(
        self,
        request: NestedRequest,
        cancelled: Callable[[], bool] | None,
        known: LevelLayouts,
    ) -> None:
        self._request, self._cancelled, self._known = request, cancelled, known
        self._turned = request.orientation == "top-down"
        self._levels: list[_Level] = []
        self._homes: dict[int, tuple[int, int]] = {}  # level and place of each box
        self._inner: dict[tuple[int, int], int] = {}  # level by level and place of its frame
        self._lines: dict[tuple[int, int, bool], list[_Point]] = {}  # in the scene
        self._visit(request.nest, -1, -1)
        widths = request.label_widths or (0.0,) * len(request.lines)
        self._ways = [
            self._way(*line, width) for line, width in zip(request.lines, widths, strict=True)
        ]
        for number in reversed(range(len(self._levels))):
            self._place(number)
        for level in self._levels[1:]:
            outer = self._levels[level.parent]
            level.corner = self._moved(
                outer, outer.layout.positions[level.place : level.place + 1]
            )[0]

    def _swapped(self, pair: Sequence[float]) -> _Point:
        """Turn x and y to coordinates along and across the flow, or back."""
        return (pair[1], pair[0]) if self._turned else (pair[0], pair[1])

    def _moved(self, level: _Level, points: Floats) -> list[_Point]:
        """Return points of a level's layout in the scene, along and across the flow."""
        u, v = level.corner[0] + level.shift[0], level.corner[1] + level.shift[1]
        if self._turned:
            return [(u + along, v + across) for across, along in points.tolist()]
        return [(u + along, v + across) for along, across in points.tolist()]

    # Which lines there are at each level

    def _visit(self, nest: Nest, parent: int, place: int) -> None:
        number = len(self._levels)
        self._levels.append(_Level(nest, parent, place))
        self._inner[parent, place] = number
        for item_place, item in enumerate(nest.items):
            if isinstance(item, int):
                self._homes[item] = number, item_place
            else:
                self._visit(item, number, item_place)

    def _chain(self, box: int) -> list[tuple[int, int]]:
        """Return level and place of a box, then of the frames around it."""
        chain = [self._homes[box]]
        while (level := self._levels[chain[-1][0]]).parent >= 0:
            chain.append((level.parent, level.place))
        return chain

    def _way(self, source: int, target: int, operand: str, width: float) -> _Way:
        ups, downs = self._chain(source), self._chain(target)
        while len(ups) > 1 and len(downs) > 1 and ups[-2][0] == downs[-2][0]:
            ups.pop()
            downs.pop()
        lines = [
            (level, self._levels[level].line(place, _OUT, operand, 0.0))
            for level, place in ups[:-1]
        ]
        top = ups[-1][0]
        number = self._levels[top].line(ups[-1][1], downs[-1][1], operand, width)
        lines.append((top, number))
        lines += [
            (level, self._levels[level].line(_IN, place, operand, 0.0))
            for level, place in reversed(downs[:-1])
        ]
        return _Way(lines, len(ups) - 1)

    # Coordinates of a level

    def _place(self, number: int) -> None:
        level = self._levels[number]
        sizes = [
            self._request.sizes[item]
            if isinstance(item, int)
            else self._swapped(self._levels[self._inner[number, place]].size)
            for place, item in enumerate(level.nest.items)
        ]
        count = len(sizes)
        for border in (_IN, _OUT):
            nets = len({line[2] for line in level.lines if border in line[:2]})
            if nets:
                level.borders[border] = len(sizes)
                room = _PORT_PITCH * (min(nets, _MOST_TURNS) - 1)
                sizes.append(self._swapped((_PORT + room, 2.0 + 2 * room)))
        lines = [
            (level.borders.get(source, source), level.borders.get(target, target), operand)
            for source, target, operand in level.lines
        ]
        first, last = level.borders.get(_IN), level.borders.get(_OUT)
        order = [*filter(None, [first]), *range(count), *filter(None, [last])]
        if first is not None:
            lines += _tie(first, order, lines)
        widths = (*level.widths, *[0.0] * (len(lines) - len(level.widths)))
        level.layout = self._laid_out(
            tuple(order),
            tuple(lines),
            tuple(sizes),
            widths if self._request.label_widths else (),
        )
        length, breadth = self._swapped(level.layout.bounds[2:])
        level.size = length, breadth
        if level.parent >= 0:
            self._frame(level, length, breadth, sizes)

    def _laid_out(
        self,
        order: tuple[int, ...],
        lines: tuple[Line, ...],
        sizes: tuple[tuple[float, float], ...],
        widths: tuple[float, ...],
    ) -> Layout:
        """Lay out the content of a frame, or find it laid out before."""
        orientation = self._request.orientation
        key = (orientation, order, lines, sizes, widths)
        found = self._known.find(key)
        if found is None:
            structure = _structure(order, lines)
            request = LayoutRequest(*structure, lines, sizes, orientation, label_widths=widths)
            found = layout(request, self._cancelled)
            self._known.add(key, found)
        return found

    def _frame(
        self, level: _Level, length: float, breadth: float, sizes: Sequence[tuple[float, float]]
    ) -> None:
        """Add room for the border, and put the main chain into the middle if that is near."""
        count, along = len(level.nest.items), int(self._turned)
        begins = level.layout.positions[:count, along]
        ends = begins + np.array(sizes[:count])[:, along]
        # The room for edges behind a border is enough of it.
        before_u = max(0.0, _PADDING - float(begins.min()))
        after_u = max(0.0, _PADDING - length + float(ends.max()))
        before_v = after_v = _PADDING
        if self._turned:
            before_u += TAB_HEIGHT
        else:
            before_v += TAB_HEIGHT
        main = level.borders.get(_IN, level.borders.get(_OUT, 0))
        middle = self._swapped(level.layout.positions[main].tolist())[1]
        middle += self._swapped(sizes[main])[1] / 2
        above, below = before_v + middle, after_v + breadth - middle
        if abs(above - below) <= _CENTRED:
            before_v += max(0.0, below - above)
            after_v += max(0.0, above - below)
        length, breadth = length + before_u + after_u, breadth + before_v + after_v
        least = level.nest.name_width + 2 * _PADDING
        if self._turned:
            grown = max(0.0, least - breadth)
            before_v, breadth = before_v + grown / 2, breadth + grown
        else:
            length = max(length, least)
        level.shift, level.size = (before_u, before_v), (length, breadth)

    # The whole

    def result(self) -> Layout:
        """Return the layout of everything."""
        request = self._request
        corners = np.zeros((len(request.sizes), 2))
        placed = [self._moved(level, level.layout.positions) for level in self._levels]
        for box, (number, place) in self._homes.items():
            corners[box] = placed[number][place]
        sizes = np.array([self._swapped(size) for size in request.sizes]).reshape(-1, 2)
        middles = np.round(corners + sizes / 2).astype(np.int64)
        drawn: set[tuple[int, int]] = set()
        texts_at = [self._moved(level, level.layout.label_points) for level in self._levels]
        routes, branches, points, sides, room, skips = [], [], [], [], [], []
        for way in self._ways:
            fresh = next(
                (n for n, line in enumerate(way.lines) if line not in drawn), len(way.lines) - 1
            )
            whole = self._polyline(self._route(way, 0))
            number, line = way.lines[way.top]
            level = self._levels[number]
            routes.append(whole)
            branches.append(
                whole
                if not fresh and self._is_whole(*way.lines[0])
                else self._polyline(self._route(way, fresh, own=True))
            )
            points.append(self._swapped(texts_at[number][line]))
            sides.append(int(level.layout.label_sides[line]))
            room.append(
                0.0 if way.lines[way.top] in drawn else float(level.layout.label_room[line])
            )
            skips.append(bool(level.layout.skips[line]))
            drawn.update(way.lines)
        frames = np.array(
            [
                (*self._swapped(level.corner), *self._swapped(_sum(level.corner, level.size)))
                for level in self._levels[1:]
            ],
            np.float64,
        ).reshape(-1, 4)
        arrays = (
            corners[:, ::-1].copy() if self._turned else corners,
            middles[:, 0].copy(),
            middles[:, 1].copy(),
            np.zeros(len(corners), np.int64),
        )
        texts = (
            np.array(skips, np.bool_),
            np.array(points, np.float64).reshape(-1, 2),
            np.array(sides, np.int64),
            np.array(room, np.float64),
        )
        for array in (*arrays, *texts, frames):
            array.flags.writeable = False
        return Layout(
            request.orientation, *arrays, request.lines, tuple(routes), tuple(branches), *texts,
            (0.0, 0.0, *self._swapped(self._levels[0].size)), frames,
        )  # fmt: skip

    def _polyline(self, points: list[_Point]) -> Floats:
        polyline = np.array([self._swapped(point) for point in _straightened(points)])
        polyline.flags.writeable = False
        return polyline

    def _route(self, way: _Way, begin: int, *, own: bool = False) -> list[_Point]:
        """Join the lines of an edge from one of them on; of that one perhaps its own part."""
        level, line = way.lines[begin]
        if own and begin and self._is_whole(level, line):
            # It begins at the border, where the line before it ends.
            return self._route(way, begin - 1)[len(self._line(*way.lines[begin - 1])) - 1 :]
        points = self._line(level, line, own=own)
        for number in range(begin + 1, len(way.lines)):
            level, line = way.lines[number]
            following = self._line(level, line)
            if number <= way.top:
                frame = self._levels[way.lines[number - 1][0]]
                points = self._leave(points, following, frame, line)
            else:
                points = self._enter(points, following, self._levels[level], line)
        return points

    def _is_whole(self, number: int, line: int) -> bool:
        """Return whether no other line draws a part of a line."""
        placed = self._levels[number].layout
        return placed.branches[line] is placed.routes[line]

    def _line(self, number: int, line: int, *, own: bool = False) -> list[_Point]:
        key = (number, line, own)
        found = self._lines.get(key)
        if found is None:
            level = self._levels[number]
            parts = level.layout.branches if own else level.layout.routes
            found = self._lines[key] = self._moved(level, parts[line])
        return found

    @staticmethod
    def _leave(
        inside: list[_Point], outside: list[_Point], frame: _Level, line: int
    ) -> list[_Point]:
        """Join a line that ends at a frame's border with the one that goes on from there."""
        end = frame.corner[0] + frame.size[0]
        last = inside[-1]
        if _is_across(outside[:2]):  # into a lane: beside the frame, not over it
            aside = end + _ASIDE
            return [*inside, (aside, last[1]), (aside, outside[1][1]), *outside[2:]]
        start = outside[0]
        if _is_across(inside[-2:]):
            return [*inside[:-1], (last[0], start[1]), *outside]
        turn = end - _turn(line)
        return [*inside, (turn, last[1]), (turn, start[1]), *outside]

    @staticmethod
    def _enter(
        outside: list[_Point], inside: list[_Point], frame: _Level, line: int
    ) -> list[_Point]:
        """Join a line that ends at a frame with the one that goes on inside."""
        begin = frame.corner[0]
        first, last = inside[0], outside[-1]
        if _is_across(outside[-2:]):
            aside = begin - _ASIDE
            outside = [*outside[:-2], (aside, outside[-2][1]), (aside, first[1])]
            last = outside[-1]
        if _is_across(inside[:2]):
            return [*outside, (first[0], last[1]), *inside[1:]]
        turn = begin + frame.shift[0] + _turn(line)
        return [*outside, (turn, last[1]), (turn, first[1]), *inside]


@dataclass(frozen=True, slots=True)
class _Way:
    """The lines of an edge.

    Attributes
    ----------
    lines : list of (int, int)
        Level and number of each, out of frames and into frames.
    top : int
        Place of the one between the two boxes' outermost frames.
    """

    lines: list[tuple[int, int]]
    top: int


def _turn(line: int) -> float:
    """Return the distance from a border at which a line turns."""
    return _PORT / 2 + _PORT_PITCH * (line % _MOST_TURNS)


def _sum(one: _Point, other: _Point) -> _Point:
    return one[0] + other[0], one[1] + other[1]


def _is_across(points: Sequence[_Point]) -> bool:
    """Return whether a straight part goes across the flow."""
    return len(points) > 1 and points[0][0] == points[1][0] and points[0][1] != points[1][1]


def _straightened(points: list[_Point]) -> list[_Point]:
    """Leave out points that are repeated, or on a straight line between others."""
    kept: list[_Point] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and any(kept[-2][n] == kept[-1][n] == point[n] for n in (0, 1)):
            kept[-1] = point
        else:
            kept.append(point)
    return kept if len(kept) > 1 else points[:1] + points[-1:]


def _structure(
    order: Sequence[int], lines: Sequence[Line]
) -> tuple[tuple[tuple[int, ...], ...], list[int]]:
    """Return the connected components, and edges on the longest path to each node."""
    sources: dict[int, set[int]] = {node: set() for node in order}
    for source, target, _ in lines:
        sources[target].add(source)
    generations = [0] * len(order)
    home = {node: {node} for node in order}
    for node in order:
        for source in sources[node]:
            generations[node] = max(generations[node], generations[source] + 1)
            small, large = sorted((home[node], home[source]), key=len)
            if small is not large:
                large |= small
                home.update(dict.fromkeys(small, large))
    components = {id(nodes): tuple(sorted(nodes)) for nodes in home.values()}
    return tuple(sorted(components.values())), generations


def _tie(first: int, order: Sequence[int], lines: Sequence[Line]) -> list[Line]:
    """Return an invisible line to what would begin before a frame's border, if there is any."""
    targets: dict[int, set[int]] = {node: set() for node in order}
    begins = set(order)
    for source, target, _ in lines:
        targets[source].add(target)
        begins.discard(target)
    heights = dict.fromkeys(order, 0)
    for node in reversed(order):
        heights[node] = max((heights[target] + 1 for target in targets[node]), default=0)
    highest = max(begins, key=lambda node: (heights[node], node == first))
    return [] if highest == first else [(first, highest, "")]
