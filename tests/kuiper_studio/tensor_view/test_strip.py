"""Where the bars of a vector lie."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kuiper_studio.tensor_view.strip import Strip, spans


def strip_of(count, width=100.0, left=0.0):
    strip = Strip()
    strip.set_extent(left, width)
    strip.set_count(count)
    return strip


@pytest.mark.parametrize(
    ("count", "zoom", "text"),
    [(1000, 0.1, "1 : 10"), (100, 1, "1 : 1"), (4, 25, "25 : 1"), (1, 56, "56 : 1")],
)
def test_fit(count, zoom, text):
    strip = strip_of(count)
    assert strip.zoom == pytest.approx(zoom)
    assert strip.text == text
    assert strip.visible() == (0, count)


def test_zoom_keeps_the_entry_under_the_mouse():
    strip = strip_of(1000)
    before = strip.entry(30)
    strip.zoom_by(3, 30)
    assert strip.entry(30) == pytest.approx(before)
    strip.fit()
    assert strip.visible() == (0, 1000)


def test_never_smaller_than_the_plot():
    strip = strip_of(1000)
    strip.zoom_by(-5)
    assert strip.zoom == pytest.approx(0.1)


def test_pan_and_reveal():
    strip = strip_of(1000)
    strip.set_zoom(1.0, 0)
    strip.pan(1e6)
    assert strip.visible() == (0, 100)
    strip.reveal(500)
    assert strip.visible() == (401, 501)
    strip.pan(-1e6)
    assert strip.visible() == (900, 1000)


def test_entry_at():
    strip = strip_of(4, left=10.0)
    assert strip.entry_at(10) == 0
    assert strip.entry_at(109.9) == 3
    assert strip.entry_at(9.9) is None
    assert strip.entry_at(111) is None


def test_spans_of_single_entries():
    values = np.array([1.0, -2.0, np.nan, np.inf])
    found = spans(values, strip_of(4))
    assert [(s.first, s.last) for s in found] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert [(s.low, s.high) for s in found[:2]] == [(1, 1), (-2, -2)]
    assert all(math.isnan(s.low) for s in found[2:])
    assert math.isnan(found[2].special)
    assert found[3].special == math.inf
    assert found[0].special == 0


def test_spans_join_what_shares_a_pixel():
    values = np.arange(1000.0)
    values[555] = -np.inf
    found = spans(values, strip_of(1000))
    assert len(found) == 100
    assert (found[0].low, found[0].high) == (0, 9)
    assert (found[-1].low, found[-1].high) == (990, 999)
    assert [s.first for s in found if s.special] == [550]


def test_spans_do_not_flicker_while_panning():
    """Groups begin at multiples of their size, wherever the view begins."""
    values = np.arange(1000.0)
    strip = strip_of(1000)
    strip.set_zoom(0.3, 50)
    for _ in range(5):
        strip.pan(-7)
        assert all(span.first % 4 == 0 for span in spans(values, strip))
