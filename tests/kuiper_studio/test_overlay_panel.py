"""A channel over the input picture, in the window: by command, slider, mouse and keys."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt

RNG = np.random.default_rng(8)
INPUT = RNG.normal(size=(1, 3, 12, 12)).astype(np.float32)
CONV = (
    "nn.Conv2d conv 1 1 0 1 bias=False dilation=(1,1) groups=1 in_channels=3 kernel_size=(2,2) "
    "out_channels=2 padding=(0,0) padding_mode=zeros stride=(2,2) @weight=(2,3,2,2)f32"
)
STRIDED = (
    "pnnx.Input in 0 1 0",
    CONV,
    "F.relu act 1 1 1 2",
    "torch.flip turned 1 1 2 3 dims=(2)",
    "pnnx.Output out 1 0 3",
)


@pytest.fixture
def window(open_window, make_pair, qtbot):
    weights = {"conv.weight": RNG.normal(size=(2, 3, 2, 2)).astype(np.float32)}
    window = open_window(make_pair(*STRIDED, weights=weights), [INPUT])
    assert window.session.wait_idle(10)
    window.session.resume()
    assert window.session.wait_idle(10)
    show(window, qtbot, "conv")
    window.actions_by_id["analyse.overlay"].trigger()
    qtbot.waitUntil(lambda: has_picture(window))
    return window


def show(window, qtbot, operator):
    window.session.select(operator)
    pane = window.tensor_view.pane
    output = window.session.graph.operator(operator).outputs[0].name
    qtbot.waitUntil(lambda: pane.model.name == output and pane.model.array is not None)


def has_picture(window):
    shown = window.overlay_panel.canvas.shown
    return shown is not None and shown.picture is not None


def colors(window):
    """The colour in the middle of each input pixel of the canvas, shape (12, 12, 3)."""
    canvas = window.overlay_panel.canvas
    image, area = canvas.grab().toImage(), canvas.picture_area()
    side = area.width() / 12
    found = np.zeros((12, 12, 3), int)
    for row in range(12):
        for column in range(12):
            at = image.pixelColor(
                int(area.left() + (column + 0.5) * side), int(area.top() + (row + 0.5) * side)
            )
            found[row, column] = at.red(), at.green(), at.blue()
    return found


def test_cells_lie_where_they_look(window) -> None:
    panel = window.overlay_panel
    assert panel.isVisible()
    assert panel.title.text().startswith("1 · channel ")
    assert panel.title.text().endswith("6×6")
    assert "a cell is 2×2 of the input, the first at (0, 0)" in panel.caption.text()
    panel.opacity.setValue(0)
    bare = colors(window)
    panel.opacity.setValue(100)
    covered = np.abs(colors(window) - bare).sum(axis=2) > 3
    model = window.tensor_view.pane.model
    strong = np.abs(model.plane) > 0.5 * np.abs(model.plane).max()
    assert covered[strong.repeat(2, axis=0).repeat(2, axis=1)].mean() > 0.9


def test_the_picture_follows_channel_and_selection(window, qtbot) -> None:
    panel, pane = window.overlay_panel, window.tensor_view.pane
    other = 1 - pane.model.channel
    pane.show_channel(other)
    assert panel.canvas.shown.plane.title == f"channel {other}"
    np.testing.assert_array_equal(panel.canvas.shown.plane.values, pane.model.plane)
    show(window, qtbot, "act")
    qtbot.waitUntil(lambda: panel.canvas.shown.plane.operand == "2")
    assert panel.suffix.startswith("2 channel")


def test_a_click_picks_and_keys_move(window, qtbot) -> None:
    canvas, tensor = window.overlay_panel.canvas, window.tensor_view
    middle = canvas.cell_area(2, 3).center().toPoint()
    qtbot.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=middle)
    channel = tensor.pane.model.channel
    assert tensor.picked.index == (0, channel, 2, 3)
    canvas.setFocus()
    qtbot.keyClick(canvas, Qt.Key.Key_Down)
    assert tensor.picked.index == (0, channel, 3, 3)
    assert canvas.shown.plane.pick == (3, 3)
    assert window.overlay_panel.value.text().startswith("(3, 3)")


def test_hovering_says_the_value(window, qtbot) -> None:
    panel = window.overlay_panel
    qtbot.mouseMove(panel.canvas, panel.canvas.cell_area(1, 4).center().toPoint())
    qtbot.waitUntil(lambda: panel.value.text().startswith("(1, 4)"))
    value = float(window.tensor_view.pane.model.plane[1, 4])
    assert float(panel.value.text().split()[-1].replace("−", "-")) == pytest.approx(
        value, rel=1e-2
    )
    pane = window.tensor_view.pane
    pane.plane.hovered.emit((5, 0))  # what the canvas of the tensor view tells
    assert panel.value.text().startswith("(5, 0)")
    assert panel.canvas.cell_at(panel.canvas.cell_area(5, 0).center()) == (5, 0)


def test_what_is_no_place_of_the_input_is_said(window, qtbot) -> None:
    panel = window.overlay_panel
    show(window, qtbot, "turned")
    expected = "The rows and columns of operand 3 are not places of input 0."
    qtbot.waitUntil(lambda: panel.message.text().startswith(expected))
    assert panel.message.isVisible()
    window.session.select("in")
    qtbot.waitUntil(lambda: panel.message.text().startswith("This is the input itself"))
    assert not panel.canvas.isVisible()


def test_without_a_picture_it_says_so(open_window, make_pair, qtbot) -> None:
    pair = make_pair("pnnx.Input in 0 1 0", "F.relu act 1 1 0 1", "pnnx.Output out 1 0 1")
    window = open_window(pair, [np.ones((5, 7), np.float32)])
    assert window.session.wait_idle(10)
    window.session.resume()
    assert window.session.wait_idle(10)
    show(window, qtbot, "act")
    window.actions_by_id["analyse.overlay"].trigger()
    panel = window.overlay_panel
    qtbot.waitUntil(
        lambda: panel.message.text() == "This model has no input that is a picture."
    )
    qtbot.mouseClick(panel.canvas, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert window.tensor_view.picked is None
