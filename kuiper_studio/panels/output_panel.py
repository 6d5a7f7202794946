"""The output panel: what the model's outputs mean, over the input picture and as a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from PySide6.QtCore import QModelIndex, QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLayout,
    QSlider,
    QSplitter,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.errors import capitalized
from engine.meanings.results import (
    Boxes,
    Classes,
    Embedding,
    LabelMap,
    Picture,
    Tokens,
    Transcript,
)
from engine.text import format_count
from kuiper_studio.panels.input_picture import InputPicture
from kuiper_studio.panels.output_canvas import OutputCanvas, has_picture
from kuiper_studio.panels.output_images import MaskView, match_shares
from kuiper_studio.panels.output_legend import MatchLegend
from kuiper_studio.panels.output_options import OptionFields
from kuiper_studio.panels.output_table import OutputTable
from kuiper_studio.panels.panel import Panel, plain_label
from kuiper_studio.panels.result_dock import TITLES
from kuiper_studio.spin_box import SpinBox

if TYPE_CHECKING:
    from PySide6.QtGui import QShowEvent

    from engine.meanings.results import Result
    from engine.output_reading import Meaning
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["OutputPanel"]

_OPACITY: Final = 60
_FITS: Final = 0.05  # score from which a reading is offered first
_BEFORE: Final = "The model has not run to its end. Continue with F5."


class OutputPanel(Panel):
    """What the outputs of the model mean.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Attributes
    ----------
    reading : QComboBox
    canvas : OutputCanvas
    table : OutputTable
    options : OptionFields
    mask_view : QComboBox
        What of a segmentation with a mask is shown.
    legend : MatchLegend
    message : QLabel
        What is to be done, where there is nothing to show.
    """

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("output", TITLES["output"], session, theme, parent)
        self._picture = InputPicture(session)
        self._meaning: Meaning | None = None
        self._offered: tuple[tuple[str, str], ...] = ()
        self.reading = QComboBox()
        self.reading.setAccessibleName("Meaning of the output")
        self.reading.setToolTip("What the output means; automatic takes what fits best")
        self.sample = SpinBox()
        self.sample.setAccessibleName("Sample")
        self.sample.setToolTip("Sample of the batch")
        self.sample.setMaximum(0)
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(0, 100)
        self.opacity.setAccessibleName("Opacity of the output over the input")
        self.opacity.setToolTip(self.opacity.accessibleName())
        self.mask_view = QComboBox()
        self.mask_view.setAccessibleName("What of the segmentation is shown")
        self.mask_view.setToolTip(
            "The classes of the output, those of the mask, or where the two agree"
        )
        for view in MaskView:
            self.mask_view.addItem(view.value, view)
        self.mask_view.setCurrentIndex(self.mask_view.count() - 1)
        self.canvas, self.table = OutputCanvas(theme), OutputTable(theme)
        self.legend = MatchLegend(theme)
        self.options = OptionFields()
        self.message = plain_label("outputMessage", "secondary")
        self.why = plain_label("outputWhy", "caption")
        self.note = plain_label("outputNote", "caption")
        self.value = plain_label("outputValue", "mono2")
        self._build()
        self._connect()
        self.opacity.setValue(_OPACITY)
        self.refresh()

    # Building

    def _build(self) -> None:
        for label in (self.message, self.why, self.note):
            label.setWordWrap(True)
            label.setContentsMargins(12, 2, 12, 4)
        self._sample_label, self._opacity_label = QLabel("Sample"), QLabel("Overlay")
        head = QHBoxLayout()
        head.setContentsMargins(12, 8, 12, 4)
        head.setSpacing(6)
        head.addWidget(self.reading, 1)
        head.addWidget(self._sample_label)
        head.addWidget(self.sample)
        foot = QHBoxLayout()
        foot.setContentsMargins(12, 2, 12, 4)
        foot.setSpacing(8)  # not the column's, which is 0
        foot.addWidget(self.value, 1)
        foot.addWidget(self.mask_view)
        foot.addWidget(self._opacity_label)
        self.opacity.setMaximumWidth(110)
        foot.addWidget(self.opacity)
        upper = QVBoxLayout()
        upper.setContentsMargins(12, 2, 12, 2)
        upper.addWidget(self.canvas, 1)
        upper.addWidget(self.legend)
        self._upper = _column(upper, foot)
        self._content = QSplitter(Qt.Orientation.Vertical)
        self._content.setChildrenCollapsible(False)
        self._content.addWidget(self._upper)
        self._content.addWidget(_column(self.options, self.table, self.note))
        self._content.setStretchFactor(0, 1)
        self._content.setStretchFactor(1, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(head)
        column.addWidget(self.why)
        column.addWidget(self.message)
        column.addWidget(self._content, 1)
        self._rest = QWidget()  # keeps the fields at the top while there is only a message
        column.addWidget(self._rest, 1)

    def _connect(self) -> None:
        session = self.session
        for changed in (
            session.graph_changed,
            session.meanings.arrived,
            session.meanings.chosen_changed,
            session.workspace.labels_changed,
            session.workspace.layers_changed,
            session.settled,
        ):
            changed.connect(self.refresh)
        session.tensors.recalled.connect(self._on_recalled)
        self.sample.valueChanged.connect(self.refresh)
        self.reading.activated.connect(self._on_reading_chosen)
        self.options.changed.connect(self.session.meanings.set_option)
        self.opacity.valueChanged.connect(lambda value: self.canvas.set_opacity(value / 100))
        self.mask_view.currentIndexChanged.connect(self._show_mask)
        self.canvas.chosen.connect(self._on_chosen)
        self.canvas.hovered.connect(self.value.setText)
        self.table.selectionModel().currentRowChanged.connect(self._on_row_changed)

    @override
    def keyboard_target(self) -> QWidget:
        return self.reading

    # What is shown

    @property
    def meaning(self) -> Meaning | None:
        """What is shown."""
        return self._meaning

    @Slot()
    def refresh(self) -> None:
        """Show what is known, and ask the engine for what is not."""
        if not self.isVisible():
            return
        meanings = self.session.meanings
        if self.session.graph is None or not meanings.is_computed:
            self._show(None, _BEFORE if self.session.graph is not None else "")
            return
        answer = meanings.read(self.sample.value())
        if answer is None:
            if self._meaning is None:
                self._show(None, "Reading the output…")
            return  # what is shown stays until the next is here
        found: Any = answer.result
        self._show(found, answer.reason if found is None else found.reason)

    def _show(self, meaning: Meaning | None, message: str) -> None:
        self._meaning = meaning
        result = meaning.result if meaning is not None else None
        self._offer(meaning)
        self.message.setText(message)
        self.message.setVisible(bool(message))
        has_options = meaning is not None and bool(meaning.options)
        self._content.setVisible(result is not None or has_options)
        self._rest.setVisible(self._content.isHidden())
        self.why.setText(_why(meaning))
        self.why.setVisible(bool(self.why.text()))
        if meaning is not None:
            self._bound_sample(meaning.samples)
            chosen = self.session.meanings.choice.options
            self.options.show_options(meaning.options, {**meaning.values, **chosen})
        self.set_suffix(_count(result))
        self._show_result(result)

    def _show_result(self, result: Result | None) -> None:
        chosen = self.table.chosen
        rows = result.rows if result is not None else ()
        with QSignalBlocker(self.table.selectionModel()):
            self.table.show_rows(rows)
        self.table.set_empty_text(
            "No box has this score. Lower the threshold." if isinstance(result, Boxes) else ""
        )
        self._upper.setVisible(has_picture(result))
        if has_picture(result):
            size = self._meaning.size if self._meaning is not None else None
            source = self._picture.find()
            image = self._picture.image(source, self.sample.value()) if source else None
            self.canvas.show_result(result, image, size)
            if 0 <= chosen < len(rows):
                self.table.choose(chosen)
                self.canvas.set_selected(chosen)
        self._show_mask()
        has_opacity = self.canvas.has_overlay and has_picture(result)
        self._opacity_label.setVisible(has_opacity)
        self.opacity.setVisible(has_opacity)
        self.note.setText(_note(result))
        self.note.setVisible(bool(self.note.text()))

    @Slot()
    def _show_mask(self) -> None:
        """Show classes, mask or agreement of a segmentation, and a legend of the latter."""
        result = self._meaning.result if self._meaning is not None else None
        has_mask = isinstance(result, LabelMap) and result.expected is not None
        view = MaskView(self.mask_view.currentData()) if has_mask else MaskView.CLASSES
        agreement = view is MaskView.AGREEMENT
        self.mask_view.setVisible(has_mask)
        self.canvas.set_mask_view(view)
        self.table.set_swatches(isinstance(result, (Boxes, LabelMap)) and not agreement)
        self.legend.setVisible(agreement)
        if isinstance(result, LabelMap) and agreement:
            self.legend.show_shares(match_shares(result, self.canvas.selected))

    def _offer(self, meaning: Meaning | None) -> None:
        """List the readings, those that fit first."""
        fits = meaning.fits if meaning is not None else ()
        best = next((each.title for each in fits if each.score >= 0.5), "")
        automatic = f"Automatic: {best}" if best else "Automatic: nothing fits"
        offered = (
            (automatic if fits else "Automatic", ""),
            *((each.title, each.name) for each in fits if each.score >= _FITS),
            *((each.title, each.name) for each in fits if each.score < _FITS),
        )
        if offered != self._offered:
            self._offered = offered
            with QSignalBlocker(self.reading):
                self.reading.clear()
                for title, name in offered:
                    self.reading.addItem(title, name)
            fitting = sum(each.score >= _FITS for each in fits)
            if fits and fitting < len(fits):
                self.reading.insertSeparator(fitting + 1)
            self._explain_items(meaning)
        with QSignalBlocker(self.reading):
            place = self.reading.findData(self.session.meanings.choice.reading)
            self.reading.setCurrentIndex(max(place, 0))
        self.reading.setEnabled(bool(fits))

    def _explain_items(self, meaning: Meaning | None) -> None:
        for fit in meaning.fits if meaning is not None else ():
            place = self.reading.findData(fit.name)
            tip = f"{capitalized(fit.reason)}."
            self.reading.setItemData(place, tip, Qt.ItemDataRole.ToolTipRole)

    def _bound_sample(self, samples: int) -> None:
        with QSignalBlocker(self.sample):
            self.sample.setMaximum(max(samples - 1, 0))
        for widget in (self._sample_label, self.sample):
            widget.setVisible(samples > 1)

    # Slots

    @Slot(int)
    def _on_reading_chosen(self, place: int) -> None:
        self.session.meanings.choose(str(self.reading.itemData(place) or ""))

    @Slot(int)
    def _on_chosen(self, row: int) -> None:
        self.table.choose(row)
        self._select(row)

    @Slot(QModelIndex, QModelIndex)
    def _on_row_changed(self, index: QModelIndex, _before: QModelIndex) -> None:
        self._select(index.row())

    def _select(self, row: int) -> None:
        self.canvas.set_selected(row)
        self._show_mask()

    @Slot(object)
    def _on_recalled(self, operand: str) -> None:
        graph = self.session.graph
        if graph is not None and any(each.name == operand for each in graph.input_operands):
            self.refresh()

    # Overrides of Qt methods

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()


def _column(*parts: QWidget | QLayout) -> QWidget:
    """Put parts below each other, without a margin."""
    made = QWidget()
    column = QVBoxLayout(made)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(0)
    for part in parts:
        if isinstance(part, QWidget):
            column.addWidget(part)
        else:
            column.addLayout(part)
    return made


def _why(meaning: Meaning | None) -> str:
    """Return why the reading was chosen, or that it does not fit."""
    if meaning is None or not meaning.reading:
        return ""
    fit = next(each for each in meaning.fits if each.name == meaning.reading)
    return f"{capitalized(fit.reason)}."


def _count(result: Result | None) -> str:
    return str(len(result.rows)) if isinstance(result, Boxes) else ""


def _box_count(boxes: Boxes) -> str:
    """Return how many boxes are shown, and of how many."""
    if not boxes.passed:
        return f"None of {format_count(boxes.candidates, 'box', 'boxes')} above the threshold"
    return (
        f"{len(boxes.rows)} of {format_count(boxes.passed, 'box', 'boxes')} above the "
        f"threshold, {boxes.candidates} in all"
    )


def _note(result: Result | None) -> str:
    """Return what is to be said of the rows."""
    if result is None:
        return ""
    parts = [capitalized(result.note)] if result.note else []
    if isinstance(result, Classes):
        parts.append(f"{format_count(result.count, 'class', 'classes')} in all")
    elif isinstance(result, Boxes):
        parts.append(_box_count(result))
    elif isinstance(result, Tokens):
        parts.append(f"Position {result.position} of {result.count}, {result.words} tokens")
    elif isinstance(result, Embedding):
        parts.append(f"{format_count(result.count, 'feature')} in all")
    elif isinstance(result, Transcript):
        parts.insert(0, f"“{result.text}”" if result.text else "Only blanks")
    elif isinstance(result, Picture) and result.scale is not None:
        parts.append("The overlay slider shows the input")
    return ". ".join(parts) + "." if parts else ""
