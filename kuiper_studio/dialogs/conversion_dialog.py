"""Asks for the input sizes that a file to convert lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QGridLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QToolButton,
    QWidget,
)

from engine.conversion.records import ConversionOptions
from engine.conversion.shapes import settle_inputs
from engine.conversion.source_inputs import SourceInput
from engine.errors import EngineError, capitalized
from engine.shapes import INPUT_DTYPES, likely_size, parse_dims, split_dtype
from engine.text import format_shape
from kuiper_studio.dialogs.question import Question
from kuiper_studio.icons import icon
from kuiper_studio.item_models.text import tip_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kuiper_studio.theme import Theme

__all__ = ["ConversionDialog"]

_WIDTH: Final = 620
_FIELD: Final = 150
_MOST_INPUTS: Final = 16  # rows; those of more inputs are left to the exporter
_EXAMPLE: Final = "1,3,224,224"
_HEADINGS: Final = ("Input", "Type", "Size", "Second size", "")


class ConversionDialog(Question):
    """A row for each input: its type, its size and a second size.

    Parameters
    ----------
    path : Path
        The file to convert.
    inputs : sequence of SourceInput
        What the file says about its inputs; may be empty.
    before : ConversionOptions
        The last choice for this file.
    theme : Theme

    Attributes
    ----------
    options : ConversionOptions
        The chosen sizes; valid once the dialog is accepted.

    Signals
    -------
    file_wanted : int
        The user wants to take the size of an input from a file: its row.
    """

    file_wanted = Signal(int)

    def __init__(
        self,
        path: Path,
        inputs: Sequence[SourceInput],
        before: ConversionOptions,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("conversion", "Sizes of the inputs", _WIDTH, parent)
        self._theme = theme
        self._says_names = bool(inputs)
        self._inputs: list[SourceInput] = []
        self.options = before
        self.types: list[QComboBox] = []
        self.sizes: list[QLineEdit] = []
        self.seconds: list[QLineEdit] = []
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(8)
        self._grid.setVerticalSpacing(6)
        self._grid.setColumnStretch(0, 1)
        for column, heading in enumerate(_HEADINGS):
            label = QLabel(heading)
            label.setProperty("role", "secondary")
            self._grid.addWidget(label, 0, column)
        count = max(len(inputs), len(before.shapes), 1)
        for index, given in enumerate((*inputs, *map(_unnamed, range(len(inputs), count)))):
            if index < _MOST_INPUTS:
                self._add_row(given)
        self._fill(before)
        self.ok.setText("Convert")
        purpose = QLabel(
            f"{path.name} lacks input sizes. pnnx converts it better if they are given."
        )
        hint = QLabel(
            "Leave all empty to convert without sizes. Dimensions that differ in the second "
            "size become dynamic."
        )
        hint.setProperty("role", "secondary")
        for label in (purpose, hint):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setWordWrap(True)
        more = () if self._says_names else (self._make_more(),)
        self.build((purpose, self._grid, *more, hint))
        self._check()
        self.sizes[0].setFocus(Qt.FocusReason.OtherFocusReason)

    def set_size(self, row: int, text: str) -> None:
        """Fill in the size of an input, as `settle_inputs` takes it."""
        size, dtype = split_dtype(text)
        self.sizes[row].setText(size)
        self._set_type(row, dtype)

    def _set_type(self, row: int, dtype: str) -> None:
        """Choose the type of an input, if the file has none."""
        if dtype and self.types[row].isEnabled():
            self.types[row].setCurrentText(dtype)

    # Rows

    def _add_row(self, given: SourceInput) -> None:
        row = len(self._inputs) + 1
        self._inputs.append(given)
        name = QLabel(given.name)
        name.setTextFormat(Qt.TextFormat.PlainText)
        if given.shape is not None:
            name.setToolTip(tip_text(f"{given.name}: {format_shape(given.shape)}"))
        kind = QComboBox()
        kind.addItems(INPUT_DTYPES)
        kind.setCurrentText(given.dtype or INPUT_DTYPES[0])
        kind.setEnabled(not given.dtype)
        kind.setAccessibleName(f"Type of input {given.name}")
        size, second = QLineEdit(), QLineEdit()
        for field, what in ((size, "Size"), (second, "Second size")):
            field.setFont(self._theme.mono_font())
            field.setFixedWidth(_FIELD)
            field.setAccessibleName(f"{what} of input {given.name}")
            field.textChanged.connect(self._check)
        size.setPlaceholderText(_EXAMPLE if given.shape is None else format_shape(given.shape))
        second.setPlaceholderText("the same")
        chooser = QToolButton()
        chooser.setIcon(icon("open", self._theme, "text"))
        chooser.setIconSize(QSize(16, 16))
        chooser.setToolTip("Take the size of an image or a .npy")
        chooser.setAccessibleName(f"Take the size of input {given.name} from a file")
        chooser.clicked.connect(lambda *_, row=row - 1: self.file_wanted.emit(row))
        self.types.append(kind)
        self.sizes.append(size)
        self.seconds.append(second)
        kind.currentTextChanged.connect(self._check)
        for column, widget in enumerate((name, kind, size, second, chooser)):
            self._grid.addWidget(widget, row, column)

    def _make_more(self) -> QPushButton:
        button = QPushButton("Another input")
        button.clicked.connect(self._add_unnamed)
        return button

    @Slot()
    def _add_unnamed(self) -> None:
        if len(self._inputs) < _MOST_INPUTS:
            self._add_row(_unnamed(len(self._inputs)))
            self.sizes[-1].setFocus(Qt.FocusReason.OtherFocusReason)
            self._check()

    def _fill(self, before: ConversionOptions) -> None:
        """Show what was chosen before, or likely sizes where the file says how many."""
        for row, given in enumerate(self._inputs):
            if row < len(before.shapes):
                self.set_size(row, before.shapes[row])
            elif given.shape is not None:
                self.sizes[row].setText(_likely(given))
            if row < len(before.shapes2):
                self.seconds[row].setText(split_dtype(before.shapes2[row])[0])

    @Slot()
    def _check(self) -> None:
        sentence = ""
        try:
            self.options = self._read()
        except EngineError as exc:
            sentence = str(exc)
        self.show_error(f"{capitalized(sentence)}." if sentence else "")

    def _read(self) -> ConversionOptions:
        """What is in the fields.

        Raises
        ------
        EngineError
            If it is no size, or there are too few.
        """
        if not any(field.text().strip() for field in (*self.sizes, *self.seconds)):
            return ConversionOptions()
        first, second = [], []
        for row, given in enumerate(self._inputs):
            size, typed = split_dtype(self.sizes[row].text().strip())
            other, typed_last = split_dtype(self.seconds[row].text().strip())
            for typed_size in filter(None, (size, other)):
                parse_dims(typed_size)  # refused in the words of the field
            self._set_type(row, typed or typed_last)
            shape = size or ("" if given.shape is None else _listed(given))
            dtype = self.types[row].currentText()
            first.append(f"{shape}{dtype}")
            second.append(f"{other or shape}{dtype}")
        settled = settle_inputs(self._inputs, first)
        if not any(field.text().strip() for field in self.seconds):
            return ConversionOptions(tuple(first))
        settle_inputs(settled, second)
        return ConversionOptions(tuple(first), tuple(second))


def _unnamed(index: int) -> SourceInput:
    return SourceInput(f"in{index}")


def _listed(given: SourceInput) -> str:
    return ",".join(str(dim) if isinstance(dim, int) else "?" for dim in given.shape or ())


def _likely(given: SourceInput) -> str:
    shape = given.shape or ()
    return ",".join(
        str(dim if isinstance(dim, int) else likely_size(axis, len(shape)))
        for axis, dim in enumerate(shape)
    )
