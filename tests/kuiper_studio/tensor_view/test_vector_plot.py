"""Vectors as bars, and the best classes of one."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication

from engine.meanings.scores import best_scores
from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.top_list import TopList
from kuiper_studio.tensor_view.vector_plot import VectorPlot
from kuiper_studio.theme import Scheme

GREY = Coloring(-4, 4, "grey")
NAN, PINF, NINF = "#ff00c8", "#ff8a00", "#0091ff"


@pytest.fixture
def plot(shown, theme):
    made = shown(VectorPlot(theme), 500, 280)
    values = np.array([1, -2, 3, -4], np.float32)
    made.set_vector(values, (-4, 3))
    made.set_coloring(GREY)
    return made


def middle(plot, entry):
    return round(plot.cell_area(0, entry).center().x())


def rows_of(plot, entry, color):
    """Heights at which a bar's colour is found, a little left of its middle."""
    image = plot.grab().toImage()
    x = middle(plot, entry) - 8
    return [y for y in range(image.height()) if image.pixelColor(x, y).name() == color]


def columns_of(plot, row, color):
    """Places at which a colour is found at a height."""
    image = plot.grab().toImage()
    return [x for x in range(image.width()) if image.pixelColor(x, row).name() == color]


def pixels_of(plot, color, area=None):
    """How many pixels of a part of the plot have a colour."""
    picture = plot.grab(area.toRect()) if area is not None else plot.grab()
    image = picture.toImage()
    return sum(
        image.pixelColor(x, y).name() == QColor(color).name()
        for x in range(image.width())
        for y in range(image.height())
    )


def is_written(plot, entry):
    """Whether there is anything over the foot of a small bar."""
    column = plot.cell_area(0, entry)
    foot = column.adjusted(4, column.height() - 14, -4, -4).toRect()
    image = plot.grab(foot).toImage()
    grounds = {image.pixelColor(x, y).name() for x in range(foot.width()) for y in range(10)}
    return grounds != {plot.theme.color("base").name()}


def turn_wheel(plot, x, notches, modifiers=Qt.KeyboardModifier.NoModifier):
    event = QWheelEvent(
        QPointF(x, 100),
        plot.mapToGlobal(QPointF(x, 100)),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(plot, event)


# Bars


def test_bars_stand_on_zero_in_their_colours(plot):
    heights = {}
    for entry, value in enumerate((1, -2, 3, -4)):
        rows = rows_of(plot, entry, GREY.color_of(value).name())
        assert rows == list(range(rows[0], rows[-1] + 1)) or value == 1
        heights[value] = len(rows)
    assert heights[3] == pytest.approx(3 * heights[1], abs=6)
    assert heights[-4] == pytest.approx(2 * heights[-2], abs=6)


def test_special_entries_are_full_bars(plot):
    plot.set_vector(np.array([1, np.nan, np.inf, -np.inf], np.float32), (1, 1))
    assert len(rows_of(plot, 1, NAN)) > 100
    assert len(rows_of(plot, 2, PINF)) > 100
    assert len(rows_of(plot, 3, NINF)) > 100


def test_special_entries_are_marked(plot):
    plot.set_vector(np.array([1, np.nan, np.inf], np.float32), (1, 1))
    for entry, color in ((1, NAN), (2, PINF)):
        inside = plot.cell_area(0, entry).adjusted(4, 4, -4, -4)
        marked = inside.width() * inside.height() - pixels_of(plot, color, inside)
        assert 20 < marked < 200


def test_values_out_of_the_range_are_hatched(plot):
    bar = plot.cell_area(0, 2).adjusted(2, 0, -2, 0)
    plain = GREY.color_of(3).name()
    before = pixels_of(plot, plain, bar)
    plot.set_coloring(Coloring(-4, 2, "grey", mark_clipped=True))
    white = Coloring(-4, 2, "grey").color_of(3).name()
    assert before / 3 < pixels_of(plot, white, bar) < before * 0.95


@pytest.mark.parametrize(
    ("values", "data_range"),
    [
        (np.full(5, np.nan, np.float32), None),
        (np.zeros(5, np.float32), (0, 0)),
        (np.array([7], np.int64), (7, 7)),
        (np.array([1e308, -1e308]), (-1e308, 1e308)),
        (np.array([5e-324, 0]), (0, 5e-324)),
        (np.full(100_000, np.nan, np.float32), None),
        (np.array([1e308, -1e308] * 50_000), (-1e308, 1e308)),
    ],
    ids=["nan", "zeros", "one", "huge", "tiny", "long nan", "long huge"],
)
def test_extreme_vectors_are_painted(plot, values, data_range):
    low, high = data_range or (0, 1)
    plot.set_coloring(Coloring(low, high if high > low else 1, mark_clipped=True))
    plot.set_vector(values, data_range)
    plot.grab()
    assert plot.visible == (0, len(values))


# Values above bars


def test_values_are_written_where_they_fit(shown, theme):
    """The outputs of a softmax: the short ones have room above their bars, others have not."""
    plot = shown(VectorPlot(theme), 500, 280)
    values = np.array([0.9, 2.4312e-9, 0, 1.23e-12, 0, 0, 0, 0, 0, 0.1], np.float32)
    plot.set_coloring(Coloring(0, 1))
    plot.set_vector(values, (0, 0.9))
    assert plot.cell_area(0, 0).width() < 40
    written = [is_written(plot, entry) for entry in range(1, 9)]
    assert written == [False, True, False, True, True, True, True, True]
    plot.zoom_by(2, plot.cell_area(0, 1).left())
    assert is_written(plot, 1)


# Long vectors


def test_entries_that_share_a_pixel_show_the_furthest(plot):
    values = np.full(2000, 0.25, np.float32)
    values[1000] = -4
    plot.set_vector(values, (-4, 0.25))
    row = round(plot.cell_area(0, 0).bottom()) - 30
    found = columns_of(plot, row, GREY.color_of(-4).name())
    assert len(found) == 1
    assert abs(found[0] - plot.cell_area(0, 1000).left()) <= 1


@pytest.mark.parametrize("spike", [0, 123_456, 999_999])
def test_no_entry_of_a_long_vector_is_lost(plot, spike):
    values = np.zeros(1_000_000, np.float32)
    values[spike] = 3
    plot.set_vector(values, (0, 3))
    image = plot.grab().toImage()
    area = plot.cell_area(0, 0)
    ground = plot.theme.color("base").name()
    row = round(area.top() + area.height() / 2) + 5
    right = round(plot.cell_area(0, 999_999).right()) + 1
    tall = [
        x for x in range(round(area.left()), right) if image.pixelColor(x, row).name() != ground
    ]
    assert 1 <= len(tall) <= 3
    assert abs(tall[0] - plot.cell_area(0, spike).left()) <= 2


def test_long_vectors_have_the_colours_of_their_heights(plot):
    plot.set_coloring(Coloring(0, 1, "grey"))
    plot.set_vector(np.ones(100_000, np.float32), (0, 1))
    image = plot.grab().toImage()
    area = plot.cell_area(0, 50_000)
    for share in (0.1, 0.5, 0.9):
        y = round(area.bottom() - share * area.height())
        grey = image.pixelColor(round(area.left()), y).red()
        assert grey == pytest.approx(255 * share, abs=4)


def test_special_entries_of_long_vectors_are_columns(plot):
    values = np.zeros(1_000_000, np.float32)
    values[[250_000, 500_000, 750_000]] = np.nan, np.inf, -np.inf
    plot.set_vector(values, (0, 0))
    for entry, color in ((250_000, NAN), (500_000, PINF), (750_000, NINF)):
        found = columns_of(plot, 90, color)
        assert len(found) == 1
        assert abs(found[0] - plot.cell_area(0, entry).left()) <= 1


def test_long_vectors_are_hatched_out_of_the_range(plot):
    plot.set_coloring(Coloring(0, 0.5, "grey", mark_clipped=True))
    plot.set_vector(np.ones(100_000, np.float32), (0, 1))
    area = plot.cell_area(0, 0).toRect()
    image = plot.grab().toImage()

    def inks(share):
        y = round(area.bottom() - share * area.height())
        return {image.pixelColor(x, y).name() for x in range(100, 300)}

    assert len(inks(0.8)) > 1
    assert len(inks(0.3)) == 1


# Picking


def test_click_picks(plot, qtbot):
    with qtbot.waitSignal(plot.picked) as picked:
        qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(middle(plot, 2), 100))
    assert picked.args == [0, 2]


def test_clicks_beside_the_bars_pick_nothing(plot, qtbot):
    with qtbot.assertNotEmitted(plot.picked):
        qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(20, 100))
        beyond = round(plot.cell_area(0, 4).center().x())
        qtbot.mouseClick(plot, Qt.MouseButton.LeftButton, pos=QPoint(beyond, 100))


def test_right_click_picks_and_asks_for_the_views_own_menu(plot, qtbot):
    at = QPoint(middle(plot, 2), 100)
    with qtbot.waitSignal(plot.picked):
        qtbot.mouseClick(plot, Qt.MouseButton.RightButton, pos=at)
    assert QApplication.activePopupWidget() is None


def test_hover_tells_the_entry_once(plot, qtbot):
    with qtbot.waitSignal(plot.hovered) as hovered:
        qtbot.mouseMove(plot, QPoint(middle(plot, 1), 100))
    assert hovered.args == [(0, 1)]
    with qtbot.assertNotEmitted(plot.hovered):
        qtbot.mouseMove(plot, QPoint(middle(plot, 1) + 3, 120))


def test_hovered_entry_is_lit_until_the_mouse_leaves(plot, qtbot):
    dark = plot.grab().toImage()
    qtbot.mouseMove(plot, QPoint(middle(plot, 1), 100))
    lit = plot.grab().toImage()
    at = middle(plot, 1), round(plot.cell_area(0, 1).top()) + 10
    assert lit.pixelColor(*at) != dark.pixelColor(*at)
    with qtbot.waitSignal(plot.hovered) as hovered:
        QApplication.sendEvent(plot, QEvent(QEvent.Type.Leave))
    assert hovered.args == [None]
    assert plot.grab().toImage() == dark


def test_pick_is_marked(plot, theme):
    plot.set_pick((0, 1))
    image = plot.grab().toImage()
    focus = theme.color("focus")
    arrow = image.pixelColor(middle(plot, 1), round(plot.cell_area(0, 1).top()) - 8)
    assert arrow == focus
    plot.set_pick(None)
    assert pixels_of(plot, focus) == 0


def test_the_text_of_the_pick_covers_no_number(plot, theme):
    """The highest bar has its number where the arrow and its text are."""
    plot.set_vector(np.array([1, -2, 3.125, -4], np.float32), (-4, 3.125))
    column = plot.cell_area(0, 2)
    above = QRectF(column.left(), column.top() - 16, column.width() / 2 - 6, 14).toRect()

    def is_blank():
        image = plot.grab(above).toImage()
        found = {
            image.pixelColor(x, y).name()
            for x in range(image.width())
            for y in range(image.height())
        }
        return found == {theme.color("base").name()}

    assert not is_blank()
    plot.set_pick((0, 2))
    assert is_blank()
    plot.set_pick((0, 0))
    assert not is_blank()


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


def test_arrows_keep_the_pick_in_view(plot, qtbot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    plot.zoom_actual()
    plot.zoom_by(4)
    first, last = plot.visible
    plot.set_pick((0, last - 1))
    qtbot.keyClick(plot, Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier)
    assert plot.visible == pytest.approx((first + 8, last + 8), abs=1)


def numbers_on_the_left(plot):
    """How many numbers the axis has: runs of rows that have anything in them."""
    image = plot.grab(QRectF(0, 0, 46, plot.height()).toRect()).toImage()
    base = plot.theme.color("base").name()
    written = [
        any(image.pixelColor(x, y).name() != base for x in range(image.width()))
        for y in range(image.height())
    ]
    return sum(now and not before for before, now in pairwise([False, *written]))


@pytest.mark.parametrize("span", [(-3.2, 4.1), (-0.47, 0.33), (-900, 900)])
@pytest.mark.parametrize("height", [90, 110, 140])
def test_a_low_chart_has_a_number_beside_zero(plot, span, height):
    plot.resize(500, height)
    plot.set_vector(np.array([*span, 0, 0], np.float32), span)
    assert numbers_on_the_left(plot) >= 2


# Zooming


@pytest.mark.parametrize("pick", [3, 940])
def test_the_keys_zoom_about_the_pick(plot, pick):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    plot.set_pick((0, pick))
    before = middle(plot, pick)
    plot.zoom_actual()
    assert middle(plot, pick) == pytest.approx(before, abs=1)
    plot.zoom_by(3)
    assert middle(plot, pick) == pytest.approx(before, abs=1)


def test_the_keys_zoom_about_the_middle_where_the_pick_is_out_of_view(plot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    plot.zoom_actual()
    plot.set_pick((0, 2))
    first, last = plot.visible
    plot.zoom_by(2)
    assert sum(plot.visible) == pytest.approx(first + last, abs=2)


@pytest.mark.parametrize(
    ("count", "text"), [(760, "1 : 2"), (380, "1 : 1"), (10, "38 : 1"), (1, "56 : 1")]
)
def test_all_entries_are_fitted(plot, count, text):
    plot.set_vector(np.zeros(count, np.float32), (0, 0))
    assert plot.zoom_text == text
    assert plot.visible == (0, count)


def test_zoom_commands(plot, qtbot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    with qtbot.waitSignal(plot.zoom_changed):
        plot.zoom_actual()
    assert plot.zoom_text == "1 : 1"
    plot.zoom_by(2)
    assert plot.zoom_text == "2.25 : 1"
    with qtbot.waitSignal(plot.zoom_changed):
        plot.zoom_fit()
    assert plot.visible == (0, 1000)


def test_fitted_vectors_follow_the_size(plot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    before = plot.cell_area(0, 1).width()
    plot.resize(800, 280)
    assert plot.cell_area(0, 1).width() > 1.5 * before
    assert plot.visible == (0, 1000)


def test_wheel_zooms_about_the_mouse(plot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    place = plot.cell_area(0, 300)
    turn_wheel(plot, place.left(), 5)
    assert plot.cell_area(0, 300).left() == pytest.approx(place.left(), abs=0.01)
    assert plot.cell_area(0, 300).width() == pytest.approx(place.width() * 1.5**5)
    turn_wheel(plot, place.left(), -50)
    assert plot.visible == (0, 1000)


def test_bars_have_a_greatest_width(plot):
    plot.zoom_by(50)
    assert plot.zoom_text == "96 : 1"


def test_dragging_moves_and_does_not_pick(plot, qtbot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    plot.zoom_by(6)
    before = plot.cell_area(0, 500).left()
    with qtbot.assertNotEmitted(plot.picked):
        qtbot.mousePress(plot, Qt.MouseButton.LeftButton, pos=QPoint(200, 100))
        qtbot.mouseMove(plot, QPoint(250, 100))
        qtbot.mouseRelease(plot, Qt.MouseButton.LeftButton, pos=QPoint(250, 100))
    assert plot.cell_area(0, 500).left() == pytest.approx(before + 50, abs=0.01)


def test_nothing_moves_beyond_the_ends(plot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    plot.zoom_by(6)
    for _ in range(200):
        turn_wheel(plot, 200, 5, Qt.KeyboardModifier.ShiftModifier)
    assert plot.visible[0] == 0
    for _ in range(200):
        turn_wheel(plot, 200, -5, Qt.KeyboardModifier.ShiftModifier)
    assert plot.visible[1] == 1000


def test_another_length_is_fitted_the_same_one_is_not(plot):
    plot.set_vector(np.zeros(1000, np.float32), (0, 0))
    plot.zoom_by(4)
    kept = plot.visible
    plot.set_vector(np.ones(1000, np.float32), (0, 1))
    assert plot.visible == kept
    plot.set_vector(np.ones(900, np.float32), (0, 1))
    assert plot.visible == (0, 900)


# Look


def test_follows_the_theme(plot, theme):
    for scheme in (Scheme.LIGHT, Scheme.DARK):
        theme.set_scheme(scheme)
        image = plot.grab().toImage()
        assert image.pixelColor(3, 3) == theme.color("base")
        assert pixels_of(plot, theme.color("line")) > 300
        assert pixels_of(plot, theme.color("ctl")) > 300


def test_focus_by_keyboard_is_shown(plot, qtbot):
    plot.clearFocus()
    plot.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(plot.hasFocus)
    image = plot.grab().toImage()
    assert image.pixelColor(1, 100) == plot.theme.color("focus")
    assert plot.accessibleName() == "Vector as bars"


# pyqtgraph


def test_importing_the_window_leaves_pyqtgraph_alone():
    code = "import sys, kuiper_studio.main_window; sys.exit('pyqtgraph' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_open_model_has_a_chart_before_its_first_vector(
    open_window, residual, qtbot, monkeypatch
):
    """The first vector would wait for what draws it, and for what that imports."""
    monkeypatch.setattr("kuiper_studio.tensor_view.tensor_view._WARM_MS", 1)
    plot = open_window(residual).tensor_view.pane.vector
    qtbot.waitUntil(lambda: plot.is_ready)
    assert not plot.isVisible()
    assert "numpy.ma" in sys.modules


def test_a_plot_without_a_vector_has_nothing_to_zoom(shown, theme, qtbot):
    plot = shown(VectorPlot(theme), 300, 200)
    assert plot.zoom_text == "1 : 1"
    plot.set_coloring(GREY)
    plot.set_pick((0, 1))
    plot.grab()


def test_nothing_is_left_of_a_deleted_plot(theme, qtbot):
    from pyqtgraph import ViewBox

    gc.collect()  # what tests before left in cycles
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    before = len(QApplication.allWidgets()), len(ViewBox.AllViews)
    plot = VectorPlot(theme)
    plot.show()
    plot.set_vector(np.arange(5.0), (0, 4))
    plot.grab()
    with qtbot.waitSignal(plot.destroyed):
        plot.deleteLater()
    del plot
    gc.collect()
    assert (len(QApplication.allWidgets()), len(ViewBox.AllViews)) == before


def test_a_process_with_a_plot_ends_quietly():
    code = """
import numpy as np
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from kuiper_studio.tensor_view.vector_plot import VectorPlot
from kuiper_studio.theme import Theme
app = QApplication([])
theme = Theme()
plots = [VectorPlot(theme) for _ in range(3)]
for plot, count in zip(plots, (5, 5000, 500_000)):
    plot.show()
    plot.set_vector(np.arange(count), (0, count - 1))
    plot.grab()
plots[0].deleteLater()
QTimer.singleShot(0, app.quit)
app.exec()
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stderr.replace("This plugin does not support", "")) == (0, "")


# The best classes

LABELS = ("cat", "dog", "bird", "fish", "ant", "bee")


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
