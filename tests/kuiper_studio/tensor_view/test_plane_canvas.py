"""One channel, enlarged."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QWheelEvent
from PySide6.QtWidgets import QApplication

from kuiper_studio.tensor_view.images import Coloring
from kuiper_studio.tensor_view.plane_canvas import PlaneCanvas

GREY = Coloring(0, 100, "grey")


@pytest.fixture
def canvas(shown, theme):
    """A plane of 8 x 10 with values 0, 1, 2, ..."""
    made = shown(PlaneCanvas(theme), 400, 280)
    made.set_plane(np.arange(80, dtype=np.float32).reshape(8, 10))
    made.set_coloring(GREY)
    made.picked.connect(lambda row, column: made.set_pick((row, column)))
    return made


def place(canvas, row, column):
    x, y, width, height = canvas.port.cell_rect(row, column)
    return QPoint(round(x + width / 2), round(y + height / 2))


def wheel(canvas, notches, at, modifiers=Qt.KeyboardModifier.NoModifier):
    event = QWheelEvent(
        QPointF(at),
        canvas.mapToGlobal(QPointF(at)),
        QPoint(),
        QPoint(0, 120 * notches),
        Qt.MouseButton.NoButton,
        modifiers,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(canvas, event)


def test_elements_are_squares_of_one_colour(canvas):
    image = canvas.grab().toImage()
    for row, column in ((0, 0), (3, 7), (7, 9)):
        x, y, width, height = (round(v) for v in canvas.port.cell_rect(row, column))
        assert width == height
        value = row * 10 + column
        colors = {
            image.pixelColor(x + i, y + j).name()
            for i in (0, width - 1)
            for j in (0, height - 1)
        }
        assert colors == {GREY.color_of(value).name()}


@pytest.mark.parametrize("button", [Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton])
def test_click_picks(canvas, qtbot, button):
    with qtbot.waitSignal(canvas.picked) as picked:
        qtbot.mouseClick(canvas, button, pos=place(canvas, 5, 3))
    assert picked.args == [5, 3]


def test_hover_tells_the_element(canvas, qtbot):
    with qtbot.waitSignal(canvas.hovered) as hovered:
        qtbot.mouseMove(canvas, place(canvas, 2, 4))
    assert hovered.args == [(2, 4)]


@pytest.mark.parametrize(
    ("key", "modifiers", "expected"),
    [
        (Qt.Key.Key_Right, Qt.KeyboardModifier.NoModifier, (1, 2)),
        (Qt.Key.Key_Up, Qt.KeyboardModifier.NoModifier, (0, 1)),
        (Qt.Key.Key_Down, Qt.KeyboardModifier.ShiftModifier, (7, 1)),
        (Qt.Key.Key_Right, Qt.KeyboardModifier.ShiftModifier, (1, 9)),
        (Qt.Key.Key_Left, Qt.KeyboardModifier.ShiftModifier, (1, 0)),
    ],
)
def test_arrows_nudge_the_pick(canvas, qtbot, key, modifiers, expected):
    canvas.set_pick((1, 1))
    with qtbot.waitSignal(canvas.picked) as picked:
        qtbot.keyClick(canvas, key, modifiers)
    assert tuple(picked.args) == expected


def test_arrows_begin_in_the_middle(canvas, qtbot):
    with qtbot.waitSignal(canvas.picked) as picked:
        qtbot.keyClick(canvas, Qt.Key.Key_Left)
    assert picked.args == [4, 5]


def test_wheel_zooms_about_the_mouse(canvas, qtbot):
    at = place(canvas, 5, 3)
    before = canvas.port.zoom
    with qtbot.waitSignal(canvas.zoom_changed):
        wheel(canvas, 1, at)
    assert canvas.port.zoom > before
    assert canvas.port.element_at(at.x(), at.y()) == (5, 3)
    wheel(canvas, -1, at)
    assert canvas.port.zoom == before


def test_parts_of_a_notch_add_up(canvas):
    event_at = place(canvas, 5, 3)
    before = canvas.port.zoom
    for _ in range(4):
        event = QWheelEvent(
            QPointF(event_at), canvas.mapToGlobal(QPointF(event_at)), QPoint(), QPoint(0, 30),
            Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
            Qt.ScrollPhase.NoScrollPhase, False,
        )  # fmt: skip
        assert canvas.port.zoom == before
        QApplication.sendEvent(canvas, event)
    assert canvas.port.zoom > before


def test_shift_and_wheel_move_sideways(canvas):
    wheel(canvas, 3, place(canvas, 4, 5))
    zoom, left = canvas.port.zoom, canvas.port.origin[0]
    wheel(canvas, -1, place(canvas, 4, 5), Qt.KeyboardModifier.ShiftModifier)
    assert canvas.port.zoom == zoom
    assert canvas.port.origin[0] < left


def test_drag_moves_and_does_not_pick(canvas, qtbot):
    wheel(canvas, 3, place(canvas, 4, 5))
    before = canvas.port.origin
    with qtbot.assertNotEmitted(canvas.picked):
        qtbot.mousePress(canvas, Qt.MouseButton.LeftButton, pos=QPoint(200, 140))
        qtbot.mouseMove(canvas, QPoint(220, 160))
        qtbot.mouseMove(canvas, QPoint(230, 170))
        qtbot.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=QPoint(230, 170))
    assert canvas.port.origin == (before[0] + 30, before[1] + 30)


def test_zoom_commands(canvas):
    canvas.zoom_actual()
    assert canvas.zoom_text == "1 : 1"
    canvas.zoom_by(1)
    assert canvas.zoom_text == "2 : 1"
    canvas.zoom_by(-2)
    assert canvas.zoom_text == "1 : 2"
    canvas.zoom_fit()
    assert canvas.port.zoom == 32


@pytest.mark.parametrize("pick", [(0, 0), (40, 990), (700, 300), (999, 500)])
def test_the_keys_zoom_about_the_pick(canvas, pick):
    canvas.set_plane(np.zeros((1000, 1000), np.float32))
    canvas.set_pick(pick)
    for zoom in (canvas.zoom_actual, lambda: canvas.zoom_by(3)):
        zoom()
        assert canvas.element_at(canvas.cell_area(*pick).center()) == pick


def test_a_pick_amid_the_picture_stays_where_it_is(canvas):
    canvas.set_plane(np.zeros((1000, 1000), np.float32))
    canvas.set_pick((450, 620))
    before = place(canvas, 450, 620)
    canvas.zoom_actual()
    assert (place(canvas, 450, 620) - before).manhattanLength() <= 2


def test_large_planes_are_averaged(canvas, color_at):
    plane = np.zeros((1000, 1000), np.float32)
    plane[:, ::2] = 100
    canvas.set_plane(plane)
    canvas.zoom_by(-2)
    assert canvas.port.zoom < 0.26
    x, y = canvas.port.origin
    found = color_at(canvas, x + 20, y + 20)
    assert abs(found.red() - 128) <= 13


def test_zoomed_in_is_never_smoothed(canvas):
    plane = np.zeros((64, 64), np.float32)
    plane[:, ::2] = 100
    canvas.set_plane(plane)
    image = canvas.grab().toImage()
    x, y, width, height = (round(v) for v in (*canvas.port.origin, *canvas.port.size))
    names = {image.pixelColor(x + i, y + height // 2).name() for i in range(width)}
    assert names == {"#000000", "#ffffff"}


@pytest.mark.parametrize(
    ("value", "color"), [(np.nan, "#ff00c8"), (np.inf, "#ff8a00"), (-np.inf, "#0091ff")]
)
def test_special_values_have_colour_and_mark(canvas, value, color):
    plane = np.zeros((8, 10), np.float32)
    plane[4, 5] = value
    canvas.set_plane(plane)
    image = canvas.grab().toImage()
    x, y, width, height = (round(v) for v in canvas.port.cell_rect(4, 5))
    names = [image.pixelColor(x + i, y + j).name() for i in range(width) for j in range(height)]
    assert names[0] == color
    assert len(set(names)) > 1
    canvas.set_coloring(Coloring(0, 100, "grey", mark_special=False))
    image = canvas.grab().toImage()
    names = {image.pixelColor(x + i, y + j).name() for i in range(width) for j in range(height)}
    assert len(names) == 1


def test_no_marks_on_small_elements(canvas):
    plane = np.zeros((60, 60), np.float32)
    plane[30, 30] = np.nan
    canvas.set_plane(plane)
    assert canvas.port.zoom < 8
    image = canvas.grab().toImage()
    x, y, width, height = (round(v) for v in canvas.port.cell_rect(30, 30))
    names = {image.pixelColor(x + i, y + j).name() for i in range(width) for j in range(height)}
    assert names == {"#ff00c8"}


def test_clipped_elements_are_hatched(canvas):
    canvas.set_coloring(Coloring(20, 60, "grey", mark_clipped=True))
    image = canvas.grab().toImage()

    def names(row, column):
        x, y, width, height = (round(v) for v in canvas.port.cell_rect(row, column))
        return {
            image.pixelColor(x + i, y + j).name() for i in range(width) for j in range(height)
        }

    assert len(names(0, 0)) > 1
    assert len(names(7, 0)) > 1
    assert len(names(4, 0)) == 1


def test_pick_is_seen_on_black_and_on_white(canvas):
    for value in (0, 100):
        canvas.set_plane(np.full((8, 10), value, np.float32))
        canvas.set_pick((4, 5))
        image = canvas.grab().toImage()
        x, y, width, height = (round(v) for v in canvas.port.cell_rect(4, 5))
        row = [
            image.pixelColor(x + i, y + height // 2).lightness() for i in range(-6, width + 6)
        ]
        assert min(row) < 60
        assert max(row) > 200


def test_colour_bar_stands_beside_the_picture(canvas):
    image = canvas.grab().toImage()
    right = canvas.port.origin[0] + canvas.port.size[0]
    x = round(right) + 12 + 7
    top, bottom = image.pixelColor(x, 20), image.pixelColor(x, 260)
    assert top.lightness() > 200
    assert bottom.lightness() < 60


def test_another_map_of_the_same_plane(canvas, color_at):
    canvas.set_coloring(Coloring(0, 100, "viridis"))
    x, y = place(canvas, 0, 0).toTuple()
    assert color_at(canvas, x, y) == QColor(0x44, 0x01, 0x54)


class TestLargePlane:
    """Of which only the visible part is painted."""

    @pytest.fixture
    def large(self, canvas):
        """Squares of 4 x 4 elements, each with a value of its own from 0 to 100."""
        rows, columns = (np.arange(size) // 4 for size in (1100, 1200))
        values = (7 * rows[:, None] + 3 * columns) % 101
        canvas.set_plane(values.astype(np.float32))
        canvas.zoom_actual()
        return canvas

    @staticmethod
    def assert_right(canvas):
        """Look at an element of each square that is seen, and at its colour."""
        image = canvas.grab().toImage()
        seen = 0
        for row in range(1, 1100, 4):
            for column in range(1, 1200, 4):
                x, y, width, height = canvas.port.cell_rect(row, column)
                left, top, wide, high = canvas.port.view
                if left < x < left + wide - width and top < y < top + high - height:
                    seen += 1
                    value = (7 * (row // 4) + 3 * (column // 4)) % 101
                    found = image.pixelColor(round(x), round(y))
                    assert found == canvas._coloring.color_of(value), (row, column)
        assert seen > 100

    def test_wherever_it_is_moved(self, large):
        self.assert_right(large)
        for across, down in ((-300, -200), (50, 20), (-2000, -2000), (2000, -30)):
            large.pan(across, down)
            self.assert_right(large)

    def test_with_other_colours_and_other_zoom(self, large):
        large.set_coloring(Coloring(0, 50, "viridis"))
        self.assert_right(large)
        large.zoom_by(2, (100.0, 60.0))
        self.assert_right(large)
        large.zoom_by(-2)
        large.set_coloring(GREY)
        self.assert_right(large)

    def test_marks_of_values_follow(self, large):
        plane = large.plane.copy()
        plane[1099, 1199] = np.nan
        large.set_plane(plane)
        large.set_coloring(Coloring(-1, 50, "grey", mark_clipped=True))
        large.zoom_actual()
        large.zoom_by(8)
        large.reveal(1099, 1199)
        image = large.grab().toImage()

        def names(row, column):
            x, y, width, height = (round(v) for v in large.port.cell_rect(row, column))
            inside = [(x + i, y + j) for i in range(1, width - 1) for j in range(1, height - 1)]
            return {image.pixelColor(*at).name() for at in inside}

        assert "#ff00c8" in names(1099, 1199)
        assert len(names(1099, 1199)) > 1  # its cross
        assert large.plane[1081, 1181] == 48
        assert len(names(1081, 1181)) == 1
        assert large.plane[1097, 1193] == 85
        assert len(names(1097, 1193)) > 1  # hatched, for it is above the range

    def test_colours_of_three_channels(self, large):
        red, green, blue = large.plane, large.plane / 2, 100 - large.plane
        large.set_plane(red, np.stack([red, green, blue]))
        large.pan(-500, -400)
        image = large.grab().toImage()
        for row, column in ((850, 960), (901, 1001), (1000, 1100)):
            x, y, _, _ = large.port.cell_rect(row, column)
            value = (7 * (row // 4) + 3 * (column // 4)) % 101
            found = image.pixelColor(round(x), round(y)).getRgb()[:3]
            levels = (value, value / 2, 100 - value)  # 256 steps from 0 to 100
            assert found == tuple(min(int(each * 2.56), 255) for each in levels)
