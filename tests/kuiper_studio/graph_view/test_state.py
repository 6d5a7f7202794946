"""The scene's state follows the session; every state has a look."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter

from engine.states import OperatorStatus
from kuiper_studio.engine_service.summary import Summary
from kuiper_studio.graph_view.boxes import STYLES, BoxLook, detail_lines
from kuiper_studio.graph_view.glyphs import GLYPHS
from kuiper_studio.graph_view.legend import legend_entries, paint_legend
from kuiper_studio.graph_view.scene import make_scene
from kuiper_studio.graph_view.state import NONE, SceneState
from kuiper_studio.graph_view.tips import box_tip, describe, edge_tip
from kuiper_studio.item_models.statuses import DISPLAY_STATUS, STATUS_LOOKS, DisplayStatus
from kuiper_studio.session import RunState
from kuiper_studio.theme import DARK, Theme

S = DisplayStatus


def states(state):
    return [state.shown(box.index) for box in state.scene.boxes]


@pytest.fixture
def state(session, open_model):
    open_model()
    return SceneState(make_scene(session.graph), session)


def test_tables_are_complete():
    assert DISPLAY_STATUS.keys() == set(OperatorStatus)
    assert STYLES.keys() == STATUS_LOOKS.keys() == set(DisplayStatus)
    for style in STYLES.values():
        for token in (style.fill, style.border, style.title, style.text):
            assert hasattr(DARK, token)
    for look in STATUS_LOOKS.values():
        assert look.icon in ("", *GLYPHS)
        assert hasattr(DARK, look.token)
        assert hasattr(DARK, look.text_token)


def test_start(state):
    assert states(state) == [S.CURRENT] + [S.PENDING] * 7
    assert not any(state.computed(edge) for edge in range(len(state.scene.edges)))


def test_without_input_nothing_is_next(session, open_model):
    open_model(feed=False)
    state = SceneState(make_scene(session.graph), session)
    assert states(state) == [S.PENDING] * 8
    assert state.position == 0


def test_steps(state, session, run):
    run(3)
    changed = state.apply([session.record(name) for name in ("image", "stem.relu")])
    assert changed == {0, 1}
    state.refresh()
    assert states(state) == [S.EXECUTED] * 3 + [S.CURRENT] + [S.PENDING] * 4
    edges = state.scene.edges
    computed = {edges[n].operand for n in range(len(edges)) if state.computed(n)}
    assert computed == {"0", "1", "2"}
    assert state.shape("1") == "3×8×8"
    assert state.shape("5") == ""


def test_computed_shape_replaces_the_exported_one(session, open_model, run):
    open_model(value=np.zeros((1, 3, 5, 5), np.float32))
    run(2)
    state = SceneState(make_scene(session.graph), session)
    state.apply([session.record("image")])
    assert state.shape("0") == "3×5×5"


def test_step_back(state, session, run):
    run(3)
    state.refresh()
    state.summaries = {1: Summary(), 2: Summary()}
    assert state.shape("2") == "3×8×8"
    session.step_back()
    assert session.wait_idle()
    state.follow_position()
    assert state.revert("block.0.sigmoid") == 2
    assert states(state)[1:4] == [S.EXECUTED, S.CURRENT, S.PENDING]
    assert set(state.summaries) == {1}
    assert state.shape("2") == ""


def test_failure_blocks_what_depends_on_it(session, open_model, run):
    open_model("failing")
    run()
    assert session.state is RunState.FAILED
    state = SceneState(make_scene(session.graph), session)
    assert states(state) == [
        S.EXECUTED,
        S.EXECUTED,
        S.FAILED,
        S.BLOCKED,
        S.UNSUPPORTED,
        S.BLOCKED,
    ]
    assert state.current == NONE
    assert state.position == 2
    texts = [entry.text for entry in legend_entries(state)]
    assert texts == ["executed", "failed", "blocked: 2 operators", "cannot run"]
    tip = box_tip(state, session, 2)
    assert "failed" in tip
    assert "1×3×4×4" in tip
    assert "no layer for operator type F.not_there" in box_tip(state, session, 4).split("\n")
    session.restart()


def test_legend_names_what_the_graph_shows(session, open_model, run):
    open_model()
    state = SceneState(make_scene(session.graph), session)
    texts = [entry.text for entry in legend_entries(state)]
    assert texts == ["next to run", "pending"]
    run()
    assert session.state is RunState.FINISHED
    state.refresh()
    assert [entry.text for entry in legend_entries(state)] == ["executed"]


def test_legend_names_the_marks_of_special_values(state, run):
    run(3)
    state.refresh()
    assert [entry.text for entry in legend_entries(state)] == [
        "executed",
        "next to run",
        "pending",
    ]
    state.summaries = {1: Summary(nan=2, count=9), 2: Summary(ninf=1, count=9)}
    assert [entry.text for entry in legend_entries(state)][3:] == ["NaN", "−Inf"]
    state.summaries = {5: Summary(nan=2, count=9)}  # of an earlier run: it has no mark now
    assert len(legend_entries(state)) == 3
    state.special_counts[1, 4] = 1  # inside of a closed group
    state.suspect = 1
    assert [entry.text for entry in legend_entries(state)][3:] == ["may be the cause", "+Inf"]


def test_legend_paints_the_marks_of_special_values(qapp, state, run):
    run()
    state.refresh()
    theme = Theme("light")
    image = QImage(300, 26, QImage.Format.Format_RGB32)

    def colors():
        image.fill(theme.color("base"))
        painter = QPainter(image)
        paint_legend(painter, theme, legend_entries(state), QRectF(image.rect()))
        painter.end()
        return {image.pixelColor(x, y).name() for x in range(300) for y in range(26)}

    disc = theme.color("nan").name()
    assert disc not in colors()
    state.summaries = {1: Summary(nan=2, count=9)}
    assert disc in colors()


def test_restart_unblocks(qtbot, session, open_model, run):
    open_model("failing")
    state = SceneState(make_scene(session.graph), session)
    run()
    state.refresh()
    assert S.BLOCKED in states(state)
    with qtbot.waitSignal(session.values_reset):
        session.restart()
    qtbot.waitUntil(lambda: session.state is RunState.READY)
    state.refresh()
    assert states(state)[:4] == [S.CURRENT, S.PENDING, S.PENDING, S.PENDING]


def test_state_change_alone_unblocks(qtbot, session, open_model, run):
    open_model("failing")
    run()
    state = SceneState(make_scene(session.graph), session)
    session.restart()
    qtbot.waitUntil(lambda: session.state is RunState.READY)
    state.follow_position()
    assert S.BLOCKED not in states(state)


def test_selection_lights_its_edges_but_not_where_the_run_stands(state, session, run):
    edges = state.scene.edges
    session.select("image")
    state.follow_selection()
    assert state.lit() == set()  # it is also next to run
    session.select("side.relu")
    state.follow_selection()
    assert {edges[n].operand for n in state.lit()} == {"1", "4"}
    state.picked = "5"
    assert {edges[n].operand for n in state.lit()} == {"5"}


def test_breakpoints(state, session):
    session.toggle_breakpoint("add")
    state.follow_breakpoints()
    assert state.breakpoints == {5}
    assert legend_entries(state)[-1].text == "breakpoint"


def test_plain_drawing(session, state):
    plain = SceneState(state.scene)
    plain.refresh()
    plain.follow_position()
    plain.follow_selection()
    plain.follow_breakpoints()
    assert states(plain) == [S.PLAIN] * 8
    assert plain.computed(0)
    assert not plain.adopt_summary(0)
    assert not plain.has_value(0)
    assert plain.shape("0") == ""


# Words


@pytest.mark.parametrize(
    ("shown", "summary", "lines"),
    [
        pytest.param(S.PENDING, None, ("3×8×8", "f32"), id="pending"),
        pytest.param(S.PLAIN, None, ("3×8×8", "f32"), id="plain"),
        pytest.param(S.CURRENT, None, ("NEXT", "F10"), id="current"),
        pytest.param(S.FAILED, None, ("FAILED", "3×8×8"), id="failed"),
        pytest.param(S.UNSUPPORTED, None, ("CANNOT RUN", "3×8×8"), id="unsupported"),
        pytest.param(S.BLOCKED, None, ("blocked", ""), id="blocked"),
        pytest.param(S.EXECUTED, None, ("3×9×9", ""), id="not-looked-at-yet"),
        pytest.param(
            S.EXECUTED, Summary(-2.71, 2.59, 100, 3), ("−2.7…2.6", "0 NaN"), id="range"
        ),
        pytest.param(S.EXECUTED, Summary(0, 2.57, 100, 54), ("0…2.57", "54% zero"), id="zeros"),
        pytest.param(
            S.EXECUTED, Summary(0, 2.57, 100, 54, 12), ("0…2.57", "12 NaN"), id="nan-wins"
        ),
        pytest.param(
            S.EXECUTED,
            Summary(0, 2.57, 10**7, 0, 2_345_678),
            ("0…2.57", "2345k NaN"),
            id="many-nan",
        ),
        pytest.param(
            S.EXECUTED, Summary(0, 1, 100, 0, 0, 3, 4), ("0…1", "7 Inf"), id="infinite"
        ),
        pytest.param(S.EXECUTED, Summary(0, 0, 100, 100), ("all 0", "0 NaN"), id="constant"),
        pytest.param(S.EXECUTED, Summary(2.87, 2.87, 4), ("all 2.87", "0 NaN"), id="digits"),
        pytest.param(
            S.EXECUTED, Summary(count=4, nan=4), ("not finite", "4 NaN"), id="all-nan"
        ),
        pytest.param(S.EXECUTED, Summary(), ("empty", ""), id="empty"),
        pytest.param(S.EXECUTED, Summary(text="True"), ("True", ""), id="no-tensor"),
    ],
)
def test_lines_beside_the_thumbnail(state, shown, summary, lines):
    look = BoxLook(state.scene.boxes[1], shown, "3×9×9", summary)
    assert detail_lines(look) == lines


def test_edge_tip(state, session, run):
    edge = next(n for n, e in enumerate(state.scene.edges) if e.operand == "5")
    assert edge_tip(state, session, edge).splitlines() == [
        "operand 5",
        "1×3×8×8 f32",
        "add → square",
        "not computed yet",
        "used 2 times",
    ]
    run()
    state.refresh()
    state.summaries[5] = Summary(-0.5, 2.25, 192, 0, 1, 2, 0)
    assert edge_tip(state, session, edge).splitlines()[3:5] == [
        "range −0.5 … 2.25",
        "NaN 1 · Inf 2",
    ]


def test_description_for_screen_readers(state, session, run):
    run(1)
    state.refresh()
    session.select("add")
    state.follow_selection()
    assert describe(state) == (
        "8 operators, 1 executed. Next: F.relu stem.relu, next to run. "
        "Selected: pnnx.Expression add, pending."
    )
