"""The page of the preferences where every command gets its keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Signal, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHBoxLayout,
    QHeaderView,
    QKeySequenceEdit,
    QLabel,
    QPushButton,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from kuiper_studio.dialogs.action_text import text_outside_menu
from kuiper_studio.dialogs.fuzzy import has_words
from kuiper_studio.keymap import PRESET_TITLES, Keyed, Keymap, Keys

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["KeysPage"]

_NATIVE: Final = QKeySequence.SequenceFormat.NativeText
_NAME, _KEYS, _CHANGED = range(3)
_ROW_HEIGHT: Final = 22


class KeysPage(QWidget):
    """Preset, a table of the commands, and the keys of the selected one.

    Parameters
    ----------
    commands : sequence of Command
    keymap : Keymap
        The present one.

    Attributes
    ----------
    keymap : Keymap
        The chosen one.

    Signals
    -------
    changed
        There are other keys.
    """

    changed = Signal()

    def __init__(self, commands: Sequence[Keyed], keymap: Keymap) -> None:
        super().__init__()
        self._commands = tuple(commands)
        self.keymap = keymap
        self.preset = QComboBox()
        self.preset.setAccessibleName("Preset of keys")
        for name, title in PRESET_TITLES.items():
            self.preset.addItem(title, name)
        self.preset.setCurrentIndex(self.preset.findData(keymap.preset))
        self.table = self._make_table()
        self.editor = QKeySequenceEdit()
        self.editor.setMaximumSequenceLength(1)
        self.editor.setClearButtonEnabled(True)
        self.editor.setAccessibleName("Keys of the selected command")
        self.reset, self.reset_all = QPushButton("&Reset"), QPushButton("Reset &all")
        self.reset.setToolTip("Give the selected command the keys of the preset")
        self.reset_all.setToolTip("Give every command the keys of the preset")
        self._used_by = QLabel()
        self._used_by.setObjectName("keysUsedBy")
        self._used_by.setWordWrap(True)
        self._arrange()
        self.preset.currentIndexChanged.connect(self._on_preset_chosen)
        self.table.currentItemChanged.connect(self._on_row_changed)
        self.editor.keySequenceChanged.connect(self._on_edited)
        self.reset.clicked.connect(self._on_reset)
        self.reset_all.clicked.connect(self._on_reset_all)
        self._fill()
        self.table.setCurrentItem(self._item(0))

    def _make_table(self) -> QTreeWidget:
        table = QTreeWidget()
        table.setObjectName("keysTable")
        table.setAccessibleName("Commands and their keys")
        table.setHeaderLabels(["Command", "Keys", ""])
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        header = table.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(_NAME, QHeaderView.ResizeMode.Stretch)
        for column, width in ((_KEYS, 170), (_CHANGED, 76)):
            header.resizeSection(column, width)
        for command in self._commands:
            item = QTreeWidgetItem([_title(command)])
            item.setToolTip(_NAME, command.tip)
            item.setSizeHint(_NAME, QSize(0, _ROW_HEIGHT))
            table.addTopLevelItem(item)
        return table

    def _arrange(self) -> None:
        top = QHBoxLayout()
        of_preset = QLabel("&Preset")
        of_preset.setBuddy(self.preset)
        top.addWidget(of_preset)
        top.addWidget(self.preset, 1)
        top.addWidget(self.reset_all)
        edited = QHBoxLayout()
        of_editor = QLabel("&Keys")
        of_editor.setBuddy(self.editor)
        edited.addWidget(of_editor)
        edited.addWidget(self.editor, 1)
        edited.addWidget(self.reset)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(top)
        column.addWidget(self.table, 1)
        column.addLayout(edited)
        column.addWidget(self._used_by)

    @property
    def problem(self) -> str:
        """Say which keys more than one command has; ``""`` for none."""
        conflicts = self.keymap.conflicts(self._commands)
        if not conflicts:
            return ""
        key, users = next(iter(conflicts.items()))
        names = " and ".join(_title(command) for command in users)
        more = f"; {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
        return f"{_native((key,))} belongs to {names}: change one of them{more}."

    def show_fitting(self, pattern: str) -> int:
        """Show the commands whose name, tip or keys match a text; return how many do.

        All do where it is the name of a preset.
        """
        if has_words(pattern, " ".join(("Preset", *PRESET_TITLES.values()))):
            pattern = ""
        fitting: list[int] = []
        for row, command in enumerate(self._commands):
            found_by = f"{_title(command)} {command.tip} {_native(self._keys_of(command))}"
            fits = has_words(pattern, found_by)
            self._item(row).setHidden(not fits)
            if fits:
                fitting.append(row)
        if fitting and self.table.currentIndex().row() not in fitting:
            self.table.setCurrentItem(self._item(fitting[0]))
        return len(fitting)

    # Rows

    def _item(self, row: int) -> QTreeWidgetItem:
        item = self.table.topLevelItem(row)
        if item is None:
            raise IndexError(row)
        return item

    @property
    def _selected(self) -> Keyed:
        return self._commands[max(self.table.currentIndex().row(), 0)]

    def _keys_of(self, command: Keyed) -> Keys:
        return self.keymap.keys_of(command)

    def _fill(self) -> None:
        in_conflict = {
            command.id
            for users in self.keymap.conflicts(self._commands).values()
            for command in users
        }
        for row, command in enumerate(self._commands):
            item = self._item(row)
            item.setText(_KEYS, _native(self._keys_of(command)))
            is_changed = self.keymap.is_changed(command)
            text = "changed" if is_changed else ""
            item.setText(_CHANGED, "≠ conflict" if command.id in in_conflict else text)
        self._show_selected()

    def _show_selected(self) -> None:
        keys = self._keys_of(self._selected)
        self.editor.blockSignals(True)  # noqa: FBT003 - Qt's signature
        self.editor.setKeySequence(QKeySequence(keys[0] if keys else ""))
        self.editor.blockSignals(False)  # noqa: FBT003
        self.reset.setEnabled(self.keymap.is_changed(self._selected))
        self.reset_all.setEnabled(bool(self.keymap.changes))
        others = [
            _title(command)
            for key, users in self.keymap.conflicts(self._commands).items()
            if key in map(_portable, keys)
            for command in users
            if command is not self._selected
        ]
        self._used_by.setText(f"Also of {', '.join(others)}" if others else self._selected.tip)

    def _use(self, keymap: Keymap) -> None:
        self.keymap = keymap
        self._fill()
        self.changed.emit()

    # Slots

    @Slot()
    def _on_preset_chosen(self) -> None:
        self._use(Keymap(self.preset.currentData(), self.keymap.changes))

    @Slot()
    def _on_row_changed(self) -> None:
        self._show_selected()

    @Slot(QKeySequence)
    def _on_edited(self, typed: QKeySequence) -> None:
        key = typed.toString(QKeySequence.SequenceFormat.PortableText)
        command = self._selected
        others = self._keys_of(command)[1:]
        keys = (key, *(each for each in others if _portable(each) != key)) if key else ()
        self._use(self.keymap.with_keys(command, keys))

    @Slot()
    def _on_reset(self) -> None:
        self._use(self.keymap.without_change(self._selected))

    @Slot()
    def _on_reset_all(self) -> None:
        self._use(Keymap(self.keymap.preset))


def _title(command: Keyed) -> str:
    """Return menu and text of a command: ``Debug: Step``."""
    text = text_outside_menu(command.id, command.text)
    return f"{command.id.partition('.')[0].capitalize()}: {text}"


def _portable(key: str) -> str:
    return QKeySequence(key).toString()


def _native(keys: Keys) -> str:
    return " or ".join(QKeySequence(key).toString(_NATIVE) for key in keys)
