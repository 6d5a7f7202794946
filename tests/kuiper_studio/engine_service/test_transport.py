"""An engine on a thread and in a process: the same answers, and an end that is told."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from engine.inputs import InputSource
from engine.states import OperatorStatus, SessionState
from kuiper_studio.engine_service.protocol import (
    Answer,
    CancelRequest,
    Done,
    FeedRequest,
    FetchRequest,
    LayersLoaded,
    LoadLayersRequest,
    MemoryRequest,
    Model,
    Opened,
    OpenRequest,
    Plan,
    RunRequest,
    Stepped,
    WeightRequest,
    WeightsKept,
    WorkFailed,
)
from kuiper_studio.engine_service.summary import Summary
from kuiper_studio.engine_service.transport import (
    EngineLost,
    ProcessTransport,
    ThreadTransport,
)

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(2,3)f32",
    (
        "nn.Linear double 1 1 0 1 bias=False in_features=3 out_features=3 "
        "@weight=(3,3)f32 #1=(2,3)f32"
    ),
    "nn.ReLU relu 1 1 1 2 #2=(2,3)f32",
    "pnnx.Output out 1 0 2",
)
ENDLESS = '''
import os, signal, time
from engine.layers import register

@register("my.Endless")
def endless(x):
    """Never end."""
    while True:
        pass

@register("my.Fault")
def fault(x):
    """Do what faulty native code does."""
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(10)
'''


class Line:
    """A transport, and what came back."""

    def __init__(self, kind):
        self.replies = queue.Queue()
        put = self.replies.put
        self.transport = (
            ProcessTransport(put, put) if kind == "process" else ThreadTransport(put)
        )

    def send(self, request):
        self.transport.send(request)

    def next(self, kind):
        """The next reply of a kind; others before it are passed over, failures are not."""
        while True:
            reply = self.replies.get(timeout=20)
            if isinstance(reply, kind):
                return reply
            assert not isinstance(reply, (WorkFailed, EngineLost)), reply

    def run(self, run_id, steps=None):
        """Run; the records, the value that came with the last of them, and the end."""
        self.send(RunRequest(run_id, steps, None, frozenset()))
        records, values = [], {}
        while True:
            reply = self.next((Stepped, Done))
            stepped = reply.stepped if isinstance(reply, Done) else reply
            if stepped is not None:
                records += stepped.records
                values = stepped.values
                assert stepped.position == records[-1].index + 1
            if isinstance(reply, Done):
                return records, values, reply.status


@pytest.fixture(params=["process", "thread"])
def line(request):
    made = Line(request.param)
    yield made
    made.transport.close(waits=True)


@pytest.fixture
def process():
    made = Line("process")
    yield made
    made.transport.close(waits=True)


@pytest.fixture
def model(make_pair):
    weight = 2 * np.eye(3, dtype=np.float32)
    return make_pair(*CHAIN, weights={"double.weight": weight})


def opening(path):
    """A request with number 1 that opens a model on NumPy."""
    model = Model(path, None, "numpy", None)
    return OpenRequest(1, model, Plan(), 0, MemoryRequest(None, None))


def open_and_feed(line, path, value=1.0):
    line.send(opening(path))
    opened = line.next(Opened)
    line.next(Done)
    line.send(FeedRequest(2, Plan((InputSource("constant", value=value),))))
    assert line.next(Done).run_id == 2
    return opened


def test_a_run(line, model):
    opened = open_and_feed(line, model, 3.0)
    assert opened.graph.param_path == model
    records, _, status = line.run(3)
    assert [(r.index, *r.outputs) for r in records] == [(0, "0"), (1, "1"), (2, "2"), (3,)]
    assert {r.status for r in records} == {OperatorStatus.EXECUTED}
    assert (status.position, status.state) == (4, SessionState.FINISHED)
    outputs = records[1].outputs
    line.send(FetchRequest(7, "1", outputs.serial, "value"))
    answer = line.next(Answer)
    assert (answer.ticket, answer.found) == (7, True)
    np.testing.assert_array_equal(answer.result, np.full((2, 3), 6, np.float32))
    line.send(FetchRequest(8, "1", outputs.serial, "summary"))
    summary = line.next(Answer).result
    assert isinstance(summary, Summary)
    assert (summary.low, summary.high, summary.count) == (6, 6, 6)


def test_what_a_window_shows_comes_with_a_step(line, model):
    open_and_feed(line, model, 4.0)
    assert list(line.run(3, 1)[1]) == ["0"]
    np.testing.assert_array_equal(line.run(4, 1)[1]["1"], np.full((2, 3), 8))


def test_an_output_shows_what_it_takes(line, model):
    open_and_feed(line, model, 4.0)
    records, values, _ = line.run(3)
    assert records[-1].index == 3
    assert list(values) == ["2"]
    np.testing.assert_array_equal(values["2"], np.full((2, 3), 8))


def test_weights(line, model):
    opened = open_and_feed(line, model)
    offset, nbytes = opened.graph.archive.entries["double.weight"]
    line.send(WeightRequest(5, 1, offset, nbytes))
    found = line.next(Answer).result.view(np.float32).reshape(3, 3)
    np.testing.assert_array_equal(found, 2 * np.eye(3))


def test_a_value_of_an_earlier_pass_is_not_sent(line, model):
    open_and_feed(line, model)
    serial = line.run(3)[0][1].outputs.serial
    line.send(FetchRequest(7, "1", serial + 100, "value"))
    answer = line.next(Answer)
    assert not answer.found
    assert answer.reason == "the value is of an earlier pass"


def test_weights_are_kept_in_the_end(line, make_pair):
    size = 1100  # more than what is read at once
    lines = [CHAIN[0], CHAIN[1].replace("(3,3)", f"({size},{size})"), *CHAIN[2:]]
    lines[1] = lines[1].replace("features=3", f"features={size}")
    path = make_pair(*lines, weights={"double.weight": np.ones((size, size), np.float32)})
    line.send(opening(path))
    opened = line.next(Opened)
    if not opened.is_kept:
        assert line.next(WeightsKept).generation == 1


def test_a_failure(line, tmp_path):
    missing = tmp_path / "missing.param"
    line.send(opening(missing))
    failed = line.replies.get(timeout=20)
    assert isinstance(failed, WorkFailed)
    assert "there is no such file" in str(failed.error)
    assert failed.error.path == missing


class TestProcess:
    def test_it_is_another_one(self, process):
        assert process.transport.pid not in {None, os.getpid()}

    def test_no_qt_in_it(self):
        code = (
            "import sys, kuiper_studio.engine_service.process\n"
            "print([name for name in sys.modules if name.startswith('PySide6')])"
        )
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert found.stdout.strip() == "[]"

    def test_killed(self, process):
        os.kill(process.transport.pid, signal.SIGKILL)
        lost = process.replies.get(timeout=10)
        assert (lost.status, lost.is_fault, lost.activity) == (-9, False, None)
        assert lost.reason == "killed, perhaps because memory ran out (SIGKILL)"

    def test_closed_on_purpose(self, process):
        pid = process.transport.pid
        process.transport.close(waits=True)
        assert process.replies.empty()
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)

    @pytest.fixture
    def own(self, process, make_pair, tmp_path):
        """Opens a model with an operator of a type, and feeds it."""
        layers = tmp_path / "mine.py"
        layers.write_text(ENDLESS)

        def make(kind):
            lines = [CHAIN[0], f"{kind} own 1 1 0 1", "pnnx.Output out 1 0 1"]
            process.send(LoadLayersRequest(1, (layers,)))
            assert process.next(LayersLoaded).all[0].types == ("my.Endless", "my.Fault")
            open_and_feed(process, make_pair(*lines))
            process.send(RunRequest(3, None, None, frozenset()))

        return make

    def test_a_fault_says_what_was_computed(self, process, own):
        own("my.Fault")
        lost = process.next(EngineLost)
        assert (lost.status, lost.is_fault) == (-signal.SIGSEGV, True)
        assert (lost.activity.operator, lost.activity.library) == ("own", "numpy")

    def test_an_endless_operator_can_be_ended(self, process, own):
        own("my.Endless")
        deadline = time.monotonic() + 10
        while process.transport.activity() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.transport.activity().operator == "own"
        process.send(CancelRequest(3))
        time.sleep(0.2)
        assert process.transport.kill()
        assert process.next(EngineLost).activity.operator == "own"

    def test_it_ends_with_its_window(self, tmp_path):
        """Also when nobody closes it, and while native code may keep it busy."""
        code = (
            "import os, signal\n"
            "from kuiper_studio.engine_service.transport import ProcessTransport\n"
            "made = ProcessTransport(print, print)\n"
            "print(made.pid, flush=True)\n"
            "os.kill(os.getpid(), signal.SIGKILL)\n"
        )
        found = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        pid = int(found.stdout)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return
            time.sleep(0.02)
        pytest.fail("the engine is still there")


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (-signal.SIGSEGV, "segmentation fault (SIGSEGV)"),
        (-signal.SIGABRT, "abort (SIGABRT)"),
        (-signal.SIGHUP, "SIGHUP"),
        (3, "exit status 3"),
        (-64, "SIGRTMAX"),
    ],
)
def test_reasons(status, text):
    assert EngineLost(status, None).reason == text
