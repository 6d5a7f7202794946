"""Supplying outputs and sizes through the studio's session."""

from __future__ import annotations

import numpy as np
import pytest

from engine.inputs import InputSource, parse_array_file
from engine.shapes import InputShapes
from engine.states import OperatorStatus
from kuiper_studio.item_models.statuses import DisplayStatus, operator_status
from kuiper_studio.session import RunState

OPEN = (
    "pnnx.Input a 0 1 in0 #in0=(1,%h,?)f32",
    "pnnx.Input b 0 1 in1 #in1=(%h)f32",
    "nn.ReLU relu 1 1 in0 x #x=(1,%h,?)f32",
    "pnnx.Output out 2 0 x in1",
)


@pytest.fixture
def source(tmp_path) -> InputSource:
    """Fives in the shape of what the strange operator gives."""
    np.save(tmp_path / "five.npy", np.full((1, 4, 4, 4), 5, np.float32))
    return parse_array_file(str(tmp_path / "five.npy"))


@pytest.fixture
def ended(studio, settle):
    """A session at the end of a net that a strange operator keeps from its outputs."""
    studio.resume()
    settle(studio)
    assert studio.state is RunState.FINISHED
    return studio


class TestSupply:
    def test_work_goes_on_behind_it(self, ended, source, settle):
        ended.supply("strange", source)
        settle(ended)
        # It was stepped over at once, and what is behind it is pending again.
        assert (ended.state, ended.current.name) == (RunState.STOPPED, "tail")
        assert operator_status(ended, "strange") is DisplayStatus.SUPPLIED
        assert ended.status("tail") is OperatorStatus.PENDING
        assert ended.status("layer2.pool") is OperatorStatus.EXECUTED
        assert ended.supplied_text("strange") == "supplied from five.npy"
        assert ended.supplied_text("tail") == ""
        ended.resume()
        settle(ended)
        np.testing.assert_array_equal(ended.fetch("6"), np.full((1, 4, 4, 4), 5))

    def test_before_it_is_reached(self, studio, source, settle, step):
        studio.supply("strange", source)
        settle(studio)
        assert (studio.state, studio.position) == (RunState.READY, 0)
        assert studio.status("strange") is OperatorStatus.PENDING
        step(studio, 7)
        np.testing.assert_array_equal(studio.tensors.value("6"), np.full((1, 4, 4, 4), 5))

    def test_restart_keeps_and_another_input_drops(self, ended, source, settle):
        ended.supply("strange", source)
        settle(ended)
        ended.restart()
        settle(ended)
        assert ended.supplied == {"5": str(source.path)}
        ended.set_inputs({"0": InputSource("random")})
        settle(ended)
        assert ended.supplied == {}
        assert ended.status("strange") is OperatorStatus.UNSUPPORTED
        assert "supplied outputs were dropped" in ended.workspace.log_entries[-2].text

    def test_reload_keeps(self, ended, source, settle, qtbot):
        ended.supply("strange", source)
        settle(ended)
        ended.reload()
        settle(ended)
        assert ended.supplied == {"5": str(source.path)}
        assert (ended.current.name, ended.state) == ("tail", RunState.STOPPED)
        assert ended.record("strange").overrides == {"5": str(source.path)}

    def test_withdraw(self, ended, source, settle):
        ended.supply("strange", source)
        settle(ended)
        ended.resume()
        settle(ended)
        ended.withdraw("strange")
        settle(ended)
        assert (ended.current.name, ended.supplied) == ("strange", {})
        assert ended.status("strange") is OperatorStatus.UNSUPPORTED
        assert not ended.tensors.has_value("6")

    def test_a_failed_run_goes_on(self, open_model, failing, settle, tmp_path):
        session = open_model(failing)
        session.resume()
        settle(session)
        assert session.state is RunState.FAILED
        np.save(tmp_path / "sum.npy", np.zeros((1, 3, 8, 8)))
        session.supply("sum", parse_array_file(str(tmp_path / "sum.npy")))
        settle(session)
        assert (session.state, session.failure) == (RunState.STOPPED, None)
        session.resume()
        settle(session)
        assert session.state is RunState.FINISHED

    @pytest.mark.parametrize("where", ["end", "failed"])
    def test_what_does_not_fit_is_told_and_changes_nothing(
        self, qtbot, open_model, residual, failing, settle, tmp_path, where
    ):
        session = open_model(residual if where == "end" else failing)
        operator = "strange" if where == "end" else "sum"
        session.resume()
        settle(session)
        before = (session.state, session.position, session.failure)
        np.save(tmp_path / "small.npy", np.zeros((1, 4)))
        with qtbot.waitSignal(session.failed) as told:
            session.supply(operator, parse_array_file(str(tmp_path / "small.npy")))
        settle(session)
        failure = told.args[0]
        assert failure.title == f"The output of {operator} was not supplied"
        assert "and the value to supply is 1×4" in failure.reason
        assert failure.operator == operator
        assert (session.state, session.position, session.failure) == before
        assert session.supplied == {}

    def test_inputs_and_outputs_cannot_be_supplied(self, studio):
        assert not studio.can_supply("in")
        assert not studio.can_supply("out")
        assert not studio.can_supply("")
        assert studio.can_supply("layer1.conv")

    def test_from_the_command_line(self, qtbot, empty_session, residual, source):
        session = empty_session
        session.next_model.set_sources([InputSource("constant", value=1.0)])
        session.next_model.set_supplies([("strange", source)])
        session.open(residual)
        qtbot.waitUntil(lambda: session.supplied == {"5": str(source.path)})
        qtbot.waitUntil(lambda: not session.busy)
        assert (session.position, session.state) == (0, RunState.READY)

    def test_of_a_model_without_inputs(self, qtbot, empty_session, make_pair, tmp_path):
        session = empty_session
        np.save(tmp_path / "x.npy", np.ones(3))
        source = parse_array_file(str(tmp_path / "x.npy"))
        session.next_model.set_supplies([("odd", source)])
        session.open(make_pair("my.Own odd 0 1 x #x=(3)f32", "pnnx.Output out 1 0 x"))
        qtbot.waitUntil(lambda: "x" in session.supplied)

    def test_a_name_that_is_not_there(self, qtbot, empty_session, residual, source):
        empty_session.next_model.set_supplies([("nobody", source)])
        with qtbot.waitSignal(empty_session.failed) as told:
            empty_session.open(residual)
        assert "no operand or operator named 'nobody'" in told.args[0].reason


def test_operators_that_were_passed_by_are_told_at_the_end(qtbot, studio, settle):
    with qtbot.waitSignal(studio.failed) as told:
        studio.resume()
    settle(studio)
    failure = told.args[0]
    assert (failure.title, failure.operator) == ("strange cannot run", "strange")
    assert failure.reason == "no layer for operator type my.Strange"
    assert failure.hint.startswith("2 operators downstream are blocked.")
    assert studio.failure is None  # nothing has failed


class TestSizes:
    @pytest.fixture
    def session(self, open_model, make_pair):
        return open_model(make_pair(*OPEN))

    def test_open_dimensions_are_asked_for(self, qtbot, session):
        # Ones were prepared as the input; they cannot be made before their size is known.
        assert (session.state, session.failure) == (RunState.NEED_INPUT, None)
        assert "leaves" in session.workspace.log_entries[-1].text
        for run in (session.step, session.resume, lambda: session.run_to("relu")):
            with qtbot.waitSignal(session.input_needed):
                run()

    def test_given(self, session, settle, step):
        session.set_shapes(InputShapes({"in0": (None, None, 4)}, {"%h": 3}))
        settle(session)
        assert session.state is RunState.READY
        assert session.fed_shapes == {"in0": (1, 3, 4), "in1": (3,)}
        step(session, 3)
        assert session.fetch("x").shape == (1, 3, 4)

    def test_a_run_that_waits_for_the_inputs_asks_too(self, qtbot, session, settle):
        session.set_shapes(InputShapes({"in0": (None, None, 4)}, {"%h": 3}))
        settle(session)
        session.set_shapes(InputShapes())
        with qtbot.waitSignal(session.input_needed):
            session.step()  # before the worker has found out
        settle(session)
        assert (session.state, session.fed_shapes) == (RunState.NEED_INPUT, {})

    def test_prepared_and_kept_by_reload(self, qtbot, empty_session, make_pair):
        session = empty_session
        session.next_model.set_sources([InputSource("random")])
        session.next_model.set_shapes(["h=3", "in0=1,?,4"])
        session.open(make_pair(*OPEN))
        qtbot.waitUntil(lambda: session.state is RunState.READY and not session.busy)
        asked = session.input_shapes
        assert asked == InputShapes({"in0": (1, None, 4)}, {"%h": 3})
        session.reload()
        qtbot.waitUntil(lambda: session.busy)
        qtbot.waitUntil(lambda: session.state is RunState.READY and not session.busy)
        assert session.input_shapes == asked

    def test_prepared_wrongly(self, qtbot, empty_session, make_pair):
        empty_session.next_model.set_shapes(["q=3"])
        with qtbot.waitSignal(empty_session.failed) as told:
            empty_session.open(make_pair(*OPEN))
        assert told.args[0].title == "What was asked for does not fit the model"

    def test_an_input_that_cannot_be_used_leaves_none(self, qtbot, session, settle, tmp_path):
        session.set_shapes(InputShapes({"in0": (None, None, 4)}, {"%h": 3}))
        settle(session)
        np.save(tmp_path / "x.npy", np.zeros((1, 5, 4), np.float32))
        with qtbot.waitSignal(session.failed) as told:
            session.set_inputs({"in0": parse_array_file(str(tmp_path / "x.npy"))})
        settle(session)
        assert "%h stands for one size, but is 3 as asked for and 5" in told.args[0].reason
        assert (session.state, session.fed_shapes) == (RunState.NEED_INPUT, {})

    def test_the_operator_that_pins_the_size(self, open_model, make_pair, settle):
        session = open_model(
            make_pair(
                "pnnx.Input in 0 1 0 #0=(1,1,2,2)f32",
                "nn.ReLU relu 1 1 0 1 #1=(1,1,2,2)f32",
                "Tensor.reshape flat 1 1 1 2 shape=(1,4) #2=(1,4)f32",
                "pnnx.Output out 1 0 2",
            )
        )
        session.set_shapes(InputShapes({"0": (1, 1, 3, 3)}))
        settle(session)
        session.resume()
        settle(session)
        failure = session.failure
        assert failure.title == "flat failed"
        assert failure.reason.startswith("it fixes the size by shape=(1,4)")
        assert failure.hint == (
            "The model was exported for 1×1×2×2 and is fed 1×1×3×3. Restore the exported "
            "size in the Input panel."
        )
        assert not failure.suspect
