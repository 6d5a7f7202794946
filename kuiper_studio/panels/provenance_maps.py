"""The maps that an element joins: its own, that of an input channel, and the small matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from engine.pictures import colorize, lookup_table
from engine.text import MINUS
from kuiper_studio.panels.picture_overlay import cells_image, draw_frame

if TYPE_CHECKING:
    import numpy.typing as npt
    from PySide6.QtGui import QPaintEvent, QResizeEvent

    from engine.provenance.records import Terms
    from engine.values import Array
    from kuiper_studio.theme import Theme

__all__ = ["JoinedMaps", "Maps", "color_about_zero", "join_maps"]

_CAPTION: Final = 18
_GAP: Final = 16  # between maps, and for the signs between matrices
_MOST_SIDE: Final = 190
_MOST_CELL: Final = 40
_LEAST_CELL: Final = 27  # smaller ones have no number
_LARGEST: Final = 11  # rows and columns of a matrix; larger ones are no matrices to read


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """What one channel of the input gives to an element.

    Attributes
    ----------
    output, input : ndarray of shape (H, W)
        The channel of the element, and that of the input.
    captions : (str, str)
    pick : (int, int)
        Row and column of the element.
    window : (int, int, int, int)
        First row and column of the input's window, and the number of both.
    matrices : tuple of (str, ndarray of shape (h, w))
        The window, the kernel and their products; only the window where there is no kernel.
    missing : ndarray of bool, shape (h, w)
        Positions of the window where the input has no element.
    """

    output: Array
    input: Array
    captions: tuple[str, str]
    pick: tuple[int, int]
    window: tuple[int, int, int, int]
    matrices: tuple[tuple[str, npt.NDArray[np.float64]], ...]
    missing: npt.NDArray[np.bool_]


def join_maps(
    terms: Terms,
    group: int,
    index: tuple[int, ...],
    names: tuple[str, str],
    values: tuple[Array, Array],
) -> Maps | None:
    """Return the maps of a channel; None where the terms are no window of a picture.

    Parameters
    ----------
    terms : Terms
    group : int
        The channel of the terms.
    index : tuple of int
        Of the element.
    names : (str, str)
        Of the operands of the element and of the input.
    values : (ndarray, ndarray)
        Those operands.
    """
    output, source = values
    if len(terms.shape) < 2 or not len(index) == output.ndim == source.ndim >= 3:
        return None
    if len(terms.shape) > 3 or len(terms.factors) > 2:
        return None  # a window of several planes, or products of more than is drawn
    rows, columns = terms.shape[-2:]
    part = slice(group * rows * columns, (group + 1) * rows * columns)
    places = terms.factors[0].indices[part]
    inside = places[(places >= 0).all(axis=1)]
    if not 0 < rows * columns <= _LARGEST**2 or not len(inside):
        return None
    lead = inside[0][:-2].tolist()
    if (inside[:, :-2] != lead).any():
        return None  # these are no places of one picture
    missing = (places < 0).any(axis=1).reshape(rows, columns)
    matrices = [
        (title, factor.values[part].reshape(rows, columns))
        for title, factor in zip(("window x", "kernel w"), terms.factors, strict=False)
        if len(factor.values) == len(terms.products)
    ]
    if len(matrices) > 1:
        matrices.append(("products w·x", terms.products[part].reshape(rows, columns)))
    first, last = inside[:, -2:].min(axis=0).tolist(), inside[:, -2:].max(axis=0).tolist()
    captions = [
        f"{word} {name} · channel {place[-1]}"
        for word, name, place in zip(
            ("Output", "Input"), names, (index[:-2], tuple(lead)), strict=True
        )
    ]
    return Maps(
        output[index[:-2]],
        source[tuple(lead)],
        (captions[0], captions[1]),
        (index[-2], index[-1]),
        (first[0], first[1], last[0] - first[0] + 1, last[1] - first[1] + 1),
        tuple(matrices),
        missing,
    )


def color_about_zero(values: Array, *, signed: bool = False) -> npt.NDArray[np.uint8]:
    """Colour numbers: around white if some are negative, else from dark to light.

    Parameters
    ----------
    values : ndarray of float32, shape (H, W)
        NaN and infinities have colours of their own.
    signed : bool, optional
        Around white in any case.

    Returns
    -------
    ndarray of uint8, shape (H, W, 4)
        RGBA.
    """
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if signed or low < 0:
        high = max(-low, high) or 1.0
        return colorize(values, -high, high, lookup_table("RdBu_r"))
    return colorize(values, 0.0, high or 1.0, lookup_table("viridis"))


def _number(value: float) -> str:
    """Format a number for a cell: three digits, or one of a small number."""
    if 0 < abs(value) < 5e-4:
        digit, _, power = f"{value:.0e}".partition("e")
        return f"{digit}e{int(power)}".replace("-", MINUS)
    text = f"{value:.2f}" if 1 <= abs(value) < 100 else f"{value:.3f}"
    if abs(value) >= 100:
        text = f"{value:.0f}" if abs(value) < 10_000 else f"{value:.0e}"
    sign = MINUS if value < 0 else ""
    plain = text.removeprefix("-")
    return sign + (plain[1:] if plain.startswith("0.") else plain)


class JoinedMaps(QWidget):
    """Two channels joined by a line, and below them window, kernel and products.

    Parameters
    ----------
    theme : Theme
    """

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._maps: Maps | None = None
        self._images: tuple[QImage, ...] = ()
        self.setObjectName("provenanceMaps")
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme.changed.connect(self.update)

    @property
    def maps(self) -> Maps | None:
        """What is shown."""
        return self._maps

    def show_maps(self, maps: Maps | None) -> None:
        """Show maps; None for nothing."""
        self._maps = maps
        if maps is not None:
            self._images = tuple(
                [cells_image(color_about_zero(x)) for x in (maps.output, maps.input)]
            )
            row, column = maps.pick
            top, left, high, wide = maps.window
            self.setAccessibleName(
                f"{maps.captions[0]}, row {row}, column {column}; {maps.captions[1]}, rows "
                f"{top} to {top + high - 1}, columns {left} to {left + wide - 1}"
            )
        self.setVisible(maps is not None)
        self._fit()
        self.update()

    def area(self, place: int) -> QRectF:
        """Return where a map is: 0 for the output's, 1 for the input's."""
        if self._maps is None:
            return QRectF()
        shape = (self._maps.output, self._maps.input)[place].shape
        side = min((self.width() - _GAP - 2) / 2, _MOST_SIDE)
        scale = side / max(shape)
        return QRectF(1 + place * (side + _GAP), _CAPTION, shape[1] * scale, shape[0] * scale)

    def cell_side(self) -> float:
        """Return the side of a cell of the matrices."""
        if self._maps is None or not self._maps.matrices:
            return 0.0
        count = len(self._maps.matrices)
        columns = self._maps.matrices[0][1].shape[1]
        room = (self.width() - 2 - (count - 1) * _GAP) / (count * columns)
        return float(min(room, _MOST_CELL))

    def _fit(self) -> None:
        if self._maps is None:
            return
        rows = self._maps.matrices[0][1].shape[0] if self._maps.matrices else 0
        below = _CAPTION + 6 + rows * min(self.cell_side(), 30.0)
        self.setFixedHeight(round(max(self.area(0).bottom(), self.area(1).bottom()) + below))

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        maps = self._maps
        if maps is None:
            return
        painter = QPainter(self)
        frames = []
        for place, (values, cells) in enumerate(
            ((maps.output, (*maps.pick, 1, 1)), (maps.input, maps.window))
        ):
            area = self.area(place)
            self._draw_caption(painter, area, maps.captions[place])
            painter.drawImage(area, self._images[place])
            scale = area.width() / values.shape[1]
            row, column, high, wide = cells
            frame = QRectF(
                area.left() + column * scale, area.top() + row * scale,
                max(5.0, wide * scale), max(5.0, high * scale),
            )  # fmt: skip
            frames.append(frame)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self._theme.color("focus"), 1.4, Qt.PenStyle.DotLine))
        painter.drawLine(
            QPointF(frames[0].right(), frames[0].center().y()),
            QPointF(frames[1].left(), frames[1].center().y()),
        )
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        for frame in frames:
            draw_frame(painter, frame)
        self._draw_matrices(painter, maps)
        painter.end()

    def _draw_caption(self, painter: QPainter, area: QRectF, text: str) -> None:
        painter.setFont(self._theme.mono_font(9.5))
        painter.setPen(self._theme.color("text2"))
        room = QRectF(area.left(), area.top() - _CAPTION, self.width() / 2, _CAPTION - 2)
        shown = painter.fontMetrics().elidedText(
            text, Qt.TextElideMode.ElideMiddle, int(room.width() - 6)
        )
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, shown)

    def _draw_matrices(self, painter: QPainter, maps: Maps) -> None:
        side = self.cell_side()
        high = min(side, 30.0)
        top = max(self.area(0).bottom(), self.area(1).bottom()) + _CAPTION + 4
        left, line = 1.0, self._theme.color("ctl")
        for place, (title, values) in enumerate(maps.matrices):
            rows, columns = values.shape
            area = QRectF(left, top, columns * side, rows * high)
            self._draw_caption(painter, area, title)
            colors = color_about_zero(values, signed=place > 0)
            painter.setFont(self._theme.mono_font(9))  # five figures do not touch the next cell
            for row, column in np.ndindex(rows, columns):
                cell = QRectF(left + column * side, top + row * high, side - 1, high - 1)
                if place != 1 and maps.missing[row, column]:
                    painter.fillRect(cell, QBrush(line, Qt.BrushStyle.BDiagPattern))
                    continue
                red, green, blue = colors[row, column, :3].tolist()
                painter.fillRect(cell, QColor(red, green, blue))
                if side >= _LEAST_CELL:
                    bright = 0.3 * red + 0.59 * green + 0.11 * blue > 140
                    painter.setPen(QColor("#000000" if bright else "#FFFFFF"))
                    text = _number(float(values[row, column]))
                    painter.drawText(cell, Qt.AlignmentFlag.AlignCenter, text)
            if place + 1 < len(maps.matrices):
                painter.setPen(self._theme.color("text"))
                sign = "×" if place == 0 else "="
                between = QRectF(area.right(), top, _GAP, area.height())
                painter.drawText(between, Qt.AlignmentFlag.AlignCenter, sign)
            left = area.right() + _GAP
