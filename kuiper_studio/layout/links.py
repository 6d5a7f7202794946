"""Decides the path of each edge, before coordinates are known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kuiper_studio.layout.rows import Rows

__all__ = ["ABOVE", "BELOW", "STRAIGHT", "Lane", "Link", "exposed", "make_lanes", "make_links"]

STRAIGHT: Final = -1  # gap of a link that does not turn
ABOVE: Final = -1
BELOW: Final = 1


@dataclass(slots=True, eq=False)
class Link:
    """One edge; repeated edges are one link.

    Attributes
    ----------
    source, target : int
    net : int
        Links of one net carry the same thing from the same source.
    gap : int
        Gap between layers in which the link turns from its source's row to its target's
        (gap g follows layer g), or STRAIGHT. Not used by links in a lane.
    lane : Lane or None
        For a link that runs beside all rows.
    """

    source: int
    target: int
    net: int
    gap: int = STRAIGHT
    lane: Lane | None = None


@dataclass(slots=True, eq=False)
class Lane:
    """A lane: the path of one net's skip edges beside the rows.

    Attributes
    ----------
    net, source : int
    links : list of Link
    side : int
        ABOVE or BELOW the rows.
    first, last : int
        Extent, in half layers.
    place : float
        Coordinate across the flow, once known.
    exit : float
        Coordinate along the flow where it leaves the source, or turns into the lane.
    """

    net: int
    source: int
    links: list[Link] = field(default_factory=list)
    side: int = ABOVE
    first: int = 0
    last: int = 0
    place: float = 0.0
    exit: float = 0.0


def make_links(
    edges: Sequence[tuple[int, int, str]], layers: Sequence[int], rows: Rows
) -> tuple[list[Link], list[Link]]:
    """Decide the path of each edge.

    Parameters
    ----------
    edges : sequence of (int, int, str)
    layers : sequence of int
    rows : Rows

    Returns
    -------
    links : list of Link
        Each once, in the order of `edges`.
    by_edge : list of Link
        The link of each edge.
    """
    nets: dict[tuple[int, str], int] = {}
    links: dict[tuple[int, int, int], Link] = {}
    lanes: dict[int, Lane] = {}
    running: set[tuple[int, int]] = set()
    by_edge = []
    for source, target, key in edges:
        net = nets.setdefault((source, key), len(nets))
        link = links.get((source, target, net))
        if link is None:
            link = links[source, target, net] = Link(source, target, net)
            _choose_way(link, layers, rows, running, lanes)
        by_edge.append(link)
    return list(links.values()), by_edge


def _choose_way(
    link: Link,
    layers: Sequence[int],
    rows: Rows,
    running: set[tuple[int, int]],
    lanes: dict[int, Lane],
) -> None:
    pair = (link.source, link.target)
    source_row, target_row = rows.rows[link.source], rows.rows[link.target]
    if layers[link.target] - layers[link.source] == 1:
        if source_row != target_row:
            link.gap = layers[link.source]
    elif pair in rows.runs and pair not in running:
        # A row is for one line; a second net between the same two nodes takes a lane.
        running.add(pair)
        if source_row != target_row:
            at_start = rows.runs[pair] == target_row
            link.gap = layers[link.source] if at_start else layers[link.target] - 1
    else:
        link.lane = lanes.setdefault(link.net, Lane(link.net, link.source))
        link.lane.links.append(link)


def exposed(node: int, side: int, layers: Sequence[int], rows: Rows) -> bool:
    """Return whether nothing is between a node and the lanes of a side."""
    row = rows.rows[node]
    if side == ABOVE:
        return row == 0
    return rows.occupied[layers[node]] >> (row + 1) == 0


def make_lanes(links: Sequence[Link], layers: Sequence[int], rows: Rows) -> list[Lane]:
    """Choose the side of each lane and order the lanes so that inner ones come first.

    The side is the one that more of the lane's ends can reach straight; above when equal.
    """
    lanes = list({id(link.lane): link.lane for link in links if link.lane is not None}.values())
    for lane in lanes:
        lane.links.sort(key=lambda link: (layers[link.target], link.target))
        ends = [lane.source, *(link.target for link in lane.links)]
        above, below = (
            sum(exposed(node, side, layers, rows) for node in ends) for side in (ABOVE, BELOW)
        )
        lane.side = BELOW if below > above else ABOVE
        lane.first = 2 * layers[lane.source] + 1
        lane.last = 2 * layers[lane.links[-1].target]
    return sorted(lanes, key=lambda lane: (lane.last - lane.first, lane.first, lane.net))
