"""The loupe: an element and its neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtWidgets import QApplication

VALUE = np.arange(2 * 40 * 40, dtype=np.float32).reshape(1, 2, 40, 40)


@pytest.fixture
def pane(pane):
    pane.set_value("x", VALUE)
    pane.show_channel(0)
    return pane


def centre(pane, row, column):
    x, y, width, height = pane.plane.port.cell_rect(row, column)
    return QPoint(round(x + width / 2), round(y + height / 2))


def hover(qtbot, pane, row, column):
    with qtbot.waitSignal(pane.plane.hovered):
        qtbot.mouseMove(pane.plane, centre(pane, row, column))


def ask_for_menu(pane, at):
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, pane.plane.mapToGlobal(at))
    QApplication.sendEvent(pane.plane, event)


def test_follows_the_mouse_beside_the_element(qtbot, pane):
    hover(qtbot, pane, 5, 5)
    assert not pane.loupe.isVisible()
    pane.actions_table["tensor.loupe"].trigger()
    assert pane.loupe.caption == "[0, 0, 5, 5] 205.0"
    for row, column in ((0, 0), (39, 39), (20, 3)):
        hover(qtbot, pane, row, column)
        assert pane.loupe.place == (row, column)
        at = pane.plane.mapTo(pane, centre(pane, row, column))
        assert not pane.loupe.geometry().contains(at)
        assert pane.rect().contains(pane.loupe.geometry())
    pane.show_channel(1)  # the same place of another channel
    assert pane.loupe.caption == f"[0, 1, 20, 3] {1600 + 20 * 40 + 3}.0"
    QApplication.sendEvent(pane.plane, QEvent(QEvent.Type.Leave))
    assert not pane.loupe.isVisible()


def test_its_cells_have_the_colours_of_the_picture(qtbot, pane):
    pane.actions_table["tensor.loupe"].trigger()
    hover(qtbot, pane, 20, 20)
    picture, enlarged = pane.plane.grab().toImage(), pane.loupe.grab().toImage()
    for down in (-3, 0, 3):
        for across in (-3, 0, 3):
            expected = picture.pixelColor(centre(pane, 20 + down, 20 + across))
            # Near a corner of the cell, where no number is.
            found = enlarged.pixelColor(1 + 38 * (3 + across) + 4, 1 + 38 * (3 + down) + 4)
            assert found == expected


def test_moves_with_the_pick_by_keyboard(qtbot, pane):
    pane.actions_table["tensor.loupe"].trigger()
    qtbot.keyClick(pane.plane, Qt.Key.Key_Left)  # picks the middle
    qtbot.keyClick(pane.plane, Qt.Key.Key_Down)
    assert pane.loupe.place == (21, 20)
    assert "[0, 0, 21, 20]" in pane.loupe.accessibleDescription()


@pytest.mark.parametrize("at_press", [True, False])
def test_holding_the_right_button_shows_it_instead_of_the_menu(qtbot, pane, at_press):
    """Platforms ask for a menu at the press or after the release."""
    asked = []
    pane.plane.menu_requested.disconnect()
    pane.plane.menu_requested.connect(asked.append)
    at = centre(pane, 7, 8)
    qtbot.mouseMove(pane.plane, at)
    qtbot.mousePress(pane.plane, Qt.MouseButton.RightButton, pos=at)
    if at_press:
        ask_for_menu(pane, at)
    qtbot.waitUntil(pane.loupe.isVisible)
    assert pane.loupe.place == (7, 8)
    qtbot.mouseRelease(pane.plane, Qt.MouseButton.RightButton, pos=at)
    if not at_press:
        ask_for_menu(pane, at)
    assert not pane.loupe.isVisible()
    assert asked == []

    qtbot.mousePress(pane.plane, Qt.MouseButton.RightButton, pos=at)
    if at_press:
        ask_for_menu(pane, at)
    qtbot.mouseRelease(pane.plane, Qt.MouseButton.RightButton, pos=at)
    if not at_press:
        ask_for_menu(pane, at)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "value",
    [
        np.full((1, 1, 6, 6), np.nan, np.float32),
        np.array([[np.nan, np.inf], [-np.inf, 1.7e308]]),
        np.array([[-(2**63), 2**63 - 1], [0, 1]]),
        np.eye(9, dtype=bool),
        np.ones((5, 5), np.complex64) * (3 + 4j),
    ],
)
def test_shows_every_kind_of_number(qtbot, pane, value):
    pane.set_value("y", value)
    pane.actions_table["tensor.loupe"].trigger()
    hover(qtbot, pane, 1, 1)
    assert not pane.loupe.grab().isNull()


def test_entries_of_a_vector(qtbot, pane):
    """Thousands of entries share their pixels; the loupe shows seven with their numbers."""
    values = np.random.default_rng(0).normal(size=5000).astype(np.float32)
    pane.set_value("scores", values)
    pane.actions_table["tensor.loupe"].trigger()
    plot = pane.vector
    at = plot.cell_area(0, 4000).center().toPoint()
    with qtbot.waitSignal(plot.hovered):
        qtbot.mouseMove(plot, at)
    row, entry = pane.loupe.place
    assert row == 0
    assert pane.loupe.caption == f"[{entry}] {values[entry]!s}"
    assert pane.loupe.width() > 5 * pane.loupe.height() - 100  # one row of cells
    assert pane.rect().contains(pane.loupe.geometry())
    assert not pane.loupe.geometry().contains(plot.mapTo(pane, at))
    painted = pane.loupe.grab().toImage()
    for across in (-3, 0, 3):
        expected = pane.colors.coloring().color_of(float(values[entry + across]))
        corner = QPoint(1 + (across + 3) * 38 + 4, 1 + 4)
        assert painted.pixelColor(corner) == expected
