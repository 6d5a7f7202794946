"""Request and result of a layout: frozen values that may cross threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LAYER_GAPS",
    "Floats",
    "Layout",
    "LayoutCancelledError",
    "LayoutRequest",
    "Line",
    "Orientation",
]

Orientation: TypeAlias = Literal["left-right", "top-down"]
Floats: TypeAlias = npt.NDArray[np.float64]
Line: TypeAlias = tuple[int, int, str]
"""Node indexes of producer and consumer, and the operand."""

LAYER_GAPS: Final[dict[Orientation, float]] = {"left-right": 53.0, "top-down": 34.0}


class LayoutCancelledError(Exception):
    """The caller has cancelled the layout."""


@dataclass(frozen=True, slots=True, eq=False)
class LayoutRequest:
    """A graph to lay out, with the sizes of boxes and texts.

    Attributes
    ----------
    components : sequence of sequence of int
        The nodes of each connected component, ascending.
    generations : sequence of int
        Edges on the longest path to each node.
    lines : sequence of (int, int, str)
        Each operand on its way to each of its consumers, in the order of the consumers and
        their inputs. An operand's lines from one producer are one net: they share their way
        as far as they can.
    sizes : tuple of (float, float)
        Width and height of each node.
    orientation : {'left-right', 'top-down'}
    layer_gap : float, optional
        Least distance between layers; 53 for left-right and 34 for top-down when not given.
    sibling_gap : float
        Distance between the rows of a layer.
    label_widths : tuple of float
        Width of each line's text. In a left-right layout gaps grow to the texts in them. Empty
        for no texts.
    """

    components: Sequence[Sequence[int]]
    generations: Sequence[int]
    lines: tuple[Line, ...]
    sizes: tuple[tuple[float, float], ...]
    orientation: Orientation = "left-right"
    layer_gap: float | None = None
    sibling_gap: float = 24.0
    label_widths: tuple[float, ...] = ()

    @property
    def gap(self) -> float:
        """Least distance between layers."""
        return LAYER_GAPS[self.orientation] if self.layer_gap is None else self.layer_gap


def _no_floats(*shape: int) -> Floats:
    array = np.zeros(shape)
    array.flags.writeable = False
    return array


def _no_ints() -> npt.NDArray[np.int64]:
    array = np.zeros(0, np.int64)
    array.flags.writeable = False
    return array


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The coordinates of nodes and edges. All arrays are read-only.

    Attributes
    ----------
    orientation : {'left-right', 'top-down'}
    positions : ndarray of shape (N, 2)
        Top left corner of each node.
    layers : ndarray of shape (N,), int64
        Rank along the flow, from 0 in each connected component.
    rows : ndarray of shape (N,), int64
        Rank across the flow; 0 is the main chain of the component.
    components : ndarray of shape (N,), int64
        Number of the connected component.
    lines : tuple of (int, int, str)
        What is drawn of the edges; the request's.
    routes : tuple of ndarray of shape (K, 2)
        Polyline of each line from producer to consumer, corners square.
    branches : tuple of ndarray of shape (K, 2)
        The part of each route that no other line of its net has drawn.
    skips : ndarray of shape (L,), bool
        Lines that leave and enter boxes by the sides along the flow and run in their own lane.
    label_points : ndarray of shape (L, 2)
        Point on the line at which its text is.
    label_sides : ndarray of shape (L,), int64
        -1: above (left-right) or left (top-down) of the line; 1: below or right of it; 0: on
        the line, along it.
    label_room : ndarray of shape (L,)
        Length of the straight line there; 0 for no room for a text.
    bounds : tuple of float
        x, y, width and height around nodes and routes.
    frames : ndarray of shape (F, 4)
        Left, top, right and bottom of the frames in which nodes are; see `lay_out_nested`.
    """

    orientation: Orientation
    positions: Floats = field(default_factory=lambda: _no_floats(0, 2))
    layers: npt.NDArray[np.int64] = field(default_factory=_no_ints)
    rows: npt.NDArray[np.int64] = field(default_factory=_no_ints)
    components: npt.NDArray[np.int64] = field(default_factory=_no_ints)
    lines: tuple[Line, ...] = ()
    routes: tuple[Floats, ...] = ()
    branches: tuple[Floats, ...] = ()
    skips: npt.NDArray[np.bool_] = field(default_factory=lambda: _no_ints().astype(np.bool_))
    label_points: Floats = field(default_factory=lambda: _no_floats(0, 2))
    label_sides: npt.NDArray[np.int64] = field(default_factory=_no_ints)
    label_room: Floats = field(default_factory=lambda: _no_floats(0))
    bounds: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    frames: Floats = field(default_factory=lambda: _no_floats(0, 4))
