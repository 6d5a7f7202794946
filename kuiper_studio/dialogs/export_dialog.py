"""Asks for the tensors, format and destination of a dump."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QDialog,
    QFileDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from engine.atomic import format_os_error
from engine.dump import DumpOptions, check_destination, select_operators
from engine.errors import ExportError, UnknownNameError
from engine.paths import is_folder
from engine.text import format_bytes, format_count
from engine.values import flatten_value, value_nbytes
from kuiper_studio.dialogs.question import Missing, show_problem
from kuiper_studio.icons import icon
from kuiper_studio.item_models.text import caption_text, elided
from kuiper_studio.resource_paths import home_folder

if TYPE_CHECKING:
    from engine.dump import Format
    from engine.runtime import RuntimeOperator
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["FORMAT_TITLES", "ExportDialog"]

# Formats: title, what comes out, suffix of the destination.
_FORMATS: Final[dict[Format, tuple[str, str, str]]] = {
    "folder": ("Folder", "manifest.json, summary.csv and one .npy per tensor", ""),
    "npz": ("One .npz", "all tensors in one file for NumPy", ".npz"),
    "safetensors": ("One .safetensors", "all tensors in one file that maps into memory",
                    ".safetensors"),
    "png": ("Pictures", "a folder of PNG files as the tensor view shows them", ""),
}  # fmt: skip
FORMAT_TITLES: Final = {name: title for name, (title, _, _) in _FORMATS.items()}
_WIDTH: Final = 640
_ERROR_HEIGHT: Final = 32  # two lines
_SUFFIXES: Final = frozenset(suffix for _, _, suffix in _FORMATS.values() if suffix)


@dataclass(frozen=True, slots=True)
class _Amount:
    """Size of a dump: arrays, their bytes, and operators without a value."""

    arrays: int = 0
    nbytes: int = 0
    without_value: int = 0


class ExportDialog(QDialog):
    """Fills in a `DumpOptions`.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    folder : str
        Where the last dump went; ``""`` for the home folder.
    preferred : Format, optional
        Chosen at first.

    Attributes
    ----------
    request : (Path, DumpOptions) or None
        Destination and options; None until the dialog is accepted.
    """

    def __init__(
        self,
        session: StudioSession,
        theme: Theme,
        folder: str,
        parent: QWidget | None = None,
        *,
        preferred: Format = "folder",
    ) -> None:
        super().__init__(parent)
        self.setObjectName("exportDialog")
        self.setWindowTitle("Export a dump of tensors")
        self._session = session
        self._theme = theme
        self._folder = Path(folder) if folder and is_folder(folder) else home_folder()
        self._proposed = ""
        self.request: tuple[Path, DumpOptions] | None = None
        self.formats: dict[Format, QRadioButton] = {}
        self.all_operators = QRadioButton()
        self.selected_operator = QRadioButton()
        self.named_operators = QRadioButton("These names, types or indexes:")
        self.patterns = QLineEdit()
        self.patterns.setPlaceholderText("e.g. nn.Conv2d layer1.* 12")
        self.patterns.setAccessibleName("Names, types or indexes of operators")
        self._matches = _label("exportMatches", "mono2")
        self.inputs = QCheckBox("Inputs of the model")
        self.outputs = QCheckBox("Outputs of the operators")
        self.weights = QCheckBox("Weights")
        self.statistics_only = QCheckBox("Statistics only, no arrays")
        self.sha256 = QCheckBox("SHA-256")
        self.sha256.setToolTip(
            "Hash every array and the .bin too, not only the inputs; takes longer"
        )
        self.destination = QLineEdit()
        self.destination.setAccessibleName("Destination")
        self.overwrite = QCheckBox("Replace existing files")
        self._size = _label("exportSize", "mono2")
        self._error = _label("exportError", "error")
        self.export_button = QPushButton("Export")
        self.export_button.setProperty("role", "primary")
        self.export_button.setDefault(True)
        self._build()
        self._preset(preferred)
        self._connect()
        self._check()

    @property
    def chosen_format(self) -> Format:
        """The selected format."""
        return next(name for name, button in self.formats.items() if button.isChecked())

    # Building

    def _build(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(8)
        column.addWidget(_heading("Format"))
        column.addLayout(self._make_formats())
        column.addSpacing(4)
        column.addWidget(_heading("Operators"))
        column.addLayout(self._make_operators())
        column.addSpacing(4)
        column.addWidget(_heading("Tensors"))
        column.addLayout(self._make_tensors())
        column.addSpacing(4)
        column.addWidget(_heading("Destination"))
        column.addLayout(self._make_destination())
        column.addLayout(self._make_verdict())
        column.addStretch(1)
        line = QFrame()
        line.setProperty("role", "line")
        column.addWidget(line)
        column.addLayout(self._make_buttons())
        self.setMinimumWidth(_WIDTH)

    def _make_formats(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setVerticalSpacing(5)
        grid.setHorizontalSpacing(14)
        grid.setColumnStretch(1, 1)
        self._format_group = QButtonGroup(self)
        for place, (name, (title, what, _)) in enumerate(_FORMATS.items()):
            button = QRadioButton(title)
            button.setObjectName(f"format-{name}")
            note = QLabel(what)
            note.setProperty("role", "tertiary")
            button.setAccessibleDescription(what)
            self._format_group.addButton(button)
            self.formats[name] = button
            grid.addWidget(button, place, 0)
            grid.addWidget(note, place, 1)
        return grid

    def _make_operators(self) -> QVBoxLayout:
        column = QVBoxLayout()
        column.setSpacing(5)
        row = QHBoxLayout()
        row.addWidget(self.named_operators)
        row.addWidget(self.patterns, 1)
        row.addWidget(self._matches)
        self._operator_group = QButtonGroup(self)
        for button in (self.all_operators, self.selected_operator, self.named_operators):
            self._operator_group.addButton(button)
        column.addWidget(self.all_operators)
        column.addWidget(self.selected_operator)
        column.addLayout(row)
        return column

    def _make_tensors(self) -> QGridLayout:
        grid = QGridLayout()
        grid.setVerticalSpacing(5)
        boxes = (
            self.inputs, self.outputs, self.weights, self.statistics_only, self.sha256,
        )  # fmt: skip
        for place, box in enumerate(boxes):
            grid.addWidget(box, place // 2, place % 2)
        return grid

    def _make_verdict(self) -> QVBoxLayout:
        """Make the line for errors; it keeps its height, so that nothing moves while typing."""
        kept = self.overwrite.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self.overwrite.setSizePolicy(kept)
        self._error.setWordWrap(True)
        self._error.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._error.setFixedHeight(_ERROR_HEIGHT)
        column = QVBoxLayout()
        column.setSpacing(6)
        column.addWidget(self.overwrite)
        column.addWidget(self._error)
        return column

    def _make_destination(self) -> QHBoxLayout:
        browse = QPushButton("Browse…")
        browse.setIcon(icon("folder", self._theme))
        browse.setAutoDefault(False)
        browse.clicked.connect(self._browse)
        row = QHBoxLayout()
        row.addWidget(self.destination, 1)
        row.addWidget(browse)
        return row

    def _make_buttons(self) -> QHBoxLayout:
        cancel = QPushButton("Cancel")
        cancel.setAutoDefault(False)
        cancel.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.addWidget(self._size)
        row.addStretch(1)
        row.addWidget(cancel)
        row.addWidget(self.export_button)
        return row

    def _preset(self, preferred: Format) -> None:
        graph, selected = self._session.graph, self._session.selected
        count = len(graph.operators) if graph is not None else 0
        self.all_operators.setText(f"All {format_count(count, 'operator')}")
        self.formats[preferred].setChecked(True)
        self.all_operators.setChecked(True)
        shown = caption_text(elided(selected or "none", 60))
        self.selected_operator.setText(f"Only the selected one, {shown}")
        self.selected_operator.setEnabled(bool(selected))
        self.inputs.setChecked(True)
        self.outputs.setChecked(True)
        self._propose_destination()

    def _propose_destination(self) -> None:
        """Propose a new file or folder; of a typed one only the suffix changes."""
        suffix = _FORMATS[self.chosen_format][2]
        if self.destination.text() != self._proposed:
            path = Path(self.destination.text())
            if path.suffix in _SUFFIXES:
                self.destination.setText(str(path.with_suffix(suffix)))
            elif path.name:
                self.destination.setText(f"{path}{suffix}")
            return
        model = self._session.model_path
        stem = model.name.partition(".")[0] if model is not None else "model"
        stem += "_pictures" if self.chosen_format == "png" else "_dump"
        path, attempt = self._folder / f"{stem}{suffix}", 1
        while path.exists():
            attempt += 1
            path = self._folder / f"{stem}_{attempt}{suffix}"
        self._proposed = str(path)
        self.destination.setText(self._proposed)

    def _connect(self) -> None:
        for button in self.formats.values():
            button.toggled.connect(self._on_format_toggled)
        for button in (self.all_operators, self.selected_operator, self.named_operators):
            button.toggled.connect(self._check)
        for box in (self.inputs, self.outputs, self.weights, self.statistics_only):
            box.toggled.connect(self._check)
        self.overwrite.toggled.connect(self._check)
        self.destination.textChanged.connect(self._check)
        self.patterns.textEdited.connect(self._on_patterns_edited)
        self.patterns.textChanged.connect(self._check)
        self.export_button.clicked.connect(self._accept)
        session = self._session
        for signal in (session.stepped, session.values_reset, session.state_changed):
            signal.connect(self._check)

    # Choices

    def options(self) -> DumpOptions:
        """Return the chosen options."""
        return DumpOptions(
            format=self.chosen_format,
            operators=self._patterns(),
            inputs=self.inputs.isChecked(),
            outputs=self.outputs.isChecked(),
            weights=self.weights.isChecked(),
            statistics_only=self.statistics_only.isChecked() and self._is_folder(),
            overwrite=self.overwrite.isChecked() and not self.overwrite.isHidden(),
            sha256=self.sha256.isChecked() and self.chosen_format != "npz",
        )

    def _patterns(self) -> tuple[str, ...] | None:
        if self.all_operators.isChecked():
            return None
        if self.named_operators.isChecked():
            return tuple(self.patterns.text().replace(",", " ").split())
        graph = self._session.graph
        if graph is None:
            return ()
        # The index, because a name may contain wildcards.
        return (str(graph.operator(self._session.selected).index),)

    def _is_folder(self) -> bool:
        return self.chosen_format == "folder"

    def _path(self) -> Path:
        return Path(self.destination.text().strip()).expanduser().absolute()

    def _chosen_operators(self) -> tuple[RuntimeOperator, ...]:
        """Return the operators that match the patterns.

        Raises
        ------
        UnknownNameError
            If a pattern matches nothing.
        """
        graph = self._session.graph
        return select_operators(graph, self._patterns()) if graph is not None else ()

    def _measure(self, operators: tuple[RuntimeOperator, ...]) -> _Amount:
        arrays = nbytes = without = 0
        # The model's inputs are written whatever operators are chosen.
        graph = self._session.graph
        fed = [op for op in graph.operators if op.is_input] if graph is not None else []
        for operator in dict.fromkeys([*fed, *operators]):
            wanted = self.inputs if operator.is_input else self.outputs
            if wanted.isChecked() and operator.outputs:
                record = self._session.record(operator.name)
                facts = record.metadata if record is not None else ()
                members = [member for each in facts for member in flatten_value(each)]
                arrays += sum(not isinstance(m, (str, type(None))) for m in members)
                nbytes += sum(value_nbytes(member) for member in members)
                without += not members
            if self.weights.isChecked():
                nbytes += sum(attribute.nbytes for attribute in operator.attributes.values())
                arrays += len(operator.attributes)
        return _Amount(arrays, nbytes, without)

    def _describe(self, amount: _Amount) -> str:
        noun = "picture" if self.chosen_format == "png" else "array"
        if self.options().statistics_only:
            noun = "row"
        text = format_count(amount.arrays, noun)
        if noun == "array":
            text += f", {format_bytes(amount.nbytes)}"
        if amount.without_value:
            text += f" · {format_count(amount.without_value, 'operator has', 'operators have')}"
            text += " no value yet"
        return text

    def _problem_of_contents(self, amount: _Amount) -> str:
        if self._session.busy:
            return "The model is running. Stop it, or wait, before you export."
        if not any(box.isChecked() for box in (self.inputs, self.outputs, self.weights)):
            return Missing("Choose inputs, outputs or weights.")
        if self.named_operators.isChecked() and not self._patterns():
            return Missing("Name at least one operator, type or index.")
        if not amount.arrays:
            return "No chosen operator has a value. Run the model, or choose more operators."
        return ""

    def _problem_of_destination(self) -> str:
        if not self.destination.text().strip():
            return Missing("Choose where to write the dump.")
        return self._refusal(self.options())

    def _refusal(self, options: DumpOptions) -> str:
        """Return why the dump cannot be written to the destination, or ``""``."""
        graph = self._session.graph
        try:
            if graph is not None:
                check_destination(self._path(), graph, options)
        except ExportError as exc:
            return f"{exc}."
        except OSError as exc:
            return f"{self._path()} cannot be read: {format_os_error(exc)}."
        return ""

    def _may_overwrite(self) -> bool:
        """Return whether the destination exists and may be replaced."""
        options = self.options()
        kept = self._refusal(replace(options, overwrite=False))
        return bool(kept) and not self._refusal(replace(options, overwrite=True))

    # Slots

    @Slot()
    def _on_format_toggled(self) -> None:
        if any(button.isChecked() for button in self.formats.values()):
            self._propose_destination()
            self._check()

    @Slot()
    def _on_patterns_edited(self) -> None:
        self.named_operators.setChecked(True)

    @Slot()
    def _check(self) -> None:
        """Show the error, or the size of the dump."""
        self.statistics_only.setEnabled(self._is_folder())
        self.sha256.setEnabled(self.chosen_format != "npz")  # which has no manifest
        self.overwrite.setVisible(self._may_overwrite())
        amount = _Amount()
        try:
            operators = self._chosen_operators()
        except UnknownNameError as exc:
            hint = f": did you mean {exc.suggestion}?" if exc.suggestion else "."
            problem = f"No operator matches {exc.name}{hint}"
            self._matches.setText("")
        else:
            amount = self._measure(operators)
            problem = self._problem_of_contents(amount) or self._problem_of_destination()
            named = self.named_operators.isChecked() and operators
            self._matches.setText(format_count(len(operators), "operator") if named else "")
        self._size.setText(self._describe(amount) if amount.arrays else "")
        show_problem(self._error, problem)
        self.export_button.setEnabled(not problem)
        self.export_button.setToolTip(problem)

    @Slot()
    def _browse(self) -> None:
        suffix = _FORMATS[self.chosen_format][2]
        kinds = f"{suffix[1:]} files (*{suffix})" if suffix else "Folder (*)"
        path, _ = QFileDialog.getSaveFileName(
            self, "Where to write the dump", self.destination.text(), kinds,
            options=QFileDialog.Option.DontConfirmOverwrite,
        )  # fmt: skip
        if path:
            if suffix and not path.endswith(suffix):
                path += suffix
            self.destination.setText(path)

    @Slot()
    def _accept(self) -> None:
        self.request = (self._path(), self.options())
        self.accept()


def _label(name: str, role: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setProperty("role", role)
    label.setTextFormat(Qt.TextFormat.PlainText)
    return label


def _heading(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "subtitle")
    label.setAlignment(Qt.AlignmentFlag.AlignLeft)
    return label
