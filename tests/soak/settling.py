"""Lets a window live until something is so."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QApplication

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SETTLED", "handle_events"]

SETTLED = 60.0  # seconds after which an engine that is busy counts as hanging


def handle_events(condition: Callable[[], bool], seconds: float) -> bool:
    """Handle events until a condition holds; whether it does in the end."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        QApplication.processEvents()
        time.sleep(0.001)
    return condition()
