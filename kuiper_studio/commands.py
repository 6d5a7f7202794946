"""Every user action, in one table.

Menus, tool bar, shortcuts, command palette and tests share it; an action's objectName is
its command's id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QEvent, QObject, Slot
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QAbstractSpinBox, QApplication, QLineEdit, QWidget
from typing_extensions import override

from kuiper_studio.icons import icon
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from kuiper_studio.theme import Theme

__all__ = ["COMMANDS", "MENUS", "TOOL_BAR", "Command", "FieldKeys", "make_actions"]

_OPEN: Final = frozenset(set(RunState) - {RunState.EMPTY, RunState.LOADING})
# Without an input a run asks for one.
_RUNNABLE: Final = frozenset({RunState.NEED_INPUT, RunState.READY, RunState.STOPPED})
_STARTED: Final = frozenset({RunState.STOPPED, RunState.FINISHED, RunState.FAILED})
_ALWAYS: Final = frozenset(RunState)


@dataclass(frozen=True, slots=True)
class Command:
    """A user action.

    Attributes
    ----------
    id : str
        Its name everywhere, e.g. ``debug.step``.
    text : str
        In menus and the palette, with its mnemonic.
    tip : str
        What it does, in a few words.
    keys : tuple of str
        Shortcuts in Qt's portable spelling; the first is shown.
    icon : str
        Name of an icon, ``""`` for none.
    states : frozenset of RunState
        When it is enabled.
    checkable : bool
    """

    id: str
    text: str
    tip: str
    keys: tuple[str, ...] = ()
    icon: str = ""
    states: frozenset[RunState] = _ALWAYS
    checkable: bool = False


COMMANDS: Final = (
    Command("file.open", "&Open…", "Open a .param/.bin pair", ("Ctrl+O",), "open"),
    Command("file.openSample", "Open &sample", "Open the sample model with its input"),
    Command("file.openInput", "Open &input…", "Choose the image or array to feed",
            ("Ctrl+I",), "image", _OPEN),
    Command("file.openLabels", "Open &labels…", "Choose a text file with one class name a line",
            states=_OPEN),
    Command("file.loadLayers", "Load la&yers…", "Run a Python file with layers of your own",
            icon="layers", states=_ALWAYS - {RunState.LOADING}),
    Command("file.unloadLayers", "&Unload layers", "Go back to the layers that are built in"),
    Command("file.reload", "&Reload model",
            "Open the model's files anew, and those of layers, and run to where it stands",
            ("Ctrl+R",), states=_OPEN),
    Command("file.close", "&Close model", "Close the model", ("Ctrl+W",),
            states=_OPEN | {RunState.LOADING}),
    Command("file.exportDump", "&Dump of tensors…", "Write every operator's tensors to files",
            ("Ctrl+E",), "export", _OPEN),
    Command("file.exportPicture", "Tensor as &picture…", "Save the tensor view's picture",
            states=_OPEN),
    Command("file.exportGraph", "&Graph as picture…", "Save the graph as SVG or PNG",
            ("Ctrl+Shift+E",), states=_OPEN),
    Command("file.clearRecent", "&Clear recent models", "Forget the recent models"),
    Command("file.clearRecentLayers", "&Clear recent layers", "Forget the recent layer files"),
    Command("file.quit", "&Quit", "Close the window", ("Ctrl+Q",)),
    Command("edit.find", "&Find operator", "Filter the list of operators", ("Ctrl+F",),
            "search", _OPEN),
    Command("view.fit", "&Fit graph", "Show the whole graph", icon="fit", states=_OPEN),
    Command("view.zoomIn", "Zoom &in", "Enlarge the graph", ("Ctrl+=", "Ctrl++"), "plus",
            _OPEN),
    Command("view.zoomOut", "Zoom &out", "Shrink the graph", ("Ctrl+-",), "minus", _OPEN),
    Command("view.zoomReset", "&100 %", "Show the graph at its own size", ("Ctrl+Home",),
            states=_OPEN),
    Command("view.orientation", "Turn &orientation", "Lay the graph out left-right or top-down",
            ("Ctrl+K",), states=_OPEN),
    Command("view.legend", "Le&gend", "Show what the marks of the graph mean", states=_OPEN,
            checkable=True),
    Command("view.centerCurrent", "Go to &next operator", "Centre the operator that runs next",
            ("Ctrl+J",), "target", _OPEN),
    Command("view.themeSystem", "&System theme", "Follow the desktop's theme", checkable=True),
    Command("view.themeLight", "&Light theme", "Use the light theme", checkable=True),
    Command("view.themeDark", "&Dark theme", "Use the dark theme", checkable=True),
    Command("view.toggleTheme", "Switch &theme", "Switch between light and dark",
            ("Ctrl+Shift+T",), "theme"),
    Command("view.resetLayout", "&Reset layout", "Put the docks back where they were made",
            states=_OPEN),
    Command("view.fullScreen", "F&ull screen", "Use the whole screen", ("Shift+Alt+Return",),
            checkable=True),
    Command("view.commandPalette", "&Command palette…", "Search operators and run a command",
            ("Ctrl+Shift+P",), "search"),
    Command("debug.continue", "&Continue", "Run to the next breakpoint or the end", ("F5",),
            "continue", _RUNNABLE),
    Command("debug.step", "&Step", "Run one operator", ("F10",), "step", _RUNNABLE),
    Command("debug.stepBack", "Step &back", "Undo the last step", ("F8", "Alt+["), "step-back",
            _STARTED),
    Command("debug.runToSelected", "Run &to selected", "Run till the selected operator is next",
            ("Ctrl+F10",), "run-to", _RUNNABLE | {RunState.FINISHED}),
    Command("debug.restart", "&Restart", "Go to the first operator", ("Ctrl+Shift+F5",),
            "restart", _STARTED | {RunState.RUNNING}),
    Command("debug.stop", "St&op", "Stop running; when stopped, go to the start", ("Shift+F5",),
            "stop", _STARTED | {RunState.RUNNING}),
    Command("debug.toggleBreakpoint", "Toggle &breakpoint",
            "Stop before the selected operator, or no longer", ("F9",), "breakpoint", _OPEN),
    Command("debug.clearBreakpoints", "&Delete all breakpoints", "Stop nowhere",
            ("Ctrl+Shift+F9",), states=_OPEN),
    Command("debug.supplyOutput", "S&upply output…",
            "Use a .npy or .npz instead of what the selected operator gives",
            icon="supply", states=_OPEN - {RunState.RUNNING}),
    Command("debug.withdrawOutput", "&Withdraw supplied output",
            "Have the selected operator computed again", states=_OPEN - {RunState.RUNNING}),
    Command("debug.seed", "Ran&dom seed…", "Choose what operators that are random draw by",
            icon="dice", states=_OPEN - {RunState.RUNNING}),
    Command("debug.memoryLimit", "&Memory…",
            "Choose how much memory values may take, and how much of them is kept",
            icon="layers"),
    Command("debug.useKernels", "Use ker&nels of a dump…",
            "Compute each operator as in an earlier dump, for the same numbers again",
            icon="pin", states=_OPEN - {RunState.RUNNING}),
    Command("debug.forgetKernels", "&Forget kernels of the dump",
            "Go back to the backend that was chosen before"),
    Command("debug.selfCheck", "Self-chec&k…",
            "Compare every backend with NumPy, operator by operator",
            states=frozenset({RunState.READY}) | _STARTED),
    Command("debug.previousOperator", "Show &previous operator", "Look at the operator before",
            ("Ctrl+Left",), states=_OPEN),
    Command("debug.nextOperator", "Show ne&xt operator", "Look at the operator behind",
            ("Ctrl+Right",), states=_OPEN),
    Command("help.operator", "What is this &operator?", "Explain the selected operator's type",
            ("F1",), "help", _OPEN),
    Command("help.shortcuts", "&Keyboard shortcuts", "All shortcuts on one sheet", ("?",),
            "keyboard"),
    Command("help.about", "&About Kuiper Studio", "Version and licences", icon="info"),
)  # fmt: skip

# Menu titles and their command ids; "" is a separator; "recent", "recentLayers", "docks" and
# "tensor" are places that the window fills.
MENUS: Final = {
    "&File": (
        "file.open", "file.openSample", "recent", "", "file.openInput", "file.openLabels", "",
        "file.loadLayers", "recentLayers", "file.unloadLayers", "",
        "file.exportDump", "file.exportPicture", "file.exportGraph", "",
        "file.reload", "file.close", "", "file.quit",
    ),
    "&Edit": ("edit.find", "view.commandPalette"),
    "&View": (
        "docks", "view.resetLayout", "", "view.fit", "view.zoomIn", "view.zoomOut",
        "view.zoomReset", "view.orientation", "view.legend", "view.centerCurrent", "",
        "view.themeSystem", "view.themeLight", "view.themeDark", "view.toggleTheme", "",
        "view.fullScreen",
    ),
    "&Debug": (
        "debug.continue", "debug.step", "debug.stepBack", "debug.runToSelected", "",
        "debug.restart", "debug.stop", "", "debug.toggleBreakpoint", "debug.clearBreakpoints",
        "", "debug.supplyOutput", "debug.withdrawOutput", "debug.seed",
        "debug.memoryLimit", "", "debug.useKernels", "debug.forgetKernels", "debug.selfCheck",
        "", "debug.previousOperator", "debug.nextOperator",
    ),
    "&Tensor": ("tensor",),
    "&Help": ("help.operator", "", "help.shortcuts", "help.about"),
}  # fmt: skip

# Tool bar: ids, "" for a separator; those with text beside the icon end in "!".
TOOL_BAR: Final = (
    "file.open!", "", "debug.restart", "debug.stepBack", "debug.step!", "debug.continue!",
    "debug.runToSelected", "debug.stop", "", "debug.toggleBreakpoint",
)  # fmt: skip

# Commands' keys of one letter; none of them is one of those that edit a text everywhere.
_COMMAND_KEYS: Final = frozenset(
    key
    for command in COMMANDS
    for key in command.keys
    if key.startswith("Ctrl+") and len(key) == len("Ctrl+E") and key[-1].isalpha()
)


def make_actions(parent: QObject, theme: Theme) -> dict[str, QAction]:
    """Build the actions of all commands, by id."""
    return {command.id: _make_action(command, parent, theme) for command in COMMANDS}


def _make_action(command: Command, parent: QObject, theme: Theme) -> QAction:
    action = QAction(command.text, parent)
    action.setObjectName(command.id)
    action.setShortcuts([QKeySequence(key) for key in command.keys])
    key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    action.setToolTip(f"{command.tip} ({key})" if key else command.tip)
    action.setStatusTip(command.tip)
    action.setCheckable(command.checkable)
    if command.icon:
        token = "bp" if command.icon == "breakpoint" else "text"
        action.setIcon(icon(command.icon, theme, token))
    return action


class FieldKeys(QObject):
    """Leaves the keys of commands to them while somebody types in a field of a window.

    On X11 Qt's fields take Ctrl+E and Ctrl+K for themselves, as Emacs does: to go to the end
    of the line, and to delete up to there.

    Parameters
    ----------
    window : QWidget
    """

    def __init__(self, window: QWidget) -> None:
        super().__init__(window)
        self._window = window
        application = QApplication.instance()
        if isinstance(application, QApplication):
            application.focusChanged.connect(self._on_focus_changed)

    @Slot(QWidget, QWidget)
    def _on_focus_changed(self, old: QWidget | None, new: QWidget | None) -> None:
        # Only the field in use is watched: Python sees no other events of the application.
        if old is not None:
            old.removeEventFilter(self)
        if isinstance(new, QLineEdit | QAbstractSpinBox) and new.window() is self._window:
            new.installEventFilter(self)

    # Override of a Qt method

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            keys = QKeySequence(event.keyCombination()).toString()
            if keys in _COMMAND_KEYS:
                event.ignore()
                return True
        return super().eventFilter(watched, event)
