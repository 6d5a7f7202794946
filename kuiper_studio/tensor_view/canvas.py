"""Base of the tensor view's canvases: theme, focus ring, element signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

if TYPE_CHECKING:
    from PySide6.QtGui import QFocusEvent

    from kuiper_studio.theme import Theme

__all__ = ["KEYBOARD_REASONS", "Canvas", "ElementCanvas"]

KEYBOARD_REASONS: Final = frozenset(
    {
        Qt.FocusReason.TabFocusReason,
        Qt.FocusReason.BacktabFocusReason,
        Qt.FocusReason.ShortcutFocusReason,
    }
)


class Canvas(QWidget):
    """A painted widget that takes the focus, with a ring for focus by keyboard.

    Parameters
    ----------
    name : str
        Its objectName.
    title : str
        Its accessible name.
    theme : Theme
    """

    def __init__(
        self, name: str, title: str, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.theme = theme
        self._ringed = False
        theme.changed.connect(self.update)

    def paint_ring(self, painter: QPainter) -> None:
        """Paint the focus ring, if it is visible."""
        if self._ringed:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(self.theme.color("focus"), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))

    # Overrides of Qt methods

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ringed = event.reason() in KEYBOARD_REASONS
        self.update()
        super().focusInEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ringed = False
        self.update()
        super().focusOutEvent(event)


class ElementCanvas(Canvas):
    """A canvas of elements that can be hovered and picked.

    Signals
    -------
    hovered
        (row, column) under the mouse, or None.
    picked
        Row and column.
    zoom_changed
        `zoom_text` has changed.
    menu_requested
        Global position of a right click; the element there has been picked.
    """

    hovered = Signal(object)
    picked = Signal(int, int)
    zoom_changed = Signal()
    menu_requested = Signal(object)
