"""The marks of a comparison in the graph, the operators list and the timeline."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QApplication

from kuiper_studio.graph_view.legend import legend_entries
from kuiper_studio.graph_view.scene import make_scene
from kuiper_studio.graph_view.state import SceneState
from kuiper_studio.item_models import OperatorColumn
from kuiper_studio.item_models.comparison_rows import DifferenceKind
from kuiper_studio.item_models.difference_marks import operator_marks
from kuiper_studio.item_models.operator_filter import STATES
from kuiper_studio.panels.timeline_model import Measure

# Ours triples what the reference doubles: [3, 6, 9] beside [2, 4, 6] differs by 3 of 6, and one
# more by 3 of 7. The reference lacks what `sign` gives.
INPUT = np.array([1, 2, 3], np.float32)
REFERENCE = {"0": INPUT, "1": INPUT * 2, "2": INPUT * 2 + 1}
NET = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "pnnx.Expression times 1 1 0 1 expr=mul(@0,3) #0=(3)f32 #1=(3)f32",
    "pnnx.Expression plus 1 1 1 2 expr=add(@0,1) #1=(3)f32 #2=(3)f32",
    "pnnx.Expression sign 1 1 2 3 expr=neg(@0) #2=(3)f32 #3=(3)f32",
    "pnnx.Output out 1 0 3 #3=(3)f32",
)
NAMES = ("in", "times", "plus", "sign", "out")
GLYPHS = ["=", "≠", "≠", "?", ""]


@pytest.fixture
def window(open_window, make_pair, tmp_path):
    """A window whose model has run and is compared with REFERENCE."""
    path = tmp_path / "reference.npz"
    np.savez(path, **REFERENCE)
    window = open_window(make_pair(*NET), [INPUT])
    session = window.session
    assert session.wait_idle(10)
    session.resume()
    assert session.wait_idle(10)
    session.studies.compare(path)
    assert session.wait_idle(20)
    return window


def count_of(widget, color):
    """How many pixels of a widget have exactly a colour."""
    image = widget.grab().toImage()
    pixels = ((x, y) for x in range(image.width()) for y in range(image.height()))
    return sum(image.pixel(x, y) == color.rgb() for x, y in pixels)


def listed(panel, column=OperatorColumn.NAME):
    rows = range(panel.rows.rowCount())
    return [panel.rows.index(row, column).data() for row in rows]


def test_marks_by_operator(window):
    marks = operator_marks(window.session)
    assert {name: mark.look.glyph for name, mark in marks.items()} == {
        "in": "=", "times": "≠", "plus": "≠", "sign": "?",
    }  # fmt: skip
    assert marks["times"].kind is DifferenceKind.BORN
    assert marks["times"].relative == marks["times"].born == pytest.approx(3 / 6)
    assert marks["plus"].kind is DifferenceKind.INHERITED
    assert marks["plus"].relative == pytest.approx(3 / 7)
    assert marks["plus"].born == 0
    assert marks["sign"].relative is None
    assert marks["times"].text == "born here, difference 0.5 of the reference's maximum"
    assert marks.count_text == "1 born, 1 inherited, 1 equal, 1 not compared"
    assert {kind.value.lower() for kind in DifferenceKind} - set(STATES) == {"all"}


def test_the_list_shows_marks_while_there_is_a_comparison(window):
    panel = window.operators_panel
    column = OperatorColumn.DIFFERENCE
    assert not panel.table.isColumnHidden(column)
    assert listed(panel, column) == GLYPHS
    index = panel.model.index(1, column)
    assert "born here" in index.data(Qt.ItemDataRole.ToolTipRole)
    assert index.data(Qt.ItemDataRole.AccessibleTextRole).startswith(
        "born here, difference 0.5"
    )
    header = panel.table.horizontalHeader()
    assert header.length() == panel.table.viewport().width()

    window.actions_by_id["analyse.clear"].trigger()
    assert panel.table.isColumnHidden(column)
    assert listed(panel, column) == [""] * 5
    assert header.length() == panel.table.viewport().width()


def test_filter_words(window):
    panel = window.operators_panel
    for words, names in {
        "diff>0.45": ["times"],
        "diff>1e-4": ["times", "plus"],
        "state:born": ["times"],
        "state:inherited": ["plus"],
        "state:equal": ["in"],
        "state:other": ["sign"],
    }.items():
        panel.set_filter(words)
        assert listed(panel) == names
    panel.set_filter("state:born")
    window.session.comparing.clear()
    assert listed(panel) == []  # also without another word


def test_a_copied_row_has_the_mark(window):
    window.session.select("plus")
    window.operators_panel.copy_line()
    cells = QApplication.clipboard().text().split("\t")
    assert any(cell.startswith("inherited from upstream") for cell in cells)


def test_boxes_and_edges(window):
    canvas = window.graph_view.canvas
    canvas.viewport.reduced_motion = True
    canvas.set_orientation("left-right")
    canvas.viewport.fit()
    tips = {name: canvas.tip_at(canvas.box_rect(name).center()) for name in NAMES}
    assert [tip.splitlines()[3:] for tip in tips.values()] == [
        ["equal, difference 0 of the reference's maximum"],
        ["born here, difference 0.5 of the reference's maximum"],
        ["inherited from upstream, difference 0.429 of the reference's maximum"],  # 3 of 7
        ["not matched, no tensor of the reference fits"],
        [],
    ]
    ends = [tuple(map(canvas.box_rect, pair)) for pair in pairwise(NAMES)]
    between = [QPointF((a.right() + b.left()) / 2, a.center().y()) for a, b in ends]
    assert [canvas.operand_at(point) for point in between] == ["0", "1", "2", "3"]
    told = [canvas.tip_at(point).partition("beside the reference: ")[2] for point in between]
    assert told == ["equal", "born here", "inherited from upstream", ""]
    window.session.select("out")
    shot, color = canvas.grab().toImage(), window.theme.color("div")
    boxes = [canvas.box_rect(name).toRect() for name in NAMES]
    borders = [{shot.pixel(box.left() + x, box.center().y()) for x in (-1, 0, 1)}
               for box in boxes]  # fmt: skip
    assert [color.rgb() in border for border in borders] == [False, True, False, False, False]


def test_the_graph_knows_what_edges_carry_and_the_legend_explains_marks(window):
    state = SceneState(make_scene(window.session.graph), window.session)
    # Operands 0 to 3: equal, born, inherited, not compared.
    carried = {edge.operand: state.carried[i] for i, edge in enumerate(state.scene.edges)}
    assert carried == {"0": 0, "1": 2, "2": 1, "3": 0}
    assert state.differences == {"1": "≠ 0.5", "2": "≠ 0.43"}  # 3 of 6, and 3 of 7
    assert [entry.text for entry in legend_entries(state)][:4] == [
        "equal", "born here", "inherited", "not compared",
    ]  # fmt: skip
    window.session.comparing.clear()
    state = SceneState(make_scene(window.session.graph), window.session)
    assert legend_entries(state)[0].text == "executed"


def test_edges_are_painted_in_the_colour_of_the_difference(window):
    canvas, full = window.graph_view.canvas, window.theme.color("div")
    window.session.select("out")  # so that no other edge is highlighted
    canvas.viewport.reduced_motion = True
    canvas.set_orientation("left-right")
    canvas.viewport.fit()
    shot = canvas.grab().toImage()
    widths = {}
    for source, target in (("in", "times"), ("times", "plus"), ("plus", "sign")):
        left, right = canvas.box_rect(source), canvas.box_rect(target)
        x = round(left.right() + 0.3 * (right.left() - left.right()))
        reach = 4 * canvas.zoom  # up to the labels
        rows = range(round(left.center().y() - reach), round(left.center().y() + reach))
        found = [shot.pixelColor(x, y) for y in rows]
        yellow = [max(0, color.red() - color.blue()) for color in found]
        widths[source] = sum(yellow) / (full.red() - full.blue()) / canvas.zoom
    assert widths["in"] == 0
    assert widths["times"] == pytest.approx(3, abs=0.3)
    assert widths["plus"] == pytest.approx(2, abs=0.3)


def test_edges_say_how_far_their_operands_differ(window):
    canvas = window.graph_view.canvas
    canvas.viewport.reduced_motion = True
    canvas.set_orientation("left-right")
    canvas.viewport.zoom_reset()
    canvas.center_on("times")
    shot, yellow = canvas.grab().toImage(), {}
    for source, target in (("in", "times"), ("times", "plus")):
        left, right = canvas.box_rect(source), canvas.box_rect(target)
        # Below the line and the width of the larger of both.
        rows = range(round(left.center().y()) + 4, round(left.center().y()) + 16)
        columns = range(round(left.right()) + 4, round(right.left()) - 10)
        colors = [shot.pixelColor(x, y) for x in columns for y in rows]
        yellow[source] = sum(color.red() - color.blue() > 60 for color in colors)
    assert yellow["in"] == 0
    assert yellow["times"] > 20  # the letters of ≠ 0.5


def test_a_selected_box_keeps_the_colour_of_its_edges(window):
    state = SceneState(make_scene(window.session.graph), window.session)
    numbers = {edge.operand: i for i, edge in enumerate(state.scene.edges)}
    window.session.select("times")
    state.follow_selection()
    assert state.lit() == {numbers["0"]}  # its output carries the difference
    state.picked = "1"
    assert state.lit() == {numbers["1"]}


def test_texts_of_the_graph(window):
    canvas = window.graph_view.canvas
    window.session.select("times")
    description = canvas.accessibleDescription()
    assert "1 born, 1 inherited, 1 equal, 1 not compared" in description
    assert "born here, difference 0.5" in description.partition("Selected")[2]
    assert "born here, difference 0.5" in canvas.tip_at(canvas.box_rect("times").center())


def test_the_graph_forgets_a_comparison(window):
    canvas = window.graph_view.canvas
    window.session.select("out")
    color = window.theme.color("div")
    assert count_of(canvas, color) > 100  # borders, edges and the legend
    window.session.comparing.clear()
    assert count_of(canvas, color) == 0
    assert "born" not in canvas.tip_at(canvas.box_rect("times").center())
    assert "reference" not in canvas.accessibleDescription()


def test_the_timeline_returns_to_costs(window):
    panel = window.timeline_panel
    panel.set_measure(Measure.MACS)
    window.session.comparing.clear()
    assert panel.canvas.measure is Measure.MACS
    assert panel.measure_box.count() == 2
    assert panel.measure_box.currentText() == "Height: MACs"
    assert "measured" in panel.legend.accessibleName()


def test_errors_on_the_timeline(window, qtbot):
    panel, canvas = window.timeline_panel, window.timeline_panel.canvas
    assert panel.measure_box.currentText() == "Height: error"
    assert panel.summary.text() == "1 born, 1 inherited, 1 equal, 1 not compared"
    assert "tolerance" in panel.legend.accessibleName()
    painted = canvas._current_painter()
    room = canvas.geometry_of_bars().room
    # Eight decades, from 1e-8 to 1.
    decades = [np.log10(error / 1e-8) for error in (3 / 6, 3 / 7)]
    assert painted.heights.tolist() == [3, *(round(d / 8 * room) for d in decades), 13, 0]

    space, theme = canvas.geometry_of_bars(), window.theme
    shot = canvas.grab().toImage()

    def color_at(bar, y):
        left, right = space.bar_span(bar)
        return shot.pixelColor(round((left + right) / 2), y)

    assert color_at(0, space.base - 2) == theme.color("ctl")
    assert color_at(1, space.base - 2) == theme.color("div")
    outline = space.bar_rect(2, int(painted.heights[2]))
    assert color_at(2, outline.top()) == theme.color("div")
    assert color_at(2, space.base - 4) != theme.color("div")

    left, right = space.bar_span(2)
    point = QPoint(round((left + right) / 2), space.base - 4)
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=point)
    assert window.session.selected == "plus"
    assert "inherited from upstream" in canvas.accessibleDescription()
    assert "1 born, 1 inherited" in canvas.accessibleDescription()
    assert "born here" in canvas.tip(window.session.graph.operator("times"))


def test_the_first_origin_is_named_where_there_is_room(window):
    panel, canvas = window.timeline_panel, window.timeline_panel.canvas
    color = window.theme.color("div")

    def ink():
        """Pixels of the text's colour left of the origin's bar, above the bars there."""
        shot, space = canvas.grab().toImage(), canvas.geometry_of_bars()
        right = space.bar_rect(1, 1).center().x() - 10  # where its badge begins
        right = min(right, space.bar_rect(1, 1).left())
        area = ((x, y) for x in range(right) for y in range(space.base - 10))
        return sum(shot.pixelColor(x, y) == color for x, y in area)

    assert ink() > 30  # the strokes of "born in times, 0.5"
    panel.set_measure(Measure.TIME)
    assert ink() == 0
    panel.set_measure(Measure.ERROR)
    canvas.resize(220, canvas.height())
    assert ink() == 0  # it would be cut


def test_another_choice_of_height_stays_until_the_next_comparison(window, tmp_path):
    panel, session = window.timeline_panel, window.session
    panel.set_measure(Measure.TIME)
    session.step_back()
    assert session.wait_idle(10)
    assert panel.canvas.measure is Measure.TIME
    assert "measured" in panel.legend.accessibleName()
    session.studies.compare(tmp_path / "reference.npz")
    assert session.wait_idle(20)
    assert panel.canvas.measure is Measure.ERROR
    assert panel.measure_box.count() == 3


def test_both_themes_paint_all_of_it(window):
    """Nothing is painted by a glyph or token that does not exist."""
    for scheme in ("Light", "Dark"):
        window.actions_by_id[f"view.theme{scheme}"].trigger()
        assert not window.grab().isNull()


def test_what_inherits_no_fault_is_not_marked(open_window, make_pair, tmp_path):
    net = (
        "pnnx.Input in 0 1 0 #0=(1,64)f32",
        "torch.rand_like noise 1 1 0 1 $input=0 #0=(1,64)f32 #1=(1,64)f32",
        "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1) #0=(1,64)f32 #1=(1,64)f32 #2=(1,64)f32",
        "pnnx.Output out 1 0 2 #2=(1,64)f32",
    )
    image, noise = np.linspace(0, 1, 64, dtype=np.float32)[np.newaxis], np.zeros((1, 64))
    path = tmp_path / "reference.npz"
    np.savez(path, **{"0": image, "1": noise.astype(np.float32), "2": image})
    window = open_window(make_pair(*net), [image])
    session = window.session
    assert session.wait_idle(10)
    session.resume()
    assert session.wait_idle(10)
    session.studies.compare(path)
    assert session.wait_idle(20)
    marks = operator_marks(session)
    assert {name: mark.look.glyph for name, mark in marks.items()} == {
        "in": "=", "noise": "≈", "sum": "≈",
    }  # fmt: skip
    assert marks["sum"].kind is DifferenceKind.EQUAL
    assert marks["sum"].text.startswith("inherited from what is no fault")
