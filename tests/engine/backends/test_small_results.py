"""Small results of functions that are never 0 are right with every kernel.

Numbers are float64's, typed in or computed by Python's `math`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import engine
from engine.backends import is_fused
from engine.backends.fusion import Strategy
from engine.self_check import Verdict, self_check

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")

BACKENDS = ["auto", "numpy", "onnxruntime", "ncnn"]
SHAPE = (1, 16, 32, 32)  # so large that libraries are tried

SCORES = (
    "pnnx.Input in 0 1 x",
    "F.sigmoid score 1 1 x p",
    "pnnx.Expression entropy 1 1 p y expr=log(@0)",
    "pnnx.Output out 1 0 y",
)


def near_zero(seed=0):
    return np.random.default_rng(seed).normal(size=SHAPE).astype(np.float32)


def fed(session, *inputs):
    """Run on several inputs in turn; return the outputs of the last one."""
    for x in inputs:
        session.feed([x])
        session.run()
        session.tune()
    return session.outputs()[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("logit", [-19.3, -17.7, -11.0, -40.0, -80.0])
def test_a_logarithm_of_a_sigmoid(make_pair, tuning_cache, backend, logit):
    """Also where kernels were chosen on inputs near 0, and remembered."""
    graph = engine.load(make_pair(*SCORES))
    far = np.full(SHAPE, logit, np.float32)
    expected = -math.log1p(math.exp(-float(np.float32(logit))))
    session = engine.Session(graph, backend=backend)
    found = fed(session, near_zero(1), near_zero(2), far)
    np.testing.assert_allclose(found, expected, rtol=2e-7)
    np.testing.assert_allclose(
        fed(engine.Session(graph, backend=backend), far), expected, rtol=2e-7
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_small_results_equal_pytorch(make_pair, tuning_cache, backend):
    torch = pytest.importorskip("torch")
    far = np.linspace(-25, -10, math.prod(SHAPE), dtype=np.float32).reshape(SHAPE)
    expected = torch.log(torch.sigmoid(torch.from_numpy(far))).numpy()
    assert -19.31 < expected[far == -19.3].max(initial=-19.3) < -19.29
    session = engine.Session(engine.load(make_pair(*SCORES)), backend=backend)
    np.testing.assert_allclose(fed(session, near_zero(), far), expected, rtol=3e-7)


# type and parameters, input, result
SINGLE = {
    "silu of -17": ("nn.SiLU", -17, -7.03789255e-07),
    "silu of -60": ("nn.SiLU", -60, -5.25391046e-25),
    "silu of -1e30": ("nn.SiLU", -1e30, 0),
    "silu of 1e30": ("nn.SiLU", 1e30, 1e30),
    "mish of -40": ("nn.Mish", -40, -1.69934170e-16),
    "elu of a millionth": ("nn.ELU", 1e-6, 1e-6, "alpha=1.0"),
    "elu of minus a millionth": ("nn.ELU", -1e-6, -9.99999500e-07, "alpha=1.0"),
    "hardsigmoid next to -3": ("nn.Hardsigmoid", -3 + 2**-13, 2.03450521e-05),
    "hardswish next to -3": ("nn.Hardswish", -3 + 2**-13, -6.10326727e-05),
    "tanh of a hundred thousandth": ("nn.Tanh", 1e-5, 1e-5),
    "gelu of -4 by tanh": ("nn.GELU", -4, -7.02459482e-05, "approximate=tanh"),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", SINGLE)
def test_small_results_of_one_operator(make_pair, tuning_cache, backend, name):
    kind, given, expected, *said = SINGLE[name]
    lines = (
        "pnnx.Input in 0 1 x",
        f"{kind} f 1 1 x y {' '.join(said)}",
        "pnnx.Expression behind 1 1 y z expr=mul(@0,1)",
        "pnnx.Output out 1 0 z",
    )
    session = engine.Session(engine.load(make_pair(*lines)), backend=backend)
    far = np.full(SHAPE, given, np.float32)
    found = fed(session, near_zero(1), near_zero(2), far)
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-36)


def conv(name, source, result, channels):
    return (
        f"nn.Conv2d {name} 1 1 {source} {result} bias=True dilation=(1,1) groups=1 "
        f"in_channels=16 kernel_size=(3,3) out_channels={channels} padding=(1,1) "
        f"padding_mode=zeros stride=(1,1) @bias=({channels})f32 "
        f"@weight=({channels},16,3,3)f32"
    )


# As a detector ends: a score for each place, most of which are next to nothing.
DETECTOR = (
    "pnnx.Input in 0 1 x",
    conv("first", "x", "1", 16),
    "nn.SiLU gate 1 1 1 2",
    conv("last", "2", "3", 12),
    "nn.Sigmoid score 1 1 3 4",
    "pnnx.Expression cost 1 1 4 y expr=log(@0)",
    "pnnx.Output out 1 0 y",
)


@pytest.fixture
def detector(make_pair):
    rng = np.random.default_rng(5)
    weights = {
        "first.weight": rng.normal(0, 0.3, (16, 16, 3, 3)),
        "first.bias": rng.normal(-4, 3, 16),
        "last.weight": rng.normal(0, 0.1, (12, 16, 3, 3)),
        "last.bias": rng.normal(-15, 3, 12),
    }
    arrays = {name: array.astype(np.float32) for name, array in weights.items()}
    return engine.load(make_pair(*DETECTOR, weights=arrays))


def sigmoid64(x):
    wide = x.astype(np.float64)
    return np.exp(wide) / (1 + np.exp(wide))


def assert_right(session):
    """Compare each element-wise operator on the inputs that it had."""
    before, score = session.value("1"), session.value("3")
    assert score.min() < -18
    np.testing.assert_allclose(session.value("2"), before * sigmoid64(before), rtol=5e-7)
    np.testing.assert_allclose(session.value("4"), sigmoid64(score), rtol=5e-7)
    expected = np.log(session.value("4").astype(np.float64))
    np.testing.assert_allclose(session.value("y"), expected, rtol=3e-7, atol=1e-7)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_detector(detector, tuning_cache, backend):
    session = engine.Session(detector, backend=backend)
    for seed in range(3):
        fed(session, near_zero(seed))
        assert_right(session)


@pytest.mark.parametrize("strategy", Strategy)
def test_a_fused_detector(detector, strategy):
    from engine.backends.onnx_nchwc import nchwc_block_size

    if strategy is Strategy.NCHWC and not nchwc_block_size():
        pytest.skip("ONNX Runtime has no such order here")
    last = (
        "score" if strategy is Strategy.ELEMPACK else "cost"
    )  # ncnn's own logarithm is none of them
    until = detector.operator(last).index
    kernels = {
        o.name: f"{strategy.value}-2@1-{until}" if 1 <= o.index <= until else ""
        for o in detector.operators
    }
    session = engine.Session(detector, backend=kernels)
    fed(session, near_zero())
    assert is_fused(session.record("score").kernel)
    assert_right(session)


def test_the_check_accepts_rounding_of_sums(detector):
    """Small results of sums are rounded differently, and so are results downstream."""
    session = engine.Session(detector)
    session.feed([near_zero()])
    found = self_check(session)
    assert found.differing == ()
    strategies = {
        c.kernel.partition("-")[0] for c in found.compared if c.operator.name == "score"
    }
    assert {"onnxruntime/all", "onnxruntime/nchw", "ncnn/elempack"} <= strategies
    scores = [c.difference for c in found.compared if c.operator.name == "score"]
    # A score near -18 has units in the last place of 2e-6, as its sigmoid has then of itself.
    assert max(far.of_element for far in scores) < 4e-6


def test_the_check_finds_an_inaccurate_sigmoid(detector, monkeypatch):
    """Six times 2e-8 is a small absolute error, but a wrong result."""
    from engine.backends import onnx_accurate

    monkeypatch.setitem(onnx_accurate._EXPANSIONS, "Sigmoid", lambda node, constant: [node])
    session = engine.Session(detector)
    session.feed([near_zero()])
    found = self_check(session)
    differing = {(c.operator.name, c.kernel.partition("-")[0]) for c in found.differing}
    assert ("score", "onnxruntime/all") in differing
    assert ("score", "onnxruntime/nchw") in differing
    assert {name for name, _ in differing} == {"score"}
    worst = next(c for c in found.differing if c.kernel.startswith("onnxruntime/all"))
    assert worst.verdict is Verdict.DIFFERS
    assert worst.difference.largest < 1e-6
    assert worst.difference.of_element > 0.5
    assert "; relative to the element by up to " in worst.sentence
    assert "Relative to an element it is " in found.summary
    assert "differ by more than 0.001, in score" in found.summary


def test_no_inaccurate_kernel_is_chosen(detector, tuning_cache, monkeypatch):
    """A kernel is chosen only if each element is right, not only relative to the largest."""
    from engine.backends import onnx_accurate

    monkeypatch.setitem(onnx_accurate._EXPANSIONS, "Sigmoid", lambda node, constant: [node])
    operator = detector.operator("score")
    kernel = engine.Session(detector)._kernels.make_single(operator.index)
    far = np.full((1, 12, 64, 64), -17.7, np.float32)
    kernel.prepare([far])
    assert kernel.name.startswith("numpy")
