"""A picture of the input with the cells of a feature map over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPen
from typing_extensions import override

from kuiper_studio.panels.picture_canvas import ARROWS, PictureCanvas
from kuiper_studio.panels.picture_overlay import (
    cells_image,
    draw_frame,
    draw_over,
    fitted_area,
    opacity_of,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPaintEvent
    from PySide6.QtWidgets import QWidget

    from kuiper_studio.shown_plane import ShownPlane
    from kuiper_studio.theme import Theme

__all__ = ["Overlay", "OverlayCanvas"]

_LEAST: Final = 120  # pixels of a side


@dataclass(frozen=True, slots=True, eq=False)
class Overlay:
    """A channel, and where it lies on the input.

    Attributes
    ----------
    plane : ShownPlane
    picture : QImage or None
        Of the input; None for a plain ground.
    size : (int, int)
        Rows and columns of the input.
    rows, columns : (float, float)
        Where the first cell begins on the input, and the size of a cell.
    """

    plane: ShownPlane
    picture: QImage | None
    size: tuple[int, int]
    rows: tuple[float, float]
    columns: tuple[float, float]


class OverlayCanvas(PictureCanvas):
    """Paints an overlay.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    hovered : (int, int) or None
        Row and column of the cell under the mouse.
    chosen : (int, int)
        Of a cell that was clicked, or reached by an arrow key.
    """

    hovered = Signal(object)
    chosen = Signal(int, int)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "overlayCanvas", "Channel over the input", _LEAST, parent)
        self._shown: Overlay | None = None
        self._cells: QImage | None = None
        self._opacity = 0.6
        self._mark: tuple[int, int] | None = None

    @property
    def shown(self) -> Overlay | None:
        """What is shown."""
        return self._shown

    def show_overlay(self, overlay: Overlay | None) -> None:
        """Show another channel, or nothing."""
        self._shown, self._cells = overlay, None
        self.update()

    @override
    def set_opacity(self, opacity: float) -> None:
        self._cells = None
        super().set_opacity(opacity)

    def mark(self, cell: tuple[int, int] | None) -> None:
        """Mark the cell that is under the mouse elsewhere."""
        if cell != self._mark:
            self._mark = cell
            self.update()

    # Places

    def picture_area(self) -> QRectF:
        """Return where the picture is."""
        if self._shown is None:
            return QRectF()
        rows, columns = self._shown.size
        room = QSize(max(1, self.width() - 2), max(1, self.height() - 2))
        return fitted_area(QSize(columns, rows), room)

    def cell_area(self, row: int, column: int, rows: int = 1, columns: int = 1) -> QRectF:
        """Return where a cell is, or a block of them."""
        shown, area = self._shown, self.picture_area()
        if shown is None:
            return QRectF()
        scale = area.width() / shown.size[1]
        return QRectF(
            area.left() + (shown.columns[0] + column * shown.columns[1]) * scale,
            area.top() + (shown.rows[0] + row * shown.rows[1]) * scale,
            columns * shown.columns[1] * scale,
            rows * shown.rows[1] * scale,
        )

    def cell_at(self, position: QPointF) -> tuple[int, int] | None:
        """Return the cell at a position; None beside the cells, or beside the picture."""
        shown, area = self._shown, self.picture_area()
        if shown is None or not area.contains(position):
            return None
        first = self.cell_area(0, 0)
        row = (position.y() - first.top()) / first.height()
        column = (position.x() - first.left()) / first.width()
        rows, columns = shown.plane.values.shape
        if not (0 <= row < rows and 0 <= column < columns):
            return None
        return int(row), int(column)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(280, 280)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        shown = self._shown
        if shown is None:
            return
        painter = QPainter(self)
        plane = shown.plane
        if self._cells is None:
            bare = shown.picture is None
            opacity = 1.0 if bare else opacity_of(plane.shares, self._opacity)
            self._cells = cells_image(plane.pixels, opacity)
        area = self.picture_area()
        target = self.cell_area(0, 0, *plane.values.shape)
        draw_over(painter, area, shown.picture, self._cells, target, self._theme)
        painter.setClipRect(area.adjusted(-1, -1, 1, 1))
        for cell in (plane.pick, self._mark):
            if cell is not None:
                draw_frame(painter, _at_least(self.cell_area(*cell), 5.0))
        painter.setClipping(False)
        focused = self.hasFocus()
        style = Qt.PenStyle.DotLine if focused else Qt.PenStyle.SolidLine
        painter.setPen(QPen(self._theme.color("focus" if focused else "line"), 1, style))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(area.adjusted(-0.5, -0.5, 0.5, 0.5))
        painter.end()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position())
        if cell is not None and event.button() is Qt.MouseButton.LeftButton:
            self.chosen.emit(*cell)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.hovered.emit(self.cell_at(event.position()))

    @override
    def leaveEvent(self, event: object) -> None:
        self.hovered.emit(None)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step, shown = ARROWS.get(event.key()), self._shown
        if step is None or shown is None:
            super().keyPressEvent(event)
            return
        rows, columns = shown.plane.values.shape
        pick = shown.plane.pick
        row, column = (rows // 2, columns // 2) if pick is None else pick
        if pick is not None:
            row, column = row + step[0], column + step[1]
        if 0 <= row < rows and 0 <= column < columns:
            self.chosen.emit(row, column)


def _at_least(cell: QRectF, side: float) -> QRectF:
    """Return a rectangle about the same middle that is not too small to see."""
    wide, high = max(cell.width(), side), max(cell.height(), side)
    middle = cell.center()
    return QRectF(middle.x() - wide / 2, middle.y() - high / 2, wide, high)
