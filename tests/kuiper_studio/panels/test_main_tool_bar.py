"""The tool bar's choice of the backend."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QComboBox, QPushButton, QToolButton

from kuiper_studio.commands import make_actions
from kuiper_studio.panels.main_tool_bar import MainToolBar


@pytest.fixture
def choice(qtbot, studio, theme):
    """A function that makes a tool bar and gives its choice of the backend."""
    bars = []  # the choice goes with its bar

    def make():
        bar = MainToolBar(studio, theme, make_actions(studio, theme))
        qtbot.addWidget(bar)
        bars.append(bar)
        return bar.findChild(QComboBox, "backendChoice")

    return make


def tips(box):
    return {
        box.itemText(row): box.itemData(row, Qt.ItemDataRole.ToolTipRole)
        for row in range(box.count())
    }


def enabled(box):
    return [
        box.itemText(row)
        for row in range(box.count())
        if box.model().index(row, 0).flags() & Qt.ItemFlag.ItemIsEnabled
    ]


def test_what_is_installed(choice, monkeypatch):
    monkeypatch.setattr("engine.backend_names.find_spec", lambda name: name)
    monkeypatch.setattr("engine.backend_names.version", {"onnxruntime": "1.2", "ncnn": "3"}.get)
    box = choice()
    assert enabled(box) == ["auto", "numpy", "onnxruntime", "ncnn"]
    assert tips(box) == {
        "auto": "for each operator the fastest kernel that agrees with NumPy, measured",
        "numpy": "the reference, for every operator",
        "onnxruntime": "ONNX Runtime 1.2 for the operators that it supports, else NumPy",
        "ncnn": "ncnn 3 for the operators that it supports, else NumPy",
    }


def test_what_is_not(choice, monkeypatch):
    monkeypatch.setattr(
        "engine.backend_names.find_spec", lambda name: None if name == "onnx" else name
    )
    box = choice()
    assert enabled(box) == ["auto", "numpy", "ncnn"]
    assert tips(box)["onnxruntime"] == "not installed: pip install onnx"


def test_choosing(qtbot, choice, studio, settle):
    box = choice()
    assert box.toolTip().startswith("Backend that computes the operators. auto: for each")
    box.setCurrentText("numpy")
    assert box.toolTip() == (
        "Backend that computes the operators. numpy: the reference, for every operator"
    )
    assert studio.backend == "numpy"
    settle(studio)
    qtbot.waitUntil(lambda: "0" in studio.inputs and not studio.busy)
    studio.step()
    settle(studio)
    studio.step()
    settle(studio)
    assert studio.record("layer1.conv").kernel == "numpy"


def test_the_search_box_gives_way_before_the_commands(qtbot, studio, theme):
    bar = MainToolBar(studio, theme, make_actions(studio, theme))
    qtbot.addWidget(bar)
    bar.show()
    search = bar.findChild(QPushButton, "searchBox")
    natural = bar.sizeHint().width()
    for width, text in ((natural + 400, "Search model or run a command"), (natural, "Search ")):
        bar.setFixedWidth(width)
        qtbot.waitUntil(lambda width=width: bar.width() == width)
        assert search.text().startswith(text)
        buttons = bar.findChildren(QToolButton)
        assert [each for each in buttons if each.width() < each.minimumSizeHint().width()] == []
