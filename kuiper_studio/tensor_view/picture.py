"""The picture of a tensor for the clipboard and for files, exactly as it is painted."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from engine.errors import ExportError
from kuiper_studio.picture_files import write_picture
from kuiper_studio.tensor_view.plane_canvas import PlaneCanvas
from kuiper_studio.tensor_view.side_by_side import SideBySide

if TYPE_CHECKING:
    from PySide6.QtGui import QImage

    from kuiper_studio.tensor_view.body import Body

__all__ = ["Extent", "ask_to_save", "picture_of"]


class Extent(Enum):
    """What a picture shows, as the file dialog names it."""

    WHOLE = "Whole view, as shown"
    WITH_BAR = "Channel with its colour bar"
    ALONE = "Channel alone"


def picture_of(body: Body, extent: Extent) -> QImage:
    """Return a picture of what is shown: its range, map, hatches, marks and numbers.

    Parameters
    ----------
    body : Body
    extent : Extent
        Other than the whole: of what stands beside the grid of channels, without its margins.
        Sides of a comparison stay together.
    """
    if extent is Extent.WHOLE:
        return body.grab().toImage()
    shown = body.whole
    if isinstance(shown, SideBySide) and not shown.is_split:
        canvas = shown.ours
        if isinstance(canvas, PlaneCanvas):
            area = canvas.picture_area(with_bar=extent is Extent.WITH_BAR)
            return canvas.grab(area).toImage()
    return shown.grab().toImage()


def ask_to_save(parent: QWidget, body: Body) -> None:
    """Ask which picture to save and where, and say it if that fails."""
    filters = {f"{extent.value} (*.png)": extent for extent in Extent}
    path, chosen = QFileDialog.getSaveFileName(
        parent, "Save picture", "tensor.png", ";;".join(filters)
    )
    if not path:
        return
    try:
        write_picture(picture_of(body, filters.get(chosen, Extent.WHOLE)), Path(path))
    except ExportError as exc:
        QMessageBox.warning(parent, "The picture was not saved", str(exc))
