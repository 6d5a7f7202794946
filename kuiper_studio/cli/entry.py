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
    # The process that watches over a command needs nothing of this.
    _settle_threads()
    from kuiper_studio.cli.program import main as run

    return run(arguments, supervision)


def _settle_threads() -> None:
    """Have libraries work on one thread where the system lets none be started.

    They read this when they are imported. NumPy's waits for ever for threads that there are
    not, and OpenMP ends the process.
    """
    from engine.threads import can_start_threads

    if not can_start_threads():
        os.environ.update(dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1"))
