"""The menus of the window: all of them are made here, so that all behave alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QMenu
from typing_extensions import override

if TYPE_CHECKING:
    from PySide6.QtWidgets import QMenuBar, QWidget

__all__ = ["MenuLetters", "add_menu", "make_menu"]


def make_menu(parent: QWidget, title: str = "", *, once: bool = False) -> QMenu:
    """Make a menu.

    Parameters
    ----------
    parent : QWidget
    title : str, optional
    once : bool, optional
        Whether it is deleted when it closes.
    """
    menu = QMenu(title, parent)
    menu.setToolTipsVisible(True)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, once)
    MenuLetters(menu)
    return menu


def add_menu(menu: QMenu | QMenuBar, title: str) -> QMenu:
    """Add a submenu to a menu."""
    added = make_menu(menu, title)  # Qt may delete its own with its first user
    menu.addMenu(added)
    return added


class MenuLetters(QObject):
    """Gives an open menu precedence over commands for its letters.

    Parameters
    ----------
    menu : QMenu or QMenuBar

    Notes
    -----
    The tensor view has plain letters as keys. Qt would carry these commands out while a menu is
    open, because their actions are in a menu of the menu bar, which has the focus then.
    """

    def __init__(self, menu: QMenu | QMenuBar) -> None:
        super().__init__(menu)
        menu.installEventFilter(self)

    # Override of a Qt method

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and event.text().isalnum()
            and not event.modifiers() & Qt.KeyboardModifier.ControlModifier
        ):
            event.accept()
            return True
        return super().eventFilter(watched, event)
