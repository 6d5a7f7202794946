"""What is shown of complex numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from PySide6.QtWidgets import QWidget

from kuiper_studio.tensor_view.complex_parts import Part

VALUE = np.array([[3 + 4j, -2], [-1j, 0]], np.complex64)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Part.MAGNITUDE, [[5, 2], [1, 0]]),
        (Part.PHASE, [[math.atan2(4, 3), math.pi], [-math.pi / 2, 0]]),
        (Part.REAL, [[3, -2], [0, 0]]),
        (Part.IMAGINARY, [[4, 0], [-1, 0]]),
    ],
)
def test_each_part_is_painted_in_its_range(pane, part, expected):
    pane.set_value("x", VALUE)
    action = next(a for a in pane.actions_table.all() if a.data() is part)
    assert action.isEnabled()
    action.trigger()
    np.testing.assert_allclose(pane.plane.plane, expected, rtol=1e-6)
    coloring = pane.plane.coloring
    if part is Part.PHASE:
        assert (coloring.low, coloring.high) == (-math.pi, math.pi)
        assert coloring.color_map == "twilight"
        assert coloring.color_of(-math.pi) == coloring.color_of(math.pi)
    else:
        assert coloring.low <= np.min(expected)
        assert coloring.high >= np.max(expected)
    pane.set_value("real", VALUE.real.copy())
    assert not action.isEnabled()
    pane.set_value("x", VALUE)  # it is remembered
    np.testing.assert_allclose(pane.plane.plane, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("part", "low", "high", "mean"),
    [
        (Part.MAGNITUDE, 0, 5, 2),
        (Part.PHASE, -math.pi / 2, math.pi, (math.atan2(4, 3) + math.pi / 2) / 4),
        (Part.REAL, -2, 3, 0.25),
        (Part.IMAGINARY, -1, 4, 0.75),
    ],
)
def test_statistics_are_of_what_is_shown(pane, part, low, high, mean):
    pane.set_value("x", np.stack([VALUE, VALUE]))
    next(a for a in pane.actions_table.all() if a.data() is part).trigger()
    for name, title in (("tensorFacts", "Tensor"), ("channelFacts", "Channel 0")):
        section = pane.statistics.findChild(QWidget, name)
        assert section.accessibleName() == f"{title}, {part.value}"
        texts = [label.text().replace("\u2212", "-") for label in section.values[:3]]
        assert [float(text) for text in texts] == pytest.approx([low, high, mean], rel=1e-3)
