"""A value shown, without a session: commands, keys, and what they change."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import (
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QMessageBox,
    QToolButton,
    QWidget,
)

from engine.axes import Axis, Layout
from engine.axes import Kind as Meaning
from engine.errors import ExportError
from kuiper_studio.surfaces import Surface
from kuiper_studio.tensor_view import TensorPane, channel_pages
from kuiper_studio.tensor_view.actions import COMMANDS
from kuiper_studio.tensor_view.choice import Scope, ValueRange


def action(pane, name):
    return pane.actions_table[f"tensor.{name}"]


def trigger(pane, name):
    assert action(pane, name).isEnabled(), f"{name} is disabled"
    action(pane, name).trigger()


def numbers(pane, section="tensorFacts"):
    """Statistics as they are written, by name."""
    found = pane.statistics.findChild(QWidget, section)
    labels = ("min", "max", "mean", "std", "zeros", "NaN / Inf")[: len(found.values)]
    return dict(zip(labels, (label.text() for label in found.values), strict=True))


# Every kind of value

VALUES = {
    "4-D": np.linspace(-1, 1, 2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8),
    "3-D": np.zeros((3, 40, 30)),
    "2-D": np.arange(20).reshape(4, 5),
    "5-D": np.random.default_rng(0).normal(size=(1, 4, 3, 6, 6)),
    "1-D": np.arange(1000.0),
    "1xK": np.array([[0.1, 0.9]], np.float32),
    "pixels": np.zeros((1, 512, 1, 1), np.float16),
    "0-D": np.array(2.5),
    "bool": np.eye(9, dtype=bool),
    "complex": np.ones((2, 5, 5), np.complex64) * (3 + 4j),
    "uint8": np.arange(256, dtype=np.uint8).reshape(16, 16),
    "all-NaN": np.full((1, 4, 6, 6), np.nan, np.float32),
    "some-NaN": np.array([[1, np.nan], [np.inf, 4]]),
    "constant": np.full((1, 4, 6, 6), 7.0),
    "huge": np.array([[-1.7e308, 1.7e308], [0, 1]]),
    "denormal": np.array([[0, 5e-324], [5e-324, 0]]),
    "int64-ends": np.array([[-(2**63), 2**63 - 1], [0, 1]]),
    "many-channels": np.zeros((1, 2048, 7, 7), np.float32),
    "tall": np.zeros((1, 5000, 3), np.float32),
    "flat-channels": np.zeros((1, 64, 1, 56), np.float32),
    "empty": np.zeros((1, 0, 7)),
    "None": None,
    "int": 5,
    "tuple": (np.zeros((1, 2, 4, 4)), 3, None),
    "empty-tuple": (),
}


@pytest.mark.parametrize("name", VALUES)
def test_every_value_is_shown_and_can_be_used(pane, qtbot, name):
    pane.set_value("x", VALUES[name])
    pane.grab()
    target = pane.body.shown
    for key in (Qt.Key.Key_Right, Qt.Key.Key_PageDown, Qt.Key.Key_End, Qt.Key.Key_Home):
        qtbot.keyClick(target, key)
    for command in COMMANDS:
        if command.id != "tensor.savePicture" and action(pane, command.id[7:]).isEnabled():
            action(pane, command.id[7:]).trigger()
            pane.grab()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("4-D", "plane"),
        ("5-D", "plane"),
        ("2-D", "plane"),
        ("1-D", "vector"),
        ("pixels", "vector"),
        ("0-D", "message"),
        ("empty", "message"),
        ("None", "message"),
    ],
)
def test_parts(pane, name, part):
    pane.set_value("x", VALUES[name])
    assert pane.body.shown is getattr(pane, part)
    assert pane.mosaic.isVisible() == (name in {"4-D", "5-D"})
    assert pane.range_bar.isVisible() == (part != "message")


@pytest.mark.parametrize(
    ("name", "title"),
    [("0-D", "2.5"), ("int", "5"), ("None", "None"), ("empty", "No numbers")],
)
def test_messages(pane, name, title):
    pane.set_value("x", VALUES[name])
    assert pane.message.title.text() == title


def test_a_scalar_has_the_digits_of_its_dtype(pane):
    pane.set_value("x", np.array(2.8696535, np.float32))
    assert pane.message.title.text() == "2.8696535"
    pane.set_value("y", np.array(2.8696535, np.float64))
    assert pane.message.title.text() == "2.8696535"
    pane.set_value("z", np.array(1 / 3, np.float16))
    assert pane.message.title.text() == "0.3333"


def test_all_statistics_are_seen_without_scrolling(pane, signed, qtbot):
    """Down to the count of NaN, in a window of 1440 by 900 pixels."""
    pane.resize(820, 358)
    pane.set_value("x", signed)
    panel = pane.body.statistics
    qtbot.waitUntil(lambda: 0 < panel.viewport().height() < 240)
    assert panel.widget().sizeHint().height() <= panel.viewport().height()


def test_channels_last(pane):
    """N, H, W, C: the channel is the last dimension, of this operand alone."""
    image = np.random.default_rng(5).normal(size=(2, 6, 9, 4)).astype(np.float32)
    pane.set_value("x", image)
    pane.show_channel(5)
    assert not action(pane, "channelsLast").isChecked()
    np.testing.assert_array_equal(pane.model.plane, image[0, 5])
    assert action(pane, "channelsLast").shortcut().toString() == "L"
    trigger(pane, "channelsLast")
    assert action(pane, "channelsLast").isChecked()
    assert pane.model.is_channels_last
    assert pane.model.describe() == "2×6×9×4 f32"
    assert pane.tools.toolTip() == "2×6×9×4 read as batch × rows × columns × channel"
    np.testing.assert_array_equal(pane.model.page_planes(), image[0].transpose(2, 0, 1))
    pane.show_channel(3)
    pane.model.set_fixed(0, 1)
    np.testing.assert_array_equal(pane.model.plane, image[1, :, :, 3])
    np.testing.assert_array_equal(pane.model.raw_plane, image[1, :, :, 3])
    element = pane.model.element(4, 7)
    assert element.index == (1, 4, 7, 3)
    assert element.value == image[1, 4, 7, 3]
    assert pane.model.expression(element.index) == "session.value('x')[1, 4, 7, 3]"
    pane.set_value("y", np.zeros((1, 5, 6, 2), np.float32))
    assert not action(pane, "channelsLast").isChecked()
    assert not pane.model.is_channels_last
    assert pane.model.reading.channels == 5
    pane.set_value("x", image)
    assert action(pane, "channelsLast").isChecked()
    assert (pane.model.reading.channels, pane.model.channel) == (4, 3)
    trigger(pane, "channelsLast")
    assert not action(pane, "channelsLast").isChecked()
    assert pane.model.reading.channels == 6


def test_channels_last_ends_with_the_model(pane):
    image = np.zeros((2, 6, 9, 4), np.float32)
    pane.set_value("x", image)
    trigger(pane, "channelsLast")
    pane.set_value("", None)
    pane.forget()  # another model is opened, which has an operand of the same name
    pane.set_value("x", image)
    assert not action(pane, "channelsLast").isChecked()
    assert pane.model.reading.channels == 6


def tokens_of(rows: int, columns: int, features: int) -> Layout:
    """A class token and a grid, before features."""
    factors = (Axis(Meaning.ROW, rows), Axis(Meaning.COLUMN, columns))
    grid = Axis(Meaning.TOKEN, rows * columns, factors)
    segments = (Axis(Meaning.CLASS_TOKEN, 1), grid)
    tokens = Axis(Meaning.TOKEN, 1 + rows * columns, segments=segments)
    return Layout((Axis(Meaning.BATCH, 1), tokens, Axis(Meaning.FEATURE, features)))


def test_tokens_are_folded_to_their_grid(pane):
    value = np.random.default_rng(5).normal(size=(1, 7, 4)).astype(np.float32)
    pane.set_value("x", value, layout=tokens_of(2, 3, 4))
    assert action(pane, "folded").isEnabled()
    assert action(pane, "folded").isChecked()
    assert pane.model.describe() == "1×7×4 f32"
    assert pane.model.describe_axes() == "class + 2×3 tokens × features"
    assert (pane.model.reading.channels, pane.model.reading.plane) == (4, (2, 3))
    pane.show_channel(2)
    np.testing.assert_array_equal(pane.model.plane, value[0, 1:, 2].reshape(2, 3))
    element = pane.model.element(1, 2)
    assert element.index == (0, 6, 2)  # of the array as it is
    assert element.value == value[0, 6, 2]
    pane.show_element((0, 4, 3))
    assert (pane.model.channel, pane.model.choice.pick) == (3, (1, 0))


@pytest.mark.parametrize("way", ["element", "index"])
def test_an_element_beside_the_grid_is_shown_with_its_part(pane, qtbot, way):
    value = np.random.default_rng(5).normal(size=(1, 7, 4)).astype(np.float32)
    pane.set_value("x", value, layout=tokens_of(2, 3, 4))

    def go_to(*index):
        if way == "element":
            pane.show_element(index)
            return
        trigger(pane, "goTo")
        field = pane.findChild(QWidget, "indexBar").findChild(QLineEdit)
        field.setText(", ".join(map(str, index)))
        qtbot.keyClick(field, Qt.Key.Key_Return)
        assert pane.body.shown.hasFocus()

    go_to(0, 0, 2)  # of the class token
    assert pane.axes.part.text() == "class ▾"
    assert pane.body.shown is pane.vector
    assert (pane.picked.index, pane.picked.value) == ((0, 0, 2), value[0, 0, 2])
    go_to(0, 5, 1)
    assert pane.axes.part.text() == "2×3 tokens ▾"
    assert pane.body.shown is pane.plane
    assert (pane.picked.index, pane.picked.value) == ((0, 5, 1), value[0, 5, 1])
    assert pane.plane.pick == (1, 1)


def test_tokens_are_shown_as_they_are_when_the_user_wants(pane):
    value = np.arange(28, dtype=np.float32).reshape(1, 7, 4)
    pane.set_value("x", value, layout=tokens_of(2, 3, 4))
    trigger(pane, "folded")
    assert pane.model.reading.plane == (7, 4)
    np.testing.assert_array_equal(pane.model.plane, value[0])
    pane.set_value("y", value, layout=tokens_of(2, 3, 4))
    assert action(pane, "folded").isChecked()
    pane.set_value("x", value, layout=tokens_of(2, 3, 4))
    assert not action(pane, "folded").isChecked()
    trigger(pane, "folded")
    assert pane.model.reading.plane == (2, 3)
    trigger(pane, "channelsLast")
    assert pane.model.reading.channels == 4
    assert pane.model.reading.plane == (1, 7)


@pytest.mark.parametrize("layout", [None, tokens_of(2, 2, 4), tokens_of(2, 3, 5)])
def test_a_layout_of_another_shape_folds_nothing(pane, layout):
    pane.set_value("x", np.zeros((1, 7, 4), np.float32), layout=layout)
    assert not action(pane, "folded").isEnabled()
    assert pane.model.describe_axes() == ""
    assert pane.model.reading.plane == (7, 4)


@pytest.mark.parametrize(
    ("name", "possible"),
    [("4-D", True), ("3-D", True), ("5-D", True), ("2-D", False), ("1-D", False),
     ("0-D", False), ("empty", False), ("None", False), ("pixels", True)],
)  # fmt: skip
def test_channels_last_where_there_are_channels(pane, name, possible):
    pane.set_value("x", VALUES[name])
    assert action(pane, "channelsLast").isEnabled() == possible
    why = "" if possible else "\nThe tensor has no channels"
    assert action(pane, "channelsLast").toolTip() == (
        f"Treat the last dimension of this tensor as its channels (L){why}"
    )


def test_statistics(pane):
    pane.set_value("x", np.array([[-1.0, 0, 0, 5], [np.nan, np.inf, np.nan, 0]]))
    assert numbers(pane) == {
        "min": "−1.0000",
        "max": "5.0000",
        "mean": "0.8000",
        "std": "2.1354",
        "zeros": "37.5 %",
        "NaN / Inf": "2 / 1",
    }


def test_range_of_all_nan_is_said(pane):
    pane.set_value("x", VALUES["all-NaN"])
    assert not pane.range_bar.low_box.isEnabled()
    pane.set_value("y", VALUES["constant"])
    assert pane.range_bar.low_box.isEnabled()


def test_constant_range_is_printed(pane):
    """A constant has a range of a millionth of it to each side."""
    pane.set_value("x", np.full((3, 3), 7.0))
    assert pane.range_bar.low_box.text() == "6.999993"
    assert pane.range_bar.high_box.text() == "7.000007"


# Signals for the status bar


def test_what_the_status_bar_is_told(pane, signed):
    told = {}
    pane.range_changed.connect(lambda text: told.__setitem__("range", text))
    pane.special_changed.connect(lambda text, some: told.__setitem__("special", (text, some)))
    pane.zoom_changed.connect(lambda text: told.__setitem__("zoom", text))
    signed[0, 3, 2, 1] = np.nan
    pane.set_value("x", signed)
    limit = np.abs(np.nan_to_num(signed)).max()
    assert told["range"] == f"−{limit:.3f} … {limit:.3f}".replace("0 ", " ").rstrip("0")
    assert told["special"] == ("NaN 1 Inf 0", True)
    assert told["zoom"] == "5 : 1"


def test_hovered_element_has_its_colour(pane, signed, qtbot):
    pane.set_value("x", signed)
    pane.show_channel(2)
    x, y, width, height = pane.plane.port.cell_rect(10, 20)
    with qtbot.waitSignal(pane.hovered_changed) as hovered:
        qtbot.mouseMove(pane.plane, QPoint(round(x + width / 2), round(y + height / 2)))
    text, color = hovered.args
    assert text == f"[0, 2, 10, 20] {signed[0, 2, 10, 20]!s}"
    assert pane.pointing.hovered.index == (0, 2, 10, 20)
    assert color == pane.colors.coloring().color_of(float(signed[0, 2, 10, 20])).name()


def test_hovered_channel_is_told_until_another_value_is_shown(pane, signed, qtbot):
    pane.set_value("x", signed)
    with qtbot.waitSignal(pane.hovered_changed) as hovered:
        qtbot.mouseMove(pane.mosaic, pane.mosaic.tile_rect(5).center().toPoint())
    text, color = hovered.args
    # What is special about it may have been measured already.
    assert text.partition(",")[0] == "Channel 5: 0 … 0"
    assert not color
    with qtbot.waitSignal(pane.hovered_changed) as hovered:
        pane.set_value("y", signed + 1)
    assert hovered.args == ["", ""]
    assert pane.pointing.hovered is None


def test_parts_share_the_room_alike_whatever_was_shown_before(pane, qtbot):
    picture = np.random.default_rng(0).random((1, 3, 224, 224), np.float32)

    def parts():
        pane.set_value("x", picture)
        return pane.mosaic.width(), pane.plane.port.zoom

    first = parts()
    pane.set_value("y", np.arange(1000.0))
    assert parts() == first


def test_the_room_of_the_best_classes_goes_to_the_mosaic(pane, qtbot):
    channels = np.random.default_rng(4).normal(size=(1, 128, 28, 28))
    pane.set_value("first", channels)
    qtbot.wait(1)
    alone = pane.mosaic.width(), pane.mosaic.grid.tile_width
    pane.set_value("scores", np.arange(1000.0), is_output=True)
    assert pane.top.isVisible()
    qtbot.wait(1)  # the list takes its room
    pane.set_value("after", channels + 1)
    qtbot.wait(1)
    assert (pane.mosaic.width(), pane.mosaic.grid.tile_width) == alone


def test_pick_is_exact_and_stays_with_the_operand(pane, signed, qtbot):
    pane.set_value("x", signed)
    pane.show_channel(0)
    with qtbot.waitSignal(pane.picked_changed) as picked:
        x, y, width, height = pane.plane.port.cell_rect(7, 9)
        at = QPoint(round(x + width / 2), round(y + height / 2))
        qtbot.mouseClick(pane.plane, Qt.MouseButton.LeftButton, pos=at)
    assert picked.args == [f"[0, 0, 7, 9] {signed[0, 0, 7, 9]!s}"]
    assert pane.picked.value == signed[0, 0, 7, 9]
    pane.set_value("y", np.zeros((2, 2)))
    assert pane.picked is None
    pane.set_value("x", signed)
    assert pane.picked.index == (0, 0, 7, 9)


# Channels


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (Qt.Key.Key_PageDown, 31),
        (Qt.Key.Key_PageUp, 29),
        (Qt.Key.Key_Home, 0),
        (Qt.Key.Key_End, 63),
    ],
)
@pytest.mark.parametrize("part", ["plane", "mosaic"])
def test_channel_keys(pane, signed, qtbot, key, expected, part):
    pane.set_value("x", signed)
    pane.show_channel(30)
    qtbot.keyClick(getattr(pane, part), key)
    assert pane.model.channel == expected
    assert pane.tools.channel.box.value() == expected


def test_channel_by_mosaic_box_and_buttons(pane, signed, qtbot):
    pane.set_value("x", signed)
    at = pane.mosaic.tile_rect(44).center().toPoint()
    qtbot.mouseClick(pane.mosaic, Qt.MouseButton.LeftButton, pos=at)
    assert pane.model.channel == 44
    pane.tools.channel.box.setValue(12)
    assert pane.model.channel == 12
    trigger(pane, "nextChannel")
    trigger(pane, "nextChannel")
    trigger(pane, "previousChannel")
    assert pane.model.channel == 13
    np.testing.assert_array_equal(pane.model.plane, signed[0, 13])


def test_batch_and_depth(pane, qtbot):
    value = np.arange(2 * 3 * 4 * 5 * 6, dtype=np.float32).reshape(2, 3, 4, 5, 6)
    pane.set_value("x", value)
    assert pane.axes.active.name == "batch"
    pane.axes.place.setValue(1)
    pane.axes.set_active(2)
    assert pane.axes.active.name == "depth"
    pane.axes.slider.setValue(3)
    np.testing.assert_array_equal(pane.model.plane, value[1, 0, 3])
    pane.set_value("y", np.zeros((1, 3, 5, 6)))
    assert pane.axes.active.name == "channels"


def test_member_of_a_tuple(pane):
    pane.set_value("x", (np.zeros((2, 4, 4)), np.arange(3.0), 7))
    assert pane.tools.member.isVisible()
    pane.tools.member.box.setValue(1)
    assert pane.body.shown is pane.vector
    pane.tools.member.box.setValue(2)
    assert pane.message.title.text() == "7"
    pane.set_value("y", np.zeros((2, 2)))
    assert not pane.tools.member.isVisible()


def test_no_room_is_left_for_choices_that_there_are_not(pane, qtbot):
    grid = pane.tools.findChildren(QToolButton)[2]  # after the channel's two
    assert grid.defaultAction() is pane.actions_table["tensor.grid"]
    pane.set_value("x", np.zeros(9))
    qtbot.waitUntil(lambda: grid.x() == 8)
    pane.set_value("y", np.zeros((4, 4, 4)))
    qtbot.waitUntil(lambda: grid.x() > pane.tools.channel.geometry().right() + 10)


def test_second_page(pane):
    pane.set_value("x", np.zeros((1, 600, 7, 7), np.float32))
    pane.show_channel(300)
    assert pane.mosaic.channel_at(pane.mosaic.tile_rect(300).center()) == 300
    assert pane.mosaic.channel_at(pane.mosaic.tile_rect(256).center()) == 256


# Range, map, marks


def test_range_commands(pane, signed):
    pane.set_value("x", signed)
    fitted = pane.model.range
    trigger(pane, "reset")
    assert pane.model.range == ValueRange(-1, 1)
    assert pane.range_bar.low_box.text() == "−1"
    trigger(pane, "zoomRange")
    assert pane.model.axis == ValueRange(-1, 1)
    trigger(pane, "autofit")
    assert pane.model.range == fitted
    trigger(pane, "symmetric")
    assert pane.model.range.low == pytest.approx(signed.min())
    trigger(pane, "percentiles")
    assert pane.model.range.low == pytest.approx(np.percentile(signed, 1), rel=1e-3)


def test_range_boxes_change_the_colours(pane, qtbot, color_at):
    pane.set_value("x", np.full((4, 4), 0.5))
    pane.range_bar.range_chosen.emit(0, 0.5)
    x, y, width, height = pane.plane.port.cell_rect(1, 1)
    assert color_at(pane.plane, x + width / 8, y + height / 8).name() == "#fde725"


def test_maps_by_combo_and_menu(pane, signed):
    pane.set_value("x", signed)
    assert pane.tools.maps.currentText() == "RdBu_r"
    pane.tools.maps.activated.emit(pane.tools.maps.findText("magma"))
    assert pane.colors.coloring().color_map == "magma"
    assert pane.model.range.low == pytest.approx(signed.min())
    automatic = next(a for a in pane.actions_table.all() if a.text().endswith("automatic"))
    automatic.trigger()
    assert pane.tools.maps.currentText() == "RdBu_r"


def test_scope(pane, signed):
    signed[0, 7] *= 10
    pane.set_value("x", signed)
    pane.show_channel(0)
    pane.tools.scopes.activated.emit(0)
    assert pane.model.choice.scope is Scope.CHANNEL
    assert pane.model.range.high == pytest.approx(np.abs(signed[0, 0]).max())
    pane.show_channel(7)
    assert pane.model.range.high == pytest.approx(np.abs(signed[0, 7]).max())


def test_marks_can_be_switched(pane, qtbot):
    pane.set_value("x", np.array([[np.nan, 1], [2, 3]]))
    assert pane.colors.coloring().mark_special
    trigger(pane, "nan")
    trigger(pane, "clip")
    assert not pane.colors.coloring().mark_special
    assert pane.colors.coloring().mark_clipped


# Grid, table, zoom


def test_grid_and_single(pane, signed, qtbot):
    pane.set_value("x", signed)
    width = pane.plane.width()
    trigger(pane, "grid")
    assert not pane.mosaic.isVisible()
    qtbot.waitUntil(lambda: pane.plane.width() > width)
    trigger(pane, "grid")
    assert pane.mosaic.isVisible()


def test_table_and_picture_share_the_pick(pane, signed):
    pane.set_value("x", signed)
    pane.show_channel(0)
    pane.plane.picked.emit(3, 4)
    trigger(pane, "table")
    assert pane.body.shown is pane.table
    assert (pane.table.currentIndex().row(), pane.table.currentIndex().column()) == (3, 4)
    pane.table.setCurrentIndex(pane.table.model().index(10, 11))
    assert pane.picked.index == (0, 0, 10, 11)
    pane.show_channel(9)
    assert pane.table.model().plane[2, 2] == signed[0, 9, 2, 2]
    assert pane.zoom_text == ""


def test_table_of_a_vector_goes_down(pane):
    pane.set_value("x", np.arange(10.0).reshape(1, 10))
    trigger(pane, "table")
    pane.table.setCurrentIndex(pane.table.model().index(7, 0))
    assert pane.picked.index == (0, 7)


def test_zoom_commands(pane, signed):
    pane.set_value("x", signed)
    trigger(pane, "zoomIn")
    assert pane.tools.zoom.text() == "6 : 1"
    trigger(pane, "zoomActual")
    trigger(pane, "zoomOut")
    assert pane.tools.zoom.text() == "1 : 2"
    trigger(pane, "fit")
    assert pane.tools.zoom.text() == "5 : 1"


@pytest.mark.parametrize(
    ("key", "check"),
    [
        ("G", lambda p: not p.mosaic.isVisible()),
        ("T", lambda p: p.body.shown is p.table),
        ("R", lambda p: p.model.range == ValueRange(-1, 1)),
        ("N", lambda p: not p.colors.coloring().mark_special),
        ("C", lambda p: p.colors.coloring().mark_clipped),
        ("+", lambda p: p.plane.port.zoom == 6),
        ("-", lambda p: p.plane.port.zoom == 4),
        ("1", lambda p: p.plane.port.zoom == 1),
    ],
)
def test_letters(pane, signed, qtbot, key, check):
    pane.set_value("x", signed)
    pane.plane.setFocus()
    qtbot.waitUntil(pane.plane.hasFocus)
    qtbot.keyClicks(pane.plane, key)
    assert check(pane)


def test_letters_are_text_in_a_box(pane, signed, qtbot):
    pane.set_value("x", signed)
    pane.range_bar.low_box.setFocus()
    qtbot.waitUntil(pane.range_bar.low_box.hasFocus)
    pane.range_bar.low_box.selectAll()
    qtbot.keyClicks(pane.range_bar.low_box, "1")
    assert pane.range_bar.low_box.text() == "1"
    assert pane.plane.port.zoom == 5


# Copying and saving


def test_copying(pane, signed):
    clipboard = QGuiApplication.clipboard()
    pane.set_value("conv 1", signed)
    pane.show_channel(0)
    pane.plane.picked.emit(1, 2)
    trigger(pane, "copy")
    assert clipboard.text() == str(signed[0, 0, 1, 2])
    trigger(pane, "copyIndex")
    assert clipboard.text() == "[0, 0, 1, 2]"
    trigger(pane, "copyExpression")
    assert clipboard.text() == "session.value('conv 1')[0, 0, 1, 2]"


@pytest.mark.parametrize("name", ["copy", "copyIndex", "copyExpression"])
def test_an_element_can_be_copied_once_it_is_picked(pane, signed, name):
    pane.set_value("x", signed)
    action = pane.actions_table[f"tensor.{name}"]
    assert not action.isEnabled()
    assert "No element is picked" in action.toolTip()
    pane.plane.picked.emit(1, 2)
    assert action.isEnabled()
    assert "No element" not in action.toolTip()


def test_cells_of_the_table_can_be_copied_without_a_picked_element(pane, signed):
    pane.set_value("x", signed)
    pane.actions_table["tensor.table"].setChecked(True)
    assert pane.actions_table["tensor.copy"].isEnabled()
    assert not pane.actions_table["tensor.copyIndex"].isEnabled()


def test_save_picture(pane, signed, tmp_path):
    pane.set_value("x", signed)
    pane.copying.save_picture(tmp_path / "x.png")
    assert QImage(str(tmp_path / "x.png")).width() > 500
    with pytest.raises(ExportError, match="cannot be written: there is no such file or folder"):
        pane.copying.save_picture(tmp_path / "missing" / "x.png")


def test_a_picture_that_cannot_be_saved_is_told(pane, signed, tmp_path, monkeypatch):
    told = []
    pane.set_value("x", signed)
    path = str(tmp_path / "missing" / "x.png")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (path, ""))
    monkeypatch.setattr(QMessageBox, "warning", lambda *args: told.append(args[1:]))
    pane.copying.ask_to_save()
    assert told == [
        (
            "The picture was not saved",
            f"{path} cannot be written: there is no such file or folder",
        )
    ]


def test_menu_is_grouped(pane):
    menu = QMenu()
    pane.actions_table.fill_menu(menu)
    groups = " ".join(a.objectName()[7:] or a.text() or "|" for a in menu.actions()).split(
        " | "
    )
    assert groups[:3] == [
        "grid table channelsLast folded beside A&xes and slider",
        "previousChannel nextChannel goTo clearRegion Mor&e channels",
        "Colour &map &Range",
    ]
    maps = next(a.menu() for a in menu.actions() if a.text() == "Colour &map")
    maps.aboutToShow.emit()
    assert "Colour map: viridis" in [a.text() for a in maps.actions()]


def test_buttons_beside_the_range(pane):
    assert [a.objectName() for a in pane.actions_table.on(Surface.RANGE_BAR)] == [
        "tensor.zoomRange", "tensor.autofit", "tensor.reset", "tensor.histogram",
        "tensor.symmetric", "tensor.percentiles", "tensor.log",
    ]  # fmt: skip


def test_menu_has_every_letter(pane):
    menu = QMenu()
    pane.actions_table.fill_menu(menu)
    for submenu in menu.findChildren(QMenu):
        submenu.aboutToShow.emit()
    shown = {action for each in (menu, *menu.findChildren(QMenu)) for action in each.actions()}
    for command in COMMANDS:
        assert pane.actions_table[command.id] in shown


def test_buttons_have_names_and_tips(pane):
    for button in pane.findChildren(QToolButton):
        action_ = button.defaultAction()
        if action_ is not None:
            assert action_.text()
            assert action_.toolTip()


# The order of the channels


@pytest.fixture
def special(pane):
    """Channels of means 2, 0, 9, 5, 2, 0 and deviations 1, 0, 1, 0, 1, 0; 4 equals 0."""
    wave = np.float32([[1, -1], [-1, 1]])
    planes = [2 + wave, 0 * wave, 9 - wave, 5 + 0 * wave, 2 + wave, 0 * wave]
    pane.set_value("x", np.stack(planes)[np.newaxis])
    pane.show_channel(0)
    return pane


def choose_order(pane, order):
    name = f"Order of channels: {order}"
    next(each for each in pane.actions_table.all() if each.text() == name).trigger()


def tiles(pane):
    """The channels as they lie in the mosaic."""
    rects = {each: pane.mosaic.tile_rect(each) for each in range(pane.model.reading.channels)}
    return sorted(rects, key=lambda each: (rects[each].top(), rects[each].left()))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("number", [0, 1, 2, 3, 4, 5]),
        ("mean", [2, 3, 0, 4, 1, 5]),
        ("largest value", [2, 3, 0, 4, 1, 5]),
        ("standard deviation", [0, 2, 4, 1, 3, 5]),
        ("share of zeros", [1, 5, 0, 2, 3, 4]),
        ("likeness to the shown channel", [0, 4, 1, 3, 5, 2]),  # 2 is its negative
    ],
)
def test_channels_in_an_order(special, order, expected):
    choose_order(special, order)
    assert tiles(special) == expected
    assert special.model.channel == 0
    special.actions_table["tensor.firstChannel"].trigger()
    for channel in expected:
        assert special.model.channel == channel
        special.actions_table["tensor.nextChannel"].trigger()
    assert not action(special, "nextChannel").isEnabled()


def test_the_order_stays_for_other_tensors(special):
    choose_order(special, "mean")
    special.set_value("y", np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2))
    assert tiles(special) == [2, 1, 0]
    assert special.mosaic.page_text() == "by mean"
    choose_order(special, "number")
    assert tiles(special) == [0, 1, 2]
    assert special.mosaic.page_text() == ""


def test_pages_follow_the_order(pane):
    pane.set_value("x", np.arange(300, dtype=np.float32).repeat(4).reshape(1, 300, 2, 2))
    choose_order(pane, "mean")
    pane.show_channel(299)
    assert pane.mosaic.page_text().startswith("0–255 of 300")
    assert not action(pane, "previousPage").isEnabled()
    trigger(pane, "nextPage")
    assert pane.model.channel == 43  # 256 places behind the largest
    pane.show_channel(0)
    assert not action(pane, "nextChannel").isEnabled()


def test_special_channels_are_counted(special, qtbot):
    text = special.statistics.findChild(QWidget, "specialChannels")
    qtbot.waitUntil(text.isVisible)
    assert text.text() == "Channels: 2 dead, 1 constant, 1 duplicate"
    told = []
    special.hovered_changed.connect(lambda words, _color: told.append(words))
    for channel in (1, 3, 4, 0):
        special.mosaic.channel_hovered.emit(channel)
    ends = [words.partition(", ")[2] for words in told]
    assert ends == ["dead: all zeros", "constant", "equal to channel 0", ""]
    special.set_value("y", np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2))
    assert not text.isVisible()


def test_likeness_of_numbers_of_any_size(pane):
    """Against NumPy's own correlation, in float64."""
    rng = np.random.default_rng(7)
    value = rng.standard_normal((1, 5, 6, 6))
    value[0, 1] = 3 * value[0, 4] + 0.5 * value[0, 1]
    value[0, 2] *= 1e200
    pane.set_value("x", value)
    pane.show_channel(4)
    choose_order(pane, "likeness to the shown channel")
    expected = np.corrcoef(
        (value[0] / np.abs(value[0]).max((1, 2), keepdims=True)).reshape(5, -1)
    )[4]
    assert tiles(pane) == np.argsort(-expected).tolist()


# Rectangles


def centre(pane, row, column):
    x, y, width, height = pane.plane.port.cell_rect(row, column)
    return QPoint(round(x + width / 2), round(y + height / 2))


def stretch(qtbot, pane, first, last):
    """Drag with Shift from one element to another."""
    shift, left = Qt.KeyboardModifier.ShiftModifier, Qt.MouseButton.LeftButton
    qtbot.mousePress(pane.plane, left, shift, centre(pane, *first))
    qtbot.mouseMove(pane.plane, centre(pane, *last))
    qtbot.mouseRelease(pane.plane, left, shift, centre(pane, *last))


def ends(pane):
    """Least and largest number of the rectangle, as they are written."""
    found = numbers(pane, "regionFacts")
    return float(found["min"]), float(found["max"])


@pytest.fixture
def counted(pane):
    """A pane with two channels, of 0 to 79 and of 80 to 159."""
    pane.set_value("x", np.arange(160, dtype=np.float32).reshape(1, 2, 8, 10))
    pane.show_channel(0)
    return pane


@pytest.mark.parametrize(("first", "last"), [((1, 2), (3, 5)), ((3, 5), (1, 2))])
def test_a_rectangle_has_statistics(counted, qtbot, first, last):
    section = counted.statistics.findChild(QWidget, "regionFacts")
    assert section.isHidden()
    stretch(qtbot, counted, first, last)
    # Rows 1 to 3, columns 2 to 5: 12 13 14 15, 22 23 24 25, 32 33 34 35.
    assert ends(counted) == (12, 35)
    assert float(numbers(counted, "regionFacts")["mean"]) == 23.5
    assert section.accessibleName() == "Rectangle 3×4"
    assert counted.picked is None
    counted.show_channel(1)
    assert ends(counted) == (92, 115)
    action(counted, "clearRegion").trigger()
    assert section.isHidden()


def test_a_rectangle_ends_at_the_picture(counted, qtbot):
    shift, left = Qt.KeyboardModifier.ShiftModifier, Qt.MouseButton.LeftButton
    qtbot.mousePress(counted.plane, left, shift, centre(counted, 6, 8))
    qtbot.mouseRelease(counted.plane, left, shift, QPoint(10_000, 10_000))
    assert ends(counted) == (68, 79)


def test_a_rectangle_is_framed(counted, qtbot, color_at):
    x, y, *_ = counted.plane.port.cell_rect(2, 3)
    before = color_at(counted.plane, x, y + 3)
    stretch(qtbot, counted, (2, 3), (5, 7))
    assert color_at(counted.plane, x, y + 3).name() == "#ffffff" != before.name()


def test_escape_clears_the_rectangle(counted, qtbot):
    stretch(qtbot, counted, (0, 0), (1, 1))
    counted.plane.setFocus()
    qtbot.keyClick(counted.plane, Qt.Key.Key_Escape)
    assert counted.model.choice.region is None


def test_a_rectangle_is_remembered_with_its_operand(counted, qtbot):
    stretch(qtbot, counted, (0, 0), (1, 1))
    counted.set_value("y", np.zeros((1, 2, 1, 1), np.float32))
    assert counted.statistics.findChild(QWidget, "regionFacts").isHidden()
    counted.set_value("x", np.ones((1, 2, 1, 3), np.float32))  # less than the rectangle
    assert ends(counted) == (1, 1)
    assert counted.model.choice.region.plane == (1, 2)


def test_copies_of_a_rectangle_are_read_back(counted, qtbot):
    counted.set_value("x", np.float32([[[[0.1, 1 / 3], [np.nan, -np.inf], [5, 6]]]]))
    stretch(qtbot, counted, (0, 0), (1, 1))
    trigger(counted, "copyNumpy")
    text = QGuiApplication.clipboard().text()
    names = {"array": np.array, "float32": np.float32, "nan": np.nan, "inf": np.inf}
    back = eval(text, {"__builtins__": {}}, names)
    wanted = np.float32([[0.1, 1 / 3], [np.nan, -np.inf]])
    np.testing.assert_allclose(back, wanted, rtol=1e-7)
    trigger(counted, "copyCsv")
    assert QGuiApplication.clipboard().text() == "0.1,0.33333334\nnan,-inf\n"


def test_what_is_too_large_is_not_copied(pane):
    pane.set_value("x", np.zeros((1, 1, 257, 256), np.float32))
    assert not action(pane, "copyNumpy").isEnabled()
    pane.set_value("x", np.zeros((1, 1, 256, 256), np.float32))
    trigger(pane, "copyNumpy")
    assert "..." not in QGuiApplication.clipboard().text()


# Going to an index


def enter_index(pane, qtbot, text):
    action(pane, "goTo").trigger()
    field = pane.index_bar.field
    field.setText(text)
    qtbot.keyClick(field, Qt.Key.Key_Return)
    return pane.index_bar.answer.text()


def test_an_index_is_gone_to(counted, qtbot):
    counted.plane.zoom_by(20)
    enter_index(counted, qtbot, "0, 1, 7, -1")
    assert (counted.model.channel, counted.picked.index) == (1, (0, 1, 7, 9))
    assert not counted.index_bar.isVisible()
    x, y, width, height = counted.plane.port.cell_rect(7, 9)
    assert counted.plane.rect().contains(QPoint(round(x + width / 2), round(y + height / 2)))
    action(counted, "goTo").trigger()
    assert counted.index_bar.field.text() == "0, 1, 7, 9"
    assert counted.index_bar.answer.text() == "= 159.0"


def test_ranges_choose_a_rectangle(counted, qtbot):
    enter_index(counted, qtbot, "1 2:4 :3")
    assert counted.model.channel == 1
    assert ends(counted) == (100, 112)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("0, 2, 0, 0", "Dimension 1 has indices 0 to 1, not 2"),
        ("1", "An index into 1×2×8×10 has 4 numbers"),
        ("0, one, 0, 0", "'one' is neither a number nor a range such as 0:8"),
        ("0, 0:2, 0, 0", "Ranges are for rows and columns, dimensions 2 and 3"),
        ("0, 0, 4:4, 0", "The range 4:4 of dimension 2, of size 8, is empty"),
    ],
)
def test_a_wrong_index_is_explained(counted, qtbot, text, answer):
    found = enter_index(counted, qtbot, text)
    assert found == answer
    assert counted.index_bar.isVisible()
    assert counted.picked is None
    qtbot.keyClick(counted.index_bar.field, Qt.Key.Key_Escape)
    assert not counted.index_bar.isVisible()


def test_an_index_into_a_vector(pane, qtbot):
    pane.set_value("x", np.arange(1000.0))
    enter_index(pane, qtbot, "[998]")
    assert pane.picked.index == (998,)


# Labels


def test_best_classes_by_label(pane, qtbot):
    pane.set_labels(("cat", "dog", "bird"))
    pane.set_value("x", np.array([[0.5, 3, 1]], np.float32))
    assert pane.top.isVisible()
    assert [score.name for score in pane.top.scores] == ["dog", "bird", "cat"]
    pane.top.chosen.emit(1)
    assert pane.picked.index == (0, 1)
    pane.set_value("y", np.arange(4.0))
    assert not pane.top.isVisible()


def test_best_classes_of_an_output_have_names_of_their_data_set(pane):
    scores = np.zeros((1, 1000), np.float32)
    scores[0, 817] = 4
    pane.set_value("x", scores, is_output=True)
    assert pane.top.scores[0].name == "sports car"
    pane.set_labels((), "numbers")
    assert pane.top.scores[0].name == "817"


def test_best_classes_by_number_of_an_output_without_labels(pane):
    scores = np.array([[0.5, 3, 1, -2, 7, 0.25, np.nan]], np.float32)
    pane.set_value("x", scores)
    assert not pane.top.isVisible()  # it may be anything
    pane.set_value("y", scores, is_output=True)
    assert pane.top.isVisible()
    assert [(score.name, score.text) for score in pane.top.scores] == [
        ("4", "7.00"), ("1", "3.00"), ("2", "1.00"), ("0", "0.50"), ("5", "0.25"),
    ]  # fmt: skip
    assert pane.top.title == "Top 5, scores"
    pane.top.chosen.emit(4)
    assert pane.picked.index == (0, 4)
    pane.set_labels(("cat", "dog", "bird"))  # of another model
    assert pane.top.scores[0].name == "4"
    pane.set_value("p", np.array([[0.25, 0.5, 0.25]]), is_output=True)
    assert pane.top.title == "Top 3, probabilities"
    pane.set_value("s", np.sin(np.arange(16000.0))[np.newaxis], is_output=True)
    assert not pane.top.isVisibleTo(pane)  # a second of sound has no classes
    pane.set_value("z", np.zeros((1, 4, 4, 4)), is_output=True)
    assert not pane.top.isVisible()


# Large values


def test_channels_of_large_values_are_measured_on_a_thread(shown, theme, qtbot, monkeypatch):
    pane = shown(TensorPane(theme), 820, 378)
    monkeypatch.setattr(pane.parts.measurer, "_at_once", 100)
    monkeypatch.setattr(channel_pages, "RANGE_LIMIT", 100)
    value = np.zeros((2, 20, 20), np.float32)
    value[0, 7, 7], value[1, 11, 11] = 3, np.nan  # neither is among the first to be looked at
    pane.set_value("x", value)
    assert pane.model.page_facts().high.tolist() == [0, 0]
    qtbot.waitUntil(lambda: not pane.model.page_is_estimated)
    assert pane.model.page_facts().high.tolist() == [3, 0]
    assert pane.model.page_facts().special.tolist() == [0, 1]
    assert "1 NaN or Inf" in pane.mosaic.describe(1)


def test_large_values_are_measured_on_a_thread(shown, theme, qtbot, monkeypatch):
    pane = shown(TensorPane(theme), 820, 378)
    monkeypatch.setattr(pane.parts.measurer, "_at_once", 100)
    value = np.linspace(-1, 1, 2 * 20 * 20, dtype=np.float32).reshape(2, 20, 20)
    pane.set_value("x", value)
    assert numbers(pane)["mean"] == "…"
    assert pane.model.range == ValueRange(-1, 1)
    qtbot.waitUntil(lambda: numbers(pane)["max"] == "1.0000")
    pane.set_value("y", np.zeros((2, 2)))
    assert numbers(pane)["max"] == "0.0000"


def test_channels_of_the_value_before_are_not_those_of_this_one(
    shown, theme, qtbot, monkeypatch
):
    """They were still measured when another value came, of more channels."""
    pane = shown(TensorPane(theme), 820, 378)
    monkeypatch.setattr(pane.parts.measurer, "_at_once", 100)
    known = []
    take = pane.model.set_keys
    monkeypatch.setattr(
        pane.model, "set_keys", lambda keys: known.append(len(keys.twin)) or take(keys)
    )
    pane.set_value("x", np.ones((1, 2, 20, 20)))
    pane.measures._measure_channels()  # as at rest
    pane.set_value("y", np.random.default_rng(0).normal(size=(1, 9, 20, 20)))
    qtbot.waitUntil(lambda: bool(known) and known[-1] == 9)
    assert known == [9]
    assert pane.findChild(QLabel, "specialChannels").text() == ""
    pane.mosaic.grab()


# Pictures, and the channel that opens


def test_the_first_channel_says_why(pane, signed):
    signed[0, 17] *= 3
    pane.set_value("x", signed)
    reason = pane.findChild(QLabel, "tensorChannelReason")
    assert (pane.model.channel, reason.text()) == (17, "most variance")
    assert reason.toolTip() == "Channel 17: most variance"
    trigger(pane, "nextChannel")
    assert reason.text() == ""
    pane.set_value("constant", np.full((1, 4, 6, 6), 7.0))
    assert reason.text() == ""


def test_copied_picture_is_the_channel_and_its_bar(pane, signed):
    pane.set_value("x", signed)
    trigger(pane, "copyPicture")
    copied = QGuiApplication.clipboard().image()
    x, y, width, height = pane.plane.port.cell_rect(0, 0)
    across, down = pane.plane.port.size
    assert (round(across), round(down)) <= (copied.width(), copied.height())
    assert copied.height() < round(down) + 20
    shown = pane.plane.grab().toImage()
    for row, column in ((0, 0), (30, 20), (55, 55)):
        at = QPoint(round((column + 0.5) * width), round((row + 0.5) * height))
        there = shown.pixelColor(at + QPoint(round(x), round(y)))
        assert (
            copied.pixelColor(at + QPoint(0, copied.height() // 2 - round(down / 2))) == there
        )
    ink = {copied.pixelColor(left, copied.height() // 2).name()
           for left in range(round(across) + 2, copied.width())}  # fmt: skip
    assert len(ink) > 2  # a bar and numbers


@pytest.mark.parametrize(
    ("chosen", "width"),
    [("Channel alone (*.png)", 0), ("Channel with its colour bar (*.png)", 60)],
)
def test_saved_channel_has_no_margins(pane, tmp_path, monkeypatch, chosen, width):
    pane.set_value("x", np.arange(80, dtype=np.float32).reshape(8, 10))
    path = str(tmp_path / "x.png")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (path, chosen))
    trigger(pane, "savePicture")
    picture = QImage(path)
    across, down = pane.plane.port.size
    assert across + width <= picture.width() <= across + 2 * width
    assert down <= picture.height() <= down + (20 if width else 0)


@pytest.mark.parametrize("value", [np.arange(9.0), np.full((2, 2), np.nan), np.zeros((3, 4))])
def test_every_picture_can_be_copied(pane, value):
    pane.set_value("x", value)
    trigger(pane, "copyPicture")
    assert not QGuiApplication.clipboard().image().isNull()
    trigger(pane, "table")
    trigger(pane, "copyPicture")
    assert not QGuiApplication.clipboard().image().isNull()


def test_a_wave_form_has_no_best_classes(pane):
    wave = np.linspace(-1, 1, 40, dtype=np.float32)[np.newaxis]
    pane.set_value("x", wave, is_output=True)
    assert pane.top.isVisible()
    axes = Axis(Meaning.BATCH, 1), Axis(Meaning.TIME, 40)
    pane.set_layout(Layout(axes))
    assert not pane.top.isVisible()
