"""The loupe: an element and its neighbours, enlarged, with their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, QSizeF, Qt, Slot
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from kuiper_studio.tensor_view.cell_digits import paint_digits
from kuiper_studio.tensor_view.images import image_over, mark_brush, special_masks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent

    from engine.values import Array
    from kuiper_studio.tensor_view.canvas import ElementCanvas
    from kuiper_studio.tensor_view.images import Coloring
    from kuiper_studio.tensor_view.view_model import TensorViewModel
    from kuiper_studio.theme import Theme

__all__ = ["Loupe"]

_REACH: Final = 3  # neighbours to each side
_CELL: Final = 38  # side, in which six characters fit
_CAPTION: Final = 20  # height
_EDGE: Final = 1
_GAP: Final = 14  # from the element
_NUMBER: Final = 10  # height of its font in pixels


class Loupe(QWidget):
    """Lies over the tensor view beside the element under the mouse, or the picked one.

    Parameters
    ----------
    theme : Theme
    canvases : sequence of ElementCanvas
        Whose elements it enlarges.
    model : TensorViewModel
        Knows the elements.
    parent : QWidget
        What it stays within; an ancestor of the canvases.
    """

    def __init__(
        self,
        theme: Theme,
        canvases: Sequence[ElementCanvas],
        model: TensorViewModel,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("tensorLoupe")
        self.setAccessibleName("Loupe")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._theme, self._model, self._within = theme, model, parent
        self._canvases = tuple(canvases)
        self._is_on = self._is_held = False
        self._canvas: ElementCanvas | None = None
        self._place: tuple[int, int] | None = None
        self._caption = ""
        self.hide()
        for canvas in self._canvases:
            canvas.hovered.connect(self._on_hovered)
            canvas.held.connect(self._on_held)
            canvas.pick_moved.connect(self._on_pick_moved)
            canvas.contents_changed.connect(self._on_contents_changed)
        theme.changed.connect(self.update)

    @property
    def place(self) -> tuple[int, int] | None:
        """Row and column of the enlarged element; None while the loupe is hidden."""
        return self._place if self.isVisibleTo(self._within) else None

    @property
    def caption(self) -> str:
        """Index and value of the enlarged element."""
        return self._caption

    @Slot(bool)
    def set_on(self, on: bool) -> None:  # noqa: FBT001 - a slot
        """Show it whenever an element is under the mouse, or no longer."""
        self._is_on = on
        if on and self._canvas is None:
            self._canvas = self._canvases[0]
            self._place = self._canvas.pick
        self._show()

    @Slot(object)
    def _on_hovered(self, place: tuple[int, int] | None) -> None:
        self._go_to(place)

    @Slot(int, int)
    def _on_pick_moved(self, row: int, column: int) -> None:
        self._go_to((row, column))

    @Slot(bool)
    def _on_held(self, held: bool) -> None:  # noqa: FBT001 - a slot
        self._is_held = held
        canvas = self.sender()
        for each in self._canvases:
            if each is canvas and self._place is None:
                self._canvas, self._place = each, each.pick
        self._show()

    @Slot()
    def _on_contents_changed(self) -> None:
        """Follow new values and colours, as while a range is dragged."""
        if self.isVisible() and self.sender() is self._canvas:
            self._show()

    def _go_to(self, place: tuple[int, int] | None) -> None:
        sender = self.sender()
        self._canvas = next((each for each in self._canvases if each is sender), self._canvas)
        self._place = place
        self._show()

    def _show(self) -> None:
        canvas, place = self._canvas, self._place
        is_shown = (self._is_on or self._is_held) and canvas is not None and place is not None
        if not is_shown or canvas is None or place is None or not canvas.isVisible():
            self.hide()
            return
        rows, columns = canvas.extent
        if place[0] >= rows or place[1] >= columns:
            self.hide()
            return
        self.resize(self._grid.size().toSize() + QSize(2 * _EDGE, _CAPTION + 2 * _EDGE))
        element = self._model.element(*place)
        self._caption = str(element) if element is not None else ""
        self.setAccessibleDescription(self._caption)
        self.move(self._spot(canvas, place))
        self.show()
        self.raise_()
        self.update()

    @property
    def _reach(self) -> int:
        """Neighbours above and below; none of a vector."""
        return _REACH if self._canvas is not None and self._canvas.extent[0] > 1 else 0

    @property
    def _grid(self) -> QRectF:
        """Where the cells are."""
        high, wide = 2 * self._reach + 1, 2 * _REACH + 1
        return QRectF(_EDGE, _EDGE, wide * _CELL, high * _CELL)

    def _spot(self, canvas: ElementCanvas, place: tuple[int, int]) -> QPoint:
        """Return where it covers neither the element nor, if possible, the edge."""
        parent = self._within
        area = canvas.cell_area(*place)
        cell = QRect(
            canvas.mapTo(parent, area.topLeft().toPoint()),
            QSize(max(round(area.width()), 1), max(round(area.height()), 1)),
        )
        left = cell.right() + _GAP
        if left + self.width() > parent.width():
            left = cell.left() - _GAP - self.width()
        top = cell.center().y() - self.height() // 2
        return QPoint(
            min(max(left, 0), max(parent.width() - self.width(), 0)),
            min(max(top, 0), max(parent.height() - self.height(), 0)),
        )

    # Painting

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._canvas is None or self._place is None:
            return
        theme, canvas = self._theme, self._canvas
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("raised"))
        grid = self._grid
        self._paint_neighbours(painter, canvas.plane, canvas.coloring)
        middle = QRectF(0, 0, _CELL, _CELL)
        middle.moveCenter(grid.center())
        for color, stroke in ((QColor("#000000"), 3.0), (QColor("#FFFFFF"), 1.0)):
            painter.setPen(QPen(color, stroke))
            painter.drawRect(middle)
        painter.setFont(theme.mono_font())
        painter.setPen(theme.color("text"))
        room = QRect(_EDGE + 6, round(grid.bottom()), round(grid.width()) - 12, _CAPTION)
        text = QFontMetrics(painter.font()).elidedText(
            self._caption, Qt.TextElideMode.ElideLeft, room.width()
        )
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)
        painter.setPen(theme.color("text2"))
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _paint_neighbours(self, painter: QPainter, plane: Array, coloring: Coloring) -> None:
        if self._place is None:
            return
        (row, column), reach = self._place, self._reach
        top, left = max(row - reach, 0), max(column - _REACH, 0)
        values = plane[top : row + reach + 1, left : column + _REACH + 1]
        if not values.size:
            return
        pixels = np.ascontiguousarray(coloring.paint(values, blue_first=True))
        area = QRectF(
            _EDGE + (left - column + _REACH) * _CELL, _EDGE + (top - row + reach) * _CELL,
            values.shape[1] * _CELL, values.shape[0] * _CELL,
        )  # fmt: skip
        colors = pixels.view(np.uint32)[..., 0]
        painter.drawImage(area, image_over(colors))
        marks = special_masks(values) if coloring.mark_special else {}
        for kind, mask in marks.items():
            painter.setBrushOrigin(area.topLeft())
            brush = mark_brush(kind, _CELL, self.devicePixelRatioF())
            for down, across in np.argwhere(mask).tolist():
                corner = area.topLeft() + QPointF(across * _CELL, down * _CELL)
                painter.fillRect(QRectF(corner, QSizeF(_CELL, _CELL)), brush)
        font = self._theme.mono_font(_NUMBER)
        paint_digits(painter, area, values, coloring, font)
