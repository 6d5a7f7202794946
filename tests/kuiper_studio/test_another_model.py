"""What was done with one model leaves nothing behind that trips over the next."""

from __future__ import annotations

import numpy as np
import pytest
from driving import trigger
from PySide6.QtCore import Qt

from engine.inputs import InputSource
from kuiper_studio.item_models import OperatorColumn
from kuiper_studio.session import RunState

OTHER = (
    "pnnx.Input other 0 1 x #x=(2,5)f32",
    "nn.ReLU first 1 1 x y #x=(2,5)f32 #y=(2,5)f32",
    "pnnx.Output last 1 0 y",
)
STRANGE = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
    "my.Strange strange 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
    "nn.ReLU relu 1 1 1 2 #1=(1,2,4,4)f32 #2=(1,2,4,4)f32",
    "pnnx.Output out 1 0 2",
)


@pytest.fixture
def window(qtbot, open_window, make_pair):
    window = open_window(make_pair(*STRANGE, name="strange"), [np.ones((1, 2, 4, 4), "f4")])
    qtbot.waitUntil(lambda: not window.session.busy)
    return window


@pytest.fixture
def open_other(qtbot, window, make_pair):
    """A function that opens another model, and runs it."""
    path = make_pair(*OTHER, name="other")

    def open_it():
        session = window.session
        session.next_model.set_sources([InputSource("constant", value=1.0)])
        session.open(path)
        qtbot.waitUntil(lambda: session.model_path == path and not session.busy, timeout=10_000)
        session.resume()
        qtbot.waitUntil(lambda: session.state is RunState.FINISHED)
        assert session.fetch("y").tolist() == [[1.0] * 5] * 2

    return open_it


DYNAMIC = (
    "pnnx.Input in 0 1 0 #0=(1,?,?)f32",
    "nn.ReLU relu 1 1 0 1 #0=(1,?,?)f32",
    "pnnx.Output out 1 0 1",
)


@pytest.mark.parametrize("in_front", [True, False])
def test_a_locked_tensor(qtbot, window, open_other, in_front):
    window.session.supply("strange", InputSource("array", array=np.ones((1, 2, 4, 4), "f4")))
    qtbot.waitUntil(lambda: not window.session.busy)
    trigger(qtbot, window, "debug.continue")
    for operand in ("0", "1", "2"):
        window.session.show_operand(operand)
        window.tensor_view.strip.tabs.setCurrentIndex(0)
        window.tensor_view.lock()
    assert window.tensor_view.locked == ("0", "1", "2")
    if not in_front:
        window.tensor_view.strip.tabs.setCurrentIndex(0)
    open_other()
    assert window.tensor_view.locked == ()


def test_an_edited_size(qtbot, window, open_other):
    window.session.set_inputs({"0": InputSource("random", seed=0)})
    qtbot.waitUntil(lambda: not window.session.busy)
    card = window.input_panel.cards["0"]
    card.sizes.fields[2].setFocus()
    card.sizes.fields[2].setValue(6)
    qtbot.waitUntil(lambda: not window.session.busy)
    open_other()


def test_a_size_that_is_being_edited(qtbot, window, open_other):
    window.session.set_inputs({"0": InputSource("random", seed=0)})
    qtbot.waitUntil(lambda: not window.session.busy)
    field = window.input_panel.cards["0"].sizes.fields[2]
    window.activateWindow()
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "6")  # and no Enter
    open_other()


def test_a_size_that_is_being_asked_for(qtbot, window, open_other, make_pair):
    dynamic = make_pair(*DYNAMIC, name="dynamic")
    window.session.next_model.set_sources([InputSource("random", seed=0)])
    window.session.open(dynamic)
    qtbot.waitUntil(lambda: window.session.model_path == dynamic and not window.session.busy)
    field = window.input_panel.cards["0"].sizes.fields[1]
    window.activateWindow()
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, "6")
    open_other()


@pytest.mark.parametrize("steps", [1, 0])
def test_an_unsupported_operator(qtbot, window, open_other, steps):
    for _ in range(steps):
        trigger(qtbot, window, "debug.step")
        window.session.select("strange")
        qtbot.wait(60)
    trigger(qtbot, window, "debug.continue")
    window.session.select("strange")
    assert window.banner.isVisible()
    open_other()
    assert not window.banner.isVisible()


def test_a_comparison_and_operators_by_time(qtbot, open_window, make_pair, tmp_path):
    def net(*names):
        return (
            "pnnx.Input in 0 1 0 #0=(2,5)f32",
            *[f"nn.ReLU {n} 1 1 {i} {i + 1} #{i}=(2,5)f32" for i, n in enumerate(names)],
            f"pnnx.Output out 1 0 {len(names)}",
        )

    window = open_window(make_pair(*net("a", "b", "c"), name="abc"), [np.ones((2, 5), "f4")])
    session, panel = window.session, window.operators_panel
    session.resume()
    qtbot.waitUntil(lambda: session.state is RunState.FINISHED)
    np.savez(
        tmp_path / "other.npz", **{"0": np.ones((2, 5), "f4"), "2": np.zeros((2, 5), "f4")}
    )
    session.studies.compare(tmp_path / "other.npz")
    qtbot.waitUntil(lambda: session.comparing.comparison is not None)
    assert window.comparison_panel.isVisible()
    panel.table.sortByColumn(OperatorColumn.MS, Qt.SortOrder.DescendingOrder)
    other = make_pair(*net("d", "e"), name="de")
    session.open(other)
    qtbot.waitUntil(lambda: session.model_path == other and not session.busy, timeout=10_000)
    rows = panel.table.model()
    names = [rows.index(row, OperatorColumn.NAME).data() for row in range(4)]
    assert sorted(names) == ["d", "e", "in", "out"]
    assert not window.comparison_panel.isVisible()  # it would be empty
    assert window.properties_panel.isVisible()
