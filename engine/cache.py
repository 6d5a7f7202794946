"""Where the engine keeps what can be made again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

__all__ = ["cache_folder"]

_CACHE_VARIABLE: Final = "KUIPER_STUDIO_CACHE"


def cache_folder() -> Path:
    """Folder for what can be computed again.

    The environment variable ``KUIPER_STUDIO_CACHE`` names another one.
    """
    if given := os.environ.get(_CACHE_VARIABLE):
        return Path(given)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "kuiper-studio" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "kuiper-studio"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kuiper-studio"
