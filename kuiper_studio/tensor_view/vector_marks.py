"""Paints over the bars of a vector: numbers, marks, hatches, the pick."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QGraphicsItem
from typing_extensions import override

from engine.text import format_brief
from kuiper_studio.tensor_view.images import Coloring, contrasting, hatch_brush

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QStyleOptionGraphicsItem, QWidget

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["Bars", "VectorMarks"]

_MARKED: Final = 8  # bars from this width on carry marks of special values
_NUMBERED: Final = 20  # and from this one on their values, where these fit

_OUT: Final = 7
_CLEAR: Final = 5  # between two numbers


@dataclass(frozen=True, slots=True)
class Bars:
    """The visible bars.

    Attributes
    ----------
    values : ndarray of shape (N,), float64
    colors : ndarray of shape (N, 4), uint8
        RGBA.
    edges : ndarray of shape (N, 4), float64
        Left, top, right and bottom in the plot, in pixels.
    """

    values: Array = field(default_factory=lambda: np.empty(0))
    colors: Array = field(default_factory=lambda: np.empty((0, 4), np.uint8))
    edges: Array = field(default_factory=lambda: np.empty((0, 4)))

    def rect(self, place: int) -> QRectF:
        """Return the rectangle of a bar."""
        left, top, right, bottom = self.edges[place].tolist()
        return QRectF(left, top, right - left, bottom - top)


class VectorMarks(QGraphicsItem):
    """Overlay of a chart's plot, painted in its pixels.

    Parameters
    ----------
    theme : Theme
    parent : QGraphicsItem
    headroom : float
        Between the plot's upper edge and the highest bar.
    """

    def __init__(self, theme: Theme, parent: QGraphicsItem, headroom: float) -> None:
        super().__init__(parent)
        self.setZValue(10)
        self._theme = theme
        self._headroom = headroom
        self._area = QRectF(0, 0, 1, 1)
        self._bars = Bars()
        self._coloring = Coloring()
        self._columns: list[tuple[float, QColor]] = []
        self._outside: Callable[[], tuple[QPainterPath, float, float]] | None = None
        self._picked: tuple[float, str] | None = None
        self._hovered: tuple[float, float] | None = None

    # What is shown

    def set_area(self, area: QRectF) -> None:
        """Cover a part of the parent."""
        if area != QRectF(self.pos(), self._area.size()):
            self.prepareGeometryChange()
            self.setPos(area.topLeft())
            self._area = QRectF(QPointF(0, 0), area.size())

    def show_bars(self, bars: Bars, coloring: Coloring) -> None:
        """Mark these bars."""
        self._bars, self._coloring = bars, coloring
        self.update()

    def show_columns(self, columns: list[tuple[float, QColor]]) -> None:
        """Fill some columns, a pixel wide."""
        self._columns = columns
        self.update()

    def show_outside(
        self, outside: Callable[[], tuple[QPainterPath, float, float]] | None
    ) -> None:
        """Hatch the areas outside the range.

        Parameters
        ----------
        outside : callable, optional
            Returns an area, and the heights between which it is inside the range.
        """
        self._outside = outside
        self.update()

    def show_pick(self, picked: tuple[float, str] | None) -> None:
        """Point to a position, with a text beside it."""
        if picked != self._picked:
            self._picked = picked
            self.update()

    def show_hovered(self, stretch: tuple[float, float] | None) -> None:
        """Highlight the area between two positions."""
        if stretch != self._hovered:
            self._hovered = stretch
            self.update()

    # Painting

    def _paint_clipped(self, painter: QPainter) -> None:
        scale = painter.device().devicePixelRatioF()
        bars, coloring = self._bars, self._coloring
        finite = np.isfinite(bars.values)
        for outside, rising in (
            (finite & (bars.values > coloring.high), True),
            (finite & (bars.values < coloring.low), False),
        ):
            for place in np.flatnonzero(outside).tolist():
                ink = contrasting(QColor(*bars.colors[place].tolist()))
                brush = hatch_brush(ink, rising=rising, scale=scale)
                painter.fillRect(bars.rect(place), brush)
        if self._outside is None:
            return
        area, high, low = self._outside()
        width, height = self._area.width(), self._area.height()
        for stretch, rising in (
            (QRectF(0, 0, width, high), True),
            (QRectF(0, low, width, height - low), False),
        ):
            ink = contrasting(self._coloring.end_color(upper=rising))
            brush = hatch_brush(ink, rising=rising, scale=scale)
            painter.save()
            painter.setClipRect(stretch, Qt.ClipOperation.IntersectClip)
            painter.setPen(QPen(brush, 1))  # the area has spikes of zero width
            painter.setBrush(brush)
            painter.drawPath(area)
            painter.restore()

    def _paint_numbers(self, painter: QPainter) -> None:
        """Paint values above and below their bars, and marks on special ones."""
        edges = self._bars.edges
        width = float(edges[0, 2] - edges[0, 0]) if len(edges) else 0.0
        if width < _MARKED:
            return
        number_font = self._theme.mono_font(10)
        mark_font = self._theme.mono_font(min(18.0, width))
        metrics = QFontMetricsF(number_font)
        taken = self._text_of_pick().united(self._tip_of_pick())
        center = int(Qt.AlignmentFlag.AlignCenter)
        for place, value in enumerate(self._bars.values.tolist()):
            rect = self._bars.rect(place)
            if not math.isfinite(value):
                if self._coloring.mark_special:
                    painter.setFont(mark_font)
                    painter.setPen(QColor("#FFFFFF" if math.isnan(value) else "#000000"))
                    painter.drawText(rect, center, _sign(value))
            elif width >= _NUMBERED:
                text = format_brief(value)
                # Only if it does not overlap its neighbours.
                beside = _beside(rect, below=value < 0)
                fits = metrics.horizontalAdvance(text) <= width - _CLEAR
                if fits and not taken.intersects(beside):
                    painter.setFont(number_font)
                    painter.setPen(self._theme.color("text2"))
                    painter.drawText(beside, center, text)

    def _paint_pick(self, painter: QPainter) -> None:
        area = self._area
        if self._hovered is not None:
            left, right = self._hovered
            band = QRectF(left, self._headroom, max(right - left, 1), area.height())
            painter.fillRect(band, self._theme.color("text", 0.12))
        if self._picked is None:
            return
        x, text = self._picked
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.color("focus"), 1.4))
        painter.drawLine(QPointF(x, self._headroom - 4), QPointF(x, area.bottom()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.color("focus"))
        arrow = self._tip_of_pick()
        tip = QPointF(x, arrow.bottom())
        painter.drawPolygon(QPolygonF([tip, arrow.topLeft(), arrow.topRight()]))
        painter.setFont(self._theme.mono_font(10))
        painter.setPen(self._theme.color("text"))
        painter.drawText(self._text_of_pick(), int(Qt.AlignmentFlag.AlignCenter), text)

    def _tip_of_pick(self) -> QRectF:
        """Return the area of the arrow to the picked position; empty without one."""
        if self._picked is None:
            return QRectF()
        return QRectF(self._picked[0] - 5, self._headroom - 10, 10, 7)

    def _text_of_pick(self) -> QRectF:
        """Return the area of the text beside the arrow; empty without one."""
        if self._picked is None:
            return QRectF()
        x, text = self._picked
        width = QFontMetricsF(self._theme.mono_font(10)).horizontalAdvance(text) + 8
        place = QRectF(x + 8, 0, width, 14)
        if place.right() > self._area.right():
            place.moveRight(x - 8)
        return place

    # Overrides of Qt methods

    @override
    def boundingRect(self) -> QRectF:
        # The pick's arrow and line may extend beyond the plot.
        return self._area.adjusted(-_OUT, 0, _OUT, 0)

    @override
    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionGraphicsItem,
        widget: QWidget | None = None,
    ) -> None:
        painter.save()
        painter.setClipRect(self._area)
        for x, color in self._columns:
            painter.fillRect(QRectF(x, self._headroom, 1, self._area.height()), color)
        if self._coloring.mark_clipped:
            self._paint_clipped(painter)
        self._paint_numbers(painter)
        painter.restore()
        self._paint_pick(painter)


def _beside(bar: QRectF, *, below: bool) -> QRectF:
    """Return the rectangle for a number at the end of a bar."""
    place = QRectF(bar.left() - 1, 0, bar.width() + 2, 14)
    if below:
        place.moveTop(bar.bottom() + 1)
    else:
        place.moveBottom(bar.top() - 1)
    return place


def _sign(value: float) -> str:
    """Return the mark of a value that is not finite."""
    return "×" if math.isnan(value) else "▲" if value > 0 else "▼"
