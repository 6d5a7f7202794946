"""Pictures of what outputs mean: label maps, masks, depth, motion and sound."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtGui import QColor, QImage

from engine.meanings.masks import Match, match_mask
from engine.meanings.results import Boxes, Field, FlowField, LabelMap, Picture, Spectrogram
from engine.pictures import colorize, lookup_table
from kuiper_studio.panels.class_colors import class_color, class_table

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.meanings.results import Result
    from engine.values import Array

__all__ = ["MATCH_COLORS", "MaskView", "match_shares", "picture_of"]

_QUIET: Final = 80.0  # decibels below the loudest that are black
_DIMMED: Final = 70  # of 255, of classes that are not selected
# Okabe and Ito's: bluish green, vermilion, sky blue and yellow.
MATCH_COLORS: Final = {
    Match.AGREEMENT: QColor("#009E73"),
    Match.FALSE: QColor("#D55E00"),
    Match.MISSED: QColor("#56B4E9"),
    Match.OTHER: QColor("#F0E442"),
}


class MaskView(Enum):
    """What of a label map with a mask is shown; the value is its name."""

    CLASSES = "Classes"
    MASK = "Mask"
    AGREEMENT = "Agreement"


def picture_of(
    result: Result, selected: int = -1, view: MaskView = MaskView.CLASSES
) -> QImage | None:
    """Return the picture of a result; None for one that has none.

    Parameters
    ----------
    result : Result
    selected : int
        Row of a label map or of boxes, which is shown alone; -1 for all.
    view : MaskView
        What of a label map is shown; only classes without a mask.
    """
    match result:
        case LabelMap():
            return _of_label_map(result, _entry(result, selected), view)
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


def _entry(result: LabelMap, selected: int) -> int:
    """Return the class of a row of a label map; -1 for no row."""
    return result.rows[selected].entry if 0 <= selected < len(result.rows) else -1


def match_shares(result: LabelMap, selected: int = -1) -> dict[Match, float]:
    """Return the shares of the pixels whose class the mask knows, without empty ones.

    Parameters
    ----------
    result : LabelMap
        With a mask.
    selected : int
        Row of a class; -1 for all classes.
    """
    counts = np.bincount(match_mask(result, _entry(result, selected)).reshape(-1), minlength=5)
    known = np.count_nonzero(result.expected >= 0) if result.expected is not None else 0
    return {each: counts[each] / known for each in MATCH_COLORS if counts[each]}


def _of_label_map(result: LabelMap, entry: int, view: MaskView) -> QImage:
    if result.expected is None or view is MaskView.CLASSES:
        return _of_labels(result.labels, entry, has_background=result.has_background)
    if view is MaskView.MASK:
        return _of_labels(result.expected, entry, has_background=result.has_background)
    table = np.zeros((len(Match), 4), np.uint8)
    for match, color in MATCH_COLORS.items():
        table[match] = (color.red(), color.green(), color.blue(), 255)
    return _of_colors(table[match_mask(result, entry)])


def _of_labels(labels: npt.NDArray[np.int32], selected: int, *, has_background: bool) -> QImage:
    count = int(labels.max(initial=0)) + 1
    table = np.full((count + 1, 4), 255, np.uint8)
    table[:count, :3] = class_table(count)
    table[-1] = 0  # of -1, where a mask knows no class
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
