"""How shapes, numbers, sizes and times are written in the window."""

from __future__ import annotations

import html
import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from engine.errors import spell_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

__all__ = [
    "MINUS",
    "caption_text",
    "count_text",
    "dtype_text",
    "elided",
    "ms_text",
    "number_text",
    "param_text",
    "shape_text",
    "tip_text",
]

MINUS = "\N{MINUS SIGN}"
_GROUP = "\N{NO-BREAK SPACE}"


def shape_text(shape: Sequence[int | str | None] | None, *, drop_batch: bool = False) -> str:
    """Spell a shape, for example ``1×64×56×56``.

    Parameters
    ----------
    shape : sequence of int, str or None, or None
        A None dimension is unknown, a str one a symbol; None as a whole gives ``""``.
    drop_batch : bool
        Leave out a first dimension of 1, as lists and edges do.
    """
    return _spelled(None if shape is None else tuple(shape), drop_batch)


@lru_cache(maxsize=4096)  # in long models shapes recur
def _spelled(shape: tuple[int | str | None, ...] | None, drop_batch: bool) -> str:  # noqa: FBT001
    if shape is None:
        return ""
    return spell_shape(shape[1:] if drop_batch and len(shape) > 1 and shape[0] == 1 else shape)


def dtype_text(dtype: np.dtype[Any] | str | None) -> str:
    """PNNX's short name of a dtype, such as ``f32``; ``""`` when unknown."""
    if dtype is None or isinstance(dtype, str):
        return dtype or ""
    if dtype.kind in "fiuc":
        return f"{dtype.kind}{dtype.itemsize * 8}"
    return str(dtype)


def count_text(count: int) -> str:
    """Whole number in groups of three, for example ``36 928``."""
    return f"{count:,}".replace(",", _GROUP)


def ms_text(seconds: float | None) -> str:
    """Milliseconds in three figures or so; a dash for what was not measured."""
    if seconds is None:
        return ""
    ms = seconds * 1e3
    if ms <= 0:
        return "—"
    if ms < 10:
        return f"{ms:.2f}"
    return f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"


def number_text(value: float) -> str:
    """Write a number of a table: four decimals, more for small ones, U+2212 as the minus."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else f"{MINUS}Inf"
    size = abs(value)
    if size == 0 or 1e-3 <= size < 1e5:
        text = f"{value:.4f}"
    elif 1e-5 <= size < 1e-3:
        # Two figures more than the leading zeros take: 0.00053
        text = f"{value:.{1 - math.floor(math.log10(size))}f}"
    else:
        text = f"{value:.3e}"
    return text.replace("-", MINUS)


def param_text(value: object) -> str:
    """Write a parameter the way Python does: ``(3, 3)``, ``'zeros'``, ``True``."""
    return repr(value)


def elided(text: str, limit: int) -> str:
    """Cut the middle out of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    head = limit // 2
    return f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def caption_text(text: str) -> str:
    """Write a name on a button, a tab or in a menu, where Qt takes ``&`` for a mnemonic."""
    return text.replace("&", "&&")


def tip_text(text: str) -> str:
    """Write names in a tool tip as they are, where Qt takes ``<b>`` for HTML."""
    if "<" not in text and "&" not in text:
        return text
    return f'<div style="white-space:pre-wrap">{html.escape(text, quote=False)}</div>'
