"""Computes a layout: each component by itself, then all side by side."""

from __future__ import annotations

import math
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from kuiper_studio.layout.layering import assign_layers, make_dag
from kuiper_studio.layout.model import Floats, Layout, LayoutCancelledError, LayoutRequest
from kuiper_studio.layout.routing import Label, Placed, Spacing, place_component
from kuiper_studio.layout.rows import assign_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kuiper_studio.layout.model import Line

__all__ = ["layout"]

_Point: TypeAlias = tuple[float, float]

_COMPONENT_GAP: Final = 2.0  # in sibling gaps
_SHELF_ASPECT: Final = 1.6


def layout(request: LayoutRequest, cancelled: Callable[[], bool] | None = None) -> Layout:
    """Lay a graph out in layers.

    Chains are straight, each in a row of its own; edges between neighbouring layers go from
    port to port, edges over several layers run in a free row or in a lane beside all rows.
    The same request always gives the same layout.

    Parameters
    ----------
    request : LayoutRequest
    cancelled : callable, optional
        Called now and then on the calling thread; True cancels.

    Returns
    -------
    Layout

    Raises
    ------
    ValueError
        If there is not one size for each node.
    LayoutCancelledError
        If `cancelled` returned True.
    """

    def check() -> None:
        if cancelled is not None and cancelled():
            raise LayoutCancelledError

    check()
    count, nodes = len(request.sizes), len(request.generations)
    if nodes != count:
        raise ValueError(f"{count} sizes were given for {nodes} nodes")
    if not count:
        return Layout(request.orientation)
    parts = _place_parts(request, check)
    offsets = _pack([part.size for part in parts], _COMPONENT_GAP * request.sibling_gap)
    return _assemble(request, parts, offsets)


def _place_parts(request: LayoutRequest, check: Callable[[], None]) -> list[Placed]:
    members = request.components
    turned = request.orientation == "top-down"
    sizes = np.asarray(request.sizes, np.float64).reshape(-1, 2)
    if turned:
        sizes = sizes[:, ::-1]
    spacing = Spacing(request.gap, request.sibling_gap)
    local = [0] * len(sizes)
    component = [0] * len(sizes)
    for number, nodes in enumerate(members):
        for index, node in enumerate(nodes):
            local[node], component[node] = index, number
    edges: list[list[Line]] = [[] for _ in members]
    widths: list[list[float]] = [[] for _ in members]
    labelled = bool(request.label_widths) and not turned
    for number, (source, target, operand) in enumerate(request.lines):
        edges[component[source]].append((local[source], local[target], operand))
        if labelled:
            widths[component[source]].append(request.label_widths[number])
    parts = []
    for number, nodes in enumerate(members):
        if number % 64 == 0:
            check()
        pairs = ((source, target) for source, target, _ in edges[number])
        dag = make_dag(pairs, [request.generations[node] for node in nodes])
        layers = assign_layers(dag)
        rows = assign_rows(dag, layers, check)
        parts.append(
            place_component(
                sizes[list(nodes)], edges[number], widths[number], layers, rows, spacing, check
            )
        )
    return parts


def _pack(sizes: Sequence[tuple[float, float]], gap: float) -> list[tuple[float, float]]:
    """Pack components on shelves as long as the longest one, or of a pleasant aspect."""
    area = sum((length + gap) * (breadth + gap) for length, breadth in sizes)
    limit = max(*(length for length, _ in sizes), math.sqrt(area * _SHELF_ASPECT))
    offsets = []
    u = v = shelf = 0.0
    for length, breadth in sizes:
        if u and u + length > limit:
            u, v, shelf = 0.0, v + shelf + gap, 0.0
        offsets.append((u, v))
        u += length + gap
        shelf = max(shelf, breadth)
    return offsets


def _assemble(
    request: LayoutRequest, parts: Sequence[Placed], offsets: Sequence[tuple[float, float]]
) -> Layout:
    orientation, lines, members = request.orientation, request.lines, request.components
    count, line_count = len(request.sizes), len(lines)
    turned = orientation == "top-down"
    positions = np.zeros((count, 2))
    layers, rows, components = (np.zeros(count, np.int64) for _ in range(3))
    for number, (nodes, part) in enumerate(zip(members, parts, strict=True)):
        index = np.asarray(nodes)
        positions[index] = part.positions - part.origin + offsets[number]
        layers[index], rows[index], components[index] = part.layers, part.rows, number
    homes = components[[source for source, _, _ in lines]].tolist()
    shifts = [
        (u - part.origin[0], v - part.origin[1])
        for (u, v), part in zip(offsets, parts, strict=True)
    ]
    drawn: list[list[_Point]] = []
    moves: list[_Point] = []
    ways: list[tuple[int, int]] = []  # index of the polylines of route and branch, by line
    labels: list[Label] = []
    skips = np.zeros(line_count, np.bool_)
    done = [0] * len(parts)
    for number, home in enumerate(homes):
        part, shift, local = parts[home], shifts[home], done[home]
        done[home] += 1
        route, branch = part.routes[local], part.branches[local]
        polylines = [route] if branch is route else [route, branch]
        ways.append((len(drawn), len(drawn) + len(polylines) - 1))
        drawn += polylines
        moves += [shift] * len(polylines)
        label = part.labels[local]
        labels.append(label._replace(u=label.u + shift[0], v=label.v + shift[1]))
        skips[number] = part.skips[local]
    moved = _moved(drawn, moves, turned=turned)
    routes = tuple([moved[route] for route, _ in ways])
    branches = tuple([moved[branch] for _, branch in ways])
    points = np.array([label[:2] for label in labels], np.float64).reshape(line_count, 2)
    length = max(u + part.size[0] for (u, _), part in zip(offsets, parts, strict=True))
    breadth = max(v + part.size[1] for (_, v), part in zip(offsets, parts, strict=True))
    if turned:
        positions, points = positions[:, ::-1].copy(), points[:, ::-1].copy()
        length, breadth = breadth, length
    sides = np.array([label.side for label in labels], np.int64)
    room = np.array([label.room for label in labels], np.float64)
    for array in (positions, layers, rows, components, skips, points, sides, room):
        array.flags.writeable = False
    return Layout(
        orientation, positions, layers, rows, components, lines,
        routes, branches, skips, points, sides, room, (0.0, 0.0, length, breadth),
    )  # fmt: skip


def _moved(
    polylines: Sequence[Sequence[_Point]], shifts: Sequence[_Point], *, turned: bool
) -> list[Floats]:
    """Move polylines by an offset each, as parts of one array for speed."""
    counts = np.array([len(polyline) for polyline in polylines], np.intp)
    numbers = chain.from_iterable(chain.from_iterable(polylines))
    points = np.fromiter(numbers, np.float64, 2 * int(counts.sum())).reshape(-1, 2)
    points += np.repeat(np.reshape(shifts, (-1, 2)), counts, axis=0)
    if turned:
        points = points[:, ::-1].copy()
    points.flags.writeable = False
    ends = np.cumsum(counts).tolist()
    return [points[begin:end] for begin, end in pairwise([0, *ends])]
