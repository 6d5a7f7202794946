"""Locks between processes: files that one process at a time holds locked.

The system lets go of a lock when its process ends, however that happens. So no lock is left
behind.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["locked", "try_lock"]

_SECONDS_BETWEEN_TRIES: Final = 0.002
_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)  # which a pipe may need


def try_lock(file: int) -> bool:
    """Lock an open file for this process; whether that worked at once.

    Parameters
    ----------
    file : int
        Descriptor; the lock goes when it is closed.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def locked(path: Path, timeout: float) -> Iterator[bool]:
    """Hold a lock while the block runs.

    Parameters
    ----------
    path : Path
        An empty file, made where there is none, and never removed: who waits for it would
        wait for another file than who comes later.
    timeout : float
        Seconds to wait at most.

    Yields
    ------
    bool
        Whether the lock is held. It is not where somebody else held it all the time, or where
        the file cannot be made.
    """
    try:
        file = os.open(path, _FLAGS, 0o600)
    except OSError:
        yield False
        return
    try:
        ended = time.monotonic() + timeout
        held = try_lock(file)
        while not held and time.monotonic() < ended:
            time.sleep(_SECONDS_BETWEEN_TRIES)
            held = try_lock(file)
        yield held
    finally:
        with contextlib.suppress(OSError):
            os.close(file)
