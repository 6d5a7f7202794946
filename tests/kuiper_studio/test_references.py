"""The references that the window offers: other runs, files beside the model, dropped ones."""

from __future__ import annotations

import numpy as np
import pytest
from on_screen import error_of
from PySide6.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QApplication, QLabel

import engine
from engine.dump import write_dump
from kuiper_studio.engine_service.protocol import OtherRun

INPUT = np.array([1, 2, 3], np.float32)
NET = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "pnnx.Expression times 1 1 0 1 expr=mul(@0,2) #0=(3)f32 #1=(3)f32",
    "pnnx.Expression plus 1 1 1 2 expr=add(@0,1) #1=(3)f32 #2=(3)f32",
    "pnnx.Output out 1 0 2 #2=(3)f32",
)
RANDOM = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "torch.randn_like noise 1 1 0 1 dtype=None #0=(3)f32 #1=(3)f32",
    "pnnx.Output out 1 0 1 #1=(3)f32",
)


@pytest.fixture
def opened(open_window, make_pair):
    def make(*lines):
        window = open_window(make_pair(*(lines or NET)), [INPUT])
        assert window.session.wait_idle(10)
        return window

    return make


@pytest.fixture
def answer(qtbot):
    """A function that acts on the next modal dialog, and waits until it is closed."""

    def act_on(window, act, start):
        done = []

        def wait():
            dialog = QApplication.activeModalWidget()
            if dialog is None:
                QTimer.singleShot(10, wait)
                return
            done.append(True)
            act(dialog)

        QTimer.singleShot(0, wait)
        start()
        qtbot.waitUntil(lambda: bool(done))
        assert window.session.wait_idle(20)

    return act_on


def compare(window):
    return window.actions_by_id["analyse.compare"].trigger


def drop(window, path):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    event = QDropEvent(
        QPointF(5, 5), Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    window.dropEvent(event)


class TestOtherRun:
    def test_another_backend(self, opened, answer):
        window = opened()

        def act(dialog):
            dialog.other.setChecked(True)
            dialog.backends.setCurrentText("numpy")
            dialog.ok.click()

        answer(window, act, compare(window))
        comparing = window.session.comparing
        assert comparing.comparison.verdict == "same"
        assert "numpy, seed 0" in comparing.comparison.reference
        np.testing.assert_array_equal(comparing.tensors.fetch("2"), INPUT * 2 + 1)
        assert window.session.backend == "auto"

    def test_another_input(self, opened, answer, tmp_path):
        window = opened()
        np.save(tmp_path / "other.npy", INPUT + np.array([0, 0, 10], np.float32))

        def act(dialog):
            dialog.input.setText(str(tmp_path / "other.npy"))
            assert dialog.is_other_run  # who fills it in means it
            dialog.ok.click()

        answer(window, act, compare(window))
        comparing = window.session.comparing
        assert list(comparing.origins) == ["in"]
        np.testing.assert_array_equal(comparing.tensors.fetch("2"), [3, 5, 27])
        assert comparing.rows["2"].measures.max_abs == 20
        window.session.step()
        assert window.session.wait_idle(10)
        np.testing.assert_array_equal(window.session.fetch("0"), INPUT)  # ours is as it was

    def test_another_seed(self, opened, answer):
        window = opened(*RANDOM)
        drawn = []
        for seed in ("0", "1"):

            def act(dialog, seed=seed):
                dialog.other.setChecked(True)
                dialog.seed_text.setText(seed)
                dialog.ok.click()

            answer(window, act, compare(window))
            drawn.append(window.session.comparing.tensors.fetch("1"))
        assert not np.array_equal(*drawn)
        assert window.session.seed == 0
        assert window.session.comparing.rows["1"].status.value == "random"

    def test_what_is_wrong_is_said(self, opened, answer):
        window, seen = opened(), []

        def act(dialog):
            dialog.other.setChecked(True)
            for field, text in (("seed_text", "x"), ("seed_text", "3"), ("input", "none.npy")):
                getattr(dialog, field).setText(text)
                seen.append((dialog.ok.isEnabled(), error_of(dialog)))
            dialog.reject()

        answer(window, act, compare(window))
        assert [enabled for enabled, _ in seen] == [False, True, False]
        assert "whole number" in seen[0][1]
        assert "no such file" in seen[2][1]

    def test_an_input_that_does_not_fit(self, opened, answer, tmp_path):
        window = opened()
        np.savez(tmp_path / "two.npz", a=INPUT, b=INPUT)

        def act(dialog):
            dialog.input.setText(str(tmp_path / "two.npz"))
            dialog.ok.click()

        answer(window, act, compare(window))
        assert window.session.comparing.comparison is None
        texts = [label.text() for label in window.banner.findChildren(QLabel)]
        assert any("The model was not compared" in text for text in texts)
        assert window.session.state.name == "READY"  # our own input is still there
        assert window.banner.isVisible()
        window.session.studies.compare(OtherRun("numpy", 0))
        assert not window.banner.isVisible()  # what it says is of the comparison before
        assert window.session.wait_idle(10)
        assert window.session.comparing.comparison.verdict == "same"

    def test_a_report_of_it(self, opened, answer, tmp_path):
        window = opened()

        def act(dialog):
            dialog.other.setChecked(True)
            dialog.ok.click()

        answer(window, act, compare(window))
        window.session.studies.write_report(tmp_path / "r.html")
        assert window.session.wait_idle(10)
        assert "another run (auto, seed 0)" in (tmp_path / "r.html").read_text("utf-8")


def test_what_lies_beside_the_model(qtbot, opened, answer, tmp_path):
    window = opened()
    for name in ("m.ncnn.param", "m.npz", "other.npz"):
        (tmp_path / name).write_bytes(b"")
    np.savez(tmp_path / "m.npz", **{"0": INPUT, "1": INPUT * 2, "2": INPUT * 2 + 1})
    names = []

    def act(dialog):
        names.extend(button.text() for button in dialog.beside)
        qtbot.mouseClick(dialog.beside[1], Qt.MouseButton.LeftButton)
        dialog.ok.click()

    answer(window, act, compare(window))
    assert names == ["m.ncnn.param", "m.npz"]
    assert window.session.comparing.comparison.verdict == "same"
    assert window.session.comparing.comparison.reference == "m.npz"

    recent = []

    def look(dialog):
        recent.append(dialog.path.itemText(0))
        dialog.reject()

    answer(window, look, compare(window))
    assert recent == [str(tmp_path / "m.npz")]


class TestDropped:
    def test_an_archive_of_more_than_the_inputs(self, opened, answer, tmp_path):
        window = opened()
        path = tmp_path / "reference.npz"
        np.savez(path, **{"0": INPUT, "1": INPUT * 2, "2": INPUT * 2 + 1})
        answer(window, lambda dialog: dialog.ok.click(), lambda: drop(window, path))
        assert window.session.comparing.comparison.reference == "reference.npz"

    def test_a_dump(self, opened, answer, tmp_path):
        window = opened()
        window.session.resume()
        assert window.session.wait_idle(10)
        session = engine.Session(engine.load(window.session.graph.param_path))
        session.feed([INPUT])
        session.run()
        write_dump(session, tmp_path / "dump")
        answer(
            window, lambda dialog: dialog.ok.click(), lambda: drop(window, tmp_path / "dump")
        )
        assert window.session.comparing.comparison.verdict == "same"
        assert window.session.graph.param_path.name == "m.pnnx.param"

    def test_it_may_be_declined(self, opened, answer, tmp_path):
        window = opened()
        path = tmp_path / "reference.npz"
        np.savez(path, a=INPUT, b=INPUT)
        answer(window, lambda dialog: dialog.reject(), lambda: drop(window, path))
        assert window.session.comparing.comparison is None

    def test_an_input_is_fed(self, qtbot, opened, tmp_path):
        window = opened()
        np.savez(tmp_path / "x.npz", x=INPUT * 3)
        drop(window, tmp_path / "x.npz")
        assert window.session.wait_idle(10)
        qtbot.wait(50)
        assert QApplication.activeModalWidget() is None
        window.session.step()
        assert window.session.wait_idle(10)
        np.testing.assert_array_equal(window.session.fetch("0"), INPUT * 3)


def test_the_dialog_begins_with_what_the_model_was_compared_with(
    opened, answer, make_pair, tmp_path
):
    """Not with a reference of another model."""
    window, begins, listed = opened(), [], []
    np.savez(tmp_path / "reference.npz", **{"1": INPUT * 2, "2": INPUT * 2 + 1})

    def look(dialog):
        begins.append(dialog.path.currentText())
        listed.append([dialog.path.itemText(n) for n in range(dialog.path.count())])
        dialog.path.setCurrentText(str(tmp_path / "reference.npz"))
        dialog.ok.click()

    answer(window, look, compare(window))
    answer(window, look, compare(window))
    np.save(tmp_path / "x.npy", INPUT)
    window.opening.open_model(make_pair(*NET, name="other"))
    assert window.session.wait_idle(10)
    window.opening.feed_files([str(tmp_path / "x.npy")])
    assert window.session.wait_idle(10)
    answer(window, look, compare(window))
    assert begins == ["", str(tmp_path / "reference.npz"), ""]
    assert listed[2] == [str(tmp_path / "reference.npz")]  # still offered
