"""What tests of the whole window share: they drive it by commands, buttons and drops."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QDockWidget, QLabel, QPushButton

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
    "nn.ReLU relu 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
    "pnnx.Expression twice 1 1 1 2 expr=mul(@0,2) #1=(1,2,4,4)f32 #2=(1,2,4,4)f32",
    "pnnx.Output out 1 0 2",
)


CORNER = QPointF(10, 10)
COPY_OR_MOVE = Qt.DropAction.CopyAction | Qt.DropAction.MoveAction  # as file managers offer


def choose(window, command):
    """Choose a command that is available, as from a menu."""
    action = window.findChild(QAction, command)
    assert action.isEnabled(), f"{command} is disabled"
    action.trigger()


def trigger(qtbot, window, command):
    """Choose a command, and wait until the engine has done what it asks for."""
    choose(window, command)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=10_000)


def enabled(window, command):
    """Whether a command is available."""
    return window.findChild(QAction, command).isEnabled()


def dock(window, name):
    """The dock with a name."""
    return window.findChild(QDockWidget, name)


def label(window, name):
    """The text of a label with a name."""
    return window.findChild(QLabel, name).text()


def press_banner(qtbot, window, text):
    """Press a button of the banner, and wait for the engine."""
    button = next(b for b in window.banner.findChildren(QPushButton) if b.text() == text)
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.session.busy)


def drag(window, *paths, at=CORNER, keys=Qt.KeyboardModifier.NoModifier):
    """Drag files into the window; returns what it takes them for, such as a copy."""
    data = _files(paths)
    event = QDragEnterEvent(at.toPoint(), COPY_OR_MOVE, data, Qt.MouseButton.LeftButton, keys)
    window.dragEnterEvent(event)
    assert event.isAccepted()
    return event.dropAction()


def drop(window, *paths, at=CORNER, keys=Qt.KeyboardModifier.NoModifier):
    """Drop files on the window; returns what it takes them for, such as a copy."""
    data = _files(paths)
    event = QDropEvent(at, COPY_OR_MOVE, data, Qt.MouseButton.LeftButton, keys)
    window.dropEvent(event)
    assert event.isAccepted()
    return event.dropAction()


def _files(paths):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return data
