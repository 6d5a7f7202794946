"""Lines and cells as pixels; what is expected is drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kuiper_studio.graph_view import raster as module
from kuiper_studio.graph_view.raster import Raster, fill_cells


def drawn(picture):
    return ["".join(" #ab"[pixel] for pixel in row) for row in picture.tolist()]


@pytest.mark.parametrize(
    ("segments", "expected"),
    [
        pytest.param([], ["     "] * 3, id="none"),
        pytest.param([[1, 0, 3, 0]], [" ### ", "     ", "     "], id="level"),
        pytest.param([[4, 0, 4, 1]], ["    #", "    #", "     "], id="upright"),
        pytest.param([[2.9, 1.2, 2.9, 1.2]], ["     ", "  #  ", "     "], id="point"),
        pytest.param([[-9, 2, 1, 2], [3, 2, 99, 2]], ["     ", "     ", "## ##"], id="cut"),
        pytest.param([[0, -9, 0, 99]], ["#    "] * 3, id="cut-upright"),
        pytest.param([[0, 0, 2, 0], [2, 0, 4, 0]], ["#####", "     ", "     "], id="joined"),
        pytest.param([[1, 0, 1, 2], [0, 1, 4, 1]], [" #   ", "#####", " #   "], id="cross"),
        pytest.param([[-1, 3, 9, 3], [5, 0, 5, 9], [-3, 0, -1, 0]], ["     "] * 3, id="out"),
    ],
)
@pytest.mark.parametrize("few", [0, 3000], ids=["counted", "one-by-one"])
def test_lines(segments, expected, few, monkeypatch):
    monkeypatch.setattr(module, "_FEW_LINES", few)
    raster = Raster(5, 3)
    raster.paint(np.array([[0.0, 0, 4, 0], [4, 0, 4, 2]]), 1, 0)  # is gone in the next one
    picture = raster.paint(np.array(segments, np.float64).reshape(-1, 4), 1, 0)
    assert drawn(picture) == expected


def test_as_many_lines_as_can_be_counted():
    segments = np.repeat([[1.0, 0.0, 2.0, 0.0]], 12_000, axis=0)
    assert drawn(Raster(4, 2).paint(segments, 1, 0)) == [" ## ", "    "]


@pytest.mark.parametrize(
    ("rects", "expected"),
    [
        pytest.param([[1, 0, 3, 2]], [" ## ", " ## ", "    "], id="one"),
        pytest.param([[0, 0, 2, 1], [1, 0, 3, 1]], ["#aa ", "    ", "    "], id="later-above"),
        pytest.param([[2.6, 1.4, 2.7, 1.4]], ["    ", "   #", "    "], id="at-least-a-pixel"),
        pytest.param([[-5, -5, 1, 99]], ["#   "] * 3, id="cut"),
        pytest.param([[4, 0, 9, 9], [-9, 0, -1, 9], [0, 3, 9, 9]], ["    "] * 3, id="outside"),
    ],
)
def test_cells(rects, expected):
    picture = np.zeros((3, 4), np.uint32)
    colors = np.arange(1, len(rects) + 1, dtype=np.uint32)
    fill_cells(picture, np.array(rects, np.float64), colors)
    assert drawn(picture) == expected
