from __future__ import annotations

import pytest
from on_screen import find, find_action, texts
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QToolButton

from kuiper_studio.item_models import OperatorColumn, OperatorRole
from kuiper_studio.panels.operators_panel import OperatorsPanel


@pytest.fixture
def panel(qtbot, studio, theme) -> OperatorsPanel:
    made = OperatorsPanel(studio, theme)
    qtbot.addWidget(made)
    made.resize(346, 400)
    made.show()
    return made


def shown(panel) -> list[str]:
    rows = range(panel.rows.rowCount())
    return [panel.rows.index(row, OperatorColumn.NAME).data() for row in rows]


def click(qtbot, panel, row: int, column: OperatorColumn, *, double: bool = False) -> None:
    place = panel.table.visualRect(panel.rows.index(row, column)).center()
    qtbot.mouseClick(panel.table.viewport(), Qt.LeftButton, pos=place)
    if double:
        qtbot.mouseDClick(panel.table.viewport(), Qt.LeftButton, pos=place)


def test_names(panel) -> None:
    assert panel.objectName() == "operators"
    assert panel.windowTitle() == "Operators"


def test_suffix_counts_what_ran(panel, studio, step) -> None:
    assert panel.suffix == "0 / 8"
    step(studio, 3)
    assert panel.suffix == "3 / 8"
    studio.close_model()
    assert panel.suffix == ""


def test_the_session_selects(panel, studio) -> None:
    studio.select("add")
    assert panel.table.currentIndex().data(OperatorRole.OPERATOR).name == "add"
    assert len(panel.table.selectionModel().selectedRows()) == 1


def test_the_user_selects(qtbot, panel, studio) -> None:
    click(qtbot, panel, 4, OperatorColumn.TYPE)
    assert studio.selected == "layer2.pool"
    assert studio.operand == "4"


def test_arrow_keys_select(qtbot, panel, studio) -> None:
    studio.select("add")
    panel.table.setFocus()
    qtbot.keyClick(panel.table, Qt.Key_Down)
    assert studio.selected == "layer2.pool"


@pytest.mark.parametrize("way", ["Enter", "double click"])
def test_showing_the_output(qtbot, panel, studio, way) -> None:
    studio.select("add")
    studio.show_operand("0")
    if way == "Enter":
        qtbot.keyClick(panel.table, Qt.Key_Return)
    else:
        click(qtbot, panel, 3, OperatorColumn.NAME, double=True)
    assert studio.operand == "3"


def test_a_click_into_the_gutter_sets_a_breakpoint(qtbot, panel, studio) -> None:
    click(qtbot, panel, 3, OperatorColumn.BREAKPOINT)
    assert studio.breakpoints == {"add"}
    click(qtbot, panel, 3, OperatorColumn.BREAKPOINT)
    assert studio.breakpoints == frozenset()


def test_filter(qtbot, panel) -> None:
    qtbot.keyClicks(panel.filter_box, "layer1")
    assert shown(panel) == ["layer1.conv", "layer1.relu"]
    qtbot.keyClick(panel.filter_box, Qt.Key_Escape)
    assert len(shown(panel)) == 8


def test_the_selection_outlives_the_filter(panel, studio) -> None:
    studio.select("add")
    panel.set_filter("type:conv")
    assert panel.table.selectionModel().selectedRows() == []
    assert studio.selected == "add"
    panel.set_filter("")
    assert panel.table.currentIndex().data(OperatorRole.OPERATOR).name == "add"


def test_wrong_filter_is_explained(panel) -> None:
    panel.set_filter("colour:red")
    assert panel.filter_box.property("invalid")
    assert "colour: is unknown" in texts(panel)
    panel.set_filter("")
    assert "is unknown" not in texts(panel)


def test_only_problems(panel, studio) -> None:
    problems = find(
        panel, QToolButton,
        "Only operators that failed, are blocked, cannot run, or gave NaN or Inf",
    )  # fmt: skip
    problems.click()
    assert shown(panel) == ["strange"]
    problems.click()
    studio.toggle_breakpoint("tail")
    find(panel, QToolButton, "Only operators with a breakpoint").click()
    assert shown(panel) == ["tail"]


def test_enter_goes_from_the_filter_to_the_table(qtbot, panel, studio) -> None:
    panel.activateWindow()
    panel.focus_filter()
    qtbot.keyClicks(panel.filter_box, "pool")
    qtbot.keyClick(panel.filter_box, Qt.Key_Return)
    assert studio.selected == "layer2.pool"


def test_commands_about_the_selected_operator(panel, studio) -> None:
    studio.select("layer1.relu")
    panel.copy_name()
    assert QGuiApplication.clipboard().text() == "layer1.relu"
    panel.copy_type()
    assert QGuiApplication.clipboard().text() == studio.graph.operator("layer1.relu").type
    panel.show_output()
    assert studio.operand == "2"
    panel.filter_by_type()
    assert shown(panel) == ["layer1.relu", "tail"]


def test_no_operator_is_selected(qtbot, empty_session, theme) -> None:
    panel = OperatorsPanel(empty_session, theme)
    qtbot.addWidget(panel)
    for command in (panel.copy_name, panel.copy_type, panel.show_output, panel.filter_by_type):
        command()
    assert not panel.filter_box.text()


def test_copying(qtbot, panel, studio) -> None:
    studio.select("add")
    panel.copy_line()
    assert QGuiApplication.clipboard().text() == "pending\t3\tpnnx.Expression\tadd\t4×8×8\t"
    find_action(panel, "Copy table").trigger()
    lines = QGuiApplication.clipboard().text().splitlines()
    assert lines[0] == "state\tindex\ttype\tname\toutput\tms"
    assert lines[2].split("\t") == ["pending", "1", "nn.Conv2d", "layer1.conv", "4×8×8", ""]


def test_comfortable_rows(panel) -> None:
    before = panel.table.rowHeight(0)
    panel.set_comfortable(True)
    assert (before, panel.table.rowHeight(0)) == (22, 28)


def test_columns_fill_the_table(panel) -> None:
    header = panel.table.horizontalHeader()
    panel.resize(500, 300)
    assert header.length() == panel.table.viewport().width()


def test_a_large_model_is_quick(qtbot, make_pair, empty_session, theme) -> None:
    lines = ["pnnx.Input in 0 1 0 #0=(1,3)f32"]
    lines += [f"nn.ReLU relu_{i} 1 1 {i} {i + 1}" for i in range(3000)]
    panel = OperatorsPanel(empty_session, theme)
    qtbot.addWidget(panel)
    panel.show()
    empty_session.open(make_pair(*lines, "pnnx.Output out 1 0 3000"))
    qtbot.waitUntil(lambda: panel.suffix == "0 / 3002", timeout=10_000)
    panel.set_filter("#2999-3000")
    assert shown(panel) == ["relu_2998", "relu_2999"]


def test_painting_follows_the_state(panel, studio, theme, step, settle) -> None:
    """Ink of the right colour at the glyph: green done, amber next."""

    def colors(row: int) -> set[str]:
        cell = panel.table.visualRect(panel.rows.index(row, OperatorColumn.STATE))
        image = panel.table.viewport().grab(cell).toImage()
        return {
            image.pixelColor(x, y).name().upper()
            for x in range(image.width())
            for y in range(image.height())
        }

    step(studio)
    studio.select("tail")
    assert theme.tokens.done in colors(0)
    assert theme.tokens.cur in colors(1)
    assert theme.tokens.cur not in colors(2)


def test_home_and_end_go_to_the_first_and_the_last_operator(qtbot, panel, studio) -> None:
    panel.table.setFocus()
    qtbot.keyClick(panel.table, Qt.Key_End)
    assert studio.selected == "out"
    qtbot.keyClick(panel.table, Qt.Key_Home)
    assert studio.selected == "in"


def test_key_context_menu_opens_at_the_row(qtbot, panel, studio) -> None:
    studio.select("add")
    heard = []
    panel.menu_requested.connect(lambda name, place: heard.append(name))
    reason = QContextMenuEvent.Reason.Keyboard
    event = QContextMenuEvent(reason, QPoint(0, 0), QPoint(0, 0))
    panel.table.contextMenuEvent(event)
    assert heard == ["add"]


def test_signs_mark_what_is_random_and_bookmarked(qtbot, open_model, noisy, theme) -> None:
    session = open_model(noisy)
    panel = OperatorsPanel(session, theme)
    qtbot.addWidget(panel)
    panel.resize(346, 400)
    panel.show()

    def marked() -> list[int]:
        """Rows with ink at the right end of the name."""
        drawn = panel.table.viewport().grab().toImage()

        def ink(row: int) -> set[int]:
            cell = panel.table.visualRect(panel.rows.index(row, OperatorColumn.NAME))
            columns = range(cell.right() - 15, cell.right() - 1)
            rows = range(cell.top() + 2, cell.bottom() - 2)
            return {drawn.pixel(x, y) for x in columns for y in rows}

        return [row for row in range(panel.rows.rowCount()) if len(ink(row)) > 1]

    assert marked() == [2, 3]  # are random
    session.bookmarks.toggle(session.graph.operators[4].name)
    assert marked() == [2, 3, 4]


def test_times_keep_off_the_edge_of_the_panel(qtbot, panel) -> None:
    def width() -> int:
        return panel.table.horizontalHeader().sectionSize(OperatorColumn.MS)

    assert width() == 39  # the bar would be beside them
    panel.resize(346, 150)
    qtbot.waitUntil(lambda: width() == 34)


def test_selection_behind_what_is_in_view_shows_what_comes_next(panel, studio) -> None:
    panel.resize(346, 190)

    def in_view(row: int) -> bool:
        place = panel.table.visualRect(panel.rows.index(row, OperatorColumn.NAME))
        return panel.table.viewport().rect().contains(place.center())

    first_hidden = next(row for row in range(8) if not in_view(row))
    studio.select(studio.graph.operators[first_hidden].name)
    assert in_view(first_hidden)
    assert in_view(first_hidden + 1)


def test_a_filter_says_how_many_it_leaves(panel) -> None:
    assert panel.suffix == "0 / 8"
    panel.set_filter("type:nn.ReLU")
    assert panel.suffix == "0 / 8 · 2 of 8 listed"
    panel.set_filter("")
    assert panel.suffix == "0 / 8"


def test_after_scrolling_the_row_under_the_mouse_is_hovered(qtbot, panel) -> None:
    table = panel.table
    panel.resize(346, 220)  # so that not all rows fit
    table.scrollToTop()
    place = table.visualRect(panel.rows.index(1, OperatorColumn.TYPE)).center()
    qtbot.mouseMove(table.viewport(), place)
    qtbot.waitUntil(lambda: hovered_rows(panel) == [1])
    table.scrollToBottom()
    under = table.indexAt(place).row()
    assert under > 1
    assert hovered_rows(panel) == [under]


def hovered_rows(panel) -> list[int]:
    """Rows of which both ends are painted in the colour of hovering."""
    picture = panel.table.viewport().grab().toImage()
    seen = []
    for row in range(panel.rows.rowCount()):
        rect = panel.table.visualRect(panel.rows.index(row, OperatorColumn.TYPE))
        y = rect.center().y() + rect.height() // 2 - 2
        if not 0 <= y < picture.height():
            continue
        ends = {picture.pixelColor(x, y).name() for x in (2, picture.width() - 3)}
        if ends == {panel.table._theme.color("hover").name()}:
            seen.append(row)
    return seen
