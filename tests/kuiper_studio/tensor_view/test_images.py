"""Arrays of colours as images, hatches and marks."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QImage, QPainter

from kuiper_studio.tensor_view.images import (
    Coloring,
    contrasting,
    hatch_brush,
    map_swatch,
    mark_brush,
    mask_image,
    paint_masked,
    special_masks,
    to_image,
)

pytestmark = pytest.mark.usefixtures("qapp")


def test_image_keeps_the_colours_after_the_array_is_gone():
    colors = np.zeros((2, 3, 4), np.uint8)
    colors[1, 2] = (10, 20, 30, 255)
    image = to_image(colors)
    colors[:] = 99
    assert (image.width(), image.height()) == (3, 2)
    assert image.pixelColor(2, 1) == QColor(10, 20, 30)
    assert image.pixelColor(0, 0).alpha() == 0


def test_image_of_a_part_of_an_array():
    colors = np.zeros((4, 4, 4), np.uint8)
    colors[1, 1] = (1, 2, 3, 255)
    assert to_image(colors[1:3, 1:3]).pixelColor(0, 0) == QColor(1, 2, 3)


def test_mask_image():
    image = mask_image(np.array([[True, False]]))
    assert [image.pixelColor(x, 0).alpha() for x in (0, 1)] == [255, 0]


@pytest.mark.parametrize(("color", "ink"), [("#FDE725", "#000000"), ("#440154", "#ffffff")])
def test_contrasting(color, ink):
    assert contrasting(QColor(color)).name() == ink


def test_coloring():
    coloring = Coloring(0, 1, "grey")
    assert coloring.color_of(0.5).name() == "#808080"
    assert coloring.end_color(upper=True).name() == "#ffffff"
    assert coloring.color_of(np.nan).name() == "#ff00c8"
    assert Coloring(0, 1, "grey", mark_special=False).color_of(np.nan).alpha() == 0


def test_swatch_runs_along_the_map():
    image = map_swatch("grey").toImage()
    assert image.pixelColor(0, 5) == QColor("#000000")
    assert image.pixelColor(33, 5) == QColor("#ffffff")


def test_special_masks():
    values = np.array([[0, np.nan], [np.inf, 1]], np.float32)
    masks = special_masks(values)
    assert masks.keys() == {"nan", "pinf"}
    assert masks["nan"].tolist() == [[False, True], [False, False]]
    assert special_masks(np.array([[1]])) == {}


def canvas(width, height):
    image = QImage(width, height, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.black)
    return image


@pytest.mark.parametrize(("rising", "inked"), [(True, (4, 0)), (False, (0, 0))])
def test_hatches_lean_to_their_side(rising, inked):
    image = canvas(5, 5)
    painter = QPainter(image)
    painter.fillRect(image.rect(), hatch_brush(QColor("white"), rising=rising))
    painter.end()
    lightness = {(x, y): image.pixelColor(x, y).lightness() for x in (0, 4) for y in (0, 4)}
    opposite = (4 - inked[0], 4 - inked[1])
    assert lightness[inked] > 100
    assert lightness[opposite] > 100
    assert lightness[(4 - inked[0], inked[1])] < lightness[inked]


@pytest.mark.parametrize(
    ("kind", "inked", "clear"),
    [
        pytest.param("nan", (8, 8), (8, 1), id="cross"),
        pytest.param("pinf", (8, 11), (4, 5), id="upwards"),
        pytest.param("ninf", (8, 5), (4, 11), id="downwards"),
    ],
)
def test_marks(kind, inked, clear):
    image = canvas(16, 16)
    image.fill(QColor("#888888"))
    painter = QPainter(image)
    painter.fillRect(image.rect(), mark_brush(kind, 16))
    painter.end()
    assert image.pixelColor(*clear) == QColor("#888888")
    assert image.pixelColor(*inked) != QColor("#888888")


def test_masked_painting_touches_only_what_is_masked():
    image = canvas(40, 20)
    painter = QPainter(image)
    mask = mask_image(np.array([[True, False]]))
    brush = QBrush(QColor("red"))
    paint_masked(painter, brush, mask, QRectF(10, 5, 20, 10), QRectF(0, 0, 2, 1))
    painter.end()
    red = {
        (x, y) for x in range(40) for y in range(20) if image.pixelColor(x, y) == QColor("red")
    }
    assert red == {(x, y) for x in range(10, 20) for y in range(5, 15)}
