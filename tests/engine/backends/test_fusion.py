"""Fused operators give the same numbers as one by one, whatever happens between steps."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import engine
from engine.backends import fusing_kernels, fusion_autotuner
from engine.backends.fusion import Strategy, SubgraphName, is_fused
from engine.backends.ncnn_subgraph import NcnnCompiledSubgraph
from engine.backends.onnx_runtime import OnnxCompiledKernel
from engine.backends.tuning_cache import Expectation, TuningCache

pytest.importorskip("onnxruntime")

CONV = "kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1) groups=1 padding_mode=zeros"
# Two branches from one input, which meet; a pooling that the library leaves to NumPy where
# there are NaN; a view of a result, and a product behind it.
NETWORK = (
    "pnnx.Input in 0 1 0",
    (
        f"nn.Conv2d conv1 1 1 0 1 {CONV} bias=False in_channels=3 out_channels=8"
        " @weight=(8,3,3,3)f32"
    ),
    "nn.ReLU relu1 1 1 1 2",
    (
        f"nn.Conv2d branch 1 1 0 3 {CONV} bias=False in_channels=3 out_channels=8"
        " @weight=(8,3,3,3)f32"
    ),
    "pnnx.Expression meet 2 1 2 3 4 expr=add(@0,@1)",
    (
        "nn.MaxPool2d pool 1 1 4 5 kernel_size=(2,2) stride=(2,2) padding=(0,0) dilation=(1,1)"
        " ceil_mode=False return_indices=False"
    ),
    "nn.AdaptiveAvgPool2d mean 1 1 5 6 output_size=(1,1)",
    "Tensor.reshape flat 1 1 6 7 shape=(-1,8)",
    "nn.Linear product 1 1 7 8 bias=False in_features=8 out_features=5 @weight=(5,8)f32",
    "nn.Softmax softmax 1 1 8 9 dim=1",
    "pnnx.Output out 1 0 9",
)
FUSED = ["conv1", "relu1", "branch", "meet", "pool", "mean", "product", "softmax"]


@pytest.fixture
def network(make_pair):
    rng = np.random.default_rng(3)
    shapes = {"conv1.weight": (8, 3, 3, 3), "branch.weight": (8, 3, 3, 3),
              "product.weight": (5, 8)}  # fmt: skip
    weights = {k: rng.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    return engine.load(make_pair(*NETWORK, weights=weights))


@pytest.fixture(params=Strategy)
def fused(request, monkeypatch, tuning_cache):
    """Make fusing win every trial, and no operator slow.

    The first possible strategy is chosen; NCHW is always possible.
    """
    monkeypatch.setattr(
        fusing_kernels, "_STRATEGIES", tuple(dict.fromkeys([request.param, Strategy.NCHW]))
    )
    monkeypatch.setattr(fusion_autotuner, "SECONDS_OF_WAKING", np.inf)
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 60.0)
    return tuning_cache


def image(seed, size=16):
    return np.random.default_rng(seed).normal(size=(1, 3, size, size)).astype(np.float32)


def passes(network, *inputs, backend="auto"):
    session = engine.Session(network, backend=backend)
    for x in inputs:
        session.feed([x])
        session.run()
        if x is inputs[0]:  # the next are computed by what is fastest
            session.tune()
    return session


def values(session):
    return {name: session.value(name) for name in map(str, range(10))}


def assert_right(session, x):
    """Compare every operand with the reference's."""
    expected = values(passes(session.graph, x, backend="numpy"))
    for name, value in values(session).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-5, strict=True)


def computed(session):
    return [r.operator.name for r in session.records if is_fused(r.kernel)]


def test_fusing_begins_with_the_inputs_after_tuning(network, fused):
    session = passes(network, image(1))
    assert computed(session) == []
    for seed in (2, 3):
        session.feed([image(seed)])
        session.run()
        assert computed(session) == FUSED
        assert_right(session, image(seed))
    names = {r.kernel for r in session.records if is_fused(r.kernel)}
    (name,) = map(SubgraphName.read, names)
    assert (name.first, name.last) == (1, 9)


def test_the_same_inputs_are_computed_by_the_same_kernels(network, fused):
    session = passes(network, image(1))
    for _ in range(3):
        session.restart()
        session.run()
    assert computed(session) == []


def test_step_by_step(network, fused):
    session = passes(network, image(1), image(2))
    session.feed([image(3)])
    while session.position < len(network.operators):
        record = session.step()
        assert record.seconds >= 0
    assert computed(session) == FUSED
    assert_right(session, image(3))


def test_back_and_forth(network, fused):
    session = passes(network, image(1), image(2))
    for _ in range(5):
        session.step_back()
    session.run()
    assert_right(session, image(2))
    for _ in range(len(network.operators) - 2):
        session.step_back()
    session.run()
    assert computed(session) == FUSED
    assert_right(session, image(2))


@pytest.mark.parametrize("operand", ["1", "2", "3", "5", "7"])
def test_an_override_inside_a_subgraph(network, fused, operand):
    """Operators downstream read the override; the others read the inputs."""
    session = passes(network, image(1), image(2))
    given = np.full(session.value(operand).shape, 0.25, np.float32)
    session.override(operand, given)
    session.run()
    reference = engine.Session(network, backend="numpy")
    reference.feed([image(2)])
    reference.override(operand, given)
    reference.run()
    for name, value in values(session).items():
        np.testing.assert_allclose(value, reference.value(name), rtol=1e-4, atol=1e-5)


def test_an_override_before_the_first_step(network, fused):
    session = passes(network, image(1), image(2))
    session.feed([image(3)])
    given = np.full(session.graph.operand("1").shape or (1, 8, 16, 16), 0.5, np.float32)
    session.override("1", given)
    session.run()
    np.testing.assert_array_equal(session.value("2"), given)
    expected = passes(network, image(3), backend="numpy").value("3")
    np.testing.assert_allclose(session.value("3"), expected, rtol=1e-4, atol=1e-5)


def test_nan_appears_where_the_reference_has_it(network, fused):
    """The library ignores NaN where PyTorch does not."""
    session = passes(network, image(1), image(2))
    x = image(3)
    x[0, 0, 5, 5] = np.nan
    session.feed([x])
    session.run()
    assert_right(session, x)
    assert "pool" not in computed(session)
    session.feed([image(4)])
    session.run()
    assert_right(session, image(4))
    assert computed(session) == FUSED


def test_other_sizes_in_turn(network, fused):
    session = passes(network, image(1), image(2))
    for size in (24, 16, 24, 12, 16, 24):
        session.feed([image(size, size)])
        session.run()
        assert_right(session, image(size, size))
        session.tune()
    assert computed(session) == FUSED


def test_held_results_never_change(network, fused):
    session = passes(network, image(1), image(2))
    held = values(session)
    copies = {name: value.copy() for name, value in held.items()}
    session.feed([image(3)])
    session.run()
    for name, value in held.items():
        np.testing.assert_array_equal(value, copies[name])
        assert not value.flags.writeable


def test_unused_memory_is_reused(network, fused):
    session = passes(network, image(1), image(2))
    addresses = []
    for seed in range(3, 12):
        session.feed([image(seed)])
        session.run()
        addresses.append(session.value("7").__array_interface__["data"][0])
    # The very same each time, or one of a few in a library's pool.
    assert len(set(addresses)) < len(addresses)


def test_two_sessions_in_turn(network, fused):
    one, other = (passes(network, image(seed), image(seed)) for seed in (1, 2))
    one.feed([image(3)])
    other.feed([image(4)])
    for _ in network.operators:
        one.step()
        other.step()
    assert_right(one, image(3))
    assert_right(other, image(4))


def test_the_same_numbers_from_a_dump(network, fused, tmp_path):
    first = passes(network, image(1), image(2))
    engine.write_dump(first, tmp_path / "d")
    second = passes(network, image(2), backend=engine.kernels_of(tmp_path / "d"))
    assert computed(second) == FUSED
    for name, value in values(first).items():
        np.testing.assert_array_equal(second.value(name), value, strict=True)


def test_a_recorded_run_with_one_single_kernel(network, fused, tmp_path):
    x = image(2)
    x[0, 0, 5, 5] = np.nan
    first = passes(network, image(1), image(1), x)
    engine.write_dump(first, tmp_path / "d")
    second = passes(network, x, backend=engine.kernels_of(tmp_path / "d"))
    assert [r.kernel for r in second.records] == [r.kernel for r in first.records]
    for name, value in values(first).items():
        np.testing.assert_array_equal(second.value(name), value, strict=True)


@pytest.mark.parametrize(
    ("shares", "cold", "found", "strategy"),
    [
        pytest.param((0.5, 0.7, 0.6), True, FUSED, Strategy.ELEMPACK, id="ncnn"),
        pytest.param((0.7, 0.5, 0.6), False, FUSED, Strategy.NCHWC, id="onnxruntime"),
        pytest.param((0.67, 0.7, 0.6), False, FUSED, Strategy.ELEMPACK, id="ncnn by a little"),
        pytest.param((0.67, 0.7, 0.6), True, FUSED, Strategy.NCHWC, id="of large weights"),
        pytest.param((0.99, 1.2, 1.3), True, FUSED, Strategy.ELEMPACK, id="hardly"),
        pytest.param((1.1, 1.2, 1.3), False, [], None, id="one by one"),
    ],
)
def test_fused_choices_are_remembered(
    network, tuning_cache, monkeypatch, shares, cold, found, strategy
):
    share_of = dict(
        zip((Strategy.ELEMPACK, Strategy.NCHWC, Strategy.NCHW), shares, strict=True)
    )
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 60.0)
    monkeypatch.setattr(fusion_autotuner, "is_cold", lambda _: cold)

    def share(self, subgraph, parts):
        yield
        return share_of[subgraph.strategy], 1e-3

    monkeypatch.setattr(fusion_autotuner.FusionTrial, "_share", share)
    first = passes(network, image(1), image(2))
    assert computed(first) == found
    names = {SubgraphName.read(r.kernel) for r in first.records if is_fused(r.kernel)}
    assert {name.strategy for name in names} == ({strategy} if strategy else set())
    tuning_cache.save()
    again = TuningCache(tuning_cache.path)
    monkeypatch.setattr("engine.backends._tuning_cache", lambda: again)
    monkeypatch.setattr(fusion_autotuner.FusionTrial, "fastest", None)  # nothing is measured
    session = passes(network, image(1))  # from the first inputs on
    assert computed(session) == found
    assert_right(session, image(1))
    session.feed([image(2)])
    session.run()
    assert computed(session) == found
    assert_right(session, image(2))


def remembered(tuning_cache):
    """Return the key and the value of the only cached decision to fuse."""
    ((key, value),) = [
        (k, v.name) for k, v in tuning_cache._table().items() if v.name.count("/") == 2
    ]
    return key, value


@pytest.mark.parametrize(
    "value",
    ["", "one by one", "NCHWC/3", "ELEMPACK/0/", "OTHER/3/1,2,3", "NCHW/3/x", "NCHW/9999/1",
     "NCHW/3/" + "9" * 5000],
)  # fmt: skip
def test_damaged_choices_are_ignored(network, fused, value):
    passes(network, image(1), image(2))
    key, found = remembered(fused)
    fused.put(key, value)
    session = passes(network, image(1), image(2))
    assert_right(session, image(2))
    assert computed(session) == FUSED
    assert remembered(fused)[0] == key
    assert remembered(fused)[1].split("/")[:2] == found.split("/")[:2]


def test_a_choice_in_doubt_is_tuned_again(network, fused, monkeypatch):
    """Each pass reports its time, and tuning tries a choice in doubt again."""
    heard: list[float] = []
    monkeypatch.setattr(Expectation, "meet", lambda _, seconds: heard.append(seconds))
    passes(network, image(1), image(2))
    key, _ = remembered(fused)
    heard.clear()
    session = passes(network, image(1), image(2))
    assert computed(session) == FUSED
    assert len(heard) == 2
    fused.doubt(key, 1e-3)
    assert computed(passes(network, image(1))) == []
    assert computed(passes(network, image(1), image(2))) == FUSED
    assert computed(passes(network, image(1))) == FUSED


def test_remembered_shares_divide_the_time(network, fused):
    """ONNX Runtime does not report the time of each operator; ncnn does."""
    passes(network, image(1), image(2))
    key, value = remembered(fused)
    strategy, count, shares = value.split("/")
    assert len(shares.split(",")) == int(count)
    fused.put(key, f"{strategy}/{count}/{','.join(['0', '10000'] + ['0'] * (int(count) - 2))}")
    session = passes(network, image(1))
    spent = {r.operator.name: r.seconds for r in session.records if is_fused(r.kernel)}
    assert list(spent) == FUSED
    assert spent["relu1"] > 0
    if strategy != "ELEMPACK":
        assert all(seconds == 0 for name, seconds in spent.items() if name != "relu1")
    else:
        assert all(seconds > 0 for seconds in spent.values())


def test_a_subgraph_ends_after_slow_operators(network, fused, monkeypatch):
    """It has at least three operators, and the next one begins after it."""
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 0.0)
    monkeypatch.setattr(fusing_kernels, "_FEWEST", 1)
    session = passes(network, image(1), image(2))
    kernels = [r.kernel for r in session.records if is_fused(r.kernel)]
    assert len(set(kernels)) == len(kernels) == len(FUSED)
    assert_right(session, image(2))


@pytest.mark.parametrize("failing", ["__init__", "run", "checked"])
def test_a_library_that_fails(network, fused, monkeypatch, failing):
    monkeypatch.setattr(fusing_kernels, "_FEWEST", 1)
    session = engine.Session(network)
    session.feed([image(1)])
    session.run()

    def failing_of(original):
        def fail(self, *arguments):
            caller = sys._getframe(1).f_code.co_filename  # single operators go on
            if caller.endswith("fusion.py"):
                raise RuntimeError("out of something")
            return original(self, *arguments)

        return fail

    for compiled in (OnnxCompiledKernel, NcnnCompiledSubgraph):
        monkeypatch.setattr(compiled, failing, failing_of(getattr(compiled, failing)))
    session.tune()
    for seed in (2, 3):
        session.feed([image(seed)])
        session.run()
        assert computed(session) == []
        assert_right(session, image(seed))


def test_a_library_that_fails_later(network, fused, monkeypatch):
    session = passes(network, image(1), image(2))

    def fail(self, inputs):
        raise RuntimeError("out of something")

    for compiled in (OnnxCompiledKernel, NcnnCompiledSubgraph):
        monkeypatch.setattr(compiled, "run", fail)
    session.feed([image(3)])
    session.run()
    assert computed(session) == []
    assert_right(session, image(3))


def test_a_pinned_backend_computes_one_by_one(network, fused):
    for backend in ("numpy", "onnxruntime"):
        session = passes(network, image(1), image(2), image(3), backend=backend)
        assert computed(session) == []


def test_a_memory_limit_keeps_them_one_by_one(network, fused):
    session = passes(network, image(1), image(2))
    assert computed(session) == FUSED
    session.memory_limit = 1
    assert_right(session, image(2))
    session.feed([image(3)])
    session.run()
    assert computed(session) == []
    assert_right(session, image(3))
    session.memory_limit = None
    session.feed([image(4)])
    session.run()
    assert_right(session, image(4))


def test_an_operator_of_several_outputs(make_pair, fused):
    """It is not fused, at any position."""
    pool = "kernel_size=(2,2) stride=(2,2) padding=(0,0) dilation=(1,1) ceil_mode=False"
    lines = (
        "pnnx.Input in 0 1 0",
        f"nn.MaxPool2d first 1 2 0 1 2 {pool} return_indices=True",
        "nn.ReLU relu 1 1 1 3",
        "nn.Sigmoid sigmoid 1 1 3 4",
        "nn.Softsign sign 1 1 4 5",
        f"nn.MaxPool2d last 1 2 5 6 7 {pool} return_indices=True",
        "pnnx.Output out 1 0 6",
        "pnnx.Output where 1 0 7",
    )
    session = engine.Session(engine.load(make_pair(*lines)))
    for seed in (1, 2, 3):
        session.feed([image(seed)])
        session.run()
        session.tune()
    assert computed(session) == ["relu", "sigmoid", "sign"]
    pooled = image(3).reshape(1, 3, 8, 2, 8, 2).max((3, 5))
    sigmoid = 1 / (1 + np.exp(-np.maximum(pooled, 0)))
    np.testing.assert_allclose(session.value("5"), sigmoid / (1 + sigmoid), rtol=1e-5)


def test_constants_in_between(make_pair, fused):
    """An operator without inputs, whose operand operators downstream read."""
    lines = (
        "pnnx.Input in 0 1 0",
        "nn.ReLU relu 1 1 0 1",
        "pnnx.Attribute table 0 1 2 @data=(1,4,8)f32",
        "pnnx.Expression sum 2 1 1 2 3 expr=add(@0,@1)",
        "nn.Sigmoid sigmoid 1 1 3 4",
        "pnnx.Output out 1 0 4",
    )
    table = np.arange(32, dtype=np.float32).reshape(1, 4, 8) / 16
    graph = engine.load(make_pair(*lines, weights={"table.data": table}))
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 4, 8)
    session = engine.Session(graph)
    for sign in (1, -1, 1):
        session.feed([sign * x])
        session.run()
        session.tune()
    assert computed(session) == ["relu", "sum", "sigmoid"]
    expected = 1 / (1 + np.exp(-(np.maximum(x, 0) + table)))
    np.testing.assert_allclose(session.outputs()[0], expected, rtol=1e-5)


@pytest.mark.parametrize(
    "name",
    ["numpy", "onnxruntime/all-2", "onnxruntime/nchw-2", "onnxruntime/nchw-2@1", ""],
)
def test_other_names(name):
    assert not is_fused(name)


@pytest.mark.parametrize(
    ("strategy", "name", "words"),
    [
        (
            Strategy.NCHW,
            "onnxruntime/nchw-2@14-37",
            "ONNX Runtime, operators 14 to 37 fused, 2 threads",
        ),
        (
            Strategy.NCHWC,
            "onnxruntime/nchwc-2@14-37",
            "ONNX Runtime, operators 14 to 37 fused, images in NCHWc, 2 threads",
        ),
        (
            Strategy.ELEMPACK,
            "ncnn/elempack-2@14-37",
            "ncnn, operators 14 to 37 fused, 2 threads",
        ),
    ],
)
def test_kernel_names_are_described(strategy, name, words):
    assert str(SubgraphName(strategy, 2, 14, 37)) == name
    assert engine.backends.describe_kernel(name) == words


@pytest.mark.parametrize(
    ("name", "strategy"),
    [
        ("onnxruntime/segment-2@14-37", Strategy.NCHW),
        ("onnxruntime/blocked-2@14-37", Strategy.NCHWC),
        ("ncnn/segment-2@14-37", Strategy.ELEMPACK),
    ],
)
def test_names_in_dumps_of_former_versions(name, strategy):
    assert SubgraphName.read(name) == SubgraphName(strategy, 2, 14, 37)
    assert engine.backends.describe_kernel(name).partition(",")[2].startswith(" operators 14")


def test_kernels_of_a_former_version_are_reproduced(network, fused):
    former = {
        "onnxruntime/nchw": "onnxruntime/segment",
        "onnxruntime/nchwc": "onnxruntime/blocked",
        "ncnn/elempack": "ncnn/segment",
    }
    first = passes(network, image(1), image(2))
    kernels = {r.operator.name: r.kernel for r in first.records}
    assert any(map(is_fused, kernels.values()))
    recorded = dict(kernels)
    for operator, kernel in kernels.items():
        strategy, dash, rest = kernel.partition("-")
        recorded[operator] = former.get(strategy, strategy) + dash + rest
    assert recorded != kernels
    again = passes(network, image(2), backend=recorded)
    assert {r.operator.name: r.kernel for r in again.records} == kernels
    for name, value in values(first).items():
        np.testing.assert_array_equal(again.value(name), value)


# Elements that move, as in windowed attention

WINDOWS = (
    "pnnx.Input in 0 1 0",
    "nn.LayerNorm norm 1 1 0 1 elementwise_affine=False eps=1e-05 normalized_shape=(6)",
    "torch.roll roll 1 1 1 2 dims=(1,2) shifts=(-3,2)",
    "Tensor.reshape cut 1 1 2 3 shape=(1,2,4,2,4,6)",
    "Tensor.permute order 1 1 3 4 dims=(0,1,3,2,4,5)",
    "Tensor.reshape windows 1 1 4 5 shape=(4,16,6)",
    "nn.Linear product 1 1 5 6 bias=False in_features=6 out_features=6 @weight=(6,6)f32",
    "Tensor.reshape apart 1 1 6 7 shape=(1,2,2,4,4,6)",
    "torch.transpose back 1 1 7 8 dim0=2 dim1=3",
    "Tensor.reshape image 1 1 8 9 shape=(1,8,8,6)",
    "Tensor.slice even 1 1 9 10 dims=(1,2) starts=(0,-8) ends=(99,8) steps=(2,1)",
    "Tensor.slice odd 1 1 9 11 dim=1 start=1 end=-1 step=2",
    "Tensor.slice first 1 1 10 12 dim=1 start=0 end=3 step=1",
    "torch.cat both 2 1 12 11 13 dim=-1",
    "nn.GELU gelu 1 1 13 14 approximate=none",
    "pnnx.Output out 1 0 14",
)
GIVEN_OUT = ["norm", "roll", "windows", "product", "image", "both", "gelu"]


@pytest.fixture
def windows(make_pair):
    weight = np.random.default_rng(5).normal(size=(6, 6)).astype(np.float32)
    return engine.load(make_pair(*WINDOWS, weights={"product.weight": weight}))


def tokens(seed):
    return np.random.default_rng(seed).normal(size=(1, 8, 8, 6)).astype(np.float32)


def assert_windows(session, x, **supplied):
    reference = engine.Session(session.graph, backend="numpy")
    reference.feed([x])
    for name, value in supplied.items():
        reference.override(name.removeprefix("n"), value)
    reference.run()
    for name in map(str, range(15)):
        expected = reference.value(name)
        np.testing.assert_allclose(
            session.value(name), expected, rtol=1e-4, atol=1e-5, strict=True
        )


def test_moved_elements_equal_the_reference(windows, fused):
    session = passes(windows, tokens(1), tokens(2), tokens(3))
    assert computed(session) == GIVEN_OUT
    assert_windows(session, tokens(3))
    # NumPy's views stay views: of the memory that ONNX Runtime wrote.
    assert np.shares_memory(session.value("2"), session.value("4"))
    assert np.shares_memory(session.value("9"), session.value("12"))


@pytest.mark.parametrize("operand", ["2", "3", "4", "5", "8", "10", "11"])
def test_overriding_moved_elements(windows, fused, operand):
    session = passes(windows, tokens(1), tokens(2))
    given = np.random.default_rng(9).normal(size=session.value(operand).shape)
    given = given.astype(np.float32)
    session.override(operand, given)
    session.run()
    assert_windows(session, tokens(2), **{f"n{operand}": given})


def test_a_part_of_another_tensor_is_not_mistaken_for_a_result(windows, fused):
    """It has the same shape and memory, but another offset."""
    session = passes(windows, tokens(1), tokens(2))
    session.override("10", session.value("9")[:, 1::2])
    session.run()
    assert_windows(session, tokens(2), n10=session.value("9")[:, 1::2])


def test_rolled(make_pair, fused):
    """Long runs of elements are moved together; short runs and the last axis are split."""
    lines = (
        "pnnx.Input in 0 1 0",
        "nn.ReLU relu 1 1 0 1",
        "torch.roll far 1 1 1 2 dims=(1,2) shifts=(-1,8)",
        "nn.Softsign sign 1 1 2 3",
        "torch.roll back 1 1 3 4 dims=(2,1) shifts=(-2,5)",
        "nn.Sigmoid sigmoid 1 1 4 5",
        "torch.roll last 1 1 5 6 dims=(3,0) shifts=(7,1)",
        "nn.GELU gelu 1 1 6 7 approximate=none",
        "pnnx.Output out 1 0 7",
    )
    session = engine.Session(engine.load(make_pair(*lines)))
    for seed in (1, 2):
        x = np.random.default_rng(seed).normal(size=(2, 4, 6, 24)).astype(np.float32)
        session.feed([x])
        session.run()
        session.tune()
    assert computed(session) == [line.split()[1] for line in lines[1:-1]]
    for place, shifts in ((2, (0, -1, 8, 0)), (4, (0, 5, -2, 0)), (6, (1, 0, 0, 7))):
        rolled, source = session.value(str(place)), session.value(str(place - 1))
        for index in np.ndindex(source.shape):
            to = tuple((i + s) % n for i, s, n in zip(index, shifts, source.shape, strict=True))
            assert rolled[to] == source[index]


# Channels last and back, as in ConvNeXt: NumPy's own results do not lie as a library's do

CHANNELS_LAST = (
    "pnnx.Input in 0 1 0",
    (
        "nn.Conv2d conv 1 1 0 1 kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1)"
        " groups=3 padding_mode=zeros bias=False in_channels=3 out_channels=6"
        " @weight=(6,1,3,3)f32"
    ),
    "Tensor.permute last 1 1 1 2 dims=(0,2,3,1)",
    "nn.LayerNorm norm 1 1 2 3 elementwise_affine=False eps=1e-05 normalized_shape=(6)",
    "Tensor.permute first 1 1 3 4 dims=(0,3,1,2)",
    "pnnx.Expression sum 2 1 4 1 5 expr=add(mul(@0,0.5),@1)",
    (
        f"nn.Conv2d behind 1 1 5 6 {CONV} bias=False in_channels=6 out_channels=4"
        " @weight=(4,6,3,3)f32"
    ),
    "nn.GELU gelu 1 1 6 9 approximate=none",
    "pnnx.Output out 1 0 9",
)


def test_subgraphs_do_not_depend_on_earlier_kernels(make_pair, fused, tmp_path):
    rng = np.random.default_rng(5)
    shapes = {"conv.weight": (6, 1, 3, 3), "behind.weight": (4, 6, 3, 3)}
    weights = {k: rng.normal(size=s).astype(np.float32) for k, s in shapes.items()}
    graph = engine.load(make_pair(*CHANNELS_LAST, weights=weights))
    first = passes(graph, image(1), image(2))
    engine.write_dump(first, tmp_path / "d")
    remembered = passes(graph, image(2))
    recorded = passes(graph, image(2), backend=engine.kernels_of(tmp_path / "d"))
    expected = passes(graph, image(2), backend="numpy")
    for session in (first, remembered, recorded):
        assert computed(session) == ["conv", "norm", "sum", "behind", "gelu"]
        for name in graph.operands:
            np.testing.assert_allclose(
                session.value(name), expected.value(name), rtol=1e-4, atol=1e-5
            )
