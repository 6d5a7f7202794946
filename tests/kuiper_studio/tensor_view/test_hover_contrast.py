"""Colours that stretch about the value under the mouse."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication

from kuiper_studio.tensor_view.pane import TensorPane

# The range is 0 to 10: a tenth of it about 5 is 4.5 to 5.5.
PLANE = np.array([[0.0, 5.0, 5.2], [4.9, 10.0, 5.45], [np.nan, 4.6, 4.0]], np.float32)
LOW, HIGH = "#440154", "#fde725"  # the ends of viridis


@pytest.fixture
def pane(qtbot, theme):
    made = TensorPane(theme)
    qtbot.addWidget(made)
    made.resize(700, 460)
    made.show()
    qtbot.waitExposed(made)
    made.set_value("x", PLANE)
    return made


def centre(pane, row, column):
    x, y, width, height = pane.plane.port.cell_rect(row, column)
    return QPoint(round(x + width / 2), round(y + height / 2))


def color(pane, row, column):
    image = pane.plane.grab().toImage()
    x, y, *_ = pane.plane.port.cell_rect(row, column)
    return image.pixelColor(round(x) + 6, round(y) + 6).name()  # beside the number


def hover(qtbot, pane, row, column):
    with qtbot.waitSignal(pane.hovered_changed):
        qtbot.mouseMove(pane.plane, centre(pane, row, column))


def toggle(pane):
    found = [a for a in pane.findChildren(QAction) if a.objectName() == "tensor.hoverContrast"]
    found[0].trigger()


def test_near_values_are_told_apart_while_the_mouse_is_there(qtbot, pane):
    ranges = []
    pane.range_changed.connect(ranges.append)
    place = pane.plane.port.cell_rect(0, 1)
    hover(qtbot, pane, 0, 1)
    assert ranges == []  # it is off at first
    toggle(pane)
    hover(qtbot, pane, 2, 2)
    hover(qtbot, pane, 0, 1)
    assert ranges[-1] == "4.5 … 5.5"
    assert color(pane, 0, 0) == color(pane, 2, 2) == LOW  # 0 and 4 are below
    assert color(pane, 1, 1) == HIGH
    assert color(pane, 0, 2) not in {LOW, HIGH, color(pane, 1, 0)}
    assert pane.plane.port.cell_rect(0, 1) == place  # nothing moves under the mouse
    assert pane.range_bar.low_box.text() == "0"

    QApplication.sendEvent(pane.plane, QEvent(QEvent.Type.Leave))
    assert ranges[-1] == "0 … 10"
    assert color(pane, 2, 2) not in {LOW, HIGH}


def test_no_number_has_no_contrast_and_it_ends_with_its_switch(qtbot, pane):
    toggle(pane)
    hover(qtbot, pane, 2, 0)
    assert pane.plane.coloring.window is None
    hover(qtbot, pane, 1, 0)
    low, high = pane.plane.coloring.window
    assert (low, high) == pytest.approx((4.4, 5.4))
    toggle(pane)
    assert pane.plane.coloring.window is None
    toggle(pane)
    hover(qtbot, pane, 1, 2)
    assert pane.plane.coloring.window is not None
    pane.set_value("y", PLANE * 2)
    assert pane.plane.coloring.window is None


def test_a_vector_and_a_constant(qtbot, pane):
    toggle(pane)
    pane.set_value("v", np.array([1.0, 2.0, 11.0], np.float32))
    pane.vector.hovered.emit((0, 1))
    assert pane.vector.coloring.window == pytest.approx((1.5, 2.5))
    pane.set_value("c", np.full((3, 3), 4.0, np.float32))
    pane.plane.hovered.emit((1, 1))
    low, high = pane.plane.coloring.window
    assert low < 4.0 < high
    pane.set_value("n", np.full((3, 3), np.nan, np.float32))
    pane.plane.hovered.emit((1, 1))
    assert pane.plane.coloring.window is None
