"""The colour bar, labelled with five numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QLineF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPen

from engine.text import format_brief
from kuiper_studio.tensor_view.images import to_image
from kuiper_studio.tensor_view.numbers import format_tick

if TYPE_CHECKING:
    from kuiper_studio.tensor_view.images import Coloring
    from kuiper_studio.theme import Theme

__all__ = ["BAR_GAP", "BAR_WIDTH", "bar_space", "paint_color_bar"]

BAR_GAP: Final = 12
BAR_WIDTH: Final = 14
_TICK: Final = 4
_NUMBERS: Final = 5
_LEAST_DISTANCE: Final = 15
_LEAST_TEXT: Final = 30  # room for numbers; it grows in steps, so that pictures do not move
_TEXT_STEP: Final = 12


def _numbers(coloring: Coloring, intervals: int) -> list[str]:
    values = [coloring.value_at(place / intervals) for place in range(intervals + 1)]
    if coloring.is_log:
        return [format_brief(value) for value in values]
    # Never the whole span: the difference of the ends may overflow.
    step = coloring.high / intervals - coloring.low / intervals
    return [format_tick(value, step) for value in values]


def bar_space(coloring: Coloring, theme: Theme) -> float:
    """Return the width of a bar with the gap before it and the numbers after it."""
    metrics = QFontMetricsF(theme.mono_font(10.5))
    widest = max(map(metrics.horizontalAdvance, _numbers(coloring, _NUMBERS - 1)))
    more = max(0, math.ceil((widest - _LEAST_TEXT) / _TEXT_STEP))
    return BAR_GAP + BAR_WIDTH + _TICK + 4 + _LEAST_TEXT + more * _TEXT_STEP


def paint_color_bar(painter: QPainter, area: QRectF, coloring: Coloring, theme: Theme) -> None:
    """Paint a vertical bar, high values at the top, with numbers at its right.

    Parameters
    ----------
    painter : QPainter
    area : QRectF
        Of the bar itself; 14 pixels wide.
    coloring : Coloring
    theme : Theme
    """
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
    painter.drawImage(area, to_image(coloring.bar[::-1, None]))
    painter.setPen(QPen(theme.color("ctl"), 1))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawRect(area.adjusted(0, 0, -1, -1))
    painter.setFont(theme.mono_font(10.5))
    intervals = _NUMBERS - 1
    while intervals > 1 and area.height() / intervals < _LEAST_DISTANCE:
        intervals //= 2
    flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
    for place, text in enumerate(_numbers(coloring, intervals)):
        y = area.bottom() - 0.5 - place * (area.height() - 1) / intervals
        painter.setPen(QPen(theme.color("ctl"), 1))
        painter.drawLine(QLineF(area.right(), y, area.right() + _TICK, y))
        painter.setPen(theme.color("text2"))
        painter.drawText(QRectF(area.right() + _TICK + 3, y - 8, 90, 16), flags, text)
    painter.restore()
