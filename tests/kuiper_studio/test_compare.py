"""Comparing with a reference in the window: what the user sees, and what F4 does."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QDockWidget,
    QLabel,
    QPushButton,
    QTabBar,
)

from engine.comparison import compare
from engine.comparison.reasons import Reason
from engine.inputs import InputSource
from kuiper_studio.cli import main
from kuiper_studio.elided_label import ElidedLabel
from kuiper_studio.engine_service import compared_run
from kuiper_studio.item_models.comparison_rows import DifferenceColumn, DifferenceKind
from kuiper_studio.tensor_view.sides import Side
from kuiper_studio.theme import Scheme

# The reference doubles and then adds 1: [1, 2, 3] gives [2, 4, 6] and [3, 5, 7].
INPUT = np.array([1, 2, 3], np.float32)
SET_TWO = "Set expr=mul(@0,2)."
REFERENCE = {"0": INPUT, "1": INPUT * 2, "2": INPUT * 2 + 1, "3": -(INPUT * 2 + 1)}


def test_the_window_reads_results_without_what_computes_them():
    """Its process would stand still while layers and backends are imported."""
    code = (
        "import sys, engine.comparison.measures, engine.comparison.reasons.reason\n"
        "import engine.comparison.rows\n"
        "sys.exit('engine.backends' in sys.modules or 'engine.session' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


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


def test_another_preparation_of_the_image_is_found(qtbot, open_window, photographed, tmp_path):
    pair, picture, photograph = photographed
    plain = np.asarray(picture.resize((16, 16), Image.Resampling.NEAREST), np.float32)
    tensor = plain.transpose(2, 0, 1)[np.newaxis] / 255
    np.savez(tmp_path / "reference.npz", **{"0": tensor, "1": tensor})
    window = open_window(pair, [photograph])
    session = window.session
    assert session.wait_idle(10)
    session.resume()
    assert session.wait_idle(10)
    session.studies.compare(tmp_path / "reference.npz")
    assert session.wait_idle(20)
    session.select("in")
    banner = window.origin_banner
    qtbot.waitUntil(banner.isVisible)
    texts = [label.text() for label in banner.findChildren(QLabel)]
    assert any("stretched to 16×16, nearest as in Pillow" in text for text in texts), texts


@pytest.fixture
def compared(qtbot, open_window, make_pair, reference, wait_for_turns):
    """A function that opens a network in a window, runs it and compares it."""

    def make(*lines):
        window = open_window(make_pair(*lines), [INPUT])
        session = window.session
        assert session.wait_idle(10)
        session.resume()
        assert session.wait_idle(10)
        session.studies.compare(reference)
        assert session.wait_idle(20)
        wait_for_turns()
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
    said = [entry.text for entry in session.workspace.log_entries]
    assert any("differs, first in times" in text for text in said)


def test_parts_of_the_window_are_painted_in_turns(compared, reference, wait_for_turns):
    """All at once would take several frames."""
    window = compared(*net(3))
    docks = [window.findChild(QDockWidget, name) for name in ("comparison", "operators")]
    parts = [*docks, window.graph_view, window.tensor_view]
    assert all(part.updatesEnabled() for part in parts)
    waiting = []
    comparing = window.session.comparing
    comparing.changed.connect(lambda: waiting.extend(not p.updatesEnabled() for p in parts))
    window.session.studies.compare(reference)
    assert window.session.wait_idle(20)
    assert waiting == [True] * len(parts)
    wait_for_turns()
    assert all(part.updatesEnabled() for part in parts)


def test_the_tensor_follows_the_rows_in_a_later_turn(compared, reference, wait_for_turns):
    window = compared(*net(3))
    window.actions_by_id["analyse.clear"].trigger()
    sides = window.tensor_view.strip.sides
    assert not sides.isVisible()  # at once, for what it showed is gone
    shown = []
    window.session.comparing.changed.connect(lambda: shown.append(sides.isVisible()))
    window.session.studies.compare(reference)
    assert window.session.wait_idle(20)
    assert shown == [False]
    wait_for_turns()
    assert sides.isVisible()


def test_a_choice_of_the_user_is_kept(compared, reference, wait_for_turns):
    """The first origin is selected in a later turn; another operator may be selected before."""
    window = compared(*net(3))
    session = window.session
    session.comparing.changed.connect(lambda: session.select("sign"))
    session.studies.compare(reference)
    assert session.wait_idle(20)
    wait_for_turns()
    assert session.selected == "sign"


def test_groups_of_rows(qtbot, compared):
    panel = compared(*net(3)).comparison_panel
    chips = {
        chip.text(): chip for chip in panel.findChildren(QAbstractButton) if chip.isCheckable()
    }
    assert list(chips) == ["All 4", "Born 1", "Inherited 2", "Equal 1", "Other 0"]
    qtbot.mouseClick(chips["Inherited 2"], Qt.MouseButton.LeftButton)
    assert shown(panel, DifferenceColumn.OPERATOR) == ["plus", "sign"]
    assert not chips["Other 0"].isVisible()
    assert panel.model.count(DifferenceKind.BORN) == 1


def test_marks_of_the_rows(compared):
    """Filled where the difference is born, a ring where it is inherited, as in the graph."""
    table = compared(*net(3)).comparison_panel.table
    table.selectRow(0)
    image, color = table.viewport().grab().toImage(), table._theme.color("div").name()

    def ink(row):
        rect = table.visualRect(table.model().index(row, DifferenceColumn.STATUS))
        places = [
            (x, y)
            for x in range(rect.left(), rect.right())
            for y in range(rect.top(), rect.bottom())
        ]
        return sum(image.pixelColor(x, y).name() == color for x, y in places)

    assert ink(0) == 0
    assert ink(1) > 2 * ink(2) > 0


def test_a_row_leads_to_its_operator(compared):
    window = compared(*net(3))
    panel = window.comparison_panel
    panel.table.selectRow(2)
    assert (window.session.selected, window.session.operand) == ("plus", "2")


def test_the_chosen_row_stays_in_view_when_the_table_shrinks(compared):
    """As when a scroll bar, or the verdict above it, takes a part of its height."""
    table = compared(*net(3)).comparison_panel.table
    row = table.verticalHeader().defaultSectionSize()
    around = table.height() - table.viewport().height()
    table.setFixedHeight(around + 3 * row)
    table.selectRow(2)
    table.scrollToTop()
    QApplication.processEvents()
    table.setFixedHeight(around + 2 * row)
    QApplication.processEvents()
    seen = table.visualRect(table.currentIndex())
    assert seen.top() >= 0
    assert seen.bottom() <= table.viewport().height()
    table.scrollToTop()  # what the user scrolled away does not come back
    table.setFixedHeight(around + row)
    QApplication.processEvents()
    assert table.verticalScrollBar().value() == 0


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


def test_only_a_tensor_that_the_reference_has_flickers(
    qtbot, open_window, make_pair, tmp_path, wait_for_turns
):
    np.savez(tmp_path / "part.npz", **{"0": INPUT, "1": INPUT * 2})
    window = open_window(make_pair(*net(3)), [INPUT])
    session, flicker = window.session, window.actions_by_id["analyse.flicker"]
    assert session.wait_idle(10)
    session.resume()
    assert session.wait_idle(10)
    session.studies.compare(tmp_path / "part.npz")
    assert session.wait_idle(20)
    wait_for_turns()
    qtbot.waitUntil(flicker.isEnabled)  # at the origin
    session.select("sign")
    qtbot.waitUntil(lambda: not flicker.isEnabled())
    assert "The reference has no tensor that is compared with" in flicker.toolTip()
    session.select("times")
    qtbot.waitUntil(flicker.isEnabled)


def test_what_follows_the_last_operator_has_no_full_bar(
    open_window, make_pair, reference, monkeypatch
):
    """A full bar for the seconds that the reasons take would look like a program that hangs."""
    monkeypatch.setattr("kuiper_studio.engine_service.server.SECONDS_BETWEEN_REPORTS", 0)
    window = open_window(make_pair(*net(3)), [INPUT])
    session = window.session
    assert session.wait_idle(10)
    said = []
    session.progress_changed.connect(said.append)
    session.studies.compare(reference)
    assert session.wait_idle(20)
    told = [each for each in said if each is not None]
    words = "Comparing with reference.npz: finding origins and reasons"
    labels = [each.label for each in told]
    assert words in labels
    # The run, which the comparison has to end first, is counted before them.
    assert {*labels[labels.index(words) :]} == {words}
    assert all(each.total == 0 for each in told if each.label == words)
    assert all(each.done < each.total for each in told if each.total)


def test_a_cancelled_comparison_says_so(qtbot, open_window, make_pair, reference, monkeypatch):
    pressed = threading.Event()

    def compare_later(*given, **options):
        pressed.wait(10)
        return compare(*given, **options)

    monkeypatch.setattr(compared_run, "compare", compare_later)
    window = open_window(make_pair(*net(3)), [INPUT])
    session = window.session
    assert session.wait_idle(10)
    session.studies.compare(reference)
    cancel = window.status_bar.findChild(QPushButton, "statusCancel")
    qtbot.waitUntil(cancel.isVisible)
    cancel.click()
    qtbot.wait(100)  # until the engine has heard of it
    pressed.set()
    assert session.wait_idle(20)
    assert session.comparing.comparison is None
    said = window.status_bar.findChild(QLabel, "statusAnnouncement")
    assert said.isVisible()
    assert said.text() == "the comparison was cancelled"


def test_a_second_comparison_is_not_offered_while_one_is_under_way(
    open_window, make_pair, reference
):
    """What its dialog asked for was ignored, without a word."""
    window = open_window(make_pair(*net(3)), [INPUT])
    session, compare = window.session, window.actions_by_id["analyse.compare"]
    assert session.wait_idle(10)
    assert compare.isEnabled()
    buttons = window.comparison_panel.findChildren(QPushButton)
    (button,) = [each for each in buttons if each.text() == "Compare…"]
    seen = []
    session.progress_changed.connect(lambda _: seen.append(compare.isEnabled()))
    session.studies.compare(reference)
    assert not compare.isEnabled()
    assert not button.isEnabled()
    assert "cancel it in the status bar" in compare.toolTip()
    assert session.wait_idle(20)
    assert not any(seen[:-1])
    assert compare.isEnabled()
    assert button.isEnabled()
    assert "\n" not in compare.toolTip()


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
    window.session.studies.write_report(tmp_path / "r.html")
    assert window.session.wait_idle(10)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Differs: 1 origin" in text
    assert "data:image/png" in text  # its values were computed again


def test_a_report_says_how_to_repeat_it(
    open_window, make_pair, tmp_path, reference, wait_for_turns, capsys
):
    def command_of(window, name):
        window.session.resume()
        assert window.session.wait_idle(10)
        window.session.studies.compare(reference)
        assert window.session.wait_idle(20)
        wait_for_turns()
        window.session.studies.write_report(tmp_path / name)
        assert window.session.wait_idle(10)
        page = (tmp_path / name).read_text(encoding="utf-8")
        return [
            shlex.split(html.unescape(found)) for found in re.findall("<pre>(.*?)</pre>", page)
        ]

    given = tmp_path / "given x.npy"
    np.save(given, INPUT)
    window = open_window(make_pair(*net(3)), [given])
    assert window.session.wait_idle(10)
    window.session.set_backend("numpy")
    assert window.session.wait_idle(10)

    (command,) = command_of(window, "r.html")

    assert command[0] == "kuiper-studio"
    assert main(command[1:]) == 1  # differs, by the same operator
    assert "times" in capsys.readouterr().out
    assert command[-2:] == ["--backend", "numpy"]
    # No command line gives an array, or another value than is computed.
    window.session.set_source_list([InputSource("array", array=INPUT)])
    assert command_of(window, "s.html") == []


def test_a_reference_that_cannot_be_read(open_window, make_pair, tmp_path):
    window = open_window(make_pair(*net(2)), [INPUT])
    assert window.session.wait_idle(10)
    bad = tmp_path / "bad.npz"
    bad.write_bytes(b"no archive")
    window.session.studies.compare(bad)
    assert window.session.wait_idle(10)
    assert window.session.comparing.comparison is None
    assert "bad.npz" in window.session.workspace.log_entries[-1].text
    assert window.session.state.name == "READY"


def test_a_reference_without_matches_is_no_verdict(open_window, make_pair, tmp_path):
    window = open_window(make_pair(*net(2)), [INPUT])
    window.session.resume()
    assert window.session.wait_idle(10)
    np.savez(tmp_path / "other.npz", strange=np.ones((3, 4)), other=np.arange(7))
    window.session.studies.compare(tmp_path / "other.npz")
    assert window.session.wait_idle(10)
    panel = window.comparison_panel
    assert window.session.comparing.comparison.rows == ()
    assert panel.verdict.text() == "? Nothing compared"
    assert "other.npz" in panel.detail.text()
    assert "match one by hand" in panel.detail.text()
    assert panel.table._empty_text == "No operand has a tensor of the reference"


def test_the_dialog_names_what_is_missing(qtbot, tmp_path, reference):
    from kuiper_studio.dialogs.compare_dialog import CompareDialog

    dialog = CompareDialog([], lambda: str(reference), lambda: "")
    qtbot.addWidget(dialog)
    assert not dialog.ok.isEnabled()
    assert dialog.path.lineEdit().placeholderText() == "Choose a file or a folder"
    dialog.path.setCurrentText(str(tmp_path / "none"))
    assert not dialog.ok.isEnabled()
    buttons = {button.text(): button for button in dialog.findChildren(QPushButton)}
    buttons["Folder…"].click()  # cancelled: what was typed stays
    assert dialog.reference == tmp_path / "none"
    buttons["File…"].click()
    assert dialog.ok.isEnabled()
    assert (dialog.reference, dialog.tolerance) == (reference, 1e-4)


def test_enter_compares_with_the_reference_that_is_selected_in_the_dialog(qtbot, reference):
    from kuiper_studio.dialogs.compare_dialog import CompareDialog

    dialog = CompareDialog([], str, str, first=str(reference))
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitExposed(dialog)
    dialog.path.setFocus()
    dialog.path.lineEdit().selectAll()
    with qtbot.waitSignal(dialog.accepted, timeout=1000):
        qtbot.keyClick(dialog.path, Qt.Key.Key_Return)


def test_fields_of_the_dialog_are_in_one_line_and_the_path_is_typed_at_once(qtbot, tmp_path):
    from kuiper_studio.dialogs.compare_dialog import CompareDialog

    beside = [tmp_path / "m.onnx"]
    dialog = CompareDialog(["/old"], str, str, beside=beside)
    qtbot.addWidget(dialog)
    dialog.show()
    qtbot.waitExposed(dialog)
    fields = (dialog.path, *dialog.beside, dialog.backends, dialog.seed_text, dialog.input,
              dialog.choice)  # fmt: skip
    assert len({field.mapTo(dialog, QPoint(0, 0)).x() for field in fields}) == 1
    assert dialog.focusWidget() in (dialog.path, dialog.path.lineEdit())
    qtbot.keyClicks(dialog.focusWidget(), "/new")
    assert dialog.path.currentText() == "/new"


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

    def test_every_side_has_a_name_in_a_small_window(self, qtbot, compared):
        window = compared(*net(3))
        strip = window.tensor_view.strip
        for width in (1190, 1440):
            window.resize(width, 600)
            qtbot.waitUntil(lambda width=width: window.width() == width)
            for side in Side:
                button = strip.sides.button(side)
                qtbot.waitUntil(lambda each=button: each.width() >= each.sizeHint().width())
                assert button.text()
        assert strip.sides.button(Side.REFERENCE).text() == "Reference"

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
        button = window.origin_banner.findChild(QPushButton, "analyse.worstElement")
        assert "There is no comparison" not in button.toolTip()
        window.actions_by_id["analyse.worstElement"].trigger()
        element = window.tensor_view.picked
        assert (element.index, element.value) == ((2,), 9)

    def test_nothing_is_worst_where_nothing_was_compared(self, compared, reference):
        with np.load(reference) as stored:
            arrays = {name: stored[name] for name in stored if name != "2"}
        np.savez(reference, **arrays)
        window = compared(*net(3))
        button = window.origin_banner.findChild(QPushButton, "analyse.worstElement")
        assert button.isEnabled()
        window.session.select("plus")
        assert not button.isEnabled()
        missing = "The shown tensor has no element to compare with the reference's"
        assert button.toolTip().endswith(missing)
        window.session.select("times")
        assert button.isEnabled()
        assert "no element" not in button.toolTip()

    def test_without_a_comparison(self, qtbot, compared):
        window = compared(*net(3))
        window.tensor_view.sides.choose(Side.DIFFERENCE)
        window.actions_by_id["analyse.clear"].trigger()
        assert not window.tensor_view.strip.sides.isVisible()
        model = window.tensor_view.pane.model
        qtbot.waitUntil(lambda: np.array_equal(model.value, [3, 6, 9]))
        assert not window.actions_by_id["analyse.flicker"].isEnabled()


class TestOriginBanner:
    """Why the selected origin differs, above the graph, and what to do about it."""

    @staticmethod
    def read(banner):
        return [label.text() for label in banner.findChildren(QLabel) if label.isVisible()]

    @staticmethod
    def click(qtbot, window, command):
        button = window.origin_banner.findChild(QPushButton, command)
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)

    def test_it_explains_the_origin(self, compared):
        window = compared(*net(3))
        banner, panel = window.origin_banner, window.comparison_panel
        what = "'times' differs on the reference's inputs by 0.5 of the largest element"
        texts = [
            "Differs: 1 origin",
            f"pnnx.Expression {what}",
            "The reference computes mul(@0,2), the file mul(@0,3).",
            "explains 100.0 %",
            SET_TWO,
        ]
        assert self.read(banner) == texts
        for text in (*texts[:2], "mul(@0,3). Set expr=mul(@0,2)."):
            assert text in banner.accessibleDescription()
        assert not panel.reasons.isVisible()  # twice is no better
        banner.close_button.click()
        assert panel.reasons.isVisible()
        assert panel.reasons.text().endswith("the file mul(@0,3). Set expr=mul(@0,2).")

    def test_it_says_when_nothing_explains_the_difference(self, compared, reference):
        with np.load(reference) as stored:
            arrays = {**stored, "1": np.array([9, -4, 2.5], np.float32)}
        np.savez(reference, **arrays)
        banner = compared(*net(3)).origin_banner
        read = self.read(banner)
        assert "No known reason explains it." in read
        assert not any("%" in text for text in read)

    def test_it_says_that_another_input_is_no_fault_of_the_model(self, compared, reference):
        with np.load(reference) as stored:
            arrays = {**stored, "0": np.array([0.7, 3, -9], np.float32)}
        np.savez(reference, **arrays)
        read = self.read(compared(*net(2)).origin_banner)
        told = "No known way to prepare an input explains it. Give both the same input."
        assert told in read

    def test_it_stays_for_other_operators(self, compared):
        """What lies below does not move from operator to operator."""
        window = compared(*net(3, "square"))
        session, banner = window.session, window.origin_banner
        top = window.graph_view.mapTo(window, QPoint(0, 0)).y()
        begins = "The difference begins in #1 times, #3 sign."
        seen = []
        for name in ("plus", "sign", "", "times"):
            session.select(name)
            assert banner.isVisible()
            assert window.graph_view.mapTo(window, QPoint(0, 0)).y() == top
            seen.append(self.read(banner)[1:3])
            assert seen[-1][0] in banner.accessibleDescription()
        assert seen[0] == [
            "'plus': inherited from upstream, difference 0.429 of the reference's maximum",
            begins,
        ]
        assert seen[1][0].startswith("pnnx.Expression 'sign' differs")
        assert seen[2] == ["", begins]
        assert seen[3][0].startswith("pnnx.Expression 'times' differs")
        window.actions_by_id["analyse.clear"].trigger()
        assert not banner.isVisible()
        session.select("sign")
        assert not banner.isVisible()

    def test_a_closed_one_returns_for_another_origin(self, qtbot, compared, reference):
        window = compared(*net(3, "square"))
        session, banner = window.session, window.origin_banner
        qtbot.mouseClick(banner.close_button, Qt.MouseButton.LeftButton)
        assert not banner.isVisible()
        session.select("plus")
        assert not banner.isVisible()
        session.select("sign")
        assert banner.isVisible()
        session.select("times")
        assert not banner.isVisible()
        session.studies.compare(reference)
        assert session.wait_idle(20)
        assert (session.selected, banner.isVisible()) == ("times", True)

    def test_a_reset_of_the_layout_leaves_no_tabs_behind(self, compared):
        window = compared(*net(3))

        def tabs():
            bars = [bar for bar in window.findChildren(QTabBar) if bar.parent() is window]
            inside = [bar for bar in bars if window.rect().intersects(bar.geometry())]
            return [bar.tabText(i) for bar in inside for i in range(bar.count())]

        assert tabs() == ["Properties", "Comparison"]
        window.actions_by_id["view.resetLayout"].trigger()
        assert tabs() == []
        assert window.origin_banner.isVisible()

    def test_keys_reach_it_and_close_it(self, qtbot, compared):
        window = compared(*net(3))
        banner = window.origin_banner
        window.activateWindow()
        window.input_panel.keyboard_target().setFocus()
        window.actions_by_id["view.nextPane"].trigger()
        assert banner.isAncestorOf(window.focusWidget())
        stops = [window.focusWidget()]
        while banner.isAncestorOf(stops[-1]):
            window.focusNextChild()
            stops.append(window.focusWidget())
        names = [stop.accessibleName() or stop.text() for stop in stops[:-1]]
        assert names == [
            "Go to worst element", "Save report…", "Extract operators…", "Close this message",
        ]  # fmt: skip
        banner.close_button.setFocus()
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Escape)
        assert not banner.isVisible()
        assert window.focusWidget().isVisible()

    def test_its_buttons(self, qtbot, compared):
        window = compared(*net(3, "square"))
        self.click(qtbot, window, "analyse.worstElement")
        assert window.tensor_view.picked.index == (2,)
        self.click(qtbot, window, "analyse.nextOrigin")
        assert window.session.selected == "sign"
        self.click(qtbot, window, "analyse.nextOrigin")
        assert window.session.selected == "times"

    def test_there_is_no_next_one_of_one(self, compared):
        window = compared(*net(3))
        button = window.origin_banner.findChild(QPushButton, "analyse.nextOrigin")
        assert not button.isEnabled()
        window.session.select("sign")
        assert window.actions_by_id["analyse.nextOrigin"].isEnabled()

    @staticmethod
    def is_laid_out(banner, count=9):
        """Whether its labels and buttons lie inside, and none lies over another."""
        shown = [
            QRect(each.mapTo(banner, QPoint(0, 0)), each.size())
            for kind in (QLabel, QPushButton)
            for each in banner.findChildren(kind)
            if each.isVisible()
        ]
        assert len(shown) == count
        return all(
            banner.rect().contains(rect)
            and not any(rect.intersects(other) for other in shown[place + 1 :])
            for place, rect in enumerate(shown)
        )

    @pytest.mark.parametrize("scheme", [Scheme.DARK, Scheme.LIGHT])
    def test_nothing_is_cut_or_covered(self, qtbot, compared, scheme):
        window = compared(*net(3))
        window.theme.set_scheme(scheme)
        banner = window.origin_banner
        for size in ((1366, 768), (1440, 900), (1920, 1080)):
            window.resize(*size)
            qtbot.waitUntil(lambda: not banner.visibleRegion().isEmpty())
            assert (window.width(), window.height()) == size
            left = banner.mapTo(window, QPoint(0, 0)).x()
            assert left == window.graph_view.mapTo(window, QPoint(0, 0)).x()
            assert left + banner.width() == window.width()
            qtbot.waitUntil(lambda: self.is_laid_out(banner))
            for label in banner.findChildren(QLabel):
                room = label.contentsRect().width() * 3  # lines at most
                assert label.fontMetrics().horizontalAdvance(label.text()) <= room
        image = banner.grab().toImage()
        assert image.pixelColor(1, 40) == window.theme.color("div")
        assert image.pixelColor(10, 80) == window.theme.color("panel")

    def test_reasons_have_the_room_of_buttons_in_a_small_window(self, qtbot, compared):
        window = compared(*net(3))
        banner = window.origin_banner
        button = banner.findChild(QPushButton, "analyse.worstElement")
        assert button.text() == "Go to worst element"
        window.resize(1024, 600)
        qtbot.waitUntil(lambda: button.text() == "Worst element")
        assert button.accessibleName() == "Go to worst element"
        for text in ("Differs: 1 origin", "explains 100.0 %"):
            label = next(each for each in banner.findChildren(QLabel) if each.text() == text)
            needed = label.fontMetrics().horizontalAdvance(text)
            qtbot.waitUntil(lambda label=label, least=needed: label.width() >= least)

    def test_further_reasons(self, qtbot, compared):
        window = compared(*net(3))
        banner, origins = window.origin_banner, window.session.comparing._origins
        further = (Reason("scale", 0.25, "It is half. Set it."), Reason("bias", 0.125, "It."))
        origin, what = origins["times"], "The reference computes mul(@0,2), the file mul(@0,3)."
        for count in (1, 2):
            reasons = (*origin.reasons, *further[:count])
            origins["times"] = replace(origin, reasons=reasons)
            window.session.select("plus")
            window.session.select("times")
            qtbot.waitUntil(lambda count=count: self.is_laid_out(banner, 8 + 2 * count))
            lines = [f"{what} {SET_TWO}", "explains 100.0 %", "25.0 %", "It is half. Set it."]
            assert self.read(banner)[2:] == [*lines, "12.5 %", "It."][: 2 + 2 * count]
            assert "25.0 %  It is half. Set it." in banner.accessibleDescription()

    def test_the_change_to_make_is_read_where_a_reason_has_no_room(self, qtbot, compared):
        window = compared(*net(3))
        window.resize(1366, 768)
        banner, origins = window.origin_banner, window.session.comparing._origins
        because = "The image of the reference is letterboxed: its longer side fits 224×224."
        reasons = tuple(
            Reason("parameter", 1.0, f"{because} {change}")
            for change in ("Set fit=letterbox.", "Set order=BGR.", "Set mean=0 and std=1.")
        )
        origins["times"] = replace(origins["times"], reasons=reasons)
        window.session.select("plus")
        window.session.select("times")

        def read():
            labels = banner.findChildren(ElidedLabel)
            return [each.lines()[0] for each in labels if each.text().startswith(because)]

        changes = ["Set fit=letterbox.", "Set order=BGR.", "Set mean=0 and std=1."]
        qtbot.waitUntil(lambda: read() == changes)
        window.resize(2400, 900)
        qtbot.waitUntil(lambda: read() == [reason.text for reason in reasons])

    def test_a_step_without_a_comparison_leaves_it_alone(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*net(2)), [INPUT])
        changes = []
        window.origin_banner.shown_changed.connect(lambda: changes.append(1))
        window.session.resume()
        assert window.session.wait_idle(10)
        assert not changes
        assert not window.origin_banner.isVisible()

    def test_it_is_not_restored_without_an_origin(self, open_window, compared):
        window = compared(*net(3))
        assert window.origin_banner.isVisible()
        window.close()
        again = open_window()
        again.restore()
        assert not again.origin_banner.isVisible()
