"""Costs, estimates, bars, scales and axis labels of the timeline."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import engine
from engine.session import OperatorStatus, StepRecord
from engine.store import StepOutputs
from engine.values import metadata_of
from kuiper_studio.item_models.comparison_rows import DifferenceKind, DifferenceLook
from kuiper_studio.item_models.difference_marks import DifferenceMark, DifferenceMarks
from kuiper_studio.item_models.statuses import DisplayStatus
from kuiper_studio.panels.timeline_model import (
    Measure,
    Scale,
    TimelineModel,
    error_fractions,
    error_top,
    fractions,
    round_ticks,
)

# Two linear layers of 12 and 24 MACs, then two ReLUs of 32 bytes in and out together.
NET = (
    "pnnx.Input in 0 1 0 #0=(1,3)f32",
    "nn.Linear a 1 1 0 1 bias=False in_features=3 out_features=4 @weight=(4,3)f32 #1=(1,4)f32",
    "nn.Linear b 1 1 1 2 bias=False in_features=4 out_features=6 @weight=(6,4)f32 #2=(1,6)f32",
    "nn.ReLU r 1 1 2 3 #2=(1,6)f32 #3=(1,6)f32",
    "my.Thing odd 1 1 3 4 #3=(1,6)f32 #4=(1,6)f32",
    "pnnx.Output out 1 0 4",
)
NOTHING = SimpleNamespace(has_value=lambda _: False, metadata=lambda _: None)


@pytest.fixture
def graph(make_pair):
    weights = {"a.weight": np.ones((4, 3), "f4"), "b.weight": np.ones((6, 4), "f4")}
    return engine.load(make_pair(*NET, weights=weights))


@pytest.fixture
def model(graph):
    return TimelineModel(graph.operators)


def record(graph, name, ms, status=OperatorStatus.EXECUTED, outputs=None):
    operator = graph.operator(name)
    return StepRecord(operator.index, operator, StepOutputs(outputs or {}), ms / 1e3, status)


def test_before_anything_ran(model):
    assert model.families == ("io", "lin", "lin", "act", "other", "io")
    assert model.macs.tolist() == [0, 12, 24, 0, 0, 0]
    assert model.status.tolist() == [0, 0, 0, 0, DisplayStatus.UNSUPPORTED, 0]
    assert not model.any_measured
    seconds = model.seconds()
    assert seconds[2] == 2 * seconds[1] > 0  # in proportion to the MACs
    assert seconds[0] == seconds[5] == 0


def test_estimates_follow_what_was_measured(graph, model):
    model.note([record(graph, "in", 0), record(graph, "a", 6)], NOTHING)
    assert model.any_measured
    np.testing.assert_allclose(model.seconds()[:3], [0, 6e-3, 12e-3])  # 0.5 ms per MAC
    # ReLU moves 48 bytes; nothing without MACs was measured, so a byte counts as a MAC.
    np.testing.assert_allclose(model.seconds()[3], 24e-3)
    model.note([record(graph, "b", 2), record(graph, "r", 1)], NOTHING)
    np.testing.assert_allclose(model.seconds()[1:4], [6e-3, 2e-3, 1e-3])


def test_spent_and_left(graph, model):
    model.note([record(graph, "in", 0), record(graph, "a", 6)], NOTHING)
    spent, left = model.spent_and_left()
    assert spent == pytest.approx(6e-3)
    assert left == pytest.approx(12e-3 + 24e-3)  # the unsupported one takes no time


def test_times_outlive_a_restart_as_estimates(graph, model):
    model.note([record(graph, "a", 6), record(graph, "b", 1)], NOTHING)
    model.forget()
    assert not model.measured.any()
    assert model.status[4] == DisplayStatus.UNSUPPORTED
    np.testing.assert_allclose(model.seconds()[1:3], [6e-3, 1e-3])


def test_step_back_takes_one_back(graph, model):
    model.note([record(graph, "a", 6), record(graph, "b", 1)], NOTHING)
    model.forget(2)
    assert model.measured.tolist() == [False, True, False, False, False, False]


def test_macs_follow_the_shapes_that_came(graph, model):
    operator = graph.operator("a")

    def run(rows):
        values = {"0": np.zeros((rows, 3), "f4"), "1": np.zeros((rows, 4), "f4")}
        source = SimpleNamespace(
            has_value=values.__contains__, metadata=lambda name: metadata_of(values[name])
        )
        ran = [
            record(graph, "in", 0, outputs={"0": values["0"]}),
            record(graph, "a", 1, outputs={"1": values["1"]}),
        ]
        model.note(ran, source)
        return model.macs[operator.index]

    assert [run(rows) for rows in (5, 5, 2, 1, 1, 3)] == [60, 60, 24, 12, 12, 36]


def test_bytes_follow_the_dtype_that_came(graph, model):
    values = {"1": np.zeros((1, 4), "f4")} | {n: np.zeros((1, 6), "f8") for n in "23"}
    source = SimpleNamespace(
        has_value=values.__contains__, metadata=lambda name: metadata_of(values[name])
    )
    ran = [
        record(graph, "b", 0, outputs={"2": values["2"]}),
        record(graph, "r", 48, outputs={"3": values["3"]}),
    ]
    model.note(ran, source)
    # 96 bytes in 48 ms, half a millisecond per byte; the unknown operator moves 48.
    np.testing.assert_allclose(model.seconds()[3:5], [48e-3, 24e-3])


def test_bars_of_one_operator_each(graph, model):
    model.note([record(graph, "a", 6), record(graph, "r", 0, OperatorStatus.FAILED)], NOTHING)
    bars = model.bars(Measure.TIME)
    np.testing.assert_allclose(bars.total[1:3], [6e-3, 12e-3])
    np.testing.assert_allclose(bars.measured[1:3], [6e-3, 0])
    assert bars.costliest.tolist() == [0, 1, 2, 3, 4, 5]
    assert bars.ran.tolist() == [False, True, False, True, False, False]
    assert bars.failed.tolist() == [False, False, False, True, False, False]
    assert bars.unsupported.tolist() == [False, False, False, False, True, False]


def test_blocked_operators_take_no_time(graph, model):
    model.note([record(graph, "r", 0, OperatorStatus.BLOCKED)], NOTHING)
    bars = model.bars(Measure.TIME)
    assert bars.total[3] == 0
    assert bars.blocked.tolist() == [False, False, False, True, False, False]


def test_bars_of_several_operators(graph, model):
    model.note([record(graph, "in", 0), record(graph, "a", 6)], NOTHING)
    bars = model.bars(Measure.MACS, 4)
    assert bars.total.tolist() == [36, 0]
    assert bars.measured.tolist() == [12, 0]
    assert bars.costliest.tolist() == [2, 4]
    assert bars.ran.tolist() == [False, False]
    assert bars.unsupported.tolist() == [False, True]


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        pytest.param(Scale.LINEAR, [0, 0.0025, 0.25, 1], id="linear"),
        pytest.param(Scale.ROOT, [0, 0.05, 0.5, 1], id="root"),
        pytest.param(Scale.LOG, [0, 0.34949, 0.84949, 1], id="log"),
    ],
)
def test_fractions(scale, expected):
    got = fractions(np.array([0, 0.02, 2, 8]), 8.0, scale)
    np.testing.assert_allclose(got, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("top", "scale", "expected"),
    [
        pytest.param(2.54, Scale.LINEAR, (1, 2), id="picture"),
        pytest.param(55.0, Scale.LINEAR, (20, 40), id="tens"),
        pytest.param(80.0, Scale.LINEAR, (50,), id="not-crowded"),
        pytest.param(0.0031, Scale.LINEAR, (0.001, 0.002, 0.003), id="small"),
        pytest.param(100.0, Scale.LOG, (0.2, 10), id="log"),
        pytest.param(100.0, Scale.ROOT, (10, 50), id="root"),
    ],
)
def test_round_ticks(top, scale, expected):
    count = 3 if top < 1 else 2
    assert round_ticks(top, scale, count) == pytest.approx(expected)


@pytest.mark.parametrize("top", np.geomspace(1e-7, 1e12, 191).tolist())
def test_linear_ticks_are_one_to_three_and_below_the_top(top):
    ticks = round_ticks(top, Scale.LINEAR)
    assert 1 <= len(ticks) <= 2
    assert ticks[-1] <= top * (1 + 1e-9)


def mark(kind, relative=None, born=None):
    return DifferenceMark(DifferenceLook("≠", "div", "", kind), relative, born)


def test_bars_of_errors(model):
    kind = DifferenceKind
    model.marks = DifferenceMarks(
        {
            "in": mark(kind.EQUAL, 0.0, 0.0),
            "a": mark(kind.INHERITED, 1e-3, 1e-6),
            "b": mark(kind.INHERITED, 1e-2, 1e-7),
            "r": mark(kind.BORN, 1e-4, 1e-4),
            "odd": mark(kind.OTHER),
        }
    )
    single = model.error_bars()
    assert single.worst.tolist() == [0, 1, 2, 3, 4, 5]
    np.testing.assert_array_equal(single.errors, [0, 1e-3, 1e-2, 1e-4, np.nan, np.nan])
    assert single.kinds[4:] == (kind.OTHER, None)
    # Of three operators: the larger of two inherited ones; where it is born before all others.
    triple = model.error_bars(3)
    assert triple.worst.tolist() == [2, 3]
    np.testing.assert_array_equal(triple.born, [1e-7, 1e-4])
    assert triple.kinds == (kind.INHERITED, kind.BORN)
    assert model.error_bars(4).worst.tolist() == [3, 4]  # two bars, the last of two operators
    model.marks = DifferenceMarks({"a": mark(kind.BORN, 0.5, 0.5)})  # of another comparison
    np.testing.assert_array_equal(model.error_bars(3).errors, [0.5, np.nan])
    assert model.error_bars(3).kinds == (kind.BORN, None)


def test_scale_of_errors():
    errors = np.array([0, 1e-9, 1e-8, 1e-4, 1, 50, np.inf, np.nan])
    shares = error_fractions(errors, 1.0)
    np.testing.assert_allclose(shares, [0, 0, 0, 0.5, 1, 1, 1, 0])
    assert error_top(errors, 1e-4) == 100
    assert error_top(np.array([1e-6, np.nan]), 1e-4) == 1
    assert error_top(np.array([]), 1000.0) == 1000
    assert error_top(np.array([1e300]), 1e-4) == 1e8
