"""Finds unfinished writes of killed processes.

`engine.atomic` writes a file or folder inside a hidden folder beside the destination, the
*holder*. The holder contains the new data and, briefly, the old data that it replaces. A killed
process cannot remove its holder. So each holder has a note in the user's cache folder: a file
that the writing process keeps locked. An unlocked note belongs to a process that has ended. Its
partial data are removed, and its old data can be restored.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.cache import cache_folder
from engine.file_lock import try_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HOLDER_PREFIX", "NEW", "OLD", "Leftover", "find_leftovers", "noted"]

HOLDER_PREFIX: Final = ".kuiper-"
NEW: Final = "new"
"""In a holder: the new data."""
OLD: Final = "old"
"""In a holder: the old data that are replaced."""
_LONGEST_NOTE: Final = 1 << 16  # bytes
_TO_READ: Final = os.O_RDWR | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A folder whose replacement was interrupted because the process was killed.

    Attributes
    ----------
    destination : Path
        Original path of the folder.
    holder : Path
        Hidden folder with the old folder and its replacement.
    """

    destination: Path
    holder: Path

    @property
    def earlier(self) -> Path:
        """Path of the old folder."""
        return self.holder / OLD

    def restore(self) -> None:
        """Move the old folder back to its destination.

        Raises
        ------
        OSError
            If the destination exists again, or the folder cannot be moved.
        """
        if os.path.lexists(self.destination):
            raise FileExistsError(f"{self.destination} exists again; move it away first")
        self.earlier.rename(self.destination)
        self.discard()

    def discard(self) -> None:
        """Delete the holder with the old folder and its replacement."""
        shutil.rmtree(self.holder, ignore_errors=True)


def find_leftovers() -> list[Leftover]:
    """Find interrupted replacements of this user, and remove partial data.

    Returns
    -------
    list of Leftover
        Folders that the user must decide to restore or discard.
    """
    found: list[Leftover] = []
    with contextlib.suppress(OSError):
        for note in sorted(_notes_folder().iterdir()):
            with contextlib.suppress(OSError):
                found.extend(_process_note(note))
    return found


@contextmanager
def noted(holder: Path, destination: Path) -> Iterator[None]:
    """Keep a note of a holder while the block runs; without a note if it cannot be written."""
    note = _notes_folder() / f"{holder.name.removeprefix(HOLDER_PREFIX)}.json"
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        yield
        return
    try:
        if try_lock(file):  # a note without a lock would count as left behind
            text = json.dumps({"holder": str(holder), "destination": str(destination)})
            with contextlib.suppress(OSError):
                os.write(file, text.encode())
        yield
    finally:
        os.close(file)
        if not holder.exists():
            note.unlink(missing_ok=True)


def _notes_folder() -> Path:
    return cache_folder() / "writing"


def _process_note(note: Path) -> list[Leftover]:
    """Return the leftover of a note; remove notes and holders that are no longer needed."""
    file = os.open(note, _TO_READ)
    try:
        if not try_lock(file):
            return []  # the process is still writing
        leftover = _parse_note(os.read(file, _LONGEST_NOTE))
    finally:
        os.close(file)
    if leftover is not None and leftover.holder.is_dir():
        # Both exist: the old folder was moved aside, but the new one not yet into its place.
        if leftover.earlier.exists() and (leftover.holder / NEW).exists():
            return [leftover]
        leftover.discard()
    note.unlink(missing_ok=True)
    return []


def _parse_note(text: bytes) -> Leftover | None:
    """Parse a note; None if it is damaged or does not name a holder."""
    try:
        content = json.loads(text)
        holder, destination = Path(content["holder"]), Path(content["destination"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not holder.name.startswith(HOLDER_PREFIX) or holder.parent != destination.parent:
        return None
    return Leftover(destination, holder)
