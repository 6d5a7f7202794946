"""Watches the files of the open model for changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from PySide6.QtCore import QFileSystemWatcher, QObject, QTimer, Signal, Slot

from engine.file_versions import FileVersion

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FileChange", "FileWatch"]

# An exporter writes several files, each in pieces. Changes are reported once nothing has been
# written for this long.
_QUIET_MS: Final = 300


class FileChange(NamedTuple):
    """A changed file.

    Attributes
    ----------
    path : Path
    version : FileVersion or None
        Its new version; None if the file no longer exists.
    """

    path: Path
    version: FileVersion | None


class FileWatch(QObject):
    """Watches files, and their folders for files that are replaced or recreated.

    Signals
    -------
    changed
        Tuple of FileChange for all changed files. The same changes are not sent twice.
    """

    changed = Signal(object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._versions: tuple[FileVersion, ...] = ()
        self._reported: tuple[FileChange, ...] = ()
        # A system resource. `watch` deletes it: the cycle collector might do so on another
        # thread.
        self._watcher: QFileSystemWatcher | None = None
        self._quiet = QTimer(self, singleShot=True, interval=_QUIET_MS)
        self._quiet.timeout.connect(self._look)

    def watch(self, versions: tuple[FileVersion, ...]) -> None:
        """Watch these files, and no others, for changes."""
        self._versions, self._reported = versions, ()
        self._quiet.stop()
        self._watcher = None
        if versions:
            self._watcher = QFileSystemWatcher()
            self._watcher.fileChanged.connect(self._on_file_changed)
            self._watcher.directoryChanged.connect(self._on_folder_changed)
            self._add_paths(self._watcher)
            self._quiet.start()  # they may have changed before they were watched

    def _add_paths(self, watcher: QFileSystemWatcher) -> None:
        """Watch existing files again, because Qt stops watching a replaced file."""
        files = {v.path.absolute() for v in self._versions}
        wanted = {str(p) for p in (*files, *(f.parent for f in files)) if p.exists()}
        wanted -= {*watcher.files(), *watcher.directories()}
        if wanted:
            watcher.addPaths(sorted(wanted))

    @Slot(str)
    def _on_file_changed(self, _path: str) -> None:
        self._quiet.start()

    @Slot(str)
    def _on_folder_changed(self, _path: str) -> None:
        # Do not restart the timer: a folder may change all the time.
        if not self._quiet.isActive():
            self._quiet.start()

    @Slot()
    def _look(self) -> None:
        if self._watcher is not None:
            self._add_paths(self._watcher)
        now = [(was, FileVersion.of(was.path)) for was in self._versions]
        changes = tuple(FileChange(was.path, found) for was, found in now if found != was)
        if changes != self._reported:
            self._reported = changes
            self.changed.emit(changes)
