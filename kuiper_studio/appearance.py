"""Settings of the looks that hold for the whole process: size, font and numbers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from engine.text import NumberStyle, set_number_style

if TYPE_CHECKING:
    from PySide6.QtCore import QSettings

__all__ = [
    "MONO_FAMILY",
    "is_still",
    "restore_numbers",
    "scale_interface",
    "store_numbers",
    "store_size",
    "store_still",
    "stored_size",
]

MONO_FAMILY: Final = "appearance/monoFamily"
_SIZE: Final = "appearance/size"
_DECIMALS, _EXPONENT = "appearance/decimals", "appearance/exponent"
_STILL: Final = "appearance/still"
_SCALE: Final = "QT_SCALE_FACTOR"


def stored_size(settings: QSettings) -> int:
    """Return the size of the interface in per cent."""
    return _number(settings, _SIZE, 100, 50, 400)


def store_size(settings: QSettings, percent: int) -> None:
    """Keep the size of the interface for the next start."""
    settings.setValue(_SIZE, percent)


def scale_interface(settings: QSettings) -> None:
    """Have Qt scale everything, before there is a QApplication.

    A scale in the environment comes first.
    """
    percent = stored_size(settings)
    if percent != 100 and _SCALE not in os.environ:
        os.environ[_SCALE] = str(percent / 100)


def is_still(settings: QSettings) -> bool:
    """Return whether the user wants no animation."""
    return str(settings.value(_STILL, "false")) == "true"


def store_still(settings: QSettings, *, still: bool) -> None:
    """Keep whether the user wants no animation."""
    settings.setValue(_STILL, str(still).lower())


def restore_numbers(settings: QSettings) -> None:
    """Write numbers as in the last run."""
    usual = NumberStyle()
    set_number_style(
        NumberStyle(
            _number(settings, _DECIMALS, usual.decimals, 0, 12),
            _number(settings, _EXPONENT, usual.exponent, 1, 15),
        )
    )


def store_numbers(settings: QSettings, style: NumberStyle) -> None:
    """Write numbers in another way, now and in the next run."""
    settings.setValue(_DECIMALS, style.decimals)
    settings.setValue(_EXPONENT, style.exponent)
    set_number_style(style)


def _number(settings: QSettings, name: str, usual: int, least: int, most: int) -> int:
    text = str(settings.value(name, usual))
    number = int(text) if text.isdecimal() and len(text) < 9 else usual
    return min(max(number, least), most)
