"""Images in NCHWc give the reference's numbers in every combination of operators."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import tracemalloc
import weakref

import numpy as np
import pytest

import engine
from engine.backends import fusing_kernels, fusion_autotuner, ncnn_subgraph, onnx_runtime
from engine.backends.fusion import Strategy, SubgraphName, is_fused
from engine.backends.nchwc import nchwc_to_nchw
from engine.backends.ncnn_net import unpack
from engine.values import ArrayMetadata, LazyArray, materialise

pytest.importorskip("onnxruntime")

from engine.backends import onnx_nchwc
from engine.backends.onnx_nchwc import nchwc_block_size


def conv(name, source, result, inputs, outputs, size=3, groups=1, stride=1, bias=True):
    half = size // 2
    return (
        f"nn.Conv2d {name} 1 1 {source} {result} kernel_size=({size},{size}) "
        f"stride=({stride},{stride}) padding=({half},{half}) dilation=(1,1) groups={groups} "
        f"padding_mode=zeros bias={bias} in_channels={inputs} out_channels={outputs} "
        + (f"@bias=({outputs})f32 " if bias else "")
        + f"@weight=({outputs},{inputs // groups},{size},{size})f32"
    )


POOL = "kernel_size=(3,3) stride=(2,2) padding=(1,1) ceil_mode=False"
# Each with the operators that are to be fused; operand x goes in, y comes out.
NETWORKS = {
    "full blocks": (
        conv("a", "x", "1", 3, 32),
        "nn.ReLU b 1 1 1 2",
        conv("c", "2", "3", 32, 16, size=1),
        "nn.ReLU d 1 1 3 y",
    ),
    "padded channels": (
        conv("a", "x", "1", 3, 24, bias=False),
        "nn.SiLU b 1 1 1 2",
        conv("c", "2", "3", 24, 20),
        "nn.ReLU6 d 1 1 3 4",
        conv("e", "4", "y", 20, 10, size=1),
    ),
    "channels by themselves": (
        conv("a", "x", "1", 3, 24),
        conv("b", "1", "2", 24, 24, groups=24, stride=2),
        "nn.Hardswish c 1 1 2 3",
        conv("d", "3", "y", 24, 40, size=1),
    ),
    "groups": (
        conv("a", "x", "1", 3, 32),
        conv("b", "1", "2", 32, 64, groups=2),
        "nn.LeakyReLU c 1 1 2 y negative_slope=0.1",
    ),
    "groups that are no blocks": (
        conv("a", "x", "1", 3, 24),
        conv("b", "1", "2", 24, 12, groups=3),
        "nn.ReLU c 1 1 2 y",
    ),
    "channels that are no four": (
        conv("a", "x", "1", 3, 18),
        "nn.ReLU b 1 1 1 2",
        conv("c", "2", "y", 18, 7),
    ),
    "many weights": (
        conv("a", "x", "1", 3, 64),
        "nn.ReLU b 1 1 1 2",
        conv("c", "2", "3", 64, 256),
        "nn.ReLU d 1 1 3 y",
    ),
    "a sum": (
        conv("a", "x", "1", 3, 24),
        "nn.ReLU b 1 1 1 2",
        conv("c", "2", "3", 24, 24),
        "pnnx.Expression d 2 1 3 2 4 expr=add(@0,@1)",
        "pnnx.Expression e 1 1 4 y expr=mul(sub(@0,0.5),3.0)",
    ),
    "a factor for each channel": (
        conv("a", "x", "1", 3, 24),
        "nn.AdaptiveAvgPool2d b 1 1 1 2 output_size=(1,1)",
        conv("c", "2", "3", 24, 8, size=1),
        "nn.SiLU d 1 1 3 4",
        conv("e", "4", "5", 8, 24, size=1),
        "nn.Sigmoid f 1 1 5 6",
        "pnnx.Expression g 2 1 6 1 7 expr=mul(@0,@1)",
        "pnnx.Expression h 2 1 7 6 y expr=mul(@0,@1)",
    ),
    "a factor for each pixel": (
        conv("a", "x", "1", 3, 16),
        conv("b", "1", "2", 16, 1),
        "nn.Sigmoid c 1 1 2 3",
        "pnnx.Expression d 2 1 1 3 y expr=mul(@0,@1)",
    ),
    "pooling": (
        conv("a", "x", "1", 3, 20),
        f"nn.MaxPool2d b 1 1 1 2 {POOL} dilation=(1,1) return_indices=False",
        f"nn.AvgPool2d c 1 1 2 3 {POOL} count_include_pad=True divisor_override=None",
        "nn.AdaptiveAvgPool2d d 1 1 3 4 output_size=(1,1)",
        conv("e", "4", "y", 20, 32, size=1),
    ),
    "side by side": (
        conv("a", "x", "1", 3, 16),
        conv("b", "x", "2", 3, 32),
        "torch.cat c 2 1 1 2 3 dim=1",
        conv("d", "3", "4", 48, 8),
        "torch.cat e 2 1 4 3 5 dim=1",
        "nn.ReLU f 1 1 5 y",
    ),
    "something else in between": (
        conv("a", "x", "1", 3, 32),
        "nn.Softmax b 1 1 1 2 dim=1",
        conv("c", "2", "3", 32, 32),
        "pnnx.Expression d 1 1 3 4 expr=exp(@0)",
        "pnnx.Expression e 2 1 4 2 5 expr=sub(@0,@1)",
        conv("f", "5", "y", 32, 16),
    ),
    "numbers on either side": (
        conv("a", "x", "1", 3, 32),
        "pnnx.Expression b 1 1 1 2 expr=sub(1.5,@0)",
        "pnnx.Expression c 1 1 2 3 expr=div(@0,4)",
        "pnnx.Expression d 1 1 3 4 expr=neg(abs(@0))",
        "pnnx.Expression e 2 1 4 3 5 expr=sub(@0,@1)",
        "pnnx.Expression f 2 1 5 1 y expr=max(@0,@1)",
    ),
    "numbers that become infinite": (
        conv("a", "x", "1", 3, 32, bias=False),
        "pnnx.Expression b 1 1 1 2 expr=mul(@0,1e20)",
        "pnnx.Expression c 1 1 2 3 expr=mul(@0,1e20)",
        "pnnx.Expression d 2 1 3 3 4 expr=sub(@0,@1)",
        "nn.ReLU6 e 1 1 4 5",
        conv("f", "5", "y", 32, 16),
    ),
    "numbers that become infinite within an operator": (
        conv("a", "x", "1", 3, 32, bias=False),
        (
            "pnnx.Expression b 1 1 1 2 expr=max(@0,sub(mul(mul(@0,1e20),1e20),"
            "mul(mul(@0,1e20),1e20)))"
        ),
        "pnnx.Expression c 1 1 1 3 expr=mul(mul(@0,1e20),1e20)",
        "pnnx.Expression d 2 1 2 3 y expr=add(@0,@1)",
    ),
    "one after the other": (
        conv("a", "x", "1", 3, 32),
        "nn.Hardswish b 1 1 1 2",
        "pnnx.Expression c 1 1 2 3 expr=div(@0,3)",
        "nn.Hardsigmoid d 1 1 3 4",
        "nn.GELU e 1 1 4 5 approximate=none",
        "nn.SiLU f 1 1 5 6",
        "nn.Hardtanh g 1 1 6 7 max_val=0.25 min_val=-1.0",
        "nn.Sigmoid h 1 1 7 8",
        "nn.LeakyReLU i 1 1 8 y negative_slope=0.2",
    ),
    "a gate that is read": (
        conv("a", "x", "1", 3, 32),
        "nn.Sigmoid b 1 1 1 2",
        "pnnx.Expression c 2 1 2 1 3 expr=mul(@0,@1)",
        "nn.SiLU d 1 1 3 y",
    ),
    "stored statistics": (
        conv("a", "x", "1", 3, 32),
        (
            "nn.BatchNorm2d b 1 1 1 2 affine=True eps=1e-03 num_features=32 @bias=(32)f32"
            " @running_mean=(32)f32 @running_var=(32)f32 @weight=(32)f32"
        ),
        "nn.ReLU c 1 1 2 y",
    ),
    "a larger image": (
        conv("a", "x", "1", 3, 32),
        (
            "nn.ConvTranspose2d b 1 1 1 2 bias=True dilation=(1,1) groups=1 in_channels=32"
            " kernel_size=(3,2) out_channels=16 output_padding=(0,0) padding=(1,0)"
            " stride=(2,2) @bias=(16)f32 @weight=(32,16,3,2)f32"
        ),
        "nn.ReLU c 1 1 2 3",
        (
            "nn.AvgPool2d d 1 1 3 y kernel_size=(3,2) stride=(2,3) padding=(1,1)"
            " ceil_mode=False count_include_pad=False divisor_override=None"
        ),
    ),
    "a product at the end": (
        conv("a", "x", "1", 3, 32, stride=3),
        "nn.ReLU b 1 1 1 2",
        "torch.flatten c 1 1 2 3 start_dim=1 end_dim=-1",
        (
            "nn.Linear d 1 1 3 4 bias=True in_features=640 out_features=24 @bias=(24)f32"
            " @weight=(24,640)f32"
        ),
        "nn.SiLU e 1 1 4 5",
        "nn.Softmax f 1 1 5 y dim=1",
    ),
    "a view at the end": (
        conv("a", "x", "1", 3, 32),
        "nn.ReLU b 1 1 1 2",
        "nn.AdaptiveAvgPool2d c 1 1 2 3 output_size=(1,1)",
        "torch.flatten d 1 1 3 4 start_dim=1 end_dim=-1",
        "nn.Linear e 1 1 4 y bias=False in_features=32 out_features=6 @weight=(6,32)f32",
    ),
}


@pytest.fixture(params=[Strategy.NCHWC, Strategy.ELEMPACK])
def blocked(request, monkeypatch, tuning_cache):
    """Make NCHWc win every trial; return the strategy."""
    if request.param is Strategy.NCHWC and not nchwc_block_size():
        pytest.skip("ONNX Runtime has no such order here")
    if request.param is Strategy.ELEMPACK:
        pytest.importorskip("ncnn")
    monkeypatch.setattr(fusing_kernels, "_STRATEGIES", (request.param,))
    monkeypatch.setattr(fusion_autotuner, "SECONDS_OF_WAKING", np.inf)
    monkeypatch.setattr(fusing_kernels, "_SECONDS", 60.0)
    monkeypatch.setattr(fusing_kernels, "_FEWEST", 2)
    return request.param


@pytest.fixture
def load(make_pair):
    def made(name):
        rng = np.random.default_rng(len(name))
        weights = {}
        for line in NETWORKS[name]:
            operator = line.split()[1]
            for word in line.split():
                if word.startswith("@"):
                    attribute, _, shape = word[1:].removesuffix("f32").partition("=")
                    sizes = tuple(int(size) for size in shape.strip("()").split(","))
                    weight = rng.normal(size=sizes) / np.sqrt(np.prod(sizes[1:]))
                    if attribute == "running_var":
                        weight = np.square(weight) + 0.1
                    weights[f"{operator}.{attribute}"] = weight.astype(np.float32)
        lines = ("pnnx.Input in 0 1 x", *NETWORKS[name], "pnnx.Output out 1 0 y")
        return engine.load(make_pair(*lines, weights=weights))

    return made


def image(seed, samples=1):
    shape = (samples, 3, 14, 11)
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def passes(network, *inputs, backend="auto"):
    session = engine.Session(network, backend=backend)
    for x in inputs:
        session.feed([x])
        session.run()
        if x is inputs[0]:  # the next are computed by what is fastest
            session.tune()
    return session


def assert_right(session, x):
    reference = passes(session.graph, x, backend="numpy")
    for name in session.graph.operands:
        expected = reference.value(name)
        largest = np.abs(expected[np.isfinite(expected)]).max(initial=1)
        np.testing.assert_allclose(
            session.value(name), expected, rtol=1e-4, atol=1e-5 * largest, strict=True
        )


def kinds(session):
    """Return the operators that were fused in a layout of a library."""
    names = [(r.operator.name, SubgraphName.read(r.kernel)) for r in session.records]
    return {
        operator
        for operator, name in names
        if name is not None and name.strategy is not Strategy.NCHW
    }


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("name", [n for n in NETWORKS if "infinite" not in n])
def test_fused_results_equal_the_reference(load, blocked, name, samples):
    network = load(name)
    session = passes(network, image(1, samples), image(2, samples))
    if blocked is Strategy.NCHWC or samples == 1:
        assert {"a", "b"} <= kinds(session)
    assert_right(session, image(2, samples))
    session.feed([image(3, samples)])
    while session.position < len(network.operators):
        session.step()
    assert_right(session, image(3, samples))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["full blocks", "padded channels", "a sum", "pooling"])
def test_special_numbers(load, blocked, name, number):
    """Padding must not make NaN of an infinity in the channels beside it."""
    network = load(name)
    session = passes(network, image(1), image(2))
    x = image(3)
    x[0, 1, 6, 5] = number
    session.feed([x])
    with np.errstate(invalid="ignore"):
        session.run()
        assert_right(session, x)


@pytest.mark.parametrize(
    ("name", "operators", "nan"),
    [
        ("numbers that become infinite", "abcdef", "5"),
        ("numbers that become infinite within an operator", "abcd", "2"),
    ],
)
def test_numbers_that_become_infinite(load, blocked, name, operators, nan):
    """Finite inputs may overflow: operators downstream give NaN, but not those upstream."""
    network = load(name)
    session = passes(network, image(1) * 1e-6, image(2) * 1e-6)
    assert kinds(session) == set(operators)
    with np.errstate(invalid="ignore", over="ignore"):
        session.feed([image(3)])
        session.run()
        assert np.isnan(session.value(nan)).any()
        reference = passes(network, image(3), backend="numpy")
    for name in network.operands:
        # What was cut off above was far larger, and the rounding with it.
        np.testing.assert_allclose(
            session.value(name), reference.value(name), rtol=1e-2, atol=1e36, strict=True
        )
    assert "a" in kinds(session)


def test_a_processor_without_nchwc(load, blocked, monkeypatch):
    monkeypatch.setattr(onnx_nchwc, "nchwc_block_size", lambda: 0)
    monkeypatch.setattr(fusing_kernels, "_STRATEGIES", (Strategy.NCHWC, Strategy.NCHW))
    session = passes(load("a sum"), image(1), image(2))
    assert not kinds(session)
    assert all(is_fused(r.kernel) for r in session.records[1:-1])
    assert_right(session, image(2))


def test_remembered_and_recorded(load, blocked, tmp_path, monkeypatch):
    network = load("a factor for each channel")
    first = passes(network, image(1), image(2))
    again = passes(network, image(1))
    monkeypatch.setattr(fusion_autotuner.FusionTrial, "fastest", None)  # nothing is measured
    again.feed([image(2)])
    again.run()
    engine.write_dump(first, tmp_path / "d")
    recorded = passes(network, image(2), backend=engine.kernels_of(tmp_path / "d"))
    for session in (again, recorded):
        assert kinds(session) == kinds(first) != set()
        for name in network.operands:
            np.testing.assert_array_equal(session.value(name), first.value(name), strict=True)


def test_lazy_arrays_are_materialised_when_read(load, blocked, monkeypatch):
    """Not before, once, and not for metadata."""
    session = passes(load("full blocks"), image(1), image(2))
    arranged = []

    def arrange(blocks, shape):
        arranged.append(shape)
        return nchwc_to_nchw(blocks, shape)

    def arrange_by_ncnn(mat, array):
        arranged.append((1, *array.shape))
        unpack(mat, array)

    for module in (onnx_runtime, ncnn_subgraph):
        monkeypatch.setattr(module, "nchwc_to_nchw", arrange)
    monkeypatch.setattr(ncnn_subgraph, "unpack", arrange_by_ncnn)
    session.feed([image(3)])
    session.run()
    record = session.record("a")
    assert record.metadata == (ArrayMetadata((1, 32, 14, 11), np.dtype(np.float32)),)
    assert list(record.outputs) == ["1"]
    assert session.metadata("1") == record.metadata[0]
    assert arranged == []
    value = session.value("1")
    assert not value.flags.writeable
    assert session.value("1") is value is record.outputs["1"]
    assert arranged == [(1, 32, 14, 11)]
    # The next pass writes the blocks anew; what was read stays.
    copy = value.copy()
    kept = record.outputs
    session.feed([image(4)])
    session.run()
    np.testing.assert_array_equal(value, copy)
    np.testing.assert_array_equal(kept["1"], copy)


@pytest.mark.parametrize("name", ["full blocks", "padded channels"])
def test_blocks_are_looked_at_without_reading(load, blocked, name):
    """Channel c is in group c // b, at place c % b of the innermost axis; None once read."""
    network = load(name)
    session = passes(network, image(1), image(2))
    reference = passes(network, image(2), backend="numpy")
    for operand in kept_in_blocks(session):
        expected = reference.value(operand)
        held = session._store.resident[operand]
        blocks = held.blocks()
        width = blocks.shape[-1]
        for c in range(expected.shape[1]):
            np.testing.assert_allclose(
                blocks[:, c // width, :, :, c % width], expected[:, c], rtol=1e-3, atol=1e-4
            )
        assert held.array is not None
        assert held.blocks() is None


def kept_in_blocks(session):
    """Return the operands that are lazy; there are some."""
    found = [name for name, x in session._store.resident.items() if isinstance(x, LazyArray)]
    assert found
    return found


def test_materialised_blocks_are_freed(load, blocked):
    """The next pass computes into other memory, and what was read stays."""
    session = passes(load("full blocks"), image(1), image(2))
    session.feed([image(3)])
    session.run()
    stored = weakref.ref(memory_of(session._store.resident["1"].stored))
    value = session.value("1")
    gc.collect()
    assert stored() is None
    copy = value.copy()
    session.feed([image(4)])
    session.run()
    np.testing.assert_array_equal(value, copy)
    assert_right(session, image(4))


def memory_of(stored):
    """Return the owner of the blocks: an array, or a matrix of ncnn."""
    while isinstance(getattr(stored, "base", None), np.ndarray):
        stored = stored.base
    return stored


def test_weights_are_freed_without_the_collector(load, blocked):
    """A model is freed as soon as the library has read it, so the peak stays low."""
    network = load("many weights")
    passes(network, image(1), image(2))
    weights = 4 * 256 * 64 * 9
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        session = passes(network, image(1))
        held = tracemalloc.get_traced_memory()[0]
        gc.collect()
        waiting = held - tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert kinds(session) >= {"a", "c"}
    assert waiting < weights / 4


def test_lazy_arrays_of_an_earlier_pass_stay(load, blocked):
    network = load("full blocks")
    session = passes(network, image(1), image(2))
    records = session.records
    session.feed([image(3)])
    session.run()
    expected = passes(network, image(2), backend="numpy")
    for record in records:
        for name, value in record.outputs.items():
            np.testing.assert_allclose(value, expected.value(name), rtol=1e-4, atol=1e-5)


def test_a_memory_limit_counts_lazy_arrays(load, blocked):
    session = passes(load("a sum"), image(1), image(2))
    session.memory_limit = 1
    assert_right(session, image(2))
    session.step_back()
    session.run()
    assert_right(session, image(2))


def test_overriding_downstream_of_lazy_arrays(load, blocked):
    """Operators downstream are computed one by one, from values in NCHWc."""
    network = load("a sum")
    session = passes(network, image(1), image(2))
    given = np.full(session.metadata("3").shape, 0.5, np.float32)
    session.override("3", given)
    session.run()
    expected = passes(network, image(2), backend="numpy").value("2")
    np.testing.assert_allclose(session.value("4"), expected + 0.5, rtol=1e-4, atol=1e-5)


HELD_TO_THE_END = """
import sys
import numpy as np
import engine
from engine.backends import fusing_kernels, fusion_autotuner
from engine.backends.fusion import Strategy
fusing_kernels._STRATEGIES = (Strategy.ELEMPACK,)
fusion_autotuner.SECONDS_OF_WAKING = float("inf")
session = engine.Session(engine.load(sys.argv[1]))
for number in (1, 2):
    session.feed([np.full((1, 3, 14, 11), number, np.float32)])
    session.run()
    session.tune()
value = session.value("1")
assert any(record.kernel.startswith("ncnn/elempack-") for record in session.records)
"""


def test_lazy_arrays_survive_until_exit(load, tmp_path):
    """Python deletes objects in any order at exit, and ncnn's memory must outlive them."""
    pytest.importorskip("ncnn")
    path = load("full blocks").param_path
    ended = subprocess.run(
        [sys.executable, "-c", HELD_TO_THE_END, str(path)],
        env={**os.environ, "KUIPER_STUDIO_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_reading_materialises_once():
    calls = []

    def arrange(stored, shape):
        calls.append(shape)
        return stored.reshape(shape).copy()

    lazy = LazyArray(np.arange(6.0), (2, 3), np.dtype(np.float64), arrange)
    looks = [lazy.read(), lazy.read()]
    assert looks[0] is not looks[1]
    assert lazy.read() is not lazy.array
    assert lazy.read() is lazy.array
    for array in (*looks, lazy.array):
        np.testing.assert_array_equal(array, [[0, 1, 2], [3, 4, 5]])


def test_read_from_several_threads():
    calls = []

    def arrange(stored, shape):
        calls.append(shape)
        return stored.reshape(shape).copy()

    lazy = LazyArray(np.arange(6.0), (2, 3), np.dtype(np.float64), arrange)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(materialise(lazy))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [(2, 3)]
    assert len({id(array) for array in found}) == 1
