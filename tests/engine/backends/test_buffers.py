"""Output memory is reused, but never while anything refers to it."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import engine
from engine.backends.buffers import Buffer

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
    (
        "nn.Conv2d conv 1 1 0 1 bias=False kernel_size=(3,3) padding=(1,1) stride=(1,1) "
        "@weight=(3,3,3,3)f32"
    ),
    "Tensor.reshape flat 1 1 1 2 shape=(1,-1)",
    "Tensor.permute turned 1 1 2 3 dims=(1,0)",
    "pnnx.Output out 1 0 3",
)


@pytest.fixture
def graph(make_pair):
    weight = np.random.default_rng(1).normal(size=(3, 3, 3, 3)).astype(np.float32)
    return engine.load(make_pair(*CHAIN, weights={"conv.weight": weight}))


@pytest.fixture(params=["onnxruntime", "ncnn"])
def session(graph, request):
    pytest.importorskip(request.param)
    return engine.Session(graph, backend=request.param)


def image(seed, size=8):
    return np.random.default_rng(seed).normal(size=(1, 3, size, size)).astype(np.float32)


def run(session, x):
    session.feed([x])
    session.run()
    assert session.record("conv").backend == session.backend


def address(session, operand="1"):
    return session.value(operand).__array_interface__["data"][0]


def expected(session, x):
    reference = engine.Session(session.graph, backend="numpy")
    reference.feed([x])
    reference.run()
    return reference.value("1")


VIEWS = {
    "the array": lambda s: s.value("1"),
    "a slice": lambda s: s.value("1")[0, 1:, ::2],
    "one number's view": lambda s: s.value("1")[0, 0, 0, :1],
    "a slice of a slice": lambda s: s.value("1")[0][1][2:4],
    "a transposition": lambda s: s.value("1").T,
    "a reshape": lambda s: s.value("1").reshape(-1)[::3],
    "another dtype": lambda s: s.value("1").view(np.int32),
    "a broadcast": lambda s: np.broadcast_to(s.value("1"), (2, 3, 8, 8)),
    "a real part": lambda s: s.value("1").real,
    "an iterator's row": lambda s: next(iter(s.value("1")[0])),
    "a memoryview": lambda s: np.asarray(memoryview(s.value("1"))),
    "strides": lambda s: np.lib.stride_tricks.sliding_window_view(s.value("1"), 3, -1),
    "what an operator behind made": lambda s: s.value("2"),
    "and the one behind that": lambda s: s.value("3")[5:],
    "the record": lambda s: s.record("conv").outputs["1"],
}


@pytest.mark.parametrize("look", VIEWS.values(), ids=VIEWS.keys())
def test_held_results_never_change(session, look):
    run(session, image(1))
    held = look(session)
    before, place = held.copy(), address(session)
    run(session, image(2))
    np.testing.assert_array_equal(held, before)
    assert address(session) != place
    np.testing.assert_allclose(session.value("1"), expected(session, image(2)), atol=1e-4)


def test_a_record_holds_its_outputs(session):
    run(session, image(1))
    record = session.record("conv")
    place = address(session)
    run(session, image(2))
    np.testing.assert_allclose(record.outputs["1"], expected(session, image(1)), atol=1e-4)
    assert address(session) != place


def test_unused_memory_is_reused(session):
    run(session, image(1))
    copies = copy.deepcopy(session.value("1")), pickle.loads(pickle.dumps(session.value("1")))
    place = address(session)
    for seed in (2, 3, 4):
        run(session, image(seed))
        assert address(session) == place
        np.testing.assert_allclose(
            session.value("1"), expected(session, image(seed)), atol=1e-4
        )
    for taken in copies:
        np.testing.assert_allclose(taken, expected(session, image(1)), atol=1e-4)


def test_memory_is_reused_after_release(session):
    run(session, image(1))
    held = session.value("1")
    run(session, image(2))
    place = address(session)
    assert held.__array_interface__["data"][0] != place
    del held
    run(session, image(3))
    assert address(session) == place


def test_sizes_that_change_and_change_back(session):
    run(session, image(1))
    place, held = address(session), None
    for size, seed in ((5, 2), (12, 3), (8, 4), (5, 5), (8, 6)):
        run(session, image(seed, size))
        np.testing.assert_allclose(
            session.value("1"), expected(session, image(seed, size)), atol=1e-4
        )
        assert session.value("1").shape == (1, 3, size, size)
        assert held is None or held.shape == (1, 3, 5, 5)
        held = session.value("1") if size == 5 else held
    assert address(session) == place
    np.testing.assert_allclose(held, expected(session, image(5, 5)), atol=1e-4)


def test_more_sizes_than_the_limit(session):
    for size in (4, 5, 6, 7, 8, 9, 4, 6):
        run(session, image(size, size))
        np.testing.assert_allclose(
            session.value("1"), expected(session, image(size, size)), atol=1e-4
        )


def test_stepping_back_and_again(session):
    run(session, image(1))
    first = session.value("1").copy()
    for _ in range(4):
        session.step_back()
    session.run()
    np.testing.assert_array_equal(session.value("1"), first)


@pytest.mark.parametrize("backend", ["onnxruntime", "ncnn", "auto"])
def test_two_sessions_in_two_threads(graph, backend):
    """Each has its own memory and threads, and both have the right results."""
    if backend != "auto":
        pytest.importorskip(backend)
    wanted = {seed: expected(engine.Session(graph, backend="numpy"), image(seed, 40))
              for seed in range(12)}  # fmt: skip
    together = threading.Barrier(2)

    def work(first):
        session = engine.Session(graph, backend=backend)
        held = []
        together.wait(30)
        for seed in range(first, first + 6):
            session.feed([image(seed, 40)])
            session.run()
            held.append((seed, session.value("1")))
        return held

    with ThreadPoolExecutor(2) as threads:
        for held in threads.map(work, (0, 6), timeout=60):
            for seed, value in held:
                np.testing.assert_allclose(value, wanted[seed], atol=1e-3)


def test_a_buffer_may_have_another_shape():
    buffer = Buffer((6,), np.dtype(np.float32), (2, 3))
    shown = buffer.shown
    assert (shown.shape, shown.flags.writeable) == ((2, 3), False)
    assert buffer.renew()
    assert not np.shares_memory(shown, buffer.memory)
    assert not buffer.renew()


@pytest.mark.parametrize("backend", ["onnxruntime", "ncnn"])
def test_operands_at_any_address(make_pair, backend):
    """Weights at odd offsets of the file, and views that are not contiguous."""
    pytest.importorskip(backend)
    rng = np.random.default_rng(5)
    lines = (
        "pnnx.Input in 0 1 0 #0=(1,8,8,3)f32",
        "pnnx.Attribute odd 0 1 w @data=(1,3,8,8)f32 #w=(1,3,8,8)f32",
        "Tensor.permute turned 1 1 0 1 dims=(0,3,1,2)",
        "pnnx.Expression sum 2 1 1 w 2 expr=add(@0,@1)",
        "Tensor.permute flipped 1 1 2 3 dims=(0,1,3,2)",
        (
            "nn.Conv2d conv 1 1 3 4 bias=False kernel_size=(3,3) padding=(1,1) stride=(1,1) "
            "@weight=(4,3,3,3)f32"
        ),
        "torch.max_pool2d pool 1 1 4 5 kernel_size=(2,2) stride=(2,2)",
        "pnnx.Output out 1 0 5",
    )
    weights = {
        "odd.data": rng.normal(size=(1, 3, 8, 8)).astype(np.float32),
        "conv.weight": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
    }
    graph = engine.load(make_pair(*lines, weights=weights))
    x = rng.normal(size=(1, 8, 8, 3)).astype(np.float32)
    session, reference = engine.Session(graph, backend), engine.Session(graph, "numpy")
    for each in (session, reference):
        each.feed([x])
        each.run()
    weights_at = [graph.operator(name).attributes for name in ("odd", "conv")]
    assert not all(
        weights[key].array.flags.aligned for weights in weights_at for key in weights
    )
    assert not session.value("3").flags.c_contiguous
    served = {r.operator.name for r in session.records if r.backend == backend}
    assert "conv" in served
    assert served >= ({"sum", "pool"} if backend == "onnxruntime" else set())
    for name in "2345":
        np.testing.assert_allclose(session.value(name), reference.value(name), atol=1e-5)
