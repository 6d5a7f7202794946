"""The model's files are written again while the window shows it."""

from __future__ import annotations

import numpy as np
import pytest
from driving import choose
from engine_behind import shows_what_it_holds
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton

from engine.inputs import InputSource
from engine.pnnx import archive as archive_module
from kuiper_studio.session import RunState
from rewriting import SIZE, WEIGHTED, export, scaled

LINES = (
    f"pnnx.Input in 0 1 0 #0=(1,{SIZE})f32",
    f"nn.Linear first 1 1 0 1 {WEIGHTED}",
    f"nn.Linear second 1 1 1 2 {WEIGHTED}",
    "pnnx.Output out 1 0 2",
)


@pytest.fixture
def param(make_pair):
    return make_pair(*LINES, weights=scaled(2, 3))


@pytest.fixture
def window(open_window, param):
    return open_window(param, [np.ones((1, SIZE), np.float32)])


def buttons(banner):
    found = banner.findChildren(QPushButton)
    return {button.text(): button for button in found if button.isVisibleTo(banner)}


def shown(qtbot, banner):
    qtbot.waitUntil(banner.isVisible, timeout=10_000)
    return banner.plain_text()


def test_it_is_told_and_reloaded(qtbot, window, param, settle):
    session = window.session
    choose(window, "debug.step")
    settle(session)
    choose(window, "debug.step")
    settle(session)
    assert not window.files_banner.isVisible()
    export(param, scaled(5, 7))
    text = shown(qtbot, window.files_banner)
    assert text.startswith("m.pnnx.bin was written again at ")
    assert text.endswith("The open model keeps what it was opened with.")
    choose(window, "debug.step")
    settle(session)
    np.testing.assert_array_equal(session.fetch("2"), np.full((1, SIZE), 6))
    buttons(window.files_banner)["Reload model"].click()
    settle(session)
    assert not window.files_banner.isVisible()
    assert session.current.name == "out"
    np.testing.assert_array_equal(session.fetch("2"), np.full((1, SIZE), 35))


def test_an_input_is_told_and_read_again_on_reloading(
    qtbot, open_window, param, settle, tmp_path
):
    path = tmp_path / "x.npy"
    np.save(path, np.ones((1, SIZE), np.float32))
    window = open_window(param, [path])
    session = window.session
    settle(session)
    np.save(path, np.full((1, SIZE), 2, np.float32))
    told = window.findChild(QLabel, "statusAnnouncement")
    text = "x.npy was written again; reloading reads it"
    qtbot.waitUntil(lambda: told.toolTip() == text, timeout=10_000)
    assert told.isVisible()
    assert not window.files_banner.isVisible()  # the model is as it was
    choose(window, "file.reload")
    settle(session)
    session.resume()
    settle(session)
    np.testing.assert_array_equal(session.fetch("2"), np.full((1, SIZE), 12))  # 2 * 2 * 3


def test_another_input_is_watched_instead_of_the_first(
    qtbot, open_window, param, settle, tmp_path
):
    first, second = tmp_path / "first.npy", tmp_path / "second.npy"
    for path in (first, second):
        np.save(path, np.ones((1, SIZE), np.float32))
    window = open_window(param, [first])
    session = window.session
    settle(session)
    session.set_inputs({"0": InputSource("npy", second)})
    settle(session)
    np.save(first, np.full((1, SIZE), 2, np.float32))
    np.save(second, np.full((1, SIZE), 3, np.float32))
    told = window.findChild(QLabel, "statusAnnouncement")
    qtbot.waitUntil(lambda: "written again" in told.toolTip(), timeout=10_000)
    assert told.toolTip().startswith("second.npy was written again")


def test_it_can_be_closed(qtbot, window, param):
    export(param, scaled(5, 7))
    shown(qtbot, window.files_banner)
    window.files_banner.findChild(QToolButton).click()
    assert not window.files_banner.isVisible()
    assert window.session.files_notice is None


def test_files_that_are_gone(qtbot, window, param, settle):
    param.unlink()
    assert shown(qtbot, window.files_banner).startswith("m.pnnx.param is gone. The")
    assert not buttons(window.files_banner)["Reload model"].isEnabled()
    choose(window, "file.reload")  # by its key all the same
    settle(window.session)
    assert window.banner.plain_text().splitlines() == [
        "The model cannot be reloaded",
        f"{param}: there is no such file",
        "The earlier model stays open.",
    ]
    choose(window, "debug.continue")
    settle(window.session)
    np.testing.assert_array_equal(window.session.fetch("2"), np.full((1, SIZE), 6))


def test_bad_files_are_told_and_reloading_is_still_offered(qtbot, window, param, settle):
    param.with_suffix(".bin").write_bytes(b"PK")
    shown(qtbot, window.files_banner)
    buttons(window.files_banner)["Reload model"].click()
    settle(window.session)
    assert window.banner.plain_text().startswith("The model cannot be reloaded\n")
    assert not window.files_banner.isVisible()  # one offer is enough
    window.banner.closed.emit()
    assert window.files_banner.isVisible()
    buttons(window.files_banner)["Reload model"].click()
    settle(window.session)
    export(param, scaled(5, 7))
    buttons(window.banner)["Reload model"].click()
    settle(window.session)
    assert not window.banner.isVisible()
    assert not window.files_banner.isVisible()


def test_weights_that_are_lost(qtbot, open_window, param, settle, monkeypatch):
    """A file that is too large to be copied while nobody waits."""
    monkeypatch.setattr(archive_module, "_SMALL", 0)
    monkeypatch.setattr("kuiper_studio.engine_service.idle_work._LARGEST_AHEAD", 0)
    window = open_window(param, [np.ones((1, SIZE), np.float32)])
    window.session.select("in")
    export(param, scaled(5, 7))
    choose(window, "debug.continue")
    settle(window.session)
    text = window.banner.plain_text()
    assert text.startswith("first failed (nn.Linear, operator #1)\n")
    assert "weight @weight cannot be read" in text
    assert str(param.with_suffix(".bin")) in text
    buttons(window.banner)["Reload model"].click()
    settle(window.session)
    assert not window.banner.isVisible()
    choose(window, "debug.continue")
    settle(window.session)
    np.testing.assert_array_equal(window.session.fetch("2"), np.full((1, SIZE), 35))


def test_the_properties_of_a_weight_that_is_lost(
    qtbot, open_window, param, settle, monkeypatch
):
    monkeypatch.setattr(archive_module, "_SMALL", 0)
    monkeypatch.setattr("kuiper_studio.engine_service.idle_work._LARGEST_AHEAD", 0)
    window = open_window(param, [np.ones((1, SIZE), np.float32)])
    export(param, scaled(5, 7))
    window.session.select("second")
    panel = window.properties_panel

    def texts():
        return " ".join(label.text() for label in panel.findChildren(QLabel))

    qtbot.waitUntil(lambda: "before these bytes were read; reload the model" in texts())


def test_the_title_is_the_engines_model(qtbot, window, param, settle, make_pair, tmp_path):
    """Another model is opened, and something fails at once afterwards."""
    other = make_pair(*LINES, weights=scaled(4, 4), name="other")
    (tmp_path / "bad.param").write_text("no model")
    session = window.session
    session.next_model.set_sources([InputSource("constant", value=1.0)])
    window.opening.open_model(other)
    window.opening.open_model(tmp_path / "bad.param")
    settle(session)
    assert window.windowTitle() == "other.pnnx.param — Kuiper Studio"
    assert window.banner.plain_text().startswith("The model cannot be opened")
    choose(window, "debug.continue")
    settle(session)
    np.testing.assert_array_equal(session.fetch("2"), np.full((1, SIZE), 16))


def test_closing_while_it_is_opened(qtbot, open_window, param):
    window = open_window()
    window.opening.open_model(param)
    assert window.session.state is RunState.LOADING
    choose(window, "file.close")
    assert (window.session.state, window.session.busy) == (RunState.EMPTY, False)
    qtbot.wait(100)
    assert window.windowTitle() == "Kuiper Studio"
    assert window.session.graph is None


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("what", ["look", "step", "run"])
def test_exported_again_and_again(qtbot, window, param, settle, monkeypatch, what, large):
    """Fifty times, while weights are looked at, operators are stepped, and the model runs."""
    if large:
        monkeypatch.setattr(archive_module, "_SMALL", 0)
    session, rng = window.session, np.random.default_rng(4)
    known = 6
    for _ in range(50):
        first, second = (int(n) for n in rng.integers(2, 9, 2))
        session.restart()
        settle(session)
        if what == "look":
            session.select(str(rng.choice(["first", "second"])))
            window.properties_panel.catch_up()
        elif what == "step":
            session.step()
        else:
            session.resume()
        export(param, scaled(first, second))
        settle(session)
        session.resume()
        settle(session)
        assert session.state is RunState.FINISHED
        assert session.fetch("2")[0, 0] == known  # of the file that was opened
        if rng.integers(2):
            known = first * second
            choose(window, "file.reload")
            settle(session)
            assert shows_what_it_holds(session)
            assert session.fetch("2")[0, 0] == known
            qtbot.waitUntil(lambda: session.graph.file.archive.is_kept)
