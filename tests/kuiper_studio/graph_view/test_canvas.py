"""The canvas follows the session, and mouse and keys do what they should."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from on_screen import turn_wheel, zoom_to
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import (
    QContextMenuEvent,
    QHelpEvent,
    QImage,
    QNativeGestureEvent,
    QPainter,
    QPointingDevice,
)
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip

from kuiper_studio.engine_service.summary import THUMBNAIL, Summary
from kuiper_studio.graph_view import GraphView, grouping
from kuiper_studio.graph_view import canvas as canvas_module
from kuiper_studio.graph_view.boxes import BoxLook, BoxPainter, text_size_at
from kuiper_studio.graph_view.colors import mixed
from kuiper_studio.graph_view.scene import make_scene
from kuiper_studio.item_models.statuses import DisplayStatus
from kuiper_studio.session import RunState
from kuiper_studio.theme import DARK, Scheme

NO_MODIFIER = Qt.KeyboardModifier.NoModifier
CONTROL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier
LEFT = Qt.MouseButton.LeftButton
MIDDLE = Qt.MouseButton.MiddleButton


@pytest.fixture(autouse=True)
def every_operator(monkeypatch):
    """Large graphs are drawn without groups, which have tests of their own."""
    monkeypatch.setattr(grouping, "_FEW", 1_000_000)


def chain(count):
    lines = ["pnnx.Input image 0 1 0 #0=(1,3,8,8)f32"]
    lines += [f"F.relu relu_{i} 1 1 {i} {i + 1} #{i + 1}=(1,3,8,8)f32" for i in range(count)]
    return tuple(lines)


def centre(view, name):
    return view.box_rect(name).center().toPoint()


def tones(view, name):
    """The colours in a box."""
    area = view.box_rect(name).toRect()
    image = picture(view.canvas)
    return {image.pixel(x, y) for x in range(area.left(), area.right())
            for y in range(area.top(), area.bottom())}  # fmt: skip


def drag(canvas, start, end, button=LEFT, modifiers=NO_MODIFIER):
    QTest.mousePress(canvas, button, modifiers, start)
    QTest.mouseMove(canvas, (start + end) / 2)
    QTest.mouseMove(canvas, end)
    QTest.mouseRelease(canvas, button, modifiers, end)


def picture(widget):
    image = QImage(widget.size(), QImage.Format.Format_RGB32)
    widget.render(image)
    return image


# Following the session


def test_no_model(view):
    assert view.objectName() == "graph"
    assert view.canvas.accessibleName() == "Graph"
    assert view.operator_at(QPoint(10, 10)) == ""
    assert view.box_rect("conv").isNull()
    for command in (view.fit, view.zoom_in, view.zoom_out, view.zoom_reset):
        command()
    view.center_on("nothing")
    QTest.keyClick(view.canvas, Qt.Key.Key_Right)
    QTest.keyClick(view.canvas, Qt.Key.Key_End)


def test_small_graph_is_shown_whole(view, open_model, session):
    open_model()
    shown = view.canvas.visible_area()
    assert view.zoom >= 0.7
    for operator in session.graph.operators:
        rect = view.box_rect(operator.name)
        assert QRectF(view.canvas.rect()).contains(rect)
        assert view.operator_at(rect.center()) == operator.name
    assert shown.contains(view.canvas.visible_area())
    assert view.canvas.minimap_rect().isNull()


def test_long_graph_is_shown_from_its_start(view, open_model):
    open_model(chain(30))
    assert view.zoom == 1.0
    assert view.box_rect("image").left() == 24
    assert not view.canvas.minimap_rect().isNull()


def test_states_follow_the_run(view, open_model, run, qtbot):
    open_model()
    run(2)
    assert view.canvas.box_state("stem.relu") is DisplayStatus.EXECUTED
    assert view.canvas.box_state("block.0.sigmoid") is DisplayStatus.CURRENT
    assert view.canvas.box_state("out") is DisplayStatus.PENDING
    assert "2 executed" in view.canvas.accessibleDescription()


def test_thumbnails_come_by_themselves(view, open_model, run, qtbot, session):
    open_model()
    run(2)
    picture(view.canvas)
    qtbot.waitUntil(lambda: view.canvas.summary("stem.relu") is not None)
    assert view.canvas.summary("stem.relu").low == 0
    assert view.canvas.summary("image").low == -2
    session.step_back()
    qtbot.waitUntil(lambda: not session.busy)
    assert view.canvas.summary("stem.relu") is None
    assert view.canvas.summary("image") is not None
    session.restart()
    qtbot.waitUntil(lambda: view.canvas.summary("image") is None)


def test_late_thumbnail_of_a_dropped_value_is_ignored(view, open_model, run, session, qtbot):
    open_model()
    run(1)
    picture(view.canvas)
    session.restart()
    qtbot.waitUntil(lambda: view.canvas.box_state("image") is DisplayStatus.CURRENT)
    QTest.qWait(0)
    assert view.canvas.summary("image") is None


def test_position_is_followed_only_when_it_leaves_the_view(view, open_model, run):
    open_model(chain(30))
    before = view.canvas.visible_area()
    run(2)
    assert view.canvas.visible_area() == before
    run(8)
    assert view.canvas.visible_area() != before
    assert QRectF(view.canvas.rect()).contains(view.box_rect("relu_9"))


def test_failure_is_shown(view, open_model, run, session):
    open_model("failing")
    run()
    assert session.state is RunState.FAILED
    assert view.canvas.box_state("add") is DisplayStatus.FAILED
    assert view.canvas.box_state("after") is DisplayStatus.BLOCKED
    picture(view.canvas)


def test_selection_elsewhere_is_revealed(view, open_model, session):
    open_model(chain(30))
    session.select("relu_25")
    assert QRectF(view.canvas.rect()).contains(view.box_rect("relu_25"))
    session.select("relu_0")
    assert QRectF(view.canvas.rect()).contains(view.box_rect("relu_0"))


def test_centring_is_animated_unless_motion_is_unwanted(view, open_model, session, qtbot):
    open_model(chain(30))
    view.canvas.viewport.reduced_motion = False
    session.select("relu_20")
    assert not QRectF(view.canvas.rect()).contains(view.box_rect("relu_20"))
    session.select("relu_21")  # while it moves
    qtbot.waitUntil(lambda: QRectF(view.canvas.rect()).contains(view.box_rect("relu_21")))
    view.center_on("relu_3")
    view.zoom_in()  # what the user does stops it
    assert not QRectF(view.canvas.rect()).contains(view.box_rect("relu_3"))


def test_closing_the_model_empties_the_canvas(view, open_model, session):
    open_model()
    session.close_model()
    assert view.box_rect("add").isNull()
    assert view.canvas.accessibleDescription() == ""
    picture(view.canvas)


def test_large_graph_is_laid_out_on_another_thread(view, open_model, qtbot):
    open_model(chain(700))
    view.center_on("relu_400")
    picture(view.canvas)
    qtbot.waitUntil(lambda: view.canvas.laid_out)
    assert QRectF(view.canvas.rect()).contains(view.box_rect("relu_400"))


def test_the_collector_passes_over_a_large_graph_while_it_is_open(
    view, open_model, session, qtbot
):
    """Walking over it takes several frames; when it is gone, it is collected as before."""
    gc.unfreeze()
    gc.collect()
    resting = gc.get_freeze_count()  # Python 3.12 counts its own immortal objects
    graph = weakref.ref(open_model(chain(700)))
    qtbot.waitUntil(lambda: view.canvas.laid_out)
    assert not any(found is graph() for found in gc.get_objects())
    session.close_model()
    qtbot.waitUntil(lambda: gc.collect() >= 0 and graph() is None)
    open_model(chain(701))
    qtbot.waitUntil(lambda: view.canvas.laid_out)
    first = weakref.ref(session.graph)
    open_model(chain(702))  # one large graph after the other
    qtbot.waitUntil(lambda: view.canvas.laid_out and session.graph is not first())
    assert first() is None
    open_model(chain(3))
    gc.collect()
    assert gc.get_freeze_count() == resting


def test_thousands_of_operators_are_seen_from_far(view, open_model, theme, qtbot):
    open_model(chain(3000))
    qtbot.waitUntil(lambda: view.canvas.laid_out)
    view.fit()
    # The chain is as long as the canvas is wide, a margin aside, and has one colour.
    cell = mixed(theme.color("act"), theme.color("base"), 0.6).name()
    seen = picture(view.canvas)
    row = round(view.box_rect("relu_1500").center().y())
    assert {seen.pixelColor(x, row).name() for x in range(40, seen.width() - 40, 20)} == {cell}
    assert seen.pixelColor(seen.width() // 2, row - 20) == theme.color("base")


def test_many_new_boxes_come_in_several_frames(view, open_model, qtbot):
    fan = [f"F.relu relu_{i} 1 1 0 {i} #{i}=(1,3,8,8)f32" for i in range(1, 121)]
    open_model(("pnnx.Input image 0 1 0 #0=(1,3,8,8)f32", *fan))
    view.canvas.resize(1600, 1200)
    zoom_to(view.canvas, 0.5, QPointF(0, 0))
    first = picture(view.canvas)
    view.show()
    qtbot.waitUntil(lambda: picture(view.canvas) != first)  # more boxes have come meanwhile


def test_layout_of_a_graph_closed_meanwhile_is_dropped(view, open_model, session, qtbot):
    open_model(chain(700))
    if not view.canvas.laid_out:
        session.close_model()
    qtbot.waitUntil(lambda: view.canvas.laid_out)
    QTest.qWait(0)
    assert view.box_rect("relu_400").isNull() == (session.graph is None)


def test_breadcrumb(view, open_model, session):
    open_model()
    session.select("block.0.tanh")
    assert view.header.breadcrumb == "m › block.0"
    session.select("add")
    assert view.header.breadcrumb == "m"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tensor.reshape_332", "m"),
        ("torch.linalg.norm_4", "m"),
        ("F.relu6_1", "m"),
        ("Tensor.copy_12_ncnnclone", "m"),
        ("encoder.F.relu_1", "m › encoder.F"),
    ],
)
def test_breadcrumb_of_what_is_in_no_module(view, open_model, session, name, expected):
    open_model(
        (
            "pnnx.Input in 0 1 0 #0=(2)f32",
            f"nn.Tanh {name} 1 1 0 1",
            "pnnx.Output out 1 0 1",
        ),
        feed=False,
    )
    session.select(name)
    assert view.header.breadcrumb == expected


def test_an_output_shows_the_picture_of_its_operand(qtbot, view, open_model, run):
    open_model(
        (
            "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
            "nn.ReLU relu 1 1 0 1 #1=(1,3,8,8)f32",
            "pnnx.Output out 1 0 1",
        )
    )
    run()
    qtbot.waitUntil(lambda: view.canvas.summary("relu") is not None)
    qtbot.waitUntil(lambda: view.canvas.summary("out") is not None)
    assert view.canvas.summary("out") == view.canvas.summary("relu")
    view.zoom_reset()
    view.canvas.center_on("out")
    qtbot.waitUntil(lambda: len(tones(view, "out")) > 20)  # the picture of 8 by 8 elements


# Zoom, orientation


def test_zoom_commands(view, open_model, session, qtbot):
    open_model(chain(30))
    with qtbot.waitSignal(view.zoom_changed) as blocker:
        view.zoom_in()
    assert blocker.args == [1.25]
    view.zoom_out()
    view.zoom_out()
    assert view.zoom == 0.85
    view.zoom_reset()
    assert view.zoom == 1.0
    view.fit()
    for operator in session.graph.operators:
        assert view.canvas.scene_rect().contains(view.box_rect(operator.name))
    for _ in range(20):
        view.zoom_out()
    for _ in range(40):
        view.zoom_in()
    assert view.zoom == 4.0


@pytest.mark.parametrize("modifiers", [NO_MODIFIER, CONTROL])
def test_wheel_zooms_about_the_cursor(view, open_model, modifiers):
    open_model(chain(30))
    point = QPoint(300, 100)
    before, zoom = view.box_rect("relu_10").topLeft() - point, view.zoom
    turn_wheel(view.canvas, point, 240, modifiers)
    after = view.box_rect("relu_10").topLeft() - point
    assert view.zoom == pytest.approx(2**0.5)
    grown = before * view.zoom / zoom
    assert (after.x(), after.y()) == pytest.approx((grown.x(), grown.y()))
    turn_wheel(view.canvas, point, 0, modifiers)
    assert view.zoom == pytest.approx(2**0.5)


def test_shift_wheel_pans_sideways(view, open_model):
    open_model(chain(30))
    before = view.canvas.visible_area()
    turn_wheel(view.canvas, QPoint(300, 100), -120, SHIFT)
    moved = view.canvas.visible_area()
    assert moved.left() == before.left() + 60
    assert moved.top() == before.top()
    assert view.zoom == 1.0


@pytest.mark.parametrize(
    ("kind", "zoom"),
    [
        (Qt.NativeGestureType.ZoomNativeGesture, 1.25),
        (Qt.NativeGestureType.RotateNativeGesture, 1.0),
    ],
)
def test_pinch_zooms(view, open_model, kind, zoom):
    open_model(chain(30))
    place = QPointF(300, 100)
    device = QPointingDevice.primaryPointingDevice()
    event = QNativeGestureEvent(kind, device, 2, place, place, place, 0.25, QPointF())
    QApplication.sendEvent(view.canvas, event)
    assert view.zoom == zoom


@pytest.mark.parametrize(
    ("size", "orientation"), [((1200, 400), "left-right"), ((600, 600), "top-down")]
)
def test_orientation_follows_the_canvas(qtbot, session, theme, open_model, size, orientation):
    view = GraphView(session, theme)
    qtbot.addWidget(view)
    view.resize(*size)
    view.show()
    open_model(chain(30))
    assert view.orientation == orientation
    first, second = view.box_rect("image").center(), view.box_rect("relu_0").center()
    assert (first.y() == second.y()) == (orientation == "left-right")


def test_users_choice_of_orientation_wins(view, open_model):
    open_model(chain(5))
    view.set_orientation("top-down")
    assert view.box_rect("image").center().x() == view.box_rect("relu_0").center().x()
    view.turn_orientation()
    assert view.orientation == "left-right"
    view.set_orientation("auto")
    assert view.orientation == "left-right"
    with pytest.raises(ValueError, match="sideways"):
        view.set_orientation("sideways")


def test_untouched_view_is_arranged_anew_when_resized(view, open_model):
    open_model(chain(30))
    view.resize(400, 700)
    assert view.orientation == "top-down"
    assert view.box_rect("image").top() == 24


def test_view_that_is_resized_while_a_graph_is_laid_out(
    view, open_model, qtbot, session, monkeypatch
):
    monkeypatch.setattr(canvas_module, "_LAID_OUT_AT_ONCE", 0)
    view.resize(400, 700)
    session.graph_changed.connect(lambda: view.resize(1200, 400))
    open_model(chain(30))
    qtbot.waitUntil(lambda: view.canvas.laid_out)
    first, second = view.box_rect("image").center(), view.box_rect("relu_0").center()
    assert first.y() == second.y()


def test_touched_view_keeps_its_middle_and_turns_when_the_size_has_settled(
    view, open_model, qtbot, session
):
    open_model(chain(30))
    session.select("relu_20")
    view.canvas.viewport.pan(-30, 0)
    middle = view.canvas.visible_area().center()
    view.resize(900, 330)
    assert view.canvas.visible_area().center().x() == pytest.approx(middle.x())
    view.resize(400, 700)
    qtbot.waitUntil(
        lambda: view.box_rect("relu_20").top() > view.box_rect("relu_19").bottom() > 0
    )
    assert QRectF(view.canvas.rect()).contains(view.box_rect("relu_20"))


# Mouse


def test_click_selects(view, open_model, session):
    open_model()
    QTest.mouseClick(view.canvas, LEFT, NO_MODIFIER, centre(view, "side.relu"))
    assert session.selected == "side.relu"
    QTest.mouseClick(view.canvas, LEFT, NO_MODIFIER, QPoint(5, 5))
    assert session.selected == "side.relu"


def test_click_on_an_edge_shows_its_operand(view, open_model, run, session):
    open_model()
    run(3)
    first, second = view.box_rect("image"), view.box_rect("stem.relu")
    point = QPoint(round((first.right() + second.left()) / 2), round(first.center().y()))
    assert view.canvas.operand_at(point) == "0"
    QTest.mouseClick(view.canvas, LEFT, NO_MODIFIER, point)
    assert session.operand == "0"
    picture(view.canvas)


@pytest.mark.parametrize("button", [LEFT, MIDDLE])
def test_drag_pans(view, open_model, session, button):
    open_model(chain(30))
    selected = session.selected
    before = view.canvas.visible_area()
    drag(view.canvas, QPoint(600, 20), QPoint(500, 30), button)
    assert view.canvas.visible_area().left() == before.left() + 100
    assert session.selected == selected


def test_control_drag_zooms_to_the_area(view, open_model):
    open_model(chain(30))
    rect = view.box_rect("relu_2").toRect()
    QTest.mousePress(view.canvas, LEFT, CONTROL, rect.topLeft())
    QTest.mouseMove(view.canvas, rect.center())
    picture(view.canvas)  # with its rubber band
    QTest.mouseRelease(view.canvas, LEFT, CONTROL, rect.bottomRight())
    drag(view.canvas, rect.topLeft(), rect.bottomRight(), LEFT, CONTROL)
    assert view.zoom > 1.5


def test_control_click_still_selects(view, open_model, session):
    open_model()
    QTest.mouseClick(view.canvas, LEFT, CONTROL, centre(view, "add"))
    assert session.selected == "add"


def test_double_click_shows_the_tensor(view, open_model, run, session, qtbot):
    open_model()
    run()
    with qtbot.waitSignal(view.tensor_requested):
        QTest.mouseDClick(view.canvas, LEFT, NO_MODIFIER, centre(view, "stem.relu"))
    assert session.operand == "1"
    first, second = view.box_rect("image"), view.box_rect("stem.relu")
    point = QPoint(round((first.right() + second.left()) / 2), round(first.center().y()))
    with qtbot.waitSignal(view.tensor_requested):
        QTest.mouseDClick(view.canvas, LEFT, NO_MODIFIER, point)
    assert session.operand == "0"


def test_minimap_moves_the_view(view, open_model, session):
    open_model(chain(60))
    frame = view.canvas.minimap_rect().toRect()
    end = QPoint(frame.right() - 10, frame.center().y())
    drag(view.canvas, frame.center(), end)
    assert QRectF(view.canvas.rect()).contains(view.box_rect("relu_59").center())
    assert session.selected in ("", "image")
    assert view.operator_at(frame.center()) == ""


def test_hover_thickens_the_edge(view, open_model):
    open_model()
    before = picture(view.canvas)
    first, second = view.box_rect("image"), view.box_rect("stem.relu")
    point = QPoint(round((first.right() + second.left()) / 2), round(first.center().y()))
    QTest.mouseMove(view.canvas, point)
    assert picture(view.canvas) != before
    QApplication.sendEvent(view.canvas, QEvent(QEvent.Type.Leave))
    assert picture(view.canvas) == before


def test_tool_tips(view, open_model):
    open_model()
    point = centre(view, "add")
    assert "pnnx.Expression · operator 5" in view.canvas.tip_at(QPointF(point))
    assert view.canvas.tip_at(QPointF(2, 2)) == ""
    place = view.canvas.mapToGlobal(point)
    QApplication.sendEvent(view.canvas, QHelpEvent(QEvent.Type.ToolTip, point, place))
    assert "add" in QToolTip.text()
    QToolTip.hideText()


@pytest.mark.parametrize("reason", list(QContextMenuEvent.Reason)[:2])
def test_context_menu(view, open_model, session, qtbot, reason):
    open_model()
    session.select("add")
    name = "add" if reason is QContextMenuEvent.Reason.Keyboard else "side.relu"
    event = QContextMenuEvent(reason, centre(view, "side.relu"), QPoint(7, 8), NO_MODIFIER)
    with qtbot.waitSignal(view.menu_requested) as blocker:
        QApplication.sendEvent(view.canvas, event)
    assert blocker.args == [name, QPoint(7, 8)]
    assert session.selected == name


# Keys


def test_arrows_walk_the_graph(view, open_model, session):
    open_model()
    session.select("image")
    for key, name in (
        (Qt.Key.Key_Right, "stem.relu"),
        (Qt.Key.Key_Right, "block.0.sigmoid"),
        (Qt.Key.Key_Down, "side.relu"),
        (Qt.Key.Key_Up, "block.0.sigmoid"),
        (Qt.Key.Key_Left, "stem.relu"),
        (Qt.Key.Key_End, "out"),
        (Qt.Key.Key_Home, "image"),
    ):
        QTest.keyClick(view.canvas, key)
        assert session.selected == name


def test_arrows_turn_with_the_graph(view, open_model, session):
    open_model()
    view.set_orientation("top-down")
    session.select("block.0.sigmoid")
    QTest.keyClick(view.canvas, Qt.Key.Key_Right)
    assert session.selected == "side.relu"
    QTest.keyClick(view.canvas, Qt.Key.Key_Up)
    assert session.selected == "stem.relu"


def test_arrows_begin_where_the_run_stands(view, open_model, session, run):
    open_model()
    run(2)
    session.select("")
    QTest.keyClick(view.canvas, Qt.Key.Key_Right)
    assert session.selected == "block.0.sigmoid"


def test_other_keys(view, open_model, session, run, qtbot):
    open_model(chain(30))
    run(1)
    QTest.keyClick(view.canvas, Qt.Key.Key_Plus)
    assert view.zoom == 1.25
    QTest.keyClick(view.canvas, Qt.Key.Key_Minus)
    QTest.keyClick(view.canvas, Qt.Key.Key_Minus)
    assert view.zoom == 0.85
    QTest.keyClick(view.canvas, Qt.Key.Key_Home, CONTROL)
    assert view.zoom == 1.0
    QTest.keyClick(view.canvas, Qt.Key.Key_Space)
    assert view.zoom < 0.5
    session.select("image")
    with qtbot.waitSignal(view.tensor_requested):
        QTest.keyClick(view.canvas, Qt.Key.Key_Return)
    QTest.keyClick(view.canvas, Qt.Key.Key_A)
    QTest.keyClick(view.canvas, Qt.Key.Key_A, CONTROL)


# Painting


def test_ink_inside_and_blank_outside(view, open_model, theme):
    open_model()
    image = picture(view.canvas)
    for name, token in (("stem.relu", "act"), ("image", "io"), ("add", "expr")):
        rect = view.box_rect(name)
        band = image.pixelColor(round(rect.left() + 4.2 * view.zoom), round(rect.center().y()))
        assert band.name().upper() == getattr(DARK, token)
    assert image.pixelColor(2, 60).name().upper() == DARK.base


def test_current_and_failed_boxes_are_unmistakable(view, open_model, run):
    open_model("failing")
    for border, fill, name, steps in (("cur", "curBg", "add", 2), ("fail", "failBg", "add", 1)):
        run(steps)
        image, rect = picture(view.canvas), view.box_rect(name)
        x = round(rect.left() + 30 * view.zoom)
        colour = image.pixelColor(x, round(rect.bottom()) - 2).name().upper()
        inside = image.pixelColor(round(rect.right()) - 6, round(rect.bottom()) - 6)
        assert colour == getattr(DARK, border)
        assert inside.name().upper() == getattr(DARK, fill)


@pytest.mark.parametrize(
    ("look", "token"),
    [
        pytest.param({"suspect": True}, "warn", id="suspect"),
        pytest.param({"summary": Summary(0, 1, 4, nan=1)}, "nan", id="nan"),
        pytest.param({"summary": Summary(0, 1, 4, pinf=1)}, "pinf", id="pinf"),
        pytest.param({"summary": Summary(0, 1, 4, ninf=1)}, "ninf", id="ninf"),
        pytest.param({"breakpoint": True}, "bp", id="breakpoint"),
        pytest.param({}, "", id="none"),
    ],
)
def test_corner_marks(view, open_model, theme, session, look, token):
    open_model()
    box = make_scene(session.graph).boxes[1]
    image = QImage(200, 140, QImage.Format.Format_RGB32)
    image.fill(theme.color("base"))
    painter = QPainter(image)
    painter.translate(20, 20)
    BoxPainter(theme).paint(painter, BoxLook(box, DisplayStatus.EXECUTED, **look))
    painter.end()
    outside = {image.pixelColor(x, y).name().upper() for x in range(200) for y in range(19)}
    assert outside - {DARK.base} if token else outside == {DARK.base}
    if token:
        assert getattr(DARK, token) in outside


@pytest.mark.parametrize(("zoom", "least"), [(1.0, 33), (2.0, 95), (4.0, 220)])
def test_the_picture_of_a_box_grows_more_than_the_box(open_model, theme, session, zoom, least):
    open_model()
    box = make_scene(session.graph).boxes[1]
    pixels = bytes((250, 0, 250, 255)) * THUMBNAIL**2  # a colour that nothing else has
    image = QImage(round(200 * zoom), round(94 * zoom), QImage.Format.Format_RGB32)
    image.fill(theme.color("base"))
    painter = QPainter(image)
    painter.scale(zoom, zoom)
    look = BoxLook(box, DisplayStatus.EXECUTED, summary=Summary(0, 1, 4, pixels=pixels))
    BoxPainter(theme).paint(painter, look, text_size_at(zoom))
    painter.end()
    found = [
        (x, y)
        for y in range(image.height())
        for x in range(image.width())
        if image.pixel(x, y) == 0xFFFA00FA
    ]
    width = max(x for x, _ in found) - min(x for x, _ in found) + 1
    height = max(y for _, y in found) - min(y for _, y in found) + 1
    assert width >= least
    assert height == pytest.approx(width, abs=1)
    assert max(x for x, _ in found) < box.width * zoom - 40  # beside it is room for the range


def test_what_cannot_run_keeps_its_words_in_the_box(open_model, session, theme):
    open_model(("pnnx.Input a 0 1 0 #0=(1,3,8,8)f32", "own.Op b 1 1 0 1 #1=(1,3,8,8)f32"))
    box = make_scene(session.graph).boxes[1]
    image = QImage(round(box.width), 94, QImage.Format.Format_RGB32)
    image.fill(theme.color("base"))
    painter = QPainter(image)
    BoxPainter(theme).paint(painter, BoxLook(box, DisplayStatus.UNSUPPORTED))
    painter.end()
    raised = theme.color("raised").rgb()
    free = range(round(box.width) - 9, round(box.width) - 3)  # inside of the frame
    assert all(image.pixel(x, y) == raised for x in free for y in range(56, 86))
    assert any(image.pixel(x, y) != raised for x in range(12, 40) for y in range(56, 70))


@pytest.mark.parametrize("zoom", [0.1, 0.3, 0.5, 1.0, 2.0])
def test_every_level_of_detail(view, open_model, run, session, zoom, qtbot):
    open_model("failing", np.array([[np.nan, np.inf], [-np.inf, 0]] * 48).reshape(1, 3, 8, 8))
    session.toggle_breakpoint("after")
    session.toggle_breakpoint("add")
    run(2)
    session.select("pool")
    picture(view.canvas)
    zoom_to(view.canvas, zoom)
    view.canvas.setFocus()
    blank = QImage(view.canvas.size(), QImage.Format.Format_RGB32)
    blank.fill(DARK.base)
    assert picture(view.canvas) != blank
    run()
    picture(view.canvas)


def test_theme_changes_the_picture(view, open_model, theme):
    open_model(chain(30))
    before = picture(view.canvas)
    theme.set_scheme(Scheme.LIGHT)
    after = picture(view.canvas)
    assert after.pixelColor(2, 60).name() == "#ffffff"
    assert after != before


def test_legend_can_be_hidden(view, open_model):
    open_model()
    before = picture(view.canvas)
    view.canvas.set_legend_visible(False)
    assert picture(view.canvas) != before


def branches(count):
    """A chain that forks and joins again and again."""
    lines, value = ["pnnx.Input image 0 1 0 #0=(1,3,8,8)f32"], 0
    for i in range(count):
        left, right, join = value + 1, value + 2, value + 3
        lines += [
            f"F.relu left_{i} 1 1 {value} {left} #{left}=(1,3,8,8)f32",
            f"F.sigmoid right_{i} 1 1 {value} {right} #{right}=(1,3,8,8)f32",
            f"torch.add join_{i} 2 1 {left} {right} {join} #{join}=(1,3,8,8)f32",
        ]
        value = join
    return tuple(lines)


@pytest.mark.parametrize("orientation", ["left-right", "top-down"])
@pytest.mark.parametrize("zoom", [0.25, 0.5, 1.0])
def test_legend_and_minimap_cover_no_box(view, open_model, session, orientation, zoom):
    open_model(branches(30))
    view.set_orientation(orientation)
    canvas = view.canvas
    for name in ("image", "right_4", "right_15", "join_29"):
        view.center_on(name)
        zoom_to(canvas, zoom, view.box_rect(name).center())
        legend = picture(canvas).copy(0, canvas.height() - 26, 100, 26)
        frame = canvas.minimap_rect()
        assert QRectF(canvas.rect()).contains(frame)
        assert canvas.scene_rect().intersected(frame).isEmpty()
        assert canvas.scene_rect().bottom() <= canvas.height() - 26
        for operator in session.graph.operators:
            point = canvas.box_rect(operator.name).center()
            inside = canvas.scene_rect().contains(point)
            assert view.operator_at(point) == (operator.name if inside else "")
        canvas.viewport.pan(0, 40)
        assert picture(canvas).copy(0, canvas.height() - 26, 100, 26) == legend


def test_branches_are_visible_from_the_start(view, open_model):
    view.resize(770, 258 + 30)  # of a window of 1440 x 900
    open_model(branches(30))
    scene = view.canvas.scene_rect()
    assert scene.contains(view.box_rect("left_0"))
    assert scene.contains(view.box_rect("right_0"))


def test_rows_are_visible_with_their_marks(view, open_model, session):
    view.resize(773, 230 + 30)  # of a window on a screen of 1440 x 900
    open_model(branches(30))
    session.select("right_15")
    view.center_on("right_15")
    QTest.qWait(200)  # it is animated
    for name in ("left_15", "right_15"):
        box = view.box_rect(name).adjusted(-5, -5, 5, 5)
        assert view.canvas.scene_rect().contains(box)


def test_a_low_graph_has_boxes_instead_of_the_legend(view, open_model, theme):
    open_model(chain(3))
    canvas = view.canvas
    line = theme.color("line").rgb()

    def foot():
        """The height of what is below the line across the canvas."""
        image = canvas.grab().toImage()
        rows = [y for y in range(image.height()) if image.pixel(250, y) == line]
        return image.height() - rows[-1] if rows else 0

    view.resize(500, 140)
    assert foot() == 26
    view.resize(500, view.minimumHeight())
    assert canvas.geometry().bottom() < view.height()
    assert foot() == 0


def test_resizing_keeps_the_middle(view, open_model):
    open_model(branches(30))
    view.center_on("join_15")
    before = view.canvas.visible_area().center()
    view.resize(view.width() + 60, view.height() + 40)
    after = view.canvas.visible_area().center()
    assert (after - before).manhattanLength() < 1e-6


@pytest.mark.parametrize("name", ["right_15", "join_15"])
def test_a_banner_above_the_graph_covers_no_part_of_the_selected_box(
    qtbot, view, open_model, session, name
):
    view.resize(730, 183 + 30)  # of a window of 1366 x 768
    open_model(branches(30))
    session.select(name)
    view.resize(730, 124 + 30)
    ring = 5  # at 85 % or more
    qtbot.waitUntil(
        lambda: view.canvas.scene_rect().contains(
            view.box_rect(name).adjusted(-ring, -ring, ring, ring)
        )
    )
    assert view.canvas.minimap_rect().isNull()  # there is no room for both


def test_narrow_canvas(view, open_model):
    open_model(chain(30))
    view.canvas.resize(170, 200)  # the view is not, its header has more buttons
    picture(view.canvas)
    assert view.canvas.minimap_rect().isNull()


def test_destroyed_view_leaves_no_thread_waiting(qtbot, session, theme, open_model):
    view = GraphView(session, theme)
    view.show()
    open_model(chain(700))
    view.close()
    view.deleteLater()
    QTest.qWait(0)
