"""The numbers of a picture as a table, for reading and copying."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Self

from PySide6.QtCore import QItemSelectionModel, QModelIndex, QPoint, QRect, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget
from typing_extensions import override

from kuiper_studio.tensor_view.table_model import PlaneTableModel

if TYPE_CHECKING:
    from PySide6.QtCore import QEvent
    from PySide6.QtGui import QContextMenuEvent, QResizeEvent
    from PySide6.QtWidgets import QScrollBar

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
    name, title : str, optional
        Its objectName and accessible name.

    Signals
    -------
    picked
        Row and column.
    hovered
        (row, column) under the mouse, or None.
    view_changed
        It was scrolled; others may `follow`.
    menu_requested
        Global position of a right click.
    """

    picked = Signal(int, int)
    hovered = Signal(object)
    view_changed = Signal()
    menu_requested = Signal(object)

    def __init__(
        self,
        theme: Theme,
        parent: QWidget | None = None,
        name: str = "tensorTable",
        title: str = "Numbers of the channel",
    ) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setMouseTracking(True)
        self._theme = theme
        self._following = False
        self._model = PlaneTableModel(theme, self)
        self.setModel(self._model)
        self.setFont(theme.mono_font(10))
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setCornerButtonEnabled(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ContiguousSelection)
        # By cells, tables whose widths differ by a pixel would end at different columns.
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        for header, extent in ((self.horizontalHeader(), 84), (self.verticalHeader(), 20)):
            header.setMinimumSectionSize(1)
            header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
            header.setDefaultSectionSize(extent)
            header.setHighlightSections(False)
        self.verticalHeader().setDefaultAlignment(
            Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        )
        self.selectionModel().currentChanged.connect(self._on_current_changed)
        self.entered.connect(self._on_entered)
        self.viewportEntered.connect(self._on_left)
        for bar in self._bars:
            bar.valueChanged.connect(self.view_changed)
        theme.changed.connect(self.viewport().update)

    def set_plane(self, plane: Array, limit: float = math.inf) -> None:
        """Show an array of shape (H, W), in its own dtype.

        Elements beyond a limit, of either sign, have the colour of differences.
        """
        self._following = True
        self._model.set_plane(plane, limit)
        self._following = False

    def set_frame(self, *, numbered: bool = True, scrolls: bool = True) -> None:
        """Show or hide the numbers of the rows, and the vertical scroll bar."""
        self.verticalHeader().setVisible(numbered)
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if scrolls else policy.ScrollBarAlwaysOff
        )

    @property
    def is_ready(self) -> bool:
        """As `ElementCanvas.is_ready`."""
        return True

    @property
    def room(self) -> float:
        """Width of the numbers of the rows and of the vertical scroll bar."""
        header, bar = self.verticalHeader(), self.verticalScrollBar()
        numbers = 0 if header.isHidden() else header.sizeHint().width()
        is_scrolled = (
            self.verticalScrollBarPolicy() is not Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )
        return numbers + (bar.sizeHint().width() if is_scrolled else 0)

    def follow(self, other: Self) -> None:
        """Scroll to where a table of the same shape and size is."""
        for mine, theirs in zip(self._bars, other._bars, strict=True):
            mine.setValue(theirs.value())

    def set_pointed(self, place: tuple[int, int] | None) -> None:
        """Mark the element that is under the mouse of a table beside this one."""
        self._model.set_pointed(place)

    @property
    def _bars(self) -> tuple[QScrollBar, QScrollBar]:
        return self.verticalScrollBar(), self.horizontalScrollBar()

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

    @Slot(QModelIndex)
    def _on_entered(self, index: QModelIndex) -> None:
        self.hovered.emit((index.row(), index.column()))

    @Slot()
    def _on_left(self) -> None:
        self.hovered.emit(None)

    @Slot(QModelIndex, QModelIndex)
    def _on_current_changed(self, current: QModelIndex, _previous: QModelIndex) -> None:
        if current.isValid() and not self._following:
            self.picked.emit(current.row(), current.column())

    # Overrides of Qt methods

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self.hovered.emit(None)
        super().leaveEvent(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the picked element in view, which the statistics may come to cover."""
        current = self.currentIndex()
        before = QRect(QPoint(), event.oldSize())
        was_visible = before.intersects(self.visualRect(current))
        super().resizeEvent(event)
        if was_visible:
            self.scrollTo(current)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.menu_requested.emit(event.globalPos())
