"""The picture of the output panel: the input, and over it what the model found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen, QPolygonF
from typing_extensions import override

from engine.meanings.boxes import turned_corners
from engine.meanings.results import (
    Boxes,
    Classes,
    Embedding,
    Field,
    FlowField,
    KeyPoints,
    LabelMap,
    Picture,
    Spectrogram,
    Tokens,
    Transcript,
)
from engine.text import format_brief
from kuiper_studio.focus_ring import draw_focus_ring
from kuiper_studio.panels.class_colors import class_color, ink_on
from kuiper_studio.panels.output_images import MaskView, picture_of
from kuiper_studio.panels.picture_canvas import ARROWS, PictureCanvas
from kuiper_studio.panels.timeline_model import Scale, round_ticks

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QImage, QKeyEvent, QMouseEvent, QPaintEvent
    from PySide6.QtWidgets import QWidget

    from engine.meanings.results import Result, Row
    from kuiper_studio.theme import Theme

__all__ = ["OutputCanvas", "has_picture"]

_LEAST_HEIGHT: Final = 140
_CHIP: Final = 15  # height of the name of a box
_DOT: Final = 3.2
_LEFT, _RIGHT, _FOOT = 40, 18, 20  # margins of a spectrogram, for its axes
_APART: Final = 64  # pixels between its ticks
_SURE: Final = 0.3  # score from which a key point is drawn
_ALONG_TIME: Final = (Spectrogram, Transcript)
# Key points of COCO's 17 that are joined.
_LIMBS: Final = (
    (15, 13), (13, 11), (16, 14), (14, 12), (11, 12), (5, 11), (6, 12), (5, 6), (5, 7),
    (6, 8), (7, 9), (8, 10), (1, 2), (0, 1), (0, 2), (1, 3), (2, 4), (3, 5), (4, 6),
)  # fmt: skip


class OutputCanvas(PictureCanvas):
    """Paints a result over the input picture.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    chosen : int
        A row of the result was clicked, or reached by an arrow key; -1 for none.
    hovered : str
        What is under the mouse; ``""`` for nothing.
    """

    chosen = Signal(int)
    hovered = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(
            theme, "outputCanvas", "Output over the input picture", _LEAST_HEIGHT, parent
        )
        self._result: Result | None = None
        self._image: QImage | None = None
        self._overlay: QImage | None = None
        self._size = (1, 1)
        self._selected = -1
        self._view = MaskView.CLASSES

    # What is shown

    @property
    def has_overlay(self) -> bool:
        """Whether there is a picture whose opacity matters."""
        return self._overlay is not None and self._image is not None

    @property
    def overlay(self) -> QImage | None:
        """The picture of the result."""
        return self._overlay

    @property
    def selected(self) -> int:
        """The selected row; -1 for none."""
        return self._selected

    def show_result(
        self, result: Result | None, image: QImage | None, size: tuple[int, int] | None
    ) -> None:
        """Show a result.

        Parameters
        ----------
        result : Result or None
        image : QImage or None
            The input.
        size : (int, int) or None
            Height and width of the input, in whose pixels boxes are.
        """
        self._result = result
        self._image = None if isinstance(result, _ALONG_TIME) else image
        self._selected = -1
        self._overlay = self._make_overlay()
        if isinstance(result, (Boxes, KeyPoints)):
            self._size = result.size
        elif size is not None and self._image is not None:
            self._size = size
        elif self._overlay is not None:
            self._size = self._overlay.height(), self._overlay.width()
        self._describe()
        self.update()

    def set_selected(self, row: int) -> None:
        """Mark a row of the result; -1 for none."""
        if row != self._selected:
            self._selected = row
            self._overlay = self._make_overlay()
            self._describe()
            self.update()

    def set_mask_view(self, view: MaskView) -> None:
        """Set what of a label map with a mask is shown."""
        if view is not self._view:
            self._view = view
            self._overlay = self._make_overlay()
            self.update()

    def _make_overlay(self) -> QImage | None:
        if self._result is None:
            return None
        return picture_of(self._result, self._selected, self._view)

    def _rows(self) -> tuple[Row, ...]:
        return self._result.rows if self._result is not None else ()

    def _describe(self) -> None:
        rows = self._rows()
        text = f"{len(rows)} rows"
        if 0 <= self._selected < len(rows):
            row = rows[self._selected]
            text += f"; selected: {row.name} {row.text}"
        self.setAccessibleDescription(text)

    # Geometry

    def area(self) -> QRectF:
        """Return where the input is painted."""
        height, width = self._size
        if isinstance(self._result, _ALONG_TIME):
            return QRectF(self.rect()).adjusted(_LEFT, 6, -_RIGHT, -_FOOT)
        scale = min((self.width() - 2) / width, (self.height() - 2) / height)
        wide, high = width * scale, height * scale
        return QRectF((self.width() - wide) / 2, (self.height() - high) / 2, wide, high)

    def box_area(self, place: int) -> QRectF:
        """Return where a box is painted."""
        if not isinstance(self._result, Boxes):
            return QRectF()
        left, top, right, bottom = self._result.corners[place].tolist()
        return QRectF(self._at(left, top), self._at(right, bottom))

    def _at(self, x: float, y: float) -> QPointF:
        area, (height, width) = self.area(), self._size
        return QPointF(
            area.left() + x * area.width() / width, area.top() + y * area.height() / height
        )

    def row_at(self, at: QPointF) -> int:
        """Return the row of the result at a place; -1 for none.

        Of boxes that contain it, the smallest.
        """
        result, area = self._result, self.area()
        if isinstance(result, Boxes):
            found = [place for place in range(len(result.names)) if self._holds(place, at)]
            sizes = {place: self.box_area(place) for place in found}
            return min(
                found, key=lambda each: sizes[each].width() * sizes[each].height(), default=-1
            )
        if isinstance(result, LabelMap) and area.contains(at):
            entry = int(result.labels[self._cell(at, result.labels.shape)])
            entries = [row.entry for row in result.rows]
            return entries.index(entry)
        if isinstance(result, KeyPoints):
            for place, (x, y, _) in enumerate(result.points.tolist()):
                if (self._at(x, y) - at).manhattanLength() <= 2 * _DOT + 2:
                    return place
        if isinstance(result, Transcript) and area.contains(at):
            frame = self._cell(at, (1, len(result.best)))[1]
            inside = (result.spans[:, 0] <= frame) & (frame < result.spans[:, 1])
            return int(inside.argmax()) if inside.any() else -1
        return -1

    def _holds(self, place: int, at: QPointF) -> bool:
        outline = self._outline(place)
        if outline is None:
            return self.box_area(place).contains(at)
        return outline.containsPoint(at, Qt.FillRule.WindingFill)

    def _outline(self, place: int) -> QPolygonF | None:
        """Return where a turned box is painted; None for one that is not turned."""
        result = self._result
        if not isinstance(result, Boxes) or result.turned is None:
            return None
        (corners,) = turned_corners(result.turned[place : place + 1]).tolist()
        return QPolygonF([self._at(x, y) for x, y in corners])

    def _cell(self, at: QPointF, shape: tuple[int, ...]) -> tuple[int, int]:
        area = self.area()
        row = int((at.y() - area.top()) / area.height() * shape[0])
        column = int((at.x() - area.left()) / area.width() * shape[1])
        return min(max(row, 0), shape[0] - 1), min(max(column, 0), shape[1] - 1)

    def text_at(self, at: QPointF) -> str:
        """Return what the result has at a place."""
        result, area = self._result, self.area()
        row = self.row_at(at)
        if row >= 0:
            found = self._rows()[row]
            text = f"{found.name} {found.text}  {found.detail}".strip()
            return text + self._mask_text(at)
        if result is None or not area.contains(at):
            return ""
        match result:
            case Field(values=values):
                place = self._cell(at, values.shape)
                return f"{place}  {format_brief(float(values[place]))}"
            case FlowField(values=values):
                place = self._cell(at, values.shape[1:])
                right, down = (format_brief(float(each[place])) for each in values)
                return f"{place}  → {right}  ↓ {down}"
            case Picture(pixels=pixels):
                place = self._cell(at, pixels.shape[:2])
                return f"{place}  RGB {' '.join(str(each) for each in pixels[place])}"
            case Spectrogram(decibels=decibels):
                row, frame = self._cell(at, decibels.shape)
                pitch = len(decibels) - 1 - row
                hertz = pitch * result.rate / 2 / max(len(decibels) - 1, 1)
                seconds = frame / decibels.shape[1] * result.samples / result.rate
                level = format_brief(float(decibels[pitch, frame]), 3)
                return f"{seconds:.3f} s  {hertz:.0f} Hz  {level} dB"
            case Transcript(best=best, sure=sure):
                frame = self._cell(at, (1, len(best)))[1]
                return f"{frame * result.step:.2f} s  blank {100 * float(sure[frame]):.1f} %"
            case _:
                return ""

    def _mask_text(self, at: QPointF) -> str:
        """Return what the mask has at a place; ``""`` without one."""
        result = self._result
        if not isinstance(result, LabelMap) or result.expected is None:
            return ""
        entry = int(result.expected[self._cell(at, result.expected.shape)])
        names = {row.entry: row.name for row in result.rows}
        return f"  mask: {names.get(entry, 'no class')}"

    # Painting

    def _paint_boxes(self, painter: QPainter, result: Boxes) -> None:
        order = sorted(range(len(result.names)), key=lambda each: each == self._selected)
        for place in reversed(order[:-1] if self._selected >= 0 else order):
            self._paint_box(painter, result, place)
        if 0 <= self._selected < len(order):
            self._paint_box(painter, result, self._selected)

    def _paint_box(self, painter: QPainter, result: Boxes, place: int) -> None:
        area, chosen = self.box_area(place), place == self._selected
        color = class_color(int(result.classes[place]))
        if self._selected >= 0 and not chosen:
            color = QColor(color)
            color.setAlphaF(0.45)
        outline = self._outline(place)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for width, ink in ((3.6 if chosen else 3.0, QColor(0, 0, 0, 150)), (2.0, color)):
            painter.setPen(QPen(ink, width))
            painter.drawPolygon(outline if outline is not None else QPolygonF(area))
        if chosen:
            painter.setPen(QPen(QColor("#FFFFFF"), 1))
            painter.drawRect(area.adjusted(-2, -2, 2, 2))
        if result.points is not None:
            self._paint_points(painter, result.points[place].tolist(), color)
        self._paint_chip(
            painter, area, f"{result.names[place]} {result.scores[place]:.2f}", color
        )

    def _paint_chip(self, painter: QPainter, box: QRectF, text: str, color: QColor) -> None:
        painter.setFont(self._theme.ui_font(10, 600))
        metrics, shown = QFontMetricsF(painter.font()), self.area()
        width = metrics.horizontalAdvance(text) + 8
        left = min(max(box.left() - 1, shown.left()), max(shown.right() - width, shown.left()))
        top = box.top() - _CHIP
        chip = QRectF(left, top if top >= shown.top() else box.top(), width, _CHIP)
        painter.fillRect(chip, color)
        painter.setPen(ink_on(color))
        painter.drawText(chip, Qt.AlignmentFlag.AlignCenter, text)

    def _paint_axes(self, painter: QPainter, result: Spectrogram) -> None:
        """Draw seconds below a spectrogram, and kilohertz at its left."""
        self._paint_seconds(painter, result.samples / result.rate)
        area, top = self.area(), result.rate / 2000
        for value in _ticks(top, 2 * area.height()):
            label = f"{value:g}" if value else "kHz 0"
            self._paint_level(painter, value / top, label)

    def _paint_seconds(self, painter: QPainter, seconds: float) -> None:
        """Draw seconds below a picture along time."""
        area = self.area()
        painter.setFont(self._theme.mono_font(9))
        painter.setPen(self._theme.color("text2"))
        for value in _ticks(seconds, area.width()):
            x = area.left() + value / seconds * area.width()
            painter.drawLine(QPointF(x, area.bottom() + 1), QPointF(x, area.bottom() + 4))
            place = QRectF(x - 30, area.bottom() + 4, 60, _FOOT - 4)
            painter.drawText(place, Qt.AlignmentFlag.AlignHCenter, f"{value:g} s")

    def _paint_level(self, painter: QPainter, share: float, label: str) -> None:
        """Draw a tick at the left of a picture, at a share of its height."""
        area = self.area()
        y = area.bottom() - share * area.height()
        painter.drawLine(QPointF(area.left() - 4, y), QPointF(area.left() - 1, y))
        place = QRectF(0, y - 8, _LEFT - 6, 16)
        align = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(place, align, label)

    def _paint_transcript(self, painter: QPainter, result: Transcript) -> None:
        """Draw how sure each frame is, and the tokens where they are; blanks are grey."""
        frames = len(result.best)
        self._paint_seconds(painter, frames * result.step)
        area = self.area().adjusted(0, _CHIP + 2, 0, 0)  # room for tokens above sure frames
        most = area.height() / self.area().height()
        for share, label in ((0.0, "0"), (0.5, "50"), (1.0, "100 %")):
            self._paint_level(painter, share * most, label)
        columns = min(frames, max(1, int(area.width())))
        wide = area.width() / columns
        blank = QColor(self._theme.color("ctl"))
        blank.setAlphaF(0.4)  # the tokens are what is looked at
        for column in range(columns):  # of many frames, the first that is no blank
            part = slice(column * frames // columns, -(-(column + 1) * frames // columns))
            places = np.flatnonzero(result.best[part] != result.blank)
            frame = part.start + (int(places[0]) if len(places) else 0)
            entry, high = int(result.best[frame]), float(result.sure[frame]) * area.height()
            color = QColor(blank if entry == result.blank else class_color(entry))
            if self._selected >= 0:
                first, after = result.spans[self._selected]
                color.setAlphaF(1.0 if first <= frame < after else 0.4)
            left = area.left() + column * wide
            painter.fillRect(QRectF(left, area.bottom() - high, wide, high), color)
        painter.setFont(self._theme.ui_font(11, 600))
        painter.setPen(self._theme.color("text"))
        free = area.left() - 1.0
        for row, (first, after) in zip(result.rows, result.spans.tolist(), strict=True):
            text = f" {row.name} "
            width = QFontMetricsF(painter.font()).horizontalAdvance(text)
            middle = area.left() + (first + after) / 2 / frames * area.width()
            left = middle - width / 2
            if left >= free:  # where there is no room the list has it
                high = float(result.sure[first:after].max()) * area.height()
                place = QRectF(left, area.bottom() - high - _CHIP - 1, width, _CHIP)
                painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)
                free = left + width

    def _paint_points(
        self, painter: QPainter, points: list[list[float]], color: QColor, chosen: int = -1
    ) -> None:
        places = [self._at(x, y) for x, y, _ in points]
        sure = [score >= _SURE for *_, score in points]
        if len(points) == 17:
            painter.setPen(QPen(color, 2))
            for one, other in _LIMBS:
                if sure[one] and sure[other]:
                    painter.drawLine(places[one], places[other])
        for number, (place, shown) in enumerate(zip(places, sure, strict=True)):
            if not shown and number != chosen:
                continue
            painter.setPen(QPen(QColor("#000000"), 1))
            painter.setBrush(QColor("#FFFFFF") if number == chosen else color)
            radius = _DOT * 1.6 if number == chosen else _DOT
            painter.drawEllipse(place, radius, radius)
        painter.setBrush(Qt.BrushStyle.NoBrush)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(260, 240)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area, result = self.area(), self._result
        painter.fillRect(area, self._theme.color("base"))
        if self._image is not None:
            smooth = self._image.width() > area.width()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smooth)
            painter.drawImage(area, self._image)
        if self._overlay is not None:
            painter.setOpacity(self._opacity if self._image is not None else 1.0)
            smooth = isinstance(result, Picture) and self._overlay.width() > area.width()
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, smooth)
            painter.drawImage(area, self._overlay)
            painter.setOpacity(1.0)
        if isinstance(result, Spectrogram):
            self._paint_axes(painter, result)
        elif isinstance(result, Transcript):
            self._paint_transcript(painter, result)
        painter.save()
        painter.setClipRect(area.adjusted(-3, -3, 3, 3))
        if isinstance(result, Boxes):
            self._paint_boxes(painter, result)
        elif isinstance(result, KeyPoints):
            color = self._theme.color("focus")
            self._paint_points(painter, result.points.tolist(), color, self._selected)
        painter.restore()
        if self.hasFocus():
            draw_focus_ring(painter, self._theme, self.rect())
        painter.end()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        row = self.row_at(event.position())
        self.chosen.emit(-1 if row == self._selected else row)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self.hovered.emit(self.text_at(event.position()))

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self.hovered.emit("")

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step, count = ARROWS.get(event.key()), len(self._rows())
        if event.key() == Qt.Key.Key_Escape and self._selected >= 0:
            self.chosen.emit(-1)
        elif step is not None and count:
            self.chosen.emit(min(max(self._selected + sum(step), 0), count - 1))
        else:
            super().keyPressEvent(event)


def _ticks(top: float, room: float) -> tuple[float, ...]:
    """Return round numbers from 0 that label an axis of some pixels."""
    count = max(1, int(room / _APART))
    return (0.0, *round_ticks(top, Scale.LINEAR, count)) if top > 0 else (0.0,)


def has_picture(result: Result | None) -> bool:
    """Return whether a result is shown as a picture, not only as a list."""
    return not isinstance(result, (Classes, Embedding, Tokens, type(None)))
