"""Item model of a self-check: one row per operator and kernel."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import (
    QObject,
    QSortFilterProxyModel,
    Qt,
)
from typing_extensions import override

from engine.self_check import Verdict
from engine.text import format_brief, format_count, format_milliseconds
from kuiper_studio.item_models.rows_model import Index, RowsModel
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.differences import Difference
    from engine.self_check import Comparison, SelfCheck

__all__ = [
    "COMPARISON_ROLE",
    "ComparisonColumn",
    "ComparisonsFilterModel",
    "ComparisonsModel",
]

COMPARISON_ROLE: Final = Qt.ItemDataRole.UserRole + 1
_SORT_ROLE: Final = Qt.ItemDataRole.UserRole + 2


class ComparisonColumn(IntEnum):
    """Columns of the table."""

    INDEX = 0
    NAME = 1
    TYPE = 2
    KERNEL = 3
    VERDICT = 4
    LARGEST = 5
    RELATIVE = 6
    OF_ELEMENT = 7
    BEYOND = 8
    MS = 9
    REFERENCE_MS = 10
    WHERE = 11


# Column titles and their tool tips.
_HEADERS: Final = {
    ComparisonColumn.INDEX: ("#", "Index in execution order"),
    ComparisonColumn.NAME: ("Operator", "Name; a click selects it in the window"),
    ComparisonColumn.TYPE: ("Type", "Operator type"),
    ComparisonColumn.KERNEL: ("Kernel", "Library and variant"),
    ComparisonColumn.VERDICT: ("Verdict", "Whether it agrees with NumPy"),
    ComparisonColumn.LARGEST: ("Largest", "Largest absolute difference of two elements"),
    ComparisonColumn.RELATIVE: (
        "By largest",
        "Largest difference, relative to NumPy's largest number",
    ),
    ComparisonColumn.OF_ELEMENT: (
        "By element",
        "Largest difference of two elements, relative to the larger of them",
    ),
    ComparisonColumn.BEYOND: ("Beyond", "Elements that differ by more than the tolerance"),
    ComparisonColumn.MS: ("ms", "Milliseconds that the kernel took"),
    ComparisonColumn.REFERENCE_MS: ("NumPy ms", "Milliseconds that NumPy took"),
    ComparisonColumn.WHERE: (
        "Where",
        "Elements that differ most: found, and NumPy's",
    ),
}
_DIFFERENCES: Final[dict[ComparisonColumn, Callable[[Difference], float]]] = {
    ComparisonColumn.LARGEST: lambda far: far.largest,
    ComparisonColumn.RELATIVE: lambda far: far.relative,
    ComparisonColumn.OF_ELEMENT: lambda far: far.of_element,
}
_NUMBERS: Final = frozenset(
    {
        ComparisonColumn.INDEX, ComparisonColumn.LARGEST, ComparisonColumn.RELATIVE,
        ComparisonColumn.OF_ELEMENT, ComparisonColumn.BEYOND, ComparisonColumn.MS,
        ComparisonColumn.REFERENCE_MS,
    }
)  # fmt: skip


class ComparisonsModel(RowsModel):
    """Rows of a `SelfCheck`, in execution order."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__([_HEADERS[column] for column in ComparisonColumn], _NUMBERS, parent)
        self._rows: tuple[Comparison, ...] = ()

    def show_result(self, found: SelfCheck) -> None:
        """Show a result."""
        self.beginResetModel()
        self._rows = found.comparisons
        self.endResetModel()

    def _display(self, row: Comparison, column: int) -> str:
        match column:
            case ComparisonColumn.INDEX:
                return str(row.operator.index)
            case ComparisonColumn.NAME:
                return row.operator.name
            case ComparisonColumn.TYPE:
                return row.operator.type
            case ComparisonColumn.KERNEL:
                return row.kernel
            case ComparisonColumn.VERDICT:
                return row.verdict.value
            case ComparisonColumn.WHERE:
                return row.reason or row.difference.unlike or row.difference.words
        return "" if row.verdict is Verdict.LEFT else self._number(row, column)

    @staticmethod
    def _number(row: Comparison, column: int) -> str:
        far = row.difference
        match column:
            case ComparisonColumn.MS:
                return format_milliseconds(row.seconds)
            case ComparisonColumn.REFERENCE_MS:
                return format_milliseconds(row.reference_seconds)
            case ComparisonColumn.BEYOND:
                return format_count(far.beyond) if far.beyond else ""
        if far.unlike:
            return ""
        return format_brief(_DIFFERENCES[ComparisonColumn(column)](far))

    @staticmethod
    def _sort_key(row: Comparison, column: int) -> float | str:
        far = row.difference
        known = -1.0 if row.verdict is Verdict.LEFT else 0.0
        if column in _DIFFERENCES:
            number = _DIFFERENCES[ComparisonColumn(column)](far)
            return float("inf") if far.unlike else known + number
        keys: dict[int, float | str] = {
            ComparisonColumn.INDEX: row.operator.index,
            ComparisonColumn.NAME: row.operator.name,
            ComparisonColumn.TYPE: row.operator.type,
            ComparisonColumn.KERNEL: row.kernel,
            ComparisonColumn.VERDICT: row.verdict.value,
            ComparisonColumn.BEYOND: far.count + 1 if far.unlike else known + far.beyond,
            ComparisonColumn.MS: row.seconds,
            ComparisonColumn.REFERENCE_MS: row.reference_seconds,
            ComparisonColumn.WHERE: row.reason or far.unlike or far.words,
        }
        return keys[column]

    @override
    def count_rows(self) -> int:
        return len(self._rows)

    # Overrides of Qt methods

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.AccessibleTextRole:
                return self._display(row, column)
            case Qt.ItemDataRole.ToolTipRole:
                return tip_text(row.sentence)
            case Qt.ItemDataRole.TextAlignmentRole:
                return self.alignment(column)
        if role == COMPARISON_ROLE:
            return row
        return self._sort_key(row, column) if role == _SORT_ROLE else None


class ComparisonsFilterModel(QSortFilterProxyModel):
    """Sorts the rows of a `ComparisonsModel`, and can hide those that agree."""

    def __init__(self, source: ComparisonsModel, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._only_differing = False
        self.setSortRole(_SORT_ROLE)
        self.setSourceModel(source)

    def show_only_differing(self, only: bool) -> None:  # noqa: FBT001 - a slot of a check box
        """Show only the rows that differ, or all."""
        self._only_differing = only
        self.invalidate()

    def text(self) -> str:
        """Return the shown rows as tab-separated lines, titles first."""
        columns = range(self.columnCount())
        flow = Qt.Orientation.Horizontal
        lines = [[str(self.headerData(column, flow)) for column in columns]]
        lines += [
            [str(self.index(row, column).data()) for column in columns]
            for row in range(self.rowCount())
        ]
        return "\n".join("\t".join(line) for line in lines)

    # Overrides of Qt methods

    @override
    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        if not self._only_differing:
            return True
        row = self.sourceModel().index(source_row, 0, source_parent).data(COMPARISON_ROLE)
        return bool(row.verdict is Verdict.DIFFERS)
