"""The sheet of keyboard shortcuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from kuiper_studio.dialogs.action_text import action_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QAction

    from kuiper_studio.theme import Theme

__all__ = ["ShortcutsSheet", "grouped_shortcuts"]

Row = tuple[str, tuple[str, ...]]


def grouped_shortcuts(actions: Sequence[QAction]) -> dict[str, list[Row]]:
    """Texts and keys of the actions that have keys, by the group in their object name.

    Returns
    -------
    dict of str to list of (str, tuple of str)
        Groups in the order of their first action; those without one are ``Other``.
    """
    groups: dict[str, list[Row]] = {}
    native = QKeySequence.SequenceFormat.NativeText
    for action in actions:
        keys = tuple(key.toString(native) for key in action.shortcuts() if not key.isEmpty())
        if not keys:
            continue
        group, dot, _ = action.objectName().partition(".")
        title = group.capitalize() if dot else "Other"
        groups.setdefault(title, []).append((action_text(action), keys))
    return groups


class ShortcutsSheet(QDialog):
    """All shortcuts, group by group, in two columns.

    Parameters
    ----------
    actions : sequence of QAction
    theme : Theme
    """

    def __init__(
        self, actions: Sequence[QAction], theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("shortcutsSheet")
        self.setWindowTitle("Keyboard shortcuts")
        self.resize(720, 560)
        self._theme = theme
        content = QFrame()
        content.setProperty("role", "panel")
        columns = QHBoxLayout(content)
        columns.setContentsMargins(20, 16, 20, 16)
        columns.setSpacing(40)
        for groups in _in_two(grouped_shortcuts(actions)):
            columns.addLayout(self._make_column(groups), 1)
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setWidget(content)
        close = QPushButton("Close")
        close.setDefault(True)
        close.clicked.connect(self.accept)
        below = QHBoxLayout()
        below.setContentsMargins(16, 10, 16, 12)
        below.addStretch(1)
        below.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(area, 1)
        column.addLayout(below)

    def _make_column(self, groups: dict[str, list[Row]]) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(6)
        for title, rows in groups.items():
            label = QLabel(title)
            label.setProperty("role", "subtitle")
            column.addWidget(label)
            column.addLayout(self._make_rows(rows))
            column.addSpacing(12)
        column.addStretch(1)
        return column

    @staticmethod
    def _make_rows(rows: list[Row]) -> QGridLayout:
        grid = QGridLayout()
        grid.setVerticalSpacing(5)
        grid.setColumnStretch(0, 1)
        for place, (text, keys) in enumerate(rows):
            label = QLabel(text)
            label.setProperty("role", "secondary")
            caps = QHBoxLayout()
            caps.setSpacing(4)
            caps.addStretch(1)
            for key in keys:
                cap = QLabel(key)
                cap.setProperty("role", "key")
                caps.addWidget(cap)
            grid.addWidget(label, place, 0)
            grid.addLayout(caps, place, 1, Qt.AlignmentFlag.AlignRight)
        return grid


def _in_two(groups: dict[str, list[Row]]) -> tuple[dict[str, list[Row]], dict[str, list[Row]]]:
    """Groups shared out to two columns of about the same height."""
    heights = [0, 0]
    columns: tuple[dict[str, list[Row]], dict[str, list[Row]]] = ({}, {})
    for title, rows in groups.items():
        place = 0 if heights[0] <= heights[1] else 1
        columns[place][title] = rows
        heights[place] += len(rows) + 2
    return columns
