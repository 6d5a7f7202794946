"""The legend below the scene: the scale of an overlay, and the marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QImage, QPainter

from engine.text import format_count
from kuiper_studio.badges import paint_badge
from kuiper_studio.graph_view.colors import level_colors
from kuiper_studio.graph_view.glyphs import (
    SPECIAL_MARKS,
    SUSPECT_MARK,
    DiscMark,
    paint_disc_mark,
    paint_glyph,
)
from kuiper_studio.graph_view.state import NONE
from kuiper_studio.item_models.comparison_rows import DifferenceKind
from kuiper_studio.item_models.overlays import LEVELS, NO_LEVEL
from kuiper_studio.item_models.statuses import STATUS_LOOKS, DisplayStatus

if TYPE_CHECKING:
    from kuiper_studio.graph_view.state import SceneState
    from kuiper_studio.item_models.comparison_rows import DifferenceLook
    from kuiper_studio.item_models.overlays import Overlay
    from kuiper_studio.theme import Theme

__all__ = ["LEGEND_HEIGHT", "Entry", "legend_entries", "paint_legend", "paint_scale"]

LEGEND_HEIGHT: Final = 26.0
_INSET: Final = 12.0
_GLYPH: Final = 9.0
_BADGE: Final = 13.0
_DISC: Final = 12.0
_GLYPH_ROOM: Final = 14.0
_GAP: Final = 16.0
_BAR: Final = (196.0, 7.0)
_BAR_TOP: Final = -9.0  # from the middle of the strip
_TICK_BASELINE: Final = 9.0
_SWATCH: Final = 10.0
_NUMBER_GAP: Final = 12.0
_TITLE_MOST: Final = 180.0
_LEAST_TITLE: Final = 48.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A mark, its colour and its meaning.

    Attributes
    ----------
    glyph, token, text : str
    badge : DifferenceLook or DiscMark or None
        Painted instead of the glyph.
    """

    glyph: str
    token: str
    text: str
    badge: DifferenceLook | DiscMark | None = None


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
    entries += [_disc_entry(mark) for mark in _disc_marks(state)]
    if state.breakpoints:
        entries.append(Entry("octagon", "bp", "breakpoint"))
    if state.bookmarks:
        entries.append(Entry("bookmark", "link", "bookmark"))
    return entries


def _difference_entries(state: SceneState) -> list[Entry]:
    looks = state.marks.looks
    return [
        Entry(looks[kind].glyph, looks[kind].token, text, looks[kind])
        for kind, text in _DIFFERENCES.items()
        if kind in looks
    ]


def _entry(status: DisplayStatus, more: str = "") -> Entry:
    look = STATUS_LOOKS[status]
    return Entry(look.icon, look.token, f"{look.text.lower()}{more}")


def _disc_marks(state: SceneState) -> list[DiscMark]:
    """Return the marks on discs that boxes have."""
    seen = zip(SPECIAL_MARKS, state.special_seen(), strict=True)
    suspect = [SUSPECT_MARK] if state.suspect != NONE else []
    return suspect + [mark for mark, is_seen in seen if is_seen]


def _disc_entry(mark: DiscMark) -> Entry:
    return Entry(mark.glyph, mark.token, mark.text, mark)


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
        if isinstance(entry.badge, DiscMark):
            paint_disc_mark(painter, theme, entry.badge, centre, _DISC)
        elif entry.badge is not None:
            paint_badge(painter, theme, entry.badge, centre, _BADGE)
        else:
            paint_glyph(painter, entry.glyph, centre, _GLYPH, theme.color(entry.token))
        painter.setPen(theme.color("text2"))
        painter.drawText(QPointF(x + _GLYPH_ROOM, baseline), entry.text)
        x += width + _GAP


def paint_scale(painter: QPainter, theme: Theme, overlay: Overlay, strip: QRectF) -> float:
    """Paint what the colours of an overlay stand for at the left of a strip.

    Returns
    -------
    float
        Width that it takes.
    """
    return _ScalePainter(painter, theme, overlay, strip).paint()


class _ScalePainter:
    """Paints title, colour bar with numbers or classes, and the colour of no value."""

    def __init__(
        self, painter: QPainter, theme: Theme, overlay: Overlay, strip: QRectF
    ) -> None:
        self._painter, self._theme, self._overlay = painter, theme, overlay
        self._strip, self._x = strip, strip.left() + _INSET
        self._colors = level_colors(theme, overlay)
        self._numbers = theme.mono_font(10)
        self._widths = list(map(QFontMetricsF(self._numbers).horizontalAdvance, overlay.ends))

    @property
    def _room(self) -> float:
        return max(self._strip.right() - _INSET - self._x, 0.0)

    def paint(self) -> float:
        overlay = self._overlay
        has_bar = len(set(overlay.ends)) > 1
        self._paint_title(self._room - (self._least_bar + _GAP if has_bar else 0.0))
        if overlay.is_empty:
            self._write(overlay.nothing, "text2", self._room)
        elif overlay.classes:
            for level, name in enumerate(overlay.classes):
                self._paint_swatch(int(self._colors[level]), name)
        elif has_bar:
            self._paint_bar()
        else:
            level = int(overlay.levels.max())
            self._paint_swatch(int(self._colors[level]), overlay.range_text)
        if overlay.lacks_some and not overlay.is_empty:
            self._paint_swatch(int(self._colors[NO_LEVEL]), overlay.absent)
        return self._x - self._strip.left() - _INSET

    @property
    def _least_bar(self) -> float:
        """Width that the least and the largest value need."""
        return self._widths[0] + self._widths[2] + _NUMBER_GAP

    def _paint_title(self, room: float) -> None:
        """Write the title as far as there is room: the header has it, too."""
        overlay = self._overlay
        is_log = overlay.scale is not None and overlay.scale.is_log
        font = self._theme.ui_font(11, 600)
        suffix = " (log)" if is_log else ""
        most = min(room, _TITLE_MOST) - QFontMetricsF(font).horizontalAdvance(suffix)
        metrics = QFontMetricsF(font)
        title = metrics.elidedText(overlay.title, Qt.TextElideMode.ElideRight, most)
        if most < _LEAST_TITLE:
            title, suffix = "", suffix.strip()
        if title or suffix:
            self._write(title + suffix, "text", room, 600)

    def _write(self, text: str, token: str, room: float, weight: int = 400) -> None:
        font = self._theme.ui_font(11, weight)
        metrics = QFontMetricsF(font)
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        baseline = self._strip.center().y() + (metrics.ascent() - metrics.descent()) / 2
        self._painter.setFont(font)
        self._painter.setPen(self._theme.color(token))
        self._painter.drawText(QPointF(self._x, baseline), shown)
        self._x += metrics.horizontalAdvance(shown) + _NUMBER_GAP

    def _paint_swatch(self, color: int, text: str) -> None:
        width = QFontMetricsF(self._theme.ui_font(11)).horizontalAdvance(text)
        if _GLYPH_ROOM + width > self._room:
            return
        middle = self._strip.center().y()
        square = QRectF(round(self._x), round(middle - _SWATCH / 2), _SWATCH, _SWATCH)
        self._painter.fillRect(square, QColor.fromRgba(color))
        self._x += _GLYPH_ROOM
        self._write(text, "text2", width + 1)

    def _paint_bar(self) -> None:
        width = min(self._room, max(_BAR[0], self._least_bar))
        middle = self._strip.center().y()
        if width < self._least_bar:
            self._write(self._overlay.range_text, "text2", self._room)
            return
        bar = QRectF(round(self._x), round(middle + _BAR_TOP), round(width), _BAR[1])  # sharp
        ramp = self._colors[:LEVELS].copy()
        image = QImage(ramp.data, LEVELS, 1, 4 * LEVELS, QImage.Format.Format_ARGB32)
        self._painter.drawImage(bar, image)
        self._painter.setFont(self._numbers)
        self._painter.setPen(self._theme.color("text2"))
        free = (bar.width() - self._widths[1]) / 2 - _NUMBER_GAP
        for share, text, taken in zip(
            (0.0, 0.5, 1.0), self._overlay.ends, self._widths, strict=True
        ):
            if share == 0.5 and free < max(self._widths[0], self._widths[2]):
                continue  # the number of the middle would touch those of the ends
            left = bar.left() + share * (bar.width() - taken)
            self._painter.drawText(QPointF(left, middle + _TICK_BASELINE), text)
        self._x += width + _GAP
