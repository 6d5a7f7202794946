"""A vector as coloured bars about zero, over the axis of its entries."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Slot
from PySide6.QtGui import QPainter
from typing_extensions import override

from kuiper_studio.tensor_view.canvas import ElementCanvas
from kuiper_studio.tensor_view.chart_import import import_chart
from kuiper_studio.tensor_view.color_bar import BAR_GAP, BAR_WIDTH, paint_color_bar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PySide6.QtGui import QPaintEvent, QShowEvent
    from PySide6.QtWidgets import QWidget

    from engine.values import Array
    from kuiper_studio.tensor_view.images import Coloring
    from kuiper_studio.tensor_view.vector_chart import VectorChart
    from kuiper_studio.theme import Theme

__all__ = ["VectorPlot"]

_FACTOR: Final = 1.5  # per step of zoom


class VectorPlot(ElementCanvas):
    """Shows a vector; an element is (0, entry) in its signals, see `ElementCanvas`.

    Parameters
    ----------
    theme : Theme
    name, title : str, optional
        Its objectName and accessible name.
    """

    moves: ClassVar[Mapping[int, tuple[int, int]]] = {
        key: move for key, move in ElementCanvas.moves.items() if not move[0]
    }

    def __init__(
        self,
        theme: Theme,
        parent: QWidget | None = None,
        name: str = "tensorVector",
        title: str = "Vector as bars",
    ) -> None:
        super().__init__(name, title, theme, parent)
        self._values: Array = np.zeros(1, np.float32)
        self._bounds: tuple[float, float] | None = None  # None before the first vector
        self._hovered: tuple[int, int] | None = None
        self._made: VectorChart | None = None
        theme.changed.connect(self._on_theme_changed)

    # What is shown

    def set_vector(self, values: Array, data_range: tuple[float, float] | None) -> None:
        """Show real values of shape (K,), which span `data_range`."""
        self._values = values
        low, high = data_range or (0.0, 1.0)
        low, high = min(low, 0.0), max(high, 0.0)
        self._bounds = low, high if high > low else 1.0
        if self._made is not None:
            self._made.set_vector(values, *self._bounds)
        elif self.isVisible():
            self._make()
        self.contents_changed.emit()

    @override
    def set_coloring(self, coloring: Coloring) -> None:
        if coloring != self._coloring:
            self._coloring = coloring
            if self._made is not None:
                self._made.set_coloring(coloring)
                self.lay_out()
            self.contents_changed.emit()

    @override
    def set_pick(self, pick: tuple[int, int] | None) -> None:
        self._pick = pick
        if self._made is not None:
            self._made.set_pick(_entry(pick))

    @override
    def set_pointed(self, place: tuple[int, int] | None) -> None:
        if self._made is not None:
            self._made.set_hovered(_entry(place))

    @override
    def follow(self, other: Self) -> None:
        self._chart.show_range(*other.range)

    @property
    @override
    def is_ready(self) -> bool:
        return self._made is not None

    @property
    def range(self) -> tuple[float, float]:
        """Return the ends of the visible part of the axis, with fractions of entries."""
        return self._chart.range

    @property
    def visible(self) -> tuple[int, int]:
        """Return the first visible entry, and the one after the last."""
        return self._chart.visible

    @property
    @override
    def plane(self) -> Array:
        return self._values[np.newaxis]

    @override
    def cell_area(self, row: int, column: int) -> QRectF:
        """Return the column of an entry, as high as the plot."""
        plot, left = self._chart.plot, self._chart.x_of(column)
        return QRectF(left, plot.top(), self._chart.zoom, plot.height())

    def prepare(self) -> None:
        """Make the chart before a vector is shown, where there is time."""
        if self._made is None:
            self._make()

    @property
    def _chart(self) -> VectorChart:
        """The chart, made when it is first seen or asked.

        To import pyqtgraph takes long, see `chart_import`, and to make a chart takes a frame.
        """
        return self._made or self._make()

    def _make(self) -> VectorChart:
        import_chart()
        from kuiper_studio.tensor_view.vector_chart import VectorChart

        made = self._made = VectorChart(self.theme, self)
        self.lay_out()
        if self._bounds is not None:
            made.set_vector(self._values, *self._bounds)
        made.set_coloring(self._coloring)
        made.set_pick(_entry(self._pick))
        made.zoom_changed.connect(self.zoom_changed)
        made.range_changed.connect(self.view_changed)
        return made

    @override
    def lay_out(self) -> None:
        if self._made is not None:
            self._made.set_size(self.size(), self.bar_room)
            self.update()

    # Zooming

    @property
    def zoom_text(self) -> str:
        """The zoom as a ratio: ``12 : 1``, ``1 : 3.5``."""
        zoom = self._made.zoom if self._made is not None else 1.0
        return f"{zoom:.3g} : 1" if zoom >= 1 else f"1 : {1 / zoom:.3g}"

    def zoom_by(self, steps: float, about: float | None = None) -> None:
        """Zoom about a position of the canvas, by default about the picked entry."""
        self._zoom(_FACTOR**steps, about)

    def zoom_actual(self) -> None:
        """Zoom to one pixel per entry."""
        self._zoom(1 / self._chart.zoom)

    def _zoom(self, factor: float, about: float | None = None) -> None:
        center = self.zoom_center
        if about is None and center is not None:
            about = center.x()
        self._chart.zoom_by(factor, about)

    def zoom_fit(self) -> None:
        """Show all entries, also after resizing."""
        self._chart.fit()

    # What the hand does

    @property
    @override
    def extent(self) -> tuple[int, int]:
        return 1, len(self._values)

    @override
    def element_at(self, position: QPointF) -> tuple[int, int] | None:
        x, plot = position.x(), self._chart.plot
        entry = int(np.floor(self._chart.entry(x)))
        inside = plot.left() <= x < plot.right() and 0 <= entry < len(self._values)
        return (0, entry) if inside else None

    @override
    def point_at(self, place: tuple[int, int] | None) -> None:
        if place != self._hovered:
            self._hovered = place
            self.set_pointed(place)
            super().point_at(place)

    @override
    def pan(self, across: float, down: float) -> None:
        self._chart.pan(across)

    @override
    def zoom_at(self, notches: float, position: QPointF) -> None:
        self.zoom_by(notches, position.x())

    @override
    def reveal(self, row: int, column: int) -> None:
        self._chart.reveal(column)

    @Slot()
    def _on_theme_changed(self) -> None:
        if self._made is not None:
            self._made.restyle()

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(500, 280)

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(200, 90)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._made is None and self._bounds is not None:
            self._make()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self.theme.color("base"))
        if self._made is not None and self._has_bar and self._coloring.known:
            plot = self._made.plot
            bar = QRectF(round(plot.right()) + BAR_GAP, plot.top(), BAR_WIDTH, plot.height())
            paint_color_bar(painter, bar, self._coloring, self.theme)
        self.paint_ring(painter)
        painter.end()


def _entry(place: tuple[int, int] | None) -> int | None:
    return place[1] if place is not None else None
