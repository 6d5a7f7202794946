"""State of the user that is independent of a run: class labels, layer files, the log."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Signal

from kuiper_studio.session.events import LogEntry

if TYPE_CHECKING:
    from engine.layers import LayerFile

__all__ = ["Workspace"]

_LOG_LIMIT: Final = 2000


class Workspace(QObject):
    """Class labels, layer files, and the log.

    Signals
    -------
    labels_changed
        The class labels changed.
    layers_changed
        Layer files were loaded or unloaded.
    logged
        A `LogEntry`.
    announced
        A completed action that is not visible in the window otherwise, such as a written file.
    """

    labels_changed = Signal()
    layers_changed = Signal()
    logged = Signal(object)
    announced = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._labels: tuple[str, ...] = ()
        self._layer_files: tuple[LayerFile, ...] = ()
        self._entries: list[LogEntry] = []

    @property
    def labels(self) -> tuple[str, ...]:
        """Class labels; empty if there is no file."""
        return self._labels

    def set_labels(self, labels: tuple[str, ...]) -> None:
        """Set the class labels; silent when nothing changes."""
        if labels != self._labels:
            self._labels = labels
            self.labels_changed.emit()

    @property
    def layer_files(self) -> tuple[LayerFile, ...]:
        """Loaded layer files, in the order of first loading."""
        return self._layer_files

    def set_layer_files(self, files: tuple[LayerFile, ...]) -> None:
        """Set the loaded layer files."""
        self._layer_files = files
        self.layers_changed.emit()

    @property
    def log_entries(self) -> tuple[LogEntry, ...]:
        """The log, oldest first."""
        return tuple(self._entries)

    def log(self, level: str, text: str) -> None:
        """Add a line to the log.

        Parameters
        ----------
        level : {"info", "warning", "error"}
        text : str
        """
        entry = LogEntry(datetime.now().astimezone(), level, text)
        self._entries.append(entry)
        del self._entries[:-_LOG_LIMIT]
        self.logged.emit(entry)

    def announce(self, text: str, level: str = "info") -> None:
        """Log what an action has led to, and emit `announced`."""
        self.log(level, text)
        self.announced.emit(text)
