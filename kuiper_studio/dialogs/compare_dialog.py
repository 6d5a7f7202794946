"""Asks for a reference and the tolerance of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QComboBox, QFormLayout, QHBoxLayout, QLabel, QPushButton, QWidget

from kuiper_studio.dialogs.question import Question

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CompareDialog"]

_WIDTH: Final = 560
_TOLERANCES: Final = ("1e-6", "1e-5", "1e-4", "1e-3", "1e-2")
_DEFAULT: Final = "1e-4"


class CompareDialog(Question):
    """Asks for a reference and a tolerance.

    Parameters
    ----------
    recent : sequence of str
        References that were used before, the last one first.
    choose_file, choose_folder : callable
        Ask for a path; return ``""`` when the user cancels.

    Attributes
    ----------
    reference : Path
    tolerance : float
        Valid once the dialog is accepted.
    """

    def __init__(
        self,
        recent: Sequence[str],
        choose_file: Callable[[], str],
        choose_folder: Callable[[], str],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("compare", "Compare with a reference", _WIDTH, parent)
        self._choose_file, self._choose_folder = choose_file, choose_folder
        self.path = QComboBox()
        self.path.setEditable(True)
        self.path.addItems(list(recent))
        self.path.setAccessibleName("Reference")
        self.path.setMinimumContentsLength(30)
        self.choice = QComboBox()
        self.choice.addItems(_TOLERANCES)
        self.choice.setCurrentText(_DEFAULT)
        self.choice.setAccessibleName("Tolerance")
        self.choice.setToolTip("Largest difference, relative to the reference's maximum")
        self.ok.setText("Compare")
        self._arrange()
        self.path.currentTextChanged.connect(self._check)
        self._check()

    @property
    def reference(self) -> Path:
        """The chosen reference."""
        return Path(self.path.currentText().strip()).expanduser()

    @property
    def tolerance(self) -> float:
        """The chosen tolerance."""
        return float(self.choice.currentText())

    def _arrange(self) -> None:
        explained = QLabel(
            "A dump, a recording, a folder of .npy files, an .npz or .safetensors, or another "
            "model, which runs on the same inputs."
        )
        explained.setObjectName("comparePurpose")
        explained.setWordWrap(True)
        file, folder = QPushButton("File…"), QPushButton("Folder…")
        file.clicked.connect(self._on_file)
        folder.clicked.connect(self._on_folder)
        for button in (file, folder):
            button.setAutoDefault(False)
        entry = QHBoxLayout()
        entry.setSpacing(6)
        entry.addWidget(self.path, 1)
        entry.addWidget(file)
        entry.addWidget(folder)
        form = QFormLayout()
        form.addRow("Reference", entry)
        form.addRow("Tolerance", self.choice)
        self.build((explained, form))

    @Slot()
    def _on_file(self) -> None:
        self._take(self._choose_file())

    @Slot()
    def _on_folder(self) -> None:
        self._take(self._choose_folder())

    def _take(self, path: str) -> None:
        if path:
            self.path.setCurrentText(path)

    @Slot()
    def _check(self) -> None:
        text = self.path.currentText().strip()
        missing = bool(text) and not self.reference.exists()
        self.show_error("There is no such file or folder." if missing else "")
        self.ok.setEnabled(bool(text) and not missing)
