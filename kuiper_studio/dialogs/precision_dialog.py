"""Asks which formats to simulate, and how much error there may be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QFormLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from kuiper_studio.dialogs.question import Missing, Question

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.precision import FormatName

__all__ = ["PrecisionDialog"]

_WIDTH: Final = 460
_TIPS: Final[dict[FormatName, str]] = {
    "float16": "Half precision: up to 65504",
    "bfloat16": "The range of float32 with 8 bits of precision",
    "int8": "One scale for each tensor",
    "int8-per-channel": "A scale for each output channel of a weight",
}


class PrecisionDialog(Question):
    """Asks for formats and a wanted error.

    Parameters
    ----------
    chosen : collection of str
        Formats that are checked at first.
    wanted : str
        The wanted error, as text; ``""`` for none.

    Attributes
    ----------
    formats : tuple of str
    wanted_error : float or None
        Valid once the dialog is accepted.
    """

    def __init__(
        self, chosen: Collection[str], wanted: str, parent: QWidget | None = None
    ) -> None:
        super().__init__("precision", "Precision", _WIDTH, parent)
        self.boxes: dict[FormatName, QCheckBox] = {}
        for name, tip in _TIPS.items():
            box = self.boxes[name] = QCheckBox(name)
            box.setToolTip(tip)
            box.setChecked(name in chosen)
            box.toggled.connect(self._check)
        self.wanted = QLineEdit(wanted)
        self.wanted.setAccessibleName("Wanted error")
        self.wanted.setPlaceholderText("none, for example 0.01")
        self.wanted.setToolTip(
            "Largest difference of an output, relative to the largest output"
        )
        self.wanted.textChanged.connect(self._check)
        purpose = QLabel(
            "Stores weights and outputs in the format and computes in float32. With a wanted "
            "error, operators are chosen that have to stay in float32."
        )
        purpose.setWordWrap(True)
        column = QVBoxLayout()
        column.setSpacing(4)
        for box in self.boxes.values():
            column.addWidget(box)
        form = QFormLayout()
        form.addRow("Formats", column)
        form.addRow("Wanted error", self.wanted)
        self.ok.setText("Simulate")
        self.build((purpose, form))
        self._check()

    @property
    def formats(self) -> tuple[FormatName, ...]:
        """The chosen formats."""
        return tuple(name for name, box in self.boxes.items() if box.isChecked())

    @property
    def wanted_error(self) -> float | None:
        """The wanted error; None for none."""
        text = self.wanted.text().strip()
        return float(text) if text else None

    @Slot()
    def _check(self) -> None:
        self.show_error(self._problem())

    def _problem(self) -> str:
        if not self.formats:
            return Missing("Choose a format.")
        try:
            wanted = self.wanted_error
        except ValueError:
            return "The wanted error is no number."
        if wanted is not None and not (math.isfinite(wanted) and wanted > 0):
            return "The wanted error is a number above 0."
        return ""
