"""Shows one value: picture, colour bar, statistics, numbers and range.

`TensorPane` connects the model and the canvases. It needs a value but no session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPoint, Qt, Signal, Slot
from PySide6.QtWidgets import (
    QFrame,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from engine.meanings.names import AUTOMATIC, class_names
from kuiper_studio.menus import make_menu
from kuiper_studio.surfaces import Surface
from kuiper_studio.tensor_view.actions import TensorActions, TensorState
from kuiper_studio.tensor_view.axis_strip import AxisStrip
from kuiper_studio.tensor_view.body import Body
from kuiper_studio.tensor_view.channel_pages import PAGE_SIZE
from kuiper_studio.tensor_view.index_bar import IndexBar
from kuiper_studio.tensor_view.loupe import Loupe
from kuiper_studio.tensor_view.measuring import Answer, Measurer, What
from kuiper_studio.tensor_view.pane_axes import PaneAxes
from kuiper_studio.tensor_view.pane_colors import PaneColors
from kuiper_studio.tensor_view.pane_copying import PaneCopying
from kuiper_studio.tensor_view.pane_parts import PaneParts
from kuiper_studio.tensor_view.pane_pointing import PanePointing
from kuiper_studio.tensor_view.pane_statistics import PaneStatistics
from kuiper_studio.tensor_view.places import (
    MOST_COPIED,
)
from kuiper_studio.tensor_view.range_bar import RangeBar
from kuiper_studio.tensor_view.reading import Kind
from kuiper_studio.tensor_view.tool_strip import ToolStrip
from kuiper_studio.tensor_view.view_model import TensorViewModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QKeyEvent, QResizeEvent

    from engine.axes import Layout
    from engine.int8_scales import Scales
    from engine.statistics import TensorStatistics
    from engine.values import Value
    from kuiper_studio.tensor_view.element import Counterpart, Element
    from kuiper_studio.tensor_view.number_table import NumberTable
    from kuiper_studio.theme import Theme

__all__ = ["TensorPane"]

_DIFFERENCES: Final = "RdBu_r"  # colour map of differences
_SETTLING: Final = 120  # ms
_LINES: Final = 2  # pixels of the lines between parts
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
        self._data_set = AUTOMATIC
        self._has_other_tab = False
        self._is_output = False
        self.parts = self._make_parts()
        self.measures = PaneStatistics(self.parts, self)
        self.colors = PaneColors(self.parts, self.measures, self)
        self.pointing = PanePointing(self.parts, self.colors, self)
        self.arrangement = PaneAxes(self.parts, self)
        self.copying = PaneCopying(self.parts, self)
        self._connect()
        for name in ("grid", "histogram", "nan", "digits", "axes"):
            self.actions_table[f"tensor.{name}"].setChecked(True)
        self.addActions(self.actions_table.all())
        self.set_value("", None)

    # Building

    def _make_parts(self) -> PaneParts:
        actions = self.actions_table
        self.tools = ToolStrip(self.theme, actions)
        self.body = body = Body(self.theme)
        self.mosaic, self.plane, self.vector = body.mosaic, body.plane, body.vector
        self.message, self.top = body.message, body.top
        self.statistics = body.statistics
        self.loupe = Loupe(self.theme, body.canvases, self.model, self)
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
        return PaneParts(
            self.model,
            actions,
            Measurer(self),
            self.tools,
            self.axes,
            self.index_bar,
            body,
            self.range_bar,
        )

    def _connect(self) -> None:
        for canvas in self.parts.all_canvases:
            canvas.zoom_changed.connect(self._on_zoom_changed)
            canvas.menu_requested.connect(self._on_menu_requested)
        self.body.tables_made.connect(self._connect_tables)
        self.mosaic.menu_requested.connect(self._on_menu_requested)
        self.mosaic.moved.connect(self._go_to_channel)
        self.mosaic.channel_chosen.connect(self.show_channel)
        self.tools.errors.channel_chosen.connect(self.show_channel)
        self.tools.channel.chosen.connect(self.show_channel)
        self.arrangement.channel_chosen.connect(self.show_channel)
        self.tools.member.chosen.connect(self._on_member_chosen)
        self.parts.measurer.answered.connect(self._on_answered)
        self.measures.measured.connect(self.colors.refresh)
        self.measures.ordered.connect(self._show_order)
        self.measures.region_changed.connect(self._update_actions)
        self.measures.special_changed.connect(self.special_changed)
        self.measures.rested.connect(self.rested)
        self.colors.refreshed.connect(self._update_actions)
        self.colors.part_chosen.connect(self._on_part_chosen)
        self.colors.range_changed.connect(self.range_changed)
        self.pointing.hovered_changed.connect(self.hovered_changed)
        self.pointing.picked_changed.connect(self._update_actions)
        self.pointing.picked_changed.connect(self.picked_changed)
        self.pointing.place_chosen.connect(self._on_place_chosen)
        self.arrangement.reading_changed.connect(self._show_value)
        self.arrangement.sample_changed.connect(self._show_sample)
        self.arrangement.roles_changed.connect(self.roles_changed)
        self.actions_table.connect_all(self)

    @Slot()
    def _connect_tables(self) -> None:
        for table in self.body.tables.canvases:
            table.menu_requested.connect(self._on_menu_requested)

    # What is shown

    @property
    def table(self) -> NumberTable:
        """The table of numbers."""
        return self.body.table

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
        scales: Scales | None = None,
        layout_of_member: Callable[[int], Layout | None] | None = None,
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
        scales : Scales, optional
            Of an int8 weight.
        layout_of_member : callable, optional
            See `ShownValue.set_value`.
        """
        self._is_output = is_output
        self.measures.give(facts)
        self.model.set_value(
            name, value, expression, shared_range, counterpart, layout, scales, layout_of_member
        )
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
            self.measures.forget_distances()
            self._show_parts()
            self._show_top()
            self.body.balance()
            self._show_channel()

    def set_layout(self, layout: Layout | None) -> None:
        """Set what the dimensions of the shown value mean."""
        if self.model.set_layout(layout):
            self._show_value()
        else:
            self._show_top()
            self.arrangement.show()  # it names them
            self.shown_changed.emit()

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
        if (labels, data_set) != (self.model.labels, self._data_set):
            self.model.labels, self._data_set = labels, data_set
            self._show_top()
            self.pointing.show_pick()

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
        before = self.model.choice.fixed, self.model.channel
        if self.model.set_place(index):
            self._show_value()
        elif (self.model.choice.fixed, self.model.channel) == before:
            self.pointing.show_pick()
        else:
            self._show_sample()
        self.pointing.reveal_pick()

    @Slot(bool)
    def _on_place_chosen(self, is_other: bool) -> None:  # noqa: FBT001 - a slot
        if is_other:
            self._show_value()
        else:
            self._show_sample()

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
        with self.body.balanced_once():
            self._show_parts()
            self.colors.forget()
            self.measures.show_tensor()
            self._show_sample()

    def _show_parts(self) -> None:
        """Show the parts for the kind of value."""
        kind, actions = self.model.reading.kind, self.actions_table
        self.arrangement.show()
        table = actions["tensor.table"].isChecked()
        pictures, bars = kind is Kind.PLANES, kind is Kind.VECTOR
        many = pictures and self.model.reading.channels > 1
        counterpart = self.model.counterpart
        self.measures.show_difference()
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
        self.tools.setToolTip(model.reading.note)
        if model.reading.kind is Kind.VECTOR:
            self.vector.set_vector(model.planes[0, 0], model.tensor_range)
        elif model.reading.kind is not Kind.PLANES:
            self._show_message()
        self._show_top()
        self.measures.begin_sample()
        self._show_channel()
        self.measures.settle()
        self.body.balance()
        self._on_zoom_changed()
        self.shown_changed.emit()

    def _show_message(self) -> None:
        model = self.model
        if model.reading.kind is Kind.NUMBER and model.array is not None:
            number = model.array.reshape(())[()]  # NumPy's: a float32 in its own digits
            self.message.show_text(str(number), model.describe(), number=True)
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
        self.pointing.forget_hovered()
        model = self.model
        pictures = model.reading.kind is Kind.PLANES
        self.tools.show_channel(model.channel, model.reading.channels if pictures else 1)
        self.tools.show_reason(model.channel_reason)
        self.arrangement.show()
        if pictures:
            self._show_page()
            self.mosaic.set_chosen(model.channel)
            self.plane.set_plane(model.plane, model.color_plane())
        self._show_counterpart()
        self.measures.show_channel()
        self.measures.show_channel_distances()
        self._show_table()
        self.pointing.show_pick()
        self.measures.show_region()
        self.colors.refresh()

    def _show_counterpart(self) -> None:
        """Show the reference's channel and the difference, beside ours."""
        model, canvases = self.model, self.parts.canvases
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
            self.parts.measurer.ask(What.PAGE, planes)
        else:
            self.parts.measurer.forget(What.PAGE)

    def _show_table(self) -> None:
        if not self.body.shows_table:
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
        self.pointing.pick_in_tables()

    def _show_top(self) -> None:
        """Show the best classes of a vector with one entry per label, or of an output."""
        model = self.model
        vector = model.planes[0, 0] if model.reading.kind is Kind.VECTOR else np.empty(0)
        named = len(vector) == len(model.labels)
        shown = bool(len(vector)) and (named or (self._is_output and model.may_be_scores))
        if shown:
            from engine.meanings.scores import are_probabilities, best_scores

            labels = class_names(len(vector), model.labels, self._data_set)
            best = best_scores(vector, labels)
            kind = "probabilities" if are_probabilities(vector) else "scores"
            self.top.set_scores(best, f"Top {len(best)}, {kind}")
        self.top.setVisible(shown and model.counterpart is None)

    def _update_actions(self) -> None:
        model = self.model
        pictures = model.reading.kind is Kind.PLANES
        channels = model.reading.channels if pictures else 1
        channel = model.place if pictures else 0
        has_pick = model.picked() is not None
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
                has_errors=self.measures.has_errors,
                can_copy=0 < model.copied.size <= MOST_COPIED,
                has_region=model.choice.region is not None,
                has_stepped=any(axis.is_stepped for axis in model.axes()),
                has_own_axes=model.has_own_roles,
                is_complex=model.is_complex,
                has_other_tab=self._has_other_tab,
                has_pick=has_pick,
                has_value=has_pick or self.body.shows_table,
            )
        )

    @Slot()
    def _show_order(self) -> None:
        if self.model.reading.kind is Kind.PLANES:
            self._show_page()
            self.colors.refresh()

    @Slot(object)
    def _on_answered(self, answer: Answer) -> None:
        if answer.what is What.PAGE and answer.result is not None:
            self.model.set_page_facts(answer.result)
            self._show_order()

    @Slot(bool)
    def set_digits(self, shown: bool) -> None:  # noqa: FBT001 - a slot
        """Write numbers into the cells of pictures where they fit, or never."""
        for canvas in self.body.planes.canvases:
            canvas.set_digits_shown(shown)

    # Slots of the controls

    @Slot(int)
    def _on_member_chosen(self, member: int) -> None:
        self.model.set_member(member)
        self._show_value()

    @Slot()
    def _on_part_chosen(self) -> None:
        """Show another part of complex numbers."""
        self.measures.show_tensor()
        self._show_sample()

    @Slot()
    def refresh_parts(self) -> None:
        """Show the enabled parts."""
        self._show_parts()
        self._show_counterpart()
        self.colors.color_counterpart(self.colors.coloring())
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

    # Zooming

    @property
    def zoom_text(self) -> str:
        """The zoom, formatted; ``""`` without a picture."""
        if self.body.shown not in {self.plane, self.vector}:
            return ""
        return self.parts.zoomable.zoom_text

    @Slot()
    def _on_zoom_changed(self) -> None:
        self.tools.show_zoom(self.zoom_text)
        self.zoom_changed.emit(self.zoom_text)

    @Slot()
    def zoom_in(self) -> None:
        """Enlarge."""
        self.parts.zoomable.zoom_by(1)

    @Slot()
    def zoom_out(self) -> None:
        """Shrink."""
        self.parts.zoomable.zoom_by(-1)

    @Slot()
    def zoom_actual(self) -> None:
        """Show one pixel per element."""
        self.parts.zoomable.zoom_actual()

    @Slot()
    def fit(self) -> None:
        """Show the whole picture."""
        self.parts.zoomable.zoom_fit()

    @Slot(object)
    def _on_menu_requested(self, position: QPoint) -> None:
        menu = make_menu(self, once=True)
        self.actions_table.fill_menu(menu)
        menu.popup(position)

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        parts = (self.tools, self.body, self.range_bar)
        others = sum(part.minimumSizeHint().height() for part in parts) + _LINES
        room = self.height() - others
        self.arrangement.set_room(has_room=room >= self.axes.sizeHint().height())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle keys that the canvases ignore: they move through the channels."""
        move = _CHANNEL_KEYS.get(event.key())
        if move is not None and not event.modifiers():
            self._go_to_channel(move)
        elif event.key() == Qt.Key.Key_Escape and self.model.choice.region is not None:
            self.measures.clear_region()
        else:
            super().keyPressEvent(event)


def _line() -> QFrame:
    line = QFrame()
    line.setProperty("role", "line")
    line.setFixedHeight(1)
    return line
