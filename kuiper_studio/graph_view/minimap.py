"""The minimap: the whole graph in a corner, with the visible part marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPixmap

from kuiper_studio.graph_view.cells import CellColors
from kuiper_studio.graph_view.glyphs import paint_glyph
from kuiper_studio.graph_view.raster import MOST_LINES, Raster, fill_cells
from kuiper_studio.graph_view.state import NONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kuiper_studio.graph_view.geometry import Geometry
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.layout.model import Floats
    from kuiper_studio.theme import Theme

__all__ = ["Minimap"]

_CHAIN: Final = QSizeF(288, 46)
_LARGEST: Final = QSizeF(200, 160)
_LEAST_SIDE: Final = 40.0
_CHAIN_ASPECT: Final = 5.0
_PADDING: Final = 8.0
_INSET: Final = 12.0
_MOST_CELL: Final = 9.0
_ROOM_BESIDE: Final = 1.6  # how much larger than the map the canvas must be


class Minimap:
    """A map of a laid-out scene.

    Parameters
    ----------
    theme : Theme
    geometry : Geometry
    state : SceneState
    """

    def __init__(self, theme: Theme, geometry: Geometry, state: SceneState) -> None:
        self._theme = theme
        self._geometry = geometry
        self._state = state
        self._colors = CellColors(theme, state.scene, "panel")
        self._pixmap: QPixmap | None = None
        self.size = self._size()
        bounds = geometry.bounds
        width = self.size.width() - 2 * _PADDING
        height = self.size.height() - 2 * _PADDING
        # Stretch a chain across the flow, or it would be a hairline, but keep cells
        # recognisable.
        self._scale_x = min(width / max(bounds.width(), 1), _MOST_CELL / 94)
        self._scale_y = min(height / max(bounds.height(), 1), _MOST_CELL / 94)
        if not self._is_chain():
            self._scale_x = self._scale_y = min(self._scale_x, self._scale_y)
        self._offset = QPointF(
            (self.size.width() - bounds.width() * self._scale_x) / 2,
            (self.size.height() - bounds.height() * self._scale_y) / 2,
        )

    def _is_chain(self) -> bool:
        bounds = self._geometry.bounds
        longer, shorter = bounds.width(), bounds.height()
        if shorter > longer:
            longer, shorter = shorter, longer
        return longer >= _CHAIN_ASPECT * shorter

    def _size(self) -> QSizeF:
        bounds = self._geometry.bounds
        if self._is_chain():
            return _CHAIN if bounds.width() >= bounds.height() else _CHAIN.transposed()
        scale = min(
            (_LARGEST.width() - 2 * _PADDING) / bounds.width(),
            (_LARGEST.height() - 2 * _PADDING) / bounds.height(),
        )
        return QSizeF(
            max(bounds.width() * scale + 2 * _PADDING, _LEAST_SIDE),
            max(bounds.height() * scale + 2 * _PADDING, _LEAST_SIDE),
        )

    def frame(self, canvas: QSizeF, visible: QRectF) -> QRectF | None:
        """Return the map's frame in a canvas; None without room or need for it."""
        if visible.contains(self._geometry.bounds):
            return None
        if canvas.width() < _ROOM_BESIDE * self.size.width():
            return None
        if canvas.height() < _ROOM_BESIDE * self.size.height() + 2 * _INSET:
            return None
        corner = QPointF(
            canvas.width() - _INSET - self.size.width(),
            canvas.height() - _INSET - self.size.height(),
        )
        return QRectF(corner, self.size)

    def to_scene(self, point: QPointF) -> QPointF:
        """Return the scene point under a point of the map."""
        bounds = self._geometry.bounds
        return QPointF(
            bounds.left() + (point.x() - self._offset.x()) / self._scale_x,
            bounds.top() + (point.y() - self._offset.y()) / self._scale_y,
        )

    def _to_map(self, rect: QRectF) -> QRectF:
        bounds = self._geometry.bounds
        return QRectF(
            self._offset.x() + (rect.left() - bounds.left()) * self._scale_x,
            self._offset.y() + (rect.top() - bounds.top()) * self._scale_y,
            rect.width() * self._scale_x,
            rect.height() * self._scale_y,
        )

    def forget(self) -> None:
        """Repaint all cells, after a change of theme or when values were dropped."""
        self._pixmap = None

    def mark(self, boxes: Iterable[int]) -> None:
        """Repaint the cells of operators that have run."""
        if self._pixmap is None:
            return
        places = np.fromiter(boxes, np.intp)
        colors = self._colors.of(self._state, places, current=False)
        painter = QPainter(self._pixmap)
        for box, color in zip(places.tolist(), colors.tolist(), strict=True):
            painter.fillRect(self._cell(box), QColor.fromRgba(color))
        painter.end()

    def paint(self, painter: QPainter, frame: QRectF, visible: QRectF) -> None:
        """Paint the map into its frame."""
        color = self._theme.color
        painter.save()
        painter.translate(frame.topLeft())
        inside = QRectF(QPointF(0, 0), frame.size())
        painter.setPen(QPen(color("ctl"), 1))
        painter.setBrush(color("panel"))
        painter.drawRoundedRect(inside.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5)
        painter.drawPixmap(QPointF(0, 0), self._cells(painter.device().devicePixelRatioF()))
        self._paint_breakpoints(painter)
        self._paint_current(painter)
        window = self._to_map(visible) & inside.adjusted(2, 2, -2, -2)
        painter.setPen(QPen(color("focus"), 1.4))
        painter.setBrush(color("focus", 0.14))
        painter.drawRoundedRect(window, 2, 2)
        painter.restore()

    def _paint_current(self, painter: QPainter) -> None:
        current = self._state.current
        if current == NONE:
            return
        cell = self._cell(current)
        color = self._theme.color("cur")
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(color)
        painter.drawRect(cell.adjusted(-1, -1, 1, 1))
        paint_glyph(painter, "down", QPointF(cell.center().x(), cell.top() - 5), 7, color)

    def _paint_breakpoints(self, painter: QPainter) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("bp"))
        for box in self._state.breakpoints:
            cell = self._cell(box)
            painter.drawEllipse(QPointF(cell.center().x(), cell.bottom() + 3), 2, 2)

    def _cell(self, box: int) -> QRectF:
        cell = self._to_map(self._geometry.rect(box))
        if cell.width() < 1:
            cell.setWidth(1)
        return cell

    def _cells(self, ratio: float) -> QPixmap:
        known = self._pixmap
        if known is not None and known.devicePixelRatioF() == ratio:
            return known
        geometry = self._geometry
        width, height = (self.size * ratio).toSize().toTuple()
        segments = geometry.segments_in(geometry.bounds, 0.0, MOST_LINES)
        ink = self._theme.color("ctl", 0.6).rgba()
        lines = self._all_to_map(segments) * ratio
        picture = Raster(width, height).paint(lines, ink, 0)
        boxes = np.arange(len(geometry.scene.boxes))
        cells = self._all_to_map(geometry.rects)
        colors = self._colors.of(self._state, boxes, current=False)
        fill_cells(picture, cells * ratio, colors)
        view = QImage(picture.data, width, height, 4 * width, QImage.Format.Format_ARGB32)
        pixmap = QPixmap.fromImage(view)
        pixmap.setDevicePixelRatio(ratio)
        self._pixmap = pixmap
        return pixmap

    def _all_to_map(self, rects: Floats) -> Floats:
        """Return rectangles on the map by left, top, right and bottom."""
        bounds = self._geometry.bounds
        scale = np.array([self._scale_x, self._scale_y] * 2)
        corner = np.array([bounds.left(), bounds.top()] * 2)
        offset = np.array([self._offset.x(), self._offset.y()] * 2)
        moved: Floats = (rects - corner) * scale + offset
        return moved
