"""Comparisons that go on behind an operator that nothing can compute."""

from __future__ import annotations

import numpy as np
import pytest

from array_reference import compare, reference_of
from engine.comparison import Status

RNG = np.random.default_rng(3)
X, Y = (RNG.standard_normal((1, 6, 8)).astype("f4") for _ in range(2))
W = RNG.standard_normal((8, 8)).astype("f4")
V = RNG.standard_normal((4, 8)).astype("f4")
BIAS = RNG.standard_normal(8).astype("f4")
LINES = (
    "pnnx.Input in 0 1 0",
    "my.Strange strange 1 1 0 1",  # no layer computes it, and the file has no shapes
    "F.silu act 1 1 1 2 $input=1",
    "nn.Linear fc 1 1 2 3 bias=True in_features=8 out_features=8 @bias=(8)f32 @weight=(8,8)f32",
    "pnnx.Expression sum 2 1 0 3 4 expr=add(@0,@1)",
    "nn.Linear end 1 1 4 5 bias=False in_features=8 out_features=4 @weight=(4,8)f32",
    "pnnx.Output out 1 0 5",
)


def reference():
    """What the model gives if the strange layer gives ``Y``, whatever it reads."""
    act = Y / (1 + np.exp(-Y))
    fc = act @ W.T + BIAS
    sum_ = X + fc
    arrays = {"x": X, "strange": Y, "act": act, "fc": fc, "sum": sum_, "end": sum_ @ V.T}
    calls = (
        ("strange", ("x",), "strange", {}), ("silu", ("strange",), "act", {}),
        ("linear", ("act",), "fc", {"weight": W, "bias": BIAS}),
        ("add", ("x", "fc"), "sum", {}), ("linear", ("sum",), "end", {"weight": V}),
    )  # fmt: skip
    return reference_of({key: a.astype("f4") for key, a in arrays.items()}, calls)


def model(make_pair, bias=BIAS, expression="add"):
    lines = [line.replace("expr=add", f"expr={expression}") for line in LINES]
    return make_pair(*lines, weights={"fc.weight": W, "fc.bias": bias, "end.weight": V})


def test_what_follows_agrees_on_the_values_of_the_reference(make_pair):
    found = compare(model(make_pair), reference(), X)
    assert (found.verdict, found.origins) == ("same", ())
    matched = {row.operand: row.reference for row in found.rows}
    assert matched == {"0": "x", "1": "strange", "2": "act", "3": "fc", "4": "sum", "5": "end"}
    rows = {row.operand: row for row in found.rows}
    assert {rows[name].status for name in "12345"} == {Status.NOT_COMPARED}
    assert rows["1"].born is None
    assert rows["1"].reason == "'strange': no layer for operator type my.Strange"
    for name in "2345":
        assert rows[name].born < 1e-5
        assert rows[name].reason == "it agrees on the reference's inputs; the run has no value"
    assert found.checked == 4
    assert found.reservation == "outputs not compared"


@pytest.mark.parametrize(
    ("change", "origin"), [({"bias": BIAS[::-1]}, "fc"), ({"expression": "sub"}, "sum")]
)
def test_a_fault_behind_it_is_an_origin(make_pair, change, origin):
    found = compare(model(make_pair, **change), reference(), X)
    assert found.verdict == "differs"
    assert [each.operator.name for each in found.origins] == [origin]


def test_an_equal_verdict_says_that_most_is_not_compared(make_pair):
    """Behind the strange layer the reference has no tensor that weights or values name."""
    lines = [*LINES[:2], *(f"nn.ReLU r{n} 1 1 {n} {n + 1}" for n in range(1, 5)), LINES[-1]]
    reference = reference_of({"x": X, "other": V}, ((("any"), ("x",), "other", {}),))
    found = compare(make_pair(*lines), reference, X)
    assert found.reservation == "most operands and the outputs not compared"
    assert found.missing_outputs == ("5",)
