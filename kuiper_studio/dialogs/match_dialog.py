"""Asks which tensor of a reference belongs to an operand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QEvent, QModelIndex, QObject, QSortFilterProxyModel, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QApplication,
    QCheckBox,
    QHeaderView,
    QLineEdit,
    QTableView,
    QWidget,
)
from typing_extensions import override

from engine.text import format_count, format_shape
from engine.values import ArrayMetadata
from kuiper_studio.dialogs.question import Question
from kuiper_studio.elided_label import WrappedLabel
from kuiper_studio.item_models.rows_model import Index, RowsModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from engine.runtime import RuntimeOperand
    from engine.values import ValueMetadata
    from kuiper_studio.engine_service.protocol import ReferenceEntry

__all__ = ["MatchDialog"]

_WIDTH: Final = 640
_ROWS_HEIGHT: Final = 260
_ROW: Final = 22
_ENTRY_ROLE: Final = Qt.ItemDataRole.UserRole + 1
_MOVING: Final = frozenset({
    Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown,
})  # fmt: skip
_NONE: Final = "None: the reference does not have it"
_TYPE: Final = ("Type", "")
_SHAPE: Final = ("Shape", "")
_COLUMNS: Final = (
    ("Tensor", "Key of the tensor in the reference"),
    ("Operator", "What gave it, where the reference says so"),
    _TYPE,
    _SHAPE,
    ("Matched with", "Our operator whose output it is compared with now"),
)


class _Entries(RowsModel):
    """No tensor in the first row, then those of the reference."""

    def __init__(
        self, entries: Sequence[ReferenceEntry], taken: Mapping[str, str], parent: QWidget
    ) -> None:
        super().__init__(_COLUMNS, (), parent)
        self._entries: tuple[ReferenceEntry | None, ...] = (None, *entries)
        self._taken = taken

    @override
    def count_rows(self) -> int:
        return len(self._entries)

    @override
    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        entry = self._entries[index.row()]
        if role == _ENTRY_ROLE:
            return entry
        if role != Qt.ItemDataRole.DisplayRole:
            return None
        if entry is None:
            return _NONE if index.column() == 0 else ""
        shape, taken = format_shape(entry.shape), self._taken.get(entry.key, "")
        return (entry.key, entry.operator, entry.type, shape, taken)[index.column()]


class _Filter(QSortFilterProxyModel):
    """Shows no tensor, and those with some text and some number of elements."""

    def __init__(self, source: _Entries, size: int | None) -> None:
        super().__init__(source)
        self._size, self._text, self._only_size = size, "", size is not None
        self.setSourceModel(source)

    @Slot(str)
    def search(self, text: str) -> None:
        self._text = text.strip().lower()
        self.invalidate()

    @Slot(bool)
    def show_only_size(self, only: bool) -> None:  # noqa: FBT001 - a slot
        self._only_size = only
        self.invalidate()

    @override
    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        index = self.sourceModel().index(source_row, 0, source_parent)
        entry: ReferenceEntry | None = index.data(_ENTRY_ROLE)
        if entry is None:
            return True
        if self._only_size and math.prod(entry.shape) != self._size:
            return False
        words = (entry.key, entry.operator, entry.type)
        return any(self._text in word.lower() for word in words)


def _say_same_size(entries: Sequence[ReferenceEntry], size: int | None) -> str:
    if size is None:
        return "Only tensors with as many elements"
    fitting = sum(math.prod(entry.shape) == size for entry in entries)
    return f"Only tensors with {format_count(size, 'element')}: {fitting} of {len(entries)}"


class MatchDialog(Question):
    """Asks for a tensor of the reference, or for none.

    Parameters
    ----------
    operand : RuntimeOperand
        Ours.
    metadata : ValueMetadata
        Of its value; None if there is none.
    entries : sequence of ReferenceEntry
    taken : mapping of str to str
        By key of a tensor, the name of our operator that it is matched with.
    present : str or None
        Key of the tensor that it is matched with now.

    Attributes
    ----------
    key : str or None
        Of the chosen tensor; None for none. Valid once the dialog is accepted.
    """

    def __init__(
        self,
        operand: RuntimeOperand,
        metadata: ValueMetadata,
        entries: Sequence[ReferenceEntry],
        taken: Mapping[str, str],
        present: str | None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("match", "Match by hand", _WIDTH, parent)
        self.key: str | None = None
        size = math.prod(metadata.shape) if isinstance(metadata, ArrayMetadata) else None
        producer = operand.producer
        shape = format_shape(metadata.shape) if isinstance(metadata, ArrayMetadata) else ""
        purpose = WrappedLabel()
        purpose.setText(
            f"Operand {operand.name} of "
            f"{f'{producer.type} {producer.name}' if producer is not None else 'the model'}"
            f"{f', {shape}' if shape else ''}. Which tensor of the reference is the same? "
            "The answer is kept beside the model."
        )
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search tensors, operators and types")
        self.search.setAccessibleName("Search")
        self.same_size = QCheckBox(_say_same_size(entries, size))
        self.same_size.setChecked(size is not None)
        self.same_size.setEnabled(size is not None)
        self._shown = _Filter(_Entries(entries, taken, self), size)
        self.table = self._make_table()
        self.ok.setText("Match")
        self.build((purpose, self.search, self.same_size, self.table))
        self.search.textChanged.connect(self._shown.search)
        self.same_size.toggled.connect(self._shown.show_only_size)
        self.table.selectionModel().currentRowChanged.connect(self._on_row_changed)
        self.table.doubleClicked.connect(self._on_double_clicked)
        self._select(present)
        self.search.installEventFilter(self)
        self.search.setFocus()

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setObjectName("matchTable")
        table.setAccessibleName("Tensors of the reference")
        table.setModel(self._shown)
        table.setSpan(0, 0, 1, len(_COLUMNS))  # of no tensor, which is always there
        table.setMinimumHeight(_ROWS_HEIGHT)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        table.setWordWrap(False)
        table.setShowGrid(False)
        table.setTabKeyNavigation(False)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(_ROW)
        header = table.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        for short in (_COLUMNS.index(_TYPE), _COLUMNS.index(_SHAPE)):  # names need the room
            header.setSectionResizeMode(short, QHeaderView.ResizeMode.ResizeToContents)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        return table

    def _select(self, key: str | None) -> None:
        """Select the row of a tensor; none where it is not shown."""
        for row in range(self._shown.rowCount()):
            entry = self._shown.index(row, 0).data(_ENTRY_ROLE)
            if entry is not None and entry.key == key:
                self.table.setCurrentIndex(self._shown.index(row, 0))
                self.table.scrollTo(self._shown.index(row, 0))
                return
        self.ok.setEnabled(False)

    # Override of a Qt method

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Choose rows by the arrow keys while the search has the focus."""
        if (
            watched is self.search
            and isinstance(event, QKeyEvent)
            and event.type() is QEvent.Type.KeyPress
            and event.key() in _MOVING
        ):
            QApplication.sendEvent(self.table, event)
            return True
        return super().eventFilter(watched, event)

    @Slot(QModelIndex, QModelIndex)
    def _on_row_changed(self, index: QModelIndex, _before: QModelIndex) -> None:
        self.ok.setEnabled(index.isValid())
        entry: ReferenceEntry | None = index.data(_ENTRY_ROLE)
        self.key = entry.key if entry is not None else None

    @Slot(QModelIndex)
    def _on_double_clicked(self, _index: QModelIndex) -> None:
        self.accept()
