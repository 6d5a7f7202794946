"""Finds what a window must not leave: processes, shared memory, temporary files."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Traces"]

_SHARED: Final = Path("/dev/shm")
_OF_LIBRARIES: Final = frozenset({".ses"})  # ONNX Runtime's own
_ENDED: Final = 5.0  # seconds that ended processes may take to be gone


class Traces:
    """Gives processes that start from now on their own folders, and finds what is left there.

    Parameters
    ----------
    folder : Path
        Parent of the folders for temporary files and for the cache.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temporary, self._cache = folder / "temporary", folder / "cache"
        self._temporary.mkdir()
        os.environ["TMPDIR"] = str(self._temporary)
        os.environ["KUIPER_STUDIO_CACHE"] = str(self._cache)
        tempfile.tempdir = None
        self._shared = _shared_files()
        self._kept: frozenset[Path] = frozenset()

    def keep(self) -> None:
        """Accept the present contents of the temporary folder as what the window keeps."""
        self._kept = frozenset(self._temporary.iterdir())

    def processes(self) -> frozenset[int]:
        """Return the processes that still run, including those whose parent has ended."""
        found = set()
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != os.getpid():
                with suppress(OSError):
                    if os.fsencode(self._folder) in (entry / "environ").read_bytes():
                        found.add(int(entry.name))
        return frozenset(found)

    def left(self, allowed: frozenset[int] = frozenset()) -> Iterator[str]:
        """Yield what is left, after a moment for processes that are ending.

        Parameters
        ----------
        allowed : frozenset of int
            Processes that may run.

        Yields
        ------
        str
            What should not be.
        """
        end = time.monotonic() + _ENDED
        while (running := self.processes() - allowed) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in sorted(running):
            yield f"process {pid} is left: {_command(pid)}"
        for path in sorted(_shared_files() - self._shared):
            yield f"{path} is left in shared memory"
        for path in sorted({*self._temporary.iterdir()} - self._kept):
            if path.name in _OF_LIBRARIES:
                continue
            yield f"{path.name} is left in the temporary folder"


def _shared_files() -> frozenset[Path]:
    names = _SHARED.iterdir() if _SHARED.is_dir() else ()
    return frozenset(path for path in names if "kuiper" in path.name.lower())


def _command(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    return "it has just ended"
