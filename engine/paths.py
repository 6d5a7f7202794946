"""What lies at a path that a user or a file of settings names, whatever that is.

A name of more than 255 characters, or with NUL in it, is no file's. `pathlib` of Python 3.11
raises OSError where the first is asked about.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["exists", "is_file", "is_folder"]


def exists(path: str | Path) -> bool:
    """Whether there is anything."""
    return os.path.exists(path)  # noqa: PTH110 - see above


def is_file(path: str | Path) -> bool:
    """Whether there is a file."""
    return os.path.isfile(path)  # noqa: PTH113 - see above


def is_folder(path: str | Path) -> bool:
    """Whether there is a folder."""
    return os.path.isdir(path)  # noqa: PTH112 - see above
