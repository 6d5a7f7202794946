"""The marks of a comparison in the graph, the operators list and the timeline."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from kuiper_studio.graph_view.boxes import detail_lines
from kuiper_studio.graph_view.legend import legend_entries
from kuiper_studio.item_models import OperatorColumn
from kuiper_studio.item_models.comparison_rows import DifferenceKind
from kuiper_studio.item_models.difference_marks import count_text, operator_marks
from kuiper_studio.item_models.operator_filter import STATES

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
    session.compare(path)
    assert session.wait_idle(20)
    return window


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
    assert count_text(marks.values()) == "1 born, 1 inherited, 1 equal, 1 not compared"
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
    state = window.graph_view.canvas._state
    looks = [window.graph_view.canvas._painter.look(box) for box in range(5)]
    assert [look.mark.look.glyph if look.mark else "" for look in looks] == GLYPHS
    assert [(look.style.border, look.style.width) for look in looks] == [
        ("ctl", 1.0), ("div", 2.0), ("ctl", 1.0), ("ctl", 1.0), ("ctl", 1.0),
    ]  # fmt: skip
    seconds = [detail_lines(look)[1] for look in looks]
    assert seconds[:3] == ["Δ 0", "BORN 0.5", "Δ 0.43"]
    # Operands 0 to 3: equal, born, inherited, not compared.
    carried = {edge.operand: state.carried[i] for i, edge in enumerate(state.scene.edges)}
    assert carried == {"0": 0, "1": 2, "2": 1, "3": 0}
    assert [entry.text for entry in legend_entries(state)][:4] == [
        "equal", "born here", "inherited", "not compared",
    ]  # fmt: skip


def test_edges_are_painted_in_the_colour_of_the_difference(window):
    canvas, full = window.graph_view.canvas, window.theme.color("div")
    canvas.reduced_motion = True
    canvas.set_orientation("left-right")
    canvas.zoom_reset()
    canvas.center_on("plus")
    window.session.select("out")  # so that no other edge is highlighted
    shot = canvas.grab().toImage()
    widths = {}
    for source, target in (("in", "times"), ("times", "plus"), ("plus", "sign")):
        left, right = canvas.box_rect(source), canvas.box_rect(target)
        x = round(left.right() + 0.3 * (right.left() - left.right()))
        found = [shot.pixelColor(x, y) for y in range(round(left.top()), round(left.bottom()))]
        yellow = [max(0, color.red() - color.blue()) for color in found]
        widths[source] = sum(yellow) / (full.red() - full.blue())
    assert widths["in"] == 0
    assert widths["times"] == pytest.approx(3, abs=0.3)
    assert widths["plus"] == pytest.approx(2, abs=0.3)


def test_a_selected_box_keeps_the_colour_of_its_edges(window):
    state = window.graph_view.canvas._state
    numbers = {edge.operand: i for i, edge in enumerate(state.scene.edges)}
    window.session.select("times")
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
    window.session.comparing.clear()
    assert canvas._state.marks == {}
    assert not canvas._state.carried.any()
    assert canvas._painter.look(1).mark is None
    assert legend_entries(canvas._state)[0].text == "executed"
    assert "reference" not in canvas.accessibleDescription()
