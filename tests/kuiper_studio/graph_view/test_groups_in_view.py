"""Groups of the graph: what the user sees of them, and opens and closes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from on_screen import zoom_to
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from engine.text import format_duration
from kuiper_studio.engine_service import reports
from kuiper_studio.graph_view.boxes import BoxLook
from kuiper_studio.graph_view.cards import card_line
from kuiper_studio.graph_view.folded_scenes import FoldedScenes, Wires
from kuiper_studio.graph_view.folding import Folding
from kuiper_studio.graph_view.grouping import find_groups_of
from kuiper_studio.graph_view.scene import make_scene
from kuiper_studio.graph_view.state import SceneState
from kuiper_studio.item_models.overlays import NO_LEVEL, Overlay, Scale
from kuiper_studio.item_models.statuses import DisplayStatus
from kuiper_studio.layout.groups import Group
from kuiper_studio.session import RunState
from kuiper_studio.session.overlaying import OverlayKind

SHAPE = "#{0}=(1,3,8,8)f32"


def network(blocks=10, length=6):
    """A stem, equal blocks with a skip each, and a head of six operators with names."""
    lines = [f"pnnx.Input image 0 1 0 {SHAPE.format(0)}"]
    last = 0

    def add(kind, name, *takes, expression=""):
        nonlocal last
        last += 1
        inputs = " ".join(map(str, takes))
        lines.append(
            f"{kind} {name} {len(takes)} 1 {inputs} {last} {expression} {SHAPE.format(last)}"
        )

    for block in range(blocks):
        skip = last
        for part in range(length - 1):
            kind = "F.sigmoid" if part == 2 else "F.relu"
            add(kind, f"body.{block}.p{part}", last)
        add("pnnx.Expression", f"sum_{block}", last, skip, expression="expr=add(@0,@1)")
    for part in range(6):
        add("F.tanh", f"head.t{part}", last)
    lines.append(f"pnnx.Output out 1 0 {last}")
    return tuple(lines)


@pytest.fixture
def grouped(view, open_model):
    """A model of 68 operators, which opens in groups."""
    open_model(network())
    assert view.canvas.is_grouped
    return view


@pytest.fixture
def names(session, qtbot):
    """Tell the names of the boxes that a view shows: operators and closed groups, in order."""

    def names_in(view):
        qtbot.waitUntil(lambda: view.canvas.laid_out)
        operators = [operator.name for operator in session.graph.operators]
        rows = view.canvas.outline
        found = [row.name or operators[row.first] for row in rows if not row.is_open]
        if rows:
            return found
        return [name for name in operators if not view.box_rect(name).isNull()]

    return names_in


def tip(view, name):
    """The lines of a box's tool tip: of the group, for an operator in a closed one."""
    return view.canvas.tip_at(view.box_rect(name).center()).splitlines()


def frame_rect(view, frame):
    """The frame of an open group in the canvas."""
    return view.canvas.viewport.camera.rect_to_view(view.canvas._geometry.frame_rect(frame))


def contrast(picture):
    """How much the brightness of a picture varies."""
    image = picture.toImage().convertToFormat(QImage.Format.Format_Grayscale8)
    width, height = image.width(), image.height()
    rows = np.frombuffer(image.constBits(), np.uint8).reshape(height, image.bytesPerLine())
    return float(rows[:, :width].std())


def middle(view, name):
    return view.box_rect(name).center().toPoint()


def test_a_large_model_opens_in_groups_and_a_small_one_does_not(view, open_model, names):
    open_model(network())
    assert names(view) == ["image", "body", "head", "out"]
    open_model("residual")
    assert not view.canvas.is_grouped
    assert len(names(view)) == 8


def test_a_double_click_opens_a_group_in_place(grouped, names):
    view = grouped
    card = view.box_rect("head.t0")
    QTest.mouseDClick(view.canvas, Qt.MouseButton.LeftButton, pos=card.center().toPoint())
    assert names(view)[2:] == [*(f"head.t{n}" for n in range(6)), "out"]
    frame = frame_rect(view, 0)
    assert frame.left() == pytest.approx(card.left(), abs=1)
    assert frame.center().y() == pytest.approx(card.center().y(), abs=1)
    # Its title closes it, and it is where it was.
    title = (frame.topLeft() + QPoint(60, 12)).toPoint()
    QTest.mouseDClick(view.canvas, Qt.MouseButton.LeftButton, pos=title)
    assert names(view) == ["image", "body", "head", "out"]
    closed = view.box_rect("head.t0")
    assert (closed.topLeft() - card.topLeft()).manhattanLength() < 2


def test_a_first_click_leaves_the_group_under_the_mouse(grouped):
    """It is at the edge; the second click of a double-click must meet it."""
    view, canvas = grouped, grouped.canvas
    canvas.viewport.pan(canvas.width() - view.box_rect("head.t0").left() - 30, 0)
    before = view.box_rect("head.t0")
    point = QPoint(int(before.left()) + 10, int(before.center().y()))
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=point)
    assert canvas.picked_group.name == "head"
    assert view.box_rect("head.t0") == before


def test_the_arrow_before_the_name_closes_with_one_click(grouped, names):
    view = grouped
    QTest.mouseDClick(view.canvas, Qt.MouseButton.LeftButton, pos=middle(view, "head.t0"))
    corner = frame_rect(view, 0).topLeft()
    QTest.mouseClick(
        view.canvas, Qt.MouseButton.LeftButton, pos=(corner + QPoint(12, 14)).toPoint()
    )
    assert names(view) == ["image", "body", "head", "out"]


def test_the_title_of_a_frame_stays_in_view(grouped, names, theme):
    view, canvas = grouped, grouped.canvas
    QTest.mouseDClick(canvas, Qt.MouseButton.LeftButton, pos=middle(view, "head.t0"))
    frame = frame_rect(view, 0)
    canvas.viewport.pan(-frame.left() - frame.width() / 2, 0)
    frame = frame_rect(view, 0)
    assert frame.left() < -100 < 100 < frame.right()
    top = round(frame.top())
    title = canvas.grab(QRect(0, top + 4, 100, 20)).toImage()
    row = {
        title.pixelColor(x, y).rgb()
        for x in range(title.width())
        for y in range(title.height())
    }
    assert theme.color("text").rgb() in row
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(12, top + 14))
    assert names(view) == ["image", "body", "head", "out"]


def test_selecting_an_operator_elsewhere_opens_its_groups(grouped, session, names):
    view = grouped
    session.select("body.4.p2")
    assert names(view)[:3] == ["image", "body.0…3", "body.4.p0"]
    assert view.header.breadcrumb == "m › body › body.4 (5 of 10)"
    assert QRectF(view.canvas.rect()).contains(view.box_rect("body.4.p2"))
    assert "body.5…9" in names(view)


def test_crumbs_are_clicked(grouped, session):
    view = grouped
    session.select("body.4.p2")
    crumbs = view.header.findChild(object, "graphBreadcrumb")
    x = crumbs.fontMetrics().horizontalAdvance("m › body › bo")
    QTest.mouseClick(crumbs, Qt.MouseButton.LeftButton, pos=QPoint(x, 10))
    assert view.canvas.picked_group.name == "body.4"
    assert session.selected == "body.4.p2"


def test_crumbs_by_keyboard(grouped, session, qtbot):
    """Tab reaches them where there are groups; Left goes outwards, Enter selects."""
    crumbs = grouped.header.findChild(QLabel, "graphBreadcrumb")
    assert crumbs.focusPolicy() is Qt.FocusPolicy.NoFocus
    session.select("body.4.p2")
    assert crumbs.focusPolicy() is Qt.FocusPolicy.TabFocus
    first, *groups = grouped.header.breadcrumb.split(" › ")
    assert len(groups) == 2
    crumbs.setFocus()
    qtbot.waitUntil(crumbs.hasFocus)
    assert crumbs.accessibleDescription() == groups[1]
    for _ in range(3):  # no further than the outermost group
        QTest.keyClick(crumbs, Qt.Key.Key_Left)
    assert crumbs.accessibleDescription() == groups[0]
    QTest.keyClick(crumbs, Qt.Key.Key_Return)
    assert grouped.canvas.picked_group.name == "body"
    assert grouped.header.breadcrumb == f"{first} › {groups[0]}"


def test_keys_open_walk_and_close(grouped, session, names):
    view = grouped
    canvas = view.canvas
    session.select("image")
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert canvas.picked_group.name == "body"
    assert session.selected == "image"
    QTest.keyClick(canvas, Qt.Key.Key_Return)  # into its ten blocks
    assert names(view)[1:11] == [f"body.{n}" for n in range(10)]
    assert canvas.picked_group.name == "body.0"
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert canvas.picked_group.name == "body.1"
    QTest.keyClick(canvas, Qt.Key.Key_Plus)
    assert names(view)[2:4] == ["body.1.p0", "body.1.p1"]
    QTest.keyClick(canvas, Qt.Key.Key_Right)  # to the first operator inside
    assert session.selected == "body.1.p0"
    assert canvas.picked_group is None
    QTest.keyClick(canvas, Qt.Key.Key_Backspace)
    assert canvas.picked_group.name == "body.1"
    QTest.keyClick(canvas, Qt.Key.Key_Minus)
    assert names(view) == ["image", "body", "head", "out"]


def test_stepping_marks_the_group_and_opens_nothing(grouped, session, run, names):
    view, canvas = grouped, grouped.canvas
    run(3)
    assert names(view) == ["image", "body", "head", "out"]
    assert tip(view, "body.0.p0")[2:4] == ["10 equal blocks", "next to run · 2 of 60 run"]
    assert session.selected == "body.0.p2"
    assert "Next: in body, 60 operators, closed." in canvas.accessibleDescription()
    run()
    assert canvas.box_state("body.0.p0") is DisplayStatus.EXECUTED
    assert tip(view, "body.0.p0")[1] == "60 operators, 1 to 60"
    assert tip(view, "body.0.p0")[3] == "executed · 60 of 60 run"


@pytest.mark.parametrize(
    ("status", "more", "line"),
    [
        (DisplayStatus.PENDING, {}, ("4 operators", False)),
        (DisplayStatus.PENDING, {"executed": 1}, ("1 of 4 run", False)),
        (DisplayStatus.CURRENT, {"executed": 2}, ("NEXT 3/4", True)),
        (DisplayStatus.EXECUTED, {"executed": 4}, ("4 operators", False)),
        (DisplayStatus.EXECUTED, {"executed": 4, "found": 1}, ("1 of 4 found", True)),
        (
            DisplayStatus.EXECUTED,
            {"executed": 4, "found": 0},
            ("0 of 4 found", False),
        ),
    ],
)
def test_the_second_line_of_a_closed_group(load_graph, status, more, line):
    graph = load_graph()
    folding = Folding(Group("", 0, 7, (Group("block", 1, 4),)))
    scene = FoldedScenes(graph, Wires.of(graph)).make(folding)
    (closed,) = (box for box in scene.boxes if box.name == "block")
    assert card_line(BoxLook(closed, status, **more)) == line


def test_a_failure_opens_the_group_it_is_in(view, open_model, session, run, names):
    lines = list(network())
    lines[-3] = "torch.reshape head.t4 1 1 64 65 shape=(7,7) #65=(7,7)f32"
    open_model(tuple(lines))
    run()
    assert session.failure is not None
    assert "head.t4" in names(view)
    assert view.canvas.box_state("head.t4") is DisplayStatus.FAILED


def test_marks_of_operators_are_on_their_group(grouped, session):
    canvas = grouped.canvas
    session.toggle_breakpoint("body.2.p1")
    session.bookmarks.toggle("head.t3")
    body, head = tip(grouped, "body.0.p0"), tip(grouped, "head.t0")
    assert ("breakpoint inside" in body, "breakpoint inside" in head) == (True, False)
    assert ("bookmark inside" in body, "bookmark inside" in head) == (False, True)
    area = grouped.box_rect("head.t0").toRect()
    before = contrast(canvas.grab(area))
    session.finding.search("type:sigmoid")
    assert "10 marked by the search" in tip(grouped, "body.0.p0")
    assert "0 marked by the search" in tip(grouped, "head.t0")
    assert contrast(canvas.grab(area)) < 0.8 * before  # nothing was found in it: it is dimmed


def test_a_group_has_the_sum_of_times_and_the_largest_magnitude(grouped, session, run):
    canvas = grouped.canvas
    run()
    session.overlaying.choose(OverlayKind.TIME)
    times = canvas.overlay.values
    assert len(times) == 68  # of operators
    took = format_duration(times[1:61][times[1:61] > 0].sum())
    assert f"{canvas.overlay.title}: {took}" in tip(grouped, "body.0.p0")
    # The scale reaches to the largest sum.
    assert f"to {took}" in canvas.accessibleDescription()


def test_of_magnitudes_a_group_has_the_largest():
    values = np.array([1.0, 5.0, np.nan, 2.0, np.nan, np.nan])
    overlay = Overlay(OverlayKind.LARGEST, "", values, np.zeros(6, np.int16), Scale(0.0, 10.0))
    folded = overlay.gathered(np.array([0, 1, 4]))
    assert folded.values[:2].tolist() == [1.0, 5.0]
    assert np.isnan(folded.values[2])
    assert folded.levels.tolist() == [26, 128, NO_LEVEL]  # of 0 to 255, on the same scale
    assert folded.scale == overlay.scale


def test_every_operator_without_groups(grouped, session, names):
    canvas = grouped.canvas
    canvas.set_grouping(False)
    assert len(names(grouped)) == 68
    assert grouped.header.breadcrumb == "m"
    canvas.set_grouping(True)
    canvas.open_all_groups()
    assert len(names(grouped)) == 68
    opened = [row.name for row in canvas.outline if row.is_open]
    assert len(opened) == 11  # ten blocks in one stack
    canvas.close_all_groups()
    assert names(grouped) == ["image", "body", "head", "out"]


def test_groups_stay_open_when_the_model_is_opened_again(grouped, open_model, session, names):
    session.select("body.4.p2")
    before = names(grouped)
    open_model(network())
    assert names(grouped) == before


@pytest.mark.parametrize("orientation", ["left-right", "top-down"])
@pytest.mark.parametrize("zoom", [0.2, 0.5, 1.0])
def test_all_levels_of_detail_are_painted(grouped, session, run, orientation, zoom):
    view, canvas = grouped, grouped.canvas
    run(4)
    session.select("body.4.p2")
    view.set_orientation(orientation)
    zoom_to(canvas, zoom)
    before = canvas.grab().toImage()
    canvas.close_all_groups()
    zoom_to(canvas, zoom)
    assert canvas.grab().toImage() != before


def test_tips_say_what_is_in_a_group(grouped, session, run):
    view = grouped
    run(3)
    tip = view.canvas.tip_at(view.box_rect("body.0.p0").center())
    assert tip.splitlines() == [
        "body",
        "60 operators, 1 to 60",
        "10 equal blocks",
        "next to run · 2 of 60 run",
        "double-click or Enter opens it",
    ]


class TestLayoutOnAnotherThread:
    """Of many edges the picture before is shown until the new one is laid out."""

    @pytest.fixture(autouse=True)
    def _few(self, monkeypatch):
        monkeypatch.setattr("kuiper_studio.graph_view.canvas._REFOLDED_AT_ONCE", 1)

    def test_the_picture_before_stays_meanwhile(self, grouped, session, qtbot, names):
        canvas = grouped.canvas
        before = canvas.grab().toImage()
        canvas.open_all_groups()
        assert not canvas.laid_out
        assert canvas.grab().toImage() == before
        assert canvas.operator_at(QPointF(100, 100)) == ""
        qtbot.waitUntil(lambda: canvas.laid_out)
        assert len(names(grouped)) == len(session.graph.operators)
        assert canvas.grab().toImage() != before

    def test_the_selected_operator_is_in_view_afterwards(self, grouped, session, qtbot, names):
        canvas = grouped.canvas
        last = session.graph.operators[-3].name
        canvas.viewport.reduced_motion = True
        session.select(last)
        assert not canvas.laid_out
        qtbot.waitUntil(lambda: canvas.laid_out)
        assert last in names(grouped)
        assert canvas.scene_rect().contains(canvas.box_rect(last))

    def test_another_model_does_not_show_the_one_before(self, grouped, open_model, names):
        grouped.canvas.open_all_groups()
        assert not grouped.canvas.laid_out
        open_model("residual")
        assert names(grouped)[:2] == ["image", "stem.relu"]
        assert grouped.canvas.laid_out


class TestGroupingOfALargeModel:
    """It is grouped on another thread, while the window answers."""

    @pytest.fixture(autouse=True)
    def _large(self, monkeypatch):
        monkeypatch.setattr("kuiper_studio.graph_view.grouping._GROUPED_AT_ONCE", 10)

    @pytest.fixture
    def known(self, monkeypatch):
        """An event before which no groups are known."""
        event = threading.Event()

        def find(graph):
            event.wait(10)
            return find_groups_of(graph)

        monkeypatch.setattr("kuiper_studio.graph_view.canvas.find_groups_of", find)
        yield event
        event.set()

    def test_nothing_opens_before_its_groups_are_known(
        self, view, open_model, qtbot, known, names
    ):
        open_model(network())
        canvas = view.canvas
        assert not canvas.laid_out
        assert canvas.outline == ()
        canvas.open_all_groups()
        canvas.open_group()
        known.set()
        qtbot.waitUntil(lambda: canvas.laid_out)
        assert names(view) == ["image", "body", "head", "out"]
        assert [row.name for row in canvas.outline if row.group] == ["body", "head"]

    def test_what_was_looked_for_is_shown_then(self, view, open_model, qtbot, names):
        open_model(network())
        view.canvas.center_on("head.t2")
        qtbot.waitUntil(lambda: view.canvas.laid_out)
        assert "head.t2" in names(view)
        assert view.canvas.scene_rect().contains(view.box_rect("head.t2"))

    def test_the_groups_of_a_model_before_are_dropped(self, view, open_model, qtbot):
        open_model(network())
        open_model(network(blocks=6, length=4))
        qtbot.waitUntil(lambda: view.canvas.laid_out)
        qtbot.wait(50)
        assert view.canvas.accessibleDescription().startswith("32 operators, ")

    def test_a_model_without_groups_by_choice(self, view, open_model, qtbot, names):
        open_model(network())
        view.canvas.set_grouping(False)
        qtbot.waitUntil(lambda: view.canvas.laid_out)
        assert len(names(view)) == 68
        view.canvas.set_grouping(True)
        assert names(view) == ["image", "body", "head", "out"]


def test_groups_close_while_the_graph_with_the_sought_operator_is_laid_out(
    grouped, qtbot, monkeypatch, names
):
    canvas = grouped.canvas
    monkeypatch.setattr("kuiper_studio.graph_view.canvas._LAID_OUT_AT_ONCE", 20)
    canvas.set_grouping(False)
    canvas.center_on("head.t5")
    assert not canvas.laid_out
    canvas.set_grouping(True)
    qtbot.waitUntil(lambda: canvas.laid_out)
    assert names(grouped) == ["image", "body", "head", "out"]
    assert canvas.scene_rect().contains(grouped.box_rect("head.t5"))


class TestSpecialValuesInClosedGroups:
    """A closed group has the marks of what is in it."""

    def values(self, special):
        array = np.zeros((1, 3, 8, 8), np.float32)
        array[0, 1, 2, 3] = special
        return array

    @pytest.mark.parametrize(
        ("special", "marked"),
        [(np.nan, ["NaN in 16 operators"]), (np.inf, ["+Inf in 16 operators"]), (1.0, [])],
    )
    def test_they_are_measured_at_rest(
        self, view, open_model, session, run, qtbot, special, marked
    ):
        """NaN passes every operator; infinity becomes 1 in the sigmoid."""
        lines = network(blocks=10, length=8)
        if np.isinf(special):
            lines = tuple(line.replace("F.tanh", "F.relu") for line in lines)
            lines = tuple(line.replace("F.sigmoid", "F.relu") for line in lines)
        open_model(lines, self.values(special))
        run(17)  # the input and two blocks of eight
        qtbot.waitUntil(lambda: bool(session.measuring.table.known[:17].all()))
        told = [line for line in tip(view, "body.0.p0") if "in 16 operators" in line]
        assert told == marked
        assert session.nonfinite == (frozenset(range(17)) if marked else frozenset())

    def test_they_are_forgotten_with_their_values(self, view, open_model, session, run, qtbot):
        open_model(network(), self.values(np.nan))
        run(8)
        qtbot.waitUntil(lambda: "NaN in 7 operators" in tip(view, "body.0.p0"))
        session.restart()
        qtbot.waitUntil(lambda: not session.busy)
        assert not any("NaN" in line for line in tip(view, "body.0.p0"))


def test_the_title_of_an_open_group_says_how_many_ran_then_how_long_it_took(
    grouped, session, run
):
    canvas = grouped.canvas
    session.select("head.t0")
    (head,) = (row.group for row in canvas.outline if row.name == "head")
    assert head.size == 6

    def title():
        return SceneState(make_scene(session.graph), session).group_text(head)

    assert title() == ""
    run(64)  # three of its six
    assert title() == "3 run"
    run()
    seconds = [session.record(f"head.t{n}").seconds for n in range(6)]
    assert title() == format_duration(sum(seconds))
    session.overlaying.choose(OverlayKind.MEMORY)  # of six times 1x3x8x8 floats
    assert title() == "4.6 kB"  # 4608


@pytest.mark.parametrize("at_once", [True, False])
def test_what_is_selected_is_in_view_after_reloading(
    qtbot, view, open_model, run, session, monkeypatch, at_once
):
    monkeypatch.setattr(reports, "SECONDS_BETWEEN_REPORTS", 0)  # the view follows each step
    if not at_once:  # groups and boxes are found on another thread, as of large models
        monkeypatch.setattr("kuiper_studio.graph_view.grouping._GROUPED_AT_ONCE", 10)
        monkeypatch.setattr("kuiper_studio.graph_view.canvas._LAID_OUT_AT_ONCE", 2)
    open_model(network(blocks=30, length=5))
    qtbot.waitUntil(lambda: view.canvas.laid_out)
    run()
    view.canvas.open_all_groups()
    qtbot.waitUntil(lambda: view.canvas.laid_out)
    seen = view.canvas.scene_rect()
    for name in ("out", "body.15.p2"):
        session.select(name)
        session.reload()
        qtbot.waitUntil(lambda: session.state is RunState.FINISHED and not session.busy)
        qtbot.waitUntil(lambda: view.canvas.laid_out)
        assert session.selected == name
        assert seen.contains(view.box_rect(name))
