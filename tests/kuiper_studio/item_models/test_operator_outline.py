"""The operators with rows of groups, as a table shows them."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt

from engine.inputs import parse_array_file
from kuiper_studio.item_models import (
    OperatorColumn,
    OperatorRole,
    OperatorsFilterModel,
    OperatorsModel,
    OutlineModel,
)
from kuiper_studio.item_models.operator_outline import group_status
from kuiper_studio.item_models.statuses import DisplayStatus
from kuiper_studio.layout.groups import Group, OutlineRow
from kuiper_studio.session.overlaying import OverlayKind

S = DisplayStatus
COLUMN = OperatorColumn
FRONT = Group("layer1", 1, 2)
INNER = Group("back.end", 5, 6)
BACK = Group("back", 4, 6, (INNER,))
CLOSED = (
    OutlineRow(0, 0),
    OutlineRow(FRONT, 0, "layer1"),
    OutlineRow(3, 0),
    OutlineRow(BACK, 0, "back"),
    OutlineRow(7, 0),
)
OPEN = (
    *CLOSED[:3],
    OutlineRow(BACK, 0, "back", is_open=True),
    OutlineRow(4, 1),
    OutlineRow(INNER, 1, "back.end", is_open=True),
    OutlineRow(5, 2),
    OutlineRow(6, 2),
    OutlineRow(7, 0),
)


@pytest.fixture
def model(studio):
    return OperatorsModel(studio)


@pytest.fixture
def outline(studio, model):
    """The residual net in two groups, the second open, with another open group inside."""
    made = OutlineModel(studio, model)
    made.show_rows(OPEN)
    return made


@pytest.fixture
def rows(model, outline):
    made = OperatorsFilterModel(model, outline=outline)
    made.choose_source()
    return made


def column(model, which, role=Qt.ItemDataRole.DisplayRole):
    return [model.index(row, which).data(role) for row in range(model.rowCount())]


def states(model):
    return [cells.status for cells in column(model, 0, OperatorRole.CELLS)]


def names(model):
    """Of groups what stands in the column of types, of operators their names."""
    return [
        a if row.group else b
        for row, a, b in zip(
            column(model, 0, OperatorRole.OUTLINE),
            column(model, COLUMN.TYPE),
            column(model, COLUMN.NAME),
            strict=True,
        )
    ]


def test_models_are_sound(outline, rows, qtmodeltester):
    qtmodeltester.check(outline)
    assert rows.is_outlined
    qtmodeltester.check(rows)


def test_groups_stand_before_what_is_in_them(rows):
    assert names(rows) == [
        "in", "layer1", "add", "back", "layer2.pool", "back.end", "strange", "tail", "out"
    ]  # fmt: skip


def test_an_operator_is_found_in_the_closed_group_around_it(outline):
    assert [outline.row_of(place) for place in range(-1, 8)] == [-1, 0, 1, 1, 2, 4, 6, 7, 8]
    assert [outline.parent_row(row) for row in range(9)] == [-1, -1, -1, -1, 3, 3, 5, 5, -1]
    assert (outline.row_of_group(INNER), outline.row_of_group(Group("x", 1, 6))) == (5, -1)


def test_counts_times_and_states_of_a_run(studio, outline, step):
    assert column(outline, COLUMN.OUTPUT)[1::2][:3] == ["2 op", "3 op", "2 op"]
    assert column(outline, COLUMN.MS)[1] == ""
    # The operator "strange" cannot run.
    assert states(outline)[1::2][:3] == [S.PENDING, S.UNSUPPORTED, S.UNSUPPORTED]
    step(studio, 2)
    assert column(outline, COLUMN.OUTPUT)[1] == "1 / 2"
    assert states(outline)[1] is S.CURRENT
    step(studio)
    assert column(outline, COLUMN.OUTPUT)[1] == "2 op"
    assert states(outline)[1] is S.EXECUTED
    records = studio.snapshot.records
    sum_in_ms = 1e3 * (records[1].seconds + records[2].seconds)
    assert float(column(outline, COLUMN.MS)[1]) == pytest.approx(sum_in_ms, rel=0.06, abs=0.01)
    studio.step_back()
    studio.step_back()
    studio.wait_idle()
    assert column(outline, COLUMN.OUTPUT)[1] == "2 op"
    assert states(outline)[1] is S.CURRENT


def test_a_group_with_an_output_of_the_user(studio, outline, settle, tmp_path):
    np.save(tmp_path / "five.npy", np.full((1, 4, 4, 4), 5, np.float32))
    studio.resume()
    settle(studio)
    studio.supply("strange", parse_array_file(str(tmp_path / "five.npy")))
    settle(studio)
    # "strange" is stepped over, so "tail" runs next.
    assert states(outline)[1::2][:3] == [S.EXECUTED, S.CURRENT, S.CURRENT]
    assert column(outline, COLUMN.OUTPUT)[1:6:2] == ["2 op", "2 / 3", "1 / 2"]
    studio.resume()
    settle(studio)
    assert states(outline)[1::2][:3] == [S.EXECUTED, S.SUPPLIED, S.SUPPLIED]


def test_only_rows_of_what_has_run_are_announced(studio, outline, step):
    heard = []
    outline.dataChanged.connect(lambda a, b: heard.append((a.row(), b.row())))
    step(studio, 4)
    assert {row for pair in heard for row in range(pair[0], pair[1] + 1)} == {0, 1, 2, 3, 4}
    assert max(last - first for first, last in heard) == 0
    heard.clear()
    studio.toggle_breakpoint("tail")  # in a group in a group
    assert sorted(heard) == [(3, 3), (5, 5), (7, 7)]


def test_changes_without_rows_are_not_lost(studio, outline, step):
    assert column(outline, COLUMN.OUTPUT)[1] == "2 op"
    outline.show_rows(())
    step(studio, 2)
    outline.show_rows(CLOSED)
    assert column(outline, COLUMN.OUTPUT)[1] == "1 / 2"


def test_breakpoints_inside(studio, outline):
    spoken = COLUMN.BREAKPOINT, Qt.ItemDataRole.AccessibleTextRole
    assert not any(column(outline, *spoken))
    studio.toggle_breakpoint("layer1.relu")
    outline.show_rows(CLOSED)
    assert column(outline, *spoken) == ["", "breakpoint inside", "", "", ""]


def test_what_is_read_aloud(outline):
    spoken = {
        which: column(outline, which, Qt.ItemDataRole.AccessibleTextRole) for which in COLUMN
    }
    assert spoken[COLUMN.TYPE][1] == "layer1, group, closed"
    assert spoken[COLUMN.TYPE][3] == "back, group, open"
    assert spoken[COLUMN.OUTPUT][3] == "3 operators, 0 run"
    assert spoken[COLUMN.STATE][3] == "cannot run"
    assert spoken[COLUMN.INDEX][3] == "4 to 6"
    assert spoken[COLUMN.NAME][2] == "add"


def test_a_stack_says_how_many_blocks_it_has(studio, model):
    blocks = (Group("a.0", 1, 2), Group("a.1", 3, 4))
    stack = Group("a", 1, 4, blocks, is_stack=True)
    outline = OutlineModel(studio, model)
    outline.show_rows((
        OutlineRow(0, 0), OutlineRow(stack, 0, "a"), *[OutlineRow(n, 0) for n in (5, 6, 7)]
    ))  # fmt: skip
    assert outline.index(1, COLUMN.TYPE).data() == "a ×2"
    role = Qt.ItemDataRole.AccessibleTextRole
    assert outline.index(1, COLUMN.TYPE).data(role) == "a, 2 equal blocks, closed"


def test_the_value_that_operators_are_coloured_by(studio, outline):
    """Of weights the sum: 4x3x3x3 and 4 floats in the convolution, none elsewhere."""
    studio.overlaying.choose(OverlayKind.WEIGHTS)
    assert column(outline, COLUMN.VALUE)[1] == "448 B"
    assert column(outline, COLUMN.VALUE)[3] == ""


def test_a_filter_or_another_order_shows_all_operators(rows, model):
    grouped = names(rows)
    for change, undo in (
        (lambda: rows.set_text("type:nn."), lambda: rows.set_text("")),
        (lambda: rows.sort_by(COLUMN.NAME), lambda: rows.sort_by(-1)),
    ):
        change()
        assert not rows.is_outlined
        assert set(column(rows, 0, OperatorRole.OUTLINE)) == {None}
        undo()
        assert names(rows) == grouped
    rows.set_text("colour:")  # wrong
    assert rows.rowCount() == model.rowCount()


def test_rows_of_another_model_are_not_shown(studio, outline, rows):
    """Until the list knows that model too."""
    outline.show_rows(CLOSED[:3])  # of three operators
    assert outline.rowCount() == 0
    rows.choose_source()
    assert not rows.is_outlined
    outline.show_rows(CLOSED)
    studio.close_model()
    assert outline.rowCount() == 0


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([S.EXECUTED, S.EXECUTED], S.EXECUTED),
        ([S.EXECUTED, S.SUPPLIED], S.SUPPLIED),
        ([S.EXECUTED, S.CURRENT, S.PENDING], S.CURRENT),
        ([S.EXECUTED, S.PENDING], S.PENDING),
        ([S.CURRENT, S.UNSUPPORTED], S.CURRENT),
        ([S.FAILED, S.CURRENT, S.BLOCKED], S.FAILED),
    ],
)
def test_the_status_of_a_group(statuses, expected):
    assert group_status(np.array(statuses, np.int8)) is expected
