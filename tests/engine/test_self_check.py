"""The self-check: libraries against the reference on a model and data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import engine
from engine import backend_names
from engine.backends import ncnn_operators, operator_lowerings
from engine.backends.fusion import FusedSubgraph, is_fused
from engine.backends.lowering import LoweringError
from engine.errors import InferenceError, SessionStateError
from engine.layers.activations import relu, sigmoid
from engine.layers.convolution import Convolution
from engine.self_check import Verdict, self_check
from engine.session import Session, SessionState
from engine.threads import thread_count
from engine.values import materialise

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")


@pytest.fixture
def digits(samples):
    session = Session(engine.load(samples / "digits" / "digits.pnnx.param"))
    session.feed([np.load(samples / "digits" / "golden.npz")["0"]])
    return session


def named(comparisons):
    return {(c.operator.name, c.kernel) for c in comparisons}


def test_all_agree(digits):
    found = self_check(digits)
    assert found.libraries == ("onnxruntime", "ncnn")
    assert (found.differing, found.not_run) == ((), {})
    assert (found.error, found.cancelled, found.tolerance) == (None, False, 1e-3)
    kinds = {c.kernel.partition("/")[0] for c in found.compared}
    assert kinds == {"onnxruntime", "ncnn", "numpy"}
    of_conv = {c.kernel for c in found.compared if c.operator.type == "nn.Conv2d"}
    assert {"ncnn/winograd", "ncnn/winograd23", "ncnn/gemm"} <= of_conv
    assert any(map(is_fused, of_conv))
    assert found.worst is not None
    assert 0 < found.worst.difference.relative < 1e-5
    assert all(c.seconds > 0 and c.reference_seconds > 0 for c in found.compared)
    assert found.operator_count + len(found.alone) + 2 == len(digits.graph.operators)
    assert {operator.type for operator in found.alone} == {"torch.flatten"}
    assert digits.state is SessionState.READY  # the session itself was not touched


def wrong(lower):
    """A form that gives the negative of what it should."""

    def spoiled(graph, *arguments, **more):
        result = lower(graph, *arguments, **more)
        name, shape = (result, None) if isinstance(result, str) else result
        negative = graph.node("Neg", name)
        return negative if shape is None else (negative, shape)

    return spoiled


def test_a_fault_in_one_strategy_is_named(digits, monkeypatch):
    """All its operators, and none behind them: they get the reference's inputs."""
    lowerings = operator_lowerings.LOWERINGS._lowerings
    monkeypatch.setitem(lowerings, relu, wrong(lowerings[relu]))
    found = self_check(digits)
    relus = {o.name for o in digits.graph.operators if o.type in {"nn.ReLU", "F.relu"}}
    assert relus
    assert {name for name, _ in named(found.differing)} == relus
    kernels = {kernel.partition("@")[0] for _, kernel in named(found.differing)}
    # ncnn computes operators in a row from the same forms, and a ReLU by itself from none.
    assert {k for k in kernels if k.startswith("ncnn/")} == {f"ncnn/elempack-{thread_count()}"}
    assert "onnxruntime/all-1" in kernels
    worst = found.worst
    assert worst is not None
    assert worst.verdict is Verdict.DIFFERS
    assert worst.difference.found == -worst.difference.expected
    assert worst.difference.relative == pytest.approx(2)


def test_a_fault_in_weights_is_named(digits, monkeypatch):
    """ncnn alone is wrong, by one weight of one operator."""
    lowerings = ncnn_operators.LOWERINGS._lowerings
    lower = lowerings[Convolution]

    def spoiled(graph, layer, operand):
        made = lower(graph, layer, operand)
        if layer is digits.graph.operator("convbn2d_1").layer:
            mark, weight, *rest = made.weights
            weight = weight.copy()
            weight.reshape(-1)[7] += 0.5
            made = replace(made, weights=(mark, weight, *rest))
        return made

    monkeypatch.setitem(lowerings, Convolution, spoiled)
    found = self_check(digits)
    assert {name for name, _ in named(found.differing)} == {"convbn2d_1"}
    assert all(kernel.startswith("ncnn/") for _, kernel in named(found.differing))


def test_a_fault_of_fused_operators_is_named(digits, monkeypatch):
    """Where it begins; what is behind it is computed from it."""
    from engine.backends.onnx_nchwc import nchwc_block_size

    original = FusedSubgraph.result
    (faulty, *_) = [o.index for o in digits.graph.operators if o.type == "nn.ReLU"]

    def result(self, index, inputs):
        (found,) = original(self, index, inputs)
        return (materialise(found) + 1,) if index >= faulty else (found,)

    monkeypatch.setattr(FusedSubgraph, "result", result)
    found = self_check(digits)
    # By ONNX Runtime in the common order and, where the processor has such, in blocks of
    # channels; and by ncnn.
    assert [c.operator.index for c in found.differing] == [faulty] * (
        2 + bool(nchwc_block_size())
    )
    assert all(is_fused(c.kernel) for c in found.differing)
    assert {c.kernel.partition("/")[0] for c in found.differing} == {"onnxruntime", "ncnn"}


def test_fused_operators_with_nan(make_pair):
    """A pooling passes over them: then it is left to NumPy, and what is behind agrees."""
    lines = (
        "pnnx.Input in 0 1 0",
        "nn.ReLU relu 1 1 0 1",
        ("nn.MaxPool2d pool 1 1 1 2 kernel_size=(2,2) stride=(2,2) padding=(0,0)"
        " dilation=(1,1) ceil_mode=False return_indices=False"),
        "nn.Sigmoid sigmoid 1 1 2 3",
        "pnnx.Output out 1 0 3",
    )  # fmt: skip
    session = Session(engine.load(make_pair(*lines)))
    x = np.ones((1, 2, 8, 8), np.float32)
    x[0, 1, 3, 3] = np.nan
    session.feed([x])
    at_once = [c for c in self_check(session).comparisons if is_fused(c.kernel)]
    verdicts = {c.operator.name: c.verdict for c in at_once}
    assert verdicts["pool"] is Verdict.LEFT
    assert verdicts["relu"] is Verdict.AGREES


def test_another_shape(digits, monkeypatch):
    """The result is not given the operand's shape again."""

    def flat(graph, operand):
        return graph.node("Relu", graph.read(operand, (int(np.prod(operand.shape)),)))

    monkeypatch.setitem(operator_lowerings.LOWERINGS._lowerings, relu, flat)
    (first, *_) = self_check(digits).differing
    assert first.difference.unlike == "shape 16384 instead of 1×16×32×32"


def test_the_tolerance(digits):
    found = self_check(digits, tolerance=1e-12)
    # sums are rounded otherwise, but never by more than float32 itself adds up to
    assert {c.difference.relative < 1e-5 for c in found.compared} == {True}
    assert self_check(digits, tolerance=0).tolerance == 0


def test_operators_that_a_library_leaves_to_numpy(make_pair, monkeypatch):
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
        (
            "nn.MaxPool2d pool 1 1 0 1 kernel_size=2 stride=2 padding=0 dilation=1 "
            "ceil_mode=False return_indices=False"
        ),
        "nn.Sigmoid sigmoid 1 1 1 2",
        "pnnx.Output out 1 0 2",
    )
    session = Session(engine.load(make_pair(*lines)))
    session.feed([np.full((1, 2, 4, 4), np.nan, np.float32)])
    lowerings = operator_lowerings.LOWERINGS._lowerings
    wrong_node = lambda graph, x: graph.node("NoSuchNode", graph.read(x))  # noqa: E731
    monkeypatch.setitem(lowerings, sigmoid, wrong_node)
    found = self_check(session)
    assert found.compared == found.differing == ()
    assert found.worst is None
    left = {c.operator.name: c.reason for c in found.comparisons}
    assert left["pool"] == "NaN or infinities"
    assert "NoSuchNode" in left["sigmoid"]
    assert {c.verdict for c in found.comparisons} == {Verdict.LEFT}


def test_progress_and_cancelling(digits):
    told = []
    self_check(digits, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 25) for done in range(25)]

    asked = []

    def cancelled():
        asked.append(1)
        return len(asked) > 10

    found = self_check(digits, cancelled=cancelled)
    assert found.cancelled
    assert 0 < len(found.comparisons) < 10
    assert digits.graph.operators[-1].label in found.not_run


def test_an_operator_that_fails(make_pair):
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.ReLU first 1 1 0 1",
        "pnnx.Expression sum 2 1 1 0 2 expr=add(@0,size(@1,9))",
        "nn.ReLU last 1 1 2 3",
        "pnnx.Output out 1 0 3",
    )
    session = Session(engine.load(make_pair(*lines)))
    session.feed([np.ones((1, 3, 8, 8), np.float32)])
    found = self_check(session)
    assert isinstance(found.error, InferenceError)
    assert found.error.operator == "sum"
    assert {name for name, _ in named(found.comparisons)} == {"first"}
    assert [operator.name for operator in found.not_run] == ["sum", "last", "out"]


def test_supplied_and_unsupported(make_pair):
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "my.Strange strange 1 1 0 1 #1=(1,3,8,8)f32",
        "nn.ReLU relu 1 1 1 2",
        "pnnx.Output out 1 0 2",
    )
    session = Session(engine.load(make_pair(*lines)))
    session.feed([np.ones((1, 3, 8, 8), np.float32)])
    found = self_check(session)
    assert [operator.name for operator in found.not_run] == ["strange", "relu", "out"]
    session.override("1", -np.ones((1, 3, 8, 8)))
    found = self_check(session)
    assert found.not_run == {}
    assert {name for name, _ in named(found.compared)} == {"relu"}
    assert found.alone == ()


def test_numpy_alone_computes_random_operators(make_pair):
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "F.dropout drop 1 1 0 1 p=5.0e-01 training=True",
        "nn.ReLU relu 1 1 1 2",
        "pnnx.Output out 1 0 2",
    )
    session = Session(engine.load(make_pair(*lines)), seed=7)
    session.feed([np.ones((1, 3, 8, 8), np.float32)])
    found = self_check(session)
    assert found.differing == ()
    assert [operator.name for operator in found.alone] == ["drop"]


def test_a_fork_has_the_same_inputs(digits):
    digits.run()
    fork = digits.fork("numpy")
    assert (fork.backend, fork.position, fork.seed) == ("numpy", 0, digits.seed)
    fork.run()
    np.testing.assert_allclose(fork.outputs()[0], digits.outputs()[0], atol=1e-4)
    fork.feed([np.zeros((1, 1, 32, 32), np.float32)])
    assert digits.state is SessionState.FINISHED


def test_nothing_to_check(samples, digits, monkeypatch):
    session = Session(digits.graph)
    with pytest.raises(SessionStateError, match="no input yet"):
        self_check(session)
    monkeypatch.setattr(backend_names, "find_spec", lambda name: None)
    with pytest.raises(
        SessionStateError, match="no other backend than NumPy is installed; pip"
    ):
        self_check(digits)


def test_refused_steps_are_no_comparisons(digits, monkeypatch):
    def refuse(graph, *arguments, **more):
        raise LoweringError("not today")

    lowerings = operator_lowerings.LOWERINGS._lowerings
    for target in list(lowerings):
        monkeypatch.setitem(lowerings, target, refuse)
    found = self_check(digits)
    assert {c.kernel.partition("/")[0] for c in found.comparisons} == {"ncnn", "numpy"}
    assert "nn.AdaptiveAvgPool2d" in {operator.type for operator in found.alone}


def test_operators_downstream_of_one_left_to_numpy(make_pair):
    """In a session it is given NumPy's result, and not the library's own."""
    lines = (
        "pnnx.Input in 0 1 0",
        ("nn.MaxPool1d pool 1 1 0 1 kernel_size=(2) stride=(1) padding=(1) dilation=(1)"
        " ceil_mode=False return_indices=False"),
        "nn.ReLU relu 1 1 1 2",
        "Tensor.reshape flat 1 1 2 3 shape=(1,-1)",
        "nn.Sigmoid sigmoid 1 1 3 4",
        "pnnx.Output out 1 0 4",
    )  # fmt: skip
    session = Session(engine.load(make_pair(*lines)))
    x = np.ones((1, 3, 6), np.float32)
    x[0, 0, 3] = np.nan
    session.feed([x])
    found = self_check(session)
    assert not found.differing
    at_once = [c for c in found.comparisons if is_fused(c.kernel)]
    assert {c.operator.name for c in at_once} == {"pool"}
    # Where there are none, all are compared.
    session.feed([np.ones((1, 3, 6), np.float32)])
    at_once = [c for c in self_check(session).comparisons if is_fused(c.kernel)]
    assert {c.operator.name for c in at_once} >= {"pool", "relu", "sigmoid"}
