"""Painting of cells over a picture: of attention, feature maps and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPen

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["cells_image", "draw_frame", "draw_over", "fitted_area", "opacity_of"]


def opacity_of(shares: Array, most: float) -> Array:
    """Return how opaque cells are, so that the picture is seen where there is little.

    Parameters
    ----------
    shares : ndarray
        From 0 to 1.
    most : float
        Opacity of a share of 1, from 0 to 1.
    """
    opacity: Array = most * np.asarray(shares) ** 0.75
    return opacity


def cells_image(pixels: npt.NDArray[np.uint8], opacity: Array | float = 1.0) -> QImage:
    """Make a see-through picture of cells.

    Parameters
    ----------
    pixels : ndarray of shape (H, W, 4), uint8
        Red, green, blue, and an alpha that is multiplied.
    opacity : float or ndarray of shape (H, W), optional
        From 0 to 1; NaN is transparent.
    """
    colors = np.ascontiguousarray(pixels).copy()
    colors[..., 3] = (colors[..., 3] * np.nan_to_num(np.asarray(opacity))).astype(np.uint8)
    height, width = colors.shape[:2]
    image = QImage(colors.data, width, height, 4 * width, QImage.Format.Format_RGBA8888)
    return image.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)


def fitted_area(source: QSize, room: QSize) -> QRectF:
    """Return where a picture of a size is, as large as the room at (1, 1) lets it be."""
    fitted = source.scaled(room, Qt.AspectRatioMode.KeepAspectRatio)
    return QRectF(QPointF(1, 1), fitted.toSizeF())


def draw_over(
    painter: QPainter,
    area: QRectF,
    picture: QImage | None,
    cells: QImage,
    target: QRectF,
    theme: Theme,
) -> None:
    """Draw a picture, and cells over it; what lies beyond the picture is cut.

    Parameters
    ----------
    painter : QPainter
    area : QRectF
        Of the picture.
    picture : QImage or None
        None for a plain ground.
    cells : QImage
    target : QRectF
        Where all cells are; within `area` or beyond.
    theme : Theme
    """
    smooth = QPainter.RenderHint.SmoothPixmapTransform
    if picture is not None:
        painter.setRenderHint(smooth)
        painter.drawImage(area, picture)
    else:
        painter.fillRect(area, theme.color("base"))
    painter.setRenderHint(smooth, on=False)
    painter.save()
    painter.setClipRect(area, Qt.ClipOperation.IntersectClip)
    painter.drawImage(target, cells)
    painter.restore()


def draw_frame(painter: QPainter, cell: QRectF) -> None:
    """Outline a cell so that it is seen on any colour: white over black."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(QColor("#000000"), 3))
    painter.drawRect(cell)
    painter.setPen(QPen(QColor("#FFFFFF"), 1.4))
    painter.drawRect(cell)
