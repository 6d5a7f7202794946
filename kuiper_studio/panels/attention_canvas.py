"""Painted parts of the attention panel: the heads side by side, and the keys of one query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QPainter, QPen, QPixmap
from typing_extensions import override

from engine.pictures import colorize, lookup_table
from engine.text import format_brief
from kuiper_studio.panels.picture_canvas import ARROWS, PictureCanvas
from kuiper_studio.panels.picture_overlay import (
    cells_image,
    draw_frame,
    draw_over,
    fitted_area,
    opacity_of,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent
    from PySide6.QtWidgets import QWidget

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["HeadsMosaic", "KeysPicture", "KeysView", "color_image"]

COLOR_MAP: Final = "inferno"
_CAPTION: Final = 14  # height of the text above a tile
_GAP: Final = 4
_LEAST_HEIGHT: Final = 190
_MOST_SHOWN: Final = 64  # heads; more would be too small to see
_SQUARE: Final = 26  # of a token beside the picture
_LEGEND: Final = 30
_BAR: Final = 64  # width of the colour bar
_LEAST_CELL: Final = 10  # smaller ones are outlined around, not inside


def color_image(values: Array, most: float, opacity: Array | float = 1.0) -> QImage:
    """Make a picture of weights.

    Parameters
    ----------
    values : ndarray of shape (H, W)
        From 0; NaN is transparent.
    most : float
        Weight of the brightest colour.
    opacity : float or ndarray of shape (H, W)
        From 0 to 1.
    """
    colors = colorize(values, 0.0, most or 1.0, lookup_table(COLOR_MAP), special=False)
    return cells_image(colors, np.where(np.isnan(values), 0.0, opacity))


def _is_same(one: Array, other: Array) -> bool:
    """Whether two arrays, the second of which is still alive, are one view of one memory."""
    return (
        one.shape == other.shape
        and one.strides == other.strides
        and one.dtype == other.dtype
        and one.ctypes.data == other.ctypes.data
    )


def _most(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


class HeadsMosaic(PictureCanvas):
    """Pictures of all heads, each scaled to its own largest weight.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    chosen : (int, float, float)
        A head was clicked or reached by an arrow key, and where in its picture, from 0 to 1
        from the left and from the top; -1 by key.
    """

    chosen = Signal(int, float, float)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "attentionHeads", "Heads", _LEAST_HEIGHT, parent)
        self._tiles: Array = np.zeros((0, 1, 1))
        self._images: list[QImage] = []
        self._painted: QPixmap | None = None
        self._painted_for: tuple[QSize, int] | None = None
        self._shares: tuple[str, ...] = ()
        self._head = 0
        self._row: int | None = None
        self._hidden = 0

    @property
    def hidden(self) -> int:
        """Number of heads that have no picture, because there are too many."""
        return self._hidden

    @property
    def tiles(self) -> Array:
        """The shown weights, shape (H, rows, columns)."""
        return self._tiles

    def show_tiles(self, tiles: Array, shares: tuple[str, ...] = ()) -> None:
        """Show one picture of weights for each head, with the class token's share above it."""
        shown, self._shares = tiles[:_MOST_SHOWN], shares
        if not _is_same(shown, self._tiles):  # it is while only the query changes
            self._tiles, self._painted = shown, None
            self._images = [color_image(tile, _most(tile)) for tile in self._tiles]
        self._hidden = len(tiles) - len(self._tiles)
        self.update()

    def show_marks(self, head: int, row: int | None) -> None:
        """Mark the chosen head, and in each picture a row.

        Parameters
        ----------
        head : int
            -1 for none.
        row : int or None
            Of the pictures.
        """
        self._head, self._row = head, row
        shown = f"head {head}" if head >= 0 else "all heads"
        self.setAccessibleDescription(f"{len(self._tiles)} heads; chosen: {shown}")
        self.update()

    def _columns(self) -> tuple[int, float]:
        """Return the number of columns that makes tiles largest, and their side."""
        best = (1, 0.0)
        for columns in range(1, max(1, len(self._tiles)) + 1):
            rows = -(-max(1, len(self._tiles)) // columns)
            side = min(
                (self.width() - 2 + _GAP) / columns - _GAP,
                (self.height() - 2 + _GAP) / rows - _GAP - _CAPTION,
            )
            if side > best[1]:
                best = columns, side
        return best

    def area(self, head: int) -> QRectF:
        """Return the picture of a head."""
        columns, side = self._columns()
        row, column = divmod(head, columns)
        left = column * (side + _GAP) + 1
        return QRectF(left, row * (side + _GAP + _CAPTION) + _CAPTION + 1, side, side)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(220, 260)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.drawPixmap(0, 0, self._paint_tiles())
        for head, image in enumerate(self._images):
            area = self.area(head)
            caption = area.adjusted(0, -_CAPTION, 0, 0)
            caption.setHeight(_CAPTION)
            painter.setFont(self._theme.mono_font(9.5))
            painter.setPen(self._theme.color("text" if head == self._head else "text3"))
            number, share = str(head), self._shares[head] if self._shares else ""
            painter.drawText(caption, Qt.AlignmentFlag.AlignLeft, number)
            metrics = painter.fontMetrics()
            if metrics.horizontalAdvance(f"{number} {share}") <= caption.width():
                painter.drawText(caption, Qt.AlignmentFlag.AlignRight, share)
            if self._row is not None:
                high = area.height() / image.height()
                row = QRectF(area.left(), area.top() + self._row * high, area.width(), high)
                _draw_around(painter, row)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            if head == self._head:
                painter.setPen(QPen(self._theme.color("focus"), 2))
                painter.drawRect(area)
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color("focus"), 1, Qt.PenStyle.DotLine))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _paint_tiles(self) -> QPixmap:
        """Return all pictures in their places; painted again for another size or theme."""
        ratio = self.devicePixelRatioF()
        size, ground = self.size() * ratio, self._theme.color("base")
        key = size, ground.rgba()
        if self._painted is None or self._painted_for != key:
            made = QPixmap(size)
            made.setDevicePixelRatio(ratio)
            made.fill(Qt.GlobalColor.transparent)
            painter = QPainter(made)
            for head, image in enumerate(self._images):
                painter.fillRect(self.area(head), ground)
                painter.drawImage(self.area(head), image)
            painter.end()
            self._painted, self._painted_for = made, key
        return self._painted

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        for head in range(len(self._images)):
            area = self.area(head)
            if area.adjusted(0, -_CAPTION, 0, 0).contains(event.position()):
                at = event.position() - area.topLeft()
                down = at.y() / area.height()
                self.chosen.emit(head, min(at.x() / area.width(), 0.9999), min(down, 0.9999))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = ARROWS.get(event.key())
        if step is None or not self._images:
            super().keyPressEvent(event)
            return
        columns, _ = self._columns()
        head = max(self._head, 0) + step[0] * columns + step[1]
        if 0 <= head < len(self._images):
            self.chosen.emit(head, -1.0, -1.0)


def _draw_around(painter: QPainter, row: QRectF) -> None:
    """Outline a row, which may be thin, and cover nothing of it."""
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for distance, color in ((1, "#FFFFFF"), (2, "#000000")):
        painter.setPen(QPen(QColor(color), 1))
        painter.drawRect(row.adjusted(0, -distance, 0, distance))


@dataclass(frozen=True, slots=True, eq=False)
class KeysPicture:
    """The keys of one query.

    Attributes
    ----------
    weights : ndarray of shape (S,)
        Of every key.
    names : tuple of str
        Of the keys.
    query_name : str
    cells : ndarray of shape (rows, columns) or None
        The weights on their grid, NaN where there is no key; None without a grid.
    beside : tuple of int
        Keys that are not on the grid.
    query : (int, int) or None
        Row and column of the query on the grid of the keys.
    picture : QImage or None
        Behind the cells.
    query_key : int
        The key that is the same token as the query; -1 for none.
    """

    weights: Array
    names: tuple[str, ...]
    query_name: str
    cells: Array | None = None
    beside: tuple[int, ...] = ()
    query: tuple[int, int] | None = None
    picture: QImage | None = None
    query_key: int = -1


class KeysView(PictureCanvas):
    """The keys of one query: over the input picture, or as bars.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    place_chosen : (int, int)
        Row and column of a cell of the grid that was clicked, or reached by an arrow key.
    token_chosen : int
        A key beside the grid, or a bar.
    hovered : str
        What is under the pointer; ``""`` for nothing.
    """

    place_chosen = Signal(int, int)
    token_chosen = Signal(int)
    hovered = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(theme, "attentionKeys", "Keys of the query", _LEAST_HEIGHT, parent)
        self._shown: KeysPicture | None = None
        self._scaled: QImage | None = None
        self._scaled_for: tuple[int, QSize] | None = None
        self._opacity = 0.7

    @property
    def shown(self) -> KeysPicture | None:
        """What is shown."""
        return self._shown

    def show_keys(self, picture: KeysPicture | None) -> None:
        """Show the keys of another query."""
        self._shown = picture
        text = ""
        if picture is not None and picture.weights.size:
            best = int(np.argmax(np.nan_to_num(picture.weights, nan=-1.0)))
            text = (
                f"query {picture.query_name}; largest weight "
                f"{format_brief(float(picture.weights[best]))} of key {picture.names[best]}"
            )
        self.setAccessibleDescription(text)
        self.update()

    # Places

    def grid_area(self) -> QRectF:
        """Return where the cells are, with the shape of the picture."""
        shown = self._shown
        if shown is None or shown.cells is None:
            return QRectF()
        rows, columns = shown.cells.shape
        source = shown.picture.size() if shown.picture is not None else QSize(columns, rows)
        return fitted_area(source, QSize(self.width() - 2, self.height() - 2 - _LEGEND))

    def cell_area(self, row: int, column: int) -> QRectF:
        """Return where a cell is."""
        area, shown = self.grid_area(), self._shown
        if shown is None or shown.cells is None:
            return QRectF()
        rows, columns = shown.cells.shape
        wide, high = area.width() / columns, area.height() / rows
        return QRectF(area.left() + column * wide, area.top() + row * high, wide, high)

    def square_area(self, number: int) -> QRectF:
        """Return the square of a key beside the grid."""
        top = self.grid_area().bottom() + 4
        return QRectF(1 + number * (_SQUARE + 4), top, _SQUARE, _SQUARE)

    def bar_area(self, key: int) -> QRectF:
        """Return the slot of a key's bar."""
        count = self._shown.weights.size if self._shown is not None else 1
        slot = (self.width() - 2) / max(1, count)
        return QRectF(1 + key * slot, 1, slot, self.height() - 18)

    def _at(self, at: QPointF) -> tuple[int, int] | int | None:
        """Return the cell, or the key, under the pointer."""
        shown = self._shown
        if shown is None:
            return None
        if shown.cells is None:
            slot = self.bar_area(0).width()
            key = math.floor((at.x() - 1) / slot)
            return key if 0 <= key < shown.weights.size else None
        area = self.grid_area()
        if area.contains(at) and area.width() and area.height():
            rows, columns = shown.cells.shape
            down = (at.y() - area.top()) / area.height() * rows
            across = (at.x() - area.left()) / area.width() * columns
            return min(int(down), rows - 1), min(int(across), columns - 1)
        for number, key in enumerate(shown.beside):
            if self.square_area(number).contains(at):
                return key
        return None

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(220, 260)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        shown = self._shown
        if shown is not None and shown.cells is not None:
            self._draw_cells(painter, shown, shown.cells)
        elif shown is not None:
            self._draw_bars(painter, shown)
        if self.hasFocus():
            painter.setPen(QPen(self._theme.color("focus"), 1, Qt.PenStyle.DotLine))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            area = self.grid_area().adjusted(-1, -1, 1, 1)
            painter.drawRect(area if area.width() > 2 else self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _draw_cells(self, painter: QPainter, shown: KeysPicture, cells: Array) -> None:
        area, most = self.grid_area(), _most(cells)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.clip(cells / (most or 1.0), 0, 1)
        opacity = opacity_of(share, self._opacity) if shown.picture is not None else 1.0
        image = color_image(cells, most, opacity)
        draw_over(painter, area, self._scaled_picture(area), image, area, self._theme)
        if shown.query is not None:
            cell = self.cell_area(*shown.query)
            inset = 1 if min(cell.width(), cell.height()) >= _LEAST_CELL else -2
            draw_frame(painter, cell.adjusted(inset, inset, -inset, -inset))
        self._draw_beside(painter, shown, most)
        self._draw_scale(painter, most)

    def _scaled_picture(self, area: QRectF) -> QImage | None:
        """Return the picture at the size of an area; scaling it takes most of the painting."""
        picture = self._shown.picture if self._shown is not None else None
        if picture is None:
            return None
        size = area.size().toSize() * self.devicePixelRatioF()
        key = picture.cacheKey(), size
        if self._scaled is None or self._scaled_for != key:
            self._scaled_for = key
            self._scaled = picture.scaled(
                size,
                Qt.AspectRatioMode.IgnoreAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
        return self._scaled

    def _draw_scale(self, painter: QPainter, most: float) -> None:
        """Draw a colour bar below the picture, at the right."""
        area = self.grid_area()
        bar = QRectF(area.right() - _BAR, area.bottom() + 5, _BAR, 7)
        ramp = np.linspace(0.0, 1.0, 64)[np.newaxis]
        painter.drawImage(bar, color_image(ramp, 1.0))
        painter.setFont(self._theme.mono_font(9.5))
        painter.setPen(self._theme.color("text2"))
        numbers = bar.adjusted(-20, 8, 0, 12)
        painter.drawText(numbers, Qt.AlignmentFlag.AlignRight, f"0 … {_weight_text(most)}")

    def _draw_beside(self, painter: QPainter, shown: KeysPicture, most: float) -> None:
        painter.setFont(self._theme.mono_font(9.5))
        for number, key in enumerate(shown.beside):
            square = self.square_area(number)
            if square.right() > self.width():
                break
            image = color_image(shown.weights[key : key + 1, np.newaxis], most)
            painter.drawImage(square, image)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(self._theme.color("ctl"))
            painter.drawRect(square)
            if key == shown.query_key and shown.query is None:
                draw_frame(painter, square.adjusted(1, 1, -1, -1))
        if len(shown.beside) == 1:
            key = shown.beside[0]
            square = self.square_area(0)
            text = f"{shown.names[key]} {format_brief(float(shown.weights[key]))}"
            painter.setPen(self._theme.color("text2"))
            left = QPointF(square.right() + 6, square.center().y() + 4)
            painter.drawText(left, text)

    def _draw_bars(self, painter: QPainter, shown: KeysPicture) -> None:
        most = _most(shown.weights) or 1.0
        table = lookup_table(COLOR_MAP)
        floor = self.bar_area(0).bottom()
        for key, weight in enumerate(np.nan_to_num(shown.weights).tolist()):
            slot = self.bar_area(key)
            gap = 1 if slot.width() > 3 else 0
            high = weight / most * (slot.height() - 2)
            bar = QRectF(slot.left(), floor - high, max(1.0, slot.width() - gap), high)
            red, green, blue, _ = table[int(80 + 140 * min(1.0, weight / most))].tolist()
            painter.fillRect(bar, QColor(red, green, blue))
            if key == shown.query_key:
                mark = QRectF(slot.left(), floor + 1, max(2.0, slot.width() - gap), 3)
                painter.fillRect(mark, self._theme.color("focus"))
        painter.setPen(self._theme.color("ctl"))
        painter.drawLine(QPointF(1, floor), QPointF(self.width() - 1, floor))
        painter.setFont(self._theme.mono_font(9.5))
        painter.setPen(self._theme.color("text3"))
        row = QRect(QPoint(1, round(floor) + 3), QSize(self.width() - 2, 14))
        painter.drawText(row, Qt.AlignmentFlag.AlignLeft, "0")
        last = str(shown.weights.size - 1)
        painter.drawText(row, Qt.AlignmentFlag.AlignRight, last)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self._at(event.position())
        if isinstance(found, tuple):
            self.place_chosen.emit(*found)
        elif found is not None:
            self.token_chosen.emit(found)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        found, shown = self._at(event.position()), self._shown
        if found is None or shown is None:
            self.hovered.emit("")
        elif isinstance(found, tuple) and shown.cells is not None:
            self.hovered.emit(f"({found[0]}, {found[1]}) {_weight_text(shown.cells[found])}")
        elif isinstance(found, int):
            weight = _weight_text(shown.weights[found])
            self.hovered.emit(f"key {shown.names[found]} {weight}")

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step, shown = ARROWS.get(event.key()), self._shown
        if step is None or shown is None:
            super().keyPressEvent(event)
            return
        if shown.cells is not None:
            at = shown.query or (0, 0)
            rows, columns = shown.cells.shape
            row, column = at[0] + step[0], at[1] + step[1]
            if shown.query is None:
                row, column = at
            if 0 <= row < rows and 0 <= column < columns:
                self.place_chosen.emit(row, column)
        elif 0 <= shown.query_key + step[1] < shown.weights.size:
            self.token_chosen.emit(shown.query_key + step[1])


def _weight_text(weight: float) -> str:
    return "" if math.isnan(weight) else format_brief(float(weight))
