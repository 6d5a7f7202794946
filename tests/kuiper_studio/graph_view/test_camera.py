"""Mapping between scene and view."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF, QSizeF

from kuiper_studio.graph_view.camera import Camera


@pytest.fixture
def camera():
    made = Camera()
    made.size = QSizeF(400, 200)
    return made


def test_there_and_back(camera):
    camera.zoom, camera.origin = 2.0, QPointF(10, 20)
    assert camera.to_view(QPointF(15, 25)) == QPointF(10, 10)
    assert camera.to_scene(QPointF(10, 10)) == QPointF(15, 25)
    assert camera.rect_to_view(QRectF(10, 20, 3, 4)) == QRectF(0, 0, 6, 8)
    assert camera.visible == QRectF(10, 20, 200, 100)


def test_zoom_keeps_the_point_under_the_cursor(camera):
    cursor = QPointF(123, 45)
    before = camera.to_scene(cursor)
    camera.zoom_about(cursor, 1.7)
    after = camera.to_scene(cursor)
    assert (after.x(), after.y()) == pytest.approx((before.x(), before.y()))
    assert camera.zoom == 1.7


@pytest.mark.parametrize(("asked", "got"), [(100.0, 4.0), (0.0001, 0.05), (1.3, 1.3)])
def test_zoom_has_limits(camera, asked, got):
    camera.zoom_about(QPointF(0, 0), asked)
    assert camera.zoom == got


def test_show_fits_and_may_go_below_the_limit(camera):
    camera.show(QRectF(0, 0, 40_000, 100), 0.0)
    assert camera.zoom == 0.01
    assert camera.centre == QPointF(20_000, 50)
    camera.zoom_about(QPointF(0, 0), 0.01)
    assert camera.zoom == 0.01


def test_show_keeps_a_margin_and_does_not_enlarge(camera):
    camera.show(QRectF(0, 0, 100, 10), 24.0, 1.0)
    assert camera.zoom == 1.0
    camera.show(QRectF(0, 0, 704, 10), 24.0)
    assert camera.zoom == 0.5


def test_pan_moves_with_the_hand(camera):
    camera.zoom = 2.0
    camera.pan(10, -6)
    assert camera.origin == QPointF(-5, 3)


def test_bounds_never_leave_the_view(camera):
    bounds = QRectF(0, 0, 100, 50)
    camera.centre_on(QPointF(5000, -5000))
    camera.keep_near(bounds)
    assert camera.centre == QPointF(100, 0)
    camera.centre_on(QPointF(50, 25))
    camera.keep_near(bounds)
    assert camera.centre == QPointF(50, 25)
