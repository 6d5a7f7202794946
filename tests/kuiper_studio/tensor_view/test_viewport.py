"""Zoom and place of an enlarged channel."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuiper_studio.tensor_view.viewport import Viewport, fit_zoom, zoom_steps

VIEW = (10.0, 0.0, 280.0, 200.0)


@pytest.fixture
def port():
    made = Viewport()
    made.set_view(VIEW, 1.0)
    made.set_plane((40, 50))
    return made


@pytest.mark.parametrize(
    ("plane", "area", "zoom"),
    [
        pytest.param((56, 56), (280, 292), 5, id="whole-number"),
        pytest.param((56, 56), (280, 281), 5, id="whole-number-up-to-the-edges"),
        pytest.param((56, 56), (279, 291), 279 / 56, id="fills-the-room"),
        pytest.param((56, 56), (400, 279), 267 / 56, id="clear-of-the-edges"),
        pytest.param((112, 112), (440, 500), 440 / 112, id="fills-the-room-at-3"),
        pytest.param((56, 56), (252, 300), 4, id="rounded-down"),
        pytest.param((7, 7), (251, 263), 35, id="large-cells-are-equal"),
        pytest.param((7, 7), (251, 251), 34, id="large-cells-are-clear-of-the-edges"),
        pytest.param((28, 28), (251, 260), 8, id="from-eight-on-equal"),
        pytest.param((500, 500), (560, 600), 1, id="one-to-one"),
        pytest.param((640, 640), (280, 320), 0.4375, id="shrunken"),
        pytest.param((1, 1), (300, 300), 64, id="one-element"),
        pytest.param((2, 3000), (390, 280), 12, id="long-and-thin"),
        pytest.param((25200, 85), (400, 280), 1, id="tall"),
    ],
)
def test_fit_zoom(plane, area, zoom):
    assert fit_zoom(plane, area) == pytest.approx(zoom)


@pytest.mark.parametrize("plane", [(24, 1000), (100, 4000), (4000, 100), (50, 768)])
def test_a_pixel_of_room_never_changes_the_zoom_much(plane):
    """A thin plane is shown whole, or larger and in part; between them nothing jumps."""
    zooms = [fit_zoom(plane, (side, side)) for side in range(100, 2000)]
    ratios = [after / before for before, after in pairwise(zooms)]
    assert max(ratios) < 1.15
    assert min(ratios) > 1 / 1.15


@pytest.mark.parametrize(
    ("zoom", "steps", "expected"),
    [(5, 1, 6), (5, -1, 4), (1, -1, 1 / 2), (0.4375, 1, 1 / 2), (128, 1, 128), (3, 3, 6)],
)
def test_zoom_steps(zoom, steps, expected):
    assert zoom_steps(zoom, steps) == expected


def test_fits_and_is_centred(port):
    assert port.zoom == 5
    assert port.origin == (10 + (280 - 250) / 2, 0)
    assert port.text == "5 : 1"


def test_fitting_follows_the_view(port):
    port.set_view((0, 0, 1000, 412), 1)
    assert port.zoom == 10
    port.zoom_by(-1)
    port.set_view((0, 0, 1000, 1012), 1)
    assert port.zoom == 8
    port.fit()
    assert port.zoom == 20


def test_zoom_keeps_the_place_under_the_mouse(port):
    before = port.element_at(100, 60)
    port.zoom_by(2, (100, 60))
    assert port.zoom == 8
    assert port.element_at(100, 60) == before


def test_pan_stops_at_the_edges(port):
    port.zoom_by(3, (150, 100))
    port.pan(10_000, 10_000)
    assert port.origin == (10, 0)
    port.pan(-10_000, -10_000)
    width, height = port.size
    assert port.origin == (290 - width, 200 - height)


def test_pan_of_a_small_picture_does_nothing(port):
    before = port.origin
    port.pan(50, 50)
    assert port.origin == before
    assert port.fitting


def test_another_shape_is_fitted_again(port):
    port.zoom_by(5)
    port.set_plane((40, 50))
    assert not port.fitting
    port.set_plane((20, 20))
    assert port.fitting


def test_reveal(port):
    port.set_zoom(40, (10, 0))
    assert port.element_at(10, 0) is not None
    port.reveal(39, 49)
    x, y, wide, high = port.cell_rect(39, 49)
    assert x + wide <= 290
    assert y + high <= 200


@pytest.mark.parametrize("position", [(9, 50), (150, 201), (11, 50), (289, 10)])
def test_no_element_outside(port, position):
    assert port.element_at(*position) is None


@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.floats(1 / 64, 64),
    st.sampled_from([1.0, 1.25, 2.0]),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_cells_and_elements_agree(rows, columns, zoom, scale, down, across):
    port = Viewport()
    port.set_view((0, 0, 500, 400), scale)
    port.set_plane((rows, columns))
    port.set_zoom(zoom)
    row, column = int(down * (rows - 1)), int(across * (columns - 1))
    x, y, wide, high = port.cell_rect(row, column)
    middle = x + wide / 2, y + high / 2
    if 0 <= middle[0] < 500 and 0 <= middle[1] < 400:
        assert port.element_at(*middle) == (row, column)


@given(st.integers(1, 2000), st.integers(1, 2000), st.floats(1 / 64, 64))
def test_visible_part_lies_within_the_picture(rows, columns, zoom):
    port = Viewport()
    port.set_view((0, 0, 300, 200), 1)
    port.set_plane((rows, columns))
    port.set_zoom(zoom)
    left, right, top, bottom = port.visible()
    high, wide = port.pixels
    assert 0 <= left < right <= wide
    assert 0 <= top < bottom <= high
