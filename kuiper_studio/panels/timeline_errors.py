"""Paints the differences from a reference on the timeline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPen
from typing_extensions import override

from engine.text import format_brief
from kuiper_studio.badges import paint_badge
from kuiper_studio.item_models.comparison_rows import DIFFERING, DifferenceKind
from kuiper_studio.panels.timeline_model import (
    LEAST_ERROR,
    Measure,
    Scale,
    error_fractions,
    error_top,
)
from kuiper_studio.panels.timeline_painter import (
    ESTIMATE,
    LEAST_BAR,
    LEFT,
    RIGHT,
    ROOM_PER_TICK,
    Geometry,
    TimelinePainter,
)

if TYPE_CHECKING:
    from kuiper_studio.panels.timeline_model import ErrorBars, TimelineModel
    from kuiper_studio.theme import Theme

__all__ = ["ErrorPainter"]

_UNCOMPARED: Final = 13  # height of the frame of an operator that was not compared
_BADGE: Final = 14.0
_LINE: Final = 14  # height of the text beside the first origin
_LEAST_MARKED: Final = 9  # width of a bar with a sign


class ErrorPainter(TimelinePainter):
    """Paints one picture of a comparison: the error of each operator, on a logarithmic scale.

    Parameters
    ----------
    theme : Theme
    geometry : Geometry
    model : TimelineModel
        Not empty, with marks.
    """

    def __init__(self, theme: Theme, geometry: Geometry, model: TimelineModel) -> None:
        super().__init__(theme, geometry, model, Measure.TIME, Scale.LOG)
        self._errors: ErrorBars = model.error_bars(geometry.bar_size)
        self._limit = error_top(self._errors.errors, model.tolerance)
        self.shown = self._errors.worst
        shares = error_fractions(self._errors.errors, self._limit)
        heights = np.maximum(np.rint(shares * geometry.room), LEAST_BAR)
        for bar, kind in enumerate(self._errors.kinds):
            if kind is None:
                heights[bar] = 0
            elif np.isnan(self._errors.errors[bar]):
                heights[bar] = _UNCOMPARED
        self.heights = heights.astype(np.int64)

    def _y(self, error: float) -> int:
        share = float(error_fractions(np.array([error]), self._limit)[0])
        return self._geometry.base - round(share * self._geometry.room)

    @override
    def _paint_axis(self, painter: QPainter) -> None:
        theme, space = self._theme, self._geometry
        painter.setFont(theme.mono_font(9.5))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        first, last = round(math.log10(LEAST_ERROR)), round(math.log10(self._limit))
        count = max(2, space.room // ROOM_PER_TICK)
        for power in range(last, first, -math.ceil((last - first) / count)):
            y = self._y(10.0**power)
            painter.fillRect(LEFT, y, space.width - LEFT - RIGHT, 1, theme.color("line"))
            painter.setPen(theme.color("text3"))
            text = f"1e{power}" if power else "1"
            painter.drawText(QRectF(0, y - 7, LEFT - 7, 14), right, text)

    @override
    def _paint_bars(self, painter: QPainter) -> None:
        for bar, height in enumerate(self.heights.tolist()):
            if height:
                self._paint_bar(painter, bar, self._geometry.bar_rect(bar, height))
        self._paint_tolerance(painter)
        self._paint_badges(painter)
        self._paint_first_origin(painter)

    def _paint_bar(self, painter: QPainter, bar: int, rect: QRect) -> None:
        theme = self._theme
        match self._errors.kinds[bar]:
            case DifferenceKind.BORN:
                painter.fillRect(rect, theme.color("div"))
            case DifferenceKind.INHERITED:
                painter.fillRect(rect, theme.color("div", ESTIMATE))
                self._frame(painter, rect, QPen(theme.color("div"), 1))
            case DifferenceKind.EQUAL:
                painter.fillRect(rect, theme.color("ctl"))
            case _:
                pen = QPen(theme.color("ctl"), 1)
                pen.setDashPattern([3, 2])
                self._frame(painter, rect, pen)
                if rect.width() >= _LEAST_MARKED:
                    painter.setPen(theme.color("text2"))
                    painter.setFont(theme.mono_font(9.5))
                    painter.drawText(rect, Qt.AlignmentFlag.AlignCenter, "?")
        born = float(self._errors.born[bar])
        if self._errors.kinds[bar] in DIFFERING and LEAST_ERROR < born < math.inf:
            # Its outline tells it from the bar and from what is behind.
            tick = QRect(rect.left(), self._y(born) - 1, rect.width(), 2)
            painter.fillRect(tick.adjusted(0, -1, 0, 1), theme.color("base"))
            painter.fillRect(tick, theme.color("text"))

    @staticmethod
    def _frame(painter: QPainter, rect: QRect, pen: QPen) -> None:
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(0, 0, -1, -1))

    def _paint_tolerance(self, painter: QPainter) -> None:
        pen = QPen(self._theme.color("text2"), 1)
        pen.setDashPattern([4, 3])
        painter.setPen(pen)
        y = self._y(self._model.tolerance)
        painter.drawLine(LEFT, y, self._geometry.width - RIGHT, y)

    def _paint_first_origin(self, painter: QPainter) -> None:
        """Name the first origin beside its bar, where no other bar is as high."""
        kinds, space = self._errors.kinds, self._geometry
        first = next((bar for bar, kind in enumerate(kinds) if kind is DifferenceKind.BORN), -1)
        if first < 0:
            return
        name = self._model.operators[self._errors.worst[first]].name
        text = f"born in {name}, {format_brief(float(self._errors.errors[first]))}"
        font = self._theme.ui_font(11, 600)
        width = QFontMetrics(font).horizontalAdvance(text)
        bar_rect = space.bar_rect(first, 1)
        right = min(bar_rect.left() - 4, bar_rect.center().x() - round(_BADGE))
        area = QRect(right - width, space.base - space.room + 2, width, _LINE)
        below = (
            bar
            for bar in range(first)
            if space.bar_rect(bar, 1).right() >= area.left()
            and space.base - int(self.heights[bar]) <= area.bottom()
        )
        if area.left() >= LEFT and next(below, None) is None:
            painter.setFont(font)
            painter.setPen(self._theme.color("div"))
            painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, text)

    def _paint_badges(self, painter: QPainter) -> None:
        """Point out where differences are born, however many operators there are."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        for bar, kind in enumerate(self._errors.kinds):
            if kind is DifferenceKind.BORN:
                rect = self._geometry.bar_rect(bar, int(self.heights[bar]))
                name = self._model.operators[self._errors.worst[bar]].name
                centre = QPointF(QRectF(rect).center().x(), max(rect.top(), _BADGE / 2 + 1))
                paint_badge(painter, self._theme, self._model.marks[name].look, centre, _BADGE)
        painter.restore()
