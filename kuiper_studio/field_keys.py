"""Keys of commands while a text field has the focus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QWidget
from typing_extensions import override

if TYPE_CHECKING:
    from kuiper_studio.commands import Commands

__all__ = ["FieldKeys"]


class FieldKeys(QObject):
    """Gives commands precedence over text fields for their keys.

    On X11 Qt's fields take Ctrl+E and Ctrl+K for themselves, as Emacs does: to go to the end
    of the line, and to delete up to there.

    Parameters
    ----------
    window : QWidget
    commands : Commands
    """

    def __init__(self, window: QWidget, commands: Commands) -> None:
        super().__init__(window)
        self._window, self._commands = window, commands
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._on_focus_changed)

    @Slot(QWidget, QWidget)
    def _on_focus_changed(self, old: QWidget | None, new: QWidget | None) -> None:
        # The filter is on the focused field only: Python sees no other events.
        if old is not None:
            old.removeEventFilter(self)
        if isinstance(new, QLineEdit | QAbstractSpinBox) and new.window() is self._window:
            new.installEventFilter(self)

    # Override of a Qt method

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            keys = QKeySequence(event.keyCombination()).toString()
            if keys in self._commands.field_keys:
                event.ignore()
                return True
        return super().eventFilter(watched, event)
