"""The window over an engine in a process of its own, which may end at any time."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from engine.errors import ModelFileError
from engine.inputs import InputSource
from engine.states import OperatorStatus
from kuiper_studio.session import RunState, StudioSession

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(2,3)f32",
    (
        "nn.Linear double 1 1 0 1 bias=False in_features=3 out_features=3 "
        "@weight=(3,3)f32 #1=(2,3)f32"
    ),
    "nn.ReLU relu 1 1 1 2 #2=(2,3)f32",
    "my.{} own 1 1 2 3 #3=(2,3)f32",
    "nn.ReLU last 1 1 3 4 #4=(2,3)f32",
    "pnnx.Output out 1 0 4",
)
LAYERS = '''
import os, signal, time
from engine.layers import register

@register("my.Endless")
def endless(x):
    """Never end."""
    while True:
        pass

@register("my.Fault")
def fault(x):
    """Do what faulty native code does."""
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(10)

@register("my.Slow")
def slow(x):
    """Give the input back, after a while."""
    time.sleep(0.2)
    return x

@register("my.Same")
def same(x):
    """Give the input back."""
    return x
'''


@pytest.fixture
def session(qtbot):
    made = StudioSession(engine="process")
    yield made
    made.close()


@pytest.fixture
def open_chain(session, make_pair, tmp_path):
    """Opens a chain with an operator of a type, fed with threes."""

    def open_it(kind="Same"):
        layers = tmp_path / "mine.py"
        layers.write_text(LAYERS)
        lines = [line.format(kind) for line in CHAIN]
        path = make_pair(*lines, weights={"double.weight": 2 * np.eye(3, dtype=np.float32)})
        session.load_layers(layers)
        session.next_model.set_sources([InputSource("constant", value=3.0)])
        session.open(path)
        assert session.wait_idle(20)
        assert session.state is RunState.READY, session.failure
        return session

    return open_it


def test_a_whole_session(open_chain, qtbot):
    session = open_chain()
    assert session.engine_pid not in {None, os.getpid()}
    session.step()
    session.wait_idle()
    session.resume()
    assert session.wait_idle()
    assert session.state is RunState.FINISHED
    np.testing.assert_array_equal(session.fetch("4"), np.full((2, 3), 6))
    assert session.fetch("nothing") is None
    weight = session.graph.operator("double").attributes["weight"].array
    np.testing.assert_array_equal(weight, 2 * np.eye(3))
    own = session.graph.operator("own")
    qtbot.waitUntil(lambda: own.note.summary == "Give the input back.", timeout=10_000)
    assert session.graph.operator("own").layer_file.name == "mine.py"
    session.step_back()
    assert session.wait_idle()
    assert session.position == 5
    assert not session.tensors.has_value("nothing")


@pytest.mark.skipif(sys.platform != "linux", reason="looks at threads as Linux shows them")
def test_the_window_goes_before_the_engine(open_chain):
    """Also before threads that libraries started when they were imported."""
    session = open_chain()
    session.resume()
    assert session.wait_idle()
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    threads = [int(each.name) for each in Path(f"/proc/{session.engine_pid}/task").iterdir()]
    levels = {os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}
    assert len(threads) > 1
    assert levels == {min(mine + 3, 19)}


@pytest.mark.parametrize("position", [0, 2, 6])
def test_killed_while_idle(open_chain, position, qtbot):
    session = open_chain()
    for _ in range(position):
        session.step()
        session.wait_idle()
    session.toggle_breakpoint("last")
    pid = session.engine_pid
    with qtbot.waitSignal(session.failed, timeout=20_000):
        os.kill(pid, signal.SIGKILL)
    assert session.wait_idle()
    assert session.engine_pid != pid
    assert session.position == position
    assert session.failure.title == "The engine ended"
    assert session.breakpoints == {"last"}
    if position:
        np.testing.assert_array_equal(session.fetch("0"), np.full((2, 3), 3))
    session.toggle_breakpoint("last")
    session.resume()
    assert session.wait_idle()
    assert session.state is RunState.FINISHED
    np.testing.assert_array_equal(session.fetch("4"), np.full((2, 3), 6))


def test_a_fault_in_an_operator(open_chain, qtbot):
    session = open_chain("Fault")
    with qtbot.waitSignal(session.failed, timeout=20_000):
        session.resume()
    assert session.wait_idle()
    assert session.failure.operator == "own"
    assert session.failure.title == "The engine ended in own"
    assert "SIGSEGV" in session.failure.reason
    # The operator before it has run, and can be looked at.
    assert (session.current.name, session.state) == ("own", RunState.STOPPED)
    np.testing.assert_array_equal(session.fetch("2"), np.full((2, 3), 6))
    assert session.status("own") is OperatorStatus.PENDING


def test_stop_ends_a_single_endless_operator(open_chain, qtbot):
    session = open_chain("Endless")
    session.resume()
    qtbot.waitUntil(lambda: session.position == 3, timeout=10_000)
    with qtbot.waitSignal(session.failed, timeout=20_000):
        session.stop()
    assert session.wait_idle()
    assert session.failure.title == "own was stopped"
    assert (session.current.name, session.state) == ("own", RunState.STOPPED)
    np.testing.assert_array_equal(session.fetch("2"), np.full((2, 3), 6))


def test_stop_ends_a_reference_that_runs(open_chain, make_pair, qtbot):
    """Between its operators: the engine stays, with all values of the run."""
    session = open_chain()
    session.resume()
    assert session.wait_idle()
    slow = [f"my.Slow s{i} 1 1 {i} {i + 1} #{i + 1}=(2,3)f32" for i in range(50)]
    other = make_pair(CHAIN[0], *slow, "pnnx.Output out 1 0 50", name="slow")
    pid = session.engine_pid
    session.studies.compare(other)
    qtbot.waitUntil(lambda: session.progress.done > 0, timeout=10_000)
    session.stop()
    assert session.wait_idle()
    assert (session.engine_pid, session.failure) == (pid, None)
    assert session.state is RunState.FINISHED
    assert session.comparing.comparison is None


def test_a_self_check_comes_back(open_chain, make_pair, qtbot):
    session = open_chain()
    with qtbot.waitSignal(session.studies.self_checked, timeout=20_000) as told:
        session.studies.self_check()
    (found,) = told.args
    assert found.agrees, found.summary
    assert {label.name for label in found.alone} >= {"own"}
    session.open(
        make_pair(CHAIN[0], "my.None odd 1 1 0 1", "pnnx.Output out 1 0 1", name="odd")
    )
    assert session.wait_idle()
    session.set_source_list([InputSource("constant", value=3.0)])
    assert session.wait_idle()
    with qtbot.waitSignal(session.studies.self_checked, timeout=20_000) as told:
        session.studies.self_check()
    (found,) = told.args
    assert [label.name for label in found.not_run] == ["odd", "out"]
    assert "no layer for operator type my.None" in found.obstacle


def test_another_model_gives_no_weights_of_its_own(open_chain, make_pair):
    """What was asked of a model that was open before is refused, not answered by another."""
    session = open_chain()
    weight = session.graph.operator("double").attributes["weight"]
    other = (CHAIN[0], CHAIN[1], "pnnx.Output out 1 0 1")
    session.open(
        make_pair(*other, weights={"double.weight": np.ones((3, 3), np.float32)}, name="b")
    )
    assert session.wait_idle()
    with pytest.raises(ModelFileError, match="another model has been opened"):
        _ = weight.array
    np.testing.assert_array_equal(
        session.graph.operator("double").attributes["weight"].array, np.ones((3, 3))
    )


class TestAnotherModel:
    """It is opened behind an operator that never ends."""

    @pytest.fixture
    def endless(self, open_chain, qtbot):
        session = open_chain("Endless")
        session.resume()
        qtbot.waitUntil(lambda: session.position == 3, timeout=10_000)
        return session

    @pytest.fixture
    def other(self, make_pair):
        lines = (CHAIN[0], "nn.ReLU only 1 1 0 1 #1=(2,3)f32", "pnnx.Output out 1 0 1")
        return make_pair(*lines, name="other")

    def assert_open(self, session):
        assert session.wait_idle()
        assert [operator.name for operator in session.graph.operators] == ["in", "only", "out"]
        assert (session.state, session.failure) == (RunState.READY, None)
        session.resume()
        assert session.wait_idle()
        np.testing.assert_array_equal(session.fetch("1"), np.full((2, 3), 4))

    def test_when_that_was_closed(self, endless, other):
        endless.close_model()
        assert not endless.busy
        endless.next_model.set_sources([InputSource("constant", value=4.0)])
        endless.open(other)
        self.assert_open(endless)

    def test_when_that_was_stopped(self, endless, other):
        endless.next_model.set_sources([InputSource("constant", value=4.0)])
        endless.open(other)
        endless.stop()
        self.assert_open(endless)

    def test_a_slow_operator_is_waited_for(self, session, make_pair, tmp_path, qtbot):
        """Only what the user has stopped is ended by force."""
        layers = tmp_path / "mine.py"
        layers.write_text(
            LAYERS.replace("while True:\n        pass", "time.sleep(2.5)\n    return x")
        )
        lines = [line.format("Endless") for line in CHAIN]
        path = make_pair(*lines, weights={"double.weight": np.eye(3, dtype=np.float32)})
        session.load_layers(layers)
        session.next_model.set_sources([InputSource("constant", value=3.0)])
        session.open(path)
        assert session.wait_idle()
        pid = session.engine_pid
        session.resume()
        qtbot.waitUntil(lambda: session.position == 3, timeout=10_000)
        session.set_inputs({"0": InputSource("constant", value=4.0)})
        assert session.wait_idle()
        assert session.engine_pid == pid
        assert (session.state, session.failure) == (RunState.READY, None)


def test_it_gives_up_when_it_ends_again_and_again(open_chain, qtbot):
    session = open_chain()
    session.step()
    session.wait_idle()
    for _ in range(3):
        with qtbot.waitSignal(session.failed, timeout=20_000):
            os.kill(session.engine_pid, signal.SIGKILL)
        session.wait_idle()
    # One click, and it goes on.
    session.reload()
    assert session.wait_idle()
    session.resume()
    assert session.wait_idle()
    assert session.state is RunState.FINISHED


class TestLayers:
    def test_reloaded_in_a_fresh_interpreter(self, open_chain, tmp_path):
        session = open_chain()
        pid = session.engine_pid
        text = LAYERS.replace("return x", "return x * 100")
        (tmp_path / "mine.py").write_text(text)
        session.reload()
        assert session.wait_idle()
        assert session.engine_pid != pid
        session.resume()
        assert session.wait_idle()
        np.testing.assert_array_equal(session.fetch("4"), np.full((2, 3), 600))

    @pytest.mark.parametrize("text", ["def f(:", "import os; os._exit(3)", "while True: pass"])
    def test_a_bad_file_leaves_everything_as_it_is(self, open_chain, tmp_path, text, qtbot):
        session = open_chain()
        pid = session.engine_pid
        session.run_to("last")
        session.wait_idle()
        bad = tmp_path / "bad.py"
        bad.write_text(text)
        with qtbot.waitSignal(session.failed, timeout=20_000):
            session.load_layers(bad)
            if "while" in text:
                session.stop()
        assert session.wait_idle()
        assert session.engine_pid == pid
        assert [file.path.name for file in session.workspace.layer_files] == ["mine.py"]
        assert session.current.name == "last"
        session.resume()
        assert session.wait_idle()
        np.testing.assert_array_equal(session.fetch("4"), np.full((2, 3), 6))

    def test_unloaded(self, open_chain):
        session = open_chain()
        pid = session.engine_pid
        session.unload_layers()
        assert session.wait_idle()
        assert session.engine_pid != pid
        assert session.workspace.layer_files == ()
        assert session.status("own") is OperatorStatus.UNSUPPORTED

    def test_unloaded_before_another_model_that_cannot_be_opened(self, open_chain, tmp_path):
        session = open_chain()
        session.run_to("relu")
        session.wait_idle()
        pid, said = session.engine_pid, []
        session.failed.connect(said.append)
        bad = tmp_path / "words.param"
        bad.write_text("no model at all")
        session.open(bad)
        session.unload_layers()
        assert session.wait_idle()
        assert session.engine_pid != pid
        assert session.state is RunState.STOPPED
        assert session.current.name == "relu"
        np.testing.assert_array_equal(session.fetch("1"), np.full((2, 3), 6))
        assert "words.param" in said[-1].reason
        assert session.failure is said[-1]
        session.open(bad)
        assert session.wait_idle()
        assert session.current.name == "relu"  # the engine has it

    def test_a_model_that_is_gone_when_the_engine_has_been_started_anew(self, open_chain):
        session = open_chain()
        session.run_to("relu")
        session.wait_idle()
        session.model_path.unlink()
        session.unload_layers()
        assert session.wait_idle()
        assert session.state is RunState.FAILED
        assert session.fetch("1") is None
        assert session.failure.reload


def test_a_weight_is_not_waited_for_when_the_engine_has_ended(session, open_chain):
    """The GUI thread may want one before it has handled the event of the loss."""
    open_chain("Same")
    attribute = session.graph.operator("double").attributes["weight"]
    os.kill(session.engine_pid, signal.SIGKILL)
    started = time.monotonic()
    for _ in range(3):  # the first one may still be sent
        with pytest.raises(ModelFileError, match="the engine has ended"):
            attribute.array  # noqa: B018 - reads it
    assert time.monotonic() - started < 10
    assert session.wait_idle(10)
