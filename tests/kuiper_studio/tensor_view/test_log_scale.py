"""Colours on a logarithmic scale."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PySide6.QtGui import QAction

from engine.pictures import lookup_table
from kuiper_studio.tensor_view.color_bar import _numbers
from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.log_scale import from_log, to_log
from kuiper_studio.tensor_view.pane import TensorPane

NAN, INF = math.nan, math.inf


def shares(values, low, high):
    """Where values lie between the ends, by a loop and the definition."""
    if low > 0:
        return [math.log(v / low) / math.log(high / low) for v in values]
    linear = max(abs(low), abs(high)) / 1000
    f = [math.copysign(math.log1p(abs(v) / linear), v) for v in (*values, low, high)]
    return [(each - f[-2]) / (f[-1] - f[-2]) for each in f[:-2]]


@pytest.mark.parametrize(
    ("low", "high", "values"),
    [
        pytest.param(1e-6, 1.0, [1e-6, 1e-3, 0.1, 1.0], id="log"),
        pytest.param(0.0, 10.0, [0.0, 1e-4, 0.01, 1.0, 10.0], id="zero"),
        pytest.param(-5.0, 2.0, [-5.0, -0.01, 0.0, 0.003, 2.0], id="signed"),
        pytest.param(-9.0, -1.0, [-9.0, -3.0, -1.0], id="negative"),
        pytest.param(0.0, 1e-320, [0.0, 1e-320], id="subnormal"),
        pytest.param(-1e308, 1.7e308, [-1e308, 0.0, 1.7e308], id="large"),
    ],
)
def test_places_on_the_scale(low, high, values):
    moved, first, last = to_log(np.array(values), low, high)
    if high < 1e-300:  # everything is linear there, and rounds
        assert moved[0] == first < moved[-1] == last
        return
    found = ((moved - first) / (last - first)).tolist()
    assert found == pytest.approx(shares(values, low, high), abs=1e-12)
    for share, value in zip(found, values, strict=True):
        assert from_log(share, low, high) == pytest.approx(
            value, rel=1e-9, abs=1e-12 * max(abs(low), abs(high))
        )


def test_what_is_outside_or_special_stays_so():
    moved, first, last = to_log(np.array([-1, 0, 5, NAN, INF, -INF]), 1.0, 4.0)
    np.testing.assert_array_equal(moved, [first, first, last, NAN, INF, -INF])


def test_each_channel_has_its_own_scale():
    values = np.array([[[1.0, 10**0.8, 100.0]], [[0.01, 0.01 * 10**0.8, 1.0]]])
    low, high = (np.array(ends)[:, None, None] for ends in ([1.0, 0.01], [100.0, 1.0]))
    colors = Coloring(is_log=True).paint_between(values, low, high)
    # Both go over the same share of the scale: 0.4 * 256 is 102.4.
    np.testing.assert_array_equal(colors[0], colors[1])
    np.testing.assert_array_equal(colors[0, 0], lookup_table("viridis")[[0, 102, 255]])


def test_the_bar_has_the_values_of_its_places():
    assert _numbers(Coloring(1e-4, 1.0, is_log=True), 4) == [
        "0.0001",
        "0.001",
        "0.01",
        "0.1",
        "1",
    ]
    assert _numbers(Coloring(-1.0, 1.0, is_log=True), 2) == ["−1", "0", "1"]
    assert _numbers(Coloring(0.0, 1.0), 2) == ["0", "0.5", "1"]


def test_it_is_chosen_and_remembered_for_each_operand(qtbot, theme):
    pane = TensorPane(theme)
    qtbot.addWidget(pane)
    pane.resize(700, 400)
    pane.show()
    small = np.array([[[0.001, 0.01], [0.1, 1.0]]], np.float32)
    pane.set_value("a", small)
    action = next(
        each for each in pane.findChildren(QAction) if each.objectName() == "tensor.log"
    )

    def color():
        return pane.colors.coloring().color_of(0.1).name()

    linear = color()
    action.trigger()
    # 0.1 is two thirds of the three decades; 256 * 2 / 3 is 170.67
    red, green, blue, _ = lookup_table("viridis")[170].tolist()
    assert color() == f"#{red:02x}{green:02x}{blue:02x}" != linear
    pane.set_value("b", small)
    assert not action.isChecked()
    assert color() == linear
    pane.set_value("a", small)
    assert action.isChecked()
    assert color() != linear
