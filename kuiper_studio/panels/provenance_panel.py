"""The provenance panel: where one element comes from, and what it depends on."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QModelIndex, QRect, Qt, QTimer, Slot
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.provenance.records import Kind
from engine.text import format_count, format_number
from kuiper_studio.item_models.operator_rows import LOOK_ROLE
from kuiper_studio.item_models.provenance_rows import PLACE_ROLE, TermColumn, TermsModel
from kuiper_studio.item_models.provenance_texts import (
    describe_check,
    describe_difference,
    describe_end,
    describe_field,
    describe_guesses,
    describe_noise,
    describe_weight,
    format_element,
    format_numbers,
    format_source,
)
from kuiper_studio.panels.input_picture import InputPicture, picture_source
from kuiper_studio.panels.input_preview import image_of_planes
from kuiper_studio.panels.panel import Panel, plain_label
from kuiper_studio.panels.provenance_canvas import (
    FieldPicture,
    PartialSums,
    ProductsPicture,
    WeightPicture,
)
from kuiper_studio.panels.provenance_maps import JoinedMaps, join_maps
from kuiper_studio.panels.result_dock import TITLES
from kuiper_studio.panels.table import ROW_HEIGHT, Index, RowDelegate, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt
    from PySide6.QtGui import QColor, QImage, QPainter

    from engine.provenance.records import (
        Breakdown,
        Interval,
        Provenance,
        ReceptiveField,
        Source,
    )
    from kuiper_studio.session import StudioSession
    from kuiper_studio.session.explaining import Further
    from kuiper_studio.theme import Theme

__all__ = ["ProvenancePanel"]

_WIDTHS: Final = {TermColumn.VALUE: 58, TermColumn.WEIGHT: 58, TermColumn.PRODUCT: 60}
_LATE_MS: Final = 150  # a message appears if the answers take longer
_SOON_MS: Final = 30  # for the second answer: to fill and paint the panel twice takes longer
_MOST_LINES: Final = 9  # rows of the table that are seen at once
_HINT: Final = (
    "Click an element of the tensor, or press an arrow key in it, then Analyse → Where does "
    "this number come from? (P)."
)
_LISTED: Final = frozenset(Kind) - {Kind.INPUT, Kind.WEIGHT, Kind.SUPPLIED, Kind.UNKNOWN}
_SUMMED: Final = frozenset({Kind.SUM, Kind.ACTIVATED, Kind.GATES})
_MAPPED: Final = frozenset({Kind.SUM, Kind.ACTIVATED, Kind.CHOICE})
_PICTURED: Final = _SUMMED | _MAPPED | {Kind.SHARE}


class _Delegate(RowDelegate):
    """Paints cells that lead somewhere as links."""

    @override
    def draw_cell(
        self, painter: QPainter, rect: QRect, index: Index, *, selected: bool
    ) -> None:
        token = index.data(LOOK_ROLE).token
        color: QColor = self.theme.color("selTxt" if selected else token)
        align = Qt.AlignmentFlag(index.data(Qt.ItemDataRole.TextAlignmentRole))
        area = rect.adjusted(4, 0, -4, 0)
        self.draw_text(painter, area, str(index.data()), self.small_mono, color, align)


class ProvenancePanel(Panel):
    """Where the element comes from that the user asked for.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    """

    _awaited: tuple[str, ...] = ()  # operands whose values the maps wait for

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__("provenance", TITLES["provenance"], session, theme, parent)
        self.model = TermsModel(self)
        self.title = plain_label("provenanceTitle", "subtitle")
        self.formula = plain_label("provenanceFormula", "mono")
        self.numbers = plain_label("provenanceNumbers", "mono2")
        self.steps = plain_label("provenanceSteps", "mono2")
        self.check = plain_label("provenanceCheck", "mono")
        self.difference = plain_label("provenanceDifference", "secondary")
        self.end = plain_label("provenanceEnd", "secondary")
        self.maps = JoinedMaps(theme)
        self.products_title = plain_label("provenanceProductsTitle", "captionBold")
        self.products = ProductsPicture(theme)
        self.sums_title = plain_label("provenanceSumsTitle", "captionBold")
        self.sums = PartialSums(theme)
        self.table = self._make_table()
        self.rest = plain_label("provenanceRest", "caption")
        self.field_title = plain_label("provenanceFieldTitle", "captionBold")
        self.field = FieldPicture(theme)
        self.field_note = plain_label("provenanceFieldNote", "caption")
        self.weight_title = plain_label("provenanceWeightTitle", "captionBold")
        self.weight = WeightPicture(theme)
        self.weight_note = plain_label("provenanceWeightNote", "caption")
        self.noise_note = plain_label("provenanceNoiseNote", "secondary")
        self.ask_weight = QPushButton("Effective weight")
        self.ask_weight.setToolTip(
            "How much the element changes with each position of the input: the derivative, "
            "computed through all operators"
        )
        self.ask_check = QPushButton("Check with noise")
        self.ask_check.setToolTip(
            "Compute the element once more, with noise outside of the receptive field"
        )
        self._sources = QVBoxLayout()
        self._field_rows = QGridLayout()
        self.field_texts: dict[str, QLabel] = {}
        self._field_labels: list[tuple[QLabel, QLabel]] = []
        self._late, self._soon = (
            QTimer(self, singleShot=True, interval=each) for each in (_LATE_MS, _SOON_MS)
        )
        self._group: int | None = None
        self._shown: Breakdown | None = None
        self._filled: list[object] = ["", ""]  # with what both parts were filled last
        self._field_input = ""
        self._picture = InputPicture(session)
        self._build()
        self._connect()
        self._show()

    # Building

    def _make_table(self) -> Table:
        table = Table(self.theme, self)
        table.setObjectName("provenanceTerms")
        table.setAccessibleName("Terms, the largest first")
        table.setModel(self.model)
        table.setItemDelegate(_Delegate(self.theme, table))
        header = table.horizontalHeader()
        header.setSectionResizeMode(TermColumn.INPUT, QHeaderView.ResizeMode.Stretch)
        for column, width in _WIDTHS.items():
            table.setColumnWidth(column, width)
        return table

    def _build(self) -> None:
        for label in (
            self.title, self.formula, self.numbers, self.steps, self.check, self.difference,
            self.end, self.rest, self.field_note, self.weight_note, self.noise_note,
        ):  # fmt: skip
            label.setWordWrap(True)
        self._sources.setSpacing(0)
        self._field_rows.setHorizontalSpacing(12)
        self._field_rows.setVerticalSpacing(2)
        self._field_rows.setColumnStretch(1, 1)
        body = QWidget()
        body.setProperty("role", "panel")
        column = QVBoxLayout(body)
        column.setContentsMargins(12, 10, 12, 12)
        column.setSpacing(6)
        for part in (
            self.title, self.formula, self.numbers, self.steps, self.check, self.difference,
            self.end, self._sources, self.maps, self.products_title, self.products,
            self.sums_title,
            self.sums, self.table, self.rest, self.field_title, self.field, self._field_rows,
            self.field_note, self._make_buttons(), self.noise_note, self.weight_title,
            self.weight, self.weight_note,
        ):  # fmt: skip
            if isinstance(part, QWidget):
                column.addWidget(part)
            else:
                column.addLayout(part)
        column.addStretch(1)
        self.scroll_area = QScrollArea()
        self.scroll_area.setAccessibleName("Where the number comes from")
        self.scroll_area.setWidgetResizable(True)
        self.scroll_area.setFrameShape(QFrame.Shape.NoFrame)
        self.scroll_area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.scroll_area.setWidget(body)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self.scroll_area)

    def _make_buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (self.ask_weight, self.ask_check):
            row.addWidget(button)
        row.addStretch(1)
        return row

    def _connect(self) -> None:
        session = self.session
        self.ask_weight.clicked.connect(self._on_weight_asked)
        self.ask_check.clicked.connect(self._on_check_asked)
        session.explaining.changed.connect(self._show)
        self._late.timeout.connect(self._show_answers)
        self._soon.timeout.connect(self._show_first)
        session.tensors.recalled.connect(self._on_recalled)
        self.products.term_chosen.connect(self._on_term_chosen)
        self.sums.group_chosen.connect(self._on_group_chosen)
        self.table.clicked.connect(self._on_cell_chosen)
        self.table.activated.connect(self._on_cell_chosen)

    @override
    def keyboard_target(self) -> QWidget:
        return self.table if not self.table.isHidden() else self.scroll_area

    # Showing

    @Slot()
    def _show(self) -> None:
        """Show what has become known about the element.

        What belongs to the element before stays until the answer comes, or takes long.
        """
        explaining = self.session.explaining
        place = explaining.place
        self.set_suffix(format_element(place.operand, place.index) if place is not None else "")
        missing = [explaining.provenance, explaining.field].count(None)
        is_new = not self.title.text()  # there is nothing that could stay
        if place is None or explaining.reason or not missing or is_new:
            self._late.stop()
            self._soon.stop()
            self._show_answers()
        elif missing == 1:
            names = _map_operands(explaining.provenance)
            if names is not None:
                self._look_at(names)  # while the field is computed
            self._soon.start()
        else:
            self._soon.stop()
            self._late.start()

    @Slot()
    def _show_first(self) -> None:
        """Show the answer that has come, without the other one."""
        self._show_answers(is_late=False)

    @Slot()
    def _show_answers(self, *, is_late: bool = True) -> None:
        """Show the answers; without those that have not come only if they are late."""
        explaining = self.session.explaining
        place, provenance, field = explaining.place, explaining.provenance, explaining.field
        # The answers come one after the other: each part is filled once.
        if provenance is not self._filled[0] and (is_late or provenance is not None):
            self._group = None
            self._show_head(provenance)
            self._show_breakdown(provenance)
            self._show_sources(provenance)
            self._filled[0] = provenance
        if field is not self._filled[1] and (is_late or field is not None):
            self._show_field(field)
            self._filled[1] = field
        if is_late or field is not None:
            self._show_further()
        if place is None:
            self.title.setText("No element chosen")
            _set_text(self.end, _HINT)
        elif explaining.reason:
            self.title.setText(format_element(place.operand, place.index))
            _set_text(self.end, explaining.reason[:1].upper() + explaining.reason[1:] + ".")
        elif provenance is None and is_late:
            self.title.setText(format_element(place.operand, place.index))
            _set_text(self.end, "The engine is at work.")

    def _show_head(self, provenance: Provenance | None) -> None:
        breakdown = provenance.breakdown if provenance is not None else None
        if provenance is not None:
            operator = provenance.operator
            element = format_element(provenance.operand, provenance.index)
            self.title.setText(f"{operator.type} {operator.name} · {element}")
        _set_text(self.formula, breakdown.formula if breakdown is not None else "")
        _set_text(self.numbers, format_numbers(breakdown) if breakdown is not None else "")
        steps = breakdown.steps if breakdown is not None else ()
        _set_text(
            self.steps,
            "\n".join([f"{step.name}  {format_number(step.value)}" for step in steps]),
        )
        _set_text(self.check, describe_check(provenance) if provenance is not None else "")
        _set_text(
            self.difference, describe_difference(provenance) if provenance is not None else ""
        )
        _set_text(self.end, describe_end(provenance) if provenance is not None else "")

    def _show_breakdown(self, provenance: Provenance | None) -> None:
        breakdown = provenance.breakdown if provenance is not None else None
        self._shown = breakdown
        terms = breakdown.terms if breakdown is not None else None
        pictured = (
            breakdown is not None and breakdown.kind in _PICTURED and terms is not None
            and len(terms.products) > 1
        )  # fmt: skip
        by_group = (
            pictured and terms is not None and len(terms.shape) > 1 and terms.shape[0] > 1
            and breakdown is not None and breakdown.kind in _SUMMED
        )  # fmt: skip
        if breakdown is not None and terms is not None and pictured:
            word = "Products" if breakdown.kind in _SUMMED else "Elements"
            if breakdown.kind is Kind.SHARE:
                word = "Exponentials"
            count = format_count(len(terms.products), "term")
            by = f" by {terms.axes[0]}" if by_group else ""
            self.products_title.setText(f"{word}{by} · {count}")
        self.products.show_terms(terms if pictured else None)
        self.products.setVisible(pictured)
        self.products_title.setVisible(pictured)
        if by_group and terms is not None:
            self.sums_title.setText(f"Partial sums by {terms.axes[0]}")
            self.sums.show_sums(terms.partial_sums, terms.axes[0])
        self.sums.setVisible(by_group)
        self.sums_title.setVisible(by_group)
        self._show_terms()

    def _show_maps(self) -> None:
        """Show what the chosen channel gives, or the one that gives the most."""
        provenance = self.session.explaining.provenance
        names = _map_operands(provenance)
        maps = None
        self._awaited = ()
        if names is not None and provenance is not None and provenance.breakdown is not None:
            terms, group = provenance.breakdown.terms, self._group
            if not self._look_at(names):
                self._awaited = names
            else:
                if group is None:
                    group = int(np.abs(terms.partial_sums).argmax()) if terms.shape[:-2] else 0
                output, source = map(self.session.tensors.value, names)
                if isinstance(output, np.ndarray) and isinstance(source, np.ndarray):
                    maps = join_maps(terms, group, provenance.index, names, (output, source))
        self.maps.show_maps(maps)

    def _look_at(self, operands: tuple[str, str]) -> bool:
        """Ask for the values of operands; return whether all are here."""
        is_here = [self.session.tensors.look(name) for name in operands]
        return all(is_here)

    def _show_terms(self) -> None:
        """List the terms, or those of the chosen channel."""
        breakdown = self._shown
        listed = breakdown is not None and breakdown.kind in _LISTED
        self.model.show(breakdown if listed else None, self._group)
        rows = self.model.rowCount()
        self.table.setVisible(rows > 0)
        weighted = breakdown is not None and len(breakdown.terms.factors) > 1
        function = breakdown is not None and breakdown.kind in {Kind.FUNCTION, Kind.MOVE}
        self.table.setColumnHidden(TermColumn.WEIGHT, not weighted or function)
        self.table.setColumnHidden(TermColumn.PRODUCT, function)
        self.table.setFixedHeight((min(rows, _MOST_LINES) + 1) * ROW_HEIGHT + 4)
        self.table.scrollToTop()
        self._show_maps()
        self.products.mark_group(self._group)
        self.sums.mark_group(self._group)
        _set_text(self.rest, self._describe_rest() if rows else "")

    def _describe_rest(self) -> str:
        parts = []
        if self._group is not None and self._shown is not None:
            axis = self._shown.terms.axes[0]
            parts.append(f"Only {axis} {self._group}; a click on its bar lists all.")
        if self.model.left_out:
            count = format_count(self.model.left_out, "smaller term")
            parts.append(f"{count}, together {format_number(self.model.rest)}.")
        parts.append("A click goes upstream, Alt+Left back.")
        return " ".join(parts)

    def _show_sources(self, provenance: Provenance | None) -> None:
        """Offer the regions of the inputs, where no terms lead to them."""
        while (item := self._sources.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        if provenance is None or not self._needs_sources(provenance):
            return
        for source in provenance.sources:
            link = QPushButton(f"depends on {format_source(source)}")
            link.setProperty("role", "link")
            link.setToolTip("Go to the middle of this region")
            middle = tuple([(each.start + each.stop - 1) // 2 for each in source.box])
            link.clicked.connect(partial(self._go_to, source.operand, middle))
            self._sources.addWidget(link, 0, Qt.AlignmentFlag.AlignLeft)
            # The layout would show it only later, after the other answer may have replaced it.
            link.show()

    @staticmethod
    def _needs_sources(provenance: Provenance) -> bool:
        if provenance.kind in {Kind.UNKNOWN, Kind.NORMALISED} or provenance.breakdown is None:
            return True
        return not any(each.is_operand for each in provenance.breakdown.terms.factors)

    def _show_field(self, field: ReceptiveField | None) -> None:
        self.field_texts = {}
        source = field.inputs[0] if field is not None and field.inputs else None
        self._field_input = source.operand if source is not None else ""
        _set_text(self.field_title, self._name_field(source) if field is not None else "")
        _set_text(self.field_note, self._note_field(field) if field is not None else "")
        texts = describe_field(source) if source is not None else ()
        while len(self._field_labels) < len(texts):
            self._add_field_row()
        for row, (caption, value) in enumerate(self._field_labels):
            is_used = row < len(texts)
            if is_used:
                name, text = texts[row]
                caption.setText(name)
                value.setText(text)
                self.field_texts[name] = value
            caption.setVisible(is_used)
            value.setVisible(is_used)
        self._show_picture(source)

    def _add_field_row(self) -> None:
        caption = plain_label("provenanceFieldRow", "secondary")
        value = plain_label("provenanceFieldRow", "mono")
        value.setWordWrap(True)
        row = len(self._field_labels)
        self._field_rows.addWidget(caption, row, 0, Qt.AlignmentFlag.AlignTop)
        self._field_rows.addWidget(value, row, 1)
        self._field_labels.append((caption, value))

    def _show_further(self) -> None:
        """Show the effective weight and the check, or offer them."""
        explaining = self.session.explaining
        field = explaining.field
        offered = field is not None and bool(field.inputs)
        reasons = explaining.reasons
        for what, button, found in (
            ("weight", self.ask_weight, explaining.weight),
            ("check", self.ask_check, explaining.check),
        ):
            further: Further = "weight" if what == "weight" else "check"
            button.setVisible(offered)
            button.setEnabled(found is None and not explaining.is_asked(further))
        check = describe_noise(explaining.check) if explaining.check is not None else ""
        _set_text(self.noise_note, check or _not_possible("check", reasons))
        weights = self._weights()
        picture = None
        if weights is not None and field is not None:
            whole = self._picture_of(field.inputs[0])
            if whole is not None:
                rows, columns = self._spatial(field.inputs[0])
                picture = whole.copy(
                    columns.start, rows.start,
                    columns.stop - columns.start, rows.stop - rows.start,
                )  # fmt: skip
        title = "Effective weight |∂y/∂x|, for this input" if weights is not None else ""
        _set_text(self.weight_title, title)
        self.weight.show_weights(picture, weights)
        self.weight.setVisible(weights is not None)
        note = describe_weight(weights) if weights is not None else ""
        if explaining.is_asked("weight"):
            note = "Computing the effective weight…"
        _set_text(self.weight_note, note or _not_possible("weight", reasons))

    @staticmethod
    def _spatial(source: Source) -> tuple[Interval, Interval]:
        """Return the rows and columns of a field."""
        found = picture_source(source.operand, source.shape)
        axes = found.axes if found is not None else (-2, -1)
        return source.box[axes[0]], source.box[axes[1]]

    def _weights(self) -> npt.NDArray[np.float64] | None:
        """Return the weight of each position of the field, its channels added."""
        found, field = self.session.explaining.weight, self.session.explaining.field
        if found is None or field is None or not field.inputs:
            return None
        source = field.inputs[0]
        part = np.abs(found.gradient[source.slices])
        if part.ndim < 2:
            return part.reshape(1, -1)
        picture = picture_source(source.operand, source.shape)
        axes = picture.axes if picture is not None else (part.ndim - 2, part.ndim - 1)
        others = tuple([axis for axis in range(part.ndim) if axis not in axes])
        weights: npt.NDArray[np.float64] = part.sum(axis=others)
        return weights

    @Slot()
    def _on_weight_asked(self) -> None:
        self.session.explaining.ask("weight", self._field_input)

    @Slot()
    def _on_check_asked(self) -> None:
        self.session.explaining.ask("check")

    def _name_field(self, source: Source | None) -> str:
        if source is None:
            return "Receptive field"
        return f"Receptive field in input {source.operand}"

    @staticmethod
    def _note_field(field: ReceptiveField) -> str:
        others = len(field.inputs) - 1
        more = (
            f" {format_count(others, 'further input')} of the model counts."
            if others > 0
            else ""
        )
        return describe_guesses(field) + more

    def _show_picture(self, source: Source | None) -> None:
        image = self._picture_of(source) if source is not None else None
        region = self._spatial(source) if image is not None and source is not None else None
        self.field.show_field(image, region)
        self.field.setVisible(image is not None)

    def _picture_of(self, source: Source) -> QImage | None:
        """Return a picture of an input; None until it is fetched, and where it has none."""
        found = picture_source(source.operand, source.shape)
        if found is not None:
            return self._picture.image(found, source.box[0].start)
        if len(source.shape) < 3 or min(source.shape[-2:]) < 2:
            return None
        if not self.session.tensors.look(source.operand):
            return None
        value = self.session.tensors.value(source.operand)
        if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
            return None
        sample = value[source.box[0].start] if value.ndim > 3 else value
        return image_of_planes(sample.reshape(-1, *value.shape[-2:])[:1])

    # Slots

    @Slot(object)
    def _on_recalled(self, operand: str) -> None:
        # Pictures of the graph's boxes come likewise: what is shown is not painted again.
        if operand in self._awaited:
            self._show_maps()
        field = self.session.explaining.field
        if operand == self._field_input and field is not None and self.field.isHidden():
            self._show_picture(field.inputs[0])
            self._show_further()

    @Slot(QModelIndex)
    def _on_cell_chosen(self, index: QModelIndex) -> None:
        place = index.data(PLACE_ROLE)
        if place is None:
            place = index.siblingAtColumn(TermColumn.INPUT).data(PLACE_ROLE)
        if place is not None:
            self._go_to(place.operand, place.index)

    @Slot(int)
    def _on_term_chosen(self, term: int) -> None:
        breakdown = self._shown
        if breakdown is None:
            return
        for factor in breakdown.terms.factors:
            index = tuple(factor.indices[term].tolist())
            if factor.is_operand and all(place >= 0 for place in index):
                self._go_to(factor.name, index)
                return

    @Slot(int)
    def _on_group_chosen(self, group: int) -> None:
        self._group = None if group == self._group else group
        self._show_terms()

    def _go_to(self, operand: str, index: tuple[int, ...], *_: object) -> None:
        """Go upstream."""
        self.session.explain(operand, index)


def _map_operands(provenance: Provenance | None) -> tuple[str, str] | None:
    """Return the operands whose values the maps take; None where there are no maps."""
    breakdown = provenance.breakdown if provenance is not None else None
    if provenance is None or breakdown is None or breakdown.kind not in _MAPPED:
        return None
    factors = breakdown.terms.factors
    return (provenance.operand, factors[0].name) if factors and factors[0].is_operand else None


def _set_text(label: QLabel, text: str) -> None:
    """Set a text; a label without one takes no room."""
    label.setText(text)
    label.setVisible(bool(text))


def _not_possible(what: Further, reasons: Mapping[Further, str]) -> str:
    reason = reasons.get(what, "")
    return f"{reason[:1].upper()}{reason[1:]}." if reason else ""
