"""Counts of elements, vectors of one 1, and numbers that overflow, by hand."""

from __future__ import annotations

import numpy as np
import pytest

import engine
from engine.provenance.explaining import explain_element
from engine.provenance.records import Kind


def run(path, *inputs: np.ndarray) -> engine.Session:
    session = engine.Session(engine.load(path), backend="numpy")
    session.feed(inputs)
    session.run()
    return session


def test_elements_of_an_interval(make_pair) -> None:
    """Mixtures of experts count the tokens of each expert; the last interval has both ends."""
    session = run(
        make_pair(
            "pnnx.Input in 0 1 a #a=(3,2)f32",
            "torch.histc h 1 1 a b bins=3 min=0 max=3 $input=a #b=(3)f32",
            "pnnx.Output out 1 0 b",
        ),
        np.array([[0, 1], [3, 2], [2, -1]], np.float32),
    )
    found = explain_element(session, "b", (2,))
    assert found.kind is Kind.FUNCTION
    assert found.value == 3.0
    assert found.agrees
    assert found.breakdown.formula == "y[2] = number of elements of a from 2 to 3"
    (elements,) = found.breakdown.terms.factors
    assert elements.indices.tolist() == [[1, 0], [1, 1], [2, 0]]
    assert elements.values.tolist() == [3, 2, 2]
    first = explain_element(session, "b", (0,))
    assert first.breakdown.formula == "y[0] = number of elements of a from 0 to below 1"
    assert first.breakdown.terms.factors[0].indices.tolist() == [[0, 0]]
    (source,) = found.sources
    assert [(each.start, each.stop) for each in source.slices] == [(0, 3), (0, 2)]


def test_an_end_that_is_an_operand(make_pair) -> None:
    session = run(
        make_pair(
            "pnnx.Input in 0 1 a #a=(4)f32",
            "pnnx.Input end 0 1 m #m=()f32",
            "torch.histc h 2 1 a m b bins=2 min=0 $input=a $max=m #b=(2)f32",
            "pnnx.Output out 1 0 b",
        ),
        np.array([0, 1, 3, 4], np.float32),
        np.float32(4),
    )
    found = explain_element(session, "b", (1,))
    assert found.value == 2.0
    assert found.breakdown.formula == "y[1] = number of elements of a from 2 to 4"
    assert found.breakdown.terms.factors[0].indices.ravel().tolist() == [2, 3]


@pytest.mark.parametrize(("place", "places"), [(1, [0, 3]), (2, []), (4, [1])])
def test_occurrences_of_a_number(make_pair, place: int, places: list[int]) -> None:
    session = run(
        make_pair(
            "pnnx.Input in 0 1 a #a=(4)i64",
            "torch.bincount c 1 1 a b minlength=5 $input=a #b=(5)i64",
            "pnnx.Output out 1 0 b",
        ),
        np.array([1, 4, 0, 1]),
    )
    found = explain_element(session, "b", (place,))
    assert found.agrees
    assert found.value == len(places)
    assert found.breakdown.terms.factors[0].indices.ravel().tolist() == places


def test_the_place_of_a_one(make_pair) -> None:
    session = run(
        make_pair(
            "pnnx.Input in 0 1 a #a=(2,2)i64",
            "F.one_hot o 1 1 a b num_classes=3 $input=a #b=(2,2,3)i64",
            "pnnx.Output out 1 0 b",
        ),
        np.array([[0, 2], [1, 1]]),
    )
    for place, value in ((2, 1.0), (0, 0.0)):
        found = explain_element(session, "b", (0, 1, place))
        assert (found.value, found.breakdown.total, found.agrees) == (value, value, True)
        assert found.breakdown.formula == f"y[0, 1, {place}] = 1 if a[0, 1] = {place}, else 0"
        (source,) = found.sources
        assert [(each.start, each.stop) for each in source.slices] == [(0, 1), (1, 2)]


def test_two_bounds_that_overflow(make_pair) -> None:
    """GPT-Neo adds a mask to scores that are hidden already: the sum is no float32."""
    least = float(np.finfo(np.float32).min)
    session = run(
        make_pair(
            "pnnx.Input in 0 1 a #a=(2)f32",
            "pnnx.Input mask 0 1 b #b=(2)f32",
            "pnnx.Expression add 2 1 a b c expr=add(@0,@1) #c=(2)f32",
            "pnnx.Output out 1 0 c",
        ),
        np.array([least, 1], np.float32),
        np.array([least, 2], np.float32),
    )
    found = explain_element(session, "c", (0,))
    assert found.value == found.breakdown.total == -np.inf
    assert found.agrees
    (step,) = found.breakdown.steps
    assert step.name == "before it overflows"
    assert step.value == pytest.approx(2 * least)
    other = explain_element(session, "c", (1,))
    assert (other.value, other.breakdown.steps) == (3.0, ())
