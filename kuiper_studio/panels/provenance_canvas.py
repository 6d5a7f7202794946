"""Canvases of the provenance panel: products, partial sums, and the receptive field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QImage, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from engine.pictures import colorize, lookup_table
from engine.text import format_brief, format_number
from kuiper_studio.panels.picture_overlay import cells_image, draw_over, opacity_of
from kuiper_studio.panels.weights import DIVERGING, diverging_colors, largest_magnitude

if TYPE_CHECKING:
    import numpy.typing as npt
    from PySide6.QtGui import QMouseEvent, QPaintEvent, QResizeEvent

    from engine.provenance.records import Interval, Terms
    from kuiper_studio.theme import Theme

__all__ = ["FieldPicture", "PartialSums", "ProductsPicture", "WeightPicture"]

_HEIGHT: Final = 150  # of the products, at most
_LARGEST_CELL: Final = 22
_LEGEND: Final = 16
_BARS: Final = 74
_FIELD: Final = 200  # height of the input's picture, at most
_VEIL: Final = 0.6
_WEIGHT_MAP: Final = "inferno"
_GROUPED: Final = frozenset({"channel", "head"})


class _Grid(NamedTuple):
    """Tiles of equal size in rows.

    Attributes
    ----------
    tiles, rows, columns : int
        Number of tiles, and cells of each.
    cell, gap : int
        Pixels of a cell, and between tiles.
    across : int
        Tiles in a row.
    """

    tiles: int
    rows: int
    columns: int
    cell: int
    gap: int
    across: int

    @property
    def pitch(self) -> tuple[int, int]:
        """Pixels from one tile to the next, across and down."""
        return self.columns * self.cell + self.gap, self.rows * self.cell + self.gap

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        across, down = self.pitch
        lines = -(-self.tiles // self.across)
        return min(self.tiles, self.across) * across - self.gap, lines * down - self.gap

    def origin(self, tile: int) -> tuple[int, int]:
        """Return the top left pixel of a tile."""
        line, place = divmod(tile, self.across)
        across, down = self.pitch
        return place * across, line * down

    def term_at(self, x: float, y: float) -> tuple[int, int] | None:
        """Return tile and term at a pixel; None beside the tiles."""
        across, down = self.pitch
        place, line = int(x // across), int(y // down)
        column = int(x - place * across) // self.cell
        row = int(y - line * down) // self.cell
        tile = line * self.across + place
        inside = 0 <= place < self.across and line >= 0 and 0 <= tile < self.tiles
        if not inside or not 0 <= column < self.columns or not 0 <= row < self.rows:
            return None
        return tile, (tile * self.rows + row) * self.columns + column


def _lay_out(tiles: int, rows: int, columns: int, width: int, height: int) -> _Grid:
    """Return the grid with the largest cells that fit; cells have at least one pixel."""
    for cell in range(_LARGEST_CELL, 0, -1):
        single = rows == columns == 1
        gap = 0 if single else 3 if cell > 3 else 1
        across = max(1, (width + gap) // (columns * cell + gap))
        grid = _Grid(tiles, rows, columns, cell, gap, across)
        if grid.size[0] <= width and grid.size[1] <= height:
            return grid
    return _Grid(tiles, rows, columns, 1, 0, max(1, width // columns))


class ProductsPicture(QWidget):
    """The products of an element as tiles, one a channel, coloured about zero.

    Signals
    -------
    term_chosen : int
        Number of the term that was clicked.
    """

    term_chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._terms: Terms | None = None
        self._tiles = np.zeros((0, 1, 1))
        self._padding = np.zeros((0, 1, 1), np.bool_)
        self._grid = _Grid(0, 1, 1, 1, 0, 1)
        self._image: QImage | None = None
        self._group: int | None = None
        self.limit = 0.0
        self.setObjectName("provenanceProducts")
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self._render)

    def show_terms(self, terms: Terms | None) -> None:
        """Show products; None for nothing."""
        self._terms, self._group = terms, None
        if terms is not None:
            self._tiles = _tiles(terms, terms.products)
            self._padding = _tiles(terms, _is_padding(terms))
            self.limit = largest_magnitude(self._tiles)
            ends = f"{format_number(-self.limit)} to {format_number(self.limit)}"
            self.setAccessibleName(f"{terms.products.size} products, {ends}")
        self._lay_out()

    def mark_group(self, group: int | None) -> None:
        """Mark the tile of a channel."""
        self._group = group
        self.update()

    def _lay_out(self) -> None:
        if self._terms is None or not self.width():
            return
        count, rows, columns = self._tiles.shape
        self._grid = _lay_out(count, rows, columns, self.width() - 2, _HEIGHT)
        height = min(self._grid.size[1], 4 * _HEIGHT)
        self.setFixedHeight(height + 2 + _LEGEND + 4)
        self._render()

    @Slot()
    def _render(self) -> None:
        """Paint the tiles into an image."""
        width, height = self._grid.size
        if self._terms is None or width <= 0 or height <= 0:
            self._image = None
            return
        around = self._theme.color("line")
        height = min(height, 4 * _HEIGHT)
        pixels = np.empty((height, width, 3), np.uint8)
        pixels[...] = (around.red(), around.green(), around.blue())
        beside, below = self._grid.origin(self._grid.tiles)
        if beside:  # the last row is not full
            panel = self._theme.color("panel")
            pixels[max(below - 1, 0) :, beside:] = (panel.red(), panel.green(), panel.blue())
        colors = diverging_colors(self._tiles, self.limit)
        empty = self._theme.color("hover")
        colors[self._padding] = (empty.red(), empty.green(), empty.blue())
        colors = colors.repeat(self._grid.cell, axis=1).repeat(self._grid.cell, axis=2)
        for tile, cells in enumerate(colors):
            left, top = self._grid.origin(tile)
            if top + len(cells) > height:
                break
            pixels[top : top + len(cells), left : left + cells.shape[1]] = cells
        self._image = _image(pixels)
        self.update()

    def _term_at(self, position: QPointF) -> tuple[int, int] | None:
        return self._grid.term_at(position.x() - 1, position.y() - 1)

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._lay_out()

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        found = self._term_at(event.position())
        if found is None or self._terms is None:
            QToolTip.hideText()
            return
        if self._padding.reshape(-1)[found[1]]:
            QToolTip.showText(event.globalPosition().toPoint(), "padding", self)
            return
        texts = []
        for factor in self._terms.factors:
            at = found[1] if len(factor.values) > 1 else 0
            index = ", ".join(map(str, factor.indices[at].tolist()))
            texts.append(f"{factor.name}[{index}] = {factor.values[at]:.6g}")
        product = self._terms.products[found[1]]
        text = "\n".join([*texts, f"product {product:.6g}"])
        QToolTip.showText(event.globalPosition().toPoint(), text, self)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        found = self._term_at(event.position())
        if found is not None and event.button() is Qt.MouseButton.LeftButton:
            self.term_chosen.emit(found[1])

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        if self._image is not None:
            painter.setPen(self._theme.color("line"))
            if self._grid.cell <= 3 or self._grid.tiles == 1:
                frame = QRectF(0.5, 0.5, self._image.width() + 1, self._image.height() + 1)
                painter.drawRect(frame)
            painter.drawImage(1, 1, self._image)
            self._paint_group(painter)
            self._paint_legend(painter, self._image.height() + 6)
        painter.end()

    def _paint_group(self, painter: QPainter) -> None:
        if self._group is None or not 0 <= self._group < self._grid.tiles:
            return
        left, top = self._grid.origin(self._group)
        across, down = self._grid.columns * self._grid.cell, self._grid.rows * self._grid.cell
        painter.setPen(QPen(self._theme.color("focus"), 2))
        painter.drawRect(QRectF(left, top, across + 2, down + 2))

    def _paint_legend(self, painter: QPainter, top: int) -> None:
        strip = np.ascontiguousarray(DIVERGING[np.newaxis])
        painter.drawImage(QRectF(1, top + 2, 96, 8), _image(strip))
        painter.setFont(self._theme.mono_font(9.5))
        painter.setPen(self._theme.color("text3"))
        text = f"{format_number(-self.limit)} … {format_number(self.limit)}"
        area = QRectF(104, top - 2, self.width() - 104, _LEGEND)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, text)


def _is_padding(terms: Terms) -> npt.NDArray[np.bool_]:
    """Return which terms have a factor that lies in the padding; shape (T,)."""
    found = np.zeros(len(terms.products), np.bool_)
    for factor in terms.factors:
        if len(factor.indices) == len(found):
            found |= (factor.indices < 0).any(axis=1)
    return found


def _tiles(terms: Terms, items: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Arrange numbers of the terms as tiles of rows and columns: a tile for each channel."""
    shape = terms.shape
    if len(shape) >= 3:
        return items.reshape(-1, shape[-2], shape[-1])
    if len(shape) == 2 and terms.axes[0] not in _GROUPED:
        return items.reshape(1, *shape)
    return items.reshape(-1, 1, shape[1] if len(shape) == 2 else 1)


def _image(pixels: npt.NDArray[np.uint8]) -> QImage:
    height, width = pixels.shape[:2]
    data = np.ascontiguousarray(pixels)
    image = QImage(data.data, width, height, 3 * width, QImage.Format.Format_RGB888)
    return image.copy()  # which has its own memory


class PartialSums(QWidget):
    """The sums of the products by channel, as bars about zero.

    Signals
    -------
    group_chosen : int
        The channel that was clicked.
    """

    group_chosen = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._sums = np.zeros(0)
        self._name = "channel"
        self._group: int | None = None
        self.setObjectName("provenanceSums")
        self.setFixedHeight(_BARS)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_sums(self, sums: npt.NDArray[np.float64], name: str) -> None:
        """Show sums; `name` is what each belongs to."""
        self._sums, self._name, self._group = sums, name, None
        self.setAccessibleName(f"{sums.size} partial sums by {name}")
        self.update()

    def mark_group(self, group: int | None) -> None:
        """Mark the bar of a channel."""
        self._group = group
        self.update()

    def _group_at(self, x: float) -> int:
        return min(int(x / self.width() * self._sums.size), self._sums.size - 1)

    # Overrides of Qt methods

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._sums.size:
            group = self._group_at(max(0.0, event.position().x()))
            text = f"{self._name} {group}: {self._sums[group]:.6g}"
            QToolTip.showText(event.globalPosition().toPoint(), text, self)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._sums.size and event.button() is Qt.MouseButton.LeftButton:
            self.group_chosen.emit(self._group_at(max(0.0, event.position().x())))

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        room = self.height() - 14
        sums = np.nan_to_num(self._sums)
        limit = largest_magnitude(sums) or 1.0
        top = max(float(sums.max(initial=0.0)), 0.0) / limit
        bottom = max(-float(sums.min(initial=0.0)), 0.0) / limit
        scale = (room - 4) / max(top + bottom, 1e-9)
        middle = 2 + top * scale
        slot = self.width() / max(1, sums.size)
        wide = max(1.0, slot - 1 if slot > 3 else slot)
        colors = [QColor(*DIVERGING[at].tolist()) for at in (24, 231)]
        for place, value in enumerate(sums.tolist()):
            high = value / limit * scale
            area = QRectF(place * slot, middle - max(high, 0), wide, max(0.8, abs(high)))
            painter.fillRect(area, colors[value > 0])
        painter.setPen(self._theme.color("ctl"))
        painter.drawLine(QPointF(0, middle), QPointF(self.width(), middle))
        if self._group is not None:
            painter.setPen(QPen(self._theme.color("focus"), 1.4))
            area = QRectF(self._group * slot - 1, 1, wide + 2, room - 1)
            painter.drawRect(area)
        self._paint_axis(painter, slot)
        painter.end()

    def _paint_axis(self, painter: QPainter, slot: float) -> None:
        painter.setFont(self._theme.mono_font(9.5))
        painter.setPen(self._theme.color("text3"))
        last = self._sums.size - 1
        flags = Qt.AlignmentFlag
        area = QRectF(0, self.height() - 13, self.width(), 13)
        painter.drawText(area, flags.AlignLeft | flags.AlignBottom, "0")
        painter.drawText(area, flags.AlignRight | flags.AlignBottom, str(last))
        if last > 3:
            half = QRectF((last // 2 + 0.5) * slot - 30, self.height() - 13, 60, 13)
            painter.drawText(half, flags.AlignHCenter | flags.AlignBottom, str(last // 2))


class FieldPicture(QWidget):
    """An input of the model; what lies outside the receptive field is veiled."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._image: QImage | None = None
        self._box = QRectF()
        self.setObjectName("provenanceField")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def box(self) -> QRectF:
        """The field in pixels of the input."""
        return self._box

    def show_field(
        self, image: QImage | None, region: tuple[Interval, Interval] | None
    ) -> None:
        """Show rows and columns on a picture; None for nothing."""
        self._image = image
        self._box = QRectF()
        if image is not None and region is not None:
            rows, columns = region
            self._box = QRectF(
                columns.start,
                rows.start,
                columns.stop - columns.start,
                rows.stop - rows.start,
            )
            self.setAccessibleName(
                f"Receptive field: rows {rows.start} to {rows.stop - 1}, columns "
                f"{columns.start} to {columns.stop - 1}"
            )
        self.updateGeometry()
        self.update()

    def _fitted(self) -> QSize:
        if self._image is None or self._image.isNull():
            return QSize()
        room = QSize(max(1, self.width() - 2), _FIELD)
        return self._image.size().scaled(room, Qt.AspectRatioMode.KeepAspectRatio)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(120, (self._fitted().height() or 0) + 2)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._fitted().height() + 2 != self.height():
            self.updateGeometry()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._image is None:
            return
        painter = QPainter(self)
        size = self._fitted()
        area = QRectF(1, 1, size.width(), size.height())
        scale = size.width() / self._image.width()
        # A large picture is shrunk smoothly; elements of a small one stay sharp.
        smooth = QPainter.RenderHint.SmoothPixmapTransform
        painter.setRenderHint(smooth, scale < 1)
        painter.drawImage(area, self._image)
        kept = QRectF(
            area.left() + self._box.left() * scale,
            area.top() + self._box.top() * scale,
            max(2.0, self._box.width() * scale),
            max(2.0, self._box.height() * scale),
        )
        outside, inside = QPainterPath(), QPainterPath()
        outside.addRect(area)
        inside.addRect(kept)
        painter.fillPath(outside.subtracted(inside), self._theme.color("panel", _VEIL))
        for color, width in ((QColor("black"), 3.0), (QColor("white"), 1.4)):
            painter.setPen(QPen(color, width))
            painter.drawRect(kept)
        painter.end()


class WeightPicture(QWidget):
    """The part of an input within a receptive field, and how much each position counts."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._picture: QImage | None = None
        self._cells: QImage | None = None
        self.weights = np.zeros((0, 0))
        self.setObjectName("provenanceWeight")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    def show_weights(
        self, picture: QImage | None, weights: npt.NDArray[np.float64] | None
    ) -> None:
        """Show weights of positions over a picture of the same size; None for nothing."""
        self._picture, self._cells = picture, None
        self.weights = weights if weights is not None else np.zeros((0, 0))
        if self.weights.size:
            most = float(self.weights.max())
            colors = colorize(
                self.weights, 0.0, most or 1.0, lookup_table(_WEIGHT_MAP), special=False
            )
            self._cells = cells_image(colors, opacity_of(self.weights / (most or 1.0), 0.9))
            rows, columns = self.weights.shape
            self.setAccessibleName(
                f"Effective weight of {rows} by {columns} positions, at most {most:.3g}"
            )
        self.updateGeometry()
        self.update()

    def _fitted(self) -> QSize:
        if not self.weights.size:
            return QSize()
        room = QSize(max(1, self.width() - 2), _FIELD)
        size = QSize(self.weights.shape[1], self.weights.shape[0])
        return size.scaled(room, Qt.AspectRatioMode.KeepAspectRatio)

    # Overrides of Qt methods

    @override
    def sizeHint(self) -> QSize:
        return QSize(120, self._fitted().height() + _LEGEND + 6)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.updateGeometry()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._cells is None:
            return
        painter = QPainter(self)
        size = self._fitted()
        area = QRectF(1, 1, size.width(), size.height())
        draw_over(painter, area, self._picture, self._cells, area, self._theme)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(self._theme.color("line"))
        painter.drawRect(area.adjusted(-0.5, -0.5, 0.5, 0.5))
        ramp = np.ascontiguousarray(lookup_table(_WEIGHT_MAP)[np.newaxis, :, :3])
        painter.drawImage(QRectF(1, area.bottom() + 6, 96, 8), _image(ramp))
        painter.setFont(self._theme.mono_font(9.5))
        painter.setPen(self._theme.color("text3"))
        text = f"0 … {format_brief(float(self.weights.max()))}"
        room = QRectF(104, area.bottom() + 2, self.width() - 104, _LEGEND)
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
        painter.end()
