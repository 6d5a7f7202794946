"""Locks between processes: lock files that one process at a time holds.

The system releases a lock when its process ends, also after a crash. No stale lock remains.
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
# O_NONBLOCK: opening a pipe must not wait for its other end.
_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NONBLOCK", 0)


def try_lock(file: int) -> bool:
    """Lock an open file for this process without waiting.

    Parameters
    ----------
    file : int
        Descriptor. Closing it releases the lock.

    Returns
    -------
    bool
        False if another process holds the lock.
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
        Empty lock file, created if missing. It is never removed: a process that waits for a
        removed file and one that creates it anew would hold different locks.
    timeout : float
        Longest wait in seconds.

    Yields
    ------
    bool
        Whether the lock is held. False if another process kept it until the timeout, or the
        file cannot be created.
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
