"""A spin box whose number stands as far from the edge as the text of other fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtWidgets import QSpinBox

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

__all__ = ["SpinBox"]

_MARGIN: Final = 7  # left of the text, as the style sheet gives a text box


class SpinBox(QSpinBox):
    """A whole number with arrows.

    Style sheets move the arrows of a spin box, but not its text.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.lineEdit().setTextMargins(_MARGIN, 0, 0, 0)
