"""Tests of paths that accept any string from a user or a settings file, and suffixes.

No file has a name of more than 255 characters or with a NUL. For such names these functions
return False; `pathlib` of Python 3.11 raises OSError for overlong ones.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["beside", "exists", "files_with_suffix", "is_file", "is_folder"]


def exists(path: str | Path) -> bool:
    """Return whether the path exists."""
    return os.path.exists(path)  # noqa: PTH110 - see above


def is_file(path: str | Path) -> bool:
    """Return whether the path is a file."""
    return os.path.isfile(path)  # noqa: PTH113 - see above


def is_folder(path: str | Path) -> bool:
    """Return whether the path is a folder."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def files_with_suffix(folder: Path, suffix: str) -> list[Path]:
    """Return what a folder has with a suffix, in small or capital letters, sorted."""
    return sorted(path for path in folder.glob("*") if path.suffix.lower() == suffix.lower())


def beside(path: Path, suffix: str) -> Path:
    """Return the file of the same name with another suffix, in capital letters if that one is.

    Parameters
    ----------
    path : Path
    suffix : str
        In small letters.
    """
    if path.suffix.lower() == suffix:
        return path
    usual, capital = path.with_suffix(suffix), path.with_suffix(suffix.upper())
    return capital if is_file(capital) and not is_file(usual) else usual
