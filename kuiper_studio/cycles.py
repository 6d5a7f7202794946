"""Collects cycles of objects on the GUI thread only.

Python's collector runs on whatever thread makes an object. It would destroy objects of Qt on
the threads of the engine or of a view, where timers cannot be stopped. Nor do locks allow it:
Qt's destructor of a receiver holds a lock of its connections while Qt for Python waits for the
interpreter, to call ``disconnectNotify`` of the sender. The GUI thread may have the interpreter
and wait for that lock, as in the constructor of QFileSystemWatcher: then both wait for ever.
"""

from __future__ import annotations

from time import monotonic, thread_time
from typing import Final

from PySide6.QtCore import QAbstractEventDispatcher, QCoreApplication, QObject, QTimer, Slot

from engine.collector import collect_due, collect_on_request, is_due

__all__ = ["CycleCollector"]

_REST_MS: Final = 50
_RESTING: Final = 0.01  # seconds of work in that time, below which the window is at rest
_OVERDUE: Final = 20  # times as many objects as Python waits for
_PATIENCE: Final = 0.5  # seconds without rest, after which so many are not left alone


class CycleCollector(QObject):
    """Collects cycles between events, when the window is at rest.

    A collection of everything takes two frames, and came between a key and its answer. Where
    there is no rest, it collects after twenty times as many objects as Python waits for, but
    not at once: an answer that makes as many comes to rest.

    Parameters
    ----------
    application : QCoreApplication
        Its parent, on whose thread it collects.
    """

    def __init__(self, application: QCoreApplication) -> None:
        super().__init__(application)
        self._worked = 0.0  # seconds, when the timer was started
        self._due = 0.0  # when a collection has become due
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self._collect_at_rest)
        dispatcher = QAbstractEventDispatcher.instance()
        # Before it waits for events, and before it handles them where it does not wait.
        dispatcher.aboutToBlock.connect(self._look)
        dispatcher.awake.connect(self._look)
        collect_on_request()

    @classmethod
    def ensure(cls, application: QCoreApplication) -> None:
        """Have an application collect so, if it does not yet."""
        if application.findChild(cls) is None:
            cls(application)

    def close(self) -> None:
        """Let Python collect wherever it likes again."""
        collect_on_request(on=False)
        self.setParent(None)
        self.deleteLater()

    @Slot()
    def _look(self) -> None:
        if not is_due():
            return
        if not self._rest.isActive():
            self._due = monotonic()
            self._await_rest()
        elif is_due(_OVERDUE) and monotonic() - self._due > _PATIENCE:
            collect_due()
            self._due = monotonic()

    def _await_rest(self) -> None:
        self._worked = thread_time()
        self._rest.start()

    @Slot()
    def _collect_at_rest(self) -> None:
        if thread_time() - self._worked < _RESTING:
            collect_due()
        else:
            self._await_rest()
