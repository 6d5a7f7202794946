"""Norms, dead and equal filters of weights; expectations by slow loops and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from int8_pairs import write_int8_pair
from ncnn_files import tagged, write_pair
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QCheckBox, QLabel

from kuiper_studio.panels.filters import measure_filters, scales_of_channels
from kuiper_studio.panels.weight_canvas import FilterBars, WeightPicture
from kuiper_studio.panels.weights import TilePages, rgb_colors
from kuiper_studio.theme import Scheme, Theme

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("axis", [0, 1])
def test_norms(axis):
    array = RNG.normal(size=(5, 4, 3, 3)).astype(np.float32)
    found = measure_filters(array, axis)
    for place in range(array.shape[axis]):
        total = sum(float(x) ** 2 for x in np.take(array, place, axis).ravel())
        assert found.norms[place] == pytest.approx(math.sqrt(total), rel=1e-12)
    assert not found.is_dead.any()
    assert (found.twin == -1).all()


def test_dead_and_equal_filters():
    array = RNG.normal(size=(6, 2, 3)).astype(np.float32)
    array[1] = 0
    array[2] = array[0] * 1e-8  # nothing beside the others
    array[5] = array[3]
    found = measure_filters(array)
    assert found.is_dead.tolist() == [False, True, True, False, False, False]
    assert found.twin.tolist() == [-1, -1, -1, -1, -1, 3]
    assert found.summary().endswith(" · 2 dead, 1 duplicate")
    assert found.describe(1) == "norm 0, dead"
    assert found.describe(5).endswith(", equal to 3")


def test_what_looks_the_same_at_its_ends_is_compared():
    array = np.zeros((2, 5), np.float32)
    array[:, 0] = 1
    array[0, 1] = array[1, 3] = 2
    assert measure_filters(array).twin.tolist() == [-1, -1]


def test_numbers_at_the_ends_of_float64():
    array = np.array([[3e300, 4e300], [3e-300, 4e-300], [np.nan, 2.0], [np.inf, -7.0]])
    found = measure_filters(array)
    assert found.norms.tolist() == pytest.approx([5e300, 5e-300, 2, 7])


@pytest.mark.parametrize("shape", [(), (4,), (1, 3), (0, 3), (3, 0)])
def test_nothing_to_measure(shape):
    assert measure_filters(np.zeros(shape, np.float32)) is None


def test_rgb_tiles():
    pages = TilePages((1500, 3, 2, 2), rgb=True)
    array = np.arange(18000.0).reshape(1500, 3, 2, 2)
    assert (pages.count, pages.page_of(1100)) == (2, 1)
    assert pages.caption(0) == "out 0–1023 of 1500"
    tiles = pages.tiles(array, 1)
    assert tiles.shape == (476, 2, 2, 3)
    assert tiles[7, 1, 0].tolist() == [array[1031, c, 1, 0] for c in range(3)]
    assert pages.index(1, 7, 1, 0) == (1031, 0, 1, 0)


@pytest.mark.parametrize(
    ("shape", "transposed", "expected"),
    [
        ((64, 3, 7, 7), False, True),
        ((64, 3, 1, 1), False, False),
        ((64, 4, 7, 7), False, False),
        ((64, 3, 7), False, False),
        ((64, 3, 7, 7), True, False),
    ],
)
def test_which_weights_have_colours(shape, transposed, expected):
    assert TilePages(shape, transposed).can_be_rgb is expected


def test_colours_of_triples():
    values = np.array([[1.0, 0.0, -1.0], [9.0, 0.0, 0.0], [np.nan, 0.0, 0.0]])
    grey, nan = 127, (255, 0, 200)
    assert rgb_colors(values, 1.0).tolist() == [[255, grey, 0], [255, grey, grey], [*nan]]


def test_the_picture_has_colours(qtbot):
    picture = WeightPicture(Theme(Scheme.DARK))
    qtbot.addWidget(picture)
    array = np.zeros((2, 3, 2, 2), np.float32)
    array[1, 0] = 1.0  # the second filter is red
    picture.show_page(TilePages(array.shape, rgb=True), array, 0)
    image = picture.grab().toImage()
    places = [QPoint(x, y) for x in range(image.width()) for y in range(image.height())]
    red = [p for p in places if image.pixelColor(p).red() > 240 > image.pixelColor(p).blue()]
    assert len(red) > 100
    for place in red:
        assert picture.describe(place).startswith("[1, :, ")
        assert "red 1.0000, green 0" in picture.describe(place)


def shown_bars(panel):
    return [each for each in panel.findChildren(FilterBars) if each.isVisible()]


@pytest.fixture
def bars(qtbot):
    made = FilterBars(Theme(Scheme.DARK))
    qtbot.addWidget(made)
    made.resize(100, 36)
    return made


def test_a_click_on_a_bar_goes_to_the_filter(bars, qtbot):
    bars.show_filters(measure_filters(np.diag([1.0, 2, 3, 4])), "row")
    assert "norms 1 … 4" in bars.accessibleName()
    with qtbot.waitSignal(bars.chosen) as clicked:
        qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=QPoint(60, 30))
    assert clicked.args == [2]


def test_of_many_filters_under_the_mouse_the_largest_counts(bars):
    values = np.ones((1000, 2))
    values[507] = 5
    bars.show_filters(measure_filters(values), "row")
    assert bars.filter_at(50.0) == 507
    assert bars.filter_at(-1.0) == -1


def test_the_panel_shows_filters(open_window, make_pair, qtbot):
    weight = RNG.normal(size=(4, 3, 3, 3)).astype(np.float32)
    weight[2] = 0
    path = make_pair(
        "pnnx.Input in 0 1 0 #0=(1,3,8,8)f32",
        "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=3 "
        "kernel_size=(3,3) out_channels=4 padding=(1,1) padding_mode=zeros stride=(1,1) "
        "@weight=(4,3,3,3)f32 #1=(1,4,8,8)f32",
        "pnnx.Output out 1 0 1",
        weights={"conv.weight": weight},
    )
    window = open_window(path)
    window.session.select("conv")
    panel = window.properties_panel
    qtbot.waitUntil(lambda: bool(shown_bars(panel)))
    (bars,) = shown_bars(panel)
    label = next(each for each in panel.findChildren(QLabel) if "norms" in each.text())
    assert label.text().endswith("· 1 dead by out")
    picture = panel.findChild(WeightPicture)
    assert picture.describe(picture.rect().center() + QPoint(4, 4)).count("green") == 1
    rgb = next(each for each in panel.findChildren(QCheckBox) if each.text() == "RGB")
    rgb.click()  # one page for each filter
    bars.chosen.emit(3)
    assert picture.accessibleName().endswith("out 3 of 4")
    assert "green" not in picture.describe(QPoint(4, 4))


def test_scales_of_int8_weights(open_window, tmp_path, qtbot):
    """ncnn stores round(weight * scale), with 127 for the largest weight of a filter."""
    weight = np.zeros((3, 2, 3, 3), np.float32)
    weight[:, 0, 1, 1] = 0.5, 1.0, 2.0
    lines = ["Input in 0 1 in", "Convolution conv 1 1 in out 0=3 1=3 4=1 5=0 6=54"]
    param = write_pair(tmp_path, lines, tagged(weight))
    x = np.random.default_rng(0).normal(size=(2, 6, 6)).astype(np.float32)
    window = open_window(write_int8_pair(param, [x], tmp_path))
    window.session.select("conv")
    panel = window.properties_panel
    qtbot.waitUntil(lambda: len(shown_bars(panel)) == 2)
    scales = shown_bars(panel)[1]
    assert scales.accessibleName() == "Scale of each filter: int8 scales 63.5 … 254"
    labels = [each.text() for each in panel.findChildren(QLabel)]
    assert "int8 scales 63.5 … 254 by out" in labels
    found = scales_of_channels(np.array([254.0, 0.0, np.inf]))
    assert found.describe(0) == "scale 254, a step of 0.00394"
    assert found.describe(1) == found.describe(2) == "scale 0"
    scales.grab()
