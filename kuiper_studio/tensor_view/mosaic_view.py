"""The mosaic: all channels side by side, 256 per page; the selected one has a ring."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QImage, QPainter, QPen, QPixmap
from PySide6.QtWidgets import QToolTip, QWidget
from typing_extensions import override

from engine.pictures import (
    TileGrid,
    shrink,
    tile_grid,
    tile_pictures,
    tile_sheet,
)
from engine.text import format_short_count
from kuiper_studio.tensor_view.canvas import Canvas
from kuiper_studio.tensor_view.facts import ChannelFacts
from kuiper_studio.tensor_view.images import Coloring, image_over
from kuiper_studio.tensor_view.numbers import format_range

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import (
        QContextMenuEvent,
        QHelpEvent,
        QKeyEvent,
        QMouseEvent,
        QPaintEvent,
        QResizeEvent,
        QWheelEvent,
    )

    from engine.values import Array
    from kuiper_studio.tensor_view.channel_order import SpecialChannels
    from kuiper_studio.theme import Theme

__all__ = ["MosaicView"]

_GAP: Final = 3
_MARGIN: Final = 6
_CAPTION_GAP: Final = 6
_RING: Final = 3  # that the mark of the chosen tile reaches out
_PAGE_COLUMNS: Final = 16
_PAGE: Final = _PAGE_COLUMNS**2  # channels
_FOOT: Final = 16
_NOTCH: Final = 120  # eighths of a degree per notch of a usual wheel
_CAPTION_TILE: Final = 12  # tiles from this edge on have room for a caption inside
_FEET: Final = 3  # most height of the marks of dead, constant and duplicate channels


class MosaicView(Canvas):
    """Shows a page of channels.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    channel_chosen
        Number of the channel selected by mouse.
    moved
        By how many places keys or the wheel move the selection; it may leave the channels.
    channel_hovered
        Number of the channel under the mouse, or None.
    menu_requested
        Global position of a right click, which selects the channel there.
    """

    channel_chosen = Signal(int)
    moved = Signal(int)
    channel_hovered = Signal(object)
    menu_requested = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("tensorMosaic", "Channels side by side", theme, parent)
        self._planes: Array = np.zeros((1, 1, 1), np.float32)
        self._colors: Array | None = None
        self._facts = ChannelFacts(np.zeros(1), np.zeros(1), np.zeros(1, np.int64))
        self._channels = np.zeros(1, np.int64)
        self._first = 0
        self._total = 1
        self._ordered_by = ""
        self._paged = False
        self._wheel = 0
        self._special: SpecialChannels | None = None
        self._chosen = 0
        self._hovered: int | None = None
        self._coloring = Coloring()
        self._range: tuple[float | Array, float | Array] = (0.0, 1.0)
        self._grid = TileGrid(1, 1, 1, 1, _GAP)
        self._widest = ("", 0.0)  # caption, and its width
        self._small: Array | None = None
        self._sheet = tile_sheet(self._grid)
        self._image: QImage | None = None
        self._captions: tuple[object, QPixmap] | None = None  # what they depend on, and they

    # What is shown

    def set_page(
        self,
        planes: Array,
        facts: ChannelFacts,
        first: int,
        total: int,
        channels: Array | None = None,
        ordered_by: str = "",
        colors: Array | None = None,
    ) -> None:
        """Show channels.

        Parameters
        ----------
        planes : ndarray of shape (C, H, W)
            Real values of at most 256 channels.
        facts : ChannelFacts
            Facts about these channels.
        first : int
            Place of the first one.
        total : int
            Number of channels of all pages. All pages have the same layout, and the wheel turns
            them.
        channels : ndarray of shape (C,), optional
            Their numbers; by default they are in order.
        ordered_by : str, optional
            What they are ordered by, if that is not their number.
        colors : ndarray of shape (3, C, H, W), optional
            What is shown as red, green and blue instead of the planes.
        """
        self._colors = colors
        self._planes, self._facts, self._first, self._total = planes, facts, first, total
        self._channels = np.arange(first, first + len(planes)) if channels is None else channels
        self._ordered_by = ordered_by
        self._paged = total > _PAGE
        self._lay_out()

    def set_coloring(
        self, coloring: Coloring, page_range: tuple[float | Array, float | Array]
    ) -> None:
        """Set the colours; `page_range` may have a range for each channel."""
        same_range = all(map(np.array_equal, page_range, self._range))
        if coloring != self._coloring or not same_range:
            self._coloring, self._range = coloring, page_range
            self._image = None
            self.update()

    def set_special(self, special: SpecialChannels | None) -> None:
        """Mark what is special about channels, by their numbers; None while it is unknown."""
        self._special = special
        self.update()

    def set_chosen(self, channel: int) -> None:
        """Select a channel."""
        if channel != self._chosen:
            self._chosen = channel
            self.update()

    @property
    def grid(self) -> TileGrid:
        """The layout of the tiles, in device pixels."""
        return self._grid

    @property
    def contents(self) -> tuple[int, ...]:
        """Number, rows and columns of the channels."""
        return self._planes.shape

    def natural_size(self, height: int, most: int) -> tuple[int, int]:
        """Return the width that the tiles can use within limits, and their edge then.

        The edge is 0 where the tiles do not fit.
        """
        area = most - self._left() - _RING, height - 2 * _MARGIN - self._foot()
        grid, scale = self._grid_for(area), self.devicePixelRatioF()
        width = math.ceil(grid.width / scale + self._left()) + _RING
        is_whole = _fits(grid, (area[0] * scale, area[1] * scale))
        return width, max(grid.tile_width, grid.tile_height) if is_whole else 0

    def channel_at(self, position: QPointF) -> int | None:
        """Return the number of the channel at a position."""
        scale = self.devicePixelRatioF()
        place = (position - QPointF(self._left(), _MARGIN)) * scale
        tile = self._grid.tile_at(place.x(), place.y())
        return int(self._channels[tile]) if tile is not None else None

    def tile_rect(self, channel: int) -> QRectF:
        """Return the rectangle of a channel of the page."""
        return self._tile(int(np.flatnonzero(self._channels == channel)[0]))

    def _tile(self, tile: int) -> QRectF:
        scale = self.devicePixelRatioF()
        x, y = (length / scale for length in self._grid.origin(tile))
        width, height = self._grid.tile_width / scale, self._grid.tile_height / scale
        return QRectF(self._left() + x, _MARGIN + y, width, height)

    # Layout

    def _caption_width(self) -> float:
        last = str(max(int(self._channels.max(initial=0)), 10))
        if self._widest[0] != last:  # cached: the position of every tile needs it
            metrics = QFontMetricsF(self.theme.mono_font(9.5))
            self._widest = last, metrics.horizontalAdvance(last)
        return self._widest[1]

    def _left(self) -> float:
        return round(_MARGIN + self._caption_width() + _CAPTION_GAP)

    def _foot(self) -> int:
        """Height of the line with the page number."""
        return _FOOT if self._paged or self._ordered_by else 0

    def _grid_for(self, area: tuple[float, float]) -> TileGrid:
        rows, columns = self._planes.shape[1:]
        scale = self.devicePixelRatioF()
        size = max(area[0], 16.0) * scale, max(area[1], 16.0) * scale
        gaps = [round(gap * scale) for gap in (_GAP, 2, 1)]
        grids = [self._grid_with(size, (rows, columns), gap) for gap in gaps]
        grids = [grid for grid in grids if _fits(grid, size)] or grids
        # A narrower gap only if it allows the next whole-number size, or to fit at all.
        best = max(grids, key=lambda grid: grid.tile_width)
        return best if best.tile_width >= 1.3 * grids[0].tile_width else grids[0]

    def _grid_with(
        self, area: tuple[float, float], plane: tuple[int, int], gap: int
    ) -> TileGrid:
        count = len(self._planes)
        if not self._paged:
            return tile_grid(count, plane, area, gap=gap)
        # The last page has the same layout. Rows begin with a multiple of 16, unless another
        # number of columns has larger tiles or is the only one that fits.
        full = tile_grid(_PAGE, plane, area, gap=gap, columns=_PAGE_COLUMNS)
        other = tile_grid(_PAGE, plane, area, gap=gap)
        if other.tile_width > full.tile_width or not _fits(full, area):
            full = other
        return replace(full, count=count)

    def _lay_out(self) -> None:
        area = self.width() - self._left() - _RING, self.height() - 2 * _MARGIN - self._foot()
        grid = self._grid_for(area)
        if grid != self._grid:
            self._grid, self._sheet = grid, tile_sheet(grid)
        self._small = self._image = None
        self.update()

    # Painting

    def _picture(self) -> QImage:
        """Paint the tiles at the resolution of the screen."""
        if self._image is None:
            grid = self._grid
            if self._small is None:
                rows, columns = self._planes.shape[1:]
                shown = self._planes if self._colors is None else self._colors
                self._small = shrink(
                    shown, min(rows, grid.tile_height), min(columns, grid.tile_width)
                )
            coloring, used = self._coloring, self._range
            if self._colors is None:
                colors = coloring.paint_between(self._small, *used, blue_first=True)
            else:
                colors = coloring.paint_colors(self._small, *used)
            tile_pictures(colors, grid, self._sheet)
            scale = self.devicePixelRatioF()
            self._image = image_over(self._sheet, (grid.width, grid.height), scale)
        return self._image

    def _caption_picture(self) -> QPixmap:
        """Paint the captions, which are the same for most operands."""
        scale, tokens = self.devicePixelRatioF(), self.theme.tokens
        shown = self._channels[:: self._grid.columns].tobytes()
        key = (shown, len(self._planes), self._grid, self.height(), scale, tokens)
        if self._captions is None or self._captions[0] != key:
            pixmap = QPixmap(QSize(round(self._left()), self.height()) * scale)
            pixmap.setDevicePixelRatio(scale)
            pixmap.fill(Qt.GlobalColor.transparent)
            painter = QPainter(pixmap)
            self._paint_captions(painter)
            painter.end()
            self._captions = key, pixmap
        return self._captions[1]

    def _paint_captions(self, painter: QPainter) -> None:
        painter.setFont(self.theme.mono_font(9.5))
        painter.setPen(self.theme.color("text3"))
        pitch = (self._grid.tile_height + self._grid.gap) / self.devicePixelRatioF()
        every = max(1, math.ceil(12 / pitch))
        width = self._caption_width()
        flags = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for row in range(0, self._grid.rows, every):
            tile = row * self._grid.columns
            middle = self._tile(tile).center().y()
            place = QRectF(self._left() - width - _CAPTION_GAP, middle - 8, width, 16)
            painter.drawText(place, flags, str(self._channels[tile]))

    def _paint_foot(self, painter: QPainter) -> None:
        if not self._foot():
            return
        painter.setFont(self.theme.mono_font(9.5))
        painter.setPen(self.theme.color("text3"))
        place = QRectF(self._left(), self.height() - _FOOT, self.width(), _FOOT)
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        painter.drawText(place, flags, self.page_text())

    def page_text(self) -> str:
        """Return the channels of the page and their order, as far as there is room."""
        order = f"by {self._ordered_by}" if self._ordered_by else ""
        if not self._paged:
            return order
        last = self._first + len(self._planes) - 1
        page, pages = self._first // _PAGE + 1, -(-self._total // _PAGE)
        range_text = f"{self._first}–{last}"
        texts = (
            *((f"{range_text} of {self._total} {order} · {page}/{pages}",) if order else ()),
            f"{range_text} of {self._total} · page {page}/{pages} (wheel)",
            f"{range_text} of {self._total} · {page}/{pages}",
            f"{range_text} · {page}/{pages}",
        )
        metrics = QFontMetricsF(self.theme.mono_font(9.5))
        room = self.width() - self._left()
        fitting = (text for text in texts if metrics.horizontalAdvance(text) <= room)
        return next(fitting, range_text)

    def _paint_inside(self, painter: QPainter) -> None:
        """Paint the value of constant channels, and the number of special values of others."""
        edge = min(self._grid.tile_width, self._grid.tile_height)
        if edge < _CAPTION_TILE * self.devicePixelRatioF():
            return
        painter.setFont(self.theme.mono_font(9))
        facts = self._facts
        marked = np.flatnonzero((facts.special > 0) | ~(facts.low < facts.high))
        for place in marked.tolist():
            count = int(self._facts.special[place])
            if count and self._coloring.mark_special:
                self._paint_badge(painter, self._tile(place), count)
            elif text := self._facts.flat_text(place):
                self._paint_flat(painter, self._tile(place), text)

    def _paint_feet(self, painter: QPainter) -> None:
        """Mark dead, constant and duplicate channels below their tiles."""
        if self._special is None:
            return
        keys = self._special.here
        channels = self._channels
        height = min(_FEET, 1 + self._grid.gap / self.devicePixelRatioF())  # most of the gap
        marked = keys.is_constant[channels] | (keys.twin[channels] >= 0)
        for place in np.flatnonzero(marked).tolist():
            channel, tile = channels[place], self._tile(place)
            foot = QRectF(tile.left(), tile.bottom() - 1, tile.width(), height)
            if keys.is_dead[channel]:
                painter.fillRect(foot, self.theme.color("fail"))
            elif keys.is_constant[channel]:
                foot.setWidth(foot.width() / 2)
                painter.fillRect(foot, self.theme.color("text2"))
            else:
                part = (foot.width() - 2) / 2
                for left in (foot.left(), foot.right() - part):
                    painter.fillRect(
                        QRectF(left, foot.top(), part, height), self.theme.color("warn")
                    )

    def _paint_flat(self, painter: QPainter, tile: QRectF, text: str) -> None:
        width = QFontMetricsF(painter.font()).horizontalAdvance(text)
        if width <= tile.width() - 4:
            patch = QRectF(0, 0, width + 4, 11)
            patch.moveBottomLeft(tile.bottomLeft() + QPointF(1, -1))
            painter.fillRect(patch, self.theme.color("base", 0.75))
            painter.setPen(self.theme.color("text2"))
            painter.drawText(patch, int(Qt.AlignmentFlag.AlignCenter), text)

    def _paint_badge(self, painter: QPainter, tile: QRectF, count: int) -> None:
        text = f"× {format_short_count(count)}"
        width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 4
        if width > tile.width():
            text, width = "×", 9.0
        patch = QRectF(0, 0, width, 11)
        patch.moveTopRight(tile.topRight() + QPointF(0, 0))
        painter.fillRect(patch, self.theme.color("base", 0.85))
        painter.setPen(self.theme.color("nan"))
        painter.drawText(patch, int(Qt.AlignmentFlag.AlignCenter), text)

    def _paint_ring(self, painter: QPainter) -> None:
        """2 pixels of focus colour around the chosen tile, 1 pixel of base inside."""
        if self._chosen not in self._channels:
            return
        tile = self.tile_rect(self._chosen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(self.theme.color("base"), 1))
        painter.drawRect(tile.adjusted(-0.5, -0.5, 0.5, 0.5))
        painter.setPen(QPen(self.theme.color("focus"), 2))
        painter.drawRect(tile.adjusted(-2, -2, 2, 2))

    # Selection

    def _set_hovered(self, channel: int | None) -> None:
        if channel != self._hovered:
            self._hovered = channel
            self.channel_hovered.emit(channel)

    def describe(self, channel: int) -> str:
        """Describe a channel of the page: number, range, special values, what is special."""
        place = int(np.flatnonzero(self._channels == channel)[0])
        special = int(self._facts.special[place])
        low, high = float(self._facts.low[place]), float(self._facts.high[place])
        text = f"Channel {channel}: "
        if low <= high:
            text += format_range(low, high)
        text += f", {special} NaN or Inf" if special else ""
        note = self._special.describe(channel) if self._special is not None else ""
        return f"{text}, {note}" if note else text

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 280)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(80, 90)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.theme.color("base"))
        painter.drawImage(QPointF(self._left(), _MARGIN), self._picture())
        painter.drawPixmap(QPointF(0, 0), self._caption_picture())
        self._paint_foot(painter)
        self._paint_inside(painter)
        self._paint_feet(painter)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_ring(painter)
        self.paint_ring(painter)
        painter.end()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out()

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == event.Type.ToolTip:
            help_event: QHelpEvent = event  # type: ignore[assignment]
            channel = self.channel_at(QPointF(help_event.pos()))
            text = self.describe(channel) if channel is not None else ""
            QToolTip.showText(help_event.globalPos(), text, self)
            return True
        return super().event(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        channel = self.channel_at(event.position())
        if channel is not None:
            self.channel_chosen.emit(channel)

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        if not self._paged:
            event.ignore()
            return
        self._wheel -= event.angleDelta().y()
        pages = int(self._wheel / _NOTCH)
        self._wheel -= pages * _NOTCH
        page = self._first // _PAGE
        turned = min(max(page + pages, 0), (self._total - 1) // _PAGE) - page
        if turned:
            self.moved.emit(turned * _PAGE)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        self._set_hovered(self.channel_at(event.position()))

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._set_hovered(None)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_requested.emit(event.globalPos())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {
            Qt.Key.Key_Left.value: -1,
            Qt.Key.Key_Right.value: 1,
            Qt.Key.Key_Up.value: -self._grid.columns,
            Qt.Key.Key_Down.value: self._grid.columns,
        }
        move = moves.get(event.key())
        if move is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
        else:
            self.moved.emit(move)


def _fits(grid: TileGrid, area: tuple[float, float]) -> bool:
    return grid.width <= area[0] and grid.height <= area[1]
