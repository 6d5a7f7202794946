"""What tests of the window share: they find widgets by what a user sees or a reader reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QWheelEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kuiper_studio.graph_view.canvas import GraphCanvas

Kind = TypeVar("Kind", bound=QWidget)


def texts(widget: QWidget) -> str:
    """All visible labels of a widget, one a line."""
    return "\n".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def find(root: QWidget, kind: type[Kind], name: str) -> Kind:
    """The only widget of a kind with a name: what is written on it, or is read aloud.

    It need not be visible: a section that is folded is found too.
    """
    (found,) = (each for each in root.findChildren(kind) if name in _names(each))
    return found


def find_action(root: QWidget, text: str) -> QAction:
    """The only action with a text, such as one of a menu."""
    (found,) = (each for each in root.findChildren(QAction) if each.text() == text)
    return found


def error_of(dialog: QWidget) -> str:
    """What a dialog says is wrong."""
    (label,) = (
        each for each in dialog.findChildren(QLabel) if each.objectName().endswith("Error")
    )
    return label.text()


def turn_wheel(
    widget: QWidget,
    point: QPoint,
    delta: int,
    modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> None:
    """Turn the mouse wheel over a point, by eighths of a degree; 120 is a notch."""
    event = QWheelEvent(
        QPointF(point),
        QPointF(widget.mapToGlobal(point)),
        QPoint(),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(widget, event)


def zoom_to(canvas: GraphCanvas, zoom: float, point: QPointF | None = None) -> None:
    """Zoom a graph by the wheel, about a point or the middle; four notches double it."""
    place = canvas.scene_rect().center() if point is None else point
    turn_wheel(canvas, place.toPoint(), round(480 * math.log2(zoom / canvas.zoom)))


def _names(widget: QWidget) -> Iterator[str]:
    yield widget.accessibleName()
    if isinstance(widget, QLabel | QAbstractButton):
        yield widget.text()
