"""What an operator should give, so that those behind it give what is shown."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.comparison.reasons import Tail

RNG = np.random.default_rng(9)


@pytest.fixture
def make_tail(make_pair):
    """A function that makes the tail from operand 0 to the last operator, and other values."""

    def make(shape, *lines, **values):
        path = make_pair(f"pnnx.Input in0 0 1 0 #0={shape}f32", *lines)
        graph = engine.load(path)
        operators = [o for o in graph.operators if not (o.is_input or o.is_output)]
        end = operators[-1].outputs[0]
        return Tail([graph.operand("0")], operators, end, values)

    return make


def test_it_computes_what_is_shown(make_tail):
    tail = make_tail(
        "(3,4)",
        "pnnx.Input in1 0 1 side #side=(3,4)f32",
        "F.relu act 1 1 0 1 $input=0 #1=(3,4)f32",
        "pnnx.Expression add 2 1 1 side 2 expr=add(@0,@1) #2=(3,4)f32",
        "pnnx.Output out 1 0 2",
        side=np.full((3, 4), 2, np.float32),
    )
    x = np.float32([[-1, 2, 0, 3]] * 3)
    np.testing.assert_array_equal(tail(x), [[2, 4, 2, 5]] * 3)
    assert tail((x, x)) is None
    assert tail(None) is None


@pytest.mark.parametrize(
    ("line", "function"),
    [
        ("F.leaky_relu f 1 1 0 1 negative_slope=0.25", lambda x: np.where(x > 0, x, x / 4)),
        ("F.sigmoid f 1 1 0 1", lambda x: 1 / (1 + np.exp(-x))),
        ("F.tanh f 1 1 0 1", np.tanh),
    ],
)
def test_functions_of_each_element_are_solved(make_tail, line, function):
    tail = make_tail("(5,40)", f"{line} $input=0 #1=(5,40)f32", "pnnx.Output out 1 0 1")
    theirs = RNG.uniform(-2, 2, (5, 40)).astype(np.float32)
    ours = (theirs * 0.7 + 0.3).astype(np.float32)
    found = tail.invert(ours, function(theirs).astype(np.float32))
    np.testing.assert_allclose(found.wanted, theirs, atol=2e-4)
    assert found.told.all()


def test_what_a_relu_loses_stays_ours(make_tail):
    tail = make_tail("(4)", "F.relu f 1 1 0 1 $input=0 #1=(4)f32", "pnnx.Output out 1 0 1")
    ours = np.float32([-3, -1, 2, 4])
    found = tail.invert(ours, np.float32([0, 5, 0, 6]))
    np.testing.assert_allclose(found.wanted[[0, 1, 3]], [-3, 5, 6], atol=1e-4)
    assert found.wanted[2] <= 1e-3
    assert found.told.tolist() == [False, True, False, True]


def test_what_is_only_moved_is_put_back(make_tail):
    tail = make_tail(
        "(2,3,4)",
        "Tensor.permute turn 1 1 0 1 dims=(2,0,1) $input=0 #1=(4,2,3)f32",
        "Tensor.reshape flat 1 1 1 2 shape=(8,3) $input=1 #2=(8,3)f32",
        "pnnx.Output out 1 0 2",
    )
    theirs = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    moved = theirs.transpose(2, 0, 1).reshape(8, 3)
    np.testing.assert_array_equal(tail.invert(theirs * 0, moved).wanted, theirs)


def test_a_constant_that_is_broadcast_is_solved(make_tail):
    x = RNG.standard_normal((2, 3, 4)).astype(np.float32)
    x[0] = 0  # tells nothing
    tail = make_tail(
        "(3,1)",
        "pnnx.Input in1 0 1 side #side=(2,3,4)f32",
        "pnnx.Expression e 2 1 0 side 1 expr=add(mul(@0,@1),1.5) #1=(2,3,4)f32",
        "pnnx.Output out 1 0 1",
        side=x,
    )
    theirs = np.float32([[2], [-0.5], [0.25]])
    found = tail.invert(np.ones((3, 1), np.float32), x * theirs + np.float32(1.5))
    np.testing.assert_allclose(found.wanted, theirs, atol=1e-4)
    assert found.told.all()


def test_what_mixes_elements_does_not_tell(make_tail):
    tail = make_tail(
        "(3,4)", "F.softmax f 1 1 0 1 dim=1 $input=0 #1=(3,4)f32", "pnnx.Output out 1 0 1"
    )
    x = RNG.standard_normal((3, 4)).astype(np.float32)
    assert tail.invert(x, x) is None
