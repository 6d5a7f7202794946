"""The body of the tensor view: divides the room among its parts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QSize, Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSplitter, QStackedWidget, QWidget
from typing_extensions import override

from kuiper_studio.tensor_view.message import Message
from kuiper_studio.tensor_view.mosaic_view import MosaicView
from kuiper_studio.tensor_view.plane_canvas import PlaneCanvas
from kuiper_studio.tensor_view.side_by_side import CanvasesBySide, TablesBySide
from kuiper_studio.tensor_view.statistics_panel import StatisticsPanel
from kuiper_studio.tensor_view.top_list import TopList
from kuiper_studio.tensor_view.vector_plot import VectorPlot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtGui import QResizeEvent

    from kuiper_studio.tensor_view.canvas import ElementCanvas
    from kuiper_studio.tensor_view.number_table import NumberTable
    from kuiper_studio.tensor_view.side_by_side import SideBySide
    from kuiper_studio.theme import Theme

__all__ = ["Body"]

_MOSAIC_SHARE: Final = 0.46  # of the width, at most, unless the user drags it
_PARTS: Final = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5)  # of that, which are tried
_ROOM_FOR_PLOTS: Final = 860  # width of three plots or tables, and of the statistics
_GOOD_TILE: Final = 0.75  # of the largest tile that is possible


class Body(QFrame):
    """Holds the canvases and divides the room among them.

    Parameters
    ----------
    theme : Theme

    Attributes
    ----------
    mosaic, plane, vector, message, top, statistics : QWidget
    planes, vectors : SideBySide
        Hold `plane` and `vector`, and what they are compared with.

    Signals
    -------
    tables_made
        `tables` are there, before they are first shown.
    """

    tables_made = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("role", "base")
        self.mosaic = MosaicView(theme)
        self.planes = CanvasesBySide(PlaneCanvas, theme)
        self.vectors = CanvasesBySide(VectorPlot, theme)
        self.plane, self.vector = self.planes.ours, self.vectors.ours
        self._theme = theme
        self._tables: TablesBySide | None = None  # made when numbers are first shown
        self.message = Message()
        self.top = TopList(theme)
        self.statistics = StatisticsPanel(theme)
        self._shown: QWidget = self.plane
        self._dragged = False
        self._crowded = False  # by three plots or tables, which need more room than pictures
        self._balanced: tuple[object, ...] = ()
        self._is_changing = False  # parts still come and go
        self._stack = QStackedWidget()
        for widget in (self.planes, self.vectors, self.message):
            self._stack.addWidget(widget)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setObjectName("tensorSplitter")
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.mosaic)
        self._splitter.addWidget(self._stack)
        self._splitter.setStretchFactor(1, 1)
        self._splitter.setHandleWidth(1)
        self._splitter.setStyleSheet("QSplitter::handle:!hover { background: transparent; }")
        self._splitter.splitterMoved.connect(self._on_splitter_moved)
        self._line = QFrame()
        self._line.setProperty("role", "line")
        self._line.setStyleSheet("min-height: 0; max-height: 16777215;")
        self._line.setFixedWidth(1)
        row = self._row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self._splitter, 1)
        for part in (self.top, self._line, self.statistics):
            row.addWidget(part)
        self._list_width = self.top.minimumWidth()

    @property
    def shown(self) -> QWidget:
        """The shown part: picture, bars, table or message."""
        return self._shown

    @property
    def tables(self) -> TablesBySide:
        """Hold `table`, and what it is compared with."""
        return self._tables or self._make_tables()

    def _make_tables(self) -> TablesBySide:
        made = self._tables = TablesBySide(self._theme)
        self._stack.addWidget(made)
        self.tables_made.emit()
        return made

    @property
    def table(self) -> NumberTable:
        """The table of numbers."""
        return self.tables.ours

    @property
    def shows_table(self) -> bool:
        """Whether the shown part is the table."""
        return self._tables is not None and self._shown is self._tables.ours

    @property
    def canvases(self) -> tuple[ElementCanvas, ...]:
        """The canvases of pictures and of vectors."""
        return (*self.planes.canvases, *self.vectors.canvases)

    @property
    def whole(self) -> QWidget:
        """The shown part with what it is compared with."""
        found = self._stack.currentWidget()
        assert found is not None  # noqa: S101 - for the type checker
        return found

    def show_part(self, part: QWidget, *, mosaic: bool, split: bool) -> None:
        """Show one of the four, with the mosaic beside it, or with what it is compared with."""
        self._shown = part
        whole: QWidget = part
        made: list[SideBySide[PlaneCanvas] | SideBySide[VectorPlot] | TablesBySide]
        made = [self.planes, self.vectors]
        if self._tables is not None:
            made.append(self._tables)
        for parts in made:
            parts.split(split=split and part is parts.ours)
            if part is parts.ours:
                whole = parts
        self._crowded = split and part is not self.plane
        self._stack.setCurrentWidget(whole)
        if mosaic is not self.mosaic.isVisibleTo(self):
            self._balanced = ()  # the splitter shares out its room anew
            self.mosaic.setVisible(mosaic)
        self._show_statistics()

    def _show_statistics(self) -> None:
        """Show the list and the statistics beside the picture where both have room."""
        room = self.width() - self._splitter.minimumSizeHint().width()
        listed = self._list_width if self._list_width <= room else 0
        self.top.setFixedWidth(listed)  # it comes and goes by itself
        if self.top.isVisibleTo(self):
            room -= listed
        has_room = room > self.statistics.minimumWidth() and (
            not self._crowded or self.width() >= _ROOM_FOR_PLOTS
        )
        for widget in (self._line, self.statistics):
            widget.setVisible(self._shown is not self.message and has_room)

    def balance(self) -> None:
        """Give the mosaic the width that its tiles can use, until the user drags it."""
        if self._is_changing or self._dragged or not self.mosaic.isVisibleTo(self):
            return
        self._row.activate()  # parts may have come or gone
        whole, height = self._splitter.width(), self.height()
        balanced = (self.mosaic.contents, whole, height)
        if balanced == self._balanced:
            return
        self._balanced = balanced
        most = int((whole + self.statistics.width()) * _MOSAIC_SHARE)
        sizes = [self.mosaic.natural_size(height, int(most * part)) for part in _PARTS]
        largest = max(edge for _, edge in sizes)
        # Of all widths with tiles of a good size, the one that leaves the largest picture.
        width, _ = max(
            (size for size in sizes if size[1] >= _GOOD_TILE * largest),
            key=lambda size: (
                self.plane.fitted_zoom(whole - size[0] - 1, height), size[1], -size[0],
            ),
        )  # fmt: skip
        self._splitter.setSizes([min(width, most), max(whole - width, 1)])

    @contextmanager
    def balanced_once(self) -> Iterator[None]:
        """Balance at the end of the block only, not each time that a part comes or goes."""
        before, self._is_changing = self._is_changing, True
        try:
            yield
        finally:
            self._is_changing = before
            self.balance()

    @Slot(int, int)
    def _on_splitter_moved(self, _position: int, _index: int) -> None:
        self._dragged = True

    # Overrides of Qt methods

    @override
    def minimumSizeHint(self) -> QSize:
        return self._splitter.minimumSizeHint()

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self._show_statistics()  # the list may have come or gone
        return super().event(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_statistics()
        self.balance()
