"""Pictures of what the window shows, as files that are whole or not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QByteArray, QIODevice
from PySide6.QtGui import QImageWriter

from engine.atomic import format_os_error, write_file
from engine.errors import ExportError

if TYPE_CHECKING:
    from pathlib import Path

    from PySide6.QtGui import QImage

__all__ = ["write_picture"]


def write_picture(image: QImage, path: Path) -> None:
    """Write a picture.

    Parameters
    ----------
    image : QImage
    path : Path
        An existing file is replaced when the picture is written, and not before. Its suffix
        says the form, ``.png`` or another one that Qt knows; PNG where it says none.

    Raises
    ------
    ExportError
        If the file cannot be written; what was there before is there still.
    """
    form = path.suffix.lower().removeprefix(".") or "png"
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QImageWriter(buffer, QByteArray(form.encode()))
    if not writer.write(image):
        raise ExportError(f"{path} cannot be written: {writer.errorString()}")
    try:
        write_file(path, bytes(buffer.data().data()))
    except OSError as exc:
        raise ExportError(f"{path} cannot be written: {format_os_error(exc)}") from exc
