from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPersistentModelIndex, Qt

from kuiper_studio.item_models import (
    OperatorColumn,
    OperatorRole,
    OperatorsFilterModel,
    OperatorsModel,
    output_shapes,
)
from kuiper_studio.item_models.statuses import DisplayStatus, operator_status

ROLE = Qt.ItemDataRole


@pytest.fixture
def model(studio) -> OperatorsModel:
    return OperatorsModel(studio)


@pytest.fixture
def rows(model) -> OperatorsFilterModel:
    return OperatorsFilterModel(model)


@pytest.fixture
def changes(model) -> list[tuple[int, int]]:
    """First and last row of each announced change."""
    heard: list[tuple[int, int]] = []
    model.dataChanged.connect(lambda a, b: heard.append((a.row(), b.row())))
    return heard


def cells(model, column: OperatorColumn) -> list[str]:
    return [model.index(row, column).data() for row in range(model.rowCount())]


def states(model) -> list[DisplayStatus]:
    count = model.rowCount()
    return [model.index(row, 0).data(OperatorRole.CELLS).status for row in range(count)]


def test_model_is_sound(model, qtmodeltester) -> None:
    qtmodeltester.check(model)


def test_filter_model_is_sound(rows, qtmodeltester) -> None:
    rows.set_text("type:nn.")
    qtmodeltester.check(rows)


def test_sorted_rows_move_when_their_times_come(studio, rows, qtmodeltester) -> None:
    """Without a time they come last, as executed; what points to a row stays with it."""
    rows.sort_by(OperatorColumn.MS, falls=True)
    qtmodeltester.check(rows)
    operators = [each.name for each in studio.graph.operators]
    kept = QPersistentModelIndex(rows.index_of(2, OperatorColumn.NAME))
    for _ in range(4):
        studio.step()
        assert studio.wait_idle(10)
        times = [-record.seconds for record in studio.snapshot.records]
        slowest = [operators[place] for place in np.argsort(times, kind="stable")]
        assert cells(rows, OperatorColumn.NAME) == slowest + operators[len(times) :]
        assert kept.data() == operators[2]
        assert rows.index_of(2, OperatorColumn.NAME) == kept
    rows.set_text("type:nn.")
    ran = [name for name in slowest if studio.graph.operator(name).type.startswith("nn.")]
    assert cells(rows, OperatorColumn.NAME)[: len(ran)] == ran
    rows.sort_by(-1)
    rows.set_text("")
    assert cells(rows, OperatorColumn.NAME) == operators


def test_without_a_model(empty_session, qtmodeltester) -> None:
    model = OperatorsModel(empty_session)
    assert model.rowCount() == 0
    assert model.row_of("conv") == -1
    qtmodeltester.check(model)


def test_cells_before_running(model) -> None:
    assert cells(model, OperatorColumn.INDEX) == ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert cells(model, OperatorColumn.TYPE)[:3] == ["pnnx.Input", "nn.Conv2d", "nn.ReLU"]
    assert cells(model, OperatorColumn.NAME)[:2] == ["in", "layer1.conv"]
    assert cells(model, OperatorColumn.OUTPUT) == [
        "3×8×8", "4×8×8", "4×8×8", "4×8×8", "4×4×4", "4×4×4", "4×4×4", "",
    ]  # fmt: skip
    assert cells(model, OperatorColumn.MS) == [""] * 8


def test_states_before_and_after_running(studio, model, settle) -> None:
    run, waits = DisplayStatus.EXECUTED, DisplayStatus.PENDING
    assert states(model) == [
        DisplayStatus.CURRENT, waits, waits, waits, waits, DisplayStatus.UNSUPPORTED, waits,
        waits,
    ]  # fmt: skip
    studio.resume()
    settle(studio)
    assert states(model) == [
        run, run, run, run, run, DisplayStatus.UNSUPPORTED, DisplayStatus.BLOCKED,
        DisplayStatus.BLOCKED,
    ]  # fmt: skip


def test_who_computed_it(qtbot, studio, model, rows, settle) -> None:
    studio.set_backend("onnxruntime")
    qtbot.waitUntil(lambda: "0" in studio.inputs and not studio.busy)
    studio.resume()
    settle(studio)
    tips = [model.index(row, OperatorColumn.MS).data(ROLE.ToolTipRole) for row in range(5)]
    assert tips[0] is None
    assert tips[1].endswith("s, ONNX Runtime, all its optimisations, 1 thread")
    rows.set_text("kernel:onnxruntime")
    names = [rows.index(r, OperatorColumn.NAME).data() for r in range(rows.rowCount())]
    assert names == ["layer1.conv", "layer1.relu", "add", "layer2.pool"]


def test_failed_is_more_than_current(open_model, failing, settle) -> None:
    session = open_model(failing)
    session.resume()
    settle(session)
    assert session.is_current("sum")
    assert operator_status(session, "sum") is DisplayStatus.FAILED
    model = OperatorsModel(session)
    tip = model.index(2, OperatorColumn.STATE).data(ROLE.ToolTipRole)
    assert tip.startswith("failed: ")


def test_step_changes_two_rows(studio, changes, step) -> None:
    step(studio)
    assert set(changes) == {(0, 0), (1, 1)}


def test_step_back_changes_two_rows(studio, changes, step, settle) -> None:
    step(studio, 2)
    changes.clear()
    studio.step_back()
    settle(studio)
    assert set(changes) == {(1, 1), (2, 2)}


def test_run_changes_the_rows_that_ran(studio, changes, settle) -> None:
    studio.run_to("add")
    settle(studio)
    assert min(first for first, _ in changes) == 0
    assert max(last for _, last in changes) == 3


def test_restart_changes_all_rows(studio, changes, step) -> None:
    step(studio)
    changes.clear()
    studio.restart()
    assert studio.wait_idle()
    assert (0, 7) in changes


def test_breakpoint_changes_its_row(studio, model, changes) -> None:
    studio.toggle_breakpoint("add")
    assert changes == [(3, 3)]
    spoken = [
        model.index(row, OperatorColumn.BREAKPOINT).data(ROLE.AccessibleTextRole)
        for row in (2, 3)
    ]
    assert spoken == ["", "breakpoint"]


def test_closing_resets(studio, model, qtbot) -> None:
    with qtbot.waitSignal(model.modelReset):
        studio.close_model()
    assert model.rowCount() == 0


def test_measured_time(studio, model, step) -> None:
    step(studio, 2)
    assert model.index(0, OperatorColumn.MS).data() == "—"
    assert float(model.index(1, OperatorColumn.MS).data()) >= 0
    assert model.index(2, OperatorColumn.MS).data() == ""


def test_every_column_gives_the_operator_of_its_row(studio, model) -> None:
    conv = studio.graph.operator("layer1.conv")
    given = [model.index(1, column).data(OperatorRole.OPERATOR) for column in OperatorColumn]
    assert all(each is conv for each in given)


def test_every_cell_can_be_read_aloud(model) -> None:
    for column in OperatorColumn:
        heading = model.headerData(column, Qt.Orientation.Horizontal, ROLE.AccessibleTextRole)
        assert heading
    words = model.index(5, OperatorColumn.STATE).data(ROLE.AccessibleTextRole)
    assert words.startswith("cannot run: ")
    assert model.index(1, OperatorColumn.FAMILY).data(ROLE.AccessibleTextRole) == "CONV"


def test_output_shape_is_the_computed_one(open_model, failing, step) -> None:
    session = open_model(failing)
    conv = session.graph.operator("conv")
    assert output_shapes(session, conv) == ((1, 3, 8, 8),)  # as exported
    step(session, 2)
    assert output_shapes(session, conv) == ((1, 3, 6, 6),)  # as computed
    assert output_shapes(session, session.graph.operator("out")) == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("type:conv", ["layer1.conv"]),
        ("layer1", ["layer1.conv", "layer1.relu"]),
        ("state:next", ["in"]),
        ("state:unsupported", ["strange"]),
        ("shape:4x4x4", ["layer2.pool", "strange", "tail"]),
        ("#0-1", ["in", "layer1.conv"]),
    ],
)
def test_filter(rows, text: str, names: list[str]) -> None:
    rows.set_text(text)
    assert cells(rows, OperatorColumn.NAME) == names


def test_filter_follows_the_session(studio, rows, step) -> None:
    rows.set_text("state:run")
    assert rows.rowCount() == 0
    step(studio, 2)
    assert cells(rows, OperatorColumn.NAME) == ["in", "layer1.conv"]


def test_wrong_filter_keeps_the_last_good_one(rows, qtbot) -> None:
    rows.set_text("type:conv")
    with qtbot.waitSignal(rows.hint_changed) as heard:
        rows.set_text("type:conv ms>")
    assert "ms>" in heard.args[0]
    assert rows.rowCount() == 1
    with qtbot.waitSignal(rows.hint_changed) as heard:
        rows.set_text("")
    assert heard.args == [""]
    assert rows.hint == ""
    assert rows.rowCount() == 8


class TestRandom:
    @pytest.fixture
    def noisy_model(self, open_model, noisy) -> OperatorsModel:
        return OperatorsModel(open_model(noisy))

    @pytest.mark.parametrize(
        ("column", "text"), [(OperatorColumn.TYPE, "F.dropout"), (OperatorColumn.NAME, "thin")]
    )
    def test_tool_tips(self, noisy_model, column, text) -> None:
        index = noisy_model.index(2, column)
        assert index.data(ROLE.ToolTipRole) == f"{text}\nrandom, seed 0"
        assert index.siblingAtRow(4).data(ROLE.ToolTipRole) in {"F.dropout", "whole"}

    def test_screen_readers_are_told(self, noisy_model) -> None:
        index = noisy_model.index(2, OperatorColumn.NAME)
        assert index.data(ROLE.AccessibleTextRole) == "thin, random, seed 0"

    def test_another_seed_is_announced(self, qtbot, noisy_model) -> None:
        session = noisy_model._session
        with qtbot.waitSignal(noisy_model.dataChanged):
            session.set_seed(6)
        index = noisy_model.index(2, OperatorColumn.TYPE)
        assert index.data(ROLE.ToolTipRole) == "F.dropout\nrandom, seed 6"
        qtbot.waitUntil(lambda: not session.busy)

    def test_filter(self, noisy_model) -> None:
        rows = OperatorsFilterModel(noisy_model)
        rows.set_text("state:random")
        assert cells(rows, OperatorColumn.NAME) == ["thin", "noise"]
