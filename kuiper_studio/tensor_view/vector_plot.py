"""A vector as bars about zero, each in its colour, over the axis of its entries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF
from PySide6.QtWidgets import QApplication, QWidget
from typing_extensions import override

from kuiper_studio.tensor_view.canvas import ElementCanvas
from kuiper_studio.tensor_view.color_bar import BAR_GAP, BAR_WIDTH, bar_space, paint_color_bar
from kuiper_studio.tensor_view.images import Coloring, contrasting, hatch_brush
from kuiper_studio.tensor_view.numbers import axis_texts, brief_text, nice_ticks
from kuiper_studio.tensor_view.strip import Span, Strip, spans

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import (
        QContextMenuEvent,
        QKeyEvent,
        QMouseEvent,
        QPaintEvent,
        QResizeEvent,
        QWheelEvent,
    )

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["VectorPlot"]

_LEFT: Final = 56  # with the numbers of the value axis
_TOP: Final = 22
_BOTTOM: Final = 34
_UNDER: Final = 14
_NOTCH: Final = 120
_NUMBER_WIDTH: Final = 30  # bars from this width on carry their values
_MARKED: Final = 8  # and from this one on, marks of special values
_SPACED: Final = 4  # bars from this width on have a gap between them


@dataclass(frozen=True, slots=True)
class _Bar:
    """A bar as it is painted."""

    span: Span
    rect: QRectF
    color: QColor


class VectorPlot(ElementCanvas):
    """Shows a vector; an element is (0, entry) in its signals.

    The wheel zooms about the mouse (with Shift it moves sideways), dragging moves, a click
    picks, arrows move the pick.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("tensorVector", "Vector as bars", theme, parent)
        self._values: Array = np.zeros(1, np.float32)
        self._low, self._high = 0.0, 1.0
        self._coloring = Coloring()
        self._area = QRectF(0, 0, 1, 1)
        self._pick: int | None = None
        self._hovered: int | None = None
        self._strip = Strip()
        self._pressed: QPoint | None = None
        self._dragging = False
        self._wheel = 0

    # What is shown

    def set_vector(self, values: Array, data_range: tuple[float, float] | None) -> None:
        """Show real values of shape (K,), which span `data_range`."""
        self._values = values
        low, high = data_range or (0.0, 1.0)
        self._low, self._high = min(low, 0.0), max(high, 0.0)
        if self._low == self._high:
            self._high = 1.0
        before = self._strip.text
        self._strip.set_count(len(values))
        self._moved(before)

    def set_coloring(self, coloring: Coloring) -> None:
        """Choose the colours."""
        if coloring != self._coloring:
            self._coloring = coloring
            self._set_view()

    def set_pick(self, pick: tuple[int, int] | None) -> None:
        """Mark an entry."""
        self._pick = pick[1] if pick is not None else None
        self.update()

    @property
    def strip(self) -> Strip:
        """Zoom and place of the vector; to read."""
        return self._strip

    # Zooming

    @property
    def zoom_text(self) -> str:
        """The zoom as a ratio."""
        return self._strip.text

    def zoom_by(self, steps: int, about: float | None = None) -> None:
        """Zoom in or out, keeping a place of the canvas (its middle) where it is."""
        before = self._strip.text
        self._strip.zoom_by(steps, about)
        self._moved(before)

    def zoom_actual(self) -> None:
        """One pixel an entry."""
        before = self._strip.text
        self._strip.set_zoom(1.0)
        self._moved(before)

    def zoom_fit(self) -> None:
        """Show all entries, and go on doing so."""
        before = self._strip.text
        self._strip.fit()
        self._moved(before)

    def _moved(self, zoom_text: str) -> None:
        self.update()
        if zoom_text != self._strip.text:
            self.zoom_changed.emit()

    # Geometry

    def _plot(self) -> QRectF:
        """Where the bars are; changes with the widget's size only."""
        return self._area

    def _set_view(self) -> None:
        """Take note of the room there is for the bars."""
        space = bar_space(self._coloring, self.theme)
        self._area = QRectF(self.rect()).adjusted(_LEFT, _TOP, -space, -_BOTTOM)
        before, plot = self._strip.text, self._area
        self._strip.set_extent(plot.left(), plot.width())
        self._moved(before)

    def _y_of(self, value: float) -> float:
        plot = self._plot()
        clipped = min(max(value, self._low), self._high)
        share = (clipped / 2 - self._low / 2) / (self._high / 2 - self._low / 2)
        # Under the lowest bar there is room for its number.
        below = _UNDER if self._low < 0 else 0
        return plot.bottom() - below - share * (plot.height() - below)

    def bar_rect(self, span: Span) -> QRectF:
        """Where a bar is."""
        left, right = self._strip.x_of(span.first), self._strip.x_of(span.last)
        if right - left >= _SPACED:
            right -= 1
        if math.isnan(span.low):
            return QRectF(
                QPointF(left, self._plot().top()), QPointF(right, self._plot().bottom())
            )
        top, bottom = self._y_of(max(span.high, 0.0)), self._y_of(min(span.low, 0.0))
        return QRectF(QPointF(left, top), QPointF(right, max(bottom, top + 1)))

    # Painting

    def _colors(self, shown: list[Span]) -> list[QColor]:
        """Colour of each bar: of its special value, otherwise of the one furthest from zero."""
        ends = np.array([(span.low, span.high, span.special) for span in shown])
        low, high, special = ends.reshape(-1, 3).T
        values = np.where(np.abs(low) > np.abs(high), low, high)
        values = np.where(special != 0, special, values)  # NaN is not 0 either
        return [QColor(*color) for color in self._coloring.paint(values).tolist()]

    def _paint_axes(self, painter: QPainter, plot: QRectF) -> None:
        painter.setFont(self.theme.mono_font(9.5))
        ticks = nice_ticks(self._low, self._high, max(2, min(6, int(plot.height() / 28))))
        flags = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for tick, text in zip(ticks, axis_texts(ticks), strict=True):
            y = round(self._y_of(tick)) + 0.5
            painter.setPen(QPen(self.theme.color("line"), 1))
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y))
            painter.setPen(self.theme.color("text3"))
            painter.drawText(QRectF(0, y - 8, _LEFT - 8, 16), flags, text)
        first, last = self._strip.visible()
        room = 18 + 7 * len(str(last))
        for entry in _entry_ticks(first, last, int(plot.width() / room)):
            x = self._strip.x_of(entry + (0.5 if self._strip.zoom >= _SPACED else 0.0))
            if plot.left() <= x <= plot.right():
                painter.setPen(QPen(self.theme.color("ctl"), 1))
                painter.drawLine(QPointF(x, plot.bottom() + 2), QPointF(x, plot.bottom() + 5))
                painter.setPen(self.theme.color("text3"))
                place = QRectF(x - 30, plot.bottom() + 6, 60, 13)
                painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), str(entry))

    def _bars(self) -> list[_Bar]:
        """What there is to paint."""
        shown = spans(self._values, self._strip, 1 / self.devicePixelRatioF())
        colors = self._colors(shown)
        return [
            _Bar(s, self.bar_rect(s), color) for s, color in zip(shown, colors, strict=True)
        ]

    def _paint_bars(self, painter: QPainter, bars: list[_Bar]) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self.theme.color("ctl"), 1))
        for bar in bars:
            painter.fillRect(bar.rect, bar.color)
            if bar.rect.width() >= _SPACED:
                # A light bar on white, a dark one on black: the outline tells its end.
                painter.drawRect(bar.rect.adjusted(0.5, 0.5, -0.5, -0.5))
            if self._coloring.mark_clipped:
                self._paint_clipped(painter, bar)

    def _paint_clipped(self, painter: QPainter, bar: _Bar) -> None:
        for outside, rising in (
            (bar.span.high > self._coloring.high, True),
            (bar.span.low < self._coloring.low, False),
        ):
            if outside:
                ink, scale = contrasting(bar.color), self.devicePixelRatioF()
                painter.fillRect(bar.rect, hatch_brush(ink, rising=rising, scale=scale))

    def _paint_numbers(self, painter: QPainter, bars: list[_Bar]) -> None:
        """Values on bars that are wide enough, and marks on special ones."""
        painter.setFont(self.theme.mono_font(10))
        center = int(Qt.AlignmentFlag.AlignCenter)
        for bar in bars:
            span, rect = bar.span, bar.rect
            if span.special and rect.width() >= _MARKED and self._coloring.mark_special:
                painter.setPen(QColor("#FFFFFF" if math.isnan(span.special) else "#000000"))
                painter.setFont(self.theme.mono_font(min(18.0, rect.width())))
                painter.drawText(rect, center, _sign(span.special))
                painter.setFont(self.theme.mono_font(10))
            elif self._strip.zoom >= _NUMBER_WIDTH and not math.isnan(span.low):
                place = QRectF(rect.left() - 10, 0, rect.width() + 20, 14)
                if span.low < 0:
                    place.moveTop(rect.bottom() + 1)
                else:
                    place.moveBottom(rect.top() - 1)
                painter.setPen(self.theme.color("text2"))
                painter.drawText(place, center, brief_text(span.low))

    def _paint_pick(self, painter: QPainter, plot: QRectF) -> None:
        if self._hovered is not None:
            left, right = self._strip.x_of(self._hovered), self._strip.x_of(self._hovered + 1)
            band = QRectF(left, plot.top(), max(right - left, 1), plot.height())
            painter.fillRect(band, self.theme.color("text", 0.12))
        if self._pick is None or not self._pick < len(self._values):
            return
        x = self._strip.x_of(self._pick + 0.5)
        if not plot.left() - 1 <= x <= plot.right() + 1:
            return
        painter.setPen(QPen(self.theme.color("focus"), 1.4))
        painter.drawLine(QPointF(x, plot.top() - 4), QPointF(x, plot.bottom()))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.color("focus"))
        tip = QPointF(x, plot.top() - 3)
        painter.drawPolygon(QPolygonF([tip, tip + QPointF(-5, -7), tip + QPointF(5, -7)]))
        text = f"[{self._pick}] {self._values[self._pick]!s}"
        painter.setFont(self.theme.mono_font(10))
        painter.setPen(self.theme.color("text"))
        width = painter.fontMetrics().horizontalAdvance(text) + 8
        place = QRectF(x + 8, 2, width, 14)
        if place.right() > plot.right():
            place.moveRight(x - 8)
        painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), text)

    # Picking

    def _set_hovered(self, entry: int | None) -> None:
        if entry != self._hovered:
            self._hovered = entry
            self.update()
            self.hovered.emit((0, entry) if entry is not None else None)

    def _entry_at(self, position: QPointF) -> int | None:
        return self._strip.entry_at(position.x())

    def _pick_at(self, position: QPointF) -> None:
        entry = self._entry_at(position)
        if entry is not None:
            self.picked.emit(0, entry)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(500, 280)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(200, 90)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.theme.color("base"))
        plot = self._plot()
        self._paint_axes(painter, plot)
        painter.save()
        painter.setClipRect(plot.adjusted(0, -14, 0, 14))
        bars = self._bars()
        self._paint_bars(painter, bars)
        if self._strip.zoom >= _MARKED:
            self._paint_numbers(painter, bars)
        painter.restore()
        zero = round(self._y_of(0.0)) + 0.5
        painter.setPen(QPen(self.theme.color("ctl"), 1))
        painter.drawLine(QPointF(plot.left(), zero), QPointF(plot.right(), zero))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_pick(painter, plot)
        if self._coloring.known:
            bar = QRectF(round(plot.right()) + BAR_GAP, plot.top(), BAR_WIDTH, plot.height())
            paint_color_bar(painter, bar, self._coloring, self.theme)
        self.paint_ring(painter)
        painter.end()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._set_view()

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        turn, modifiers = event.angleDelta(), event.modifiers()
        if modifiers & Qt.KeyboardModifier.ShiftModifier:
            self._strip.pan((turn.x() or turn.y()) / 2)
            self.update()
        else:
            self._wheel += turn.y() or turn.x()
            steps = int(self._wheel / _NOTCH)
            self._wheel -= steps * _NOTCH
            if steps:
                self.zoom_by(steps, event.position().x())
        event.accept()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.RightButton:
            self._pick_at(event.position())
            return
        self._pressed = event.position().toPoint()
        self._dragging = event.button() == Qt.MouseButton.MiddleButton

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position().toPoint()
        if self._pressed is not None:
            way = at - self._pressed
            if self._dragging or way.manhattanLength() >= QApplication.startDragDistance():
                self._dragging, self._pressed = True, at
                self._strip.pan(way.x())
                self.update()
                return
        self._set_hovered(self._entry_at(event.position()))

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and not self._dragging:
            self._pick_at(event.position())
        self._pressed, self._dragging = None, False

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._set_hovered(None)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_requested.emit(event.globalPos())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left.value: -1, Qt.Key.Key_Right.value: 1}.get(event.key())
        if steps is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
            return
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            steps *= 8
        count = len(self._values)
        entry = count // 2 if self._pick is None else min(max(self._pick + steps, 0), count - 1)
        self.picked.emit(0, entry)
        self._strip.reveal(entry)
        self.update()


def _sign(value: float) -> str:
    """The mark of a value that is not finite."""
    return "×" if math.isnan(value) else "▲" if value > 0 else "▼"


def _entry_ticks(first: int, last: int, most: int) -> list[int]:
    """Round entry numbers of a stretch; all of them where there is room."""
    if last - first <= max(most, 1):
        return list(range(first, last))
    ticks = nice_ticks(first, last, max(most, 2))
    return [int(tick) for tick in ticks if tick == int(tick)]
