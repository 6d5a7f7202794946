"""The user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = ["cache_folder"]

_CACHE_VARIABLE: Final = "KUIPER_STUDIO_CACHE"


def cache_folder() -> Path:
    """Return the folder for files that can be computed again.

    The system's folder for caches of this user has it; the environment variable
    ``KUIPER_STUDIO_CACHE`` names another one. For a user without a home it is no folder, and
    cannot become one: whoever writes there meets an OSError, and goes without.
    """
    if given := os.environ.get(_CACHE_VARIABLE):
        return Path(given)
    from platformdirs import user_cache_path

    try:
        folder = user_cache_path("kuiper-studio", appauthor=False)
    except RuntimeError:
        folder = Path()
    # Older platformdirs give a path that begins with "~" to a user without a home.
    return folder if folder.is_absolute() else Path(os.devnull, "kuiper-studio")
