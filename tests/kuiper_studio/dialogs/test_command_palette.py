"""The command palette: what it offers, how it is painted, and what a choice does."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QLabel,
    QLineEdit,
    QListView,
    QMainWindow,
)

from engine.inputs import InputSource
from kuiper_studio.commands import COMMANDS
from kuiper_studio.dialogs.action_text import action_group, action_keys, action_text, key_caps
from kuiper_studio.dialogs.command_palette import CommandPalette
from kuiper_studio.dialogs.other_words import OTHER_WORDS
from kuiper_studio.dialogs.palette_model import MAX_FOUND, PaletteModel
from kuiper_studio.session import StudioSession
from kuiper_studio.tensor_view.actions import COMMANDS as TENSOR_COMMANDS
from kuiper_studio.theme import Scheme, Theme

NET = (
    "pnnx.Input in 0 1 0 #0=(1,8,8)f32",
    "nn.Conv2d stem.conv 1 1 0 mid #mid=(1,8,8)f32",
    "nn.ReLU step_relu 1 1 mid 2",
    "pnnx.Output out 1 0 2",
)


@pytest.fixture
def session(qapp):
    made = StudioSession()
    yield made
    made.close()


@pytest.fixture(params=[Scheme.DARK, Scheme.LIGHT], ids=["dark", "light"])
def theme(request, qapp):
    return Theme(request.param)


@pytest.fixture
def window(qtbot):
    made = QMainWindow()
    qtbot.addWidget(made)
    made.resize(1000, 600)
    made.show()
    return made


@pytest.fixture
def actions(window):
    """Commands as the window has them, and a list of those that were triggered."""
    made, ran = [], []
    for name, text, keys, enabled in (
        ("file.open", "&Open…", "Ctrl+O", True),
        ("view.zoomIn", "Zoom &in", "", True),
        ("debug.step", "&Step", "F10", True),
        ("debug.stop", "St&op", "Shift+F5", False),
        ("file.reset", "&Reset layout", "", True),
    ):
        action = QAction(text, window)
        action.setObjectName(name)
        action.setShortcut(QKeySequence(keys))
        action.setEnabled(enabled)
        action.setStatusTip(f"About {name}")
        action.triggered.connect(lambda _=False, name=name: ran.append(name))
        made.append(action)
    separator = QAction(window)
    separator.setSeparator(True)
    made.append(separator)
    return made, ran


@pytest.fixture
def palette(session, theme, window):
    made = CommandPalette(session, theme, window)
    yield made
    made.hide()


@pytest.fixture
def opened(qtbot, session, make_pair):
    source = InputSource("array", array=np.zeros((1, 8, 8), "f4"))
    session.next_model.set_sources([source])
    session.open(make_pair(*NET))
    qtbot.waitUntil(lambda: session.graph is not None and not session.busy)
    return session


def texts(palette):
    return [palette.model.entry(row).text for row in range(palette.model.rowCount())]


def chosen(palette):
    return palette.list.currentIndex().data()


def label(palette, name):
    return palette.findChild(QLabel, name)


def press(qtbot, palette, *keys):
    for key in keys:
        qtbot.keyClick(palette.box, key)


def test_empty_lists_all_by_menu(palette, actions):
    palette.open_with(actions[0])
    assert palette.isVisible()
    assert texts(palette) == [
        "File", "Open", "Reset layout", "View", "Zoom in", "Debug", "Step", "Stop",
    ]  # fmt: skip
    assert chosen(palette) == "Open"
    assert label(palette, "paletteCount").text() == ""


def test_stands_near_the_top_in_the_middle(palette, window, actions):
    palette.open_with(actions[0])
    assert palette.width() == 620
    left = palette.mapToGlobal(QPoint(0, 0)) - window.mapToGlobal(QPoint(0, 0))
    assert (left - QPoint(190, 46)).manhattanLength() < 8  # some platforms add a frame
    window.resize(400, 300)
    palette.open_with(actions[0])
    assert palette.width() == 360
    assert palette.height() < 300


def test_recently_used_come_first(qtbot, palette, actions):
    palette.open_with(actions[0])
    palette.box.setText("zoom")
    press(qtbot, palette, Qt.Key.Key_Return)
    palette.open_with(actions[0])
    palette.box.setText("step")
    press(qtbot, palette, Qt.Key.Key_Return)
    palette.open_with(actions[0])
    assert texts(palette)[:4] == ["Recently used", "Step", "Zoom in", "File"]
    assert actions[1] == ["view.zoomIn", "debug.step"]
    assert chosen(palette) == "Step"


def test_ranking(opened, palette, actions):
    palette.open_with(actions[0])
    palette.box.setText("st")
    assert texts(palette) == [
        "Step",  # start, a command
        "nn.ReLU  step_relu",  # start of a name, a short one
        "nn.Conv2d  stem.conv",
        "Stop",  # not available now
    ]
    assert palette.model.entry(0).note == "Debug"
    assert label(palette, "paletteCount").text() == "4 found"


def test_ellipsis_typed_as_in_a_menu(opened, palette, actions):
    palette.open_with(actions[0])
    for text in ("open…", "open...", "> Open…"):
        palette.box.setText(text)
        assert texts(palette) == ["Open"]
        assert chosen(palette) == "Open"
    palette.box.setText("…")  # is nothing to look for
    assert texts(palette) == []


def test_prefixes(opened, palette, actions):
    palette.open_with(actions[0])
    palette.box.setText("> st")
    assert texts(palette) == ["Step", "Stop"]
    palette.box.setText("@st")
    assert texts(palette) == ["nn.ReLU  step_relu", "nn.Conv2d  stem.conv"]


def test_operator_by_index(qtbot, opened, palette, actions):
    palette.open_with(actions[0])
    palette.box.setText("#2")
    assert texts(palette) == ["nn.ReLU  step_relu"]
    press(qtbot, palette, Qt.Key.Key_Enter)
    assert opened.selected == "step_relu"
    palette.open_with(actions[0])
    palette.box.setText("#")
    assert len(texts(palette)) == 4


def test_operand(qtbot, opened, palette, actions):
    palette.open_with(actions[0])
    palette.box.setText("mid")
    assert texts(palette) == ["Operand  mid"]
    assert palette.model.entry(0).note == "1×8×8 f32"
    press(qtbot, palette, Qt.Key.Key_Return)
    assert not palette.isVisible()
    assert (opened.selected, opened.operand) == ("stem.conv", "mid")


def test_walk(qtbot, palette, actions):
    palette.open_with(actions[0])
    press(qtbot, palette, Qt.Key.Key_Down, Qt.Key.Key_Down)
    assert chosen(palette) == "Zoom in"  # over the heading
    press(qtbot, palette, Qt.Key.Key_Down, Qt.Key.Key_Down)
    assert chosen(palette) == "Open"  # round, over what is not available
    press(qtbot, palette, Qt.Key.Key_Up)
    assert chosen(palette) == "Step"
    press(qtbot, palette, Qt.Key.Key_PageUp)
    assert chosen(palette) == "Open"
    press(qtbot, palette, Qt.Key.Key_PageDown)
    assert chosen(palette) == "Step"
    qtbot.keyClicks(palette.box, "zo")
    assert chosen(palette) == "Zoom in"


def test_escape_closes_and_runs_nothing(qtbot, palette, actions):
    palette.open_with(actions[0])
    press(qtbot, palette, Qt.Key.Key_Escape)
    assert not palette.isVisible()
    assert actions[1] == []


def test_disabled_does_not_run(qtbot, palette, actions):
    palette.open_with(actions[0])
    palette.box.setText("stop")
    assert texts(palette) == ["Stop"]
    press(qtbot, palette, Qt.Key.Key_Return)
    click(qtbot, palette, 0)
    assert palette.isVisible()
    assert actions[1] == []


def test_best_match_that_is_not_available_keeps_enter_from_another(
    qtbot, opened, palette, actions
):
    actions[0][0].setText("Sort operators")  # has the letters of "stop", by chance
    palette.open_with(actions[0])
    palette.box.setText("stop")
    assert texts(palette) == ["Stop", "Sort operators"]
    press(qtbot, palette, Qt.Key.Key_Return)
    assert palette.isVisible()
    assert actions[1] == []
    press(qtbot, palette, Qt.Key.Key_Up)
    assert chosen(palette) == "Sort operators"
    press(qtbot, palette, Qt.Key.Key_Up, Qt.Key.Key_Return)
    assert actions[1] == ["file.open"]


def test_other_words_find_a_command_and_the_row_says_what_it_does(qapp, window):
    action = QAction("What the output mean&s", window)
    action.setObjectName("analyse.output")
    action.setStatusTip("Show what the output means: classes, boxes")
    model = PaletteModel()
    model.set_sources([action])
    for pattern in ("meaning", "predict", "output meaning", "boxes"):
        model.find(pattern)
        assert model.found == 1, pattern
        assert model.entry(0).note == action.statusTip()
    model.find("output means")
    assert model.entry(0).note == "Analyse"
    model.find("output giraffe")
    assert model.found == 0


def test_other_words_belong_to_commands_of_the_window():
    known = {command.id for command in (*COMMANDS, *TENSOR_COMMANDS)}
    orders = {name for name in OTHER_WORDS if name.startswith("tensor.Orderofchannels.")}
    assert set(OTHER_WORDS) - orders <= known


@pytest.mark.parametrize(
    ("typed", "order"),
    [
        ("variance", "standard deviation"),
        ("dead", "share of zeros"),
        ("similarity", "likeness"),
    ],
)
def test_orders_of_channels_by_their_other_names(open_window, typed, order):
    window = open_window()
    window.findChild(QAction, "view.commandPalette").trigger()
    box = QApplication.activePopupWidget().findChild(QLineEdit, "paletteBox")
    box.setText(typed)
    model = QApplication.activePopupWidget().findChild(QListView, "paletteList").model()
    rows = [model.entry(row).text for row in range(model.rowCount())]
    QApplication.activePopupWidget().hide()
    assert any(row.startswith(f"Order of channels: {order}") for row in rows)


def click(qtbot, palette, row):
    spot = palette.list.visualRect(palette.model.index(row, 0)).center()
    qtbot.mouseMove(palette.list.viewport(), spot)
    qtbot.mouseClick(palette.list.viewport(), Qt.MouseButton.LeftButton, pos=spot)


def test_click_runs(qtbot, palette, actions):
    palette.open_with(actions[0])
    click(qtbot, palette, 0)  # a heading
    assert palette.isVisible()
    click(qtbot, palette, 4)
    assert not palette.isVisible()
    assert actions[1] == ["view.zoomIn"]


def test_hover_chooses(palette, actions):
    palette.open_with(actions[0])
    palette.list.entered.emit(palette.model.index(4))
    assert chosen(palette) == "Zoom in"
    palette.list.entered.emit(palette.model.index(3))  # a heading
    assert chosen(palette) == "Zoom in"


def test_nothing_found(qtbot, palette, actions):
    palette.open_with(actions[0])
    palette.box.setText("<b>qqq")
    nothing = label(palette, "paletteNothing")
    assert nothing.isVisible()
    assert nothing.text().startswith("Nothing matches “<b>qqq”. Try ")
    assert not palette.list.isVisible()
    press(qtbot, palette, Qt.Key.Key_Down, Qt.Key.Key_PageUp, Qt.Key.Key_Return)
    assert palette.isVisible()


def test_painted(palette, actions, opened, theme):
    actions[0][1].setCheckable(True)
    actions[0][1].setChecked(True)
    palette.open_with(actions[0])
    image = palette.grab().toImage()
    row = palette.list.visualRect(palette.list.currentIndex()).center()
    across = palette.list.viewport().mapTo(palette, row).y()  # depends on the style sheet
    colors = {image.pixel(x, across) for x in range(image.width())}
    assert len(colors) > 3
    for pattern in ("st", "mid", "zoom"):
        palette.box.setText(pattern)
        assert palette.grab().toImage() != image


def test_matched_letters_are_bolder(palette, actions, theme):
    def ink(pattern):
        palette.open_with(actions[0][2:3])
        palette.box.setText(pattern)
        image = palette.list.grab().toImage()
        back = theme.color("sel").lightness()
        spots = ((x, y) for x in range(36, 80) for y in range(4, 24))
        return sum(abs(image.pixelColor(x, y).lightness() - back) for x, y in spots)

    assert ink("step") > ink("s")


def test_long_name_loses_its_middle(qtbot, session, palette, actions, make_pair):
    name = "block." * 40 + "end"
    session.open(make_pair("pnnx.Input in 0 1 0", f"nn.ReLU {name} 1 1 0 1"))
    qtbot.waitUntil(lambda: session.graph is not None)
    palette.open_with(actions[0])
    palette.box.setText("@nn end")
    entry = palette.model.entry(0)
    delegate = palette.list.itemDelegate()
    text, places = delegate._elide(entry, 300)
    assert text.startswith("nn.ReLU  block.")
    assert text.endswith(".end")
    assert "…" in text
    assert places == (0, 1)
    palette.grab()


class TestModel:
    def test_is_a_list(self, qtmodeltester, actions, opened):
        model = PaletteModel()
        model.set_sources(actions[0], opened.graph)
        qtmodeltester.check(model)
        model.find("st")
        qtmodeltester.check(model)

    def test_what_screen_readers_get(self, actions):
        model = PaletteModel()
        model.set_sources(actions[0])
        model.find("stop")
        index = model.index(0)
        format_os_error = index.data(Qt.ItemDataRole.AccessibleTextRole)
        assert format_os_error.startswith("Stop, Debug, ")
        assert format_os_error.endswith(", not available now")
        assert index.data(Qt.ItemDataRole.ToolTipRole) == "About debug.stop"
        assert not index.flags() & Qt.ItemFlag.ItemIsEnabled

    def test_ten_thousand_operators(self, qtbot, session, actions, make_pair):
        lines = ["pnnx.Input in 0 1 0"]
        lines += [f"nn.ReLU block{i}.relu 1 1 {i} {i + 1}" for i in range(10_000)]
        session.open(make_pair(*lines))
        qtbot.waitUntil(lambda: session.graph is not None, timeout=20_000)
        model = PaletteModel()
        model.set_sources(actions[0], session.graph)
        model.find("block7 relu")
        assert model.found > 1111  # those that begin so, and others with a 7
        assert model.rowCount() == MAX_FOUND
        assert model.entry(0).text == "nn.ReLU  block7.relu"
        model.find("#999")
        assert [model.entry(row).shortcut for row in range(2)] == ["#999", "#9990"]


class TestActionText:
    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            pytest.param("&Open…", "Open", id="mnemonic-and-dots"),
            pytest.param("Save && &quit", "Save & quit", id="ampersand"),
            pytest.param("&Next channel\tPgDown", "Next channel", id="told-key"),
        ],
    )
    def test_text(self, qapp, text, shown):
        assert action_text(QAction(text)) == shown

    def test_quantity_that_is_coloured_by(self, qapp):
        action = QAction("&NaN and Inf")
        action.setObjectName("view.colorByNonfinite")
        assert action_text(action) == "Colour by: NaN and Inf"

    def test_keys(self, qapp):
        action = QAction("x")
        assert action_keys(action) == ()
        action.setShortcuts([QKeySequence("F8"), QKeySequence("Alt+[")])
        assert action_keys(action) == ("F8", "Alt+[")
        assert action_keys(QAction("Next\tPgDown")) == ("PgDown",)

    def test_panel_toggle(self, qtbot):
        dock = QDockWidget("Log")
        qtbot.addWidget(dock)
        action = dock.toggleViewAction()
        assert (action_text(action), action_group(action)) == ("Log panel", "View")

    @pytest.mark.parametrize(
        ("name", "group"),
        [
            ("debug.step", "Debug"),
            ("analyse.compare", "Analyse"),
            ("", "Other"),
            ("step", "Other"),
            ("odd.step", "Other"),
        ],
    )
    def test_group(self, qapp, name, group):
        action = QAction("x")
        action.setObjectName(name)
        assert action_group(action) == group

    @pytest.mark.parametrize(
        ("keys", "caps"),
        [
            ("F5", ("F5",)),
            ("Ctrl+Shift+P", ("Ctrl", "Shift", "P")),
            ("Ctrl++", ("Ctrl", "+")),
            ("+", ("+",)),
            ("Ctrl+-", ("Ctrl", "-")),
        ],
    )
    def test_caps(self, keys, caps):
        assert key_caps(keys) == caps
