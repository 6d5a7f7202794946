"""The numbers of a picture as a table, for reading and copying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QItemSelectionModel, QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget
from typing_extensions import override

from kuiper_studio.tensor_view.table_model import PlaneTableModel

if TYPE_CHECKING:
    from PySide6.QtGui import QContextMenuEvent

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["NumberTable"]

# Maximum number of copied cells.
_MOST_COPIED = 1_000_000


class NumberTable(QTableView):
    """Shows a channel's numbers; the current cell is the picked element.

    Parameters
    ----------
    theme : Theme

    Signals
    -------
    picked
        Row and column.
    menu_requested
        Global position of a right click.
    """

    picked = Signal(int, int)
    menu_requested = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("tensorTable")
        self.setAccessibleName("Numbers of the channel")
        self._theme = theme
        self._following = False
        self._model = PlaneTableModel(theme, self)
        self.setModel(self._model)
        self.setFont(theme.mono_font(10))
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setCornerButtonEnabled(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ContiguousSelection)
        for header, extent in ((self.horizontalHeader(), 84), (self.verticalHeader(), 20)):
            header.setMinimumSectionSize(1)
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
            header.setDefaultSectionSize(extent)
            header.setHighlightSections(False)
        self.verticalHeader().setDefaultAlignment(
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        )
        self.selectionModel().currentChanged.connect(self._on_current_changed)
        theme.changed.connect(self.viewport().update)

    def set_plane(self, plane: Array) -> None:
        """Show an array of shape (H, W), in its own dtype."""
        self._following = True
        self._model.set_plane(plane)
        self._following = False

    def set_pick(self, pick: tuple[int, int] | None) -> None:
        """Make an element the current one."""
        if pick is None:
            return
        index = self._model.index(*pick)
        if index.isValid() and index != self.currentIndex():
            self._following = True
            flags = QItemSelectionModel.SelectionFlag.ClearAndSelect
            self.selectionModel().setCurrentIndex(index, flags)
            self.scrollTo(index)
            self._following = False

    def copy(self) -> None:
        """Copy the selected numbers in full precision, separated by tabs."""
        spans = self.selectionModel().selection()
        if spans.isEmpty():
            return
        span = spans.first()
        block = self._model.plane[
            span.top() : span.bottom() + 1, span.left() : span.right() + 1
        ]
        if block.size <= _MOST_COPIED:
            lines = ("\t".join(map(str, row)) for row in block)
            QGuiApplication.clipboard().setText("\n".join(lines))

    @Slot(QModelIndex, QModelIndex)
    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self._following:
            self.picked.emit(current.row(), current.column())

    # Overrides of Qt methods

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_requested.emit(event.globalPos())
