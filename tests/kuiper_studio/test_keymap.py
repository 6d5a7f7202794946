"""Keys: presets, changes, conflicts, and that the whole window shows those that hold."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QPushButton

from kuiper_studio.commands import COMMANDS
from kuiper_studio.dialogs.preferences_dialog import PreferencesDialog
from kuiper_studio.dialogs.shortcuts import grouped_shortcuts
from kuiper_studio.keymap import PRESETS, Keymap
from kuiper_studio.tensor_view import TENSOR_COMMANDS

ALL = (*COMMANDS, *TENSOR_COMMANDS)
STEP = next(command for command in COMMANDS if command.id == "debug.step")
STOP = next(command for command in COMMANDS if command.id == "debug.stop")
CHAIN = ("pnnx.Input in 0 1 0 #0=(1,2,4,4)f32", "nn.ReLU relu 1 1 0 1", "pnnx.Output out 1 0 1")


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_no_conflicts_and_only_known_commands(preset):
    assert Keymap(preset).conflicts(ALL) == {}
    assert set(PRESETS[preset]) <= {command.id for command in ALL}
    for keys in PRESETS[preset].values():
        for key in keys:
            assert QKeySequence(key).toString() == key


def test_keys_of_the_presets():
    expected = {"visual-studio": ("F10",), "jetbrains": ("F8",), "renderdoc": ("F10",)}
    assert {name: Keymap(name).keys_of(STEP) for name in PRESETS} == expected


def test_changes_come_before_the_preset_and_are_undone():
    changed = Keymap("jetbrains").with_keys(STEP, ("Ctrl+Y",))
    assert changed.keys_of(STEP) == ("Ctrl+Y",)
    assert changed.is_changed(STEP)
    assert changed.without_change(STEP) == Keymap("jetbrains")
    assert changed.with_keys(STEP, ("F8",)) == Keymap("jetbrains")


def test_conflicts_are_found_however_a_key_is_written():
    keymap = Keymap().with_keys(STEP, ("shift+f5",))
    assert {key: set(users) for key, users in keymap.conflicts(ALL).items()} == {
        "Shift+F5": {STEP, STOP}
    }


def test_a_keymap_is_stored(settings):
    keymap = Keymap("renderdoc").with_keys(STEP, ("Ctrl+Y",)).with_keys(STOP, ())
    keymap.store(settings)
    assert Keymap.stored(settings) == keymap


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"debug.step": 3}', "null"])
def test_a_damaged_store_is_the_default(settings, text):
    settings.setValue("keys/preset", "emacs")
    settings.setValue("keys/changes", text)
    assert Keymap.stored(settings) == Keymap()


@pytest.fixture
def window(open_window, make_pair):
    return open_window(make_pair(*CHAIN), [np.zeros((1, 2, 4, 4), np.float32)])


def choose(monkeypatch, window, how):
    def run(dialog):
        how(dialog)
        return dialog.ok.isEnabled()

    monkeypatch.setattr(PreferencesDialog, "exec", run)
    window.findChild(QAction, "edit.preferences").trigger()


def test_a_preset_holds_in_the_whole_window(qtbot, window, open_window, monkeypatch, settings):
    def jetbrains(dialog):
        dialog.keys.preset.setCurrentText("JetBrains")

    choose(monkeypatch, window, jetbrains)
    step = window.findChild(QAction, "debug.step")
    assert step.toolTip() == "Run one operator, and show what it computed (F8)"
    assert ("Step", ("F8",)) in grouped_shortcuts([step])["Debug"]
    assert window.graph_view.canvas._painter.step_key == "F8"
    assert window.findChild(QPushButton, "searchBox").text().endswith("Ctrl+Shift+A")
    assert "step (F8) or continue (F9)" in window.tensor_view.message.detail.text()
    window.show()
    qtbot.waitExposed(window)
    window.activateWindow()
    qtbot.keyClick(window.graph_view.canvas, Qt.Key.Key_F8)
    qtbot.waitUntil(lambda: window.session.position == 1)
    window.close()
    again = open_window()
    assert again.findChild(QAction, "debug.step").shortcut().toString() == "F8"


def test_a_tensor_command_gets_another_key(window, monkeypatch):
    def change(dialog):
        page = dialog.keys
        dialog.search.setText("grid")
        row = next(n for n, c in enumerate(ALL) if c.id == "tensor.grid")
        page.table.setCurrentItem(page.table.topLevelItem(row))
        page.editor.setKeySequence(QKeySequence("Ctrl+Shift+U"))

    choose(monkeypatch, window, change)
    grid = window.tensor_view.pane.actions_table["tensor.grid"]
    assert grid.shortcut().toString() == "Ctrl+Shift+U"
    assert grid.toolTip().split("\n")[0].endswith("(Ctrl+Shift+U)")
