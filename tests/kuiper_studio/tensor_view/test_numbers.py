"""Numbers as the tensor view writes and reads them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuiper_studio.tensor_view.numbers import (
    format_bound,
    format_range,
    format_tick,
    format_ticks,
    nice_ticks,
    parse_number,
)

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0.0, 0.4, "0"),
        (0.4, 0.4, "0.4"),
        (1.6, 0.4, "1.6"),
        (2.5747, 0.643675, "2.575"),
        (-1.25, 1.25, "−1.25"),
        (3e-6, 1e-6, "3e−6"),
        (150000.0, 50000.0, "1.5e5"),
        (1e-20, 1.0, "0"),
    ],
)
def test_tick_text(value, step, text):
    assert format_tick(value, step) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0, 1.6, "0 … 1.6"),
        (-2.7123, 2.7123, "−2.7123 … 2.7123"),
        (-1e-6, 1e-6, "−1e−6 … 1e−6"),
        (-1.7e308, 1.7e308, "−1.7e308 … 1.7e308"),
    ],
)
def test_range_text(low, high, text):
    assert format_range(low, high) == text


@pytest.mark.parametrize(
    ("value", "other", "text"),
    [
        (0.0, 1.6, "0"),
        (1.6, 0.0, "1.6"),
        (-2.71234567, 2.71234567, "−2.71235"),
        (4.999995, 5.000005, "4.999995"),
        (0.4999999, 0.5000001, "0.4999999"),
        (1.000001, 0.999999, "1.000001"),  # "1" would be the middle of the range
        (1.0000001, 0.9, "1"),
        (3.28829e-05, 2.0, "3.288e−5"),
        (-3.28829e-105, 2.0, "−3.29e−105"),
    ],
)
def test_box_text(value, other, text):
    assert format_bound(value, other) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        (" −2 ", -2.0),
        ("1,5", 1.5),
        ("1e-3", 1e-3),
        ("nan", None),
        ("inf", None),
        ("", None),
        ("1 + 1", None),
    ],
)
def test_parse_number(text, value):
    assert parse_number(text) == value


@given(FINITE, FINITE)
def test_box_text_tells_ends_apart_and_is_read_back(value, other):
    text = format_bound(value, other)
    read = parse_number(text)
    assert read is not None
    assert read == pytest.approx(value, rel=5e-3, abs=1e-300)  # three figures at least
    if value != other:
        assert text != format_bound(other, value)


@pytest.mark.parametrize(
    ("low", "high", "most", "ticks"),
    [
        (0, 2.5747, 6, [0, 0.5, 1, 1.5, 2, 2.5]),
        (0, 2.5747, 5, [0, 1, 2]),
        (-3, 3, 5, [-2, 0, 2]),
        (100, 101, 5, [100, 100.5, 101]),
        (1, 1, 5, []),
        (0, math.inf, 5, []),
    ],
)
def test_nice_ticks(low, high, most, ticks):
    assert nice_ticks(low, high, most) == pytest.approx(ticks)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 8))
def test_ticks_are_inside_and_few(low, span, most):
    ticks = nice_ticks(low, low + span, most)
    slack = span * 1e-6 + abs(low) * 1e-9
    assert len(ticks) <= most
    assert all(low - slack <= tick <= low + span + slack for tick in ticks)


def test_axis_texts_have_equal_decimals():
    assert format_ticks([0.5, 1.0, 1.5]) == ["0.5", "1.0", "1.5"]
    assert format_ticks([-20.0, 0.0, 20.0]) == ["−20", "0", "20"]
    assert format_ticks([]) == []
