"""The commands of the tensor view, one row each: buttons, keys and menus are built from them.

The keys are plain letters, so they work only while the view has the focus.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QIcon

from kuiper_studio.colormaps import COLOR_MAPS, MAP_TIPS
from kuiper_studio.conditions import Condition, enable, need
from kuiper_studio.icons import icon
from kuiper_studio.keymap import Keymap, set_keys
from kuiper_studio.surfaces import (
    Command,
    Place,
    Submenu,
    Surface,
    commands_on,
    entries,
    fill_menu,
)
from kuiper_studio.tensor_view.channel_order import Order
from kuiper_studio.tensor_view.choice import Scope
from kuiper_studio.tensor_view.complex_parts import Part
from kuiper_studio.tensor_view.images import map_swatch

if TYPE_CHECKING:
    from PySide6.QtWidgets import QMenu

    from kuiper_studio.theme import Theme

__all__ = ["COMMANDS", "TensorActions", "TensorState"]


@dataclass(frozen=True, slots=True)
class TensorState:
    """State that decides which commands of the tensor view are enabled.

    Attributes
    ----------
    shown : bool
        Whether there is a picture or a plot.
    many : bool
        Whether there are several channels.
    has_channels : bool
        Whether the channel dimension makes a difference.
    can_fold : bool
        Whether the layout says how to fold positions to pictures.
    has_previous, has_next, has_previous_page, has_next_page : bool
        Whether there are channels, or pages of them, before and after the shown one.
    can_be_symmetric : bool
        Whether the range may be kept symmetric about 0.
    is_split : bool
        Whether the reference's tensor and the difference take the grid's room.
    has_errors : bool
        Whether there is a strip with the difference of each channel.
    can_copy : bool
        Whether the region, or the channel, has few enough numbers to copy all of them.
    has_region : bool
        Whether a rectangle is chosen.
    has_stepped : bool
        Whether there is an axis to step through.
    has_own_axes : bool
        Whether the user has chosen where axes go.
    is_complex : bool
        Whether the numbers are complex.
    has_other_tab : bool
        Whether another tab can stand beside the shown one.
    has_pick : bool
        Whether an element is picked.
    has_value : bool
        Whether an element is picked, or the table has cells to copy.
    """

    shown: bool = False
    many: bool = False
    has_channels: bool = False
    can_fold: bool = False
    has_previous: bool = False
    has_next: bool = False
    has_previous_page: bool = False
    has_next_page: bool = False
    can_be_symmetric: bool = False
    is_split: bool = False
    has_errors: bool = False
    can_copy: bool = False
    has_region: bool = False
    has_stepped: bool = False
    has_own_axes: bool = False
    is_complex: bool = False
    has_other_tab: bool = False
    has_pick: bool = False
    has_value: bool = False


def _has(name: str, missing: str) -> Condition[TensorState]:
    """Return the condition that an attribute of the state is true."""
    return need(attrgetter(name), missing)


_shown: Final = _has("shown", "the tensor view shows no tensor")
_can_show_grid: Final = (
    _shown
    & _has("many", "the tensor has one channel only")
    & need(lambda state: not state.is_split, "two tensors are side by side")
)
_has_channels: Final = _has("has_channels", "the tensor has no channels")
_can_fold: Final = _has("can_fold", "nothing tells how to fold this tensor to pictures")
_has_previous: Final = _shown & _has("has_previous", "there is no channel before")
_has_next: Final = _shown & _has("has_next", "there is no channel after")
_has_previous_page: Final = _shown & _has("has_previous_page", "there are no channels before")
_has_next_page: Final = _shown & _has("has_next_page", "there are no channels after")
_can_be_symmetric: Final = _shown & _has(
    "can_be_symmetric", "the values do not change sign, or the scale is logarithmic"
)
_has_errors: Final = _shown & _has(
    "has_errors", "there is no comparison of the channels: Analyse → Compare…"
)
_can_copy: Final = _shown & _has("can_copy", "there are too many numbers: choose a rectangle")
_NO_PICK: Final = "no element is picked: click one, or press an arrow key in the picture"
_has_pick: Final = _shown & _has("has_pick", _NO_PICK)
_has_value: Final = _shown & _has("has_value", _NO_PICK)
_has_region: Final = _shown & _has("has_region", "no rectangle is chosen: drag with Shift")
_has_stepped: Final = _has("has_stepped", "no axis has a slider")
_has_own_axes: Final = _has("has_own_axes", "the axes are where they are by default")
_has_other_tab: Final = _has("has_other_tab", "there is no other tab: lock a tensor in one")

_S: Final = Surface


COMMANDS: Final[tuple[Command[TensorState], ...]] = (
    Command("tensor.grid", "&Grid of channels",
            "All channels side by side to compare them, or one only to see it large",
            "refresh_parts", (Place(_S.TENSOR_VIEW, 1),), keys=("G",), icon="grid",
            enabled=_can_show_grid, checkable=True),
    Command("tensor.table", "Numbers as &table",
            "The channel's numbers as a table, to read and copy them",
            "refresh_parts", (Place(_S.TENSOR_VIEW, 1),), keys=("T",), icon="table",
            enabled=_shown, checkable=True),
    Command("tensor.beside", "&Beside another tab",
            "Show another tab beside this one, and their difference: one zoom, place and range",
            "beside_toggled.emit", (Place(_S.TENSOR_VIEW, 1, 1),), keys=("B",),
            enabled=_has_other_tab, checkable=True),
    Command("tensor.channelsLast", "Channels last (N, H, W, C)",
            "Treat the last dimension of this tensor as its channels",
            "arrangement.set_channels_last", (Place(_S.TENSOR_VIEW, 1),), keys=("L",),
            enabled=_has_channels, checkable=True, label="channels last"),
    Command("tensor.folded", "F&old to pictures",
            "Fold tokens and windows to the picture that they are of, or show them as they are",
            "arrangement.set_folded", (Place(_S.TENSOR_VIEW, 1),), keys=("W",),
            enabled=_can_fold, checkable=True),
    Command("tensor.axes", "Axes",
            "Show what the axes are and where they go; each can go elsewhere",
            "refresh_parts", (Place(_S.TENSOR_AXES),), keys=("X",), enabled=_shown,
            checkable=True),
    Command("tensor.resetAxes", "Axes as by default",
            "Undo the choice of rows, columns, mosaic and colours", "arrangement.reset",
            (Place(_S.TENSOR_AXES),), enabled=_has_own_axes),
    Command("tensor.previousIndex", "Step back along the slider",
            "Show the index before of the axis of the slider",
            "arrangement.show_previous_index", (Place(_S.TENSOR_AXES, 2),), keys=(",",),
            enabled=_has_stepped),
    Command("tensor.nextIndex", "Step on along the slider",
            "Show the next index of the axis of the slider",
            "arrangement.show_next_index", (Place(_S.TENSOR_AXES, 2),), keys=(".",),
            enabled=_has_stepped),
    Command("tensor.playAxis", "Play along the slider",
            "Step through the axis of the slider, again and again", "arrangement.play_axis",
            (Place(_S.TENSOR_AXES, 2),), keys=("Y",), enabled=_has_stepped, checkable=True),
    Command("tensor.previousChannel", "&Previous channel", "Show the channel before",
            "show_previous_channel", (Place(_S.TENSOR_VIEW, 2),), keys=("PgUp",),
            icon="chevron-left", enabled=_has_previous, key_elsewhere=True),
    Command("tensor.nextChannel", "&Next channel", "Show the channel after",
            "show_next_channel", (Place(_S.TENSOR_VIEW, 2),), keys=("PgDown",),
            icon="chevron-right", enabled=_has_next, key_elsewhere=True),
    Command("tensor.previousPage", "Previous page of channels", "Show the 256 channels before",
            "show_previous_page", (Place(_S.TENSOR_CHANNELS, 2),), keys=("Ctrl+PgUp",),
            enabled=_has_previous_page),
    Command("tensor.nextPage", "Next page of channels", "Show the 256 channels after",
            "show_next_page", (Place(_S.TENSOR_CHANNELS, 2),), keys=("Ctrl+PgDown",),
            enabled=_has_next_page),
    Command("tensor.firstChannel", "First channel", "Show the first channel",
            "show_first_channel", (Place(_S.TENSOR_CHANNELS),), keys=("Home",), enabled=_shown,
            key_elsewhere=True),
    Command("tensor.lastChannel", "Last channel", "Show the last channel", "show_last_channel",
            (Place(_S.TENSOR_CHANNELS),), keys=("End",), enabled=_shown, key_elsewhere=True),
    Command("tensor.goTo", "Go to index…",
            "Pick an element by its index, or a rectangle by ranges of rows and columns",
            "pointing.ask_for_index", (Place(_S.TENSOR_VIEW, 2, 3),), keys=("Ctrl+G",),
            enabled=_shown),
    Command("tensor.clearRegion", "Clear rectangle",
            "Choose no rectangle; drag with Shift to choose one", "measures.clear_region",
            (Place(_S.TENSOR_VIEW, 2, 3),), keys=("Esc",), enabled=_has_region,
            key_elsewhere=True),
    Command("tensor.sortErrors", "Sort channels by &difference",
            "Order the strip of differences by the difference, the largest first",
            "sort_errors", (Place(_S.TENSOR_CHANNELS, 3),), keys=("D",), enabled=_has_errors,
            checkable=True),
    Command("tensor.overAll", "Order over all inputs",
            "Order channels by their mean, zeros … over all inputs that were run since opening",
            "measures.order_over_all", (Place(_S.TENSOR_CHANNELS, 3),), enabled=_shown,
            checkable=True),
    Command("tensor.zoomRange", "Zoom into range",
            "Stretch the current range over the whole bar, to set it finely",
            "colors.zoom_range",
            (Place(_S.TENSOR_RANGE), Place(_S.RANGE_BAR)), icon="zoom-in-range",
            enabled=_shown),
    Command("tensor.autofit", "&Autofit range",
            "Fit the range to the values, now and after each step", "colors.autofit",
            (Place(_S.TENSOR_RANGE), Place(_S.RANGE_BAR, 1, 1)), keys=("A",), icon="autofit",
            enabled=_shown),
    Command("tensor.reset", "&Reset range", "0 to 1, or \u22121 to 1 where values change sign",
            "colors.reset_range", (Place(_S.TENSOR_RANGE), Place(_S.RANGE_BAR, 1, 2)),
            keys=("R",), icon="reset", enabled=_shown),
    Command("tensor.histogram", "&Histogram",
            "Show how often values occur, with a logarithmic scale, behind the range",
            "range_bar.track.set_histogram_shown",
            (Place(_S.TENSOR_RANGE, 3), Place(_S.RANGE_BAR, 1, 3)), keys=("H",),
            icon="histogram", enabled=_shown, checkable=True),
    Command("tensor.symmetric", "&Zero in the middle",
            "Keep the range symmetric about 0, so that the sign shows in the colour",
            "colors.set_symmetric", (Place(_S.TENSOR_RANGE, 2), Place(_S.RANGE_BAR, 1, 4)),
            icon="symmetric", enabled=_can_be_symmetric, checkable=True),
    Command("tensor.percentiles", "Range without e&xtremes",
            "Exclude the lowest and highest percent of the values from the range",
            "colors.cut_percentiles", (Place(_S.TENSOR_RANGE), Place(_S.RANGE_BAR, 1, 5)),
            enabled=_shown, label="1–99%"),
    Command("tensor.log", "Logarithmic colours",
            "Tell small values apart: a logarithmic scale, symlog in ranges that reach 0",
            "colors.set_log", (Place(_S.TENSOR_RANGE, 2), Place(_S.RANGE_BAR, 1, 6)),
            keys=("O",), enabled=_shown, checkable=True, label="log"),
    Command("tensor.hoverContrast", "Contrast at the pointer",
            "Stretch the colours about the value under the mouse", "colors.set_hover_contrast",
            (Place(_S.TENSOR_RANGE, 2),), keys=("S",), enabled=_shown, checkable=True),
    Command("tensor.nan", "Mark NaN and &Inf",
            "Mark NaN \u00d7, +Inf \u25b2 and \u2212Inf \u25bc on the picture",
            "colors.refresh", (Place(_S.TENSOR_VIEW, 4),), keys=("N",), icon="cross",
            enabled=_shown, checkable=True, label="NaN"),
    Command("tensor.clip", "Hatch &clipped values",
            "Hatch what is below (\\\\) and above (//) the range", "colors.refresh",
            (Place(_S.TENSOR_VIEW, 4),), keys=("C",), enabled=_shown, checkable=True,
            label="// Clip"),
    Command("tensor.digits", "Numbers in cells",
            "Write each element's number into its cell, where all of them fit", "set_digits",
            (Place(_S.TENSOR_VIEW, 4),), keys=("I",), enabled=_shown, checkable=True),
    Command("tensor.loupe", "Loupe",
            "Enlarge what is about the mouse, with numbers; so does holding the right button",
            "loupe.set_on", (Place(_S.TENSOR_VIEW, 5),), keys=("M",), enabled=_shown,
            checkable=True),
    Command("tensor.zoomIn", "Zoom in",
            "Enlarge the picture; the wheel does too", "zoom_in", (Place(_S.TENSOR_ZOOM),),
            keys=("+", "=",), icon="plus", enabled=_shown),
    Command("tensor.zoomOut", "Zoom out",
            "Shrink the picture; the wheel does too", "zoom_out", (Place(_S.TENSOR_ZOOM),),
            keys=("-",), icon="minus", enabled=_shown),
    Command("tensor.zoomActual", "1 : 1",
            "Show one pixel per element, so that nothing is left out", "zoom_actual",
            (Place(_S.TENSOR_ZOOM, 2),), keys=("1",), enabled=_shown),
    Command("tensor.fit", "&Fit",
            "Show the whole picture, as large as the pane allows",
            "fit", (Place(_S.TENSOR_ZOOM, 2),),
            keys=("F",), icon="fit", enabled=_shown),
    Command("tensor.copy", "Copy &value", "Copy the picked value, or the table's cells",
            "copying.copy_value", (Place(_S.TENSOR_VIEW, 6),), keys=("Ctrl+C",), icon="copy",
            enabled=_has_value, key_elsewhere=True),
    Command("tensor.copyIndex", "Cop&y index",
            "Copy the index of the picked element, to find it in a script",
            "copying.copy_index", (Place(_S.TENSOR_COPY),), enabled=_has_pick),
    Command("tensor.copyExpression", "Copy as Python &expression",
            "Copy the Python expression of the picked element", "copying.copy_expression",
            (Place(_S.TENSOR_COPY),), enabled=_has_pick),
    Command("tensor.copyNumpy", "Copy as NumPy array",
            "Copy the rectangle, or the channel, as NumPy writes it: at most 65 536 numbers",
            "copying.copy_array", (Place(_S.TENSOR_COPY, 2),), enabled=_can_copy),
    Command("tensor.copyCsv", "Copy as CSV",
            "Copy the rectangle, or the channel, as lines of numbers: at most 65 536",
            "copying.copy_csv", (Place(_S.TENSOR_COPY, 2),), enabled=_can_copy),
    Command("tensor.copyPicture", "Copy picture",
            "Copy the channel's picture with its colour bar", "copying.copy_picture",
            (Place(_S.TENSOR_COPY, 3),), keys=("Ctrl+Shift+C",), enabled=_shown),
    Command("tensor.savePicture", "Save pict&ure…",
            "Save the shown picture: the whole view, the channel with its colour bar, or alone",
            "copying.ask_to_save", (Place(_S.TENSOR_VIEW, 6),), icon="save", enabled=_shown),
)  # fmt: skip

_SUBMENUS: Final = (
    Submenu("fill_maps", Place(_S.TENSOR_VIEW, 3, -2), "Colour &map"),
    Submenu("fill_scopes", Place(_S.TENSOR_RANGE, 1, -1), "&Same range"),
    Submenu("fill_axes", Place(_S.TENSOR_VIEW, 1, 1), "A&xes and slider"),
    Submenu("fill_channels", Place(_S.TENSOR_VIEW, 2, 4), "Mor&e channels"),
    Submenu("fill_range", Place(_S.TENSOR_VIEW, 3), "&Range"),
    Submenu("fill_zoom", Place(_S.TENSOR_VIEW, 5), "&Zoom"),
    Submenu("fill_copies", Place(_S.TENSOR_VIEW, 6, 1), "Copy &as"),
    Submenu("fill_parts", Place(_S.TENSOR_VIEW, 4, 1), "Complex numbers"),
    Submenu("fill_orders", Place(_S.TENSOR_CHANNELS, 3, -1), "Order of channels"),
)


_SCOPE_TIPS: Final = {
    Scope.CHANNEL: "Fit the range to the values of the channel",
    Scope.TENSOR: "Fit the range to the values of the tensor",
    Scope.TYPE: "Fit the range to the outputs of all operators of this type; for all operands",
    Scope.RUN: "Fit the range to all values of the run; for all operands",
}


class TensorActions(QObject):
    """The actions of one tensor view.

    Parameters
    ----------
    theme : Theme
    parent : QObject, optional

    Attributes
    ----------
    by_id : dict of str to QAction

    Signals
    -------
    map_chosen
        Name of a colour map; ``""`` for automatic.
    scope_chosen
        A `Scope`.
    order_chosen
        An `Order` of the channels.
    part_chosen
        A `Part` of complex numbers.
    """

    map_chosen = Signal(str)
    scope_chosen = Signal(object)
    order_chosen = Signal(object)
    part_chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._state: TensorState | None = None
        self._offered: list[QAction] = []
        self._keymap = Keymap()
        self.by_id = {command.id: self._make(command) for command in COMMANDS}
        self._maps, self._scopes, self._orders, self._parts = (
            QActionGroup(self) for _ in range(4)
        )
        for part in Part:
            self._add_choice(
                self._parts, f"Complex numbers: {part.value}", part, "Show this of each number"
            )
        self._parts.triggered.connect(self._on_part_triggered)
        self._add_choice(
            self._maps, "Colour map: automatic", "", "Chosen by the signs of the values"
        )
        for name in COLOR_MAPS:
            action = self._add_choice(self._maps, f"Colour map: {name}", name, MAP_TIPS[name])
            action.setIcon(QIcon(map_swatch(name)))
        for scope in Scope:
            self._add_choice(
                self._scopes,
                f"Same range: {scope.value}",
                scope,
                _SCOPE_TIPS[scope],
            )
        for order in Order:
            self._add_choice(
                self._orders,
                f"Order of channels: {order.value}",
                order,
                "Order the channels of all tensors, the largest first",
            )
        self.show_order(Order.NUMBER)
        self._orders.triggered.connect(self._on_order_triggered)
        self._maps.triggered.connect(self._on_map_triggered)
        self._scopes.triggered.connect(self._on_scope_triggered)

    def __getitem__(self, name: str) -> QAction:
        return self.by_id[name]

    def all(self) -> list[QAction]:
        """Return every action, including maps, scopes and orders."""
        return [*self.by_id.values(), *self._choices]

    @property
    def _choices(self) -> list[QAction]:
        groups = self._maps, self._scopes, self._orders, self._parts
        return [action for group in groups for action in group.actions()]

    def use_keys(self, keymap: Keymap) -> None:
        """Give the actions other keys."""
        if keymap == self._keymap:
            return
        self._keymap = keymap
        for command in COMMANDS:
            _give_keys(self.by_id[command.id], command, keymap)

    def on(self, surface: Surface) -> list[QAction]:
        """Return the actions of a surface, in order."""
        return [self.by_id[command.id] for _, command in commands_on(surface, COMMANDS)]

    def offer(self, action: QAction) -> None:
        """Add a command of the window to the menu."""
        self._offered.append(action)

    def connect_all(self, pane: QObject) -> None:
        """Connect each action to its method of the pane."""
        for command in COMMANDS:
            action, handler = self.by_id[command.id], attrgetter(command.calls)(pane)
            (action.toggled if command.checkable else action.triggered).connect(handler)

    def update(self, state: TensorState) -> None:
        """Enable the commands that are possible now."""
        if state == self._state:
            return
        self._state = state
        for command in COMMANDS:
            enable(self.by_id[command.id], command.enabled.missing(state))
        for choice in self._choices:
            enable(choice, _shown.missing(state))
        self._parts.setEnabled(state.shown and state.is_complex)

    def fill_menu(self, menu: QMenu) -> None:
        """Add everything to a menu, grouped."""
        self._fill(menu, Surface.TENSOR_VIEW)
        if self._offered:
            menu.addSeparator()
            menu.addActions(self._offered)

    def _fill(self, menu: QMenu, surface: Surface) -> None:
        fill_menu(menu, entries(surface, COMMANDS, _SUBMENUS), self.by_id, self)

    def _fill_once(self, menu: QMenu, surface: Surface) -> None:
        if menu.isEmpty():
            self._fill(menu, surface)

    def fill_axes(self, menu: QMenu) -> None:
        """Fill the menu of axes."""
        self._fill_once(menu, Surface.TENSOR_AXES)

    def fill_channels(self, menu: QMenu) -> None:
        """Fill the menu of more channels."""
        self._fill_once(menu, Surface.TENSOR_CHANNELS)

    def fill_range(self, menu: QMenu) -> None:
        """Fill the menu of the range."""
        self._fill_once(menu, Surface.TENSOR_RANGE)

    def fill_zoom(self, menu: QMenu) -> None:
        """Fill the menu of the zoom."""
        self._fill_once(menu, Surface.TENSOR_ZOOM)

    def fill_copies(self, menu: QMenu) -> None:
        """Fill the menu of what is copied."""
        self._fill_once(menu, Surface.TENSOR_COPY)

    def fill_maps(self, menu: QMenu) -> None:
        """Fill the menu of colour maps."""
        menu.addActions(self._maps.actions())

    def fill_scopes(self, menu: QMenu) -> None:
        """Fill the menu of scopes of the range."""
        menu.addActions(self._scopes.actions())

    def fill_orders(self, menu: QMenu) -> None:
        """Fill the menu of orders of the channels."""
        menu.addActions(self._orders.actions())

    def fill_parts(self, menu: QMenu) -> None:
        """Fill the menu of what is shown of complex numbers."""
        menu.addActions(self._parts.actions())

    def show_part(self, part: Part) -> None:
        """Check what is shown of complex numbers."""
        for action in self._parts.actions():
            action.setChecked(action.data() is part)

    def show_order(self, order: Order) -> None:
        """Check the order of the channels."""
        for action in self._orders.actions():
            action.setChecked(action.data() is order)

    def show_choice(self, map_name: str, scope: Scope) -> None:
        """Check the chosen map and scope; ``""`` for the automatic map."""
        for group, chosen in ((self._maps, map_name), (self._scopes, scope)):
            for action in group.actions():
                action.setChecked(action.data() == chosen)

    def show_checked(self, name: str, *, checked: bool) -> None:
        """Check an action without triggering it."""
        action = self.by_id[name]
        action.blockSignals(True)  # noqa: FBT003 - Qt's signature
        action.setChecked(checked)
        action.blockSignals(False)  # noqa: FBT003
        if action.data():
            self._tint(action)

    def _make(self, command: Command[TensorState]) -> QAction:
        action = QAction(command.text, self)
        action.setObjectName(command.id)
        action.setCheckable(command.checkable)
        if command.label:
            action.setIconText(command.label)
        _give_keys(action, command, self._keymap)
        if command.icon:
            action.setData(command.icon)
            self._tint(action)
            action.toggled.connect(self._on_toggled)
        return action

    def _add_choice(
        self, group: QActionGroup, text: str, value: str | Scope | Order | Part, tip: str
    ) -> QAction:
        action = QAction(text, self)
        action.setCheckable(True)
        action.setData(value)
        action.setToolTip(tip)
        action.setObjectName(f"tensor.{text.replace(': ', '.').replace(' ', '')}")
        group.addAction(action)
        return action

    def _tint(self, action: QAction) -> None:
        """Make an icon that has the accent colour when checked."""
        color = "focus" if action.isChecked() else "text"
        if action.objectName() == "tensor.nan":
            color = "nan"
        action.setIcon(icon(str(action.data()), self._theme, color))

    @Slot()
    def _on_toggled(self) -> None:
        action = self.sender()
        if isinstance(action, QAction):
            self._tint(action)

    @Slot(QAction)
    def _on_map_triggered(self, action: QAction) -> None:
        self.map_chosen.emit(action.data())

    @Slot(QAction)
    def _on_part_triggered(self, action: QAction) -> None:
        self.part_chosen.emit(action.data())

    @Slot(QAction)
    def _on_order_triggered(self, action: QAction) -> None:
        self.order_chosen.emit(action.data())

    @Slot(QAction)
    def _on_scope_triggered(self, action: QAction) -> None:
        self.scope_chosen.emit(action.data())


def _give_keys(action: QAction, command: Command[TensorState], keymap: Keymap) -> None:
    """Set keys: those with Ctrl for the whole window, letters where the view has the focus."""
    set_keys(action, command, keymap)
    keys = [key.toString() for key in action.shortcuts()]
    is_global = bool(keys) and all("Ctrl+" in key for key in keys)
    action.setShortcutContext(
        Qt.ShortcutContext.WindowShortcut
        if is_global
        else Qt.ShortcutContext.WidgetWithChildrenShortcut
    )
