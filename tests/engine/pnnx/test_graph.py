"""Graph services: both ends of every connection stay right."""

from __future__ import annotations

import re

import numpy as np
import pytest

from engine.pnnx import Attribute, Graph, Parameter


@pytest.fixture
def graph():
    """x -> conv -> 1 -> add(1, 1) -> 2 -> output"""
    graph = Graph()
    source = graph.new_operator("pnnx.Input", "in")
    conv = graph.new_operator("nn.Conv2d", "conv")
    add = graph.new_operator("torch.add", "add")
    sink = graph.new_operator("pnnx.Output", "out")
    x, one, two = (graph.new_operand(name) for name in ("x", "1", "2"))
    source.add_output(x)
    conv.add_input(x, "input")
    conv.add_output(one)
    add.add_input(one, "input")
    add.add_input(one, "other")
    add.add_output(two)
    sink.add_input(two)
    return graph


def names(graph):
    return [operator.name for operator in graph.operators]


def test_consumers_are_uses(graph):
    add = graph.get_operator("add")
    assert graph.get_operand("1").consumers == [add, add]
    assert graph.get_operand("1").producer is graph.get_operator("conv")
    assert add.input_names == ["input", "other"]


def test_get(graph):
    assert graph.get_operand("9") is None
    assert graph.get_operator("nobody") is None
    assert repr(graph) == "Graph(4 operators, 3 operands)"
    assert repr(graph.get_operator("conv")) == "Operator(nn.Conv2d, 'conv')"
    assert repr(graph.get_operand("x")) == "Operand('x', shape=None, dtype=None)"


def test_new_before_and_after(graph):
    conv = graph.get_operator("conv")
    before = graph.new_operator_before("nn.ReLU", "before", conv)
    after = graph.new_operator_after("nn.ReLU", "after", conv)
    last = graph.new_operator_after("nn.ReLU", "last", graph.operators[-1])
    assert names(graph) == ["in", "before", "conv", "after", "add", "out", "last"]
    assert [graph.get_operator(o.name) for o in (before, after, last)] == [before, after, last]


def test_insert_an_operator_between(graph):
    add = graph.get_operator("add")
    relu = graph.new_operator_before("nn.ReLU", "relu", add)
    relu.add_input(graph.get_operand("1"))
    relu.add_output(graph.new_operand("r"))
    add.replace_input(1, graph.get_operand("r"))
    assert graph.get_operand("1").consumers == [add, relu]
    assert graph.get_operand("r").consumers == [add]
    assert [operand.name for operand in add.inputs] == ["1", "r"]
    assert add.input_names == ["input", "other"]


def test_remove_input(graph):
    add = graph.get_operator("add")
    add.remove_input(0)
    assert [operand.name for operand in add.inputs] == ["1"]
    assert add.input_names == ["other"]
    assert graph.get_operand("1").consumers == [add]


def test_remove_operator(graph):
    out, add = graph.get_operator("out"), graph.get_operator("add")
    graph.remove_operator(out)
    assert graph.get_operand("2").consumers == []
    graph.remove_operator(add)
    assert names(graph) == ["in", "conv"]
    assert graph.get_operand("2") is None
    assert graph.get_operand("1").consumers == []
    assert (add.inputs, add.outputs, add.input_names) == ([], [], [])
    assert graph.new_operator("torch.add", "add") is not add


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (
            lambda g: g.new_operator("nn.ReLU", "conv"),
            "the graph already has an operator named 'conv'",
        ),
        (lambda g: g.new_operand("1"), "the graph already has an operand named '1'"),
        (
            lambda g: g.get_operator("add").add_output(g.get_operand("1")),
            "'conv' already produces operand '1'",
        ),
        (
            lambda g: g.remove_operator(g.get_operator("conv")),
            "operator 'conv' cannot be removed: 'add' takes its output '1'",
        ),
        (
            lambda g: g.new_operator_after("nn.ReLU", "r", Graph().new_operator("a", "b")),
            "operator 'b' is not of this graph",
        ),
    ],
)
def test_refused(graph, wrong, reason):
    with pytest.raises(ValueError, match=re.escape(reason)) as caught:
        wrong(graph)
    assert str(caught.value) == reason
    assert names(graph) == ["in", "conv", "add", "out"]
    assert list(graph.operands) == ["x", "1", "2"]


def build():
    graph = Graph()
    operator = graph.new_operator("pnnx.Attribute", "a")
    operator.params["p"] = Parameter.of(1)
    operator.attrs["data"] = Attribute.from_array(np.float32([1, 2]))
    operand = graph.new_operand("0")
    operand.shape, operand.dtype = (2,), "f32"
    operator.add_output(operand)
    graph.new_operator("pnnx.Output", "out").add_input(operand)
    return graph


def test_weights_are_named_after_their_operators():
    graph = build()
    assert [name for name, _ in graph.weights()] == ["a.data"]


def change(name):
    def set_operand(**values):
        def apply(graph):
            for key, value in values.items():
                setattr(graph.get_operand("0"), key, value)

        return apply

    changes = {
        "shape": set_operand(shape=(3,)),
        "dtype": set_operand(dtype="i32"),
        "parameter": lambda g: g.operators[0].params.update(p=Parameter.of(2)),
        "more-parameters": lambda g: g.operators[0].params.update(q=Parameter.of(2)),
        "weight": lambda g: g.operators[0].attrs.update(
            data=Attribute.from_array(np.float32([1, 3]))
        ),
        "more-weights": lambda g: g.operators[0].attrs.update(
            more=Attribute.from_array(np.float32([1, 3]))
        ),
        "input-name": lambda g: g.operators[1].input_names.__setitem__(0, "x"),
        "input": lambda g: g.operators[1].remove_input(0),
        "input-twice": lambda g: g.operators[1].add_input(g.get_operand("0")),
        "operator": lambda g: g.new_operator("a", "b"),
        "operand": lambda g: g.new_operand("1"),
        "type": lambda g: setattr(g.operators[0], "type", "other"),
    }
    return changes if name is None else changes[name]


@pytest.mark.parametrize("name", change(None))
def test_same_as_sees(name):
    assert build().same_as(build())
    other = build()
    change(name)(other)
    assert not build().same_as(other)
    assert not other.same_as(build())


def test_same_as_sees_other_inputs_of_equal_names():
    def two(first):
        graph = Graph()
        for name in "ab":
            graph.new_operator("pnnx.Input", name).add_output(graph.new_operand(name))
        graph.new_operator("pnnx.Output", "out").add_input(graph.get_operand(first))
        return graph

    assert not two("a").same_as(two("b"))


def test_same_as_ignores_how_a_value_is_spelled():
    one, other = build(), build()
    one.operators[0].params["q"] = Parameter.parse("(1,2)")
    other.operators[0].params["q"] = Parameter.parse("[1,2]")
    assert one.same_as(other)
