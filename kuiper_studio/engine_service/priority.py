"""Lets the window go before the processes that compute for it."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["give_way"]

# Steps of `nice`. Three halve the share of a busy processor: fewer keep the window waiting, and
# with more a pass takes too long beside other programs.
_STEPS: Final = 3
_THREADS: Final = Path("/proc/self/task")


def give_way() -> None:
    """Have the system prefer the window to this process where both want a processor.

    A kernel has a thread for each processor: while a network ran, turns of the window's event
    loop waited for them longer than they took.
    """
    with suppress(OSError):
        if sys.platform == "linux":
            # There `nice` is of a thread. Importing NumPy has started some.
            wanted = os.getpriority(os.PRIO_PROCESS, 0) + _STEPS
            for thread in _THREADS.iterdir():
                os.setpriority(os.PRIO_PROCESS, int(thread.name), wanted)
        elif hasattr(os, "nice"):
            os.nice(_STEPS)
