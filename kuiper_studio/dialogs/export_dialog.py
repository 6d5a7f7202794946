"""Ask what to dump, as what, and where."""

from __future__ import annotations

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

from engine.dump import DumpOptions, select_operators
from engine.errors import EngineError
from engine.values import value_nbytes
from kuiper_studio.item_models.text import bytes_text

if TYPE_CHECKING:
    from engine.dump import Format
    from engine.runtime import RuntimeOperator
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["ExportDialog"]

# Formats: title, what comes out, suffix of the destination.
_FORMATS: Final[dict[Format, tuple[str, str, str]]] = {
    "folder": ("Folder", "manifest.json, summary.csv and one .npy per tensor", ""),
    "npz": ("One .npz", "all tensors in one file for NumPy", ".npz"),
    "safetensors": ("One .safetensors", "all tensors in one file that maps into memory",
                    ".safetensors"),
    "png": ("Pictures", "a folder of PNG files as the tensor view shows them", ""),
}  # fmt: skip


class ExportDialog(QDialog):
    """Fills in a `DumpOptions`.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    folder : str
        Where the last dump went; ``""`` for the home folder.

    Attributes
    ----------
    request : (Path, DumpOptions) or None
        What was asked for; None until the dialog is accepted.
    """

    def __init__(
        self, session: StudioSession, theme: Theme, folder: str, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("exportDialog")
        self.setWindowTitle("Export a dump of tensors")
        self.setMinimumWidth(520)
        self._session = session
        self._theme = theme
        self._folder = Path(folder) if folder else Path.home()
        self.request: tuple[Path, DumpOptions] | None = None
        self.formats: dict[Format, QRadioButton] = {}
        self.all_operators = QRadioButton("All operators that have run")
        self.selected_operator = QRadioButton()
        self.named_operators = QRadioButton("These names, types or indexes:")
        self.patterns = QLineEdit()
        self.patterns.setPlaceholderText("e.g. nn.Conv2d layer1.* 12")
        self.patterns.setAccessibleName("Names, types or indexes of operators")
        self.inputs = QCheckBox("Inputs of the model")
        self.outputs = QCheckBox("Outputs of the operators")
        self.weights = QCheckBox("Weights")
        self.statistics_only = QCheckBox("Statistics only, no arrays")
        self.destination = QLineEdit()
        self.destination.setAccessibleName("Destination")
        self.overwrite = QCheckBox("Replace what is there")
        self._size = QLabel()
        self._size.setProperty("role", "mono2")
        self._error = QLabel()
        self._error.setProperty("role", "error")
        self._error.setWordWrap(True)
        self.export_button = QPushButton("Export")
        self.export_button.setProperty("role", "primary")
        self.export_button.setDefault(True)
        self._build()
        self._preset()
        self._connect()
        self._check()

    @property
    def chosen_format(self) -> Format:
        """The format whose button is down."""
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
        column.addWidget(self.overwrite)
        column.addWidget(self._error)
        line = QFrame()
        line.setProperty("role", "line")
        column.addSpacing(4)
        column.addWidget(line)
        column.addLayout(self._make_buttons())

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
        boxes = (self.inputs, self.outputs, self.weights, self.statistics_only)
        for place, box in enumerate(boxes):
            grid.addWidget(box, place // 2, place % 2)
        return grid

    def _make_destination(self) -> QHBoxLayout:
        browse = QPushButton("Browse…")
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

    def _preset(self) -> None:
        selected = self._session.selected
        self.formats["folder"].setChecked(True)
        self.all_operators.setChecked(True)
        self.selected_operator.setText(f"Only the selected one, {selected or 'none'}")
        self.selected_operator.setEnabled(bool(selected))
        self.inputs.setChecked(True)
        self.outputs.setChecked(True)
        self._propose_destination()

    def _propose_destination(self) -> None:
        path = self._session.model_path
        stem = path.name.partition(".")[0] if path is not None else "model"
        ending = "_pictures" if self.chosen_format == "png" else "_dump"
        suffix = _FORMATS[self.chosen_format][2]
        self.destination.setText(str(self._folder / f"{stem}{ending}{suffix}"))

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
        self.export_button.clicked.connect(self._accept)

    # What was chosen

    def options(self) -> DumpOptions:
        """The options as they stand."""
        return DumpOptions(
            format=self.chosen_format,
            operators=self._patterns(),
            inputs=self.inputs.isChecked(),
            outputs=self.outputs.isChecked(),
            weights=self.weights.isChecked(),
            statistics_only=self.statistics_only.isChecked() and self._is_folder(),
            overwrite=self.overwrite.isChecked() and not self.overwrite.isHidden(),
        )

    def _patterns(self) -> tuple[str, ...] | None:
        if self.all_operators.isChecked():
            return None
        if self.named_operators.isChecked():
            return tuple(self.patterns.text().replace(",", " ").split())
        graph = self._session.graph
        if graph is None:
            return ()
        # The index, because a name may hold characters that are wild in patterns.
        return (str(graph.operator(self._session.selected).index),)

    def _is_folder(self) -> bool:
        return self.chosen_format == "folder"

    def _chosen_operators(self) -> tuple[RuntimeOperator, ...]:
        """Operators that the patterns name.

        Raises
        ------
        EngineError
            If one names nothing.
        """
        graph = self._session.graph
        return select_operators(graph, self._patterns()) if graph is not None else ()

    def _describe_size(self, operators: tuple[RuntimeOperator, ...]) -> str:
        session, total, count = self._session, 0, 0
        for operator in operators:
            wanted = self.inputs if operator.is_input else self.outputs
            for operand in operator.outputs if wanted.isChecked() else ():
                if session.has_value(operand.name):
                    total += value_nbytes(session.value(operand.name))
                    count += 1
            if self.weights.isChecked():
                total += sum(attribute.nbytes for attribute in operator.attributes.values())
                count += len(operator.attributes)
        return f"{count} tensors, {bytes_text(total)}"

    def _problem(self) -> str:
        """Why this cannot be exported yet; ``""`` when it can."""
        text = self.destination.text().strip()
        if not text:
            return "Choose where to write the dump."
        path = Path(text).expanduser()
        if not path.parent.is_dir():
            return f"{path.parent} is no folder: create it, or choose another place."
        if path.exists() and not self.overwrite.isChecked():
            return f"{path.name} exists already: choose another name, or replace it."
        checked = (self.inputs, self.outputs, self.weights)
        if not any(box.isChecked() for box in checked):
            return "Choose inputs, outputs or weights."
        if self.named_operators.isChecked() and not self._patterns():
            return "Name at least one operator, type or index."
        return ""

    # Answers to the user

    @Slot()
    def _on_format_toggled(self) -> None:
        if any(button.isChecked() for button in self.formats.values()):
            self._propose_destination()
            self._check()

    @Slot()
    def _on_patterns_edited(self) -> None:
        self.named_operators.setChecked(True)
        self._check()

    @Slot()
    def _check(self) -> None:
        """Say what is wrong, or how much will be written."""
        self.statistics_only.setEnabled(self._is_folder())
        self.overwrite.setVisible(Path(self.destination.text().strip() or ".").exists())
        problem = self._problem()
        try:
            self._size.setText(self._describe_size(self._chosen_operators()))
        except EngineError as exc:
            problem = problem or f"{exc}."
            self._size.setText("")
        self._error.setText(problem)
        self._error.setVisible(bool(problem))
        self.export_button.setEnabled(not problem)

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
        path = Path(self.destination.text().strip()).expanduser()
        self.request = (path, self.options())
        self.accept()


def _heading(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "subtitle")
    label.setAlignment(Qt.AlignmentFlag.AlignLeft)
    return label
