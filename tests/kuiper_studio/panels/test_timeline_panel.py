"""The timeline panel: what it shows of a session and how it is used."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QFontMetrics, QHelpEvent, QImage, QMouseEvent
from PySide6.QtWidgets import QApplication, QDockWidget, QToolTip

from engine.inputs import InputSource
from kuiper_studio.panels.dock_title import DockTitleBar
from kuiper_studio.panels.log_panel import LogPanel
from kuiper_studio.panels.tabbed_panels import TabbedPanels
from kuiper_studio.panels.timeline_model import Measure, Scale
from kuiper_studio.panels.timeline_painter import (
    Geometry,
    axis_unit,
    elide_start,
    labels_without_overlap,
)
from kuiper_studio.panels.timeline_panel import TimelinePanel
from kuiper_studio.session import RunState, StudioSession
from kuiper_studio.theme import Scheme, Theme

SHAPES = "#{}=(1,8,8)f32 #{}=(1,8,8)f32"
CHAIN = (
    "pnnx.Input in 0 1 0 #0=(1,8,8)f32",
    f"nn.ReLU stem.relu 1 1 0 1 {SHAPES.format(0, 1)}",
    f"nn.Sigmoid body.0.act 1 1 1 2 {SHAPES.format(1, 2)}",
    f"pnnx.Expression twice 1 1 2 3 expr=mul(@0,2) {SHAPES.format(2, 3)}",
    f"nn.ReLU body.1.relu 1 1 3 4 {SHAPES.format(3, 4)}",
    "pnnx.Output out 1 0 4",
)
FAILING = (
    "pnnx.Input in 0 1 0 #0=(1,8,8)f32",
    "nn.ReLU relu 1 1 0 1 #1=(1,8,8)f32",
    "my.Thing <odd> 1 1 1 2",
    "nn.ReLU behind 1 1 2 3",
    "torch.flatten flat 1 1 1 5 start_dim=0 end_dim=-1",
    "pnnx.Expression bad 2 1 1 5 4 expr=add(@0,@1)",
    "pnnx.Output out 1 0 4",
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
def panel(qtbot, session, theme):
    made = TimelinePanel(session, theme)
    qtbot.addWidget(made)
    made.resize(700, 80)
    made.show()
    return made


@pytest.fixture
def opened(qtbot, session, panel, make_pair):
    open_model(qtbot, session, make_pair(*CHAIN))
    return panel


def open_model(qtbot, session, path):
    source = InputSource("array", array=np.linspace(-1, 1, 64, dtype="f4").reshape(1, 8, 8))
    session.next_model.set_sources([source])
    session.open(path)
    qtbot.waitUntil(lambda: session.graph is not None and not session.busy)


def run(qtbot, session, command, *args):
    command(*args)
    qtbot.waitUntil(lambda: not session.busy)


def picture(panel):
    return panel.canvas.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)


def move_mouse(widget, spot):
    """Tell a widget that the mouse is at a spot, wherever an earlier test has left it."""
    where, nothing = QPointF(spot), Qt.MouseButton.NoButton
    event = QMouseEvent(
        QEvent.Type.MouseMove, where, widget.mapToGlobal(where), nothing, nothing,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(widget, event)


def middle(panel, index):
    """Middle of an operator's slot, just above the base line."""
    space = panel.canvas.geometry_of_bars()
    return QPoint(round(space.x(index + 0.5)), space.base - 2)


def count_color(image, token, theme, columns=None):
    """Pixels of a colour of the theme, within columns."""
    wanted = theme.color(token).rgb()
    first, last = columns or (0, image.width())
    return sum(
        image.pixel(x, y) == wanted
        for x in range(int(first), int(last))
        for y in range(image.height())
    )


def test_identity(panel):
    assert (panel.objectName(), panel.windowTitle()) == ("timeline", "Timeline")
    assert panel.canvas.accessibleName() == "Timeline"


def test_without_model(panel):
    assert panel.summary.text() == ""
    assert panel.canvas.operator_at(100) is None
    picture(panel)


def test_title_bar_holds_legend_times_and_choice(qtbot, opened, theme):
    bar = DockTitleBar.of(opened, theme)
    qtbot.addWidget(bar)
    bar.resize(700, 30)
    bar.show()
    qtbot.waitExposed(bar)
    assert opened.measure_box.isVisible()
    assert opened.summary.isVisible()
    assert opened.legend.isVisible()
    assert opened.legend.x() < opened.summary.x() < opened.measure_box.x()
    count = count_color(bar.grab().toImage(), "focus", theme)
    assert count > 81  # a filled square of 9 pixels, and an outline


def test_tabs_hold_them_only_while_it_is_in_front(qtbot, session, theme):
    dock = QDockWidget("Bottom")
    qtbot.addWidget(dock)
    panel = TimelinePanel(session, theme)
    tabs = TabbedPanels((panel, LogPanel(session, theme)), theme, dock)
    dock.setWidget(tabs)
    dock.resize(900, 120)
    dock.show()
    qtbot.waitExposed(dock)
    assert panel.measure_box.isVisible()
    tabs.setCurrentIndex(1)
    assert not panel.measure_box.isVisible()
    assert not panel.summary.isVisible()
    tabs.setCurrentIndex(0)
    assert panel.legend.isVisible()


def test_times(qtbot, opened, session):
    assert opened.summary.text() == "no time measured yet"
    run(qtbot, session, session.run_to, "twice")
    assert "s run · ≈" in opened.summary.text()
    assert opened.summary.text().endswith("s left")
    run(qtbot, session, session.resume)
    assert session.state is RunState.FINISHED
    assert opened.summary.text().endswith("s run")


def test_measured_bars_are_filled_and_estimates_outlined(qtbot, opened, session, theme):
    session.select("out")
    space = opened.canvas.geometry_of_bars()
    columns = (space.x(2), space.x(3))
    outlined = count_color(picture(opened), "act", theme, columns)
    run(qtbot, session, session.run_to, "twice")
    session.select("out")
    height = opened.canvas._current_painter().heights[2]
    area = space.bar_rect(2, int(height))
    assert count_color(picture(opened), "act", theme, columns) == area.width() * area.height()
    assert 0 < outlined < area.width() * space.room


def test_playhead_stands_before_the_next_operator(qtbot, opened, session, theme):
    space = opened.canvas.geometry_of_bars()
    run(qtbot, session, session.run_to, "twice")
    session.select("in")
    x = round(space.x(3))
    column = [picture(opened).pixel(x, y) for y in range(space.base)]
    assert column.count(theme.color("cur").rgb()) >= space.base - 14
    run(qtbot, session, session.resume)
    end = round(space.x(6))
    assert count_color(picture(opened), "cur", theme, (end - 1, end + 16)) > 100
    assert count_color(picture(opened), "cur", theme, (0, end - 1)) == 0


def test_executed_span_is_washed(qtbot, opened, session, theme):
    space = opened.canvas.geometry_of_bars()
    spot = QPoint(round(space.x(0.5)), 3)
    before = picture(opened).pixel(spot)
    run(qtbot, session, session.run_to, "twice")
    assert before == theme.color("base").rgb()
    assert picture(opened).pixel(spot) != before


def test_breakpoint_octagon_under_its_bar(opened, session, theme):
    space = opened.canvas.geometry_of_bars()
    below = QPoint(round(space.x(3.5)), space.base + 8)
    assert picture(opened).pixel(below) != theme.color("bp").rgb()
    session.toggle_breakpoint("twice")
    assert picture(opened).pixel(below) == theme.color("bp").rgb()
    session.clear_breakpoints()
    assert picture(opened).pixel(below) != theme.color("bp").rgb()


def test_module_brackets(opened, theme):
    image, space = picture(opened), opened.canvas.geometry_of_bars()
    y = space.base + 20
    ink = [image.pixel(x, y) == theme.color("ctl").rgb() for x in range(image.width())]
    assert ink[round(space.x(2)) + 4]  # body, from operator 2 to 4
    assert ink[round(space.x(5)) - 4]
    assert not ink[round(space.x(5)) + 6]


@pytest.mark.parametrize(
    ("room", "label"),
    [
        (400, "encoder.layers.encoder_layer_7"),
        (100, "encoder_layer_7"),
        (60, "layer_7"),
        (12, "7"),
        (4, ""),
    ],
)
def test_module_names_are_cut_between_words(theme, room, label):
    metrics = QFontMetrics(theme.ui_font(11))
    assert elide_start("encoder.layers.encoder_layer_7", metrics, room) == label


def test_brackets_have_labels(qtbot, session, panel, theme, make_pair):
    lines = ["pnnx.Input in 0 1 0 #0=(1,8,8)f32"]
    lines += [f"F.relu part{i}.relu 1 1 {i} {i + 1} #{i + 1}=(1,8,8)f32" for i in range(60)]
    open_model(qtbot, session, make_pair(*lines))  # each module is one operator, without room
    image, y = picture(panel), panel.canvas.geometry_of_bars().base + 20
    assert not any(image.pixel(x, y) == theme.color("ctl").rgb() for x in range(image.width()))


def test_playhead_is_whole_at_the_end(qtbot, opened, session, theme):
    run(qtbot, session, session.run_to, "twice")
    session.select("in")
    x = round(opened.canvas.geometry_of_bars().x(3))
    flag = picture(opened).copy(x - 1, 0, 17, 10)
    run(qtbot, session, session.resume)
    session.select("in")
    end = round(opened.canvas.geometry_of_bars().x(6))
    assert end + 16 <= opened.canvas.width()
    cur = theme.color("cur").rgb()

    def shape(image):
        return [[image.pixel(i, j) == cur for i in range(17)] for j in range(10)]

    assert shape(picture(opened).copy(end - 1, 0, 17, 10)) == shape(flag)


def test_failed_is_hatched_and_unsupported_dashed(qtbot, panel, session, theme, make_pair):
    open_model(qtbot, session, make_pair(*FAILING))
    run(qtbot, session, session.resume)
    assert session.state is RunState.FAILED
    session.select("out")
    space, image = panel.canvas.geometry_of_bars(), picture(panel)
    order = {operator.name: operator.index for operator in session.graph.operators}

    def count(name, token):
        index = order[name]
        return count_color(image, token, theme, (space.x(index) + 8, space.x(index + 1)))

    assert count("bad", "fail") > 30
    assert count("bad", "failBg") > 30
    assert count("<odd>", "unsup") > 30
    assert panel.canvas.tip(session.graph.operator("bad")).endswith("failed</p>")
    odd = panel.canvas.tip(session.graph.operator("<odd>"))
    assert "&lt;odd&gt;<br>cannot run" in odd


def test_click_selects_and_double_click_runs_to(qtbot, opened, session):
    qtbot.mouseClick(opened.canvas, Qt.MouseButton.LeftButton, pos=middle(opened, 4))
    assert session.selected == "body.1.relu"
    qtbot.mouseDClick(opened.canvas, Qt.MouseButton.LeftButton, pos=middle(opened, 2))
    qtbot.waitUntil(lambda: session.position == 2 and not session.busy)
    qtbot.mouseClick(opened.canvas, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert session.selected == "body.0.act"


def test_no_run_after_a_failure(qtbot, panel, session, make_pair):
    open_model(qtbot, session, make_pair(*FAILING))
    run(qtbot, session, session.resume)
    position = session.position
    qtbot.mouseDClick(panel.canvas, Qt.MouseButton.LeftButton, pos=middle(panel, 0))
    assert not session.busy
    assert session.position == position


def test_keys_walk_and_run(qtbot, opened, session):
    def press(*keys):
        for key in keys:
            qtbot.keyClick(opened.canvas, key)
        return session.selected

    assert press(Qt.Key.Key_Right, Qt.Key.Key_Right) == "body.0.act"
    assert press(Qt.Key.Key_Left) == "stem.relu"
    assert press(Qt.Key.Key_End, Qt.Key.Key_Right) == "out"
    assert press(Qt.Key.Key_Home, Qt.Key.Key_Left) == "in"
    assert press(Qt.Key.Key_PageDown) == "out"
    session.select("twice")
    press(Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: session.position == 3 and not session.busy)


def test_focus_ring_by_keyboard_only(qtbot, opened, theme):
    corner = QPoint(0, 40)
    opened.activateWindow()
    qtbot.waitUntil(opened.isActiveWindow)
    opened.canvas.setFocus(Qt.FocusReason.MouseFocusReason)
    assert picture(opened).pixel(corner) != theme.color("focus").rgb()
    opened.canvas.clearFocus()
    opened.canvas.setFocus(Qt.FocusReason.TabFocusReason)
    assert picture(opened).pixel(corner) == theme.color("focus").rgb()
    opened.canvas.clearFocus()
    assert picture(opened).pixel(corner) != theme.color("focus").rgb()


def test_hover_marks_a_slot(opened):
    before = picture(opened)
    move_mouse(opened.canvas, middle(opened, 3))
    hovered = picture(opened)
    assert hovered != before
    opened.canvas.leaveEvent(QEvent(QEvent.Type.Leave))
    assert picture(opened) == before


def test_tip_on_hover(opened, monkeypatch):
    shown = []
    monkeypatch.setattr(QToolTip, "showText", lambda *args: shown.append(args[1]))
    monkeypatch.setattr(QToolTip, "hideText", lambda: shown.append(None))
    for spot in (middle(opened, 2), QPoint(2, 2)):
        opened.canvas.event(QHelpEvent(QEvent.Type.ToolTip, spot, spot))
    assert "nn.Sigmoid" in shown[0]
    assert "not run yet" in shown[0]
    assert shown[1] is None


def test_tip_tells_measured_from_estimated(qtbot, opened, session):
    run(qtbot, session, session.run_to, "twice")
    graph = session.graph
    assert "s measured" in opened.canvas.tip(graph.operator("body.0.act"))
    assert "estimate " in opened.canvas.tip(graph.operator("twice"))


def test_described_in_words(qtbot, opened, session):
    session.select("twice")
    text = opened.canvas.accessibleDescription()
    assert text.startswith("6 operators in execution order, 0 executed.")
    assert "Selected: #3 pnnx.Expression twice, not run yet." in text


@pytest.mark.parametrize(
    ("reason", "operator"),
    [
        pytest.param(QContextMenuEvent.Reason.Mouse, "stem.relu", id="mouse"),
        pytest.param(QContextMenuEvent.Reason.Keyboard, "twice", id="keyboard"),
    ],
)
def test_menu_is_about_an_operator(opened, session, reason, operator):
    session.select("twice")
    spot = middle(opened, 1)
    heard = []
    opened.canvas.menu_requested.connect(lambda name, point: heard.append((name, point)))
    opened.canvas.contextMenuEvent(QContextMenuEvent(reason, spot, spot))
    assert heard == [(operator, spot)]


def test_restart_and_step_back(qtbot, opened, session):
    run(qtbot, session, session.resume)
    run(qtbot, session, session.step_back)
    assert opened.canvas.model.measured.tolist() == [True] * 5 + [False]
    run(qtbot, session, session.restart)
    assert not opened.canvas.model.measured.any()
    assert opened.summary.text().startswith("0 ms run · ≈")


def test_model_opened_before_the_panel(qtbot, session, theme, make_pair):
    open_model(qtbot, session, make_pair(*CHAIN))
    run(qtbot, session, session.resume)
    late = TimelinePanel(session, theme)
    qtbot.addWidget(late)
    assert late.canvas.model.measured.all()


def test_heights_by_macs_and_scale(qtbot, opened, session):
    run(qtbot, session, session.resume)
    by_time = picture(opened)
    opened.set_measure(Measure.MACS)
    assert opened.measure_box.currentText() == "Height: MACs"
    assert opened.canvas.measure is Measure.MACS
    assert picture(opened) != by_time  # none has any: all bars are low, and no axis
    opened.set_measure(Measure.TIME)
    (action,) = opened.title_actions()
    names = [choice.text() for choice in action.menu().actions()]
    assert names == ["Linear scale", "Square root scale", "Logarithmic scale"]
    action.menu().actions()[2].trigger()
    assert opened.canvas._scale is Scale.LOG
    assert picture(opened) != by_time


def test_theme_change_repaints(qtbot, opened, theme):
    picture(opened)
    theme.set_scheme(Scheme.LIGHT if theme.dark else Scheme.DARK)
    assert picture(opened).pixel(3, 20) == theme.color("base").rgb()


def test_large_model_is_bundled(qtbot, session, theme, make_pair):
    count = 3000
    lines = ["pnnx.Input in 0 1 0 #0=(2)f32"]
    lines += [f"nn.ReLU r{i} 1 1 {i} {i + 1}" for i in range(count)]
    lines.append(f"pnnx.Output out 1 0 {count}")
    panel = TimelinePanel(session, theme)
    qtbot.addWidget(panel)
    panel.resize(1058, 80)
    panel.show()
    open_model(qtbot, session, make_pair(*lines))
    canvas = panel.canvas
    assert canvas.bar_size == 13  # 1000 pixels for 3002 operators
    assert panel.summary.text().startswith("13 operators per bar")
    session.toggle_breakpoint("r1500")
    assert picture(panel).width() == 1058
    operator = canvas.operator_at(500)
    assert f"#{operator.index}" in canvas.tip(operator)
    assert canvas.tip(operator).startswith("<p style='white-space: pre'>#")
    panel.resize(20_000, 80)
    assert canvas.bar_size == 1
    assert panel.summary.text() == "no time measured yet"


class TestGeometry:
    def test_slots(self):
        space = Geometry(width=164, height=80, count=10)
        assert (space.slot, space.bar_size, space.base, space.room) == (10, 1, 52, 38)
        assert space.bar_at(45.9) == -1
        assert space.bar_at(46) == 0
        assert space.bar_at(145.9) == 9
        assert space.bar_at(146) == -1

    def test_bars_keep_apart_on_whole_pixels(self):
        space = Geometry(width=164, height=80, count=10)
        first, second = space.bar_rect(0, 20), space.bar_rect(1, 20)
        assert (first.width(), first.height(), first.bottom()) == (7, 20, 51)
        assert second.left() - first.right() - 1 == 3

    def test_last_bundle_is_shorter(self):
        space = Geometry(width=84, height=80, count=13)
        assert space.bar_size == 3
        assert space.bar_span(4) == (space.x(12), space.x(13))

    def test_no_room_at_all(self):
        assert Geometry(width=10, height=10, count=5).bar_size == 20


@pytest.mark.parametrize(
    ("measure", "top", "unit"),
    [
        pytest.param(Measure.TIME, 2.54e-3, "ms", id="ms"),
        pytest.param(Measure.TIME, 80e-6, "µs", id="us"),
        pytest.param(Measure.TIME, 1.5, "s", id="s"),
        pytest.param(Measure.TIME, 1e-9, "µs", id="least"),
        pytest.param(Measure.MACS, 118e6, "MMAC", id="mega"),
        pytest.param(Measure.MACS, 864.0, "MAC", id="plain"),
    ],
)
def test_axis_unit(measure, top, unit):
    assert axis_unit(measure, top)[1] == unit


def test_point_is_inside_the_bar_it_names(opened):
    for index in range(6):
        spot = QPointF(middle(opened, index))
        assert opened.canvas.operator_at(spot.x()).index == index


@pytest.mark.parametrize(
    ("places", "labelled"),
    [
        ([72, 60, 48], [48, 60, 72]),
        ([70, 62], [62]),
        ([40, 58, 52, 70], [40, 52, 70]),
        ([], []),
    ],
)
def test_labels_of_a_low_axis_do_not_overlap(places, labelled):
    assert labels_without_overlap(places) == labelled
