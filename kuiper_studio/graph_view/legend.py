"""The legend in a corner of the canvas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF, QPainter

from engine.text import format_count
from kuiper_studio.graph_view.glyphs import paint_glyph
from kuiper_studio.item_models.statuses import STATUS_LOOKS, DisplayStatus

if TYPE_CHECKING:
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.theme import Theme

__all__ = ["Entry", "legend_entries", "paint_legend"]

_INSET: Final = 12.0
_HEIGHT: Final = 20.0
_GLYPH: Final = 9.0
_GLYPH_ROOM: Final = 14.0
_GAP: Final = 16.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A mark, its colour and its meaning."""

    glyph: str
    token: str
    text: str


def legend_entries(state: SceneState) -> list[Entry]:
    """Return the marks that the graph shows now."""
    blocked = state.count(DisplayStatus.BLOCKED)
    entries = [_entry(DisplayStatus.EXECUTED)]
    if state.count(DisplayStatus.FAILED):
        entries.append(_entry(DisplayStatus.FAILED))
    else:
        entries += [_entry(DisplayStatus.CURRENT), _entry(DisplayStatus.PENDING)]
    if blocked:
        entries.append(_entry(DisplayStatus.BLOCKED, f": {format_count(blocked, 'operator')}"))
    if state.count(DisplayStatus.UNSUPPORTED):
        entries.append(_entry(DisplayStatus.UNSUPPORTED))
    if state.supplied:
        entries.append(_entry(DisplayStatus.SUPPLIED))
    if state.breakpoints:
        entries.append(Entry("octagon", "bp", "breakpoint"))
    return entries


def _entry(status: DisplayStatus, more: str = "") -> Entry:
    look = STATUS_LOOKS[status]
    return Entry(look.icon, look.token, f"{look.text.lower()}{more}")


def paint_legend(
    painter: QPainter, theme: Theme, entries: list[Entry], height: float, room: float
) -> None:
    """Paint entries in the bottom left corner, as many as there is room for.

    Parameters
    ----------
    painter : QPainter
    theme : Theme
    entries : list of Entry
    height : float
        Of the canvas.
    room : float
        Maximum width.
    """
    font = theme.ui_font(11)
    metrics = QFontMetricsF(font)
    widths = [_GLYPH_ROOM + metrics.horizontalAdvance(entry.text) for entry in entries]
    while widths and sum(widths) + _GAP * (len(widths) - 1) > room:
        widths.pop()
    if not widths:
        return
    width = sum(widths) + _GAP * (len(widths) - 1)
    top = height - _INSET - _HEIGHT
    patch = QRectF(_INSET - 6, top, width + 12, _HEIGHT)
    painter.fillRect(patch, theme.color("base", 0.85))
    painter.setFont(font)
    x, middle = _INSET, top + _HEIGHT / 2
    for entry, entry_width in zip(entries, widths, strict=False):
        centre = QPointF(x + _GLYPH / 2, middle)
        paint_glyph(painter, entry.glyph, centre, _GLYPH, theme.color(entry.token))
        painter.setPen(theme.color("text2"))
        baseline = middle + (metrics.ascent() - metrics.descent()) / 2
        painter.drawText(QPointF(x + _GLYPH_ROOM, baseline), entry.text)
        x += entry_width + _GAP
