"""One range for all operators of a type and for the whole run, as a user chooses it."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtWidgets import QComboBox

from kuiper_studio.tensor_view.choice import Scope, ValueRange

INPUT = np.array([[[[-4, 1], [2, 3]], [[0, 1], [2, 8]]]], np.float32)
# Values: -4 to 8, 0 to 8, -40 to 80, 0 to 80, and -Inf to log(80).
NET = (
    "pnnx.Input in 0 1 0 #0=(1,2,2,2)f32",
    "F.relu small 1 1 0 1 #1=(1,2,2,2)f32",
    "pnnx.Expression ten 1 1 0 2 expr=mul(@0,10) #2=(1,2,2,2)f32",
    "F.relu large 1 1 2 3 #3=(1,2,2,2)f32",
    "pnnx.Expression log 1 1 3 4 expr=log(@0) #4=(1,2,2,2)f32",
    "pnnx.Output out 2 0 1 4",
)


@pytest.fixture
def window(open_window, make_pair):
    window = open_window(make_pair(*NET), [INPUT])
    assert window.session.wait_idle(10)
    window.session.resume()
    assert window.session.wait_idle(10)
    return window


def show(qtbot, window, operator):
    window.session.select(operator)
    operand = window.session.graph.operator(operator).outputs[0].name
    qtbot.waitUntil(lambda: window.tensor_view.pane.model.name == operand, timeout=10_000)


def choose(window, scope):
    box = window.findChild(QComboBox, "tensorScope")
    assert box.isEnabled()
    box.setCurrentIndex(list(Scope).index(scope))
    box.activated.emit(box.currentIndex())


def await_range(qtbot, window, low, high):
    pane = window.tensor_view.pane
    qtbot.waitUntil(lambda: pane.model.range == ValueRange(low, high), timeout=10_000)
    coloring = pane.colors.coloring()
    assert (coloring.low, coloring.high) == (low, high)
    assert pane.model.page_range() == (low, high)


def test_the_operators_of_a_type_share_a_range(qtbot, window):
    show(qtbot, window, "small")
    await_range(qtbot, window, 0, 8)
    choose(window, Scope.TYPE)
    await_range(qtbot, window, 0, 80)
    assert window.tensor_view.pane.colors.coloring().color_map == "viridis"
    # Both expressions: what has infinite values does not count.
    show(qtbot, window, "ten")
    await_range(qtbot, window, -80, 80)  # symmetric, for there are both signs
    show(qtbot, window, "in")
    await_range(qtbot, window, -8, 8)


def test_the_whole_run_shares_a_range_until_another_is_chosen(qtbot, window):
    pane = window.tensor_view.pane
    show(qtbot, window, "small")
    choose(window, Scope.CHANNEL)
    show(qtbot, window, "large")
    assert pane.model.scope is Scope.TENSOR
    choose(window, Scope.RUN)
    await_range(qtbot, window, -80, 80)
    assert (
        pane.colors.coloring().color_map == "RdBu_r"
    )  # the same for all that is compared by eye
    show(qtbot, window, "small")
    assert window.findChild(QComboBox, "tensorScope").currentText().endswith("the whole run")
    await_range(qtbot, window, -80, 80)

    choose(window, Scope.CHANNEL)  # for this operand alone
    show(qtbot, window, "large")
    window.session.restart()
    assert window.session.wait_idle(10)
    window.session.resume()
    assert window.session.wait_idle(10)
    show(qtbot, window, "large")
    await_range(qtbot, window, -80, 80)
    show(qtbot, window, "small")
    choose(window, Scope.TENSOR)
    await_range(qtbot, window, 0, 8)
    show(qtbot, window, "large")
    await_range(qtbot, window, 0, 80)
    choose(window, Scope.RUN)
    window.session.restart()
    assert window.session.wait_idle(10)
    window.session.step()
    assert window.session.wait_idle(10)
    show(qtbot, window, "in")
    await_range(qtbot, window, -8, 8)  # of what has run by now
