"""The preview of an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QImageReader, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from engine.errors import EngineError
from engine.inputs import load_input, thin_made_up, thin_planes
from engine.shapes import InputShapes
from engine.text import format_dtype, format_shape
from kuiper_studio.icons import pixmap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QPaintEvent

    from engine.inputs import InputSource
    from engine.runtime import RuntimeOperand
    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["InputPreview", "PreviewPicture", "image_of_planes", "load_preview"]

WIDTH: Final = 150
HEIGHT: Final = 85
_LEAST: Final = 10
_SIDE: Final = 512  # of what is made a picture of
_ICONS: Final = {"random": "dice", "constant": "grid", "npy": "table", "npz": "table"}


@dataclass(frozen=True, slots=True)
class PreviewPicture:
    """Preview of a source.

    Attributes
    ----------
    text : str
        Description of the source, for example ``1200×678 RGB``.
    image : QImage or None
    error : str
        Why the source cannot be used; ``""`` if no error was found.
    """

    text: str
    image: QImage | None = None
    error: str = ""


def load_preview(
    source: InputSource,
    operand: RuntimeOperand,
    inputs: Sequence[RuntimeOperand],
    shape: tuple[int, ...] | None = None,
) -> PreviewPicture:
    """Load a preview; takes longer for a larger file.

    Parameters
    ----------
    source : InputSource
    operand : RuntimeOperand
        The input that it is meant for.
    inputs : sequence of RuntimeOperand
        All inputs of the model, in order; arrays of an ``.npz`` belong to them in order.
    shape : tuple of int, optional
        Shape of generated values; default the operand's.
    """
    if source.kind == "image":
        return _of_picture(str(source.path))
    asked = InputShapes({operand.name: shape} if shape is not None else {})
    try:
        if source.kind in {"random", "constant"}:
            made, dtype, planes = thin_made_up(source, operand, asked, _SIDE)
        else:
            array = load_input(source, operand, shapes=asked, inputs=inputs)
            made, dtype, planes = array.shape, array.dtype, thin_planes(array, _SIDE)
    except EngineError as exc:
        return PreviewPicture("", error=str(exc))
    image = image_of_planes(planes) if planes is not None else None
    return PreviewPicture(f"{format_shape(made)} {format_dtype(dtype)}", image)


def _of_picture(path: str) -> PreviewPicture:
    reader = QImageReader(path)
    reader.setAutoTransform(True)
    reader.setDecideFormatFromContent(True)
    size = reader.size()
    grey = reader.imageFormat() in {QImage.Format.Format_Grayscale8, QImage.Format.Format_Mono}
    if size.isValid():
        # Twice the preview's size, for screens with more pixels. Not more along either side:
        # a strip that fills the other one would take gigabytes.
        box = QSize(2 * WIDTH, 2 * HEIGHT)
        scaled = size.scaled(box, Qt.AspectRatioMode.KeepAspectRatio)
        reader.setScaledSize(scaled.expandedTo(QSize(1, 1)))
    image = reader.read()
    if image.isNull():
        return PreviewPicture("", error=f"The image cannot be read: {reader.errorString()}.")
    if reader.transformation().value & 4:  # rotated by 90 degrees
        size = size.transposed()
    kind = "grey" if grey else "RGB"
    return PreviewPicture(f"{size.width()}×{size.height()} {kind}", image)


def image_of_planes(planes: Array) -> QImage:
    """Make a picture of one plane or three, their values stretched.

    Parameters
    ----------
    planes : ndarray of shape (1, H, W) or (3, H, W), real
    """
    values = np.broadcast_to(planes, (3, *planes.shape[1:])).astype(np.float64)
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    bounded = np.nan_to_num(values, nan=low, posinf=high, neginf=low)
    # Halved first: the difference of the two may overflow.
    span = high / 2 - low / 2
    scaled = (bounded / 2 - low / 2) / span if span > 0 else np.full_like(bounded, 0.5)
    pixels = np.ascontiguousarray(np.moveaxis((scaled * 255).astype(np.uint8), 0, 2))
    image = QImage(
        pixels.tobytes(), pixels.shape[1], pixels.shape[0], 3 * pixels.shape[1],
        QImage.Format.Format_RGB888,
    )  # fmt: skip
    return image.copy()


class InputPreview(QWidget):
    """Picture of a source; the parts that a crop removes are dimmed.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._picture: PreviewPicture | None = None
        self._kind = ""
        self._crop: tuple[int, int] | None = None
        self._shorter_side: int | None = None
        self._dropping = False
        self.setFixedSize(WIDTH, HEIGHT)
        theme.changed.connect(self.update)

    def show_picture(self, picture: PreviewPicture | None, kind: str) -> None:
        """Show a picture, or the icon of the source's `kind` without one."""
        self._picture, self._kind = picture, kind
        text = picture.text if picture is not None else "no input"
        self.setAccessibleName(f"Preview of the input: {text}")
        self.update()

    def set_crop(self, shape: tuple[int, int] | None, shorter_side: int | None = None) -> None:
        """Dim the parts that a centred crop removes.

        Parameters
        ----------
        shape : (int, int) or None
            Rows and columns that are left; None for no crop.
        shorter_side : int, optional
            Of the whole picture before it is cropped.
        """
        self._crop, self._shorter_side = shape, shorter_side
        self.update()

    def set_dropping(self, *, on: bool) -> None:
        """Show that a file is dragged over the input."""
        self._dropping = on
        self.update()

    # Overrides of Qt methods

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        shape = QPainterPath()
        shape.addRoundedRect(frame, 3, 3)
        painter.save()
        painter.setClipPath(shape)
        painter.fillRect(self.rect(), self._theme.color("base"))
        image = self._picture.image if self._picture is not None else None
        if image is not None:
            self._draw_image(painter, image)
        else:
            name = _ICONS.get(self._kind, "image")
            drawn = pixmap(name, self._theme, "text3", 24, self.devicePixelRatioF())
            painter.drawPixmap((WIDTH - 24) // 2, (HEIGHT - 24) // 2, drawn)
        painter.restore()
        token, width = ("focus", 2) if self._dropping else ("line", 1)
        painter.setPen(QPen(self._theme.color(token), width))
        painter.drawPath(shape)
        painter.end()

    def _draw_image(self, painter: QPainter, image: QImage) -> None:
        fitted = image.size().scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatio)
        fitted = fitted.expandedTo(
            QSize(_LEAST, _LEAST)
        )  # a long row is no line without height
        area = QRectF(
            (WIDTH - fitted.width()) / 2, (HEIGHT - fitted.height()) / 2,
            fitted.width(), fitted.height(),
        )  # fmt: skip
        # Small arrays are data: their elements stay square and sharp.
        small = image.width() < WIDTH and self._kind != "image"
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, not small)
        painter.drawImage(area, image)
        if self._crop is None:
            return
        rows, columns = self._crop
        high = min(area.height(), area.width() * rows / columns)
        fewest = min(area.height(), area.width()) * rows / high
        high *= min(1.0, fewest / (self._shorter_side or fewest))
        kept = QRectF(0, 0, high * columns / rows, high)
        kept.moveCenter(area.center())
        outside = QPainterPath()
        outside.addRect(area)
        inside = QPainterPath()
        inside.addRect(kept)
        painter.fillPath(outside.subtracted(inside), QColor(0, 0, 0, 150))
        painter.setPen(QPen(self._theme.color("focus"), 1.4))
        painter.drawRect(kept)
