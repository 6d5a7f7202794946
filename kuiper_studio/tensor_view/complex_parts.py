"""What is shown of complex numbers: one real number each. No Qt."""

from __future__ import annotations

import math
from enum import Enum
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.pictures import real_values

if TYPE_CHECKING:
    from engine.values import Array

__all__ = ["PHASE_MAP", "PHASE_RANGE", "Part", "part_values"]

PHASE_MAP: Final = "twilight"  # its ends are one colour, as −π and π are one phase
PHASE_RANGE: Final = (-math.pi, math.pi)


class Part(Enum):
    """The real number that stands for a complex one."""

    MAGNITUDE = "magnitude"
    PHASE = "phase"
    REAL = "real part"
    IMAGINARY = "imaginary part"


def part_values(array: Array, part: Part) -> Array:
    """Return the real values of an array that can be coloured.

    Parameters
    ----------
    array : ndarray
    part : Part
        Of complex numbers; phases are from −π to π, 0 where the number is 0.

    Returns
    -------
    ndarray
        As `real_values` of an array of other numbers.
    """
    if array.dtype.kind != "c" or part is Part.MAGNITUDE:
        return real_values(array)
    if part is Part.PHASE:
        return np.angle(array)
    return np.ascontiguousarray(array.real if part is Part.REAL else array.imag)
