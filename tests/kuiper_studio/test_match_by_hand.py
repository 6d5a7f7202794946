"""Matching an operand with a tensor of the reference by hand, in the window."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from kuiper_studio.elided_label import WrappedLabel
from kuiper_studio.surfaces import Surface

INPUT = np.array([1, 2, 3], np.float32)
# The tensor with the name of operand 1 is another one; the right one has a name of its own.
REFERENCE = {
    "0": INPUT,
    "1": np.array([7, 7, 9], np.float32),
    "2": INPUT * 2 + 1,
    "doubled": INPUT * 2,
    "long": np.arange(50, dtype=np.float32),
}
NONE = "None: the reference does not have it"
NET = (
    "pnnx.Input in 0 1 0 #0=(3)f32",
    "pnnx.Expression times 1 1 0 1 expr=mul(@0,2) #0=(3)f32 #1=(3)f32",
    "pnnx.Expression plus 1 1 1 2 expr=add(@0,1) #1=(3)f32 #2=(3)f32",
    "pnnx.Output out 1 0 2 #2=(3)f32",
)


@pytest.fixture
def pair(make_pair):
    return make_pair(*NET)


@pytest.fixture
def window(open_window, pair, tmp_path):
    np.savez(tmp_path / "reference.npz", **REFERENCE)
    window = open_window(pair, [INPUT])
    session = window.session
    assert session.wait_idle(10)
    session.resume()
    assert session.wait_idle(10)
    session.studies.compare(tmp_path / "reference.npz")
    assert session.wait_idle(20)
    return window


@pytest.fixture
def answer(qtbot, window):
    """A function that matches an operator by hand, and gives the tensors that are offered."""

    def choose(operator, key, search=""):
        offered = []

        def act():
            dialog = QApplication.activeModalWidget()
            dialog.search.setText(search)
            model = dialog.table.model()
            offered.extend(model.index(row, 0).data() for row in range(model.rowCount()))
            dialog.table.setCurrentIndex(model.index(offered.index(key), 0))
            dialog.ok.click()

        window.session.select(operator)
        QTimer.singleShot(0, act)
        window.actions_by_id["analyse.matchByHand"].trigger()
        assert window.session.wait_idle(20)
        return offered

    return choose


@pytest.fixture
def asked(window):
    """A function that clicks on the panel's button, and gives what the dialog said and held."""

    def click(*keys):
        said = []

        def act():
            dialog = QApplication.activeModalWidget()
            for key in keys:
                QTest.keyClick(dialog.search, key)
            model, current = dialog.table.model(), dialog.table.currentIndex()
            rows = [
                (model.index(row, 0).data(), model.index(row, 4).data())
                for row in range(model.rowCount())
            ]
            said.extend((dialog.findChild(WrappedLabel).text(), rows, current.data()))
            dialog.reject()

        QTimer.singleShot(0, act)
        button = next(b for b in window.findChildren(QPushButton) if "hand" in b.text())
        button.click()
        return said

    return click


def kept(pair):
    path = pair.with_name("m.pnnx.matches.json")
    return list(json.loads(path.read_text())["references"].values()) if path.exists() else []


def test_a_match_by_hand(window, answer, pair):
    panel, opened = window.comparison_panel, window.session.comparing.entries
    assert panel.verdict.text() == "≠ Differs: 2 origins"
    offered = answer("times", "doubled")
    assert offered == [NONE, "0", "1", "2", "doubled"]  # with as many elements
    assert panel.verdict.text() == "= Same"
    assert window.session.selected == "times"  # the selection stays
    assert window.session.comparing.rows["1"].reference == "doubled"
    assert kept(pair) == [{"1": "doubled"}]
    assert window.session.comparing.entries == opened


def test_it_says_how_many_tensors_are_as_large(window):
    """Where none is, the list holds but the answer that there is none, uncut."""
    said = []

    def look():
        dialog = QApplication.activeModalWidget()
        table = dialog.table
        width = sum(map(table.columnWidth, range(table.model().columnCount())))
        needed = table.fontMetrics().horizontalAdvance(NONE)
        shown = table.visualRect(table.model().index(0, 0)).width()
        said.extend((dialog.same_size.text(), needed < shown, shown <= width))
        dialog.reject()

    window.session.select("times")
    QTimer.singleShot(0, look)
    window.actions_by_id["analyse.matchByHand"].trigger()
    assert said == ["Only tensors with 3 elements: 4 of 5", True, True]


def test_no_tensor(window, answer, pair):
    answer("times", NONE)
    assert [each.operand for each in window.session.comparing.comparison.unmatched.ours] == [
        "1"
    ]
    assert window.comparison_panel.verdict.text() == "= Same"
    assert kept(pair) == [{"1": None}]


def test_the_button_where_the_selected_operator_has_no_output(window, answer, asked):
    """It begins with the first operand that lacks a match; without one, there is no button."""
    button = next(b for b in window.findChildren(QPushButton) if "hand" in b.text())
    window.session.select("out")
    assert not button.isEnabled()
    answer("times", NONE)
    window.session.select("out")
    assert button.isEnabled()
    said, _, _ = asked()
    assert said.startswith("Operand 1 of pnnx.Expression times, 3.")
    assert window.session.selected == "times"


def test_arrow_keys_choose_and_the_rows_say_what_is_matched(window, asked):
    window.session.select("times")
    _, rows, chosen = asked(Qt.Key.Key_Down, Qt.Key.Key_Down)
    assert rows == [(NONE, ""), ("0", "in"), ("1", "times"), ("2", "plus"), ("doubled", "")]
    assert chosen == "doubled"


def test_no_row_stays_selected_for_an_operator_without_one(window):
    window.session.select("plus")
    table = window.comparison_panel.table
    assert table.currentIndex().isValid()
    window.session.select("out")
    assert not table.currentIndex().isValid()
    assert not table.selectionModel().selectedRows()


def test_search_among_all(window, answer):
    assert answer("times", "doubled", "DOUB") == [NONE, "doubled"]


def test_remove_and_undo(window, answer, pair):
    actions, panel = window.actions_by_id, window.comparison_panel
    assert not actions["analyse.removeMatch"].isEnabled()
    assert not actions["analyse.undoMatch"].isEnabled()
    answer("times", "doubled")
    results = []
    for command in ("removeMatch", "undoMatch", "undoMatch"):
        actions[f"analyse.{command}"].trigger()
        assert window.session.wait_idle(20)
        results.append((panel.verdict.text(), kept(pair)))
    assert results == [
        ("≠ Differs: 2 origins", []),
        ("= Same", [{"1": "doubled"}]),
        ("≠ Differs: 2 origins", []),
    ]
    assert not actions["analyse.undoMatch"].isEnabled()


def test_the_match_holds_for_the_next_comparison(window, answer, tmp_path):
    answer("times", "doubled")
    window.session.studies.compare(tmp_path / "reference.npz")
    assert window.session.wait_idle(20)
    assert window.comparison_panel.verdict.text() == "= Same"
    assert window.actions_by_id["analyse.removeMatch"].isEnabled() == (
        window.session.selected == "times"
    )


def test_the_reference_is_not_opened_again(window, answer, tmp_path):
    (tmp_path / "reference.npz").unlink()
    answer("times", "doubled")
    assert window.comparison_panel.verdict.text() == "= Same"


def test_a_reference_that_is_gone_leaves_the_comparison_before(window, answer, tmp_path):
    folder = tmp_path / "arrays"
    folder.mkdir()
    for name, array in REFERENCE.items():
        np.save(folder / f"{name}.npy", array)
    window.session.studies.compare(folder)
    assert window.session.wait_idle(20)
    before = window.comparison_panel.verdict.text()
    assert before.startswith("≠ Differs")
    shutil.rmtree(folder)
    answer("times", "doubled")
    assert window.comparison_panel.verdict.text() == before
    said = " ".join(label.text() for label in window.banner.findChildren(QLabel))
    assert "The model was not compared" in said
    assert ".npy cannot be read: there is no such file" in said


def test_a_file_that_cannot_be_written(window, answer, pair):
    """The match holds, and log and status bar say that it is not kept."""
    pair.with_name("m.pnnx.matches.json").write_text("no JSON")
    answer("times", "doubled")
    assert window.comparison_panel.verdict.text() == "= Same"
    texts = [entry.text for entry in window.session.workspace.log_entries]
    assert any("matches by hand are not kept" in text for text in texts)
    said = window.status_bar.findChild(QLabel, "statusAnnouncement")
    assert said.isVisible()
    assert said.text().startswith("matches by hand are not kep")


def test_where_it_is_offered(window):
    window.session.select("times")
    for surface in (Surface.COMPARISON, Surface.GRAPH_OPERATOR, Surface.OPERATORS):
        menu = window.commands.make_menu(surface)
        assert window.actions_by_id["analyse.matchByHand"] in menu.actions()
        menu.deleteLater()
    window.actions_by_id["analyse.clear"].trigger()
    menu = window.commands.make_menu(Surface.OPERATORS)
    assert window.actions_by_id["analyse.matchByHand"] not in menu.actions()
    menu.deleteLater()
