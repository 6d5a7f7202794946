"""Paints the timeline: axis, bars, breakpoints, module brackets and the playhead."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPen, QPolygonF

from kuiper_studio.item_models.statuses import NONFINITE, STATUS_LOOKS, DisplayStatus
from kuiper_studio.panels.timeline_model import Measure, Scale, fractions, round_ticks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kuiper_studio.item_models.module_runs import ModuleRun
    from kuiper_studio.panels.timeline_model import Bars, Ints, TimelineModel
    from kuiper_studio.theme import Theme

__all__ = ["Geometry", "TimelinePainter", "axis_unit", "elide_start", "labels_without_overlap"]

LEFT: Final = 46
RIGHT: Final = 18  # for the playhead's flag at the end
TOP: Final = 14
BELOW: Final = 28
ROOM_PER_TICK: Final = 24
_LABEL_HEIGHT: Final = 12
_LEAST_SLOT: Final = 4.0
LEAST_BAR: Final = 3
_LEAST_MARKED_BAR: Final = 9
_GAP: Final = 5.0
ESTIMATE: Final = 0.16
_LEAST_LABEL: Final = 36  # pixels, for the end of a name that tells its module from others
_BETWEEN_WORDS: Final = re.compile(r"[._]+(?=.)")
_UNITS: Final = {
    Measure.TIME: ((1e-6, "µs"), (1e-3, "ms"), (1.0, "s")),
    Measure.MACS: ((1.0, "MAC"), (1e3, "KMAC"), (1e6, "MMAC"), (1e9, "GMAC")),
}
_EXECUTED: Final = STATUS_LOOKS[DisplayStatus.EXECUTED]
_FAILED: Final = STATUS_LOOKS[DisplayStatus.FAILED]
_UNSUPPORTED: Final = STATUS_LOOKS[DisplayStatus.UNSUPPORTED]
_CURRENT: Final = STATUS_LOOKS[DisplayStatus.CURRENT]
_SCALE_WORDS: Final = {Scale.LINEAR: "", Scale.ROOT: "√ ", Scale.LOG: "log "}


@dataclass(frozen=True, slots=True)
class Geometry:
    """Geometry of the timeline, in logical pixels.

    Attributes
    ----------
    width, height : int
        Of the canvas.
    count : int
        Operators.
    """

    width: int
    height: int
    count: int

    @property
    def slot(self) -> float:
        """Width for one operator."""
        return max(self.width - LEFT - RIGHT, 1) / max(self.count, 1)

    @property
    def bar_size(self) -> int:
        """Operators per bar: more than one if a slot would be under four pixels."""
        return max(1, math.ceil(_LEAST_SLOT / self.slot))

    @property
    def base(self) -> int:
        """The base line of the bars."""
        return self.height - BELOW

    @property
    def room(self) -> int:
        """Height of the highest bar."""
        return max(self.base - TOP, 1)

    def x(self, index: float) -> float:
        """Return the left edge of an operator's slot."""
        return LEFT + index * self.slot

    def bar_at(self, x: float) -> int:
        """Return the bar at a position; -1 for none."""
        index = math.floor((x - LEFT) / self.slot)
        return index // self.bar_size if 0 <= index < self.count else -1

    def bar_span(self, bar: int) -> tuple[float, float]:
        """Return the left and right edge of a bar's slot."""
        last = min((bar + 1) * self.bar_size, self.count)
        return self.x(bar * self.bar_size), self.x(last)

    def bar_rect(self, bar: int, height: int) -> QRect:
        """Return the rectangle of a bar of some height, on whole pixels."""
        left, right = self.bar_span(bar)
        wide = right - left
        shown = max(1, math.floor(wide - min(_GAP, wide * 0.3)))
        return QRect(round(left + (wide - shown) / 2), self.base - height, shown, height)


def labels_without_overlap(places: Sequence[int]) -> list[int]:
    """Return the places of an axis whose labels do not overlap, the uppermost first."""
    kept: list[int] = []
    for place in sorted(places):
        if not kept or place - kept[-1] >= _LABEL_HEIGHT:
            kept.append(place)
    return kept


def axis_unit(measure: Measure, top: float) -> tuple[float, str]:
    """Return a suitable unit for numbers up to `top`, as a factor and a name."""
    units = _UNITS[measure]
    return next((unit for unit in reversed(units) if unit[0] <= top), units[0])


class TimelinePainter:
    """Paints one picture of a model's costs.

    Parameters
    ----------
    theme : Theme
    geometry : Geometry
    model : TimelineModel
        Not empty.
    measure : {Measure.TIME, Measure.MACS}
    scale : Scale

    Attributes
    ----------
    bars : Bars
    heights : ndarray, (B,) int64
        In pixels; 0 for no bar.
    shown : ndarray, (B,) int64
        Index of the operator that a bar stands for.
    """

    def __init__(
        self,
        theme: Theme,
        geometry: Geometry,
        model: TimelineModel,
        measure: Measure,
        scale: Scale,
    ) -> None:
        self._theme, self._geometry, self._model = theme, geometry, model
        self._measure, self._scale = measure, scale
        self.bars: Bars = model.bars(measure, geometry.bar_size)
        self._top = float(self.bars.total.max())
        self.shown: Ints = self.bars.costliest
        self._has_unit = measure is Measure.MACS or model.any_measured
        self.heights: Ints = self._heights()

    def _heights(self) -> Ints:
        if self._top <= 0:
            shares = np.zeros(len(self.bars.total))
        else:
            shares = fractions(self.bars.total, self._top, self._scale)
        heights = np.maximum(np.rint(shares * self._geometry.room), LEAST_BAR)
        marked = self.bars.failed | self.bars.unsupported
        heights[marked] = np.maximum(heights[marked], _LEAST_MARKED_BAR)
        heights[self.bars.blocked] = 0
        return heights.astype(np.int64)

    def paint(
        self,
        painter: QPainter,
        position: int,
        breakpoints: Sequence[int],
        modules: Sequence[ModuleRun],
    ) -> None:
        """Paint everything except hover and selection.

        Parameters
        ----------
        painter : QPainter
        position : int
            Index of the operator that runs next.
        breakpoints : sequence of int
            Indexes of operators, ascending.
        modules : sequence of ModuleRun
        """
        space, theme = self._geometry, self._theme
        painter.fillRect(0, 0, space.width, space.height, theme.color("base"))
        reached = round(space.x(position))
        painter.fillRect(
            LEFT, 0, reached - LEFT, space.base, theme.color(_EXECUTED.token, 0.07)
        )
        self._paint_axis(painter)
        self._paint_bars(painter)
        painter.fillRect(
            LEFT, space.base, space.width - LEFT - RIGHT, 1, theme.color("ctl", 0.6)
        )
        self._paint_nonfinite(painter)
        self._paint_modules(painter, modules)
        self._paint_breakpoints(painter, breakpoints)
        self._paint_playhead(painter, reached)

    def _paint_axis(self, painter: QPainter) -> None:
        theme, space = self._theme, self._geometry
        if not self._has_unit or self._top <= 0:
            return
        factor, unit = axis_unit(self._measure, self._top)
        painter.setFont(theme.mono_font(9.5))
        painter.setPen(theme.color("text3"))
        caption = f"{_SCALE_WORDS[self._scale]}{unit}"
        painter.drawText(QRectF(6, 0, 80, TOP), Qt.AlignmentFlag.AlignVCenter, caption)
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        count = max(2, space.room // ROOM_PER_TICK)
        ticks = round_ticks(self._top / factor, self._scale, count)
        shares = fractions(np.array(ticks) * factor, self._top, self._scale)
        places = [space.base - round(float(share) * space.room) for share in shares]
        labelled = labels_without_overlap(places)
        for tick, y in zip(ticks, places, strict=True):
            painter.fillRect(LEFT, y, space.width - LEFT - RIGHT, 1, theme.color("line"))
            if y in labelled and y - 6 >= TOP - 1 and y + 6 <= space.base + 4:
                painter.setPen(theme.color("text3"))
                painter.drawText(QRectF(0, y - 7, LEFT - 7, 14), right, f"{tick:g}")

    def _paint_bars(self, painter: QPainter) -> None:
        bars, space = self.bars, self._geometry
        families = self._model.families
        # Bars of one look are painted at once: there may be hundreds at every step.
        ran: dict[str, list[QRect]] = defaultdict(list)
        estimated: dict[str, list[QRect]] = defaultdict(list)
        for bar, height in enumerate(self.heights.tolist()):
            if not height:
                continue
            rect = space.bar_rect(bar, height)
            token = families[bars.costliest[bar]]
            if bars.failed[bar]:
                self._paint_hatched(painter, rect)
            elif bars.unsupported[bar]:
                self._paint_dashed(painter, rect)
            elif bars.ran[bar]:
                ran[token].append(rect)
            else:
                estimated[token].append(rect.adjusted(0, 0, -1, -1))
                solid = self._solid_part(bar, height)
                if solid:
                    ran[token].append(rect.adjusted(0, rect.height() - solid, 0, 0))
        for token, rects in estimated.items():
            painter.setPen(self._theme.color(token))
            painter.setBrush(self._theme.color(token, ESTIMATE))
            painter.drawRects(rects)
        painter.setPen(Qt.PenStyle.NoPen)
        for token, rects in ran.items():
            painter.setBrush(self._theme.color(token))
            painter.drawRects(rects)

    def _solid_part(self, bar: int, height: int) -> int:
        """Return the height of the executed part of a partly executed bar."""
        total = float(self.bars.total[bar])
        share = float(self.bars.measured[bar]) / total if total > 0 else 0.0
        return round(height * share)

    def _paint_hatched(self, painter: QPainter, rect: QRect) -> None:
        color = self._theme.color(_FAILED.token)
        painter.fillRect(rect, self._theme.color("failBg"))
        painter.save()
        painter.setClipRect(rect)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(color, 1.4))
        for start in range(rect.left() - rect.height(), rect.right() + 1, 4):
            foot = QPointF(start, rect.bottom() + 1)
            painter.drawLine(foot, foot + QPointF(rect.height(), -rect.height()))
        painter.restore()
        painter.setPen(color)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(0, 0, -1, -1))

    def _paint_dashed(self, painter: QPainter, rect: QRect) -> None:
        pen = QPen(self._theme.color(_UNSUPPORTED.token), 1)
        pen.setDashPattern([3, 2])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(rect.adjusted(0, 0, -1, -1))

    def _paint_nonfinite(self, painter: QPainter) -> None:
        """A line under the bars of what gave NaN or Inf, however small they are."""
        space, color = self._geometry, self._theme.color(NONFINITE.token)
        for bar in np.flatnonzero(self.bars.nonfinite).tolist():
            left, right = space.bar_span(bar)
            painter.fillRect(QRectF(left, space.base, right - left, 3), color)

    def _paint_modules(self, painter: QPainter, modules: Sequence[ModuleRun]) -> None:
        theme, space = self._theme, self._geometry
        font = theme.ui_font(11)
        metrics = QFontMetrics(font)
        painter.setFont(font)
        y = space.base + 20
        for run in modules:
            left, right = round(space.x(run.first)) + 2, round(space.x(run.last + 1)) - 2
            if right - left < 3:
                continue
            label = elide_start(run.name, metrics, right - left - 14)
            if not label:
                continue
            painter.setPen(theme.color("ctl"))
            painter.drawLine(left, y, right, y)
            painter.drawLine(left, y - 4, left, y)
            painter.drawLine(right, y - 4, right, y)
            wide = metrics.horizontalAdvance(label) + 8
            patch = QRect(round((left + right - wide) / 2), y - 7, wide, 15)
            painter.fillRect(patch, theme.color("base"))
            painter.setPen(theme.color("text2"))
            painter.drawText(patch, Qt.AlignmentFlag.AlignCenter, label)

    def _paint_breakpoints(self, painter: QPainter, breakpoints: Sequence[int]) -> None:
        space = self._geometry
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.color("base"), 1.5))
        painter.setBrush(self._theme.color("bp"))
        for bar in sorted({index // space.bar_size for index in breakpoints}):
            left, right = space.bar_span(bar)
            painter.drawPolygon(_octagon(QPointF((left + right) / 2, space.base + 8), 5.6))
        painter.restore()

    def _paint_playhead(self, painter: QPainter, x: int) -> None:
        theme, space = self._theme, self._geometry
        painter.fillRect(x - 1, 0, 2, space.base + 9, theme.color(_CURRENT.token))
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.translate(x, 0)
        painter.setBrush(theme.color(_CURRENT.token))
        corners = ((-1, 0), (10, 0), (15, 6.5), (10, 13), (-1, 13))
        painter.drawPolygon(QPolygonF([QPointF(*corner) for corner in corners]))
        painter.setBrush(theme.color("onCur"))
        mark = ((3, 3), (10, 6.5), (3, 10))
        painter.drawPolygon(QPolygonF([QPointF(*corner) for corner in mark]))
        painter.restore()


def elide_start(name: str, metrics: QFontMetrics, room: int) -> str:
    """Return the longest end of a module's path that fits, of whole words; ``""`` for none."""
    starts = [0, *(found.end() for found in _BETWEEN_WORDS.finditer(name))]
    for start in starts:
        if metrics.horizontalAdvance(name[start:]) <= room:
            return name[start:]
    if room < _LEAST_LABEL:
        return ""
    return metrics.elidedText(name[starts[-1] :], Qt.TextElideMode.ElideLeft, room)


def _octagon(centre: QPointF, radius: float) -> QPolygonF:
    turns = [math.pi / 8 + place * math.pi / 4 for place in range(8)]
    return QPolygonF(
        [
            QPointF(centre.x() + radius * math.cos(turn), centre.y() + radius * math.sin(turn))
            for turn in turns
        ]
    )
