"""Kernels are tuned while nothing is asked for, and nobody waits for it."""

from __future__ import annotations

import queue

import numpy as np
import pytest

import engine
from engine.backends.tuning_cache import TuningCache
from engine.inputs import InputSource
from kuiper_studio.engine_service import idle_work
from kuiper_studio.engine_service.protocol import (
    Done,
    FeedRequest,
    MemoryRequest,
    Model,
    OpenRequest,
    Plan,
    RunRequest,
    StepBackRequest,
    Tuned,
    TuningRequest,
    WorkFailed,
)
from kuiper_studio.engine_service.transport import ThreadTransport

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(64,256)f32",
    "nn.ReLU relu 1 1 0 1",
    "nn.Sigmoid sigmoid 1 1 1 2",
    "pnnx.Output out 1 0 2",
)


class Line:
    """An engine, and what it has sent."""

    def __init__(self):
        self.replies = queue.Queue()
        self.transport = ThreadTransport(self.replies.put)
        self.numbers = iter(range(2, 1000))

    def next(self, kind):
        while True:
            reply = self.replies.get(timeout=20)
            assert not isinstance(reply, WorkFailed), reply
            if isinstance(reply, kind):
                return reply

    def do(self, make_request):
        number = next(self.numbers)
        self.transport.send(make_request(number))
        while (done := self.next(Done)).run_id != number:
            pass
        return done

    def run(self):
        return self.do(lambda number: RunRequest(number, None, None, frozenset()))


@pytest.fixture
def line(make_pair, tmp_path, monkeypatch):
    """An engine at the end of a pass, which tunes as soon as it rests."""
    monkeypatch.setattr(idle_work, "_REST_BEFORE_TUNING", 0.01)
    monkeypatch.setattr(idle_work, "_SECONDS_BETWEEN_TUNED", 0.0)
    own = TuningCache(tmp_path / "kernels.json")
    monkeypatch.setattr("engine.backends._tuning_cache", lambda: own)
    line = Line()

    def begin(backend="auto", *, tunes=True):
        model = Model(make_pair(*CHAIN), None, backend, None)
        memory = MemoryRequest(None, None)
        line.transport.send(OpenRequest(1, model, Plan(), 0, memory, tunes=tunes))
        line.next(Done)
        plan = Plan((InputSource("constant", value=-1.0),))
        line.do(lambda number: FeedRequest(number, plan))
        line.run()
        return line

    yield begin
    line.transport.close(waits=True)


def test_tuning_reports_its_progress(line):
    pytest.importorskip("onnxruntime")
    started = line()
    told = [started.next(Tuned)]
    while told[-1].done < told[-1].total:
        told.append(started.next(Tuned))
    counts = [each.done for each in told]
    assert counts == sorted(counts)
    assert len(set(counts)) > 1
    assert {(each.generation, each.total, each.wrong) for each in told} == {(1, 4, ())}


def test_requests_come_before_tuning(line, monkeypatch):
    """It waits for the trial that is under way, and tuning goes on afterwards."""
    trials = []

    def tune(self, seconds=None, on_trial=None, cancelled=None):
        while not cancelled():  # it never ends by itself
            trials.append(self.position)
            on_trial()
        return False

    monkeypatch.setattr(engine.Session, "tune", tune)
    monkeypatch.setattr(engine.Session, "tuned", 1)
    started = line()
    for _ in range(3):
        started.next(Tuned)
        done = started.do(StepBackRequest)
        assert done.status.position == 3
        started.run()
    assert set(trials) == {4}


def test_a_failed_trial_is_not_reported_and_not_repeated(line, monkeypatch, caplog):
    calls = []

    def fail(self, **_):
        calls.append(1)
        raise RuntimeError("out of something")

    monkeypatch.setattr(engine.Session, "tune", fail)
    monkeypatch.setattr(engine.Session, "tuned", 0)
    started = line()
    for _ in range(3):
        started.do(StepBackRequest)
        started.run()
    assert len(calls) <= 1


def test_numpy_is_not_tuned(line, monkeypatch):
    monkeypatch.setattr(engine.Session, "tune", None)
    started = line("numpy")
    started.do(StepBackRequest)
    done = started.run()
    assert done.status.position == 4


def test_tuning_keeps_the_values(line):
    pytest.importorskip("onnxruntime")
    started = line()
    while (told := started.next(Tuned)).done < told.total:
        pass
    session = started.transport._server._served.session
    expected = np.full((64, 256), 0.5, np.float32)
    np.testing.assert_array_equal(session.value("2"), expected)


def test_tuning_can_be_off(line, monkeypatch):
    """It stays off with the next model, and may be allowed again."""
    calls = []
    monkeypatch.setattr(
        engine.Session, "tune", lambda _self, **_: bool(calls.append(1)) or True
    )
    monkeypatch.setattr(engine.Session, "tuned", 0)
    started = line(tunes=False)
    for _ in range(3):
        started.do(StepBackRequest)
        started.run()
    assert not calls
    started.transport.send(TuningRequest(allowed=True))
    started.next(Tuned)
    assert calls
