"""The session's log as a table."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import (
    QObject,
    Qt,
    Slot,
)
from typing_extensions import override

from kuiper_studio.item_models.rows_model import ROOT, Index, RowsModel
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from kuiper_studio.session import LogEntry, StudioSession

__all__ = ["LEVEL_ROLE", "LogColumn", "LogModel"]

LEVEL_ROLE: Final = Qt.ItemDataRole.UserRole + 1
LIMIT: Final = 2000


class LogColumn(IntEnum):
    """Columns of the table."""

    TIME = 0
    LEVEL = 1
    TEXT = 2


_HEADERS: Final = (("Time", ""), ("Level", ""), ("Text", ""))


class LogModel(RowsModel):
    """Lines of the log, oldest first; beyond a limit the oldest are dropped.

    Parameters
    ----------
    session : StudioSession
    """

    def __init__(self, session: StudioSession, parent: QObject | None = None) -> None:
        super().__init__(_HEADERS, parent=parent)
        self._entries: list[LogEntry] = list(session.workspace.log_entries)[-LIMIT:]
        session.workspace.logged.connect(self._on_logged)

    def clear(self) -> None:
        """Remove all lines."""
        self.beginResetModel()
        self._entries.clear()
        self.endResetModel()

    def text(self) -> str:
        """Return all lines as plain text."""
        lines = ("\t".join(self._texts(entry)) for entry in self._entries)
        return "\n".join(lines)

    @Slot(object)
    def _on_logged(self, entry: LogEntry) -> None:
        if len(self._entries) >= LIMIT:
            self.beginRemoveRows(ROOT, 0, 0)
            del self._entries[0]
            self.endRemoveRows()
        row = len(self._entries)
        self.beginInsertRows(ROOT, row, row)
        self._entries.append(entry)
        self.endInsertRows()

    @staticmethod
    def _texts(entry: LogEntry) -> tuple[str, str, str]:
        time = f"{entry.time:%H:%M:%S}.{entry.time.microsecond // 1000:03d}"
        return time, entry.level, entry.text

    @override
    def count_rows(self) -> int:
        return len(self._entries)

    # Overrides of Qt methods

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        entry = self._entries[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._texts(entry)[index.column()].replace("\n", " ")
            case Qt.ItemDataRole.ToolTipRole:
                return tip_text(entry.text) if index.column() == LogColumn.TEXT else None
        return entry.level if role == LEVEL_ROLE else None
