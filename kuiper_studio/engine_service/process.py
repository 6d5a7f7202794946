"""Main module of the engine's process, which `transport` starts.

Its arguments are two inherited descriptors, of a socket and of the activity note, and the
files of a model to read ahead, "" for none. It ends when the other end of the socket closes,
even in the middle of an operator.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final, cast

from engine.activity import ActivityNote
from engine.layers import registered_types
from engine.runtime.activity import watch
from kuiper_studio.engine_service.connection import Connection, ConnectionLostError
from kuiper_studio.engine_service.priority import give_way
from kuiper_studio.engine_service.server import EngineServer

if TYPE_CHECKING:
    from kuiper_studio.engine_service.protocol import Request

__all__ = ["main"]

_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG of Linux
# How long the receiving thread waits for the interpreter while another thread runs Python code.
_SWITCH_SECONDS: Final = 0.001


def main(arguments: list[str]) -> None:
    """Serve requests until the window closes the connection."""
    end, note = map(int, arguments[:2])
    param, bin_path = arguments[2:]
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the window handles Ctrl+C
    sys.setswitchinterval(_SWITCH_SECONDS)
    activity = ActivityNote.inherited(note)
    connection = Connection(socket.socket(fileno=end))

    def send(message: object) -> None:
        with suppress(ConnectionLostError):  # the receiving thread notices
            connection.send(message)

    server = EngineServer(send, activity.clear)
    watch(activity.write)
    Thread(target=_receive, args=(connection, server), daemon=True).start()
    # Import all layers and networkx while the window imports Qt.
    registered_types()
    import_module("networkx")
    if param:
        server.prepare(Path(param), Path(bin_path) if bin_path else None)
        import_module("engine.session")
    give_way()  # not sooner: the window waits for what is read
    server.work()


def _receive(connection: Connection, server: EngineServer) -> None:
    while True:
        try:
            message = connection.receive()
        except ConnectionLostError:
            os._exit(0)  # native code may never release the interpreter
        server.receive(cast("Request", message))


def _die_with_parent() -> None:
    """Request that Linux kills this process with its parent, also in native code."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
