"""Asks which data set to run through the model, or which results to open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import (
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QWidget,
)

from kuiper_studio.dialogs.question import Missing, Question
from kuiper_studio.spin_box import SpinBox

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SweepDialog"]

_WIDTH: Final = 560
_MOST_INPUTS: Final = 10_000_000
_MOST_PROCESSES: Final = 256
_LACKING: Final = (
    "To run one, install what data sets need: pip install 'kuiper-studio[datasets]'. "
    "Results can be opened without."
)


class SweepDialog(Question):
    """Asks for inputs and a folder of results.

    Parameters
    ----------
    inputs, output : str
        What is entered at first.
    processes : int
        That can share the work; 0 where the libraries for it are not installed.
    choose_file, choose_folder : callable
        Ask for a path, given a title; return ``""`` for none.

    Attributes
    ----------
    opened : str
        Folder of results to open instead; ``""`` for none.
    """

    def __init__(
        self,
        inputs: str,
        output: str,
        processes: int,
        choose_file: Callable[[str], str],
        choose_folder: Callable[[str], str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("sweep", "Data set", _WIDTH, parent)
        self._choose_file, self._choose_folder = choose_file, choose_folder
        self._processes = processes
        self.opened = ""
        self.inputs = self._field(
            "Inputs",
            inputs,
            "A folder, a pattern of files, or an .npy",
        )
        self.output = self._field(
            "Folder of the results", output, "A folder of its own; an earlier run is continued"
        )
        self.limit = SpinBox()
        self.limit.setAccessibleName("At most")
        self.limit.setToolTip("Take only the first inputs")
        self.limit.setRange(0, _MOST_INPUTS)
        self.limit.setSpecialValueText("all")
        self.processes = SpinBox()
        self.processes.setAccessibleName("Processes")
        self.processes.setToolTip("Processes that share the inputs")
        self.processes.setRange(1, max(processes, 1) if processes < 2 else _MOST_PROCESSES)
        self.processes.setValue(max(processes, 1))
        self.processes.setEnabled(processes > 0)
        purpose = QLabel(
            "Runs every input and gathers ranges, dead channels and the inputs that excite "
            "channels most. Pictures are prepared as in the Input panel."
        )
        purpose.setWordWrap(True)
        form = QFormLayout()
        form.addRow("Inputs", self._row(self.inputs, "File…", "Folder…"))
        form.addRow("At most", self.limit)
        form.addRow("Processes", self.processes)
        form.addRow("Results in", self._row(self.output, "Folder…"))
        self.open_results = QPushButton("Open results…")
        self.open_results.setToolTip("Show the results of an earlier run of a data set")
        self.open_results.clicked.connect(self._on_open_results)
        self.ok.setText("Run")
        opening = QHBoxLayout()
        opening.addWidget(self.open_results)
        opening.addStretch(1)
        self.build((purpose, form, opening))
        self._check()

    @property
    def workers(self) -> int:
        """Processes beside the one that hands out the work."""
        return self.processes.value()

    @property
    def most_inputs(self) -> int | None:
        """How many of the inputs are taken; None for all."""
        return self.limit.value() or None

    def _field(self, name: str, text: str, placeholder: str) -> QLineEdit:
        field = QLineEdit(text)
        field.setAccessibleName(name)
        field.setPlaceholderText(placeholder)
        field.setToolTip(placeholder)
        field.textChanged.connect(self._check)
        return field

    def _row(self, field: QLineEdit, *buttons: str) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(field, 1)
        for text in buttons:
            button = QPushButton(text)
            button.setAccessibleName(f"{field.accessibleName()}: {text}")
            button.setAutoDefault(False)
            choose = self._choose_file if text.startswith("File") else self._choose_folder
            button.clicked.connect(lambda _, choose=choose: self._fill(field, choose))
            row.addWidget(button)
        return row

    def _fill(self, field: QLineEdit, choose: Callable[[str], str]) -> None:
        found = choose(field.accessibleName())
        if found:
            field.setText(found)

    @Slot()
    def _on_open_results(self) -> None:
        self.opened = self._choose_folder("Folder of the results")
        if self.opened:
            self.accept()

    @Slot()
    def _check(self) -> None:
        self.show_error(self._problem())

    def _problem(self) -> str:
        inputs, output = self.inputs.text().strip(), self.output.text().strip()
        if not self._processes:
            return Missing(_LACKING)
        if not inputs:
            return Missing("Choose the inputs.")
        if not output:
            return Missing("Choose a folder for the results.")
        if Path(output).is_file():
            return f"{output} is a file."
        return ""
