"""Base of the item models of tables: rows, titles of columns, alignment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from PySide6.QtCore import QObject

    from engine.runtime import OperatorLabel

__all__ = ["ROOT", "Index", "RowsModel", "place_of_operator"]

Index = QModelIndex | QPersistentModelIndex
ROOT: Final = QModelIndex()


class _OfOperator(Protocol):
    """A row about an operator."""

    @property
    def operator(self) -> OperatorLabel: ...


def place_of_operator(rows: Iterable[_OfOperator], name: str) -> int:
    """Return the first row of an operator; -1 for none."""
    places = (place for place, row in enumerate(rows) if row.operator.name == name)
    return next(places, -1)


class RowsModel(QAbstractTableModel):
    """A table without a hierarchy; subclasses give its rows and its cells.

    Parameters
    ----------
    columns : iterable of (str, str)
        Title and tool tip of each column; ``""`` for none.
    right : collection of int, optional
        Columns that are aligned to the right.
    """

    def __init__(
        self,
        columns: Iterable[tuple[str, str]],
        right: Collection[int] = (),
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._columns, self._right = tuple(columns), frozenset(right)

    def count_rows(self) -> int:
        """Return the number of rows."""
        raise NotImplementedError

    def alignment(self, column: int) -> Qt.AlignmentFlag:
        """Return how the cells of a column, and its title, are aligned."""
        flag = Qt.AlignmentFlag
        return flag.AlignVCenter | (
            flag.AlignRight if column in self._right else flag.AlignLeft
        )

    # Overrides of Qt methods

    @override
    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else self.count_rows()

    @override
    def columnCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._columns)

    @override
    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        if orientation is not Qt.Orientation.Horizontal or section >= len(self._columns):
            return None
        title, tip = self._columns[section]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return title
            case Qt.ItemDataRole.ToolTipRole:
                return tip or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return tip or title
            case Qt.ItemDataRole.TextAlignmentRole:
                return self.alignment(section)
        return None
