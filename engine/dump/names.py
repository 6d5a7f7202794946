"""Makes safe file names of operator and operand names, which may hold anything."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UniqueNames", "archive_name", "clean_name"]

MAX_NAME: Final = 80

_WINDOWS_RESERVED: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{w}{i}" for w in ("com", "lpt") for i in range(1, 10))]
)
_SAFE_IN_ARCHIVES: Final = re.compile(r"\w[\w.-]*")
_TAKEN_BY_SAFETENSORS: Final = "__metadata__"


def clean_name(text: str) -> str:
    """Make a name safe as part of a file name, on any system.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        Of ``A-Z a-z 0-9 . _ -``, at most 80 characters, not empty, beginning neither with a
        dot nor with a dash, no device name of Windows. Different names may become equal.
    """
    cleaned = re.sub(r"[^A-Za-z0-9._-]", "_", text)
    cleaned = re.sub(r"^[.-]", "_", cleaned).rstrip(".") or "_"
    if cleaned.partition(".")[0].lower() in _WINDOWS_RESERVED:
        cleaned = f"_{cleaned}"
    if len(cleaned) > MAX_NAME:
        cleaned = _with_hash(cleaned, text)
    return cleaned


def archive_name(text: str) -> str:
    """Make a name safe as the name of an array in an archive.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
        The name itself if it consists of letters, digits, ``.``, ``_`` and ``-``, so that
        arrays can be found by operand; else a cleaned one.
    """
    if _SAFE_IN_ARCHIVES.fullmatch(text) and text != _TAKEN_BY_SAFETENSORS:
        return text
    return _with_hash(clean_name(text), text)


class UniqueNames:
    """Makes unique names.

    Parameters
    ----------
    clean : callable
        Makes a name safe.
    fold : callable
        Two names count as equal when this makes them equal.
    """

    def __init__(
        self, clean: Callable[[str], str] = clean_name, fold: Callable[[str], str] = str.lower
    ) -> None:
        self._clean, self._fold = clean, fold
        self._used: set[str] = set()
        self._attempts: dict[str, int] = {}

    def claim(self, text: str) -> str:
        """Clean a name; if that is taken, add a hash."""
        cleaned = candidate = self._clean(text)
        while self._fold(candidate) in self._used:
            attempt = self._attempts[text] = self._attempts.get(text, 0) + 1
            candidate = _with_hash(cleaned, f"{text}#{attempt}")
        self._used.add(self._fold(candidate))
        return candidate


def _with_hash(cleaned: str, text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{cleaned[: MAX_NAME - 9]}-{digest}"
