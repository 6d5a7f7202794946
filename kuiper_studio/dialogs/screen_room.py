"""How large a dialog may be: at 200 % a laptop's screen has room for few rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QStyle

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

__all__ = ["room_on_screen"]

_FRAME: Final = 8  # at each side; the window manager's own is not known before showing


def room_on_screen(dialog: QWidget) -> QSize:
    """Return the largest size at which all of a dialog with its frame is on the screen."""
    parent = dialog.parentWidget()
    available = (dialog if parent is None else parent.window()).screen().availableGeometry()
    title = dialog.style().pixelMetric(QStyle.PixelMetric.PM_TitleBarHeight)
    return available.size() - QSize(2 * _FRAME, title + 2 * _FRAME)
