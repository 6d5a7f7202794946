"""Tests of paths that accept any string from a user or a settings file.

No file has a name of more than 255 characters or with a NUL. For such names these functions
return False; `pathlib` of Python 3.11 raises OSError for overlong ones.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["exists", "is_file", "is_folder"]


def exists(path: str | Path) -> bool:
    """Return whether the path exists."""
    return os.path.exists(path)  # noqa: PTH110 - see above


def is_file(path: str | Path) -> bool:
    """Return whether the path is a file."""
    return os.path.isfile(path)  # noqa: PTH113 - see above


def is_folder(path: str | Path) -> bool:
    """Return whether the path is a folder."""
    return os.path.isdir(path)  # noqa: PTH112 - see above
