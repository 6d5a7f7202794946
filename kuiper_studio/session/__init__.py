"""The window's session: the one source of truth for the views, and the client of the engine.

`StudioSession` lives on the GUI thread. Views know only it: they read it, call it and connect
to its signals. The engine runs in its own process; only messages cross.
"""

from __future__ import annotations

from kuiper_studio.engine_service.protocol import Progress, Record
from kuiper_studio.session.events import Failure, LogEntry, RunState
from kuiper_studio.session.failures import dump_name
from kuiper_studio.session.snapshot import Snapshot
from kuiper_studio.session.studio_session import StudioSession

__all__ = [
    "Failure",
    "LogEntry",
    "Progress",
    "Record",
    "RunState",
    "Snapshot",
    "StudioSession",
    "dump_name",
]
