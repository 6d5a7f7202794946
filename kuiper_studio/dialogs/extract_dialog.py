"""Asks which operators to write as a model of their own, and where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Slot
from PySide6.QtWidgets import (
    QCheckBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QWidget,
)

from engine.dump import select_operators
from engine.errors import UnknownNameError
from engine.text import format_count
from kuiper_studio.dialogs.question import Missing, Question
from kuiper_studio.elided_label import WrappedLabel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from engine.runtime import RuntimeGraph, RuntimeOperator

__all__ = ["ExtractDialog"]

_WIDTH: Final = 560
_LISTED: Final = 3


class ExtractDialog(Question):
    """Asks for operators and a folder.

    Parameters
    ----------
    graph : RuntimeGraph
    chosen : sequence of RuntimeOperator
        Those that are offered.
    folder : str
        Where the folder is offered; ``""`` for beside the model.
    choose_folder : callable
        Asks for a folder; returns ``""`` when the user cancels.
    is_compared : bool
        Whether there is a reference, whose numbers can be expected.

    Attributes
    ----------
    patterns : tuple of str
        As `engine.write_reproducer` takes them.
    path : Path
    expects_reference, overwrites : bool
        Valid once the dialog is accepted.
    """

    def __init__(
        self,
        graph: RuntimeGraph,
        chosen: Sequence[RuntimeOperator],
        folder: str,
        choose_folder: Callable[[], str],
        *,
        is_compared: bool,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("extract", "Extract operators", _WIDTH, parent)
        self._graph, self._choose_folder = graph, choose_folder
        # Indexes, because names may contain wildcards.
        self.operators = QLineEdit(", ".join(str(each.index) for each in chosen))
        self.operators.setAccessibleName("Operators")
        self.operators.setPlaceholderText("Indexes, names or types, with * and ?")
        self._found = WrappedLabel("caption")
        first = chosen[0].index if chosen else 0
        stem = graph.source_path.name.partition(".")[0]
        start = Path(folder) if folder else graph.source_path.parent
        self.folder = QLineEdit(str(start / f"{stem}-{first}-reproducer"))
        self.folder.setAccessibleName("Folder")
        self.reference = QCheckBox("Expect the reference's numbers, not ours")
        self.reference.setVisible(is_compared)
        self.reference.setChecked(is_compared)
        self.overwrite = QCheckBox("Replace the reproducer that is there")
        self.ok.setText("Extract")
        self._arrange()
        self.operators.textChanged.connect(self._check)
        self.folder.textChanged.connect(self._check)
        self.overwrite.toggled.connect(self._check)
        self._check()

    @property
    def patterns(self) -> tuple[str, ...]:
        """What selects the operators."""
        return tuple(self.operators.text().replace(",", " ").split())

    @property
    def path(self) -> Path:
        """The folder to write."""
        return Path(self.folder.text().strip()).expanduser().absolute()

    @property
    def expects_reference(self) -> bool:
        """Whether the reference's numbers are expected."""
        return self.reference.isChecked() and not self.reference.isHidden()

    @property
    def overwrites(self) -> bool:
        """Whether what is there is replaced."""
        return self.overwrite.isChecked() and not self.overwrite.isHidden()

    def _arrange(self) -> None:
        purpose = QLabel(
            "Writes a model of its own with the inputs, the expected outputs and a script that "
            "checks them with NumPy, Kuiper Studio, PyTorch and ncnn."
        )
        purpose.setWordWrap(True)
        choose = QPushButton("Choose…")
        choose.setAutoDefault(False)
        choose.clicked.connect(self._on_choose)
        entry = QHBoxLayout()
        entry.setSpacing(6)
        entry.addWidget(self.folder, 1)
        entry.addWidget(choose)
        form = QFormLayout()
        form.addRow("Operators", self.operators)
        form.addRow("", self._found)
        form.addRow("Folder", entry)
        form.addRow("", self.reference)
        form.addRow("", self.overwrite)
        self.build((purpose, form))

    @Slot()
    def _on_choose(self) -> None:
        folder = self._choose_folder()
        if folder:
            self.folder.setText(str(Path(folder) / self.path.name))

    @Slot()
    def _check(self) -> None:
        exists = bool(self.folder.text().strip()) and self.path.exists()
        self.overwrite.setVisible(exists)
        self._found.setText("")
        self.show_error(self._problem(exists=exists))

    def _problem(self, *, exists: bool) -> str:
        if not self.patterns:
            return Missing("Name at least one operator, type or index.")
        try:
            found = select_operators(self._graph, self.patterns)
        except UnknownNameError as exc:
            hint = f": did you mean {exc.suggestion}?" if exc.suggestion else "."
            return f"No operator matches {exc.name}{hint}"
        names = ", ".join(f"#{each.index} {each.name}" for each in found[:_LISTED])
        more = ", …" if len(found) > _LISTED else ""
        self._found.setText(f"{format_count(len(found), 'operator')}: {names}{more}")
        if not self.folder.text().strip():
            return Missing("Choose where to write the folder.")
        if not self.path.parent.is_dir():
            return f"{self.path.parent} is not a folder. Create it, or choose another one."
        if exists and not self.overwrite.isChecked():
            return f"{self.path.name} exists. Choose another folder, or replace it."
        return ""
