"""Simulated formats and the choice of operators, on models small enough to work out."""

from __future__ import annotations

import math

import numpy as np
import pytest

import engine
from engine.errors import EngineError, SessionStateError
from engine.precision import LOST, choose_float32, ncnn_lines, simulate_precision
from engine.precision.lowered_runs import LoweredRuns
from engine.session import Session, SessionState

LINEAR = "nn.Linear {0} 1 1 {1} {2} bias=False in_features=2 out_features=2 @weight=(2,2)f32"
X = np.array([[1.0, 2.0]], np.float32)


@pytest.fixture
def overflowing(make_pair):
    """x @ 60000 overflows float16; the next operator scales it back."""
    param = make_pair(
        "pnnx.Input in 0 1 x #x=(1,2)f32",
        LINEAR.format("big", "x", "a"),
        "nn.ReLU keep 1 1 a b",
        LINEAR.format("small", "b", "c"),
        "nn.ReLU last 1 1 c y",
        "pnnx.Output out 1 0 y",
        weights={
            "big.weight": np.array([[60000, 0], [0, 60000]], np.float32),
            "small.weight": np.array([[2.0**-10, 0], [0, 2.0**-10]], np.float32),
        },
    )
    session = Session(engine.load(param))
    session.feed([X])
    return session


def half(array):
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)


def test_overflow_is_found(overflowing):
    (found,) = simulate_precision(overflowing, ("float16",))
    by_name = {each.operator.name: each for each in found.operators}
    assert list(by_name) == ["big", "keep", "small", "last"]
    assert by_name["big"].outputs.headroom == pytest.approx(65504 / 120000)
    assert by_name["big"].weights.headroom == pytest.approx(65504 / 60000)
    assert by_name["big"].alone == by_name["big"].at_output == found.output == LOST
    assert by_name["small"].at_output.relative < 1e-3
    assert {each.operator.name for each in found.by_harm[:2]} == {"big", "keep"}
    assert overflowing.state is SessionState.READY
    (other,) = simulate_precision(overflowing, ("bfloat16",))
    assert other.output.relative < 0.02


def test_overflow_is_cured(overflowing):
    found = choose_float32(overflowing, "float16", 1e-3)
    # What reads a number beyond the format must read it in float32 as well.
    assert [each.name for each in found.kept] == ["big", "keep", "small"]
    assert found.reached
    assert ncnn_lines(found.kept, found.format) == ("big 31=3", "keep 31=3", "small 31=3")
    assert found.steps[0].output == LOST
    assert found.steps[-1].output == found.output
    assert found.output.relative == 0.0 or found.output.relative < 1e-3


def test_numbers_equal_a_slow_computation(make_pair):
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, 2, 2)).astype(np.float32)
    param = make_pair(
        "pnnx.Input in 0 1 x #x=(1,2)f32",
        LINEAR.format("one", "x", "a"),
        LINEAR.format("two", "a", "y"),
        "pnnx.Output out 1 0 y",
        weights={"one.weight": first, "two.weight": second},
    )
    session = Session(engine.load(param))
    x = rng.standard_normal((1, 2)).astype(np.float32)
    session.feed([x])
    (found,) = simulate_precision(session, ("float16",))
    exact = x @ first.T @ second.T

    def off(y):
        return float(np.abs(y.astype(float) - exact).max() / np.abs(exact).max())

    one, two = found.operators
    alone = half(x @ half(first).T) @ second.T
    assert one.at_output.relative == pytest.approx(off(alone), rel=1e-3)
    last = half(x @ first.T @ half(second).T)
    assert two.alone.relative == pytest.approx(off(last), rel=1e-3)
    everything = half(half(half(x) @ half(first).T) @ half(second).T)
    assert two.cumulative == found.output
    assert found.output.relative == pytest.approx(off(everything), rel=1e-3)


def test_int8_keeps_vectors_and_scales_channels(make_pair):
    weight = np.array([[100.0, 50.0], [0.3, 0.1]], np.float32)
    line = LINEAR.format("one", "x", "y").replace("bias=False", "bias=True")
    param = make_pair(
        "pnnx.Input in 0 1 x #x=(1,2)f32",
        line.replace("@weight", "@bias=(2)f32 @weight"),
        "pnnx.Output out 1 0 y",
        weights={"one.bias": np.array([1e-3, 1.0], np.float32), "one.weight": weight},
    )
    session = Session(engine.load(param))
    session.feed([X])
    by_tensor, by_channel = simulate_precision(session, ("int8", "int8-per-channel"))
    # With one scale, 100 / 127, the second row vanishes: 2 of 4 weights.
    assert by_tensor.operators[0].weights.underflow == 0.5
    assert by_channel.operators[0].weights.underflow == 0.0
    assert by_tensor.operators[0].outputs.headroom is None


def test_ncnn_lines(overflowing):
    labels = [operator.label for operator in overflowing.graph.operators[1:3]]
    formats = {
        found.format.name: ncnn_lines(labels, found.format)
        for found in simulate_precision(overflowing, passes=0.0)
    }
    assert formats["bfloat16"] == ("big 31=4", "keep 31=4")
    assert formats["int8"] == ("#big_param_0",)  # the table has no ReLU


def test_bounded_work(overflowing):
    (found,) = simulate_precision(overflowing, ("float16",), passes=0.0)
    assert all(each.at_output is None for each in found.operators)
    assert found.passes <= 2
    choice = choose_float32(overflowing, "float16", 1e-3, passes=0.0)
    assert (choice.reached, choice.kept, len(choice.steps)) == (False, (), 1)


def test_a_harmless_format_keeps_no_operator(overflowing):
    found = choose_float32(overflowing, "bfloat16", 0.5)
    assert (found.reached, found.kept) == (True, ())


@pytest.fixture
def products(make_pair):
    """A session of twelve products in a row: int8 rounds sums of other orders differently."""
    rng = np.random.default_rng(3)
    line = LINEAR.replace("=2", "=64").replace("(2,2)", "(64,64)")
    lines = [
        "pnnx.Input in 0 1 0 #0=(40,64)f32",
        *(line.format(f"l{n}", n, n + 1) for n in range(12)),
        "pnnx.Output out 1 0 12",
    ]
    weights = {f"l{n}.weight": rng.standard_normal((64, 64), np.float32) / 8 for n in range(12)}
    session = Session(engine.load(make_pair(*lines, weights=weights)))
    session.feed([rng.standard_normal((40, 64)).astype(np.float32)])
    return session


def test_the_error_of_a_choice_has_a_spread(products):
    found = choose_float32(products, "int8", 1.0)
    low, high = found.spread
    assert low < found.output.relative == high
    assert 0 < high - low < high / 2
    assert found.reached


def test_the_highest_error_of_a_choice_counts(products):
    """An error that one run has, and another with other last digits exceeds, is not reached."""
    low, high = choose_float32(products, "int8", 1.0).spread
    wanted = (low + high) / 2
    found = choose_float32(products, "int8", wanted)
    assert found.kept
    assert found.reached
    assert found.spread[1] <= wanted
    kept = {label.index for label in found.kept}
    runs = LoweredRuns(products, None)
    lowered = {o.index for o in runs.operators} - kept
    noises = [None, *map(np.random.default_rng, range(1, 5))]
    errors = [runs.measure(lowered, found.format, noise=noise).relative for noise in noises]
    assert (min(errors), max(errors)) == found.spread


def test_whole_numbers_have_no_spread(overflowing):
    """Their sums are exact in any order: a float16 holds what is left of them."""
    found = choose_float32(overflowing, "float16", 1e-3)
    assert found.spread == (found.output.relative, found.output.relative)


def test_an_unreachable_error_is_reported(overflowing):
    found = choose_float32(overflowing, "bfloat16", -1.0)
    assert not found.reached
    assert len(found.kept) == 4
    assert found.output.relative == 0.0


def test_progress_goes_through_the_whole_simulation(overflowing):
    """Alone, among all and to the output: the bar never waits for two of them."""
    told = []
    simulate_precision(
        overflowing, ("float16", "int8"), progress=lambda *each: told.append(each)
    )
    assert {total for _, total in told} == {24}  # 4 operators, 3 steps, 2 formats
    assert [done for done, _ in told] == list(range(1, 25))


def test_progress_of_a_choice_never_falls(overflowing):
    told = []
    choose_float32(
        overflowing, "float16", 1e-3, progress=lambda done, total: told.append(done / total)
    )
    assert told == sorted(told)
    assert 0 < told[0] < 0.1
    assert 0.5 in told  # the simulation
    assert 0.5 < told[-1] <= 1


def test_cancel_and_refuse(overflowing):
    assert simulate_precision(overflowing, cancelled=lambda: True) == ()
    answers = iter([False] * 9 + [True] * 99)
    (found,) = simulate_precision(overflowing, ("float16",), cancelled=lambda: next(answers))
    assert found.cancelled
    with pytest.raises(EngineError, match="no format"):
        simulate_precision(overflowing, ("int4",))
    with pytest.raises(SessionStateError, match="feed"):
        simulate_precision(Session(overflowing.graph))


def test_override_counts_as_stored(overflowing):
    overflowing.override("a", np.array([[1.0, 1 + 2.0**-12]], np.float32))
    (found,) = simulate_precision(overflowing, ("float16",))
    big = found.operators[0]
    assert big.alone.relative == pytest.approx(2.0**-12, rel=1e-3)
    assert math.isfinite(found.output.relative)
