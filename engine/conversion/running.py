"""Runs the exporter without a shell and within bounds; ends it together with its children."""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

from engine.errors import ConversionCancelledError
from engine.memory_bound import machine_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Run", "run"]

_LAUNCHER: Final = Path(__file__).with_name("launcher.py")
_POLL: Final = 0.05  # seconds
_PIECE: Final = 1 << 16  # bytes
_PIECES: Final = 16  # bytes read before the clock is checked
_LONGEST_LINE: Final = 2000  # characters
_FIRST_LINES: Final = 2000  # lines kept from the beginning
_LAST_LINES: Final = 2000  # and from the end
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# Variables of the user's environment that the exporter gets.
_INHERITED: Final = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")


class Run(NamedTuple):
    """The result of a run of the exporter.

    Attributes
    ----------
    status : int
        As `subprocess.Popen.returncode`.
    lines : tuple of str
        Its output without colours; of long output the beginning and the end.
    timed_out : bool
        Whether it was stopped because it took too long.
    """

    status: int
    lines: tuple[str, ...]
    timed_out: bool


def run(
    executable: Path,
    arguments: Sequence[str],
    folder: Path,
    *,
    report: Callable[[str], None],
    is_cancelled: Callable[[], bool],
    time_limit: float,
) -> Run:
    """Run the exporter in a folder and wait for its end.

    Parameters
    ----------
    executable : Path
    arguments : sequence of str
    folder : Path
        Working folder, where it also writes.
    report : callable
        Called with each line that it prints.
    is_cancelled : callable
        Called about twenty times a second.
    time_limit : float
        Seconds.

    Returns
    -------
    Run

    Raises
    ------
    ConversionCancelledError
        If `is_cancelled` returned True. The exporter and its children have ended then.
    OSError
        If it cannot be started.
    """
    posix = os.name == "posix"
    launcher: list[object] = []
    if posix:
        memory, parent = machine_memory(), os.getpid()
        launcher = [sys.executable, "-I", "-S", _LAUNCHER, memory, parent]
    process = subprocess.Popen(  # noqa: S603 - no shell, and no argument is a path of the user's
        [*map(str, launcher), str(executable), *arguments],
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=posix,
    )
    printed = _Printed(report)
    ended = time.monotonic() + time_limit
    timed_out = False
    try:
        assert process.stdout is not None  # noqa: S101 - a pipe was asked for
        with process.stdout as pipe, selectors.DefaultSelector() as selector:
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ)
            is_open = True
            while process.poll() is None:
                if is_cancelled():
                    raise ConversionCancelledError("the conversion was cancelled")
                timed_out = time.monotonic() >= ended
                if timed_out:
                    break
                if is_open:
                    selector.select(_POLL)
                    is_open = printed.read(pipe)
                else:
                    time.sleep(_POLL)
            printed.read(pipe)
    finally:
        _end(process)
    return Run(process.returncode, printed.close(), timed_out)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the exporter and its children, if they still run."""
    if os.name == "posix":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()
    process.wait()


def _environment(folder: Path) -> Mapping[str, str]:
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    own = {"HOME": str(folder), "TMPDIR": str(folder), "LC_ALL": "C.UTF-8"}
    return {**inherited, **own}


class _Printed:
    """The output of a program, in lines.

    Parameters
    ----------
    report : callable
        Called with each line.
    """

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._rest = ""
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    def read(self, pipe: IO[bytes]) -> bool:
        """Read the output so far, or a part of long output; return whether more may come."""
        for _ in range(_PIECES):
            try:
                data = os.read(pipe.fileno(), _PIECE)
            except BlockingIOError:
                break
            if not data:
                return False
            text = self._rest + data.decode("utf-8", "replace").replace("\r", "\n")
            *lines, self._rest = text.split("\n")
            self._rest = self._rest[:_LONGEST_LINE]
            for line in lines:
                self._add(line)
        return True

    def close(self) -> tuple[str, ...]:
        """Return all lines."""
        self._add(self._rest)
        return (*self._first, *self._last)

    def _add(self, line: str) -> None:
        plain = _COLOURS.sub("", line[:_LONGEST_LINE]).rstrip()
        if plain:
            (self._first if len(self._first) < _FIRST_LINES else self._last).append(plain)
            self._report(plain)
