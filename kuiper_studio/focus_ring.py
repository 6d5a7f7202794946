"""The ring around what has the keyboard: when it is shown, and how it looks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QPen

if TYPE_CHECKING:
    from PySide6.QtCore import QRect
    from PySide6.QtGui import QFocusEvent, QPainter

    from kuiper_studio.theme import Theme

__all__ = ["draw_focus_ring", "is_by_keyboard"]

_KEYBOARD_REASONS: Final = frozenset(
    {
        Qt.FocusReason.TabFocusReason,
        Qt.FocusReason.BacktabFocusReason,
        Qt.FocusReason.ShortcutFocusReason,
    }
)


def is_by_keyboard(event: QFocusEvent) -> bool:
    """Whether the focus came by a key: a click needs no ring."""
    return event.reason() in _KEYBOARD_REASONS


def draw_focus_ring(painter: QPainter, theme: Theme, area: QRect) -> None:
    """Draw the ring inside the edge of a widget.

    Parameters
    ----------
    painter : QPainter
        Its pen and brush change.
    theme : Theme
    area : QRect
        All of the widget.
    """
    painter.setBrush(Qt.BrushStyle.NoBrush)
    painter.setPen(QPen(theme.color("focus"), 2))
    painter.drawRect(area.adjusted(1, 1, -1, -1))
