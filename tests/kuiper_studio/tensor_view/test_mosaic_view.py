"""All channels side by side."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QWheelEvent

from kuiper_studio.tensor_view.channel_order import SpecialChannels, measure_channels
from kuiper_studio.tensor_view.facts import channel_facts
from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.mosaic_view import MosaicView


def page(view, planes, first=0, *, paged=False):
    view.set_page(planes, channel_facts(planes), first, 2048 if paged else len(planes))
    view.set_coloring(Coloring(0, 1, "grey"), (0, 1))


@pytest.fixture
def view(shown, theme):
    """16 channels of 7 x 7, each of one value: 0, 1/15, ... 1."""
    made = shown(MosaicView(theme), 290, 280)
    page(made, np.repeat(np.linspace(0, 1, 16, dtype=np.float32), 49).reshape(16, 7, 7))
    return made


def middle(view, channel):
    return view.tile_rect(channel).center().toPoint()


def test_tiles_have_the_colours_of_their_channels(view, color_at):
    for channel in (1, 6, 15):
        x, y = middle(view, channel).x() + 3, middle(view, channel).y()
        expected = Coloring(0, 1, "grey").color_of(channel / 15)
        assert color_at(view, x, y) == expected


def test_tiles_are_whole_multiples(view):
    assert view.grid.tile_width % 7 == 0
    assert view.grid.gap == 3


def test_click_chooses(view, qtbot):
    with qtbot.waitSignal(view.channel_chosen) as chosen:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=middle(view, 11))
    assert chosen.args == [11]


def test_click_into_a_gap_does_nothing(view, qtbot):
    corner = view.tile_rect(5).bottomRight() + QPointF(1.5, 1.5)
    with qtbot.assertNotEmitted(view.channel_chosen):
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=corner.toPoint())


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (Qt.Key.Key_Right, 1),
        (Qt.Key.Key_Left, -1),
        (Qt.Key.Key_Down, 4),
        (Qt.Key.Key_Up, -4),
    ],
)
def test_arrows_walk(view, qtbot, key, expected):
    assert view.grid.columns == 4
    view.set_chosen(5)
    with qtbot.waitSignal(view.moved) as moved:
        qtbot.keyClick(view, key)
    assert moved.args == [expected]


def test_chosen_tile_is_ringed(view, theme, color_at):
    view.set_chosen(5)
    tile = view.tile_rect(5)
    focus = theme.color("focus")
    assert color_at(view, tile.left() - 2, tile.center().y()) == focus
    assert color_at(view, tile.center().x(), tile.bottom() + 1.5) == focus
    other = view.tile_rect(10)
    assert color_at(view, other.left() - 2, other.center().y()) != focus


def test_ring_of_the_last_column_is_whole(view, theme, color_at):
    page(view, np.zeros((4, 7, 7), np.float32))  # 2 x 2, as wide as there is room
    view.resize(view.natural_size(280, 400)[0], 280)
    view.set_chosen(1)
    tile = view.tile_rect(1)
    assert view.grid.columns == 2
    assert color_at(view, tile.right() + 1.5, tile.center().y()) == theme.color("focus")


def test_hover_tells_the_channel(view, qtbot):
    with qtbot.waitSignal(view.channel_hovered) as hovered:
        qtbot.mouseMove(view, middle(view, 9))
    assert hovered.args == [9]


def test_hover_leaves_no_mark(view, qtbot):
    before = view.grab().toImage()
    qtbot.mouseMove(view, middle(view, 9))
    assert view.grab().toImage() == before


def test_a_channel_of_special_values_has_a_badge(view, theme, color_at):
    planes = np.zeros((4, 14, 14), np.float32)
    planes[:, 0, 0] = 1  # not flat
    page(view, planes)
    plain = view.grab().toImage()
    planes = planes.copy()
    planes[2, 7, 7] = np.nan
    page(view, planes)
    marked = view.grab().toImage()
    changed = {
        channel
        for channel in range(4)
        for x in range(30)
        for y in range(10)
        if plain.pixelColor(_corner(view, channel, x, y))
        != marked.pixelColor(_corner(view, channel, x, y))
    }
    assert changed == {2}
    assert color_at(view, *_element(view, 2, 7, 7)).name() == "#ff00c8"


def _corner(view, channel, x, y):
    return view.tile_rect(channel).topRight().toPoint() + QPoint(-1 - x, y)


def _element(view, channel, row, column):
    tile = view.tile_rect(channel)
    scale = tile.width() / 14
    return tile.left() + (column + 0.5) * scale, tile.top() + (row + 0.5) * scale


def test_one_range_for_each_channel(view, color_at):
    planes = np.zeros((2, 8, 8), np.float32)
    planes[0, :, 4:], planes[1, :, 4:] = 1, 10
    view.set_page(planes, channel_facts(planes), 0, len(planes))
    low, high = np.zeros((2, 1, 1)), np.array([1.0, 10.0]).reshape(2, 1, 1)
    view.set_coloring(Coloring(0, 10, "grey"), (low, high))
    for channel in (0, 1):
        tile = view.tile_rect(channel)
        found = color_at(view, tile.right() - 5, tile.center().y())
        assert found == QColor("white")


def test_pages_are_laid_out_alike(view):
    page(view, np.zeros((256, 7, 7), np.float32), 0, paged=True)
    first = view.grid
    page(view, np.zeros((10, 7, 7), np.float32), 256, paged=True)
    assert (view.grid.columns, view.grid.tile_width) == (16, first.tile_width)
    assert view.channel_at(view.tile_rect(258).center()) == 258


@pytest.mark.parametrize(
    ("size", "edge"),
    [
        ((400, 230), 14),  # 16 rows of 14 would need 16 * 14 + 15 = 239 and the foot's 16
        ((300, 140), 7),  # 16 rows of 7 would need 16 * 7 + 15 = 127 and the foot's 16
    ],
)
def test_pages_have_more_columns_where_16_rows_are_too_high(view, size, edge):
    view.resize(*size)
    page(view, np.zeros((256, 7, 7), np.float32), 0, paged=True)
    assert view.grid.columns > 16
    assert view.grid.tile_width == edge
    last = view.tile_rect(255)
    assert last.bottom() <= size[1] - 16
    assert view.tile_rect(view.grid.columns - 1).right() <= size[0]


def test_a_page_that_does_not_fit_has_no_natural_size(view):
    page(view, np.zeros((256, 7, 7), np.float32), 0, paged=True)
    assert view.natural_size(147, 260)[1] == 7
    assert view.natural_size(147, 60)[1] == 0


@pytest.mark.parametrize(
    "text",
    [
        "256–511 of 2048 · page 2/8 (wheel)",
        "256–511 of 2048 · 2/8",
        "256–511 · 2/8",
        "256–511",
    ],
)
def test_page_is_told_as_far_as_there_is_room(view, theme, text):
    page(view, np.zeros((256, 7, 7), np.float32), 256, paged=True)
    needed = QFontMetricsF(theme.mono_font(9.5)).horizontalAdvance(text)
    view.resize(round(view.tile_rect(256).left() + needed) + 2, 280)
    assert view.page_text() == text


def test_shrunken_tiles(view, color_at):
    page(view, np.full((64, 200, 200), 0.5, np.float32))
    assert view.grid.tile_width < 200
    assert color_at(view, *view.tile_rect(63).center().toTuple()).name() == "#808080"


def test_natural_size_is_kept(view):
    width, edge = view.natural_size(280, 400)
    assert width <= 400
    view.resize(width, 280)
    assert max(view.grid.tile_width, view.grid.tile_height) == edge


def test_wheel_turns_pages(qtbot, theme):
    view = MosaicView(theme)
    qtbot.addWidget(view)
    view.resize(300, 300)
    planes = np.zeros((256, 2, 2), np.float32)
    view.set_page(planes, channel_facts(planes), 0, 700)
    view.set_chosen(3)
    moves = []
    view.moved.connect(moves.append)
    turn(view, -120)
    assert moves == [256]
    view.set_page(planes[:188], channel_facts(planes[:188]), 512, 700)
    view.set_chosen(690)
    turn(view, -120)  # there is no page behind
    turn(view, 120)
    assert moves == [256, -256]


def test_tiles_in_another_order(view, qtbot, color_at):
    """Captions, clicks and the ring follow the channels, wherever they are."""
    planes = np.zeros((4, 8, 8), np.float32)
    planes[1] = 1
    view.set_page(planes, channel_facts(planes), 0, 4, np.array([3, 0, 2, 1]), "mean")
    view.set_coloring(Coloring(0, 1, "grey"), (0.0, 1.0))
    first, second = view.tile_rect(3), view.tile_rect(0)
    assert (first.left(), first.top()) < (second.left(), second.top())
    white = color_at(view, second.center().x(), second.center().y())
    assert white.name() == "#ffffff"
    with qtbot.waitSignal(view.channel_chosen) as chosen:
        qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=first.center().toPoint())
    assert chosen.args == [3]
    assert view.page_text() == "by mean"
    assert view.describe(0) == "Channel 0: 1 … 1"


def test_special_channels_have_feet_and_say_why(view, theme, color_at):
    """A whole red foot: dead. Two orange parts: a duplicate. Half of a grey one: constant."""
    planes = np.zeros((4, 14, 14), np.float32)
    planes[0, 3], planes[2, 3], planes[3] = 1, 1, 0.5
    page(view, planes)
    assert view.describe(1) == "Channel 1: 0 … 0"
    view.set_special(SpecialChannels(measure_channels(planes)))

    def feet(channel):
        tile = view.tile_rect(channel)
        places = tile.left() + 2, tile.center().x() - 0.5, tile.right() - 3
        return [color_at(view, x, tile.bottom() + 0.5) for x in places]

    base = theme.color("base")
    dead, double = theme.color("fail"), theme.color("warn")
    assert feet(0) == [base] * 3
    assert feet(1) == [dead] * 3
    assert feet(2) == [double, base, double]
    assert feet(3)[::2] == [theme.color("text2"), base]
    told = [view.describe(channel).partition(", ")[2] for channel in range(4)]
    assert told == ["", "dead: all zeros", "equal to channel 0", "constant"]


def test_wheel_does_nothing_without_pages(qtbot, theme):
    view = MosaicView(theme)
    qtbot.addWidget(view)
    planes = np.zeros((4, 2, 2), np.float32)
    view.set_page(planes, channel_facts(planes), 0, 4)
    with qtbot.assertNotEmitted(view.channel_chosen):
        turn(view, -120)


def turn(view, angle):
    view.wheelEvent(
        QWheelEvent(
            QPointF(5, 5),
            QPointF(5, 5),
            QPoint(),
            QPoint(0, angle),
            Qt.MouseButton.NoButton,
            Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
    )
