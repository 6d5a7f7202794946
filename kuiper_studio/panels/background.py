"""Sums that would hold up the window, done on a thread of their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["Background", "Done"]


@dataclass(frozen=True, slots=True)
class Done:
    """Answer to a request.

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

    Signals
    -------
    finished : Done
        Emitted on the other thread: connect it to slots of QObjects only, which then run
        on their own thread.
    """

    finished = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="panel")
        executor = self._executor
        self.destroyed.connect(lambda: executor.shutdown(wait=False, cancel_futures=True))

    def submit(self, key: Hashable, function: Callable[[], object]) -> None:
        """Ask for ``function()``; it must touch nothing of the window."""
        self._executor.submit(self._answer, key, function)

    def _answer(self, key: Hashable, function: Callable[[], object]) -> None:
        try:
            done = Done(key, function())
        except Exception as exc:  # noqa: BLE001 - becomes a sentence in the window
            done = Done(key, None, str(exc) or type(exc).__name__)
        try:
            self.finished.emit(done)
        except RuntimeError:
            # The panel was destroyed meanwhile; nobody waits for the answer.
            return
