"""How many threads there may be."""

from __future__ import annotations

import _thread  # whose threads nobody waits for: a millisecond less at every start
import os
from functools import cache
from typing import Final

__all__ = ["can_start_threads", "limit_threads", "processor_count", "thread_count"]

# A session works with a few of its own and with those of each library.
_PROBED: Final = 8
_most: int | None = None


@cache
def can_start_threads() -> bool:
    """Whether the system lets this process start threads, tried once.

    A limit of processes, of a container say, counts threads. Libraries that meet it end the
    process, or wait for ever for a thread that there is not; so it is asked before.
    """
    gate = _thread.allocate_lock()
    with gate:  # so that all are there at the same time
        try:
            for _ in range(_PROBED):
                _thread.start_new_thread(_pass_through, (gate,))
        except RuntimeError:
            return False
    return True


def _pass_through(gate: _thread.LockType) -> None:
    with gate:
        pass


def limit_threads(count: int | None) -> None:
    """Limit the threads that compute in this process; None removes the limit.

    For a process that shares the processors with others of its kind. Kernels that exist
    already keep their threads.
    """
    global _most  # noqa: PLW0603 - one number for the process, as the processors are
    _most = count


def thread_count() -> int:
    """How many threads compute: one for each processor that this process may use."""
    if not can_start_threads():
        return 1
    count = processor_count()
    return count if _most is None else max(1, min(count, _most))


def processor_count() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1
