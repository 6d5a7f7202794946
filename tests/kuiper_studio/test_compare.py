"""Comparing with a reference in the window: what the user sees, and what F4 does."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import Qt

from kuiper_studio.item_models.comparison_rows import DifferenceColumn, DifferenceKind
from kuiper_studio.tensor_view.sides import Side

# The reference doubles and then adds 1: [1, 2, 3] gives [2, 4, 6] and [3, 5, 7].
INPUT = np.array([1, 2, 3], np.float32)
REFERENCE = {"0": INPUT, "1": INPUT * 2, "2": INPUT * 2 + 1, "3": -(INPUT * 2 + 1)}


def net(factor, sign="neg"):
    return (
        "pnnx.Input in 0 1 0 #0=(3)f32",
        f"pnnx.Expression times 1 1 0 1 expr=mul(@0,{factor}) #0=(3)f32 #1=(3)f32",
        "pnnx.Expression plus 1 1 1 2 expr=add(@0,1) #1=(3)f32 #2=(3)f32",
        f"pnnx.Expression sign 1 1 2 3 expr={sign}(@0) #2=(3)f32 #3=(3)f32",
        "pnnx.Output out 1 0 3 #3=(3)f32",
    )


@pytest.fixture
def reference(tmp_path):
    path = tmp_path / "reference.npz"
    np.savez(path, **REFERENCE)
    return path


@pytest.fixture
def compared(qtbot, open_window, make_pair, reference):
    """A function that opens a network in a window, runs it and compares it."""

    def make(*lines):
        window = open_window(make_pair(*lines), [INPUT])
        session = window.session
        assert session.wait_idle(10)
        session.resume()
        assert session.wait_idle(10)
        session.compare(reference)
        assert session.wait_idle(20)
        model = window.tensor_view.pane.model
        qtbot.waitUntil(lambda: model.name == session.operand)  # it is fetched
        return window

    return make


def shown(panel, column):
    rows = range(panel.shown.rowCount())
    return [panel.shown.index(row, column).data() for row in rows]


def test_the_origin_is_shown(compared):
    window = compared(*net(3))
    panel, session = window.comparison_panel, window.session
    assert panel.isVisible()
    assert panel.verdict.text() == "≠ Differs: 1 origin"
    assert "#1 times" in panel.detail.text()
    titles = [panel.model.headerData(c, Qt.Orientation.Horizontal) for c in DifferenceColumn]
    assert titles[DifferenceColumn.BORN] == "born"
    assert titles[DifferenceColumn.MAX_ABS] == "max abs"
    assert shown(panel, DifferenceColumn.STATUS) == ["=", "≠", "≠", "≠"]
    assert shown(panel, DifferenceColumn.OPERATOR) == ["in", "times", "plus", "sign"]
    assert shown(panel, DifferenceColumn.MAX_ABS) == ["0", "3", "3", "3"]
    assert shown(panel, DifferenceColumn.ERROR)[:2] == ["0", "0.5"]  # 3 of at most 6
    born = shown(panel, DifferenceColumn.BORN)
    assert born[1] == "0.5"  # 3 of at most 6
    assert float(born[2]) == 0
    assert (session.selected, session.operand) == ("times", "1")
    assert (
        panel.table.currentIndex().siblingAtColumn(DifferenceColumn.OPERATOR).data() == "times"
    )
    assert "differs, first in times" in session.workspace.log_entries[-1].text


def test_groups_of_rows(qtbot, compared):
    panel = compared(*net(3)).comparison_panel
    chips = {chip.text(): chip for chip in panel._chips.buttons()}
    assert list(chips) == ["All 4", "Born 1", "Inherited 2", "Equal 1", "Other 0"]
    qtbot.mouseClick(chips["Inherited 2"], Qt.MouseButton.LeftButton)
    assert shown(panel, DifferenceColumn.OPERATOR) == ["plus", "sign"]
    assert not chips["Other 0"].isVisible()
    assert panel.model.count(DifferenceKind.BORN) == 1


def test_a_row_leads_to_its_operator(compared):
    window = compared(*net(3))
    panel = window.comparison_panel
    panel.table.selectRow(2)
    assert (window.session.selected, window.session.operand) == ("plus", "2")


def test_from_origin_to_origin(compared):
    window = compared(*net(3, "square"))
    session, actions = window.session, window.actions_by_id
    assert sorted(session.comparing.origins) == ["sign", "times"]
    assert session.selected == "times"
    visited = []
    for command in ("analyse.nextOrigin", "analyse.nextOrigin", "analyse.previousOrigin"):
        actions[command].trigger()
        visited.append(session.selected)
    assert visited == ["sign", "times", "sign"]


def test_equal_models(compared):
    window = compared(*net(2))
    panel = window.comparison_panel
    assert panel.verdict.text() == "= Same"
    assert not window.actions_by_id["analyse.nextOrigin"].isEnabled()
    assert window.actions_by_id["analyse.report"].isEnabled()


def test_the_references_tensors_are_fetched(compared):
    window = compared(*net(3))
    np.testing.assert_array_equal(window.session.comparing.tensors.fetch("2"), [3, 5, 7])
    assert window.session.comparing.tensors.fetch("no such") is None


def test_other_values_end_it(compared):
    window = compared(*net(3))
    window.session.set_source_list(list(window.session.inputs.values()))
    assert window.session.wait_idle(10)
    assert window.session.comparing.comparison is None
    assert window.comparison_panel.verdict.text() == "Nothing compared"
    assert not window.actions_by_id["analyse.report"].isEnabled()


def test_a_report(compared, tmp_path):
    window = compared(*net(3))
    window.session.restart()
    assert window.session.wait_idle(10)
    window.session.write_report(tmp_path / "r.html")
    assert window.session.wait_idle(10)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Differs: 1 origin" in text
    assert "data:image/png" in text  # its values were computed again


def test_a_reference_that_cannot_be_read(open_window, make_pair, tmp_path):
    window = open_window(make_pair(*net(2)), [INPUT])
    assert window.session.wait_idle(10)
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"no archive")
    window.session.compare(bad)
    assert window.session.wait_idle(10)
    assert window.session.comparing.comparison is None
    assert "bad.npz" in window.session.workspace.log_entries[-1].text
    assert window.session.state.name == "READY"


def test_the_dialog_names_what_is_missing(qtbot, tmp_path, reference):
    from kuiper_studio.dialogs.compare_dialog import CompareDialog

    dialog = CompareDialog([], lambda: str(reference), lambda: "")
    qtbot.addWidget(dialog)
    assert not dialog.ok.isEnabled()
    dialog.path.setCurrentText(str(tmp_path / "none"))
    assert not dialog.ok.isEnabled()
    dialog._on_folder()  # cancelled: what was typed stays
    assert dialog.reference == tmp_path / "none"
    dialog._on_file()
    assert dialog.ok.isEnabled()
    assert (dialog.reference, dialog.tolerance) == (reference, 1e-4)


class TestTensorView:
    """Ours, the reference's tensor and their difference, of one operand."""

    def test_the_sides(self, qtbot, compared):
        window = compared(*net(3))
        tensor = window.tensor_view
        bar, model = tensor.strip.sides, tensor.pane.model
        assert bar.isVisible()
        expected = {
            Side.OURS: [3, 6, 9],
            Side.REFERENCE: [2, 4, 6],
            Side.DIFFERENCE: [1, 2, 3],
        }
        for side, numbers in expected.items():
            qtbot.mouseClick(bar.button(side), Qt.MouseButton.LeftButton)
            qtbot.waitUntil(lambda numbers=numbers: np.array_equal(model.value, numbers))

    def test_flicker_keeps_the_range(self, qtbot, compared):
        window = compared(*net(3))
        model = window.tensor_view.pane.model
        ranges = [model.tensor_range]
        for numbers in ([2, 4, 6], [3, 6, 9]):
            window.actions_by_id["analyse.flicker"].trigger()
            qtbot.waitUntil(lambda numbers=numbers: np.array_equal(model.value, numbers))
            ranges.append(model.tensor_range)
        assert ranges == [(2, 9)] * 3

    def test_the_side_stays_for_the_next_operand(self, qtbot, compared):
        window = compared(*net(3))
        model = window.tensor_view.pane.model
        window.tensor_view.sides.choose(Side.DIFFERENCE)
        window.session.show_operand("2")
        qtbot.waitUntil(lambda: np.array_equal(model.value, [1, 2, 3]))
        window.session.show_operand("3")
        qtbot.waitUntil(lambda: np.array_equal(model.value, [-1, -2, -3]))

    def test_the_worst_element(self, compared):
        window = compared(*net(3))
        window.actions_by_id["analyse.worstElement"].trigger()
        element = window.tensor_view.picked
        assert (element.index, element.value) == ((2,), 9)

    def test_without_a_comparison(self, qtbot, compared):
        window = compared(*net(3))
        window.tensor_view.sides.choose(Side.DIFFERENCE)
        window.actions_by_id["analyse.clear"].trigger()
        assert not window.tensor_view.strip.sides.isVisible()
        model = window.tensor_view.pane.model
        qtbot.waitUntil(lambda: np.array_equal(model.value, [3, 6, 9]))
        assert not window.actions_by_id["analyse.flicker"].isEnabled()
