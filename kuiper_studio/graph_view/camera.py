"""The visible part of the scene and its zoom."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QPointF, QRectF, QSizeF

__all__ = ["LEAST_ZOOM", "Camera"]

LEAST_ZOOM: Final = 0.05
_MOST_ZOOM: Final = 4.0


class Camera:
    """Maps scene coordinates to a view and back.

    Attributes
    ----------
    zoom : float
        View pixels per scene pixel.
    origin : QPointF
        Scene point at the view's top left corner.
    size : QSizeF
        Of the view.
    least_zoom : float
        Smaller than usual for scenes that only then fit the view.
    """

    def __init__(self) -> None:
        self.zoom = 1.0
        self.origin = QPointF(0.0, 0.0)
        self.size = QSizeF(0.0, 0.0)
        self.least_zoom = LEAST_ZOOM

    @property
    def visible(self) -> QRectF:
        """The visible part of the scene."""
        return QRectF(self.origin, self.size / self.zoom)

    @property
    def centre(self) -> QPointF:
        """Scene point in the middle of the view."""
        return self.visible.center()

    def to_scene(self, point: QPointF) -> QPointF:
        """Scene point under a view point."""
        return self.origin + point / self.zoom

    def to_view(self, point: QPointF) -> QPointF:
        """View point over a scene point."""
        return (point - self.origin) * self.zoom

    def rect_to_view(self, rect: QRectF) -> QRectF:
        """View rectangle over a scene rectangle."""
        return QRectF(self.to_view(rect.topLeft()), rect.size() * self.zoom)

    def centre_on(self, point: QPointF) -> None:
        """Centre on a scene point."""
        half = self.size / (2 * self.zoom)
        self.origin = QPointF(point.x() - half.width(), point.y() - half.height())

    def pan(self, dx: float, dy: float) -> None:
        """Move the scene by view pixels."""
        self.origin -= QPointF(dx, dy) / self.zoom

    def clamp(self, zoom: float) -> float:
        """Return the nearest zoom within the limits."""
        return min(max(zoom, self.least_zoom), _MOST_ZOOM)

    def zoom_about(self, point: QPointF, zoom: float) -> None:
        """Change the zoom about a view point."""
        fixed = self.to_scene(point)
        self.zoom = self.clamp(zoom)
        self.origin = fixed - point / self.zoom

    def zoom_to_show(self, area: QRectF, margin: float) -> float:
        """Return the largest zoom at which an area and a margin fit, without the limits."""
        width = max(self.size.width() - 2 * margin, 1.0)
        height = max(self.size.height() - 2 * margin, 1.0)
        return min(width / max(area.width(), 1.0), height / max(area.height(), 1.0))

    def show(self, area: QRectF, margin: float, most_zoom: float = _MOST_ZOOM) -> None:
        """Make an area fit the view."""
        zoom = self.zoom_to_show(area, margin)
        self.least_zoom = min(self.least_zoom, zoom)
        self.zoom = self.clamp(min(zoom, most_zoom))
        self.centre_on(area.center())

    def keep_near(self, bounds: QRectF) -> None:
        """Limit panning, so that some of the bounds stays visible."""
        seen = self.visible
        x = min(max(seen.center().x(), bounds.left()), bounds.right())
        y = min(max(seen.center().y(), bounds.top()), bounds.bottom())
        if (x, y) != (seen.center().x(), seen.center().y()):
            self.centre_on(QPointF(x, y))
