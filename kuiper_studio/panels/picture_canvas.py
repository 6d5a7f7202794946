"""What the canvases over the input picture have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy, QWidget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kuiper_studio.theme import Theme

__all__ = ["ARROWS", "PictureCanvas"]

_LEAST_WIDTH: Final = 120
# Rows and columns that an arrow key moves by.
ARROWS: Final[Mapping[int, tuple[int, int]]] = {
    Qt.Key.Key_Left.value: (0, -1), Qt.Key.Key_Right.value: (0, 1),
    Qt.Key.Key_Up.value: (-1, 0), Qt.Key.Key_Down.value: (1, 0),
}  # fmt: skip


class PictureCanvas(QWidget):
    """Takes the room that there is, the mouse and the keyboard; a subclass paints.

    Parameters
    ----------
    theme : Theme
    name : str
        Of the object.
    title : str
        Accessible name.
    least_height : int
    """

    def __init__(
        self, theme: Theme, name: str, title: str, least_height: int, parent: QWidget | None
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._opacity = 1.0
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setMinimumSize(_LEAST_WIDTH, least_height)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        theme.changed.connect(self.update)

    def set_opacity(self, opacity: float) -> None:
        """Set how much of the picture is covered at most, from 0 to 1."""
        self._opacity = opacity
        self.update()
