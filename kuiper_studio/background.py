"""Runs long work of a view on another thread, so that the window stays responsive."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, QTimer, Signal, Slot

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from concurrent.futures import Future

__all__ = ["Background", "Done"]

_POLL_MS: Final = 15


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a request.

    Attributes
    ----------
    key : hashable
        Of the request.
    result : object
        What the function returned; None where it failed.
    error : str
        Why it failed; ``""`` where it did not.
    """

    key: Hashable
    result: object
    error: str = ""


class Background(QObject):
    """Runs functions one after the other on one thread.

    The thread touches no QObject: a signal emitted there could meet an object that the
    window is destroying. A timer fetches results; it runs only while requests are pending.

    Signals
    -------
    finished : Done
        In the order of the requests, on the thread of this object.
    """

    finished = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="background")
        self._due: deque[tuple[Hashable, Future[object]]] = deque()
        self._timer = QTimer(self)
        self._timer.setInterval(_POLL_MS)
        self._timer.timeout.connect(self._collect)
        executor = self._executor
        self.destroyed.connect(lambda: executor.shutdown(wait=False, cancel_futures=True))

    def submit(
        self, key: Hashable, function: Callable[..., object], *arguments: object
    ) -> None:
        """Queue ``function(*arguments)``, which must not touch the window."""
        self._due.append((key, self._executor.submit(function, *arguments)))
        self._timer.start()

    def close(self) -> None:
        """Accept no more requests and drop those that have not started."""
        self._due.clear()
        self._timer.stop()
        self._executor.shutdown(wait=False, cancel_futures=True)

    @Slot()
    def _collect(self) -> None:
        while self._due and self._due[0][1].done():
            key, future = self._due.popleft()
            failure = future.exception()
            if failure is None:
                self.finished.emit(Done(key, future.result()))
            else:
                text = str(failure) or type(failure).__name__
                self.finished.emit(Done(key, None, text))
        if not self._due:
            self._timer.stop()
