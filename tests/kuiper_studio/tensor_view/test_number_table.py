"""The numbers of a picture as a table."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QItemSelection, QItemSelectionModel, Qt
from PySide6.QtGui import QGuiApplication

from kuiper_studio.tensor_view.number_table import NumberTable
from kuiper_studio.tensor_view.table_model import MOST_SECTIONS, PlaneTableModel, cell_text


@pytest.fixture
def model(theme):
    return PlaneTableModel(theme)


@pytest.fixture
def table(shown, theme):
    made = shown(NumberTable(theme), 500, 280)
    made.set_plane(np.arange(200, dtype=np.float32).reshape(10, 20) / 8)
    return made


@pytest.mark.parametrize(
    "plane",
    [
        np.zeros((0, 0)),
        np.arange(12.0).reshape(3, 4),
        np.array([[np.nan, np.inf]]),
        np.array([[True], [False]]),
        np.array([[1 + 2j]]),
    ],
    ids=["empty", "floats", "special", "bools", "complex"],
)
def test_model_is_consistent(model, qtmodeltester, plane):
    model.set_plane(np.zeros((2, 2)))
    model.set_plane(plane)
    qtmodeltester.check(model)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.1), "0.1"),
        (np.float32(-1234567.0), "−1.23457e6"),
        (np.float64("nan"), "NaN"),
        (np.float32("inf"), "+Inf"),
        (np.float32("-inf"), "−Inf"),
        (np.int64(-5), "−5"),
        (np.bool_(True), "True"),
        (np.complex64(1 - 2j), "1\u22122j"),
    ],
)
def test_cell_text(value, text):
    assert cell_text(value) == text


@pytest.mark.parametrize("width", [420, 300, 200])
def test_the_pick_stays_wholly_in_view_as_the_table_gets_narrower(table, width):
    """As where the statistics come, after the pick was scrolled to."""
    table.set_pick((9, 4))
    assert is_wholly_visible(table)
    table.resize(width, 130)
    assert is_wholly_visible(table)


def test_what_the_user_scrolled_away_stays_away(table):
    table.set_pick((0, 0))
    scrolled = table.horizontalScrollBar()
    scrolled.setValue(scrolled.maximum())
    table.resize(300, 200)
    assert not is_wholly_visible(table)
    assert scrolled.value() > 0


def is_wholly_visible(table):
    return table.viewport().rect().contains(table.visualRect(table.currentIndex()))


def test_special_cells_are_coloured(model, theme):
    model.set_plane(np.array([[0, np.nan, np.inf, -np.inf]]))
    colors = [model.index(0, c).data(Qt.ItemDataRole.ForegroundRole) for c in range(4)]
    assert colors == [None, theme.color("nan"), theme.color("pinf"), theme.color("ninf")]


def test_tool_tip_is_exact(model):
    model.set_plane(np.full((2, 2), 1 / 3))
    assert model.index(1, 0).data(Qt.ItemDataRole.ToolTipRole) == "[1, 0] 0.3333333333333333"


def test_new_numbers_of_the_same_shape_keep_the_view(model, qtbot):
    model.set_plane(np.zeros((2, 3)))
    with qtbot.waitSignal(model.dataChanged), qtbot.assertNotEmitted(model.modelReset):
        model.set_plane(np.ones((2, 3)))
    assert model.index(1, 2).data() == "1"


def test_reads_only_what_is_asked_for(model):
    model.set_plane(np.broadcast_to(np.float32(3), (5_000_000, 4)))
    assert model.rowCount() == MOST_SECTIONS
    assert model.index(999_999, 3).data() == "3"


def test_current_cell_picks(table, qtbot):
    with qtbot.waitSignal(table.picked) as picked:
        table.setCurrentIndex(table.model().index(3, 7))
    assert picked.args == [3, 7]


def test_pick_from_elsewhere_is_shown_and_not_told_again(table, qtbot):
    with qtbot.assertNotEmitted(table.picked):
        table.set_pick((9, 19))
    assert (table.currentIndex().row(), table.currentIndex().column()) == (9, 19)
    assert table.viewport().rect().intersects(table.visualRect(table.currentIndex()))


def test_copy_is_exact_and_separated_by_tabs(table):
    first, last = table.model().index(0, 1), table.model().index(1, 2)
    table.selectionModel().select(
        QItemSelection(first, last), QItemSelectionModel.SelectionFlag.ClearAndSelect
    )
    table.copy()
    assert QGuiApplication.clipboard().text() == "0.125\t0.25\n2.625\t2.75"


def test_copy_of_nothing(table):
    QGuiApplication.clipboard().setText("kept")
    table.clearSelection()
    table.copy()
    assert QGuiApplication.clipboard().text() == "kept"
