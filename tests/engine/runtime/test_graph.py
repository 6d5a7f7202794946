"""RuntimeGraph: states, order, sharing, feeding, errors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import engine
from engine.errors import (
    FeedError,
    InferenceError,
    InferStatus,
    LayerError,
    ParameterError,
    ParseParameterAttrStatus,
    SessionStateError,
    UnknownNameError,
    UnsupportedOperatorError,
)
from engine.runtime import GraphState, RuntimeGraph, RuntimeParameterIntArray
from engine.tensor import Tensor

DIAMOND = (
    "pnnx.Input in 0 1 0 #0=(1,2,2,2)f32",
    "nn.ReLU left 1 1 0 1 #0=(1,2,2,2)f32 #1=(1,2,2,2)f32",
    "nn.Sigmoid right 1 1 0 2 #0=(1,2,2,2)f32 #2=(1,2,2,2)f32",
    "pnnx.Expression sum 2 1 1 2 3 expr=add(@0,@1) #3=(1,2,2,2)f32",
    "pnnx.Output out 1 0 3",
)


def test_states(make_pair):
    graph = RuntimeGraph(make_pair(*DIAMOND))
    assert graph.state is GraphState.NEED_INIT
    assert [state.value for state in GraphState] == [-2, -1, 0]
    with pytest.raises(SessionStateError, match="not initialised"):
        _ = graph.file
    with pytest.raises(SessionStateError, match="not built"):
        graph.forward([np.zeros((1, 2, 2, 2))])
    graph.init()
    assert graph.state is GraphState.NEED_BUILD
    graph.build()
    assert graph.state is GraphState.COMPLETE


def test_build_initialises(make_pair):
    graph = RuntimeGraph(make_pair(*DIAMOND))
    graph.build()
    assert graph.state is GraphState.COMPLETE


def test_operands_are_shared(make_pair):
    graph = engine.load(make_pair(*DIAMOND))
    left, total = graph.operator("left"), graph.operator("sum")
    assert left.outputs[0] is total.inputs[0] is graph.operand("1")
    assert graph.operand("0").producer is graph.operator("in")
    assert [op.name for op in graph.operand("0").consumers] == ["left", "right"]
    assert graph.operand("0").shape == (1, 2, 2, 2)
    assert graph.operand("0").dtype == np.float32


def test_same_operand_twice(make_pair):
    graph = engine.load(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(2)f32",
            "pnnx.Expression twice 2 1 0 0 1 expr=mul(@0,@1)",
            "pnnx.Output out 1 0 1",
        )
    )
    assert [op.name for op in graph.operand("0").consumers] == ["twice", "twice"]
    (result,) = graph.forward([[3.0, -4.0]])
    np.testing.assert_array_equal(result, [9.0, 16.0])


def test_forward(make_pair):
    graph = engine.load(make_pair(*DIAMOND))
    x = np.array([[[[0, 1], [-1, 2]], [[0, 0], [0, 0]]]], np.float32)
    (result,) = graph.forward([x])
    assert result.dtype == np.float32
    assert result[0, 0, 0, 1] == pytest.approx(1 + 1 / (1 + np.exp(-1)), abs=1e-6)
    assert result[0, 1, 0, 0] == pytest.approx(0.5)


def test_forward_frees_operands_after_their_last_use(make_pair):
    """Of twelve operands of 1 MB, and halves that nobody takes, a few live at a time."""
    shape = "(262144)f32"
    lines = [f"pnnx.Input in 0 1 0 #0={shape}"]
    for k in range(1, 13):
        lines.append(f"pnnx.Expression op{k} 1 1 {k - 1} {k} expr=add(@0,1) #{k}={shape}")
        lines.append(f"torch.chunk cut{k} 1 2 {k} a{k} b{k} chunks=2 dim=0")
        lines.append(f"nn.ReLU relu{k} 1 1 a{k} c{k}")
    graph = engine.load(make_pair(*lines, "pnnx.Output out 1 0 12"))
    x = np.zeros(262144, np.float32)
    graph.forward([x])  # builds the layers
    tracemalloc.start()
    try:
        (result,) = graph.forward([x])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_array_equal(result[:3], [12, 12, 12])
    assert peak < 5 << 20


def test_parameters_are_typed(make_pair):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,1,4,4)f32",
        "nn.MaxPool2d pool 1 1 0 1 ceil_mode=False dilation=(1,1) kernel_size=(2,2) "
        "padding=(0,0) return_indices=False stride=(2,2)",
        "pnnx.Output out 1 0 1",
    )
    pool = engine.load(path).operator("pool")
    assert pool.params["kernel_size"] == (2, 2)
    assert pool.params["ceil_mode"] is False
    assert pool.parameters["stride"] == RuntimeParameterIntArray((2, 2))


def test_attributes_are_mapped(make_pair):
    weight = np.arange(6, dtype=np.float32).reshape(2, 3)
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3)f32",
        "nn.Linear fc 1 1 0 1 bias=False in_features=3 out_features=2 @weight=(2,3)f32",
        "pnnx.Output out 1 0 1",
        weights={"fc.weight": weight},
    )
    graph = engine.load(path)
    attribute = graph.operator("fc").attributes["weight"]
    assert (attribute.shape, attribute.ndim, attribute.size) == ((2, 3), 2, 6)
    assert (attribute.dtype, attribute.stored_dtype, attribute.nbytes) == (
        np.float32,
        "f32",
        24,
    )
    np.testing.assert_array_equal(np.asarray(attribute), weight)
    assert attribute[1, 2] == 5
    assert not attribute.array.flags.writeable
    (result,) = graph.forward([[[1, 0, 2]]])
    np.testing.assert_array_equal(result, [[4, 13]])


def test_long_chain_does_not_recurse(make_pair):
    count = 50_000
    lines = ["pnnx.Input in 0 1 0 #0=(1)f32"]
    lines += [f"nn.ReLU r{i} 1 1 {i} {i + 1}" for i in range(count)]
    lines.append(f"pnnx.Output out 1 0 {count}")
    graph = engine.load(make_pair(*lines))
    assert [op.index for op in graph.operators] == list(range(count + 2))


def test_unsupported_is_marked_and_listed(make_pair):
    graph = engine.load(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(2)f32",
            "custom.Thing odd 1 1 0 1",
            "pnnx.Output out 1 0 1",
        )
    )
    (odd,) = graph.unsupported
    assert odd.name == "odd"
    assert "no layer for operator type custom.Thing" in odd.reason
    with pytest.raises(UnsupportedOperatorError) as caught:
        graph.forward([[1, 2]])
    assert caught.value.status is InferStatus.kInferLayerNotImplement
    assert (caught.value.operator, caught.value.operator_type) == ("odd", "custom.Thing")


def test_missing_parameter_names_its_status(make_pair):
    graph = engine.load(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(1,1,4,4)f32",
            "nn.MaxPool2d pool 1 1 0 1 stride=(2,2)",
            "pnnx.Output out 1 0 1",
        )
    )
    error = graph.operator("pool").error
    assert isinstance(error, ParameterError)
    assert error.status is ParseParameterAttrStatus.kParameterMissingKernel
    assert (error.operator, error.operator_type) == ("pool", "nn.MaxPool2d")


def test_failure_says_where(make_pair):
    graph = engine.load(
        make_pair(
            "pnnx.Input a 0 1 0 #0=(2,3)f32",
            "pnnx.Input b 0 1 1 #1=(2,4)f32",
            "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1)",
            "pnnx.Output out 1 0 2",
        )
    )
    with pytest.raises(InferenceError) as caught:
        graph.forward([np.zeros((2, 3)), np.zeros((2, 4))])
    assert caught.value.operator == "sum"
    assert caught.value.shapes == ((2, 3), (2, 4))
    assert "pnnx.Expression 'sum' failed on inputs 2×3, 2×4" in str(caught.value)


class TestOperatorFrame:
    @pytest.fixture
    def relu(self, make_pair):
        return engine.load(make_pair(*DIAMOND)).operator("left")

    @pytest.mark.parametrize(
        ("given", "status"),
        [
            ([], InferStatus.kInferInputsEmpty),
            ([np.zeros(1)] * 2, InferStatus.kInferArraySizeMismatch),
        ],
    )
    def test_input_count(self, relu, given, status):
        with pytest.raises(InferenceError) as caught:
            relu.forward(given)
        assert caught.value.status is status

    @pytest.mark.parametrize(
        ("raised", "status", "reason"),
        [
            (LayerError("bad"), InferStatus.kInferParameterError, "bad"),
            (ValueError("odd"), InferStatus.kInferUnknown, "odd"),
            (MemoryError("huge"), InferStatus.kInferUnknown, "not enough memory: huge"),
            (KeyError(), InferStatus.kInferUnknown, "KeyError"),
        ],
    )
    def test_whatever_a_layer_raises(self, relu, monkeypatch, raised, status, reason):
        def fail(*_):
            raise raised

        monkeypatch.setattr(relu, "layer", type("Broken", (), {"forward": fail})())
        with pytest.raises(InferenceError) as caught:
            relu.forward([np.zeros(3)])
        assert (caught.value.status, caught.value.reason) == (status, reason)

    def test_outputs_are_read_only(self, relu):
        (result,) = relu.forward([np.array([-1.0, 2.0], np.float32)])
        with pytest.raises(ValueError, match="read-only"):
            result[0] = 1


class TestFeeding:
    @pytest.fixture
    def graph(self, make_pair):
        return engine.load(
            make_pair(
                "pnnx.Input a 0 1 x #x=(2,3)f32",
                "pnnx.Input b 0 1 y #y=(?)i64",
                "pnnx.Expression sum 2 1 x y 2 expr=add(@0,@1)",
                "pnnx.Output out 1 0 2",
            )
        )

    def test_by_order_and_by_name(self, graph):
        x, y = [[1, 2, 3], [4, 5, 6]], [10, 20, 30]
        expected = [[11, 22, 33], [14, 25, 36]]
        for inputs in ([x, y], {"y": y, "x": x}):
            checked = graph.check_inputs(inputs)
            assert (checked["x"].dtype, checked["y"].dtype) == (np.float32, np.int64)
        (result,) = graph.forward([x, y])
        np.testing.assert_array_equal(result, expected)

    def test_is_a_copy(self, graph):
        x = np.zeros((2, 3), np.float32)
        checked = graph.check_inputs([x, [1, 2, 3]])["x"]
        x[:] = 7
        assert checked.max() == 0
        assert not checked.flags.writeable

    @pytest.mark.parametrize(
        ("inputs", "sentence"),
        [
            ([1], "1 inputs were given, the model takes 2: x of 2×3, y of ?"),
            ({"x": 1}, "no value was given for input y"),
            ({"x": 1, "y": 1, "z": 1}, "z is no input of the model; its inputs are x, y"),
            ([np.zeros(3), np.zeros(3, int)], "was given 3, which has 1 dimensions and not 2"),
            ([np.zeros((2, 3)), np.zeros(3)], "takes int64, and float64 cannot become that"),
        ],
    )
    def test_wrong(self, graph, inputs, sentence):
        with pytest.raises(FeedError) as caught:
            graph.check_inputs(inputs)
        assert sentence in str(caught.value)

    def test_other_sizes_are_welcome(self, graph):
        assert graph.check_inputs([np.zeros((5, 7)), [1] * 7])["x"].shape == (5, 7)


def test_names_suggest_the_nearest(make_pair):
    graph = engine.load(make_pair(*DIAMOND))
    with pytest.raises(UnknownNameError, match="no operator named 'rigth'; did you mean"):
        graph.operator("rigth")
    with pytest.raises(UnknownNameError, match="no operand named '77'"):
        graph.operand("77")


def test_structure_only(make_pair):
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3)f32",
        "nn.Linear fc 1 1 0 1 bias=False in_features=3 out_features=2 @weight=(2,3)f32",
        "nn.ReLU act 1 1 1 2",
        "pnnx.Output out 1 0 2",
        weights={"fc.weight": np.zeros((2, 3), np.float32)},
    )
    path.with_suffix(".bin").unlink()
    graph = engine.load(path)
    assert not graph.has_weights
    assert [op.name for op in graph.unsupported] == ["fc"]
    assert "opened without a .bin" in graph.operator("fc").reason


def test_networkx(make_pair):
    digraph = engine.load(make_pair(*DIAMOND)).to_networkx()
    assert sorted(digraph.edges) == [
        ("in", "left", ("0", 0)),
        ("in", "right", ("0", 0)),
        ("left", "sum", ("1", 0)),
        ("right", "sum", ("2", 1)),
        ("sum", "out", ("3", 0)),
    ]
    assert [(name, node["index"], node["type"]) for name, node in digraph.nodes.items()] == [
        ("in", 0, "pnnx.Input"),
        ("left", 1, "nn.ReLU"),
        ("right", 2, "nn.Sigmoid"),
        ("sum", 3, "pnnx.Expression"),
        ("out", 4, "pnnx.Output"),
    ]


def test_tensors_of_an_operand_alias(make_pair):
    graph = engine.load(make_pair(*DIAMOND))
    value = np.arange(24, dtype=np.float32).reshape(3, 2, 2, 2)
    tensors = graph.operand("0").tensors(value)
    assert [type(t) for t in tensors] == [Tensor] * 3
    assert all(np.shares_memory(t.data, value) for t in tensors)


@pytest.mark.parametrize(
    "named", ["linear", "linear/linear", "linear/linear.pnnx", "linear/linear.pnnx.bin"]
)
def test_load_takes_what_the_command_line_takes(samples, named):
    graph = engine.load(samples / named)
    assert graph.param_path == samples / "linear" / "linear.pnnx.param"
    assert graph.bin_path == samples / "linear" / "linear.pnnx.bin"
