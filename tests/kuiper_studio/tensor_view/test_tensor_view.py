"""The tensor view on a session: following, locking, absences and failures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QMenu, QPushButton, QTabBar, QToolButton

from engine.errors import ExportError
from engine.inputs import InputSource
from kuiper_studio.session import RunState
from kuiper_studio.tensor_view import TensorView
from kuiper_studio.tensor_view.tab_strip import TabLabel


@pytest.fixture
def view_of(shown, theme):
    """A function that shows a view of a session."""
    return lambda session: shown(TensorView(session, theme), 820, 408)


@pytest.fixture
def view(view_of, studio):
    return view_of(studio)


def title(view, index=0):
    label = view.strip.tabs.label(index)
    return f"{label.title} {label.number}".strip()


def shape(view):
    return view.strip.findChild(QLabel, "tensorShape").text()


def message(view):
    assert view.message.isVisible()
    return f"{view.message.title.text()}\n{view.message.detail.text()}"


# Following


def test_without_a_model(view_of, empty_session):
    view = view_of(empty_session)
    assert message(view).startswith("No tensor chosen")
    assert view.operand == ""
    with pytest.raises(ExportError, match="no tensor is shown"):
        view.save_picture(Path("x.png"))


def test_before_the_first_step(view):
    assert title(view) == "in 0"
    assert "Operand 0 has no value yet" in message(view)
    assert "step (F10) or continue (F5)" in message(view)


def test_without_input(view_of, open_model, residual, qtbot, empty_session):
    view = view_of(empty_session)
    empty_session.open(residual)
    qtbot.waitUntil(lambda: empty_session.state is RunState.NEED_INPUT)
    assert "needs an input" in message(view)
    assert "or choose Random as the source in the Input panel." in message(view)


def test_follows_the_steps(view, studio, step):
    step(studio, 2)
    assert title(view) == "layer1.conv 1"
    assert shape(view) == "1×4×8×8 f32"
    assert view.pane.model.array is studio.tensors.value("1")
    step(studio)
    assert title(view) == "layer1.relu 2"


def test_follows_the_selection(view, studio, step):
    step(studio, 3)
    studio.select("layer1.conv")
    assert title(view) == "layer1.conv 1"
    studio.select("add")
    assert title(view) == "add 3"
    assert "pnnx.Expression add, operator 3, has not run" in message(view)


def test_says_why_an_operator_gave_nothing(view, studio, step):
    step(studio, 7)
    studio.select("strange")
    assert "my.Strange" in message(view)
    studio.select("tail")
    assert "was not computed" in message(view)


def test_restart_takes_the_values_away(view, studio, step, settle):
    step(studio, 2)
    assert view.pane.isVisible()
    studio.restart()
    settle(studio)
    assert view.message.isVisible()


def test_step_back_takes_the_value_away(view, studio, step, settle):
    step(studio, 3)
    studio.select("layer1.relu")
    studio.step_back()
    settle(studio)
    studio.show_operand("2")
    assert "has no value yet" in message(view)


def test_same_value_is_not_shown_again(view, studio, step, monkeypatch):
    step(studio, 2)
    calls = []
    monkeypatch.setattr(view.pane, "set_value", lambda *args, **_: calls.append(args))
    studio.select("layer1.conv")
    assert view.operand == "1"
    assert calls == []
    studio.select("in")
    assert [name for name, *_ in calls] == ["0"]


def test_choices_are_kept_from_run_to_run_and_dropped_with_the_model(
    view, studio, step, settle, qtbot, residual
):
    step(studio, 2)
    view.pane.show_channel(3)
    studio.restart()
    settle(studio)
    step(studio, 2)
    assert view.pane.model.channel == 3
    view.lock()
    studio.open(residual)
    qtbot.waitUntil(lambda: not studio.busy)
    assert view.locked == ("1",)  # the same operand of the same file
    step(studio, 2)
    assert view.pane.model.channel == 0


# Signals


def test_what_the_status_bar_is_told(view, studio, step, qtbot):
    told = {}
    for name in ("picked_changed", "range_changed", "zoom_changed"):
        getattr(view, name).connect(lambda text, name=name: told.__setitem__(name, text))
    view.special_changed.connect(lambda text, some: told.__setitem__("special", (text, some)))
    step(studio, 2)
    view.pane.plane.picked.emit(2, 3)
    value = studio.tensors.value("1")
    assert told["picked_changed"] == f"[0, 0, 2, 3] {value[0, 0, 2, 3]!s}"
    assert view.picked.value == value[0, 0, 2, 3]
    assert "…" in told["range_changed"]
    assert told["zoom_changed"].endswith(" : 1")
    assert told["special"] == ("NaN 0 Inf 0", False)
    studio.select("tail")
    assert view.picked is None
    assert told == {
        "picked_changed": "",
        "range_changed": "",
        "zoom_changed": "",
        "special": ("", False),
    }


def test_labels_of_the_session(view_of, open_model, make_pair, step):
    session = open_model(
        make_pair("pnnx.Input in 0 1 0 #0=(1,3)f32", "pnnx.Output out 1 0 0", name="flat")
    )
    view = view_of(session)
    session.workspace.set_labels(("cat", "dog", "bird"))
    step(session)
    assert [score.name for score in view.pane.top.scores] == ["cat", "dog", "bird"]


def test_scores_without_labels_are_named_by_number(view_of, open_model, make_pair, step):
    scores = np.array([[1, 9, -3, 4]], np.float32)
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,4)f32",
        "pnnx.Expression half 1 1 0 1 expr=div(@0,2) #1=(1,4)f32",
        "pnnx.Output out 1 0 1",
    )
    session = open_model(make_pair(*lines), InputSource("array", array=scores))
    view = view_of(session)
    step(session)
    assert not view.pane.top.isVisible()  # the model goes on with it
    step(session)
    assert [score.name for score in view.pane.top.scores] == ["1", "3", "0", "2"]


# Locking


def test_lock_keeps_a_tensor_while_the_first_tab_follows(view, studio, step):
    step(studio, 2)
    view.lock()
    assert view.locked == ("1",)
    assert view.strip.tabs.currentIndex() == 1
    assert title(view, 1) == "layer1.conv 1"
    step(studio)
    assert title(view) == "layer1.relu 2"
    assert view.operand == "1"
    assert view.pane.model.array is studio.tensors.value("1")
    view.strip.tabs.setCurrentIndex(0)
    assert view.pane.model.array is studio.tensors.value("2")


def test_lock_twice_is_one_tab(view, studio, step):
    step(studio, 2)
    view.lock()
    view.strip.tabs.setCurrentIndex(0)
    view.lock()
    assert view.strip.tabs.count() == 2


def test_locked_tab_shows_the_next_run(view, studio, step, settle):
    step(studio, 2)
    view.lock()
    studio.restart()
    settle(studio)
    assert "has no value yet" in message(view)
    step(studio, 2)
    assert view.pane.model.array is studio.tensors.value("1")


def reload(session, settle):
    graph = session.graph
    session.reload()
    settle(session)
    assert session.graph is not graph


def test_a_reloaded_model_keeps_its_locked_tabs(view, studio, step, settle):
    step(studio, 3)
    for operand in ("1", "0"):
        studio.show_operand(operand)
        view.strip.tabs.setCurrentIndex(0)
        view.lock()
    view.strip.tabs.setCurrentIndex(1)
    reload(studio, settle)
    assert [title(view, tab) for tab in range(1, view.strip.tabs.count())] == [
        "layer1.conv 1",
        "in 0",
    ]
    assert view.strip.tabs.currentIndex() == 1
    assert view.pane.model.array is studio.tensors.value("1")


def test_tabs_find_their_operand_by_its_producer(
    view_of, open_model, make_pair, step, settle, qtbot
):
    """An export anew numbers the operands otherwise, and an operator may be gone."""
    first, last = "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32", "pnnx.Output out 1 0"
    path = make_pair(first, "nn.ReLU relu 1 1 0 1", "F.tanh tanh 1 1 1 2", f"{last} 2")
    session = open_model(path)
    view = view_of(session)
    step(session, 3)
    for operand in ("1", "2"):
        session.show_operand(operand)
        view.strip.tabs.setCurrentIndex(0)
        view.lock()
    make_pair(first, "nn.ReLU relu 1 1 0 9", "F.sigmoid sigmoid 1 1 9 1", f"{last} 1")
    reload(session, settle)
    assert view.locked == ("9",)
    assert title(view, 1) == "relu 9"
    assert view.strip.tabs.currentIndex() == 0  # that which was current is gone
    assert "the tab of tanh is closed: its operand 2 is gone" in [
        entry.text for entry in session.workspace.log_entries
    ]
    view.strip.tabs.setCurrentIndex(1)
    ones = np.ones((1, 3, 8, 8))
    qtbot.waitUntil(lambda: np.array_equal(view.pane.model.array, ones))


def test_another_model_begins_without_locked_tabs(view, studio, step, make_pair, qtbot):
    step(studio, 2)
    view.lock()
    other = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.ReLU layer1.conv 1 1 0 1",
        "pnnx.Output out 1 0 1",
        name="other",
    )
    studio.open(other)
    qtbot.waitUntil(lambda: studio.model_path == other and not studio.busy)
    assert view.locked == ()
    assert view.strip.tabs.count() == 1


def test_close_button(view, studio, step, qtbot):
    step(studio, 2)
    view.lock()
    close = view.strip.tabs.tabButton(1, QTabBar.ButtonPosition.RightSide)
    qtbot.mouseClick(close, Qt.MouseButton.LeftButton)
    assert view.locked == ()
    assert view.strip.tabs.count() == 1
    view.close_tab(0)
    assert view.strip.tabs.count() == 1


def test_input_has_the_name_of_its_file(view_of, open_model, residual, step, tmp_path):
    from engine.inputs import parse_source

    np.save(tmp_path / "car.npy", np.zeros((1, 3, 8, 8), np.float32))
    session = open_model(residual, parse_source(str(tmp_path / "car.npy")))
    view = view_of(session)
    step(session)
    assert title(view) == "car.npy 0"
    view.lock()
    assert view.strip.tabs.label(1).icon == "file"


# Failing


@pytest.fixture
def failed(view_of, open_model, failing, step):
    session = open_model(failing)
    view = view_of(session)
    step(session, 3)
    assert session.state is RunState.FAILED
    return view


def texts(widget):
    return [label.text() for label in widget.findChildren(QLabel)]


def test_operands_of_the_failed_operator(failed):
    assert failed.gallery.isVisible()
    assert title(failed) == "Operands of sum"
    assert shape(failed) == "earlier values stay available"
    assert [card.name for card in failed.gallery.cards] == ["1", "0"]
    found = texts(failed.gallery)
    assert "1×3×8×8 f32" in found
    assert "1×3×6×6 f32" in found
    assert "27 … 27" in found  # 3 channels of a 3 x 3 window of ones
    links = [button.text() for button in failed.gallery.findChildren(QPushButton)]
    assert links == ["conv", "in"]


def test_operands_of_the_failed_operator_come_when_they_are_fetched(failed, qtbot, monkeypatch):
    tensors = failed._session.tensors
    value = tensors.value("0")
    with monkeypatch.context() as away:
        away.setattr(tensors, "look", lambda name: name != "0")
        away.setattr(
            tensors,
            "value",
            lambda name: None if name == "0" else type(tensors).value(tensors, name),
        )
        failed._refresh()
        assert "is being fetched" in texts(failed.gallery)
        assert "None" not in texts(failed.gallery)
    tensors.recalled.emit("0")
    assert failed.gallery.cards[1].value is value
    assert "1×3×8×8 f32" in texts(failed.gallery)


def test_from_an_operand_to_its_producer(failed):
    failed.gallery.findChildren(QPushButton)[0].click()
    assert title(failed) == "conv 1"
    assert failed.pane.isVisible()


def test_an_operand_can_be_looked_at_closely(failed):
    failed.gallery.operand_chosen.emit("1")
    assert failed.pane.isVisible()
    assert shape(failed) == "1×3×6×6 f32"


def test_picture_of_the_gallery(failed, tmp_path):
    failed.save_picture(tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 0


# Menu and keys


def test_actions_are_commands(view):
    names = {action.objectName() for action in view.actions()}
    assert {"tensor.lock", "tensor.autofit", "tensor.table", "tensor.savePicture"} <= names
    assert all(action.text() for action in view.actions())


def test_menu(view):
    menu = QMenu()
    view.fill_menu(menu)
    assert len(menu.actions()) > 20


def test_focus_goes_to_the_picture(view, studio, step, qtbot):
    step(studio, 2)
    view.setFocus()
    qtbot.waitUntil(view.pane.plane.hasFocus)


def test_object_name(view):
    assert view.objectName() == "tensor"


def test_channels_last_is_marked_and_holds_for_one_input_of_what_fails(
    view_of, open_model, failing, step
):
    session = open_model(failing)
    view = view_of(session)
    mark = view.strip.findChild(QToolButton, "channelsLastMark")
    step(session, 1)
    assert not mark.isVisibleTo(view)
    view.pane.actions_table["tensor.channelsLast"].trigger()
    assert mark.isVisibleTo(view)
    assert (mark.text(), mark.isChecked()) == ("channels last", True)
    assert "× channel" in view.strip.findChild(QLabel, "tensorShape").toolTip()
    step(session, 1)
    assert session.operand == "1"
    assert not mark.isVisibleTo(view)
    session.show_operand("0")
    assert mark.isVisibleTo(view)
    session.show_operand("1")
    step(session, 1)
    assert session.state is RunState.FAILED
    assert not mark.isVisibleTo(view)
    # The sum takes operands 1 and 0.
    assert [card.channels_last for card in view.gallery.cards] == [False, True]


def test_the_mark_of_channels_last_switches_it_off(view, studio, step):
    step(studio, 1)
    view.pane.actions_table["tensor.channelsLast"].trigger()
    assert view.pane.model.reading.channels == 8
    view.strip.findChild(QToolButton, "channelsLastMark").click()
    assert view.pane.model.reading.channels == 3
    assert not view.pane.actions_table["tensor.channelsLast"].isChecked()


def test_words_give_way_before_tabs_need_scrolling(view, qtbot):
    strip = view.strip
    strip.tabs.set_label(0, TabLabel("encoder.layers.encoder_layer_11.mlp.1", "101"))
    strip.show_text("1×50×3072 f32", axes="class + 7×7 tokens × features")
    words = strip.findChild(QLabel, "tensorAxes")
    for width, are_shown in ((900, True), (560, True), (460, False)):
        strip.setFixedWidth(width)
        qtbot.waitUntil(lambda: strip.tabs.width() == strip.tabs.sizeHint().width())
        arrows = strip.tabs.findChildren(QToolButton)
        assert [each for each in arrows if each.isVisible()] == []
        assert words.isVisible() == are_shown


def test_channels_last_is_not_kept_for_the_next_model(
    qtbot, view_of, open_model, residual, failing, step
):
    session = open_model(residual)
    view = view_of(session)
    step(session, 1)
    view.pane.actions_table["tensor.channelsLast"].trigger()
    open_model(failing)
    step(session, 1)
    assert session.operand == "0"
    assert view.pane.model.reading.channels == 3
    assert not view.pane.actions_table["tensor.channelsLast"].isChecked()


def test_the_channel_of_the_thumbnail_comes_first(qtbot, open_model, view_of, make_pair, step):
    """Of a tensor whose first channels are zero."""
    image = np.zeros((1, 5, 8, 8), np.float32)
    image[0, 3] = np.arange(64).reshape(8, 8)
    image[0, 4] = 7
    model = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,5,8,8)f32",
        "nn.ReLU relu 1 1 0 1 #1=(1,5,8,8)f32",
        "pnnx.Output out 1 0 1",
    )
    session = open_model(model, InputSource("array", array=image))
    view = view_of(session)
    step(session, 2)
    assert view.operand == "1"
    assert view.pane.tools.channel.box.value() == 3
    np.testing.assert_array_equal(view.pane.model.plane, image[0, 3])
    session.tensors.want("1")
    qtbot.waitUntil(lambda: session.tensors.summary("1") is not None)
    pixels = np.frombuffer(session.tensors.summary("1").pixels, np.uint8).reshape(66, 66, 4)
    assert (pixels[0, 0] != pixels[-1, -1]).any()  # channel 3, which is not of one value


# Over all inputs


def test_channels_over_all_inputs_that_were_run(view_of, studio, step, settle, qtbot):
    """Operand 2 is a ReLU: without a picture its channels are dead, or have their bias."""
    view = view_of(studio)
    statistics = view.pane.statistics
    text = statistics.findChild(QLabel, "specialChannels")
    planes = []

    def is_counted():
        special = view.pane.model.special
        return special is not None and special.inputs == len(planes)

    for source in (InputSource("random", seed=1), InputSource("constant", value=0.0)):
        studio.set_source_list([source])
        settle(studio)
        step(studio, 3)
        studio.select("layer1.relu")
        planes.append(studio.tensors.fetch("2")[0])
        qtbot.waitUntil(is_counted)
    dead = [np.array([not plane.any() for plane in each]) for each in planes]
    assert dead[1].any()  # else there is nothing to tell
    assert not (dead[0] & dead[1]).all()
    always = int((dead[0] & dead[1]).sum())
    assert text.text().splitlines()[1] == (
        f"In all 2 inputs: {f'{always} dead' if always else 'none'}"
    )
    channel = int(np.flatnonzero(dead[1] & ~dead[0])[0])
    assert view.pane.mosaic.describe(channel).endswith("dead: all zeros, in 1 of 2 inputs")

    actions = view.pane.actions_table
    name = "Order of channels: largest value"
    next(each for each in actions.all() if each.text() == name).trigger()
    assert view.pane.mosaic.page_text() == "by largest value"
    actions["tensor.overAll"].trigger()
    assert view.pane.mosaic.page_text() == "by largest value in 2 inputs"
    largest = np.maximum(*[each.max(axis=(1, 2)) for each in planes])
    shown = [view.pane.model.channel_in_place(place) for place in range(len(largest))]
    assert shown == np.argsort(-largest, kind="stable").tolist()
