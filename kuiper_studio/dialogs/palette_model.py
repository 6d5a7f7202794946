"""What the command palette offers for a typed text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)
from PySide6.QtGui import QAction, QKeySequence
from typing_extensions import override

from kuiper_studio.dialogs.fuzzy import fuzzy_match

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.runtime import RuntimeOperator

__all__ = ["MAX_OPERATORS", "PaletteEntry", "PaletteModel", "PaletteRole", "clean_text"]

Index = QModelIndex | QPersistentModelIndex
_ROOT: Final = QModelIndex()
MAX_OPERATORS: Final = 50
OPERATOR_PREFIX: Final = "@"
COMMAND_PREFIX: Final = ">"


class PaletteRole(IntEnum):
    """What a row knows beyond its text."""

    ENTRY = Qt.ItemDataRole.UserRole + 1  # PaletteEntry


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """A row of the palette.

    Attributes
    ----------
    text : str
    places : tuple of int
        Characters of `text` that matched.
    group : str
        Where it belongs: a menu, or an operator's type.
    shortcut : str
        In the system's own spelling.
    action : QAction or None
        Of a command.
    operator : RuntimeOperator or None
        Of an operator.
    """

    text: str
    places: tuple[int, ...] = ()
    group: str = ""
    shortcut: str = ""
    action: QAction | None = None
    operator: RuntimeOperator | None = None

    @property
    def enabled(self) -> bool:
        """Whether it can be chosen now."""
        return self.action is None or self.action.isEnabled()


def clean_text(action: QAction) -> str:
    """An action's text without mnemonic."""
    return action.text().replace("&&", "\0").replace("&", "").replace("\0", "&")


class PaletteModel(QAbstractListModel):
    """Commands and operators that fit a text, best first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._actions: tuple[QAction, ...] = ()
        self._operators: tuple[RuntimeOperator, ...] = ()
        self._entries: tuple[PaletteEntry, ...] = ()

    def set_sources(
        self, actions: Sequence[QAction], operators: Sequence[RuntimeOperator]
    ) -> None:
        """Choose what there is to find."""
        self._actions = tuple(a for a in actions if a.text() and not a.isSeparator())
        self._operators = tuple(operators)
        self.find("")

    def find(self, text: str) -> None:
        """Offer what fits; ``>`` in front restricts to commands, ``@`` to operators."""
        wanted = text.strip()
        found: list[PaletteEntry] = []
        if not wanted.startswith(OPERATOR_PREFIX):
            found += self._find_commands(wanted.removeprefix(COMMAND_PREFIX))
        if wanted.startswith(OPERATOR_PREFIX) or (wanted and wanted[0] != COMMAND_PREFIX):
            found += self._find_operators(wanted.removeprefix(OPERATOR_PREFIX))
        self.beginResetModel()
        self._entries = tuple(found)
        self.endResetModel()

    def entry(self, row: int) -> PaletteEntry:
        """Entry of a row."""
        return self._entries[row]

    def _find_commands(self, pattern: str) -> list[PaletteEntry]:
        scored = []
        for action in self._actions:
            text = clean_text(action)
            match = fuzzy_match(pattern, text)
            if match is None:
                continue
            keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            group, dot, _ = action.objectName().partition(".")
            entry = PaletteEntry(
                text, match.places, group.capitalize() if dot else "", keys, action=action
            )
            # What can be done now comes first among equals.
            scored.append((match.score if pattern else 0, action.isEnabled(), entry))
        scored.sort(key=lambda item: (item[0], item[1]), reverse=True)
        return [entry for _, _, entry in scored]

    def _find_operators(self, pattern: str) -> list[PaletteEntry]:
        """Operators whose name, type or ``#index`` contains the text; a model may be huge."""
        low = pattern.strip().lower()
        found: list[PaletteEntry] = []
        for operator in self._operators:
            place = operator.name.lower().find(low)
            if place < 0 and low not in operator.type.lower() and low != f"#{operator.index}":
                continue
            places = tuple(range(place, place + len(low))) if place >= 0 else ()
            found.append(
                PaletteEntry(
                    operator.name,
                    places,
                    f"{operator.type} #{operator.index}",
                    operator=operator,
                )
            )
            if len(found) == MAX_OPERATORS:
                break
        return found

    # Overrides of Qt methods

    @override
    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._entries)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        entry = self._entries[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return entry.text
            case Qt.ItemDataRole.AccessibleTextRole:
                state = "" if entry.enabled else "not available now"
                parts = (entry.text, entry.group, entry.shortcut, state)
                return ", ".join(part for part in parts if part)
            case Qt.ItemDataRole.ToolTipRole:
                return entry.action.statusTip() or None if entry.action is not None else None
            case PaletteRole.ENTRY:
                return entry
        return None
