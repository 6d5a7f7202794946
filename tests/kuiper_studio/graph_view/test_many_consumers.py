"""An operand with thousands of consumers is painted within moments, and its edges are seen."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter
from typing_extensions import override

import engine
from kuiper_studio.graph_view.geometry import Geometry
from kuiper_studio.graph_view.painter import ScenePainter
from kuiper_studio.graph_view.scene import make_scene
from kuiper_studio.graph_view.state import SceneState
from kuiper_studio.layout import layout

CONSUMERS = 2000
SIZE = (900, 500)


class Counting(QPainter):
    """Counts the lines with dashes and round corners."""

    paths = 0

    @override
    def drawPath(self, path):
        self.paths += 1
        super().drawPath(path)


@pytest.fixture(scope="module")
def geometry(qapp, tmp_path_factory):
    path = tmp_path_factory.mktemp("fan") / "fan.param"
    consumers = [f"nn.ReLU r{k} 1 1 0 {k + 1}" for k in range(CONSUMERS)]
    names = " ".join(str(k + 1) for k in range(CONSUMERS))
    lines = ["pnnx.Input in 0 1 0", *consumers, f"my.Join join {CONSUMERS} 0 {names}"]
    text = "\n".join(["7767517", f"{len(lines)} {CONSUMERS + 1}", *lines])
    path.write_text(f"{text}\n")
    scene = make_scene(engine.load(path))
    return Geometry(scene, layout(scene.request("top-down")))


@pytest.mark.parametrize("selected", ["in", "join", "r7"])
@pytest.mark.parametrize("zoom", [1.0, 0.5])
@pytest.mark.parametrize("place", ["in", "join", "r7"])
def test_few_are_painted_as_curves(geometry, theme, selected, zoom, place):
    scene = geometry.scene
    state = SceneState(scene)
    state.selected = scene.index[selected]
    image = QImage(*SIZE, QImage.Format.Format_RGB32)
    image.fill(theme.color("base"))
    painter = Counting(image)
    visible = QRectF(0, 0, SIZE[0] / zoom, SIZE[1] / zoom)
    visible.moveCenter(geometry.rect(scene.index[place]).center())
    ScenePainter(theme, geometry, state).paint(painter, visible, zoom)
    painter.end()
    assert painter.paths < 500
    if selected == place != "r7" and zoom == 1.0:  # and the edges at the selection are lit
        pixels = np.frombuffer(image.constBits(), np.uint32).reshape(SIZE[::-1])
        lit = (pixels & 0xFFFFFF) == (theme.color("focus").rgba() & 0xFFFFFF)
        assert lit.sum() > 300
