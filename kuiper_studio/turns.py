"""Does work in turns of the event loop, so that the window answers in between."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Slot
from shiboken6 import isValid

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["take_turn", "turns_are_left"]


class _Turns(QObject):
    """The work that waits, of all parts of the window.

    Timers of their own would all be due in the same turn.

    Attributes
    ----------
    waiting : deque of (QObject, callable)
        What is to be done, and for whom.
    """

    def __init__(self, application: QCoreApplication) -> None:
        super().__init__(application)
        self.waiting: deque[tuple[QObject, Callable[[], object]]] = deque()
        self._turn = QTimer(self, singleShot=True, interval=0)
        self._turn.timeout.connect(self._do_next)
        self._is_free = False  # whether the coming turn has no other work

    def add(self, owner: QObject, work: Callable[[], object]) -> None:
        """Do work after all that waits."""
        self.waiting.append((owner, work))
        if not self._turn.isActive():
            self._begin()

    def _begin(self) -> None:
        self._is_free = False
        self._turn.start()

    @Slot()
    def _do_next(self) -> None:
        if not self._is_free:
            # What was done before is painted, or was handled, in this very turn.
            self._is_free = True
            self._turn.start()
            return
        owner, work = self.waiting.popleft()
        if self.waiting:
            self._begin()
        if isValid(owner):
            work()


def take_turn(owner: QObject, work: Callable[[], object]) -> None:
    """Do work in a coming turn of the event loop, after all that was to be done so before.

    What it changes is painted before the next such work, in a turn of its own.

    Parameters
    ----------
    owner : QObject
        Nothing is done once it is gone.
    work : callable
    """
    application = QCoreApplication.instance()
    assert application is not None  # noqa: S101 - there is an owner
    turns = application.findChild(_Turns) or _Turns(application)
    turns.add(owner, work)


def turns_are_left() -> bool:
    """Whether work waits for its turn; a picture of the window would lack parts."""
    application = QCoreApplication.instance()
    turns = application.findChild(_Turns) if application is not None else None
    return turns is not None and bool(turns.waiting)
