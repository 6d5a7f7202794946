"""Ours, the reference's tensor and the difference beside each other, of one operand."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QLabel

from kuiper_studio.tensor_view import Side
from kuiper_studio.tensor_view.choice import Scope

SHAPE = (1, 2, 4, 5)
INPUT = np.arange(40, dtype=np.float32).reshape(SHAPE) + 1
# Ours is three times the input. In the reference one element of channel 1 is 30 less, another
# one 15 more.
THEIRS = 3 * INPUT
THEIRS[0, 1, 2, 3] -= 30
THEIRS[0, 1, 0, 0] += 15

PICTURES = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,5)f32",
    "pnnx.Expression times 1 1 0 1 expr=mul(@0,3) #0=(1,2,4,5)f32 #1=(1,2,4,5)f32",
    "pnnx.Output out 1 0 1 #1=(1,2,4,5)f32",
)
VECTOR = (
    "pnnx.Input in 0 1 0 #0=(6)f32",
    "pnnx.Expression times 1 1 0 1 expr=mul(@0,3) #0=(6)f32 #1=(6)f32",
    "pnnx.Output out 1 0 1 #1=(6)f32",
)


@pytest.fixture
def compared(qtbot, open_window, make_pair, tmp_path, wait_for_turns):
    """A function that opens a network in a window, runs it and compares it."""

    def make(lines, fed, theirs):
        path = tmp_path / "reference.npz"
        np.savez(path, **{"0": fed, "1": theirs})
        window = open_window(make_pair(*lines), [fed])
        session = window.session
        assert session.wait_idle(10)
        session.resume()
        assert session.wait_idle(10)
        session.studies.compare(path)
        assert session.wait_idle(20)
        wait_for_turns()
        body = window.tensor_view.pane.body
        canvases = body.planes if len(fed.shape) > 1 else body.vectors
        if window.tensor_view.sides.side("1") is Side.ALL:
            qtbot.waitUntil(canvases.difference.isVisible)  # the reference's is fetched
        return window

    return make


@pytest.fixture
def pictures(compared):
    return compared(PICTURES, INPUT, THEIRS)


def shown_color(canvas, row, column):
    x, y, width, height = canvas.port.cell_rect(row, column)
    return canvas.grab().toImage().pixelColor(round(x + width / 2), round(y + height / 2))


def middle(canvas, row, column):
    x, y, width, height = canvas.port.cell_rect(row, column)
    return QPoint(round(x + width / 2), round(y + height / 2))


def test_three_pictures_of_one_size(pictures):
    planes = pictures.tensor_view.pane.body.planes
    assert all(canvas.isVisible() for canvas in planes.canvases)
    assert len({canvas.port.view[2:] for canvas in planes.canvases}) == 1
    assert not pictures.tensor_view.pane.mosaic.isVisible()
    assert pictures.tensor_view.pane.model.channel == 1  # where the worst element is


def test_colours(pictures):
    planes = pictures.tensor_view.pane.body.planes
    # Where both are equal, both have one colour, and the difference is white.
    assert shown_color(planes.ours, 3, 0) == shown_color(planes.theirs, 3, 0)
    assert shown_color(planes.difference, 3, 0).lightness() > 240
    # Ours is 30 more, the largest difference: the red end. 15 less is a lighter blue.
    most, least = shown_color(planes.difference, 2, 3), shown_color(planes.difference, 0, 0)
    assert most.red() > 90 > 60 > most.blue()
    assert least.blue() > least.red() + 40
    assert shown_color(planes.ours, 2, 3) != shown_color(planes.theirs, 2, 3)


def test_one_zoom(pictures):
    planes = pictures.tensor_view.pane.body.planes
    before = planes.ours.port.zoom
    planes.theirs.zoom_by(3)
    zooms = [canvas.port.zoom for canvas in planes.canvases]
    assert zooms == [zooms[0]] * 3
    assert zooms[0] > before
    edges = [canvas.port.cell_rect(0, 0)[0] - canvas.port.view[0] for canvas in planes.canvases]
    assert edges == pytest.approx([edges[0]] * 3)
    pictures.tensor_view.pane.actions_table["tensor.fit"].trigger()
    assert [canvas.port.zoom for canvas in planes.canvases] == [before] * 3


def test_one_cursor(qtbot, pictures):
    planes = pictures.tensor_view.pane.body.planes
    plain = shown_color(planes.ours, 2, 3), planes.ours.grab().toImage()
    qtbot.mouseMove(planes.difference, middle(planes.difference, 1, 1))
    qtbot.mouseMove(planes.difference, middle(planes.difference, 2, 3))
    text = pictures.status_bar.findChild(object, "statusHovered").text()
    # Three times element 34 of the input, which counts from 1.
    assert text == "[0, 1, 2, 3] ours 102.0, reference 72.0, difference +30"
    assert planes.ours.grab().toImage() != plain[1]  # the element is framed there too
    assert shown_color(planes.ours, 2, 3) == plain[0]


def test_one_pick(qtbot, pictures):
    planes = pictures.tensor_view.pane.body.planes
    before = planes.ours.grab().toImage()
    qtbot.mouseClick(planes.theirs, Qt.MouseButton.LeftButton, pos=middle(planes.theirs, 0, 0))
    element = pictures.tensor_view.picked
    assert (element.index, element.value) == ((0, 1, 0, 0), 63)
    assert "reference 78.0, difference -15" in str(element)
    assert planes.ours.grab().toImage() != before


def test_how_far_they_are_apart(pictures):
    panel = pictures.tensor_view.pane.statistics
    shown = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
    start = shown.index("Difference")
    facts = dict(zip(shown[start + 1 :: 2], shown[start + 2 :: 2], strict=False))
    # Two of 40 elements differ, by 30 and by 15.
    assert float(facts["max"]) == 30
    assert float(facts["MAE"]) == 45 / 40
    assert float(facts["RMSE"]) == pytest.approx((1125 / 40) ** 0.5, rel=1e-3)
    assert facts["within 1‰"] == "95.0 %"
    assert facts["NaN / Inf"] == "agree"
    pictures.actions_by_id["analyse.clear"].trigger()
    shown = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
    assert "Difference" not in shown
    assert "Tensor" in shown


def bars_of(strip):
    """Return the height of each bar of the strip by its colour, as it is painted."""
    image, theme = strip.grab().toImage(), strip.theme
    bars = []
    for bar in range(len(strip.order)):
        x = strip.bar_rect(bar).center().x()
        column = [image.pixelColor(x, y).name() for y in range(strip.height())]
        colors = {token: theme.color(token).name() for token in ("div", "ctl", "nan")}
        bars.append({token: column.count(name) for token, name in colors.items()})
    return bars


@pytest.fixture
def strip(qtbot, compared):
    """The strip of a tensor: 0.5 of channel 0 is rounding, and two others differ."""
    fed = np.arange(80, dtype=np.float32).reshape(1, 4, 4, 5) + 10_000
    theirs = 3 * fed
    theirs[0, 0, 1, 1] += 0.5  # less than 1e-4 of 30 000
    theirs[0, 1, 2, 3] -= 30
    theirs[0, 3, 0, 0] += 60
    lines = [line.replace("1,2,4,5", "1,4,4,5") for line in PICTURES]
    window = compared(lines, fed, theirs)
    found = window.tensor_view.pane.tools.errors
    qtbot.waitUntil(lambda: len(found.order) == 4)
    return found


def test_a_bar_for_each_channel(strip):
    bars = bars_of(strip)
    full = bars[3]["div"]
    assert full > 10
    assert bars[1]["div"] == pytest.approx(full / 2, abs=1)
    assert (bars[0]["div"], bars[0]["ctl"]) == (0, 1)  # visible, but in the colour of equality
    assert bars[2] == {"div": 0, "ctl": 0, "nan": 0}
    assert strip.describe(1) == ("Channel 1: largest difference 30, 1 of 20 elements differ")


def test_a_click_goes_to_the_channel(qtbot, strip):
    window = strip.window()
    pane = window.tensor_view.pane
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip.bar_rect(1).center())
    assert pane.model.channel == 1
    assert pane.tools.channel.box.value() == 1
    panel = pane.statistics
    shown = [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]
    facts = dict(zip(shown[1:9:2], shown[2:9:2], strict=True))
    assert shown[0] == "Channel 1"
    assert facts.keys() == {"max", "MAE", "RMSE", "differ"}
    assert (float(facts["max"]), float(facts["MAE"])) == (30, 30 / 20)
    assert float(facts["RMSE"]) == pytest.approx(30 / 20**0.5, rel=1e-3)
    assert facts["differ"] == "1 / 20"
    qtbot.keyClick(strip, Qt.Key.Key_Right)
    assert pane.model.channel == 2


def test_channels_by_difference(qtbot, strip):
    pane = strip.window().tensor_view.pane
    pane.actions_table["tensor.sortErrors"].trigger()
    assert strip.order == (3, 1, 0, 2)
    heights = [sum(bar.values()) for bar in bars_of(strip)]
    assert heights == sorted(heights, reverse=True)
    qtbot.mouseClick(strip, Qt.MouseButton.LeftButton, pos=strip.bar_rect(1).center())
    assert pane.model.channel == 1
    qtbot.keyClick(strip, Qt.Key.Key_Home)
    assert pane.model.channel == 3
    pane.actions_table["tensor.sortErrors"].trigger()
    assert strip.order == (0, 1, 2, 3)


def test_the_strip_is_there_for_channels_beside_the_references(qtbot, strip):
    window = strip.window()
    actions = window.tensor_view.pane.actions_table
    assert strip.isVisible()
    window.actions_by_id["analyse.flicker"].trigger()
    assert not strip.isVisible()
    assert not actions["tensor.sortErrors"].isEnabled()
    sides = window.tensor_view.strip.sides
    qtbot.mouseClick(sides.button(Side.ALL), Qt.MouseButton.LeftButton)
    assert strip.isVisible()
    window.actions_by_id["analyse.clear"].trigger()
    assert not strip.isVisible()


def test_an_operand_with_more_channels(qtbot, open_window, make_pair, tmp_path):
    """The differences of an operand are never told of another one."""
    lines = (
        *PICTURES[:2],
        "torch.cat cat 2 1 1 1 2 dim=1 #1=(1,2,4,5)f32 #2=(1,4,4,5)f32",
        "pnnx.Output out 1 0 2 #2=(1,4,4,5)f32",
    )
    other = np.concatenate([THEIRS, 3 * INPUT], 1)
    other[0, 3, 0, 0] += 500
    np.savez(tmp_path / "r.npz", **{"0": INPUT, "1": THEIRS, "2": other})
    window = open_window(make_pair(*lines), [INPUT])
    session, pane = window.session, window.tensor_view.pane
    assert session.wait_idle(10)
    session.resume()
    assert session.wait_idle(10)
    session.studies.compare(tmp_path / "r.npz")
    assert session.wait_idle(20)
    for operator, channel in (("times", 1), ("cat", 3), ("times", 1), ("cat", 3)):
        session.select(operator)
        qtbot.waitUntil(lambda c=channel: pane.model.channel == c)
        strip, count = pane.tools.errors, channel + 1
        qtbot.waitUntil(lambda s=strip, n=count: len(s.order) == n)
        assert strip.describe(channel).startswith(
            f"Channel {channel}: largest difference {30 if channel == 1 else 500}, "
        )
        shown = [label.text() for label in pane.statistics.findChildren(QLabel)]
        assert f"Channel {channel}" in shown


def test_more_channels_than_pixels(qtbot, compared):
    """A bar stands for the worst of some channels, and leads to it."""
    fed = np.ones((1, 3000, 1, 2), np.float32)
    theirs = 3 * fed
    theirs[0, 1234, 0, 1] = 9
    lines = [line.replace("1,2,4,5", "1,3000,1,2") for line in PICTURES]
    window = compared(lines, fed, theirs)
    pane = window.tensor_view.pane
    found = pane.tools.errors
    qtbot.waitUntil(lambda: len(found.order) == 3000)
    pane.show_channel(0)
    bar = found.bar_of(1234)
    qtbot.mouseClick(found, Qt.MouseButton.LeftButton, pos=found.bar_rect(bar).center())
    assert pane.model.channel == 1234


def test_the_references_histogram_is_outlined(qtbot, pictures):
    """The reference alone has 78, as ours has 63, in gaps of the other."""
    track = pictures.tensor_view.pane.range_bar.track
    ink = track.theme.color("text").name()

    def inked(value):
        image, x = track.grab().toImage(), track.x_of(value)
        near = range(int(x) - 2, int(x) + 4)
        return any(image.pixelColor(at, y).name() == ink for at in near for y in range(8, 34))

    assert inked(78)
    qtbot.mouseClick(
        pictures.tensor_view.strip.sides.button(Side.OURS), Qt.MouseButton.LeftButton
    )
    assert not inked(78)


def test_the_range_of_a_channel_is_that_of_both(pictures):
    pane = pictures.tensor_view.pane
    pane.actions_table.scope_chosen.emit(Scope.CHANNEL)
    both = np.stack([3 * INPUT[0, 1], THEIRS[0, 1]])
    planes = pane.body.planes
    for canvas in (planes.ours, planes.theirs):
        assert (canvas.coloring.low, canvas.coloring.high) == (both.min(), both.max())
    assert (planes.difference.coloring.low, planes.difference.coloring.high) == (-30, 30)
    pane.show_channel(0)
    assert planes.theirs.coloring.high == THEIRS[0, 0].max()
    assert planes.difference.coloring.high < 1e-3  # nothing differs there


def test_another_channel(pictures):
    pane = pictures.tensor_view.pane
    pane.show_channel(0)
    planes = pane.body.planes
    assert shown_color(planes.difference, 0, 0) == shown_color(planes.difference, 2, 3)
    assert shown_color(planes.ours, 2, 3) == shown_color(planes.theirs, 2, 3)


def test_flicker_shows_one_at_a_time(qtbot, pictures):
    tensor = pictures.tensor_view
    planes = tensor.pane.body.planes
    pictures.actions_by_id["analyse.flicker"].trigger()
    assert not planes.theirs.isVisible()
    assert np.array_equal(tensor.pane.model.value, THEIRS)
    qtbot.mouseClick(tensor.strip.sides.button(Side.ALL), Qt.MouseButton.LeftButton)
    assert planes.theirs.isVisible()
    assert np.array_equal(tensor.pane.model.value, 3 * INPUT)


def test_numbers_and_grid(qtbot, pictures):
    """Numbers replace the pictures; the grid comes back where only one side is shown."""
    pane = pictures.tensor_view.pane
    actions = pane.actions_table
    assert not actions["tensor.grid"].isEnabled()
    actions["tensor.table"].trigger()
    assert pane.body.shown is pane.table
    assert not pane.body.planes.ours.isVisible()
    actions["tensor.table"].trigger()
    assert pane.body.planes.difference.isVisible()
    qtbot.mouseClick(
        pictures.tensor_view.strip.sides.button(Side.OURS), Qt.MouseButton.LeftButton
    )
    assert pane.mosaic.isVisible()


@pytest.fixture
def tables(qtbot, compared):
    """The tables of a channel that is larger than they are."""
    fed = np.arange(4800, dtype=np.float32).reshape(1, 2, 60, 40)
    theirs = 3 * fed
    theirs[0, 1, 2, 1] -= 3000
    lines = [line.replace("1,2,4,5", "1,2,60,40") for line in PICTURES]
    window = compared(lines, fed, theirs)
    window.tensor_view.pane.actions_table["tensor.table"].trigger()
    tables = window.tensor_view.pane.body.tables
    qtbot.waitUntil(tables.difference.isVisible)
    return tables


def cell_texts(tables, row, column):
    return [each.model().index(row, column).data() for each in tables.canvases]


def test_numbers_side_by_side(tables):
    assert all(table.isVisible() for table in tables.canvases)
    # Row 2, column 1 of channel 1 is element 2481, three times of which is 7443.
    assert cell_texts(tables, 2, 1) == ["7443", "4443", "3000"]
    assert cell_texts(tables, 2, 2) == ["7446", "7446", "0"]
    cells = [tables.difference.model().index(2, column) for column in (1, 2)]
    colors = [cell.data(Qt.ItemDataRole.ForegroundRole) for cell in cells]
    assert colors == [tables.window().tensor_view.pane.theme.color("div"), None]


@pytest.mark.parametrize("width", [1300, 1301, 1302, 1400])
def test_numbers_are_aligned_and_scroll_together(qtbot, tables, width):
    tables.window().resize(width, 800)
    tables.difference.scrollTo(tables.difference.model().index(17, 5))
    for row, column in ((17, 5), (59, 39), (0, 0)):
        tables.theirs.scrollTo(tables.theirs.model().index(row, column))
        rects = [t.visualRect(t.model().index(row, column)) for t in tables.canvases]
        views = [table.viewport().rect() for table in tables.canvases]
        assert all(view.contains(rect) for view, rect in zip(views, rects, strict=True))
        for rect in rects:
            assert abs(rect.left() - rects[0].left()) <= 2
            assert rect.top() == rects[0].top()
    tops = {table.viewport().mapTo(tables, QPoint(0, 0)).y() for table in tables.canvases}
    assert len(tops) == 1


def test_a_number_is_picked_and_pointed_at_in_all(qtbot, tables):
    window = tables.window()
    place = tables.theirs.visualRect(tables.theirs.model().index(2, 1)).center()
    qtbot.mouseClick(tables.theirs.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert str(window.tensor_view.picked) == (
        "[0, 1, 2, 1] ours 7443.0, reference 4443.0, difference +3000"
    )
    for table in tables.canvases:
        assert (table.currentIndex().row(), table.currentIndex().column()) == (2, 1)
    qtbot.mouseMove(tables.theirs.viewport(), place + QPoint(0, 20))
    text = window.status_bar.findChild(object, "statusHovered").text()
    assert text == "[0, 1, 3, 1] ours 7563.0, reference 7563.0, difference +0"
    hovered = Qt.ItemDataRole.BackgroundRole
    assert tables.ours.model().index(3, 1).data(hovered) is not None
    assert tables.ours.model().index(2, 1).data(hovered) is None


def test_numbers_of_one_side(qtbot, tables):
    window = tables.window()
    window.actions_by_id["analyse.flicker"].trigger()
    assert not tables.difference.isVisible()
    assert tables.ours.model().index(2, 1).data() == "4443"
    assert not tables.ours.verticalHeader().isHidden()


def test_entries_of_vectors_side_by_side(qtbot, compared):
    fed = np.array([1, 2, 3, 4, 5, 6], np.float32)
    window = compared(VECTOR, fed, 3 * fed - np.array([0, 0, 0, 0, 0, 9], np.float32))
    window.tensor_view.pane.actions_table["tensor.table"].trigger()
    tables = window.tensor_view.pane.body.tables
    assert cell_texts(tables, 5, 0) == ["18", "9", "9"]
    place = tables.difference.visualRect(tables.difference.model().index(5, 0)).center()
    qtbot.mouseClick(tables.difference.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert window.tensor_view.picked.index == (5,)


def test_a_vector(compared):
    fed = np.array([1, 2, 3, 4, 5, 6], np.float32)
    window = compared(VECTOR, fed, 3 * fed + np.array([0, 0, 0, 0, 0, 9], np.float32))
    vectors = window.tensor_view.pane.body.vectors
    assert all(canvas.isVisible() for canvas in vectors.canvases)
    vectors.theirs.zoom_by(2)
    assert vectors.ours.range == vectors.theirs.range == vectors.difference.range
    assert vectors.difference.coloring.low == -9
    assert vectors.difference.coloring.high == 9


def test_the_choice_is_remembered(qtbot, compared):
    window = compared(PICTURES, INPUT, THEIRS)
    bar = window.tensor_view.strip.sides
    qtbot.mouseClick(bar.button(Side.REFERENCE), Qt.MouseButton.LeftButton)
    window.actions_by_id["analyse.flicker"].trigger()  # which is for the moment
    window.close()
    again = compared(PICTURES, INPUT, THEIRS)
    assert again.tensor_view.strip.sides.button(Side.REFERENCE).isChecked()
