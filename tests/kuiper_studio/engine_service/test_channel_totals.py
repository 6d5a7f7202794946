"""Totals of channels over several inputs: against the numbers of all inputs together."""

from __future__ import annotations

import time

import numpy as np
import pytest

from engine.inputs import InputSource
from kuiper_studio.engine_service import channel_totals, idle_work
from kuiper_studio.engine_service.channel_totals import RunTotals
from kuiper_studio.engine_service.channels import ChannelView
from kuiper_studio.engine_service.protocol import (
    Answer,
    Done,
    FeedRequest,
    FetchRequest,
    MemoryRequest,
    Model,
    OpenRequest,
    Plan,
    RunRequest,
    Supply,
    SupplyRequest,
    WorkFailed,
)
from kuiper_studio.engine_service.transport import ThreadTransport

VIEW = ChannelView((2, 5, 3, 4), 1)


@pytest.fixture
def arrays():
    """Three of 2 x 5 x 3 x 4: channel 1 is dead in two, 2 in all, 3 equals 0, 4 has NaN."""
    rng = np.random.default_rng(3)
    made = [rng.standard_normal((2, 5, 3, 4)).astype(np.float32) + i for i in range(3)]
    made[0][:, 1] = made[2][:, 1] = 0
    for array in made:
        array[0, 0, 0, :2] = 0  # which is not dead yet
        array[:, 2] = 0
        array[:, 3] = array[:, 0]
    made[0][:, 4] = np.nan
    made[1][0, 4, 0, 0] = np.inf
    return made


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_totals_are_those_of_all_inputs_together(arrays, order):
    """Also where nothing finite is in the first input, or in the last."""
    totals = RunTotals()
    for number in order:
        found = totals.count("x", arrays[number], bytes([number]), VIEW)
    assert found.inputs == 3
    assert found.count == 3 * 24
    for channel in range(5):
        together = np.stack(arrays)[:, :, channel].astype(np.float64)
        finite = together[np.isfinite(together)]
        assert found.low[channel] == finite.min()
        assert found.high[channel] == finite.max()
        assert found.mean[channel] == pytest.approx(finite.mean(), abs=1e-6)
        assert found.deviation[channel] == pytest.approx(finite.std(), rel=1e-5)
        assert found.finite[channel] == finite.size
        assert found.zeros[channel] == np.sum(together == 0)
    assert found.dead_in.tolist() == [0, 2, 3, 0, 0]
    assert found.alike.tolist() == [0, 1, 2, 0, 4]  # 1 and 2 are alike with two inputs only


def test_an_input_counts_once(arrays):
    totals = RunTotals()
    for _ in range(3):
        found = totals.count("x", arrays[0], b"same", VIEW)
    assert found.inputs == 1
    assert totals.count("x", arrays[1], b"other", VIEW).inputs == 2
    totals.clear()
    assert totals.count("x", arrays[1], b"other", VIEW).inputs == 1


def test_another_axis_begins_anew(arrays):
    totals = RunTotals()
    totals.count("x", arrays[0], b"0")
    rows = totals.count("x", arrays[1], b"1", ChannelView(VIEW.shape, 2))
    assert (rows.inputs, len(rows.low)) == (1, 3)
    assert len(totals.count("x", arrays[2], b"2").low) == 3  # the axis that was looked at


def test_totals_are_bounded(arrays, monkeypatch):
    monkeypatch.setattr(channel_totals, "_MOST_CHANNELS", 12)
    totals = RunTotals()
    assert totals.count("x", arrays[0], b"0") is not None
    assert totals.count("y", arrays[0], b"0") is not None
    assert totals.count("z", arrays[0], b"0") is None
    assert totals.count("x", arrays[1], b"1").inputs == 2


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((2, 3), np.float32),
        np.zeros((1, 4, 2, 2), np.complex64),
        np.zeros((1, 0, 2, 2), np.float32),
    ],
)
def test_what_has_no_channels_is_not_counted(array):
    assert RunTotals().count("x", array, b"0") is None


class Line:
    """An engine with a model, and what it has answered."""

    def __init__(self, path):
        self.replies = []
        self.transport = ThreadTransport(self.replies.append)
        self.number = 0
        model = Model(path, None, "numpy", None)
        self.do(lambda number: OpenRequest(number, model, Plan(), 0, MemoryRequest(None, None)))

    def do(self, make_request, kind=Done):
        self.number += 1
        before = len(self.replies)
        self.transport.send(make_request(self.number))
        return self.wait(kind, before)

    def wait(self, kind, first):
        for _ in range(1000):
            found = [each for each in self.replies[first:] if isinstance(each, kind)]
            assert not any(isinstance(each, WorkFailed) for each in self.replies)
            if found:
                return found[-1]
            time.sleep(0.01)
        raise TimeoutError

    def run(self, value):
        plan = Plan((InputSource("constant", value=value),))
        self.do(lambda number: FeedRequest(number, plan))
        self.do(lambda number: RunRequest(number, None, None, frozenset()))

    def totals(self, operand, view):
        done = [each for each in self.replies if isinstance(each, Done) and each.stepped]
        records = done[-1].stepped.records
        serial = next(r.outputs.serial for r in records if operand in r.outputs.by_operand)
        make = FetchRequest(self.number + 1, operand, serial, "totals", view)
        return self.do(lambda _: make, Answer)


@pytest.fixture
def line(make_pair, monkeypatch):
    monkeypatch.setattr(idle_work, "_REST_BEFORE_COUNTING", 0.01)
    made = Line(
        make_pair(
            "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
            "nn.ReLU relu 1 1 0 1",
            "pnnx.Output out 1 0 1",
        )
    )
    yield made
    made.transport.close()


def test_operands_that_nobody_looked_at_are_counted_at_rest(line):
    view = ChannelView((1, 2, 4, 4), 1)
    served = line.transport._server._served
    for value in (-1.0, 2.0, -3.0, -1.0):
        line.run(value)
        for _ in range(1000):
            if not served.uncounted:
                break
            time.sleep(0.005)
    found = line.totals("1", view).result
    assert found.inputs == 3
    assert found.dead_in.tolist() == [2, 2]
    assert found.high.tolist() == [2, 2]


def test_totals_are_forgotten_when_an_operand_is_overridden(line, tmp_path):
    view = ChannelView((1, 2, 4, 4), 1)
    for value in (-1.0, 2.0):
        line.run(value)
        assert line.totals("1", view).found
    assert line.totals("1", view).result.inputs == 2
    path = tmp_path / "five.npy"
    np.save(path, np.full((1, 2, 4, 4), 5, np.float32))
    supply = Supply(("1",), InputSource("npy", path))
    line.do(lambda number: SupplyRequest(number, supply, steps_over=False))
    line.do(lambda number: RunRequest(number, None, None, frozenset()))
    assert line.totals("1", view).result.inputs == 1


def test_counting_gives_up_between_parts_and_adds_nothing():
    """Of 64 channels of 64x64 elements 16 are a part."""
    array = np.zeros((1, 64, 64, 64), np.float32)
    totals, checks = RunTotals(), []

    def check():
        checks.append(1)
        if len(checks) == 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        totals.count("x", array, b"0", check_cancelled=check)
    found = totals.count("x", array, b"0", check_cancelled=check)
    assert found.inputs == 1
    assert found.zeros.tolist() == [64 * 64] * 64
    assert len(checks) == 3 + 4
