"""Asks for the settings of every model: theme, backend, memory, seed, exports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QWidget,
)

from engine.backend_names import BACKEND_NAMES, missing_packages
from engine.errors import capitalized
from engine.inputs import parse_seed
from engine.memory_bound import default_bound
from engine.ncnn.options import DEPLOYED, EXACT
from engine.paths import is_folder
from engine.text import format_bytes, format_exact_bytes, parse_bytes
from kuiper_studio.dialogs.export_dialog import FORMAT_TITLES
from kuiper_studio.dialogs.question import Question
from kuiper_studio.theme import Scheme

if TYPE_CHECKING:
    from engine.dump import Format

__all__ = ["Preferences", "PreferencesDialog"]

_WIDTH: Final = 460
_SCHEME_TITLES: Final = {
    Scheme.SYSTEM: "As the desktop's",
    Scheme.LIGHT: "Light",
    Scheme.DARK: "Dark",
}
_NCNN_TITLES: Final = {
    EXACT.text: "Exact, float32 throughout",
    DEPLOYED.text: "As deployed, ncnn's defaults",
}


@dataclass(frozen=True, slots=True)
class Preferences:
    """Settings for every model.

    Attributes
    ----------
    scheme : Scheme
    backend : str
    limit, bound : int or None
        Memory limit and memory bound in bytes; None for no limit, and for half of the machine's
        memory.
    seed : int
    folder : str
        Initial folder of exports; ``""`` for the home folder.
    format : Format
        Of dumps at first.
    ncnn_options : str
        For models of ncnn's own format; see `engine.ncnn.options`.
    """

    scheme: Scheme
    backend: str
    limit: int | None
    bound: int | None
    seed: int
    folder: str
    format: Format
    ncnn_options: str = EXACT.text


class PreferencesDialog(Question):
    """Asks for preferences.

    Parameters
    ----------
    preferences : Preferences
        The current preferences.

    Attributes
    ----------
    preferences : Preferences
        The chosen preferences; valid once the dialog is accepted.
    """

    def __init__(self, preferences: Preferences, parent: QWidget | None = None) -> None:
        super().__init__("preferences", "Preferences", _WIDTH, parent)
        self.preferences = preferences
        self.scheme, self.backend, self.format = QComboBox(), QComboBox(), QComboBox()
        self.ncnn_options = QComboBox()
        self.limit, self.bound, self.seed, self.folder = (QLineEdit() for _ in range(4))
        self.browse = QPushButton("Browse…")
        self.browse.clicked.connect(self._browse)
        self._fill(preferences)
        self.ok.setText("Use these")
        self._arrange()
        for field in (self.limit, self.bound, self.seed, self.folder):
            field.textChanged.connect(self._check)
        for combo in (self.scheme, self.backend, self.format, self.ncnn_options):
            combo.currentIndexChanged.connect(self._check)

    def _fill(self, preferences: Preferences) -> None:
        for scheme, title in _SCHEME_TITLES.items():
            self.scheme.addItem(title, scheme.value)
        for backend in BACKEND_NAMES:
            if not missing_packages(backend):
                self.backend.addItem(backend, backend)
        if preferences.backend not in BACKEND_NAMES:
            self.backend.addItem("kernels of a dump", preferences.backend)
        for name, title in FORMAT_TITLES.items():
            self.format.addItem(title, name)
        for options, title in _NCNN_TITLES.items():
            self.ncnn_options.addItem(title, options)
        if preferences.ncnn_options not in _NCNN_TITLES:
            self.ncnn_options.addItem(preferences.ncnn_options, preferences.ncnn_options)
        for combo, value in (
            (self.ncnn_options, preferences.ncnn_options),
            (self.scheme, preferences.scheme.value),
            (self.backend, preferences.backend),
            (self.format, preferences.format),
        ):
            combo.setCurrentIndex(combo.findData(value))
        for field, nbytes in (
            (self.limit, preferences.limit), (self.bound, preferences.bound),
        ):  # fmt: skip
            field.setText("" if nbytes is None else format_exact_bytes(nbytes))
        self.limit.setPlaceholderText("every value")
        self.bound.setPlaceholderText(
            f"{format_bytes(default_bound())}, half of this machine's memory"
        )
        self.seed.setText(str(preferences.seed))
        self.folder.setText(preferences.folder)
        self.folder.setPlaceholderText("your home folder")

    def _arrange(self) -> None:
        folder = QHBoxLayout()
        folder.setSpacing(6)
        folder.addWidget(self.folder, 1)
        folder.addWidget(self.browse)
        form = QFormLayout()
        form.setVerticalSpacing(8)
        for title, part in (
            ("&Theme", self.scheme), ("&Backend", self.backend),
            ("Models of &ncnn", self.ncnn_options), ("&Keep at most", self.limit),
            ("&Refuse more than", self.bound), ("Random &seed", self.seed),
            ("Format of &dumps", self.format),
        ):  # fmt: skip
            form.addRow(title, part)
        of_folder = QLabel("&Folder of exports")
        of_folder.setBuddy(self.folder)
        form.addRow(of_folder, folder)
        self.folder.setAccessibleName("Folder of exports")
        self.build((form,))

    @Slot()
    def _browse(self) -> None:
        path = QFileDialog.getExistingDirectory(self, "Folder of exports", self.folder.text())
        if path:
            self.folder.setText(path)

    @Slot()
    def _check(self) -> None:
        sentence = ""
        try:
            self.preferences = Preferences(
                Scheme(self.scheme.currentData()),
                self.backend.currentData(),
                _bytes_of(self.limit),
                _bytes_of(self.bound),
                parse_seed(self.seed.text().strip()),
                _folder_of(self.folder),
                self.format.currentData(),
                self.ncnn_options.currentData(),
            )
        except ValueError as exc:
            sentence = f"{capitalized(str(exc))}."
        self.show_error(sentence)


def _bytes_of(field: QLineEdit) -> int | None:
    return parse_bytes(field.text()) if field.text().strip() else None


def _folder_of(field: QLineEdit) -> str:
    text = field.text().strip()
    if text and not is_folder(text):
        raise ValueError(f"{text} is not a folder")
    return text
