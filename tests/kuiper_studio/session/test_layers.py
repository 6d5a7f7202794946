"""Layers of the user's own: loaded, loaded again, wrong, and unloaded while a model is open."""

from __future__ import annotations

import numpy as np
import pytest

from engine.inputs import InputSource
from engine.layers import registration, unload_layers
from kuiper_studio.session import RunState

MODEL = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "pnnx.Expression twice 1 1 0 1 expr=mul(@0,2)",
    "my.Own own 1 1 1 2",
    "pnnx.Output out 1 0 2",
)
LAYERS = """\
from engine.layers import register

@register("my.Own")
def own(input):
    return input + 1
"""


@pytest.fixture(autouse=True)
def unloaded():
    yield
    unload_layers()


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def session(open_model, make_pair):
    """A session with a model open that has an operator without a layer."""
    return open_model(make_pair(*MODEL), InputSource("constant", value=1.0))


@pytest.fixture
def run_to_end(qtbot, settle):
    def run(session):
        session.resume()
        settle(session)
        assert session.state is RunState.FINISHED
        return session.fetch("2")

    return run


def texts(session, level="info"):
    return [entry.text for entry in session.workspace.log_entries if entry.level == level]


def test_a_model_that_is_open_gets_them(session, settle, write, run_to_end):
    assert run_to_end(session) is None
    session.load_layers(write(LAYERS))
    settle(session)
    assert session.state is RunState.READY  # with the input that it had
    assert session.graph.unsupported == ()
    np.testing.assert_array_equal(run_to_end(session), np.full(3, 3.0))
    assert "layers of mine.py: my.Own" in texts(session)
    assert [file.path.name for file in session.workspace.layer_files] == ["mine.py"]


def test_labels_breakpoints_and_selection_stay(session, settle, write):
    session.workspace.set_labels(("a", "b", "c"))
    session.toggle_breakpoint("own")
    session.select("twice")
    session.load_layers(write(LAYERS))
    settle(session)
    assert session.workspace.labels == ("a", "b", "c")
    assert session.breakpoints == {"own"}
    assert session.selected == "twice"


def test_before_a_model_is_open(qtbot, empty_session, settle, write, make_pair, run_to_end):
    session = empty_session
    with qtbot.waitSignal(session.workspace.layers_changed):
        session.load_layers(write(LAYERS))
    settle(session)
    assert session.state is RunState.EMPTY
    session.next_model.set_sources([InputSource("constant", value=1.0)])
    session.open(make_pair(*MODEL))
    settle(session)
    qtbot.waitUntil(lambda: session.state is RunState.READY)
    np.testing.assert_array_equal(run_to_end(session), np.full(3, 3.0))


def test_a_model_asked_for_at_the_same_time(qtbot, empty_session, write, make_pair):
    """The worker takes them in turn, so the model has the layers."""
    session = empty_session
    session.load_layers(write(LAYERS))
    session.open(make_pair(*MODEL))
    qtbot.waitUntil(lambda: session.state is RunState.NEED_INPUT)
    assert session.graph.unsupported == ()
    assert [file.path.name for file in session.workspace.layer_files] == ["mine.py"]


def test_layers_asked_for_while_a_model_opens(qtbot, empty_session, write, make_pair):
    session = empty_session
    session.open(make_pair(*MODEL))
    session.load_layers(write(LAYERS))
    qtbot.waitUntil(lambda: session.state is RunState.NEED_INPUT and not session.busy)
    assert session.graph.unsupported == ()


def test_reloading_runs_the_files_again(session, settle, write, run_to_end):
    session.load_layers(write(LAYERS))
    settle(session)
    write(LAYERS.replace("+ 1", "* 10"))
    session.reload()
    settle(session)
    np.testing.assert_array_equal(run_to_end(session), np.full(3, 20.0))


def test_a_wrong_file_is_told_and_changes_nothing(qtbot, session, settle, write, run_to_end):
    session.load_layers(write(LAYERS))
    settle(session)
    np.testing.assert_array_equal(run_to_end(session), np.full(3, 3.0))
    graph, path = session.graph, write(LAYERS + "\n1 / 0\n")
    with qtbot.waitSignal(session.failed) as failed:
        session.reload()
    settle(session)
    failure = failed.args[0]
    assert failure.title == "The layers cannot be loaded"
    assert failure.reason == f"{path}:7: ZeroDivisionError: division by zero"
    assert failure.layer_file == path
    assert failure.operator == ""
    assert texts(session, "error") == [failure.reason]
    assert session.graph is graph
    assert session.state is RunState.FINISHED
    np.testing.assert_array_equal(session.fetch("2"), np.full(3, 3.0))


def test_a_layer_that_fails_and_is_mended(qtbot, session, settle, write, run_to_end):
    session.load_layers(write(LAYERS.replace("input + 1", "input.nothing")))
    settle(session)
    session.resume()
    settle(session)
    assert session.state is RunState.FAILED
    assert session.failure.reason == (
        "AttributeError: 'numpy.ndarray' object has no attribute 'nothing' (mine.py:5)"
    )
    wrong = write("def own(:\n")
    session.reload()
    settle(session)
    assert session.state is RunState.FAILED
    assert session.failure.reason.startswith(f"{wrong}:1: SyntaxError")
    write(LAYERS)
    session.reload()
    settle(session)
    assert (session.state, session.failure) == (RunState.STOPPED, None)
    assert session.current.name == "own"  # where it had failed
    np.testing.assert_array_equal(run_to_end(session), np.full(3, 3.0))


def test_unloading(session, settle, write):
    session.load_layers(write(LAYERS))
    settle(session)
    session.unload_layers()
    settle(session)
    assert [operator.name for operator in session.graph.unsupported] == ["own"]
    assert session.workspace.layer_files == ()
    assert session.state is RunState.READY
    assert "your own layers are unloaded" in texts(session)


def test_steps_of_a_run_that_a_wrong_file_interrupts_count(qtbot, session, settle, write):
    """The engine has taken them, so the views must know of them."""
    path = write(
        "from threading import Event\n"
        "from engine.layers import register\n\n"
        "ENTERED, GATE = Event(), Event()\n\n"
        '@register("my.Own")\n'
        "def own(input):\n"
        "    ENTERED.set()\n"
        "    GATE.wait(10)\n"
        "    return input\n"
    )
    session.load_layers(path)
    settle(session)
    events = registration("my.Own").target.__globals__
    session.resume()
    assert events["ENTERED"].wait(10)
    session.load_layers(write("1 / 0\n", "wrong.py"))
    events["GATE"].set()
    settle(session)
    assert session.failure.title == "The layers cannot be loaded"
    taken = [op.name for op in session.graph.operators if session.record(op.name) is not None]
    assert taken == ["in", "twice", "own"]
    assert session.position == 3
    session.resume()
    settle(session)
    assert session.state is RunState.FINISHED
    assert session.tensors.has_value("2")
