"""Formats shapes, numbers, counts, sizes and times for people.

The window, the command line and the engine's messages share these functions. Formats for
programs (dumps, JSON, arguments of the command line) do not use them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np

__all__ = [
    "MINUS",
    "NumberStyle",
    "format_aligned",
    "format_amount",
    "format_brief",
    "format_bytes",
    "format_complex",
    "format_count",
    "format_dtype",
    "format_duration",
    "format_exact_bytes",
    "format_milliseconds",
    "format_names",
    "format_number",
    "format_shape",
    "format_share",
    "format_short_count",
    "number_style",
    "parse_bytes",
    "set_number_style",
]

MINUS: Final = "\N{MINUS SIGN}"
_GROUP: Final = "\N{NO-BREAK SPACE}"

_BYTES_IN: Final = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_EXACT_UNITS: Final = ("TB", "TiB", "GB", "GiB", "MB", "MiB", "kB", "KiB")
_SIZE_UNITS: Final = ("kB", "MB", "GB", "TB", "PB", "EB")
_SIZE: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([a-z]*)", re.ASCII)
_SHOWN_NAMES: Final = 8  # of a list
_MOST_DIGITS: Final = 30  # of a size in bytes that is written as a number


# Shapes and dtypes


def format_shape(shape: Iterable[object] | None, *, drop_batch: bool = False) -> str:
    """Format a shape, for example ``1×64×?×56``.

    Parameters
    ----------
    shape : iterable of int, str or None, or None
        A None dimension is unknown, a str one a symbol; None as a whole gives ``""``.
    drop_batch : bool
        Leave out a first dimension of 1, as lists and edges do.

    Returns
    -------
    str
        ``scalar`` for a shape without dimensions.
    """
    return "" if shape is None else _format_shape(tuple(shape), drop_batch)


@lru_cache(maxsize=4096)  # in long models shapes recur
def _format_shape(shape: tuple[object, ...], drop_batch: bool) -> str:  # noqa: FBT001
    if drop_batch and len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    return "×".join("?" if dim is None else str(dim) for dim in shape) or "scalar"


def format_dtype(dtype: np.dtype[Any] | str | None) -> str:
    """Format a dtype by PNNX's short name, such as ``f32``; ``""`` when unknown."""
    if dtype is None or isinstance(dtype, str):
        return dtype or ""
    if dtype.kind in "fiuc":
        return f"{dtype.kind}{dtype.itemsize * 8}"
    return str(dtype)


# Numbers


@dataclass(frozen=True, slots=True)
class NumberStyle:
    """How `format_number` writes numbers.

    Attributes
    ----------
    decimals : int
        After the point, from 0 to 12.
    exponent : int
        Numbers from 10 to its power, and below 10 to minus its power, have an exponent.
    """

    decimals: int = 4
    exponent: int = 5


_styles = [NumberStyle()]


def number_style() -> NumberStyle:
    """Return how numbers are written."""
    return _styles[-1]


def set_number_style(style: NumberStyle) -> None:
    """Write numbers in another way from now on, in this process."""
    _styles[-1] = style


def format_number(value: float) -> str:
    """Format a number of a table, by default with four decimals and more for small ones.

    U+2212 is the minus.
    """
    if not math.isfinite(value):
        return _format_special(value)
    size, style = abs(value), _styles[-1]
    decimals = style.decimals
    if size and not 10.0**-style.exponent <= size < 10.0**style.exponent:
        text = f"{value:.{max(decimals - 1, 0)}e}"
    elif 0 < size < min(1.0, 10.0 ** (1 - decimals)):
        # Two figures more than the leading zeros take: 0.00053
        text = f"{value:.{1 - math.floor(math.log10(size))}f}"
    else:
        text = f"{value:.{decimals}f}"
    return text.replace("-", MINUS)


def format_brief(value: float, digits: int = 3) -> str:
    """Format a number in `digits` significant digits, without needless zeros.

    Numbers of up to five digits before the point are written out, others with a short
    exponent: ``0``, ``2.57``, ``12346``, ``−1.5e−6``.
    """
    if not math.isfinite(value):
        return _format_special(value)
    if value == 0:
        return "0"
    text = f"{value:.{digits}g}"
    mantissa, e, exponent = text.partition("e")
    if e:
        power = int(exponent)
        text = f"{value:.0f}" if 0 <= power < 5 else f"{mantissa}e{power}"
    return text.replace("-", MINUS)


def format_aligned(values: Sequence[float], digits: int = 3) -> list[str]:
    """Format the numbers of a column, all with as many decimals as the largest one needs.

    Zeros at the end of all of them are left out. Where the largest is below 1e-4, or 1e5 and
    more, each is formatted on its own by `format_brief`.
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if not 1e-4 <= largest < 1e5:
        return [format_brief(value, digits) for value in values]
    # The exponent of the rounded number: 9.9996 has two digits before the point.
    exponent = int(f"{largest:.{digits - 1}e}".partition("e")[2])
    decimals = max(0, digits - 1 - exponent)
    fractions = [f"{value:.{decimals}f}".partition(".")[2] for value in values]
    decimals = max((len(each.rstrip("0")) for each in fractions), default=0)
    return [
        f"{value:.{decimals}f}".replace("-", MINUS)
        if math.isfinite(value)
        else _format_special(value)
        for value in values
    ]


def format_share(share: float) -> str:
    """Format a part of a whole as ``14.1 %``."""
    return f"{100 * share:.1f} %"


def format_complex(value: complex, digits: int = 3) -> str:
    """Format a complex number as ``1.5−2j``; one without an imaginary part as a real one."""
    real, imaginary = format_brief(value.real, digits), format_brief(value.imag, digits)
    if not value.imag:
        return real
    return f"{real}{'' if imaginary.startswith((MINUS, '+')) else '+'}{imaginary}j"


def _format_special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "+Inf" if value > 0 else f"{MINUS}Inf"


# Counts


def format_count(count: int, noun: str = "", plural: str = "") -> str:
    """Format a whole number in groups of three, and the noun that it counts.

    Parameters
    ----------
    count : int
    noun : str
        In the singular; ``""`` for the number alone.
    plural : str
        ``""`` where it is the noun and an s.

    Returns
    -------
    str
        For example ``36 928``, ``1 operator``, ``2 indices``.
    """
    number = f"{count:,}".replace(",", _GROUP)
    if not noun:
        return number
    return f"{number} {noun if count == 1 else plural or f'{noun}s'}"


def format_names(names: Sequence[str]) -> str:
    """Format the first eight names of a list, and how many more there are."""
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    return ", ".join(names[:_SHOWN_NAMES]) + more


def format_amount(count: float, unit: str) -> str:
    """Format an amount of work by a prefix of its unit: ``480 MAC``, ``115.6 MMAC``."""
    size = float(count)
    for prefix in ("", "K", "M", "G"):
        if size < 999.95:
            return f"{size:.4g} {prefix}{unit}"
        size /= 1000
    return f"{size:,.1f} T{unit}".replace(",", _GROUP)


def format_short_count(count: int) -> str:
    """Format a count in at most five characters: ``40000``, ``200k``, ``3000M``."""
    for limit, divisor, suffix in ((100_000, 1, ""), (10**8, 10**3, "k"), (10**11, 10**6, "M")):
        if count < limit:
            return f"{count // divisor}{suffix}"
    return f"{count // 10**9}G"


# Times


def format_milliseconds(seconds: float | None) -> str:
    """Format milliseconds in about three figures, for a column that names the unit.

    Returns
    -------
    str
        ``""`` for None, a dash for what took no time, thousands as ``14k``.
    """
    if seconds is None:
        return ""
    ms = seconds * 1e3
    if ms <= 0:
        return "—"
    if ms < 10:
        return f"{ms:.2f}"
    if ms < 9999.5:
        return f"{ms:.1f}" if ms < 100 else f"{ms:.0f}"
    return f"{ms / 1e3:.0f}k"


def format_duration(seconds: float) -> str:
    """Format a time with its unit: ``8.3 µs``, ``0.86 ms``, ``12.4 ms``, ``1.25 s``."""
    if seconds <= 0:
        return "0 ms"
    if seconds < 99.95e-6:
        return f"{seconds * 1e6:.1f} µs"
    if seconds < 0.9995:
        return f"{format_milliseconds(seconds)} ms"
    return f"{seconds:.2f} s" if seconds < 99.995 else f"{format_count(round(seconds))} s"


# Sizes in bytes


def format_bytes(count: int) -> str:
    """Format a size, rounded, in powers of 1000: ``512 B``, ``147.7 kB``, ``3.0 MB``."""
    if count < 1000:
        return f"{count} B"
    if len(str(count)) > _MOST_DIGITS:  # more than any memory, and than a float may hold
        return f"more than 1e{len(str(count)) - 1} B"
    size = count / 1000
    for unit in _SIZE_UNITS[:-1]:
        if size < 999.95:
            return f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} {_SIZE_UNITS[-1]}"


def format_exact_bytes(count: int) -> str:
    """Format a size exactly, in the largest unit that it is a whole number of."""
    for unit in _EXACT_UNITS:
        number, rest = divmod(count, _BYTES_IN[unit.lower()])
        if number and not rest:
            return f"{number} {unit}"
    return f"{count} B"


def parse_bytes(text: str) -> int:
    """Read a size in bytes: ``500MB``, ``2GiB``, ``1000000``.

    Parameters
    ----------
    text : str
        A number and, if it is not bytes, a unit: kB, MB, GB and TB are powers of 1000, KiB,
        MiB, GiB and TiB of 1024; in capitals or not.

    Raises
    ------
    ValueError
        If it is not an amount of memory; the message is for the user.
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _BYTES_IN:
        raise ValueError(f"{text!r} is not an amount of memory, such as 500MB, 2GiB or 1000000")
    number, unit = match[1], _BYTES_IN[match[2]]
    whole, _, part = number.partition(".")
    return int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)
