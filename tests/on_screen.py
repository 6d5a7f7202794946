"""What tests of the window share: they find widgets by what a user sees or a reader reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def _names(widget: QWidget) -> Iterator[str]:
    yield widget.accessibleName()
    if isinstance(widget, QLabel | QAbstractButton):
        yield widget.text()
