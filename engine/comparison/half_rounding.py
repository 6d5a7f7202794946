"""Rounds weights to float16 as pnnx stores them for ncnn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from engine.values import Array

__all__ = ["LEAST_FLOAT16", "round_as_pnnx"]

LEAST_FLOAT16: Final = float(np.finfo(np.float16).smallest_normal)
"""The least number that float16 holds with all its digits."""

_HALF: Final = 1 << 12  # of the last digit of float16, in the bits of float32
_KEPT: Final = 0xFFFF_E000  # the bits of float32 that float16 keeps


def round_as_pnnx(array: Array) -> npt.NDArray[np.float16]:
    """Round to float16 as pnnx stores weights: halves away from 0, small numbers to 0.

    Parameters
    ----------
    array : ndarray of float32

    Returns
    -------
    ndarray of float16
    """
    bits = np.ascontiguousarray(array).view(np.uint32)
    # Half of the last digit that float16 keeps is added; the digits behind it are dropped.
    away = ((bits + np.uint32(_HALF)) & np.uint32(_KEPT)).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.where(np.isfinite(array), away, array).astype("<f2")
    rounded[np.abs(array) < LEAST_FLOAT16] *= np.float16(0)  # keeps the sign
    return rounded
