"""Layouts and thumbnails, made on a thread of their own."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Answer", "Background"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a function returned.

    Attributes
    ----------
    key : hashable
        Of the request.
    result : object
        None where the function failed.
    error : Exception or None
    """

    key: Hashable
    result: object
    error: Exception | None = None


class Background(QObject):
    """Runs functions one after the other on one thread, which starts with the first.

    Signals
    -------
    finished
        An Answer. Emitted on the other thread, so it must be connected to slots of QObjects
        only, which run on their own thread.
    """

    finished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="graph-view")

    def submit(
        self, key: Hashable, function: Callable[..., object], *arguments: object
    ) -> None:
        """Ask for ``function(*arguments)``; arguments are frozen values."""
        self._executor.submit(self._run, key, function, arguments)

    def close(self) -> None:
        """Take no more requests and drop those that have not begun."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _run(
        self, key: Hashable, function: Callable[..., object], arguments: tuple[object, ...]
    ) -> None:
        try:
            answer = Answer(key, function(*arguments))
        except Exception as exc:  # noqa: BLE001
            # Last Python frame of this thread: a bug lost here leaves the view waiting.
            _log.debug("%s failed", getattr(function, "__name__", function), exc_info=True)
            answer = Answer(key, None, exc)
        self.finished.emit(answer)
