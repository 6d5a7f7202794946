"""Snapshots: what replies of the engine make of them, and what the window's session gives."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from engine.inputs import InputSource
from engine.states import OperatorStatus, SessionState, StopReason
from engine.values import ArrayMetadata
from kuiper_studio.engine_service.protocol import (
    Done,
    Outputs,
    Record,
    SelfChecked,
    Status,
    Stepped,
    WorkFailed,
)
from kuiper_studio.session import RunState
from kuiper_studio.session.snapshot import Records, Snapshot, advance


def record(index, status=OperatorStatus.EXECUTED):
    outputs = Outputs(index, {str(index): ArrayMetadata((2,), np.dtype(np.float32))})
    return Record(index, outputs, 0.1, status)


def indexes(snapshot):
    return [each.index for each in snapshot.records]


@pytest.fixture
def stepped():
    """A snapshot behind three operators of model 7."""
    start = Snapshot(7, RunState.READY, breakpoints=frozenset({"op4"}))
    return advance(start, Stepped(8, tuple(map(record, range(3))), 3))


class TestRecords:
    def test_skipped_are_counted_on_every_branch(self):
        ran, missing, blocked = (
            OperatorStatus.EXECUTED, OperatorStatus.UNSUPPORTED, OperatorStatus.BLOCKED,
        )  # fmt: skip
        first = Records([record(0, ran), record(1, missing)])
        long = first.then((record(2, blocked), record(3, ran)))
        other = first.until(1).then((record(1, blocked), record(2, blocked)))
        assert [each.skipped for each in (Records(), first, long, other)] == [0, 1, 2, 2]
        assert [long.until(count).skipped for count in range(5)] == [0, 0, 1, 2, 2]

    def test_as_a_sequence(self):
        records = Records(map(record, range(4)))
        assert len(records) == 4
        assert records[1].index == 1
        assert records[-1].index == 3
        assert [each.index for each in records[1:3]] == [1, 2]
        assert [each.index for each in records[::-2]] == [3, 1]
        assert [each.index for each in records.until(2)] == [0, 1]
        for outside in (4, -5):
            with pytest.raises(IndexError):
                records[outside]

    def test_earlier_snapshots_do_not_change(self):
        first = Records([record(0)])
        second = first.then([record(1)])
        back = second.until(1)
        again = back.then([record(1, OperatorStatus.FAILED)])
        assert [len(each) for each in (first, second, back, again)] == [1, 2, 1, 2]
        assert second[1].status is OperatorStatus.EXECUTED
        assert again[1].status is OperatorStatus.FAILED
        assert first.until(9) is first

    def test_a_step_does_not_copy(self):
        """Ten thousand steps would copy fifty million records."""
        records = Records()
        for index in range(10_000):
            records = records.then([record(index)])
        assert records._shared is records.until(3)._shared


class TestAdvance:
    def test_steps(self, stepped):
        assert (indexes(stepped), stepped.position, stepped.generation) == ([0, 1, 2], 3, 7)
        after = advance(stepped, Stepped(9, (record(3),), 4))
        assert (indexes(after), indexes(stepped)) == ([0, 1, 2, 3], [0, 1, 2])

    def test_the_end_of_a_run(self, stepped):
        stop = StopReason("breakpoint", "op3")
        status = Status(7, SessionState.STOPPED, 3, stop, {"0": (1, 3)}, seed=5)
        after = advance(stepped, Done(8, status))
        assert (after.state, after.position, after.stop) == (RunState.STOPPED, 3, stop)
        assert (after.fed, after.seed, indexes(after)) == ({"0": (1, 3)}, 5, [0, 1, 2])
        assert after.breakpoints == {"op4"}

    @pytest.mark.parametrize("position", [0, 1, 2])
    def test_going_back(self, stepped, position):
        after = advance(stepped, Done(9, Status(7, SessionState.STOPPED, position)))
        assert indexes(after) == list(range(position))

    def test_a_failure(self, stepped):
        status = Status(7, SessionState.FAILED, 3, StopReason("failed", "op3"))
        failed = record(3, OperatorStatus.FAILED)
        after = advance(stepped, WorkFailed(8, ValueError("x"), status, failed))
        assert (after.state, after.position) == (RunState.FAILED, 3)
        assert [each.status.value for each in after.records] == ["executed"] * 3 + ["failed"]
        # What fails besides leaves it there.
        later = advance(after, WorkFailed(9, ValueError("y"), status))
        assert indexes(later) == [0, 1, 2, 3]

    def test_a_failed_step_is_undone(self, stepped):
        status = Status(7, SessionState.FAILED, 3)
        failed = record(3, OperatorStatus.FAILED)
        after = advance(stepped, WorkFailed(8, ValueError("x"), status, failed))
        undone = advance(after, Done(9, Status(7, SessionState.STOPPED, 3)))
        assert indexes(undone) == [0, 1, 2]

    def test_an_output_that_was_supplied(self, stepped):
        """The engine goes back to it and steps over it in one request."""
        after = advance(stepped, Stepped(9, (record(1),), 2))
        assert (indexes(after), after.position) == ([0, 1], 2)

    def test_a_self_check_leaves_what_was_computed(self, stepped):
        status = Status(7, SessionState.STOPPED, 3)
        assert indexes(advance(stepped, SelfChecked(9, None, status))) == [0, 1, 2]

    def test_no_model(self, stepped):
        after = advance(stepped, Done(9, Status(0, SessionState.NEED_INPUT, 0)))
        assert (after.generation, after.state, indexes(after)) == (0, RunState.EMPTY, [])


class TestOfASession:
    def test_it_cannot_be_changed(self, studio):
        with pytest.raises(FrozenInstanceError):
            studio.snapshot.position = 3
        with pytest.raises(TypeError):
            studio.snapshot.records[0] = None

    def test_a_kept_snapshot_does_not_change(self, studio, step):
        step(studio, 2)
        before = studio.snapshot
        step(studio, 3)
        studio.restart()
        assert studio.wait_idle()
        assert (before.position, len(before.records)) == (2, 2)
        assert studio.graph.operators[before.records[1].index].name == "layer1.conv"
        assert (studio.snapshot.position, len(studio.snapshot.records)) == (0, 0)

    def test_the_stop_reason(self, studio, settle, step):
        assert studio.snapshot.stop is None
        step(studio)
        assert studio.snapshot.stop == StopReason("step", "layer1.conv")
        studio.run_to("add")
        settle(studio)
        assert studio.snapshot.stop == StopReason("operator", "add")
        studio.toggle_breakpoint("layer2.pool")
        studio.resume()
        settle(studio)
        assert studio.snapshot.stop == StopReason("breakpoint", "layer2.pool")
        studio.resume()
        settle(studio)
        assert studio.snapshot.stop == StopReason("end")
        studio.restart()
        settle(studio)
        assert studio.snapshot.stop is None

    def test_the_stop_reason_of_a_failure(self, open_model, failing, settle):
        session = open_model(failing)
        session.resume()
        settle(session)
        assert session.snapshot.stop == StopReason("failed", "sum")
        assert [r.status for r in session.snapshot.records][-1] is OperatorStatus.FAILED

    def test_the_stop_reason_of_stop(self, open_model, make_pair, gate, settle):
        gate.close()
        session = open_model(
            make_pair(
                "pnnx.Input in 0 1 0 #0=(3)f32",
                "test.Gate slow 1 1 0 1",
                "nn.ReLU relu 1 1 1 2",
                "pnnx.Output out 1 0 2",
            )
        )
        session.resume()
        gate.reached.wait(10)
        session.stop()
        gate.open()
        settle(session)
        assert session.snapshot.stop == StopReason("cancelled", "relu")

    def test_the_generation_goes_with_the_model(self, studio, settle):
        first = studio.snapshot.generation
        studio.resume()
        settle(studio)
        assert studio.snapshot.generation == first
        studio.reload()
        settle(studio)
        assert studio.snapshot.generation > first
        studio.close_model()
        closed = studio.snapshot
        assert (closed.generation, closed.state) == (0, RunState.EMPTY)
        assert (len(closed.records), closed.fed) == (0, {})


class TestInOrder:
    """What is asked for while the engine is busy is done afterwards, and nothing is lost."""

    def test_ten_steps_at_once(self, open_model, make_pair, settle):
        lines = [f"nn.ReLU r{i} 1 1 {i} {i + 1}" for i in range(20)]
        session = open_model(
            make_pair("pnnx.Input in 0 1 0 #0=(3)f32", *lines, "pnnx.Output out 1 0 20")
        )
        for _ in range(10):
            session.step()
        settle(session)
        assert session.position == 10
        for _ in range(4):
            session.step_back()
        settle(session)
        assert session.position == 6
        session.step()
        session.resume()  # behind the step
        session.step()  # nothing steps behind a run
        settle(session)
        assert session.state is RunState.FINISHED

    def test_steps_behind_a_failure_do_nothing(self, open_model, failing, settle):
        session = open_model(failing)
        for _ in range(8):
            session.step()
        settle(session)
        assert (session.state, session.position) == (RunState.FAILED, 2)

    def test_stopping_cancels_queued_steps(self, open_model, make_pair, gate, settle):
        lines = [f"test.Gate g{i} 1 1 {i} {i + 1}" for i in range(5)]
        session = open_model(
            make_pair("pnnx.Input in 0 1 0 #0=(3)f32", *lines, "pnnx.Output out 1 0 5")
        )
        session.step()
        settle(session)
        gate.close()
        gate.reached.clear()
        for _ in range(4):
            session.step()
        gate.reached.wait(10)
        session.stop()
        gate.open()
        settle(session)
        assert session.position == 2

    def test_steps_wait_for_an_input(self, studio, settle):
        studio.set_inputs({"0": InputSource("constant", value=2.0)})
        studio.step()
        studio.step()
        settle(studio)
        assert studio.position == 2
        np.testing.assert_array_equal(studio.fetch("0"), np.full((1, 3, 8, 8), 2))
