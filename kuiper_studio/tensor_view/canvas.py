"""Bases of the tensor view's canvases: theme, focus ring, moving and picking by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

from PySide6.QtCore import QPoint, QPointF, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QContextMenuEvent, QPainter
from PySide6.QtWidgets import QApplication, QWidget
from typing_extensions import override

from kuiper_studio.focus_ring import draw_focus_ring, is_by_keyboard
from kuiper_studio.tensor_view.color_bar import bar_space
from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.places import Region

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtCore import QEvent
    from PySide6.QtGui import (
        QCursor,
        QFocusEvent,
        QKeyEvent,
        QMouseEvent,
        QResizeEvent,
        QWheelEvent,
    )

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["Canvas", "ElementCanvas"]

_NO_BAR: Final = 16  # room at the right of a canvas without a colour bar
_NOTCH: Final = 120  # notch of a wheel, in eighths of a degree
_HOLD: Final = 250  # ms after which a right click is a hold
_STRIDE: Final = 8  # elements that an arrow moves the pick by, with Shift


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
            draw_focus_ring(painter, self.theme, self.rect())

    # Overrides of Qt methods

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._ringed = is_by_keyboard(event)
        self.update()
        super().focusInEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ringed = False
        self.update()
        super().focusOutEvent(event)


class ElementCanvas(Canvas):
    """A canvas of elements that can be hovered and picked, with a colour bar.

    The wheel zooms about the mouse (with Shift it scrolls sideways), dragging moves the
    contents, a click picks an element, and arrows move the pick. Where there are rectangles,
    dragging with Shift chooses one.

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
    region_chosen
        The `Region` that is dragged.
    zoom_changed
        `zoom_text` has changed.
    view_changed
        Zoom or position has changed; others may `follow`.
    menu_requested
        Global position of a right click; the element there has been picked.
    held
        Whether the right button is held down, which is longer than a click.
    pick_moved
        Row and column that the pick was moved to by a key.
    contents_changed
        Other values or colours are shown.
    """

    # Rows and columns that keys move the pick by.
    moves: ClassVar[Mapping[int, tuple[int, int]]] = {
        Qt.Key.Key_Left.value: (0, -1),
        Qt.Key.Key_Right.value: (0, 1),
        Qt.Key.Key_Up.value: (-1, 0),
        Qt.Key.Key_Down.value: (1, 0),
    }

    has_regions: ClassVar[bool] = False

    hovered = Signal(object)
    picked = Signal(int, int)
    region_chosen = Signal(object)
    zoom_changed = Signal()
    view_changed = Signal()
    menu_requested = Signal(object)
    held = Signal(bool)
    pick_moved = Signal(int, int)
    contents_changed = Signal()

    def __init__(
        self, name: str, title: str, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(name, title, theme, parent)
        self._holding = QTimer(self, interval=_HOLD, singleShot=True)
        self._holding.timeout.connect(self._on_hold)
        self._is_held = False
        self._menu_due = False  # on release, where the press was no hold
        self._coloring = Coloring()
        self._has_bar = True
        self._pick: tuple[int, int] | None = None
        self._pressed: QPoint | None = None
        self._dragging = False
        self._corner: tuple[int, int] | None = None  # where the dragged rectangle begins
        self._idle_cursor: QCursor | None = None  # to return to from dragging

    @property
    def coloring(self) -> Coloring:
        """The colours."""
        return self._coloring

    @property
    def pick(self) -> tuple[int, int] | None:
        """Row and column of the marked element."""
        return self._pick

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

    def set_region(self, region: Region | None) -> None:
        """Mark a rectangle; does nothing where there are none."""

    def follow(self, other: Self) -> None:
        """Take zoom and position of a canvas of the same shape and size."""
        raise NotImplementedError

    @property
    def is_ready(self) -> bool:
        """Whether what paints its contents need not be made first, which takes a frame."""
        return True

    @property
    def plane(self) -> Array:
        """The shown values, shape (rows, columns)."""
        raise NotImplementedError

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns of elements."""
        raise NotImplementedError

    def cell_area(self, row: int, column: int) -> QRectF:
        """Return where an element is painted."""
        raise NotImplementedError

    def element_at(self, position: QPointF) -> tuple[int, int] | None:
        """Return row and column of the element at a position of the canvas."""
        raise NotImplementedError

    def point_at(self, place: tuple[int, int] | None) -> None:
        """Tell of the element under the mouse."""
        self.hovered.emit(place)

    def pan(self, across: float, down: float) -> None:
        """Move the contents by some pixels."""
        raise NotImplementedError

    def zoom_at(self, notches: float, position: QPointF) -> None:
        """Zoom about a position, by notches of the wheel."""
        raise NotImplementedError

    def reveal(self, row: int, column: int) -> None:
        """Move the contents to make an element visible."""
        raise NotImplementedError

    # Moving and picking

    @property
    def zoom_center(self) -> QPointF | None:
        """What keys zoom about: the picked element, None if it is out of view."""
        if self._pick is None:
            return None
        center = self.cell_area(*self._pick).center()
        return center if self.element_at(center) == self._pick else None

    def _pick_at(self, position: QPointF) -> None:
        element = self.element_at(position)
        if element is not None:
            self.picked.emit(*element)

    def _move_pick(self, rows: int, columns: int) -> None:
        """Move the pick; without one, pick the element in the middle."""
        high, wide = self.extent
        row, column = high // 2, wide // 2
        if self._pick is not None:
            row = min(max(self._pick[0] + rows, 0), high - 1)
            column = min(max(self._pick[1] + columns, 0), wide - 1)
        self.picked.emit(row, column)
        self.reveal(row, column)
        self.pick_moved.emit(row, column)

    def _stretch(self, at: QPointF) -> None:
        """Choose the rectangle from where the drag began."""
        place = self.nearest(at)
        if self._corner is not None and place is not None:
            self.region_chosen.emit(Region.around(self._corner, place))

    def nearest(self, position: QPointF) -> tuple[int, int] | None:
        """Return the element nearest to a position; None where there are no rectangles."""
        return self.element_at(position)

    @Slot()
    def _on_hold(self) -> None:
        self._is_held = True
        self.held.emit(True)  # noqa: FBT003 - a signal

    def _let_go(self, at: QPoint) -> None:
        """End a right click with the menu, or a hold without it."""
        was_click = self._holding.isActive()
        self._holding.stop()
        if self._is_held:
            self.held.emit(False)  # noqa: FBT003 - a signal
        if self._menu_due:
            self._is_held = self._menu_due = False
            if was_click:
                self.menu_requested.emit(at)

    def _drag(self, at: QPoint) -> bool:
        """Move the contents with the mouse; return whether they are being dragged."""
        if self._pressed is None:
            return False
        way = at - self._pressed
        if not self._dragging and way.manhattanLength() < QApplication.startDragDistance():
            return False
        self._dragging, self._pressed = True, at
        if self._idle_cursor is None:
            self._idle_cursor = self.cursor()
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        self.pan(way.x(), way.y())
        return True

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self.lay_out()

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        turn, modifiers = event.angleDelta(), event.modifiers()
        control = modifiers & Qt.KeyboardModifier.ControlModifier
        if modifiers & Qt.KeyboardModifier.ShiftModifier and not control:
            self.pan((turn.x() or turn.y()) / 2, 0)
        else:
            self.zoom_at((turn.y() or turn.x()) / _NOTCH, event.position())
        event.accept()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.RightButton:
            self._pick_at(event.position())
            self._is_held = self._menu_due = False
            self._holding.start()
            return
        if self.has_regions and event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._corner = self.nearest(event.position())
            return
        self._pressed = event.position().toPoint()
        self._dragging = event.button() == Qt.MouseButton.MiddleButton

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._corner is not None:
            self._stretch(event.position())
        if not self._drag(event.position().toPoint()):
            self.point_at(self.element_at(event.position()))

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.RightButton:
            self._let_go(event.globalPosition().toPoint())
            return
        if self._corner is not None:
            self._stretch(event.position())
            self._corner = None
        elif event.button() == Qt.MouseButton.LeftButton and not self._dragging:
            self._pick_at(event.position())
        self._pressed, self._dragging = None, False
        if self._idle_cursor is not None:
            self.setCursor(self._idle_cursor)
            self._idle_cursor = None

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self.point_at(None)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Ask for the menu; by mouse when the button is let go, unless it was held."""
        if event.reason() is not QContextMenuEvent.Reason.Mouse:
            self.menu_requested.emit(event.globalPos())
        elif self._holding.isActive():  # at the press; other platforms send it at the release
            self._menu_due = True
        elif self._is_held:
            self._is_held = False
        else:
            self.menu_requested.emit(event.globalPos())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        move = self.moves.get(event.key())
        if move is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
            return
        stride = _STRIDE if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1
        self._move_pick(move[0] * stride, move[1] * stride)
