"""Numbers in the cells of a picture, where they fit: integers, and floats in large cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPointF
from PySide6.QtGui import QColor, QFontMetricsF

from engine.text import MINUS
from kuiper_studio.tensor_view.images import LIGHT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from PySide6.QtCore import QRectF
    from PySide6.QtGui import QFont, QPainter

    from engine.values import Array
    from kuiper_studio.tensor_view.images import Coloring

__all__ = ["FLOAT_CELL", "cell_texts", "may_fit", "paint_digits"]

FLOAT_CELL: Final = 48.0  # width from which floats have numbers; below, colours tell more
_LEAST_CELL: Final = 12.0
_MARGIN: Final = 4.0  # of a number in its cell, left and right together
_MOST_CELLS: Final = 1024  # painted within a frame
_MOST_DECIMALS: Final = 3
_WEIGHTS: Final = np.array([0.299, 0.587, 0.114])  # of red, green and blue in brightness


def cell_texts(values: Array, room: int) -> list[str]:
    """Write numbers with equal decimals in at most `room` characters each.

    Parameters
    ----------
    values : ndarray
        Real values.
    room : int
        Characters that a cell has room for.

    Returns
    -------
    list of str
        In the order of the flat array; ``""`` for what is not finite, which has a mark. Empty
        if any number needs more room, so that no number is missing or cut.
    """
    flat = values.reshape(-1)
    if flat.dtype.kind != "f":
        return _written(flat.tolist(), "d", room)
    finite = flat[np.isfinite(flat)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    return next(filter(None, (_written(flat.tolist(), each, room) for each in
                              _formats(largest))), [])  # fmt: skip


def _formats(largest: float) -> Iterable[str]:
    """Return the formats to try, those with more figures first."""
    if largest < 1e6:
        # The largest number keeps two figures: 0.0 everywhere says nothing.
        least = 0 if largest == 0 else max(0, 1 - math.floor(math.log10(largest)))
        for decimals in range(_MOST_DECIMALS, least - 1, -1):
            yield f".{decimals}f"
    yield ".1e"
    yield ".0e"


def _written(values: list[float], form: str, room: int) -> list[str]:
    """Return all numbers in a format; empty if one has no room."""
    texts = []
    for value in values:
        text = _tidy(format(value, form)) if math.isfinite(value) else ""
        if len(text) > room:
            return []
        texts.append(text)
    return texts


def _tidy(text: str) -> str:
    """Write a minus sign, none before a zero, and a short exponent."""
    number, e, exponent = text.partition("e")
    if number.startswith("-") and not number.strip("-0."):
        number = number[1:]
    return (number + (f"e{int(exponent)}" if e else "")).replace("-", MINUS)


def may_fit(cell: float, cells: int, *, floats: bool) -> bool:
    """Whether cells are so wide, and so few, that numbers in them are worth a try."""
    return cell >= (FLOAT_CELL if floats else _LEAST_CELL) and cells <= _MOST_CELLS


def paint_digits(
    painter: QPainter, area: QRectF, values: Array, coloring: Coloring, font: QFont
) -> None:
    """Write the numbers of a grid into its cells, in black or white; none if one does not fit.

    Parameters
    ----------
    painter : QPainter
    area : QRectF
        Of the whole grid.
    values : ndarray of shape (H, W)
    coloring : Coloring
        The colours of the cells.
    font : QFont
        Monospaced.
    """
    rows, columns = values.shape
    wide, high = area.width() / columns, area.height() / rows
    metrics = QFontMetricsF(font)
    advance = metrics.horizontalAdvance("0")
    texts = cell_texts(values, int((wide - _MARGIN) / advance))
    if not texts or metrics.ascent() > high:
        return
    lights = coloring.paint(values.reshape(-1))[:, :3] @ _WEIGHTS
    painter.setFont(font)
    left, baseline = area.left() + wide / 2, area.top() + (high + metrics.capHeight()) / 2
    for ink, is_light in (("#000000", True), ("#FFFFFF", False)):
        painter.setPen(QColor(ink))
        for place in np.flatnonzero((lights > LIGHT) == is_light).tolist():
            text = texts[place]
            if text:  # at a point, which takes half the time of centring in a rectangle
                row, column = divmod(place, columns)
                x = left + column * wide - len(text) * advance / 2
                painter.drawText(QPointF(x, baseline + row * high), text)
