"""Base of the tensor view's canvases: theme, focus ring, element signals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Self

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from kuiper_studio.tensor_view.color_bar import bar_space
from kuiper_studio.tensor_view.images import Coloring

if TYPE_CHECKING:
    from PySide6.QtGui import QFocusEvent

    from kuiper_studio.theme import Theme

__all__ = ["KEYBOARD_REASONS", "Canvas", "ElementCanvas"]

_NO_BAR: Final = 16  # room at the right of a canvas without a colour bar

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
    """A canvas of elements that can be hovered and picked, with a colour bar.

    Parameters
    ----------
    name : str
        Its objectName.
    title : str
        Its accessible name.
    theme : Theme

    Signals
    -------
    hovered
        (row, column) under the mouse, or None.
    picked
        Row and column.
    zoom_changed
        `zoom_text` has changed.
    view_changed
        Zoom or position has changed; others may `follow`.
    menu_requested
        Global position of a right click; the element there has been picked.
    """

    hovered = Signal(object)
    picked = Signal(int, int)
    zoom_changed = Signal()
    view_changed = Signal()
    menu_requested = Signal(object)

    def __init__(
        self, name: str, title: str, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(name, title, theme, parent)
        self._coloring = Coloring()
        self._has_bar = True

    @property
    def coloring(self) -> Coloring:
        """The colours."""
        return self._coloring

    @property
    def bar_room(self) -> float:
        """Width of the colour bar with its numbers, or of the margin instead of it."""
        return bar_space(self._coloring, self.theme) if self._has_bar else _NO_BAR

    def set_bar_shown(self, shown: bool) -> None:  # noqa: FBT001 - as Qt's setVisible
        """Show or hide the colour bar."""
        if shown != self._has_bar:
            self._has_bar = shown
            self.lay_out()

    # For subclasses

    def lay_out(self) -> None:
        """Divide the room anew, after a change of the size or of the colour bar."""
        raise NotImplementedError

    def set_coloring(self, coloring: Coloring) -> None:
        """Set the colours."""
        raise NotImplementedError

    def set_pick(self, pick: tuple[int, int] | None) -> None:
        """Mark an element by row and column."""
        raise NotImplementedError

    def set_pointed(self, place: tuple[int, int] | None) -> None:
        """Mark the element that is under the mouse of a canvas beside this one."""
        raise NotImplementedError

    def follow(self, other: Self) -> None:
        """Take zoom and position of a canvas of the same shape and size."""
        raise NotImplementedError
