"""The chart of a vector, drawn by pyqtgraph: axes, bars, outline of long vectors.

This is the only module that imports pyqtgraph, which takes a quarter of a second:
`chart_import` does so in steps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
import pyqtgraph as pg
from PySide6.QtCore import QObject, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QBrush, QColor, QLinearGradient, QPen
from PySide6.QtWidgets import QGraphicsView

from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.numbers import format_ticks, nice_ticks
from kuiper_studio.tensor_view.vector_marks import Bars, VectorMarks

if TYPE_CHECKING:
    from PySide6.QtGui import QPainterPath, QTransform
    from PySide6.QtWidgets import QWidget

    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["VectorChart"]

_AXIS_WIDTH: Final = 56
_AXIS_HEIGHT: Final = 34
_HEADROOM: Final = 22  # above the highest bar, for its number and for the pick
_FOOTROOM: Final = 14  # below the lowest bar, for its number
_WIDEST: Final = 96.0  # pixels a bar, zoomed by hand
_WIDEST_FITTED: Final = 56.0
_SPACED: Final = 4  # bars from this width on have an outline and a gap between them
_STOPS: Final = 256
_MOST_GROUPED: Final = 8  # maximum entries per bar; beyond it the outline is drawn
_FINE_TICKS: Final = 10  # so many that the last one is near the end
_LEAST_WIDTH: Final = 64  # of a chart whose last entries are sure to be seen


class VectorChart(QObject):
    """Shows a vector in a view of pyqtgraph that leaves mouse and keyboard to its parent.

    Entries lie along x, entry k from k to k + 1. Along y, values are divided by the largest
    one, because Qt's transformations overflow near the largest floats.

    Parameters
    ----------
    theme : Theme
    parent : QWidget
        Holds the view; its coordinates are those of the methods.

    Signals
    -------
    zoom_changed
        `zoom` has changed.
    range_changed
        Other entries are visible.
    """

    zoom_changed = Signal()
    range_changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._values: Array = np.zeros(1, np.float32)
        self._special: Array = np.empty(0, np.int64)  # entries that are not finite
        self._low, self._high, self._unit = 0.0, 1.0, 1.0
        self._coloring = Coloring()
        self._pick: int | None = None
        self._hovered: int | None = None
        self._fitting = True
        self._drawn, self._tinted = False, False  # whether the outline is up to date
        self._settles = False
        self._shown: object = None  # all that the drawing was made of
        self._zoom = 0.0
        self._range = (0.0, 0.0)
        self.view = pg.GraphicsView(parent, background=None)
        self.view.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.view.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._box = pg.ViewBox(enableMenu=False, enableMouse=False, defaultPadding=0)
        # No view is linked to the box, so pyqtgraph need not list it.
        self._box.unregister()
        self._left, self._bottom = pg.AxisItem("left"), pg.AxisItem("bottom")
        self._lines = pg.AxisItem("right", showValues=False)
        self._grid = pg.GraphicsLayout()
        self._bars = pg.BarGraphItem(x0=[], x1=[], y0=[], y1=[])
        self._outline = pg.PlotDataItem(
            autoDownsample=True,
            autoDownsampleFactor=parent.devicePixelRatioF(),  # a group a pixel
            downsampleMethod="peak",
            clipToView=True,
            skipFiniteCheck=True,
        )
        self._zero = pg.InfiniteLine(pos=0, angle=0)
        self._marks = VectorMarks(theme, self._grid, _HEADROOM)
        self._arrange()
        self.restyle()
        self._box.sigXRangeChanged.connect(self._on_range_changed)
        self._box.sigResized.connect(self._on_resized)
        self.view.show()  # its parent may be visible already

    def _arrange(self) -> None:
        # The view is transparent to the parent's background, colour bar and focus ring.
        self.view.setCacheMode(QGraphicsView.CacheModeFlag.CacheNone)
        self.view.viewport().setAutoFillBackground(False)
        self._grid.setSpacing(0)
        self._grid.addItem(self._left, 0, 0)
        self._grid.addItem(self._box, 0, 1)
        self._grid.addItem(self._lines, 0, 2)
        self._grid.addItem(self._bottom, 1, 1)
        self.view.setCentralItem(self._grid)
        self._left.setWidth(_AXIS_WIDTH)
        self._left.setStyle(tickTextOffset=8, tickLength=0)
        self._lines.setWidth(0)
        self._lines.setGrid(255)
        self._lines.setZValue(-1000)  # behind the bars
        self._bottom.setHeight(_AXIS_HEIGHT)
        self._bottom.setStyle(tickTextOffset=3, tickLength=5, hideOverlappingLabels=40)
        for axis in (self._left, self._lines, self._bottom):
            axis.setStyle(tickAlpha=0 if axis is self._left else 255)
            axis.linkToView(self._box)
            axis.setPen(pg.mkPen(None))
        for item in (self._bars, self._outline, self._zero):
            self._box.addItem(item, ignoreBounds=True)

    # What is shown

    def set_vector(self, values: Array, low: float, high: float) -> None:
        """Show real values of shape (K,), on an axis from `low` to `high`; 0 is inside."""
        if len(values) != len(self._values):
            self._fitting = True
        self._values, self._drawn, self._tinted = values, False, False
        self._shown = None
        finite = np.isfinite(values)
        self._special = np.flatnonzero(~finite) if not finite.all() else np.empty(0, np.int64)
        self._low, self._high = low, high
        self._unit = max(-low, high)
        self._settle()

    def set_coloring(self, coloring: Coloring) -> None:
        """Set the colours."""
        self._coloring, self._tinted = coloring, False
        self._draw()

    def set_pick(self, pick: int | None) -> None:
        """Mark an entry."""
        self._pick = pick
        self._show_elements()

    def set_hovered(self, entry: int | None) -> None:
        """Highlight an entry."""
        self._hovered = entry
        self._show_elements()

    def restyle(self) -> None:
        """Apply the theme's colours and fonts."""
        color = self._theme.color
        for axis in (self._left, self._bottom):
            axis.setTickFont(self._theme.mono_font(9.5))
            axis.setTextPen(color("text3"))
        self._lines.setTickPen(color("line"))
        self._bottom.setTickPen(color("ctl"))
        self._zero.setPen(color("ctl"))
        self._shown = None
        self._draw()

    # Geometry

    def set_size(self, size: QSize, right: float) -> None:
        """Resize to the parent, with some room at the right."""
        self._grid.setContentsMargins(0, 0, right, 0)
        self.view.setGeometry(QRect(QPoint(0, 0), size))
        self._grid.layout.activate()

    @property
    def zoom(self) -> float:
        """Pixels per entry."""
        first, last = self._box.viewRange()[0]
        return float(self._width / (last - first))

    @property
    def plot(self) -> QRectF:
        """The area of the bars, without the room above them."""
        area: QRectF = self._box.geometry()
        return area.adjusted(0, _HEADROOM, 0, 0)

    @property
    def range(self) -> tuple[float, float]:
        """Ends of the visible part of the axis, in entries with fractions."""
        first, last = self._box.viewRange()[0]
        return float(first), float(last)

    @property
    def visible(self) -> tuple[int, int]:
        """Return the first visible entry, and the one after the last."""
        first, last = self._box.viewRange()[0]
        return max(0, math.floor(first)), min(len(self._values), math.ceil(last - 1e-9))

    def entry(self, x: float) -> float:
        """Return the entry at a position, with fractions."""
        return float(self._box.viewRange()[0][0] + (x - self.plot.left()) / self.zoom)

    def x_of(self, entry: float) -> float:
        """Return the left edge of an entry."""
        return float(self.plot.left() + (entry - self._box.viewRange()[0][0]) * self.zoom)

    @property
    def _width(self) -> float:
        return max(float(self._box.width()), 1.0)

    @property
    def _pixel(self) -> float:
        """Height of a pixel, as a fraction of the largest value."""
        span = self._high / self._unit - self._low / self._unit
        return span / max(float(self._box.height()) - _HEADROOM - self._footroom, 1.0)

    @property
    def _footroom(self) -> int:
        return _FOOTROOM if self._low < 0 else 0

    # Zooming

    def zoom_by(self, factor: float, about: float | None = None) -> None:
        """Zoom about a position, by default the centre."""
        center = None if about is None else (self.entry(about), 0.0)
        self._box.scaleBy(x=1 / factor, center=center)
        self._fitting = self._shows_all

    def fit(self) -> None:
        """Show all entries, also after resizing."""
        self._fitting = True
        self._settle()

    def show_range(self, first: float, last: float) -> None:
        """Show a part of the axis."""
        self._box.setXRange(first, last, padding=0)
        self._fitting = self._shows_all

    def pan(self, across: float) -> None:
        """Scroll by some pixels within the vector."""
        self._box.translateBy(x=-across / self.zoom)

    def reveal(self, entry: int) -> None:
        """Scroll to make an entry visible."""
        first, last = self._box.viewRange()[0]
        self._box.translateBy(x=min(entry - first, 0.0) or max(entry + 1 - last, 0.0))

    @property
    def _extent(self) -> float:
        """Return the number of entries for which there is room when all are visible."""
        return max(float(len(self._values)), self._width / _WIDEST_FITTED)

    @property
    def _shows_all(self) -> bool:
        first, last = self._box.viewRange()[0]
        return bool(last - first > self._extent * (1 - 1e-9))

    def _settle(self) -> None:
        """Update the ranges for the vector and the size of the view."""
        extent, pixel = self._extent, self._pixel
        self._marks.set_area(self._box.geometry())
        self._settles = True  # each change of a range would draw all again
        self._box.setLimits(
            xMin=0, xMax=extent, maxXRange=extent, minXRange=min(self._width / _WIDEST, extent)
        )
        bottom = self._low / self._unit - self._footroom * pixel
        top = self._high / self._unit + _HEADROOM * pixel
        self._box.setYRange(bottom, top, padding=0)
        if self._fitting:
            self._box.setXRange(0, extent, padding=0)
        self._settles = False
        self._on_range_changed()

    # Drawing

    def _draw(self) -> None:
        """Draw the visible entries as bars, or as an outline if there are too many."""
        scale = self.view.devicePixelRatioF()
        shown = self._coloring, self._box.viewRange(), self._box.size(), scale
        if shown == self._shown:
            return
        self._shown = shown
        group = max(1, math.ceil(1 / (self.zoom * scale) - 1e-9))
        as_bars = group <= _MOST_GROUPED
        bars = self._make_bars(group) if as_bars else Bars()
        self._show_bars(bars)
        self._outline.setVisible(not as_bars)
        if not as_bars:
            self._show_outline()
        self._marks.show_bars(bars, self._coloring)
        self._marks.show_columns([] if as_bars else self._special_columns())
        clipped = self._coloring.mark_clipped and not as_bars
        self._marks.show_outside(self._outside if clipped else None)
        self._show_ticks()
        self._show_elements()

    def _make_bars(self, group: int) -> Bars:
        """Return the visible bars; each shows the value of its entries furthest from 0."""
        first, last = self.visible
        first -= first % group
        values = self._values[first : -(-last // group) * group].astype(np.float64)
        starts = np.arange(0, len(values), group)
        finite = np.isfinite(values)
        heights = np.where(finite, values, 0) / self._unit
        low = np.minimum(np.minimum.reduceat(heights, starts), 0)
        high = np.maximum(np.maximum.reduceat(heights, starts), 0)
        shown = np.where(-low > high, low, high) * self._unit
        if group == 1:
            shown = values
        # Values that are not finite fill the whole height.
        special = np.unique(np.flatnonzero(~finite) // group)
        shown[np.flatnonzero(~finite) // group] = values[~finite]
        zero, pixel, zoom = self._y_of(0.0), self._pixel, self.zoom
        top, bottom = zero - high / pixel, zero - low / pixel
        top[bottom - top < 1] = zero  # not visible: it coincides with the axis
        top[special], bottom[special] = _HEADROOM, self._box.height()
        left = (first + starts - self._box.viewRange()[0][0]) * zoom
        width = group * zoom - (zoom >= _SPACED)
        edges = np.stack([left, top, left + width, np.maximum(bottom, top + 1)], axis=1)
        return Bars(shown, self._coloring.paint(shown), edges)

    def _y_of(self, value: float) -> float:
        """Return the position of a value in the box, in pixels."""
        clipped = min(max(value, self._low), self._high)
        return _HEADROOM + (self._high / self._unit - clipped / self._unit) / self._pixel

    def _show_bars(self, bars: Bars) -> None:
        spaced = self.zoom >= _SPACED
        # The pen is centred on the outermost pixels.
        inset = 0.5 if spaced else 0.0
        left, top, right, bottom = (bars.edges + np.array([inset, inset, -inset, -inset])).T
        start, (_, highest) = self._box.viewRange()[0][0], self._box.viewRange()[1]
        # The outline makes a light bar visible on white and a dark one on black.
        pen = pg.mkPen(self._theme.color("ctl")) if spaced else pg.mkPen(None)
        colors, kinds = np.unique(bars.colors, axis=0, return_inverse=True)
        brushes = [QBrush(QColor(*color)) for color in colors.tolist()]
        self._bars.setOpts(
            x0=start + left / self.zoom,
            x1=start + right / self.zoom,
            y0=highest - bottom * self._pixel,
            y1=highest - top * self._pixel,
            pen=pen,
            brushes=[brushes[kind] for kind in kinds.ravel().tolist()],
        )

    def _show_outline(self) -> None:
        if self._drawn and self._tinted:
            return
        pen = QPen(self._gradient(), 1)
        pen.setCosmetic(True)
        self._tinted = True
        if self._drawn:
            self._outline.setPen(pen)
            self._outline.setFillBrush(pen.brush())
            return
        self._drawn = True
        # pyqtgraph leaves out the last group of entries where it is not a whole one; with some
        # zeros behind the end, that group is out of sight.
        count = len(self._values)
        heights = np.zeros(count + count // _LEAST_WIDTH + 1)
        heights[:count] = self._values
        heights[self._special] = 0
        heights /= self._unit
        places = np.arange(len(heights)) + 0.5
        self._outline.setData(places, heights, pen=pen, fillLevel=0, fillBrush=pen.brush())

    def _gradient(self) -> QBrush:
        """Return a gradient with each value's colour at its height."""
        low, high = self._low / self._unit, self._high / self._unit
        shares = np.linspace(0, 1, _STOPS)
        colors = self._coloring.paint((low + shares * (high - low)) * self._unit).tolist()
        gradient = QLinearGradient(QPointF(0, low), QPointF(0, high))
        for share, color in zip(shares.tolist(), colors, strict=True):
            gradient.setColorAt(share, QColor(*color))
        return QBrush(gradient)

    def _special_columns(self) -> list[tuple[float, QColor]]:
        """Return positions in pixels and colours of the values that are not finite."""
        first, last = self.visible
        some = self._special[np.searchsorted(self._special, first) :]
        some = some[: np.searchsorted(some, last)]
        start, ratio = self._box.viewRange()[0][0], self.view.devicePixelRatioF()
        places, chosen = np.unique(
            np.floor((some - start) * self.zoom * ratio), return_index=True
        )
        colors = self._coloring.paint(self._values[some[chosen]].astype(np.float64)).tolist()
        return [
            (place / ratio, QColor(*color))
            for place, color in zip(places.tolist(), colors, strict=True)
        ]

    def _outside(self) -> tuple[QPainterPath, float, float]:
        """Return the outline's area, and the heights inside the range, in pixels."""
        transform: QTransform = self._box.childTransform()
        path = transform.map(self._outline.curve.getPath())
        if not path.isEmpty():
            zero = self._y_of(0.0)
            path.lineTo(path.currentPosition().x(), zero)
            path.lineTo(path.elementAt(0).x, zero)
            path.closeSubpath()
        return path, self._y_of(self._coloring.high), self._y_of(self._coloring.low)

    def _show_elements(self) -> None:
        """Show the picked and the hovered entry."""
        left = self.plot.left()
        picked = stretch = None
        if self._pick is not None and self._pick < len(self._values):
            text = f"[{self._pick}] {self._values[self._pick]!s}"
            picked = self.x_of(self._pick + 0.5) - left, text
        if self._hovered is not None:
            stretch = self.x_of(self._hovered) - left, self.x_of(self._hovered + 1) - left
        self._marks.show_pick(picked)
        self._marks.show_hovered(stretch)

    def _show_ticks(self) -> None:
        room = max(2, min(6, int((self._box.height() - _HEADROOM) / 28)))
        ticks = _value_ticks(self._low, self._high, room)
        places = [tick / self._unit for tick in ticks]
        for axis in (self._left, self._lines):
            axis.setTicks([list(zip(places, format_ticks(ticks), strict=True))])
        first, last = self.visible
        entries = _entry_ticks(first, last, int(self._width / (18 + 7 * len(str(last)))))
        middle = 0.5 if self.zoom >= _SPACED else 0.0
        self._bottom.setTicks([[(entry + middle, str(entry)) for entry in entries]])

    # Slots of pyqtgraph

    @Slot()
    def _on_range_changed(self) -> None:
        if self._settles:
            return
        self._draw()
        if self.zoom != self._zoom:
            self._zoom = self.zoom
            self.zoom_changed.emit()
        if self.range != self._range:
            self._range = self.range
            self.range_changed.emit()

    @Slot()
    def _on_resized(self) -> None:
        self._settle()


def _value_ticks(low: float, high: float, most: int) -> list[float]:
    """Return round values for the axis: 0, which says nothing of the scale, is never alone."""
    ticks = nice_ticks(low, high, most)
    if len(ticks) != 1:
        return ticks
    if high >= -low:
        return [0.0, nice_ticks(0.0, high, _FINE_TICKS)[-1]]
    return [nice_ticks(low, 0.0, _FINE_TICKS)[0], 0.0]


def _entry_ticks(first: int, last: int, most: int) -> list[int]:
    """Return round entry numbers for the axis; all of them if there is room."""
    if last - first <= max(most, 1):
        return list(range(first, last))
    ticks = nice_ticks(first, last, max(most, 2))
    return [int(tick) for tick in ticks if tick == int(tick)]
