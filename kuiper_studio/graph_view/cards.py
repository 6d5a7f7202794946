"""Paints closed groups as cards, and frames around the boxes of open ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QPainterPath, QPen, QPolygonF

from engine.text import format_count
from kuiper_studio.graph_view.boxes import RADIUS, BoxLook, BoxPainter
from kuiper_studio.graph_view.scene import TEXT_SCALE, fonts
from kuiper_studio.item_models.statuses import DisplayStatus
from kuiper_studio.layout.nested import TAB_HEIGHT

if TYPE_CHECKING:
    from PySide6.QtGui import QFont

    from kuiper_studio.graph_view.scene import Card, Frame
    from kuiper_studio.theme import Theme

__all__ = ["CHEVRON_ROOM", "CardPainter", "card_line", "paint_frame", "title_left"]

CHEVRON_ROOM: Final = 24.0
"""Width of the part of a frame's title that closes it."""
_INSET: Final = 10.0
_NAME_LINE: Final = 16.0
_COUNT_LINE: Final = 31.0
_STRIP_TOP: Final = 38.0
_STRIP_HEIGHT: Final = 5.0
_STRIP_GAP: Final = 2.0
_GLYPH: Final = 9.0
_BEHIND: Final = (6.0, 3.0)  # how far the cards under a stack's first one stick out
_CHIP_HEIGHT: Final = 13.0
_FRAME_RADIUS: Final = 7.0
_TITLE_ROOM: Final = 220.0  # of a title that is moved into view, from the frame's right side
_TITLES_FROM: Final = 0.35  # zoom
_LEGIBLE: Final = 0.85  # zoom below which titles are enlarged
_MOST_SCALE: Final = 1.7
_PALE: Final = 0.45  # opacity of the strip before anything has run


def card_line(look: BoxLook) -> tuple[str, bool]:
    """Return the second line of a card, and whether it is a word that stands out."""
    card = look.box.card
    if card is None:
        return "", False
    size = card.group.size
    if look.found is not None:
        return f"{look.found} of {format_count(size)} found", look.found > 0
    if look.fill is not None and look.value:
        return look.value, True
    if look.style.word:
        return f"{look.style.word} {look.executed + 1}/{size}", True
    if 0 < look.executed < size:
        return f"{look.executed} of {format_count(size)} run", False
    return card.count_text, False


class CardPainter(BoxPainter):
    """Paints closed groups in the colours of a theme, with their corner at the origin.

    Parameters
    ----------
    theme : Theme
    """

    def paint_card(self, painter: QPainter, look: BoxLook, card: Card) -> None:
        """Paint a whole card."""
        frame = QRectF(0, 0, look.box.width, look.box.height)
        self._paint_body(painter, look, card, frame, 1.0)
        faces = fonts()
        text, stands_out = card_line(look)
        title = look.style.title
        self._write(painter, look, faces.name, title, _INSET, _NAME_LINE, look.box.shown_name)
        self._paint_triangle(painter, look)
        font = faces.word if stands_out else faces.detail
        token = look.glyph[1] if look.style.word else look.style.text
        self._write(painter, look, font, token, _INSET + 10, _COUNT_LINE, text)
        right = look.box.width - _INSET
        if look.glyph[0]:
            centre = QPointF(right - _GLYPH / 2 + 1, 11.5)
            self._mark(painter, look, centre, _GLYPH)
        if card.chip:
            self._paint_chip(painter, look, card.chip, right)
        left, width = _INSET, right - _INSET
        self._paint_strip(painter, look, card, QRectF(left, _STRIP_TOP, width, _STRIP_HEIGHT))
        self._paint_corners(painter, look)

    def paint_small_card(
        self, painter: QPainter, look: BoxLook, card: Card, zoom: float
    ) -> None:
        """Paint name and families only, in a legible size; in view coordinates."""
        width, height = look.box.width * zoom, look.box.height * zoom
        frame = QRectF(0, 0, width, height)
        self._paint_body(painter, look, card, frame, zoom)
        room = width - 10
        if card.chip:
            painter.setFont(self._small_label)
            painter.setPen(self._ink(look, "text2"))
            taken = QFontMetricsF(self._small_label).horizontalAdvance(card.chip) + 4
            painter.drawText(QPointF(width - 1 - taken, 12), card.chip)
            room -= taken
        painter.setFont(self._small_type)
        painter.setPen(self._ink(look, look.style.title))
        elide = Qt.TextElideMode.ElideLeft  # the end of a path says the most
        shown = self._small_metrics.elidedText(look.box.name, elide, room)
        painter.drawText(QPointF(5, 13), shown)
        strip = QRectF(5, height - 6, width - 10, 3)
        self._paint_strip(painter, look, card, strip)
        self._paint_small_marks(painter, look, frame)

    # Parts

    def _paint_body(
        self, painter: QPainter, look: BoxLook, card: Card, frame: QRectF, zoom: float
    ) -> None:
        style, color = look.style, self._theme.color
        painter.setPen(QPen(color("ctl"), 1.0))
        painter.setBrush(color("raised"))
        for distance in _BEHIND if card.chip else ():
            under = frame.adjusted(0.5, 0.5, -0.5, -0.5)
            painter.drawRoundedRect(
                under.translated(distance * zoom, distance * zoom), RADIUS, RADIUS
            )
        half = style.width / 2
        outline = QPainterPath()
        outline.addRoundedRect(
            frame.adjusted(half, half, -half, -half), RADIUS - half, RADIUS - half
        )
        painter.fillPath(outline, look.fill or color(style.fill))
        pen = QPen(color(style.border), style.width)
        if style.dash is not None:
            pen.setDashPattern([length / style.width for length in style.dash])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(outline)

    def _paint_strip(self, painter: QPainter, look: BoxLook, card: Card, area: QRectF) -> None:
        """Paint a piece for each operator, or for some, in the colour of its family.

        On the colour of a quantity they would all be black or white.
        """
        if look.fill is not None:
            return
        count = len(card.strip)
        pitch = (area.width() + _STRIP_GAP) / count
        painter.setPen(Qt.PenStyle.NoPen)
        quiet = look.status in (DisplayStatus.PENDING, DisplayStatus.BLOCKED)
        opacity = painter.opacity()
        painter.setOpacity(opacity * _PALE if quiet and not look.executed else opacity)
        for number, token in enumerate(card.strip):
            painter.setBrush(self._theme.color(token))
            left = area.left() + number * pitch
            painter.drawRect(QRectF(left, area.top(), pitch - _STRIP_GAP, area.height()))
        painter.setOpacity(opacity)

    def _paint_triangle(self, painter: QPainter, look: BoxLook) -> None:
        x, y = _INSET, _COUNT_LINE - 3.5
        pen = QPen(self._ink(look, look.style.text), 1.4)
        pen.setCapStyle(Qt.PenCapStyle.RoundCap)
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        corners = (QPointF(x + 1, y - 3.5), QPointF(x + 4.5, y), QPointF(x + 1, y + 3.5))
        painter.drawPolyline(QPolygonF(corners))

    def _paint_chip(self, painter: QPainter, look: BoxLook, text: str, right: float) -> None:
        width = QFontMetricsF(fonts().word).horizontalAdvance(text) / TEXT_SCALE + 8
        top = _COUNT_LINE - _CHIP_HEIGHT + 3
        area = QRectF(right - width, top, width, _CHIP_HEIGHT)
        painter.setPen(QPen(self._ink(look, "ctl"), 1.0))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(area.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3)
        self._write(painter, look, fonts().word, "text", area.left() + 4, _COUNT_LINE, text)

    def _write(
        self,
        painter: QPainter,
        look: BoxLook,
        font: QFont,
        token: str,
        x: float,
        y: float,
        text: str,
    ) -> None:
        painter.save()
        painter.scale(1 / TEXT_SCALE, 1 / TEXT_SCALE)
        painter.setFont(font)
        painter.setPen(self._ink(look, token))
        painter.drawText(QPointF(x * TEXT_SCALE, y * TEXT_SCALE), text)
        painter.restore()


def title_left(area: QRectF, seen_from: float) -> float:
    """Return where the title of a frame begins: in view, where its left side is not."""
    return max(area.left(), min(seen_from, area.right() - _TITLE_ROOM))


def paint_frame(
    painter: QPainter,
    theme: Theme,
    frame: Frame,
    area: QRectF,
    beside: str,
    zoom: float,
    seen_from: float,
) -> None:
    """Paint the frame of an open group, in scene coordinates.

    Parameters
    ----------
    painter : QPainter
    theme : Theme
    frame : Frame
    area : QRectF
    beside : str
        What its title says behind the number of operators; ``""`` for nothing.
    zoom : float
        Its name is a little larger at small zoom, and not written at the smallest.
    seen_from : float
        Left side of what is visible.
    """
    painter.setPen(QPen(theme.color("text2"), 1.5))
    painter.setBrush(theme.color("panel", 0.5))
    painter.drawRoundedRect(area, _FRAME_RADIUS, _FRAME_RADIUS)
    if zoom < _TITLES_FROM:
        return
    painter.save()
    painter.setClipRect(area)
    painter.translate(title_left(area, seen_from), area.top() + TAB_HEIGHT / 2)
    scale = min(max(_LEGIBLE / zoom, 1.0), _MOST_SCALE)
    painter.scale(scale, scale)
    pen = QPen(theme.color("text"), 1.5)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    corners = (QPointF(10.0, -1.0), QPointF(13.5, 2.5), QPointF(17.0, -1.0))
    painter.drawPolyline(QPolygonF(corners))
    painter.scale(1 / TEXT_SCALE, 1 / TEXT_SCALE)
    faces, line = fonts(), 4.0 * TEXT_SCALE
    painter.setFont(faces.name)
    painter.setPen(theme.color("text"))
    left = CHEVRON_ROOM * TEXT_SCALE
    painter.drawText(QPointF(left, line), frame.title)
    left += QFontMetricsF(faces.name).horizontalAdvance(f"{frame.title} ")
    painter.setFont(faces.detail)
    painter.setPen(theme.color("text2"))
    count = format_count(frame.group.size, "operator")
    painter.drawText(QPointF(left, line), " · ".join(filter(None, (count, beside))))
    painter.restore()
