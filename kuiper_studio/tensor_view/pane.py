"""Shows one value: picture, colour bar, statistics, numbers and range.

`TensorPane` connects the model and the canvases. It needs a value but no session.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPoint, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QMenu,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.errors import capitalized
from engine.meanings.names import AUTOMATIC, class_names
from engine.meanings.scores import are_probabilities, best_scores
from engine.statistics import sampling_step
from engine.text import format_count, format_shape
from kuiper_studio.commands import Surface
from kuiper_studio.picture_files import write_picture
from kuiper_studio.tensor_view.actions import TensorActions, TensorState
from kuiper_studio.tensor_view.axis_strip import AxisStrip
from kuiper_studio.tensor_view.body import Body
from kuiper_studio.tensor_view.channel_order import Order
from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.index_bar import IndexBar
from kuiper_studio.tensor_view.loupe import Loupe
from kuiper_studio.tensor_view.measuring import Answer, Measurer, What
from kuiper_studio.tensor_view.numbers import format_range
from kuiper_studio.tensor_view.picture import Extent, ask_to_save, picture_of
from kuiper_studio.tensor_view.places import (
    MOST_COPIED,
    Region,
    array_text,
    csv_text,
    find_label,
    parse_place,
)
from kuiper_studio.tensor_view.range_bar import RangeBar
from kuiper_studio.tensor_view.reading import Kind
from kuiper_studio.tensor_view.tool_strip import ToolStrip
from kuiper_studio.tensor_view.view_model import PAGE_SIZE, Element, Scope, TensorViewModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from PySide6.QtGui import QKeyEvent

    from engine.axes import Layout
    from engine.statistics import TensorStatistics
    from engine.values import Array, Value
    from kuiper_studio.engine_service.channel_totals import ChannelTotals
    from kuiper_studio.engine_service.channels import ChannelDistances
    from kuiper_studio.tensor_view.axis_roles import AxisRole, Roles
    from kuiper_studio.tensor_view.canvas import ElementCanvas
    from kuiper_studio.tensor_view.channel_order import ChannelKeys
    from kuiper_studio.tensor_view.complex_parts import Part
    from kuiper_studio.tensor_view.places import Place
    from kuiper_studio.tensor_view.plane_canvas import PlaneCanvas
    from kuiper_studio.tensor_view.side_by_side import CanvasesBySide
    from kuiper_studio.tensor_view.vector_plot import VectorPlot
    from kuiper_studio.tensor_view.view_model import Counterpart
    from kuiper_studio.theme import Theme

__all__ = ["TensorPane"]

_DIFFERENCES: Final = "RdBu_r"  # colour map of differences
_SETTLING: Final = 120  # ms
_END: Final = 1 << 40  # larger than any number of channels
_CHANNEL_KEYS: Final = {
    Qt.Key.Key_PageUp.value: -1,
    Qt.Key.Key_PageDown.value: 1,
    Qt.Key.Key_Home.value: -_END,
    Qt.Key.Key_End.value: _END,
}


class TensorPane(QWidget):
    """Shows a value; `TensorViewModel` decides which part.

    Parameters
    ----------
    theme : Theme

    Attributes
    ----------
    model : TensorViewModel
    actions_table : TensorActions

    Signals
    -------
    hovered_changed
        Text and colour of the element under the mouse, or the text of the channel there;
        ``""`` for none.
    picked_changed
        Text of the picked element, ``""`` for none.
    range_changed
        The current range, formatted.
    special_changed
        The number of NaN and infinite values, formatted; whether there are any.
    zoom_changed
        The zoom, formatted.
    shown_changed
        The shown value, member or sample has changed.
    beside_toggled
        Another tab is to stand beside the shown one, or no longer.
    rested
        It has not changed for a moment.
    roles_changed
        The user has chosen where an axis goes.
    """

    hovered_changed = Signal(str, str)
    picked_changed = Signal(str)
    range_changed = Signal(str)
    special_changed = Signal(str, bool)
    zoom_changed = Signal(str)
    shown_changed = Signal()
    beside_toggled = Signal(bool)
    rested = Signal()
    roles_changed = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.model = TensorViewModel()
        self.actions_table = TensorActions(theme, self)
        self._measurer = Measurer(self)
        self._measurer.answered.connect(self._on_answered)
        # Channels are measured when the view rests, not at every step of a held key.
        self._settling = QTimer(self, interval=_SETTLING, singleShot=True)
        self._settling.timeout.connect(self._measure_channels)
        self._settling.timeout.connect(self.rested)
        self._labels: tuple[str, ...] = ()
        self._data_set = AUTOMATIC
        self._has_other_tab = False
        self._facts: TensorStatistics | None = None
        self._distances: ChannelDistances | None = None
        self._is_output = False
        self._measured: tuple[object, ...] = ()
        self.hovered: Element | None = None
        self.hovered_cell: tuple[int, int] | None = None
        self._told_hovered = False
        self._window: tuple[float, float] | None = None
        self._make_parts()
        self._connect()
        for name in ("grid", "histogram", "nan", "digits", "axes"):
            self.actions_table[f"tensor.{name}"].setChecked(True)
        self.addActions(self.actions_table.all())
        self.set_value("", None)

    # Building

    def _make_parts(self) -> None:
        actions = self.actions_table
        self.tools = ToolStrip(self.theme, actions)
        self.body = body = Body(self.theme)
        self.mosaic, self.plane, self.vector = body.mosaic, body.plane, body.vector
        self.table, self.message, self.top = body.table, body.message, body.top
        self.statistics = body.statistics
        self.loupe = Loupe(self.theme, body.planes.canvases, self.model, self)
        self.index_bar = IndexBar(self.theme)
        self.axes = AxisStrip(self.theme)
        self.range_bar = RangeBar(self.theme, actions.on(Surface.RANGE_BAR))
        self._range_line = _line()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.tools)
        column.addWidget(_line())
        column.addWidget(self.axes)
        column.addWidget(self.index_bar)
        column.addWidget(body, 1)
        column.addWidget(self._range_line)
        column.addWidget(self.range_bar)

    @property
    def _all_canvases(self) -> tuple[ElementCanvas, ...]:
        return (*self.body.planes.canvases, *self.body.vectors.canvases)

    def _connect(self) -> None:
        for canvas in self._all_canvases:
            canvas.hovered.connect(self._on_hovered)
            canvas.picked.connect(self._on_picked)
            canvas.region_chosen.connect(self._on_region_chosen)
            canvas.zoom_changed.connect(self._on_zoom_changed)
            canvas.menu_requested.connect(self._on_menu_requested)
        for table in self.body.tables.canvases:
            table.menu_requested.connect(self._on_menu_requested)
            table.picked.connect(self._on_cell_picked)
            table.hovered.connect(self._on_cell_hovered)
        self.mosaic.menu_requested.connect(self._on_menu_requested)
        self.mosaic.channel_chosen.connect(self.show_channel)
        self.mosaic.moved.connect(self._go_to_channel)
        self.mosaic.channel_hovered.connect(self._on_channel_hovered)
        self.top.chosen.connect(self._on_score_chosen)
        self.index_bar.edited.connect(self._on_index_edited)
        self.index_bar.entered.connect(self._on_index_entered)
        self.index_bar.dismissed.connect(self._close_index_bar)
        self.range_bar.range_chosen.connect(self._on_range_chosen)
        self.tools.errors.channel_chosen.connect(self.show_channel)
        self.tools.errors.channel_hovered.connect(self._tell_hovered)
        self.tools.channel.chosen.connect(self.show_channel)
        self.tools.member.chosen.connect(self._on_member_chosen)
        self.axes.placed.connect(self._on_axis_placed)
        self.axes.role_chosen.connect(self._on_role_chosen)
        self.axes.swapped.connect(self._on_axes_swapped)
        self.axes.part_chosen.connect(self._on_part_chosen)
        self.axes.colors_chosen.connect(self._on_colors_chosen)
        self.axes.reset_chosen.connect(self.reset_axes)
        self.actions_table.map_chosen.connect(self._on_map_chosen)
        self.actions_table.scope_chosen.connect(self._on_scope_chosen)
        self.actions_table.order_chosen.connect(self._on_order_chosen)
        self.actions_table.part_chosen.connect(self._on_complex_part_chosen)
        self.actions_table.connect_all(self)

    # What is shown

    def set_value(
        self,
        name: str,
        value: Value,
        facts: TensorStatistics | None = None,
        *,
        is_output: bool = False,
        expression: str = "",
        shared_range: tuple[float, float] | None = None,
        counterpart: Counterpart | None = None,
        layout: Layout | None = None,
    ) -> None:
        """Show a value.

        Parameters
        ----------
        name : str
            Name of the operand; earlier choices for it are restored.
        value : Value
            Its arrays must not change while they are shown.
        facts : TensorStatistics, optional
            Statistics of the value, if they are known.
        is_output : bool
            Whether it is an output of the model: a vector may then be the scores of
            classes without labels.
        expression : str, optional
            Python expression of the value, if it is not an operand's.
        shared_range : tuple of float, optional
            Least and greatest value of all that is compared, for one range of colours.
        counterpart : Counterpart, optional
            What is shown beside it.
        layout : Layout, optional
            What the dimensions mean.
        """
        self._facts, self._is_output = facts, is_output
        self.model.set_value(name, value, expression, shared_range, counterpart, layout)
        self._show_value()

    def set_counterpart(self, counterpart: Counterpart | None) -> None:
        """Show something else beside the value, or nothing; silent when nothing changes."""
        before = self.model.counterpart
        known = before.array if before is not None else None
        coming = counterpart.array if counterpart is not None else None
        renamed = (
            before is not None and counterpart is not None and before.names != counterpart.names
        )
        if known is not coming or renamed or (before is None) is not (counterpart is None):
            self.model.set_counterpart(counterpart)
            self._distances = None
            self._show_parts()
            self._show_top()
            self.body.balance()
            self._show_channel()

    def show_distances(self, distances: ChannelDistances | None) -> None:
        """Show how far each channel is from the reference's; None until that is measured."""
        self._distances = distances
        counterpart, errors = self.model.counterpart, self.tools.errors
        errors.show_distances(distances, counterpart.limit if counterpart is not None else 0.0)
        self._show_channel_distances()

    def _show_channel_distances(self) -> None:
        """Show the strip where channels are compared, and the numbers of the shown one."""
        self.tools.show_errors(shown=self._has_errors)
        self.tools.errors.set_chosen(self.model.channel)
        known = self._distances if self._has_errors else None
        self.statistics.show_channel_difference(known, self.model.channel)

    @property
    def _has_errors(self) -> bool:
        model = self.model
        compared = (
            model.counterpart is not None
            and model.counterpart.measures is not None
            and not model.members
        )
        return compared and model.reading.kind is Kind.PLANES and model.reading.channels > 1

    def set_layout(self, layout: Layout | None) -> None:
        """Set what the dimensions of the shown value mean."""
        if self.model.set_layout(layout):
            self._show_value()
        else:
            self.shown_changed.emit()

    def set_wide_ranges(self, ranges: Mapping[Scope, tuple[float, float]]) -> None:
        """Set the ranges of all that was computed, by scope; silent when nothing changes."""
        if self.model.set_wide_ranges(ranges) and self.model.scope.is_wide:
            self.refresh_colors()

    def set_labels(self, labels: tuple[str, ...], data_set: str = AUTOMATIC) -> None:
        """Set class names, for vectors of the same length, and for outputs.

        Parameters
        ----------
        labels : tuple of str
            The user's; empty without.
        data_set : str, optional
            Whose names outputs have that the labels do not fit: a choice of
            `engine.meanings.names.NAMES`.
        """
        if (labels, data_set) != (self._labels, self._data_set):
            self._labels, self._data_set = labels, data_set
            self._show_top()

    def show_other_tab(self, *, exists: bool, shown: bool) -> None:
        """Say whether another tab can stand beside this one, and whether one is to."""
        self._has_other_tab = exists
        self.actions_table.show_checked("tensor.beside", checked=shown)
        self._update_actions()

    def forget(self) -> None:
        """Forget the choices for all operands."""
        self.model.forget_choices()

    @Slot(int)
    def show_channel(self, channel: int) -> None:
        """Show a channel."""
        if channel != self.model.channel:
            self.model.set_channel(channel)
            self._show_channel()

    def show_element(self, index: tuple[int, ...]) -> None:
        """Show the channel of an element of the array, and pick it."""
        self.model.set_place(index)
        self._show_sample()
        self._reveal_pick()

    def save_picture(self, path: Path) -> None:
        """Save the picture as it is shown, colour bar included.

        Raises
        ------
        ExportError
            If it cannot be written.
        """
        write_picture(picture_of(self.body, Extent.WHOLE), path)

    @property
    def picked(self) -> Element | None:
        """The picked element."""
        return self.model.picked()

    def _show_value(self) -> None:
        model = self.model
        self.actions_table.show_checked(
            "tensor.channelsLast", checked=model.choice.channels_last
        )
        self.actions_table.show_checked("tensor.folded", checked=model.choice.folded)
        self.tools.show_member(model.choice.member, model.members)
        self._show_parts()
        self._show_top()
        self._measured = ()
        self._show_tensor_facts()
        self._show_sample()

    def _show_parts(self) -> None:
        """Show the parts for the kind of value."""
        kind, actions = self.model.reading.kind, self.actions_table
        self._show_axes()
        table = actions["tensor.table"].isChecked()
        pictures, bars = kind is Kind.PLANES, kind is Kind.VECTOR
        many = pictures and self.model.reading.channels > 1
        counterpart = self.model.counterpart
        self.statistics.show_difference(
            counterpart.measures if counterpart is not None else None
        )
        shown: QWidget = self.message
        if pictures or bars:
            shown = self.table if table else self.plane if pictures else self.vector
        split = counterpart is not None
        mosaic = many and not split and actions["tensor.grid"].isChecked()
        self.body.show_part(shown, mosaic=mosaic, split=split)
        for widget in (self.range_bar, self._range_line):
            widget.setVisible(pictures or bars)
        self._update_actions()
        self.tools.maps.setEnabled(pictures or bars)
        self.tools.scopes.setEnabled(pictures or bars)
        self._show_table()

    def _show_sample(self) -> None:
        """Show another batch, depth or member."""
        model = self.model
        self._distances = None  # they are of another sample, until others come
        self.tools.setToolTip(model.reading.note)
        if model.reading.kind is Kind.VECTOR:
            self.vector.set_vector(model.planes[0, 0], model.tensor_range)
        elif model.reading.kind is not Kind.PLANES:
            self._show_message()
        self._show_special()
        self._show_channel()
        self._settling.start()
        if model.order is not Order.NUMBER:
            self._measure_channels()
        self.body.balance()
        self._on_zoom_changed()
        self.shown_changed.emit()

    def _show_message(self) -> None:
        model = self.model
        if model.reading.kind is Kind.NUMBER and model.array is not None:
            self.message.show_text(str(model.array.item()), model.describe(), number=True)
        elif model.reading.kind is Kind.EMPTY:
            self.message.show_text("No numbers", f"{model.describe()}: {model.reading.note}")
        elif model.value is None and not model.name:
            self.message.show_text("")
        else:
            text = repr(model.member_value)
            detail = f"A Python {type(model.member_value).__name__}, not a tensor"
            if model.member_value is None:
                detail = "This output is not a tensor"
            self.message.show_text(text, detail, number=len(text) < 24)

    def _show_channel(self) -> None:
        self._forget_hovered()
        model = self.model
        pictures = model.reading.kind is Kind.PLANES
        self.tools.show_channel(model.channel, model.reading.channels if pictures else 1)
        self.tools.show_reason(model.channel_reason)
        self._show_axes()
        if pictures:
            self._show_page()
            self.mosaic.set_chosen(model.channel)
            self.plane.set_plane(model.plane, model.color_plane())
        self._show_counterpart()
        self._show_channel_facts()
        self._show_channel_distances()
        self._show_table()
        self._show_pick()
        self._show_region()
        self.refresh_colors()

    def _show_counterpart(self) -> None:
        """Show the reference's channel and the difference, beside ours."""
        model, canvases = self.model, self._canvases
        if not canvases.is_split:
            return
        if model.other is not None:
            if model.reading.kind is Kind.VECTOR:
                largest = model.difference_range()
                body = self.body.vectors
                body.theirs.set_vector(model.other_plane()[0], model.tensor_range)
                body.difference.set_vector(
                    model.difference_plane()[0], (largest.low, largest.high)
                )
            else:
                self.body.planes.theirs.set_plane(model.other_plane())
                self.body.planes.difference.set_plane(model.difference_plane())
        canvases.show_others(shown=model.other is not None, names=model.counterpart_names)

    @property
    def _canvases(self) -> CanvasesBySide[PlaneCanvas] | CanvasesBySide[VectorPlot]:
        is_vector = self.model.reading.kind is Kind.VECTOR
        return self.body.vectors if is_vector else self.body.planes

    def _show_page(self) -> None:
        model = self.model
        planes, facts = model.page_planes(), model.page_facts()
        self.mosaic.set_page(
            planes,
            facts,
            model.page * PAGE_SIZE,
            model.reading.channels,
            model.page_channels(),
            model.order_text,
            model.page_color_planes(),
        )
        if model.page_is_estimated:
            self._measurer.ask(What.PAGE, planes)
        else:
            self._measurer.forget(What.PAGE)

    def _show_table(self) -> None:
        if self.body.shown is not self.table:
            return
        tables, counterpart = self.body.tables, self.model.counterpart
        self.table.set_plane(self.model.raw_plane)
        if tables.is_split and counterpart is not None:
            if self.model.other is not None:
                tables.theirs.set_plane(self.model.other_raw_plane())
                tables.difference.set_plane(self.model.raw_difference(), counterpart.limit)
            tables.show_others(
                shown=self.model.other is not None, names=self.model.counterpart_names
            )
            tables.arrange()
        self._pick_in_tables()

    def _pick_in_tables(self) -> None:
        pick = self.model.choice.pick
        for table in self.body.tables.canvases:
            table.set_pick(self._table_place(pick) if pick is not None else None)

    def _show_top(self) -> None:
        """Show the best classes of a vector with one entry per label, or of an output."""
        model = self.model
        vector = model.planes[0, 0] if model.reading.kind is Kind.VECTOR else np.empty(0)
        named = len(vector) == len(self._labels)
        shown = bool(len(vector)) and (named or self._is_output)
        if shown:
            labels = class_names(len(vector), self._labels, self._data_set)
            title = "Top 5, probabilities" if are_probabilities(vector) else "Top 5, scores"
            self.top.set_scores(best_scores(vector, labels), title)
        self.top.setVisible(shown and model.counterpart is None)

    # Range and colours

    @Slot()
    def refresh_colors(self) -> None:
        """Repaint with the chosen range and colours."""
        model, actions = self.model, self.actions_table
        coloring, self._window = self.coloring(), None
        if model.reading.kind is Kind.VECTOR:
            self.vector.set_coloring(coloring)
        elif model.reading.kind is Kind.PLANES:
            self.plane.set_coloring(coloring)
            self.mosaic.set_coloring(coloring, model.page_range())
        self._color_counterpart(coloring)
        self.range_bar.set_range((model.axis.low, model.axis.high), coloring)
        self.range_bar.set_problem(self._range_problem())
        automatic = model.choice.color_map is None
        self.tools.show_map(model.color_map, automatic=automatic)
        self.tools.show_scope(model.scope)
        actions.show_choice(model.choice.color_map or "", model.scope)
        actions.show_checked("tensor.symmetric", checked=model.symmetric)
        actions.show_part(model.choice.complex_part)
        actions.show_checked("tensor.log", checked=model.choice.is_log)
        self._update_actions()
        self._show_histogram()
        shown = model.has_picture and model.data_range is not None
        self.range_changed.emit(format_range(coloring.low, coloring.high) if shown else "")

    def _color_counterpart(self, coloring: Coloring) -> None:
        canvases = self._canvases
        if not canvases.is_split or self.model.other is None:
            return
        canvases.theirs.set_coloring(coloring)
        canvases.difference.set_coloring(self.error_coloring())
        canvases.arrange()

    def _update_actions(self) -> None:
        model = self.model
        pictures = model.reading.kind is Kind.PLANES
        channels = model.reading.channels if pictures else 1
        channel = model.place if pictures else 0
        self.actions_table.update(
            TensorState(
                shown=pictures or model.reading.kind is Kind.VECTOR,
                many=channels > 1,
                has_channels=model.has_channels,
                can_fold=model.can_fold,
                has_previous=channel > 0,
                has_next=channel < channels - 1,
                has_previous_page=channel >= PAGE_SIZE,
                has_next_page=channel // PAGE_SIZE < (channels - 1) // PAGE_SIZE,
                can_be_symmetric=model.has_picture and (model.signed or model.symmetric),
                is_split=model.counterpart is not None,
                has_errors=self._has_errors,
                can_copy=0 < model.copied.size <= MOST_COPIED,
                has_region=model.choice.region is not None,
                has_stepped=any(axis.is_stepped for axis in model.axes()),
                has_own_axes=model.has_own_roles,
                is_complex=model.is_complex,
                has_other_tab=self._has_other_tab,
            )
        )

    def coloring(self) -> Coloring:
        """The current mapping of values to colours."""
        used = self.model.range
        return Coloring(
            used.low,
            used.high,
            self.model.color_map,
            known=self.model.data_range is not None,
            mark_special=self.actions_table["tensor.nan"].isChecked(),
            mark_clipped=self.actions_table["tensor.clip"].isChecked(),
            is_log=self.model.choice.is_log,
        )

    def error_coloring(self) -> Coloring:
        """The mapping of differences from the reference to colours."""
        if self.model.other is None:
            return self.coloring()
        used = self.model.difference_range()
        return replace(
            self.coloring(), low=used.low, high=used.high, color_map=_DIFFERENCES, known=True
        )

    def _range_problem(self) -> str:
        if not self.model.has_picture or self.model.data_range is not None:
            return ""
        facts = self._facts
        if facts is not None and facts.nan == facts.count:
            return "All values are NaN"
        return "No value is finite"

    def _show_histogram(self) -> None:
        model = self.model
        if not model.has_picture or model.data_range is None:
            return
        axis, values = model.axis, model.scoped_values()
        channel = model.channel if model.scope is Scope.CHANNEL else -1
        wanted = (id(values), channel, axis, id(model.other))
        if wanted == self._measured:
            return
        self._measured = wanted
        counts = self._measurer.ask(What.HISTOGRAM, values, axis.low, axis.high)
        self.range_bar.set_histogram(counts, sampling_step(values.size))
        others = model.other_values()
        if others is None:
            self._measurer.forget(What.REFERENCE)
            self.range_bar.set_outline(None)
        else:
            outline = self._measurer.ask(What.REFERENCE, others, axis.low, axis.high)
            self.range_bar.set_outline(outline)

    # Statistics

    def _show_tensor_facts(self) -> None:
        model = self.model
        if model.array is None:
            self._measurer.forget(What.TENSOR)
            self.special_changed.emit("", False)  # noqa: FBT003
            return
        if self._facts is None or self._facts.shape != model.array.shape or model.members:
            self._facts = self._measurer.ask(What.TENSOR, model.array)
        self._tell_tensor_facts()

    def _tell_tensor_facts(self) -> None:
        array, facts = self.model.array, self._facts
        complex_ = array is not None and array.dtype.kind == "c"
        self.statistics.show_tensor("Tensor, magnitude" if complex_ else "Tensor", facts)
        if facts is None:
            self.special_changed.emit("", False)  # noqa: FBT003
            return
        infinite = facts.pinf + facts.ninf
        some = facts.nan + infinite > 0
        self.special_changed.emit(f"NaN {facts.nan} Inf {infinite}", some)

    def _show_channel_facts(self) -> None:
        model = self.model
        if model.reading.kind is not Kind.PLANES or model.reading.channels == 1:
            self._measurer.forget(What.CHANNEL)
            self.statistics.show_channel("", None)
            return
        facts = self._measurer.ask(What.CHANNEL, model.plane)
        self.statistics.show_channel(f"Channel {model.channel}", facts)

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        if answer.what is What.HISTOGRAM:
            step = sampling_step(self.model.scoped_values().size)
            self.range_bar.set_histogram(answer.result, step)
        elif answer.what is What.REFERENCE:
            self.range_bar.set_outline(answer.result)
        elif answer.what is What.PAGE:
            if answer.result is not None:
                self.model.set_page_facts(answer.result)
                self._show_page()
                self.refresh_colors()
        elif answer.what is What.KEYS:
            self._show_keys(answer.result)
        elif answer.what is What.LIKENESS:
            self._show_likeness(answer.result)
        elif answer.what is What.REGION:
            self._tell_region_facts(answer.result)
        elif answer.what is What.CHANNEL:
            self.statistics.show_channel(f"Channel {self.model.channel}", answer.result)
        else:
            self._facts = answer.result
            if self._facts is not None and np.isfinite(self._facts.min):
                self.model.set_measured_range(float(self._facts.min), float(self._facts.max))
            self._tell_tensor_facts()
            self.refresh_colors()

    # Picking

    def _show_pick(self) -> None:
        pick = self.model.choice.pick
        for canvas in self._all_canvases:
            canvas.set_pick(pick)
        self.top.set_pick(pick[1] if pick is not None else None)
        if self.body.shown is self.table:
            self._pick_in_tables()
        element = self.model.picked()
        self.picked_changed.emit(str(element) if element is not None else "")

    # The order of the channels, and what is special about them

    @Slot(object)
    def _on_order_chosen(self, order: Order) -> None:
        self.model.set_order(order)
        self._measure_channels()
        self._show_order()

    @Slot()
    def _measure_channels(self) -> None:
        """Measure what the channels are ordered by and marked for."""
        model = self.model
        if model.reading.kind is not Kind.PLANES or model.reading.channels == 1:
            self._measurer.forget(What.KEYS)
            self._measurer.forget(What.LIKENESS)
            return
        if model.keys is None:
            self._show_keys(self._measurer.ask(What.KEYS, model.planes))
        if model.order is Order.LIKENESS and not model.is_ordered:
            found = self._measurer.ask(What.LIKENESS, model.planes, channel=model.channel)
            self._show_likeness(found)

    def _show_keys(self, keys: ChannelKeys | None) -> None:
        if keys is not None:
            self.model.set_keys(keys)
            if self.model.is_ordered:
                self._show_order()
        self._show_special()

    def show_totals(self, totals: ChannelTotals | None) -> None:
        """Show what the channels held over all inputs; None while it is not known."""
        self.model.set_totals(totals)
        self._show_special()
        if self.model.over_all:
            self._show_order()

    @Slot(bool)
    def order_over_all(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Order channels by their numbers over all inputs that were run, or by those here."""
        self.model.set_over_all(checked)
        self._show_order()

    def _show_special(self) -> None:
        special = self.model.special
        self.mosaic.set_special(special)
        self.statistics.show_special_channels(special.summary() if special is not None else "")

    def _show_likeness(self, likeness: Array | None) -> None:
        if likeness is not None and self.model.order is Order.LIKENESS:
            self.model.set_likeness(likeness)
            self._show_order()

    def _show_order(self) -> None:
        if self.model.reading.kind is Kind.PLANES:
            self._show_page()
            self.refresh_colors()
        self.actions_table.show_order(self.model.order)

    # Rectangles

    @Slot(object)
    def _on_region_chosen(self, region: Region) -> None:
        self.model.set_region(region)
        self._show_region()

    @Slot()
    def clear_region(self) -> None:
        """Choose no rectangle."""
        self.model.set_region(None)
        self._show_region()

    def _show_region(self) -> None:
        """Frame the chosen rectangle, and show its statistics."""
        region = self.model.choice.region
        for canvas in self._all_canvases:
            canvas.set_region(region)
        if region is None:
            self._measurer.forget(What.REGION)
            self.statistics.show_region("", None)
        else:
            values = self.model.plane[region.slices]
            self._tell_region_facts(self._measurer.ask(What.REGION, values))
        self._update_actions()

    def _tell_region_facts(self, facts: TensorStatistics | None) -> None:
        region = self.model.choice.region
        if region is not None:
            rows, columns = region.plane
            self.statistics.show_region(f"Rectangle {rows}×{columns}", facts)

    # Going to an index

    @Slot()
    def ask_for_index(self) -> None:
        """Show the field for an index, with that of the picked element."""
        picked = self.picked
        self.index_bar.begin(", ".join(map(str, picked.index)) if picked is not None else "")

    @Slot(str)
    def _on_index_edited(self, text: str) -> None:
        array = self.model.array
        if array is None or not text.strip():
            shape = format_shape(array.shape) if array is not None else ""
            self.index_bar.show_answer(f"into {shape}" if shape else "")
            return
        try:
            places = self._parse_place(text, array.shape)
            first = self.model.check_places(places)
        except ValueError as exc:
            self.index_bar.show_answer(capitalized(str(exc)), is_error=True)
            return
        counts = [each.stop - each.start for each in places if isinstance(each, slice)]
        self.index_bar.show_answer(
            f"{format_count(math.prod(counts), 'element')}" if counts else f"= {array[first]}"
        )

    @Slot(str)
    def _on_index_entered(self, text: str) -> None:
        array = self.model.array
        if array is None:
            return
        try:
            self.model.set_places(self._parse_place(text, array.shape))
        except ValueError:
            return  # the bar says what is wrong
        self._close_index_bar()
        self._show_sample()
        self._reveal_pick()

    def _parse_place(self, text: str, shape: tuple[int, ...]) -> tuple[Place, ...]:
        """Read an index, or the label of a row."""
        return find_label(text, self._labels, shape) or parse_place(text, shape)

    @Slot()
    def _close_index_bar(self) -> None:
        self.index_bar.hide()
        self.body.shown.setFocus(Qt.FocusReason.OtherFocusReason)

    def _reveal_pick(self) -> None:
        pick = self.model.choice.pick
        if pick is not None and self.body.shown in {self.plane, self.vector}:
            self._zoomable().reveal(*pick)

    def _table_place(self, place: tuple[int, int]) -> tuple[int, int]:
        """Return the table's cell of an element, or back: a vector's entries go down."""
        return place if self.model.reading.kind is Kind.PLANES else (place[1], place[0])

    @Slot(object)
    def _on_cell_hovered(self, cell: tuple[int, int] | None) -> None:
        self._on_hovered(self._table_place(cell) if cell is not None else None)

    @Slot(int, int)
    def _on_picked(self, row: int, column: int) -> None:
        self.model.set_pick((row, column))
        self._show_pick()

    @Slot(int, int)
    def _on_cell_picked(self, row: int, column: int) -> None:
        self._on_picked(*self._table_place((row, column)))

    @Slot(int)
    def _on_score_chosen(self, entry: int) -> None:
        self._on_picked(0, entry)

    @Slot(object)
    def _on_hovered(self, place: tuple[int, int] | None) -> None:
        element = self.model.element(*place) if place is not None else None
        if element is None or place is None:
            self._forget_hovered()
            return
        self.hovered_cell = place
        value = float(self.model.plane[place])
        self._stretch_about(value)
        color = self.coloring().color_of(value)
        self.hovered = replace(element, color=color.name())
        self._told_hovered = True
        self.hovered_changed.emit(str(element), color.name() if color.alpha() else "")

    @Slot(object)
    def _on_channel_hovered(self, channel: int | None) -> None:
        text = self.mosaic.describe(channel) if channel is not None else ""
        self._tell_hovered(text)

    @Slot(str)
    def _tell_hovered(self, text: str) -> None:
        """Say what is known of the channel under the mouse; ``""`` for none."""
        if not text:
            self._forget_hovered()
            return
        self._told_hovered = True
        self.hovered_changed.emit(text, "")

    def _forget_hovered(self) -> None:
        """Say nothing more of what was under the mouse."""
        self.hovered = self.hovered_cell = None
        self._stretch_about(None)
        if self._told_hovered:
            self._told_hovered = False
            self.hovered_changed.emit("", "")

    @Slot(bool)
    def set_digits(self, shown: bool) -> None:  # noqa: FBT001 - a slot
        """Write numbers into the cells of pictures where they fit, or never."""
        for canvas in self.body.planes.canvases:
            canvas.set_digits_shown(shown)

    @Slot(bool)
    def set_hover_contrast(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Stretch the colours about the value under the mouse, or no longer."""
        if not checked:
            self._stretch_about(None)

    def _stretch_about(self, value: float | None) -> None:
        """Stretch the colours of the shown channel about a value; None for the whole range."""
        window = None
        if value is not None and self.actions_table["tensor.hoverContrast"].isChecked():
            window = self.model.window_about(value)
        if window == self._window:
            return
        self._window = window
        coloring = replace(self.coloring(), window=window)
        canvases = self._canvases
        canvases.ours.set_coloring(coloring)
        if canvases.is_split and self.model.other is not None:
            canvases.theirs.set_coloring(coloring)
        low, high = window or (coloring.low, coloring.high)
        self.range_changed.emit(format_range(low, high))

    # Slots of the controls

    @Slot(float, float)
    def _on_range_chosen(self, low: float, high: float) -> None:
        self.model.set_range(low, high)
        self.refresh_colors()

    @Slot(str)
    def _on_map_chosen(self, name: str) -> None:
        self.model.set_map(name or None)
        self.refresh_colors()

    @Slot(object)
    def _on_complex_part_chosen(self, part: Part) -> None:
        self.model.set_complex_part(part)
        self._measured = ()
        self._show_sample()

    @Slot(object)
    def _on_scope_chosen(self, scope: Scope) -> None:
        self.model.set_scope(scope)
        self.refresh_colors()

    @Slot(int)
    def _on_member_chosen(self, member: int) -> None:
        self.model.set_member(member)
        self._show_value()

    # Where the axes go

    def _show_axes(self) -> None:
        model = self.model
        is_shown = self.actions_table["tensor.axes"].isChecked()
        was_visible = self.axes.isVisible()
        self.axes.show_axes(
            model.axes() if is_shown else (),
            model.parts,
            model.choice.colors if model.is_colored else None,
            is_own=model.has_own_roles,
        )
        self.actions_table.show_checked("tensor.playAxis", checked=self.axes.is_playing)
        layout = self.layout()
        if self.axes.isVisible() is not was_visible and layout is not None:
            layout.activate()  # the parts below share their room at once

    @Slot(int, int)
    def _on_axis_placed(self, axis: int, place: int) -> None:
        reading = self.model.reading
        if axis == reading.channel_axis:
            self.show_channel(place)
            return
        position = [each.axis for each in reading.fixed].index(axis)
        self.model.set_fixed(position, place)
        self._show_sample()
        self._show_top()

    @Slot(int, object)
    def _on_role_chosen(self, axis: int, role: AxisRole) -> None:
        self.model.set_role(axis, role)
        self._show_roles()

    @Slot(int, int)
    def _on_axes_swapped(self, one: int, other: int) -> None:
        self.model.swap_axes(one, other)
        self._show_roles()

    @Slot()
    def reset_axes(self) -> None:
        """Show the axes as they are by default."""
        self.model.reset_roles()
        self._show_roles()

    def _show_roles(self) -> None:
        self._show_value()
        self.roles_changed.emit()

    def restore_roles(self, roles: Mapping[str, Roles]) -> None:
        """Restore where the user wants axes, by their meaning."""
        if self.model.restore_roles(roles):
            self._show_value()

    @Slot(int)
    def _on_part_chosen(self, part: int) -> None:
        self.model.set_part(part)
        self._show_value()

    @Slot(object)
    def _on_colors_chosen(self, colors: tuple[int, int, int]) -> None:
        self.model.set_colors(colors)
        self._show_sample()

    @Slot()
    def show_next_index(self) -> None:
        """Step on along the axis of the slider."""
        self.axes.step(1)

    @Slot()
    def show_previous_index(self) -> None:
        """Step back along the axis of the slider."""
        self.axes.step(-1)

    @Slot(bool)
    def play_axis(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Step through the axis of the slider, again and again."""
        self.axes.play(on=checked)

    @Slot(bool)
    def set_channels_last(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Switch between channels last and channels first."""
        self.model.set_channels_last(checked)
        self._show_value()

    @Slot(bool)
    def set_folded(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Fold positions to pictures, or show the array as it is."""
        self.model.set_folded(checked)
        self._show_value()

    @Slot()
    def refresh_parts(self) -> None:
        """Show the enabled parts."""
        self._show_parts()
        self._show_counterpart()
        self._color_counterpart(self.coloring())
        self.body.balance()
        self._on_zoom_changed()

    @Slot(bool)
    def sort_errors(self, checked: bool) -> None:  # noqa: FBT001 - a slot
        """Order the strip of differences by the difference, or by channel."""
        self.tools.errors.set_sorted(is_sorted=checked)

    @Slot()
    def show_previous_channel(self) -> None:
        """Show the channel before."""
        self._go_to_channel(-1)

    @Slot()
    def show_next_channel(self) -> None:
        """Show the channel after."""
        self._go_to_channel(1)

    @Slot()
    def show_previous_page(self) -> None:
        """Show the page of channels before."""
        self._go_to_channel(-PAGE_SIZE)

    @Slot()
    def show_next_page(self) -> None:
        """Show the page of channels after."""
        self._go_to_channel(PAGE_SIZE)

    @Slot()
    def show_first_channel(self) -> None:
        """Show the first channel."""
        self._go_to_channel(-_END)

    @Slot()
    def show_last_channel(self) -> None:
        """Show the last channel."""
        self._go_to_channel(_END)

    @Slot(int)
    def _go_to_channel(self, move: int) -> None:
        """Move by some channels in their order, but not beyond the ends."""
        if self.model.reading.kind is Kind.PLANES:
            self.show_channel(self.model.channel_in_place(self.model.place + move))

    @Slot()
    def zoom_range(self) -> None:
        """Stretch the range over the whole bar."""
        self.model.zoom_axis()
        self.refresh_colors()

    @Slot()
    def autofit(self) -> None:
        """Fit the range to the values, now and after each step."""
        self.model.autofit()
        self.refresh_colors()

    @Slot()
    def reset_range(self) -> None:
        """Use the range 0 to 1, or -1 to 1 where values change sign."""
        self.model.reset_range()
        self.refresh_colors()

    @Slot()
    def cut_percentiles(self) -> None:
        """Exclude the lowest and highest percent of the values from the range."""
        self.model.cut_percentiles()
        self.refresh_colors()

    @Slot(bool)
    def set_symmetric(self, symmetric: bool) -> None:  # noqa: FBT001 - Qt's signal
        """Switch the symmetric range about 0 on or off."""
        self.model.set_symmetric(symmetric)
        self.refresh_colors()

    @Slot(bool)
    def set_log(self, is_log: bool) -> None:  # noqa: FBT001 - Qt's signal
        """Give the colours a logarithmic scale, or a linear one."""
        self.model.set_log(is_log)
        self.refresh_colors()

    # Zooming

    def _zoomable(self) -> PlaneCanvas | VectorPlot:
        return self.vector if self.model.reading.kind is Kind.VECTOR else self.plane

    @property
    def zoom_text(self) -> str:
        """The zoom, formatted; ``""`` without a picture."""
        if self.body.shown not in {self.plane, self.vector}:
            return ""
        return self._zoomable().zoom_text

    @Slot()
    def _on_zoom_changed(self) -> None:
        self.tools.show_zoom(self.zoom_text)
        self.zoom_changed.emit(self.zoom_text)

    @Slot()
    def zoom_in(self) -> None:
        """Enlarge."""
        self._zoomable().zoom_by(1)

    @Slot()
    def zoom_out(self) -> None:
        """Shrink."""
        self._zoomable().zoom_by(-1)

    @Slot()
    def zoom_actual(self) -> None:
        """Show one pixel per element."""
        self._zoomable().zoom_actual()

    @Slot()
    def fit(self) -> None:
        """Show the whole picture."""
        self._zoomable().zoom_fit()

    # Copying and saving

    @Slot()
    def copy_value(self) -> None:
        """Copy the picked value, or the table's cells."""
        if self.body.shown is self.table:
            tables = self.body.tables.canvases
            next((each for each in tables if each.hasFocus()), self.table).copy()
        elif self.picked is not None:
            QGuiApplication.clipboard().setText(self.picked.text)

    @Slot()
    def copy_index(self) -> None:
        """Copy the index of the picked element."""
        if self.picked is not None:
            QGuiApplication.clipboard().setText(str(list(self.picked.index)))

    @Slot()
    def copy_expression(self) -> None:
        """Copy the Python expression of the picked element."""
        if self.picked is not None:
            QGuiApplication.clipboard().setText(self.model.expression(self.picked.index))

    @Slot()
    def copy_array(self) -> None:
        """Copy the rectangle, or the channel, as NumPy writes it."""
        QGuiApplication.clipboard().setText(array_text(self.model.copied))

    @Slot()
    def copy_csv(self) -> None:
        """Copy the rectangle, or the channel, as lines of numbers."""
        QGuiApplication.clipboard().setText(csv_text(self.model.copied))

    @Slot()
    def copy_picture(self) -> None:
        """Copy the channel's picture with its colour bar."""
        QGuiApplication.clipboard().setImage(picture_of(self.body, Extent.WITH_BAR))

    @Slot()
    def ask_to_save(self) -> None:
        """Ask where to save the shown picture."""
        ask_to_save(self, self.body)

    @Slot(object)
    def _on_menu_requested(self, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.actions_table.fill_menu(menu)
        menu.popup(position)

    # Overrides of Qt methods

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle keys that the canvases ignore: they move through the channels."""
        move = _CHANNEL_KEYS.get(event.key())
        if move is not None and not event.modifiers():
            self._go_to_channel(move)
        elif event.key() == Qt.Key.Key_Escape and self.model.choice.region is not None:
            self.clear_region()
        else:
            super().keyPressEvent(event)


def _line() -> QFrame:
    line = QFrame()
    line.setProperty("role", "line")
    line.setFixedHeight(1)
    return line
