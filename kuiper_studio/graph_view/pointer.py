"""Mouse on the canvas: pans, zooms to an area, moves the minimap's window, clicks."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QApplication

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QMouseEvent

    from kuiper_studio.graph_view.viewport import Viewport

__all__ = ["Pointer"]


class _Mode(Enum):
    IDLE = "idle"
    PRESSED = "pressed"
    PANNING = "panning"
    AREA = "area"
    MINIMAP = "minimap"


class Pointer:
    """Turns presses, moves and releases into movements and clicks.

    Parameters
    ----------
    viewport : Viewport
    click : callable
        Takes the view point of a click.
    """

    def __init__(self, viewport: Viewport, click: Callable[[QPointF], None]) -> None:
        self._viewport, self._click = viewport, click
        self._mode = _Mode.IDLE
        self._pressed = QPointF()
        self._last = QPointF()

    @property
    def panning(self) -> bool:
        """Whether the user is panning."""
        return self._mode is _Mode.PANNING

    @property
    def idle(self) -> bool:
        """Whether no button is held."""
        return self._mode is _Mode.IDLE

    @property
    def area(self) -> QRectF | None:
        """The rubber band, while one is drawn."""
        if self._mode is not _Mode.AREA:
            return None
        return QRectF(self._pressed, self._last).normalized()

    def press(self, event: QMouseEvent) -> None:
        """Handle a pressed button."""
        self._pressed = self._last = event.position()
        if event.button() is Qt.MouseButton.MiddleButton:
            self._mode = _Mode.PANNING
        elif event.button() is not Qt.MouseButton.LeftButton:
            return
        elif self._viewport.in_minimap(self._pressed):
            self._mode = _Mode.MINIMAP
            self._viewport.move_by_minimap(self._pressed)
        elif event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._mode = _Mode.AREA
        else:
            self._mode = _Mode.PRESSED

    def move(self, event: QMouseEvent) -> None:
        """Handle a move with a button held."""
        point = event.position()
        moved = point - self._last
        far = (point - self._pressed).manhattanLength() >= QApplication.startDragDistance()
        if self._mode is _Mode.PRESSED and far:
            self._mode = _Mode.PANNING
            moved = point - self._pressed
        if self._mode is _Mode.PANNING:
            self._viewport.pan(moved.x(), moved.y())
        elif self._mode is _Mode.MINIMAP:
            self._viewport.move_by_minimap(point)
        self._last = point

    def release(self, event: QMouseEvent) -> None:
        """Handle a released button."""
        mode, area = self._mode, self.area
        self._mode = _Mode.IDLE
        if mode is _Mode.PRESSED:
            self._click(event.position())
        elif area is not None:
            least = QApplication.startDragDistance()
            if area.width() >= least and area.height() >= least:
                self._viewport.zoom_to_area(area)
            else:
                self._click(event.position())

    def cancel(self) -> None:
        """Forget the press, when the widget has lost the pointer."""
        self._mode = _Mode.IDLE
