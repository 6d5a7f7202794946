"""What is marked, and what is known of values, as the session goes on."""

from __future__ import annotations

import numpy as np
import pytest

from engine.inputs import InputSource
from kuiper_studio.engine_service.summary import measure

# in -> relu -> half -> add -> out, and in -> shift -> add
LINES = (
    "pnnx.Input in 0 1 0 #0=(1,4)f32",
    "F.relu relu 1 1 0 1 #1=(1,4)f32",
    "pnnx.Expression log 1 1 1 2 expr=log(@0) #2=(1,4)f32",
    "pnnx.Expression shift 1 1 0 3 expr=add(@0,100) #3=(1,4)f32",
    "pnnx.Expression add 2 1 2 3 4 expr=add(@0,@1) #4=(1,4)f32",
    "pnnx.Output out 1 0 4",
)
# relu: 0 0 1 4; log: -inf -inf 0 1.39; shift: 98 99 101 104
VALUES = np.array([[-2, -1, 1, 4]], np.float32)


@pytest.fixture
def session(open_model, make_pair):
    return open_model(make_pair(*LINES), InputSource("array", array=VALUES))


def names(session):
    return [session.graph.operators[index].name for index in session.finding.operators]


def test_a_search_by_values_follows_the_run(qtbot, session, step):
    finding = session.finding
    finding.search("max > 3")
    assert (names(session), finding.unknown) == ([], 5)

    step(session, 2)
    qtbot.waitUntil(lambda: finding.unknown == 3)
    assert names(session) == ["in", "relu"]

    session.resume()
    qtbot.waitUntil(lambda: finding.unknown == 0)
    assert names(session) == ["in", "relu", "shift", "add"]

    session.step_back()
    qtbot.waitUntil(lambda: not session.busy)
    session.step_back()
    qtbot.waitUntil(lambda: finding.unknown == 1)
    assert names(session) == ["in", "relu", "shift"]


def test_values_are_measured_only_while_a_search_asks(qtbot, session):
    session.resume()
    qtbot.waitUntil(lambda: not session.busy)
    assert not session.measuring.table.known.any()

    session.finding.search("has inf")
    qtbot.waitUntil(lambda: session.finding.unknown == 0)
    assert names(session) == ["log", "add"]
    table = session.measuring.table
    assert table.known.tolist() == [True] * 5 + [False]
    assert table.zeros[:4].tolist() == [0, 0.5, 0.25, 0]
    assert table.low[:4].tolist() == [-2, 0, -np.inf, 98]
    assert table.largest[:4].tolist() == [4, 4, np.inf, 104]


def test_marks_are_stepped_through_and_wrap(session):
    finding = session.finding
    finding.search("type:Expression")

    assert finding.operators == (2, 3, 4)
    assert [finding.after(index) for index in (-1, 2, 3, 4)] == [2, 3, 4, 2]
    assert [finding.before(index) for index in (0, 2, 3, 5)] == [4, 4, 2, 4]
    assert [finding.place_of(index) for index in range(6)] == [-1, -1, 0, 1, 2, -1]
    assert finding.marks.tolist() == [False, False, True, True, True, False]


def test_an_error_keeps_the_last_marks(qtbot, session):
    finding = session.finding
    finding.search("relu")
    with qtbot.waitSignal(finding.changed):
        finding.search('"relu')

    assert finding.error == 'a quotation mark is not closed: add "'
    assert names(session) == ["relu"]

    finding.search("strid=2")
    assert "no operator has a parameter strid" in finding.error
    finding.search("")
    assert not finding.is_on
    assert not finding.error


def test_upstream_downstream_and_paths(session):
    finding = session.finding
    finding.mark_upstream("log")
    assert names(session) == ["in", "relu", "log"]
    assert finding.title == "upstream of log"

    finding.mark_downstream("log")
    assert names(session) == ["log", "add", "out"]

    finding.mark_paths("out", "relu")
    assert names(session) == ["relu", "log", "add", "out"]
    assert finding.title == "on paths from relu to out"

    finding.mark_paths("relu", "shift")
    assert names(session) == []
    assert finding.is_on


def test_paths_to_the_next_selected_operator(session):
    session.select("in")
    session.finding.begin_paths("in")
    assert session.finding.start == "in"
    assert not session.finding.is_on

    session.select("shift")
    assert names(session) == ["in", "shift"]
    assert not session.finding.start


def test_another_model_forgets_what_was_marked(qtbot, session, residual):
    session.finding.search("relu")
    graph = session.graph
    session.open(residual)
    qtbot.waitUntil(lambda: session.graph is not graph and not session.busy)

    assert not session.finding.is_on
    session.finding.search("relu")
    assert names(session) == ["layer1.relu", "tail"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.array([0.0, -3.0, 2.0])], (3, -3, 2, 1, 0, 0)),
        ([np.array([np.inf, np.nan, 1.0])], (3, 1, np.inf, 0, 1, 1)),
        ([np.array([np.inf, -np.inf])], (2, -np.inf, np.inf, 0, 0, 2)),
        ([np.array([np.nan])], (1, np.nan, np.nan, 0, 1, 0)),
        ([np.array([1, 0]), (np.array([7]), 3)], (3, 0, 7, 1, 0, 0)),
        ([np.zeros((0, 2))], (0, np.nan, np.nan, 0, 0, 0)),
        ([5], (0, np.nan, np.nan, 0, 0, 0)),
        ([np.array([3 + 4j])], (1, 5, 5, 0, 0, 0)),
    ],
)
def test_measures_of_values(values, expected):
    np.testing.assert_array_equal(measure(values), expected)


def test_what_searches_look_up_is_made_in_turns(session, wait_for_turns):
    """All at once it took three frames with ten thousand operators."""
    index = session.finding._indexed()
    session.finding.prepare()
    assert not {"texts", "shapes", "parameters"} & vars(index).keys()
    wait_for_turns()
    assert {"texts", "shapes", "parameters"} <= vars(index).keys()
