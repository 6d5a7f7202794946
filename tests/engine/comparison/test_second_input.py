"""Matches that hold for one input only, in graphs whose results are known by hand."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.comparison.references import Reference, ReferenceTensor
from engine.comparison.references.varied_inputs import vary

REASON = "holds for one input only"
SIZE = "(1,2,3,20)f32"
POSITIVE = np.random.default_rng(3).uniform(1, 2, (1, 2, 3, 20)).astype("f4")
PLAIN = (
    "pnnx.Expression {0}sum 1 1 0 {0}1 expr=add(@0,0.5) #{0}1=" + SIZE,
    "F.tanh {0}end 1 1 {0}{1} {0}3 $input={0}{1} #{0}3=" + SIZE,
    "pnnx.Output out 1 0 {0}3",
)
RELU = "F.relu {0}act 1 1 {0}1 {0}2 $input={0}1 #{0}2=" + SIZE


@pytest.fixture
def make(make_pair):
    """A function that makes a session of a network of names that begin with a letter."""

    def make(letter, lines, *inputs, memory_bound=None):
        heads = [f"pnnx.Input in{n} 0 1 {n} #{n}={SIZE}" for n in range(len(inputs))]
        pair = make_pair(*heads, *lines, name=letter)
        session = engine.Session(engine.load(pair), backend="numpy", memory_bound=memory_bound)
        session.feed(inputs)
        return session

    return make


def network(letter, *, relu):
    """tanh(x + 0.5), or tanh(relu(x + 0.5))."""
    first, last, out = (line.format(letter, 2 if relu else 1) for line in PLAIN)
    return [first, *([RELU.format(letter)] if relu else []), last, out]


def matches(found):
    return {row.operand: row.reference for row in found.rows}


def reasons(listed):
    return {each.operand: each.reason for each in listed}


def test_a_relu_of_positive_numbers_is_not_its_input(make):
    ours = make("a", network("a", relu=True), POSITIVE)
    theirs = make("b", network("b", relu=False), POSITIVE)
    ours.step()
    theirs.step()
    found = engine.compare(ours, theirs)
    assert matches(found) == {"0": "0", "a1": "b1", "a3": "b3"}
    assert reasons(found.unmatched.ours)["a2"] == REASON
    assert (found.verdict, found.origins) == ("same", ())  # for the input that was compared
    for session in (ours, theirs):
        assert session.position == 1
        np.testing.assert_array_equal(session.value("0"), POSITIVE)


def test_a_copy_that_holds_is_matched_instead(make):
    ours = make("a", network("a", relu=True), POSITIVE)
    theirs = make("b", network("b", relu=True), POSITIVE)
    found = engine.compare(ours, theirs)
    assert matches(found) == {"0": "0", "a1": "b1", "a2": "b2", "a3": "b3"}
    rows = {row.operand: row for row in found.rows}
    assert [rows[name].confidence for name in ("a1", "a2")] == [0.95, 0.95]
    assert (found.unmatched.ours, found.unmatched.reference) == ((), ())


def test_a_fault_upstream_drops_nothing(make):
    lines = network("a", relu=True)
    ours = make("a", [lines[0].replace("0.5", "0.7"), *lines[1:]], POSITIVE - 1.5)
    theirs = make("b", network("b", relu=True), POSITIVE - 1.5)
    found = engine.compare(ours, theirs)
    assert matches(found) == {"0": "0", "a1": "b1", "a2": "b2", "a3": "b3"}
    assert [origin.operator.name for origin in found.origins] == ["asum"]


def test_a_product_with_ones_is_not_one_with_their_squares(make):
    ones = np.ones_like(POSITIVE)
    product = f"pnnx.Expression {{0}}mul 2 1 0 1 {{0}}1 expr={{1}} #{{0}}1={SIZE}"
    end = f"F.tanh {{0}}end 1 1 {{0}}1 {{0}}2 $input={{0}}1 #{{0}}2={SIZE}"
    out = "pnnx.Output out 1 0 {0}2"

    def lines(letter, expression):
        return [line.format(letter, expression) for line in (product, end, out)]

    ours = make("a", lines("a", "mul(@0,@1)"), POSITIVE, ones)
    theirs = make("b", lines("b", "mul(@0,mul(@1,@1))"), POSITIVE, ones)
    found = engine.compare(ours, theirs)
    assert matches(found) == {"0": "0", "1": "1", "a2": "b2"}
    assert reasons(found.unmatched.ours) == {"a1": REASON}
    again = make("c", lines("c", "mul(@1,@0)"), POSITIVE, ones)
    found = engine.compare(ours, again)
    assert matches(found) == {"0": "0", "1": "1", "a1": "c1", "a2": "c2"}


def test_a_recording_only_lowers_the_confidence(make):
    moved = POSITIVE + np.float32(0.5)
    arrays = {"x": POSITIVE, "sum": moved, "act": moved.copy(), "end": np.tanh(moved)}
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    theirs = Reference("theirs", tensors, (), ("x",), ("end",))
    found = engine.compare(make("a", network("a", relu=True), POSITIVE), theirs)
    rows = {row.operand: row for row in found.rows}
    assert set(rows) == {"0", "a1", "a2", "a3"}
    assert rows["a2"].confidence == 0.5
    assert "for this input" in rows["a2"].reason
    assert (rows["a3"].confidence, rows["a3"].reason) == (0.95, "")


def test_without_room_for_a_second_run_the_confidence_is_lower(make):
    ours = make("a", network("a", relu=True), POSITIVE)
    theirs = make("b", network("b", relu=False), POSITIVE, memory_bound=5 * POSITIVE.nbytes)
    theirs.run()
    found = engine.compare(ours, theirs)
    rows = {row.operand: row for row in found.rows}
    assert (rows["a2"].confidence, rows["a2"].reference) == (0.5, "b1")


def test_nothing_runs_again_where_names_match(make, monkeypatch):
    ours = make("a", network("a", relu=True), POSITIVE)
    theirs = engine.open_reference(ours)
    monkeypatch.setattr(theirs, "again", lambda progress: pytest.fail("it ran again"))
    found = engine.compare(ours, theirs)
    assert {row.matched_by for row in found.rows} <= {"name", "input", "output"}


def test_the_second_run_can_be_cancelled(make):
    ours = make("a", network("a", relu=True), POSITIVE)
    theirs = engine.open_reference(make("b", network("b", relu=False), POSITIVE))
    again, ends = theirs.again, []

    def run(progress):
        def cancel(done, total):
            ends.append(done)
            raise KeyboardInterrupt

        return again(cancel)

    theirs.again = run
    with pytest.raises(KeyboardInterrupt):
        engine.compare(ours, theirs)
    assert ends == [1]


def test_a_second_input_differs_everywhere():
    for first in (np.zeros((4, 50), "f4"), np.ones((4, 50), "f4"), np.full(1, 7, "f4")):
        second = vary(first)
        assert (second.dtype, second.shape) == (first.dtype, first.shape)
        assert (second != first).all()
        np.testing.assert_array_equal(vary(first), second)
    assert (vary(np.ones(100, "f4")) < 0).any()
    mask = np.array([0.0, -np.inf, 1.0, -np.inf] * 20, "f4")
    assert np.isneginf(vary(mask)).sum() == 40


def test_integers_stay_valid_indices():
    indices = np.arange(100).reshape(4, 25)
    assert sorted(vary(indices).reshape(-1)) == list(range(100))
    assert vary(indices).tolist() != indices.tolist()
    for first in (np.ones((2, 40), np.int64), np.ones((2, 40), np.bool_)):
        second = vary(first)
        assert set(second.reshape(-1).tolist()) == {0, 1}
        assert second.dtype == first.dtype
    assert vary(np.array([128])).tolist() == [128]
    assert vary(np.zeros((0, 3), "f4")).shape == (0, 3)
