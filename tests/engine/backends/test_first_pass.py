"""First passes, which try nothing, and tuning afterwards."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.backends import fusing_kernels, fusion_autotuner
from engine.backends.autotuner import Autotuner
from engine.backends.fusion import Strategy, is_fused
from engine.backends.fusion_autotuner import FusionTrial
from engine.backends.onnx_runtime import OnnxCompiledKernel
from engine.backends.shape_inference import infer_parts
from engine.errors import SessionStateError

pytest.importorskip("onnxruntime")

# Large enough that a library is likely to be faster than NumPy: 18 million multiply-accumulates
# each, of which half are 3x3.
CHANNELS, SIZE = 64, 56


def conv(name, source, result, kernel, channels=CHANNELS):
    pad = kernel // 2
    return (
        f"nn.Conv2d {name} 1 1 {source} {result} kernel_size=({kernel},{kernel}) stride=(1,1)"
        f" padding=({pad},{pad}) dilation=(1,1) groups=1 padding_mode=zeros bias=False"
        f" in_channels={channels} out_channels={channels}"
        f" @weight=({channels},{channels},{kernel},{kernel})f32"
    )


NETWORK = (
    "pnnx.Input in 0 1 0",
    conv("first", 0, 1, 3),
    "nn.ReLU relu 1 1 1 2",
    conv("second", 2, 3, 3),
    "pnnx.Expression sum 2 1 3 2 4 expr=add(@0,@1)",
    conv("third", 4, 5, 1),
    "nn.Sigmoid sigmoid 1 1 5 6",
    "pnnx.Output out 1 0 6",
)
OPERANDS = "0123456"


def weights_of(lines, seed=0):
    rng = np.random.default_rng(seed)
    found = {}
    for line in lines:
        for word in line.split():
            if word.startswith("@weight="):
                sizes = tuple(map(int, word[9:].removesuffix("f32").strip("()").split(",")))
                weight = rng.normal(size=sizes) / np.sqrt(np.prod(sizes[1:]))
                found[f"{line.split()[1]}.weight"] = weight.astype(np.float32)
    return found


@pytest.fixture
def network(make_pair):
    return engine.load(make_pair(*NETWORK, weights=weights_of(NETWORK)))


@pytest.fixture
def untried(monkeypatch):
    """Make every trial fail the test."""
    monkeypatch.setattr(Autotuner, "tune", None)
    monkeypatch.setattr(FusionTrial, "fastest", None)


def image(seed, size=SIZE):
    shape = (1, CHANNELS, size, size)
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def run(session, x):
    session.feed([x])
    session.run()
    return {record.operator.name: record.kernel for record in session.records}


def assert_right(session, x):
    reference = engine.Session(session.graph, "numpy")
    run(reference, x)
    for name in OPERANDS:
        np.testing.assert_allclose(
            session.value(name), reference.value(name), rtol=1e-4, atol=1e-4, strict=True
        )


# The first pass


@pytest.mark.parametrize("size", [SIZE, 61])
def test_rules_fuse_in_the_first_pass(network, tuning_cache, untried, size):
    session = engine.Session(network)
    kernels = run(session, image(1, size))
    assert len({kernels[name] for name in ("first", "relu", "second", "sum", "third")}) == 1
    assert is_fused(kernels["first"])
    assert_right(session, image(1, size))
    assert run(session, image(2, size)) == kernels
    assert_right(session, image(2, size))
    assert not tuning_cache._table()  # what nobody has measured is not remembered


def test_numpy_computes_what_a_library_would_prepare_longer(network, tuning_cache, untried):
    kernels = run(engine.Session(network), image(1, 6))
    assert {kernel.partition("/")[0] for kernel in kernels.values()} == {"", "numpy"}


def test_small_operators_are_lowered_after_the_first_pass(
    make_pair, tuning_cache, untried, monkeypatch
):
    """The shapes in the file tell that NumPy is faster, unless the input has another."""
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,4,6,6)f32",
        f"{conv('first', 0, 1, 4, 4)} #0=(1,4,6,6)f32 #1=(1,4,6,6)f32",
        "nn.ReLU relu 1 1 1 2 #1=(1,4,6,6)f32 #2=(1,4,6,6)f32",
        f"{conv('second', 2, 3, 4, 4)} #2=(1,4,6,6)f32 #3=(1,4,6,6)f32",
        "pnnx.Output out 1 0 3 #3=(1,4,6,6)f32",
    )
    inferred = []

    def record(row, *arguments):
        inferred.append([operator.name for operator in row])
        return infer_parts(row, *arguments)

    monkeypatch.setattr(fusing_kernels, "infer_parts", record)
    session = engine.Session(engine.load(make_pair(*lines, weights=weights_of(lines))))
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 4, 6, 6)).astype(np.float32)
    run(session, x)
    assert inferred == []
    run(session, x)
    assert inferred[0][0] == "first"
    inferred.clear()
    session = engine.Session(session.graph)
    run(session, rng.normal(size=(1, 4, 5, 5)).astype(np.float32))
    assert inferred[0][0] == "first"


def test_operators_left_to_numpy_are_fused_for_the_second_inputs(
    make_pair, tuning_cache, untried
):
    """Converting weights of 9 MB takes longer than one pass of NumPy over few pixels."""
    lines = (
        "pnnx.Input in 0 1 0",
        conv("first", 0, 1, 3, 512),
        "nn.ReLU relu 1 1 1 2",
        conv("second", 2, 3, 3, 512),
        "pnnx.Output out 1 0 3",
    )
    session = engine.Session(engine.load(make_pair(*lines, weights=weights_of(lines))))
    x = np.random.default_rng(1).normal(size=(1, 512, 14, 14)).astype(np.float32)
    kernels = run(session, x)
    assert {kernels[name] for name in ("first", "relu", "second")} == {"numpy"}
    expected = session.value("3").copy()
    session.restart()
    session.run()
    assert session.record("first").kernel == "numpy"  # the same inputs again
    assert is_fused(run(session, x)["first"])
    np.testing.assert_allclose(session.value("3"), expected, rtol=1e-4, atol=1e-4)


def test_without_fusing_rules_choose_single_kernels(network, tuning_cache, untried):
    session = engine.Session(network, memory_limit=1 << 30)
    kernels = run(session, image(1))
    assert not any(map(is_fused, kernels.values()))
    assert kernels["first"].partition("/")[0] in {"ncnn", "onnxruntime"}
    assert kernels["relu"] == "numpy/buffer"
    assert_right(session, image(1))


@pytest.mark.parametrize(
    ("kernels", "strategy"),
    [
        pytest.param((3, 3, 1), "ncnn/elempack", id="3x3"),
        pytest.param((7, 3, 1), "onnxruntime/nchwc", id="some 3x3"),
        pytest.param((1, 1, 1), "onnxruntime/nchwc", id="1x1"),
    ],
)
def test_rules_choose_the_expected_strategy(
    make_pair, tuning_cache, untried, kernels, strategy
):
    pytest.importorskip("ncnn")
    lines = ["pnnx.Input in 0 1 0"]
    for place, kernel in enumerate(kernels):
        lines.append(conv(f"c{place}", 2 * place, 2 * place + 1, kernel, 128))
        lines.append(f"nn.ReLU r{place} 1 1 {2 * place + 1} {2 * place + 2}")
    lines.append("pnnx.Output out 1 0 6")
    session = engine.Session(engine.load(make_pair(*lines, weights=weights_of(lines))))
    x = np.random.default_rng(1).normal(size=(1, 128, 56, 56)).astype(np.float32)
    if strategy.endswith("nchwc") and not run(session, x)["c0"].startswith(strategy):
        pytest.skip("ONNX Runtime has no NCHWc here")
    assert run(session, x)["c0"].startswith(strategy)


def test_a_shape_that_the_file_states_wrongly_does_not_count(make_pair, tuning_cache, untried):
    lines = list(NETWORK)
    lines[3] += f" #3=(1,{CHANNELS},7,7)f32"
    session = engine.Session(engine.load(make_pair(*lines, weights=weights_of(lines))))
    run(session, image(1))
    assert session.value("3").shape == (1, CHANNELS, SIZE, SIZE)
    assert_right(session, image(1))


def test_no_other_layer_runs_before_its_step(make_pair, tuning_cache, untried, monkeypatch):
    """Shapes are inferred without running the layer, because it may take long."""
    lines = (*NETWORK[:-1], "torch.cumsum sums 1 1 6 7 dim=1", "pnnx.Output out 1 0 7")
    graph = engine.load(make_pair(*lines, weights=weights_of(lines)))
    ran = []
    original = type(graph.operators[0]).forward

    def forward(self, *arguments):
        ran.append(self.name)
        return original(self, *arguments)

    monkeypatch.setattr(type(graph.operators[0]), "forward", forward)
    session = engine.Session(graph)
    session.feed([image(1)])
    session.run("sums")
    assert ran == []
    session.run()
    assert ran == ["sums"]


# Tuning


def test_tuning_changes_nothing_before_the_next_inputs(network, tuning_cache):
    session = engine.Session(network)
    kernels = run(session, image(1))
    held = {name: session.value(name).copy() for name in OPERANDS}
    assert session.tuned == 0
    assert session.tune()
    assert session.tuned == len(network.operators)
    for name, value in held.items():
        np.testing.assert_array_equal(session.value(name), value)
    session.restart()
    session.run()
    assert {r.operator.name: r.kernel for r in session.records} == kernels
    run(session, image(2))
    assert_right(session, image(2))


def test_the_next_session_uses_tuned_choices(network, tuning_cache, monkeypatch):
    # A pass on a busy machine must not cast doubt on what was measured.
    monkeypatch.setattr("engine.backends.tuning_cache.SECONDS_OF_WAKING", np.inf)
    session = engine.Session(network)
    run(session, image(1))
    session.tune()
    kernels = run(session, image(2))
    monkeypatch.setattr(Autotuner, "_measure", None)
    monkeypatch.setattr(FusionTrial, "fastest", None)
    again = engine.Session(network)
    assert run(again, image(1)) == kernels
    assert_right(again, image(1))
    assert again.tune()  # all is known


def test_large_subgraphs_do_not_wait_for_the_next_inputs(network, tuning_cache, monkeypatch):
    """They are made again from the tuning cache."""
    monkeypatch.setattr(fusing_kernels, "_STRATEGIES", (Strategy.NCHW,))
    monkeypatch.setattr(fusion_autotuner, "SECONDS_OF_WAKING", np.inf)
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 60.0)
    monkeypatch.setattr(fusing_kernels, "_MOST_WAITING", 0)
    session = engine.Session(network)
    run(session, image(1, 8))  # so small that NumPy computes the first pass
    session.tune()
    kernels = run(session, image(2, 8))
    assert is_fused(kernels["first"])
    assert_right(session, image(2, 8))


def test_a_budget_of_zero_tunes_nothing(network, tuning_cache, untried):
    session = engine.Session(network)
    run(session, image(1))
    assert not session.tune(0)
    assert session.tuned == 0


def test_a_budget_ends_between_trials(network, tuning_cache, monkeypatch):
    """The clock of the test advances by a second at each reading."""
    now = iter(range(10_000))
    session = engine.Session(network)
    run(session, image(1))
    monkeypatch.setattr("engine.session.time.monotonic", lambda: next(now))
    trials = []
    assert not session.tune(3.5, on_trial=lambda: trials.append(session.tuned))
    assert len(trials) == 3


def test_interrupted_tuning_continues(network, tuning_cache):
    """Results are kept, however often tuning is interrupted."""
    session = engine.Session(network)
    kernels, before = run(session, image(1)), 0
    for calls in range(20):  # noqa: B007 - counted
        left = iter(range(40))
        if session.tune(cancelled=lambda left=left: next(left, None) is None):
            break
        assert session.tuned >= before
        before = session.tuned
        session.step_back()
        session.step()
    assert 0 < calls < 19
    assert session.record("first").kernel == kernels["first"]
    run(session, image(2))
    assert_right(session, image(2))


def test_a_slower_moment_reaches_fewer_operators_than_the_interrupted_trial(
    network, tuning_cache, monkeypatch
):
    session = engine.Session(network)
    run(session, image(1))
    plans = session._kernels._plans
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 100)  # so that it reaches all
    assert not session.tune(cancelled=lambda: any(plans.found.values()))
    reached = {
        part.operator.index for each in plans.found.values() if each for part in each.parts
    }
    assert len(reached) > 1
    for strategy, each in plans.found.items():
        plans.found[strategy] = each and each._replace(share=0.1)  # worth making
    plans.subgraphs.clear()  # and not made yet
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 0)
    assert session.tune()
    run(session, image(2))
    assert_right(session, image(2))


def test_other_sizes_are_tuned_separately(network, tuning_cache):
    session = engine.Session(network)
    run(session, image(1))
    session.tune()
    run(session, image(1, 40))
    assert session.tuned == 0
    run(session, image(2))
    assert session.tuned == len(network.operators)


@pytest.mark.parametrize("backend", ["numpy", "onnxruntime"])
def test_a_pinned_backend_needs_no_tuning(network, untried, backend):
    session = engine.Session(network, backend)
    run(session, image(1))
    assert session.tuned == len(network.operators)
    assert session.tune()


def test_tuning_waits_for_the_end_of_a_pass(network, tuning_cache):
    session = engine.Session(network)
    session.feed([image(1)])
    session.step()
    with pytest.raises(SessionStateError, match="run it first"):
        session.tune()


def test_a_kernel_that_differs_is_reported_and_dropped(network, tuning_cache, monkeypatch):
    """The first pass does not compare, so tuning does."""
    monkeypatch.setattr(fusing_kernels, "_STRATEGIES", (Strategy.NCHW,))
    monkeypatch.setattr(fusion_autotuner, "SECONDS_OF_WAKING", np.inf)
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 60.0)
    original = OnnxCompiledKernel.run

    def compute_otherwise(self, inputs):
        original(self, inputs)
        if len(self._buffers) > 1:  # of a subgraph
            self._buffers[1].memory[...] += 1

    monkeypatch.setattr(OnnxCompiledKernel, "run", compute_otherwise)
    session = engine.Session(network)
    kernels = run(session, image(1))
    assert is_fused(kernels["relu"])
    assert session.wrong_kernels == ()
    session.tune()
    assert session.wrong_kernels == (kernels["relu"],)
    assert not any(map(is_fused, run(session, image(2)).values()))
    assert_right(session, image(2))
