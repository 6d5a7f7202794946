"""Item model of the operators in execution order, and its filter."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from PySide6.QtCore import (
    QObject,
    Qt,
    Signal,
    Slot,
)
from typing_extensions import override

from engine.text import format_duration, format_milliseconds, format_shape
from engine.values import ArrayMetadata
from kuiper_studio.families import family_of
from kuiper_studio.item_models.difference_marks import (
    DifferenceMark,
    DifferenceMarks,
    operator_marks,
)
from kuiper_studio.item_models.overlays import NO_LEVEL, Overlay, OverlayModel
from kuiper_studio.item_models.rows_model import Index, RowsModel
from kuiper_studio.item_models.statuses import (
    NONFINITE,
    PROBLEMS,
    STATUS_LOOKS,
    DisplayStatus,
    operator_status,
)
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from engine.runtime import RuntimeOperator
    from engine.shapes import ExportedShape
    from kuiper_studio.families import Family
    from kuiper_studio.item_models.operator_filter import OperatorFacts
    from kuiper_studio.layout.groups import OutlineRow
    from kuiper_studio.session import Record, StudioSession

__all__ = [
    "LARGEST_FIRST",
    "OperatorColumn",
    "OperatorRole",
    "OperatorsModel",
    "RowCells",
    "output_shapes",
]


class OperatorColumn(IntEnum):
    """Columns of the table."""

    BREAKPOINT = 0
    STATE = 1
    DIFFERENCE = 2  # of a comparison
    INDEX = 3
    FAMILY = 4
    TYPE = 5
    NAME = 6
    OUTPUT = 7
    MS = 8
    VALUE = 9  # of what operators are coloured by


class OperatorRole(IntEnum):
    """Roles of a row beyond its texts, the same in every column."""

    OPERATOR = Qt.ItemDataRole.UserRole + 1  # RuntimeOperator
    OUTLINE = Qt.ItemDataRole.UserRole + 2  # OutlineRow; None in a list without groups
    CELLS = Qt.ItemDataRole.UserRole + 3  # RowCells


@dataclass(frozen=True, slots=True)
class RowCells:
    """All that the cells of a row show, asked for at once: a delegate paints many of them.

    Attributes
    ----------
    texts : tuple of str
        By column.
    is_dimmed : bool
        Whether it is none of those that the user looks for.
    has_breakpoint : bool
        For a group, whether there is one inside.
    mark : DifferenceMark or None
        None where nothing is compared; for a group the worst one.
    family : Family or None
        None for a group.
    outline : OutlineRow or None
        None in a list without groups.
    """

    texts: tuple[str, ...]
    status: DisplayStatus
    is_dimmed: bool
    is_nonfinite: bool
    has_breakpoint: bool
    mark: DifferenceMark | None
    family: Family | None = None
    is_random: bool = False
    is_bookmarked: bool = False
    outline: OutlineRow | None = None


_TITLES: Final = {
    OperatorColumn.BREAKPOINT: ("", "Breakpoint"),
    OperatorColumn.STATE: ("", "State"),
    OperatorColumn.DIFFERENCE: ("", "Equal to the reference (=), or different (≠)"),
    OperatorColumn.INDEX: ("#", "Index in execution order"),
    OperatorColumn.FAMILY: ("", "Family"),
    OperatorColumn.TYPE: ("Type", "Operator type"),
    OperatorColumn.NAME: ("Name", "Operator name"),
    OperatorColumn.OUTPUT: ("Output", "Shape of the first output; a batch of 1 is left out"),
    OperatorColumn.MS: ("ms", "Measured milliseconds"),
    OperatorColumn.VALUE: ("Value", "What operators are coloured by"),
}
HEADERS: Final = tuple(_TITLES[column] for column in OperatorColumn)
"""Title and tool tip of each column."""
RIGHT: Final = frozenset(
    {OperatorColumn.INDEX, OperatorColumn.OUTPUT, OperatorColumn.MS, OperatorColumn.VALUE}
)
LARGEST_FIRST: Final = frozenset(
    {
        OperatorColumn.BREAKPOINT,
        OperatorColumn.DIFFERENCE,
        OperatorColumn.INDEX,
        OperatorColumn.OUTPUT,
        OperatorColumn.MS,
        OperatorColumn.VALUE,
    }
)
"""Columns that a first click sorts from the largest to the smallest."""
_DIGITS: Final = re.compile(r"(\d{1,18})")


def output_shapes(
    session: StudioSession, operator: RuntimeOperator
) -> tuple[ExportedShape | None, ...]:
    """Return the computed shape of each output, else the exported one, else None."""
    computed = (session.tensors.metadata(operand.name) for operand in operator.outputs)
    return tuple(
        facts.shape if isinstance(facts, ArrayMetadata) else operand.shape
        for operand, facts in zip(operator.outputs, computed, strict=True)
    )


_SortKey: TypeAlias = tuple[object, ...] | None


def _known(number: float | None) -> _SortKey:
    return None if number is None else (number,)


class _RowFacts:
    """Properties of one operator for filters, computed on demand."""

    __slots__ = ("_mark", "_operator", "_session", "index", "name", "type")

    def __init__(
        self, session: StudioSession, operator: RuntimeOperator, mark: DifferenceMark | None
    ) -> None:
        self._session, self._operator, self._mark = session, operator, mark
        self.index, self.type, self.name = operator.index, operator.type, operator.name

    @property
    def family(self) -> str:
        family = family_of(self.type)
        return f"{family.token} {family.label}"

    @property
    def states(self) -> frozenset[str]:
        status = operator_status(self._session, self.name)
        words = {STATUS_LOOKS[status].word}
        if self.name in self._session.breakpoints:
            words.add("breakpoint")
        if self._session.holds_nonfinite(self.name):
            words |= {NONFINITE.word, "problem"}
        if status in PROBLEMS:
            words.add("problem")
        if self._session.random_text(self.name):
            words.add("random")
        if self._mark is not None:
            words.add(self._mark.kind.value.lower())
        return frozenset(words)

    @property
    def ms(self) -> float | None:
        record = self._session.record(self.name)
        return record.seconds * 1e3 if record is not None else None

    @property
    def diff(self) -> float | None:
        return self._mark.relative if self._mark is not None else None

    @property
    def kernel(self) -> str:
        record = self._session.record(self.name)
        return record.kernel if record is not None else ""

    @property
    def shapes(self) -> tuple[tuple[int | str | None, ...], ...]:
        shapes = output_shapes(self._session, self._operator)
        return tuple(tuple(shape) for shape in shapes if shape is not None)


class OperatorsModel(RowsModel):
    """Operators in execution order, following the session.

    Parameters
    ----------
    session : StudioSession

    Signals
    -------
    values_changed
        What operators are coloured by has changed, and the column of these values with it.
        `dataChanged` would have a filter ask every row again, but none is by them.
    """

    values_changed = Signal()

    def __init__(self, session: StudioSession, parent: QObject | None = None) -> None:
        super().__init__(HEADERS, RIGHT, parent)
        self._session = session
        self._operators: tuple[RuntimeOperator, ...] = ()
        self._current_row = -1
        self._is_overlaid = False
        self._breakpoints: frozenset[str] = frozenset()
        self._marks = DifferenceMarks[str]()
        self._nonfinite: frozenset[int] = frozenset()  # as far as all values were measured
        self._overlays = OverlayModel(session)
        self._coloured_by: tuple[object, object] = (None, None)  # a run and a comparison
        self._sort_keys = self._sort_key_table()
        session.graph_changed.connect(self._on_graph_changed)
        session.stepped.connect(self._on_stepped)
        session.stepped_back.connect(self._on_stepped_back)
        session.position_changed.connect(self._on_position_changed)
        session.values_reset.connect(self._on_values_reset)
        session.supplies_changed.connect(self._on_values_reset)
        session.seed_changed.connect(self._on_values_reset)
        session.breakpoints_changed.connect(self._on_breakpoints_changed)
        session.tensors.recalled.connect(self._on_recalled)
        session.comparing.changed.connect(self._on_compared)
        session.overlaying.changed.connect(self._on_overlay_changed)
        session.measuring.changed.connect(self._on_overlay_changed)
        session.settled.connect(self._on_settled)
        session.measuring.changed.connect(self._on_measured)
        self._on_graph_changed()

    def row_of(self, name: str) -> int:
        """Return the row of an operator; -1 for an unknown name."""
        graph = self._session.graph
        if graph is None or not name:
            return -1
        return graph.operator(name).index

    def operator_at(self, row: int) -> RuntimeOperator:
        """Return the operator of a row."""
        return self._operators[row]

    def marks_between(self, first: int, last: int) -> Iterator[DifferenceMark]:
        """Iterate over the marks of a comparison on some rows, both ends included."""
        for operator in self._operators[first : last + 1] if self._marks else ():
            mark = self._marks.get(operator.name)
            if mark is not None:
                yield mark

    @property
    def overlay(self) -> Overlay | None:
        """What operators are coloured by; None where it is their family."""
        return self._overlays.shown

    def sort_key(self, row: int, column: int) -> tuple[object, ...] | None:
        """Return by what a column sorts a row; None where it has nothing there."""
        find = self._sort_keys.get(column)
        return find(self._operators[row]) if find is not None else (row,)

    def _sort_key_table(self) -> dict[int, Callable[[RuntimeOperator], _SortKey]]:
        session = self._session
        return {
            OperatorColumn.BREAKPOINT: (
                lambda operator: (True,) if operator.name in self._breakpoints else None
            ),
            OperatorColumn.STATE: lambda o: (int(operator_status(session, o.name)),),
            OperatorColumn.DIFFERENCE: lambda o: _known(
                mark.relative if (mark := self._marks.get(o.name)) is not None else None
            ),
            OperatorColumn.FAMILY: lambda operator: (family_of(operator.type).label,),
            OperatorColumn.TYPE: lambda operator: _natural(operator.type),
            OperatorColumn.NAME: lambda operator: _natural(operator.name),
            OperatorColumn.OUTPUT: self._extent,
            OperatorColumn.MS: lambda o: _known(
                record.seconds if (record := session.record(o.name)) is not None else None
            ),
            OperatorColumn.VALUE: self._value,
        }

    def _extent(self, operator: RuntimeOperator) -> _SortKey:
        """Number of elements of the first output, as far as its dimensions are known."""
        shapes = output_shapes(self._session, operator)
        return _known(_elements_of(shapes[0])) if shapes and shapes[0] is not None else None

    def _value(self, operator: RuntimeOperator) -> _SortKey:
        """What an operator is coloured by."""
        overlay, index = self.overlay, operator.index
        has_value = overlay is not None and overlay.levels[index] != NO_LEVEL
        return (float(overlay.values[index]),) if overlay is not None and has_value else None

    def facts(self, row: int) -> OperatorFacts:
        """Return the properties of a row for filters."""
        operator = self._operators[row]
        return _RowFacts(self._session, operator, self._marks.get(operator.name))

    # Slots

    @Slot()
    def _on_graph_changed(self) -> None:
        self.beginResetModel()
        self._overlays = OverlayModel(self._session)
        graph = self._session.graph
        self._operators = graph.operators if graph is not None else ()
        self._current_row = self._find_current()
        self._breakpoints = self._session.breakpoints
        self._marks = operator_marks(self._session)
        self.endResetModel()

    @Slot(object)
    def _on_stepped(self, records: tuple[Record, ...]) -> None:
        if records:
            self._announce(records[0].index, records[-1].index)

    @Slot(object)
    def _on_stepped_back(self, name: str) -> None:
        row = self.row_of(name)
        self._announce(row, row)

    @Slot()
    def _on_position_changed(self) -> None:
        row = self._find_current()
        if row != self._current_row:
            before, self._current_row = self._current_row, row
            for changed in (before, row):
                self._announce(changed, changed)

    @Slot()
    def _on_values_reset(self) -> None:
        self._announce(0, len(self._operators) - 1)

    @Slot()
    def _on_compared(self) -> None:
        self._marks = operator_marks(self._session)
        self._announce(0, len(self._operators) - 1)

    @Slot()
    def _on_settled(self) -> None:
        """Colour anew what ran or was compared; another selection changes no colour."""
        session, before = self._session, self._coloured_by
        self._coloured_by = session.snapshot.records, session.comparing.comparison
        if any(now is not then for now, then in zip(self._coloured_by, before, strict=True)):
            self._on_overlay_changed()

    @Slot()
    def _on_overlay_changed(self) -> None:
        was_on = self._is_overlaid
        self._is_overlaid = self._session.overlaying.is_on
        if was_on or self._is_overlaid:
            self._overlays.forget()
            section = OperatorColumn.VALUE
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, section, section)
            self.values_changed.emit()

    @Slot()
    def _on_measured(self) -> None:
        """Mark operators whose values have turned out to have NaN or infinities."""
        found = self._session.measuring.nonfinite
        changed, self._nonfinite = found ^ self._nonfinite, found
        if changed and self._operators:
            first, last = min(changed), max(changed)
            section = OperatorColumn.STATE
            self.dataChanged.emit(self.index(first, section), self.index(last, section))

    @Slot(object)
    def _on_recalled(self, operand: str) -> None:
        graph = self._session.graph
        if graph is not None and self._session.tensors.is_nonfinite(operand):
            producer = graph.operand(operand).producer
            if producer is not None:
                self._announce(producer.index, producer.index)

    @Slot()
    def _on_breakpoints_changed(self) -> None:
        changed = self._breakpoints ^ self._session.breakpoints
        self._breakpoints = self._session.breakpoints
        for name in changed:
            row = self.row_of(name)
            self._announce(row, row)

    def _find_current(self) -> int:
        current = self._session.current
        return current.index if current is not None else -1

    def _announce(self, first: int, last: int) -> None:
        if 0 <= first <= last < len(self._operators):
            self.dataChanged.emit(
                self.index(first, 0), self.index(last, self.columnCount() - 1)
            )

    def cells(self, row: int, outline: OutlineRow | None = None) -> RowCells:
        """Return all that the cells of a row show."""
        operator, session = self._operators[row], self._session
        return RowCells(
            texts=tuple(self._display(operator, column) for column in OperatorColumn),
            status=operator_status(session, operator.name),
            is_dimmed=self._is_dimmed(operator),
            is_nonfinite=session.holds_nonfinite(operator.name),
            has_breakpoint=operator.name in self._breakpoints,
            mark=self._marks.get(operator.name),
            family=family_of(operator.type),
            is_random=bool(session.random_text(operator.name)),
            is_bookmarked=operator.name in session.bookmarks,
            outline=outline,
        )

    # Texts of rows

    def _display(self, operator: RuntimeOperator, column: int) -> str:
        match column:
            case OperatorColumn.DIFFERENCE:
                mark = self._marks.get(operator.name)
                return mark.look.glyph if mark is not None else ""
            case OperatorColumn.INDEX:
                return str(operator.index)
            case OperatorColumn.TYPE:
                return operator.type
            case OperatorColumn.NAME:
                return operator.name
            case OperatorColumn.OUTPUT:
                shapes = output_shapes(self._session, operator)
                return format_shape(shapes[0], drop_batch=True) if shapes else ""
            case OperatorColumn.MS:
                record = self._session.record(operator.name)
                return format_milliseconds(record.seconds if record is not None else None)
            case OperatorColumn.VALUE:
                overlay = self.overlay
                return overlay.box_text(operator.index) if overlay is not None else ""
            case _:
                return ""

    def _tool_tip(self, operator: RuntimeOperator, column: int) -> str:
        match column:
            case OperatorColumn.BREAKPOINT:
                stops = operator.name in self._breakpoints
                return "breakpoint: runs stop before it" if stops else ""
            case OperatorColumn.STATE | OperatorColumn.DIFFERENCE:
                return self._state_text(operator, column)
            case OperatorColumn.FAMILY:
                return family_of(operator.type).label
            case OperatorColumn.TYPE | OperatorColumn.NAME:
                random = self._session.random_text(operator.name)
                return "\n".join(filter(None, (self._display(operator, column), random)))
            case OperatorColumn.OUTPUT:
                return "\n".join(
                    f"{operand.name}: {format_shape(shape) or 'unknown shape'}"
                    for operand, shape in zip(
                        operator.outputs, output_shapes(self._session, operator), strict=True
                    )
                )
            case OperatorColumn.MS | OperatorColumn.VALUE:
                return self._number_text(operator, column)
            case _:
                return self._display(operator, column)

    def _number_text(self, operator: RuntimeOperator, column: int) -> str:
        """Return a time with its kernel, or what the operator is coloured by, in words."""
        overlay, record = self.overlay, self._session.record(operator.name)
        if column == OperatorColumn.VALUE:
            return f"{overlay.title}: {overlay.text(operator.index)}" if overlay else ""
        if record is None or not record.kernel:
            return ""
        return f"{format_duration(record.seconds)}, {record.kernel_text}"

    def _state_text(self, operator: RuntimeOperator, column: int) -> str:
        if column == OperatorColumn.STATE:
            return self._status_text(operator)
        mark = self._marks.get(operator.name)
        return mark.text if mark is not None else ""

    def _status_text(self, operator: RuntimeOperator) -> str:
        status = operator_status(self._session, operator.name)
        reason = self._session.why_not_run(operator.name)
        text = STATUS_LOOKS[status].text.lower()
        if reason and status in PROBLEMS:
            return f"{text}: {reason}"
        supplied = self._session.supplied_text(operator.name)
        detail = "" if status is DisplayStatus.SUPPLIED else STATUS_LOOKS[status].detail
        nonfinite = self._session.holds_nonfinite(operator.name)
        return ", ".join(filter(None, (detail, supplied, NONFINITE.detail * nonfinite)))

    def _accessible(self, operator: RuntimeOperator, column: int) -> str:
        match column:
            case OperatorColumn.BREAKPOINT:
                return "breakpoint" if operator.name in self._breakpoints else ""
            case OperatorColumn.STATE | OperatorColumn.DIFFERENCE | OperatorColumn.FAMILY:
                return self._tool_tip(operator, column)
            case OperatorColumn.NAME:
                return self._tool_tip(operator, column).replace("\n", ", ")
            case _:
                return self._display(operator, column)

    def _is_dimmed(self, operator: RuntimeOperator) -> bool:
        marks = self._session.finding.marks
        return marks is not None and not marks[operator.index]

    @override
    def count_rows(self) -> int:
        return len(self._operators)

    # Overrides of Qt methods

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        operator, column = self._operators[index.row()], index.column()
        match role:
            case OperatorRole.OPERATOR:
                return operator
            case OperatorRole.CELLS:
                return self.cells(index.row())
            case Qt.ItemDataRole.DisplayRole:
                return self._display(operator, column)
            case Qt.ItemDataRole.ToolTipRole:
                return tip_text(self._tool_tip(operator, column)) or None
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._accessible(operator, column)
            case Qt.ItemDataRole.TextAlignmentRole:
                return self.alignment(column)
        return None


@lru_cache(1024)  # of thousands of operators, most have one of a few shapes
def _elements_of(shape: ExportedShape) -> int:
    return math.prod(dim for dim in shape if isinstance(dim, int))


def _natural(text: str) -> tuple[object, ...]:
    """A key that sorts ``conv2`` before ``conv10``."""
    parts = _DIGITS.split(text.lower())
    return tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
