"""What a process that was killed while it wrote has left behind.

Whoever writes a file or folder makes a hidden folder beside it, the *holder*. It has what is
written, and for a moment what that takes the place of. A process that is killed cannot remove
it. So each holder is noted in the user's cache folder for as long as it is needed, in a file
that its process keeps locked. A note that is not locked is of a process that ended: what is
half written is removed, and what was there before is offered.
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
"""In a holder: what is written."""
OLD: Final = "old"
"""In a holder: what it takes the place of."""
_LONGEST_NOTE: Final = 1 << 16  # bytes
_TO_READ: Final = os.O_RDWR | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Leftover:
    """A folder that was about to be replaced when the process that did so was killed.

    Attributes
    ----------
    destination : Path
        Where it was.
    holder : Path
        Hidden folder that has it now, and what was to take its place.
    """

    destination: Path
    holder: Path

    @property
    def earlier(self) -> Path:
        """What was there before."""
        return self.holder / OLD

    def restore(self) -> None:
        """Put it back where it was.

        Raises
        ------
        OSError
            If something else is there by now, or it cannot be moved.
        """
        if os.path.lexists(self.destination):
            raise FileExistsError(f"{self.destination} exists again; move it away first")
        self.earlier.rename(self.destination)
        self.discard()

    def discard(self) -> None:
        """Remove it for good."""
        shutil.rmtree(self.holder, ignore_errors=True)


def find_leftovers() -> list[Leftover]:
    """Find what killed processes of this user left behind, and remove what is half written.

    Returns
    -------
    list of Leftover
        What only the user can decide on.
    """
    found: list[Leftover] = []
    with contextlib.suppress(OSError):
        for note in sorted(_notes_folder().iterdir()):
            with contextlib.suppress(OSError):
                found.extend(_look_at(note))
    return found


@contextmanager
def noted(holder: Path, destination: Path) -> Iterator[None]:
    """Keep a note of a holder while the block runs, or none where it cannot be written."""
    note = _notes_folder() / f"{holder.name.removeprefix(HOLDER_PREFIX)}.json"
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        yield
        return
    try:
        if try_lock(file):  # else it must not say anything, for it would look left behind
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


def _look_at(note: Path) -> list[Leftover]:
    """What the holder of a note is good for; a note that has served is removed."""
    file = os.open(note, _TO_READ)
    try:
        if not try_lock(file):
            return []  # its process is at work
        leftover = _read(os.read(file, _LONGEST_NOTE))
    finally:
        os.close(file)
    if leftover is not None and leftover.holder.is_dir():
        # With both there, the one was moved away and the other did not take its place.
        if leftover.earlier.exists() and (leftover.holder / NEW).exists():
            return [leftover]
        leftover.discard()
    note.unlink(missing_ok=True)
    return []


def _read(text: bytes) -> Leftover | None:
    """Read a note; None where it is damaged, or names what is no holder."""
    try:
        content = json.loads(text)
        holder, destination = Path(content["holder"]), Path(content["destination"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not holder.name.startswith(HOLDER_PREFIX) or holder.parent != destination.parent:
        return None
    return Leftover(destination, holder)
