"""The control of the range."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction

from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.range_bar import RangeBar


@pytest.fixture
def bar(shown, theme):
    """A bar over the axis 0 to 100; what it asks for is shown, as the pane does."""
    made = shown(RangeBar(theme, [QAction("Fit")]), 700, 60)
    made.set_range((0, 100), Coloring(20, 80))
    made.set_histogram(np.arange(256))
    made.range_chosen.connect(lambda low, high: made.set_range((0, 100), Coloring(low, high)))
    return made


def ends(bar):
    return bar.low_box.text(), bar.high_box.text()


def drag(qtbot, track, start, end):
    """Drag from one value of the axis to another."""
    y = 30
    qtbot.mousePress(track, Qt.MouseButton.LeftButton, pos=QPoint(round(track.x_of(start)), y))
    for share in (0.5, 1.0):
        x = track.x_of(start + (end - start) * share)
        qtbot.mouseMove(track, QPoint(round(x), y))
    qtbot.mouseRelease(track, Qt.MouseButton.LeftButton, pos=QPoint(round(x), y))


def test_shows_the_range_in_use(bar):
    assert ends(bar) == ("20", "80")
    assert bar.track.accessibleDescription() == "20 … 80"


def test_enter_commits(bar, qtbot):
    bar.low_box.selectAll()
    qtbot.keyClicks(bar.low_box, "-5.5")
    with qtbot.waitSignal(bar.range_chosen) as asked:
        qtbot.keyClick(bar.low_box, Qt.Key.Key_Return)
    assert asked.args == [-5.5, 80]
    assert ends(bar) == ("−5.5", "80")


def test_escape_reverts(bar, qtbot):
    bar.high_box.selectAll()
    qtbot.keyClicks(bar.high_box, "999")
    with qtbot.assertNotEmitted(bar.range_chosen):
        qtbot.keyClick(bar.high_box, Qt.Key.Key_Escape)
    assert ends(bar) == ("20", "80")


@pytest.mark.parametrize(
    ("end", "text"), [("low", "80"), ("low", "abc"), ("high", "20"), ("high", "nan")]
)
def test_impossible_numbers_are_refused_and_stay_to_be_mended(bar, qtbot, end, text):
    box = bar.low_box if end == "low" else bar.high_box
    box.selectAll()
    qtbot.keyClicks(box, text)
    with qtbot.assertNotEmitted(bar.range_chosen):
        qtbot.keyClick(box, Qt.Key.Key_Return)
    assert box.text() == text
    assert box.property("invalid")
    qtbot.keyClick(box, Qt.Key.Key_Backspace)
    assert not box.property("invalid")


def test_what_is_being_typed_is_not_overwritten(bar, qtbot):
    bar.low_box.setFocus()
    qtbot.waitUntil(bar.low_box.hasFocus)
    bar.low_box.selectAll()
    qtbot.keyClicks(bar.low_box, "3")
    bar.set_range((0, 100), Coloring(40, 60))
    assert ends(bar) == ("3", "60")


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        pytest.param(20, 50, (50, 80), id="low"),
        pytest.param(80, 60, (20, 60), id="high"),
        pytest.param(20, -50, (0, 80), id="low-to-the-end"),
        pytest.param(80, 500, (20, 100), id="high-to-the-end"),
        pytest.param(50, 70, (20, 80), id="beside-the-handles"),
    ],
)
def test_dragging(bar, qtbot, start, end, expected):
    drag(qtbot, bar.track, start, end)
    low, high = (float(text.replace("−", "-")) for text in ends(bar))
    assert (low, high) == pytest.approx(expected, abs=0.4)


@pytest.mark.parametrize(("start", "end"), [(20, 95), (80, 5)])
def test_handles_never_cross(bar, qtbot, start, end):
    drag(qtbot, bar.track, start, end)
    low, high = (float(text) for text in ends(bar))
    assert 0 < high - low <= 0.2


@pytest.mark.parametrize(
    ("key", "modifiers", "expected"),
    [
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, "21"),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.NoModifier, "19"),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier, "30"),
    ],
)
def test_arrow_keys_move_the_lower_end(bar, qtbot, key, modifiers, expected):
    bar.track.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(bar.track, key, modifiers)
    assert ends(bar) == (expected, "80")


def test_tab_goes_to_the_upper_end_and_on(bar, qtbot):
    bar.track.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.keyClick(bar.track, Qt.Key.Key_Tab)
    qtbot.keyClick(bar.track, Qt.Key.Key_Left)
    assert ends(bar) == ("20", "79")
    qtbot.keyClick(bar.track, Qt.Key.Key_Tab)
    assert bar.high_box.hasFocus()


def test_a_problem_is_said_and_disables(bar, theme, color_at):
    bar.set_problem("All values are NaN")
    assert not bar.low_box.isEnabled()
    assert not bar.high_box.isEnabled()
    assert ends(bar) == ("—", "—")
    image = bar.track.grab().toImage()
    colors = {image.pixelColor(x, 20).name() for x in range(10, 200)}
    assert len(colors) > 3  # hatched
    bar.set_problem("")
    bar.set_range((0, 100), Coloring(20, 80))
    assert bar.low_box.isEnabled()
    assert ends(bar) == ("20", "80")


def test_inside_and_outside_of_the_range_differ(bar, theme, color_at):
    bar.set_histogram(np.full(256, 5))
    inside = color_at(bar.track, bar.track.x_of(50), 30)
    outside = color_at(bar.track, bar.track.x_of(90), 30)
    assert inside != outside


def bar_columns(bar, theme):
    """The columns of the plot with ink of the histogram, a little above its floor."""
    image, blank = bar.track.grab().toImage(), theme.color("base").name()
    found = {x for x in range(4, image.width() - 4) if image.pixelColor(x, 33).name() != blank}
    handles = {round(bar.track.x_of(end)) + i for end in (0, 100) for i in (-1, 0)}
    return sorted(found - handles)


@pytest.mark.parametrize("filled", [(0, 255), (0,), (255,), (0, 1, 255), (100,), (100, 103)])
def test_few_values_have_visible_bars(bar, theme, filled):
    counts = np.zeros(256, int)
    counts[list(filled)] = 50
    bar.set_range((0, 100), Coloring(0, 100))
    bar.set_histogram(counts)
    columns = bar_columns(bar, theme)
    for place in filled:
        x = bar.track.x_of((place + 0.5) / 256 * 100)
        assert sum(abs(column - x) <= 7 for column in columns) >= 3
    widest = 10 * len(filled)
    assert len(columns) <= widest
    if 0 in filled:  # beside the handle, and of the colour of what is in the range
        colors = {bar.track.grab().toImage().pixelColor(x, 33).name() for x in columns}
        assert len(colors) <= 2 + len(filled)


def test_tool_tip_tells_of_a_sample(bar):
    assert bar.track.toolTip() == "Histogram of all values"
    bar.set_histogram(np.full(256, 5), 97)
    assert bar.track.toolTip() == "Histogram of a sample, one of 97 values"
    bar.set_histogram(None)
    assert bar.track.toolTip() == ""


def test_histogram_can_be_hidden(bar, color_at):
    bar.set_histogram(np.full(256, 5))
    before = color_at(bar.track, bar.track.x_of(50), 30)
    bar.track.set_histogram_shown(shown=False)
    after = color_at(bar.track, bar.track.x_of(50), 30)
    assert before != after
    assert abs(after.green() - Coloring(20, 80).color_of(50).green()) < 12


def test_extreme_axes_are_painted(bar):
    for low, high in ((-1.7e308, 1.7e308), (0, 1e-299), (1e15, 1e15 + 1)):
        bar.set_range((low, high), Coloring(low, high))
        bar.track.grab()
