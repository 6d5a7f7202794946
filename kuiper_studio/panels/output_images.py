"""Pictures of what outputs mean: label maps, masks, depth, motion and sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtGui import QImage

from engine.meanings.results import Boxes, Field, FlowField, LabelMap, Picture, Spectrogram
from engine.pictures import colorize, lookup_table
from kuiper_studio.panels.class_colors import class_color, class_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.meanings.results import Result
    from engine.values import Array

__all__ = ["picture_of"]

_QUIET: Final = 80.0  # decibels below the loudest that are black
_DIMMED: Final = 70  # of 255, of classes that are not selected


def picture_of(result: Result, selected: int = -1) -> QImage | None:
    """Return the picture of a result; None for one that has none.

    Parameters
    ----------
    result : Result
    selected : int
        Row of a label map or of boxes, which is shown alone; -1 for all.
    """
    match result:
        case LabelMap():
            entry = result.rows[selected].entry if 0 <= selected < len(result.rows) else -1
            first = [row.name for row in result.rows if row.entry == 0]
            return _of_labels(result.labels, entry, has_background=first == ["background"])
        case Boxes(masks=masks) if masks is not None and len(masks):
            return _of_masks(masks, result.classes, selected)
        case Field():
            return _of_colors(
                colorize(result.values, result.low, result.high, lookup_table("viridis"))
            )
        case FlowField():
            return _of_colors(_flow_colors(result))
        case Picture():
            height, width = result.pixels.shape[:2]
            pixels = np.full((height, width, 4), 255, np.uint8)
            pixels[..., :3] = result.pixels
            return _of_colors(pixels)
        case Spectrogram():
            loud = result.decibels[::-1]  # low frequencies at the bottom
            return _of_colors(colorize(loud, -_QUIET, 0.0, lookup_table("magma")))
        case _:
            return None


def _of_colors(colors: Array) -> QImage:
    pixels = np.ascontiguousarray(colors)
    height, width = pixels.shape[:2]
    image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_RGBA8888)
    return image.convertToFormat(QImage.Format.Format_ARGB32_Premultiplied)


def _of_labels(labels: npt.NDArray[np.int32], selected: int, *, has_background: bool) -> QImage:
    count = int(labels.max(initial=0)) + 1
    table = np.full((count, 4), 255, np.uint8)
    table[:, :3] = class_table(count)
    if has_background:
        table[0, 3] = 0
    if selected >= 0:
        table[:, 3] = np.minimum(table[:, 3], _DIMMED)
        if selected < count:
            table[selected, 3] = 255
    return _of_colors(table[labels])


def _of_masks(
    masks: npt.NDArray[np.bool_], classes: npt.NDArray[np.int64], selected: int
) -> QImage:
    pixels = np.zeros((*masks.shape[1:], 4), np.uint8)
    for place in range(len(masks) - 1, -1, -1):  # the surest on top
        if selected in {-1, place}:
            color = class_color(int(classes[place]))
            pixels[masks[place]] = (color.red(), color.green(), color.blue(), 255)
    return _of_colors(pixels)


def _flow_colors(flow: FlowField) -> Array:
    """Return colours by direction, the stronger the faster."""
    right, down = np.nan_to_num(flow.values.astype(np.float64))
    angle = np.arctan2(down, right) / (2 * np.pi) % 1.0
    speed = np.clip(np.hypot(right, down) / (flow.most or 1.0), 0, 1)
    # A wheel of hues: three cosines, faded to white where nothing moves.
    phases = angle[..., np.newaxis] - np.array([0, 1 / 3, 2 / 3])
    hues = np.clip(0.5 + np.cos(2 * np.pi * phases), 0, 1)
    pixels = np.full((*angle.shape, 4), 255, np.uint8)
    mixed = 1 - speed[..., np.newaxis] * (1 - hues)
    pixels[..., :3] = np.round(255 * mixed).astype(np.uint8)
    return pixels
