"""The minimap of a graph that has more boxes than the map has pixels."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF, QSizeF
from PySide6.QtGui import QImage, QPainter

from kuiper_studio.graph_view.geometry import Geometry
from kuiper_studio.graph_view.minimap import Minimap
from kuiper_studio.graph_view.scene import lay_out, make_scene
from kuiper_studio.graph_view.state import SceneState
from kuiper_studio.item_models.statuses import DisplayStatus

COUNT = 1500


@pytest.fixture
def geometry(load_graph):
    kinds = ("F.relu", "F.max_pool2d", "F.linear", "F.softmax")
    lines = [f"{kinds[i % 4]} op{i} 1 1 {i} {i + 1}" for i in range(COUNT)]
    graph = load_graph(
        ("pnnx.Input in 0 1 0 #0=(2)f32", *lines, f"pnnx.Output out 1 0 {COUNT}")
    )
    scene = make_scene(graph)
    return Geometry(scene, lay_out(scene, "left-right"))


@pytest.fixture
def state(geometry):
    made = SceneState(geometry.scene)
    made.states[:] = DisplayStatus.PENDING
    return made


@pytest.fixture
def minimap(theme, geometry, state):
    made = Minimap(theme, geometry, state)
    made.place(QSizeF(900, 600))
    return made


def painted(minimap):
    image = QImage(minimap.size.toSize() * 2, QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(2)
    image.fill(0)
    painter = QPainter(image)
    minimap.paint(painter, QRectF(QPointF(0, 0), minimap.size), QRectF())
    painter.end()
    return image


def test_marks_of_a_run_look_as_the_whole_painted_anew(minimap, state):
    """In bundles of any size."""
    before = painted(minimap)
    place = 0
    for size in (1, 7, 500, 40, COUNT):
        boxes = list(range(place, min(place + size, COUNT + 2)))
        state.states[boxes] = DisplayStatus.EXECUTED
        minimap.mark(boxes)
        place += size
    marked = painted(minimap)
    minimap.forget()
    assert painted(minimap) == marked != before
