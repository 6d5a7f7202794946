"""Vectors as bars, and the best classes of one."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.top_list import TopList, are_probabilities, best_scores
from kuiper_studio.tensor_view.vector_plot import VectorPlot

GREY = Coloring(-4, 4, "grey")


@pytest.fixture
def plot(shown, theme):
    made = shown(VectorPlot(theme), 500, 280)
    values = np.array([1, -2, 3, -4], np.float32)
    made.set_vector(values, (-4, 3))
    made.set_coloring(GREY)
    return made


def middle(plot, entry):
    return round(plot.strip.x_of(entry + 0.5))


def rows_of(plot, entry, color):
    """Heights at which a bar's colour is found, a little left of its middle."""
    image = plot.grab().toImage()
    x = middle(plot, entry) - 8
    return [y for y in range(image.height()) if image.pixelColor(x, y).name() == color]


def test_bars_stand_on_zero_in_their_colours(plot):
    heights = {}
    for entry, value in enumerate((1, -2, 3, -4)):
        rows = rows_of(plot, entry, GREY.color_of(value).name())
        assert rows == list(range(rows[0], rows[-1] + 1)) or value == 1
        heights[value] = len(rows)
    assert heights[3] == pytest.approx(3 * heights[1], abs=6)
    assert heights[-4] == pytest.approx(2 * heights[-2], abs=6)


def test_click_picks(plot, qtbot):
    with qtbot.waitSignal(plot.picked) as picked:
        qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(middle(plot, 2), 100))
    assert picked.args == [0, 2]


def test_hover_tells_the_entry_once(plot, qtbot):
    with qtbot.waitSignal(plot.hovered) as hovered:
        qtbot.mouseMove(plot, QPoint(middle(plot, 1), 100))
    assert hovered.args == [(0, 1)]
    with qtbot.assertNotEmitted(plot.hovered):
        qtbot.mouseMove(plot, QPoint(middle(plot, 1) + 3, 120))


@pytest.mark.parametrize(
    ("pick", "key", "expected"),
    [
        (None, Qt.Key.Key_Right, 2),
        ((0, 1), Qt.Key.Key_Right, 2),
        ((0, 0), Qt.Key.Key_Left, 0),
        ((0, 3), Qt.Key.Key_Right, 3),
    ],
)
def test_arrows_move_the_pick(plot, qtbot, pick, key, expected):
    plot.set_pick(pick)
    with qtbot.waitSignal(plot.picked) as picked:
        qtbot.keyClick(plot, key)
    assert picked.args == [0, expected]


def test_special_entries_are_full_bars(plot):
    plot.set_vector(np.array([1, np.nan, np.inf, -np.inf], np.float32), (1, 1))
    assert len(rows_of(plot, 1, "#ff00c8")) > 100
    assert len(rows_of(plot, 2, "#ff8a00")) > 100
    assert len(rows_of(plot, 3, "#0091ff")) > 100


def test_vectors_without_any_finite_value_are_painted(plot):
    plot.set_vector(np.full(5, np.nan, np.float32), None)
    plot.grab()


def test_vectors_of_zeros_are_painted(plot):
    plot.set_vector(np.zeros(5, np.float32), (0, 0))
    plot.grab()


def test_long_vectors_are_joined(plot):
    values = np.zeros(1_000_000, np.float32)
    values[123_456] = 3
    plot.set_vector(values, (0, 3))
    assert plot.strip.zoom < 0.001
    x = round(plot.strip.x_of(123_456))
    image = plot.grab().toImage()
    tall = [
        column
        for column in range(60, 400)
        if image.pixelColor(column, 60).name() == GREY.color_of(3).name()
    ]
    assert tall
    assert abs(tall[0] - x) <= 1


def test_zoom_commands(plot, qtbot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    with qtbot.waitSignal(plot.zoom_changed):
        plot.zoom_actual()
    assert plot.zoom_text == "1 : 1"
    plot.zoom_by(2)
    assert plot.zoom_text == "2.25 : 1"
    plot.zoom_fit()
    assert plot.strip.visible() == (0, 1000)


# The best classes

LABELS = ("cat", "dog", "bird", "fish", "ant", "bee")


def test_best_scores_are_shown_as_they_are():
    values = np.array([1.5, -2, 8.25, 0, np.nan, 3], np.float32)
    found = best_scores(values, LABELS)
    assert [(s.entry, s.name, s.text) for s in found] == [
        (2, "bird", "8.25"),
        (5, "bee", "3"),
        (0, "cat", "1.5"),
        (3, "fish", "0"),
        (1, "dog", "−2"),
    ]
    assert [s.share for s in found] == pytest.approx([1, 5 / 10.25, 3.5 / 10.25, 2 / 10.25, 0])


def test_probabilities_are_percentages():
    values = np.array([0.05, 0.9, 0.05, 0, 0, 0])
    assert are_probabilities(values)
    found = best_scores(values, LABELS, 2)
    assert [(s.name, s.text, s.share) for s in found] == [
        ("dog", "90.0 %", pytest.approx(0.9)),
        ("cat", "5.0 %", pytest.approx(0.05)),
    ]


@pytest.mark.parametrize("values", [[0.5, 0.6], [1.5, -0.5], [np.nan, 1]])
def test_other_scores_are_no_probabilities(values):
    assert not are_probabilities(np.array(values))


def test_no_finite_score():
    assert best_scores(np.array([np.nan]), ("cat",)) == []


@pytest.fixture
def top(shown, theme):
    made = shown(TopList(theme), 216, 260)
    made.set_scores(best_scores(np.arange(6.0), LABELS), "Top 5")
    return made


def test_click_on_a_class_chooses_it(top, qtbot):
    with qtbot.waitSignal(top.chosen) as chosen:
        at = top.row_rect(1).center().toPoint()
        qtbot.mouseClick(top, Qt.MouseButton.LeftButton, pos=at)
    assert chosen.args == [4]
    assert top.scores[1].name == "ant"


def test_arrows_walk_through_the_classes(top, qtbot):
    top.set_pick(4)
    with qtbot.waitSignal(top.chosen) as chosen:
        qtbot.keyClick(top, Qt.Key.Key_Down)
    assert chosen.args == [3]
    assert "bee 5" in top.accessibleDescription()
