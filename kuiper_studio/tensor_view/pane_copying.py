"""What is copied from a pane, and its pictures as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from kuiper_studio.picture_files import write_picture
from kuiper_studio.tensor_view.picture import Extent, ask_to_save, picture_of
from kuiper_studio.tensor_view.places import array_text, csv_text

if TYPE_CHECKING:
    from pathlib import Path

    from PySide6.QtWidgets import QWidget

    from kuiper_studio.tensor_view.pane_parts import PaneParts

__all__ = ["PaneCopying"]


class PaneCopying(QObject):
    """Copies numbers, indexes and pictures of a pane, and saves the pictures.

    Parameters
    ----------
    parts : PaneParts
    pane : QWidget
        Above which dialogs appear.
    """

    def __init__(self, parts: PaneParts, pane: QWidget) -> None:
        super().__init__(pane)
        self._model, self._body, self._pane = parts.model, parts.body, pane

    @Slot()
    def copy_value(self) -> None:
        """Copy the picked value, or the table's cells."""
        if self._body.shows_table:
            tables = self._body.tables.canvases
            next((each for each in tables if each.hasFocus()), self._body.table).copy()
            return
        picked = self._model.picked()
        if picked is not None:
            QGuiApplication.clipboard().setText(picked.text)

    @Slot()
    def copy_index(self) -> None:
        """Copy the index of the picked element."""
        picked = self._model.picked()
        if picked is not None:
            QGuiApplication.clipboard().setText(str(list(picked.index)))

    @Slot()
    def copy_expression(self) -> None:
        """Copy the Python expression of the picked element."""
        picked = self._model.picked()
        if picked is not None:
            QGuiApplication.clipboard().setText(self._model.expression(picked.index))

    @Slot()
    def copy_array(self) -> None:
        """Copy the rectangle, or the channel, as NumPy writes it."""
        QGuiApplication.clipboard().setText(array_text(self._model.copied))

    @Slot()
    def copy_csv(self) -> None:
        """Copy the rectangle, or the channel, as lines of numbers."""
        QGuiApplication.clipboard().setText(csv_text(self._model.copied))

    @Slot()
    def copy_picture(self) -> None:
        """Copy the channel's picture with its colour bar."""
        QGuiApplication.clipboard().setImage(picture_of(self._body, Extent.WITH_BAR))

    @Slot()
    def ask_to_save(self) -> None:
        """Ask where to save the shown picture."""
        ask_to_save(self._pane, self._body)

    def save_picture(self, path: Path) -> None:
        """Save the picture as it is shown, colour bar included.

        Raises
        ------
        ExportError
            If it cannot be written.
        """
        write_picture(picture_of(self._body, Extent.WHOLE), path)
