"""Where the camera looks; all points are worked out by hand."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF, QSizeF

from kuiper_studio.graph_view.camera import Camera
from kuiper_studio.graph_view.framing import (
    entry_point,
    least_pan,
    resting_centre,
    revealing_centre,
    within_reach,
    zoom_across,
)


class Chain:
    """Ten boxes of 100 by 40 that begin every 200, as a geometry has them."""

    left_right = True

    def __init__(self, height=40, spans=()):
        self.bounds, self.spans = QRectF(0, 0, 1900, height), spans

    def rect(self, box):
        return QRectF(200 * box, 0, 100, 40)

    def spans_in(self, _area):
        return self.spans


class Column(Chain):
    """The same from top to bottom."""

    left_right = False

    def __init__(self):
        super().__init__()
        self.bounds = self.bounds.transposed()

    def rect(self, box):
        return QRectF(0, 200 * box, 40, 100)


@pytest.fixture
def camera():
    made = Camera()
    made.size = QSizeF(800, 200)
    return made


def test_zoom_at_which_all_rows_are_seen():
    size = QSizeF(800, 200)
    assert zoom_across(Chain(), size) == 180 / 40
    assert zoom_across(Column(), size) == 780 / 40


# Half of the view is 400 by 100; beyond the graph 24 are shown.
@pytest.mark.parametrize(
    ("box", "x"),
    [pytest.param(0, 376, id="first"), (5, 1050), pytest.param(9, 1524, id="last")],
)
def test_the_flow_is_followed_as_far_as_the_graph_goes(camera, box, x):
    assert resting_centre(Chain(), camera, box) == QPointF(x, 20)


def test_margins_are_of_the_view(camera):
    camera.zoom = 2.0  # so half of the view is 200, and its margin 12
    assert resting_centre(Chain(), camera, 0) == QPointF(188, 20)


@pytest.mark.parametrize(("box", "y"), [(0, 76), (5, 1050), (9, 1824)])
def test_top_down(camera, box, y):
    assert resting_centre(Column(), camera, box) == QPointF(20, y)


def test_a_graph_that_fits_is_shown_in_the_middle(camera):
    camera.size = QSizeF(2000, 200)
    assert {resting_centre(Chain(), camera, box).x() for box in range(10)} == {950}


@pytest.mark.parametrize(
    ("spans", "y"),
    [
        pytest.param(((300, 490), (320, 400)), 395, id="all beside it"),
        pytest.param(((300, 800), (320, 400)), 360, id="only the boxes beside it"),
        pytest.param(((300, 800), (320, 700)), 90, id="neither fits"),
    ],
)
def test_across_the_flow_what_is_beside_a_box_is_shown(camera, spans, y):
    tall = Chain(1000, spans)
    # The last one: no more than 10 above the graph, and half of the view.
    assert resting_centre(tall, camera, 5) == QPointF(1050, y)


def test_a_box_that_is_seen_well_moves_nothing(camera):
    camera.origin = QPointF(100, -60)
    for box in (1, 2, 3):
        assert revealing_centre(Chain(), camera, box, camera.centre) == camera.centre


@pytest.mark.parametrize(
    ("box", "origin", "expected"),
    [
        # The box ends 19 before the edge of the view, where it should keep off by 20.
        pytest.param(4, (119, -60), (850, 20), id="too near to the edge"),
        pytest.param(4, (120, -60), (520, 40), id="just far enough"),
        pytest.param(2, (100, 30), (500, 20), id="across the flow only"),
        pytest.param(9, (100, 30), (1524, 20), id="both"),
    ],
)
def test_only_the_axis_moves_on_which_a_box_is_not_seen(camera, box, origin, expected):
    camera.origin = QPointF(*origin)
    assert revealing_centre(Chain(), camera, box, camera.centre) == QPointF(*expected)


def test_what_the_camera_is_on_its_way_to_counts(camera):
    camera.origin = QPointF(0, -80)
    way = QPointF(1450, 20)
    assert revealing_centre(Chain(), camera, 7, way) == way
    assert revealing_centre(Chain(), camera, 1, way) == QPointF(376, 20)


def test_the_flow_enters_in_the_middle_of_a_side():
    rect = QRectF(10, 20, 100, 40)
    assert entry_point(Chain(), rect) == QPointF(10, 40)
    assert entry_point(Column(), rect) == QPointF(60, 20)


@pytest.mark.parametrize(
    ("point", "expected"),
    [((-50, 500), (20, 180)), ((300, 5), (280, 20)), ((100, 100), (100, 100))],
)
def test_points_are_kept_off_the_edges(point, expected):
    assert within_reach(QPointF(*point), QRectF(0, 0, 300, 200)) == QPointF(*expected)


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param((0, 0, 200, 50), (0, 0), id="seen"),
        # Two fifths of the view are 120 by 80; 20 are kept free.
        pytest.param((250, 0, 200, 50), (-90, 0), id="beyond the right edge"),
        pytest.param((0, 190, 60, 500), (0, -90), id="below"),
        pytest.param((250, 190, 60, 30), (-30, -40), id="a small one is seen whole"),
    ],
)
def test_a_group_moves_no_more_than_it_must(shown, expected):
    moved = least_pan(QRectF(*shown), QRectF(0, 0, 300, 200))
    assert moved == QPointF(*expected)
