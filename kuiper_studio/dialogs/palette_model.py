"""Item model of the command palette: matches of the typed text."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)
from typing_extensions import override

from engine.text import format_dtype, format_shape
from kuiper_studio.conditions import missing_of
from kuiper_studio.dialogs.action_text import GROUPS, action_group, action_keys, action_text
from kuiper_studio.dialogs.fuzzy import FuzzyMatch, Tier, fuzzy_match
from kuiper_studio.dialogs.other_words import OTHER_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from PySide6.QtGui import QAction

    from engine.runtime import RuntimeGraph, RuntimeOperand, RuntimeOperator

__all__ = ["MAX_FOUND", "PaletteEntry", "PaletteModel", "PaletteRole"]

Index = QModelIndex | QPersistentModelIndex
_ROOT: Final = QModelIndex()
MAX_FOUND: Final = 200
OPERATOR_PREFIX: Final = "@"
COMMAND_PREFIX: Final = ">"
INDEX_PREFIX: Final = "#"
_ELLIPSIS: Final = "…."


class PaletteRole(IntEnum):
    """Roles of a row beyond its text."""

    ENTRY = Qt.ItemDataRole.UserRole + 1  # PaletteEntry


@dataclass(frozen=True, slots=True)
class PaletteEntry:
    """A row of the palette: a heading, a command, an operator or an operand.

    Attributes
    ----------
    text : str
    places : tuple of int
        Characters of `text` that matched.
    note : str
        Text beside it: its menu, or an operand's shape.
    shortcut : str
        At the right: keys in the system's notation, or an operator's index.
    other_words : str
        Words, beside its text, that find a command.
    names_from : int or None
        Index in `text` at which a name of the model begins; None for no such name.
    action : QAction or None
    operator : RuntimeOperator or None
    operand : RuntimeOperand or None
    """

    text: str
    places: tuple[int, ...] = ()
    note: str = ""
    shortcut: str = ""
    other_words: str = ""
    names_from: int | None = None
    action: QAction | None = None
    operator: RuntimeOperator | None = None
    operand: RuntimeOperand | None = None

    @property
    def is_heading(self) -> bool:
        """Whether it is a heading."""
        return self.action is None and self.operator is None and self.operand is None

    @property
    def enabled(self) -> bool:
        """Whether it can be chosen now."""
        return not self.is_heading and (self.action is None or self.action.isEnabled())

    @property
    def missing(self) -> str:
        """What is missing where it cannot be chosen now, else ``""``."""
        if self.action is None or self.enabled:
            return ""
        return missing_of(self.action) or "not available now"


class PaletteModel(QAbstractListModel):
    """Commands, operators and operands that match a text, best first.

    Attributes
    ----------
    found : int
        Number of matches; at most `MAX_FOUND` of them are rows.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._commands: tuple[PaletteEntry, ...] = ()
        self._operators: tuple[PaletteEntry, ...] = ()
        self._operands: tuple[PaletteEntry, ...] = ()
        self._recent: tuple[QAction, ...] = ()
        self._entries: tuple[PaletteEntry, ...] = ()
        self.found = 0

    def set_sources(
        self,
        actions: Sequence[QAction],
        graph: RuntimeGraph | None = None,
        recent: Sequence[QAction] = (),
    ) -> None:
        """Set the commands and the graph to search.

        Parameters
        ----------
        actions : sequence of QAction
        graph : RuntimeGraph, optional
        recent : sequence of QAction
            Those chosen before, the last one first.
        """
        self._commands = tuple(
            _command_entry(action)
            for action in actions
            if action.text() and not action.isSeparator()
        )
        operators = graph.operators if graph is not None else ()
        self._operators = tuple(_operator_entry(operator) for operator in operators)
        operands = graph.operands.values() if graph is not None else ()
        self._operands = tuple(_operand_entry(operand) for operand in operands)
        self._recent = tuple(recent)
        self.find("")

    def find(self, text: str) -> None:
        """Show the matches of a text.

        Parameters
        ----------
        text : str
            A prefix ``>`` restricts to commands, ``@`` to operators, and ``#`` to operators by
            index. An empty text lists all commands by menu.
        """
        wanted = text.strip()
        entries = list(self._search(wanted)) if wanted else list(self._by_group())
        self.beginResetModel()
        self._entries = tuple(entries)
        self.endResetModel()

    def entry(self, row: int) -> PaletteEntry:
        """Return the entry of a row."""
        return self._entries[row]

    def _by_group(self) -> Iterator[PaletteEntry]:
        """Return the recently used commands, then all under the titles of their menus."""
        self.found = len(self._commands)
        known = {entry.action: entry for entry in self._commands}
        recent = [known[action] for action in self._recent if action in known]
        groups = {"Recently used": recent}
        groups.update((group, []) for group in GROUPS)
        for entry in self._commands:
            groups[entry.note].append(entry)
        for group, members in groups.items():
            if members:
                yield PaletteEntry(group)
                yield from (replace(entry, note="") for entry in members)

    def _search(self, wanted: str) -> Sequence[PaletteEntry]:
        if wanted.startswith(INDEX_PREFIX):
            return self._by_index(wanted[1:].strip())
        sources = [self._commands, self._operators, self._operands]
        if wanted.startswith(COMMAND_PREFIX):
            sources = sources[:1]
        elif wanted.startswith(OPERATOR_PREFIX):
            sources = sources[1:2]
        typed = wanted.lstrip(COMMAND_PREFIX + OPERATOR_PREFIX)
        scored = []
        for kind, source in enumerate(sources):
            # Menus end a command that asks with an ellipsis; rows here have none.
            pattern = typed.rstrip(_ELLIPSIS) or typed if source is self._commands else typed
            for order, entry in enumerate(source):
                fields = (entry.names_from,) if entry.names_from else ()
                match = fuzzy_match(pattern, entry.text, fields, entry.other_words)
                if match is not None:
                    # A disabled command comes after equally good matches, but before letters
                    # that only happen to be in another text.
                    by_chance = match.tier is Tier.LETTERS
                    tier = match.tier if entry.enabled else match.tier - 1
                    key = (by_chance, -tier, not entry.enabled, kind, -match.score, order)
                    scored.append((key, entry, match))
        self.found = len(scored)
        best = heapq.nsmallest(MAX_FOUND, scored, key=lambda item: item[0])
        return [_found(entry, match) for _, entry, match in best]

    def _by_index(self, digits: str) -> Sequence[PaletteEntry]:
        """Return operators whose index begins with some digits, the exact one first."""
        found = [
            entry
            for entry in self._operators
            if entry.shortcut.removeprefix(INDEX_PREFIX).startswith(digits)
        ]
        self.found = len(found)
        found.sort(key=lambda entry: len(entry.shortcut))
        return found[:MAX_FOUND]

    # Overrides of Qt methods

    @override
    def rowCount(self, parent: Index = _ROOT) -> int:
        return 0 if parent.isValid() else len(self._entries)

    @override
    def flags(self, index: Index) -> Qt.ItemFlag:
        if index.isValid() and not self._entries[index.row()].enabled:
            return Qt.ItemFlag.ItemNeverHasChildren
        return super().flags(index)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        entry = self._entries[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return entry.text
            case Qt.ItemDataRole.AccessibleTextRole:
                parts = (entry.text, entry.note, entry.shortcut, entry.missing)
                return ", ".join(part for part in parts if part)
            case Qt.ItemDataRole.ToolTipRole:
                return entry.action.statusTip() or None if entry.action is not None else None
            case PaletteRole.ENTRY:
                return entry
        return None


def _found(entry: PaletteEntry, match: FuzzyMatch) -> PaletteEntry:
    """Return the row of a match; a command found by other words says what it does."""
    tip = entry.action.statusTip() if entry.action is not None else ""
    note = tip if match.tier is Tier.OTHER_WORDS and tip else entry.note
    return replace(entry, places=match.places, note=note)


def _command_entry(action: QAction) -> PaletteEntry:
    keys = next(iter(action_keys(action)), "")
    return PaletteEntry(
        action_text(action),
        note=action_group(action),
        shortcut=keys,
        other_words=f"{OTHER_WORDS.get(action.objectName(), '')} {action.statusTip()}",
        action=action,
    )


def _operator_entry(operator: RuntimeOperator) -> PaletteEntry:
    return PaletteEntry(
        f"{operator.type}  {operator.name}",
        shortcut=f"{INDEX_PREFIX}{operator.index}",
        names_from=len(operator.type) + 2,
        operator=operator,
    )


def _operand_entry(operand: RuntimeOperand) -> PaletteEntry:
    facts = (format_shape(operand.shape), format_dtype(operand.dtype))
    return PaletteEntry(
        f"Operand  {operand.name}",
        note=" ".join(filter(None, facts)),
        names_from=len("Operand") + 2,
        operand=operand,
    )
