"""The input panel: source, size and preprocessing of each input."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.errors import EngineError
from engine.image_methods import FITS, RESAMPLINGS
from engine.inputs import (
    IMAGE_SUFFIXES,
    ImageOptions,
    InputSource,
    parse_number,
    parse_source,
)
from engine.text import format_dtype, format_shape
from kuiper_studio.background import Background, Done
from kuiper_studio.elided_label import ElidedLabel, WrappedLabel
from kuiper_studio.icons import icon
from kuiper_studio.item_models.text import tip_text
from kuiper_studio.panels.dropping import dropped_paths, take_copy
from kuiper_studio.panels.input_fields import (
    PRESETS,
    numbers_text,
    parse_numbers,
    parse_pixel,
    parse_scale,
    parse_side,
    preset_of,
    scale_text,
    source_title,
)
from kuiper_studio.panels.input_preview import InputPreview, PreviewPicture, load_preview
from kuiper_studio.panels.input_sizes import (
    Dimension,
    answer,
    change,
    dimensions,
    forget,
    is_requested,
    question,
)
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.size_row import SizeRow

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent

    from engine.runtime import RuntimeOperand
    from kuiper_studio.session import Failure, StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["InputCard", "InputPanel", "PreprocessingEditor"]

# Input, its source, and the shape of generated values.
_PreviewKey = tuple[str, InputSource, tuple[int, ...] | None]
FILE_SUFFIXES: Final = (*IMAGE_SUFFIXES, ".npy", ".npz")
# Choices of the kind of source, with their titles.
_CHOICES: Final = (
    ("file", "Image or NumPy file…"),
    ("random", "Random"),
    ("zeros", "Zeros"),
    ("ones", "Ones"),
    ("constant", "Constant"),
)


def _make_field(name: str, tip: str) -> QLineEdit:
    field = QLineEdit()
    field.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
    field.setAccessibleName(name)
    field.setToolTip(tip_text(tip))
    return field


def _make_combo(name: str, titles: tuple[str, ...]) -> QComboBox:
    combo = QComboBox()
    combo.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
    combo.setAccessibleName(name)
    combo.addItems(list(titles))
    return combo


def _caption(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("role", "secondary")
    return label


def _mark(field: QLineEdit, *, invalid: bool) -> None:
    if bool(field.property("invalid")) != invalid:
        field.setProperty("invalid", invalid)
        field.style().unpolish(field)
        field.style().polish(field)


class PreprocessingEditor(QWidget):
    """Edits `ImageOptions`; a box commits on Enter or when it loses the focus.

    Signals
    -------
    changed : ImageOptions
    error_changed : str
        The error in a box; ``""`` for none.
    """

    changed = Signal(object)
    error_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._options = ImageOptions()
        self._channels = 3
        self.scale = _make_field("Scale", "Factor for pixels of 0 to 255, e.g. 1/255")
        self.mean = _make_field(
            "Mean", "Subtracted after scaling; one number, or one a channel"
        )
        self.std = _make_field("Std", "Divides after the mean; one number, or one a channel")
        self.order = _make_combo("Channel order", ("RGB", "BGR"))
        self.fit = _make_combo("Fit", tuple(FITS))
        self.fit.setToolTip("; ".join(f"{name} {words}" for name, words in FITS.items()))
        self.resampling = _make_combo("Resampling", tuple(RESAMPLINGS))
        self.resampling.setMinimumContentsLength(6)  # longer names must not widen the panel
        self.resampling.setSizeAdjustPolicy(
            QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        for place, words in enumerate(RESAMPLINGS.values()):
            self.resampling.setItemData(place, words, Qt.ItemDataRole.ToolTipRole)
        self.shorter_side = _make_field(
            "Shorter side",
            "Pixels before the centre is cut out, e.g. 256; empty for the fewest",
        )
        self.border = _make_field("Border", "Pixels around the image, 0 to 255")
        self._details = {
            "crop": (_caption("Side"), self.shorter_side),
            "letterbox": (_caption("Border"), self.border),
        }
        self.preset = _make_combo("Preset", (*(p.title for p in PRESETS), "custom"))
        self.preset.setToolTip("Common scale, mean and std")
        self._arrange()
        for field in self._texts(self._options):
            field.editingFinished.connect(self._commit)
        for combo in (self.order, self.fit, self.resampling):
            combo.activated.connect(self._commit)
        self.preset.activated.connect(self._use_preset)
        self.show_options(self._options)

    def show_options(self, options: ImageOptions) -> None:
        """Show options."""
        self._options = options
        for field, text in self._texts(options).items():
            if field.text() != text:
                field.setText(text)
                field.setCursorPosition(0)  # what does not fit is cut at the end
            _mark(field, invalid=False)
        self.order.setCurrentText(options.order)
        self.fit.setCurrentText(options.fit)
        self.resampling.setCurrentText(options.resampling)
        self.resampling.setToolTip(
            f"{RESAMPLINGS[options.resampling]}; Pillow takes means where an image shrinks"
        )
        for fit, widgets in self._details.items():
            for widget in widgets:
                widget.setVisible(fit == options.fit)
        preset = preset_of(options)
        self.preset.setCurrentText(preset.title if preset is not None else "custom")

    def _texts(self, options: ImageOptions) -> dict[QLineEdit, str]:
        return {
            self.scale: scale_text(options.scale),
            self.mean: numbers_text(options.mean),
            self.std: numbers_text(options.std),
            self.shorter_side: str(options.shorter_side or ""),
            self.border: str(options.border),
        }

    def _arrange(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(6)
        grid.setVerticalSpacing(4)
        for place, title in enumerate(("Preset", "Scale", "Mean", "Std", "Resampling")):
            grid.addWidget(_caption(title), place, 0)
        grid.addWidget(_caption("Fit"), 1, 2)
        grid.addWidget(self.preset, 0, 1)
        grid.addWidget(self.order, 0, 2, 1, 2)
        grid.addWidget(self.scale, 1, 1)
        grid.addWidget(self.fit, 1, 3)
        # Three numbers need the width of the panel.
        grid.addWidget(self.mean, 2, 1, 1, 3)
        grid.addWidget(self.std, 3, 1, 1, 3)
        grid.addWidget(self.resampling, 4, 1)
        for caption, field in self._details.values():
            grid.addWidget(caption, 4, 2)
            grid.addWidget(field, 4, 3)
        grid.setColumnStretch(1, 1)
        grid.setColumnStretch(3, 1)

    @Slot()
    def _commit(self) -> None:
        readers: dict[QLineEdit, Callable[[str], object]] = {
            self.scale: parse_scale,
            self.mean: partial(parse_numbers, name="mean"),
            self.std: partial(parse_numbers, name="std"),
            self.shorter_side: parse_side,
            self.border: parse_pixel,
        }
        read: dict[QLineEdit, object] = {}
        errors = []
        for field, reader in readers.items():
            # A rounded text must not change the number that it shows.
            if field.text() == self._texts(self._options)[field]:
                _mark(field, invalid=False)
                continue
            try:
                read[field] = reader(field.text())
            except ValueError as exc:
                errors.append(f"{field.accessibleName()}: {exc}.")
            _mark(field, invalid=field not in read)
        self.error_changed.emit(errors[0] if errors else "")
        if errors:
            return
        names = {
            self.scale: "scale",
            self.mean: "mean",
            self.std: "std",
            self.shorter_side: "shorter_side",
            self.border: "border",
        }
        fields = {names[field]: value for field, value in read.items()}
        self._set(
            replace(
                self._options,
                order=self.order.currentText(),  # type: ignore[arg-type]
                fit=self.fit.currentText(),  # type: ignore[arg-type]
                resampling=self.resampling.currentText(),  # type: ignore[arg-type]
                **fields,  # type: ignore[arg-type]
            )
        )

    @Slot(int)
    def _use_preset(self, place: int) -> None:
        if place < len(PRESETS):
            preset = PRESETS[place]
            self._set(
                replace(self._options, scale=preset.scale, mean=preset.mean, std=preset.std)
            )

    def _set(self, options: ImageOptions) -> None:
        if options != self._options:
            self._options = options
            self.changed.emit(options)


class InputCard(QFrame):
    """One input: its source, a preview, and the shape it becomes.

    Signals
    -------
    chosen : (str, InputSource)
        Operand name and the new source.
    sizes_chosen : (str, tuple of (int or None))
        Operand name and its sizes; None for a size whose field is in another card.
    sizes_reset : str
        The user wants the exported size of the operand of that name.
    """

    chosen = Signal(object, object)
    sizes_chosen = Signal(object, object)
    sizes_reset = Signal(object)

    def __init__(self, operand: RuntimeOperand, theme: Theme, *, titled: bool) -> None:
        super().__init__()
        self.operand = operand
        self._theme = theme
        self._source: InputSource | None = None
        self._dims: tuple[Dimension, ...] | None = None
        self._source_error = self._picture_error = ""
        self._number_error = self._size_error = ""
        self.setAcceptDrops(True)
        self.preview = InputPreview(theme)
        self._name = ElidedLabel("subtitle")
        self._facts = QLabel()
        self._facts.setObjectName("inputFacts")
        self._facts.setProperty("role", "mono2")
        # A long line must not widen the panel, whose right side would be cut.
        self._facts.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._facts.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._error = WrappedLabel("error")
        self._error.setObjectName("inputError")
        self._error.hide()
        self.choice = _make_combo("Source", tuple(title for _, title in _CHOICES))
        self.number = _make_field("Seed or value", "Seed of random values, or the constant")
        self.number.setFixedWidth(84)
        self._browse = self._make_browse_button()
        self.sizes = SizeRow(operand, theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 10, 8)
        column.setSpacing(6)
        if titled:
            column.addWidget(self._make_title())
        column.addWidget(self._make_top())
        column.addLayout(self._make_source_row())
        column.addWidget(self.sizes)
        column.addWidget(self._error)
        self.choice.activated.connect(self._on_choice)
        self.number.editingFinished.connect(self._on_number)
        self.sizes.chosen.connect(self._on_sizes)
        self.sizes.reset_requested.connect(self._on_reset)
        self.sizes.error_changed.connect(self._show_size_error)
        self.show_source(None)

    @property
    def is_made_up(self) -> bool:
        """Whether the source has no size of its own, or is not chosen yet."""
        return self._source is None or self._source.kind in {"random", "constant"}

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The sizes, if all are known."""
        if self._dims is None or any(dim.is_open for dim in self._dims):
            return None
        return tuple(dim.size for dim in self._dims)

    def show_sizes(self, dims: tuple[Dimension, ...] | None, *, resettable: bool) -> None:
        """Show the sizes of the input.

        Parameters
        ----------
        dims : tuple of Dimension, or None
            None where the rank is not known.
        resettable : bool
            Whether the sizes differ from the exported ones.
        """
        self._dims = dims
        editable = self.is_made_up or (
            self._source is not None and self._source.kind == "image"
        )
        self.sizes.show_dimensions(dims, editable=editable, resettable=resettable)
        # Without sizes no values can be generated, so only the questions are shown.
        self._top.setVisible(
            self._source is None or not self.is_made_up or self.shape is not None
        )

    def show_source(self, source: InputSource | None) -> None:
        """Show the source of the input."""
        if source != self._source:
            self.show_error("")
        self._source = source
        self._name.setText(source_title(source))
        if source is not None and source.path is not None:
            self._name.setToolTip(tip_text(str(source.path)))
        self._show_controls(self._choice_of(source))

    def _show_controls(self, choice: str) -> None:
        self.choice.setCurrentIndex([key for key, _ in _CHOICES].index(choice))
        numbered = choice in {"random", "constant"}
        self.number.setVisible(numbered)
        self._browse.setVisible(choice == "file")
        if numbered:
            self.number.setText(self._number_text(choice))
        self._show_number_error("")

    def show_facts(self, picture: PreviewPicture | None, options: ImageOptions) -> None:
        """Show the preview of the source, and its shape as an input."""
        kind = self._source.kind if self._source is not None else ""
        self.preview.show_picture(picture, kind)
        shape = self.shape
        wanted = format_shape(shape if shape is not None else self.operand.shape) or "?"
        dtype = format_dtype(self.operand.dtype) or "f32"
        lines = [picture.text] if picture is not None and picture.text else []
        if lines != [f"{wanted} {dtype}"]:  # else the source is taken as it is
            is_image = kind == "image"
            lines += [f"→ {wanted}", f"{dtype}, {options.resampling}" if is_image else dtype]
            fits = {"crop": "cropped", "letterbox": "letterboxed"}
            lines += [fits[options.fit]] if is_image and options.fit in fits else []
        self._facts.setText("\n".join(lines))
        cropped = kind == "image" and options.fit == "crop" and shape is not None
        kept = (shape[-2], shape[-1]) if cropped and shape is not None else None
        self.preview.set_crop(kept, options.shorter_side)
        self._picture_error = picture.error if picture is not None else ""
        self._show_errors()

    def show_error(self, text: str) -> None:
        """Show why the source cannot be used; ``""`` if it can."""
        self._source_error = text
        self._show_errors()

    def _show_number_error(self, text: str) -> None:
        self._number_error = text
        _mark(self.number, invalid=bool(text))
        self._show_errors()

    @Slot(str)
    def _show_size_error(self, text: str) -> None:
        self._size_error = text
        self._show_errors()

    def _show_errors(self) -> None:
        text = (
            self._number_error or self._size_error or self._source_error or self._picture_error
        )
        self._error.setText(text)
        self._error.setVisible(bool(text))

    @Slot()
    def browse(self) -> None:
        """Ask for a file."""
        patterns = " ".join(f"*{suffix}" for suffix in FILE_SUFFIXES)
        start = ""
        if self._source is not None and self._source.path is not None:
            start = str(self._source.path.parent)
        path, _ = QFileDialog.getOpenFileName(
            self, f"Input {self.operand.name}", start, f"Inputs ({patterns});;All files (*)"
        )
        if path:
            self.use_file(path)
        else:
            self._show_controls(self._choice_of(self._source))

    def use_file(self, path: str) -> None:
        """Use a file as the source."""
        try:
            source = parse_source(path)
        except EngineError as exc:
            self.show_error(str(exc))
            return
        self.chosen.emit(self.operand.name, source)

    # Building

    def _make_browse_button(self) -> QToolButton:
        button = QToolButton()
        button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        button.setIcon(icon("open", self._theme))
        button.setIconSize(QSize(15, 15))
        tip = f"Choose a file for input {self.operand.name}"
        button.setToolTip(tip_text(tip))
        button.setAccessibleName(tip)
        button.clicked.connect(self.browse)
        return button

    def _make_title(self) -> QLabel:
        shape, dtype = format_shape(self.operand.shape), format_dtype(self.operand.dtype)
        label = ElidedLabel("mono")
        label.setText(f"operand {self.operand.name}  {shape or '?'} {dtype}")
        return label

    def _make_top(self) -> QWidget:
        words = QVBoxLayout()
        words.setSpacing(3)
        words.addWidget(self._name)
        words.addWidget(self._facts)
        words.addStretch(1)
        self._top = QWidget()
        top = QHBoxLayout(self._top)
        top.setContentsMargins(0, 0, 0, 0)
        top.setSpacing(10)
        top.addWidget(self.preview, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(words, 1)
        return self._top

    def _make_source_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(_caption("Source"))
        row.addWidget(self.choice, 1)
        row.addWidget(self.number)
        row.addWidget(self._browse)
        return row

    @staticmethod
    def _choice_of(source: InputSource | None) -> str:
        if source is None or source.kind in {"image", "npy", "npz", "array"}:
            return "file"
        return source.text if source.text in {"zeros", "ones"} else source.kind

    def _number_text(self, choice: str) -> str:
        if self._source is None or self._source.kind != choice:
            return "0"
        if choice == "random":
            return str(self._source.seed)
        return f"{self._source.value:.7g}"

    # Answers to the user

    @Slot(int)
    def _on_choice(self, place: int) -> None:
        choice = _CHOICES[place][0]
        if choice == "file":
            self.browse()
        elif choice in {"zeros", "ones"}:
            self._choose(InputSource("constant", value=float(choice == "ones")))
        else:
            self._show_controls(choice)
            if choice == "random":
                self._choose(InputSource("random", seed=0))
            self.number.setFocus()
            self.number.selectAll()

    @Slot()
    def _on_number(self) -> None:
        choice = _CHOICES[self.choice.currentIndex()][0]
        try:
            if choice == "random":
                source = InputSource("random", seed=_parse_seed(self.number.text()))
            else:
                source = InputSource("constant", value=parse_number(self.number.text()))
        except ValueError as exc:
            self._show_number_error(f"{exc}.")
            return
        self._show_number_error("")
        self._choose(source)

    @Slot(object)
    def _on_sizes(self, sizes: tuple[int | None, ...]) -> None:
        self.sizes_chosen.emit(self.operand.name, sizes)

    @Slot()
    def _on_reset(self) -> None:
        self.sizes_reset.emit(self.operand.name)

    def _choose(self, source: InputSource) -> None:
        if source != self._source:
            self.chosen.emit(self.operand.name, source)

    # Overrides of Qt methods

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_file(event):
            take_copy(event)
            self.preview.set_dropping(on=True)
        else:
            event.ignore()

    @override
    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.preview.set_dropping(on=False)

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        self.preview.set_dropping(on=False)
        path = _dropped_file(event)
        if path:
            take_copy(event)
            self.use_file(path)


def _parse_seed(text: str) -> int:
    if not text.strip().isdecimal():
        raise ValueError(f"{text!r} is not a seed; write a whole number, e.g. 0")
    return int(text)


def _dropped_file(event: QDropEvent) -> str:
    """Return the first dropped file that can be an input; ``""`` for none."""
    paths = dropped_paths(event)
    return next((path for path in paths if Path(path).suffix.lower() in FILE_SUFFIXES), "")


class InputPanel(Panel):
    """A card per input of the model, and the preprocessing of images.

    Questions for all open dimensions are at the top.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("input", "Input", session, theme, parent)
        self.cards: dict[str, InputCard] = {}
        self._pictures: dict[str, tuple[_PreviewKey, PreviewPicture]] = {}
        self._waiting = ""
        self._background = Background(self)
        self._background.finished.connect(self._on_preview_loaded)
        self._open = QAction(icon("open", theme), "Choose a file", self)
        self._open.setToolTip("Choose a file for the input")
        self._open.triggered.connect(self._browse_first)
        self._editor: PreprocessingEditor | None = None  # made for the first image
        self._editor_error = WrappedLabel("error")
        self._editor_error.hide()
        self._empty = QLabel("The model takes no input.")
        self._empty.setProperty("role", "secondary")
        self._empty.setMargin(10)
        self._cards_column = QVBoxLayout()
        self._cards_column.setSpacing(0)
        self.question = WrappedLabel("subtitle")
        self.question.setObjectName("inputQuestion")
        self.use_sizes = QPushButton("Use these sizes")
        self.use_sizes.setObjectName("useSizes")
        self.use_sizes.setProperty("role", "primary")
        self._build()
        self._connect()

    # Building

    def _build(self) -> None:
        self._preprocessing = QWidget()
        below = self._below = QVBoxLayout(self._preprocessing)
        below.setContentsMargins(10, 0, 10, 8)
        below.addWidget(self._editor_error)
        content = QFrame()
        content.setProperty("role", "panel")
        column = QVBoxLayout(content)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._empty)
        column.addWidget(self._make_question())
        column.addLayout(self._cards_column)
        column.addWidget(self._preprocessing)
        column.addStretch(1)
        scroll = self._scroll = QScrollArea()
        scroll.setAccessibleName("Inputs of the model")
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(content)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(scroll)

    def _make_question(self) -> QFrame:
        self._asking = QFrame()
        self._asking.setProperty("role", "bar")
        row = QVBoxLayout(self._asking)
        row.setContentsMargins(10, 8, 10, 8)
        row.setSpacing(6)
        row.addWidget(self.question)
        row.addWidget(self.use_sizes, 0, Qt.AlignmentFlag.AlignLeft)
        self._asking.hide()
        return self._asking

    def _connect(self) -> None:
        self.use_sizes.clicked.connect(self._use_sizes)
        self.session.graph_changed.connect(self._on_graph_changed)
        self.session.inputs_changed.connect(self._on_inputs_changed)
        self.session.failed.connect(self._on_failed)
        self._on_graph_changed()

    @property
    def editor(self) -> PreprocessingEditor:
        """The preprocessing of images."""
        return self._editor or self._make_editor()

    def _make_editor(self) -> PreprocessingEditor:
        made = self._editor = PreprocessingEditor()
        self._below.insertWidget(0, made)
        made.show_options(self.session.image_options)
        made.changed.connect(self._on_options_edited)
        made.error_changed.connect(self._show_editor_error)
        return made

    # Answers to the session

    @Slot()
    def _on_graph_changed(self) -> None:
        for card in self.cards.values():
            # Hiding a field takes the focus from it, and so what was typed for another model.
            card.blockSignals(True)  # noqa: FBT003 - Qt's signature
            self._cards_column.removeWidget(card)
            card.hide()
            card.deleteLater()
        self._pictures.clear()
        self._waiting = ""
        graph = self.session.graph
        operands = graph.input_operands if graph is not None else ()
        self.cards = {}
        for operand in operands:
            card = InputCard(operand, self.theme, titled=len(operands) > 1)
            card.chosen.connect(self._on_source_chosen)
            card.sizes_chosen.connect(self._on_sizes_chosen)
            card.sizes_reset.connect(self._on_sizes_reset)
            self._cards_column.addWidget(card)
            self.cards[operand.name] = card
        names = [operand.name for operand in operands]
        self.set_suffix(f"operand {names[0]}" if len(names) == 1 else "")
        self._open.setEnabled(bool(names))
        self._empty.setText(
            "No model is open." if graph is None else "The model takes no input."
        )
        self._empty.setVisible(not names)
        self._on_inputs_changed()

    @Slot()
    def _on_inputs_changed(self) -> None:
        options = self.session.image_options
        sources = self.session.inputs
        are_used = bool(self.session.fed_shapes)
        if are_used:  # what was chosen last can be used
            self._waiting = ""
        for name, card in self.cards.items():
            card.show_source(sources.get(name))
            if are_used:  # what was wrong may be told after the next choice
                card.show_error("")
        self._show_sizes()
        for name in self.cards:
            self._show_facts(name)
        pictured = any(source.kind == "image" for source in sources.values())
        has_picture = pictured and bool(self.cards)
        if has_picture or self._editor is not None:
            self.editor.show_options(options)
        self._preprocessing.setVisible(has_picture)
        self._show_editor_error("")

    # Sizes

    def ask(self) -> None:
        """Focus the first missing field, and say what is missing."""
        for card in self.cards.values():
            if card.is_made_up and card.shape is None and card.sizes.ask():
                self._scroll.ensureWidgetVisible(card.sizes)
                return
        without = [n for n in self.cards if n not in self.session.inputs]
        if without:
            self._ask("Choose an input to run the model.")
            self.cards[without[0]].choice.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def _operands(self) -> tuple[RuntimeOperand, ...]:
        graph = self.session.graph
        return graph.input_operands if graph is not None else ()

    def _show_sizes(self) -> None:
        session, operands = self.session, self._operands
        dims = dimensions(operands, session.input_shapes, session.fed_shapes)
        for operand in operands:
            asked = is_requested(operand, session.input_shapes)
            self.cards[operand.name].show_sizes(dims[operand.name], resettable=asked)
        made_up = [name for name, card in self.cards.items() if card.is_made_up]
        self._ask(question(operands, dims, made_up), answerable=True)

    def _ask(self, text: str, *, answerable: bool = False) -> None:
        self.question.setText(text)
        self._asking.setVisible(bool(text))
        self.use_sizes.setVisible(answerable)

    @Slot(object, object)
    def _on_sizes_chosen(self, name: str, sizes: tuple[int | None, ...]) -> None:
        session = self.session
        if self._asking.isVisible() and self.cards[name].is_made_up:
            self._answer({name: sizes})
        else:
            self._waiting = name
            session.set_shapes(change(self._operands, session.input_shapes, name, sizes))

    @Slot()
    def _use_sizes(self) -> None:
        self._answer({})

    def _answer(self, chosen: dict[str, tuple[int | None, ...]]) -> None:
        """Apply the sizes of all cards that need some."""
        fields = {
            name: card.sizes.sizes()
            for name, card in self.cards.items()
            if card.is_made_up and card.shape is None and card.sizes.sizes()
        }
        asked = self.session.input_shapes
        self.session.set_shapes(answer(self._operands, asked, {**fields, **chosen}))

    @Slot(object)
    def _on_sizes_reset(self, name: str) -> None:
        self._waiting = name
        self.session.set_shapes(forget(self._operands, self.session.input_shapes, name))

    @Slot(object)
    def _on_failed(self, failure: Failure) -> None:
        # The session reports all failures; those of this panel's requests show here, too.
        card = self.cards.get(self._waiting)
        if card is not None and not failure.operator:
            card.show_error(failure.reason)
        self._waiting = ""

    # Previews

    def _show_facts(self, name: str) -> None:
        """Show a card's cached preview, or load it."""
        card, source = self.cards[name], self.session.inputs.get(name)
        options = self.session.image_options
        if source is None:
            card.show_facts(None, options)
            return
        shape = card.shape if card.is_made_up else None
        key = name, source, shape
        known = self._pictures.get(name)
        if known is not None and known[0] == key and not known[1].error:
            card.show_facts(known[1], options)
            return
        card.show_facts(None, options)
        if not card.is_made_up or shape is not None:
            load = partial(load_preview, source, card.operand, self._operands, shape)
            self._background.submit(key, load)

    @Slot(object)
    def _on_preview_loaded(self, done: Done) -> None:
        if not isinstance(done.key, tuple):
            return
        name, source, shape = done.key
        card = self.cards.get(name)
        if card is None or self.session.inputs.get(name) != source:
            return  # another source was chosen meanwhile
        if card.is_made_up and card.shape != shape:
            return
        picture = done.result
        if not isinstance(picture, PreviewPicture):
            picture = PreviewPicture("", error=done.error)
        self._pictures[name] = (done.key, picture)
        card.show_facts(picture, self.session.image_options)

    # Answers to the user

    @Slot(object, object)
    def _on_source_chosen(self, name: str, source: InputSource) -> None:
        self.cards[name].show_error("")  # of the same file, which may have been mended
        self.session.set_inputs({name: source})
        self._waiting = name

    @Slot(object)
    def _on_options_edited(self, options: ImageOptions) -> None:
        self.session.set_inputs({}, options)
        pictured = [n for n, s in self.session.inputs.items() if s.kind == "image"]
        self._waiting = pictured[0] if pictured else ""

    @Slot(str)
    def _show_editor_error(self, text: str) -> None:
        self._editor_error.setText(text)
        self._editor_error.setVisible(bool(text))
        if text:
            # It has its place only after the layout of this turn.
            QTimer.singleShot(0, self._editor_error, self._reveal_editor_error)

    @Slot()
    def _reveal_editor_error(self) -> None:
        self._scroll.ensureWidgetVisible(self._editor_error)

    @Slot()
    def _browse_first(self) -> None:
        next(iter(self.cards.values())).browse()

    # Overrides of Qt methods

    @override
    def title_actions(self) -> tuple[QAction, ...]:
        return (self._open,)

    @override
    def sizeHint(self) -> QSize:
        return QSize(346, 190)
