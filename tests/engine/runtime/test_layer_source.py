"""Layers that are built when they are asked for: when, how often, and from which code."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import engine
from engine.errors import ModelFileError, ParameterError, UnsupportedOperatorError
from engine.layers import load_layers, unload_layers


@pytest.fixture
def built(monkeypatch):
    """Names of the operators that `engine.layers` was asked to build a layer for, in order."""
    names = []
    build = engine.layers.build_layer

    def watch(call, table):
        names.append(call.name)
        return build(call, table)

    monkeypatch.setattr("engine.runtime.layer_source.build_layer", watch)
    return names


CHAIN = (
    "pnnx.Input in 0 1 0 #0=(2,4)f32",
    "nn.ReLU one 1 1 0 1",
    "nn.ReLU two 1 1 1 2",
    "F.softmax last 1 1 2 3 dim=1",
    "pnnx.Output out 1 0 3",
)


def test_opening_builds_no_layer(make_pair, built):
    graph = engine.load(make_pair(*CHAIN))
    assert graph.operator("one").inputs[0].name == "0"
    assert not built
    assert graph.operator("last").layer is not None
    assert built == ["last"]


@pytest.mark.parametrize("ask", ["layer", "error", "reason", "layer_file", "random"])
def test_every_access_builds_the_layer(make_pair, built, ask):
    getattr(engine.load(make_pair(*CHAIN)).operator("one"), ask)
    assert built == ["one"]


def test_running_builds_once(make_pair, built):
    graph = engine.load(make_pair(*CHAIN))
    for _ in range(2):
        (result,) = graph.forward([[[-1, 0, 1, 2], [0, 0, 0, 0]]])
    np.testing.assert_allclose(result[1], 0.25)
    assert built == ["one", "last"]  # two is like one


class TestSharing:
    def load(self, make_pair, *operators, weights=None):
        lines = [line.format(i=i, x=i, y=i + 1) for i, line in enumerate(operators)]
        graph = engine.load(make_pair("pnnx.Input in 0 1 0", *lines, weights=weights))
        return [operator.layer for operator in graph.operators[1:]]

    def test_equal_operators_share(self, make_pair):
        layers = self.load(
            make_pair,
            *["F.softmax s{i} 1 1 {x} {y} dim=1"] * 2,
            "F.softmax s{i} 1 1 {x} {y} dim=0",
            "F.softmax s{i} 1 1 {x} {y} dim=1",
            *["nn.MaxPool2d p{i} 1 1 {x} {y} kernel_size=(2,2)"] * 2,
        )
        assert layers[0] is layers[1] is layers[3]
        assert layers[0] is not layers[2]
        assert layers[4] is layers[5]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("F.softmax s{i} 1 1 {x} {y} dim=1", "F.log_softmax s{i} 1 1 {x} {y} dim=1"),
            ("F.gelu s{i} 1 1 {x} {y} approximate=none", "F.gelu s{i} 1 1 {x} {y}"),
            ("torch.sub s{i} 2 1 {x} 0 {y}", "torch.sub s{i} 2 1 {x} 0 {y} $other={x}"),
            ("torch.max s{i} 1 2 {x} {y} i{y} dim=0", "torch.max s{i} 1 1 {x} {y} dim=0"),
            ("torch.sum s{i} 1 1 {x} {y} keepdim=True", "torch.sum s{i} 1 1 {x} {y} dim=1"),
        ],
    )
    def test_operators_that_differ_do_not_share(self, make_pair, one, other):
        first, second = self.load(make_pair, one, other)
        assert first is not second

    def test_operators_with_weights_do_not_share(self, make_pair):
        line = "nn.PReLU p{i} 1 1 {x} {y} num_parameters=1 @weight=(1)f32"
        weights = {f"p{i}.weight": np.array([i], np.float32) for i in range(2)}
        one, other = self.load(make_pair, line, line, weights=weights)
        assert one.forward(np.float32([-2])) == 0
        assert other.forward(np.float32([-2])) == -2

    def test_user_layers_are_not_shared(self, make_pair, tmp_path):
        file = tmp_path / "mine.py"
        file.write_text(
            "from engine.layers import Layer, register\n"
            "@register('my.Counter')\n"
            "class Counter(Layer):\n"
            "    count = 0\n"
            "    def forward(self, input):\n"
            "        self.count += 1\n"
            "        return input * self.count\n"
        )
        load_layers(file)
        try:
            one, other = self.load(make_pair, *["my.Counter c{i} 1 1 {x} {y}"] * 2)
        finally:
            unload_layers()
        assert [one.forward(1), one.forward(1), other.forward(1)] == [1, 2, 1]


def test_errors_name_each_operator(make_pair):
    graph = engine.load(
        make_pair(
            "pnnx.Input in 0 1 0",
            "nn.ReLUs one 1 1 0 1",
            "nn.ReLUs two 1 1 1 2",
            "F.softmax three 1 1 2 3 dim=x",
            "F.softmax four 1 1 3 4 dim=x",
        )
    )
    reasons = [operator.reason for operator in graph.unsupported]
    assert reasons[:2] == [
        f"'{name}': no layer for operator type nn.ReLUs; the nearest known type is nn.ReLU"
        for name in ("one", "two")
    ]
    errors = [operator.error for operator in graph.unsupported]
    assert [type(e) for e in errors] == [UnsupportedOperatorError] * 2 + [ParameterError] * 2
    assert [e.operator for e in errors] == ["one", "two", "three", "four"]


def test_later_registrations_do_not_change_a_graph(make_pair, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from engine.layers import register\n"
        "@register('my.Twice')\n"
        "def twice(input):\n"
        "    return input * 2\n"
    )
    path = make_pair("pnnx.Input in 0 1 0", "my.Twice twice 1 1 0 1", "pnnx.Output out 1 0 1")
    before = engine.load(path)
    load_layers(file)
    with_file = engine.load(path)
    unload_layers()
    assert [len(graph.unsupported) for graph in (before, with_file)] == [1, 0]
    assert with_file.operator("twice").layer_file == file.resolve()
    assert with_file.forward([[3.0]])[0].tolist() == [6.0]
    with_file.build()
    assert len(with_file.unsupported) == 1


def test_structure_only(make_pair):
    path = make_pair(
        "pnnx.Input in 0 1 0",
        "nn.PReLU one 1 1 0 1 num_parameters=1 @weight=(1)f32",
        "nn.ReLU two 1 1 1 2",
        weights={"one.weight": np.ones(1, np.float32)},
    )
    path.with_suffix(".bin").unlink()
    graph = engine.load(path)
    (one,) = graph.unsupported
    assert isinstance(one.error, ModelFileError)
    assert "opened without a .bin file" in one.reason


def test_two_threads_get_the_same_layer(make_pair, built):
    operators = engine.load(make_pair(*CHAIN)).operators
    found = []

    def ask():
        found.append([operator.layer for operator in operators])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(layers == found[0] for layers in found)
    assert sorted(built) == ["last", "one"]


def test_operators_of_a_long_file_are_made_on_use(make_pair):
    lines = ["pnnx.Input in 0 1 0 #0=(1)f32"]
    lines += [f"nn.ReLU r{i} 1 1 {i} {i + 1}" for i in range(3000)]
    graph = engine.load(make_pair(*lines, "pnnx.Output out 1 0 3000"))
    assert graph.state is engine.GraphState.COMPLETE
    assert not graph.file.is_made
    assert graph.operand("7").producer is graph.operator("r6")
    assert graph.file.is_made
    assert graph.operators[7].inputs == (graph.operands["6"],)
    assert graph.forward([[-1.0]])[0].tolist() == [0.0]


def test_changes_before_build_count(make_pair):
    graph = engine.RuntimeGraph(make_pair(*CHAIN))
    graph.init()
    one, two = (graph.file.get_operator(name) for name in ("one", "two"))
    one.replace_input(0, two.outputs[0])
    with pytest.raises(ModelFileError, match="form a cycle"):
        graph.build()
