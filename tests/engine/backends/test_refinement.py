"""GELU is refined where a library's cancels: alone, fused, and for every consumer."""

from __future__ import annotations

import math

import numpy as np
import pytest

import engine
from accuracy.measure import FEW, units
from engine.backends import fusing_kernels, fusion_autotuner, is_fused
from engine.backends.fusion import Strategy, SubgraphName
from engine.backends.onnx_nchwc import nchwc_block_size
from engine.backends.subgraph import keep_pairs
from engine.errors import InferenceError
from engine.self_check import Verdict, self_check

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")

BACKENDS = ["auto", "numpy", "onnxruntime", "ncnn"]
SHAPE = (1, 16, 24, 24)


def gelu(x):
    """Compute GELU with the standard library, in double precision."""
    wide = np.asarray(x, np.float64)
    found = [v / 2 * math.erfc(-v / math.sqrt(2)) for v in wide.ravel().tolist()]
    return np.array(found).reshape(wide.shape)


def gelu_by_tanh(x):
    wide = np.asarray(x, np.float64)
    inner = math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)
    return wide / (1 + np.exp(-2 * inner))


FORMULAS = {"none": gelu, "tanh": gelu_by_tanh}


def assert_near(found, right):
    error = units(np.ravel(found), np.ravel(right))
    assert error.max() <= FEW, (error.max(), error.argmax())


def numbers(shape=SHAPE, seed=0):
    """Draw numbers, half of them where a library loses digits."""
    rng = np.random.default_rng(seed)
    return np.asarray(rng.uniform(-11, 3, shape), np.float32)


def last_of(session, *inputs):
    for x in inputs:
        session.feed([x])
        session.run()
        if session.backend == "auto":
            session.tune()
    return session


def fused_names(session):
    return {
        record.kernel: [r.operator.name for r in session.records if r.kernel == record.kernel]
        for record in session.records
        if is_fused(record.kernel)
    }


def linear(name, operand, result, features=16):
    return (
        f"nn.Linear {name} 1 1 {operand} {result} bias=False in_features={features} "
        f"out_features={features} @weight=({features},{features})f32"
    )


def conv(name, operand, result, groups=1, channels=16):
    return (
        f"nn.Conv2d {name} 1 1 {operand} {result} kernel_size=(1,1) stride=(1,1) padding=(0,0) "
        f"dilation=(1,1) groups={groups} padding_mode=zeros bias=False in_channels={channels} "
        f"out_channels={channels} @weight=({channels},{channels // groups},1,1)f32"
    )


def eye(name, channels=16, *axes):
    return {f"{name}.weight": np.eye(channels, dtype=np.float32).reshape(channels, -1, *axes)}


@pytest.fixture(params=Strategy)
def strategy(request, monkeypatch, tuning_cache):
    """The only strategy that is tried; it wins every trial."""
    if request.param is Strategy.NCHWC and not nchwc_block_size():
        pytest.skip("ONNX Runtime has no NCHWc here")
    monkeypatch.setattr(fusing_kernels, "_STRATEGIES", (request.param,))
    monkeypatch.setattr(fusion_autotuner, "SECONDS_OF_WAKING", np.inf)
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 60.0)
    return request.param


# One operator

ONE = ("pnnx.Input in 0 1 x", "nn.GELU f 1 1 x y approximate={}", "pnnx.Output out 1 0 y")


def one(make_pair, approximate="none"):
    return engine.load(make_pair(*(line.format(approximate) for line in ONE)))


@pytest.mark.parametrize("approximate", FORMULAS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_single_operator_is_refined(make_pair, tuning_cache, backend, approximate):
    """Also where the kernel was chosen on numbers near 0."""
    near = np.random.default_rng(1).normal(size=(1, 64, 96, 96)).astype(np.float32)
    session = engine.Session(one(make_pair, approximate), backend=backend)
    x = numbers(near.shape)[:, :, :8]
    found = last_of(session, near, near + 1, numbers(near.shape)).value("y")[:, :, :8]
    assert_near(found, FORMULAS[approximate](x))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "x",
    [
        numbers((1,)),
        np.float32([-6.5]),
        numbers(()),
        numbers((48, 40)).T,
        numbers((4, 3, 50))[::-2, ::-1, 3::2],
        numbers((1 << 17,))[1::2],
    ],
    ids=["one", "one that is small", "no axis", "transposed", "backwards", "every other"],
)
def test_memory_layouts(make_pair, tuning_cache, backend, x):
    session = engine.Session(one(make_pair), backend=backend)
    assert_near(last_of(session, x, x.copy(), x).value("y"), gelu(x))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
def test_an_empty_operand(make_pair, tuning_cache, backend, shape):
    session = engine.Session(one(make_pair), backend=backend)
    found = last_of(session, np.zeros(shape, np.float32)).value("y")
    assert found.shape == shape


@pytest.mark.parametrize("backend", BACKENDS)
def test_special_numbers(make_pair, tuning_cache, backend):
    """They equal PyTorch's also beside ordinary numbers: libraries compute whole blocks."""
    given = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-41, -1e-41, 3e38, -3e38, -1e20, -50.0]
    expected = [np.nan, np.inf, np.nan, 0, 0, 0, 0, 3e38, 0, 0, 0]
    x = np.tile(np.float32([*given, -2, 1]), 1 << 13)
    session = engine.Session(one(make_pair), backend=backend)
    found = last_of(session, x, x.copy()).value("y").reshape(-1, 13)
    assert np.all(found == found[0], where=~np.isnan(found[0]))
    np.testing.assert_allclose(found[0, :11], expected, rtol=1e-6, atol=1e-37)


def test_the_operand_stays_unchanged(make_pair, tuning_cache):
    x = numbers()
    session = engine.Session(one(make_pair), backend="onnxruntime")
    last_of(session, x)
    np.testing.assert_array_equal(session.value("x"), numbers())
    assert not session.value("y").flags.writeable


# Fused

PRODUCTS = (
    "pnnx.Input in 0 1 x",
    linear("a", "x", "1"),
    "nn.GELU b 1 1 1 2 approximate=none",
    linear("c", "2", "3"),
    "nn.GELU d 1 1 3 4 approximate=tanh",
    linear("e", "4", "y"),
    "pnnx.Output out 1 0 y",
)
IMAGES = (
    "pnnx.Input in 0 1 x",
    conv("a", "x", "1"),
    "nn.GELU b 1 1 1 2 approximate=none",
    conv("c", "2", "3"),
    "nn.GELU d 1 1 3 4 approximate=none",
    conv("e", "4", "y"),
    "pnnx.Output out 1 0 y",
)


@pytest.mark.parametrize("strategy", [Strategy.NCHW], indirect=True)
def test_refined_between_products(make_pair, strategy):
    weights = eye("a") | eye("c") | eye("e")
    session = engine.Session(engine.load(make_pair(*PRODUCTS, weights=weights)))
    given = [numbers((1, 30, 16), seed) for seed in range(3)]
    last_of(session, *given)
    assert list(fused_names(session).values()) == [["a", "b", "c", "d", "e"]]
    assert_near(session.value("2"), gelu(session.value("1")))
    assert_near(session.value("4"), gelu_by_tanh(session.value("3")))


@pytest.mark.parametrize("channels", [16, 20])
def test_refined_between_convolutions(make_pair, strategy, channels):
    lines = [
        line.replace("channels=16", f"channels={channels}").replace(
            "(16,16", f"({channels},{channels}"
        )
        for line in IMAGES
    ]
    weights = {k: v for name in "ace" for k, v in eye(name, channels, 1, 1).items()}
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    shape = (1, channels, 9, 7)
    last_of(session, *(numbers(shape, seed) for seed in range(3)))
    ((name, operators),) = fused_names(session).items()
    assert SubgraphName.read(name).strategy is strategy
    assert operators == ["a", "b", "c", "d", "e"]
    for operand, result in ("12", "34"):
        assert_near(session.value(result), gelu(session.value(operand)))


# What reads an operand or a result outside of the subgraph has it in NCHW.
@pytest.mark.parametrize("read", ["1", "2", "3", "4", "x"])
def test_refined_result_with_other_consumers(make_pair, strategy, read):
    lines = (
        *IMAGES[:-1],
        f"nn.Softplus outside 1 1 {read} z beta=1.0 threshold=20.0",
        "pnnx.Output out 1 0 y",
        "pnnx.Output also 1 0 z",
    )
    weights = {k: v for name in "ace" for k, v in eye(name, 16, 1, 1).items()}
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    last_of(session, *(numbers(seed=seed) for seed in range(3)))
    assert list(fused_names(session).values()) == [["a", "b", "c", "d", "e"]]
    for operand, result in ("12", "34"):
        assert_near(session.value(result), gelu(session.value(operand)))
    expected = np.log1p(np.exp(session.value(read).astype(float)))
    np.testing.assert_allclose(session.value("z"), expected, rtol=1e-5, atol=1e-7)


def test_refined_as_first_of_a_subgraph(make_pair, strategy):
    """Its operand is an input of the subgraph, and may have another memory layout."""
    lines = (
        "pnnx.Input in 0 1 x",
        "Tensor.permute turned 1 1 x 0 dims=(0,1,3,2)",
        "nn.GELU b 1 1 0 2 approximate=none",
        *IMAGES[3:],
    )
    weights = {k: v for name in "ce" for k, v in eye(name, 16, 1, 1).items()}
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    last_of(session, *(numbers(seed=seed) for seed in range(3)))
    assert "b" in {name for names in fused_names(session).values() for name in names}
    assert_near(session.value("2"), gelu(session.value("0")))


READERS = {
    "logarithm": ("pnnx.Expression behind 1 1 2 3 expr=log(neg(@0))", lambda x, y: np.log(-y)),
    "product": ("pnnx.Expression behind 2 1 2 1 3 expr=mul(@0,@1)", lambda x, y: x * y),
    "sum": ("pnnx.Expression behind 2 1 2 2 3 expr=add(@0,@1)", lambda x, y: y + y),
    "transposed": ("Tensor.permute behind 1 1 2 3 dims=(0,2,3,1)",
                   lambda x, y: y.transpose(0, 2, 3, 1)),
    "reshaped": ("Tensor.reshape behind 1 1 2 3 shape=(1,16,-1)",
                 lambda x, y: y.reshape(1, 16, -1)),
    "joined": ("torch.cat behind 2 1 2 2 3 dim=1", lambda x, y: np.concatenate([y, y], 1)),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_other_consumers_read_the_refined_result(make_pair, strategy, reader):
    line, compute = READERS[reader]
    lines = (
        "pnnx.Input in 0 1 x",
        "nn.LeakyReLU zero 1 1 x 0 negative_slope=1.0",
        conv("a", "0", "1"),
        "nn.GELU b 1 1 1 2 approximate=none",
        line,
        "nn.Softsign c 1 1 3 4",
        "nn.Softsign d 1 1 4 y",
        "pnnx.Output out 1 0 y",
    )
    session = engine.Session(engine.load(make_pair(*lines, weights=eye("a", 16, 1, 1))))
    given = [np.minimum(numbers(seed=seed), np.float32(-1.5)) for seed in range(3)]
    last_of(session, *given)
    rows = list(fused_names(session).values())
    assert any("b" in row for row in rows)
    assert reader == "reshaped" or not any({"b", "behind"} <= set(row) for row in rows)
    x = session.value("1").astype(float)
    y = gelu(x)
    assert_near(session.value("2"), y)
    np.testing.assert_allclose(session.value("3"), compute(x, y), rtol=1e-6, atol=1e-36)


def test_a_subgraph_continues_after_refinement(make_pair, strategy):
    """As in ConvMixer, whose normalisation reads GELU."""
    lines = ["pnnx.Input in 0 1 0"]
    weights = {}
    for i in range(3):
        lines += [
            conv(f"conv{i}", 3 * i, 3 * i + 1),
            f"nn.GELU gelu{i} 1 1 {3 * i + 1} {3 * i + 2} approximate=none",
            (
                f"nn.BatchNorm2d norm{i} 1 1 {3 * i + 2} {3 * i + 3} affine=False eps=0.0 "
                "num_features=16 @running_mean=(16)f32 @running_var=(16)f32"
            ),
        ]
        weights |= eye(f"conv{i}", 16, 1, 1)
        weights[f"norm{i}.running_mean"] = np.zeros(16, np.float32)
        weights[f"norm{i}.running_var"] = np.full(16, 0.25, np.float32)
    lines.append("pnnx.Output out 1 0 9")
    session = engine.Session(engine.load(make_pair(*lines, weights=weights)))
    last_of(session, *(numbers(seed=seed) for seed in range(3)))
    rows = list(fused_names(session).values())
    assert rows == [["norm0", "conv1", "gelu1"], ["norm1", "conv2", "gelu2"]]
    for i in range(3):
        y = gelu(session.value(str(3 * i + 1)))
        assert_near(session.value(str(3 * i + 2)), y)
        assert_near(session.value(str(3 * i + 3)), 2 * session.value(str(3 * i + 2)))


def test_a_recorded_subgraph_without_refinement(make_pair, tuning_cache):
    """Of an earlier version."""
    lines = (
        "pnnx.Input in 0 1 x",
        "nn.GELU a 1 1 x 1 approximate=none",
        "nn.Softsign b 1 1 1 y",
        "pnnx.Output out 1 0 y",
    )
    graph = engine.load(make_pair(*lines))
    recorded = dict.fromkeys("ab", "onnxruntime/nchw-2@1-2") | {"in": "", "out": ""}
    session = engine.Session(graph, backend=recorded)
    session.feed([numbers()])
    with pytest.raises(InferenceError, match="recorded kernel"):
        session.run()


@pytest.mark.parametrize("approximate", FORMULAS)
def test_the_self_check_compares_every_element(make_pair, approximate):
    lines = [line.replace("approximate=none", f"approximate={approximate}") for line in IMAGES]
    weights = {k: v for name in "ace" for k, v in eye(name, 16, 1, 1).items()}
    graph = engine.load(make_pair(*lines, weights=weights))
    reference = engine.Session(graph, backend="numpy")
    reference.feed([np.minimum(numbers(), np.float32(-1))])
    found = self_check(reference)
    compared = {c.kernel.partition("@")[0] for c in found.comparisons if c.operator.name == "b"}
    assert "onnxruntime/nchw-2" in compared
    assert {c.verdict for c in found.comparisons} == {Verdict.AGREES}


def test_pairs():
    """Both values of a pair are free, or neither is."""
    pairs = [("a", "b"), ("a", "c"), (None, "d"), ("e", "f")]
    assert keep_pairs({"a", "b", "c", "d", "e", "f", "g"}, pairs) == set("abcefg")
    assert keep_pairs({"a", "b", "e", "g"}, pairs) == {"g"}
    assert keep_pairs({"b", "c", "f"}, pairs) == set()
    assert keep_pairs({"g"}, []) == {"g"}
