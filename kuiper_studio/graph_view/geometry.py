"""Geometry of a laid-out scene: rectangles, paths and hit tests."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainterPath, QPolygonF

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from kuiper_studio.graph_view.scene import Scene
    from kuiper_studio.layout import Layout
    from kuiper_studio.layout.model import Floats

__all__ = ["Geometry", "to_rects"]

_RADIUS: Final = 10.0
_ARROW_LENGTH: Final = 8.0
_ARROW_WIDTH: Final = 7.0
_ARROW_GAP: Final = 1.0
_LONG: Final = 2000.0  # longer lines are clipped
_CLIP_STEP: Final = 1000.0  # lines are clipped anew when the view leaves squares of this size
_DASHES: Final = 7.0  # a dash and a gap
_RING: Final = 8.0  # that the marks of a box reach out: ring, breakpoint, difference
_HIT: Final = 6.0  # half of the width in which an edge is hit


class Geometry:
    """Where the boxes and edges of a scene are, in scene coordinates.

    Parameters
    ----------
    scene : Scene
    layout : Layout
        Of ``scene.request(…)``.

    Attributes
    ----------
    rects : ndarray of shape (N, 4)
        Left, top, right, bottom of the boxes.
    frames : ndarray of shape (F, 4)
        The same of the frames of open groups.
    bounds : QRectF
        Around everything.
    """

    def __init__(self, scene: Scene, layout: Layout) -> None:
        self.scene = scene
        self.layout = layout
        # Whole pixels, so that lines are sharp at 100 %.
        corners = np.round(layout.positions)
        sizes = np.array([(box.width, box.height) for box in scene.boxes]).reshape(-1, 2)
        self.rects = np.hstack((corners, corners + sizes))
        self.frames = np.round(layout.frames)
        self.bounds = QRectF(*layout.bounds)
        self._edge_bounds = _bounds_of(layout.branches)
        self._paths: dict[tuple[int, bool], QPainterPath] = {}
        self._route_segments: tuple[frozenset[int], tuple[Floats, Floats]] | None = None
        self._clip_area: tuple[float, float, float, float] | None = None
        self._clipped: dict[tuple[int, bool], QPainterPath] = {}
        self._polygons: dict[tuple[int, bool], QPolygonF] = {}
        self._arrows: dict[int, QPolygonF] = {}

    @property
    def left_right(self) -> bool:
        """Whether the flow goes to the right."""
        return self.layout.orientation == "left-right"

    # Boxes

    def rect(self, box: int) -> QRectF:
        """Return the rectangle of a box."""
        left, top, right, bottom = self.rects[box].tolist()
        return QRectF(left, top, right - left, bottom - top)

    def grown(self, boxes: npt.NDArray[np.intp], across: float, along: float) -> Floats:
        """Return rectangles of boxes, of at least these sizes across and along the flow."""
        least = (along, across) if self.left_right else (across, along)
        rects = self.rects[boxes]
        missing = np.maximum(least - (rects[:, 2:] - rects[:, :2]), 0) / 2
        return np.hstack((rects[:, :2] - missing, rects[:, 2:] + missing))

    def boxes_in(self, area: QRectF) -> npt.NDArray[np.intp]:
        """Return the boxes that touch an area, ascending."""
        return _touching(self.rects, area)

    def box_at(self, point: QPointF, slack: float = 0.0) -> int:
        """Return the box under a point, or within `slack` of it; -1 for none."""
        x, y = point.x(), point.y()
        found = self.boxes_in(QRectF(x - slack, y - slack, 2 * slack, 2 * slack))
        if not len(found):
            return -1
        middles = (self.rects[found, :2] + self.rects[found, 2:]) / 2
        return int(found[np.abs(middles - (x, y)).max(axis=1).argmin()])

    def frames_in(self, area: QRectF) -> npt.NDArray[np.intp]:
        """Return the frames that touch an area, an outer one before those in it."""
        return _touching(self.frames, area)

    def frame_at(self, point: QPointF) -> int:
        """Return the innermost frame around a point; -1 for none."""
        found = self.frames_in(QRectF(point, point))
        return int(found[-1]) if len(found) else -1

    def frame_rect(self, frame: int) -> QRectF:
        """Return the rectangle of a frame."""
        return to_rects(self.frames[frame : frame + 1])[0]

    def spans_in(self, area: QRectF) -> tuple[tuple[float, float], ...]:
        """Return the spans across the flow of what touches an area.

        Returns
        -------
        tuple of (float, float)
            Of boxes and their marks with the edges, without edges, and of boxes alone; none
            without boxes.
        """
        first, last = (1, 3) if self.left_right else (0, 2)
        boxes = self.rects[self.boxes_in(area)]
        if not len(boxes):
            return ()
        edges = self._edge_bounds[self.edges_in(area)]
        low, high = float(boxes[:, first].min()), float(boxes[:, last].max())
        ringed = low - _RING, high + _RING
        if not len(edges):
            return ringed, (low, high)
        all_low, all_high = float(edges[:, first].min()), float(edges[:, last].max())
        return (min(ringed[0], all_low), max(ringed[1], all_high)), ringed, (low, high)

    # Edges

    def edges_in(self, area: QRectF) -> npt.NDArray[np.intp]:
        """Return the edges whose own part touches an area, ascending."""
        return _touching(self._edge_bounds, area)

    def ending_in(
        self, edges: npt.NDArray[np.intp], area: QRectF, most: int
    ) -> npt.NDArray[np.intp]:
        """Return those of some edges that begin or end in an area.

        Of more than `most`, those that do both come first.
        """
        inside = np.zeros(len(self.rects), np.bool_)
        inside[self.boxes_in(area)] = True
        begins, ends = self._ends[edges].T
        both, either = inside[begins] & inside[ends], inside[begins] ^ inside[ends]
        return np.concatenate((edges[both], edges[either]))[:most]

    @cached_property
    def _ends(self) -> npt.NDArray[np.intp]:
        ends = [(edge.source, edge.target) for edge in self.scene.edges]
        return np.array(ends, np.intp).reshape(-1, 2)

    def edge_at(self, point: QPointF, zoom: float) -> int:
        """Return the edge within 6 screen pixels of a point; -1 for none."""
        slack = _HIT / min(zoom, 1.0)
        x, y = point.x(), point.y()
        best, found = slack, -1
        for edge in self.edges_in(QRectF(x - slack, y - slack, 2 * slack, 2 * slack)).tolist():
            distance = _distance(self.layout.branches[edge], x, y)
            if distance <= best:
                best, found = distance, edge
        return found

    def path(
        self, edge: int, visible: QRectF | None = None, *, whole: bool = False
    ) -> QPainterPath:
        """Return the line of an edge with round corners, up to its arrow head.

        Parameters
        ----------
        edge : int
        visible : QRectF, optional
            The visible part; a very long line may be clipped to it.
        whole : bool
            Whether to return the whole route, or only the part that no other edge of its
            operand draws.
        """
        known = self._paths.get((edge, whole))
        if known is None:
            points = (self.layout.routes if whole else self.layout.branches)[edge]
            if visible is not None and np.ptp(points, axis=0).max() > _LONG:
                return self._clipped_path(edge, points, visible, whole=whole)
            known = self._paths[edge, whole] = _rounded(points)
        return known

    def _clipped_path(
        self, edge: int, points: Floats, visible: QRectF, *, whole: bool
    ) -> QPainterPath:
        area = _clip_area(visible)
        if area != self._clip_area:
            self._clip_area = area
            self._clipped.clear()
        known = self._clipped.get((edge, whole))
        if known is None:
            known = self._clipped[edge, whole] = _rounded(_clip(points, area))
        return known

    def arrow(self, edge: int) -> QPolygonF:
        """Return the arrow head of an edge."""
        known = self._arrows.get(edge)
        if known is None:
            known = self._arrows[edge] = _arrow_head(self.layout.routes[edge])
        return known

    def polygon(self, edge: int, *, whole: bool = False) -> QPolygonF:
        """Return the line of an edge without round corners; see `path`."""
        known = self._polygons.get((edge, whole))
        if known is None:
            points = (self.layout.routes if whole else self.layout.branches)[edge]
            known = self._polygons[edge, whole] = _polygon(points)
        return known

    def segments_in(self, area: QRectF, least: float, most: int) -> Floats:
        """Return the straight parts of edges that touch an area.

        Parameters
        ----------
        area : QRectF
        least : float
            Shorter ones are left out.
        most : int
            If there are more, the longest ones are returned.

        Returns
        -------
        ndarray of shape (M, 4)
            Left, top, right and bottom end of each.
        """
        return _longest_in(self._segments, area, least, most)

    def routes_in(self, edges: frozenset[int], area: QRectF, most: int) -> Floats:
        """Straight parts of the whole routes of some edges; see `segments_in`."""
        if self._route_segments is None or self._route_segments[0] != edges:
            routes = tuple(self.layout.routes[edge] for edge in edges)
            self._route_segments = edges, _straight_parts(routes)
        return _longest_in(self._route_segments[1], area, 0.0, most)

    @cached_property
    def _segments(self) -> tuple[Floats, Floats]:
        return _straight_parts(self.layout.branches)


def _straight_parts(polylines: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return the straight parts of polylines, and their lengths."""
    if not polylines:
        return np.zeros((0, 4)), np.zeros(0)
    points = np.concatenate(polylines)
    counts = np.array([len(polyline) for polyline in polylines])
    follows = np.ones(len(points), np.bool_)
    follows[np.cumsum(counts) - counts] = False  # the first point of each
    ends = np.flatnonzero(follows)
    before, after = points[ends - 1], points[ends]
    segments = np.hstack((np.minimum(before, after), np.maximum(before, after)))
    return segments, (segments[:, 2:] - segments[:, :2]).max(axis=1)


def _longest_in(parts: tuple[Floats, Floats], area: QRectF, least: float, most: int) -> Floats:
    """Return the longest straight parts that touch an area, of at least some length."""
    segments, lengths = parts
    near = _touching(segments, area)
    near = near[lengths[near] >= least]
    if len(near) > most:
        near = near[np.argpartition(lengths[near], -most)[-most:]]
    found: Floats = segments[near]
    return found


def _clip_area(visible: QRectF) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of an area around the visible one.

    It stays the same while the view moves within it.
    """
    step = _CLIP_STEP
    margin = step / 10  # room for round corners, arrows and the width of lines
    return (
        math.floor((visible.left() - margin) / step) * step,
        math.floor((visible.top() - margin) / step) * step,
        math.ceil((visible.right() + margin) / step) * step,
        math.ceil((visible.bottom() + margin) / step) * step,
    )


def _clip(points: Floats, area: tuple[float, float, float, float]) -> Floats:
    """Clip a line to an area: dashing all of it is slow."""
    left, top, right, bottom = area
    low, high = np.minimum(points[:-1], points[1:]), np.maximum(points[:-1], points[1:])
    near = np.flatnonzero(((low <= (right, bottom)) & (high >= (left, top))).all(axis=1))
    if not len(near):
        return points[-2:]
    seen = points[near[0] : near[-1] + 2].copy()
    # By whole dashes, so that they do not move with the area.
    ends = np.clip(seen[[0, -1]], (left, top), (right, bottom)) // _DASHES * _DASHES
    along = np.abs(seen[[0, -1]] - ends) >= _DASHES
    seen[[0, -1]] = np.where(along, ends, seen[[0, -1]])
    return seen


def to_rects(rects: Floats) -> list[QRectF]:
    """Convert rectangles of left, top, right and bottom to QRectF."""
    return [
        QRectF(left, top, right - left, bottom - top)
        for left, top, right, bottom in rects.tolist()
    ]


def _polygon(points: npt.NDArray[np.float64]) -> QPolygonF:
    return QPolygonF([QPointF(x, y) for x, y in points.tolist()])


def _bounds_of(polylines: tuple[npt.NDArray[np.float64], ...]) -> npt.NDArray[np.float64]:
    if not polylines:
        return np.zeros((0, 4))
    starts = np.cumsum([0, *(len(points) for points in polylines[:-1])])
    points = np.concatenate(polylines)
    low = np.minimum.reduceat(points, starts, axis=0)
    high = np.maximum.reduceat(points, starts, axis=0)
    return np.hstack((low, high))


def _touching(rects: npt.NDArray[np.float64], area: QRectF) -> npt.NDArray[np.intp]:
    return np.flatnonzero(
        (rects[:, 0] <= area.right())
        & (rects[:, 2] >= area.left())
        & (rects[:, 1] <= area.bottom())
        & (rects[:, 3] >= area.top())
    )


def _distance(points: npt.NDArray[np.float64], x: float, y: float) -> float:
    """Return the distance of a point from a polyline of horizontal and vertical parts."""
    low = np.minimum(points[:-1], points[1:])
    high = np.maximum(points[:-1], points[1:])
    nearest = np.clip((x, y), low, high)
    return float(np.hypot(*(nearest - (x, y)).T).min())


def _direction(points: npt.NDArray[np.float64]) -> tuple[float, float]:
    (x0, y0), (x1, y1) = points[-2:].tolist()
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    return (x1 - x0) / length, (y1 - y0) / length


def _rounded(points: npt.NDArray[np.float64]) -> QPainterPath:
    dx, dy = _direction(points)
    back = _ARROW_GAP + _ARROW_LENGTH - 1
    corners = points.tolist()
    corners[-1] = (corners[-1][0] - dx * back, corners[-1][1] - dy * back)
    path = QPainterPath(QPointF(*corners[0]))
    for before, corner, after in zip(corners, corners[1:], corners[2:], strict=False):
        into = math.dist(before, corner)
        out = math.dist(corner, after)
        radius = min(_RADIUS, into / 2, out / 2)
        if radius > 0:
            path.lineTo(QPointF(*_towards(corner, before, radius / into)))
            path.quadTo(QPointF(*corner), QPointF(*_towards(corner, after, radius / out)))
    path.lineTo(QPointF(*corners[-1]))
    return path


def _towards(start: list[float], end: list[float], share: float) -> tuple[float, float]:
    return start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share


def _arrow_head(points: npt.NDArray[np.float64]) -> QPolygonF:
    dx, dy = _direction(points)
    x, y = points[-1].tolist()
    x, y = x - dx * _ARROW_GAP, y - dy * _ARROW_GAP
    base_x, base_y = x - dx * _ARROW_LENGTH, y - dy * _ARROW_LENGTH
    half = _ARROW_WIDTH / 2
    return QPolygonF(
        [
            QPointF(x, y),
            QPointF(base_x - dy * half, base_y + dx * half),
            QPointF(base_x + dy * half, base_y - dx * half),
        ]
    )
