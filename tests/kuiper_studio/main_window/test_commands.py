"""Commands of the main window: their table, keys, menus, and what is missing for them."""

from __future__ import annotations

import pytest
from driving import dock, enabled, trigger
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QMenu, QToolButton
from shiboken6 import isValid

from kuiper_studio.commands import COMMANDS, CommandState
from kuiper_studio.dialogs.command_palette import CommandPalette
from kuiper_studio.keymap import Keymap
from kuiper_studio.session import RunState
from kuiper_studio.surfaces import MENUS, Surface, commands_on
from kuiper_studio.tensor_view.actions import COMMANDS as TENSOR_COMMANDS


@pytest.mark.parametrize("key", ["E", "K"])
def test_a_command_has_its_key_while_a_field_has_the_focus(qtbot, window, key):
    class Greedy(QLineEdit):
        """Takes every key, as Qt's fields take Ctrl+E and Ctrl+K on X11."""

        def event(self, event):
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            return super().event(event)

    field = Greedy("text", window.input_panel)
    field.show()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    code = getattr(Qt.Key, f"Key_{key}")
    for modifier, taken in (
        (Qt.KeyboardModifier.ControlModifier, False),
        (Qt.KeyboardModifier.NoModifier, True),  # a letter is typed
    ):
        event = QKeyEvent(QEvent.Type.ShortcutOverride, code, modifier)
        QApplication.sendEvent(field, event)
        assert event.isAccepted() is taken


def test_a_letter_is_that_of_the_open_menu(qtbot, window):
    """S stretches the colours of the tensor view too; a menu says that it takes the letter.

    Qt asks by this event before it looks for commands with the key.
    """
    trigger(qtbot, window, "debug.step")  # a tensor has a menu of its dimensions
    for _ in range(2):
        for menu in window.findChildren(QMenu):
            menu.aboutToShow.emit()  # which fills it, also with other menus
    bar = window.menuBar()
    # Qt's own menu of a bar that is too long has the bar as parent, and no title.
    menus = [m for m in window.findChildren(QMenu) if m.title() or m.parent() is not bar]
    titles = {menu.title().partition(",")[0] for menu in menus}
    assert {"&Analyse", "&Tensor", "&What the dimensions mean", "Dimension 1"} <= titles
    assert "" in titles  # those of views, which have no title
    for menu in (bar, *menus):
        for modifier, text, taken in (
            (Qt.KeyboardModifier.NoModifier, "s", True),
            (Qt.KeyboardModifier.ControlModifier, "\x13", False),
        ):
            event = QKeyEvent(QEvent.Type.ShortcutOverride, Qt.Key.Key_S, modifier, text)
            event.ignore()
            QApplication.sendEvent(menu, event)
            assert event.isAccepted() is taken, menu.title()


@pytest.mark.parametrize("surface", [Surface.GRAPH, Surface.GRAPH_OPERATOR, Surface.OPERATORS])
def test_a_context_menu_goes_when_it_is_closed(window, surface):
    before = set(map(id, window.findChildren(QMenu)))
    window.commands.popup(surface, window.mapToGlobal(QPoint(100, 100)))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    menu.close()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not isValid(menu)
    assert set(map(id, window.findChildren(QMenu))) <= before


def test_view_commands(qtbot, window):
    for command in ("view.zoomIn", "view.zoomOut", "view.zoomReset", "view.fit"):
        trigger(qtbot, window, command)
    trigger(qtbot, window, "view.orientation")
    trigger(qtbot, window, "debug.nextOperator")
    assert window.session.selected == "relu"
    trigger(qtbot, window, "debug.previousOperator")
    assert window.session.selected == "in"
    trigger(qtbot, window, "view.centerCurrent")
    trigger(qtbot, window, "edit.filter")


def test_f1_explains_the_selected_operator(qtbot, window):
    window.session.select("relu")
    window.findChild(QAction, "help.operator").trigger()
    panel = window.properties_panel
    qtbot.waitUntil(lambda: window.focusWidget() is panel.note_view)
    qtbot.waitUntil(lambda: "max(x, 0)" in panel.note_view.text())
    assert window.findChild(QAction, "help.operator").shortcut().toString() == "F1"
    window.session.select("")
    assert not enabled(window, "help.operator")


def test_f1_brings_the_closed_properties_back(window):
    dock(window, "properties").close()
    window.session.select("relu")
    window.findChild(QAction, "help.operator").trigger()
    assert window.properties_panel.isVisible()


@pytest.mark.parametrize("view", ["graph_view", "operators_panel", "timeline_panel"])
def test_context_menus_are_about_the_operator_under_them(qtbot, window, view):
    source = getattr(window, view)
    signal = getattr(source, "canvas", source).menu_requested
    window.session.select("in")
    signal.emit("relu", QPoint(5, 5))
    assert window.session.selected == "relu"
    menu = QApplication.activePopupWidget()
    run_to, toggle = menu.actions()[:2]
    toggle.trigger()
    assert window.session.breakpoints == {"relu"}
    run_to.trigger()
    qtbot.waitUntil(lambda: not window.session.busy)
    assert window.session.is_current("relu")
    menu.close()


class TestCommandTable:
    def test_ids_are_unique_and_shortcuts_too(self):
        ids = [command.id for command in COMMANDS]
        assert len(ids) == len(set(ids))
        keys = [key for command in COMMANDS for key in command.keys]
        assert len(keys) == len(set(keys))

    def test_contract(self):
        keys = {command.id: command.keys[:1] for command in COMMANDS}
        assert keys["debug.step"] == ("F10",)
        assert keys["debug.continue"] == ("F5",)
        assert keys["debug.runToSelected"] == ("Ctrl+F10",)
        assert keys["debug.restart"] == ("Ctrl+Shift+F5",)
        assert keys["debug.stop"] == ("Shift+F5",)
        assert keys["view.commandPalette"] == ("Ctrl+Shift+P",)
        assert {"file.open", "file.openInput", "file.exportDump", "edit.find", "view.fit"} <= (
            keys.keys()
        )

    def test_every_command_is_in_a_menu(self):
        in_menus_of_their_own = {
            Surface.RECENT_MODELS, Surface.RECENT_LAYERS, Surface.COLOR_BY, Surface.GROUPS,
            Surface.BOOKMARKS,
        }  # fmt: skip
        for command in COMMANDS:
            surfaces = {place.surface for place in command.places}
            assert surfaces & {*MENUS, *in_menus_of_their_own}, command.id

    def test_surfaces(self):
        """The entries of each surface in order, with "" for a separator."""

        def ids(surface):
            found, section = [], 1
            for place, entry in commands_on(surface, COMMANDS):
                found += [""] if place.section != section else []
                section = place.section
                found.append(entry.id)
            return " ".join(found)

        assert ids(Surface.TOOL_BAR) == (
            "file.open  debug.restart debug.stepBack debug.step debug.continue "
            "debug.runToSelected debug.stop  debug.toggleBreakpoint"
        )
        assert ids(Surface.GRAPH) == (
            "view.fit view.zoomReset view.orientation view.legend file.exportGraph  "
            "edit.find edit.clearMarks  view.openGroup view.closeGroup"
        )
        assert ids(Surface.GRAPH_OPERATOR) == (
            "debug.runToSelected debug.toggleBreakpoint edit.toggleBookmark  "
            "view.centerCurrent file.exportDump view.showWeight "
            "edit.markUpstream edit.markDownstream edit.markPaths view.closeGroup  "
            "debug.supplyOutput debug.withdrawOutput file.loadLayers  "
            "analyse.matchByHand analyse.extract  "
            "help.operator"
        )
        assert ids(Surface.OPERATORS) == (
            "debug.runToSelected debug.toggleBreakpoint edit.toggleBookmark view.showOutput "
            "view.showWeight debug.supplyOutput "
            "debug.withdrawOutput  edit.copyName edit.copyType edit.filterByType "
            "view.sortByTime edit.markUpstream edit.markDownstream edit.markPaths  "
            "analyse.matchByHand analyse.extract"
        )
        assert ids(Surface.COMPARISON) == (
            "analyse.worstElement  analyse.matchByHand analyse.removeMatch analyse.undoMatch  "
            "analyse.extract"
        )
        assert ids(Surface.TIMELINE) == "debug.runToSelected debug.toggleBreakpoint"

    @pytest.mark.parametrize(
        ("state", "enabled", "disabled"),
        [
            pytest.param(
                CommandState(RunState.EMPTY),
                "file.open file.loadLayers view.commandPalette debug.memoryLimit",
                "file.openInput file.close debug.step debug.stop edit.copyName help.operator",
                id="empty",
            ),
            pytest.param(
                CommandState(RunState.LOADING),
                "file.open file.close",
                "file.loadLayers file.reload debug.step",
                id="loading",
            ),
            pytest.param(
                CommandState(RunState.NEED_INPUT),
                "debug.step debug.continue file.openInput debug.seed",
                "debug.stepBack debug.stop debug.runToSelected debug.selfCheck",
                id="need-input",
            ),
            pytest.param(
                CommandState(
                    RunState.STOPPED, selected=True, has_output=True, can_supply=True
                ),
                "debug.step debug.stepBack debug.runToSelected debug.toggleBreakpoint "
                "debug.supplyOutput view.showOutput edit.filterByType debug.selfCheck",
                "debug.withdrawOutput file.unloadLayers debug.forgetKernels",
                id="stopped",
            ),
            pytest.param(
                CommandState(
                    RunState.RUNNING, selected=True, can_supply=True, is_supplied=True
                ),
                "debug.stop debug.restart debug.toggleBreakpoint",
                "debug.step debug.continue debug.supplyOutput debug.withdrawOutput debug.seed "
                "debug.runToSelected debug.selfCheck",
                id="running",
            ),
            pytest.param(
                CommandState(
                    RunState.FINISHED, selected=True, can_supply=True, is_supplied=True,
                    has_layer_files=True, has_pinned_kernels=True,
                ),
                "debug.runToSelected debug.withdrawOutput file.unloadLayers "
                "debug.forgetKernels debug.stepBack",
                "debug.step debug.continue view.showOutput",
                id="finished",
            ),
        ],
    )  # fmt: skip
    def test_when_enabled(self, state, enabled, disabled):
        found = {command.id: command.enabled(state) for command in COMMANDS}
        assert all(found[name] for name in enabled.split())
        assert not any(found[name] for name in disabled.split())

    def test_every_action_does_something(self, window):
        for command in COMMANDS:
            action = window.findChild(QAction, command.id)
            assert action.receivers("2triggered(bool)") > 0, command.id
            assert action.toolTip()

    @pytest.mark.parametrize(
        "name", ["graph", "tensor", "operators", "properties", "input", "log"]
    )
    def test_object_names(self, window, name):
        assert window.findChild(object, name) is not None


def test_every_menu_fits_a_screen_of_768_pixels(window):
    """Below the menu bar, in one column."""
    for menu in window.menuBar().findChildren(QMenu):
        if menu.title():
            menu.aboutToShow.emit()
            lines = [menu.actionGeometry(action).height() for action in menu.actions()]
            assert sum(lines) <= 740, menu.title()


def test_every_command_says_what_it_does(window):
    """More than its name, in a sentence or two, and with its key."""
    for command in (*COMMANDS, *TENSOR_COMMANDS):
        bare = command.text.replace("&", "").rstrip("…").lower()
        assert command.tip.lower() not in ("", bare), command.id
        assert command.tip[0].isupper() or not command.tip[0].isalpha(), command.id
        assert not command.tip.endswith("."), command.id
        assert len(command.tip) <= 180, command.id
    for name, action in window.commands.actions.items():
        keys = window.commands.shown_keys.get(name)
        assert not keys or keys in action.toolTip(), name


class TestWhatIsMissing:
    """A disabled command says why it is."""

    def tip(self, window, command):
        return window.actions_by_id[command].toolTip().split("\n")

    @staticmethod
    def disabled(window):
        return [action for action in window.commands.actions.values() if not action.isEnabled()]

    def test_in_tool_tips(self, qtbot, window):
        about = "Pick the element that differs most, to see where in the tensor it is (Shift+V)"
        assert self.tip(window, "analyse.worstElement") == [
            about,
            "There is no comparison yet: Analyse → Compare…",
        ]
        assert self.tip(window, "debug.stepBack")[1:] == ["No operator has run yet"]
        assert len(self.tip(window, "debug.step")) == 1
        trigger(qtbot, window, "debug.continue")
        assert self.tip(window, "debug.step")[1:] == [
            "The run is finished: step back, or restart"
        ]
        assert len(self.tip(window, "debug.stepBack")) == 1
        buttons = [b for b in window.findChildren(QToolButton) if b.text() == "Step"]
        assert "The run is finished" in buttons[0].toolTip()

    def test_of_all_commands(self, qtbot, open_window, window):
        empty = open_window()
        for shown in (window, empty):
            assert self.disabled(shown)
            for action in self.disabled(shown):
                about, why = action.toolTip().split("\n")
                assert about, action.objectName()
                assert why[0].isupper(), action.objectName()
                assert not why.endswith("."), action.objectName()
        assert self.tip(empty, "debug.step")[1:] == ["No model is open"]

    def test_other_keys_leave_it(self, window):
        window.commands.use_keys(Keymap("jetbrains"))
        assert self.tip(window, "debug.stepBack")[1:] == ["No operator has run yet"]

    def test_in_the_palette(self, qtbot, window):
        trigger(qtbot, window, "view.commandPalette")
        palette = window.findChild(CommandPalette)
        palette.box.setText("> worst")
        entry = palette.model.entry(0)
        assert entry.missing == "there is no comparison yet: Analyse → Compare…"
        spoken = palette.model.index(0).data(Qt.ItemDataRole.AccessibleTextRole)
        assert spoken.endswith("there is no comparison yet: Analyse → Compare…")
        palette.box.setText("> reload")
        assert palette.model.entry(0).missing == ""
