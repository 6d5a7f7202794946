"""Which operator a comparison names, and in which words."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from array_reference import compare, reference_of

SIZE = "(1,4)f32"
X = np.float32([[-1.5, 0.25, 2, 3]])


def linear(name, source, made):
    return (
        f"nn.Linear {name} 1 1 {source} {made} bias=False in_features=4 out_features=4 "
        f"@weight=(4,4)f32 #{source}={SIZE} #{made}={SIZE}"
    )


def noisy(array):
    """Other numbers of the same size, which no change of an operator explains."""
    return array + np.random.default_rng(8).normal(0, 0.2, array.shape).astype(np.float32)


def test_a_suspected_fault_of_the_export_is_not_blamed(make_pair):
    """Only a certain one is; here the name of a layer makes the file suspicious."""
    weight = np.eye(4, dtype=np.float32) * np.float32([1, -2, 0.5, 3])
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}",
        linear("h.0.c_fc", "0", "1"),
        f"F.gelu act 1 1 1 2 $input=1 #2={SIZE}",
        "pnnx.Output out 1 0 2",
        weights={"h.0.c_fc.weight": weight},
    )
    (suspicion,) = engine.load(path).export_faults
    assert (suspicion.operator.name, suspicion.certain) == ("act", False)
    hidden = X @ weight.T
    theirs = reference_of({"x0": X, "x1": hidden, "x2": noisy(np.maximum(hidden, 0))}, [])
    (origin,) = compare(path, theirs, X).origins
    assert origin.operator.name == "act"
    assert "export" not in origin.text


def test_a_constant_is_not_to_blame(make_pair):
    """The reference shows neither it nor the ReLU; only the ReLU may differ."""
    x = np.random.default_rng(4).standard_normal((8, 4)).astype(np.float32)
    shift = np.float32([[0.5, -1, 2, 3]])
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(8,4)f32",
        "pnnx.Attribute shift 0 1 1 @data=(1,4)f32 #1=(1,4)f32",
        "F.relu act 1 1 0 2 $input=0 #2=(8,4)f32",
        "pnnx.Expression sum 2 1 2 1 3 expr=add(@0,@1) #3=(8,4)f32",
        "pnnx.Output out 1 0 3",
        weights={"shift.data": shift},
    )
    made = noisy(np.maximum(x, 0) + shift)
    (origin,) = compare(path, reference_of({"x0": x, "x3": made}, []), x).origins
    assert {origin.operator.name, *(each.name for each in origin.among)} == {"act", "sum"}


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_failed_is_an_origin_where_the_reference_goes_on(make_pair, goes_on):
    """Our file joins what the model adds, and the linear layer takes no eight features."""
    weight = np.float32([[0, 1, 0, 2], [1, 0, 3, 0], [0, 0, 1, 0], [5, 0, 0, 1]])
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}",
        f"F.relu act 1 1 0 1 $input=0 #1={SIZE}",
        "torch.cat both 2 1 1 0 2 dim=1 #2=(1,8)f32",
        linear("fc", "2", "3").replace(f"#2={SIZE}", "#2=(1,8)f32"),
        "pnnx.Output out 1 0 3",
        weights={"fc.weight": weight},
    )
    act = np.maximum(X, 0)
    arrays = {"x0": X, "x1": act, "x2": np.concatenate([act, X], 1)}
    if goes_on:
        arrays["x3"] = (act + X) @ weight.T
    found = compare(path, reference_of(arrays, []), X)
    assert [origin.operator.name for origin in found.origins] == (["fc"] if goes_on else [])
    if goes_on:
        assert "failed" in found.origins[0].text
