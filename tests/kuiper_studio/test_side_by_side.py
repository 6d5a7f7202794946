"""Ours, the reference's tensor and the difference beside each other, of one operand."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel

from kuiper_studio.tensor_view import Side
from kuiper_studio.tensor_view.view_model import Scope

SHAPE = (1, 2, 4, 5)
INPUT = np.arange(40, dtype=np.float32).reshape(SHAPE) + 1
# Ours is three times the input. In the reference one element of channel 1 is 30 less, another
# one 15 more.
THEIRS = 3 * INPUT
THEIRS[0, 1, 2, 3] -= 30
THEIRS[0, 1, 0, 0] += 15

PICTURES = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,5)f32",
    "pnnx.Expression times 1 1 0 1 expr=mul(@0,3) #0=(1,2,4,5)f32 #1=(1,2,4,5)f32",
    "pnnx.Output out 1 0 1 #1=(1,2,4,5)f32",
)
VECTOR = (
    "pnnx.Input in 0 1 0 #0=(6)f32",
    "pnnx.Expression times 1 1 0 1 expr=mul(@0,3) #0=(6)f32 #1=(6)f32",
    "pnnx.Output out 1 0 1 #1=(6)f32",
)


@pytest.fixture
def compared(qtbot, open_window, make_pair, tmp_path):
    """A function that opens a network in a window, runs it and compares it."""

    def make(lines, fed, theirs):
        path = tmp_path / "reference.npz"
        np.savez(path, **{"0": fed, "1": theirs})
        window = open_window(make_pair(*lines), [fed])
        session = window.session
        assert session.wait_idle(10)
        session.resume()
        assert session.wait_idle(10)
        session.compare(path)
        assert session.wait_idle(20)
        body = window.tensor_view.pane.body
        canvases = body.planes if len(fed.shape) > 1 else body.vectors
        if window.tensor_view.sides.side("1") is Side.ALL:
            qtbot.waitUntil(canvases.difference.isVisible)  # the reference's is fetched
        return window

    return make


@pytest.fixture
def pictures(compared):
    return compared(PICTURES, INPUT, THEIRS)


def shown_color(canvas, row, column):
    x, y, width, height = canvas.port.cell_rect(row, column)
    return canvas.grab().toImage().pixelColor(round(x + width / 2), round(y + height / 2))


def middle(canvas, row, column):
    x, y, width, height = canvas.port.cell_rect(row, column)
    return QPoint(round(x + width / 2), round(y + height / 2))


def test_three_pictures_of_one_size(pictures):
    planes = pictures.tensor_view.pane.body.planes
    assert all(canvas.isVisible() for canvas in planes.canvases)
    assert len({canvas.port.view[2:] for canvas in planes.canvases}) == 1
    assert not pictures.tensor_view.pane.mosaic.isVisible()
    assert pictures.tensor_view.pane.model.channel == 1  # where the worst element is


def test_colours(pictures):
    planes = pictures.tensor_view.pane.body.planes
    # Where both are equal, both have one colour, and the difference is white.
    assert shown_color(planes.ours, 3, 0) == shown_color(planes.theirs, 3, 0)
    assert shown_color(planes.difference, 3, 0).lightness() > 240
    # Ours is 30 more, the largest difference: the red end. 15 less is a lighter blue.
    most, least = shown_color(planes.difference, 2, 3), shown_color(planes.difference, 0, 0)
    assert most.red() > 90 > 60 > most.blue()
    assert least.blue() > least.red() + 40
    assert shown_color(planes.ours, 2, 3) != shown_color(planes.theirs, 2, 3)


def test_one_zoom(pictures):
    planes = pictures.tensor_view.pane.body.planes
    before = planes.ours.port.zoom
    planes.theirs.zoom_by(3)
    zooms = [canvas.port.zoom for canvas in planes.canvases]
    assert zooms == [zooms[0]] * 3
    assert zooms[0] > before
    edges = [canvas.port.cell_rect(0, 0)[0] - canvas.port.view[0] for canvas in planes.canvases]
    assert edges == pytest.approx([edges[0]] * 3)
    pictures.tensor_view.pane.actions_table["tensor.fit"].trigger()
    assert [canvas.port.zoom for canvas in planes.canvases] == [before] * 3


def test_one_cursor(qtbot, pictures):
    planes = pictures.tensor_view.pane.body.planes
    plain = shown_color(planes.ours, 2, 3), planes.ours.grab().toImage()
    qtbot.mouseMove(planes.difference, middle(planes.difference, 1, 1))
    qtbot.mouseMove(planes.difference, middle(planes.difference, 2, 3))
    text = pictures.status_bar.findChild(object, "statusHovered").text()
    # Three times element 34 of the input, which counts from 1.
    assert text == "[0, 1, 2, 3] ours 102.0, reference 72.0, difference +30"
    assert planes.ours.grab().toImage() != plain[1]  # the element is framed there too
    assert shown_color(planes.ours, 2, 3) == plain[0]


def test_one_pick(qtbot, pictures):
    planes = pictures.tensor_view.pane.body.planes
    before = planes.ours.grab().toImage()
    qtbot.mouseClick(planes.theirs, Qt.MouseButton.LeftButton, pos=middle(planes.theirs, 0, 0))
    element = pictures.tensor_view.picked
    assert (element.index, element.value) == ((0, 1, 0, 0), 63)
    assert "reference 78.0, difference -15" in str(element)
    assert planes.ours.grab().toImage() != before


def test_how_far_they_are_apart(pictures):
    panel = pictures.tensor_view.pane.statistics
    shown = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
    facts = dict(zip(shown[1::2], shown[2::2], strict=False))
    assert shown[0] == "Difference"
    # Two of 40 elements differ, by 30 and by 15.
    assert float(facts["max"]) == 30
    assert float(facts["MAE"]) == 45 / 40
    assert float(facts["RMSE"]) == pytest.approx((1125 / 40) ** 0.5, rel=1e-3)
    assert facts["within 1‰"] == "95.0 %"
    assert facts["NaN / Inf"] == "agree"
    pictures.actions_by_id["analyse.clear"].trigger()
    shown = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
    assert "Difference" not in shown
    assert "Tensor" in shown


def test_the_range_of_a_channel_is_that_of_both(pictures):
    pane = pictures.tensor_view.pane
    pane.actions_table.scope_chosen.emit(Scope.CHANNEL)
    both = np.stack([3 * INPUT[0, 1], THEIRS[0, 1]])
    planes = pane.body.planes
    for canvas in (planes.ours, planes.theirs):
        assert (canvas.coloring.low, canvas.coloring.high) == (both.min(), both.max())
    assert (planes.difference.coloring.low, planes.difference.coloring.high) == (-30, 30)
    pane.show_channel(0)
    assert planes.theirs.coloring.high == THEIRS[0, 0].max()
    assert planes.difference.coloring.high < 1e-3  # nothing differs there


def test_another_channel(pictures):
    pane = pictures.tensor_view.pane
    pane.show_channel(0)
    planes = pane.body.planes
    assert shown_color(planes.difference, 0, 0) == shown_color(planes.difference, 2, 3)
    assert shown_color(planes.ours, 2, 3) == shown_color(planes.theirs, 2, 3)


def test_flicker_shows_one_at_a_time(qtbot, pictures):
    tensor = pictures.tensor_view
    planes = tensor.pane.body.planes
    pictures.actions_by_id["analyse.flicker"].trigger()
    assert not planes.theirs.isVisible()
    assert np.array_equal(tensor.pane.model.value, THEIRS)
    qtbot.mouseClick(tensor.strip.sides.button(Side.ALL), Qt.MouseButton.LeftButton)
    assert planes.theirs.isVisible()
    assert np.array_equal(tensor.pane.model.value, 3 * INPUT)


def test_numbers_and_grid(qtbot, pictures):
    """The table shows ours; the grid comes back where only one side is shown."""
    pane = pictures.tensor_view.pane
    actions = pane.actions_table
    assert not actions["tensor.grid"].isEnabled()
    actions["tensor.table"].trigger()
    assert pane.body.shown is pane.table
    assert not pane.body.planes.ours.isVisible()
    actions["tensor.table"].trigger()
    assert pane.body.planes.difference.isVisible()
    qtbot.mouseClick(
        pictures.tensor_view.strip.sides.button(Side.OURS), Qt.MouseButton.LeftButton
    )
    assert pane.mosaic.isVisible()


def test_a_vector(compared):
    fed = np.array([1, 2, 3, 4, 5, 6], np.float32)
    window = compared(VECTOR, fed, 3 * fed + np.array([0, 0, 0, 0, 0, 9], np.float32))
    vectors = window.tensor_view.pane.body.vectors
    assert all(canvas.isVisible() for canvas in vectors.canvases)
    vectors.theirs.zoom_by(2)
    assert vectors.ours.range == vectors.theirs.range == vectors.difference.range
    assert vectors.difference.coloring.low == -9
    assert vectors.difference.coloring.high == 9


def test_the_choice_is_remembered(qtbot, compared):
    window = compared(PICTURES, INPUT, THEIRS)
    bar = window.tensor_view.strip.sides
    qtbot.mouseClick(bar.button(Side.REFERENCE), Qt.MouseButton.LeftButton)
    window.actions_by_id["analyse.flicker"].trigger()  # which is for the moment
    window.close()
    again = compared(PICTURES, INPUT, THEIRS)
    assert again.tensor_view.strip.sides.button(Side.REFERENCE).isChecked()
