"""How many threads there may be."""

from __future__ import annotations

import os
import threading
from functools import cache
from typing import Final

__all__ = ["can_start_threads", "thread_count"]

# A session works with a few of its own and with those of each library.
_PROBED: Final = 16


@cache
def can_start_threads() -> bool:
    """Whether the system lets this process start threads, tried once.

    A limit of processes, of a container say, counts threads. Libraries that meet it end the
    process, or wait for ever for a thread that there is not; so it is asked before.
    """
    done = threading.Event()
    started: list[threading.Thread] = []
    try:
        for _ in range(_PROBED):
            thread = threading.Thread(target=done.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        done.set()
        for thread in started:
            thread.join()
    return True


def thread_count() -> int:
    """How many threads compute: one for each processor that this process may use."""
    if not can_start_threads():
        return 1
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
