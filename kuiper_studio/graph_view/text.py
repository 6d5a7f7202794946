"""Short texts in boxes and on edges."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

__all__ = ["MINUS", "dtype_text", "number_text", "range_text", "shape_text", "split_expression"]

MINUS: Final = "\N{MINUS SIGN}"
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_MOST_DIGITS: Final = 3


def shape_text(shape: Sequence[int | str | None] | None, *, with_batch: bool = False) -> str:
    """Shape as ``64×56×56``.

    Parameters
    ----------
    shape : sequence of int, str or None, or None
        A None dimension is unknown; None as a whole gives ``""``.
    with_batch : bool
        Keep a leading 1, which is left out otherwise.
    """
    if shape is None:
        return ""
    dims = list(shape)
    if not with_batch and len(dims) > 1 and dims[0] == 1:
        dims = dims[1:]
    return _TIMES.join("?" if dim is None else str(dim) for dim in dims) or "scalar"


def dtype_text(dtype: np.dtype[Any] | None) -> str:
    """Dtype as pnnx spells it, e.g. ``f32``; ``""`` for None."""
    if dtype is None:
        return ""
    return "bool" if dtype.kind == "b" else f"{dtype.kind}{8 * dtype.itemsize}"


def number_text(value: float, digits: int = _MOST_DIGITS) -> str:
    """Number in `digits` significant digits, without needless zeros."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{digits}g}"
    mantissa, e, exponent = text.partition("e")
    if e:
        text = _unpowered(mantissa, int(exponent), value)
    return text.replace("-", MINUS)


def _unpowered(mantissa: str, exponent: int, value: float) -> str:
    """Write numbers up to five digits out, others with a short exponent."""
    if 0 <= exponent < 5:
        return f"{value:.0f}"
    return f"{mantissa}e{exponent}"


def range_text(low: float, high: float, room: int) -> str:
    """Range as ``0…2.57``, in as many digits as fit into `room` characters."""
    text = ""
    for digits in range(_MOST_DIGITS, 0, -1):
        text = f"{number_text(low, digits)}…{number_text(high, digits)}"
        if len(text) <= room:
            break
    return text


def split_expression(expression: str) -> tuple[str, str]:
    """Outermost function of an expression, and its operands with their brackets."""
    head, bracket, rest = expression.partition("(")
    return head, bracket + rest
