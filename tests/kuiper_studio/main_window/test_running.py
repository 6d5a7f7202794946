"""Runs as the main window shows them: steps, breakpoints, failures, supplied outputs, seeds."""

from __future__ import annotations

import numpy as np
import pytest
from driving import CHAIN, drop, enabled, label, press_banner, trigger
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QFileDialog, QLabel, QPushButton

from engine.inputs import InputSource
from kuiper_studio.dialogs.seed_dialog import SeedDialog
from kuiper_studio.item_models import OperatorColumn
from kuiper_studio.session import RunState
from kuiper_studio.surfaces import Surface

FAILING = (
    "pnnx.Input a 0 1 0 #0=(3)f32",
    "pnnx.Input b 0 1 1 #1=(3)f32",
    "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1)",
    "pnnx.Output out 1 0 2",
)


def test_step_to_the_end(qtbot, window, image):
    assert window.windowTitle().startswith("m.pnnx.param")
    assert window.graph_view.isVisible()
    seen = []
    while enabled(window, "debug.step"):
        trigger(qtbot, window, "debug.step")
        seen.append(label(window, "statusDetail"))
    assert seen == [
        "after in · 1 of 4 run",
        "after relu · 2 of 4 run",
        "after twice · 3 of 4 run",
        "4 of 4 run",
    ]
    assert label(window, "statusState") == "Finished"
    np.testing.assert_array_equal(window.session.fetch("2"), 2 * np.maximum(image, 0))


def test_every_press_of_a_key_counts(qtbot, open_window, make_pair, gate):
    """Also while a step takes long, which is announced as a run."""
    lines = [f"test.Gate g{i} 1 1 {i} {i + 1}" for i in range(12)]
    path = make_pair("pnnx.Input in 0 1 0 #0=(3)f32", *lines, "pnnx.Output out 1 0 12")
    window = open_window(path, [np.ones(3, np.float32)])
    session = window.session
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    gate.close()
    QTest.keyClick(window, Qt.Key.Key_F10)
    QTest.keyClick(window, Qt.Key.Key_F10)
    qtbot.waitUntil(lambda: enabled(window, "debug.stop") and gate.reached.is_set())
    qtbot.waitUntil(lambda: not enabled(window, "debug.stepBack"))
    for _ in range(8):
        QTest.keyClick(window, Qt.Key.Key_F10)
    gate.open()
    qtbot.waitUntil(lambda: not session.busy, timeout=10_000)
    assert session.position == 10
    QTest.keyClick(window, Qt.Key.Key_F10)
    QTest.keyClick(window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: session.state is RunState.FINISHED, timeout=10_000)


def test_continue_restart_and_back(qtbot, window):
    trigger(qtbot, window, "debug.continue")
    assert window.session.state is RunState.FINISHED
    assert not enabled(window, "debug.continue")
    trigger(qtbot, window, "debug.stepBack")
    assert window.session.position == 3
    trigger(qtbot, window, "debug.restart")
    assert (window.session.position, window.session.state) == (0, RunState.READY)
    assert not enabled(window, "debug.restart")


def test_what_may_be_done_while_an_operator_runs(qtbot, open_window, make_pair, image, gate):
    lines = [line.replace("nn.ReLU", "test.Gate") for line in CHAIN]
    window = open_window(make_pair(*lines), [image])
    window.session.select("relu")
    assert enabled(window, "debug.supplyOutput")
    assert not enabled(window, "debug.restart")
    gate.close()
    window.findChild(QAction, "debug.continue").trigger()
    qtbot.waitUntil(lambda: window.session.state is RunState.RUNNING and gate.reached.is_set())
    window.session.select("twice")
    for command in ("debug.restart", "debug.stop"):
        assert enabled(window, command), command
    for command in ("debug.supplyOutput", "debug.step", "debug.continue", "debug.stepBack"):
        assert not enabled(window, command), command
    gate.open()
    qtbot.waitUntil(lambda: window.session.state is RunState.FINISHED)
    window.session.select("twice")
    assert enabled(window, "debug.supplyOutput")


def test_run_to_selected_and_breakpoint(qtbot, window):
    window.session.select("twice")
    trigger(qtbot, window, "debug.runToSelected")
    assert window.session.position == 2
    trigger(qtbot, window, "debug.restart")
    window.session.select("relu")
    trigger(qtbot, window, "debug.toggleBreakpoint")
    trigger(qtbot, window, "debug.continue")
    assert window.session.position == 1
    trigger(qtbot, window, "debug.clearBreakpoints")
    trigger(qtbot, window, "debug.continue")
    assert window.session.state is RunState.FINISHED


def test_failed_operator(qtbot, open_window, make_pair):
    window = open_window(
        make_pair(*FAILING), [np.zeros(3, np.float32), np.zeros(2, np.float32)]
    )
    trigger(qtbot, window, "debug.continue")
    qtbot.waitUntil(window.banner.isVisible)
    text = window.banner.plain_text()
    assert "sum failed" in text
    assert "Look at pnnx.Input b" in text
    assert label(window, "statusState") == "Failed"
    for command in ("debug.step", "debug.continue", "debug.runToSelected"):
        assert not enabled(window, command)
    for command in ("debug.restart", "debug.stepBack", "debug.stop"):
        assert enabled(window, command)
    assert window.session.tensors.has_value("0")
    trigger(qtbot, window, "debug.restart")
    assert not window.banner.isVisible()


STRANGE = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
    "my.Strange strange 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
    "nn.ReLU relu 1 1 1 2 #1=(1,2,4,4)f32 #2=(1,2,4,4)f32",
    "pnnx.Output out 1 0 2",
)


def test_a_run_that_passes_operators_by_does_not_end_like_others(
    qtbot, open_window, make_pair, image
):
    window = open_window(make_pair(*STRANGE), [image])
    trigger(qtbot, window, "debug.continue")
    assert window.session.state is RunState.FINISHED
    assert label(window, "statusState") == "Finished in part"
    assert label(window, "statusDetail") == "1 of 4 run, 3 cannot run"
    assert (
        window.theme.color("warn").name()
        in window.findChild(QLabel, "statusState").styleSheet()
    )
    assert window.operators_panel.suffix == "1 / 4"


def test_nan_is_marked_and_counted(qtbot, window):
    poisoned = np.full((1, 2, 4, 4), np.nan, np.float32)
    window.session.set_inputs({"0": InputSource("array", array=poisoned)})
    qtbot.waitUntil(lambda: not window.session.busy)
    trigger(qtbot, window, "debug.continue")
    counted = window.findChild(QLabel, "statusNonfinite")
    qtbot.waitUntil(lambda: counted.text() == "NaN or Inf in 3 operators")
    model = window.operators_panel.model
    tips = [
        model.index(row, OperatorColumn.STATE).data(Qt.ItemDataRole.ToolTipRole)
        for row in range(4)
    ]
    # The last one gives nothing.
    assert ["NaN" in tip for tip in tips] == [True, True, True, False]
    assert window.timeline_panel.canvas.model.nonfinite == {0, 1, 2}
    window.operators_panel.set_filter("state:nonfinite")
    assert window.operators_panel.rows.rowCount() == 3
    trigger(qtbot, window, "debug.stepBack")
    trigger(qtbot, window, "debug.stepBack")
    assert counted.text() == "NaN or Inf in 2 operators"
    trigger(qtbot, window, "debug.restart")
    assert not counted.isVisible()
    assert window.timeline_panel.canvas.model.nonfinite == frozenset()


def test_what_comes_out_is_looked_at_when_it_is_not_in_view(qtbot, window):
    poisoned = np.full((1, 2, 4, 4), np.inf, np.float32)
    window.graph_view.hide()
    window.session.set_inputs({"0": InputSource("array", array=poisoned)})
    qtbot.waitUntil(lambda: not window.session.busy)
    trigger(qtbot, window, "debug.continue")
    qtbot.waitUntil(lambda: 2 in window.session.nonfinite)


class TestSupply:
    @pytest.fixture
    def fives(self, tmp_path, monkeypatch):
        """What the file dialog gives."""
        path = tmp_path / "fives.npy"
        np.save(path, np.full((1, 2, 4, 4), 5, np.float32))
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
        return path

    @pytest.fixture
    def window(self, open_window, make_pair, image):
        return open_window(make_pair(*STRANGE), [image])

    def test_from_the_banner(self, qtbot, window, fives):
        trigger(qtbot, window, "debug.continue")
        qtbot.waitUntil(window.banner.isVisible)
        assert "strange cannot run" in window.banner.plain_text()
        press_banner(qtbot, window, "Supply output…")
        assert not window.banner.isVisible()
        assert label(window, "statusDetail") == "after strange · 2 of 4 run"
        state = window.operators_panel.model.index(1, OperatorColumn.STATE)
        assert state.data(Qt.ItemDataRole.ToolTipRole) == "supplied from fives.npy"
        trigger(qtbot, window, "debug.continue")
        assert window.session.state is RunState.FINISHED
        np.testing.assert_array_equal(window.session.fetch("2"), np.full((1, 2, 4, 4), 5))

    def test_by_command_and_taken_back(self, qtbot, window, fives):
        assert not enabled(window, "debug.supplyOutput")  # an input is selected
        window.session.select("strange")
        assert not enabled(window, "debug.withdrawOutput")
        trigger(qtbot, window, "debug.supplyOutput")
        assert window.session.position == 0
        trigger(qtbot, window, "debug.continue")
        window.session.select("strange")
        window.properties_panel.catch_up()
        shown = " ".join(child.text() for child in window.properties_panel.findChildren(QLabel))
        assert "Supplied from fives.npy." in shown
        assert "supplied from fives.npy" in window.timeline_panel.canvas.tip(
            window.session.graph.operator("strange")
        )
        trigger(qtbot, window, "debug.withdrawOutput")
        assert window.session.current.name == "strange"
        assert not enabled(window, "debug.withdrawOutput")

    def test_from_the_list(self, qtbot, window, fives):
        def entries():
            window.session.select("strange")
            menu = window.commands.make_menu(Surface.OPERATORS)
            return {action.text().replace("&", ""): action for action in menu.actions()}

        assert "Withdraw supplied output" not in entries()
        entries()["Supply output…"].trigger()
        qtbot.waitUntil(lambda: "1" in window.session.supplied)
        entries()["Withdraw supplied output"].trigger()
        qtbot.waitUntil(lambda: not window.session.supplied)

    def test_a_file_that_does_not_fit(self, qtbot, window, fives):
        np.save(fives, np.zeros(3))
        trigger(qtbot, window, "debug.continue")
        qtbot.waitUntil(window.banner.isVisible)
        press_banner(qtbot, window, "Supply output…")
        qtbot.waitUntil(lambda: "was not supplied" in window.banner.plain_text())
        assert "Operand 1 is 1×2×4×4" in window.banner.plain_text()
        np.save(fives, np.zeros((1, 2, 4, 4)))
        press_banner(qtbot, window, "Supply output…")
        assert window.session.supplied

    def test_dropped_on_its_box(self, qtbot, window, fives):
        window.graph_view.fit()
        canvas = window.graph_view.canvas
        qtbot.waitUntil(lambda: not canvas.box_rect("strange").isNull())
        at = canvas.mapTo(window, canvas.box_rect("strange").center().toPoint())
        drop(window, fives, at=QPointF(at))
        qtbot.waitUntil(lambda: "1" in window.session.supplied)
        assert window.session.inputs["0"].kind == "array"  # it was not taken for an input

    def test_another_file(self, window, fives):
        window.debugging.supply_output("strange", "notes.txt")
        assert "'notes.txt' is not a .npy or .npz file" in window.banner.plain_text()

    def test_of_a_failed_operator(self, qtbot, open_window, make_pair, fives):
        inputs = [np.zeros(3, np.float32), np.zeros(2, np.float32)]
        window = open_window(make_pair(*FAILING), inputs)
        np.save(fives, np.ones(3))
        trigger(qtbot, window, "debug.continue")
        qtbot.waitUntil(window.banner.isVisible)
        press_banner(qtbot, window, "Supply output…")
        assert not window.banner.isVisible()
        trigger(qtbot, window, "debug.continue")
        assert window.session.state is RunState.FINISHED


class TestSeed:
    @pytest.fixture
    def asked(self, monkeypatch):
        """A function that has the dialog answered with a seed, or cancelled."""

        def answer(text):
            def fill(dialog):
                dialog.number.setText(text or "1")
                dialog.done(QDialog.DialogCode.Accepted if text else 0)
                return dialog.result()

            monkeypatch.setattr(SeedDialog, "exec", fill)

        return answer

    def test_command(self, qtbot, open_window, noisy, asked):
        window = open_window(noisy, ["ones"])
        trigger(qtbot, window, "debug.continue")
        asked("17")
        trigger(qtbot, window, "debug.seed")
        assert (window.session.seed, window.session.position) == (17, 2)
        asked("")
        trigger(qtbot, window, "debug.seed")
        assert window.session.seed == 17
        window.session.select("thin")
        window.properties_panel.catch_up()
        assert label(window.properties_panel, "propertiesRandom") == "Random, seed 17"
        asked("3")
        link = window.properties_panel.findChild(QPushButton, "propertiesSeed")
        qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
        window.properties_panel.catch_up()
        assert label(window.properties_panel, "propertiesRandom") == "Random, seed 3"
        qtbot.waitUntil(lambda: not window.session.busy)

    def test_it_is_remembered(self, qtbot, open_window, noisy, asked, settings):
        window = open_window(noisy, ["ones"])
        asked("17")
        trigger(qtbot, window, "debug.seed")
        window.close()
        again = open_window()
        assert again.session.seed == 17
        again.close()
        settings.setValue("seed", "nonsense")
        assert open_window().session.seed == 0

    def test_without_a_model_there_is_nothing_to_draw(self, open_window):
        assert not enabled(open_window(), "debug.seed")
