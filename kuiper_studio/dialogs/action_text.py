"""Texts and keys of actions outside their menus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDockWidget

from kuiper_studio.surfaces import MENUS

if TYPE_CHECKING:
    from PySide6.QtGui import QAction

__all__ = [
    "GROUPS",
    "action_group",
    "action_keys",
    "action_text",
    "key_caps",
    "text_outside_menu",
]

GROUPS: Final = (*(menu.value.replace("&", "") for menu in MENUS), "Other")

_NATIVE: Final = QKeySequence.SequenceFormat.NativeText


def action_text(action: QAction) -> str:
    """Return the text without mnemonic and key; a dock's toggle is called a panel."""
    text = text_outside_menu(action.objectName(), action.text().partition("\t")[0])
    return f"{text} panel" if isinstance(action.parent(), QDockWidget) else text


def text_outside_menu(command_id: str, text: str) -> str:
    """Return the text of a command without mnemonic, as one understands it without its menu.

    Parameters
    ----------
    command_id : str
    text : str
        As in its menu; in that of *Colour by* it is only the quantity.
    """
    text = text.replace("&&", "\0").replace("&", "").replace("\0", "&").removesuffix("…")
    return f"Colour by: {text}" if command_id.startswith("view.colorBy") else text


def action_group(action: QAction) -> str:
    """Return the menu of an action, by the prefix of its object name."""
    if isinstance(action.parent(), QDockWidget):
        return "View"
    group, dot, _ = action.objectName().partition(".")
    return group.capitalize() if dot and group.capitalize() in GROUPS else "Other"


def action_keys(action: QAction) -> tuple[str, ...]:
    """Return the keys of an action in the system's notation, or the one in its text."""
    keys = tuple(key.toString(_NATIVE) for key in action.shortcuts() if not key.isEmpty())
    in_text = action.text().partition("\t")[2]
    return keys or ((in_text,) if in_text else ())


def key_caps(keys: str) -> tuple[str, ...]:
    """Split a shortcut into keys: ``Ctrl+Shift+P`` has three, ``Ctrl++`` two."""
    if keys.endswith("+"):
        return (*filter(None, keys[:-1].rstrip("+").split("+")), "+")
    return tuple(keys.split("+"))
