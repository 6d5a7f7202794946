"""Paints the badges of a comparison, which graph, list and timeline share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QPainterPath, QPen

from kuiper_studio.item_models.comparison_rows import DIFFERING, DifferenceKind

if TYPE_CHECKING:
    from PySide6.QtGui import QPainter

    from kuiper_studio.item_models.comparison_rows import DifferenceLook
    from kuiper_studio.theme import Theme

__all__ = ["BADGE_SIZE", "paint_badge"]

BADGE_SIZE: Final = 18.0
_HALO: Final = 1.0


def paint_badge(
    painter: QPainter, theme: Theme, look: DifferenceLook, centre: QPointF, size: float
) -> None:
    """Paint a badge: filled where the difference is born, dashed where nothing was compared.

    Parameters
    ----------
    painter : QPainter
    theme : Theme
    look : DifferenceLook
    centre : QPointF
    size : float
        Diameter, without the halo of a pixel.
    """
    filled = look.kind is DifferenceKind.BORN
    edge = theme.color("div" if look.kind in DIFFERING else "ctl")
    ink = theme.color("base" if filled else look.token)
    painter.save()
    painter.translate(centre)
    painter.scale(size / BADGE_SIZE, size / BADGE_SIZE)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(theme.color("base"))
    radius = BADGE_SIZE / 2
    painter.drawEllipse(QPointF(0, 0), radius + _HALO, radius + _HALO)
    pen = QPen(edge, 1.5)
    if look.kind is DifferenceKind.OTHER:
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        pen.setDashPattern([1.8, 1.4])
    painter.setPen(pen)
    painter.setBrush(edge if filled else Qt.BrushStyle.NoBrush)
    painter.drawEllipse(QPointF(0, 0), radius - 0.75, radius - 0.75)
    pen = QPen(ink, 1.7)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.drawPath(_SIGNS[look.glyph])
    painter.restore()


def _lines(*lines: tuple[float, float, float, float]) -> QPainterPath:
    path = QPainterPath()
    for left, top, right, bottom in lines:
        path.moveTo(left, top)
        path.lineTo(right, bottom)
    return path


def _waves() -> QPainterPath:
    path = QPainterPath()
    for y in (-2.0, 2.0):
        path.moveTo(-4.0, y + 0.8)
        path.cubicTo(-1.4, y - 3.0, 1.4, y + 3.0, 4.0, y - 0.8)
    return path


def _question() -> QPainterPath:
    path = QPainterPath(QPointF(-2.5, -2.6))
    path.cubicTo(-2.4, -5.8, 2.8, -5.8, 2.6, -2.4)
    path.cubicTo(2.5, -0.6, 0.0, -0.6, 0.0, 1.4)
    path.moveTo(0.0, 4.4)
    path.lineTo(0.0, 4.5)
    return path


_EQUAL: Final = ((-3.8, -1.9, 3.8, -1.9), (-3.8, 1.9, 3.8, 1.9))
_SIGNS: Final = {
    "=": _lines(*_EQUAL),
    "≠": _lines(*_EQUAL, (-2.4, 4.6, 2.4, -4.6)),
    "≈": _waves(),
    "?": _question(),
}
