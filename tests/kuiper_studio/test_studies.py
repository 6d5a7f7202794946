"""Reproducers and formats of lower precision in the window."""

from __future__ import annotations

import math

import numpy as np
import pytest
from on_screen import error_of, find
from PySide6.QtCore import QItemSelectionModel, Qt, QTimer
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QMessageBox, QPushButton

import engine
from kuiper_studio.item_models.precision_rows import PrecisionColumn
from kuiper_studio.session import RunState

INPUT = np.array([1, 2, 3], np.float32)
# The large product is beyond float16, which ends at 65504; its quotient is not.
NET = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "pnnx.Expression small 1 1 0 1 expr=add(@0,1) #0=(3)f32 #1=(3)f32",
    "pnnx.Expression large 1 1 1 2 expr=mul(@0,40000) #1=(3)f32 #2=(3)f32",
    "pnnx.Expression back 1 1 2 3 expr=div(@0,40000) #2=(3)f32 #3=(3)f32",
    "pnnx.Output out 1 0 3 #3=(3)f32",
)


@pytest.fixture
def window(open_window, make_pair):
    window = open_window(make_pair(*NET), [INPUT])
    assert window.session.wait_idle(10)
    return window


def answered(act):
    """Act on the next modal dialog, once it is there."""

    def wait():
        dialog = QApplication.activeModalWidget()
        if dialog is None:
            QTimer.singleShot(10, wait)
        else:
            act(dialog)

    QTimer.singleShot(0, wait)


class TestExtract:
    def extract(self, window, folder, **fields):
        texts = []

        def act(dialog):
            texts.append(dialog.operators.text())
            dialog.folder.setText(str(folder))
            for name, text in fields.items():
                getattr(dialog, name).setText(text)
            dialog.ok.click()

        answered(act)
        window.actions_by_id["analyse.extract"].trigger()
        assert window.session.wait_idle(20)
        return texts[0]

    def test_the_selected_operator(self, window, tmp_path):
        window.session.select("large")
        assert self.extract(window, tmp_path / "r") == "2"
        graph = engine.load(tmp_path / "r" / "reproducer.pnnx.param")
        assert [op.type for op in graph.operators] == [
            "pnnx.Input", "pnnx.Expression", "pnnx.Output"
        ]  # fmt: skip
        with np.load(tmp_path / "r" / "expected.npz") as expected:
            np.testing.assert_array_equal(expected["2"], (INPUT + 1) * 40000)
        assert window.session.position == 0  # the session stays where it was

    def test_several_of_the_list(self, window, tmp_path):
        table = window.operators_panel.table
        window.session.select("small")
        flag = QItemSelectionModel.SelectionFlag
        for name in ("back", "large"):
            row = window.operators_panel.model.row_of(name)
            index = window.operators_panel.rows.index(row, 0)
            table.selectionModel().setCurrentIndex(index, flag.Select | flag.Rows)
        assert self.extract(window, tmp_path / "r") == "1, 2, 3"
        with np.load(tmp_path / "r" / "expected.npz") as expected:
            assert list(expected) == ["3"]

    def test_the_result_can_be_opened(self, qtbot, window, tmp_path):
        window.session.select("large")
        self.extract(window, tmp_path / "r")
        box = window.findChild(QMessageBox, "extractedBox")
        assert str(tmp_path / "r") in box.text()
        opened = next(each for each in box.buttons() if each.text() == "Open")
        qtbot.mouseClick(opened, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(
            lambda: window.session.graph.param_path.parent == tmp_path / "r", timeout=10_000
        )
        qtbot.waitUntil(lambda: window.session.state is RunState.READY)  # it has its inputs
        window.session.resume()
        assert window.session.wait_idle(20)
        np.testing.assert_array_equal(window.session.fetch("2"), (INPUT + 1) * 40000)

    def test_the_references_numbers_are_expected(self, window, tmp_path, wait_for_turns):
        theirs = np.array([7, 8, 9], np.float32)
        np.savez(tmp_path / "reference.npz", **{"0": INPUT, "1": theirs})
        window.session.studies.compare(tmp_path / "reference.npz")
        assert window.session.wait_idle(20)
        wait_for_turns()
        assert window.session.selected == "small"  # the origin
        self.extract(window, tmp_path / "r")
        with np.load(tmp_path / "r" / "expected.npz") as expected:
            np.testing.assert_array_equal(expected["1"], theirs)

    def test_what_is_wrong_is_said(self, window, tmp_path):
        seen = {}

        def act(dialog):
            for text in ("", "nothing*", "1"):
                dialog.operators.setText(text)
                seen[text] = error_of(dialog), dialog.ok.isEnabled()
            dialog.folder.setText(str(tmp_path))
            seen["exists"] = error_of(dialog), dialog.ok.isEnabled()
            dialog.reject()

        window.session.select("large")
        answered(act)
        window.actions_by_id["analyse.extract"].trigger()
        assert seen[""] == ("Name at least one operator, type or index.", False)
        assert seen["nothing*"][0].startswith("No operator matches nothing*")
        assert seen["1"] == (" ", True)
        assert "exists" in seen["exists"][0]

    def test_what_cannot_be_extracted(self, open_window, make_pair, tmp_path):
        lines = [NET[0], "torch.randn_like noise 1 1 0 1 dtype=None #0=(3)f32 #1=(3)f32",
                 "pnnx.Output out 1 0 1 #1=(3)f32"]  # fmt: skip
        window = open_window(make_pair(*lines), [INPUT])
        assert window.session.wait_idle(10)
        window.session.select("noise")
        self.extract(window, tmp_path / "r")
        texts = [label.text() for label in window.banner.findChildren(QLabel)]
        assert any("The operators were not extracted" in text for text in texts)
        assert any("random" in text for text in texts)
        assert not (tmp_path / "r").exists()

    def test_not_without_inputs(self, open_window, make_pair):
        window = open_window(make_pair(*NET))
        assert window.session.wait_idle(10)
        window.session.select("large")
        assert not window.actions_by_id["analyse.extract"].isEnabled()


class TestPrecision:
    def simulate(self, window, formats, wanted=""):
        def act(dialog):
            for name, box in dialog.boxes.items():
                box.setChecked(name in formats)
            dialog.wanted.setText(wanted)
            dialog.ok.click()

        answered(act)
        window.actions_by_id["analyse.precision"].trigger()
        assert window.session.wait_idle(20)
        return window.precision_panel

    def test_no_error_is_cut_in_a_small_window(self, qtbot, window):
        window.resize(1366, 768)
        table = self.simulate(window, {"float16"}).table
        qtbot.waitUntil(table.isVisible)
        place = table.columnViewportPosition(PrecisionColumn.AT_OUTPUT)
        right = place + table.columnWidth(PrecisionColumn.AT_OUTPUT)
        qtbot.waitUntil(lambda: right <= table.viewport().width())

    def row(self, panel, name):
        model = panel.model
        found = {
            model.index(r, PrecisionColumn.OPERATOR).data(): r for r in range(model.rowCount())
        }
        return {column: model.index(found[name], column).data() for column in PrecisionColumn}

    def test_headroom_and_what_to_keep(self, window):
        panel = self.simulate(window, {"float16"}, "0.01")
        assert panel.isVisible()
        assert not window.session.busy
        # The largest product is 4 * 40000: 65504 / 160000.
        assert float(self.row(panel, "large")[PrecisionColumn.HEADROOM]) == pytest.approx(
            65504 / 160000, rel=1e-2
        )
        kept = [n for n in ("small", "large", "back")
                if self.row(panel, n)[PrecisionColumn.KEEP]]  # fmt: skip
        assert kept == ["large", "back"]  # who reads it reads it in float32
        assert "as wanted" in panel.choice.text()
        assert "as in another library: " in panel.choice.toolTip()
        assert "The highest counts." in panel.choice.toolTip()
        assert math.isinf(window.session.precision.results[0].simulation.output.relative)

    def test_lines_for_ncnn_are_copied(self, qtbot, window):
        panel = self.simulate(window, {"float16"}, "0.01")
        qtbot.mouseClick(find(panel, QPushButton, "Copy for ncnn"), Qt.MouseButton.LeftButton)
        assert QGuiApplication.clipboard().text() == "large 31=3\nback 31=3"

    def test_saving(self, window, tmp_path, monkeypatch):
        panel = self.simulate(window, {"float16"}, "0.01")
        path = tmp_path / "table.txt"
        monkeypatch.setattr(window.file_dialogs, "choose_new", lambda *_: path)
        find(panel, QPushButton, "Save…").click()
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[-2:] == ["large 31=3", "back 31=3"]
        assert any(line.startswith("f32\t2\tlarge\t") for line in lines)

    def test_several_formats(self, window):
        panel = self.simulate(window, {"float16", "bfloat16"})
        assert [panel.formats.itemText(i) for i in range(2)] == ["float16", "bfloat16"]
        assert "float16" in panel.summary.text()
        panel.formats.setCurrentIndex(1)
        assert panel.summary.text() == "All in bfloat16: no error"
        assert not find(
            panel, QPushButton, "Copy for ncnn"
        ).isVisible()  # nothing was to be chosen

    def test_a_row_leads_to_its_operator(self, window):
        panel = self.simulate(window, {"float16"})
        model = panel.shown
        rows = [
            model.index(r, PrecisionColumn.OPERATOR).data() for r in range(model.rowCount())
        ]
        panel.table.selectRow(rows.index("back"))
        assert window.session.selected == "back"

    def test_other_inputs_end_it(self, window):
        panel = self.simulate(window, {"float16"})
        window.session.set_source_list(list(window.session.inputs.values()))
        assert window.session.wait_idle(10)
        assert panel.model.rowCount() == 0
        assert panel.summary.text() == "Nothing simulated"

    def test_choices_are_checked_and_remembered(self, window):
        self.simulate(window, {"bfloat16"}, "0.5")
        seen = []

        def act(dialog):
            seen.append((dialog.formats, dialog.wanted_error))
            for wanted in ("no number", "-1", "inf"):
                dialog.wanted.setText(wanted)
                seen.append(dialog.ok.isEnabled())
            dialog.reject()

        answered(act)
        window.actions_by_id["analyse.precision"].trigger()
        assert seen == [(("bfloat16",), 0.5), False, False, False]

    def test_cancelled(self, open_window, make_pair, gate):
        lines = [*NET[:2], "test.Gate wait 1 1 1 2 #1=(3)f32 #2=(3)f32",
                 "pnnx.Output out 1 0 2 #2=(3)f32"]  # fmt: skip
        window = open_window(make_pair(*lines), [INPUT])
        session = window.session
        assert session.wait_idle(10)
        gate.reached.clear()
        gate.close()
        session.studies.simulate_precision(("float16",))
        assert gate.reached.wait(10)
        window.status_bar.findChild(QAbstractButton, "statusCancel").click()
        gate.open()
        assert session.wait_idle(20)
        assert session.precision.results == ()
        assert session.state.name == "READY"
