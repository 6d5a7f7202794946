"""The tool bar: commands, backend, input, and the search box at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeySequence, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QComboBox,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolBar,
    QToolButton,
    QWidget,
)
from typing_extensions import override

from engine.backend_names import BACKEND_NAMES, installed_version, missing_packages
from kuiper_studio.commands import COMMANDS
from kuiper_studio.icons import icon
from kuiper_studio.item_models.text import caption_text, tip_text
from kuiper_studio.session import dump_name
from kuiper_studio.surfaces import Surface, commands_on

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtGui import QAction, QResizeEvent

    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Theme

__all__ = ["MainToolBar"]

_SEARCH: Final = 300  # width of the search box
_ABOUT_MODEL: Final = "aboutModel"  # actions that are hidden without a model

_TIPS: Final = {
    "auto": "for each operator the fastest kernel that agrees with NumPy, measured",
    "numpy": "the reference, for every operator",
}
_LIBRARIES: Final = {"onnxruntime": "ONNX Runtime", "ncnn": "ncnn"}


class MainToolBar(QToolBar):
    """The window's one tool bar.

    Parameters
    ----------
    session : StudioSession
    theme : Theme
    actions : dict of str to QAction
        All commands by id.

    Signals
    -------
    search_requested, input_requested
        The search box, or the button of the input, was pressed.
    """

    search_requested = Signal()
    input_requested = Signal()

    def __init__(
        self,
        session: StudioSession,
        theme: Theme,
        actions: dict[str, QAction],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__("Tool bar", parent)
        self._session, self._theme, self._actions = session, theme, actions
        self.setObjectName("toolBar")
        self.setMovable(False)
        self.setIconSize(QSize(18, 18))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        self._add_commands(Surface.TOOL_BAR, actions)
        self.addSeparator().setObjectName(_ABOUT_MODEL)
        self._add_choices()
        spring = QWidget()
        spring.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.addWidget(spring)
        self.addWidget(self._make_search_box(actions["view.commandPalette"]))
        self._add_commands(Surface.TOOL_BAR_END, actions)
        session.graph_changed.connect(self._on_inputs_changed)
        session.inputs_changed.connect(self._on_inputs_changed)
        self._on_inputs_changed()

    def _add_commands(self, surface: Surface, actions: dict[str, QAction]) -> None:
        section = None
        for place, command in commands_on(surface, COMMANDS):
            if section not in (None, place.section):
                self.addSeparator()
            section = place.section
            action = actions[command.id]
            self.addAction(action)
            button = self.widgetForAction(action)
            if place.with_text and isinstance(button, QToolButton):
                button.setText(action.text().replace("&", "").rstrip("…"))

    def _buttons_with_text(self) -> Iterator[QToolButton]:
        for place, command in commands_on(Surface.TOOL_BAR, COMMANDS):
            button = self.widgetForAction(self._actions[command.id])
            if place.with_text and isinstance(button, QToolButton):
                yield button

    def _add_choices(self) -> None:
        self._backend = QComboBox()
        self._backend.setObjectName("backendChoice")
        self._backend.setAccessibleName("Backend")
        model = QStandardItemModel(self._backend)
        for name in BACKEND_NAMES:
            item = _BackendItem(name)
            item.setData(name, Qt.ItemDataRole.UserRole)
            item.setEnabled(not missing_packages(name))
            model.appendRow(item)
        self._backend.setModel(model)
        self._backend.currentTextChanged.connect(self._session.set_backend)
        self._session.backend_changed.connect(self._on_backend_changed)
        self._on_backend_changed()
        self._input = QPushButton()
        self._input.setObjectName("inputChoice")
        self._input.setProperty("role", "field")
        self._input.setIcon(icon("image", self._theme, "text2"))
        self._input.clicked.connect(self.input_requested)
        for caption, widget in (("Backend", self._backend), ("Input", self._input)):
            self.addWidget(_captioned(caption, widget)).setObjectName(_ABOUT_MODEL)

    def _make_search_box(self, action: QAction) -> QPushButton:
        box = QPushButton()
        box.setObjectName("searchBox")
        box.setProperty("role", "field")
        box.setIcon(icon("search", self._theme, "text3"))
        box.clicked.connect(self.search_requested)
        self._search = box
        action.changed.connect(self._show_search_key)
        return box

    @Slot()
    def _show_search_key(self) -> None:
        """Say what the search box is for, briefly where the commands need the room.

        Where that is not enough, commands are icons: no text of theirs is cut.
        """
        action, box = self._actions["view.commandPalette"], self._search
        key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        box.setToolTip(action.toolTip())
        beside, alone = (
            Qt.ToolButtonStyle.ToolButtonTextBesideIcon, Qt.ToolButtonStyle.ToolButtonIconOnly,
        )  # fmt: skip
        long, brief = "Search model or run a command", "Search"
        for text, least, style in (
            (long, _SEARCH, beside), (brief, 0, beside), (brief, 0, alone)
        ):  # fmt: skip
            box.setText(f"{text}   {key}".rstrip())
            box.setMinimumWidth(least)
            for button in self._buttons_with_text():
                button.setToolButtonStyle(style)
            if (row := self.layout()) is not None:
                row.invalidate()  # a request that is under way keeps old sizes
            if self.sizeHint().width() <= self.width():
                break

    @Slot()
    def _on_backend_changed(self) -> None:
        """Show the backend, or the dump whose kernels are in use."""
        session, choice = self._session, self._backend
        name, tip = session.backend, _backend_tip(session.backend)
        if session.kernels_from is not None:
            tip = (
                f"as in {dump_name(session.kernels_from)}, {session.kernels_text}; "
                "choose a backend to stop using them"
            )
        with QSignalBlocker(choice):
            while choice.count() > len(BACKEND_NAMES):
                choice.removeItem(choice.count() - 1)
            if session.kernels_from is not None:
                choice.addItem(icon("pin-filled", self._theme, "focus"), name, name)
                choice.setItemData(choice.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
            choice.setCurrentText(name)
        choice.setToolTip(tip_text(f"Backend that computes the operators. {name}: {tip}"))

    @Slot()
    def _on_inputs_changed(self) -> None:
        graph = self._session.graph
        # Asked for each time: PySide6 may drop its own objects of actions that Qt has made.
        for action in self.actions():
            if action.objectName() == _ABOUT_MODEL:
                action.setVisible(graph is not None)
        sources = list(self._session.inputs.values())
        # Several inputs may be members of one file.
        names = list(
            dict.fromkeys(s.path.name if s.path is not None else s.text for s in sources)
        )
        text = names[0] if names else "none yet"
        if len(names) > 1:
            text += f" and {len(names) - 1} more"
        self._input.setText(caption_text(text))
        self._input.setToolTip(
            f"{self._actions['file.openInput'].toolTip()}\n" + "\n".join(names)
        )
        self._show_search_key()

    # Overrides of Qt methods

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_search_key()


class _BackendItem(QStandardItem):
    """A backend to choose; its tip is made when it is shown, for versions take long to read."""

    @override
    def data(self, role: int = Qt.ItemDataRole.UserRole + 1) -> object:
        if role == Qt.ItemDataRole.ToolTipRole:
            return _backend_tip(self.text())
        return super().data(role)


def _backend_tip(name: str) -> str:
    """Return the tip of a backend: its description, or how to install it."""
    missing = missing_packages(name)
    if missing:
        return f"not installed: pip install {' '.join(missing)}"
    if name in _TIPS:
        return _TIPS[name]
    library = " ".join(filter(None, (_LIBRARIES.get(name), installed_version(name))))
    return f"{library} for the operators that it supports, else NumPy"


def _captioned(caption: str, widget: QWidget) -> QWidget:
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(6, 0, 6, 0)
    row.setSpacing(8)
    label = QLabel(caption)
    label.setProperty("role", "caption")
    label.setBuddy(widget)
    row.addWidget(label)
    row.addWidget(widget)
    return holder
