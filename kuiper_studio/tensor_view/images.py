"""Makes images, hatches and marks for QPainter from arrays of colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QLineF, QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPen, QPixmap, QPolygonF

from engine.pictures import colorize, lookup_table
from kuiper_studio.tensor_view.log_scale import from_log, to_log

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = [
    "Coloring",
    "contrasting",
    "hatch_brush",
    "image_over",
    "map_swatch",
    "mark_brush",
    "mask_image",
    "paint_masked",
    "special_masks",
    "to_image",
]

HATCH_PITCH: Final = 5
LIGHT: Final = 140  # brightness of 0 to 255 above which ink is black
_HATCH_STROKE: Final = 1.1
_SWATCH: Final = (34, 10)  # width and height in pixels
_BLUE_FIRST: Final = (2, 1, 0)  # where a pixel has red, green and blue


@dataclass(frozen=True, slots=True)
class Coloring:
    """Maps values to colours.

    Attributes
    ----------
    low, high : float
    color_map : str
    known : bool
        Whether there is a range; without one, only special values have colours.
    mark_special : bool
        Whether NaN and infinite values have their own colours and marks.
    mark_clipped : bool
        Whether values outside the range are hatched.
    is_log : bool
        Whether the scale is logarithmic; see `to_log`.
    window : (float, float) or None
        The part of the range that all colours go to, linearly; values outside have the colours
        of the ends. None for the whole range.
    """

    low: float = 0.0
    high: float = 1.0
    color_map: str = "viridis"
    known: bool = True
    mark_special: bool = True
    mark_clipped: bool = False
    is_log: bool = False
    window: tuple[float, float] | None = None

    @property
    def table(self) -> Array:
        """The colours, shape (256, 4)."""
        return lookup_table(self.color_map)

    def paint(self, values: Array, *, blue_first: bool = False) -> npt.NDArray[np.uint8]:
        """Return the colours of real values; `blue_first` for `image_over`."""
        return self.paint_between(values, self.low, self.high, blue_first=blue_first)

    def paint_between(
        self,
        values: Array,
        low: float | Array,
        high: float | Array,
        *,
        blue_first: bool = False,
    ) -> npt.NDArray[np.uint8]:
        """Return the colours of real values in another range, or in one for each plane."""
        if self.window is not None:
            low, high = self.window
        elif self.is_log:
            values, low, high = to_log(values, low, high)
        return colorize(
            values, low, high, self.table, special=self.mark_special, blue_first=blue_first
        )

    def paint_colors(
        self, values: Array, low: float | Array, high: float | Array
    ) -> npt.NDArray[np.uint8]:
        """Return pixels for `image_over` of three real values each: red, green and blue.

        Parameters
        ----------
        values : ndarray of shape (3, ...)
        low, high : float or ndarray
            Of black and of full colour.
        """
        levels = self.paint_between(values, low, high, blue_first=True)
        pixels: npt.NDArray[np.uint8] = levels[0].copy()
        for place, level in zip(_BLUE_FIRST, levels, strict=True):
            pixels[..., place] = level[..., place]
        for value, level in zip(values, levels, strict=True):  # NaN in any is NaN
            special = ~np.isfinite(value)
            pixels[special] = level[special]
        return pixels

    @property
    def gradient(self) -> Array:
        """The colours of evenly spaced values of the range, shape (256, 4)."""
        if not self.is_log and self.window is None:
            return self.table
        shares = np.linspace(0.0, 1.0, len(self.table))
        return self.paint(self.low * (1 - shares) + self.high * shares)

    @property
    def bar(self) -> Array:
        """The colours along a colour bar, from low to high, shape (256, 4)."""
        if self.window is None:
            return self.table
        shares = np.linspace(0.0, 1.0, len(self.table)).tolist()
        return self.paint(np.array([self.value_at(share) for share in shares]))

    def value_at(self, share: float) -> float:
        """Return the value whose colour is at a share of the way from low to high."""
        if self.is_log:
            return from_log(share, self.low, self.high)
        return self.low * (1 - share) + self.high * share

    def color_of(self, value: float) -> QColor:
        """Return the colour of one value."""
        red, green, blue, alpha = self.paint(np.array([value], np.float64))[0].tolist()
        return QColor(red, green, blue, alpha)

    def end_color(self, *, upper: bool) -> QColor:
        """Return the colour of values below or above the range."""
        red, green, blue, _ = self.table[-1 if upper else 0].tolist()
        return QColor(red, green, blue)


def to_image(colors: npt.NDArray[np.uint8]) -> QImage:
    """Make an image of RGBA colours.

    Parameters
    ----------
    colors : ndarray of shape (H, W, 4), uint8
        Copied.
    """
    height, width = colors.shape[:2]
    data = np.ascontiguousarray(colors)
    view = QImage(data.data, width, height, 4 * width, QImage.Format.Format_RGBA8888)
    return view.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)


def image_over(
    pixels: npt.NDArray[np.uint32], size: tuple[int, int] | None = None, scale: float = 1.0
) -> QImage:
    """Make an image that shares memory with pixels, which must live as long.

    Parameters
    ----------
    pixels : C-contiguous ndarray of shape (H, W), uint32
        As ``colorize(…, blue_first=True)`` gives them: opaque, or nothing at all.
    size : (int, int), optional
        Width and height of the part at the top left that is the image; all when not given.
    scale : float, optional
        Device pixel ratio.
    """
    width, height = size or pixels.shape[::-1]
    format_ = QImage.Format.Format_ARGB32_Premultiplied
    image = QImage(pixels.data, width, height, pixels.strides[0], format_)
    image.setDevicePixelRatio(scale)
    return image


def map_swatch(name: str) -> QPixmap:
    """Make a small picture of a colour map for combo boxes and menus."""
    width, height = _SWATCH
    colors = lookup_table(name)[np.arange(width) * 255 // (width - 1)]
    image = to_image(np.broadcast_to(colors, (height, width, 4)))
    return QPixmap.fromImage(image)


def mask_image(mask: npt.NDArray[np.bool_]) -> QImage:
    """Make an image that is opaque where a mask of shape (H, W) is true."""
    height, width = mask.shape
    data = np.where(mask, np.uint32(0xFFFFFFFF), np.uint32(0))
    format_ = QImage.Format.Format_ARGB32_Premultiplied
    return QImage(data.data, width, height, 4 * width, format_).copy()


def contrasting(color: QColor) -> QColor:
    """Return black or white, whichever contrasts with a colour."""
    light = 0.299 * color.red() + 0.587 * color.green() + 0.114 * color.blue() > LIGHT
    return QColor("#000000" if light else "#FFFFFF")


def hatch_brush(color: QColor, *, rising: bool, scale: float = 1.0) -> QBrush:
    """Make a hatch of lines 5 logical pixels apart: ``//`` if rising, else backslashes."""
    side = HATCH_PITCH
    pixmap = _clear_square(side, scale)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(color, _HATCH_STROKE))
    for shift in (-side, 0, side):
        start, end = QPointF(shift - side, -side), QPointF(shift + 2 * side, 2 * side)
        if rising:
            start, end = QPointF(start.x(), 2 * side), QPointF(end.x(), -side)
        painter.drawLine(start, end)
    painter.end()
    return QBrush(pixmap)


def mark_brush(kind: str, side: int, scale: float = 1.0) -> QBrush:
    """Make a brush with the mark of a special value in squares of `side` logical pixels.

    Parameters
    ----------
    kind : {"nan", "pinf", "ninf"}
        A cross, a triangle upwards, a triangle downwards; black, with white around it.
    side : int
    scale : float, optional
        Device pixel ratio.
    """
    pixmap = _clear_square(side, scale)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    half, reach = side / 2, min(side * 0.25, 10.0)
    ink = QColor("#FFFFFF" if kind == "nan" else "#000000")
    painter.translate(half, half)
    if kind == "nan":
        painter.setPen(QPen(ink, max(1.2, reach / 3)))
        painter.drawLine(QLineF(-reach, -reach, reach, reach))
        painter.drawLine(QLineF(-reach, reach, reach, -reach))
    else:
        if kind == "ninf":
            painter.scale(1, -1)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(ink)
        corners = [QPointF(0, -reach), QPointF(reach, reach), QPointF(-reach, reach)]
        painter.drawPolygon(QPolygonF(corners))
    painter.end()
    return QBrush(pixmap)


def _clear_square(side: int, scale: float) -> QPixmap:
    """Return transparent pixels for a square of logical ones."""
    pixmap = QPixmap(round(side * scale), round(side * scale))
    pixmap.setDevicePixelRatio(scale)
    pixmap.fill(Qt.GlobalColor.transparent)
    return pixmap


def special_masks(values: Array) -> dict[str, npt.NDArray[np.bool_]]:
    """Return masks of NaN and the infinities by kind of mark; only those that occur."""
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return {}
    masks = {"nan": np.isnan(values), "pinf": values == np.inf, "ninf": values == -np.inf}
    return {kind: mask for kind, mask in masks.items() if mask.any()}


def paint_masked(
    painter: QPainter,
    brush: QBrush,
    mask: QImage,
    target: QRectF,
    source: QRectF,
    *,
    origin: QPointF | None = None,
) -> None:
    """Fill the part of a rectangle in which a mask is opaque.

    Parameters
    ----------
    painter : QPainter
    brush : QBrush
    mask : QImage
        Opaque where to paint; its part `source` is stretched over `target` without smoothing.
    target, source : QRectF
    origin : QPointF, optional
        Where the brush's pattern begins; the painter's own origin when not given.
    """
    scale = painter.device().devicePixelRatioF()
    size = QSizeF(target.width() * scale, target.height() * scale).toSize()
    if size.isEmpty():
        return
    layer = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    layer.setDevicePixelRatio(scale)
    layer.fill(Qt.GlobalColor.transparent)
    inner = QPainter(layer)
    area = QRectF(0, 0, target.width(), target.height())
    inner.setBrushOrigin((origin or QPointF(0, 0)) - target.topLeft())
    inner.fillRect(area, brush)
    inner.setCompositionMode(QPainter.CompositionMode.CompositionMode_DestinationIn)
    inner.drawImage(area, mask, source)
    inner.end()
    painter.drawImage(target.topLeft(), layer)
