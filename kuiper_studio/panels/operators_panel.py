"""The operators panel: all operators in execution order, in groups, with a filter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QPoint,
    QSize,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.elided_label import WrappedLabel
from kuiper_studio.icons import icon, mark_as_search
from kuiper_studio.item_models import (
    LARGEST_FIRST,
    OperatorColumn,
    OperatorRole,
    OperatorsFilterModel,
    OperatorsModel,
    OutlineModel,
)
from kuiper_studio.menus import make_menu
from kuiper_studio.panels.operators_table import SAMPLED_ROWS, OperatorDelegate, OperatorTable
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.table import ROW_HEIGHT, Index
from kuiper_studio.session.overlaying import OverlayKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtGui import QKeyEvent, QShowEvent

    from engine.runtime import RuntimeOperator
    from kuiper_studio.layout.groups import Group, OutlineRow
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["OperatorsPanel"]

_COMFORTABLE_ROW_HEIGHT: Final = 28
# How the accessible name of the list tells its order.
_ORDERS: Final = {
    OperatorColumn.BREAKPOINT: "breakpoint",
    OperatorColumn.STATE: "state",
    OperatorColumn.DIFFERENCE: "difference from the reference",
    OperatorColumn.INDEX: "index",
    OperatorColumn.FAMILY: "family",
    OperatorColumn.TYPE: "type",
    OperatorColumn.NAME: "name",
    OperatorColumn.OUTPUT: "size of the output",
    OperatorColumn.MS: "time",
    OperatorColumn.VALUE: "value",
}
# The list has their values in other columns.
_WITHOUT_COLUMN: Final = frozenset({OverlayKind.FAMILY, OverlayKind.TIME})
_NOT_COPIED: Final = frozenset({OperatorColumn.BREAKPOINT, OperatorColumn.FAMILY})


class OperatorsPanel(Panel):
    """All operators in execution order, with rows of groups where there are any.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    menu_requested : (str, QPoint)
        A context menu is wanted for the operator of that name, at a global position; ``""``
        for the group that is selected.
    group_chosen : Group or None
        The user selects a group; None for an operator instead of one.
    group_opened, group_closed : Group
        The user opens or closes a group.
    order_chosen : str
        The list has another order; see `order`.
    """

    menu_requested = Signal(object, QPoint)
    group_chosen = Signal(object)
    group_opened = Signal(object)
    group_closed = Signal(object)
    order_chosen = Signal(str)

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("operators", "Operators", session, theme, parent)
        self.model = OperatorsModel(session, self)
        self.outline = OutlineModel(session, self.model, self)
        self.rows = OperatorsFilterModel(self.model, self, self.outline)
        self._picked: Group | None = None
        self._follows = False  # while a row is selected because of what is selected elsewhere
        self.filter_box = self._make_filter_box()
        self._breakpoints_only = self._make_toggle(
            "breakpoint-off", "state:breakpoint", "Only operators with a breakpoint"
        )
        self._problems_only = self._make_toggle(
            "warning",
            "state:problem",
            "Only operators that failed, are blocked, cannot run, or gave NaN or Inf",
        )
        self._hint = WrappedLabel("error")
        self._hint.setContentsMargins(10, 0, 10, 6)
        self._hint.hide()
        self.table = self._make_table()
        # Ours, not the menu's: an action that a menu makes may go before the panel does.
        self._unsorted = QAction("In execution order", self, enabled=False)
        self._unsorted.triggered.connect(self._sort_as_executed)
        self._more = self._make_more_action()
        strip = QHBoxLayout()
        strip.setContentsMargins(8, 6, 4, 6)
        strip.setSpacing(2)
        strip.addWidget(self.filter_box, 1)
        strip.addSpacing(4)
        strip.addWidget(self._breakpoints_only)
        strip.addWidget(self._problems_only)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(strip)
        column.addWidget(self._hint)
        column.addWidget(self.table, 1)
        self._connect()

    def focus_filter(self) -> None:
        """Focus the filter and select its text."""
        self.filter_box.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.filter_box.selectAll()

    def set_filter(self, text: str) -> None:
        """Set the filter."""
        self.filter_box.setText(text)

    def show_groups(self, rows: tuple[OutlineRow, ...], picked: Group | None) -> None:
        """Show rows of groups.

        Parameters
        ----------
        rows : tuple of OutlineRow
            Empty for none. They are seen in execution order and without a filter.
        picked : Group or None
            The group that is selected instead of an operator.
        """
        self._picked = picked
        if rows is not self.outline.rows:
            self.outline.show_rows(rows)
            self.table.set_depth(max((row.depth for row in rows), default=0))
            self.rows.choose_source()
        self._select_row()

    def set_comfortable(self, on: bool) -> None:  # noqa: FBT001 - a slot of toggled
        """Switch between high and compact rows."""
        self.table.set_row_height(_COMFORTABLE_ROW_HEIGHT if on else ROW_HEIGHT)

    # Building

    def _make_filter_box(self) -> QLineEdit:
        box = QLineEdit()
        box.setObjectName("operatorsFilter")
        box.setPlaceholderText("Filter, e.g. type:Conv ms>1")
        box.setAccessibleName("Filter operators")
        box.setToolTip(
            "All words must match, e.g. relu  type:Conv  name:layer1  family:pool  #10-20\n"
            "ms>1  shape:64x56x56  state:failed  kernel:ncnn; -word negates a word\n"
            "after a comparison: diff>1e-4  state:born  state:inherited"
        )
        mark_as_search(box, self.theme)
        return box

    def _make_toggle(self, icon_name: str, word: str, tip: str) -> QToolButton:
        button = QToolButton()
        button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        button.setIcon(icon(icon_name, self.theme, "text"))
        button.setIconSize(QSize(15, 15))
        button.setCheckable(True)
        button.setToolTip(tip)
        button.setAccessibleName(tip)
        button.setProperty("word", word)
        button.toggled.connect(self._apply_filter)
        return button

    def _make_table(self) -> OperatorTable:
        table = OperatorTable(self.theme)  # the layout gives it its turn behind the filter
        table.setObjectName("operatorsTable")
        table.setAccessibleName("Operators in execution order")
        table.setModel(self.rows)
        table.setItemDelegate(OperatorDelegate(self.theme, table))
        header = table.horizontalHeader()
        header.setSectionsClickable(True)
        header.sectionClicked.connect(self._on_header_clicked)
        return table

    def _make_more_action(self) -> QAction:
        action = QAction(icon("more", self.theme), "More", self)
        action.setToolTip("More about this list")
        menu = make_menu(self)
        comfortable = menu.addAction("Comfortable rows")
        comfortable.setCheckable(True)
        comfortable.toggled.connect(self.set_comfortable)
        menu.addAction(self._unsorted)
        menu.addAction("Copy table", self._copy_table)
        action.setMenu(menu)
        return action

    def _connect(self) -> None:
        self.filter_box.textChanged.connect(self._apply_filter)
        self.filter_box.returnPressed.connect(self._enter_table)
        self.rows.hint_changed.connect(self._on_hint_changed)
        self.rows.modelReset.connect(self._select_row)
        for changed in (self.rows.rowsInserted, self.rows.rowsRemoved):
            changed.connect(self._show_counts)
        self.table.selectionModel().currentRowChanged.connect(self._on_row_changed)
        self.table.activated.connect(self._on_activated)
        self.table.clicked.connect(self._on_clicked)
        self.table.menu_requested.connect(self._on_menu_requested)
        self.table.twisty_clicked.connect(self._toggle)
        self.table.sideways.connect(self._on_sideways)
        self.table.left_at_top.connect(self.focus_filter)
        self.session.graph_changed.connect(self._on_graph_changed)
        self.session.position_changed.connect(self._on_position_changed)
        self.session.selection_changed.connect(self._select_row)
        self.session.comparing.changed.connect(self._on_compared)
        self.session.overlaying.changed.connect(self._on_overlay_changed)
        self.model.values_changed.connect(self._on_values_changed)
        for marked in (self.session.finding.changed, self.session.bookmarks.changed):
            marked.connect(self.table.viewport().update)
        self._on_compared()
        self._on_overlay_changed()
        self._on_graph_changed()

    # Slots of session signals

    @Slot()
    def _on_graph_changed(self) -> None:
        graph = self.session.graph
        operators = graph.operators if graph is not None else ()
        column = OperatorColumn.OUTPUT
        rows = range(min(SAMPLED_ROWS, len(operators)))
        longest = max((len(self.model.index(row, column).data()) for row in rows), default=0)
        self.table.fit_columns(operators, longest)
        empty = "No operator matches the filter." if operators else "No model is open."
        self.table.set_empty_text(empty)
        self.rows.choose_source()
        self._on_position_changed()
        self._select_row()

    @Slot()
    def _on_position_changed(self) -> None:
        self._show_counts()

    @Slot()
    def _show_counts(self) -> None:
        """Say how many operators have run and, where a filter is on, how many it leaves."""
        count, listed = self.model.rowCount(), self.rows.rowCount()
        ran = self.session.position - self.session.skipped
        text = f"{ran} / {count}" if count else ""
        is_whole = self.rows.is_outlined or listed == count
        self.set_suffix(text if is_whole else f"{text} · {listed} of {count} listed")

    @Slot()
    def _select_row(self) -> None:
        """Select the row of the selected operator or group."""
        index = self._row_to_select()
        if not index.isValid():
            self.table.clearSelection()
            return
        if index.row() != self.table.currentIndex().row() or not self.table.selectedIndexes():
            self._follows = True
            self.table.select_row(index)
            self._follows = False
        self.table.bring_into_view(index)

    def _row_to_select(self) -> QModelIndex:
        """Return the row of the selected operator or group; of a closed one around it."""
        place, column = self.model.row_of(self.session.selected), OperatorColumn.TYPE
        if not self.rows.is_outlined:
            return self.rows.index_of(place, column)
        outline, picked = self.outline, self._picked
        row = outline.row_of(place) if picked is None else outline.row_of_group(picked)
        return self.rows.mapFromSource(outline.index(row, column))

    @Slot()
    def _on_compared(self) -> None:
        self.table.show_differences(shown=self.session.comparing.comparison is not None)
        self._show_counts()

    @Slot()
    def _on_overlay_changed(self) -> None:
        shown = self.session.overlaying.kind not in _WITHOUT_COLUMN
        self.table.show_values(shown=shown)
        if not shown and self.rows.order[0] == OperatorColumn.VALUE:
            self._sort_as_executed()

    @Slot()
    def _on_values_changed(self) -> None:
        self.table.viewport().update()

    # Slots of widgets

    @Slot()
    def _apply_filter(self) -> None:
        words = [self.filter_box.text()]
        toggles = (self._breakpoints_only, self._problems_only)
        words += [button.property("word") for button in toggles if button.isChecked()]
        self.rows.set_text(" ".join(word for word in words if word))
        self._show_counts()
        self._select_row()

    @Slot(str)
    def _on_hint_changed(self, hint: str) -> None:
        self._hint.setText(hint)
        self._hint.setVisible(bool(hint))
        self.filter_box.setProperty("invalid", bool(hint))
        self.filter_box.style().unpolish(self.filter_box)
        self.filter_box.style().polish(self.filter_box)

    @Slot()
    def _enter_table(self) -> None:
        if self.rows.rowCount():
            if not self.table.currentIndex().isValid():
                self.table.setCurrentIndex(self.rows.index(0, OperatorColumn.TYPE))
            self.table.setFocus(Qt.FocusReason.TabFocusReason)

    @Slot(QModelIndex, QModelIndex)
    def _on_row_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if not current.isValid() or self._follows:
            return
        was_group, self._picked = self._picked is not None, _group_of(current)
        if self._picked is not None:
            self.group_chosen.emit(self._picked)
            return
        self.session.select(current.data(OperatorRole.OPERATOR).name)
        if was_group:
            self.group_chosen.emit(None)

    @Slot(QModelIndex)
    def _on_clicked(self, index: QModelIndex) -> None:
        if index.column() == OperatorColumn.BREAKPOINT:
            self._toggle_breakpoint(index)

    def _toggle_breakpoint(self, index: QModelIndex) -> None:
        """Set or remove a breakpoint; of a group, before its first operator, or all in it."""
        group, session = _group_of(index), self.session
        if group is None:
            session.toggle_breakpoint(index.data(OperatorRole.OPERATOR).name)
            return
        places = range(group.first, group.last + 1)
        names = [self.model.operator_at(place).name for place in places]
        for name in [name for name in names if name in session.breakpoints] or names[:1]:
            session.toggle_breakpoint(name)

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        if _group_of(index) is not None:
            self._toggle(index)
            return
        self._show_output(index.data(OperatorRole.OPERATOR))

    @Slot(QModelIndex)
    def _toggle(self, index: QModelIndex) -> None:
        """Open a closed group, or close an open one."""
        row: OutlineRow = index.data(OperatorRole.OUTLINE)
        (self.group_closed if row.is_open else self.group_opened).emit(row.group)

    @Slot(QModelIndex, bool)
    def _on_sideways(self, index: QModelIndex, right: bool) -> None:  # noqa: FBT001 - a slot
        """Open or close a group, or go into it or to the one around, as in any tree."""
        row: OutlineRow = index.data(OperatorRole.OUTLINE)
        place = self.rows.mapToSource(index).row()
        if right and row.is_open:
            self._go_to_row(place + 1)
        elif right and row.group is not None:
            self.group_opened.emit(row.group)
        elif not right and row.is_open:
            self.group_closed.emit(row.group)
        elif not right and self.outline.parent_row(place) >= 0:
            self._go_to_row(self.outline.parent_row(place))
        elif not right and row.group is not None:
            self.group_closed.emit(row.group)  # one of equal blocks: they are one row again

    def _go_to_row(self, row: int) -> None:
        index = self.outline.index(row, OperatorColumn.TYPE)
        self.table.setCurrentIndex(self.rows.mapFromSource(index))

    def _show_output(self, operator: RuntimeOperator) -> None:
        self.session.select(operator.name)
        if operator.outputs:
            self.session.show_operand(operator.outputs[0].name)

    @Slot(QModelIndex, QPoint)
    def _on_menu_requested(self, index: QModelIndex, point: QPoint) -> None:
        is_group = _group_of(index) is not None
        self.menu_requested.emit(
            "" if is_group else index.data(OperatorRole.OPERATOR).name, point
        )

    @property
    def selected_operators(self) -> tuple[RuntimeOperator, ...]:
        """The operators of all selected rows, in execution order.

        A group that the user has selected stands for all of its operators, one that is only
        around the selected operator for that.
        """
        rows = self.table.selectionModel().selectedRows()
        places: set[int] = set()
        for row in rows:
            group = _group_of(row)
            if group is None or (self._picked is None and len(rows) == 1):
                places.add(row.data(OperatorRole.OPERATOR).index)
            else:
                places.update(range(group.first, group.last + 1))
        return tuple(self.model.operator_at(place) for place in sorted(places))

    def _selected(self) -> RuntimeOperator | None:
        graph, name = self.session.graph, self.session.selected
        return graph.operator(name) if graph is not None and name else None

    def show_output(self) -> None:
        """Show the selected operator's first output in the tensor view."""
        operator = self._selected()
        if operator is not None:
            self._show_output(operator)

    @property
    def _copied(self) -> tuple[OperatorColumn, ...]:
        hidden = self.table.isColumnHidden
        return tuple(c for c in OperatorColumn if c not in _NOT_COPIED and not hidden(c))

    def copy_line(self) -> None:
        """Copy the selected operator's line of the table."""
        operator = self._selected()
        if operator is not None:
            QGuiApplication.clipboard().setText(_line(self.model, operator.index, self._copied))

    def copy_name(self) -> None:
        """Copy the selected operator's name."""
        operator = self._selected()
        if operator is not None:
            QGuiApplication.clipboard().setText(operator.name)

    def copy_type(self) -> None:
        """Copy the selected operator's type."""
        operator = self._selected()
        if operator is not None:
            QGuiApplication.clipboard().setText(operator.type)

    @Slot(int)
    def _on_header_clicked(self, column: int) -> None:
        """Sort by a column, then the other way round, then in execution order again."""
        sorting, falls = self.rows.order
        first = column in LARGEST_FIRST
        if column == OperatorColumn.INDEX and sorting not in (-1, column):
            self._sort_as_executed()
        elif column != sorting:
            self.sort_by(column, falls=first)
        elif falls == first and column != OperatorColumn.INDEX:
            self.sort_by(column, falls=not first)
        else:
            self._sort_as_executed()

    def toggle_sort_by_time(self) -> None:
        """List the slowest operators first, or all in execution order again."""
        is_by_time = self.rows.order[0] == OperatorColumn.MS
        self.sort_by(-1 if is_by_time else OperatorColumn.MS, falls=not is_by_time)

    @Slot()
    def _sort_as_executed(self) -> None:
        self.sort_by(-1)

    def sort_by(self, column: int, *, falls: bool = False) -> None:
        """Sort by a column; -1 for execution order."""
        self.rows.sort_by(column, falls=falls)
        self._unsorted.setEnabled(column >= 0)
        order = f"by {_ORDERS[OperatorColumn(column)]}" if column >= 0 else "in execution order"
        self.table.setAccessibleName(f"Operators {order}")
        self._select_row()
        if column >= 0:
            self.table.scrollToTop()
        self.order_chosen.emit(self.order)

    @property
    def order(self) -> str:
        """The order as text: ``MS falling``, ``NAME``, or ``""`` for execution order."""
        column, falls = self.rows.order
        if column < 0:
            return ""
        return f"{OperatorColumn(column).name}{' falling' if falls else ''}"

    def restore_order(self, text: str) -> None:
        """Sort as `order` said in an earlier run."""
        name, _, way = text.partition(" ")
        if name in OperatorColumn.__members__:
            self.sort_by(OperatorColumn[name], falls=way == "falling")

    def filter_by_type(self) -> None:
        """List the operators of the selected operator's type."""
        operator = self._selected()
        if operator is not None:
            self.set_filter(f"type:{operator.type}")

    @Slot()
    def _copy_table(self) -> None:
        columns = self._copied
        lines = ["\t".join(c.name.lower() for c in columns)]
        # Of a list with groups the operators, whether or not they are open.
        rows = self.model if self.rows.is_outlined else self.rows
        lines += [_line(rows, row, columns) for row in range(rows.rowCount())]
        QGuiApplication.clipboard().setText("\n".join(lines))

    @Slot()
    def _scroll_to_selected(self) -> None:
        self.table.scrollToTop()
        self._select_row()

    @override
    def keyboard_target(self) -> QWidget:
        return self.table

    # Overrides of Qt methods

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        # The height, which decides what is in view, is known only now.
        QTimer.singleShot(0, self, self._scroll_to_selected)

    @override
    def title_actions(self) -> tuple[QAction, ...]:
        return (self._more,)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.filter_box.text():
            self.filter_box.clear()
            return
        if event.key() == Qt.Key.Key_Down and self.filter_box.hasFocus():
            self._enter_table()
            return
        super().keyPressEvent(event)

    @override
    def sizeHint(self) -> QSize:
        return QSize(346, 500)


def _line(model: QAbstractItemModel, row: int, columns: Iterable[OperatorColumn]) -> str:
    """A row as text, its cells apart by tabs."""
    role = Qt.ItemDataRole.AccessibleTextRole
    return "\t".join(str(model.index(row, c).data(role)) for c in columns)


def _group_of(index: Index) -> Group | None:
    """Return the group of a row; None for an operator."""
    row: OutlineRow | None = index.data(OperatorRole.OUTLINE)
    return None if row is None else row.group
