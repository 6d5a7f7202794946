"""Notices workers that start a sweep themselves, because they import a user's script.

A process that is started afresh imports the script that started it. Where the script calls
`engine.sweep` outside of ``if __name__ == "__main__":``, each worker would run a sweep.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from multiprocessing import current_process
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["UNGUARDED", "leave_importing_worker", "marked_by_importing_workers"]

_VARIABLE: Final = "KUIPER_STUDIO_UNGUARDED"
_MARK: Final = ".unguarded"
UNGUARDED: Final = (
    'a script must call engine.sweep under `if __name__ == "__main__":`, because each worker '
    "imports the script; with workers=0 there are none"
)
"""What the user must do."""


@contextmanager
def marked_by_importing_workers(folder: Path) -> Iterator[Path]:
    """Return the path of a file that there is as soon as a worker runs the script's sweep."""
    mark = folder / _MARK
    mark.unlink(missing_ok=True)
    os.environ[_VARIABLE] = str(mark)
    try:
        yield mark
    finally:
        del os.environ[_VARIABLE]
        mark.unlink(missing_ok=True)


def leave_importing_worker() -> None:
    """End this process without a word if it is a worker that imports the user's script."""
    mark = os.environ.get(_VARIABLE)
    # Set while multiprocessing prepares a process; there is no public name for it.
    if mark is not None and getattr(current_process(), "_inheriting", False):
        Path(mark).touch()
        raise SystemExit
