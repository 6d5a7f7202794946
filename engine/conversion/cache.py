"""Keeps the exporter's output in the user's cache folder, by content.

An entry is a folder, named by a hash of the file, the options and the exporter. It appears
complete or not at all. The least recently used entries are removed when all together grow too
large.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.cache import cache_folder
from engine.leftovers import HOLDER_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["LARGEST", "conversions_folder", "evict", "find_key", "touch"]

LARGEST: Final = 4 << 30
"""Most bytes of all entries; the newest always stays."""
_FORMAT: Final = b"11"  # of the entries; older ones are no longer found
_DAY: Final = 86400.0  # seconds after which an unfinished entry counts as abandoned


def conversions_folder() -> Path:
    """Return the folder of the entries; create it if it is missing.

    If the cache folder cannot be written, it is a folder of this process only.
    """
    folder = cache_folder() / "conversions"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _own_folder()
    return folder if os.access(folder, os.W_OK) else _own_folder()


@cache
def _own_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="kuiper-studio-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def find_key(files: Iterable[Path], arguments: Sequence[str], exporter: str) -> str:
    """Find the name of an entry.

    Parameters
    ----------
    files : iterable of Path
        Files to convert; their contents count, their names do not.
    arguments : sequence of str
        The exporter's arguments.
    exporter : str
        The exporter's version.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    key = hashlib.sha256(_FORMAT)
    for text in (exporter, *arguments):
        key.update(hashlib.sha256(text.encode()).digest())
    for path in files:
        with path.open("rb") as file:
            key.update(hashlib.file_digest(file, "sha256").digest())
    return key.hexdigest()[:32]


def touch(entry: Path) -> None:
    """Mark an entry as used now."""
    with suppress(OSError):
        os.utime(entry)


def evict(folder: Path, largest: int = LARGEST) -> None:
    """Remove the least recently used entries, and the unfinished ones of killed processes."""
    taken = 0
    for age, entry in sorted(_entries(folder)):
        if entry.name.startswith(HOLDER_PREFIX):
            if age > _DAY:
                shutil.rmtree(entry, ignore_errors=True)
            continue
        size = _size_of(entry)
        if taken and taken + size > largest:
            shutil.rmtree(entry, ignore_errors=True)
        else:
            taken += size


def _entries(folder: Path) -> list[tuple[float, Path]]:
    """Return the entries, and how long ago each was used."""
    now, found = time.time(), []
    with suppress(OSError):
        for entry in folder.iterdir():
            with suppress(OSError):
                found.append((now - entry.stat().st_mtime, entry))
    return found


def _size_of(entry: Path) -> int:
    total = 0
    with suppress(OSError):
        total = sum(file.stat().st_size for file in entry.iterdir())
    return total
