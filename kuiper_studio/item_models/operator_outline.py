"""Item model of the operators with a row for each group, as far as groups are open."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from PySide6.QtCore import QModelIndex, QObject, Qt, Slot
from typing_extensions import override

from engine.text import format_count, format_duration, format_milliseconds
from kuiper_studio.item_models.operators import (
    HEADERS,
    RIGHT,
    OperatorColumn,
    OperatorRole,
    OperatorsModel,
    RowCells,
)
from kuiper_studio.item_models.rows_model import Index, RowsModel
from kuiper_studio.item_models.statuses import (
    BY_SEVERITY,
    NONFINITE,
    STATUS_LOOKS,
    DisplayStatus,
    operator_status,
    recorded_statuses,
)
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from engine.runtime import RuntimeOperator
    from kuiper_studio.item_models.difference_marks import DifferenceMark
    from kuiper_studio.layout.groups import Group, OutlineRow
    from kuiper_studio.session import StudioSession

__all__ = ["OutlineModel", "group_status"]

_WORST: Final = np.array(BY_SEVERITY, np.int8)
_SEVERITY: Final = np.argsort(_WORST)
_RAN: Final = (DisplayStatus.EXECUTED, DisplayStatus.SUPPLIED)


def group_status(statuses: npt.NDArray[np.int8]) -> DisplayStatus:
    """Return the status of a group: a failure, else the next operator, else the worst one.

    Parameters
    ----------
    statuses : ndarray of int
        Those of its operators, as numbers of `DisplayStatus`.
    """
    for status in (DisplayStatus.FAILED, DisplayStatus.CURRENT):
        if (statuses == status).any():
            return status
    return DisplayStatus(int(_WORST[_SEVERITY[statuses].max()]))


class OutlineModel(RowsModel):
    """Operators and groups in execution order; it has no rows while there are no groups.

    Parameters
    ----------
    session : StudioSession
    source : OperatorsModel
        The operators alone.
    """

    def __init__(
        self, session: StudioSession, source: OperatorsModel, parent: QObject | None = None
    ) -> None:
        super().__init__(HEADERS, RIGHT, parent)
        self._session, self._source = session, source
        self._rows: tuple[OutlineRow, ...] = ()
        self._firsts: list[int] = []
        self._parents: list[int] = []
        self._forget()
        source.modelAboutToBeReset.connect(self.beginResetModel)
        source.modelReset.connect(self._on_source_reset)
        source.dataChanged.connect(self._on_source_changed)
        source.headerDataChanged.connect(self.headerDataChanged)

    @property
    def rows(self) -> tuple[OutlineRow, ...]:
        """The rows, also those of a model that the source does not have yet."""
        return self._rows

    def show_rows(self, rows: Sequence[OutlineRow]) -> None:
        """Show other rows: another model's, or with other groups open."""
        self.beginResetModel()
        self._rows = tuple(rows)
        self._firsts = [row.first for row in self._rows]
        self._parents = _parents(self._rows)
        self.endResetModel()

    def row_of(self, operator: int) -> int:
        """Return the row of an operator, or of the closed group that it is in; -1 for none."""
        return bisect_right(self._firsts, operator) - 1

    def row_of_group(self, group: Group) -> int:
        """Return the row of a group; -1 for one that is not visible."""
        bounds = group.first, group.last
        found = (
            number
            for number, row in enumerate(self._rows)
            if row.group is not None and (row.first, row.last) == bounds
        )
        return next(found, -1)

    def parent_row(self, row: int) -> int:
        """Return the row of the open group around a row; -1 for none."""
        return self._parents[row]

    # What is known of groups

    def _forget(self) -> None:
        count = self._source.rowCount()
        self._statuses, self._seconds = np.zeros(count, np.int8), np.zeros(count)
        # Operators that may have changed since groups were asked for.
        self._stale: tuple[int, int] | None = (0, count - 1)

    def _refresh(self) -> None:
        """Read again what may have changed."""
        if self._stale is None:
            return
        first, last = self._stale
        self._stale = None
        session, current = self._session, self._session.current
        self._statuses[first : last + 1] = DisplayStatus.PENDING
        self._seconds[first : last + 1] = 0.0
        records = session.snapshot.records[first : last + 1]
        behind = first + len(records)
        self._statuses[first:behind] = recorded_statuses(records)
        self._seconds[first:behind] = [record.seconds for record in records]
        # Of most operators nothing else can be true.
        special = [record.index for record in records if record.overrides]
        graph = session.graph
        if graph is not None:
            waiting = [each.index for each in graph.unsupported if behind <= each.index <= last]
            self._statuses[waiting] = DisplayStatus.UNSUPPORTED
            supplied = (graph.operands.get(name) for name in session.supplied)
            makers = [each.producer for each in supplied if each is not None]
            special += [maker.index for maker in makers if maker is not None]
        if current is not None:
            special.append(current.index)
        for place in special:
            if first <= place <= last:
                name = self._source.operator_at(place).name
                self._statuses[place] = operator_status(session, name)

    def _part(self, group: Group) -> slice:
        self._refresh()
        return slice(group.first, group.last + 1)

    def _status(self, group: Group) -> DisplayStatus:
        return group_status(self._statuses[self._part(group)])

    def _executed(self, group: Group) -> int:
        """Return how many operators of a group have run."""
        statuses = self._statuses[self._part(group)]
        return sum(int(np.count_nonzero(statuses == ran)) for ran in _RAN)

    def _seconds_of(self, group: Group) -> float | None:
        if not self._executed(group):
            return None
        return float(self._seconds[self._part(group)].sum())

    def _spoken_for(self, group: Group) -> RuntimeOperator:
        """Return the selected operator where it is in the group, else its first one."""
        selected = self._source.row_of(self._session.selected)
        inside = group.first <= selected <= group.last
        return self._source.operator_at(selected if inside else group.first)

    def _is_nonfinite(self, group: Group) -> bool:
        return any(group.first <= n <= group.last for n in self._session.nonfinite)

    def _is_dimmed(self, group: Group) -> bool:
        marks = self._session.finding.marks
        return marks is not None and not np.any(marks[group.first : group.last + 1])

    def _mark(self, group: Group) -> DifferenceMark | None:
        """Return the worst difference of a group."""
        worst: DifferenceMark | None = None
        for mark in self._source.marks_between(group.first, group.last):
            if worst is None or mark.is_worse_than(worst):
                worst = mark
        return worst

    # Texts

    def _count_text(self, group: Group) -> str:
        executed = self._executed(group)
        if 0 < executed < group.size:
            return f"{executed} / {group.size}"
        return f"{group.size} op"

    def _display(self, row: OutlineRow, group: Group, column: int) -> str:
        match column:
            case OperatorColumn.DIFFERENCE:
                mark = self._mark(group)
                return mark.look.glyph if mark is not None else ""
            case OperatorColumn.TYPE:
                blocks = f" ×{len(group.children)}" if group.is_stack else ""
                return f"{row.name}{blocks}"
            case OperatorColumn.INDEX | OperatorColumn.OUTPUT:
                return self._count_text(group) if column == OperatorColumn.OUTPUT else ""
            case OperatorColumn.MS:
                return format_milliseconds(self._seconds_of(group))
            case OperatorColumn.VALUE:
                overlay = self._source.overlay
                return overlay.group_text(group.first, group.last) if overlay else ""
        return ""

    def _spoken(self, row: OutlineRow, group: Group, column: int) -> str:
        """Return what is read aloud, which is also the tool tip."""
        match column:
            case OperatorColumn.BREAKPOINT:
                return "breakpoint inside" if self._holds_breakpoint(group) else ""
            case OperatorColumn.STATE:
                return self._state_text(group)
            case OperatorColumn.DIFFERENCE:
                mark = self._mark(group)
                return f"worst: {mark.text}" if mark is not None else ""
            case OperatorColumn.TYPE | OperatorColumn.NAME:
                state = "open" if row.is_open else "closed"
                kind = f"{len(group.children)} equal blocks" if group.is_stack else "group"
                return f"{group.name}, {kind}, {state}"
            case OperatorColumn.INDEX:
                return f"{group.first} to {group.last}"
            case OperatorColumn.OUTPUT:
                size = format_count(group.size, "operator")
                return f"{size}, {self._executed(group)} run"
            case OperatorColumn.MS:
                seconds = self._seconds_of(group)
                return "" if seconds is None else f"{format_duration(seconds)} in all"
        return self._display(row, group, column)

    def _cells(self, row: OutlineRow) -> RowCells:
        group = row.group
        if group is None:
            return self._source.cells(row.first, row)
        return RowCells(
            texts=tuple(self._display(row, group, column) for column in OperatorColumn),
            status=self._status(group),
            is_dimmed=self._is_dimmed(group),
            is_nonfinite=self._is_nonfinite(group),
            has_breakpoint=self._holds_breakpoint(group),
            mark=self._mark(group),
            outline=row,
        )

    def _state_text(self, group: Group) -> str:
        status = self._status(group)
        text = STATUS_LOOKS[status].detail
        return f"{text}, {NONFINITE.detail}" if self._is_nonfinite(group) else text

    def _holds_breakpoint(self, group: Group) -> bool:
        places = map(self._source.row_of, self._session.breakpoints)
        return any(group.first <= place <= group.last for place in places)

    # Slots

    @Slot()
    def _on_source_reset(self) -> None:
        self._forget()
        self.endResetModel()

    @Slot(QModelIndex, QModelIndex)
    def _on_source_changed(self, top: Index, bottom: Index) -> None:
        first, last = top.row(), bottom.row()
        if top.column() < OperatorColumn.VALUE:
            known = self._stale or (first, last)
            self._stale = min(first, known[0]), max(last, known[1])
        if not self.count_rows():
            return
        row = self.row_of(first)
        changed = [(row, self.row_of(last))]
        while (row := self._parents[row]) >= 0:
            changed.append((row, row))
        for above, below in changed:
            self.dataChanged.emit(
                self.index(above, top.column()), self.index(below, bottom.column())
            )

    # Overrides of `RowsModel` and Qt

    @override
    def count_rows(self) -> int:
        # Views hear of another model one after the other.
        fits = bool(self._rows) and self._rows[-1].last + 1 == self._source.rowCount()
        return len(self._rows) if fits else 0

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], index.column()
        group = row.group
        match role:
            case OperatorRole.OUTLINE:
                return row
            case OperatorRole.CELLS:
                return self._cells(row)
        if group is None:
            return self._source.index(row.first, column).data(role)
        return self._of_group(row, group, column, role)

    def _of_group(self, row: OutlineRow, group: Group, column: int, role: int) -> object:
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return self._display(row, group, column)
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(row, group, column)
            case Qt.ItemDataRole.ToolTipRole:
                return tip_text(self._spoken(row, group, column)) or None
            case Qt.ItemDataRole.TextAlignmentRole:
                return self.alignment(column)
            case OperatorRole.OPERATOR:
                return self._spoken_for(group)
        return None


def _parents(rows: Sequence[OutlineRow]) -> list[int]:
    """Return for each row that of the group around it; -1 for none."""
    parents, around = [], [-1]
    for number, row in enumerate(rows):
        del around[row.depth + 1 :]
        parents.append(around[-1])
        around.append(number)
    return parents
