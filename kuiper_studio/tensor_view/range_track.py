"""The bar of the range: histogram, colour map and two handles."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPen, QPolygonF
from typing_extensions import override

from kuiper_studio.tensor_view.canvas import Canvas
from kuiper_studio.tensor_view.images import Coloring, contrasting, hatch_brush, to_image
from kuiper_studio.tensor_view.numbers import format_range, format_ticks, nice_ticks

if TYPE_CHECKING:
    from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent, QPaintEvent
    from PySide6.QtWidgets import QWidget

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["RangeTrack"]

_TOP: Final = 4
_PLOT: Final = 36
_STRIP: Final = 5
_SIDE: Final = 2
_BESIDE: Final = 6  # from the frame to the axis: room for half a handle, and for the end bins
_LEAST_BAR: Final = 4.0  # width of a bin that stands alone
_GRAB: Final = 18
_HANDLE: Final = (13, 10)
_LEAST_SHARE: Final = 1 / 1000  # part of the axis that stays between the handles


class RangeTrack(Canvas):
    """Shows a range on the axis of the values, and lets its ends be dragged.

    Left and right arrows move the end last touched by 1 % of the axis, with Shift by 10 %;
    Tab goes from the lower end to the upper one.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    range_moved
        Low and high, while dragging and by keys.
    """

    range_moved = Signal(float, float)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("tensorRangeTrack", "Range of the colours", theme, parent)
        self._axis = (0.0, 1.0)
        self._coloring = Coloring()
        self._counts: Array | None = None
        self._outline: Array | None = None
        self._backdrop: Array | None = None
        self._backdrop_tip = ""
        self._histogram_tip = ""
        self._histogram_shown = True
        self._problem = ""
        self._active = 0
        self._dragging = False
        self._grip = 0.0
        self.setFixedHeight(60)

    # What is shown

    def set_range(self, axis: tuple[float, float], coloring: Coloring) -> None:
        """Show the range of a coloring on an axis that contains it."""
        if (axis, coloring) != (self._axis, self._coloring):
            self._axis, self._coloring = axis, coloring
            self.setAccessibleDescription(format_range(coloring.low, coloring.high))
            self.update()

    def set_histogram(self, counts: Array | None, step: int = 1) -> None:
        """Show the histogram over equal steps of the axis.

        Parameters
        ----------
        counts : ndarray of shape (B,), or None
            None if they are unknown.
        step : int, optional
            The histogram counts one value of `step`.
        """
        self._counts = counts
        of = "all values" if step == 1 else f"a sample, one of {step} values"
        self._histogram_tip = f"Histogram of {of}" if counts is not None else ""
        self._show_tip()
        self.update()

    def set_backdrop(self, counts: Array | None, tip: str = "") -> None:
        """Show another histogram behind, over equal steps of the axis; None for nothing.

        Parameters
        ----------
        counts : ndarray of shape (B,), or None
            As high as the plot, whatever its numbers.
        tip : str, optional
            What it is, for the tool-tip.
        """
        self._backdrop, self._backdrop_tip = counts, tip if counts is not None else ""
        self._show_tip()
        self.update()

    def _show_tip(self) -> None:
        self.setToolTip("\n".join(filter(None, (self._histogram_tip, self._backdrop_tip))))

    def set_outline(self, counts: Array | None) -> None:
        """Outline the histogram of what is compared, over the same steps; None for nothing.

        Parameters
        ----------
        counts : ndarray of shape (B,), or None
            From a sample with the same step as `set_histogram`.
        """
        self._outline = counts
        self.update()

    def set_histogram_shown(self, shown: bool) -> None:  # noqa: FBT001 - from a check box
        """Switch between histogram and colours."""
        self._histogram_shown = shown
        self.update()

    def set_problem(self, text: str) -> None:
        """Show why there is no range; ``""`` if there is one."""
        self._problem = text
        self.setEnabled(not text)
        self.update()

    # Geometry

    def _plot(self) -> QRectF:
        return QRectF(_SIDE, _TOP, self.width() - 2 * _SIDE, _PLOT)

    def _axis_area(self) -> QRectF:
        """The part of the plot from the lower to the upper end of the axis."""
        return self._plot().adjusted(_BESIDE, 0, -_BESIDE, 0)

    def x_of(self, value: float) -> float:
        """Return the position of a value on the axis, in pixels."""
        area, (low, high) = self._axis_area(), self._axis
        # In halves, because the difference of the ends may overflow.
        share = (value / 2 - low / 2) / (high / 2 - low / 2)
        return area.left() + share * area.width()

    def _value_at(self, x: float) -> float:
        area, (low, high) = self._axis_area(), self._axis
        share = min(max((x - area.left()) / area.width(), 0.0), 1.0)
        return low * (1 - share) + high * share

    def _handle_at(self, position: QPointF) -> int | None:
        ends = self.x_of(self._coloring.low), self.x_of(self._coloring.high)
        distances = [abs(position.x() - x) for x in ends]
        near = min(distances)
        if near > _GRAB / 2:
            return None
        if distances[0] == distances[1]:
            return 0 if position.x() < ends[0] else 1
        return distances.index(near)

    def _move(self, handle: int, value: float) -> None:
        """Move an end, but not beyond the other one."""
        low, high = self._coloring.low, self._coloring.high
        least = (self._axis[1] / 2 - self._axis[0] / 2) * _LEAST_SHARE * 2
        if handle == 0:
            low = max(self._axis[0], min(value, high - least))
        else:
            high = min(self._axis[1], max(value, low + least))
        if low < high and (low, high) != (self._coloring.low, self._coloring.high):
            self.range_moved.emit(low, high)

    # Painting

    def _paint_problem(self, painter: QPainter) -> None:
        plot = self._plot().adjusted(0, 0, 0, _STRIP)
        color = self.theme.color("nan")
        scale = self.devicePixelRatioF()
        painter.fillRect(
            plot, hatch_brush(self.theme.color("nan", 0.55), rising=True, scale=scale)
        )
        painter.setPen(QPen(color, 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(plot)
        painter.setFont(self.theme.ui_font(11, 600))
        width = painter.fontMetrics().horizontalAdvance(self._problem) + 16
        patch = QRectF(0, 0, min(width, plot.width()), 18)
        patch.moveCenter(plot.center())
        painter.fillRect(patch, self.theme.color("base"))
        painter.drawText(patch, int(Qt.AlignmentFlag.AlignCenter), self._problem)

    def _paint_histogram(self, painter: QPainter, plot: QRectF, inside: QRectF) -> None:
        """Paint counts on a logarithmic scale, dimmed outside the range."""
        self._paint_backdrop(painter, plot)
        if self._counts is None or not self._counts.any():
            return
        shape = self._steps(self._counts, plot)
        painter.setPen(Qt.PenStyle.NoPen)
        for area, token, alpha in (
            (QRectF(plot.topLeft(), QPointF(inside.left(), plot.bottom())), "ctl", 0.6),
            (QRectF(QPointF(inside.right(), plot.top()), plot.bottomRight()), "ctl", 0.6),
            (inside, "focus", 0.75),
        ):
            painter.save()
            painter.setClipRect(area, Qt.ClipOperation.IntersectClip)
            painter.setBrush(self.theme.color(token, alpha))
            painter.drawPolygon(shape)
            painter.restore()
        if self._outline is not None and self._outline.any():
            painter.setPen(QPen(self.theme.color("text"), 1))
            painter.drawPolyline(self._steps(self._outline, plot))

    def _paint_backdrop(self, painter: QPainter, plot: QRectF) -> None:
        """Paint the histogram behind, as an area with an edge."""
        counts = self._backdrop
        if counts is None or not counts.any():
            return
        area = self._axis_area()
        heights = np.log1p(counts) * ((plot.height() - 3) / math.log1p(float(counts.max())))
        edges = np.linspace(area.left(), area.right(), len(counts) + 1).tolist()
        points = [QPointF(edges[0], plot.bottom())]
        for place, height in enumerate(heights.tolist()):
            top = plot.bottom() - height
            points += [QPointF(edges[place], top), QPointF(edges[place + 1], top)]
        points.append(QPointF(edges[-1], plot.bottom()))
        painter.setPen(QPen(self.theme.color("text3", 0.8), 1))
        painter.setBrush(self.theme.color("text3", 0.22))
        painter.drawPolygon(QPolygonF(points))

    def _steps(self, counts: Array, plot: QRectF) -> QPolygonF:
        """Return the outline of a histogram; the highest of both fills the plot."""
        most = max(
            int(each.max()) for each in (self._counts, self._outline) if each is not None
        )
        heights = np.log1p(counts.astype(np.float64)) * ((plot.height() - 3) / math.log1p(most))
        edges = self._bin_edges()
        points = [QPointF(edges[0], plot.bottom())]
        for place, height in enumerate(heights.tolist()):
            # An empty bin stays empty; one with a single value is visible.
            top = plot.bottom() - (max(height, 1.0) if height else 0.0)
            points += [QPointF(edges[place], top), QPointF(edges[place + 1], top)]
        points.append(QPointF(edges[-1], plot.bottom()))
        return QPolygonF(points)

    def _bin_edges(self) -> list[float]:
        """Return the edges of the bins, in pixels.

        Bins at the ends stand out beside the handles, and bins without neighbours are widened:
        so the bars of flags, of whole numbers and of probabilities are visible.
        """
        area = self._axis_area()
        filled = np.pad(np.asarray(self._counts) > 0, 2)
        count = len(filled) - 4
        edges = np.linspace(area.left(), area.right(), count + 1)
        near = filled[:-4] | filled[1:-3] | filled[3:-1] | filled[4:]
        lonely = (filled[2:-2] & ~near).nonzero()[0]
        width = area.width() / count
        wider = min(max(0.0, (_LEAST_BAR - width) / 2), width)
        edges[lonely] -= wider
        edges[lonely + 1] += wider
        edges[0], edges[-1] = area.left() - _BESIDE + 1, area.right() + _BESIDE - 1
        result: list[float] = edges.tolist()
        return result

    def _paint_map(self, painter: QPainter, strip: QRectF, left: float, right: float) -> None:
        """Paint the colours between the handles, and hatched end colours beyond them."""
        inside = QRectF(QPointF(left, strip.top()), QPointF(right, strip.bottom()))
        painter.drawImage(inside, to_image(self._coloring.gradient[None]))
        for area, upper in (
            (QRectF(strip.topLeft(), inside.bottomLeft()), False),
            (QRectF(inside.topRight(), strip.bottomRight()), True),
        ):
            if area.width() > 0:
                color = self._coloring.end_color(upper=upper)
                painter.fillRect(area, color)
                scale = self.devicePixelRatioF()
                painter.fillRect(
                    area, hatch_brush(contrasting(color), rising=upper, scale=scale)
                )

    def _paint_handle(self, painter: QPainter, x: float, top: float, *, active: bool) -> None:
        width, height = _HANDLE
        painter.setPen(QPen(self.theme.color("text"), 1.4))
        painter.drawLine(QLineF(x, _TOP - 1, x, top))
        corners = [QPointF(x, top), QPointF(x + width / 2, top + height)]
        corners.append(QPointF(x - width / 2, top + height))
        ringed = active and self._ringed
        painter.setPen(QPen(self.theme.color("focus"), 2) if ringed else Qt.PenStyle.NoPen)
        painter.setBrush(self.theme.color("text"))
        painter.drawPolygon(QPolygonF(corners))

    def _paint_axis(self, painter: QPainter, plot: QRectF, ends: tuple[float, float]) -> None:
        painter.setFont(self.theme.mono_font(9.5))
        painter.setPen(self.theme.color("text3"))
        ticks = nice_ticks(*self._axis, most=max(2, min(6, int(plot.width() / 60))))
        for tick, text in zip(ticks, format_ticks(ticks), strict=True):
            half = painter.fontMetrics().horizontalAdvance(text) / 2
            x = min(max(self.x_of(tick), half), self.width() - half)
            if all(abs(x - end) > half + _HANDLE[0] / 2 + 3 for end in ends):
                place = QRectF(x - half - 2, plot.bottom() + _STRIP, 2 * half + 4, 14)
                painter.drawText(place, int(Qt.AlignmentFlag.AlignCenter), text)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(300, 60)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(80, 60)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        plot = self._plot()
        painter.fillRect(plot, self.theme.color("base"))
        if self._problem:
            self._paint_problem(painter)
            painter.end()
            return
        ends = self.x_of(self._coloring.low), self.x_of(self._coloring.high)
        area = self._axis_area()
        strip = QRectF(area.left(), plot.bottom(), area.width(), _STRIP)
        if self._histogram_shown:
            # At an end of the axis, what is beside the handle is in the range.
            left = ends[0] if ends[0] > area.left() else plot.left()
            right = ends[1] if ends[1] < area.right() else plot.right()
            inside = QRectF(QPointF(left, plot.top()), QPointF(right, plot.bottom()))
            self._paint_histogram(painter, plot, inside)
        else:
            strip = strip.united(area)
        self._paint_map(painter, strip, *ends)
        painter.setPen(QPen(self.theme.color("ctl"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(plot.adjusted(0, -0.5, 0, _STRIP))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_axis(painter, plot, ends)
        for handle, x in enumerate(ends):
            self._paint_handle(
                painter, x, plot.bottom() + _STRIP + 0.5, active=handle == self._active
            )
        painter.end()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        handle = self._handle_at(event.position())
        if handle is None or event.button() != Qt.MouseButton.LeftButton:
            return
        self._active, self._dragging = handle, True
        end = self._coloring.high if handle else self._coloring.low
        self._grip = event.position().x() - self.x_of(end)
        self.update()

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragging:
            self._move(self._active, self._value_at(event.position().x() - self._grip))
            return
        near = self._handle_at(event.position()) is not None
        self.setCursor(Qt.CursorShape.SizeHorCursor if near else Qt.CursorShape.ArrowCursor)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragging = False

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        if event.reason() == Qt.FocusReason.TabFocusReason:
            self._active = 0
        elif event.reason() == Qt.FocusReason.BacktabFocusReason:
            self._active = 1
        super().focusInEvent(event)

    @override
    def focusNextPrevChild(self, next: bool) -> bool:
        other = 1 if next else 0
        if self._active != other and not self._problem:
            self._active = other
            self.update()
            return True
        return super().focusNextPrevChild(next)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left.value: -0.01, Qt.Key.Key_Right.value: 0.01}.get(event.key())
        if steps is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
            return
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            steps *= 10
        end = self._coloring.high if self._active else self._coloring.low
        self._move(self._active, end + steps * 2 * (self._axis[1] / 2 - self._axis[0] / 2))
