"""A strip with a bar for each channel: how far it is from the reference's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from engine.text import format_brief, format_count
from kuiper_studio.tensor_view.canvas import Canvas

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QHelpEvent, QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent

    from engine.values import Array
    from kuiper_studio.engine_service.channels import ChannelDistances
    from kuiper_studio.theme import Theme

__all__ = ["ErrorStrip"]

_HEIGHT: Final = 26
_FOOT: Final = 4  # below the bars, for the mark of the chosen channel
_WIDEST_BAR: Final = 12


class ErrorStrip(Canvas):
    """Shows the largest difference of each channel; a click chooses a channel.

    Bars have the colour of differences where more than rounding differs. With more channels
    than pixels, a bar is the largest of some channels. Left and right arrows choose the channel
    before or after in the order of the strip, Home and End the first and the last.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    channel_chosen
        Number of the channel chosen by mouse or keyboard.
    channel_hovered
        Text about the channel under the mouse; ``""`` for none.
    """

    channel_chosen = Signal(int)
    channel_hovered = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__("tensorErrors", "Difference of each channel", theme, parent)
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._distances: ChannelDistances | None = None
        self._limit = 0.0
        self._chosen = 0
        self._sorted = False
        self._order: Array = np.zeros(0, np.intp)  # channels from left to right
        self._tops: Array = np.zeros(
            0, np.intp
        )  # channel with the largest difference of each bar
        self._heights: Array = np.zeros(0, np.intp)

    # What is shown

    def show_distances(self, distances: ChannelDistances | None, limit: float) -> None:
        """Show the differences of channels, of which those above a limit are no rounding.

        None while they are measured, or for no channels.
        """
        if distances is not self._distances or limit != self._limit:
            self._distances, self._limit = distances, limit
            self._lay_out()

    def set_chosen(self, channel: int) -> None:
        """Mark a channel."""
        if channel != self._chosen:
            self._chosen = channel
            self.update()

    def set_sorted(self, *, is_sorted: bool) -> None:
        """Order the bars by difference, the largest first, or by channel."""
        if is_sorted != self._sorted:
            self._sorted = is_sorted
            self._lay_out()

    @property
    def order(self) -> tuple[int, ...]:
        """The channels from left to right."""
        return tuple(self._order.tolist())

    def describe(self, channel: int) -> str:
        """Describe the difference of a channel."""
        if self._distances is None:
            return ""
        found = self._distances
        largest = format_brief(float(found.largest[channel]))
        share = f"{format_count(int(found.differing[channel]))} of {format_count(found.count)}"
        return f"Channel {channel}: largest difference {largest}, {share} elements differ"

    # Geometry

    def _lay_out(self) -> None:
        """Choose the bars and their heights, after another size or order."""
        largest = self._distances.largest if self._distances is not None else np.zeros(0)
        count = len(largest)
        self._order = np.argsort(-largest, kind="stable") if self._sorted else np.arange(count)
        bars = min(count, max(1, self.width()))
        edges = np.arange(bars + 1) * count // max(bars, 1)
        ordered = largest[self._order]
        pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        tops = [first + int(ordered[first:end].argmax()) for first, end in pairs]
        self._tops = self._order[tops] if tops else np.zeros(0, np.intp)
        finite = largest[np.isfinite(largest)]
        most = float(finite.max(initial=0.0)) or 1.0
        shares = np.minimum(largest[self._tops] / most, 1.0)
        self._heights = np.ceil(shares * (self.height() - _FOOT - 1)).astype(np.intp)
        self.update()

    def bar_rect(self, bar: int) -> QRect:
        """Return the column of a bar, as high as the strip."""
        left, right = self._edge(bar), self._edge(bar + 1)
        gap = 1 if right - left > 2 else 0
        return QRect(left, 0, right - left - gap, self.height())

    def bar_of(self, channel: int) -> int:
        """Return the bar that a channel is in; -1 for none."""
        places = np.flatnonzero(self._order == channel)
        if not places.size:
            return -1
        return ((int(places[0]) + 1) * len(self._tops) - 1) // len(self._order)

    def _edge(self, bar: int) -> int:
        bars = max(len(self._tops), 1)
        return bar * min(self.width(), bars * _WIDEST_BAR) // bars

    def _channel_at(self, x: float) -> int | None:
        """Return the channel of the bar at a position: the one that differs most."""
        bars = len(self._tops)
        used = self._edge(bars)
        if not bars or not 0 <= x < used:
            return None
        bar = min(int(x * bars / used), bars - 1)
        return int(self._tops[bar])

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(110, _HEIGHT)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(60, _HEIGHT)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._lay_out()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.theme.color("base"))
        largest = self._distances.largest if self._distances is not None else np.zeros(0)
        bottom = self.height() - _FOOT
        chosen = self.bar_of(self._chosen)
        if chosen >= 0:
            painter.fillRect(self._mark(chosen), self.theme.color("focus"))
        painter.setPen(Qt.PenStyle.NoPen)
        shown = largest[self._tops]
        groups = (
            ("ctl", shown <= self._limit),
            ("div", (shown > self._limit) & np.isfinite(shown)),
            ("nan", np.isinf(shown)),
        )
        for token, group in groups:
            rects = []
            for bar in np.flatnonzero(group).tolist():
                column, height = self.bar_rect(bar), int(self._heights[bar])
                rects.append(QRect(column.left(), bottom - height, column.width(), height))
            painter.setBrush(self.theme.color(token))
            painter.drawRects(rects)
        self.paint_ring(painter)
        painter.end()

    def _mark(self, bar: int) -> QRect:
        """Return the mark of the chosen channel, which is visible also under a thin bar."""
        column = self.bar_rect(bar)
        width = max(column.width(), 5)
        left = min(max(column.center().x() - width // 2, 0), self.width() - width)
        return QRect(left, self.height() - _FOOT + 1, width, _FOOT - 1)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == event.Type.ToolTip:
            help_event: QHelpEvent = event  # type: ignore[assignment]
            channel = self._channel_at(help_event.pos().x())
            text = self.describe(channel) if channel is not None else ""
            QToolTip.showText(help_event.globalPos(), text, self)
            return True
        return super().event(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        channel = self._channel_at(event.position().x())
        if channel is not None and event.button() == Qt.MouseButton.LeftButton:
            self.channel_chosen.emit(channel)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        channel = self._channel_at(event.position().x())
        self.channel_hovered.emit(self.describe(channel) if channel is not None else "")

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self.channel_hovered.emit("")

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        last = len(self._order) - 1
        places = np.flatnonzero(self._order == self._chosen)
        at = int(places[0]) if places.size else 0
        wanted = {
            Qt.Key.Key_Left.value: at - 1,
            Qt.Key.Key_Right.value: at + 1,
            Qt.Key.Key_Home.value: 0,
            Qt.Key.Key_End.value: last,
        }.get(event.key())
        if wanted is None or event.modifiers() or last < 0:
            super().keyPressEvent(event)
        else:
            self.channel_chosen.emit(int(self._order[min(max(wanted, 0), last)]))
