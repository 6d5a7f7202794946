"""Two tabs side by side, and their difference."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QMenu, QSpinBox, QWidget

import engine
from kuiper_studio.tensor_view import TensorView
from kuiper_studio.tensor_view.fitting import fit
from kuiper_studio.tensor_view.pairing import pair_up
from kuiper_studio.tensor_view.sides import Side


@pytest.fixture
def view(shown, theme, studio):
    return shown(TensorView(studio, theme), 1100, 420)


@pytest.fixture
def both(view, studio, step):
    """The convolution in a locked tab, and its ReLU in the one that follows."""
    step(studio, 2)
    view.lock()
    step(studio)
    view.strip.tabs.setCurrentIndex(0)
    return view


def toggle(view):
    action = view.pane.actions_table["tensor.beside"]
    assert action.isEnabled()
    action.trigger()


def captions(view):
    return [label.text() for label in view.pane.body.planes.findChildren(QLabel)]


def centre(canvas, row, column):
    x, y, width, height = canvas.port.cell_rect(row, column)
    return QPoint(round(x + width / 2), round(y + height / 2))


def test_with_one_zoom_place_and_range(both, studio, qtbot):
    toggle(both)
    planes = both.pane.body.planes
    assert captions(both) == [
        "layer1.relu", "layer1.conv", "Difference: layer1.relu − layer1.conv",
    ]  # fmt: skip
    relu, conv = studio.tensors.value("2"), studio.tensors.value("1")
    channel = both.pane.model.channel
    np.testing.assert_array_equal(planes.theirs.plane, conv[0, channel])
    np.testing.assert_array_equal(planes.difference.plane, relu[0, channel] - conv[0, channel])
    # One range for both, and one of its own with zero in the middle.
    low, high = float(conv.min()), float(max(conv.max(), relu.max()))
    for canvas in (planes.ours, planes.theirs):
        assert canvas.coloring.low <= low
        assert canvas.coloring.high >= high
    largest = float(np.abs(relu - conv).max())
    assert planes.difference.coloring.high == -planes.difference.coloring.low
    assert planes.difference.coloring.high == pytest.approx(largest)

    planes.ours.zoom_by(2)
    planes.theirs.pan(-7, 3)
    assert planes.ours.port.zoom == planes.theirs.port.zoom == planes.difference.port.zoom
    told = []
    both.hovered_changed.connect(lambda text, _: told.append(text))
    row, column = planes.theirs.element_at(QPointF(planes.theirs.rect().center()))
    qtbot.mouseMove(planes.theirs, QPoint(3, 3))
    with qtbot.waitSignal(both.hovered_changed):
        qtbot.mouseMove(planes.theirs, centre(planes.theirs, row, column))
    index = (0, channel, row, column)
    words = (
        f"{list(index)} layer1.relu {relu[index]!s}, layer1.conv {conv[index]!s}, difference"
    )
    assert told[-1].startswith(words)
    toggle(both)
    assert not planes.is_split


def test_each_side_alone(both, studio):
    toggle(both)
    sides = both.strip.sides
    assert sides.isVisible()
    assert sides.button(Side.OURS).text() == "This tab"
    sides.button(Side.DIFFERENCE).click()
    np.testing.assert_array_equal(
        both.pane.model.array, studio.tensors.value("2") - studio.tensors.value("1")
    )
    sides.button(Side.REFERENCE).click()
    assert both.pane.model.array is studio.tensors.value("1")
    sides.button(Side.OURS).click()
    assert both.pane.model.array is studio.tensors.value("2")
    toggle(both)
    assert not sides.isVisible()


@pytest.mark.parametrize("side", [Side.OURS, Side.REFERENCE, Side.DIFFERENCE])
def test_a_copied_expression_gives_the_element_in_python(both, studio, residual, side):
    """As the manual of the package has it: a graph, a session, an input, and a run."""
    toggle(both)
    both.strip.sides.button(side).click()
    both.pane.show_channel(1)
    both.pane.plane.picked.emit(4, 5)
    both.pane.actions_table["tensor.copyExpression"].trigger()
    copied = QGuiApplication.clipboard().text()

    session = engine.Session(engine.load(residual))
    session.feed([np.ones((1, 3, 8, 8), np.float32)])
    for _ in range(3):
        session.step()
    found = eval(copied, {"session": session, "numpy": np})
    conv = np.asarray(studio.tensors.value("1"))[0, 1, 4, 5]
    relu = max(conv, 0)
    expected = {Side.OURS: relu, Side.REFERENCE: conv, Side.DIFFERENCE: relu - conv}[side]
    assert found == pytest.approx(expected, rel=1e-5)
    assert conv < 0  # else the sides are one


def test_statistics_of_the_difference(both, studio):
    toggle(both)
    relu, conv = studio.tensors.value("2"), studio.tensors.value("1")
    apart = np.abs(relu.astype(np.float64) - conv)
    numbers = both.pane.statistics.findChild(QWidget, "tensorDifferenceFacts")
    assert numbers.isVisible()
    largest, mae, rmse = (float(label.text()) for label in numbers.values[:3])
    assert largest == pytest.approx(apart.max(), rel=1e-3)
    assert mae == pytest.approx(apart.mean(), rel=1e-3)
    assert rmse == pytest.approx(np.sqrt(np.mean(apart**2)), rel=1e-3)
    # The strip has a bar for each channel, and says what the shown one differs by.
    assert both.pane.tools.errors.isVisible()
    channel = both.pane.model.channel
    of_channel = both.pane.statistics.findChild(QWidget, "channelDifference").values
    assert float(of_channel[0].text()) == pytest.approx(apart[0, channel].max(), rel=1e-3)
    differing = np.count_nonzero(apart[0, channel])
    assert of_channel[3].text() == f"{differing} / {apart[0, channel].size}"
    other = (channel + 1) % apart.shape[1]
    both.pane.show_channel(other)
    assert float(of_channel[0].text()) == pytest.approx(apart[0, other].max(), rel=1e-3)


def test_a_slice_of_a_larger_tensor(view, studio, step):
    step(studio, 2)
    ours = np.arange(12, dtype=np.float32).reshape(3, 4)
    theirs = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    view.show_weight("layer1.conv", "tokens", theirs)
    view.show_weight("layer1.conv", "some", ours)
    toggle(view)
    note, start = view.findChild(QLabel, "tensorNote"), view.findChild(QSpinBox)
    assert note.text() == "layer1.conv tokens: 0 to 2 of 5 along dimension 0"
    assert (start.maximum(), start.isVisible()) == (2, True)
    start.setValue(2)
    view.strip.sides.button(Side.DIFFERENCE).click()
    np.testing.assert_allclose(view.pane.model.array, ours - theirs[2:])
    assert note.text() == "layer1.conv tokens: 2 to 4 of 5 along dimension 0"
    view.strip.tabs.setCurrentIndex(1)  # the larger one, beside which nothing stands
    assert not start.isVisible()


def test_other_shapes_are_refused_in_a_sentence(both, studio):
    odd = np.zeros((7, 5), np.float32)
    both.show_weight("layer1.conv", "odd", odd)
    toggle(both)
    note = both.findChild(QLabel, "tensorNote")
    assert note.isVisible()
    assert note.text().endswith("1×4×8×8 to 7×5 is no broadcast or slice.")
    assert not both.pane.body.planes.is_split
    both.strip.tabs.setCurrentIndex(0)
    toggle(both)  # of all tabs, that of the same shape
    assert not note.isVisible()
    assert both.pane.body.planes.is_split


def test_a_closed_tab_stands_nowhere(both):
    toggle(both)
    both.close_tab(1)
    assert not both.pane.body.planes.is_split
    assert not both.pane.actions_table["tensor.beside"].isEnabled()


def test_chosen_in_the_menu_of_a_locked_tab(both):
    both.strip.tabs.setCurrentIndex(1)
    menu = QMenu()
    both.fill_menu(menu)
    # Not by their actions: PySide 6.9 destroys a menu that it returns.
    tabs = next(m for m in menu.findChildren(QMenu) if m.title() == "Tab to show beside")
    tabs.aboutToShow.emit()
    assert [action.text() for action in tabs.actions()] == ["layer1.relu 2"]
    tabs.actions()[0].trigger()
    assert captions(both)[:2] == ["layer1.conv", "layer1.relu"]


def test_weights_too(view, studio, step):
    weight = np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype(np.float32)
    view.show_weight("layer1.conv", "weight", weight)
    view.show_weight("layer1.conv", "other", 2 * weight)
    toggle(view)
    assert view.pane.body.planes.is_split
    assert captions(view)[:2] == ["layer1.conv other", "layer1.conv weight"]
    view.strip.sides.button(Side.DIFFERENCE).click()
    np.testing.assert_allclose(view.pane.model.array, weight)


@pytest.mark.parametrize(
    ("ours", "theirs", "words"),
    [
        (np.zeros((2, 3)), np.zeros((3, 2)), "b does not fit beside a: 3×2 to 2×3 is no"),
        (np.zeros((2, 3)), np.zeros((4, 9)), "is no broadcast or slice.$"),
        (np.zeros((1, 4)), np.zeros((2, 3, 4)), "a fits beside b: go to that tab first"),
        (np.zeros((1, 3)), np.zeros((2, 3, 1)), "is no broadcast or slice.$"),
        (np.zeros(4), np.zeros((0, 3)), "is no broadcast"),
        (np.zeros((1, 3)), np.zeros((4, 5, 3)), "is no broadcast"),
        (np.zeros(3), np.zeros((2, 2, 3)), "a fits beside b: go to that tab first"),
        (np.zeros(2), (np.zeros(2), None), "b is not one tensor"),
    ],
)
def test_refusals(ours, theirs, words):
    with pytest.raises(ValueError, match=words):
        pair_up("x", ours, theirs, ("a", "b"))


@pytest.mark.parametrize(
    ("shape", "other", "start", "expression", "last"),
    [
        ((2, 3), (2, 3), 0, "x", 0),
        ((2, 3), (3,), 0, "numpy.broadcast_to(x, (2, 3))", 0),
        ((2, 3), (), 0, "numpy.broadcast_to(x, (2, 3))", 0),
        ((3,), (1, 3), 0, "x.reshape((3,))", 0),
        ((3,), (4, 3), 2, "x[2:3].reshape((3,))", 3),
        ((2, 3), (2, 5), 1, "x[:, 1:4]", 2),
        ((2, 3), (2, 5), 9, "x[:, 2:5]", 2),
        ((1, 3), (4, 3), 1, "x[1:2]", 3),
    ],
)
def test_fits(shape, other, start, expression, last):
    array = np.random.default_rng(0).normal(size=other)
    fitted = fit(array, shape, start)
    expected = eval(fitted.expression.format("x"), {"x": array, "numpy": np})
    np.testing.assert_array_equal(fitted.array, expected)
    assert fitted.array.shape == shape
    assert (fitted.expression.format("x"), fitted.last) == (expression, last)


@pytest.mark.parametrize(
    ("ours", "theirs", "largest", "shared"),
    [
        (np.array([1, 5]), np.array([4, 3]), 3, (1, 5)),
        (np.array([True, False]), np.array([False, False]), 1, (0, 1)),
        (np.array([255, 0], np.uint8), np.array([0, 255], np.uint8), 255, (0, 255)),
        (np.array([np.nan, 2.0]), np.array([1.0, 0.5]), 1.5, (0.5, 2.0)),
        (np.full(2, np.nan), np.full(2, np.nan), np.inf, None),
        (np.array([3 + 4j]), np.array([0j]), 5, (0, 5)),
    ],
)
def test_ranges_of_a_pair(ours, theirs, largest, shared):
    pair = pair_up("x", ours, theirs, ("a", "b"))
    assert (pair.counterpart.largest, pair.shared_range) == (largest, shared)
