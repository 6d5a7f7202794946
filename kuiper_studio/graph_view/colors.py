"""Colours of operators by a quantity, for boxes, cells and legend; mixing and contrast."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtGui import QColor

from kuiper_studio.colormaps import lookup_table
from kuiper_studio.item_models.overlays import LEVELS, NO_LEVEL

if TYPE_CHECKING:
    import numpy.typing as npt

    from kuiper_studio.item_models.overlays import Overlay
    from kuiper_studio.theme import Theme, Tokens

__all__ = ["contrast", "ink_on", "level_colors", "mixed"]

_MAP: Final = "viridis"  # even in lightness, and safe with colour blindness
_LEAST_CONTRAST: Final = 3.0  # of a mark
_UNDER: Final = ("base", "panel")  # what cells lie on: of the scene, and of the minimap
_CLASS_TOKENS: Final = ("ctl", "pinf", "nan")
_NO_LEVEL_SHARE: Final = 0.45
_BLACK: Final = QColor("#000000")
_WHITE: Final = QColor("#FFFFFF")


def level_colors(theme: Theme, overlay: Overlay, base: str = "base") -> npt.NDArray[np.uint32]:
    """Return the colours of an overlay by level.

    A scale goes from near the theme's background to what is farthest from it: the larger a
    value, the more it stands out.

    Parameters
    ----------
    theme : Theme
    overlay : Overlay
    base : str
        Token of the colour under cells without a value.

    Returns
    -------
    ndarray of shape (257,), uint32
        ``0xAARRGGBB``; the last is that of operators without a value, also at index NO_LEVEL.
    """
    colors = np.empty(LEVELS - NO_LEVEL, np.uint32)
    colors[:LEVELS] = _ramp(theme.tokens)
    if overlay.classes:
        classes = [theme.color(token).rgba() for token in _CLASS_TOKENS]
        colors[: len(classes)] = classes
    colors[NO_LEVEL] = mixed(theme.color("ctl"), theme.color(base), _NO_LEVEL_SHARE).rgba()
    return colors


@lru_cache(maxsize=4)
def _ramp(tokens: Tokens) -> npt.NDArray[np.uint32]:
    """Return the part of the colour map that is seen on the theme's background."""
    table = [QColor(*color) for color in lookup_table(_MAP)[:, :3].tolist()]
    under = [QColor(getattr(tokens, token)) for token in _UNDER]
    seen = [c.rgba() for c in table if min(contrast(c, u) for u in under) >= _LEAST_CONTRAST]
    if under[0].lightness() > 127:
        seen.reverse()
    places = np.rint(np.linspace(0, len(seen) - 1, LEVELS)).astype(np.intp)
    return np.array(seen, np.uint32)[places]


def ink_on(fill: QColor) -> QColor:
    """Return black or white, whichever is the easier to read; at least 4.5:1 on any colour."""
    return max((_BLACK, _WHITE), key=lambda ink: contrast(ink, fill))


def contrast(one: QColor, other: QColor) -> float:
    """Return the contrast of two colours by WCAG 2, from 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: QColor) -> float:
    parts = (color.redF(), color.greenF(), color.blueF())
    red, green, blue = (
        part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def mixed(color: QColor, base: QColor, share: float) -> QColor:
    """`share` of one colour over another one."""
    parts = (
        (color.red(), base.red()),
        (color.green(), base.green()),
        (color.blue(), base.blue()),
    )
    return QColor(*(round(part * share + under * (1 - share)) for part, under in parts))
