"""A session with a memory limit: what stays resident, and what is evicted and recomputed.

The expected numbers are those of a session without a limit, which other tests compare with
numbers typed by hand, or worked out here with NumPy.
"""

from __future__ import annotations

import random
import time
from collections import Counter

import numpy as np
import pytest

import engine
from engine.errors import (
    EngineError,
    ExportCancelledError,
    InferenceError,
    SessionStateError,
    ValueNotComputedError,
)
from engine.runtime import RuntimeOperator
from engine.self_check import self_check
from engine.session import OperatorStatus, Session, SessionState
from engine.store import StepOutputs

# Each operator adds one: operand k holds the input plus k, in 4 kB.
SIZE = 1024
BYTES = 4 * SIZE


def chain_lines(length):
    shape = f"({SIZE})f32"
    return [
        f"pnnx.Input in 0 1 0 #0={shape}",
        *(
            f"pnnx.Expression op{k} 1 1 {k - 1} {k} expr=add(@0,1) #{k}={shape}"
            for k in range(1, length + 1)
        ),
        f"pnnx.Output out 1 0 {length}",
    ]


# Two blocks with a way round each, an output on the way, and noise.
BLOCKS = (
    "pnnx.Input in 0 1 x #x=(4,64)f32",
    "pnnx.Expression a 1 1 x a expr=mul(@0,2)",
    "F.dropout noise 1 1 a b p=0.5 training=True",
    "pnnx.Expression c 1 1 b c expr=add(@0,1)",
    "pnnx.Expression join 2 1 c a d expr=add(@0,@1)",
    "torch.chunk halves 1 2 d e f chunks=2 dim=0",
    "pnnx.Expression g 2 1 e f g expr=mul(@0,@1)",
    "nn.ReLU relu 1 1 g h",
    "Tensor.reshape flat 1 1 h i shape=(128)",
    "pnnx.Expression end 2 1 i i j expr=add(@0,@1)",
    "pnnx.Output out 1 0 j",
)


@pytest.fixture
def chain(make_pair):
    """A function that makes a session of a chain of operators, fed with zeros."""

    def make(length, limit, backend="numpy"):
        graph = engine.load(make_pair(*chain_lines(length)))
        session = Session(graph, backend, memory_limit=limit)
        session.feed([np.zeros(SIZE, np.float32)])
        return session

    return make


@pytest.fixture
def blocks(make_pair):
    """A function that makes a session of `BLOCKS`, fed."""
    graph = engine.load(make_pair(*BLOCKS))
    data = np.random.default_rng(5).standard_normal((4, 64)).astype(np.float32)

    def make(limit=None, seed=3):
        session = Session(graph, "numpy", seed, limit)
        session.feed([data])
        return session

    return make


@pytest.fixture
def executed(monkeypatch):
    """Counts how often each operator is computed."""
    counts = Counter()
    forward = RuntimeOperator.forward

    def counting(self, inputs, generator=None):
        counts[self.name] += 1
        return forward(self, inputs, generator)

    monkeypatch.setattr(RuntimeOperator, "forward", counting)
    return counts


def names_of(session):
    return [operand.name for op in session.graph.operators for operand in op.outputs]


def needed_bytes(session):
    """What the operators from the position on take, each operand of a chain for itself."""
    behind = session.graph.operators[session.position :]
    names = {operand.name for operator in behind for operand in operator.inputs}
    return BYTES * len(names - {"0"})


@pytest.mark.parametrize("limit", [0, 1, BYTES, 3 * BYTES, 10 * BYTES, 100 * BYTES])
def test_resident_bytes_stay_below_the_limit(chain, limit):
    session = chain(30, limit)
    while session.state is not SessionState.FINISHED:
        session.step()
        assert session.resident_bytes <= max(limit, 2 * BYTES, needed_bytes(session))
    for name in names_of(session):
        session.value(name)
        assert session.resident_bytes <= max(limit, 2 * BYTES)


@pytest.mark.parametrize("limit", [0, 3 * BYTES, 10 * BYTES, 100 * BYTES])
@pytest.mark.parametrize("way", ["forwards", "backwards", "at random"])
def test_every_value_can_be_looked_at(chain, limit, way):
    session = chain(30, limit)
    session.run()
    order = list(range(31))
    if way == "backwards":
        order.reverse()
    elif way == "at random":
        random.Random(4).shuffle(order)
    for k in order:
        np.testing.assert_array_equal(session.value(str(k)), np.full(SIZE, k))


@pytest.mark.parametrize(
    ("kept", "most"),
    [
        pytest.param(1, 1, id="all"),
        pytest.param(1 / 4, 2, id="a quarter"),
        pytest.param(1 / 10, 4, id="a tenth"),
    ],
)
def test_reading_backwards_is_not_quadratic(chain, executed, kept, most):
    length = 400
    session = chain(length, int(kept * length * BYTES))
    session.run()
    executed.clear()
    for k in range(length, -1, -1):
        session.value(str(k))
    assert executed.total() <= most * length


def test_reading_forwards_computes_each_once(chain, executed):
    session = chain(400, 0)
    session.run()
    executed.clear()
    for k in range(401):
        session.value(str(k))
    assert executed.total() <= 400


def test_the_last_read_values_stay_resident(chain, executed):
    session = chain(40, 10 * BYTES)
    session.run()
    session.value("5")
    executed.clear()
    session.value("5")
    session.value("39")  # among those computed last
    assert not executed
    assert session.is_resident("5")


def test_values_of_the_next_operators_stay_resident(chain, executed):
    session = chain(5, 0)
    session.run(until="op4")
    assert session.is_resident("3")
    assert not session.is_resident("1")
    executed.clear()
    session.run()
    assert executed == {"op4": 1, "op5": 1}


def test_outputs_of_the_model_stay_resident(chain, executed):
    session = chain(20, 0)
    session.run()
    executed.clear()
    np.testing.assert_array_equal(session.outputs()[0], np.full(SIZE, 20))
    assert not executed


@pytest.mark.parametrize("limit", [0, 500, 2000])
@pytest.mark.parametrize("backwards", [False, True])
def test_branches_lists_views_and_noise(blocks, limit, backwards):
    free, tight = blocks(), blocks(limit)
    free.run()
    tight.run()
    names = names_of(free)
    for name in names[::-1] if backwards else names:
        np.testing.assert_array_equal(tight.value(name), free.value(name))
    # The noise itself, as the generator of the operator gives it.
    drawn = free.graph.operator("noise").generator(3)
    assert tight.record("noise").random
    assert set(np.unique(tight.value("b") == 0)) == {False, True}
    np.testing.assert_array_equal(
        tight.value("b"),
        free.graph.operator("noise").forward([free.value("a")], drawn)[0],
    )


def test_another_seed_applies_to_recomputed_values(blocks):
    free, tight = blocks(), blocks(0)
    for session in (free, tight):
        session.run()
        session.reseed(11)
        session.run()
    np.testing.assert_array_equal(tight.value("b"), free.value("b"))


def test_nothing_else_changes(chain):
    session = chain(30, 3 * BYTES)
    session.breakpoints = {"op20"}
    seen = []
    session.run(on_step=seen.append)
    before = session.records
    assert session.position == 20
    session.value("2")
    assert (session.position, session.state) == (20, SessionState.STOPPED)
    assert session.records == before == tuple(seen)
    assert session.breakpoints == {"op20"}
    assert len(session.run()) == 12


def test_metadata_computes_nothing(chain, executed):
    session = chain(10, 0)
    session.run()
    executed.clear()
    record = session.record("op3")
    metadata = session.metadata("3")
    assert (metadata.shape, metadata.dtype, metadata.nbytes) == ((SIZE,), np.float32, BYTES)
    assert (list(record.outputs), len(record.outputs), "3" in record.outputs) == (
        ["3"],
        1,
        True,
    )
    assert "4" not in record.outputs
    assert session.has_value("3")
    assert not session.is_resident("3")
    assert repr(record)
    assert not executed


def test_returned_arrays_stay_valid(chain):
    session = chain(10, 0)
    session.run(until="op4")
    held = session.value("3")
    session.run()
    assert not session.is_resident("3")
    session.value("3")
    session.restart()
    session.feed([np.ones(SIZE, np.float32)])
    session.run()
    np.testing.assert_array_equal(held, np.full(SIZE, 3))
    np.testing.assert_array_equal(session.value("3"), np.full(SIZE, 4))
    with pytest.raises(ValueError, match="read-only"):
        held[0] = 1


def test_records_of_an_earlier_pass(chain):
    session = chain(10, 0)
    records = session.run()
    session.feed([np.ones(SIZE, np.float32)])
    session.run()
    np.testing.assert_array_equal(records[5].outputs["5"], np.full(SIZE, 5))
    np.testing.assert_array_equal(session.value("5"), np.full(SIZE, 6))
    assert session.resident_bytes <= 2 * BYTES


def test_stepping_back_and_on(chain):
    session = chain(10, 0)
    session.run()
    for _ in range(6):
        session.step_back()
    assert session.position == 6
    assert not session.has_value("6")
    with pytest.raises(ValueNotComputedError, match="has not run"):
        session.value("6")
    session.run()
    np.testing.assert_array_equal(session.outputs()[0], np.full(SIZE, 10))


def test_overrides_are_never_evicted(chain, executed):
    session = chain(10, 0)
    session.run()
    session.override("4", np.full(SIZE, 50, np.float32))
    session.run()
    executed.clear()
    np.testing.assert_array_equal(session.value("4"), np.full(SIZE, 50))
    assert not executed
    np.testing.assert_array_equal(session.value("6"), np.full(SIZE, 52))
    assert executed == {"op5": 1, "op6": 1}
    np.testing.assert_array_equal(session.value("3"), np.full(SIZE, 3))
    session.clear_override("4")
    session.run()
    np.testing.assert_array_equal(session.value("4"), np.full(SIZE, 4))


def test_one_of_two_outputs_is_overridden(blocks):
    session = blocks(0)
    given = np.full((2, 64), 7, np.float32)
    session.override("e", given)
    session.run()
    np.testing.assert_array_equal(session.value("e"), given)
    np.testing.assert_array_equal(session.value("f"), session.value("d")[2:])
    np.testing.assert_array_equal(session.value("g"), 7 * session.value("f"))


def test_the_limit_of_a_live_session(chain, executed):
    session = chain(20, None)
    records = session.run()
    assert (session.memory_limit, session.resident_bytes) == (None, None)
    session.memory_limit = 4 * BYTES
    assert session.resident_bytes <= 4 * BYTES
    assert not session.is_resident("9")
    executed.clear()
    np.testing.assert_array_equal(records[9].outputs["9"], np.full(SIZE, 9))
    assert executed
    session.memory_limit = None
    for k in range(21):
        session.value(str(k))
    assert all(session.is_resident(str(k)) for k in range(21))
    session.memory_limit = 0
    assert session.resident_bytes <= 2 * BYTES


def test_views_of_a_value_are_needed_once(make_pair):
    """Three views wait for the join beside the value: that is one value, and not four."""
    shape = f"({SIZE})f32"
    adds = [f"pnnx.Expression op{k} 1 1 {k - 1} {k} expr=add(@0,1)" for k in range(2, 31)]
    graph = engine.load(
        make_pair(
            f"pnnx.Input in 0 1 0 #0={shape}",
            "pnnx.Expression begin 1 1 0 first expr=add(@0,1)",
            *(f"Tensor.reshape same{n} 1 1 first v{n} shape=({SIZE})" for n in "abc"),
            "pnnx.Expression join 4 1 first va vb vc 1 expr=max(max(@0,@1),max(@2,@3))",
            *adds,
            "pnnx.Output out 1 0 30",
        )
    )
    session = Session(graph, "numpy", memory_limit=0)
    session.feed([np.zeros(SIZE, np.float32)])
    session.run()
    for name in names_of(session)[::-1]:
        session.value(name)
        assert session.resident_bytes <= 2 * BYTES


def test_memory_is_freed(chain):
    import tracemalloc

    session = chain(2000, 20 * BYTES)
    tracemalloc.start()
    session.run()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # 8 MB of values; the rest is what a step and its record take.
    assert taken < 6e6


@pytest.mark.parametrize("backend", ["auto", "onnxruntime", "ncnn"])
def test_the_same_kernel_recomputes_a_value(make_pair, backend):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("ncnn")
    shape = "(1,8,24,24)f32"
    lines = [f"pnnx.Input in 0 1 0 #0={shape}"]
    weights = {}
    draw = np.random.default_rng(0)
    for k in range(1, 6):
        lines.append(
            f"nn.Conv2d conv{k} 1 1 {k - 1} {k} bias=False dilation=(1,1) groups=1 "
            "in_channels=8 kernel_size=(3,3) out_channels=8 padding=(1,1) padding_mode=zeros "
            f"stride=(1,1) @weight=(8,8,3,3)f32 #{k}={shape}"
        )
        weights[f"conv{k}.weight"] = draw.standard_normal((8, 8, 3, 3)).astype(np.float32)
    graph = engine.load(make_pair(*lines, "pnnx.Output out 1 0 5", weights=weights))
    data = draw.standard_normal((1, 8, 24, 24)).astype(np.float32)
    session = Session(graph, backend, memory_limit=0)
    session.feed([data])
    first = {}
    session.run(on_step=lambda record: first.update(record.outputs))
    kernels = {record.operator.name: record.kernel for record in session.records}
    session.feed([data[..., :20]])  # the kernels are ready for another size now
    session.run()
    session.feed([data])
    session.run()
    for name, value in first.items():
        np.testing.assert_array_equal(session.value(name), value)
    assert kernels == {record.operator.name: record.kernel for record in session.records}


def test_cancelling(chain):
    session = chain(30, 0)
    session.run()
    calls = []

    def check_cancelled():
        calls.append(None)
        if len(calls) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.value("20", check_cancelled)
    np.testing.assert_array_equal(session.value("20"), np.full(SIZE, 20))


def test_a_run_is_cancelled_while_it_computes_again(chain):
    session = chain(20, 0)
    session.run()
    for _ in range(3):
        session.step_back()
    asked = []

    def cancelled():
        asked.append(None)
        return len(asked) > 4

    assert session.run(cancelled=cancelled) == ()
    assert (session.position, session.state) == (19, SessionState.STOPPED)
    session.run()
    np.testing.assert_array_equal(session.outputs()[0], np.full(SIZE, 20))


def test_failing_operators(make_pair):
    lines = [
        *chain_lines(10)[:-1],
        "my.Thing odd 1 1 10 11",
        "pnnx.Attribute two 0 1 w @data=(2)f32 #w=(2)f32",
        "pnnx.Expression sum 2 1 10 w 12 expr=add(@0,@1)",
        "pnnx.Output out 2 0 11 12",
    ]
    weights = {"two.data": np.zeros(2, np.float32)}
    session = Session(engine.load(make_pair(*lines, weights=weights)), "numpy", memory_limit=0)
    session.feed([np.zeros(SIZE, np.float32)])
    with pytest.raises(InferenceError, match="sum"):
        session.run()
    assert session.state is SessionState.FAILED
    assert session.status("odd") is OperatorStatus.UNSUPPORTED
    np.testing.assert_array_equal(session.value("4"), np.full(SIZE, 4))
    assert session.state is SessionState.FAILED
    with pytest.raises(ValueNotComputedError):
        session.value("11")
    session.step_back()
    assert session.state is SessionState.STOPPED


def test_values_that_cannot_be_recomputed_are_reported(chain, monkeypatch):
    forward, full = RuntimeOperator.forward, []

    def exhaustible(self, inputs, generator=None):
        if full:
            raise InferenceError(self.name, self.type, [], "not enough memory")
        return forward(self, inputs, generator)

    monkeypatch.setattr(RuntimeOperator, "forward", exhaustible)
    session = chain(10, 0)
    session.run()
    full.append(True)
    with pytest.raises(EngineError, match="not enough memory"):
        session.value("5")
    full.clear()
    assert session.state is SessionState.FINISHED
    np.testing.assert_array_equal(session.value("5"), np.full(SIZE, 5))


def test_a_negative_limit(chain):
    with pytest.raises(SessionStateError, match="a memory limit is a number of bytes, not -1"):
        chain(3, -1)


@pytest.mark.parametrize("kind", ["folder", "npz", "safetensors"])
def test_dumps_are_the_same(chain, tmp_path, kind):
    suffix = "" if kind == "folder" else f".{kind}"
    options = engine.DumpOptions(format=kind)
    written = {}
    for name, limit in (("free", None), ("tight", 0)):
        session = chain(30, limit)
        session.run()
        path = engine.write_dump(session, tmp_path / f"{name}{suffix}", options)
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        written[name] = {
            file.name.replace(name, ""): file.read_bytes()
            for file in files
            if file.is_file() and file.suffix != ".json" and kind != "safetensors"
        }
        if kind == "safetensors":
            tensors = pytest.importorskip("safetensors.numpy").load_file(path)
            written[name] = {key: array.tobytes() for key, array in tensors.items()}
    assert written["tight"] == written["free"]


def test_a_dump_holds_few_values_at_a_time(chain, tmp_path, executed):
    session = chain(60, 0)
    session.run()
    executed.clear()
    engine.write_dump(session, tmp_path / "dump")
    assert session.resident_bytes <= 2 * BYTES
    assert executed.total() <= 3 * 60


def test_threads_of_a_dump_do_not_overtake_each_other(chain, tmp_path, executed, monkeypatch):
    session = chain(60, 0)
    session.run()
    fetch, looks = StepOutputs.fetch, []

    def tardy(self, name, check_cancelled=None):
        looks.append(None)
        if len(looks) % 5 == 0:
            time.sleep(0.05)
        return fetch(self, name, check_cancelled)

    monkeypatch.setattr(StepOutputs, "fetch", tardy)
    executed.clear()
    engine.write_dump(session, tmp_path / "dump")
    assert executed.total() <= 3 * 60


def test_a_dump_is_cancelled_while_it_computes_again(chain, tmp_path):
    session = chain(60, 0)
    session.run()
    with pytest.raises(ExportCancelledError):
        engine.write_dump(session, tmp_path / "dump", cancelled=lambda: True)
    assert not (tmp_path / "dump").exists()


def test_the_self_check_has_the_limit_too(chain, executed):
    pytest.importorskip("onnxruntime")
    session = chain(60, 0)
    found = self_check(session)
    assert found.agrees
    assert executed.total() <= 3 * 60


def random_lines(draw):
    """Some operators of one input, of which some give views, lists or noise."""
    lines, known = ["pnnx.Input in 0 1 x #x=(4,6)f32"], ["x"]
    for k in range(draw.randint(4, 25)):
        a, b = draw.choices(known[-6:], k=2)
        kind = draw.choice(["relu", "add", "add", "noise", "flip", "halves", "same"])
        if kind == "relu":
            line = f"nn.ReLU op{k} 1 1 {a} v{k} #v{k}=(4,6)f32"
        elif kind == "add":
            line = f"pnnx.Expression op{k} 2 1 {a} {b} v{k} expr=add(@0,@1) #v{k}=(4,6)f32"
        elif kind == "noise":
            line = f"F.dropout op{k} 1 1 {a} v{k} p=0.3 training=True #v{k}=(4,6)f32"
        elif kind == "flip":
            line = f"torch.flip op{k} 1 1 {a} v{k} dims=(0) #v{k}=(4,6)f32"
        elif kind == "same":
            line = f"Tensor.reshape op{k} 1 1 {a} v{k} shape=(4,6) #v{k}=(4,6)f32"
        else:
            lines.append(f"torch.chunk op{k} 1 2 {a} p{k} q{k} chunks=2 dim=0")
            line = f"torch.cat joined{k} 2 1 q{k} p{k} v{k} dim=0 #v{k}=(4,6)f32"
        lines.append(line)
        known.append(f"v{k}")
    return [*lines, f"pnnx.Output out 2 0 {known[-1]} {draw.choice(known[1:])}"]


@pytest.mark.parametrize("seed", range(40))
def test_random_actions_give_the_same_without_a_limit(make_pair, seed):
    draw, numbers = random.Random(seed), np.random.default_rng(seed)
    graph = engine.load(make_pair(*random_lines(draw)))
    free = Session(graph, "numpy", 5)
    tight = Session(graph, "numpy", 5, draw.choice([0, 100, 300, 1000]))
    names = [name for name in names_of(free) if name != "x"]

    def feed():
        data = numbers.standard_normal((4, 6)).astype(np.float32)
        return lambda session: session.feed([data])

    def supply():
        data, name = numbers.standard_normal((4, 6)).astype(np.float32), draw.choice(names)
        shape = (2, 6) if name[0] in "pq" else (4, 6)
        return lambda session: session.override(name, data[: shape[0]])

    def run():
        stop = draw.choice(graph.operators).name
        return lambda session: session.run(until=stop)

    def limit():
        nbytes = draw.choice([0, 200, 500, None])
        return lambda session: session is tight and setattr(session, "memory_limit", nbytes)

    def step():
        return lambda session: session.run(until=following(session))

    def following(session):
        place = min(session.position + 1, len(graph.operators) - 1)
        return graph.operators[place].name

    def reseed():
        place = draw.randint(0, 9)
        return lambda session: session.reseed(place)

    actions = (
        feed, supply, run, run, limit, step, reseed,
        lambda: Session.step_back,
        lambda: Session.run,
        lambda: Session.restart,
        lambda: lambda session: session.clear_override(*names),
    )  # fmt: skip
    for act in (feed(), *(draw.choice(actions)() for _ in range(40))):
        act(free)
        act(tight)
        assert (tight.position, tight.state) == (free.position, free.state)
        for name in draw.sample(names, 3):
            assert tight.has_value(name) == free.has_value(name)
            if free.has_value(name):
                np.testing.assert_array_equal(tight.value(name), free.value(name))
        for old, new in zip(free.records, tight.records, strict=True):
            assert (old.operator, old.status, old.seed) == (new.operator, new.status, new.seed)
    tight.restart()
    assert not tight.resident_bytes
