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
    monkeypatch.setattr("importlib.metadata.version", {"onnxruntime": "1.2", "ncnn": "3"}.get)
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


def test_the_search_box_gives_way_first_and_then_texts_of_commands(qtbot, studio, theme):
    bar = MainToolBar(studio, theme, make_actions(studio, theme))
    qtbot.addWidget(bar)
    bar.show()
    search = bar.findChild(QPushButton, "searchBox")
    bar.setFixedWidth(2000)
    natural = bar.sizeHint().width()
    buttons = [b for b in bar.findChildren(QToolButton) if b.defaultAction() is not None]
    with_text = [b for b in buttons if b.text() in {"Open", "Step", "Continue"}]
    assert len(with_text) == 3
    beside = Qt.ToolButtonStyle.ToolButtonTextBesideIcon
    alone = Qt.ToolButtonStyle.ToolButtonIconOnly

    def is_cut():
        return any(each.width() < each.minimumSizeHint().width() for each in buttons)

    for width, text, style in (
        (natural, "Search model or run a command", beside),
        (natural - 60, "Search ", beside),
        (natural - 240, "Search ", alone),
        (natural + 200, "Search model or run a command", beside),
    ):
        bar.setFixedWidth(width)
        qtbot.waitUntil(lambda width=width: bar.width() == width and not is_cut())
        assert search.text().startswith(text)
        assert {button.toolButtonStyle() for button in with_text} == {style}
