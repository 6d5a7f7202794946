"""Computes coordinates of one component, along (u) and across (v) the flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kuiper_studio.layout.channels import Channels, assign_channels, assign_ports
from kuiper_studio.layout.links import (
    ABOVE,
    BELOW,
    STRAIGHT,
    Lane,
    Link,
    exposed,
    make_lanes,
    make_links,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kuiper_studio.layout.model import Floats
    from kuiper_studio.layout.rows import Rows

__all__ = ["Label", "Placed", "Spacing", "place_component"]

_LANE_CLEARANCE: Final = 40.0
_LANE_PITCH: Final = 14.0
_SLOT_PITCH: Final = 8.0
_MOST_SLOT_ROOM: Final = 480.0
_GAP_START: Final = 12.0  # straight stub after a box before the first turn
_GAP_END: Final = 19.0  # room for a corner and an arrow head before the next box
_LABEL_MARGIN: Final = 12.0
_TAP_PITCH: Final = 14.0
_TAP_MARGIN: Final = 12.0
_TEE: Final = 10.0  # a branch of a lane starts this much before its fork, under its corner

_Point = tuple[float, float]


class Label(NamedTuple):
    """Position of an edge's text; see `Layout.label_points`."""

    u: float = 0.0
    v: float = 0.0
    side: int = 0
    room: float = 0.0


@dataclass(frozen=True, slots=True)
class Spacing:
    """Distances of the request.

    Attributes
    ----------
    layer_gap, sibling_gap : float
    """

    layer_gap: float
    sibling_gap: float


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """One component with coordinates.

    Attributes
    ----------
    positions : ndarray of shape (N, 2)
    layers, rows : list of int
    routes, branches : list of list of (float, float)
        By edge; the same list if a branch is all of its route.
    skips : list of bool
    labels : list of Label
    origin : (float, float)
        Top left corner of its bounds.
    size : (float, float)
    """

    positions: Floats
    layers: Sequence[int]
    rows: Sequence[int]
    routes: list[list[_Point]]
    branches: list[list[_Point]]
    skips: list[bool]
    labels: list[Label]
    origin: tuple[float, float]
    size: tuple[float, float]


def place_component(
    sizes: Floats,
    edges: Sequence[tuple[int, int, str]],
    label_widths: Sequence[float],
    layers: Sequence[int],
    rows: Rows,
    spacing: Spacing,
    check: Callable[[], None],
) -> Placed:
    """Turn layers and rows into coordinates.

    Parameters
    ----------
    sizes : ndarray of shape (N, 2)
        Along and across the flow.
    edges : sequence of (int, int, str)
    label_widths : sequence of float
        By edge, along the flow.
    layers : sequence of int
    rows : Rows
    spacing : Spacing
    check : callable
        Called now and then; raises to cancel.
    """
    links, by_edge = make_links(edges, layers, rows)
    try:
        return _place(links, by_edge, sizes, label_widths, layers, rows, spacing, check)
    finally:
        # Or these cycles, of tens of thousands of objects, would wait for the cycle collector.
        for link in links:
            link.lane = None


def _place(
    links: list[Link],
    by_edge: list[Link],
    sizes: Floats,
    label_widths: Sequence[float],
    layers: Sequence[int],
    rows: Rows,
    spacing: Spacing,
    check: Callable[[], None],
) -> Placed:
    lanes = make_lanes(links, layers, rows)
    channels = assign_channels(links, layers, rows)
    check()
    gaps = _gap_widths(by_edge, label_widths, layers, channels, spacing)
    grid = _Grid.of(sizes, layers, rows, gaps, channels, spacing)
    _stack_lanes(lanes, grid, check)
    router = _Router(grid, links, lanes, sizes)
    drawn: dict[int, tuple[list[_Point], list[_Point], Label]] = {}
    for number, link in enumerate(links):
        if number % 1024 == 0:
            check()
        drawn[id(link)] = router.draw(link)
    ways = [drawn[id(link)] for link in by_edge]
    return Placed(
        grid.positions,
        layers,
        rows.rows,
        [way[0] for way in ways],
        [way[1] for way in ways],
        [link.lane is not None for link in by_edge],
        [way[2] for way in ways],
        *_bounds(grid.positions, sizes, lanes),
    )


def _gap_widths(
    by_edge: Sequence[Link],
    label_widths: Sequence[float],
    layers: Sequence[int],
    channels: Channels,
    spacing: Spacing,
) -> list[float]:
    gaps = [
        max(
            spacing.layer_gap,
            _GAP_START + _GAP_END + min(_SLOT_PITCH * (count - 1), _MOST_SLOT_ROOM),
        )
        for count in channels.counts
    ]
    for link, width in zip(by_edge, label_widths, strict=False):
        if link.lane is None:
            layer = layers[link.source]
            gaps[layer] = max(gaps[layer], width + _LABEL_MARGIN)
    return gaps


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Coordinates of layers, gaps, rows and nodes."""

    layers: Sequence[int]
    rows: Rows
    channels: Channels
    gap_starts: list[float]
    gaps: list[float]
    tops: list[float]
    """Of the rows."""
    bottoms: list[float]
    positions: Floats
    sizes: list[tuple[float, float]]
    middles: list[float]
    """Of the nodes, across the flow."""

    @classmethod
    def of(
        cls,
        sizes: Floats,
        layers: Sequence[int],
        rows: Rows,
        gaps: list[float],
        channels: Channels,
        spacing: Spacing,
    ) -> _Grid:
        layer_index, row_index = np.asarray(layers), np.asarray(rows.rows)
        lengths = np.zeros(max(layers) + 1)
        np.maximum.at(lengths, layer_index, sizes[:, 0])
        breadths = np.zeros(int(row_index.max()) + 1)
        np.maximum.at(breadths, row_index, sizes[:, 1])
        starts = np.concatenate(([0.0], np.cumsum(lengths + gaps)[:-1]))
        tops = np.concatenate(([0.0], np.cumsum(breadths + spacing.sibling_gap)[:-1]))
        middles = tops[row_index] + breadths[row_index] / 2
        u = starts[layer_index] + (lengths[layer_index] - sizes[:, 0]) / 2
        positions = np.column_stack((u, middles - sizes[:, 1] / 2))
        return cls(
            layers,
            rows,
            channels,
            (starts + lengths).tolist(),
            gaps,
            tops.tolist(),
            (tops + breadths).tolist(),
            positions,
            [tuple(size) for size in sizes.tolist()],
            middles.tolist(),
        )

    def slot(self, gap: int, net: int, *, down: bool) -> float:
        """Coordinate along the flow of a turn."""
        count = self.channels.counts[gap]
        room = self.gaps[gap] - _GAP_START - _GAP_END
        pitch = min(_SLOT_PITCH, room / max(1, count - 1))
        first = self.gap_starts[gap] + _GAP_START + (room - (count - 1) * pitch) / 2
        return first + self.channels.slots[gap, net, down] * pitch


def _stack_lanes(lanes: Sequence[Lane], grid: _Grid, check: Callable[[], None]) -> None:
    """Place each lane as near to the rows as possible."""
    below = [grid.bottoms[bits.bit_length() - 1] for bits in grid.rows.occupied]
    sky = {
        ABOVE: np.full(2 * len(below), grid.tops[0] - _LANE_CLEARANCE),
        # Mirrored, so that both sides grow towards minus infinity.
        BELOW: np.repeat(-np.asarray(below) - _LANE_CLEARANCE, 2),
    }
    for number, lane in enumerate(lanes):
        if number % 256 == 0:
            check()
        there = sky[lane.side][lane.first : lane.last + 1]
        place = float(there.min())
        there[:] = place - _LANE_PITCH
        lane.place = place if lane.side == ABOVE else -place


class _Router:
    """Computes the route of one link after the other."""

    def __init__(
        self, grid: _Grid, links: Sequence[Link], lanes: Sequence[Lane], sizes: Floats
    ) -> None:
        self._grid = grid
        self._outgoing, self._incoming = assign_ports(
            links, grid.layers, grid.rows, sizes[:, 1].tolist()
        )
        self._labelled: set[tuple[int, int, int]] = set()
        self._previous: dict[Link, Link | None] = {}
        self._exits, self._taps = self._side_ports(lanes)
        for lane in lanes:
            lane.exit = self._exit(lane)
        for lane in lanes:
            lane.links.sort(key=lambda link: (self._entry(link), link.target))
            self._previous.update(zip(lane.links, [None, *lane.links], strict=False))

    def draw(self, link: Link) -> tuple[list[_Point], list[_Point], Label]:
        """Return the route of a link, its own part of it, and the position of its text."""
        if link.lane is not None:
            return self._draw_in_lane(link, link.lane)
        points = self._draw_direct(link)
        return points, points, self._direct_label(link, points)

    def _draw_direct(self, link: Link) -> list[_Point]:
        start, end = self._leave(link), self._arrive(link)
        if link.gap == STRAIGHT:
            return [start, end]
        turn = self._grid.slot(link.gap, link.net, down=False)
        return [start, (turn, start[1]), (turn, end[1]), end]

    def _direct_label(self, link: Link, points: list[_Point]) -> Label:
        grid = self._grid
        rows = grid.rows.rows
        first, last = grid.layers[link.source], grid.layers[link.target] - 1
        if link.gap == STRAIGHT:
            gap, row, v, side = first, rows[link.source], points[0][1], ABOVE
        else:
            # The text goes to the end in the outer row; the inner one has its own edges.
            at_source = rows[link.source] > rows[link.target]
            at_turn = link.gap == (first if at_source else last)
            gap = first if at_source else last
            row = rows[link.source if at_source else link.target]
            v = points[0 if at_source else -1][1]
            side = BELOW if at_turn else ABOVE
        for tried in (side, -side):
            if (gap, row, tried) not in self._labelled:
                self._labelled.add((gap, row, tried))
                middle = grid.gap_starts[gap] + grid.gaps[gap] / 2
                return Label(middle, v, tried, grid.gaps[gap])
        return Label()

    def _draw_in_lane(self, link: Link, lane: Lane) -> tuple[list[_Point], list[_Point], Label]:
        grid = self._grid
        entry = self._entry(link)
        if exposed(link.source, lane.side, grid.layers, grid.rows):
            head = [(lane.exit, self._side(link.source, lane.side)), (lane.exit, lane.place)]
        else:
            leave = self._leave(link)
            head = [leave, (lane.exit, leave[1]), (lane.exit, lane.place)]
        if exposed(link.target, lane.side, grid.layers, grid.rows):
            tail = [(entry, lane.place), (entry, self._side(link.target, lane.side))]
        else:
            arrive = self._arrive(link)
            tail = [(entry, lane.place), (entry, arrive[1]), arrive]
        whole = [*head, *tail]
        previous = self._previous[link]
        if previous is None:
            return whole, whole, self._lane_label(lane, lane.exit, entry)
        start = self._entry(previous)
        own = [(start - _TEE, lane.place), *tail]
        return whole, own, self._lane_label(lane, start, entry)

    @staticmethod
    def _lane_label(lane: Lane, start: float, end: float) -> Label:
        return Label((start + end) / 2, lane.place, 0, end - start)

    def _leave(self, link: Link) -> _Point:
        grid = self._grid
        u = float(grid.positions[link.source, 0]) + grid.sizes[link.source][0]
        return u, grid.middles[link.source] + self._outgoing[link.source, link.net]

    def _arrive(self, link: Link) -> _Point:
        grid = self._grid
        u = float(grid.positions[link.target, 0])
        return u, grid.middles[link.target] + self._incoming[link.target, link.net]

    def _side(self, node: int, side: int) -> float:
        return self._grid.middles[node] + side * self._grid.sizes[node][1] / 2

    def _exit(self, lane: Lane) -> float:
        if (lane.source, lane.net) in self._exits:
            return self._exits[lane.source, lane.net]
        return self._grid.slot(self._grid.layers[lane.source], lane.net, down=False)

    def _entry(self, link: Link) -> float:
        if (link.target, link.net) in self._taps:
            return self._taps[link.target, link.net]
        return self._grid.slot(self._grid.layers[link.target] - 1, link.net, down=True)

    def _side_ports(
        self, lanes: Sequence[Lane]
    ) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
        """Return where, along the flow, lanes leave and enter the sides of boxes.

        Ends come before starts, so that one lane may end where the next begins. Inner lanes
        are further out, so that no lane crosses the end of another one.
        """
        grid = self._grid
        ports: dict[tuple[int, int], list[tuple[bool, float, int]]] = {}
        for lane in lanes:
            height = abs(lane.place)
            if exposed(lane.source, lane.side, grid.layers, grid.rows):
                key = (lane.source, lane.side)
                ports.setdefault(key, []).append((True, -height, lane.net))
            for link in lane.links:
                if exposed(link.target, lane.side, grid.layers, grid.rows):
                    key = (link.target, lane.side)
                    ports.setdefault(key, []).append((False, height, lane.net))
        exits: dict[tuple[int, int], float] = {}
        taps: dict[tuple[int, int], float] = {}
        for (node, _), there in ports.items():
            there.sort()
            length = grid.sizes[node][0]
            pitch = min(_TAP_PITCH, (length - 2 * _TAP_MARGIN) / max(1, len(there) - 1))
            first = float(grid.positions[node, 0]) + (length - pitch * (len(there) - 1)) / 2
            for number, (leaves, _, net) in enumerate(there):
                (exits if leaves else taps)[node, net] = first + number * pitch
        return exits, taps


def _bounds(
    positions: Floats, sizes: Floats, lanes: Sequence[Lane]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return origin and size of a component."""
    far = positions + sizes
    places = [lane.place for lane in lanes]
    low = min([float(positions[:, 1].min()), *places])
    high = max([float(far[:, 1].max()), *places])
    start = float(positions[:, 0].min())
    return (start, low), (float(far[:, 0].max()) - start, high - low)
