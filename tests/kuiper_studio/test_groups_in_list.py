"""Groups in the list of operators: the same ones are open as in the graph."""

from __future__ import annotations

import numpy as np
import pytest
from on_screen import find, find_action
from PySide6.QtCore import QItemSelectionModel, QPoint, Qt
from PySide6.QtWidgets import QTabBar

from kuiper_studio.item_models import OperatorColumn, OperatorRole, boundary_rows

SHAPE = "#{0}=(2,3)f32"
HEAD = [f"head.t{n}" for n in range(6)]
CLOSED = ["image", "body ×10", "head", "out"]


def network(blocks=10, length=6):
    """Equal blocks, and a head of six operators: 68 in all, which open in groups."""
    lines, last = [f"pnnx.Input image 0 1 0 {SHAPE.format(0)}"], 0
    for block in range(blocks):
        for part in range(length):
            kind = "F.sigmoid" if part == 2 else "F.relu"
            name = f"body.{block}.p{part}"
            lines.append(f"{kind} {name} 1 1 {last} {last + 1} {SHAPE.format(last + 1)}")
            last += 1
    for part in range(6):
        name = f"head.t{part}"
        lines.append(f"F.tanh {name} 1 1 {last} {last + 1} {SHAPE.format(last + 1)}")
        last += 1
    return (*lines, f"pnnx.Output out 1 0 {last}")


@pytest.fixture
def window(qtbot, open_window, make_pair):
    made = open_window(make_pair(*network()), [np.ones((2, 3), np.float32)])
    qtbot.waitUntil(lambda: made.graph_view.canvas.laid_out)
    made.graph_view.canvas.viewport.reduced_motion = True
    return made


def shown(window):
    """Groups by the text of their rows, operators by their names."""
    rows = window.operators_panel.table.model()
    found = []
    for row in range(rows.rowCount()):
        about = rows.index(row, 0).data(OperatorRole.OUTLINE)
        is_group = about is not None and about.group is not None
        text = rows.index(row, OperatorColumn.TYPE if is_group else OperatorColumn.NAME)
        found.append(text.data())
    return found


def in_graph(window):
    return [box.name for box in window.graph_view.canvas._scene.boxes]


def current(window):
    return shown(window)[window.operators_panel.table.currentIndex().row()]


def go_to(window, text):
    table = window.operators_panel.table
    table.setCurrentIndex(table.model().index(shown(window).index(text), OperatorColumn.TYPE))


def press(qtbot, window, *keys):
    for key in keys:
        qtbot.keyClick(window.operators_panel.table, key)


def click_twisty(qtbot, window, text):
    table = window.operators_panel.table
    index = table.model().index(shown(window).index(text), OperatorColumn.TYPE)
    table.scrollTo(index)
    place = table.visualRect(index)
    qtbot.mouseClick(
        table.viewport(),
        Qt.MouseButton.LeftButton,
        pos=QPoint(place.left() - 5, place.center().y()),
    )


def test_the_list_opens_in_the_groups_of_the_graph(window):
    assert shown(window) == CLOSED
    assert window.operators_panel.suffix == "0 / 68"
    window.actions_by_id["view.groups"].trigger()
    assert len(shown(window)) == 68
    window.actions_by_id["view.groups"].trigger()
    assert shown(window) == CLOSED


def test_the_arrow_opens_and_closes_here_and_in_the_graph(qtbot, window):
    click_twisty(qtbot, window, "head")
    assert shown(window) == ["image", "body ×10", "head", *HEAD, "out"]
    assert in_graph(window)[2:] == [*HEAD, "out"]
    click_twisty(qtbot, window, "head")
    assert shown(window) == CLOSED
    assert in_graph(window) == ["image", "body", "head", "out"]


def test_what_opens_in_the_graph_opens_in_the_list(window):
    canvas = window.graph_view.canvas
    canvas.pick_group(canvas._grouping.folding.root.children[1])
    assert current(window) == "head"
    canvas.open_group()
    assert shown(window)[2:] == ["head", *HEAD, "out"]
    assert current(window) == "head"
    canvas.close_all_groups()
    assert shown(window) == CLOSED
    window.grouping.open_all()
    assert len(shown(window)) == 68 + 11  # ten blocks, and the head


def test_keys(qtbot, window):
    right, left, down, enter = (
        Qt.Key.Key_Right,
        Qt.Key.Key_Left,
        Qt.Key.Key_Down,
        Qt.Key.Key_Return,
    )
    go_to(window, "head")
    assert window.graph_view.canvas.picked_group.name == "head"
    press(qtbot, window, right)
    assert shown(window)[2:] == ["head", *HEAD, "out"]
    press(qtbot, window, right, down)  # into it
    assert (current(window), window.session.selected) == ("head.t1", "head.t1")
    assert window.graph_view.canvas.picked_group is None
    press(qtbot, window, left)
    assert current(window) == "head"
    assert window.session.selected == "head.t1"
    press(qtbot, window, left)
    assert shown(window) == CLOSED
    press(qtbot, window, enter)
    assert len(shown(window)) == 10
    press(qtbot, window, enter)
    assert shown(window) == CLOSED


def test_equal_blocks_open_one_by_one_and_close_to_one_row(qtbot, window):
    go_to(window, "body ×10")
    press(qtbot, window, Qt.Key.Key_Right)
    blocks = [f"body.{n}" for n in range(10)]
    assert shown(window) == ["image", *blocks, "head", "out"]
    assert current(window) == "body.0"
    press(qtbot, window, Qt.Key.Key_Left)
    assert shown(window) == CLOSED


def test_selecting_an_operator_reveals_its_row(window):
    window.session.select("body.4.p3")
    assert current(window) == "body.4.p3"
    assert "body.4.p3" in in_graph(window)
    table = window.operators_panel.table
    assert table.viewport().rect().contains(table.visualRect(table.currentIndex()))


def test_stepping_opens_nothing_and_marks_the_group(qtbot, window):
    for _ in range(5):
        window.actions_by_id["debug.step"].trigger()
        qtbot.waitUntil(lambda: not window.session.busy)
    assert shown(window) == CLOSED
    assert current(window) == "body ×10"
    assert window.session.selected == "body.0.p4"
    assert [each.name for each in window.operators_panel.selected_operators] == ["body.0.p4"]


def test_a_selected_group_stands_for_its_operators(window):
    go_to(window, "head")
    panel = window.operators_panel
    assert [each.name for each in panel.selected_operators] == HEAD
    flags = QItemSelectionModel.SelectionFlag
    rows = panel.table.model()
    panel.table.selectionModel().select(rows.index(0, 0), flags.Select | flags.Rows)
    assert [each.name for each in panel.selected_operators] == ["image", *HEAD]


def test_an_operator_of_before_is_selected_again(qtbot, window):
    window.session.select("out")
    press(qtbot, window, Qt.Key.Key_Up)
    assert window.graph_view.canvas.picked_group.name == "head"
    press(qtbot, window, Qt.Key.Key_Down)
    assert window.graph_view.canvas.picked_group is None
    assert (current(window), window.session.selected) == ("out", "out")


def test_a_filter_and_an_order_show_all_operators(window):
    panel = window.operators_panel
    panel.set_filter("tanh")
    assert shown(window) == HEAD
    panel.set_filter("")
    assert shown(window) == CLOSED
    panel.toggle_sort_by_time()
    assert len(shown(window)) == 68
    panel.toggle_sort_by_time()
    assert shown(window) == CLOSED


def test_a_click_in_the_gutter_of_a_group(qtbot, window):
    """It stops before the group; another one removes what stops inside."""
    table, session = window.operators_panel.table, window.session

    def click():
        index = table.model().index(2, OperatorColumn.BREAKPOINT)
        place = table.visualRect(index).center()
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)

    click()
    assert session.breakpoints == {"head.t0"}
    session.toggle_breakpoint("head.t3")
    click()
    assert session.breakpoints == frozenset()


def test_another_model_has_its_own_groups(qtbot, window, make_pair):
    other = make_pair(*network(blocks=12), name="other")
    window.session.open(other)
    qtbot.waitUntil(lambda: window.session.model_path == other and not window.session.busy)
    assert shown(window) == ["image", "body ×12", "head", "out"]
    small = make_pair(*network(blocks=2), name="small")
    window.session.open(small)
    qtbot.waitUntil(lambda: window.session.model_path == small and not window.session.busy)
    assert len(shown(window)) == 20


def test_the_table_is_copied_with_all_operators(qapp, window):
    find_action(window.operators_panel, "Copy table").trigger()
    assert len(qapp.clipboard().text().splitlines()) == 69


class TestProperties:
    """The properties tell of a selected group: the body has 10 blocks of 6 operators."""

    @staticmethod
    def facts(window):
        model = window.properties_panel.parameters
        rows = range(model.rowCount())
        return {model.index(row, 0).data(): model.index(row, 1).data() for row in rows}

    @staticmethod
    def operands(window):
        model = window.properties_panel.operands
        rows = range(model.rowCount())
        return [[model.index(row, c).data() for c in (0, 1, 4)] for row in rows]

    def test_of_a_selected_group(self, qtbot, window):
        go_to(window, "body ×10")
        panel = window.properties_panel
        qtbot.waitUntil(lambda: "operators" in self.facts(window))
        facts = self.facts(window)
        assert (facts["operators"], facts["indexes"]) == ("60", "#1 to #60")
        assert facts["blocks"] == "10"
        assert facts["run"] == "0 of 60"
        assert "time" not in facts
        assert (facts["F.relu"], facts["F.sigmoid"]) == ("×50", "×10")
        assert facts["outputs"] == "1.4 kB"  # 60 outputs of six float32
        assert self.operands(window) == [["in", "0", "image"], ["out", "60", "head.t0"]]
        assert find(panel, QTabBar, "Parts of the properties").tabText(0) == "Contents"
        window.session.notes_changed.emit()
        assert self.facts(window) == facts
        window.session.resume()
        qtbot.waitUntil(lambda: window.session.selected == "out" and not window.session.busy)
        go_to(window, "body ×10")
        qtbot.waitUntil(lambda: self.facts(window).get("run") == "60 of 60")
        seconds = [record.seconds for record in window.session.snapshot.records]
        share = round(100 * sum(seconds[1:61]) / sum(seconds), 1)  # a small one is not 0 %
        assert self.facts(window)["time"].endswith(f", {share} %")

    def test_the_operator_comes_back(self, qtbot, window):
        window.session.select("head.t3")
        panel = window.properties_panel
        qtbot.waitUntil(lambda: panel.operator is not None)
        go_to(window, "body ×10")
        qtbot.waitUntil(lambda: panel.operator is None)
        window.session.select("image")
        go_to(window, "image")
        qtbot.waitUntil(lambda: panel.operator is not None)
        assert panel.operator.name == "image"
        assert find(panel, QTabBar, "Parts of the properties").tabText(0) == "Parameters"
        assert find(panel, QTabBar, "Parts of the properties").isTabEnabled(3)
        assert "operators" not in self.facts(window)

    def test_a_kept_operator_stays(self, qtbot, window):
        window.session.select("head.t3")
        panel = window.properties_panel
        panel.catch_up()
        panel.title_actions()[0].setChecked(True)
        go_to(window, "body ×10")
        panel.catch_up()
        assert panel.operator.name == "head.t3"
        panel.title_actions()[0].setChecked(False)
        assert panel.operator is None

    def test_operands_of_a_group_with_several_ends(self, window, make_pair, qtbot):
        """One operand enters twice, one is read inside and outside, one is read by nobody."""
        lines = (
            f"pnnx.Input a 0 1 0 {SHAPE.format(0)}",
            f"F.relu g.x 1 1 0 1 {SHAPE.format(1)}",
            f"F.relu g.y 1 1 0 2 {SHAPE.format(2)}",
            f"F.relu g.z 1 1 1 3 {SHAPE.format(3)}",
            "F.relu o 1 1 1 4",
            "F.relu p 1 1 1 5",
            "pnnx.Output out 2 0 4 5",
        )
        window.session.open(make_pair(*lines))
        qtbot.waitUntil(lambda: window.session.graph is not None and not window.session.busy)
        found = [
            (row.direction, row.operand.name, row.peer.name if row.peer else "")
            for row in boundary_rows(window.session.graph.operators[1:4])
        ]
        assert found == [
            ("in", "0", "a"), ("out", "1", "o"), ("", "1", "p"), ("out", "2", ""),
            ("out", "3", ""),
        ]  # fmt: skip
