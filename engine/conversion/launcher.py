"""Sets bounds and becomes the exporter; a program of its own with few imports.

Arguments: most bytes of memory, id of the parent process, the executable and its arguments. The
bounds must be set between fork and exec, where a process with threads must not run Python.
"""

from __future__ import annotations

import os
import signal
import sys

_SET_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux


def _main(arguments: list[str]) -> None:
    import resource

    bound, parent, executable = int(arguments[0]), int(arguments[1]), arguments[2]
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        bound = min(bound, hard)
    # Not the address space: allocators and thread pools reserve far more than they use.
    resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == parent:  # else the parent has ended already
        os.execv(executable, arguments[2:])  # noqa: S606 - the exporter, without a shell


if __name__ == "__main__":
    _main(sys.argv[1:])
