"""Entry point of the process that the user starts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kuiper_studio.cli.supervisor import supervise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kuiper_studio.cli.supervisor import Supervision

__all__ = ["main"]


def main() -> int:
    """Run the command line of this process; returns its exit status."""
    return supervise(_run)


def _run(arguments: Sequence[str], supervision: Supervision | None) -> int:
    # Only the process that runs the command needs this, not the one that supervises it.
    _limit_threads()
    from kuiper_studio.cli.program import main as run

    return run(arguments, supervision)


def _limit_threads() -> None:
    """Limit libraries to one thread where the system starts no others.

    They read these variables when they are imported. Without them OpenBLAS would wait for its
    threads for ever, and OpenMP would end the process.
    """
    from engine.threads import can_start_threads

    if not can_start_threads():
        os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))
