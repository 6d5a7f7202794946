"""What can be done in the tensor view, in one table: buttons, keys and menus share it.

The keys are plain letters, so they work only while the view has the keyboard.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QIcon, QKeySequence

from kuiper_studio.colormaps import COLOR_MAPS, MAP_TIPS
from kuiper_studio.icons import icon
from kuiper_studio.tensor_view.images import map_swatch
from kuiper_studio.tensor_view.view_model import Scope

if TYPE_CHECKING:
    from PySide6.QtWidgets import QMenu

    from kuiper_studio.theme import Theme

__all__ = ["COMMANDS", "RANGE_BUTTONS", "TensorActions", "TensorCommand"]


@dataclass(frozen=True, slots=True)
class TensorCommand:
    """An action of the tensor view.

    Attributes
    ----------
    id : str
        Its objectName.
    text, tip : str
    keys : tuple of str
        The first is shown.
    icon : str
    checkable : bool
    told : bool
        Whether the key is only told: the canvases answer to it themselves.
    label : str
        On a button, where the text is too long for one.
    """

    id: str
    text: str
    tip: str
    keys: tuple[str, ...] = ()
    icon: str = ""
    checkable: bool = False
    told: bool = False
    label: str = ""


COMMANDS: Final = (
    TensorCommand("tensor.grid", "&Grid of channels", "All channels side by side, or one only",
                  ("G",), "grid", checkable=True),
    TensorCommand("tensor.table", "Numbers as &table", "The channel's numbers as a table",
                  ("T",), "table", checkable=True),
    TensorCommand("tensor.channelsLast", "Channels last (N, H, W, C)",
                  "Read the last dimension of every tensor as its channels, till switched off",
                  ("L",), checkable=True),
    TensorCommand("tensor.previousChannel", "&Previous channel", "Show the channel before",
                  ("PgUp",), "chevron-left", told=True),
    TensorCommand("tensor.nextChannel", "&Next channel", "Show the channel behind",
                  ("PgDown",), "chevron-right", told=True),
    TensorCommand("tensor.previousPage", "Previous page of channels",
                  "Show the 256 channels before", ("Ctrl+PgUp",)),
    TensorCommand("tensor.nextPage", "Next page of channels",
                  "Show the 256 channels behind", ("Ctrl+PgDown",)),
    TensorCommand("tensor.firstChannel", "First channel", "Show the first channel",
                  ("Home",), told=True),
    TensorCommand("tensor.lastChannel", "Last channel", "Show the last channel",
                  ("End",), told=True),
    TensorCommand("tensor.zoomRange", "Zoom into range",
                  "Stretch the present range over the whole bar", (), "zoom-in-range"),
    TensorCommand("tensor.autofit", "&Autofit range",
                  "Fit the range to the values, now and after each step", ("A",), "autofit"),
    TensorCommand("tensor.reset", "&Reset range",
                  "0 to 1, or \u22121 to 1 where values change sign", ("R",), "reset"),
    TensorCommand("tensor.histogram", "&Histogram", "Numbers of values, logarithmic",
                  ("H",), "histogram", checkable=True),
    TensorCommand("tensor.symmetric", "Zero in the &middle", "Keep the range symmetric about 0",
                  (), "symmetric", checkable=True),
    TensorCommand("tensor.percentiles", "Range without e&xtremes",
                  "Leave the lowest and highest percent of the values out of the range",
                  label="1–99%"),
    TensorCommand("tensor.nan", "Mark NaN and &Inf",
                  "Mark NaN \u00d7, +Inf \u25b2 and \u2212Inf \u25bc", ("N",), "cross",
                  checkable=True, label="NaN"),
    TensorCommand("tensor.clip", "Hatch &clipped values",
                  "Hatch what is below (\\\\) and above (//) the range", ("C",),
                  checkable=True, label="// Clip"),
    TensorCommand("tensor.zoomIn", "Zoom in", "Enlarge", ("+", "="), "plus"),
    TensorCommand("tensor.zoomOut", "Zoom out", "Shrink", ("-",), "minus"),
    TensorCommand("tensor.zoomActual", "1 : 1", "One pixel for an element", ("1",)),
    TensorCommand("tensor.fit", "&Fit", "Show the whole picture", ("F",), "fit"),
    TensorCommand("tensor.copy", "&Copy value", "Copy the picked value, or the table's cells",
                  ("Ctrl+C",), "copy"),
    TensorCommand("tensor.copyIndex", "Copy &index", "Copy the index of the picked element"),
    TensorCommand("tensor.copyExpression", "Copy as Python &expression",
                  "Copy what gives the picked element in Python"),
    TensorCommand("tensor.savePicture", "&Save picture…", "Save the picture as it is shown",
                  (), "save"),
)  # fmt: skip

RANGE_BUTTONS: Final = (
    "tensor.zoomRange", "tensor.autofit", "tensor.reset", "tensor.histogram",
    "tensor.symmetric", "tensor.percentiles",
)  # fmt: skip

# Menus: ids, "" for a separator, "maps" and "scopes" for submenus.
_MENU: Final = (
    "tensor.grid", "tensor.table", "tensor.channelsLast", "",
    "tensor.previousChannel", "tensor.nextChannel", "tensor.firstChannel",
    "tensor.lastChannel", "tensor.previousPage", "tensor.nextPage", "",
    "maps", "scopes", "tensor.autofit", "tensor.zoomRange", "tensor.reset",
    "tensor.percentiles", "tensor.symmetric", "tensor.histogram", "",
    "tensor.nan", "tensor.clip", "",
    "tensor.zoomIn", "tensor.zoomOut", "tensor.zoomActual", "tensor.fit", "",
    "tensor.copy", "tensor.copyIndex", "tensor.copyExpression", "tensor.savePicture",
)  # fmt: skip


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
        Name of a colour map; ``""`` for the one that suits the values.
    scope_chosen
        A `Scope`.
    """

    map_chosen = Signal(str)
    scope_chosen = Signal(object)

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.by_id = {command.id: self._make(command) for command in COMMANDS}
        self._maps, self._scopes = QActionGroup(self), QActionGroup(self)
        self._add_choice(
            self._maps, "Colour map: automatic", "", "The one that suits the values"
        )
        for name in COLOR_MAPS:
            action = self._add_choice(self._maps, f"Colour map: {name}", name, MAP_TIPS[name])
            action.setIcon(QIcon(map_swatch(name)))
        for scope in Scope:
            self._add_choice(
                self._scopes, f"Same range: {scope.value}", scope, "What the range is fitted to"
            )
        self._maps.triggered.connect(self._on_map_triggered)
        self._scopes.triggered.connect(self._on_scope_triggered)

    def __getitem__(self, name: str) -> QAction:
        return self.by_id[name]

    def all(self) -> list[QAction]:
        """Every action, maps and scopes included."""
        return [*self.by_id.values(), *self._maps.actions(), *self._scopes.actions()]

    def fill_menu(self, menu: QMenu) -> None:
        """Add everything to a menu, grouped."""
        for entry in _MENU:
            if not entry:
                menu.addSeparator()
            elif entry == "maps":
                menu.addMenu("Colour &map").addActions(self._maps.actions())
            elif entry == "scopes":
                menu.addMenu("&Same range").addActions(self._scopes.actions())
            else:
                menu.addAction(self.by_id[entry])

    def show_choice(self, map_name: str, scope: Scope) -> None:
        """Check what is chosen; ``""`` for the automatic map."""
        for group, chosen in ((self._maps, map_name), (self._scopes, scope)):
            for action in group.actions():
                action.setChecked(action.data() == chosen)

    def show_checked(self, name: str, *, checked: bool) -> None:
        """Check an action because of what is shown; nothing happens."""
        action = self.by_id[name]
        action.blockSignals(True)  # noqa: FBT003 - Qt's signature
        action.setChecked(checked)
        action.blockSignals(False)  # noqa: FBT003
        self._tint(action)

    def _make(self, command: TensorCommand) -> QAction:
        action = QAction(command.text, self)
        action.setObjectName(command.id)
        action.setCheckable(command.checkable)
        if command.label:
            action.setIconText(command.label)
        key = command.keys[0] if command.keys else ""
        action.setToolTip(f"{command.tip} ({key})" if key else command.tip)
        if command.told:
            action.setText(f"{command.text}\t{key}")
        else:
            action.setShortcuts([QKeySequence(text) for text in command.keys])
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        if command.icon:
            action.setData(command.icon)
            self._tint(action)
            action.toggled.connect(self._on_toggled)
        return action

    def _add_choice(
        self, group: QActionGroup, text: str, value: str | Scope, tip: str
    ) -> QAction:
        action = QAction(text, self)
        action.setCheckable(True)
        action.setData(value)
        action.setToolTip(tip)
        action.setObjectName(f"tensor.{text.replace(': ', '.').replace(' ', '')}")
        group.addAction(action)
        return action

    def _tint(self, action: QAction) -> None:
        """An icon that is switched on has the accent's colour."""
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
    def _on_scope_triggered(self, action: QAction) -> None:
        self.scope_chosen.emit(action.data())
