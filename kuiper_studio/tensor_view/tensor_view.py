"""The tensor view of the window, with tabs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
from PySide6.QtCore import QPoint, QSignalBlocker, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QStackedWidget, QVBoxLayout, QWidget
from typing_extensions import override

from engine.errors import ExportError, ModelFileError, capitalized
from engine.int8_scales import find_scales
from engine.meanings.names import NAMES
from engine.states import OperatorStatus
from kuiper_studio.commands import COMMANDS
from kuiper_studio.icons import icon
from kuiper_studio.item_models.text import caption_text
from kuiper_studio.keymap import native_key
from kuiper_studio.menus import add_menu, make_menu
from kuiper_studio.picture_files import write_picture
from kuiper_studio.session import RunState
from kuiper_studio.tensor_view.axis_roles import roles_from_names
from kuiper_studio.tensor_view.chart_import import import_chart_in_turns
from kuiper_studio.tensor_view.data_set import data_set_values
from kuiper_studio.tensor_view.measuring import AT_ONCE
from kuiper_studio.tensor_view.message import Message
from kuiper_studio.tensor_view.operand_gallery import OperandCard, OperandGallery
from kuiper_studio.tensor_view.pair_note import PairNote
from kuiper_studio.tensor_view.pairing import Pair, pair_up
from kuiper_studio.tensor_view.pane import TensorPane
from kuiper_studio.tensor_view.plane_export import shown_plane
from kuiper_studio.tensor_view.sides import Side, Sides
from kuiper_studio.tensor_view.tab_strip import TabLabel, TabStrip
from kuiper_studio.tensor_view.wide_ranges import wide_ranges
from kuiper_studio.turns import take_turn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from PySide6.QtGui import QFocusEvent

    from engine.axes import Layout
    from engine.int8_scales import Scales
    from engine.runtime import RuntimeOperator
    from engine.statistics import TensorStatistics
    from engine.values import Array, Value
    from kuiper_studio.keymap import Keymap
    from kuiper_studio.session import StudioSession
    from kuiper_studio.shown_plane import ShownPlane
    from kuiper_studio.tensor_view.choice import Scope
    from kuiper_studio.tensor_view.element import Counterpart, Element
    from kuiper_studio.theme import Theme

__all__ = ["TensorView"]

_WARM_MS: Final = 300  # after opening a model, which is painted first
_LATE_MS: Final = 150  # a message appears if fetching a value takes longer
_OWN: Final = frozenset({Side.ALL, Side.OURS})  # sides that show the value of the tab
_FOLLOWING: Final = 0  # index of the tab that follows the session


@dataclass(frozen=True, slots=True)
class _Weight:
    """A weight that has a tab.

    Attributes
    ----------
    operator, name : str
    array : ndarray
    """

    operator: str
    name: str
    array: Array = field(repr=False, compare=False)

    @property
    def key(self) -> str:
        """What its tab is found by; no operand of a file has a space in its name."""
        return f"{self.operator} @{self.name}"

    @property
    def expression(self) -> str:
        """What gives it in Python."""
        return f"graph.operator({self.operator!r}).attributes[{self.name!r}]"


class TensorView(QWidget):
    """Shows the session's operand, locked ones and weights, as pictures and numbers.

    Parameters
    ----------
    session : StudioSession
    theme : Theme

    Signals
    -------
    hovered_changed : str, str
        Index and exact value of the element under the mouse, and its colour; ``""`` for
        none. `hovered` has it as an `Element`.
    picked_changed : str
        Index and exact value of the picked element, ``""`` for none. `picked` has it as an
        `Element`.
    range_changed : str
        The current range, formatted.
    special_changed : str, bool
        The number of NaN and infinite values, formatted; whether there are any.
    zoom_changed : str
        The zoom, formatted.
    """

    hovered_changed = Signal(str, str)
    picked_changed = Signal(str)
    range_changed = Signal(str)
    special_changed = Signal(str, bool)
    zoom_changed = Signal(str)

    def __init__(
        self, session: StudioSession, theme: Theme, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("tensor")
        self.setAccessibleName("Tensor")
        self._session, self._theme = session, theme
        self._locked: list[str] = []
        self._outputs: dict[str, tuple[str, int]] = {}  # of the locked tabs: producer, place
        self._model_path: Path | None = None
        self._weights: dict[str, _Weight] = {}  # of the locked tabs, by key
        self._partner: str | None = None  # the tab to show beside, "" for the following one
        self._starts: dict[str, int] = {}  # of slices of tabs, by name
        self._shown: tuple[str, Value] | None = None
        self._operand_shown = ""
        self._keys: Mapping[str, str] = {c.id: native_key(c.keys) for c in COMMANDS}
        self._to_pick: tuple[str, tuple[int, ...]] | None = None
        self.sides = Sides(session, self)
        self._lock = QAction("&Lock in a tab", self)
        self._lock.setObjectName("tensor.lock")
        self._lock.setIcon(icon("plus", theme))
        self._lock.setToolTip("Keep this tensor in its own tab")
        self.pane = TensorPane(theme)
        self.message, self.gallery = Message(), OperandGallery(theme)
        channels_last = self.pane.actions_table["tensor.channelsLast"]
        self.strip = TabStrip(theme, self._lock, channels_last)
        self._late, self._warm = (
            QTimer(self, singleShot=True, interval=delay) for delay in (_LATE_MS, _WARM_MS)
        )
        self._stack = QStackedWidget()
        for widget in (self.pane, self.message, self.gallery):
            self._stack.addWidget(widget)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        self.note = PairNote()
        self.note.start_chosen.connect(self._on_start_chosen)
        column.addWidget(self.strip)
        column.addWidget(self.note)
        column.addWidget(self._stack, 1)
        self.setMinimumHeight(200)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # which it passes on
        self.addActions([self._lock, *self.pane.actions_table.all()])
        self._connect()
        self._on_graph_changed()

    def _connect(self) -> None:
        session, pane = self._session, self.pane
        for source, signal in (
            (pane.hovered_changed, self.hovered_changed),
            (pane.picked_changed, self.picked_changed),
            (pane.range_changed, self.range_changed),
            (pane.special_changed, self.special_changed),
            (pane.zoom_changed, self.zoom_changed),
        ):
            source.connect(signal)
        self._late.timeout.connect(self._on_late)
        self._warm.timeout.connect(self._import_chart)
        pane.shown_changed.connect(self._on_shown_changed)
        pane.beside_toggled.connect(self._on_beside_toggled)
        self._lock.triggered.connect(self.lock)
        self.strip.tabs.currentChanged.connect(self._refresh)
        self.strip.close_requested.connect(self.close_tab)
        self.strip.menu_requested.connect(self._on_menu_requested)
        self.gallery.operand_chosen.connect(session.show_operand)
        self.gallery.producer_chosen.connect(session.select)
        session.graph_changed.connect(self._on_graph_changed)
        session.workspace.labels_changed.connect(self._on_labels_changed)
        session.meanings.chosen_changed.connect(self._on_labels_changed)
        session.tensors.recalled.connect(self._on_recalled)
        session.settled.connect(self._refresh)
        session.layouts.changed.connect(self._on_layouts_changed)
        session.layouts.roles_restored.connect(self._restore_roles)
        pane.roles_changed.connect(self._on_roles_changed)
        self.sides.changed.connect(self._refresh)
        session.measuring.changed.connect(self._show_wide_ranges)
        self.pane.actions_table.scope_chosen.connect(self._on_scope_chosen)
        session.comparing.distances.arrived.connect(self._on_distances_arrived)
        session.channel_totals.arrived.connect(self._on_totals_arrived)
        session.sweeping.changed.connect(self._on_data_set_changed)
        self.pane.rested.connect(self._show_totals)
        self.strip.sides.chosen.connect(self.sides.choose)

    def keyboard_target(self) -> QWidget:
        """What takes the keyboard when the user goes to the tensor."""
        return self.pane.body.shown if self._stack.currentWidget() is self.pane else self

    # What is shown

    @property
    def hovered(self) -> Element | None:
        """The element under the mouse."""
        return self.pane.pointing.hovered

    @property
    def picked(self) -> Element | None:
        """The picked element."""
        return self.pane.picked if self._stack.currentWidget() is self.pane else None

    @property
    def operand(self) -> str:
        """Name of the operand of the current tab; ``""`` for none."""
        index = self.strip.tabs.currentIndex()
        return self._session.operand if index == _FOLLOWING else self._locked[index - 1]

    @property
    def locked(self) -> tuple[str, ...]:
        """Names of the operands, and keys of the weights, in locked tabs."""
        return tuple(self._locked)

    @Slot()
    def lock(self) -> None:
        """Keep the current operand in its own tab."""
        if self.operand:
            self._go_to_tab(self.operand)

    @Slot(str, str, object)
    def show_weight(self, operator: str, name: str, array: Array) -> None:
        """Show a weight in its own tab."""
        weight = _Weight(operator, name, array)
        self._weights[weight.key] = weight
        self._go_to_tab(weight.key)

    def _go_to_tab(self, name: str) -> None:
        """Go to the tab of an operand or a weight, which is added if there is none."""
        if name not in self._locked:
            self._locked.append(name)
            if name not in self._weights:
                self._outputs[name] = self._output_of(name)
            self.strip.add_locked(self._label(name, locked=True))
        self.strip.tabs.setCurrentIndex(self._locked.index(name) + 1)

    def _output_of(self, name: str) -> tuple[str, int]:
        """Return which output of which operator an operand is."""
        graph = self._session.graph
        producer = graph.operand(name).producer if graph is not None else None
        if producer is None:
            return "", 0
        return producer.name, [each.name for each in producer.outputs].index(name)

    @Slot(int)
    def close_tab(self, index: int) -> None:
        """Close a tab, unless it is the one that follows the session."""
        if index != _FOLLOWING:
            self._drop_tab(index)
            self._refresh()

    def _drop_tab(self, index: int) -> None:
        closed = self._locked.pop(index - 1)
        self._weights.pop(closed, None)
        self._outputs.pop(closed, None)
        if self._partner == closed:
            self._partner = None
        self.strip.tabs.removeTab(index)

    def flicker(self) -> None:
        """Change between our tensor and the reference's."""
        self.sides.flicker()

    def show_worst(self) -> None:
        """Pick the element that differs most from the reference's."""
        worst = self._worst_of(self._operand_shown)
        if worst:
            self.pane.show_element(worst)

    @property
    def has_theirs(self) -> bool:
        """Whether the reference's tensor can be shown instead of the current tab's."""
        return self.sides.has(self.operand)

    @property
    def has_worst(self) -> bool:
        """Whether an element of the current tab's operand differs most from the reference's."""
        return bool(self._worst_of(self.operand))

    def _worst_of(self, operand: str) -> tuple[int, ...]:
        """Return the place of that element; ``()`` without one, as for other sizes."""
        row = self._session.comparing.rows.get(operand)
        return () if row is None or row.measures is None else row.measures.worst_index or ()

    def offer(self, action: QAction) -> None:
        """Add a command of the window to the menu of a tensor."""
        self.pane.actions_table.offer(action)

    @property
    def chosen_element(self) -> tuple[str, tuple[int, ...]] | None:
        """Operand and index of the picked element, or of the one under the mouse."""
        element = self.picked or self.hovered
        shown = self._shown is not None and self._shown[0] == self._operand_shown
        return (self._operand_shown, element.index) if element is not None and shown else None

    @property
    def hovered_cell(self) -> tuple[int, int] | None:
        """Row and column under the mouse, in the picture of the shown channel."""
        return self.pane.pointing.hovered_cell

    def shown_plane(self, is_error: bool = False) -> ShownPlane | None:  # noqa: FBT001, FBT002
        """Return the channel of an operand that is shown, or its difference from the reference.

        Parameters
        ----------
        is_error : bool, optional

        Returns
        -------
        ShownPlane or None
            None if there is none.
        """
        operand = self._ranged_operand
        if self._stack.currentWidget() is not self.pane or not operand:
            return None
        coloring = (
            self.pane.colors.error_coloring() if is_error else self.pane.colors.coloring()
        )
        found = shown_plane(self.pane.model, coloring, is_error=is_error)
        return replace(found, operand=operand) if found is not None else None

    def pick_element(self, operand: str, index: tuple[int, ...]) -> None:
        """Pick an element, as soon as its operand is shown."""
        self._to_pick = operand, index
        if self.operand != operand:
            self.strip.tabs.setCurrentIndex(_FOLLOWING)
        self._refresh()

    def save_picture(self, path: Path) -> None:
        """Save the picture as it is shown, colour bar included.

        Raises
        ------
        ExportError
            If none is shown, or it cannot be written.
        """
        shown = self._stack.currentWidget()
        if shown is self.gallery:
            write_picture(self.gallery.grab().toImage(), path)
        elif shown is self.pane:
            self.pane.copying.save_picture(path)
        else:
            raise ExportError("no tensor is shown")

    def fill_menu(self, menu: QMenu) -> None:
        """Add all actions to a menu, grouped."""
        menu.addAction(self._lock)
        menu.addSeparator()
        self.pane.actions_table.fill_menu(menu)
        menu.addSeparator()
        beside = add_menu(menu, "Tab to show beside")
        beside.aboutToShow.connect(lambda: self._fill_beside(beside))
        beside.triggered.connect(self._on_tab_chosen)
        beside.setEnabled(bool(self._others(self.operand)))
        layouts = add_menu(menu, "&What the dimensions mean")
        layouts.aboutToShow.connect(lambda: self._fill_layouts(layouts))
        name = self._shown[0] if self._shown is not None else ""
        has_layout = self.pane.model.array is not None and name not in self._weights
        layouts.setEnabled(bool(name) and has_layout)

    def _fill_layouts(self, menu: QMenu) -> None:
        array = self.pane.model.array
        if self._shown is None or array is None:
            return
        # Imports the rules of all operators, which the start of the window does without.
        from kuiper_studio.tensor_view.layout_menu import fill_layout_menu

        layouts = self._session.layouts
        name = layouts.source(self._shown[0], self.pane.model.choice.member)
        fill_layout_menu(
            menu,
            array.shape,
            layouts.find(name),
            partial(layouts.choose, name),
            is_chosen=name in layouts.chosen,
        )

    # Showing

    @Slot()
    def _refresh(self) -> None:
        """Update the contents of the current tab."""
        session, name = self._session, self.operand
        following = self.strip.tabs.currentIndex() == _FOLLOWING
        self._label_tabs()
        self._pair_up(name)
        self._lock.setEnabled(bool(name) and following)
        self.strip.sides.setVisible(self.sides.has(name))
        self.strip.sides.name_for(tabs=self.sides.pair(name) is not None)
        self.strip.sides.show_side(self.sides.side(name))
        failed = self._failed_operator() if following else None
        weight = self._weights.get(name)
        if weight is not None:
            self._late.stop()
            self._show_value(name, self.sides.value(name, weight.array))
        elif failed is not None:
            self._show_gallery(failed)
        elif name and session.tensors.look(name):
            self._late.stop()
            self._show_side(name)
        elif name and session.tensors.is_coming(name):
            self._late.start()  # keep the contents: the value takes a moment
        else:
            self._late.stop()
            self._show_message(*self._absence(name))

    def _show_side(self, name: str) -> None:
        """Show an operand, or what it was compared with."""
        value = self.sides.value(name, self._session.tensors.value(name))
        if value is not None:
            self._show_value(name, value)

    def _show_value(self, name: str, value: Value) -> None:
        self._stack.setCurrentWidget(self.pane)
        counterpart = self.sides.counterpart(name)
        if self._shown is None or self._shown[0] != name or self._shown[1] is not value:
            self._shown = name, value
            weight = self._weights.get(name)
            if weight is not None:
                self._show_weight(weight, value, counterpart)
            else:
                self._show_operand(name, value, counterpart)
        else:
            self.pane.set_counterpart(counterpart)
        if self._to_pick is not None and self._to_pick[0] == name:
            self.pane.show_element(self._to_pick[1])
            self._to_pick = None
        self._on_shown_changed()
        self.zoom_changed.emit(self.pane.zoom_text)

    def _layout_of(self, operand: str, member: int) -> Layout | None:
        """Return what the dimensions of an operand, or of a member of a tuple, mean."""
        layouts = self._session.layouts
        return layouts.find(layouts.source(operand, member))

    def _weight_layout(self, weight: _Weight) -> Layout | None:
        """Return what the dimensions of a weight mean; those of a constant are an operand's."""
        graph = self._session.graph
        if graph is None:
            return None
        operator = graph.operator(weight.operator)
        if not operator.inputs and len(operator.outputs) == 1:
            return self._session.layouts.find(operator.outputs[0].name)
        from engine.axes import weight_layout

        heads = operator.params.get("num_heads")
        return weight_layout(
            operator.type,
            weight.name,
            weight.array.shape,
            heads if isinstance(heads, int) else 1,
        )

    def _own_expression(self, name: str) -> str:
        """Return what gives the value of a tab in Python, with a session of the engine."""
        weight = self._weights.get(name)
        return weight.expression if weight is not None else f"session.value({name!r})"

    def _expression(self, name: str, value: Value) -> str:
        """Return what gives the shown side of a tab in Python."""
        own, side = self._own_expression(name), self.sides.side(name)
        if side in _OWN:
            return own
        other = self.sides.expression(name)
        if side is Side.REFERENCE or not isinstance(value, np.ndarray):
            return other
        return f"numpy.subtract({own}, {other}, dtype={value.dtype.name!r})"

    def _show_weight(
        self, weight: _Weight, value: Value, counterpart: Counterpart | None
    ) -> None:
        side = self.sides.side(weight.key)
        is_own = side in _OWN
        self.pane.set_value(
            f"{weight.key} {side.value}" if side is Side.DIFFERENCE else weight.key,
            value,
            expression=self._expression(weight.key, value),
            shared_range=self.sides.shared_range(weight.key),
            counterpart=counterpart,
            layout=self._weight_layout(weight),
            scales=self._scales(weight) if is_own else None,
        )

    def _scales(self, weight: _Weight) -> Scales | None:
        """Return the scales of an int8 weight of ncnn."""
        graph = self._session.graph
        if graph is None:
            return None
        try:
            return find_scales(weight.name, graph.operator(weight.operator).attributes)
        except ModelFileError:
            return None  # the weight is shown as it is stored

    def _show_operand(self, name: str, value: Value, counterpart: Counterpart | None) -> None:
        side, channel = self.sides.side(name), self.pane.model.channel
        is_same = self._operand_shown == name  # another side of it, at the same channel
        self._operand_shown = name
        if side in _OWN:
            self.pane.set_value(
                name,
                value,
                self._facts(name),
                is_output=self._is_output(name),
                shared_range=self.sides.shared_range(name),
                counterpart=counterpart,
                layout_of_member=partial(self._layout_of, name),
            )
        else:
            self.pane.set_value(
                name if side is Side.REFERENCE else f"{name} {side.value}",
                value,
                expression=self._expression(name, value),
                shared_range=self.sides.shared_range(name),
                layout_of_member=partial(self._layout_of, name),
            )
        if is_same:
            self.pane.show_channel(channel)

    @Slot()
    def _on_shown_changed(self) -> None:
        if self._stack.currentWidget() is self.pane:
            model = self.pane.model
            self.strip.show_text(
                model.describe(),
                axes=model.describe_axes(),
                tip=model.reading.note,
                channels_last=model.is_channels_last,
            )
            self._show_wide_ranges()
            self._show_distances()
            self._show_data_set()

    @Slot()
    def _show_wide_ranges(self) -> None:
        """Show the range of more than the tensor, if that is chosen, as it becomes known."""
        if self.pane.model.scope.is_wide:
            self.pane.colors.set_wide_ranges(wide_ranges(self._session, self._ranged_operand))

    @property
    def _ranged_operand(self) -> str:
        """Name of the operand in the pane; ``""`` for a weight."""
        is_weight = self._shown is not None and self._shown[0] in self._weights
        return "" if is_weight else self._operand_shown

    def _show_distances(self) -> None:
        """Show how far the channels are from the reference's, as soon as that is known."""
        view = self.pane.model.channel_view()
        if self.sides.pair(self.operand) is not None:
            self.pane.measures.measure_distances()
            return
        found = self.sides.distances(self._operand_shown, view) if view is not None else None
        self.pane.measures.show_distances(found)

    @Slot()
    def _show_totals(self) -> None:
        """Show what the channels held over all inputs, as soon as that is known."""
        operand, view = self._ranged_operand, self.pane.model.counted_view()
        serial = self._session.tensors.serial(operand)
        if self.sides.side(operand) not in _OWN or serial is None:
            return
        over_set = self._session.sweeping.totals(operand, view) if view is not None else None
        if over_set is not None:
            self.pane.measures.show_totals(over_set)
        elif view is not None:
            self.pane.measures.show_totals(
                self._session.channel_totals.look(operand, serial, view)
            )

    def _show_data_set(self) -> None:
        """Show what the operand held over a data set, if there is one."""
        operand, model = self._ranged_operand, self.pane.model
        summary = self._session.sweeping.operand(operand)
        found, values = self._session.sweeping.found, None
        is_own = self.sides.side(operand) in _OWN
        if summary is not None and found is not None and is_own and not model.is_complex:
            values = data_set_values(summary, found.inputs.done)
        self.pane.colors.show_data_set(values)

    @Slot()
    def _on_data_set_changed(self) -> None:
        if self._stack.currentWidget() is self.pane:
            self._show_data_set()
            self._show_totals()

    @property
    def shown_channel(self) -> tuple[str, int] | None:
        """Operand and channel that are shown; None for none, and for weights."""
        operand = self._ranged_operand
        shown = self._stack.currentWidget() is self.pane and bool(operand)
        return (operand, self.pane.model.channel) if shown else None

    @property
    def data_set_channel(self) -> int | None:
        """The shown channel, as the data set numbers them; None where it tells others apart."""
        view = self.pane.model.counted_view()
        if view is None or not self._session.sweeping.has_channels_of(
            self._ranged_operand, view
        ):
            return None
        return self.pane.model.channel

    @Slot(int)
    def show_data_set_channel(self, channel: int) -> None:
        """Show a channel of the data set, where the pane tells the same channels apart."""
        if self.data_set_channel is not None:
            self.pane.show_channel(channel)

    def _show_message(self, title: str, detail: str) -> None:
        self._leave_pane(self.message)
        self.message.show_text(title, detail)
        self.strip.show_text("")

    def _show_gallery(self, operator: RuntimeOperator) -> None:
        session = self._session
        cards = []
        for place, operand in enumerate(operator.inputs):
            missing = not session.tensors.has_value(operand.name)
            is_here = session.tensors.look(operand.name)
            remembered = self.pane.model.remembered(operand.name)
            cards.append(
                OperandCard(
                    place,
                    operand.name,
                    operand.producer.name if operand.producer is not None else "",
                    session.tensors.value(operand.name),
                    session.tensors.statistics(operand.name),
                    remembered.channel if remembered is not None else None,
                    missing=missing,
                    coming=not missing and not is_here,
                    channels_last=remembered is not None and remembered.channels_last,
                )
            )
        self._leave_pane(self.gallery)
        self.gallery.show_cards(cards)
        self.strip.show_text("earlier values stay available", words=True)

    def _leave_pane(self, widget: QWidget) -> None:
        """Show a message without elements."""
        self._shown = None
        self._stack.setCurrentWidget(widget)
        self.hovered_changed.emit("", "")
        for signal in (self.picked_changed, self.range_changed, self.zoom_changed):
            signal.emit("")
        self.special_changed.emit("", False)  # noqa: FBT003

    def _facts(self, name: str) -> TensorStatistics | None:
        """Return statistics from the session; the pane's thread measures large tensors."""
        value = self._session.tensors.value(name)
        small = isinstance(value, np.ndarray) and value.size <= AT_ONCE
        return self._session.tensors.statistics(name) if small else None

    def _is_output(self, name: str) -> bool:
        """Whether the model gives an operand."""
        graph = self._session.graph
        return graph is not None and any(op.is_output for op in graph.operand(name).consumers)

    def _failed_operator(self) -> RuntimeOperator | None:
        """Return the failed operator, while it is selected."""
        session = self._session
        operator = session.current
        if session.state is not RunState.FAILED or operator is None:
            return None
        if session.selected != operator.name or not operator.inputs:
            return None
        outputs = {operand.name for operand in operator.outputs}
        return operator if not session.operand or session.operand in outputs else None

    def _absence(self, name: str) -> tuple[str, str]:
        """Return why there is no value, and what to do."""
        session = self._session
        if session.graph is None or not name:
            return "No tensor chosen", "Select an operator to see its output."
        if session.tensors.has_value(name):
            why = session.why_dropped(name) or "The engine is sending it."
            return f"Operand {name} is being fetched", why
        title = f"Operand {name} has no value yet"
        producer = session.graph.operand(name).producer
        if producer is None:
            return title, "No operator of the model produces it."
        record = session.record(producer.name)
        if record is not None and record.reason:
            why = capitalized(session.why_not_run(producer.name))
            return f"Operand {name} has no value", why
        if session.status(producer.name) is OperatorStatus.UNSUPPORTED:
            return title, capitalized(session.why_not_run(producer.name))
        if session.state is RunState.NEED_INPUT:
            if all(wanted.name in session.inputs for wanted in session.graph.input_operands):
                return title, "The Input panel shows what is missing."
            key = self._hint("file.openInput")
            ask = f"The model needs an input first: Open input…{key}"
            return title, f"{ask}, or choose Random as the source in the Input panel."
        who = f"{producer.type} {producer.name}, operator {producer.index}"
        step, go_on = self._hint("debug.step"), self._hint("debug.continue")
        return title, f"{who}, has not run: step{step} or continue{go_on}."

    def use_keys(self, keymap: Keymap, shown: Mapping[str, str]) -> None:
        """Give the actions other keys.

        Parameters
        ----------
        keymap : Keymap
        shown : mapping of str to str
            The keys of the window's commands, by id.
        """
        self.pane.actions_table.use_keys(keymap)
        self._keys = shown
        self._refresh()

    def _hint(self, command: str) -> str:
        """The key of a command in brackets; ``""`` for none."""
        key = self._keys.get(command, "")
        return f" ({key})" if key else ""

    # Tabs side by side

    def _others(self, name: str) -> list[str]:
        """Return the tabs that can stand beside the current one; ``""`` for the first."""
        others = [each for each in self._locked if each != name]
        follows = self.strip.tabs.currentIndex() == _FOLLOWING
        if not follows and self._session.operand not in {"", name}:
            others.append("")
        return others

    @Slot(bool)
    def _on_beside_toggled(self, beside: bool) -> None:  # noqa: FBT001 - a slot
        name, others = self.operand, self._others(self.operand)[::-1]
        pairs = {tab: self._pair_with(name, tab or self._session.operand)[0] for tab in others}
        fitting = [tab for tab, pair in pairs.items() if pair is not None]
        alike = [tab for tab, pair in pairs.items() if pair is not None and pair.is_alike]
        self.show_beside(next(iter((*alike, *fitting, *others)), None) if beside else None)

    def show_beside(self, tab: str | None) -> None:
        """Show a tab beside the current one, by its name; ``""`` for the following one."""
        self._partner = tab
        self.sides.choose(Side.ALL)
        self._refresh()

    def _pair_up(self, name: str) -> None:
        """Pair the current tab with the one that is to stand beside it, or say why not."""
        others, partner = self._others(name), self._partner
        pair, reason = None, ""
        if partner is not None and partner in others:
            pair, reason = self._pair_with(name, partner or self._session.operand)
        if pair is not self.sides.pair(name):
            self._shown = None  # the range is that of both
        self.sides.set_pair(pair)
        if pair is None:
            self.note.show_reason(reason)
        else:
            self.note.show_fitted(pair.counterpart.names[1], pair.fitted)
        is_beside = partner is not None and partner in others
        self.pane.show_other_tab(exists=bool(others), shown=is_beside)

    def _pair_with(self, name: str, other: str) -> tuple[Pair | None, str]:
        """Return the pair of two tabs, or a sentence why there is none."""
        mine, theirs = self._label(name), self._label(other)
        titles = mine.title, theirs.title
        if mine.title == theirs.title:
            titles = f"{mine.title} {mine.number}", f"{theirs.title} {theirs.number}"
        ours, array = self._tensor(name), self._tensor(other)
        if ours is None:
            return None, ""  # the view says that there is no value
        if array is None:
            return None, f"{titles[1]} has no value to show beside this one yet."
        known = self.sides.pair(name)
        start = self._starts.get(other, 0)
        is_known = known is not None and known.ours is ours and known.source is array
        if known is not None and is_known and known.fitted.start == min(start, known.last):
            return known, ""
        try:
            return pair_up(name, ours, array, titles, self._own_expression(other), start), ""
        except ValueError as exc:
            return None, str(exc)

    @Slot(int)
    def _on_start_chosen(self, start: int) -> None:
        """Take another slice of the tab that stands beside the current one."""
        if self._partner is not None:
            self._starts[self._partner or self._session.operand] = start
            self._refresh()

    def _tensor(self, name: str) -> Value:
        """Return the value of a tab, which is fetched if need be; None until it is here."""
        weight = self._weights.get(name)
        if weight is not None:
            return weight.array
        tensors = self._session.tensors
        return tensors.value(name) if name and tensors.look(name) else None

    def _fill_beside(self, menu: QMenu) -> None:
        """Fill the menu of tabs that can stand beside the current one."""
        menu.clear()
        for tab in self._others(self.operand):
            label = self._label(tab or self._session.operand)
            action = menu.addAction(caption_text(f"{label.title} {label.number}".strip()))
            action.setCheckable(True)
            action.setChecked(tab == self._partner)
            action.setData(tab)

    @Slot(QAction)
    def _on_tab_chosen(self, action: QAction) -> None:
        self.show_beside(action.data() if action.isChecked() else None)

    # Tabs

    def _label_tabs(self) -> None:
        failed = self._failed_operator()
        if failed is not None:
            following = TabLabel(f"Operands of {failed.name}", tip="Follows the selection")
        else:
            following = self._label(self._session.operand)
        self.strip.tabs.set_label(_FOLLOWING, following)
        for place, name in enumerate(self._locked, start=1):
            self.strip.tabs.set_label(place, self._label(name, locked=True))

    def _label(self, name: str, *, locked: bool = False) -> TabLabel:
        """Return the label of an operand's tab: its producer and its name."""
        session = self._session
        if session.graph is None or not name:
            return TabLabel("Tensor", tip="Follows the selection")
        weight = self._weights.get(name)
        if weight is not None:
            tip = f"Weight {weight.name} of {weight.operator}"
            return TabLabel(weight.operator, weight.name, "lock", tip)
        operand = session.graph.operand(name)
        title, glyph = operand.producer.name if operand.producer else name, "lock"
        source = session.inputs.get(name)
        if source is not None and source.path is not None:
            title, glyph = source.path.name, "image" if source.kind == "image" else "file"
        kind = f"{operand.producer.type} " if operand.producer is not None else ""
        how = "Locked" if locked else "Follows the selection"
        tip = f"{kind}{title}, operand {name}\n{how}"
        return TabLabel(title, name, glyph if locked else "target", tip)

    # Slots

    @Slot(object)
    def _on_scope_chosen(self, _scope: Scope) -> None:
        self._session.measuring.want("range", on=self.pane.model.needs_wide_ranges)
        self._show_wide_ranges()

    @Slot()
    def _on_graph_changed(self) -> None:
        self._renew_tabs()
        self._shown = None
        self._operand_shown = ""  # one of this name in another model begins at its own channel
        self.pane.set_value("", None)
        self.pane.forget()
        self._restore_roles()
        self._session.measuring.want("range", on=False)
        self._on_labels_changed()
        self._refresh()
        if self._session.graph is not None:
            self._warm.start()

    def _renew_tabs(self) -> None:
        """Keep the tabs of operands that a reloaded model still has; their names may differ."""
        path, outputs = self._session.model_path, tuple(self._outputs.items())
        is_same = path is not None and path == self._model_path
        self._model_path = path
        current = self.strip.tabs.currentIndex()
        chosen = self._locked[current - 1] if current != _FOLLOWING else ""
        partner, starts = self._partner, self._starts
        blocker = QSignalBlocker(self.strip.tabs)  # they have nothing to show yet
        while self._locked:
            self._drop_tab(len(self._locked))
        renewed = {"": ""}
        for name, output in outputs if is_same else ():
            found = self._find_output(*output)
            if found:
                renewed[name] = found
                self._go_to_tab(found)
            else:
                text = f"the tab of {output[0]} is closed: its operand {name} is gone"
                self._session.workspace.log("warning", text)
        found = renewed.get(chosen, "")
        self.strip.tabs.setCurrentIndex(self._locked.index(found) + 1 if found else _FOLLOWING)
        blocker.unblock()
        self._partner = renewed.get(partner) if partner is not None else None
        self._starts = {renewed[name]: starts[name] for name in starts if name in renewed}

    def _find_output(self, operator: str, place: int) -> str:
        """Return the operand that is an output of an operator; ``""`` if there is none."""
        graph = self._session.graph
        producers = graph.operators if graph is not None else ()
        outputs = next((each.outputs for each in producers if each.name == operator), ())
        return outputs[place].name if place < len(outputs) else ""

    @Slot()
    def _import_chart(self) -> None:
        """Import what draws vectors, while nobody waits for it, and make it."""
        import_chart_in_turns(self, partial(take_turn, self, self.pane.vector.prepare))

    @Slot(object)
    def _on_distances_arrived(self, operand: str) -> None:
        if operand == self._operand_shown and self._stack.currentWidget() is self.pane:
            self._show_distances()

    @Slot(object)
    def _on_totals_arrived(self, operand: str) -> None:
        if operand == self._ranged_operand and self._stack.currentWidget() is self.pane:
            self._show_totals()

    @Slot()
    def _on_layouts_changed(self) -> None:
        if self._shown is not None:
            weight = self._weights.get(self._shown[0])
            self.pane.set_layout(
                self._layout_of(self._shown[0], self.pane.model.choice.member)
                if weight is None
                else self._weight_layout(weight)
            )
            if self._session.sweeping.found is not None:
                self._show_totals()  # the channels may be others now

    @Slot()
    def _on_roles_changed(self) -> None:
        """Keep where the user wants axes, for the next session with this model."""
        chosen = self.pane.model.chosen_roles.items()
        self._session.layouts.set_roles(
            {meaning: tuple([role.name for role in roles]) for meaning, roles in chosen}
        )

    @Slot()
    def _restore_roles(self) -> None:
        self.pane.arrangement.restore_roles(roles_from_names(self._session.layouts.roles))

    @Slot()
    def _on_labels_changed(self) -> None:
        choice = self._session.meanings.choice
        names = str(choice.options.get(NAMES.name, NAMES.default))  # as the output panel has
        self.pane.set_labels(self._session.workspace.labels, names)

    @Slot(object)
    def _on_recalled(self, name: str) -> None:
        in_gallery = self._stack.currentWidget() is self.gallery and any(
            card.name == name for card in self.gallery.cards
        )
        is_partner = self._partner is not None and name == (
            self._partner or self._session.operand
        )
        if name == self.operand or in_gallery or is_partner:
            self._refresh()

    @Slot()
    def _on_late(self) -> None:
        self._show_message(*self._absence(self.operand))

    @Slot(object)
    def _on_menu_requested(self, position: QPoint) -> None:
        menu = make_menu(self, once=True)
        self.fill_menu(menu)
        menu.popup(position)

    # Overrides of Qt methods

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        """Pass the focus to the canvas."""
        super().focusInEvent(event)
        if self._stack.currentWidget() is self.pane:
            self.pane.body.shown.setFocus(event.reason())
