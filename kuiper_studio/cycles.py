"""Collects cycles of objects on the GUI thread only.

Python's collector runs on whatever thread makes an object. It would destroy objects of Qt on
the threads of the engine or of a view, where timers cannot be stopped. Nor do locks allow it:
Qt's destructor of a receiver holds a lock of its connections while Qt for Python waits for the
interpreter, to call ``disconnectNotify`` of the sender. The GUI thread may have the interpreter
and wait for that lock, as in the constructor of QFileSystemWatcher: then both wait for ever.
"""

from __future__ import annotations

from PySide6.QtCore import QAbstractEventDispatcher, QCoreApplication, QObject, Slot

from engine.collector import collect_due, collect_on_request

__all__ = ["CycleCollector"]


class CycleCollector(QObject):
    """Collects cycles between events, as often as Python would.

    Parameters
    ----------
    application : QCoreApplication
        Its parent, on whose thread it collects.
    """

    def __init__(self, application: QCoreApplication) -> None:
        super().__init__(application)
        dispatcher = QAbstractEventDispatcher.instance()
        # Before it waits for events, and before it handles them where it does not wait.
        dispatcher.aboutToBlock.connect(self._collect)
        dispatcher.awake.connect(self._collect)
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
    def _collect(self) -> None:
        collect_due()
