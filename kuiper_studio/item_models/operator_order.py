"""Item model of the operators that a filter leaves, in execution order or by a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QModelIndex, QSortFilterProxyModel, Qt, Signal, Slot
from typing_extensions import override

from kuiper_studio.item_models.operator_filter import (
    FilterError,
    OperatorFilter,
    parse_filter,
)
from kuiper_studio.item_models.operators import HEADERS, RIGHT, OperatorColumn, OperatorsModel
from kuiper_studio.item_models.rows_model import Index, RowsModel
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from PySide6.QtCore import QObject

__all__ = ["OperatorsFilterModel"]


class _SortedModel(RowsModel):
    """The operators by a column; it has no rows in execution order.

    Qt's own sorting asks the model of each comparison: with ten thousand operators, for half a
    second. Here each row has one key, made again when the row changes.

    Parameters
    ----------
    source : OperatorsModel
    """

    def __init__(self, source: OperatorsModel, parent: QObject | None = None) -> None:
        super().__init__(HEADERS, RIGHT, parent)
        self._source = source
        self._column, self._falls = -1, False
        self._keys: list[tuple[object, ...] | None] = []  # by row of the source
        self._rows: list[int] = []
        self._places: dict[int, int] = {}
        source.modelAboutToBeReset.connect(self.beginResetModel)
        source.modelReset.connect(self._on_source_reset)
        source.dataChanged.connect(self._on_source_changed)
        source.headerDataChanged.connect(self.headerDataChanged)
        source.values_changed.connect(self._on_values_changed)

    @property
    def order(self) -> tuple[int, bool]:
        """The column that sorts, -1 for none; and whether the largest come first."""
        return self._column, self._falls

    def row_at(self, place: int) -> int:
        """Return the row of the source at a place."""
        return self._rows[place]

    def place_of(self, row: int) -> int:
        """Return the place of a row of the source; -1 for none."""
        return self._places.get(row, -1)

    def sort_by(self, column: int, *, falls: bool) -> None:
        """Sort by a column; -1 for none."""
        self.beginResetModel()
        self._column, self._falls = column, falls
        self._find_keys()
        self.endResetModel()

    def _find_keys(self) -> None:
        count = self._source.rowCount() if self._column >= 0 else 0
        self._keys = [self._source.sort_key(row, self._column) for row in range(count)]
        self._arrange()

    def _arrange(self) -> None:
        """Sort by the keys, in execution order where they are the same; without one last."""
        keyed = [(key, row) for row, key in enumerate(self._keys) if key is not None]
        keyed.sort(key=lambda pair: pair[0], reverse=self._falls)
        self._rows = [row for _, row in keyed]
        self._rows += [row for row, key in enumerate(self._keys) if key is None]
        self._places = {row: place for place, row in enumerate(self._rows)}

    # Slots

    @Slot()
    def _on_source_reset(self) -> None:
        self._find_keys()
        self.endResetModel()

    @Slot(QModelIndex, QModelIndex)
    def _on_source_changed(self, top: Index, bottom: Index) -> None:
        if self._column < 0:
            return
        rows = range(top.row(), bottom.row() + 1)
        if top.column() <= self._column <= bottom.column():
            keys = [self._source.sort_key(row, self._column) for row in rows]
            if keys != self._keys[rows.start : rows.stop]:
                self._keys[rows.start : rows.stop] = keys
                self._move_rows()
                return
        places = [self._places[row] for row in rows]
        self.dataChanged.emit(
            self.index(min(places), top.column()), self.index(max(places), bottom.column())
        )

    @Slot()
    def _on_values_changed(self) -> None:
        if self._column == OperatorColumn.VALUE:
            keys = [self._source.sort_key(row, self._column) for row in range(len(self._keys))]
            if keys != self._keys:
                self._keys = keys
                self._move_rows()

    def _move_rows(self) -> None:
        """Sort again; what is selected stays selected."""
        self.layoutAboutToBeChanged.emit()
        known = self.persistentIndexList()
        moved = [(self._rows[index.row()], index.column()) for index in known]
        self._arrange()
        self.changePersistentIndexList(
            known, [self.index(self._places[row], column) for row, column in moved]
        )
        self.layoutChanged.emit()

    # Overrides of `RowsModel` and Qt

    @override
    def count_rows(self) -> int:
        return len(self._rows)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        return self._source.data(
            self._source.index(self._rows[index.row()], index.column()), role
        )


class OperatorsFilterModel(QSortFilterProxyModel):
    """Rows of an `OperatorsModel` that a filter accepts, in its order or by a column.

    Parameters
    ----------
    source : OperatorsModel
    outline : RowsModel, optional
        The same operators with rows of groups. It is shown instead where it has rows, in
        execution order and without a filter.

    Signals
    -------
    hint_changed : str
        The error in the filter's text; ``""`` for none.
    """

    hint_changed = Signal(str)

    def __init__(
        self,
        source: OperatorsModel,
        parent: QObject | None = None,
        outline: RowsModel | None = None,
    ) -> None:
        super().__init__(parent)
        self._source, self._outline = source, outline
        self._text = ""
        self._hint = ""
        self._filter = OperatorFilter()
        self._sorted = _SortedModel(source, self)
        self.setSourceModel(source)

    @property
    def text(self) -> str:
        """The filter as typed."""
        return self._text

    @property
    def hint(self) -> str:
        """The error in the filter; ``""`` for none."""
        return self._hint

    def set_text(self, text: str) -> None:
        """Set the filter; a text with an error leaves the last valid one in place."""
        self._text = text
        try:
            parsed = parse_filter(text)
        except FilterError as exc:
            self._set_hint(str(exc))
            self.choose_source()
            return
        self._set_hint("")
        self._filter = parsed
        if not self.choose_source():  # another source is filtered at once
            self.invalidate()

    @property
    def is_outlined(self) -> bool:
        """Whether the rows are those of the outline."""
        return self.sourceModel() is self._outline

    def choose_source(self) -> bool:
        """Show the sorted list where a column sorts, else the outline or the flat list.

        Returns whether that is another list than before.
        """
        plain = not self._text.strip()
        outline = self._outline
        wanted: RowsModel = self._source
        if self._sorted.order[0] >= 0:
            wanted = self._sorted
        elif plain and outline is not None and outline.rowCount() > 0:
            wanted = outline
        if self.sourceModel() is wanted:
            return False
        self.setSourceModel(wanted)
        return True

    @property
    def order(self) -> tuple[int, bool]:
        """The column that sorts, -1 for execution order; and whether the largest come first."""
        return self._sorted.order

    def sort_by(self, column: int, *, falls: bool = False) -> None:
        """Sort by a column, also as its values come; -1 for the source's order again.

        Rows that have nothing in the column come last.
        """
        before = self._sorted.order[0]
        self._sorted.sort_by(column, falls=falls)
        self.choose_source()
        for section in {before, column} - {-1}:
            self.headerDataChanged.emit(Qt.Orientation.Horizontal, section, section)

    def index_of(self, row: int, column: int) -> QModelIndex:
        """Return where a row of the flat list in execution order is; invalid for nowhere."""
        source: RowsModel = self._source
        if self.sourceModel() is self._sorted:
            source, row = self._sorted, self._sorted.place_of(row)
        return self.mapFromSource(source.index(row, column))

    def _set_hint(self, hint: str) -> None:
        if hint != self._hint:
            self._hint = hint
            self.hint_changed.emit(hint)

    # Overrides of Qt methods

    @override
    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        # A direct call instead of a role: a model may have fifty thousand rows.
        if not self._filter.tests:
            return True
        is_sorted = self.sourceModel() is self._sorted
        row = self._sorted.row_at(source_row) if is_sorted else source_row
        return self._filter.accepts(self._source.facts(row))

    @override
    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> Any:
        title = super().headerData(section, orientation, role)
        if orientation is not Qt.Orientation.Horizontal:
            return title
        if section == OperatorColumn.VALUE and self._source.overlay is not None:
            overlay = self._source.overlay
            if role == Qt.ItemDataRole.DisplayRole:
                title = overlay.short_title
            elif role == Qt.ItemDataRole.ToolTipRole:
                title = tip_text(f"{overlay.title}, as the graph is coloured")
        # The style's own arrow would cover the title of so narrow a column.
        column, falls = self._sorted.order
        if role == Qt.ItemDataRole.DisplayRole and section == column:
            return f"{'↓' if falls else '↑'}{title}"
        return title
