from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QLabel

from kuiper_studio.panels.weights import (
    TilePages,
    diverging_colors,
    largest_magnitude,
    lay_out_tiles,
)


def test_colours_about_zero() -> None:
    low, zero, high = diverging_colors(np.array([-2.0, 0.0, 2.0]), 2.0).astype(int)
    assert low[2] > low[0]  # blue
    assert min(zero) > 240  # white
    assert high[0] > high[2]  # red


def test_colours_beyond_the_limit_are_those_at_it() -> None:
    colors = diverging_colors(np.array([1.0, 5.0, np.inf]), 1.0)
    assert (colors == colors[0]).all()


def test_not_a_number_is_magenta() -> None:
    assert tuple(diverging_colors(np.array([np.nan]), 1.0)[0]) == (255, 0, 200)


def test_all_zero_is_white() -> None:
    assert diverging_colors(np.zeros((2, 2)), 0.0).min() > 240


def test_largest_magnitude() -> None:
    assert largest_magnitude(np.array([-3.0, 2.0, np.inf, np.nan])) == 3
    assert largest_magnitude(np.array([np.nan])) == 0
    assert largest_magnitude(np.zeros(0)) == 0


@pytest.mark.parametrize(
    ("shape", "count", "caption", "tiles"),
    [
        ((64, 64, 3, 3), 64, "out 5 of 64", (64, 3, 3)),
        ((64, 3, 7, 7), 64, "out 5 of 64", (3, 7, 7)),
        ((8, 4, 2, 3, 3), 8, "out 5 of 8", (8, 3, 3)),
        ((16, 8, 5), 16, "out 5 of 16", (1, 8, 5)),
    ],
)
def test_pages(shape, count, caption, tiles) -> None:
    pages = TilePages(shape)
    assert pages.count == count
    assert pages.caption(5) == caption
    assert pages.tiles(np.zeros(shape), 5).shape == tiles


def test_a_matrix_is_one_tile() -> None:
    pages = TilePages((1000, 512))
    assert (pages.count, pages.caption(0)) == (1, "")
    assert pages.tiles(np.zeros((1000, 512)), 0).shape == (1, 1000, 512)


def test_depthwise_filters_share_a_page() -> None:
    pages = TilePages((1500, 1, 3, 3))
    assert pages.count == 2
    assert pages.caption(1) == "out 1024–1499 of 1500"
    assert pages.tiles(np.zeros((1500, 1, 3, 3)), 1).shape == (476, 3, 3)


def test_transposed_convolutions_have_inputs_first() -> None:
    assert TilePages((8, 4, 2, 2), transposed=True).caption(3) == "in 3 of 8"


@pytest.mark.parametrize("shape", [(), (7,), (0, 3), (4, 0, 3, 3)])
def test_nothing_to_page(shape) -> None:
    assert TilePages(shape).count == 0


@pytest.mark.parametrize(
    "shape",
    [(5, 7), (4, 6, 3), (3, 4, 2, 5), (9, 1, 3, 3), (2, 3, 2, 3, 4), (40, 1, 3, 30, 30)],
)
def test_an_index_leads_to_the_element_that_is_shown(shape) -> None:
    array = np.arange(np.prod(shape)).reshape(shape)
    pages = TilePages(shape)
    for page in range(pages.count):
        tiles = pages.tiles(array, page)
        for place in np.ndindex(tiles.shape):
            assert array[pages.index(page, *place)] == tiles[place]


def test_the_mosaic_of_the_picture() -> None:
    mosaic = lay_out_tiles((64, 3, 3), 124)
    assert (mosaic.columns, mosaic.rows, mosaic.scale, mosaic.gap) == (8, 8, 4, 2)
    assert mosaic.size == (114, 114)


@given(
    out=st.integers(1, 1500), channels=st.sampled_from([1, 3, 7, 512]),
    height=st.integers(1, 200), width=st.integers(1, 200), data=st.data(),
)  # fmt: skip
def test_no_page_is_wider_than_the_panel(out, channels, height, width, data) -> None:
    """The statistics beside the picture have to stay in view."""
    shape = (out, channels, height, width)
    pages = TilePages(shape)
    if pages.can_be_rgb:
        pages = TilePages(shape, rgb=True)
    page = data.draw(st.integers(0, pages.count - 1))
    tiles = pages.tiles(np.broadcast_to(np.float32(1), shape), page)
    assert max(lay_out_tiles(tiles.shape[:3], 124).size) <= 134


def test_large_filters_in_colour_fill_several_pages() -> None:
    """Sixteen patches of 32 x 32 are as much as fits."""
    pages = TilePages((768, 3, 32, 32), rgb=True)
    assert pages.count == 48
    assert pages.caption(1) == "out 16–31 of 768"
    assert pages.page_of(40) == 2
    assert pages.index(2, 5, 1, 0) == (37, 0, 1, 0)


def test_a_large_matrix_is_thinned_out() -> None:
    mosaic = lay_out_tiles((1, 1000, 512), 124)
    assert mosaic.step == 9
    assert max(mosaic.size) <= 124


def test_a_thinned_out_weight_says_its_scale(qtbot, open_window, make_pair) -> None:
    """Not how many elements it has: a picture 124 wide has each ninth of a thousand."""
    window = open_window(
        make_pair(
            "pnnx.Attribute bias 0 1 0 @data=(1,1000)f32 #0=(1,1000)f32",
            "pnnx.Output out 1 0 0",
            weights={"bias.data": np.ones((1, 1000), np.float32)},
        )
    )
    qtbot.waitUntil(lambda: window.session.graph is not None and not window.session.busy)
    window.session.select("bias")
    panel = window.properties_panel
    panel.catch_up()

    def texts() -> list[str]:
        return [label.text() for label in panel.findChildren(QLabel) if label.isVisible()]

    qtbot.waitUntil(lambda: "scale 1 : 9" in texts())


@given(
    count=st.integers(1, 256), height=st.integers(1, 11), width=st.integers(1, 11),
)  # fmt: skip
def test_a_place_in_the_picture_is_the_element_that_was_painted(count, height, width) -> None:
    rng = np.random.default_rng(count)
    tiles = rng.uniform(-1, 1, (count, height, width))
    mosaic = lay_out_tiles(tiles.shape, 124)
    picture = mosaic.paint(tiles, 1.0, (1, 2, 3))
    assert picture.shape[:2] == mosaic.size
    ys, xs = rng.integers(0, mosaic.size[0], 20), rng.integers(0, mosaic.size[1], 20)
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        found = mosaic.element_at(x, y)
        if found is None or found[0] >= count:
            assert tuple(picture[y, x]) == (1, 2, 3)
        else:
            assert tuple(picture[y, x]) == tuple(diverging_colors(tiles[found], 1.0))
