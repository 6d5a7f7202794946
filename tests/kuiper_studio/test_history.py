"""The history of a place, in the window: through commands and clicks."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QMenu

from kuiper_studio.item_models.history_rows import VisitColumn
from kuiper_studio.panels.history_panel import strip_image

RNG = np.random.default_rng(5)
INPUT = RNG.normal(size=(1, 3, 8, 8)).astype(np.float32)


@pytest.fixture
def window(open_window, residual, qtbot):
    window = open_window(residual, [INPUT])
    window.session.resume()
    assert window.session.wait_idle(10)
    return window


def trace(window, qtbot, operator, index):
    """Pick an element of an operator's output, and follow its place."""
    window.session.select(operator)
    qtbot.waitUntil(lambda: window.tensor_view.pane.model.array is not None)
    window.tensor_view.pane.show_element(index)
    action = window.actions_by_id["analyse.history"]
    assert action.isEnabled()
    action.trigger()
    wait(window, qtbot)


def wait(window, qtbot):
    tracing = window.session.tracing
    qtbot.waitUntil(lambda: bool(tracing.reason) or tracing.found is not None)


def texts(window, column):
    shown = window.history_panel.table.shown
    return [shown.index(row, column).data() for row in range(shown.rowCount())]


def click(window, qtbot, row):
    table = window.history_panel.table
    index = table.shown.index(row, VisitColumn.ELEMENT)
    table.scrollTo(index)
    place = table.visualRect(index).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)


def test_every_operator_has_a_row(window, qtbot):
    trace(window, qtbot, "layer1.relu", (0, 1, 2, 3))
    panel, session = window.history_panel, window.session
    assert panel.isVisible()
    operand = session.graph.operator("layer1.relu").outputs[0].name
    assert panel.title.text() == f"{operand}[0, 1, 2, 3]"
    assert panel.place.text() == "Row 2 of 8 · column 3 of 8"
    names = ["in", "layer1.conv", "layer1.relu", "add", "layer2.pool"]  # strange has no layer
    assert texts(window, VisitColumn.OPERATOR) == names
    assert texts(window, VisitColumn.ELEMENT)[4].endswith(", 1, 1]")  # half the size
    current = panel.table.currentIndex().row()
    assert names[current] == "layer1.relu"


def test_a_click_goes_to_the_element(window, qtbot):
    trace(window, qtbot, "layer1.relu", (0, 1, 2, 3))
    before = texts(window, VisitColumn.ELEMENT)
    click(window, qtbot, 0)
    first = window.session.graph.operators[0]
    assert window.session.selected == first.name
    place = max(range(3), key=lambda channel: abs(INPUT[0, channel, 2, 3]))
    qtbot.waitUntil(
        lambda: window.tensor_view.chosen_element == (first.outputs[0].name, (0, place, 2, 3))
    )
    assert texts(window, VisitColumn.ELEMENT) == before  # the place stays
    assert before[0] == f"{first.outputs[0].name}[0, {place}, 2, 3]"
    value = window.history_panel.table.shown.index(0, VisitColumn.VALUE).data()
    assert float(value.replace("\N{MINUS SIGN}", "-")) == pytest.approx(
        float(INPUT[0, place, 2, 3]), abs=1e-3
    )


def test_the_row_follows_the_selection(window, qtbot):
    trace(window, qtbot, "layer1.relu", (0, 1, 2, 3))
    panel, chosen = window.history_panel, []
    panel.visit_chosen.connect(chosen.append)
    window.session.select("add")
    row = panel.table.currentIndex()
    assert row.siblingAtColumn(VisitColumn.OPERATOR).data() == "add"
    window.session.select("layer1.relu")
    assert panel.table.currentIndex().siblingAtColumn(VisitColumn.OPERATOR).data() == (
        "layer1.relu"
    )
    assert not chosen  # only a click goes to the element


def test_it_is_in_the_menus(window):
    menu = QMenu(window)
    window.tensor_view.fill_menu(menu)
    assert window.actions_by_id["analyse.history"] in menu.actions()


def test_another_input_is_followed_again(window, qtbot):
    trace(window, qtbot, "layer1.relu", (0, 1, 2, 3))
    values = texts(window, VisitColumn.VALUE)
    window.session.restart()
    assert window.session.wait_idle(10)
    panel = window.history_panel
    assert panel.place.text().endswith("has not been computed.")
    assert panel.model.rows == ()
    window.session.resume()
    assert window.session.wait_idle(10)
    wait(window, qtbot)
    assert texts(window, VisitColumn.VALUE) == values


def test_another_model_forgets_the_place(window, qtbot):
    trace(window, qtbot, "layer1.relu", (0, 1, 2, 3))
    window.session.close_model()
    assert window.session.wait_idle(10)
    panel = window.history_panel
    assert panel.title.text() == "No place chosen"
    assert "(Shift+P)" in panel.place.text()
    assert panel.model.rows == ()


def test_without_an_element_there_is_a_hint(window, qtbot):
    window.session.select("layer1.relu")
    window.actions_by_id["analyse.history"].trigger()
    assert window.session.tracing.place is None


def test_an_element_without_a_place(open_window, make_pair, qtbot):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,5)f32",
        "nn.ReLU act 1 1 0 1 #1=(1,5)f32",
        "pnnx.Output out 1 0 1",
    )
    window = open_window(path, [np.ones((1, 5), np.float32)])
    window.session.resume()
    assert window.session.wait_idle(10)
    trace(window, qtbot, "act", (0, 3))
    assert "each row is a whole operand" in window.history_panel.place.text()


@pytest.mark.parametrize(
    ("values", "reddest"),
    [([-1.0, 0.0, 2.0], 2), ([np.nan, -3.0, 3.0], 2)],
)
def test_strips_of_both_signs_are_blue_and_red(values, reddest):
    image = strip_image(np.array(values, np.float32))
    colors = [QColor(image.pixel(x, 0)) for x in range(image.width())]
    assert (image.width(), image.height()) == (3, 1)
    excess = [color.red() - color.blue() for color in colors]
    assert excess.index(max(excess)) == reddest
    assert excess[reddest] > 50


def test_a_strip_of_one_number_is_painted():
    for number in (0.0, 5.0, np.inf):
        assert strip_image(np.array([number], np.float32)).width() == 1
