"""The axis strip in a pane: chips, their menus and keys, the slider, what is painted."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt

from engine.axes import Axis, Layout
from engine.axes import Kind as Meaning
from kuiper_studio.tensor_view.axis_roles import AxisRole

GRID = Axis(Meaning.TOKEN, 49, (Axis(Meaning.ROW, 7), Axis(Meaning.COLUMN, 7)))
TOKENS = Axis(Meaning.TOKEN, 50, segments=(Axis(Meaning.CLASS_TOKEN, 1), GRID))
FEATURES = Layout((Axis(Meaning.BATCH, 1), TOKENS, Axis(Meaning.FEATURE, 24)))


def texts(pane):
    return [chip.text() for chip in pane.axes.chips]


def choose(chip, text):
    menu = chip.menu()
    menu.aboutToShow.emit()
    action = next(each for each in menu.actions() if each.text() == text)
    assert action.isEnabled()
    action.trigger()


@pytest.fixture
def scores():
    value = np.random.default_rng(1).random((1, 4, 20, 30)).astype(np.float32)
    kinds = (Meaning.BATCH, Meaning.HEAD, Meaning.QUERY, Meaning.KEY)
    return value, Layout(tuple(map(Axis, kinds, value.shape)))


def test_a_chip_for_each_axis(pane, scores):
    value, layout = scores
    pane.set_value("x", value, layout=layout)
    assert texts(pane) == ["4 heads → mosaic", "20 queries → rows", "30 keys → columns"]
    assert pane.axes.chips[0].accessibleName() == "4 heads: mosaic"
    assert pane.axes.height() == 36
    assert pane.axes.slider.isVisible()
    assert pane.tools.channel.box.isVisible()
    assert not pane.axes.place.isVisible()  # it would be the number above again
    choose(pane.axes.chips[0], "Slider")
    assert pane.axes.place.isVisible()
    assert pane.axes.total.text() == "of 4 heads"
    pane.set_value("y", np.zeros(9))
    assert not pane.axes.isVisible()


def test_chips_have_the_words_of_a_layout_that_comes_later(pane):
    """Where the layout moves no axis, the words are new all the same."""
    pane.resize(900, 600)
    pane.set_value("x", np.zeros((1, 12, 200), np.float32))
    before = texts(pane)
    axes = Axis(Meaning.BATCH, 1), Axis(Meaning.TOKEN, 12), Axis(Meaning.VOCABULARY, 200)
    pane.set_layout(Layout(axes))
    assert texts(pane) != before
    assert [text.split()[1] for text in texts(pane)] == ["tokens", "vocabulary"]


def test_a_menu_moves_an_axis(pane, scores):
    value, layout = scores
    pane.set_value("x", value, layout=layout)
    pane.show_channel(3)
    told = []
    pane.roles_changed.connect(lambda: told.append(pane.model.roles))
    choose(pane.axes.chips[0], "Slider")
    assert texts(pane) == ["4 heads → at 3", "20 queries → rows", "30 keys → columns"]
    choose(pane.axes.chips[1], "Mosaic")
    assert texts(pane) == ["4 heads → at 3", "20 queries → mosaic", "30 keys → columns"]
    choose(pane.axes.chips[0], "Rows")
    assert pane.mosaic.isVisible()
    pane.show_channel(7)
    np.testing.assert_array_equal(pane.model.plane, value[0, :, 7])
    assert len(told) == 3
    choose(pane.axes.chips[2], "All axes as by default")
    assert texts(pane)[0] == "4 heads → mosaic"
    assert not pane.actions_table["tensor.resetAxes"].isEnabled()


def test_keys_exchange_and_walk(pane, scores, qtbot):
    value, layout = scores
    pane.set_value("x", value, layout=layout)
    first, second, third = pane.axes.chips
    first.setFocus()
    qtbot.keyClick(first, Qt.Key.Key_Right)
    assert second.hasFocus()
    qtbot.keyClick(second, Qt.Key.Key_Right, Qt.KeyboardModifier.ControlModifier)
    assert texts(pane) == ["4 heads → mosaic", "20 queries → columns", "30 keys → rows"]
    np.testing.assert_array_equal(pane.model.plane, value[0, pane.model.channel].T)
    qtbot.keyClick(third, Qt.Key.Key_Left)
    assert second.hasFocus()


def test_the_slider_steps_and_plays(pane, qtbot):
    value = np.random.default_rng(1).random((2, 3, 4, 5, 6)).astype(np.float32)
    pane.set_value("x", value)
    choose(pane.axes.chips[2], "Step through it by the slider")
    pane.body.shown.setFocus()
    for expected in (1, 2, 3, 0):  # from the last to the first
        qtbot.keyClick(pane.body.shown, Qt.Key.Key_Period)
        assert pane.axes.place.value() == expected
    qtbot.keyClick(pane.body.shown, Qt.Key.Key_Comma)
    np.testing.assert_array_equal(pane.model.planes, value[0, :, 3])
    pane.actions_table["tensor.playAxis"].trigger()
    qtbot.waitUntil(lambda: pane.axes.place.value() == 1, timeout=3000)
    pane.actions_table["tensor.playAxis"].trigger()
    assert not pane.axes.is_playing


def test_three_channels_are_a_picture_in_colour(pane, color_at):
    value = np.zeros((1, 3, 2, 2), np.float32)
    value[0, 0, 0, 0] = value[0, 1, 0, 1] = value[0, 2, 1, 0] = 1
    pane.set_value("x", value)
    choose(pane.axes.chips[0], "Colour")
    seen = []
    for place in np.ndindex(2, 2):
        left, top, _, _ = pane.plane.port.cell_rect(*place)
        seen.append(color_at(pane.plane, left + 4, top + 4).name())
    assert seen == ["#ff0000", "#00ff00", "#0000ff", "#000000"]
    assert pane.axes.colors.isVisible()
    pane.axes.colors.setText("2, 1, 0")
    pane.axes.colors.returnPressed.emit()
    assert pane.model.choice.colors == (2, 1, 0)
    assert str(pane.model.element(1, 0)) == "[0, 2, 1, 0] 1.0, green 0.0, blue 0.0"


def test_the_class_token_can_be_shown(pane):
    value = np.random.default_rng(1).normal(size=(1, 50, 24)).astype(np.float32)
    pane.set_value("x", value, layout=FEATURES)
    assert pane.axes.part.text() == "7×7 tokens ▾"
    actions = pane.axes.part.menu().actions()
    assert [(action.text(), action.isChecked()) for action in actions] == [
        ("class", False), ("7×7 tokens", True),
    ]  # fmt: skip
    actions[0].trigger()
    assert pane.body.shown is pane.vector
    np.testing.assert_array_equal(pane.model.planes[0, 0], value[0, 0])
    pane.axes.part.menu().actions()[1].trigger()
    assert pane.body.shown is pane.plane


def test_little_room_takes_words_from_chips(pane):
    value = np.zeros((2, 3, 4, 5, 6), np.float32)
    pane.set_value("x", value)
    pane.resize(360, 414)
    assert texts(pane) == [
        "batch → at 0",
        "channels → mosaic",
        "depth → at 0",
        "rows",
        "columns",
    ]
    for chip in pane.axes.chips:
        assert chip.geometry().right() <= pane.axes.width() + 1 or not chip.isVisible()


def test_it_can_be_hidden(pane):
    pane.set_value("x", np.zeros((3, 4, 5)))
    assert pane.axes.isVisible()
    pane.actions_table["tensor.axes"].trigger()
    assert not pane.axes.isVisible()
    assert pane.model.roles == (AxisRole.FACET, AxisRole.ROW, AxisRole.COLUMN)


def test_a_row_is_found_by_its_label(pane):
    pane.set_labels(("tabby cat", "tiger cat", "tiger", "car"))
    weight = np.arange(24.0).reshape(4, 6)
    pane.set_value("w", weight)
    for text, row in (("Tiger", 2), ("tabby", 0), ("car", 3), ("1, 5", 1)):
        pane.pointing.ask_for_index()
        pane.index_bar.field.setText(text)
        pane.index_bar.field.returnPressed.emit()
        assert pane.picked.index[0] == row
    pane.pointing.ask_for_index()
    pane.index_bar.field.setText("cat")  # two have it
    assert pane.index_bar.answer.property("role") == "error"
    pane.set_value("w", np.zeros((4, 4)))  # either dimension might be meant
    pane.index_bar.field.setText("car")
    assert pane.index_bar.answer.property("role") == "error"
