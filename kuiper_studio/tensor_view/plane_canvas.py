"""One channel: elements are squares, never smoothed; where it is shrunk they are averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen
from typing_extensions import override

from engine.pictures import shrink
from kuiper_studio.tensor_view.canvas import ElementCanvas
from kuiper_studio.tensor_view.cell_digits import may_fit, paint_digits
from kuiper_studio.tensor_view.color_bar import BAR_GAP, BAR_WIDTH, paint_color_bar
from kuiper_studio.tensor_view.images import (
    Coloring,
    contrasting,
    hatch_brush,
    image_over,
    mark_brush,
    mask_image,
    paint_masked,
    special_masks,
)
from kuiper_studio.tensor_view.viewport import Viewport, fit_zoom, zoom_steps

if TYPE_CHECKING:
    from PySide6.QtGui import QPaintEvent
    from PySide6.QtWidgets import QWidget

    from engine.values import Array
    from kuiper_studio.tensor_view.places import Region
    from kuiper_studio.theme import Theme

__all__ = ["PlaneCanvas", "paint_pick"]

_LEFT: Final = 12
_MARK_ZOOM: Final = 8
_BAR_MARGIN: Final = 8  # above and below a colour bar, for its numbers
_LARGE: Final = 1 << 20  # pixels of a picture of which only the visible part is painted


class PlaneCanvas(ElementCanvas):
    """Shows one channel; see `ElementCanvas`. It has rectangles.

    Parameters
    ----------
    theme : Theme
    name, title : str, optional
        Its objectName and accessible name.
    """

    has_regions = True

    def __init__(
        self,
        theme: Theme,
        parent: QWidget | None = None,
        name: str = "tensorPlane",
        title: str = "Enlarged channel",
    ) -> None:
        super().__init__(name, title, theme, parent)
        self._plane: Array = np.zeros((1, 1), np.float32)
        self._colors: Array | None = None
        self._space = 0.0
        self._pointed: tuple[int, int] | None = None
        self._region: Region | None = None
        self._has_digits = True
        self._port = Viewport()
        self._wheel = 0.0  # notches that made no step yet
        self._values: Array | None = None
        self._color_values: Array | None = None
        self._part = (0, 1, 0, 1)
        self._pixels = np.zeros((1, 1), np.uint32)
        self._image: QImage | None = None  # of the part, over these
        self._masks: dict[str, QImage] | None = None  # of the part
        self.setCursor(Qt.CursorShape.CrossCursor)

    # What is shown

    def set_plane(self, plane: Array, colors: Array | None = None) -> None:
        """Show real values of shape (H, W); the same shape keeps zoom and position.

        `colors` of shape (3, H, W) are shown as red, green and blue instead.
        """
        self._plane, self._colors = plane, colors
        self._forget_values()
        rows, columns = plane.shape
        before = self._port.text
        self._port.set_plane((rows, columns))
        self._moved(before)
        self.contents_changed.emit()

    @property
    @override
    def plane(self) -> Array:
        """Real values of shape (H, W)."""
        return self._plane

    def set_digits_shown(self, shown: bool) -> None:  # noqa: FBT001 - as Qt's setVisible
        """Write numbers into the cells where they fit, or never."""
        if shown != self._has_digits:
            self._has_digits = shown
            self.update()

    @override
    def set_coloring(self, coloring: Coloring) -> None:
        if coloring != self._coloring:
            self._coloring = coloring
            self._image = self._masks = None
            self.lay_out()
            self.contents_changed.emit()

    @override
    def set_pick(self, pick: tuple[int, int] | None) -> None:
        if pick != self._pick:
            self._pick = pick
            self.update()

    @override
    def set_pointed(self, place: tuple[int, int] | None) -> None:
        if place != self._pointed:
            self._pointed = place
            self.update()

    @override
    def set_region(self, region: Region | None) -> None:
        if region != self._region:
            self._region = region
            self.update()

    @override
    def follow(self, other: Self) -> None:
        before = self._port.text
        self._port.follow(other.port)
        self._moved(before)

    def picture_area(self, *, with_bar: bool) -> QRect:
        """Return the part of the canvas with the picture, and its colour bar if wanted."""
        target, _ = self._visible()
        picture = target.intersected(self._view_rect())
        if with_bar and self._has_bar and self._coloring.known:
            bar = self._bar_area(picture).adjusted(0, -_BAR_MARGIN, 0, _BAR_MARGIN)
            bar.setRight(picture.right() + self._space)
            picture = picture.united(bar)
        return picture.toAlignedRect().intersected(self.rect())

    @property
    def port(self) -> Viewport:
        """Zoom and position of the channel, read-only."""
        return self._port

    @override
    def cell_area(self, row: int, column: int) -> QRectF:
        return QRectF(*self._port.cell_rect(row, column))

    def fitted_zoom(self, width: int, height: int) -> float:
        """Return the fitting zoom for another size of the canvas."""
        room = max(width - _LEFT - self._space, 1.0)
        return fit_zoom(self._port.plane, (room, float(height)))

    # Zooming

    @property
    def zoom_text(self) -> str:
        """The zoom as a ratio."""
        return self._port.text

    def zoom_by(self, steps: int, about: tuple[float, float] | None = None) -> None:
        """Zoom about a position of the canvas, by default about the picked element."""
        before = self._port.text
        if about is None:
            self._zoom_about_pick(zoom_steps(self._port.zoom, steps))
        else:
            self._port.zoom_by(steps, about)
        self._moved(before)
        self.view_changed.emit()

    def zoom_actual(self) -> None:
        """Zoom to one pixel per element."""
        before = self._port.text
        self._zoom_about_pick(1.0)
        self._moved(before)
        self.view_changed.emit()

    def _zoom_about_pick(self, zoom: float) -> None:
        center = self.zoom_center
        self._port.set_zoom(zoom, (center.x(), center.y()) if center is not None else None)
        if center is not None and self._pick is not None:
            self._port.reveal(*self._pick)  # at an edge, all of it

    def zoom_fit(self) -> None:
        """Show the whole channel, also after resizing."""
        before = self._port.text
        self._port.fit()
        self._moved(before)
        self.view_changed.emit()

    def _moved(self, zoom_text: str) -> None:
        """Repaint after a change of the viewport, and emit a change of zoom."""
        if self._values is not None and self._values.shape != self._port.pixels:
            self._forget_values()
        self.update()
        if zoom_text != self._port.text:
            self.zoom_changed.emit()

    # The picture

    def _forget_values(self) -> None:
        self._values = self._color_values = self._image = self._masks = None

    def _choose_part(self) -> None:
        """Choose what is painted: a small picture as a whole, else what is visible of it."""
        rows, columns = self._port.pixels
        is_large = rows * columns > _LARGE
        part = self._port.visible() if is_large else (0, columns, 0, rows)
        if part != self._part:
            self._part, self._image, self._masks = part, None, None

    def _in_part(self, values: Array) -> Array:
        left, right, top, bottom = self._part
        return values[..., top:bottom, left:right]

    def _shown(self) -> Array:
        """Return the values of the part's pixels: the channel's, or their means."""
        if self._values is None:
            self._values = shrink(self._plane, *self._port.pixels)
        return self._in_part(self._values)

    def _picture(self) -> QImage:
        if self._image is None:
            colors = self._paint()
            self._pixels = colors.view(np.uint32)[..., 0]
            self._image = image_over(self._pixels)
        return self._image

    def _paint(self) -> Array:
        coloring = self._coloring
        if self._colors is None:
            return coloring.paint(self._shown(), blue_first=True)
        if self._color_values is None:
            self._color_values = shrink(self._colors, *self._port.pixels)
        colors = self._in_part(self._color_values)
        return coloring.paint_colors(colors, coloring.low, coloring.high)

    def _mask_images(self) -> dict[str, QImage]:
        """Return masks of special and clipped values, by their mark or hatch."""
        if self._masks is None:
            values, coloring = self._shown(), self._coloring
            masks = special_masks(values) if coloring.mark_special else {}
            if coloring.mark_clipped:
                masks["below"] = (values < coloring.low) & np.isfinite(values)
                masks["above"] = (values > coloring.high) & np.isfinite(values)
            self._masks = {kind: mask_image(mask) for kind, mask in masks.items() if mask.any()}
        return self._masks

    # Painting

    def _visible(self) -> tuple[QRectF, QRectF]:
        """Return the covered part of the canvas, and what of the picture covers it."""
        left, right, top, bottom = self._port.visible()
        source = QRectF(left, top, max(0, right - left), max(0, bottom - top))
        rows, columns = self._port.pixels
        width, height = self._port.size
        across, down = width / columns, height / rows
        x, y = self._port.origin
        target = QRectF(
            x + left * across, y + top * down, source.width() * across, source.height() * down
        )
        return target, source

    def _view_rect(self) -> QRectF:
        return QRectF(self.rect()).adjusted(_LEFT, 0, -self._space, 0)

    @override
    def lay_out(self) -> None:
        self._space = self.bar_room
        before = self._port.text
        view = self._view_rect()
        self._port.set_view(
            (view.left(), view.top(), max(view.width(), 1.0), max(view.height(), 1.0)),
            self.devicePixelRatioF(),
        )
        self._moved(before)

    def _paint_overlays(self, painter: QPainter, target: QRectF, source: QRectF) -> None:
        scale, zoom = self.devicePixelRatioF(), self._port.zoom
        for kind, mask in self._mask_images().items():
            if kind in {"below", "above"}:
                ink = contrasting(self._coloring.end_color(upper=kind == "above"))
                brush = hatch_brush(ink, rising=kind == "above", scale=scale)
            elif zoom >= _MARK_ZOOM:
                brush = mark_brush(kind, int(zoom), scale)
            else:
                continue
            paint_masked(
                painter, brush, mask, target, source, origin=QPointF(*self._port.origin)
            )

    def _paint_digits(self, painter: QPainter, target: QRectF) -> None:
        left, right, top, bottom = self._port.visible()
        values = self._plane[top:bottom, left:right]
        floats = values.dtype.kind == "f"
        if self._has_digits and may_fit(self._port.zoom, values.size, floats=floats):
            paint_digits(painter, target, values, self._coloring, self.theme.mono_font())

    def _bar_area(self, picture: QRectF) -> QRectF:
        """Return the area of the colour bar: as high as the picture, or as its numbers."""
        height = min(max(picture.height() - 12, 90), self.height() - 16)
        area = QRectF(round(picture.right()) + BAR_GAP, 0, BAR_WIDTH, height)
        area.moveTop(round(picture.center().y() - height / 2))
        return area

    def _paint_bar(self, painter: QPainter, picture: QRectF) -> None:
        if self._has_bar and self._coloring.known:
            paint_color_bar(painter, self._bar_area(picture), self._coloring, self.theme)

    # What the hand does

    @property
    @override
    def extent(self) -> tuple[int, int]:
        rows, columns = self._plane.shape
        return rows, columns

    @override
    def element_at(self, position: QPointF) -> tuple[int, int] | None:
        return self._port.element_at(position.x(), position.y())

    @override
    def nearest(self, position: QPointF) -> tuple[int, int] | None:
        left, top = self._port.origin
        width, height = self._port.cell
        rows, columns = self._plane.shape
        row, column = (position.y() - top) // height, (position.x() - left) // width
        return min(max(int(row), 0), rows - 1), min(max(int(column), 0), columns - 1)

    @override
    def pan(self, across: float, down: float) -> None:
        self._port.pan(across, down)
        self.update()
        self.view_changed.emit()

    @override
    def zoom_at(self, notches: float, position: QPointF) -> None:
        # Touch pads send less than a notch at a time.
        self._wheel += notches
        steps = int(self._wheel)
        self._wheel -= steps
        if steps:
            self.zoom_by(steps, (position.x(), position.y()))

    @override
    def reveal(self, row: int, column: int) -> None:
        self._port.reveal(row, column)
        self.update()
        self.view_changed.emit()

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(380, 280)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(160, 90)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.theme.color("base"))
        target, source = self._visible()
        self._choose_part()
        source.translate(-self._part[0], -self._part[2])
        view = self._view_rect()
        painter.setClipRect(view)
        painter.drawImage(target, self._picture(), source)
        self._paint_overlays(painter, target, source)
        self._paint_digits(painter, target)
        if self._pointed is not None:
            paint_pointed(painter, QRectF(*self._port.cell_rect(*self._pointed)))
        if self._region is not None:
            self._paint_region(painter, self._region)
        if self._pick is not None:
            painter.setClipRect(view.adjusted(-_LEFT, 0, BAR_GAP, 0))
            paint_pick(painter, QRectF(*self._port.cell_rect(*self._pick)))
        painter.setClipping(False)
        self._paint_bar(painter, target.intersected(view))
        self.paint_ring(painter)
        painter.end()

    def _paint_region(self, painter: QPainter, region: Region) -> None:
        """Frame a rectangle in white over black, as the element under the mouse is."""
        first = QRectF(*self._port.cell_rect(region.top, region.left))
        last = QRectF(*self._port.cell_rect(region.bottom - 1, region.right - 1))
        paint_pointed(painter, first.united(last))


def paint_pointed(painter: QPainter, cell: QRectF) -> None:
    """Mark the element under the mouse by a thin frame, white over black."""
    square = QRectF(0, 0, max(cell.width(), 5), max(cell.height(), 5))
    square.moveCenter(cell.center())
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for color, stroke in ((QColor("#000000"), 3.0), (QColor("#FFFFFF"), 1.0)):
        painter.setPen(QPen(color, stroke))
        painter.drawRect(square)


def paint_pick(painter: QPainter, cell: QRectF) -> None:
    """Mark an element in white over black, which is visible on any map."""
    square = QRectF(0, 0, max(cell.width(), 5) + 3, max(cell.height(), 5) + 3)
    square.moveCenter(cell.center())
    x, y = square.center().x(), square.center().y()
    ticks = (
        (QPointF(x, square.top() - 2), QPointF(x, square.top() - 9)),
        (QPointF(x, square.bottom() + 2), QPointF(x, square.bottom() + 9)),
        (QPointF(square.left() - 2, y), QPointF(square.left() - 9, y)),
        (QPointF(square.right() + 2, y), QPointF(square.right() + 9, y)),
    )
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for color, stroke in ((QColor("#000000"), 3.0), (QColor("#FFFFFF"), 1.4)):
        pen = QPen(color, stroke)
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        pen.setJoinStyle(Qt.PenJoinStyle.MiterJoin)
        painter.setPen(pen)
        painter.drawRect(square)
        for start, end in ticks:
            painter.drawLine(start, end)
    painter.restore()
