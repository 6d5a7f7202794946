"""The legend below the scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QFontMetricsF, QPainter

from engine.text import format_count
from kuiper_studio.badges import paint_badge
from kuiper_studio.graph_view.glyphs import paint_glyph
from kuiper_studio.graph_view.state import NONE
from kuiper_studio.item_models.comparison_rows import DifferenceKind
from kuiper_studio.item_models.statuses import STATUS_LOOKS, DisplayStatus

if TYPE_CHECKING:
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.item_models.comparison_rows import DifferenceLook
    from kuiper_studio.theme import Theme

__all__ = ["LEGEND_HEIGHT", "Entry", "legend_entries", "paint_legend"]

LEGEND_HEIGHT: Final = 26.0
_INSET: Final = 12.0
_GLYPH: Final = 9.0
_BADGE: Final = 13.0
_GLYPH_ROOM: Final = 14.0
_GAP: Final = 16.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A mark, its colour and its meaning.

    Attributes
    ----------
    glyph, token, text : str
    badge : DifferenceLook or None
        Painted instead of the glyph.
    """

    glyph: str
    token: str
    text: str
    badge: DifferenceLook | None = None


_DIFFERENCES: Final = {
    DifferenceKind.EQUAL: "equal",
    DifferenceKind.BORN: "born here",
    DifferenceKind.INHERITED: "inherited",
    DifferenceKind.OTHER: "not compared",
}


def legend_entries(state: SceneState) -> list[Entry]:
    """Return the marks that the graph shows now, those of a comparison first."""
    blocked = state.count(DisplayStatus.BLOCKED)
    entries = _difference_entries(state)
    if state.count(DisplayStatus.EXECUTED):
        entries.append(_entry(DisplayStatus.EXECUTED))
    if state.count(DisplayStatus.FAILED):
        entries.append(_entry(DisplayStatus.FAILED))
    if state.current != NONE:
        entries.append(_entry(DisplayStatus.CURRENT))
    if state.count(DisplayStatus.PENDING):
        entries.append(_entry(DisplayStatus.PENDING))
    if blocked:
        entries.append(_entry(DisplayStatus.BLOCKED, f": {format_count(blocked, 'operator')}"))
    if state.count(DisplayStatus.UNSUPPORTED):
        entries.append(_entry(DisplayStatus.UNSUPPORTED))
    if state.supplied:
        entries.append(_entry(DisplayStatus.SUPPLIED))
    if state.breakpoints:
        entries.append(Entry("octagon", "bp", "breakpoint"))
    if state.bookmarks:
        entries.append(Entry("bookmark", "link", "bookmark"))
    return entries


def _difference_entries(state: SceneState) -> list[Entry]:
    looks: dict[DifferenceKind, DifferenceLook] = {}
    for mark in state.marks.values():
        looks.setdefault(mark.kind, mark.look)
    return [
        Entry(looks[kind].glyph, looks[kind].token, text, looks[kind])
        for kind, text in _DIFFERENCES.items()
        if kind in looks
    ]


def _entry(status: DisplayStatus, more: str = "") -> Entry:
    look = STATUS_LOOKS[status]
    return Entry(look.icon, look.token, f"{look.text.lower()}{more}")


def paint_legend(painter: QPainter, theme: Theme, entries: list[Entry], strip: QRectF) -> None:
    """Paint entries at the left of a strip, as many as there is room for."""
    font = theme.ui_font(11)
    metrics = QFontMetricsF(font)
    painter.setFont(font)
    x, middle = strip.left() + _INSET, strip.center().y()
    baseline = middle + (metrics.ascent() - metrics.descent()) / 2
    for entry in entries:
        width = _GLYPH_ROOM + metrics.horizontalAdvance(entry.text)
        if x + width > strip.right() - _INSET:
            return
        centre = QPointF(x + _GLYPH / 2, middle)
        if entry.badge is not None:
            paint_badge(painter, theme, entry.badge, centre, _BADGE)
        else:
            paint_glyph(painter, entry.glyph, centre, _GLYPH, theme.color(entry.token))
        painter.setPen(theme.color("text2"))
        painter.drawText(QPointF(x + _GLYPH_ROOM, baseline), entry.text)
        x += width + _GAP
