"""Converts values to strict JSON."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

__all__ = ["Plain", "plain"]

Plain: TypeAlias = bool | int | float | str | list["Plain"] | dict[str, "Plain"] | None


def plain(value: object) -> Plain:
    """Convert a value to strict JSON.

    Parameters
    ----------
    value : object
        Of a parameter, a statistic or an option: scalars, text, tuples, lists, mappings.

    Returns
    -------
    Plain
        Numbers that JSON lacks become texts: ``"inf"``, ``"-inf"``, ``"nan"``, and complex
        numbers such as ``"(1+2j)"``. Other objects become their text.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return str(value)
