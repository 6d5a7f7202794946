"""The self-check in the window."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton
from shiboken6 import isValid

from engine.backends import operator_lowerings
from engine.inputs import InputSource
from engine.layers.activations import relu
from kuiper_studio.dialogs.self_check_dialog import SelfCheckDialog
from kuiper_studio.item_models.comparisons import ComparisonColumn
from kuiper_studio.session import RunState
from kuiper_studio.theme import Scheme

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")

NET = (
    "pnnx.Input in 0 1 0 #0=(1,2,8,8)f32",
    (
        "nn.Conv2d conv 1 1 0 1 bias=False kernel_size=(3,3) padding=(1,1) stride=(1,1) "
        "@weight=(2,2,3,3)f32 #1=(1,2,8,8)f32"
    ),
    "nn.ReLU first 1 1 1 2 #2=(1,2,8,8)f32",
    "nn.Sigmoid squash 1 1 2 3 #3=(1,2,8,8)f32",
    "nn.ReLU second 1 1 3 4 #4=(1,2,8,8)f32",
    "pnnx.Output out 1 0 4",
)


@pytest.fixture
def net(make_pair):
    weight = np.random.default_rng(1).normal(size=(2, 2, 3, 3)).astype(np.float32)
    return make_pair(*NET, weights={"conv.weight": weight})


@pytest.fixture
def window(open_window, net):
    image = np.random.default_rng(2).normal(size=(1, 2, 8, 8)).astype(np.float32)
    return open_window(net, [image])


@pytest.fixture
def fault(monkeypatch):
    """ONNX Runtime computes another function than the rectifier."""
    monkeypatch.setitem(
        operator_lowerings.LOWERINGS._lowerings,
        relu,
        lambda graph, x: graph.node("Softplus", graph.read(x)),
    )


@pytest.fixture
def check(qtbot, window):
    """A function that runs the check by its command and gives the dialog, or None."""

    def run():
        action = window.findChild(QAction, "debug.selfCheck")
        assert action.isEnabled()
        action.trigger()
        qtbot.waitUntil(lambda: not window.session.busy, timeout=20_000)
        return window.findChild(SelfCheckDialog)

    return run


def number(text: str) -> float:
    return float(text.replace("\N{MINUS SIGN}", "-"))


def cells(dialog, column):
    model = dialog.table.model()
    return [model.index(row, column).data() for row in range(model.rowCount())]


def title(dialog):
    return dialog.findChild(QLabel, "selfCheckTitle").text()


def logged(window):
    return [(entry.level, entry.text) for entry in window.session.workspace.log_entries]


def test_all_agree(window, check):
    dialog = check()
    assert dialog.isVisible()
    assert title(dialog) == "All backends agree with NumPy"
    assert dialog.findChild(QLabel, "selfCheckSummary").text().startswith("4 operators, ")
    assert not dialog.only_differing.isEnabled()
    assert set(cells(dialog, ComparisonColumn.VERDICT)) == {"agrees"}
    assert {"ncnn/winograd", "onnxruntime/all-1"} <= set(cells(dialog, ComparisonColumn.KERNEL))
    level, text = logged(window)[-1]
    assert level == "info"
    assert text.startswith("self-check: 4 operators, ")
    assert window.session.state is RunState.READY  # it ran beside the session


def test_a_fault_is_named(window, check, fault):
    from engine.backends.onnx_nchwc import nchwc_block_size

    dialog = check()
    assert title(dialog) == "2 operators differ"
    assert dialog.only_differing.isChecked()
    # Each by itself, and both at once up to the first that differs: in the common order, and
    # in blocks of channels where the processor has such.
    at_once = 2 if nchwc_block_size() else 1
    assert dialog.only_differing.text() == f"Only differences ({2 + at_once})"
    assert set(cells(dialog, ComparisonColumn.NAME)) == {"first", "second"}
    assert set(cells(dialog, ComparisonColumn.VERDICT)) == {"differs"}
    assert all(kernel.startswith("onnxruntime/") for kernel in cells(dialog, 3))
    # log(1 + exp(x)) for max(x, 0): of 0 log(2), which has nothing in common with it.
    assert all(number(text) > 0.3 for text in cells(dialog, ComparisonColumn.LARGEST))
    by_name = zip(cells(dialog, 1), cells(dialog, ComparisonColumn.OF_ELEMENT), strict=True)
    assert {text for name, text in by_name if name == "first"} == {"1"}
    warnings = [text for level, text in logged(window) if level == "warning"]
    assert any(
        "nn.ReLU first by onnxruntime/all-1 differs by up to 0.69" in w for w in warnings
    )
    assert any("differ by more than 0.001, in first, second" in text for text in warnings)
    dialog.only_differing.setChecked(False)
    assert set(cells(dialog, ComparisonColumn.VERDICT)) == {"differs", "agrees"}


def test_a_small_difference_is_relative_to_its_element(
    qtbot, open_model, theme, make_pair, monkeypatch
):
    """Far from what it should be, and next to nothing beside the largest number."""
    from engine.backends import onnx_accurate

    monkeypatch.setitem(onnx_accurate._EXPANSIONS, "Sigmoid", lambda node, constant: [node])
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,2,8,8)f32",
        "nn.Sigmoid squash 1 1 0 1",
        "pnnx.Output out 1 0 1",
        name="squash",
    )
    x = np.full((1, 2, 8, 8), 3, np.float32)
    x[0, 1, 2, 3] = -17.7
    session = open_model(param, InputSource("array", array=x))
    with qtbot.waitSignal(session.studies.self_checked, timeout=20_000) as caught:
        session.studies.self_check()
    dialog = SelfCheckDialog(theme)
    qtbot.addWidget(dialog)
    dialog.show_result(caught.args[0])
    assert title(dialog) == "1 operator differs"
    assert number(cells(dialog, ComparisonColumn.LARGEST)[0]) < 1e-6
    assert number(cells(dialog, ComparisonColumn.OF_ELEMENT)[0]) > 0.1
    assert cells(dialog, ComparisonColumn.BEYOND)[0] == "1"
    assert cells(dialog, ComparisonColumn.WHERE)[0].startswith("at [0, 1, 2, 3]: ")
    warnings = [
        entry.text for entry in session.workspace.log_entries if entry.level == "warning"
    ]
    assert any("; relative to the element by up to 0." in text for text in warnings)


def test_nothing_is_selected_until_a_row_is(qtbot, window, check, fault):
    window.session.select("in")
    dialog = check()
    qtbot.wait(50)
    assert window.session.selected == "in"
    for row in (1, 0):
        index = dialog.table.model().index(row, ComparisonColumn.NAME)
        place = dialog.table.visualRect(index).center()
        qtbot.mouseClick(dialog.table.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert window.session.selected == index.data()
    assert window.properties_panel.isVisible()


def test_sorting(window, check):
    dialog = check()
    relative = [number(text) for text in cells(dialog, ComparisonColumn.RELATIVE)]
    assert relative == sorted(relative, reverse=True)
    dialog.table.sortByColumn(ComparisonColumn.INDEX, Qt.SortOrder.AscendingOrder)
    indexes = [int(text) for text in cells(dialog, ComparisonColumn.INDEX)]
    assert indexes == sorted(indexes)
    dialog.table.sortByColumn(ComparisonColumn.KERNEL, Qt.SortOrder.DescendingOrder)
    kernels = cells(dialog, ComparisonColumn.KERNEL)
    assert kernels == sorted(kernels, reverse=True)


def test_copying(qtbot, window, check, fault):
    dialog = check()
    qtbot.mouseClick(dialog.findChild(QPushButton, "selfCheckCopy"), Qt.MouseButton.LeftButton)
    summary, empty, head, *rows = QGuiApplication.clipboard().text().splitlines()
    assert summary.startswith("4 operators, ")
    assert empty == ""
    assert head.split("\t")[:4] == ["#", "Operator", "Type", "Kernel"]
    assert [row.split("\t")[1] for row in rows] == cells(dialog, ComparisonColumn.NAME)
    index = dialog.table.model().index(0, 0)
    dialog.table.selectionModel().setCurrentIndex(
        index, QItemSelectionModel.SelectionFlag.SelectCurrent
    )
    qtbot.keyClick(dialog.table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert " by onnxruntime/all-1 differs by up to 0." in QGuiApplication.clipboard().text()


def test_another_tolerance(qtbot, window, check, fault):
    dialog = check()
    assert dialog.tolerance.currentText() == "1e-3"
    dialog.tolerance.addItem("10")
    dialog.tolerance.setCurrentText("10")
    qtbot.mouseClick(dialog.findChild(QPushButton, "selfCheckAgain"), Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.session.busy, timeout=20_000)
    assert title(dialog) == "All backends agree with NumPy"
    assert window.findChildren(SelfCheckDialog) == [dialog]


def test_the_dialog_goes_with_its_model(qtbot, window, check):
    dialog = check()
    window.findChild(QAction, "file.close").trigger()
    qtbot.waitUntil(lambda: not isValid(dialog))
    assert window.findChild(SelfCheckDialog) is None


def test_closed_and_opened_again(qtbot, window, check):
    dialog = check()
    dialog.close()
    qtbot.waitUntil(lambda: not isValid(dialog))
    assert check().isVisible()


def test_the_verdict_follows_the_theme(window, check):
    dialog = check()
    (icon,) = [label for label in dialog.findChildren(QLabel) if not label.pixmap().isNull()]
    dark = icon.pixmap().toImage()
    window.theme.set_scheme(Scheme.LIGHT)
    assert icon.pixmap().toImage() != dark


def test_cancelling(qtbot, window, monkeypatch):
    """Cancel in the status bar ends it; there is a line in the log, and no dialog."""
    session = window.session
    cancel = window.findChild(QPushButton, "statusCancel")
    seen, pressed = [], threading.Event()

    def on_progress(progress):
        if progress is not None and progress.done == 2 and not seen:
            seen.append((cancel.isVisible(), progress.label))
            cancel.click()
            pressed.set()

    session.progress_changed.connect(on_progress)
    lower = operator_lowerings.LOWERINGS._lowerings[relu]

    def waiting(graph, operand):
        pressed.wait(10)
        return lower(graph, operand)

    monkeypatch.setitem(operator_lowerings.LOWERINGS._lowerings, relu, waiting)
    window.findChild(QAction, "debug.selfCheck").trigger()
    qtbot.waitUntil(lambda: not session.busy, timeout=20_000)
    assert seen == [(True, "Self-check: 2 of 6")]
    assert window.findChild(SelfCheckDialog) is None
    assert logged(window)[-1][1].startswith("self-check: Cancelled before the end. ")
    assert session.progress is None


def test_when_it_can_be_asked_for(qtbot, open_window, net, window):
    command = "debug.selfCheck"
    assert open_window().findChild(QAction, command).isEnabled() is False
    assert open_window(net).findChild(QAction, command).isEnabled() is False  # no input
    window.session.resume()
    qtbot.waitUntil(lambda: window.session.state is RunState.FINISHED)
    assert window.findChild(QAction, command).isEnabled()


def test_no_library(qtbot, window, monkeypatch, check):
    monkeypatch.setattr("engine.backend_names.find_spec", lambda name: None)
    assert check() is None
    assert window.session.failure is not None
    assert window.session.failure.reason.startswith("no other backend than NumPy is installed")


def test_what_could_not_be_checked(qtbot, open_window, residual):
    """The net has an operator without a layer."""
    window = open_window(residual, [np.ones((1, 3, 8, 8), np.float32)])
    window.findChild(QAction, "debug.selfCheck").trigger()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=20_000)
    dialog = window.findChild(SelfCheckDialog)
    assert title(dialog) == "Some operators could not be checked"
    assert "operators could not run: 'strange': no layer for operator type my.Strange" in (
        dialog.findChild(QLabel, "selfCheckSummary").text()
    )
    assert logged(window)[-1][0] == "warning"


def test_special_numbers(qtbot, open_model, make_pair, theme):
    """What is left to NumPy has a reason where the others have numbers."""
    param = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
        "F.max_pool2d pool 1 1 0 1 kernel_size=2 stride=2",
        "pnnx.Output out 1 0 1",
        name="pool",
    )
    nan = np.full((1, 2, 4, 4), np.nan, np.float32)
    session = open_model(param, InputSource("array", array=nan))
    with qtbot.waitSignal(session.studies.self_checked, timeout=20_000) as caught:
        session.studies.self_check()
    dialog = SelfCheckDialog(theme)
    qtbot.addWidget(dialog)
    dialog.show_result(caught.args[0])
    assert set(cells(dialog, ComparisonColumn.VERDICT)) == {"left to NumPy"}
    assert set(cells(dialog, ComparisonColumn.WHERE)) == {"NaN or infinities"}
    assert set(cells(dialog, ComparisonColumn.LARGEST)) == {""}
