"""The sheet of keyboard shortcuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Slot
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from kuiper_studio.dialogs.action_text import (
    GROUPS,
    action_group,
    action_keys,
    action_text,
    key_caps,
)
from kuiper_studio.dialogs.fuzzy import has_words
from kuiper_studio.dialogs.screen_room import room_on_screen
from kuiper_studio.icons import mark_as_search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QAction

    from kuiper_studio.theme import Theme

__all__ = ["ShortcutsSheet", "grouped_shortcuts"]

Row = tuple[str, tuple[str, ...]]


def grouped_shortcuts(actions: Sequence[QAction]) -> dict[str, list[Row]]:
    """Return texts and keys of actions, by the group in their object name.

    Returns
    -------
    dict of str to list of (str, tuple of str)
        Groups in the order of the menus; each row has all keys of one action.
    """
    groups: dict[str, list[Row]] = {group: [] for group in GROUPS}
    for action in actions:
        keys = action_keys(action)
        if keys:
            groups[action_group(action)].append((action_text(action), keys))
    return {group: rows for group, rows in groups.items() if rows}


class _ShortcutRow(QWidget):
    """A row of the sheet: what keys do, and the keys as key caps."""

    def __init__(self, text: str, keys: tuple[str, ...]) -> None:
        super().__init__()
        self._found_by = f"{text} {' '.join(keys)}"
        self.setAccessibleName(f"{text}: {' or '.join(keys)}")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(3)
        label = QLabel(text)
        label.setProperty("role", "secondary")
        row.addWidget(label)
        row.addStretch(1)
        for place, combination in enumerate(keys):
            if place:
                between = QLabel("or")
                between.setProperty("role", "caption")
                between.setContentsMargins(3, 0, 3, 0)
                row.addWidget(between)
            for name in key_caps(combination):
                cap = QLabel(name)
                cap.setProperty("role", "key")
                cap.setAlignment(Qt.AlignmentFlag.AlignCenter)
                row.addWidget(cap)

    def fits(self, pattern: str) -> bool:
        """Return whether its name or keys contain the words of a text."""
        return has_words(pattern, self._found_by)


class _Group(QWidget):
    """A title and its rows; hidden when no row matches."""

    def __init__(self, title: str, rows: Sequence[Row]) -> None:
        super().__init__()
        self.rows = [_ShortcutRow(text, keys) for text, keys in rows]
        label = QLabel(title)
        label.setProperty("role", "subtitle")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 12)
        column.setSpacing(6)
        column.addWidget(label)
        for row in self.rows:
            column.addWidget(row)

    def show_fitting(self, pattern: str) -> int:
        """Show the rows that match; return their number."""
        fitting = [row.fits(pattern) for row in self.rows]
        for row, fits in zip(self.rows, fitting, strict=True):
            row.setVisible(fits)
        self.setVisible(any(fitting))
        return sum(fitting)


class ShortcutsSheet(QDialog):
    """All shortcuts by group in two columns, with a search box.

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
        self.resize(QSize(760, 600).boundedTo(room_on_screen(self)))
        groups = grouped_shortcuts(actions)
        self.groups = [_Group(title, rows) for title, rows in groups.items()]
        self.box = self._make_box(theme)
        self._nothing = QLabel()
        self._nothing.setObjectName("shortcutsNothing")
        self._nothing.setProperty("role", "tertiary")
        self._nothing.setTextFormat(Qt.TextFormat.PlainText)
        self._nothing.setContentsMargins(20, 12, 20, 12)
        self._nothing.hide()
        area = QScrollArea()
        area.setWidgetResizable(True)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(self._make_columns())
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_top())
        column.addWidget(self._nothing)
        column.addWidget(area, 1)
        column.addLayout(self._make_bottom())
        self.box.setFocus()

    def _make_box(self, theme: Theme) -> QLineEdit:
        box = QLineEdit()
        box.setObjectName("shortcutsBox")
        box.setPlaceholderText("Find a command or a key, e.g. zoom or Ctrl+K")
        box.setAccessibleName("Find a command or a key")
        mark_as_search(box, theme)
        box.textChanged.connect(self._on_text_changed)
        return box

    def _make_top(self) -> QFrame:
        top = QFrame()
        top.setProperty("role", "bar")
        row = QHBoxLayout(top)
        row.setContentsMargins(16, 10, 16, 10)
        row.addWidget(self.box)
        return top

    def _make_columns(self) -> QFrame:
        content = QFrame()
        content.setProperty("role", "panel")
        columns = QHBoxLayout(content)
        columns.setContentsMargins(20, 16, 20, 16)
        columns.setSpacing(40)
        for groups in _split_columns(self.groups):
            side = QWidget()
            # Both columns keep their width, whatever is hidden.
            side.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
            column = QVBoxLayout(side)
            column.setContentsMargins(0, 0, 0, 0)
            column.setSpacing(0)
            for group in groups:
                column.addWidget(group)
            column.addStretch(1)
            columns.addWidget(side, 1)
        return content

    def _make_bottom(self) -> QHBoxLayout:
        close = QPushButton("Close")
        close.setAutoDefault(False)  # Enter belongs to the search box
        close.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.setContentsMargins(16, 10, 16, 12)
        row.addStretch(1)
        row.addWidget(close)
        return row

    @Slot(str)
    def _on_text_changed(self, text: str) -> None:
        pattern = text.strip()
        found = sum([group.show_fitting(pattern) for group in self.groups])
        self._nothing.setText(f"No command or key matches “{pattern}”.")
        self._nothing.setVisible(not found)


def _split_columns(groups: Sequence[_Group]) -> tuple[Sequence[_Group], Sequence[_Group]]:
    """Split groups into two columns of about equal height, in order."""
    heights = [len(group.rows) + 2 for group in groups]
    cuts = range(len(groups) + 1)
    cut = min(cuts, key=lambda place: abs(sum(heights[:place]) - sum(heights[place:])))
    return groups[:cut], groups[cut:]
