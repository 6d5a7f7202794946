"""The one source of truth for the views, and the worker that runs the engine.

`StudioSession` lives on the GUI thread and is all that views know: they read it, call it and
listen to it. The engine works on a thread of its own behind it; only frozen values cross.
"""

from __future__ import annotations

from kuiper_studio.session.events import Failure, LogEntry, Progress, RunState
from kuiper_studio.session.studio_session import StudioSession, dump_name

__all__ = ["Failure", "LogEntry", "Progress", "RunState", "StudioSession", "dump_name"]
