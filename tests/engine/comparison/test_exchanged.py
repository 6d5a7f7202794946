"""Layers, operands and results that a converter has exchanged."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.comparison.references import Reference, ReferenceOperator, ReferenceTensor
from engine.comparison.references.reference import hash_weight

SIZE = "(1,20,16)f32"


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def reference_of(arrays, calls):
    """A reference of arrays by key, and of calls: type, inputs, output and named weights."""
    tensors = [ReferenceTensor(key, lambda array=array: array) for key, array in arrays.items()]
    operators = [
        ReferenceOperator(
            f"{kind}{place}", kind, given, (made,),
            lambda weights=weights: {n: hash_weight(w) for n, w in weights.items()},
        )
        for place, (kind, given, made, weights) in enumerate(calls)
    ]  # fmt: skip
    keys = tuple(arrays)
    return Reference("theirs", tensors, operators, keys[:1], keys[-1:])


def compare(path, reference, *inputs):
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed(inputs)
    return engine.compare(session, reference)


def names(comparison):
    return [origin.operator.name for origin in comparison.origins]


def linear(name, source, made):
    return (
        f"nn.Linear {name} 1 1 {source} {made} bias=False in_features=16 out_features=16 "
        f"@weight=(16,16)f32 #{made}={SIZE}"
    )


@pytest.mark.parametrize("named", [True, False], ids=["hashes", "no hashes"])
def test_weights_of_two_layers_are_exchanged(make_pair, named):
    """Their hashes, and what they give of the other's input, name the wrong calls."""
    x, one, two = normal(0, 1, 20, 16), normal(1, 16, 16) / 4, normal(2, 16, 16) / 4
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("one", 0, 1),
        f"F.tanh act 1 1 1 2 $input=1 #2={SIZE}",
        f"pnnx.Expression sum 2 1 2 0 3 expr=add(@0,@1) #3={SIZE}", linear("two", 3, 4),
        f"F.relu act2 1 1 4 5 $input=4 #5={SIZE}",
        f"pnnx.Expression more 1 1 5 6 expr=mul(@0,2.0) #6={SIZE}", "pnnx.Output out 1 0 6",
        weights={"one.weight": two, "two.weight": one},
    )  # fmt: skip
    a = x @ one.T
    b = np.tanh(a) + x
    c = b @ two.T
    d = np.maximum(c, 0)
    arrays = {"in": x, "mm": a, "tanh": np.tanh(a), "add": b, "mm2": c, "relu": d, "mul": 2 * d}
    first, second = ({"w.weight": one}, {"v.weight": two}) if named else ({}, {})
    calls = (
        ("mm", ("in",), "mm", first), ("tanh", ("mm",), "tanh", {}),
        ("add", ("tanh", "in"), "add", {}), ("mm", ("add",), "mm2", second),
        ("relu", ("mm2",), "relu", {}), ("mul", ("relu",), "mul", {}),
    )  # fmt: skip
    assert names(compare(path, reference_of(arrays, calls), x)) == ["one", "two"]


def test_weights_of_layers_with_the_same_input_are_exchanged(make_pair):
    """Each gives the other's tensor exactly; names of the weights tell them apart."""
    x, one, two = normal(0, 1, 20, 16), normal(1, 16, 16) / 4, normal(2, 16, 16) / 4
    path = make_pair(
        f"pnnx.Input in 0 1 0 #0={SIZE}", linear("gate", 0, 1), linear("value", 0, 2),
        f"F.tanh act 1 1 1 3 $input=1 #3={SIZE}",
        f"pnnx.Expression both 2 1 3 2 4 expr=mul(@0,@1) #4={SIZE}", "pnnx.Output out 1 0 4",
        weights={"gate.weight": two, "value.weight": one},
    )  # fmt: skip
    a, b = x @ one.T, x @ two.T
    arrays = {"in": x, "mm": a, "mm2": b, "tanh": np.tanh(a), "mul": np.tanh(a) * b}
    calls = (
        ("mm", ("in",), "mm", {"gate.weight": one}),
        ("mm", ("in",), "mm2", {"value.weight": two}),
        ("tanh", ("mm",), "tanh", {}), ("mul", ("tanh", "mm2"), "mul", {}),
    )  # fmt: skip
    assert names(compare(path, reference_of(arrays, calls), x)) == ["gate", "value"]
