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


def test_a_result_counts_only_with_the_tensors_that_it_was_computed_from(
    make_session, theirs, tensors, helper
):
    session = make_session({}, OTHER_BIAS)
    session.run()
    operators = {operator.name: operator for operator in session.graph.operators}
    index = FingerprintIndex(theirs)
    sides = Sides(session, theirs, index, Matcher(session.graph, theirs, index, {}), 1e-4)
    tools = Tools.of(sides)
    known = Walk(tools, Content(tools)).known
    beside = Ahead(sides, tools.state, tools.values, known)

    def match(operand, key):
        tools.state.result.matches[operand] = Match(key, NAME, 1.0, SAME_LAYOUT)
        tools.state.result.shapes[operand] = (1, 4, 8, 8)

    match("1", "1")
    with beside.computing():
        beside.go_on(operators["act"])
        helper.wait_for("last")
        match("2", "5")  # instead of the one of its name
        match("4", "4")
        assert beside.take(operators["mix"]) is None
        (found,), failure = beside.take(operators["last"])
        assert beside.take(operators["last"]) is None
    assert failure == ""
    np.testing.assert_allclose(found, np.maximum(tensors["4"], 0), atol=1e-6)
    assert beside.take(operators["sum"]) is None


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
