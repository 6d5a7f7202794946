"""Paints the marks of states, which repeat what colours say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen, QPolygonF

from engine.text import MINUS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kuiper_studio.theme import Theme

__all__ = [
    "GLYPHS",
    "SPECIAL_MARKS",
    "SUSPECT_MARK",
    "DiscMark",
    "paint_disc_mark",
    "paint_glyph",
]

_ON_DISC: Final = 0.55  # of the disc


@dataclass(frozen=True, slots=True)
class DiscMark:
    """A mark on a disc, at the corner of a box, and what the legend calls it.

    Attributes
    ----------
    glyph, token, text : str
    """

    glyph: str
    token: str
    text: str


SUSPECT_MARK: Final = DiscMark("exclamation", "warn", "may be the cause")
SPECIAL_MARKS: Final = (
    DiscMark("cross", "nan", "NaN"),
    DiscMark("up", "pinf", "+Inf"),
    DiscMark("down", "ninf", f"{MINUS}Inf"),
)


def paint_glyph(
    painter: QPainter, name: str, centre: QPointF, size: float, color: QColor
) -> None:
    """Paint a mark.

    Parameters
    ----------
    painter : QPainter
    name : str
        A key of GLYPHS.
    centre : QPointF
    size : float
        Of the square it fills.
    color : QColor
    """
    painter.save()
    painter.translate(centre)
    painter.scale(size / 10.0, size / 10.0)
    GLYPHS[name](painter, color)
    painter.restore()


def paint_disc_mark(
    painter: QPainter, theme: Theme, mark: DiscMark, centre: QPointF, size: float
) -> None:
    """Paint a mark on its disc, in the colours of a theme."""
    base = theme.color("base")
    painter.setPen(QPen(base, 2.0))
    painter.setBrush(theme.color(mark.token))
    painter.drawEllipse(centre, size / 2, size / 2)
    paint_glyph(painter, mark.glyph, centre, size * _ON_DISC, base)


def _stroke(painter: QPainter, color: QColor, width: float) -> None:
    pen = QPen(color, width)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)


def _fill(painter: QPainter, color: QColor) -> None:
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)


def _check(painter: QPainter, color: QColor) -> None:
    _stroke(painter, color, 1.8)
    painter.drawPolyline([QPointF(-4.2, 0.4), QPointF(-1.4, 3.2), QPointF(4.2, -3.4)])


def _play(painter: QPainter, color: QColor) -> None:
    _fill(painter, color)
    painter.drawPolygon([QPointF(-3.8, -5), QPointF(5, 0), QPointF(-3.8, 5)])


def _ring(painter: QPainter, color: QColor) -> None:
    _stroke(painter, color, 1.4)
    painter.drawEllipse(QPointF(0, 0), 2.2, 2.2)


def _cross(painter: QPainter, color: QColor) -> None:
    _stroke(painter, color, 2.2)
    painter.drawLine(QPointF(-3.8, -3.8), QPointF(3.8, 3.8))
    painter.drawLine(QPointF(-3.8, 3.8), QPointF(3.8, -3.8))


def _dashed(painter: QPainter, color: QColor) -> None:
    _stroke(painter, color, 1.5)
    pen = painter.pen()
    pen.setCapStyle(Qt.PenCapStyle.FlatCap)
    pen.setDashPattern([1.6, 1.2])
    painter.setPen(pen)
    painter.drawRect(QRectF(-4, -4, 8, 8))


def _octagon(painter: QPainter, color: QColor) -> None:
    _fill(painter, color)
    painter.drawPolygon(_regular(8, 5.2, math.pi / 8))


def _up(painter: QPainter, color: QColor) -> None:
    _fill(painter, color)
    painter.drawPolygon([QPointF(-4.4, 3.6), QPointF(4.4, 3.6), QPointF(0, -4.2)])


def _down(painter: QPainter, color: QColor) -> None:
    _fill(painter, color)
    painter.drawPolygon([QPointF(-4.4, -3.6), QPointF(4.4, -3.6), QPointF(0, 4.2)])


def _exclamation(painter: QPainter, color: QColor) -> None:
    _stroke(painter, color, 2.0)
    painter.drawLine(QPointF(0, -4.2), QPointF(0, 0.8))
    painter.drawPoint(QPointF(0, 4.2))


def _supply(painter: QPainter, color: QColor) -> None:
    _stroke(painter, color, 1.5)
    painter.drawPolyline([QPointF(1, -4.2), QPointF(4.2, -4.2), QPointF(4.2, 4.2)])
    painter.drawPolyline([QPointF(4.2, 4.2), QPointF(-4.2, 4.2), QPointF(-4.2, 1)])
    painter.drawLine(QPointF(-4.2, -4.2), QPointF(1, 1))
    painter.drawPolyline([QPointF(1, -2), QPointF(1, 1), QPointF(-2, 1)])


def _ribbon(painter: QPainter, color: QColor) -> None:
    _fill(painter, color)
    corners = ((-3.4, -5), (3.4, -5), (3.4, 5), (0, 2.2), (-3.4, 5))
    painter.drawPolygon([QPointF(x, y) for x, y in corners])


def _regular(count: int, radius: float, turn: float) -> QPolygonF:
    angles = [turn + 2 * math.pi * i / count for i in range(count)]
    return QPolygonF([QPointF(radius * math.cos(a), radius * math.sin(a)) for a in angles])


GLYPHS: Final[dict[str, Callable[[QPainter, QColor], None]]] = {
    "check": _check,
    "play-filled": _play,
    "pending": _ring,
    "cross": _cross,
    "unsupported": _dashed,
    "octagon": _octagon,
    "up": _up,
    "down": _down,
    "exclamation": _exclamation,
    "supply": _supply,
    "bookmark": _ribbon,
}
