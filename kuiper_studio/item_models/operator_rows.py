"""Item models of results by operator: a table of columns says what each cell shows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from PySide6.QtCore import (
    QAbstractItemModel,
    QAbstractTableModel,
    QModelIndex,
    QObject,
    Qt,
    Slot,
)
from typing_extensions import override

from engine.text import format_brief
from kuiper_studio.item_models.rows_model import ROOT, Index, RowsModel, place_of_operator
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from engine.runtime import OperatorLabel

__all__ = [
    "LOOK_ROLE",
    "ROW_ROLE",
    "CellLook",
    "Column",
    "Face",
    "OperatorRowsModel",
    "SortModel",
    "index_column",
    "name_column",
    "number_column",
    "table_text",
    "text_column",
]

ROW_ROLE: Final = Qt.ItemDataRole.UserRole + 1
LOOK_ROLE: Final = Qt.ItemDataRole.UserRole + 2


class OperatorRow(Protocol):
    """A row about an operator."""

    @property
    def operator(self) -> OperatorLabel: ...


RowT = TypeVar("RowT", bound=OperatorRow)


class Face(Enum):
    """The font of a cell."""

    TEXT = "text"
    BOLD = "bold text"
    MONO = "numbers"


@dataclass(frozen=True, slots=True)
class CellLook:
    """How a cell is painted.

    Attributes
    ----------
    token : str
        Its colour while the row is not selected.
    face : Face
    """

    token: str = "text2"  # noqa: S105 - a colour
    face: Face = Face.MONO


@dataclass(frozen=True, slots=True)
class Column(Generic[RowT]):
    """A column of a table.

    Attributes
    ----------
    title, tip : str
    text : callable
        Returns the text of a row's cell.
    key : callable
        Returns what a row is sorted by: a number or a text.
    align : Qt.AlignmentFlag
        Horizontally, of the cells and the title.
    """

    title: str
    tip: str
    text: Callable[[RowT], str]
    key: Callable[[RowT], float | str]
    align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignRight


def number_column(
    title: str,
    tip: str,
    value: Callable[[RowT], float | None],
    format_value: Callable[[float], str] = format_brief,
) -> Column[RowT]:
    """Return a column of numbers; None is a dash, and less than all others."""

    def text(row: RowT) -> str:
        number = value(row)
        return "–" if number is None else format_value(number)

    def key(row: RowT) -> float:
        number = value(row)
        return -math.inf if number is None else number

    return Column(title, tip, text, key)


def text_column(title: str, tip: str, text: Callable[[RowT], str]) -> Column[RowT]:
    """Return a column of texts."""
    return Column(title, tip, text, text, Qt.AlignmentFlag.AlignLeft)


def index_column() -> Column[Any]:
    """Return the column of the operator's index."""

    def index(row: OperatorRow) -> int:
        return row.operator.index

    return number_column("#", "Index of the operator in execution order", index, str)


def name_column(tip: str) -> Column[Any]:
    """Return the column of the operator's name."""
    return text_column("Operator", tip, lambda row: str(row.operator.name))


class OperatorRowsModel(RowsModel, Generic[RowT]):
    """Rows about operators, in execution order.

    Parameters
    ----------
    columns : sequence of Column
    """

    def __init__(self, columns: Sequence[Column[RowT]], parent: QObject | None = None) -> None:
        super().__init__([(column.title, column.tip) for column in columns], (), parent)
        self._cells = tuple(columns)
        # Enums are slow to combine, and tables ask for every cell.
        self._aligned = [Qt.AlignmentFlag.AlignVCenter | each.align for each in self._cells]
        self._rows: tuple[RowT, ...] = ()

    @property
    def rows(self) -> tuple[RowT, ...]:
        """The rows."""
        return self._rows

    def show_rows(self, rows: Iterable[RowT]) -> None:
        """Show other rows."""
        self.beginResetModel()
        self._rows = tuple(rows)
        self.endResetModel()

    def place_of(self, operator: str) -> int:
        """Return the first row of an operator; -1 for none."""
        return place_of_operator(self._rows, operator)

    def key(self, place: int, column: int) -> float | str:
        """Return what a row is sorted by, by its place in execution order."""
        return self._cells[column].key(self._rows[place])

    def text(self, row: RowT, column: int) -> str:
        """Return the text of a cell."""
        return self._cells[column].text(row)

    # For subclasses

    def describe(self, row: RowT) -> str:
        """Return the tool tip of a row."""
        label = row.operator
        return f"#{label.index} {label.type} {label.name}"

    def spoken(self, row: RowT, column: int) -> str:
        """Return what is read aloud of a cell."""
        return self._cells[column].text(row)

    def look(self, row: RowT, column: int) -> CellLook:  # noqa: ARG002 - for subclasses
        """Return how a cell is painted."""
        return CellLook()

    # Overrides of `RowsModel` and Qt

    @override
    def count_rows(self) -> int:
        return len(self._rows)

    @override
    def alignment(self, column: int) -> Qt.AlignmentFlag:
        return self._aligned[column]

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._cells[column].text(row)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self.spoken(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return tip_text(self.describe(row))
            case Qt.ItemDataRole.TextAlignmentRole:
                return self.alignment(column)
            case _ if role == LOOK_ROLE:
                return self.look(row, column)
            case _ if role == ROW_ROLE:
                return row
        return None


class SortModel(QAbstractTableModel, Generic[RowT]):
    """Sorts the rows of an `OperatorRowsModel`, and shows some of them or all.

    Qt's own sorting asks for two keys at each comparison: with three thousand rows, for a tenth
    of a second. Here each row has one key.

    Parameters
    ----------
    source : OperatorRowsModel
    """

    def __init__(self, source: OperatorRowsModel[RowT], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._source = source
        self._accepts: Callable[[RowT], bool] | None = None
        self._column, self._falls = -1, False
        self._places = list(range(source.count_rows()))  # in the source, as they are shown
        source.modelAboutToBeReset.connect(self.beginResetModel)
        source.modelReset.connect(self._on_source_reset)

    def show_only(self, accepts: Callable[[RowT], bool] | None) -> None:
        """Show the rows that a function accepts, or all."""
        if accepts is None and self._accepts is None:
            return
        self._accepts = accepts
        self._arrange_again()

    def row_at(self, index: Index) -> RowT:
        """Return the row of an index, sooner than by its data."""
        return self._source.rows[self._places[index.row()]]

    def index_of(self, place: int) -> QModelIndex:
        """Return where a row of the source is; invalid for nowhere."""
        shown = self._places.index(place) if place in self._places else -1
        return self.index(shown, 0)

    def _arrange(self) -> None:
        """Sort what is accepted, in execution order where the keys are the same."""
        accepts, source, column = self._accepts, self._source, self._column
        self._places = [
            place for place, row in enumerate(source.rows) if accepts is None or accepts(row)
        ]
        if column >= 0:
            self._places.sort(key=lambda place: source.key(place, column), reverse=self._falls)

    def _arrange_again(self) -> None:
        """Arrange; what is selected stays selected, if it is still shown."""
        self.layoutAboutToBeChanged.emit()
        known = self.persistentIndexList()
        moved = [(self._places[index.row()], index.column()) for index in known]
        self._arrange()
        shown = {place: row for row, place in enumerate(self._places)}
        self.changePersistentIndexList(
            known, [self.index(shown.get(place, -1), column) for place, column in moved]
        )
        self.layoutChanged.emit()

    @Slot()
    def _on_source_reset(self) -> None:
        self._arrange()
        self.endResetModel()

    # Overrides of Qt methods

    @override
    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Sort by a column; -1 for execution order."""
        self._column, self._falls = column, order == Qt.SortOrder.DescendingOrder
        self._arrange_again()

    @override
    def rowCount(self, parent: Index = ROOT) -> int:
        return 0 if parent.isValid() else len(self._places)

    @override
    def columnCount(self, parent: Index = ROOT) -> int:
        return self._source.columnCount(parent)

    @override
    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        return self._source.headerData(section, orientation, role)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        place = self._places[index.row()]
        return self._source.data(self._source.index(place, index.column()), role)


def table_text(model: QAbstractItemModel, untitled: str = "") -> str:
    """Return a table as tab-separated lines, titles first.

    Parameters
    ----------
    model : QAbstractItemModel
    untitled : str, optional
        Title of columns without one.
    """
    columns, flow = range(model.columnCount()), Qt.Orientation.Horizontal
    lines = [[str(model.headerData(column, flow)) or untitled for column in columns]]
    lines += [
        [str(model.index(row, column).data()) for column in columns]
        for row in range(model.rowCount())
    ]
    return "\n".join("\t".join(line) for line in lines)
