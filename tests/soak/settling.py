"""Runs the event loop of a window until a condition holds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QApplication

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from engine.inputs import InputSource
    from kuiper_studio.session import StudioSession

__all__ = ["SETTLED", "handle_events", "open_with"]

SETTLED = 60.0  # seconds after which an engine that is busy counts as hanging


def handle_events(condition: Callable[[], bool], seconds: float) -> bool:
    """Handle events until a condition holds; return whether it does in the end."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.001)
    return condition()


def open_with(session: StudioSession, path: Path, source: InputSource) -> None:
    """Open a model, feed all its inputs from one source, and wait for the end of that."""
    session.next_model.set_sources([source])
    session.open(path)
    session.wait_idle(SETTLED)
