"""File dialogs that open in the folder of the last file of the kind, or beside the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QFileDialog

if TYPE_CHECKING:
    from PySide6.QtCore import QSettings
    from PySide6.QtWidgets import QWidget

__all__ = ["FileDialogs"]

_ALL_FILES: Final = "All files (*)"


class FileDialogs:
    """Asks for files, and remembers a folder for each kind of file.

    Parameters
    ----------
    window : QWidget
    settings : QSettings
    """

    def __init__(self, window: QWidget, settings: QSettings) -> None:
        self._window, self._settings = window, settings

    def folder(self, kind: str) -> str:
        """Folder of a kind of files; ``""`` before one was chosen."""
        return str(self._settings.value(f"folder/{kind}", ""))

    def _start(self, kind: str) -> str:
        """Folder to begin in: before a file of the kind was chosen, that of the last model."""
        return self.folder(kind) or self.folder("model")

    def set_folder(self, kind: str, folder: str) -> None:
        """Begin with another folder; ``""`` for none."""
        self._settings.setValue(f"folder/{kind}", folder)

    def remember(self, kind: str, path: str | Path) -> None:
        """Remember the folder of a file."""
        self.set_folder(kind, str(Path(path).absolute().parent))

    def choose(self, kind: str, title: str, filters: str) -> str:
        """Ask for one file; return ``""`` when the user cancels."""
        path, _ = QFileDialog.getOpenFileName(
            self._window, title, self._start(kind), f"{filters};;{_ALL_FILES}"
        )
        if path:
            self.remember(kind, path)
        return path

    def choose_several(self, kind: str, title: str, filters: str) -> list[str]:
        """Ask for files, in order; return none when the user cancels."""
        paths, _ = QFileDialog.getOpenFileNames(
            self._window, title, self._start(kind), f"{filters};;{_ALL_FILES}"
        )
        if paths:
            self.remember(kind, paths[0])
        return paths

    def choose_folder(self, kind: str, title: str) -> str:
        """Ask for a folder; return ``""`` when the user cancels."""
        path = QFileDialog.getExistingDirectory(self._window, title, self._start(kind))
        if path:
            self.remember(kind, path)
        return path

    def choose_new(self, kind: str, title: str, name: str, filters: str) -> Path | None:
        """Ask where to write a file; return None when the user cancels."""
        start = str(Path(self._start(kind)) / name)
        path, _ = QFileDialog.getSaveFileName(self._window, title, start, filters)
        if not path:
            return None
        self.remember(kind, path)
        return Path(path)
