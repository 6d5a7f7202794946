"""Find, paths and bookmarks, triggered and read as a user does."""

from __future__ import annotations

import pytest
from driving import choose, enabled
from PySide6.QtCore import QItemSelectionModel, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QLineEdit, QMenu

from kuiper_studio.item_models import OperatorColumn

# in -> relu -> tanh -> add -> out, and in -> sigmoid -> add
LINES = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    "F.relu relu 1 1 0 1 #1=(1,3,8,8)f32",
    "F.tanh tanh 1 1 1 2 #2=(1,3,8,8)f32",
    "F.sigmoid sigmoid 1 1 0 3 #3=(1,3,8,8)f32",
    "pnnx.Expression add 2 1 2 3 4 expr=add(@0,@1) #4=(1,3,8,8)f32",
    "pnnx.Output out 1 0 4",
)


@pytest.fixture
def model(make_pair):
    return make_pair(*LINES)


@pytest.fixture
def window(open_window, model):
    return open_window(model, ["ones"])


def shown(window, name="findCount"):
    found = window.findChild(QLabel, name)
    return found.text() if found.isVisible() else None


def find(qtbot, window, text):
    choose(window, "edit.find")
    field = window.findChild(QLineEdit, "findField")
    qtbot.waitUntil(field.hasFocus)
    qtbot.keyClicks(field, text)
    return field


def dimmed(window):
    """Names of the operators whose indexes are painted faintly, in the dark theme.

    That of the selected one never is.
    """
    table = window.operators_panel.table
    picture, rows = table.viewport().grab().toImage(), table.model()
    scale = picture.devicePixelRatio()
    usual = window.theme.color("text2").lightness()

    def is_dark(row):
        cell = table.visualRect(rows.index(row, OperatorColumn.INDEX))
        places = (
            (round(x * scale), round(y * scale))
            for x in range(cell.left(), cell.right())
            for y in range(cell.top(), cell.bottom())
        )
        return max(picture.pixelColor(*place).lightness() for place in places) < 0.6 * usual

    return [
        rows.index(row, OperatorColumn.NAME).data()
        for row in range(rows.rowCount())
        if is_dark(row)
    ]


def lightest(window, name):
    """How light the lightest pixel is along the type of a box, in the dark theme."""
    canvas = window.graph_view.canvas
    image = canvas.grab().toImage()
    rect = canvas.box_rect(name)
    y = round(rect.top() + 27 * canvas.zoom)
    across = range(round(rect.left()) + 8, round(rect.right()) - 8)
    return max(image.pixelColor(x, y).lightness() for x in across)


def test_a_search_marks_counts_and_steps(qtbot, window):
    before = lightest(window, "sigmoid")
    field = find(qtbot, window, "type:F.")

    assert shown(window) == "3 found"
    assert dimmed(window) == ["add", "out"]  # and `in` is selected
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert (window.session.selected, shown(window)) == ("relu", "1 of 3")
    for name, count in (("tanh", "2 of 3"), ("sigmoid", "3 of 3"), ("relu", "1 of 3")):
        choose(window, "edit.findNext")
        assert (window.session.selected, shown(window)) == (name, count)
    choose(window, "edit.findPrevious")
    assert window.session.selected == "sigmoid"
    window.session.select("out")
    assert shown(window) == "3 found"

    field.clear()
    qtbot.keyClicks(field, "tanh")
    assert lightest(window, "sigmoid") < before / 2
    qtbot.keyClick(field, Qt.Key.Key_Escape)
    assert dimmed(window) == []
    assert not window.graph_view.find_bar.isVisible()
    assert lightest(window, "sigmoid") > before * 0.9
    assert not enabled(window, "edit.findNext")
    assert window.graph_view.canvas.hasFocus()


def test_an_error_is_one_sentence_and_goes_with_its_cause(qtbot, window):
    field = find(qtbot, window, "has ga")

    expected = "Has ga is unknown: write has nan or has inf."
    qtbot.waitUntil(lambda: shown(window, "findHint") == expected)
    field.clear()
    assert shown(window, "findHint") is None
    assert dimmed(window) == []


def test_values_that_are_not_there_yet_are_counted(qtbot, window):
    find(qtbot, window, "max>0.9")
    assert shown(window) == "Nothing found · 5 operators without a value yet"

    choose(window, "debug.continue")
    # relu(1) = 1, tanh(1) = 0.76, sigmoid(1) = 0.73, and their sum
    qtbot.waitUntil(lambda: shown(window) == "3 found", timeout=10_000)
    assert dimmed(window) == ["tanh", "sigmoid"]  # and `out` is selected


def test_upstream_and_downstream(qtbot, window):
    window.session.select("")
    assert not enabled(window, "edit.markUpstream")
    window.session.select("tanh")
    choose(window, "edit.markUpstream")
    assert shown(window) == "3 of 3 operators upstream of tanh"
    assert dimmed(window) == ["sigmoid", "add", "out"]

    choose(window, "edit.markDownstream")
    assert shown(window) == "1 of 3 operators downstream of tanh"
    assert dimmed(window) == ["in", "relu", "sigmoid"]

    qtbot.keyClick(window.graph_view.canvas, Qt.Key.Key_Escape)
    assert dimmed(window) == []


def test_paths_to_the_operator_that_is_clicked_next(qtbot, window):
    window.session.select("relu")
    choose(window, "edit.markPaths")
    assert shown(window) == "Paths from relu: select another operator"

    canvas = window.graph_view.canvas
    there = canvas.box_rect("out").center().toPoint()
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=there)
    assert shown(window) == "4 of 4 operators on paths from relu to out"
    assert dimmed(window) == ["in", "sigmoid"]

    window.session.select("relu")
    choose(window, "edit.markPaths")
    window.session.select("sigmoid")
    assert shown(window) == "No operator on paths from relu to sigmoid"


def test_paths_between_two_operators_of_the_list(qtbot, window):
    table, rows = window.operators_panel.table, window.operators_panel.rows
    table.setCurrentIndex(rows.index(0, 0))
    flags = QItemSelectionModel.SelectionFlag
    table.selectionModel().select(rows.index(3, 0), flags.Select | flags.Rows)
    choose(window, "edit.markPaths")

    assert dimmed(window) == ["relu", "tanh", "add", "out"]


def press_undo(qtbot, window, widget):
    window.activateWindow()
    widget.setFocus()
    qtbot.waitUntil(widget.hasFocus)
    qtbot.keyClick(widget, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)


def test_a_field_undoes_what_was_typed(qtbot, window):
    window.session.select("tanh")
    choose(window, "edit.toggleBookmark")
    field = find(qtbot, window, "relu")
    press_undo(qtbot, window, field)
    assert field.text() == ""
    assert window.session.bookmarks.names == ("tanh",)


def test_removing_all_marks_is_undone(qtbot, open_window, model, window):
    session = window.session
    for name in ("tanh", "relu"):
        session.select(name)
        choose(window, "edit.toggleBookmark")
        choose(window, "debug.toggleBreakpoint")
    choose(window, "edit.clearBookmarks")
    choose(window, "debug.clearBreakpoints")
    assert (session.bookmarks.names, session.breakpoints) == ((), set())

    press_undo(qtbot, window, window.graph_view.canvas)
    assert (session.bookmarks.names, session.breakpoints) == ((), {"relu", "tanh"})
    assert shown(window, "statusAnnouncement") == "undone: 2 breakpoints deleted"
    choose(window, "edit.undo")
    assert session.bookmarks.names == ("relu", "tanh")
    assert shown(window, "statusAnnouncement") == "undone: 2 bookmarks removed"
    window.close()
    assert open_window(model, ["ones"]).session.bookmarks.names == ("relu", "tanh")


def test_single_marks_are_undone_in_turn(window):
    session = window.session
    assert not enabled(window, "edit.undo")
    session.select("tanh")
    choose(window, "edit.toggleBookmark")
    choose(window, "debug.toggleBreakpoint")
    choose(window, "edit.toggleBookmark")
    choose(window, "edit.undo")
    assert (session.bookmarks.names, session.breakpoints) == (("tanh",), {"tanh"})
    choose(window, "edit.undo")
    assert (session.bookmarks.names, session.breakpoints) == (("tanh",), set())
    choose(window, "edit.undo")
    assert (session.bookmarks.names, session.breakpoints) == ((), set())
    assert not enabled(window, "edit.undo")
    tip = window.findChild(QAction, "edit.undo").toolTip()
    assert "No bookmark or breakpoint was changed" in tip


def test_marks_of_another_model_are_not_undone(qtbot, make_pair, window):
    window.session.select("tanh")
    choose(window, "debug.toggleBreakpoint")
    other = make_pair(*LINES, name="other")
    window.session.open(other)
    qtbot.waitUntil(lambda: window.session.graph.source_path == other)
    assert not enabled(window, "edit.undo")


def test_bookmarks_are_set_stepped_through_and_remembered(qtbot, open_window, model, window):
    assert not enabled(window, "edit.nextBookmark")
    for name in ("tanh", "add", "relu"):
        window.session.select(name)
        choose(window, "edit.toggleBookmark")
    assert window.session.bookmarks.names == ("relu", "tanh", "add")
    for name in ("tanh", "add", "relu"):
        choose(window, "edit.nextBookmark")
        assert window.session.selected == name
    choose(window, "edit.previousBookmark")
    assert window.session.selected == "add"
    choose(window, "edit.toggleBookmark")

    menu = QMenu()
    window.finding.fill_bookmarks(menu)
    assert [action.text() for action in menu.actions()] == [
        "&1 relu · F.relu\tCtrl+1",
        "&2 tanh · F.tanh\tCtrl+2",
    ]
    menu.actions()[0].trigger()
    assert window.session.selected == "relu"
    choose(window, "edit.goToBookmark2")
    assert window.session.selected == "tanh"
    choose(window, "edit.goToBookmark10")
    assert window.session.selected == "tanh"
    told = window.session.workspace.log_entries[-1].text
    assert told == "no bookmark 10, only 2 bookmarks"
    window.close()

    again = open_window(model, ["ones"])
    assert again.session.bookmarks.names == ("relu", "tanh")
    assert {path.name for path in model.parent.iterdir()} == {
        "m.pnnx.param", "m.pnnx.bin", "settings.ini",
    }  # fmt: skip
    choose(again, "edit.clearBookmarks")
    assert not enabled(again, "edit.nextBookmark")
    again.close()
    assert open_window(model, ["ones"]).session.bookmarks.names == ()
