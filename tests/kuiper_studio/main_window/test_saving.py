"""What the main window saves and copies: dumps, pictures, texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from driving import CHAIN, trigger
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QImage
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel, QTableView

from engine.dump import DumpOptions
from kuiper_studio.dialogs.graph_picture_dialog import GraphPictureDialog
from kuiper_studio.panels.tabbed_panels import TabbedPanels


def test_export_from_the_window(qtbot, window, tmp_path):
    trigger(qtbot, window, "debug.continue")
    window.session.export_dump(tmp_path / "dump", DumpOptions())
    qtbot.waitUntil(lambda: not window.session.busy)
    manifest = json.loads((tmp_path / "dump" / "manifest.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in manifest["operands"]] == ["0", "1", "2"]
    assert any("exported to" in entry.text for entry in window.session.workspace.log_entries)
    announced = window.findChild(QLabel, "statusAnnouncement")
    assert announced.isVisible()
    assert announced.toolTip() == f"exported to {tmp_path / 'dump'}"


@pytest.mark.parametrize(
    ("command", "name", "told"),
    [
        ("file.exportPicture", "tensor.png", "picture saved to"),
        ("file.exportGraph", "graph.svg", "graph saved to"),
    ],
)
def test_a_saved_picture_is_told(qtbot, window, tmp_path, monkeypatch, command, name, told):
    path = tmp_path / name
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(GraphPictureDialog, "exec", lambda _: True)
    trigger(qtbot, window, "debug.continue")
    announced = window.findChild(QLabel, "statusAnnouncement")
    assert not announced.isVisible()
    window.findChild(QAction, command).trigger()
    qtbot.waitUntil(announced.isVisible)
    assert announced.toolTip().startswith(f"{told} {path}")
    assert path.stat().st_size


def test_the_first_file_is_saved_beside_the_model(
    qtbot, open_window, make_pair, tmp_path, image, monkeypatch
):
    """Also beside one that the command line named."""
    path = make_pair(*CHAIN)
    window = open_window(path, [image])
    window.opening.prepare_choices(path)
    proposed = []
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *given: (proposed.append(given[2]), ("", ""))[1]
    )
    trigger(qtbot, window, "debug.continue")
    window.findChild(QAction, "file.exportPicture").trigger()
    assert [Path(name).parent for name in proposed] == [path.parent]


def test_a_picture_of_the_graph_is_as_chosen(qtbot, window, tmp_path, monkeypatch):
    path = tmp_path / "graph.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))

    def choose(dialog: GraphPictureDialog) -> bool:
        dialog.format.setCurrentIndex(dialog.format.findData("png"))
        dialog.sizes.setCurrentIndex(dialog.sizes.findData("width"))
        dialog.amount.setText("777")
        dialog.parts["states"].setChecked(False)
        return True

    monkeypatch.setattr(GraphPictureDialog, "exec", choose)
    trigger(qtbot, window, "debug.continue")
    window.findChild(QAction, "file.exportGraph").trigger()
    qtbot.waitUntil(lambda: "saved to" in window.session.workspace.log_entries[-1].text)
    assert QImage(str(path)).width() == 777
    remembered = []
    monkeypatch.setattr(GraphPictureDialog, "exec", lambda d: remembered.append(d.choice))
    window.findChild(QAction, "file.exportGraph").trigger()
    assert remembered[0]["amount"] == "777"
    assert remembered[0]["states"] == "false"
    assert remembered[0]["overlay"] == "true"


class TestCopy:
    @pytest.fixture(autouse=True)
    def _active(self, qtbot, window):
        window.activateWindow()
        trigger(qtbot, window, "debug.step")
        trigger(qtbot, window, "debug.step")
        window.session.select("relu")

    def copied(self, qtbot, window, widget):
        widget.setFocus()
        qtbot.waitUntil(widget.hasFocus)
        QApplication.clipboard().setText("nothing")
        qtbot.keyClick(widget, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        by_key = QApplication.clipboard().text()
        QApplication.clipboard().setText("nothing")
        trigger(qtbot, window, "edit.copy")
        assert QApplication.clipboard().text() == by_key
        return by_key

    @pytest.mark.parametrize("view", ["table", "graph"])
    def test_the_selected_operator(self, qtbot, window, view):
        views = {"table": window.operators_panel.table, "graph": window.graph_view.canvas}
        line = self.copied(qtbot, window, views[view]).split("\t")
        assert line[:5] == ["executed", "1", "nn.ReLU", "relu", "2×4×4"]
        assert float(line[5]) >= 0

    def test_the_picked_element(self, qtbot, window, image):
        pane = window.tensor_view.pane
        pane.show_channel(1)
        pane.plane.picked.emit(3, 2)
        assert self.copied(qtbot, window, pane.plane) == str(image[0, 1, 3, 2])

    def test_without_a_picked_element_the_status_bar_says_what_to_do(self, qtbot, window):
        assert self.copied(qtbot, window, window.tensor_view.pane.plane) == "nothing"
        told = window.findChild(QLabel, "statusAnnouncement")
        qtbot.waitUntil(lambda: "no element is picked: click one" in told.toolTip())

    def test_text_of_a_field(self, qtbot, window):
        box = window.operators_panel.filter_box
        box.setText("some words")
        box.selectAll()
        assert self.copied(qtbot, window, box) == "some words"

    def test_a_line_of_the_log(self, qtbot, window):
        tabs = window.findChild(TabbedPanels)
        tabs.setCurrentWidget(window.log_panel)
        table = window.log_panel.findChild(QTableView)
        table.setCurrentIndex(table.model().index(0, 0))
        assert "opened m.pnnx.param" in self.copied(qtbot, window, table)


@pytest.mark.parametrize(
    ("name", "begins"), [("graph.PNG", b"\x89PNG"), ("graph.pdf", b"%PDF"), ("graph", b"<?xml")]
)
def test_a_picture_of_the_graph_is_what_its_name_says(
    qtbot, window, tmp_path, monkeypatch, name, begins
):
    path = tmp_path / name
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(GraphPictureDialog, "exec", lambda _: True)  # SVG is offered first
    window.findChild(QAction, "file.exportGraph").trigger()
    qtbot.waitUntil(lambda: "saved to" in window.session.workspace.log_entries[-1].text)
    assert path.read_bytes().startswith(begins)
