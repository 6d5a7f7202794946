"""Amounts of memory as people write them: ``500MB``, ``2GiB``, ``1000000``."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["bytes_text", "parse_bytes", "spell_bytes"]

_UNITS: Final = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SPELT: Final = ("TB", "TiB", "GB", "GiB", "MB", "MiB", "kB", "KiB")
_BINARY: Final = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_AMOUNT: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([a-z]*)", re.ASCII)


def parse_bytes(text: str) -> int:
    """Read an amount of memory.

    Parameters
    ----------
    text : str
        A number and, if it is not bytes, a unit: kB, MB, GB and TB are powers of 1000, KiB,
        MiB, GiB and TiB of 1024; in capitals or not.

    Raises
    ------
    ValueError
        With what an amount of memory is.
    """
    match = _AMOUNT.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"{text!r} is no amount of memory, such as 500MB, 2GiB or 1000000")
    number, unit = match[1], _UNITS[match[2]]
    whole, _, part = number.partition(".")
    return int(whole) * unit + (int(part) * unit // 10 ** len(part) if part else 0)


def spell_bytes(count: int) -> str:
    """Spell an amount exactly, in the largest unit that it is a whole number of."""
    for unit in _SPELT:
        number, rest = divmod(count, _UNITS[unit.lower()])
        if number and not rest:
            return f"{number} {unit}"
    return f"{count} B"


def bytes_text(count: int) -> str:
    """Size in binary units, rounded, for example ``144.3 KiB``."""
    if count < 1024:
        return f"{count} B"
    unit = min((count.bit_length() - 1) // 10, len(_BINARY))
    if count.bit_length() > 100:  # which no float may hold
        return f"more than 2^{count.bit_length() - 1} B"
    return f"{count / 1024**unit:.1f} {_BINARY[unit - 1]}"
