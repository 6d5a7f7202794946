"""Formats and parses preprocessing options in text boxes; no Qt."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine.inputs import ImageOptions, InputSource, parse_number

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "PRESETS",
    "Preset",
    "numbers_text",
    "parse_numbers",
    "parse_pixel",
    "parse_scale",
    "parse_side",
    "preset_of",
    "scale_text",
    "source_title",
]

_MOST_PIXEL: Final = 255
_MOST_DIGITS: Final = 5  # of a number of pixels


@dataclass(frozen=True, slots=True)
class Preset:
    """A common scaling of pixels.

    Attributes
    ----------
    title : str
    scale : float
    mean, std : tuple of float
    """

    title: str
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]


PRESETS: Final = (
    Preset("0 … 255", 1.0, (0.0,), (1.0,)),
    Preset("0 … 1", 1 / 255, (0.0,), (1.0,)),
    Preset("−1 … 1", 1 / 255, (0.5,), (0.5,)),
    Preset("ImageNet", 1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
)


def preset_of(options: ImageOptions) -> Preset | None:
    """Return the preset that options are equal to, or None."""
    mean, std = _once(options.mean), _once(options.std)
    for preset in PRESETS:
        same_scale = math.isclose(preset.scale, options.scale, rel_tol=1e-6)
        if same_scale and preset.mean == mean and preset.std == std:
            return preset
    return None


def _once(numbers: tuple[float, ...]) -> tuple[float, ...]:
    """Return one number where that of every channel is the same."""
    return numbers[:1] if len(set(numbers)) == 1 else numbers


def scale_text(scale: float) -> str:
    """Format a scale, as a fraction if it is one: ``1/255``."""
    if 0 < scale < 1:
        below = 1 / scale
        if math.isclose(below, round(below), rel_tol=1e-6):
            return f"1/{round(below)}"
    return f"{scale:.7g}"


def parse_scale(text: str) -> float:
    """Parse a scale.

    Raises
    ------
    ValueError
        If it is not a number, or zero; the message is for the user.
    """
    scale = parse_number(text.strip())
    if scale == 0:
        raise ValueError("a scale of 0 would make every pixel 0")
    return scale


def numbers_text(numbers: Sequence[float]) -> str:
    """Format one number per channel."""
    return " ".join(f"{number:.7g}" for number in numbers)


def parse_numbers(text: str, name: str) -> tuple[float, ...]:
    """Parse one number, or three, separated by blanks, commas or semicolons.

    Raises
    ------
    ValueError
        If they are not; the message is for the user.
    """
    words = [word for word in re.split(r"[\s,;]+", text.strip("[]() \t")) if word]
    numbers = tuple(parse_number(word) for word in words)
    if len(numbers) not in {1, 3}:
        raise ValueError(f"{name} needs one number, or one for each of three channels")
    if name == "std" and 0 in numbers:
        raise ValueError("std must not be 0: pixels are divided by it")
    return numbers


def parse_side(text: str) -> int | None:
    """Parse a number of pixels; empty text gives None.

    Raises
    ------
    ValueError
        If it is none; the message is for the user.
    """
    if not text.strip():
        return None
    side = _whole(text)
    if not side:
        raise ValueError("an image of 0 pixels has no centre")
    return side


def parse_pixel(text: str) -> int:
    """Parse a pixel.

    Raises
    ------
    ValueError
        If it is none; the message is for the user.
    """
    pixel = _whole(text)
    if pixel > _MOST_PIXEL:
        raise ValueError(f"{pixel} is more than the largest pixel, {_MOST_PIXEL}")
    return pixel


def _whole(text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS):
        raise ValueError(f"{text!r} is no whole number such as 128")
    return int(digits)


def source_title(source: InputSource | None) -> str:
    """Return a short name of a source: a file's name, or the kind of generated values."""
    if source is None:
        return "No input yet"
    if source.path is not None:
        return f"{source.path.name}:{source.member}" if source.member else source.path.name
    if source.kind == "random":
        return f"random, seed {source.seed}"
    return source.text.replace(":", " ")
