"""Asks for a reference and the tolerance of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QWidget,
)

from engine.backend_names import BACKEND_NAMES, missing_packages
from engine.errors import FeedError
from engine.inputs import parse_seed, parse_source
from kuiper_studio.dialogs.question import Question
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.inputs import InputSource

__all__ = ["CompareDialog"]

_WIDTH: Final = 600
_TOLERANCES: Final = ("1e-6", "1e-5", "1e-4", "1e-3", "1e-2")
_DEFAULT: Final = "1e-4"
_MOST_BESIDE: Final = 3  # buttons that have room


class CompareDialog(Question):
    """Asks for a reference and a tolerance.

    Parameters
    ----------
    recent : sequence of str
        References that were used before with any model, the last one first.
    choose_file, choose_folder : callable
        Ask for a path; return ``""`` when the user cancels.
    first : str, optional
        What to begin with; else a reference beside the model, else nothing.
    beside : sequence of Path, optional
        References that lie beside the model.
    backend, seed : str and int, optional
        Of the present run.

    Attributes
    ----------
    is_other_run : bool
        Whether another run of the model is the reference, and not a file.
    reference : Path
    backend : str
    seed : int
    sources : tuple of InputSource
        Inputs of the other run; empty for the same.
    tolerance : float
        Valid once the dialog is accepted.
    """

    def __init__(
        self,
        recent: Sequence[str],
        choose_file: Callable[[], str],
        choose_folder: Callable[[], str],
        parent: QWidget | None = None,
        *,
        first: str = "",
        beside: Sequence[Path] = (),
        backend: str = "auto",
        seed: int = 0,
    ) -> None:
        super().__init__("compare", "Compare with a reference", _WIDTH, parent)
        self._choose_file, self._choose_folder = choose_file, choose_folder
        self.files = QRadioButton("A file, a folder or another model")
        self.files.setChecked(True)
        self.other = QRadioButton("Another run of this model")
        self.path = QComboBox()
        self.path.setEditable(True)
        # Enter would take the completion of a text that is selected, instead of comparing.
        self.path.setCompleter(None)  # type: ignore[arg-type] # None removes it
        ours = [*filter(None, [first]), *map(str, beside)]
        self.path.addItems(list(dict.fromkeys([*ours, *recent])))
        self.path.setCurrentIndex(0 if ours else -1)  # not another model's reference
        line = self.path.lineEdit()
        if line is not None:
            line.setPlaceholderText("Choose a file or a folder")
        self.path.setAccessibleName("Reference")
        self.path.setMinimumContentsLength(30)
        self.beside = [self._make_button(path) for path in beside[:_MOST_BESIDE]]
        self.backends = QComboBox()
        self.backends.addItems([b for b in BACKEND_NAMES if not missing_packages(b)])
        self.backends.setCurrentText(backend)
        self.backends.setAccessibleName("Backend")
        self.seed_text = QLineEdit(str(seed))
        self.seed_text.setAccessibleName("Random seed")
        self.input = QLineEdit()
        self.input.setAccessibleName("Input")
        self.input.setPlaceholderText("the same; or a file, random:1, ones, zeros")
        self.choice = QComboBox()
        self.choice.addItems(_TOLERANCES)
        self.choice.setCurrentText(_DEFAULT)
        self.choice.setAccessibleName("Tolerance")
        self.choice.setToolTip("Largest difference, relative to the reference's maximum")
        self.ok.setText("Compare")
        self._arrange()
        self._connect()
        self._check()

    @property
    def is_other_run(self) -> bool:
        """Whether another run of the model is the reference."""
        return self.other.isChecked()

    @property
    def reference(self) -> Path:
        """The chosen file or folder."""
        return Path(self.path.currentText().strip()).expanduser()

    @property
    def backend(self) -> str:
        """The backend of the other run."""
        return self.backends.currentText()

    @property
    def seed(self) -> int:
        """The random seed of the other run."""
        return parse_seed(self.seed_text.text().strip())

    @property
    def sources(self) -> tuple[InputSource, ...]:
        """The inputs of the other run; empty for the same."""
        text = self.input.text().strip()
        return (parse_source(text),) if text else ()

    @property
    def tolerance(self) -> float:
        """The chosen tolerance."""
        return float(self.choice.currentText())

    def _make_button(self, path: Path) -> QPushButton:
        button = QPushButton(path.name.replace("&", "&&"))
        button.setAutoDefault(False)
        button.setToolTip(tip_text(str(path)))
        button.setProperty("path", str(path))
        button.clicked.connect(self._on_beside)
        return button

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
        first = QFormLayout()
        first.addRow("Reference", entry)
        if self.beside:
            row = QHBoxLayout()
            row.setSpacing(6)
            for button in self.beside:
                row.addWidget(button)
            row.addStretch(1)
            first.addRow("Beside the model", row)
        second = QFormLayout()
        second.addRow("Backend", self.backends)
        second.addRow("Random seed", self.seed_text)
        second.addRow("Input", self.input)
        last = QFormLayout()
        last.addRow("Tolerance", self.choice)
        for form in (first, second):
            form.setContentsMargins(24, 0, 0, 8)
            form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self.build((self.files, explained, first, self.other, second, last))
        _align_fields((first, second, last))
        self.path.setFocus(Qt.FocusReason.TabFocusReason)  # which selects the text

    def _connect(self) -> None:
        self.files.toggled.connect(self._check)
        self.path.currentTextChanged.connect(self._on_path_changed)
        self.seed_text.textChanged.connect(self._on_run_changed)
        self.input.textChanged.connect(self._on_run_changed)
        self.backends.activated.connect(self._on_run_changed)

    @Slot()
    def _on_file(self) -> None:
        self._take(self._choose_file())

    @Slot()
    def _on_folder(self) -> None:
        self._take(self._choose_folder())

    @Slot()
    def _on_beside(self) -> None:
        button = self.sender()
        if isinstance(button, QPushButton):
            self._take(str(button.property("path")))

    def _take(self, path: str) -> None:
        if path:
            self.path.setCurrentText(path)
            self.files.setChecked(True)

    @Slot()
    def _on_path_changed(self) -> None:
        self.files.setChecked(True)
        self._check()

    @Slot()
    def _on_run_changed(self) -> None:
        self.other.setChecked(True)
        self._check()

    @Slot()
    def _check(self) -> None:
        problem, is_complete = self._problem(), True
        if not self.is_other_run:
            is_complete = bool(self.path.currentText().strip())
        self.show_error(problem)
        self.ok.setEnabled(is_complete and not problem)

    def _problem(self) -> str:
        if not self.is_other_run:
            missing = self.path.currentText().strip() and not self.reference.exists()
            return "There is no such file or folder." if missing else ""
        try:
            _ = self.seed, self.sources
        except (ValueError, FeedError) as exc:
            return f"{exc}."
        return ""


def _align_fields(forms: Sequence[QFormLayout]) -> None:
    """Have the fields of several forms begin at one place."""
    titles: list[tuple[QWidget, int]] = []  # and where they begin
    for form in forms:
        for row in range(form.rowCount()):
            item = form.itemAt(row, QFormLayout.ItemRole.LabelRole)
            title = item.widget() if item is not None else None
            if title is not None:
                titles.append((title, form.contentsMargins().left()))
    end = max(left + title.sizeHint().width() for title, left in titles)
    for title, left in titles:
        title.setMinimumWidth(end - left)
