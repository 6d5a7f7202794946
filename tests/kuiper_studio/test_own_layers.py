"""The user's own layers in the window: menu, buttons, banner, and what is remembered."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QLabel, QMenu, QPushButton

from engine.layers import layer_files, unload_layers
from kuiper_studio.session import RunState

LAYERS = """\
from engine.layers import register

@register("my.Strange")
def strange(input):
    return input + 1
"""


@pytest.fixture(autouse=True)
def unloaded():
    yield
    unload_layers()


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def window(open_window, residual):
    """A window with a model that has an operator without a layer."""
    return open_window(residual, [np.ones((1, 3, 8, 8), np.float32)])


@pytest.fixture
def choose(monkeypatch):
    """A function that says which file the user will choose."""

    def choose(path):
        monkeypatch.setattr(
            QFileDialog, "getOpenFileName", lambda *args, **kwargs: (str(path), "")
        )

    return choose


def action(window, command):
    return window.findChild(QAction, command)


def trigger(window, command, settle):
    assert action(window, command).isEnabled(), f"{command} is disabled"
    action(window, command).trigger()
    settle(window.session)


def button(widget, text):
    found = [b for b in widget.findChildren(QPushButton) if b.text() == text and b.isVisible()]
    return found[0] if found else None


def texts(widget):
    return [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]


def run_to_end(window, settle):
    trigger(window, "debug.continue", settle)
    assert window.session.state is RunState.FINISHED
    return window.session.fetch("6")


def test_by_the_menu(window, write, choose, settle):
    assert run_to_end(window, settle) is None
    choose(write(LAYERS))
    trigger(window, "file.loadLayers", settle)
    assert run_to_end(window, settle) is not None
    np.testing.assert_array_equal(
        window.session.fetch("5"), window.session.fetch("4") + np.float32(1)
    )


def test_choosing_nothing_loads_nothing(window, choose, settle):
    choose("")
    trigger(window, "file.loadLayers", settle)
    assert layer_files() == ()


def test_the_properties_offer_it_where_a_layer_is_missing(window, write, choose, settle):
    window.session.select("tail")
    assert button(window.properties_panel, "Load layers…") is None
    window.session.select("strange")
    window.properties_panel.catch_up()
    choose(write(LAYERS))
    button(window.properties_panel, "Load layers…").click()
    settle(window.session)
    assert window.session.selected == "strange"
    assert button(window.properties_panel, "Load layers…") is None
    assert "layer from mine.py" in texts(window.properties_panel)
    window.session.select("tail")
    window.properties_panel.catch_up()
    assert not any(text.startswith("layer from") for text in texts(window.properties_panel))


def test_the_graph_offers_it_where_a_layer_is_missing(window, monkeypatch):
    shown = {}
    monkeypatch.setattr(
        "kuiper_studio.main_window.QMenu.popup",
        lambda menu, place: shown.update({a.objectName(): a for a in menu.actions()}),
    )
    window.graph_view.menu_requested.emit("tail", window.pos())
    assert "debug.toggleBreakpoint" in shown
    assert "file.loadLayers" not in shown
    window.graph_view.menu_requested.emit("strange", window.pos())
    assert "file.loadLayers" in shown


def test_a_wrong_file_is_told_and_loaded_again_when_it_is_mended(window, write, settle):
    path = write("from engine.layers import register\n\nregister('my.Strange')(nothing)\n")
    window.opening.load_layers(path)
    settle(window.session)
    assert window.banner.plain_text() == (
        f"The layers cannot be loaded\n{path}:3: NameError: name 'nothing' is not defined"
    )
    write(LAYERS)
    button(window.banner, "Load mine.py again").click()
    settle(window.session)
    assert not window.banner.isVisible()
    assert run_to_end(window, settle) is not None


def test_a_layer_that_fails_leads_back_to_its_file(window, write, settle):
    window.opening.load_layers(write(LAYERS.replace("input + 1", "undefined")))
    settle(window.session)
    trigger(window, "debug.continue", settle)
    lines = window.banner.plain_text().splitlines()
    assert lines == [
        "strange failed (my.Strange, operator #5)",
        "NameError: name 'undefined' is not defined (mine.py:5)",
    ]
    write(LAYERS)
    button(window.banner, "Load mine.py again").click()
    settle(window.session)
    assert run_to_end(window, settle) is not None


def test_reloading_runs_the_file_again(window, write, settle):
    window.opening.load_layers(write(LAYERS))
    settle(window.session)
    write(LAYERS.replace("+ 1", "* 0"))
    trigger(window, "file.reload", settle)
    assert not run_to_end(window, settle).any()


def test_unloading(window, write, settle):
    assert not action(window, "file.unloadLayers").isEnabled()
    window.opening.load_layers(write(LAYERS))
    settle(window.session)
    trigger(window, "file.unloadLayers", settle)
    assert run_to_end(window, settle) is None
    assert not action(window, "file.unloadLayers").isEnabled()


def test_the_start_page_tells_too(open_window, write, settle):
    window = open_window()
    path = write("1 / 0\n")
    window.opening.load_layers(path)
    settle(window.session)
    # A path that is longer than a line loses its middle.
    assert any(f"{path.name}:1: ZeroDivisionError" in text for text in texts(window.start_page))
    window.opening.load_layers(write(LAYERS))
    settle(window.session)
    assert not any("ZeroDivisionError" in text for text in texts(window.start_page))


def recent(window):
    menu = window.findChild(QMenu, "opening.fill_recent_layers")
    menu.aboutToShow.emit()
    return [entry for entry in menu.actions() if entry.data()]


def test_files_are_remembered_but_not_run(open_window, write, settle, settings):
    ran = write("", "ran.txt")
    path = write(
        LAYERS + f"\nwith open({str(ran)!r}, 'a', encoding='utf-8') as f:\n    f.write('ran')\n"
    )
    first = open_window()
    first.opening.load_layers(path)
    settle(first.session)
    first.close()
    unload_layers()
    assert ran.read_text() == "ran"

    second = open_window()
    settle(second.session)
    assert ran.read_text() == "ran"
    assert layer_files() == ()
    (entry,) = recent(second)
    assert entry.text() == f"&1 {path}"
    entry.trigger()
    settle(second.session)
    assert ran.read_text() == "ranran"
    assert [file.path for file in layer_files()] == [path.resolve()]


def test_recent_files_are_forgotten(window, write, settle, settings):
    window.opening.load_layers(write(LAYERS))
    settle(window.session)
    assert len(recent(window)) == 1
    trigger(window, "file.clearRecentLayers", settle)
    assert recent(window) == []
    assert json.loads(settings.value("recentLayers")) == []


def test_a_file_that_is_gone_cannot_be_chosen(window, write, settle):
    path = write(LAYERS)
    window.opening.load_layers(path)
    settle(window.session)
    path.unlink()
    (entry,) = recent(window)
    assert not entry.isEnabled()
