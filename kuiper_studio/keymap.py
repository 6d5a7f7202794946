"""The keys of all commands: presets, the user's changes, and conflicts between them.

A command has the keys of its row, which follow Visual Studio, unless the chosen preset or the
user gives it others. A `Keymap` never changes; the window takes another one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from PySide6.QtGui import QAction, QKeySequence

from kuiper_studio.conditions import show_missing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from PySide6.QtCore import QSettings

__all__ = ["PRESETS", "PRESET_TITLES", "Keyed", "Keymap", "Keys", "native_key", "set_keys"]

Keys = tuple[str, ...]


class Keyed(Protocol):
    """What has keys: a row of the commands."""

    @property
    def id(self) -> str:
        """Its name everywhere."""
        ...

    @property
    def text(self) -> str:
        """Text in menus."""
        ...

    @property
    def tip(self) -> str:
        """Tool tip."""
        ...

    @property
    def keys(self) -> Keys:
        """Keys without a preset."""
        ...

    @property
    def key_elsewhere(self) -> bool:
        """Whether a view handles the key."""
        ...


PRESET_TITLES: Final = {
    "visual-studio": "Visual Studio",
    "jetbrains": "JetBrains",
    "renderdoc": "RenderDoc",
}
# What differs from the rows of the commands. Keys that desktops take are left out: Alt+F9 of
# JetBrains minimises a window, and Ctrl+Alt+Left changes the work space.
PRESETS: Final[Mapping[str, Mapping[str, Keys]]] = {
    "visual-studio": {},
    "jetbrains": {
        "debug.step": ("F8",),
        "debug.stepBack": ("Ctrl+Shift+F8", "Alt+["),
        "debug.continue": ("F9",),
        "debug.toggleBreakpoint": ("Ctrl+F8",),
        "debug.stop": ("Ctrl+F2",),
        "debug.restart": ("Ctrl+F5",),
        "view.commandPalette": ("Ctrl+Shift+A",),
        "edit.preferences": ("Ctrl+Alt+S",),
        "edit.toggleBookmark": ("F11",),
    },
    "renderdoc": {
        "debug.stepBack": ("Shift+F10", "F8"),
    },
}
_PRESET: Final = "keys/preset"
_CHANGES: Final = "keys/changes"


@dataclass(frozen=True, slots=True)
class Keymap:
    """Keys by command.

    Attributes
    ----------
    preset : str
        One of `PRESETS`.
    changes : mapping of str to tuple of str
        The user's keys, by the command's id; they come before those of the preset.
    """

    preset: str = "visual-studio"
    changes: Mapping[str, Keys] = field(default_factory=dict)

    def keys_of(self, command: Keyed) -> Keys:
        """Return the keys of a command in Qt's portable notation; the first is shown."""
        of_preset = PRESETS[self.preset].get(command.id, command.keys)
        return self.changes.get(command.id, of_preset)

    def is_changed(self, command: Keyed) -> bool:
        """Return whether the user has given a command keys of its own."""
        return command.id in self.changes

    def with_keys(self, command: Keyed, keys: Keys) -> Keymap:
        """Return a keymap where a command has these keys."""
        changes = {id_: own for id_, own in self.changes.items() if id_ != command.id}
        if keys != Keymap(self.preset).keys_of(command):
            changes[command.id] = keys
        return replace(self, changes=changes)

    def without_change(self, command: Keyed) -> Keymap:
        """Return a keymap where a command has the preset's keys again."""
        return self.with_keys(command, Keymap(self.preset).keys_of(command))

    def conflicts(self, commands: Iterable[Keyed]) -> dict[str, tuple[Keyed, ...]]:
        """Return the commands of each key that more than one has."""
        users: dict[str, list[Keyed]] = defaultdict(list)
        for command in commands:
            for key in self.keys_of(command):
                # A view that takes a key itself does so while it has the focus.
                if not command.key_elsewhere or self.is_changed(command):
                    users[QKeySequence(key).toString()].append(command)
        return {key: tuple(found) for key, found in users.items() if len(found) > 1}

    # Stored between runs

    @classmethod
    def stored(cls, settings: QSettings) -> Keymap:
        """Return the keymap of the last run; what cannot be read is left out."""
        preset = str(settings.value(_PRESET, ""))
        try:
            changes = json.loads(str(settings.value(_CHANGES, "{}")))
        except ValueError:
            changes = {}
        return cls(
            preset if preset in PRESETS else "visual-studio",
            {
                str(id_): tuple(map(str, keys))
                for id_, keys in (changes.items() if isinstance(changes, dict) else ())
                if isinstance(keys, list)
            },
        )

    def store(self, settings: QSettings) -> None:
        """Keep the keymap for the next run."""
        settings.setValue(_PRESET, self.preset)
        settings.setValue(_CHANGES, json.dumps(self.changes))


def set_keys(action: QAction, command: Keyed, keymap: Keymap) -> None:
    """Give an action the keys of its command, and show the first in its tool tip."""
    keys = keymap.keys_of(command)
    key = native_key(keys)
    elsewhere = command.key_elsewhere and not keymap.is_changed(command)
    action.setText(f"{command.text}\t{key}" if elsewhere else command.text)
    action.setShortcuts([] if elsewhere else [QKeySequence(each) for each in keys])
    action.setToolTip(f"{command.tip} ({key})" if key else command.tip)
    show_missing(action)


@lru_cache(maxsize=1024)
def native_key(keys: Keys) -> str:
    """Return the first key in the system's notation; ``""`` for none."""
    if not keys:
        return ""
    return QKeySequence(keys[0]).toString(QKeySequence.SequenceFormat.NativeText)
