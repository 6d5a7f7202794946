"""The main window opens models: by samples, dialogs and drops, and with weights elsewhere."""

from __future__ import annotations

import json

import numpy as np
import pytest
from driving import CHAIN, drop, enabled, label, press_banner, trigger
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton, QSpinBox, QWidget

from kuiper_studio.session import RunState


def test_first_start_shows_the_start_page(open_window):
    window = open_window()
    assert window.start_page.isVisible()
    assert not window.graph_view.isVisible()
    assert not window.operators_panel.isVisible()
    assert window.windowTitle() == "Kuiper Studio"
    assert not enabled(window, "debug.step")
    assert label(window, "statusDetail") == "no model open"


def test_sample_is_one_key_away(qtbot, open_window):
    window = open_window()
    window.start_page.setFocus()
    qtbot.keyClick(window.start_page, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.session.state is RunState.READY, timeout=10_000)
    assert window.session.model_path.name == "digits.pnnx.param"
    assert window.session.workspace.labels == tuple("0123456789")


class TestMissingWeights:
    LINEAR = (
        "pnnx.Input in 0 1 0 #0=(1,2)f32",
        (
            "nn.Linear fc 1 1 0 1 bias=False in_features=2 out_features=1 @weight=(1,2)f32 "
            "#0=(1,2)f32 #1=(1,1)f32"
        ),
        "pnnx.Output out 1 0 1",
    )

    @pytest.fixture
    def window(self, open_window, make_pair, tmp_path):
        """A window with a model whose weights lie in another folder."""
        param = make_pair(*self.LINEAR, weights={"fc.weight": np.float32([[3, 4]])}, name="m")
        self.bin = tmp_path / "elsewhere" / "weights.bin"
        self.bin.parent.mkdir()
        param.with_suffix(".bin").rename(self.bin)
        return open_window(param, [np.float32([[1, 10]])])

    def test_the_bin_can_be_chosen(self, qtbot, window, monkeypatch):
        assert window.banner.plain_text().startswith("The weights of m.pnnx.param are missing")
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(self.bin), ""))
        press_banner(qtbot, window, "Choose .bin…")
        assert not window.banner.isVisible()
        trigger(qtbot, window, "debug.continue")
        assert window.session.fetch("1").tolist() == [[43.0]]  # of the same input

    def test_a_wrong_one_leaves_the_choice(self, qtbot, window, monkeypatch, tmp_path):
        wrong = tmp_path / "wrong.bin"
        wrong.write_bytes(b"no archive")
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(wrong), ""))
        press_banner(qtbot, window, "Choose .bin…")
        qtbot.waitUntil(lambda: "wrong.bin" in window.banner.plain_text())
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(self.bin), ""))
        press_banner(qtbot, window, "Choose .bin…")
        assert window.session.graph.has_weights

    def test_also_when_a_run_has_passed_them_by(self, qtbot, window):
        trigger(qtbot, window, "debug.continue")
        assert window.banner.plain_text().startswith("fc cannot run")
        names = {b.text() for b in window.banner.findChildren(QPushButton) if b.isVisible()}
        assert "Choose .bin…" in names


def test_wrong_file_is_told_and_the_window_stays(qtbot, open_window, tmp_path):
    window = open_window()
    bad = tmp_path / "bad.param"
    bad.write_text("hello\n", encoding="utf-8")
    with qtbot.waitSignal(window.session.failed):
        window.opening.open_model(bad)
    shown = " ".join(child.text() for child in window.start_page.findChildren(QLabel))
    assert "bad.param" in shown
    assert window.start_page.isVisible()


def test_the_reason_goes_when_another_file_is_opened(qtbot, open_window, make_pair, tmp_path):
    window = open_window()
    bad = tmp_path / "bad.param"
    bad.write_text("hello\n", encoding="utf-8")
    with qtbot.waitSignal(window.session.failed):
        window.opening.open_model(bad)
    assert window.start_page.banner.isVisible()
    window.opening.open_model(make_pair(*CHAIN))
    assert not window.start_page.banner.isVisible()


@pytest.mark.parametrize("suffix", [".param", ".bin"])
def test_drop_either_file_then_an_input(qtbot, open_window, make_pair, tmp_path, image, suffix):
    path = make_pair(*CHAIN)
    np.save(tmp_path / "x.npy", image)
    window = open_window()
    drop(window, path.with_suffix(suffix))
    qtbot.waitUntil(lambda: window.session.state is RunState.NEED_INPUT)
    drop(window, tmp_path / "x.npy")
    qtbot.waitUntil(lambda: window.session.state is RunState.READY)
    trigger(qtbot, window, "debug.step")
    np.testing.assert_array_equal(window.session.fetch("0"), image)


def test_weights_of_another_file_are_told(qtbot, open_window, residual):
    """Its own are cut; a whole copy lies beside them."""
    own = residual.with_suffix(".bin")
    whole = own.with_name("copy.bin")
    whole.write_bytes(own.read_bytes())
    own.write_bytes(whole.read_bytes()[:-40])
    window = open_window(residual, ["ones"])
    assert window.session.wait_idle(10)
    assert window.session.graph.bin_path == whole
    said = window.status_bar.findChild(QLabel, "statusAnnouncement")
    qtbot.waitUntil(said.isVisible)
    assert said.text().startswith("weights are of copy.bin; ")
    entries = window.session.workspace.log_entries
    (text,) = [entry.text for entry in entries if "does not fit" in entry.text]
    assert f"{own.name} does not fit: damaged, or of another model" in text
    window.session.open(whole)  # chosen, this time
    assert window.session.wait_idle(10)
    assert sum("does not fit" in entry.text for entry in entries) == 1
    assert "does not fit" not in window.session.workspace.log_entries[-1].text


def test_drop_of_a_model_with_what_belongs_to_it(
    qtbot, open_window, make_pair, tmp_path, image
):
    """Weights in another folder, an input and names of classes."""
    path = make_pair(*CHAIN)
    (tmp_path / "elsewhere").mkdir()
    weights = path.with_suffix(".bin").rename(tmp_path / "elsewhere" / "w.bin")
    np.save(tmp_path / "x.npy", image)
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    window = open_window()
    drop(window, tmp_path / "x.npy", weights, path, tmp_path / "names.txt")
    qtbot.waitUntil(lambda: window.session.state is RunState.READY)
    assert not window.banner.isVisible()
    assert window.session.graph.bin_path == weights
    assert window.session.workspace.labels == ("cat", "dog")
    trigger(qtbot, window, "debug.step")
    np.testing.assert_array_equal(window.session.fetch("0"), image)


def test_drop_of_two_models_says_which_one_is_open(qtbot, open_window, make_pair, tmp_path):
    first, second = make_pair(*CHAIN, name="first"), make_pair(*CHAIN, name="second")
    window = open_window()
    drop(window, first, second, first.with_suffix(".bin"))
    qtbot.waitUntil(lambda: window.session.state is RunState.NEED_INPUT)
    assert window.session.graph.source_path == first
    announced = window.findChild(QLabel, "statusAnnouncement")
    assert announced.toolTip() == "only first.pnnx.param was opened, not second.pnnx.param"


def test_drop_of_something_else(qtbot, window, tmp_path):
    (tmp_path / "notes.pdf").touch()
    drop(window, tmp_path / "notes.pdf")
    assert "is not an image" in window.banner.plain_text()


def test_drop_of_a_vocabulary(window, tmp_path):
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({"a": 0, "cat": 1}))
    drop(window, path)
    assert window.session.workspace.labels == ("a", "cat")
    announced = window.findChild(QLabel, "statusAnnouncement")
    assert announced.isVisible()
    assert announced.text() == "2 labels from vocab.json"


def test_open_dialogs(qtbot, open_window, make_pair, tmp_path, image, monkeypatch):
    path = make_pair(*CHAIN)
    np.save(tmp_path / "x.npy", image)
    folders = []

    def choose_input(_window, _title, folder, _filters):
        folders.append(folder)
        return [str(tmp_path / "x.npy")], ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", choose_input)
    window = open_window()
    trigger(qtbot, window, "file.open")
    qtbot.waitUntil(lambda: window.session.graph is not None)
    trigger(qtbot, window, "file.openInput")
    qtbot.waitUntil(lambda: window.session.state is RunState.READY)
    assert folders == [str(path.parent)]  # the first input is looked for beside the model
    trigger(qtbot, window, "file.close")
    assert window.start_page.isVisible()
    assert [recent.path for recent in window.opening.recent_models.entries()] == [str(path)]


def test_a_start_with_a_model_makes_only_what_it_shows(qtbot, open_window, residual):
    """Each widget of a start takes time, also a hidden one."""
    window = open_window(residual)
    made = {type(each).__name__ for each in window.findChildren(QWidget)}
    assert "OperatorTable" in made
    late = {"StartPage", "CommandPalette", "NumberTable", "PreprocessingEditor", "_LogTable"}
    assert not made & late
    trigger(qtbot, window, "file.close")
    assert window.start_page.isVisible()


def test_a_model_that_is_opened_again_begins_at_its_most_telling_channel(
    qtbot, open_window, make_pair, tmp_path
):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,4,4)f32",
        "nn.ReLU act 1 1 0 1 #0=(1,3,4,4)f32 #1=(1,3,4,4)f32",
        "pnnx.Output out 1 0 1",
    )
    image = np.ones((1, 3, 4, 4), np.float32)
    image[0, 1, 0] = 2
    image[0, 2, 0] = 9  # varies most
    np.save(tmp_path / "x.npy", image)
    window = open_window(path, [image])
    channel = window.findChild(QWidget, "tensorChannel").findChild(QSpinBox)
    trigger(qtbot, window, "debug.continue")
    qtbot.waitUntil(lambda: channel.isVisible() and channel.value() == 2)
    trigger(qtbot, window, "file.close")
    drop(window, path, tmp_path / "x.npy")
    qtbot.waitUntil(lambda: window.session.state is RunState.READY)
    assert not channel.isVisible()
    trigger(qtbot, window, "debug.continue")
    qtbot.waitUntil(channel.isVisible)
    assert channel.value() == 2
