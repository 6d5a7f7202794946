"""Operators that are computed ahead of the walk, on another thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import engine
from comparison_network import make_weights
from engine.comparison import Status
from engine.comparison.aligning import ahead
from engine.comparison.aligning.ahead import Ahead
from engine.comparison.aligning.content import Content
from engine.comparison.aligning.state import Sides
from engine.comparison.aligning.tools import Tools
from engine.comparison.aligning.walk import Walk
from engine.comparison.computing import Computing
from engine.comparison.fingerprints import FingerprintIndex
from engine.comparison.layouts import SAME_LAYOUT
from engine.comparison.matching import NAME, Match, Matcher
from engine.comparison.references import Reference, ReferenceTensor
from engine.layers import load_layers, unload_layers

WAIT = 30  # seconds


class Helper:
    """Tells what other threads than the test's have computed."""

    def __init__(self) -> None:
        self._there, self._names = threading.Condition(), []

    def note(self, name):
        if threading.current_thread() is not threading.main_thread():
            with self._there:
                self._names.append(name)
                self._there.notify_all()

    def wait_for(self, name):
        with self._there:
            assert self._there.wait_for(lambda: name in self._names, WAIT)

    @property
    def names(self):
        return tuple(self._names)


@pytest.fixture
def helper(monkeypatch):
    """A second thread, on a machine of whatever number of processors."""
    found, compute = Helper(), Computing.compute

    def noted(self, operator, arguments):
        results = compute(self, operator, arguments)
        found.note(operator.name)
        return results

    monkeypatch.setattr(Computing, "compute", noted)
    monkeypatch.setattr(ahead, "thread_count", lambda: 2)
    return found


@pytest.fixture
def theirs(tensors):
    """A reference with our names."""
    loading = [ReferenceTensor(key, lambda each=each: each) for key, each in tensors.items()]
    return Reference("theirs", loading, (), ("0",), ("7",))


OTHER_BIAS = {"conv.bias": make_weights()["conv.bias"] + 1}


def test_what_follows_a_fault_is_computed_beside_the_walk(make_session, theirs, helper):
    session = make_session({}, OTHER_BIAS)
    session.run()
    index = {operator.name: operator.index for operator in session.graph.operators}

    def progress(done, _):
        if done == index["mix"]:  # it is begun as soon as `act` is computed
            helper.wait_for("mix")

    found = engine.compare(session, theirs, progress=progress)
    assert [origin.operator.name for origin in found.origins] == ["conv"]
    rows = {row.operand: row for row in found.rows}
    assert rows["3"].status is Status.INHERITED
    assert 0 < rows["3"].born < 1e-6
    assert rows["3"].measures.relative > 1e-3


def test_nothing_is_computed_ahead_where_all_agrees(make_session, theirs, helper):
    assert engine.compare(make_session(), theirs).verdict == "same"
    assert helper.names == ()


def test_nothing_is_computed_ahead_on_one_processor(make_session, theirs, helper, monkeypatch):
    monkeypatch.setattr(ahead, "thread_count", lambda: 1)
    found = engine.compare(make_session({}, OTHER_BIAS), theirs)
    assert [origin.operator.name for origin in found.origins] == ["conv"]
    assert helper.names == ()


class Beside:
    """What computes ahead, for a walk of which the test takes the steps."""

    def __init__(self, session, theirs):
        session.run()
        self.operators = {operator.name: operator for operator in session.graph.operators}
        index = FingerprintIndex(theirs)
        matcher = Matcher(session.graph, theirs, index, {})
        tools = Tools.of(Sides(session, theirs, index, matcher, 1e-4))
        self._result = tools.state.result
        self._ahead = Ahead(
            tools.sides, tools.state, tools.values, Walk(tools, Content(tools)).known
        )
        self.computing = self._ahead.computing

    def match(self, operand, key):
        self._result.matches[operand] = Match(key, NAME, 1.0, SAME_LAYOUT)
        self._result.shapes[operand] = (1, 4, 8, 8)

    def go_on(self, name):
        self._ahead.go_on(self.operators[name])

    def wait(self):
        """Wait for all that was begun, which is computed in this order."""
        self._ahead._thread.submit(int).result(WAIT)

    def take(self, name):
        return self._ahead.take(self.operators[name])


def test_a_result_counts_only_with_the_tensors_that_it_was_computed_from(
    make_session, theirs, tensors, helper
):
    beside = Beside(make_session({}, OTHER_BIAS), theirs)
    beside.match("1", "1")
    with beside.computing():
        beside.go_on("act")
        helper.wait_for("last")
        beside.match("2", "5")  # instead of the one of its name
        beside.match("4", "4")
        assert beside.take("mix") is None
        (found,), failure = beside.take("last")
        assert beside.take("last") is None
    assert failure == ""
    np.testing.assert_allclose(found, np.maximum(tensors["4"], 0), atol=1e-6)
    assert beside.take("sum") is None


def test_what_the_walk_does_not_take_leaves_its_room(make_session, theirs, helper, monkeypatch):
    monkeypatch.setattr(ahead, "_MOST_BYTES", 1024)  # one result
    beside = Beside(make_session({}, OTHER_BIAS), theirs)
    beside.match("1", "1")
    with beside.computing():
        beside.go_on("act")
        helper.wait_for("mix")
        for operand in ("2", "3"):
            beside.match(operand, operand)
        beside.go_on("sum")  # the walk took nothing for `mix`
        helper.wait_for("last")
        assert beside.take("mix") is None


def test_a_layer_of_the_user_stays_on_one_thread(make_session, theirs, helper, tmp_path):
    """It may keep what only one thread at a time can use."""
    file = tmp_path / "own.py"
    file.write_text(
        "import numpy as np\n"
        "from engine.layers import register\n"
        "@register('own.Clip')\n"
        "def clip(input: np.ndarray) -> np.ndarray:\n"
        "    return np.maximum(input, 0)\n"
    )
    load_layers(file)
    try:
        session = make_session({"nn.ReLU last": "own.Clip last"}, OTHER_BIAS)
    finally:
        unload_layers()
    beside = Beside(session, theirs)
    beside.match("1", "1")
    with beside.computing():
        beside.go_on("act")
        beside.wait()
    assert helper.names == ("mix", "sum")


def test_no_output_is_computed(make_session, theirs, helper):
    """It has no results, and the walk takes none."""
    beside = Beside(make_session({}, OTHER_BIAS), theirs)
    beside.match("1", "1")
    with beside.computing():
        beside.go_on("act")
        beside.wait()
    assert helper.names == ("mix", "sum", "last", "flat", "fc")


def test_few_bytes_wait(make_session, theirs, helper, monkeypatch):
    """A result of 1 x 4 x 8 x 8 has 1024 bytes: room for `mix` alone."""
    monkeypatch.setattr(ahead, "_MOST_BYTES", 1024)
    session = make_session({}, OTHER_BIAS)
    session.run()
    index = {operator.name: operator.index for operator in session.graph.operators}
    seen = []

    def progress(done, _):
        if done == index["mix"]:
            helper.wait_for("mix")
            seen.extend(helper.names)

    engine.compare(session, theirs, progress=progress)
    assert seen == ["mix"]
