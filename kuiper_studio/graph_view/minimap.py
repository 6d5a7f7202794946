"""The minimap: the whole graph beside the scene, with the visible part marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QImage, QPainter, QPen, QPixmap

from kuiper_studio.graph_view.cells import CellColors
from kuiper_studio.graph_view.glyphs import paint_glyph
from kuiper_studio.graph_view.raster import MOST_LINES, Raster, fill_cells
from kuiper_studio.graph_view.scene import BOX_HEIGHT
from kuiper_studio.graph_view.state import NONE

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from kuiper_studio.graph_view.geometry import Geometry
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.layout.model import Floats
    from kuiper_studio.theme import Theme

__all__ = ["Minimap"]

_LENGTH: Final = 288.0  # of the longer side
_LEAST_SIDE: Final = 36.0
_LEAST_CANVAS: Final = QSizeF(240, 150)  # below it a map would leave no room for a box
_SHARE: Final = (0.6, 0.22)  # of the canvas along the longer and the shorter side, at most
_CHAIN_ASPECT: Final = 5.0
_PADDING: Final = 7.0
_INSET: Final = 4.0
_MOST_CELL: Final = 9.0


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
        self._ratio = 1.0  # device pixels per pixel of the picture's place
        self._picture: npt.NDArray[np.uint32] | None = None
        self._pixmap: QPixmap | None = None
        self._is_wide = geometry.bounds.width() >= geometry.bounds.height()
        self.size = QSizeF()
        self._scale_x = self._scale_y = 1.0
        self._offset = QPointF()

    def place(self, canvas: QSizeF) -> QRectF:
        """Return the map's frame in a canvas: below a wide graph, right of a high one.

        Parameters
        ----------
        canvas : QSizeF

        Returns
        -------
        QRectF
            Null without room.
        """
        if canvas.boundedTo(_LEAST_CANVAS) != _LEAST_CANVAS:
            return QRectF()
        along, across = canvas.width(), canvas.height()
        if not self._is_wide:
            along, across = across, along
        length = min(_LENGTH, _SHARE[0] * along)
        breadth = max(_LEAST_SIDE, _SHARE[1] * across)
        self._resize(QSizeF(length, breadth) if self._is_wide else QSizeF(breadth, length))
        corner = QPointF(canvas.width(), canvas.height()) - QPointF(
            self.size.width() + _INSET, self.size.height() + _INSET
        )
        return QRectF(corner, self.size)

    def reserved(self, frame: QRectF) -> tuple[float, float]:
        """Return the width and height that the map takes from the scene."""
        if frame.isNull():
            return 0.0, 0.0
        if self._is_wide:
            return 0.0, frame.height() + 2 * _INSET
        return frame.width() + 2 * _INSET, 0.0

    def _resize(self, room: QSizeF) -> None:
        """Take the room that the graph needs of what there is."""
        bounds = self._geometry.bounds
        wide, high = max(bounds.width(), 1.0), max(bounds.height(), 1.0)
        scale_x = min((room.width() - 2 * _PADDING) / wide, _MOST_CELL / BOX_HEIGHT)
        scale_y = min((room.height() - 2 * _PADDING) / high, _MOST_CELL / BOX_HEIGHT)
        # Stretch a chain across the flow, or it would be a hairline, but keep cells
        # recognisable.
        if max(wide, high) < _CHAIN_ASPECT * min(wide, high):
            scale_x = scale_y = min(scale_x, scale_y)
        size = QSizeF(
            max(wide * scale_x + 2 * _PADDING, _LEAST_SIDE),
            max(high * scale_y + 2 * _PADDING, _LEAST_SIDE),
        )
        if size != self.size:
            self.size, self._scale_x, self._scale_y = size, scale_x, scale_y
            self._offset = QPointF(
                (size.width() - bounds.width() * scale_x) / 2,
                (size.height() - bounds.height() * scale_y) / 2,
            )
            self._picture = self._pixmap = None

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
        self._picture = self._pixmap = None

    def mark(self, boxes: Iterable[int]) -> None:
        """Repaint the cells of operators that have run."""
        if self._picture is not None:
            self._fill(self._picture, np.fromiter(boxes, np.intp))
            self._pixmap = None

    def _fill(self, picture: npt.NDArray[np.uint32], boxes: npt.NDArray[np.intp]) -> None:
        cells = self._all_to_map(self._geometry.rects[boxes]) * self._ratio
        fill_cells(picture, cells, self._colors.of(self._state, boxes, current=False))

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
        if self._picture is None or self._ratio != ratio:
            self._ratio, self._pixmap = ratio, None
            self._picture = self._paint_picture()
        if self._pixmap is None:
            picture = self._picture
            height, width = picture.shape
            view = QImage(picture.data, width, height, 4 * width, QImage.Format.Format_ARGB32)
            self._pixmap = QPixmap.fromImage(view)
            self._pixmap.setDevicePixelRatio(ratio)
        return self._pixmap

    def _paint_picture(self) -> npt.NDArray[np.uint32]:
        geometry = self._geometry
        width, height = (self.size * self._ratio).toSize().toTuple()
        segments = geometry.segments_in(geometry.bounds, 0.0, MOST_LINES)
        ink = self._theme.color("ctl", 0.6).rgba()
        lines = self._all_to_map(segments) * self._ratio
        picture = Raster(width, height).paint(lines, ink, 0)
        self._fill(picture, np.arange(len(geometry.scene.boxes)))
        return picture

    def _all_to_map(self, rects: Floats) -> Floats:
        """Return rectangles on the map by left, top, right and bottom."""
        bounds = self._geometry.bounds
        scale = np.array([self._scale_x, self._scale_y] * 2)
        corner = np.array([bounds.left(), bounds.top()] * 2)
        offset = np.array([self._offset.x(), self._offset.y()] * 2)
        moved: Floats = (rects - corner) * scale + offset
        return moved
