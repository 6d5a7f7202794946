"""Libraries that must not compute an operator: alone, fused with others, or in a trial."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.backends import backend_of, fusing_kernels, fusion_autotuner, make_kernels
from engine.backends.fusion import Strategy, SubgraphName, is_fused
from engine.backends.tuning_cache import key_of
from engine.errors import SessionStateError
from engine.runtime import activity
from engine.self_check import self_check

pytest.importorskip("onnxruntime")
pytest.importorskip("ncnn")

CONV = "kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1) groups=1 padding_mode=zeros"
WEIGHT = "bias=False @weight=(8,8,3,3)f32"
COUNT = 8
NETWORK = (
    "pnnx.Input in 0 1 0 #0=(1,8,24,24)f32",
    *(
        line
        for i in range(0, COUNT, 2)
        for line in (
            f"nn.Conv2d op{i} 1 1 {i} {i + 1} {CONV} in_channels=8 out_channels=8 {WEIGHT}",
            f"nn.ReLU op{i + 1} 1 1 {i + 1} {i + 2}",
        )
    ),
    f"pnnx.Output out 1 0 {COUNT}",
)
BOTH = frozenset({"onnxruntime", "ncnn"})


@pytest.fixture
def network(make_pair):
    rng = np.random.default_rng(1)
    weights = {
        f"op{i}.weight": (rng.normal(size=(8, 8, 3, 3)) / 8).astype(np.float32)
        for i in range(0, COUNT, 2)
    }
    return engine.load(make_pair(*NETWORK, weights=weights))


@pytest.fixture
def entered():
    """Libraries that were called, by operator; a fused call counts for each operator."""
    seen: dict[str, set[str]] = {}

    def watcher(operator, kernel):
        name = SubgraphName.read(kernel)
        names = [operator] if name is None else members(name)
        for each in names:
            seen.setdefault(each, set()).add(backend_of(kernel))

    activity.watch(watcher)
    yield seen
    activity.watch(None)


def members(name):
    # The input is operator 0, and op0 operator 1.
    return [f"op{index - 1}" for index in range(name.first, name.last + 1)]


@pytest.fixture
def at_once(monkeypatch):
    """Make fused operators win every trial."""
    monkeypatch.setattr(fusion_autotuner, "SECONDS_OF_WAKING", np.inf)
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 60.0)


def image(seed):
    return np.random.default_rng(seed).normal(size=(1, 8, 24, 24)).astype(np.float32)


def passes(session, count=2):
    for seed in range(count):
        session.feed([image(seed)])
        session.run()
        session.tune()
    return {record.operator.name: record.kernel for record in session.records}


def assert_right(session):
    reference = session.fork("numpy")
    reference.run()
    for operand in map(str, range(COUNT + 1)):
        np.testing.assert_allclose(
            session.value(operand), reference.value(operand), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("backend", ["auto", "onnxruntime", "ncnn"])
@pytest.mark.parametrize("libraries", [{"ncnn"}, {"onnxruntime"}, BOTH])
def test_an_excluded_library_is_never_called(
    network, tuning_cache, at_once, entered, backend, libraries
):
    session = engine.Session(network, backend, excluded={"op4": libraries, "gone": {"ncnn"}})
    kernels = passes(session)
    assert not entered["op4"] & libraries
    assert backend_of(kernels["op4"]) not in libraries
    if backend != "auto":
        assert backend_of(kernels["op2"]) == backend
    assert_right(session)


def test_exclusions_override_the_tuning_cache(network, tuning_cache, at_once, entered):
    """Both single and fused choices were measured with the excluded library."""
    first = passes(engine.Session(network))
    assert {backend_of(kernel) for name, kernel in first.items() if "op" in name} <= BOTH
    entered.clear()
    # Of the first pass, by whatever was fastest alone.
    conv = network.operator("op4")
    tuning_cache.put(key_of(conv, [np.zeros((1, 8, 24, 24), np.float32)]), "ncnn/gemm")
    session = engine.Session(network, excluded={"op4": BOTH})
    kernels = passes(session)
    assert entered["op4"] == {"numpy"}
    assert backend_of(kernels["op4"]) == "numpy"
    assert_right(session)


def test_choices_with_exclusions_have_their_own_entries(network, tuning_cache):
    conv = network.operator("op4")
    inputs = [np.zeros((1, 8, 24, 24), np.float32)]
    with_all, without = key_of(conv, inputs), key_of(conv, inputs, {"ncnn"})
    tuning_cache.put(with_all, "ncnn/gemm")
    tuning_cache.put(without, "onnxruntime/all-1")
    for excluded, expected in (({}, "ncnn/gemm"), ({"op4": {"ncnn"}}, "onnxruntime/all-1")):
        kernel = make_kernels("auto", [conv], excluded)[0]
        kernel.prepare(inputs)
        assert kernel.name == expected


@pytest.mark.parametrize("strategy", Strategy)
def test_other_operators_are_still_fused(network, tuning_cache, at_once, monkeypatch, strategy):
    """Operators upstream and downstream of it, and with it by the other library."""
    monkeypatch.setattr(fusing_kernels, "_STRATEGIES", (strategy,))
    library = backend_of(strategy.value)
    (other,) = BOTH - {library}
    kernels = passes(engine.Session(network, excluded={"op4": {library}}))
    (before,), (behind,) = (
        {SubgraphName.read(kernels[f"op{i}"]) for i in indices} for indices in ((0, 3), (5, 7))
    )
    assert members(before) == ["op0", "op1", "op2", "op3"]
    assert members(behind) == ["op5", "op6", "op7"]
    assert not is_fused(kernels["op4"])
    every = {f"op{i}": {other} for i in range(COUNT)}
    kernels = passes(engine.Session(network, excluded=every))
    (name,) = {SubgraphName.read(kernels[f"op{i}"]) for i in range(COUNT)}
    assert len(members(name)) == COUNT


@pytest.mark.parametrize("strategy", Strategy)
def test_recorded_kernels(network, tuning_cache, at_once, entered, monkeypatch, strategy):
    """NumPy replaces an excluded library, for the whole subgraph of the operator."""
    monkeypatch.setattr(fusing_kernels, "_STRATEGIES", (strategy,))
    recorded = passes(engine.Session(network))
    assert is_fused(recorded["op4"])
    entered.clear()
    session = engine.Session(network, recorded, excluded={"op4": {backend_of(strategy.value)}})
    kernels = passes(session)
    assert {kernels[f"op{i}"] for i in range(COUNT)} == {"numpy"}
    assert entered["op4"] == {"numpy"}
    assert_right(session)
    (other,) = BOTH - {backend_of(strategy.value)}
    again = engine.Session(network, recorded, excluded={"op4": {other}})
    assert passes(again) == recorded


def test_a_fork_keeps_exclusions(network):
    session = engine.Session(network, excluded={"op4": ["ncnn"]})
    session.feed([image(0)])
    assert session.fork("onnxruntime").excluded == {"op4": frozenset({"ncnn"})}
    assert engine.Session(network).excluded == {}


def test_a_self_check_respects_exclusions(network, entered):
    session = engine.Session(network, excluded={"op4": {"ncnn"}, "op5": {"ncnn"}})
    session.feed([image(0)])
    check = self_check(session)
    assert check.agrees
    assert entered["op4"] == {"numpy", "onnxruntime"}
    assert entered["op2"] == {"numpy", "onnxruntime", "ncnn"}
    at_once = [c for c in check.comparisons if is_fused(c.kernel)]
    assert {backend_of(c.kernel) for c in at_once if c.operator.name == "op4"} == {
        "onnxruntime"
    }


@pytest.mark.parametrize(
    ("libraries", "why"),
    [
        (["numpy"], "numpy cannot be excluded for 'op4': it is the reference"),
        (["auto"], "there is no library 'auto' to exclude for 'op4'; choose among ncnn, onnx"),
        (["cuda"], "there is no library 'cuda'"),
    ],
)
@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_invalid_exclusions_are_refused(network, libraries, why, backend):
    with pytest.raises(SessionStateError, match=why):
        engine.Session(network, backend, excluded={"op4": libraries})
