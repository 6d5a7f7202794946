"""Canvases of a weight: tiles, bars, histogram and colour bar."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QFontMetrics, QImage, QPainter
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from engine.text import format_brief, format_number
from kuiper_studio.focus_ring import draw_focus_ring
from kuiper_studio.panels.weights import (
    DIVERGING,
    Mosaic,
    TilePages,
    largest_magnitude,
    lay_out_tiles,
)

if TYPE_CHECKING:
    from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QWheelEvent

    from engine.values import Array
    from kuiper_studio.panels.filters import Filters
    from kuiper_studio.theme import Theme

__all__ = ["SIDE", "ColorBar", "FilterBars", "Histogram", "ValueStrip", "WeightPicture"]

SIDE: Final = 124


class WeightPicture(QWidget):
    """Tiles of one page, coloured about zero; arrow keys and the wheel turn pages.

    Signals
    -------
    turned : int
        Number of pages to go forward.
    """

    turned = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._tiles: Array | None = None
        self._pages = TilePages(())
        self._page = 0
        self._mosaic: Mosaic | None = None
        self._image: QImage | None = None
        self.limit = 0.0
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setFixedSize(SIDE, SIDE)
        theme.changed.connect(self._render)

    def show_page(self, pages: TilePages, array: Array, page: int) -> None:
        """Show a page of a weight."""
        self._pages, self._page = pages, page
        tiles = pages.tiles(array, page)
        self._tiles = tiles
        self._mosaic = lay_out_tiles((tiles.shape[0], tiles.shape[1], tiles.shape[2]), SIDE)
        self.limit = largest_magnitude(tiles)
        self._render()
        caption = pages.caption(page) or "all values"
        self.setAccessibleName(f"Picture of the weight, {caption}")

    @property
    def step(self) -> int:
        """Elements per shown element; 1 if all are shown."""
        return self._mosaic.step if self._mosaic is not None else 1

    @Slot()
    def _render(self) -> None:
        if self._mosaic is None or self._tiles is None:
            return
        gaps = self._theme.color("ctl")
        picture = self._mosaic.paint(
            self._tiles, self.limit, (gaps.red(), gaps.green(), gaps.blue())
        )
        height, width = picture.shape[:2]
        data = picture.tobytes()
        image = QImage(data, width, height, 3 * width, QImage.Format.Format_RGB888)
        self._image = image.copy()  # a copy: `data` is temporary
        self.setFixedSize(width, height)
        self.update()

    def describe(self, position: QPoint) -> str:
        """Return index and value of the element at a position; ``""`` in a gap."""
        if self._mosaic is None or self._tiles is None:
            return ""
        found = self._mosaic.element_at(position.x(), position.y())
        if found is None or any(a >= b for a, b in zip(found, self._tiles.shape, strict=False)):
            return ""
        index = ", ".join(map(str, self._pages.index(self._page, *found)))
        value = self._tiles[found]
        if self._pages.rgb:
            out, _, row, column = self._pages.index(self._page, *found)
            red, green, blue = (format_number(float(each)) for each in value)
            return f"[{out}, :, {row}, {column}] = red {red}, green {green}, blue {blue}"
        return f"[{index}] = {value!r}".replace("np.", "")

    # Overrides of Qt methods

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        text = self.describe(event.position().toPoint())
        if text:
            QToolTip.showText(event.globalPosition().toPoint(), text, self)
        else:
            QToolTip.hideText()

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        # Only with Ctrl: the wheel alone scrolls the panel.
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self.turned.emit(-1 if event.angleDelta().y() > 0 else 1)
            event.accept()
        else:
            event.ignore()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        keys = {Qt.Key.Key_PageUp: -10, Qt.Key.Key_PageDown: 10}
        step = steps.get(Qt.Key(event.key())) or keys.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        self.turned.emit(step)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._image is not None:
            painter.drawImage(0, 0, self._image)
        if self.hasFocus():
            draw_focus_ring(painter, self._theme, self.rect())
        painter.end()


class FilterBars(QWidget):
    """Norms, or scales, of the filters of a weight as bars; a click goes to a filter.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    chosen : int
        Number of a filter.
    """

    chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme, self._word = theme, ""
        self._filters: Filters | None = None
        self._marked = -1
        self.setMouseTracking(True)
        self.setFixedHeight(36)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_filters(self, filters: Filters, word: str) -> None:
        """Show norms of what is called by a word in tool tips, such as ``out``."""
        self._filters, self._word = filters, word
        self._marked = -1
        self.setAccessibleName(f"{filters.title}: {filters.summary()}")
        self.update()

    def mark(self, place: int) -> None:
        """Mark a filter; -1 for none."""
        self._marked = place
        self.update()

    def filter_at(self, x: float) -> int:
        """Return the filter at a distance from the left, of several the largest; or -1."""
        if self._filters is None or not 0 <= x < self.width():
            return -1
        norms = self._filters.norms
        first = int(x * len(norms) / self.width())
        behind = max(first + 1, int((x + 1) * len(norms) / self.width()))
        return first + int(np.argmax(norms[first:behind]))

    # Overrides of Qt methods

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        place = self.filter_at(event.position().x())
        if place >= 0 and self._filters is not None:
            text = f"{self._word} {place}: {self._filters.describe(place)}"
            QToolTip.showText(event.globalPosition().toPoint(), text, self)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        place = self.filter_at(event.position().x())
        if event.button() == Qt.MouseButton.LeftButton and place >= 0:
            self.chosen.emit(place)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("base"))
        if self._filters is not None:
            self._paint_bars(painter, self._filters)
        painter.end()

    def _paint_bars(self, painter: QPainter, filters: Filters) -> None:
        norms, high = filters.norms, self.height() - 4
        most = float(norms.max()) or 1.0
        slots = min(len(norms), self.width())
        slot = self.width() / slots
        bar = max(1.0, slot - 1 if slot > 3 else slot)
        starts = np.linspace(0, len(norms), slots + 1).astype(int)[:-1]
        tops = np.maximum.reduceat(norms, starts) / most * high
        twins = np.logical_or.reduceat(filters.twin >= 0, starts)
        dead = np.logical_or.reduceat(filters.is_dead, starts)
        usual, warning = self._theme.color("focus", 0.75), self._theme.color("warn")
        floor = self.height()
        for at, (top, twin) in enumerate(zip(tops.tolist(), twins.tolist(), strict=True)):
            area = QRectF(at * slot, floor - top, bar, top)
            painter.fillRect(area, warning if twin else usual)
        for at in np.flatnonzero(dead).tolist():
            painter.fillRect(QRectF(at * slot, floor - 3, bar, 3), self._theme.color("fail"))
        if self._marked >= 0:
            at = int(np.searchsorted(starts, self._marked, "right")) - 1
            mark = QRectF(at * slot, 0, max(bar, 2.0), 2)
            painter.fillRect(mark, self._theme.color("text"))


class ValueStrip(QWidget):
    """The values of a one-dimensional weight as bars about zero."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._values: Array = np.zeros(0)
        self.setFixedSize(SIDE, 70)
        self.setAccessibleName("Values of the weight as bars")
        theme.changed.connect(self.update)

    def show_values(self, array: Array) -> None:
        """Show values; every n-th if not all fit."""
        flat = array.reshape(-1)
        step = max(1, -(-flat.size // SIDE))
        self._values = np.nan_to_num(flat[::step].astype(np.float64))
        self.setToolTip(f"1 of {step} values, in order" if step > 1 else "all values, in order")
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.color("base"))
        limit = largest_magnitude(self._values) or 1.0
        middle, slot = self.height() / 2, self.width() / max(1, self._values.size)
        bar = max(1.0, slot - 1 if slot > 3 else slot)
        for place, value in enumerate(self._values.tolist()):
            high = value / limit * (middle - 2)
            top = middle - high if high > 0 else middle
            token = "act" if value > 0 else "conv"
            area = QRectF(place * slot, top, bar, max(0.5, abs(high)))
            painter.fillRect(area, self._theme.color(token))
        painter.setPen(self._theme.color("ctl"))
        painter.drawLine(0, round(middle), self.width(), round(middle))
        painter.end()


class Histogram(QWidget):
    """A histogram."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._counts: Array = np.zeros(0)
        self.setMinimumHeight(34)
        self.setMaximumHeight(48)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def show_counts(self, counts: Array, low: float, high: float, step: int = 1) -> None:
        """Show counts of equal bins from `low` to `high`, over one value of `step`."""
        self._counts = counts
        span = f"from {format_number(low)} to {format_number(high)}"
        self.setAccessibleName(f"Histogram {span}")
        sample = f" of a sample, one of {step} values" if step > 1 else ""
        self.setToolTip(f"{counts.size} bins {span}; the highest has {counts.max()}{sample}")
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        floor = self.height() - 1
        if self._counts.any():
            counts = self._counts / self._counts.max()
            # Edges on whole pixels: antialiased bars of uneven brightness would look like data.
            edges = np.rint(np.linspace(0, self.width(), counts.size + 1)).astype(int)
            color = self._theme.color("focus", 0.75)
            for left, right, share in zip(edges, edges[1:], counts, strict=False):
                high = round(share * (floor - 1))
                painter.fillRect(int(left), floor - high, int(right - left), high, color)
        painter.setPen(self._theme.color("ctl"))
        painter.drawLine(0, floor, self.width(), floor)
        painter.end()


class ColorBar(QWidget):
    """The colour bar of the picture, with both ends."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._limit = 0.0
        self.setFixedHeight(14)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def set_limit(self, limit: float) -> None:
        """Set both ends."""
        self._limit = limit
        self.setAccessibleName(
            f"Colours from {format_number(-limit)} to {format_number(limit)}"
        )
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(120, 14)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        font = self._theme.mono_font(10)
        painter.setFont(font)
        low, high = (format_brief(-self._limit, 2), format_brief(self._limit, 2))
        metrics = QFontMetrics(font)
        left, right = metrics.horizontalAdvance(low) + 5, metrics.horizontalAdvance(high) + 5
        painter.setPen(self._theme.color("text2"))
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.drawText(self.rect(), middle | Qt.AlignmentFlag.AlignLeft, low)
        painter.drawText(self.rect(), middle | Qt.AlignmentFlag.AlignRight, high)
        bar = QRect(left, 1, self.width() - left - right, self.height() - 3)
        strip = np.ascontiguousarray(DIVERGING[np.newaxis])
        image = QImage(strip.tobytes(), 256, 1, 768, QImage.Format.Format_RGB888)
        painter.drawImage(bar, image)
        painter.setPen(self._theme.color("ctl"))
        painter.drawRect(bar.adjusted(0, 0, -1, -1))
        painter.end()
