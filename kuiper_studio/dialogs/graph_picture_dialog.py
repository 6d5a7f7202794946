"""Asks how to draw the graph as a picture: format, size, colours and what is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from kuiper_studio.dialogs.question import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GraphPictureDialog"]

_WIDTH: Final = 460
_FORMATS: Final = {
    "svg": "SVG, sharp at every size",
    "pdf": "PDF, one page, for print",
    "png": "PNG, pixels",
}
_USUAL, _SCALE, _PIXELS = "usual", "scale", "width"
_SIZES: Final = {_USUAL: "Usual", _SCALE: "Scale, in %", _PIXELS: "Width, in pixels"}
_OFFERED: Final = {_USUAL: "", _SCALE: "200", _PIXELS: "4000"}
_MOST: Final = {_USUAL: 0, _SCALE: 10_000, _PIXELS: 1_000_000}
_COLORS: Final = {"": "As the window's", "light": "Light, for paper", "dark": "Dark"}
_PARTS: Final = {
    "states": (
        "&States and marks",
        "Statuses of the run, breakpoints, bookmarks and marks of a comparison",
    ),
    "thumbnails": ("&Pictures of the outputs", "The thumbnail in each box that has run"),
    "overlay": ("&Colours of a quantity", "Boxes as View > Colour by has them"),
}


class GraphPictureDialog(Question):
    """Asks for format, size, theme and parts of a picture of the graph.

    Parameters
    ----------
    chosen : mapping of str to str
        As `choice` returned them the last time; empty at first.
    """

    def __init__(self, chosen: Mapping[str, str], parent: QWidget | None = None) -> None:
        super().__init__("graphPicture", "Graph as picture", _WIDTH, parent)
        self.format, self.sizes, self.colors = (
            _combo(texts) for texts in (_FORMATS, _SIZES, _COLORS)
        )
        self.amount = QLineEdit()
        self.amount.setAccessibleName("Scale or width")
        self.parts = {name: QCheckBox(text) for name, (text, _) in _PARTS.items()}
        for name, box in self.parts.items():
            box.setToolTip(_PARTS[name][1])
            box.setChecked(chosen.get(name, "true") != "false")
        for combo, name in ((self.format, "format"), (self.colors, "colors")):
            combo.setCurrentIndex(max(0, combo.findData(chosen.get(name, ""))))
        self.ok.setText("Save…")
        self._arrange()
        self.sizes.currentIndexChanged.connect(self._on_size_chosen)
        self.amount.textChanged.connect(self._check)
        self.sizes.setCurrentIndex(max(0, self.sizes.findData(chosen.get("size", ""))))
        self._on_size_chosen()
        if chosen.get("amount") and self.amount.isEnabled():
            self.amount.setText(chosen["amount"])

    def _arrange(self) -> None:
        size = QHBoxLayout()
        size.setSpacing(6)
        size.addWidget(self.sizes, 1)
        size.addWidget(self.amount, 1)
        parts = QVBoxLayout()
        parts.setSpacing(4)
        for box in self.parts.values():
            parts.addWidget(box)
        form = QFormLayout()
        form.setVerticalSpacing(8)
        form.addRow("&Format", self.format)
        of_size = QLabel("Si&ze")
        of_size.setBuddy(self.sizes)
        self.sizes.setAccessibleName("Size")
        form.addRow(of_size, size)
        form.addRow("C&olours", self.colors)
        form.addRow("Shown", parts)
        self.build((form,))

    @property
    def choice(self) -> dict[str, str]:
        """All that was chosen, as text; ``"size"`` says what ``"amount"`` is."""
        parts = {name: str(box.isChecked()).lower() for name, box in self.parts.items()}
        return {
            "format": self.format.currentData(),
            "size": self.sizes.currentData(),
            "amount": self.amount.text().strip(),
            "colors": self.colors.currentData(),
            **parts,
        }

    @property
    def scale(self) -> float | None:
        """The chosen scale; None for the usual one, or where a width was chosen."""
        return int(self.amount.text()) / 100 if self.sizes.currentData() == _SCALE else None

    @property
    def width_in_pixels(self) -> int | None:
        """The chosen width; None where none was chosen."""
        return int(self.amount.text()) if self.sizes.currentData() == _PIXELS else None

    @Slot()
    def _on_size_chosen(self) -> None:
        asks = self.sizes.currentData() != _USUAL
        self.amount.setEnabled(asks)
        self.amount.setVisible(asks)
        self.amount.setText(_OFFERED[self.sizes.currentData()])
        self._check()

    @Slot()
    def _check(self) -> None:
        kind, text = self.sizes.currentData(), self.amount.text().strip()
        is_number = text.isdecimal() and len(text) < 9 and 1 <= int(text) <= _MOST[kind]
        self.show_error(
            ""
            if kind == _USUAL or is_number
            else f"The {_SIZES[kind].partition(',')[0].lower()} is a number from 1 to "
            f"{_MOST[kind]}."
        )


def _combo(texts: Mapping[str, str]) -> QComboBox:
    combo = QComboBox()
    for data, text in texts.items():
        combo.addItem(text, data)
    return combo
