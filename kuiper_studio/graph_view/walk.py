"""Moves through the graph with the arrow keys."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kuiper_studio.graph_view.geometry import Geometry

__all__ = ["Step", "neighbour"]


class Step(Enum):
    """Direction from a box."""

    FORWARD = "along an outgoing edge"
    BACK = "along an incoming edge"
    BEFORE = "to the previous sibling"
    BEHIND = "to the next sibling"


def neighbour(geometry: Geometry, box: int, step: Step) -> int:
    """Return the box that an arrow key selects; the same one if there is no other.

    Along edges the neighbour in the same row comes first, then the nearest; siblings are the
    boxes of the nearest row on that side, the one nearest in layer first.
    """
    layers, rows = geometry.layout.layers, geometry.layout.rows
    if step in (Step.FORWARD, Step.BACK):
        ends = {
            (edge.target if step is Step.FORWARD else edge.source)
            for edge in (geometry.scene.edges[n] for n in geometry.scene.edges_of[box])
        } - {box}
        return min(
            ends,
            key=lambda n: (rows[n] != rows[box], abs(layers[n] - layers[box]), n),
            default=box,
        )
    sign = -1 if step is Step.BEFORE else 1
    components = geometry.layout.components
    beside = ((components == components[box]) & ((rows - rows[box]) * sign > 0)).nonzero()[0]
    return min(
        beside.tolist(),
        key=lambda n: (abs(layers[n] - layers[box]), abs(rows[n] - rows[box]), n),
        default=box,
    )
