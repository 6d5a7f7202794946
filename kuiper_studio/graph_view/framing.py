"""What part of the graph is looked at: around a box, and while groups open or close.

All functions read the geometry and the camera, and move neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, QSizeF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kuiper_studio.graph_view.camera import Camera
    from kuiper_studio.graph_view.geometry import Geometry

__all__ = [
    "MARGIN",
    "entry_point",
    "least_pan",
    "resting_centre",
    "revealing_centre",
    "within_reach",
    "zoom_across",
]

MARGIN: Final = 24.0
"""View pixels around what is shown whole."""
_MARGIN_ACROSS: Final = 10.0  # across the flow, where there is less room
_NEAR_EDGE: Final = 20.0
_LEAST_SHOWN: Final = 0.4  # of the view, for a group that was opened


def zoom_across(geometry: Geometry, size: QSizeF) -> float:
    """Return the zoom at which all rows of the graph are visible in a view of this size."""
    room, breadth = size.height(), geometry.bounds.height()
    if not geometry.left_right:
        room, breadth = size.width(), geometry.bounds.width()
    return (room - 2 * _MARGIN_ACROSS) / max(breadth, 1.0)


def resting_centre(geometry: Geometry, camera: Camera, box: int) -> QPointF:
    """Return the scene point to centre on to see a box, and what is beside it along the flow.

    Along an axis on which the graph fits, all of it is shown. Across the flow, else what is
    in this part of it is, or at least its boxes.
    """
    bounds, size = geometry.bounds, camera.visible.size()
    centre = geometry.rect(box).center()
    margin, across = MARGIN / camera.zoom, _MARGIN_ACROSS / camera.zoom
    columns, rows = (bounds.left(), bounds.right()), (bounds.top(), bounds.bottom())
    if geometry.left_right:
        x = _resting(centre.x(), (columns,), size.width(), margin)
        near = QRectF(x - size.width() / 2, rows[0], size.width(), bounds.height())
        spans = (rows, *geometry.spans_in(near))
        return QPointF(x, _resting(centre.y(), spans, size.height(), across))
    y = _resting(centre.y(), (rows,), size.height(), margin)
    near = QRectF(columns[0], y - size.height() / 2, bounds.width(), size.height())
    spans = (columns, *geometry.spans_in(near))
    return QPointF(_resting(centre.x(), spans, size.width(), across), y)


def _resting(
    point: float, spans: Sequence[tuple[float, float]], length: float, margin: float
) -> float:
    """Return the centre of a view of some length near a point.

    The middle of the first span that fits; else no more than a margin beyond the first.
    """
    for low, high in spans:
        if high - low <= length:
            return (low + high) / 2
    low, high = spans[0]
    return min(max(point, low - margin + length / 2), high + margin - length / 2)


def revealing_centre(geometry: Geometry, camera: Camera, box: int, centre: QPointF) -> QPointF:
    """Return the scene point to centre on, so that a box is well visible.

    Parameters
    ----------
    geometry : Geometry
    camera : Camera
    box : int
    centre : QPointF
        Where the camera is, or is on its way to: it stays along each axis on which the box is
        well visible from there.
    """
    size = camera.size
    margin_x, margin_y = (min(_NEAR_EDGE, side / 6) for side in size.toTuple())
    rect = camera.rect_to_view(geometry.rect(box))
    rect.translate((camera.centre - centre) * camera.zoom)
    target = resting_centre(geometry, camera, box)
    seen_x = rect.left() >= margin_x and rect.right() <= size.width() - margin_x
    seen_y = rect.top() >= margin_y and rect.bottom() <= size.height() - margin_y
    # Another part of the flow may need another place across it, but not conversely.
    if seen_x and (seen_y or geometry.left_right):
        target.setX(centre.x())
    if seen_y and (seen_x or not geometry.left_right):
        target.setY(centre.y())
    return target


def entry_point(geometry: Geometry, rect: QRectF) -> QPointF:
    """Return the point of a box or frame at which the flow enters."""
    if geometry.left_right:
        return QPointF(rect.left(), rect.center().y())
    return QPointF(rect.center().x(), rect.top())


def within_reach(point: QPointF, room: QRectF) -> QPointF:
    """Return the view point nearest to a point that is not too near to the edges of a room."""
    return QPointF(
        min(max(point.x(), _NEAR_EDGE), max(room.right() - _NEAR_EDGE, 0.0)),
        min(max(point.y(), _NEAR_EDGE), max(room.bottom() - _NEAR_EDGE, 0.0)),
    )


def least_pan(shown: QRectF, room: QRectF) -> QPointF:
    """Return how far to move a rectangle, in view pixels, so that enough of it is seen.

    Parameters
    ----------
    shown : QRectF
        In view coordinates.
    room : QRectF
        Of the view in which it is to be seen.
    """
    wide = min(shown.width(), _LEAST_SHOWN * room.width())
    high = min(shown.height(), _LEAST_SHOWN * room.height())
    return QPointF(
        min(0.0, room.right() - _NEAR_EDGE - wide - shown.left()),
        min(0.0, room.bottom() - _NEAR_EDGE - high - shown.top()),
    )
