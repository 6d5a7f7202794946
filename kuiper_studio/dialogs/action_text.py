"""What an action is called where it does not stand in its menu."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDockWidget

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

__all__ = ["GROUPS", "action_group", "action_keys", "action_text", "key_caps"]

GROUPS: Final = ("File", "Edit", "View", "Debug", "Tensor", "Help", "Other")

_NATIVE: Final = QKeySequence.SequenceFormat.NativeText


def action_text(action: QAction) -> str:
    """Text without mnemonic and key; that of a dock's toggle says that it is a panel."""
    text = action.text().partition("\t")[0]
    text = text.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")
    return f"{text} panel" if isinstance(action.parent(), QDockWidget) else text


def action_group(action: QAction) -> str:
    """Menu of an action, by the prefix of its object name."""
    if isinstance(action.parent(), QDockWidget):
        return "View"
    group, dot, _ = action.objectName().partition(".")
    return group.capitalize() if dot and group.capitalize() in GROUPS else "Other"


def action_keys(action: QAction) -> tuple[str, ...]:
    """Keys of an action in the system's notation, or the one in its text."""
    keys = tuple(key.toString(_NATIVE) for key in action.shortcuts() if not key.isEmpty())
    in_text = action.text().partition("\t")[2]
    return keys or ((in_text,) if in_text else ())


def key_caps(keys: str) -> tuple[str, ...]:
    """Keys to press together: ``Ctrl+Shift+P`` gives three, ``Ctrl++`` two."""
    if keys.endswith("+"):
        return (*filter(None, keys[:-1].rstrip("+").split("+")), "+")
    return tuple(keys.split("+"))
