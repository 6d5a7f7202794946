"""Assigns slots in the gaps between layers, where edges turn, and ports along boxes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from kuiper_studio.layout.links import ABOVE, STRAIGHT, Link, exposed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kuiper_studio.layout.links import Lane
    from kuiper_studio.layout.rows import Rows

__all__ = ["Channels", "assign_channels", "assign_ports"]

# Sorting by pairs is quadratic; gaps with more turns than this are sorted by their sources.
_MOST_PAIRS: Final = 48
_PORT_PITCH: Final = 10.0
_PARALLEL_PITCH: Final = 14.0
_LEAST_APART: Final = 2.5
_SHIFTS: Final = (0.0, 5.0, -5.0, 2.5, -2.5, 7.5, -7.5)
_PORT_MARGIN: Final = 12.0
_FAR: Final = 1 << 30  # row of a lane below, farther than any row


def _lane_row(lane: Lane) -> int:
    """Return the row that represents a lane: before the first or after the last."""
    return -1 if lane.side == ABOVE else _FAR


@dataclass(slots=True, eq=False)
class _Turn:
    """A line across the flow in one gap, from one row to others."""

    start: int
    ends: list[int] = field(default_factory=list)
    low: int = _FAR
    high: int = -1

    def reach(self, row: int) -> None:
        self.ends.append(row)
        self.low = min(self.low, self.start, row)
        self.high = max(self.high, self.start, row)


_Turns: TypeAlias = dict[tuple[int, bool], _Turn]  # by net, and whether it leaves a lane


@dataclass(frozen=True, slots=True)
class Channels:
    """Slots of the gaps.

    Attributes
    ----------
    slots : dict of (int, int, bool) to int
        Slot by gap, net and whether the turn comes down from the net's lane.
    counts : list of int
        Slots that each gap needs.
    """

    slots: dict[tuple[int, int, bool], int]
    counts: list[int]


def assign_channels(links: Sequence[Link], layers: Sequence[int], rows: Rows) -> Channels:
    """Assign every turn a slot in its gap, so that lines in one slot do not touch.

    The order of slots is chosen to cross as few lines as possible.
    """
    gaps: list[_Turns] = [{} for _ in range(max(layers) + 1)]
    for link in links:
        source_row, target_row = rows.rows[link.source], rows.rows[link.target]
        if link.lane is not None:
            side_row = _lane_row(link.lane)
            if not exposed(link.source, link.lane.side, layers, rows):
                turns = gaps[layers[link.source]]
                turns.setdefault((link.net, False), _Turn(source_row)).reach(side_row)
            if not exposed(link.target, link.lane.side, layers, rows):
                turns = gaps[layers[link.target] - 1]
                turns.setdefault((link.net, True), _Turn(side_row)).reach(target_row)
        elif link.gap != STRAIGHT:
            turns = gaps[link.gap]
            turns.setdefault((link.net, False), _Turn(source_row)).reach(target_row)
    slots: dict[tuple[int, int, bool], int] = {}
    counts = []
    for gap, turns in enumerate(gaps):
        extents: list[tuple[int, int]] = []
        for (net, down), turn in _order(turns):
            slots[gap, net, down] = _take_slot(extents, turn.low, turn.high)
        counts.append(len(extents))
    return Channels(slots, counts)


def _take_slot(extents: list[tuple[int, int]], low: int, high: int) -> int:
    """Return the slot after the last one that overlaps the line, to keep the order."""
    slot = len(extents)
    while slot and (extents[slot - 1][1] < low or high < extents[slot - 1][0]):
        slot -= 1
    if slot == len(extents):
        extents.append((low, high))
    else:
        extents[slot] = (min(extents[slot][0], low), max(extents[slot][1], high))
    return slot


def _order(turns: _Turns) -> list[tuple[tuple[int, bool], _Turn]]:
    """Order the turns of a gap by inserting each where it crosses least."""
    waiting = sorted(turns.items(), key=lambda item: (item[1].start, item[0]))
    if len(waiting) > _MOST_PAIRS:
        return waiting
    ordered: list[tuple[tuple[int, bool], _Turn]] = []
    for item in waiting:
        before = [_crossings(item[1], other[1]) for other in ordered]
        after = [_crossings(other[1], item[1]) for other in ordered]
        costs = [sum(after[:i]) + sum(before[i:]) for i in range(len(ordered) + 1)]
        ordered.insert(costs.index(min(costs)), item)
    return ordered


def _crossings(left: _Turn, right: _Turn) -> int:
    """Count the crossings of two turns in one gap, the first nearer to the sources.

    Lines that would overlap, one leaving and one entering in the same row, count twice.
    """
    return (
        (left.low <= right.start <= left.high)
        + sum(right.low <= end <= right.high for end in left.ends)
        + (right.start in left.ends)
    )


_Ports: TypeAlias = dict[int, dict[int, int | None]]
# By node and net: the row that the net comes from or goes to, None for straight ahead.


def assign_ports(
    links: Iterable[Link], layers: Sequence[int], rows: Rows, breadths: Sequence[float]
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], float]]:
    """Distribute the ends of links along the sides of boxes.

    Parameters
    ----------
    links : iterable of Link
    layers : sequence of int
    rows : Rows
    breadths : sequence of float
        Size of each node across the flow.

    Returns
    -------
    outgoing : dict of (int, int) to float
        Offset from the middle of the box, by source and net.
    incoming : dict of (int, int) to float
        Likewise, by target and net.
    """
    leaving: _Ports = {}
    entering: _Ports = {}
    parallel: dict[tuple[int, int], list[int]] = {}
    for link in links:
        source_row, target_row = rows.rows[link.source], rows.rows[link.target]
        out, into = leaving.setdefault(link.source, {}), entering.setdefault(link.target, {})
        if link.lane is not None:
            if not exposed(link.source, link.lane.side, layers, rows):
                out.setdefault(link.net, _lane_row(link.lane))
            if not exposed(link.target, link.lane.side, layers, rows):
                into[link.net] = _lane_row(link.lane)
        elif link.gap == STRAIGHT:
            out[link.net] = into[link.net] = None
            parallel.setdefault((link.source, link.target), []).append(link.net)
        else:
            out.setdefault(link.net, target_row)
            into[link.net] = source_row
    straight = {
        (node, net): (i - (len(nets) - 1) / 2) * _PARALLEL_PITCH
        for pair, nets in parallel.items()
        for i, net in enumerate(nets)
        for node in pair
    }
    outgoing: dict[tuple[int, int], float] = {}
    for node, nets in leaving.items():
        for net, offset in _spread(node, nets, straight, rows, breadths).items():
            outgoing[node, net] = offset
    place = {(layers[node], row): node for node, row in enumerate(rows.rows)}
    incoming: dict[tuple[int, int], float] = {}
    for node, nets in entering.items():
        offsets = _spread(node, nets, straight, rows, breadths)
        facing = place.get((layers[node] - 1, rows.rows[node]), -1)
        taken = [
            outgoing[facing, net]
            for net, row in leaving.get(facing, {}).items()
            if row is not None
        ]
        turning = [net for net, row in nets.items() if row is not None]
        shift = _free_shift([offsets[net] for net in turning], taken)
        for net, offset in offsets.items():
            incoming[node, net] = offset + (shift if net in turning else 0.0)
    return outgoing, incoming


def _free_shift(offsets: list[float], taken: list[float]) -> float:
    """Return the shift that separates lines into a box from lines out of the opposite one."""
    for shift in _SHIFTS:
        if all(
            abs(offset + shift - other) >= _LEAST_APART for offset in offsets for other in taken
        ):
            return shift
    return 0.0


def _spread(
    node: int,
    nets: dict[int, int | None],
    straight: dict[tuple[int, int], float],
    rows: Rows,
    breadths: Sequence[float],
) -> dict[int, float]:
    offsets = {net: straight[node, net] for net, row in nets.items() if row is None}
    turning = sorted((row, net) for net, row in nets.items() if row is not None)
    room = breadths[node] / 2 - _PORT_MARGIN
    if not offsets:
        pitch = min(_PORT_PITCH, 2 * room / max(1, len(turning) - 1))
        middle = (len(turning) - 1) / 2
        return {net: (i - middle) * pitch for i, (_, net) in enumerate(turning)}
    edge = max(offsets.values())
    own = rows.rows[node]
    above = [net for row, net in reversed(turning) if row <= own]
    below = [net for row, net in turning if row > own]
    for nets_there, sign in ((above, -1), (below, 1)):
        pitch = min(_PORT_PITCH, (room - edge) / max(1, len(nets_there)))
        offsets.update(
            {net: sign * (edge + (i + 1) * pitch) for i, net in enumerate(nets_there)}
        )
    return offsets
