"""StudioSession: what the views hear and see, without any view."""

from __future__ import annotations

import gc
import json
import threading
import weakref
from operator import attrgetter

import numpy as np
import pytest

from engine.dump import DumpOptions
from engine.errors import UnknownNameError
from engine.inputs import InputSource
from engine.session import OperatorStatus, Session
from kuiper_studio.session import RunState, StudioSession

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "pnnx.Expression twice 1 1 0 1 expr=mul(@0,2)",
    "pnnx.Expression plus 1 1 1 2 expr=add(@0,1)",
    "pnnx.Output out 1 0 2",
)
FAILING = (
    "pnnx.Input a 0 1 0 #0=(3)f32",
    "pnnx.Input b 0 1 1 #1=(3)f32",
    "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1)",
    "pnnx.Output out 1 0 2",
)


@pytest.fixture
def session(qapp):
    made = StudioSession()
    yield made
    made.close()


@pytest.fixture
def opened(qtbot, session, make_pair):
    """A session with the chain open and fed."""
    open_and_feed(qtbot, session, make_pair(*CHAIN), [[1, 2, 3]])
    return session


def open_and_feed(qtbot, session, path, arrays):
    session.next_model.set_sources(
        [InputSource("array", array=np.asarray(a, np.float32)) for a in arrays]
    )
    session.open(path)
    qtbot.waitUntil(lambda: session.graph is not None and not session.busy)


def settle(qtbot, session):
    qtbot.waitUntil(lambda: not session.busy, timeout=10_000)


def test_open_and_feed(qtbot, session, make_pair):
    assert session.state is RunState.EMPTY
    with qtbot.waitSignals([session.graph_changed, session.inputs_changed]):
        open_and_feed(qtbot, session, make_pair(*CHAIN), [[1, 2, 3]])
    assert session.state is RunState.READY
    assert session.selected == "in"
    assert session.current.name == "in"
    assert session.inputs["0"].kind == "array"
    assert "4 operators" in session.workspace.log_entries[0].text


def test_open_without_input(qtbot, session, make_pair):
    session.open(make_pair(*CHAIN))
    qtbot.waitUntil(lambda: session.state is RunState.NEED_INPUT and not session.busy)
    session.step()
    assert not session.busy
    session.set_source_list([InputSource("constant", value=1.0)])
    settle(qtbot, session)
    assert session.state is RunState.READY


def test_step_follows(qtbot, opened):
    seen = []
    opened.stepped.connect(lambda records: seen.extend(r.index for r in records))
    for _ in range(2):
        opened.step()
        settle(qtbot, opened)
    assert seen == [0, 1]
    assert (opened.position, opened.state) == (2, RunState.STOPPED)
    assert (opened.selected, opened.operand) == ("plus", "1")
    np.testing.assert_array_equal(opened.fetch("1"), [2, 4, 6])
    assert opened.is_current("plus")
    assert opened.status("twice") is OperatorStatus.EXECUTED
    assert opened.tensors.statistics("1").max == 6
    assert opened.tensors.statistics("2") is None


def test_a_step_settles_once_when_all_is_told(qtbot, opened):
    opened.step()
    settle(qtbot, opened)
    told = []
    for name in ("stepped", "position_changed", "selection_changed", "operand_changed"):
        getattr(opened, name).connect(lambda *_, name=name: told.append(name))
    opened.settled.connect(lambda: told.append(f"settled at {opened.selected}"))
    opened.step()
    settle(qtbot, opened)
    assert sorted(told[:-1]) == [
        "operand_changed",
        "position_changed",
        "selection_changed",
        "stepped",
    ]
    assert told[-1] == "settled at plus"


def test_choices_of_the_user_settle_at_once(opened):
    settled = []
    opened.settled.connect(lambda: settled.append(opened.selected))
    opened.select("plus")
    assert settled[-1] == "plus"


def test_a_short_step_is_not_announced_as_a_run(qtbot, opened):
    told = []
    opened.state_changed.connect(lambda: told.append(opened.state))
    opened.step()
    assert opened.state is RunState.RUNNING
    settle(qtbot, opened)
    assert told == [RunState.STOPPED]


def test_a_long_step_is_announced_as_a_run(qtbot, opened, monkeypatch):
    told, begin = [], threading.Event()
    opened.state_changed.connect(lambda: told.append(opened.state))
    run = Session.step
    monkeypatch.setattr(Session, "step", lambda *given: begin.wait(10) and run(*given))
    opened.step()
    qtbot.waitUntil(lambda: told == [RunState.RUNNING])
    begin.set()
    settle(qtbot, opened)
    assert told == [RunState.RUNNING, RunState.STOPPED]


def test_resume_to_the_end(qtbot, opened):
    opened.resume()
    qtbot.waitUntil(lambda: opened.state is RunState.FINISHED)
    assert opened.current is None
    assert (opened.selected, opened.operand) == ("out", "2")  # the model's output is shown
    np.testing.assert_array_equal(opened.fetch("2"), [3, 5, 7])


def test_run_to_and_breakpoints(qtbot, opened):
    opened.run_to("plus")
    settle(qtbot, opened)
    assert opened.position == 2
    opened.run_to("twice")
    qtbot.waitUntil(lambda: opened.position == 1 and not opened.busy)
    opened.restart()
    opened.toggle_breakpoint("out")
    opened.resume()
    qtbot.waitUntil(lambda: opened.position == 3 and not opened.busy)
    opened.clear_breakpoints()
    assert opened.breakpoints == frozenset()


def test_step_back(qtbot, opened):
    opened.resume()
    qtbot.waitUntil(lambda: opened.state is RunState.FINISHED)
    with qtbot.waitSignal(opened.stepped_back):
        opened.step_back()
    opened.step_back()
    opened.step_back()  # before the engine has answered
    settle(qtbot, opened)
    assert opened.position == 1
    assert not opened.tensors.has_value("2")
    assert opened.state is RunState.STOPPED


def test_restart_drops_values(qtbot, opened):
    opened.resume()
    settle(qtbot, opened)
    with qtbot.waitSignal(opened.values_reset):
        opened.restart()
    settle(qtbot, opened)
    assert not opened.tensors.has_value("1")
    assert (opened.position, opened.state) == (0, RunState.READY)


def test_failure_keeps_earlier_values(qtbot, session, make_pair):
    path = make_pair(*FAILING)
    open_and_feed(qtbot, session, path, [[1, 2, 3], [1, 2]])
    with qtbot.waitSignal(session.failed) as caught:
        session.resume()
    (failure,) = caught.args
    assert failure.operator == "sum"
    assert "Look at pnnx.Input b: operand 1 was exported as 3, but is 2 here." in failure.hint
    assert session.state is RunState.FAILED
    assert session.status("sum") is OperatorStatus.FAILED
    assert (session.selected, session.position) == ("sum", 2)
    np.testing.assert_array_equal(session.fetch("0"), [1, 2, 3])
    session.step()
    assert not session.busy
    session.step_back()
    settle(qtbot, session)
    assert session.state is RunState.STOPPED


def test_unsupported_operator_is_told_once(qtbot, session, make_pair):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(3)f32",
        "custom.Thing odd 1 1 0 1",
        "pnnx.Expression behind 1 1 1 2 expr=mul(@0,2)",
        "pnnx.Output out 1 0 2",
    )
    open_and_feed(qtbot, session, path, [[1, 2, 3]])
    assert session.status("odd") is OperatorStatus.UNSUPPORTED
    session.resume()
    qtbot.waitUntil(lambda: session.state is RunState.FINISHED)
    assert session.status("behind") is OperatorStatus.BLOCKED
    assert session.skipped == 3
    warnings = [
        entry.text for entry in session.workspace.log_entries if entry.level == "warning"
    ]
    assert warnings == ["'odd': no layer for operator type custom.Thing"] * 2


def test_one_warning_for_all_operators_of_a_reason(qtbot, session, tmp_path):
    linear = "in_features=3 out_features=3 bias=False @weight=(3,3)f32"
    path = tmp_path / "alone.param"  # without a .bin
    path.write_text(
        "7767517\n5 4\npnnx.Input in 0 1 0 #0=(1,3)f32\n"
        f"nn.Linear one 1 1 0 1 {linear}\nnn.Linear two 1 1 1 2 {linear}\n"
        "my.Own three 1 1 2 3\npnnx.Output out 1 0 3\n"
    )
    session.open(path)
    qtbot.waitUntil(lambda: session.graph is not None)
    warnings = [
        entry.text for entry in session.workspace.log_entries if entry.level == "warning"
    ]
    missing = "its weights are missing: the model was opened without a .bin file"
    assert warnings == [
        f"2 operators: {path}: {missing}",
        "'three': no layer for operator type my.Own",
    ]


def test_wrong_file_leaves_the_model_open(qtbot, opened, tmp_path):
    bad = tmp_path / "bad.param"
    bad.write_text("not a model", encoding="utf-8")
    with qtbot.waitSignal(opened.failed) as caught:
        opened.open(bad)
    failure = caught.args[0]
    assert failure.title == "The model cannot be opened"
    assert "bad.param" in failure.reason
    assert failure.hint == "The earlier model stays open."
    assert opened.graph is not None
    assert opened.state is RunState.READY
    opened.step()
    settle(qtbot, opened)
    assert opened.position == 1


def test_wrong_input_is_told_and_can_be_mended(qtbot, opened):
    wrong = InputSource("array", array=np.zeros((2, 2), np.float32))
    with qtbot.waitSignal(opened.failed) as caught:
        opened.set_inputs({"0": wrong})
    assert caught.args[0].title == "The input cannot be used"
    assert "has 2 dimensions and not 1" in caught.args[0].reason
    opened.set_inputs({"0": InputSource("constant", value=1.0)})
    settle(qtbot, opened)
    opened.step()
    settle(qtbot, opened)
    np.testing.assert_array_equal(opened.fetch("0"), [1, 1, 1])


def test_stop_between_operators_while_the_window_lives(qtbot, session, make_pair, gate):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(3)f32",
        "test.Gate slow 1 1 0 1",
        "pnnx.Expression twice 1 1 1 2 expr=mul(@0,2)",
        "pnnx.Output out 1 0 2",
    )
    open_and_feed(qtbot, session, path, [[1, 2, 3]])
    gate.close()
    session.resume()
    assert session.state is RunState.RUNNING
    beats = []
    qtbot.waitUntil(lambda: beats.append(1) or len(beats) > 3)  # the GUI thread goes on
    session.stop()
    gate.open()
    settle(qtbot, session)
    assert (session.position, session.state) == (2, RunState.STOPPED)


def test_late_answers_are_dropped(qtbot, session, make_pair, gate):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(3)f32",
        "test.Gate slow 1 1 0 1",
        "pnnx.Output out 1 0 1",
    )
    open_and_feed(qtbot, session, path, [[1, 2, 3]])
    gate.close()
    session.resume()
    session.restart()
    gate.open()
    settle(qtbot, session)
    assert (session.position, session.state) == (0, RunState.READY)
    assert not session.tensors.has_value("1")


def test_steps_wait_for_the_input(qtbot, opened):
    opened.set_inputs({"0": InputSource("constant", value=3.0)})
    opened.step()
    qtbot.waitUntil(lambda: opened.position == 1)
    np.testing.assert_array_equal(opened.fetch("0"), [3, 3, 3])


def test_close_model(qtbot, opened):
    opened.close_model()
    assert (opened.graph, opened.state, opened.selected) == (None, RunState.EMPTY, "")


def test_a_closed_model_takes_no_memory(qtbot, opened):
    opened.step()
    settle(qtbot, opened)
    graph = weakref.ref(opened.graph)
    opened.close_model()
    qtbot.waitUntil(lambda: gc.collect() >= 0 and graph() is None)


def test_reload_keeps_inputs(qtbot, opened):
    graph = opened.graph
    opened.reload()
    settle(qtbot, opened)
    assert opened.graph is not graph
    assert (opened.position, opened.state) == (0, RunState.READY)
    assert "0" in opened.inputs


@pytest.mark.parametrize(
    ("signal", "action", "count"),
    [
        pytest.param("selection_changed", lambda s: s.select("in"), 0, id="select-same"),
        pytest.param("selection_changed", lambda s: s.select("plus"), 1, id="select"),
        pytest.param("operand_changed", lambda s: s.select("plus"), 1, id="select-shows"),
        pytest.param("operand_changed", lambda s: s.show_operand("0"), 0, id="show-same"),
        pytest.param(
            "workspace.labels_changed",
            lambda s: s.workspace.set_labels(()),
            0,
            id="labels-same",
        ),
        pytest.param(
            "breakpoints_changed", lambda s: s.clear_breakpoints(), 0, id="clear-none"
        ),
        pytest.param("state_changed", lambda s: s.set_backend("auto"), 0, id="backend-same"),
    ],
)
def test_silent_without_change(qtbot, opened, signal, action, count):
    heard = []
    attrgetter(signal)(opened).connect(lambda *_: heard.append(1))
    action(opened)
    assert len(heard) == count


class TestSeed:
    @pytest.fixture
    def studio(self, open_model, noisy, settle):
        """A session with the noisy net, run to its end."""
        session = open_model(noisy)
        session.resume()
        settle(session)
        return session

    def test_records_carry_it(self, studio):
        assert studio.seed == 0
        assert [studio.record(n).seed for n in ("relu", "thin", "noise", "whole")] == [
            None, 0, 0, None,
        ]  # fmt: skip

    def test_another_one_drops_what_was_drawn(self, qtbot, studio, settle):
        before = {name: studio.fetch(name) for name in "1234"}
        with qtbot.waitSignals([studio.seed_changed, studio.values_reset]):
            studio.set_seed(5)
        settle(studio)
        assert (studio.seed, studio.position, studio.state) == (5, 2, RunState.STOPPED)
        assert studio.fetch("1") is before["1"]
        assert not any(map(studio.tensors.has_value, "234"))
        assert studio.workspace.log_entries[-1].text == "random seed 5"
        studio.resume()
        settle(studio)
        assert studio.record("noise").seed == 5
        assert (studio.fetch("3") != before["3"]).any()
        studio.set_seed(0)
        settle(studio)
        studio.resume()
        settle(studio)
        np.testing.assert_array_equal(studio.fetch("3"), before["3"])

    def test_the_same_one_says_nothing(self, qtbot, studio):
        with qtbot.assertNotEmitted(studio.seed_changed, wait=50):
            studio.set_seed(0)
        assert studio.state is RunState.FINISHED

    def test_nothing_was_drawn_yet(self, qtbot, open_model, noisy, step):
        session = open_model(noisy)
        step(session, 2)
        with qtbot.assertNotEmitted(session.values_reset, wait=50):
            session.set_seed(5)
        qtbot.waitUntil(lambda: not session.busy)
        assert (session.position, session.state) == (2, RunState.STOPPED)
        step(session, 1)
        assert session.record("thin").seed == 5

    def test_a_model_that_draws_nothing_keeps_its_values(self, qtbot, opened):
        opened.resume()
        settle(qtbot, opened)
        opened.set_seed(5)
        settle(qtbot, opened)
        assert (opened.state, opened.tensors.has_value("2")) == (RunState.FINISHED, True)

    def test_chosen_before_and_while_a_model_is_opened(self, qtbot, session, noisy):
        session.set_seed(3)
        session.next_model.set_sources([InputSource("constant", value=1.0)])
        session.open(noisy)
        session.set_seed(4)
        qtbot.waitUntil(lambda: session.state is RunState.READY and not session.busy)
        session.resume()
        settle(qtbot, session)
        assert session.record("thin").seed == 4
        session.reload()
        session.set_seed(6)
        settle(qtbot, session)
        # It went where it had been, and from there back to what draws by the seed.
        assert (session.state, session.current.name) == (RunState.STOPPED, "thin")
        session.resume()
        settle(qtbot, session)
        assert session.record("thin").seed == 6

    def test_a_model_that_cannot_be_opened(self, qtbot, session, tmp_path):
        (tmp_path / "no.param").write_text("no")
        session.open(tmp_path / "no.param")
        with qtbot.waitSignal(session.failed):
            session.set_seed(4)
        settle(qtbot, session)
        assert session.seed == 4
        assert "no model is open" not in session.workspace.log_entries[-1].text

    def test_a_run_under_way_is_stopped(self, qtbot, session, make_pair, gate):
        gate.close()
        path = make_pair(
            "pnnx.Input in 0 1 0 #0=(3)f32",
            "torch.rand_like noise 1 1 0 1 dtype=None",
            "test.Gate long 1 1 1 2",
            "nn.ReLU behind 1 1 2 3",
            "pnnx.Output out 1 0 3",
        )
        open_and_feed(qtbot, session, path, [[1, 2, 3]])
        session.step()
        settle(qtbot, session)
        session.resume()
        session.set_seed(8)
        gate.open()
        settle(qtbot, session)
        qtbot.waitUntil(lambda: session.position == 1)
        assert session.state is RunState.STOPPED
        assert not session.tensors.has_value("1")
        session.resume()
        settle(qtbot, session)
        assert session.record("noise").seed == 8
        assert session.state is RunState.FINISHED

    def test_words(self, open_model, noisy, settle):
        session = open_model(noisy)
        names = ("relu", "thin", "noise", "whole")
        session.set_seed(2)
        settle(session)
        expected = ["", "random, seed 2", "random, seed 2", ""]
        assert [session.random_text(name) for name in names] == expected
        session.resume()
        settle(session)
        assert [session.random_text(name) for name in names] == expected

    def test_dumps_tell_it(self, studio, settle, tmp_path):
        studio.set_seed(9)
        settle(studio)
        studio.export_dump(tmp_path / "d", DumpOptions())
        settle(studio)
        manifest = json.loads((tmp_path / "d" / "manifest.json").read_text(encoding="utf-8"))
        assert manifest["seed"] == 9


class TestInputsWhileAModelOpens:
    """They are for the model that is open when the answer comes."""

    @pytest.fixture
    def plain(self, make_pair):
        lines = (
            "pnnx.Input in 0 1 0 #0=(2)f32",
            "nn.ReLU relu 1 1 0 1",
            "pnnx.Output out 1 0 1",
        )
        return lambda name: make_pair(*lines, name=name)

    def test_it_opens(self, qtbot, empty_session, plain):
        session = empty_session
        open_and_feed(qtbot, session, plain("one"), [1.0, 2.0])
        one = session.graph
        session.open(plain("two"))
        session.set_source_list([InputSource("constant", value=3.0)])
        session.restart()
        qtbot.waitUntil(lambda: session.state is RunState.READY and not session.busy)
        assert session.graph is not one
        session.resume()
        settle(qtbot, session)
        np.testing.assert_array_equal(session.fetch("1"), [3, 3])

    def test_it_cannot_be_opened(self, qtbot, empty_session, plain, tmp_path):
        session = empty_session
        open_and_feed(qtbot, session, plain("one"), [1.0, 2.0])
        (tmp_path / "no.param").write_text("no")
        with qtbot.waitSignal(session.failed):
            session.open(tmp_path / "no.param")
            session.set_source_list([InputSource("constant", value=3.0)])
        qtbot.waitUntil(lambda: session.state is RunState.READY and not session.busy)
        session.resume()
        settle(qtbot, session)
        np.testing.assert_array_equal(session.fetch("1"), [3, 3])


def test_an_unknown_name_selects_and_shows_nothing(studio):
    """A view that heard of it would fail where nobody catches it."""
    studio.select("add")
    selected, operand = studio.selected, studio.operand
    with pytest.raises(UnknownNameError, match="nowhere"):
        studio.select("nowhere")
    with pytest.raises(UnknownNameError, match="nowhere"):
        studio.show_operand("nowhere")
    assert (studio.selected, studio.operand) == (selected, operand)
