"""Colours of classes: each number has one, that of its neighbours is different."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from PySide6.QtGui import QColor

__all__ = ["class_color", "class_table", "ink_on"]

# Okabe and Ito's colours, which all people can tell apart.
_FIRST: Final = ("#E69F00", "#56B4E9", "#009E73", "#F0E442", "#0072B2", "#D55E00", "#CC79A7")
_DISTINCT: Final = 48  # after which colours come again


@cache
def class_color(entry: int) -> QColor:
    """Return the colour of a class.

    Parameters
    ----------
    entry : int
        Its number.
    """
    return QColor.fromRgb(*_palette()[entry % _DISTINCT])


@cache
def _palette() -> tuple[tuple[int, int, int], ...]:
    """Return colours, each the farthest from all before it."""
    hues = (
        QColor.fromHslF(hue / 24, strength, lightness)
        for hue in range(24)
        for strength, lightness in ((0.75, 0.32), (0.7, 0.5), (0.75, 0.75))
    )
    offered = [(each.red(), each.green(), each.blue()) for each in hues]
    found = [(c.red(), c.green(), c.blue()) for c in map(QColor, _FIRST)]
    while len(found) < _DISTINCT:
        apart = np.array(offered)[:, np.newaxis] - np.array(found)
        farthest = int((apart**2).sum(2).min(1).argmax())
        found.append(offered.pop(farthest))
    return tuple(found)


def class_table(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Return red, green and blue of the classes below a number, shape (count, 3)."""
    colors = (class_color(entry) for entry in range(count))
    return np.array([(c.red(), c.green(), c.blue()) for c in colors], np.uint8).reshape(-1, 3)


def ink_on(color: QColor) -> QColor:
    """Return black or white, whichever is legible on a colour."""
    shade = 0.299 * color.red() + 0.587 * color.green() + 0.114 * color.blue()
    return QColor("#000000" if shade > 128 else "#FFFFFF")
