"""Sends messages to the engine and back, in this process or in another.

Both transports have the same interface and differ only in `pid`. Replies are passed to
callables on threads of the transport.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from engine.activity import Activity, ActivityNote
from kuiper_studio.engine_service.connection import Connection, ConnectionLostError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kuiper_studio.engine_service.protocol import Request

__all__ = [
    "EngineKind",
    "EngineLost",
    "ProcessTransport",
    "ThreadTransport",
    "Transport",
    "default_engine",
    "start_early",
]

EngineKind: TypeAlias = Literal["process", "thread"]

_VARIABLE: Final = "KUIPER_STUDIO_ENGINE"

_SECONDS_TO_END: Final = 2.0
# Signals of crashes in native code, as opposed to signals that terminate a process.
_FAULTS: Final = frozenset(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGBUS", "SIGILL", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)
_WORDS: Final = {
    "SIGSEGV": "segmentation fault",
    "SIGBUS": "bus error",
    "SIGILL": "illegal instruction",
    "SIGFPE": "arithmetic exception",
    "SIGABRT": "abort",
    "SIGKILL": "killed, perhaps because memory ran out",
    "SIGTERM": "asked to end",
}


@dataclass(frozen=True, slots=True)
class EngineLost:
    """The process of an engine ended unexpectedly.

    Attributes
    ----------
    status : int
        As `subprocess.Popen.returncode`.
    activity : Activity or None
        The running kernel; None for none.
    """

    status: int
    activity: Activity | None

    @property
    def is_fault(self) -> bool:
        """Whether the running kernel crashed."""
        return -self.status in _FAULTS

    @property
    def reason(self) -> str:
        """Why it ended, as text."""
        if self.status >= 0:
            return f"exit status {self.status}"
        try:
            name = signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"
        return f"{_WORDS[name]} ({name})" if name in _WORDS else name


class Transport(Protocol):
    """A connection to an engine."""

    @property
    def pid(self) -> int | None:
        """Id of the engine's process; None if it is a thread of this one."""
        ...

    def send(self, request: Request) -> None:
        """Send a request; it is dropped if the engine has ended."""
        ...

    def activity(self) -> Activity | None:
        """Return the kernel that the engine is running."""
        ...

    def kill(self) -> bool:
        """Kill the engine; return False if that is impossible."""
        ...

    def close(self, *, waits: bool = False) -> None:
        """End the engine; no more messages are received.

        Parameters
        ----------
        waits : bool
            Whether to wait until it has ended.
        """
        ...


class ThreadTransport:
    """An engine on threads of this process.

    Parameters
    ----------
    received : callable
        Called with each received message.
    """

    pid: Final = None

    def __init__(self, received: Callable[[object], None]) -> None:
        # Imported here: it needs the whole engine, which the window's process does not load.
        from engine.runtime.activity import watch
        from kuiper_studio.engine_service.server import EngineServer

        self._note = ActivityNote()
        self._server = EngineServer(received, self._note.clear)
        watch(self._note.write)
        self._thread = Thread(target=self._server.work, name="engine", daemon=True)
        self._thread.start()

    def send(self, request: Request) -> None:
        """Send a request."""
        self._server.receive(request)

    def activity(self) -> Activity | None:
        """Return the kernel that the engine is running."""
        return self._note.read()

    def kill(self) -> bool:
        """Return False: a thread cannot be ended."""
        return False

    def close(self, *, waits: bool = False) -> None:
        """End the threads after their current work; see `Transport`."""
        self._server.close()
        if waits:
            self._thread.join()


class ProcessTransport:
    """An engine in a process of its own.

    Parameters
    ----------
    received : callable
        Called with each received message.
    lost : callable
        Called with an `EngineLost` if the process ends unexpectedly.
    """

    def __init__(
        self, received: Callable[[object], None], lost: Callable[[EngineLost], None]
    ) -> None:
        self._received, self._lost = received, lost
        self._closing = Event()
        self._process, self._note, self._connection = _waiting.pop() if _waiting else _start()
        self._thread = Thread(target=self._receive, name="replies", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """Id of the engine's process."""
        return self._process.pid

    def send(self, request: Request) -> None:
        """Send a request; it is dropped if the engine has ended."""
        with suppress(ConnectionLostError):
            self._connection.send(request)

    def activity(self) -> Activity | None:
        """Return the kernel that the engine is running."""
        return self._note.read()

    def kill(self) -> bool:
        """Kill the process; `lost` is called."""
        self._process.kill()
        return True

    def close(self, *, waits: bool = False) -> None:
        """End the process; see `Transport`."""
        self._closing.set()
        self._connection.close()
        # Native code may delay the end; the window must not wait for it.
        ending = Thread(target=self._end, name="end of an engine")
        ending.start()
        if waits:
            ending.join()

    def _end(self) -> None:
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._thread.join()

    def _receive(self) -> None:
        while True:
            try:
                message = self._connection.receive()
            except ConnectionLostError:
                break
            if not self._closing.is_set():
                self._received(message)
        if not self._closing.is_set():
            self._process.kill()  # it may have closed only its end of the socket
            status = self._process.wait()
            self._lost(EngineLost(status, self._note.read()))


_MODULE: Final = "kuiper_studio.engine_service.process"


class _Started(NamedTuple):
    """A process that no transport uses yet."""

    process: subprocess.Popen[bytes]
    note: ActivityNote
    connection: Connection


_waiting: Final[list[_Started]] = []


def start_early(model: Path | None = None, bin_path: Path | None = None) -> None:
    """Start the process of the next `ProcessTransport`, while this one imports.

    An unused process ends with this one.

    Parameters
    ----------
    model, bin_path : Path, optional
        The files that will be opened; the engine reads them at once.
    """
    if default_engine() == "process" and not _waiting:
        _waiting.append(_start(model, bin_path))


def _start(model: Path | None = None, bin_path: Path | None = None) -> _Started:
    note = ActivityNote()
    ours, theirs = socket.socketpair()
    with theirs:
        handles = (theirs.fileno(), note.descriptor)
        # A fresh interpreter that runs this module only: `multiprocessing` would run the
        # main module of the embedding program again.
        process = subprocess.Popen(  # noqa: S603 - this interpreter, our module
            [sys.executable, "-m", _MODULE, *map(str, (*handles, model or "", bin_path or ""))],
            pass_fds=handles,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    return _Started(process, note, Connection(ours))


def default_engine() -> EngineKind:
    """Choose where the engine runs: in its own process wherever the system allows it.

    The environment variable ``KUIPER_STUDIO_ENGINE=thread`` keeps it in this process.
    """
    possible = hasattr(socket, "send_fds") and hasattr(socket, "AF_UNIX")
    return "process" if possible and os.environ.get(_VARIABLE) != "thread" else "thread"
