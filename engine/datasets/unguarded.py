"""Notices workers that start a sweep themselves, because they import a user's script.

A process that is started afresh imports the script that started it. Where the script calls
`engine.sweep` or `calibrate_sweep` outside of ``if __name__ == "__main__":``, each worker would
do so too.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from multiprocessing import current_process, get_context
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engine.errors import SweepError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["leave_importing_worker", "require_guard"]

_VARIABLE: Final = "KUIPER_STUDIO_UNGUARDED"
_MARK: Final = ".unguarded"


def require_guard(folder: Path) -> None:
    """Check that a worker would not run the user's script again, by starting one that does.

    Dask before summer 2026 starts a worker that ends at once again and again, without end. So
    this is found out before.

    Parameters
    ----------
    folder : Path
        Where a file may be written for a moment.

    Raises
    ------
    SweepError
        If it would.
    """
    with _marked_by_importing_worker(folder) as mark:
        # A function that is there anyway: to import this package takes half a second.
        process = get_context("spawn").Process(target=os.getpid, daemon=True)
        process.start()
        process.join()
        if mark.exists():
            raise SweepError(
                'a script must call engine.sweep under `if __name__ == "__main__":`, and '
                "calibrate_sweep too, because each worker imports the script; with workers=0 "
                "there are none"
            )


def leave_importing_worker() -> None:
    """End this process without a word if it is a worker that imports the user's script."""
    mark = os.environ.get(_VARIABLE)
    # Set while multiprocessing prepares a process; there is no public name for it.
    if mark is not None and getattr(current_process(), "_inheriting", False):
        Path(mark).touch()
        raise SystemExit


@contextmanager
def _marked_by_importing_worker(folder: Path) -> Iterator[Path]:
    """Return the path of a file that there is as soon as a worker runs the script's sweep."""
    mark = folder / _MARK
    mark.unlink(missing_ok=True)
    os.environ[_VARIABLE] = str(mark)
    try:
        yield mark
    finally:
        del os.environ[_VARIABLE]
        mark.unlink(missing_ok=True)
