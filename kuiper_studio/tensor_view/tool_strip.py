"""The tool strip over the picture: channel, map, range, marks and zoom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QSpinBox,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from kuiper_studio.colormaps import COLOR_MAPS, MAP_TIPS
from kuiper_studio.tensor_view.choice import Scope
from kuiper_studio.tensor_view.error_strip import ErrorStrip
from kuiper_studio.tensor_view.images import map_swatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QAction, QResizeEvent

    from kuiper_studio.tensor_view.actions import TensorActions
    from kuiper_studio.theme import Theme

__all__ = ["Chooser", "ToolStrip", "tool_button"]

_HEIGHT: Final = 35
_GAP: Final = 4
_WIDEST_ERRORS: Final = 420
# With buttons disabled entirely, a style sheet leaves no room for the number.
_BOX_STYLE: Final = """
QSpinBox { font-family: "JetBrains Mono", monospace; font-size: 11px; }
QSpinBox::up-button, QSpinBox::down-button { width: 0; }
QSpinBox::up-arrow, QSpinBox::down-arrow { image: none; width: 0; height: 0; }
"""


class Chooser(QWidget):
    """Selects an index: a label, a spin box, and the count.

    Parameters
    ----------
    name : str
        Its objectName.
    label : str
    theme : Theme
    buttons : sequence of QAction
        Actions for previous and next, for buttons.

    Signals
    -------
    chosen
        The number.
    """

    chosen = Signal(int)

    def __init__(
        self, name: str, label: str, theme: Theme, buttons: Sequence[QAction] = ()
    ) -> None:
        super().__init__()
        self.setObjectName(name)
        self.label = QLabel(label)
        self.label.setProperty("role", "secondary")
        self.box = QSpinBox()
        self.box.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
        self.box.setKeyboardTracking(False)
        self.box.setFont(theme.mono_font())
        self.box.setStyleSheet(_BOX_STYLE)
        self.box.lineEdit().setTextMargins(6, 0, 0, 0)
        self.box.setAccessibleName(label)
        self.box.setFixedHeight(24)
        self.label.setBuddy(self.box)
        self.total = QLabel()
        self.total.setProperty("role", "mono2")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(3)
        row.addWidget(self.label)
        made = [tool_button(action) for action in buttons]
        for widget in (*made[:1], self.box, *made[1:], self.total):
            row.addWidget(widget)
        self.box.valueChanged.connect(self.chosen)

    def show_choice(self, place: int, count: int) -> None:
        """Show the selected index and the count, without a signal."""
        self.box.blockSignals(True)  # noqa: FBT003 - Qt's signature
        self.box.setRange(0, max(count - 1, 0))
        self.box.setValue(place)
        self.box.blockSignals(False)  # noqa: FBT003
        self.box.setFixedWidth(26 + 7 * max(2, len(str(count - 1))))
        self.total.setText(f"of {count}")


class ToolStrip(QFrame):
    """The controls; those without room are in the menu.

    Parameters
    ----------
    theme : Theme
    actions : TensorActions

    Attributes
    ----------
    channel, member : Chooser
    errors : ErrorStrip
        Shown beside the channel while a tensor is compared.
    """

    def __init__(
        self, theme: Theme, actions: TensorActions, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._theme, self._actions = theme, actions
        self.setObjectName("tensorTools")
        self.setProperty("role", "panel")
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.member = Chooser("tensorMember", "Member", theme)
        arrows = actions["tensor.previousChannel"], actions["tensor.nextChannel"]
        self.channel = Chooser("tensorChannel", "Channel", theme, arrows)
        self.reason = QLabel()
        self.reason.setObjectName("tensorChannelReason")
        self.reason.setProperty("role", "secondary")
        self.reason.setContentsMargins(6, 0, 0, 0)
        self.errors = ErrorStrip(theme)
        self.errors.setMaximumWidth(_WIDEST_ERRORS)
        self.errors.hide()
        self.maps = self._make_maps()
        self.scopes = self._make_scopes()
        self.zoom = QLabel()
        self.zoom.setObjectName("tensorZoom")
        self.zoom.setProperty("role", "mono2")
        self.zoom.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.zoom.setMinimumWidth(44)
        self._lay_out()

    def _make_maps(self) -> QComboBox:
        box = QComboBox()
        box.setObjectName("tensorMap")
        box.setAccessibleName("Colour map")
        box.setToolTip("Colour map")
        box.setIconSize(QSize(34, 10))
        for name in COLOR_MAPS:
            box.addItem(QIcon(map_swatch(name)), name, name)
            box.setItemData(box.count() - 1, MAP_TIPS[name], Qt.ItemDataRole.ToolTipRole)
        box.activated.connect(self._on_map_activated)
        return _dense(box)

    def _make_scopes(self) -> QComboBox:
        box = QComboBox()
        box.setObjectName("tensorScope")
        box.setAccessibleName("Same range")
        box.setToolTip("The values that the automatic range is fitted to")
        box.addItems([_scope_text(scope) for scope in Scope])
        box.setCurrentIndex(list(Scope).index(Scope.TENSOR))
        box.activated.connect(self._on_scope_activated)
        return _dense(box)

    def _lay_out(self) -> None:
        actions = self._actions
        grid, table = tool_button(actions["tensor.grid"]), tool_button(actions["tensor.table"])
        marks = [
            tool_button(actions[name], text=True) for name in ("tensor.nan", "tensor.clip")
        ]
        zooms = [
            tool_button(actions[f"tensor.{name}"]) for name in ("zoomOut", "zoomIn", "fit")
        ]
        first, second = _separator(), _separator()
        before, behind = QWidget(), QWidget()
        self._between = before, behind, first
        for gap in (before, behind):
            gap.setFixedWidth(_GAP)
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 0, 6, 0)
        row.setSpacing(2)
        row.addWidget(self.member)
        row.addWidget(self.channel)
        row.addWidget(self.reason)
        row.addWidget(before)
        row.addWidget(self.errors, 1)
        row.addWidget(behind)
        for widget in (first, grid, table, self.maps, self.scopes, second, *marks):
            row.addWidget(widget)
        row.addStretch(1)
        for widget in (zooms[0], self.zoom, zooms[1], zooms[2]):
            row.addWidget(widget)
        # What is hidden first with little room; the combo box is shortened before.
        self._dispensable: list[tuple[QWidget, ...]] = [
            (self.reason,), (second, marks[1]), (self.scopes,), (self.channel.label,),
            (marks[0],), (self.channel.total,), (self.maps,), (self.zoom,),
        ]  # fmt: skip

    def show_member(self, place: int, count: int) -> None:
        """Show the chooser for members of a tuple, unless `count` is 0."""
        self.member.setVisible(count > 0)
        self.member.show_choice(place, count)
        self._make_room()

    def show_channel(self, channel: int, count: int) -> None:
        """Show the chooser for channels, unless there is only one."""
        self.channel.setVisible(count > 1)
        self.channel.show_choice(channel, count)
        self._make_room()

    def show_reason(self, text: str) -> None:
        """Say why the channel is shown, if the user did not choose it; ``""`` for nothing."""
        if text != self.reason.text():
            self.reason.setText(text)
            self.reason.setToolTip(
                f"Channel {self.channel.box.value()}: {text}" if text else ""
            )
            self._make_room()

    def show_errors(self, *, shown: bool) -> None:
        """Show the strip with the difference of each channel."""
        if shown is self.errors.isHidden():
            self.errors.setVisible(shown)
            self._make_room()

    def show_map(self, name: str, *, automatic: bool) -> None:
        """Show the current colour map."""
        self.maps.setCurrentIndex(self.maps.findData(name))
        how = "chosen by the values' signs" if automatic else "chosen by you"
        self.maps.setToolTip(f"Colour map {name}, {how}")

    def show_scope(self, scope: Scope) -> None:
        """Show the scope of the range."""
        self.scopes.setCurrentIndex(list(Scope).index(scope))

    def show_zoom(self, text: str) -> None:
        """Show the zoom."""
        self.zoom.setText(text)

    def _make_room(self) -> None:
        """Hide controls that do not fit, the least important first."""
        layout = self.layout()
        if layout is None or not self.width():
            return
        for widgets in self._dispensable:
            for widget in widgets:
                widget.show()
        self.reason.setVisible(bool(self.reason.text()))
        choices = self.member, self.channel, self.errors
        for widget in self._between:
            widget.setVisible(not all(choice.isHidden() for choice in choices))
        self._name_scopes(briefly=False)
        if layout.sizeHint().width() > self.width():
            self._name_scopes(briefly=True)
        for widgets in self._dispensable:
            if layout.sizeHint().width() <= self.width():
                break
            for widget in widgets:
                widget.hide()
            layout.invalidate()

    def _name_scopes(self, *, briefly: bool) -> None:
        for place, scope in enumerate(Scope):
            self.scopes.setItemText(place, _scope_text(scope, briefly=briefly))
        layout = self.layout()
        if layout is not None:
            layout.invalidate()

    @Slot(int)
    def _on_map_activated(self, place: int) -> None:
        self._actions.map_chosen.emit(self.maps.itemData(place))

    @Slot(int)
    def _on_scope_activated(self, place: int) -> None:
        self._actions.scope_chosen.emit(list(Scope)[place])

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self._make_room()


def tool_button(action: QAction, *, text: bool = False) -> QToolButton:
    """Make a button of the size used inside panels."""
    button = QToolButton()
    button.setDefaultAction(action)
    button.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
    button.setIconSize(QSize(15, 15))
    button.setFixedHeight(24)
    if text:
        button.setIconSize(QSize(11, 11))
        button.setProperty("accent", True)  # noqa: FBT003
        button.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
    elif action.icon().isNull():
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextOnly)
    else:
        button.setFixedWidth(24)
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
    return button


def _scope_text(scope: Scope, *, briefly: bool = False) -> str:
    return scope.value if briefly else f"Same range: {scope.value}"


def _separator() -> QFrame:
    line = QFrame()
    line.setProperty("role", "line")
    line.setStyleSheet("min-height: 19px; max-height: 19px; margin: 0 3px;")
    line.setFixedWidth(7)
    return line


def _dense(box: QComboBox) -> QComboBox:
    box.setProperty("dense", True)  # noqa: FBT003 - Qt's signature
    box.setFocusPolicy(Qt.FocusPolicy.TabFocus)
    box.setMinimumContentsLength(6)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    return box
