"""The whole window, driven through commands and read as its user reads it."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from on_screen import find
from PySide6.QtCore import QEvent, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QAccessible, QAction, QDropEvent, QImage, QKeyEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QDialog,
    QDockWidget,
    QFileDialog,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QScrollArea,
    QTabBar,
    QTableView,
    QToolButton,
    QWidget,
)
from shiboken6 import isValid

from engine.dump import DumpOptions
from engine.inputs import InputSource
from kuiper_studio.commands import COMMANDS, CommandState
from kuiper_studio.dialogs.command_palette import CommandPalette
from kuiper_studio.dialogs.graph_picture_dialog import GraphPictureDialog
from kuiper_studio.dialogs.seed_dialog import SeedDialog
from kuiper_studio.item_models import OperatorColumn
from kuiper_studio.keymap import Keymap
from kuiper_studio.open_commands import sizes_key
from kuiper_studio.panels.tabbed_panels import TabbedPanels
from kuiper_studio.panels.weight_view import WeightView
from kuiper_studio.session import RunState
from kuiper_studio.surfaces import MENUS, Surface, commands_on
from kuiper_studio.tensor_view.actions import COMMANDS as TENSOR_COMMANDS

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
    "nn.ReLU relu 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
    "pnnx.Expression twice 1 1 1 2 expr=mul(@0,2) #1=(1,2,4,4)f32 #2=(1,2,4,4)f32",
    "pnnx.Output out 1 0 2",
)
FAILING = (
    "pnnx.Input a 0 1 0 #0=(3)f32",
    "pnnx.Input b 0 1 1 #1=(3)f32",
    "pnnx.Expression sum 2 1 0 1 2 expr=add(@0,@1)",
    "pnnx.Output out 1 0 2",
)


@pytest.fixture
def image():
    return np.linspace(-1, 1, 32, dtype=np.float32).reshape(1, 2, 4, 4)


@pytest.fixture
def window(open_window, make_pair, image):
    return open_window(make_pair(*CHAIN), [image])


def trigger(qtbot, window, command):
    action = window.findChild(QAction, command)
    assert action.isEnabled(), f"{command} is disabled"
    action.trigger()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=10_000)


def enabled(window, command):
    return window.findChild(QAction, command).isEnabled()


def dock(window, name):
    return window.findChild(QDockWidget, name)


def label(window, name):
    return window.findChild(QLabel, name).text()


@pytest.mark.parametrize("key", ["E", "K"])
def test_a_command_has_its_key_while_a_field_has_the_focus(qtbot, window, key):
    class Greedy(QLineEdit):
        """Takes every key, as Qt's fields take Ctrl+E and Ctrl+K on X11."""

        def event(self, event):
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            return super().event(event)

    field = Greedy("text", window.input_panel)
    field.show()
    field.setFocus()
    qtbot.waitUntil(field.hasFocus)
    code = getattr(Qt.Key, f"Key_{key}")
    for modifier, taken in (
        (Qt.KeyboardModifier.ControlModifier, False),
        (Qt.KeyboardModifier.NoModifier, True),  # a letter is typed
    ):
        event = QKeyEvent(QEvent.Type.ShortcutOverride, code, modifier)
        QApplication.sendEvent(field, event)
        assert event.isAccepted() is taken


def test_a_letter_is_that_of_the_open_menu(qtbot, window):
    """S stretches the colours of the tensor view too; a menu says that it takes the letter.

    Qt asks by this event before it looks for commands with the key.
    """
    trigger(qtbot, window, "debug.step")  # a tensor has a menu of its dimensions
    for _ in range(2):
        for menu in window.findChildren(QMenu):
            menu.aboutToShow.emit()  # which fills it, also with other menus
    bar = window.menuBar()
    # Qt's own menu of a bar that is too long has the bar as parent, and no title.
    menus = [m for m in window.findChildren(QMenu) if m.title() or m.parent() is not bar]
    titles = {menu.title().partition(",")[0] for menu in menus}
    assert {"&Analyse", "&Tensor", "&What the dimensions mean", "Dimension 1"} <= titles
    assert "" in titles  # those of views, which have no title
    for menu in (bar, *menus):
        for modifier, text, taken in (
            (Qt.KeyboardModifier.NoModifier, "s", True),
            (Qt.KeyboardModifier.ControlModifier, "\x13", False),
        ):
            event = QKeyEvent(QEvent.Type.ShortcutOverride, Qt.Key.Key_S, modifier, text)
            event.ignore()
            QApplication.sendEvent(menu, event)
            assert event.isAccepted() is taken, menu.title()


def test_first_start_shows_the_start_page(open_window):
    window = open_window()
    assert window.start_page.isVisible()
    assert not window.graph_view.isVisible()
    assert not window.operators_panel.isVisible()
    assert window.windowTitle() == "Kuiper Studio"
    assert not enabled(window, "debug.step")
    assert label(window, "statusDetail") == "no model open"


def test_sample_is_one_key_away(qtbot, open_window):
    window = open_window()
    window.start_page.setFocus()
    qtbot.keyClick(window.start_page, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: window.session.state is RunState.READY, timeout=10_000)
    assert window.session.model_path.name == "digits.pnnx.param"
    assert window.session.workspace.labels == tuple("0123456789")


def test_step_to_the_end(qtbot, window, image):
    assert window.windowTitle().startswith("m.pnnx.param")
    assert window.graph_view.isVisible()
    seen = []
    while enabled(window, "debug.step"):
        trigger(qtbot, window, "debug.step")
        seen.append(label(window, "statusDetail"))
    assert seen == [
        "after in · 1 of 4 run",
        "after relu · 2 of 4 run",
        "after twice · 3 of 4 run",
        "4 of 4 run",
    ]
    assert label(window, "statusState") == "Finished"
    np.testing.assert_array_equal(window.session.fetch("2"), 2 * np.maximum(image, 0))


def test_every_press_of_a_key_counts(qtbot, open_window, make_pair, gate):
    """Also while a step takes long, which is announced as a run."""
    lines = [f"test.Gate g{i} 1 1 {i} {i + 1}" for i in range(12)]
    path = make_pair("pnnx.Input in 0 1 0 #0=(3)f32", *lines, "pnnx.Output out 1 0 12")
    window = open_window(path, [np.ones(3, np.float32)])
    session = window.session
    window.activateWindow()
    qtbot.waitUntil(window.isActiveWindow)
    gate.close()
    QTest.keyClick(window, Qt.Key.Key_F10)
    QTest.keyClick(window, Qt.Key.Key_F10)
    qtbot.waitUntil(lambda: enabled(window, "debug.stop") and gate.reached.is_set())
    qtbot.waitUntil(lambda: not enabled(window, "debug.stepBack"))
    for _ in range(8):
        QTest.keyClick(window, Qt.Key.Key_F10)
    gate.open()
    qtbot.waitUntil(lambda: not session.busy, timeout=10_000)
    assert session.position == 10
    QTest.keyClick(window, Qt.Key.Key_F10)
    QTest.keyClick(window, Qt.Key.Key_F5)
    qtbot.waitUntil(lambda: session.state is RunState.FINISHED, timeout=10_000)


def test_continue_restart_and_back(qtbot, window):
    trigger(qtbot, window, "debug.continue")
    assert window.session.state is RunState.FINISHED
    assert not enabled(window, "debug.continue")
    trigger(qtbot, window, "debug.stepBack")
    assert window.session.position == 3
    trigger(qtbot, window, "debug.restart")
    assert (window.session.position, window.session.state) == (0, RunState.READY)
    assert not enabled(window, "debug.restart")


def test_what_may_be_done_while_an_operator_runs(qtbot, open_window, make_pair, image, gate):
    lines = [line.replace("nn.ReLU", "test.Gate") for line in CHAIN]
    window = open_window(make_pair(*lines), [image])
    window.session.select("relu")
    assert enabled(window, "debug.supplyOutput")
    assert not enabled(window, "debug.restart")
    gate.close()
    window.findChild(QAction, "debug.continue").trigger()
    qtbot.waitUntil(lambda: window.session.state is RunState.RUNNING and gate.reached.is_set())
    window.session.select("twice")
    for command in ("debug.restart", "debug.stop"):
        assert enabled(window, command), command
    for command in ("debug.supplyOutput", "debug.step", "debug.continue", "debug.stepBack"):
        assert not enabled(window, command), command
    gate.open()
    qtbot.waitUntil(lambda: window.session.state is RunState.FINISHED)
    window.session.select("twice")
    assert enabled(window, "debug.supplyOutput")


@pytest.mark.parametrize("surface", [Surface.GRAPH, Surface.GRAPH_OPERATOR, Surface.OPERATORS])
def test_a_context_menu_goes_when_it_is_closed(window, surface):
    before = set(map(id, window.findChildren(QMenu)))
    window.commands.popup(surface, window.mapToGlobal(QPoint(100, 100)))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    menu.close()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    assert not isValid(menu)
    assert set(map(id, window.findChildren(QMenu))) <= before


def test_run_to_selected_and_breakpoint(qtbot, window):
    window.session.select("twice")
    trigger(qtbot, window, "debug.runToSelected")
    assert window.session.position == 2
    trigger(qtbot, window, "debug.restart")
    window.session.select("relu")
    trigger(qtbot, window, "debug.toggleBreakpoint")
    trigger(qtbot, window, "debug.continue")
    assert window.session.position == 1
    trigger(qtbot, window, "debug.clearBreakpoints")
    trigger(qtbot, window, "debug.continue")
    assert window.session.state is RunState.FINISHED


def test_a_dock_from_the_menu_comes_to_the_front(window):
    for name in ("output", "overlay"):  # tabs in one place
        dock(window, name).toggleViewAction().trigger()
        assert not dock(window, name).visibleRegion().isEmpty()
    assert dock(window, "output").visibleRegion().isEmpty()
    dock(window, "overlay").toggleViewAction().trigger()
    assert dock(window, "overlay").isHidden()


def test_tabs_of_docks_are_not_cut_off(qtbot, window):
    for name in ("provenance", "attention", "history", "overlay", "output"):
        dock(window, name).toggleViewAction().trigger()
    (bar,) = (bar for bar in window.findChildren(QTabBar) if bar.parent() is window)
    qtbot.waitUntil(lambda: bar.count() == 6 and bar.currentIndex() == 5)
    for tab in range(bar.count()):
        text = bar.fontMetrics().horizontalAdvance(bar.tabText(tab))
        assert bar.tabRect(tab).width() >= text
    assert bar.rect().contains(bar.tabRect(5))  # the shown one is in view
    window.resize(800, 600)
    back, on = (bar.findChild(QToolButton, f"Scroll{end}Button") for end in ("Left", "Right"))
    qtbot.waitUntil(lambda: back.isVisible() and on.isVisible())
    assert bar.rect().contains(back.geometry())
    assert bar.rect().contains(on.geometry())
    assert back.geometry().center().x() < on.geometry().left()


def test_what_the_tool_bar_has_no_room_for_is_one_click_away(qtbot, window):
    window.resize(800, 600)
    more = window.tool_bar.findChild(QToolButton, "qt_toolbar_ext_button")
    qtbot.waitUntil(more.isVisible)
    assert window.tool_bar.rect().contains(more.geometry())
    colors = {
        more.grab().toImage().pixelColor(x, y).lightness()
        for x in range(more.width())
        for y in range(more.height())
    }
    assert max(colors) - min(colors) > 100  # of the arrow on its ground


def test_failed_operator(qtbot, open_window, make_pair):
    window = open_window(
        make_pair(*FAILING), [np.zeros(3, np.float32), np.zeros(2, np.float32)]
    )
    trigger(qtbot, window, "debug.continue")
    qtbot.waitUntil(window.banner.isVisible)
    text = window.banner.plain_text()
    assert "sum failed" in text
    assert "Look at pnnx.Input b" in text
    assert label(window, "statusState") == "Failed"
    for command in ("debug.step", "debug.continue", "debug.runToSelected"):
        assert not enabled(window, command)
    for command in ("debug.restart", "debug.stepBack", "debug.stop"):
        assert enabled(window, command)
    assert window.session.tensors.has_value("0")
    trigger(qtbot, window, "debug.restart")
    assert not window.banner.isVisible()


STRANGE = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
    "my.Strange strange 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
    "nn.ReLU relu 1 1 1 2 #1=(1,2,4,4)f32 #2=(1,2,4,4)f32",
    "pnnx.Output out 1 0 2",
)


def press(qtbot, window, text):
    button = next(b for b in window.banner.findChildren(QPushButton) if b.text() == text)
    assert button.isVisible()
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.session.busy)


def test_a_run_that_passes_operators_by_does_not_end_like_others(
    qtbot, open_window, make_pair, image
):
    window = open_window(make_pair(*STRANGE), [image])
    trigger(qtbot, window, "debug.continue")
    assert window.session.state is RunState.FINISHED
    assert label(window, "statusState") == "Finished in part"
    assert label(window, "statusDetail") == "1 of 4 run, 3 cannot run"
    assert (
        window.theme.color("warn").name()
        in window.findChild(QLabel, "statusState").styleSheet()
    )
    assert window.operators_panel.suffix == "1 / 4"


class TestMissingWeights:
    LINEAR = (
        "pnnx.Input in 0 1 0 #0=(1,2)f32",
        (
            "nn.Linear fc 1 1 0 1 bias=False in_features=2 out_features=1 @weight=(1,2)f32 "
            "#0=(1,2)f32 #1=(1,1)f32"
        ),
        "pnnx.Output out 1 0 1",
    )

    @pytest.fixture
    def window(self, open_window, make_pair, tmp_path):
        """A window with a model whose weights lie in another folder."""
        param = make_pair(*self.LINEAR, weights={"fc.weight": np.float32([[3, 4]])}, name="m")
        self.bin = tmp_path / "elsewhere" / "weights.bin"
        self.bin.parent.mkdir()
        param.with_suffix(".bin").rename(self.bin)
        return open_window(param, [np.float32([[1, 10]])])

    def test_the_bin_can_be_chosen(self, qtbot, window, monkeypatch):
        assert window.banner.plain_text().startswith("The weights of m.pnnx.param are missing")
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(self.bin), ""))
        press(qtbot, window, "Choose .bin…")
        assert not window.banner.isVisible()
        trigger(qtbot, window, "debug.continue")
        assert window.session.fetch("1").tolist() == [[43.0]]  # of the same input

    def test_a_wrong_one_leaves_the_choice(self, qtbot, window, monkeypatch, tmp_path):
        wrong = tmp_path / "wrong.bin"
        wrong.write_bytes(b"no archive")
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(wrong), ""))
        press(qtbot, window, "Choose .bin…")
        qtbot.waitUntil(lambda: "wrong.bin" in window.banner.plain_text())
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(self.bin), ""))
        press(qtbot, window, "Choose .bin…")
        assert window.session.graph.has_weights

    def test_also_when_a_run_has_passed_them_by(self, qtbot, window):
        trigger(qtbot, window, "debug.continue")
        assert window.banner.plain_text().startswith("fc cannot run")
        names = {b.text() for b in window.banner.findChildren(QPushButton) if b.isVisible()}
        assert "Choose .bin…" in names


def test_a_message_about_an_input_goes_with_the_next_one(qtbot, window, tmp_path, image):
    bad, good = tmp_path / "bad.npy", tmp_path / "good.npy"
    np.save(bad, np.zeros((7, 7), np.float32))
    np.save(good, image)
    for path in (bad, tmp_path / "a.txt.gz"):
        window.opening.feed_files([str(path)])
        qtbot.waitUntil(window.banner.isVisible)
        assert "The input cannot be used" in window.banner.plain_text()
        window.opening.feed_files([str(good)])
        qtbot.waitUntil(lambda: not window.session.busy)
        assert not window.banner.isVisible()
        assert window.session.failure is None


def test_a_card_forgets_what_was_wrong_with_a_mended_file(qtbot, window, tmp_path, image):
    path = tmp_path / "x.npy"
    path.write_bytes(b"no array")
    card = window.input_panel.cards["0"]
    card.use_file(str(path))
    qtbot.waitUntil(lambda: card.findChild(QLabel, "inputError").isVisible())
    np.save(path, image)
    card.use_file(str(path))
    qtbot.waitUntil(lambda: bool(window.session.fed_shapes) and not window.session.busy)
    qtbot.waitUntil(lambda: "1×2×4×4" in card.preview.accessibleName())
    assert not card.findChild(QLabel, "inputError").isVisible()


def test_nan_is_marked_and_counted(qtbot, window):
    poisoned = np.full((1, 2, 4, 4), np.nan, np.float32)
    window.session.set_inputs({"0": InputSource("array", array=poisoned)})
    qtbot.waitUntil(lambda: not window.session.busy)
    trigger(qtbot, window, "debug.continue")
    counted = window.findChild(QLabel, "statusNonfinite")
    qtbot.waitUntil(lambda: counted.text() == "NaN or Inf in 3 operators")
    model = window.operators_panel.model
    tips = [
        model.index(row, OperatorColumn.STATE).data(Qt.ItemDataRole.ToolTipRole)
        for row in range(4)
    ]
    # The last one gives nothing.
    assert ["NaN" in tip for tip in tips] == [True, True, True, False]
    assert window.timeline_panel.canvas.model.nonfinite == {0, 1, 2}
    window.operators_panel.set_filter("state:nonfinite")
    assert window.operators_panel.rows.rowCount() == 3
    trigger(qtbot, window, "debug.stepBack")
    trigger(qtbot, window, "debug.stepBack")
    assert counted.text() == "NaN or Inf in 2 operators"
    trigger(qtbot, window, "debug.restart")
    assert not counted.isVisible()
    assert window.timeline_panel.canvas.model.nonfinite == frozenset()


def test_what_comes_out_is_looked_at_when_it_is_not_in_view(qtbot, window):
    poisoned = np.full((1, 2, 4, 4), np.inf, np.float32)
    window.graph_view.hide()
    window.session.set_inputs({"0": InputSource("array", array=poisoned)})
    qtbot.waitUntil(lambda: not window.session.busy)
    trigger(qtbot, window, "debug.continue")
    qtbot.waitUntil(lambda: 2 in window.session.nonfinite)


class TestSupply:
    @pytest.fixture
    def fives(self, tmp_path, monkeypatch):
        """What the file dialog gives."""
        path = tmp_path / "fives.npy"
        np.save(path, np.full((1, 2, 4, 4), 5, np.float32))
        monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
        return path

    @pytest.fixture
    def window(self, open_window, make_pair, image):
        return open_window(make_pair(*STRANGE), [image])

    def test_from_the_banner(self, qtbot, window, fives):
        trigger(qtbot, window, "debug.continue")
        qtbot.waitUntil(window.banner.isVisible)
        assert "strange cannot run" in window.banner.plain_text()
        press(qtbot, window, "Supply output…")
        assert not window.banner.isVisible()
        assert label(window, "statusDetail") == "after strange · 2 of 4 run"
        state = window.operators_panel.model.index(1, OperatorColumn.STATE)
        assert state.data(Qt.ItemDataRole.ToolTipRole) == "supplied from fives.npy"
        trigger(qtbot, window, "debug.continue")
        assert window.session.state is RunState.FINISHED
        np.testing.assert_array_equal(window.session.fetch("2"), np.full((1, 2, 4, 4), 5))

    def test_by_command_and_taken_back(self, qtbot, window, fives):
        assert not enabled(window, "debug.supplyOutput")  # an input is selected
        window.session.select("strange")
        assert not enabled(window, "debug.withdrawOutput")
        trigger(qtbot, window, "debug.supplyOutput")
        assert window.session.position == 0
        trigger(qtbot, window, "debug.continue")
        window.session.select("strange")
        window.properties_panel.catch_up()
        shown = " ".join(child.text() for child in window.properties_panel.findChildren(QLabel))
        assert "Supplied from fives.npy." in shown
        assert "supplied from fives.npy" in window.timeline_panel.canvas.tip(
            window.session.graph.operator("strange")
        )
        trigger(qtbot, window, "debug.withdrawOutput")
        assert window.session.current.name == "strange"
        assert not enabled(window, "debug.withdrawOutput")

    def test_from_the_list(self, qtbot, window, fives):
        def entries():
            window.session.select("strange")
            menu = window.commands.make_menu(Surface.OPERATORS)
            return {action.text().replace("&", ""): action for action in menu.actions()}

        assert "Withdraw supplied output" not in entries()
        entries()["Supply output…"].trigger()
        qtbot.waitUntil(lambda: "1" in window.session.supplied)
        entries()["Withdraw supplied output"].trigger()
        qtbot.waitUntil(lambda: not window.session.supplied)

    def test_a_file_that_does_not_fit(self, qtbot, window, fives):
        np.save(fives, np.zeros(3))
        trigger(qtbot, window, "debug.continue")
        qtbot.waitUntil(window.banner.isVisible)
        press(qtbot, window, "Supply output…")
        qtbot.waitUntil(lambda: "was not supplied" in window.banner.plain_text())
        assert "Operand 1 is 1×2×4×4" in window.banner.plain_text()
        np.save(fives, np.zeros((1, 2, 4, 4)))
        press(qtbot, window, "Supply output…")
        assert window.session.supplied

    def test_dropped_on_its_box(self, qtbot, window, fives):
        window.graph_view.fit()
        canvas = window.graph_view.canvas
        qtbot.waitUntil(lambda: not canvas.box_rect("strange").isNull())
        at = canvas.mapTo(window, canvas.box_rect("strange").center().toPoint())
        drop(window, fives, at=QPointF(at))
        qtbot.waitUntil(lambda: "1" in window.session.supplied)
        assert window.session.inputs["0"].kind == "array"  # it was not taken for an input

    def test_another_file(self, window, fives):
        window.debugging.supply_output("strange", "notes.txt")
        assert "'notes.txt' is not a .npy or .npz file" in window.banner.plain_text()

    def test_of_a_failed_operator(self, qtbot, open_window, make_pair, fives):
        inputs = [np.zeros(3, np.float32), np.zeros(2, np.float32)]
        window = open_window(make_pair(*FAILING), inputs)
        np.save(fives, np.ones(3))
        trigger(qtbot, window, "debug.continue")
        qtbot.waitUntil(window.banner.isVisible)
        press(qtbot, window, "Supply output…")
        assert not window.banner.isVisible()
        trigger(qtbot, window, "debug.continue")
        assert window.session.state is RunState.FINISHED


class TestSizes:
    OPEN = (
        "pnnx.Input in 0 1 x #x=(1,2,%h,?)f32",
        "nn.ReLU relu 1 1 x y #y=(1,2,%h,?)f32",
        "pnnx.Output out 1 0 y",
    )

    @pytest.fixture
    def window(self, open_window, make_pair):
        return open_window(make_pair(*self.OPEN))

    @pytest.mark.parametrize("command", ["debug.step", "debug.continue", "debug.runToSelected"])
    def test_running_without_an_input_leads_to_the_panel(self, qtbot, window, command):
        dock(window, "input").hide()
        window.input_panel.cards["x"].choice.activated.emit(1)  # random
        qtbot.waitUntil(lambda: window.session.inputs and not window.session.busy)
        trigger(qtbot, window, command)
        assert window.input_panel.isVisible()
        assert window.input_panel.question.text() == (
            "What are the sizes of %h and dimension 3 of input x?"
        )
        assert not window.banner.isVisible()
        assert window.focusWidget() is window.input_panel.cards["x"].sizes.fields[2]

    def test_no_input_at_all(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*CHAIN))
        trigger(qtbot, window, "debug.step")
        assert window.input_panel.question.text() == "Choose an input to run the model."
        assert window.focusWidget() is window.input_panel.cards["0"].choice

    def test_answers_are_remembered(self, qtbot, window, open_window, settings):
        path = window.session.model_path
        window.input_panel.cards["x"].sizes.fields[2].setValue(6)
        window.input_panel.cards["x"].sizes.fields[3].setValue(7)
        window.input_panel.use_sizes.click()
        window.close()
        again = open_window(path, ["random"])
        assert again.session.fed_shapes == {"x": (1, 2, 6, 7)}
        again.close()
        again = open_window(path, ["random"])  # and not for one time only
        assert again.session.fed_shapes == {"x": (1, 2, 6, 7)}
        again.input_panel.cards["x"].sizes.reset.click()
        assert not again.session.input_shapes
        again.close()
        assert not open_window(path).session.input_shapes

    def test_what_is_remembered_may_not_fit_any_more(self, window, settings, open_window):
        key = sizes_key(window.session.graph)
        path = window.session.model_path
        window.close()
        settings.setValue(key, ["nobody=3"])
        assert not open_window(path).session.input_shapes

    def test_other_sizes_than_exported_are_not_remembered(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*CHAIN), ["random"])
        window.input_panel.cards["0"].sizes.fields[2].setValue(9)
        qtbot.waitUntil(lambda: not window.session.busy)
        assert window.session.fed_shapes == {"0": (1, 2, 9, 4)}
        path = window.session.model_path
        window.close()
        assert open_window(path, ["random"]).session.fed_shapes == {"0": (1, 2, 4, 4)}

    def test_shapes_shown_are_those_computed(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*CHAIN), ["random"])
        window.input_panel.cards["0"].sizes.fields[2].setValue(9)
        qtbot.waitUntil(lambda: not window.session.busy)
        trigger(qtbot, window, "debug.continue")
        model = window.operators_panel.model
        assert model.index(1, OperatorColumn.OUTPUT).data() == "2×9×4"
        assert model.index(1, OperatorColumn.OUTPUT).data(Qt.ItemDataRole.ToolTipRole) == (
            "1: 1×2×9×4"
        )
        window.session.select("relu")
        window.properties_panel.catch_up()
        operands = window.properties_panel.operands
        shown = [operands.index(row, 2).data() for row in range(operands.rowCount())]
        assert shown == ["1×2×9×4", "1×2×9×4"]
        assert window.graph_view.canvas._state.shape("1") == "2×9×4"
        assert "1×2×9×4" in window.tensor_view.pane.model.describe()


def test_wrong_file_is_told_and_the_window_stays(qtbot, open_window, tmp_path):
    window = open_window()
    bad = tmp_path / "bad.param"
    bad.write_text("hello\n", encoding="utf-8")
    with qtbot.waitSignal(window.session.failed):
        window.opening.open_model(bad)
    shown = " ".join(child.text() for child in window.start_page.findChildren(QLabel))
    assert "bad.param" in shown
    assert window.start_page.isVisible()


CORNER = QPointF(10, 10)


def drop(window, *paths, at=CORNER):
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    event = QDropEvent(
        at,
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    window.dropEvent(event)
    assert event.isAccepted()


@pytest.mark.parametrize("suffix", [".param", ".bin"])
def test_drop_either_file_then_an_input(qtbot, open_window, make_pair, tmp_path, image, suffix):
    path = make_pair(*CHAIN)
    np.save(tmp_path / "x.npy", image)
    window = open_window()
    drop(window, path.with_suffix(suffix))
    qtbot.waitUntil(lambda: window.session.state is RunState.NEED_INPUT)
    drop(window, tmp_path / "x.npy")
    qtbot.waitUntil(lambda: window.session.state is RunState.READY)
    trigger(qtbot, window, "debug.step")
    np.testing.assert_array_equal(window.session.fetch("0"), image)


def test_drop_of_a_model_with_what_belongs_to_it(
    qtbot, open_window, make_pair, tmp_path, image
):
    """Weights in another folder, an input and names of classes."""
    path = make_pair(*CHAIN)
    (tmp_path / "elsewhere").mkdir()
    weights = path.with_suffix(".bin").rename(tmp_path / "elsewhere" / "w.bin")
    np.save(tmp_path / "x.npy", image)
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    window = open_window()
    drop(window, tmp_path / "x.npy", weights, path, tmp_path / "names.txt")
    qtbot.waitUntil(lambda: window.session.state is RunState.READY)
    assert not window.banner.isVisible()
    assert window.session.graph.bin_path == weights
    assert window.session.workspace.labels == ("cat", "dog")
    trigger(qtbot, window, "debug.step")
    np.testing.assert_array_equal(window.session.fetch("0"), image)


def test_drop_of_two_models_says_which_one_is_open(qtbot, open_window, make_pair, tmp_path):
    first, second = make_pair(*CHAIN, name="first"), make_pair(*CHAIN, name="second")
    window = open_window()
    drop(window, first, second, first.with_suffix(".bin"))
    qtbot.waitUntil(lambda: window.session.state is RunState.NEED_INPUT)
    assert window.session.graph.source_path == first
    announced = window.findChild(QLabel, "statusAnnouncement")
    assert announced.toolTip() == "only first.pnnx.param was opened, not second.pnnx.param"


def test_drop_of_something_else(qtbot, window, tmp_path):
    (tmp_path / "notes.pdf").touch()
    drop(window, tmp_path / "notes.pdf")
    assert "is not an image" in window.banner.plain_text()


def test_drop_of_a_vocabulary(window, tmp_path):
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({"a": 0, "cat": 1}))
    drop(window, path)
    assert window.session.workspace.labels == ("a", "cat")
    announced = window.findChild(QLabel, "statusAnnouncement")
    assert announced.isVisible()
    assert announced.text() == "2 labels from vocab.json"


def test_open_dialogs(qtbot, open_window, make_pair, tmp_path, image, monkeypatch):
    path = make_pair(*CHAIN)
    np.save(tmp_path / "x.npy", image)
    folders = []

    def choose_input(_window, _title, folder, _filters):
        folders.append(folder)
        return [str(tmp_path / "x.npy")], ""

    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(QFileDialog, "getOpenFileNames", choose_input)
    window = open_window()
    trigger(qtbot, window, "file.open")
    qtbot.waitUntil(lambda: window.session.graph is not None)
    trigger(qtbot, window, "file.openInput")
    qtbot.waitUntil(lambda: window.session.state is RunState.READY)
    assert folders == [str(path.parent)]  # the first input is looked for beside the model
    trigger(qtbot, window, "file.close")
    assert window.start_page.isVisible()
    assert [recent.path for recent in window.opening.recent_models.entries()] == [str(path)]


def test_export_from_the_window(qtbot, window, tmp_path):
    trigger(qtbot, window, "debug.continue")
    window.session.export_dump(tmp_path / "dump", DumpOptions())
    qtbot.waitUntil(lambda: not window.session.busy)
    manifest = json.loads((tmp_path / "dump" / "manifest.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in manifest["operands"]] == ["0", "1", "2"]
    assert any("exported to" in entry.text for entry in window.session.workspace.log_entries)
    announced = window.findChild(QLabel, "statusAnnouncement")
    assert announced.isVisible()
    assert announced.toolTip() == f"exported to {tmp_path / 'dump'}"


@pytest.mark.parametrize(
    ("command", "name", "told"),
    [
        ("file.exportPicture", "tensor.png", "picture saved to"),
        ("file.exportGraph", "graph.svg", "graph saved to"),
    ],
)
def test_a_saved_picture_is_told(qtbot, window, tmp_path, monkeypatch, command, name, told):
    path = tmp_path / name
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(GraphPictureDialog, "exec", lambda _: True)
    trigger(qtbot, window, "debug.continue")
    announced = window.findChild(QLabel, "statusAnnouncement")
    assert not announced.isVisible()
    window.findChild(QAction, command).trigger()
    qtbot.waitUntil(announced.isVisible)
    assert announced.toolTip().startswith(f"{told} {path}")
    assert path.stat().st_size


def test_a_picture_of_the_graph_is_as_chosen(qtbot, window, tmp_path, monkeypatch):
    path = tmp_path / "graph.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))

    def choose(dialog: GraphPictureDialog) -> bool:
        dialog.format.setCurrentIndex(dialog.format.findData("png"))
        dialog.sizes.setCurrentIndex(dialog.sizes.findData("width"))
        dialog.amount.setText("777")
        dialog.parts["states"].setChecked(False)
        return True

    monkeypatch.setattr(GraphPictureDialog, "exec", choose)
    trigger(qtbot, window, "debug.continue")
    window.findChild(QAction, "file.exportGraph").trigger()
    qtbot.waitUntil(lambda: "saved to" in window.session.workspace.log_entries[-1].text)
    assert QImage(str(path)).width() == 777
    remembered = []
    monkeypatch.setattr(GraphPictureDialog, "exec", lambda d: remembered.append(d.choice))
    window.findChild(QAction, "file.exportGraph").trigger()
    assert remembered[0]["amount"] == "777"
    assert remembered[0]["states"] == "false"
    assert remembered[0]["overlay"] == "true"


def test_legend_is_hidden_and_remembered(qtbot, window, open_window, settings):
    def corner():
        canvas = window.graph_view.canvas
        return canvas.grab(canvas.rect().adjusted(0, canvas.height() - 40, -300, 0)).toImage()

    assert window.findChild(QAction, "view.legend").isChecked()
    with_legend = corner()
    trigger(qtbot, window, "view.legend")
    without = corner()
    assert without != with_legend
    assert not window.findChild(QAction, "view.legend").isChecked()
    trigger(qtbot, window, "view.legend")
    assert corner() == with_legend
    trigger(qtbot, window, "view.legend")
    path = window.session.model_path
    window.close()
    again = open_window(path)
    assert not again.findChild(QAction, "view.legend").isChecked()
    trigger(qtbot, again, "view.legend")
    again.close()
    assert open_window().findChild(QAction, "view.legend").isChecked()


def test_theme_is_switched_and_remembered(qtbot, window, settings):
    assert window.theme.dark
    trigger(qtbot, window, "view.toggleTheme")
    assert not window.theme.dark
    assert settings.value("theme") == "light"
    assert window.findChild(QAction, "view.themeLight").isChecked()


def test_layout_is_remembered(qtbot, open_window, make_pair, image):
    path = make_pair(*CHAIN)
    first = open_window(path, [image])
    first.findChild(QAction, "debug.step")
    dock(first, "properties").close()
    first.resize(1200, 800)
    first.close()
    second = open_window(path, [image])
    assert dock(second, "properties").isHidden()
    assert not dock(second, "operators").isHidden()
    trigger(qtbot, second, "view.resetLayout")
    assert not dock(second, "properties").isHidden()


def test_view_commands(qtbot, window):
    for command in ("view.zoomIn", "view.zoomOut", "view.zoomReset", "view.fit"):
        trigger(qtbot, window, command)
    trigger(qtbot, window, "view.orientation")
    trigger(qtbot, window, "debug.nextOperator")
    assert window.session.selected == "relu"
    trigger(qtbot, window, "debug.previousOperator")
    assert window.session.selected == "in"
    trigger(qtbot, window, "view.centerCurrent")
    trigger(qtbot, window, "edit.filter")


def test_f1_explains_the_selected_operator(qtbot, window):
    window.session.select("relu")
    window.findChild(QAction, "help.operator").trigger()
    panel = window.properties_panel
    qtbot.waitUntil(lambda: window.focusWidget() is panel.note_view)
    qtbot.waitUntil(lambda: "max(x, 0)" in panel.note_view.text())
    assert window.findChild(QAction, "help.operator").shortcut().toString() == "F1"
    window.session.select("")
    assert not enabled(window, "help.operator")


def test_all_parts_of_the_properties_fit_beside_each_other(window):
    window.session.select("relu")
    tabs = find(window, QTabBar, "Parts of the properties")
    for place in range(tabs.count()):  # the tab that is current has a bold title
        tabs.setCurrentIndex(place)
        assert [arrow for arrow in tabs.findChildren(QToolButton) if arrow.isVisible()] == []


def test_f1_brings_the_closed_properties_back(window):
    dock(window, "properties").close()
    window.session.select("relu")
    window.findChild(QAction, "help.operator").trigger()
    assert window.properties_panel.isVisible()


@pytest.mark.parametrize("view", ["graph_view", "operators_panel", "timeline_panel"])
def test_context_menus_are_about_the_operator_under_them(qtbot, window, view):
    source = getattr(window, view)
    signal = getattr(source, "canvas", source).menu_requested
    window.session.select("in")
    signal.emit("relu", QPoint(5, 5))
    assert window.session.selected == "relu"
    menu = QApplication.activePopupWidget()
    run_to, toggle = menu.actions()[:2]
    toggle.trigger()
    assert window.session.breakpoints == {"relu"}
    run_to.trigger()
    qtbot.waitUntil(lambda: not window.session.busy)
    assert window.session.is_current("relu")
    menu.close()


class TestCommandTable:
    def test_ids_are_unique_and_shortcuts_too(self):
        ids = [command.id for command in COMMANDS]
        assert len(ids) == len(set(ids))
        keys = [key for command in COMMANDS for key in command.keys]
        assert len(keys) == len(set(keys))

    def test_contract(self):
        keys = {command.id: command.keys[:1] for command in COMMANDS}
        assert keys["debug.step"] == ("F10",)
        assert keys["debug.continue"] == ("F5",)
        assert keys["debug.runToSelected"] == ("Ctrl+F10",)
        assert keys["debug.restart"] == ("Ctrl+Shift+F5",)
        assert keys["debug.stop"] == ("Shift+F5",)
        assert keys["view.commandPalette"] == ("Ctrl+Shift+P",)
        assert {"file.open", "file.openInput", "file.exportDump", "edit.find", "view.fit"} <= (
            keys.keys()
        )

    def test_every_command_is_in_a_menu(self):
        in_menus_of_their_own = {
            Surface.RECENT_MODELS, Surface.RECENT_LAYERS, Surface.COLOR_BY, Surface.GROUPS,
            Surface.BOOKMARKS,
        }  # fmt: skip
        for command in COMMANDS:
            surfaces = {place.surface for place in command.places}
            assert surfaces & {*MENUS, *in_menus_of_their_own}, command.id

    def test_surfaces(self):
        """The entries of each surface in order, with "" for a separator."""

        def ids(surface):
            found, section = [], 1
            for place, entry in commands_on(surface, COMMANDS):
                found += [""] if place.section != section else []
                section = place.section
                found.append(entry.id)
            return " ".join(found)

        assert ids(Surface.TOOL_BAR) == (
            "file.open  debug.restart debug.stepBack debug.step debug.continue "
            "debug.runToSelected debug.stop  debug.toggleBreakpoint"
        )
        assert ids(Surface.GRAPH) == (
            "view.fit view.zoomReset view.orientation view.legend file.exportGraph  "
            "edit.find edit.clearMarks  view.openGroup view.closeGroup"
        )
        assert ids(Surface.GRAPH_OPERATOR) == (
            "debug.runToSelected debug.toggleBreakpoint edit.toggleBookmark  "
            "view.centerCurrent file.exportDump view.showWeight "
            "edit.markUpstream edit.markDownstream edit.markPaths view.closeGroup  "
            "debug.supplyOutput debug.withdrawOutput file.loadLayers  "
            "analyse.matchByHand analyse.extract  "
            "help.operator"
        )
        assert ids(Surface.OPERATORS) == (
            "debug.runToSelected debug.toggleBreakpoint edit.toggleBookmark view.showOutput "
            "view.showWeight debug.supplyOutput "
            "debug.withdrawOutput  edit.copyName edit.copyType edit.filterByType "
            "view.sortByTime edit.markUpstream edit.markDownstream edit.markPaths  "
            "analyse.matchByHand analyse.extract"
        )
        assert ids(Surface.COMPARISON) == (
            "analyse.worstElement  analyse.matchByHand analyse.removeMatch analyse.undoMatch  "
            "analyse.extract"
        )
        assert ids(Surface.TIMELINE) == "debug.runToSelected debug.toggleBreakpoint"

    @pytest.mark.parametrize(
        ("state", "enabled", "disabled"),
        [
            pytest.param(
                CommandState(RunState.EMPTY),
                "file.open file.loadLayers view.commandPalette debug.memoryLimit",
                "file.openInput file.close debug.step debug.stop edit.copyName help.operator",
                id="empty",
            ),
            pytest.param(
                CommandState(RunState.LOADING),
                "file.open file.close",
                "file.loadLayers file.reload debug.step",
                id="loading",
            ),
            pytest.param(
                CommandState(RunState.NEED_INPUT),
                "debug.step debug.continue file.openInput debug.seed",
                "debug.stepBack debug.stop debug.runToSelected debug.selfCheck",
                id="need-input",
            ),
            pytest.param(
                CommandState(
                    RunState.STOPPED, selected=True, has_output=True, can_supply=True
                ),
                "debug.step debug.stepBack debug.runToSelected debug.toggleBreakpoint "
                "debug.supplyOutput view.showOutput edit.filterByType debug.selfCheck",
                "debug.withdrawOutput file.unloadLayers debug.forgetKernels",
                id="stopped",
            ),
            pytest.param(
                CommandState(
                    RunState.RUNNING, selected=True, can_supply=True, is_supplied=True
                ),
                "debug.stop debug.restart debug.toggleBreakpoint",
                "debug.step debug.continue debug.supplyOutput debug.withdrawOutput debug.seed "
                "debug.runToSelected debug.selfCheck",
                id="running",
            ),
            pytest.param(
                CommandState(
                    RunState.FINISHED, selected=True, can_supply=True, is_supplied=True,
                    has_layer_files=True, has_pinned_kernels=True,
                ),
                "debug.runToSelected debug.withdrawOutput file.unloadLayers "
                "debug.forgetKernels debug.stepBack",
                "debug.step debug.continue view.showOutput",
                id="finished",
            ),
        ],
    )  # fmt: skip
    def test_when_enabled(self, state, enabled, disabled):
        found = {command.id: command.enabled(state) for command in COMMANDS}
        assert all(found[name] for name in enabled.split())
        assert not any(found[name] for name in disabled.split())

    def test_every_action_does_something(self, window):
        for command in COMMANDS:
            action = window.findChild(QAction, command.id)
            assert action.receivers("2triggered(bool)") > 0, command.id
            assert action.toolTip()

    @pytest.mark.parametrize(
        "name", ["graph", "tensor", "operators", "properties", "input", "log"]
    )
    def test_object_names(self, window, name):
        assert window.findChild(object, name) is not None


class TestSeed:
    @pytest.fixture
    def asked(self, monkeypatch):
        """A function that has the dialog answered with a seed, or cancelled."""

        def answer(text):
            def fill(dialog):
                dialog.number.setText(text or "1")
                dialog.done(QDialog.DialogCode.Accepted if text else 0)
                return dialog.result()

            monkeypatch.setattr(SeedDialog, "exec", fill)

        return answer

    def test_command(self, qtbot, open_window, noisy, asked):
        window = open_window(noisy, ["ones"])
        trigger(qtbot, window, "debug.continue")
        asked("17")
        trigger(qtbot, window, "debug.seed")
        assert (window.session.seed, window.session.position) == (17, 2)
        asked("")
        trigger(qtbot, window, "debug.seed")
        assert window.session.seed == 17
        window.session.select("thin")
        window.properties_panel.catch_up()
        assert label(window.properties_panel, "propertiesRandom") == "Random, seed 17"
        asked("3")
        link = window.properties_panel.findChild(QPushButton, "propertiesSeed")
        qtbot.mouseClick(link, Qt.MouseButton.LeftButton)
        window.properties_panel.catch_up()
        assert label(window.properties_panel, "propertiesRandom") == "Random, seed 3"
        qtbot.waitUntil(lambda: not window.session.busy)

    def test_it_is_remembered(self, qtbot, open_window, noisy, asked, settings):
        window = open_window(noisy, ["ones"])
        asked("17")
        trigger(qtbot, window, "debug.seed")
        window.close()
        again = open_window()
        assert again.session.seed == 17
        again.close()
        settings.setValue("seed", "nonsense")
        assert open_window().session.seed == 0

    def test_without_a_model_there_is_nothing_to_draw(self, open_window):
        assert not enabled(open_window(), "debug.seed")


class TestLayout:
    """The layout of the first start, of later ones, and of View → Reset layout."""

    @staticmethod
    def places(window):
        docks = (
            dock(window, name) for name in ("operators", "input", "properties", "timeline")
        )
        return [dock.geometry().getRect() for dock in docks]

    @staticmethod
    def gap(window):
        """Pixels between the operators and the graph."""
        left = dock(window, "operators").geometry()
        return window.centralWidget().geometry().left() - left.right() - 1

    def test_separators_stay_thin_after_a_restart(self, qapp, open_window, make_pair, image):
        path = make_pair(*CHAIN)
        qapp.setStyleSheet("")  # as at the start of a program
        first = open_window(path, [image])
        places = self.places(first)
        assert self.gap(first) == 1
        first.close()
        qapp.setStyleSheet("")
        second = open_window(path, [image])
        assert self.gap(second) == 1
        assert self.places(second) == places

    def test_a_reset_gives_the_layout_of_the_first_start(self, qtbot, open_window, make_pair):
        window = open_window(make_pair(*CHAIN))
        places = self.places(window)
        window.resizeDocks([dock(window, "timeline")], [220], Qt.Orientation.Vertical)
        dock(window, "properties").close()
        trigger(qtbot, window, "view.resetLayout")
        qtbot.waitUntil(lambda: self.places(window) == places)


class TestRoom:
    """How the parts of the window share its room."""

    def test_graph_and_tensor_grow_together(self, qtbot, window):
        window.resize(1440, 900)
        qtbot.wait(1)
        graph, tensor = window.graph_view.height(), window.tensor_view.height()
        window.resize(1440, 1060)
        qtbot.waitUntil(lambda: window.tensor_view.height() > tensor + 40)
        assert window.graph_view.height() > graph + 40

    def test_docks_of_a_large_window_are_wider(self, qtbot, window):
        def widths():
            return [dock(window, name).width() for name in ("operators", "properties")]

        window.resize(1300, 900)
        window.reset_layout()
        qtbot.waitUntil(lambda: widths() == [346, 274])
        window.resize(1900, 1000)
        window.reset_layout()
        qtbot.waitUntil(lambda: widths() == [456, 361])


class TestKeyboard:
    """What Tab and F6 lead to, and what a screen reader is told."""

    def test_f6_goes_from_pane_to_pane(self, qtbot, window):
        window.activateWindow()
        panes = (
            window.operators_panel, window.input_panel, window.graph_view,
            window.tensor_view, window.properties_panel, window.timeline_panel,
        )  # fmt: skip

        def held():
            return [pane.isAncestorOf(window.focusWidget()) for pane in panes].index(True)

        window.operators_panel.focus_filter()
        heard = []
        for _ in range(7):
            trigger(qtbot, window, "view.nextPane")
            heard.append(held())
        assert heard == [1, 2, 3, 4, 5, 0, 1]
        assert window.focusWidget() is window.input_panel.cards["0"].choice
        for _ in range(2):
            trigger(qtbot, window, "view.previousPane")
        assert held() == 5
        dock(window, "properties").close()
        trigger(qtbot, window, "view.previousPane")
        assert held() == 3

    @pytest.mark.parametrize("pane", ["graph_view", "operators_panel", "timeline_panel"])
    def test_an_index_is_asked_for_from_every_pane(self, qtbot, window, pane):
        window.activateWindow()
        window.session.step()
        qtbot.waitUntil(lambda: bool(window.tensor_view.shown_channel))
        getattr(window, pane).keyboard_target().setFocus()
        qtbot.keyClick(window.focusWidget(), "g", Qt.KeyboardModifier.ControlModifier)
        assert window.tensor_view.isAncestorOf(window.focusWidget())
        qtbot.keyClicks(window.focusWidget(), "0,1,2,3")
        qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Return)
        assert window.tensor_view.pane.picked.index == (0, 1, 2, 3)

    def test_a_letter_of_the_tensor_view_is_one_of_the_list_in_the_list(self, qtbot, window):
        window.activateWindow()
        window.session.step()
        qtbot.waitUntil(lambda: bool(window.tensor_view.shown_channel))
        table = window.tensor_view.pane.table
        window.operators_panel.table.setFocus()
        qtbot.keyClick(window.focusWidget(), "t")
        assert not table.isVisible()
        window.tensor_view.keyboard_target().setFocus()
        qtbot.keyClick(window.focusWidget(), "t")
        assert table.isVisible()

    def test_letters_of_a_menu_are_used_once(self, window):
        # Not by their actions: PySide 6.9 destroys a menu that it returns.
        menus = [menu for menu in window.menuBar().findChildren(QMenu) if menu.title()]
        titles = {menu.title() for menu in menus}
        assert titles >= {action.text() for action in window.menuBar().actions()}
        for menu in (window.menuBar(), *menus):
            texts = [action.text().replace("&&", "") for action in menu.actions()]
            letters = [text.partition("&")[2][:1].lower() for text in texts if "&" in text]
            assert sorted(letters) == sorted(set(letters)), texts

    @pytest.mark.parametrize("name", ["comparison", "precision"])
    def test_f6_goes_to_the_results(self, qtbot, window, name):
        window.activateWindow()
        dock(window, name).show()
        dock(window, name).raise_()
        window.timeline_panel.keyboard_target().setFocus()
        trigger(qtbot, window, "view.previousPane")
        assert window.focusWidget() is getattr(window, f"{name}_panel").table

    def test_the_list_comes_behind_its_filter(self, window):
        panel, seen = window.operators_panel, []
        widget = panel.filter_box
        while widget is not panel.table:
            widget = widget.nextInFocusChain()
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
                seen.append(widget)
        assert [each.accessibleName() for each in seen] == [
            "Only operators with a breakpoint",
            "Only operators that failed, are blocked, cannot run, or gave NaN or Inf",
            "Operators in execution order",
        ]

    def test_tab_goes_from_the_filter_over_graph_and_tensor_through_all_of_the_window(
        self, qtbot, window
    ):
        for _ in range(2):
            trigger(qtbot, window, "debug.step")
            qtbot.waitUntil(lambda: not window.session.busy)
        window.activateWindow()
        qtbot.waitUntil(window.tensor_view.pane.isVisible)
        window.operators_panel.focus_filter()
        stops = [window.focusWidget()]
        for _ in range(200):
            window.focusNextChild()
            if window.focusWidget() is stops[0]:
                break
            if window.focusWidget() is not stops[-1]:  # both ends of the range are in one
                stops.append(window.focusWidget())
        tensor = window.tensor_view
        wanted = [
            window.operators_panel.table, window.graph_view.canvas, tensor.strip.tabs,
            window.properties_panel.parameter_table, window.timeline_panel.canvas,
        ]  # fmt: skip
        places = [stops.index(widget) for widget in wanted]
        assert places == sorted(places)
        assert places[1] <= 9
        assert places[2] == places[1] + 1
        parts = (
            window.operators_panel, window.graph_view, tensor, window.properties_panel,
            window.timeline_panel, window.input_panel, window.tool_bar,
        )  # fmt: skip
        for part in parts:
            assert any(part.isAncestorOf(stop) for stop in stops), part.objectName()
        assert tensor.pane.body.shown in stops

    def test_the_order_of_tab_leaves_nothing_out(self, window):
        widget, seen = window.nextInFocusChain(), {window}
        while widget not in seen:
            seen.add(widget)
            widget = widget.nextInFocusChain()
        for child in window.findChildren(QWidget):
            if child.window() is window and child.focusPolicy() & Qt.FocusPolicy.TabFocus:
                assert child in seen, child

    def test_fields_that_search_and_containers_have_names(self, window):
        box = window.palette_popup.box
        buttons = box.findChildren(QToolButton)
        assert {button.accessibleName() for button in buttons} == {"Search", "Clear"}
        for panel in (window.input_panel, window.properties_panel):
            for area in panel.findChildren(QScrollArea):
                assert area.accessibleName()

    def test_what_takes_the_keyboard_has_a_name(self, window):
        for widget in window.findChildren(QWidget):
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
                spoken = QAccessible.queryAccessibleInterface(widget)
                assert spoken.text(QAccessible.Text.Name) or isinstance(
                    widget.parent(), QAbstractSpinBox
                ), widget
        for button in window.operators_panel.filter_box.findChildren(QToolButton):
            spoken = QAccessible.queryAccessibleInterface(button)
            assert spoken.text(QAccessible.Text.Name)


class TestArchiveForSeveralInputs:
    """An .npz with an array for each of two inputs, in order, whatever their names are."""

    PLUS = (
        "pnnx.Input a 0 1 0 #0=(2,3)f32",
        "pnnx.Input b 0 1 1 #1=(4,2,3)f32",
        "pnnx.Expression plus 2 1 0 1 2 expr=add(@0,@1) #2=(4,2,3)f32",
        "pnnx.Output out 1 0 2",
    )

    @pytest.fixture
    def arrays(self):
        first = np.arange(6, dtype=np.float32).reshape(2, 3)
        return [first, np.arange(24, dtype=np.float32).reshape(4, 2, 3)]

    @pytest.fixture(params=[("x", "y"), ("1", "0")], ids=["in order", "by operand"])
    def archive(self, request, tmp_path, arrays):
        named = dict(zip(request.param, arrays, strict=True))
        if "0" in named:  # named by operand, in another order
            named = {"1": arrays[1], "0": arrays[0]}
        np.savez(tmp_path / "both.npz", **named)
        return tmp_path / "both.npz"

    def told(self, window):
        """What the cards say of their sources, and what is wrong with them."""
        cards = window.input_panel.cards.values()
        names = ("inputFacts", "inputError")
        told = [[card.findChild(QLabel, name).text() for name in names] for card in cards]
        return [(facts.partition("\n")[0], error) for facts, error in told]

    def check(self, qtbot, window, arrays):
        qtbot.waitUntil(lambda: window.session.state is RunState.READY, timeout=10_000)
        qtbot.waitUntil(lambda: self.told(window) == [("2×3 f32", ""), ("4×2×3 f32", "")])
        trigger(qtbot, window, "debug.continue")
        np.testing.assert_array_equal(window.session.fetch("2"), arrays[0] + arrays[1])

    def test_on_the_command_line(self, qtbot, open_window, make_pair, archive, arrays):
        self.check(qtbot, open_window(make_pair(*self.PLUS), [archive]), arrays)

    def test_dropped_on_the_window(self, qtbot, open_window, make_pair, archive, arrays):
        window = open_window(make_pair(*self.PLUS))
        drop(window, archive)
        self.check(qtbot, window, arrays)

    def test_chosen_in_each_card(self, qtbot, open_window, make_pair, archive, arrays):
        window = open_window(make_pair(*self.PLUS))
        first, second = window.input_panel.cards.values()
        first.use_file(str(archive))
        qtbot.waitUntil(lambda: self.told(window)[0] == ("2×3 f32", ""))
        second.use_file(str(archive))
        self.check(qtbot, window, arrays)
        shown = window.findChild(QPushButton, "inputChoice")
        assert shown.text() == "both.npz"  # one file, not "and 1 more"

    def test_chosen_in_one_card_beside_another_source(
        self, qtbot, open_window, make_pair, archive, arrays
    ):
        window = open_window(make_pair(*self.PLUS), ["zeros", "ones"])
        list(window.input_panel.cards.values())[1].use_file(str(archive))
        self.check(qtbot, window, [np.zeros((2, 3)), arrays[1]])


class TestSelectionHistory:
    def test_back_and_forward(self, qtbot, window):
        session = window.session
        assert not enabled(window, "view.back")
        for name in ("relu", "out", "twice"):
            session.select(name)
        went = []
        for command in ("back", "back", "forward", "back"):
            trigger(qtbot, window, f"view.{command}")
            went.append(session.selected)
        assert went == ["out", "relu", "out", "relu"]
        session.select("twice")  # what lay ahead is another way now
        assert not enabled(window, "view.forward")
        trigger(qtbot, window, "view.back")
        assert session.selected == "relu"

    def test_steps_count_once(self, qtbot, window):
        session = window.session
        session.select("out")
        for _ in range(3):
            trigger(qtbot, window, "debug.step")
        assert session.selected == "out"
        trigger(qtbot, window, "debug.stepBack")
        assert session.selected == "twice"
        trigger(qtbot, window, "view.back")
        assert session.selected == "out"

    def test_another_model_has_its_own(self, qtbot, window, make_pair):
        window.session.select("twice")
        assert enabled(window, "view.back")
        window.session.open(make_pair(*CHAIN, name="other"))
        qtbot.waitUntil(lambda: window.session.model_path.name == "other.pnnx.param")
        qtbot.waitUntil(lambda: not window.session.busy)
        assert not enabled(window, "view.back")


class TestCopy:
    @pytest.fixture(autouse=True)
    def _active(self, qtbot, window):
        window.activateWindow()
        trigger(qtbot, window, "debug.step")
        trigger(qtbot, window, "debug.step")
        window.session.select("relu")

    def copied(self, qtbot, window, widget):
        widget.setFocus()
        qtbot.waitUntil(widget.hasFocus)
        QApplication.clipboard().setText("nothing")
        qtbot.keyClick(widget, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
        by_key = QApplication.clipboard().text()
        QApplication.clipboard().setText("nothing")
        trigger(qtbot, window, "edit.copy")
        assert QApplication.clipboard().text() == by_key
        return by_key

    @pytest.mark.parametrize("view", ["table", "graph"])
    def test_the_selected_operator(self, qtbot, window, view):
        views = {"table": window.operators_panel.table, "graph": window.graph_view.canvas}
        line = self.copied(qtbot, window, views[view]).split("\t")
        assert line[:5] == ["executed", "1", "nn.ReLU", "relu", "2×4×4"]
        assert float(line[5]) >= 0

    def test_the_picked_element(self, qtbot, window, image):
        pane = window.tensor_view.pane
        pane.show_channel(1)
        pane.plane.picked.emit(3, 2)
        assert self.copied(qtbot, window, pane.plane) == str(image[0, 1, 3, 2])

    def test_text_of_a_field(self, qtbot, window):
        box = window.operators_panel.filter_box
        box.setText("some words")
        box.selectAll()
        assert self.copied(qtbot, window, box) == "some words"

    def test_a_line_of_the_log(self, qtbot, window):
        tabs = window.findChild(TabbedPanels)
        tabs.setCurrentWidget(window.log_panel)
        table = window.log_panel.findChild(QTableView)
        table.setCurrentIndex(table.model().index(0, 0))
        assert "opened m.pnnx.param" in self.copied(qtbot, window, table)


class TestSortByTime:
    def rows(self, window):
        rows = window.operators_panel.rows
        return [rows.index(row, OperatorColumn.NAME).data() for row in range(rows.rowCount())]

    def slowest_first(self, window):
        """By a loop over the records; those without a time behind, in execution order."""
        left = list(enumerate(window.session.snapshot.records))
        found = []
        while left:
            slowest = left[0]
            for candidate in left:
                if candidate[1].seconds > slowest[1].seconds:
                    slowest = candidate
            left.remove(slowest)
            found.append(slowest[0])
        names = [op.name for op in window.session.graph.operators]
        found, rest = [names[index] for index in found], names
        return found + [name for name in rest if name not in found]

    def test_by_command_and_back(self, qtbot, window):
        order = ["in", "relu", "twice", "out"]
        trigger(qtbot, window, "debug.step")
        trigger(qtbot, window, "debug.step")
        trigger(qtbot, window, "debug.step")
        assert self.rows(window) == order
        trigger(qtbot, window, "view.sortByTime")
        assert self.rows(window) == self.slowest_first(window)
        assert self.rows(window)[-1] == "out"  # it has not run
        trigger(qtbot, window, "debug.step")  # its time comes
        assert self.rows(window) == self.slowest_first(window)
        trigger(qtbot, window, "view.sortByTime")
        assert self.rows(window) == order

    def test_by_a_click_on_the_header(self, qtbot, window):
        trigger(qtbot, window, "debug.continue")
        header = window.operators_panel.table.horizontalHeader()
        for title in ("↓ms", "↑ms", "ms"):
            left = header.sectionViewportPosition(OperatorColumn.MS)
            qtbot.mouseClick(
                header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(left + 12, 8)
            )
            shown = header.model().headerData(OperatorColumn.MS, Qt.Orientation.Horizontal)
            assert shown == title
            padding = 2 * 4  # of the style sheet
            room = header.sectionSize(OperatorColumn.MS) - padding
            assert header.fontMetrics().horizontalAdvance(title) <= room
        assert self.rows(window) == ["in", "relu", "twice", "out"]

    def test_the_selected_operator_stays(self, qtbot, window):
        trigger(qtbot, window, "debug.continue")
        window.session.select("relu")
        trigger(qtbot, window, "view.sortByTime")
        table = window.operators_panel.table
        row = self.slowest_first(window).index("relu")
        assert (window.session.selected, table.currentIndex().row()) == ("relu", row)


def test_everything_that_tab_reaches_has_a_name(qtbot, window):
    """In every dock, as a screen reader tells it."""
    nameless = set()
    for dock in window.findChildren(QDockWidget):
        if dock.objectName() != "origin":
            dock.show()
            dock.raise_()
            QApplication.processEvents()
        for widget in window.findChildren(QWidget):
            takes_tab = widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            if (
                takes_tab
                and widget.isVisible()
                and widget.objectName() != "qt_spinbox_lineedit"
            ):
                interface = QAccessible.queryAccessibleInterface(widget)
                if not interface.text(QAccessible.Text.Name).strip():
                    nameless.add((type(widget).__name__, widget.objectName()))
    assert nameless == set()


class TestOrderOfTheList:
    """Any column sorts it."""

    rows = TestSortByTime.rows

    @pytest.fixture
    def window(self, open_window, make_pair):
        chain = (
            "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
            "nn.ReLU act10 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
            "F.max_pool2d pool 1 1 1 2 kernel_size=(2,2) stride=(2,2) #2=(1,2,2,2)f32",
            "nn.ReLU act9 1 1 2 3 #3=(1,2,2,2)f32",
            "pnnx.Output out 1 0 3",
        )
        return open_window(make_pair(*chain), [np.linspace(-1, 1, 32, dtype=np.float32)
                                               .reshape(1, 2, 4, 4)])  # fmt: skip

    def click(self, qtbot, window, column):
        header = window.operators_panel.table.horizontalHeader()
        place = QPoint(header.sectionViewportPosition(column) + 4, 8)
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
        return self.rows(window)

    def test_names_and_types(self, qtbot, window):
        order = ["in", "act10", "pool", "act9", "out"]
        column = OperatorColumn.NAME
        assert self.click(qtbot, window, column) == ["act9", "act10", "in", "out", "pool"]
        assert self.click(qtbot, window, column) == ["pool", "out", "in", "act10", "act9"]
        assert self.click(qtbot, window, column) == order
        column = OperatorColumn.TYPE
        assert self.click(qtbot, window, column) == ["pool", "act10", "act9", "in", "out"]
        assert window.operators_panel.table.accessibleName() == "Operators by type"
        assert self.click(qtbot, window, OperatorColumn.INDEX) == order
        assert self.click(qtbot, window, OperatorColumn.INDEX) == order[::-1]
        assert self.click(qtbot, window, OperatorColumn.INDEX) == order

    def test_outputs_by_their_size_and_none_last(self, qtbot, window):
        column = OperatorColumn.OUTPUT
        assert self.click(qtbot, window, column) == ["in", "act10", "pool", "act9", "out"]
        assert self.click(qtbot, window, column) == ["pool", "act9", "in", "act10", "out"]

    def test_what_operators_are_coloured_by(self, qtbot, window):
        table = window.operators_panel.table
        assert table.isColumnHidden(OperatorColumn.VALUE)
        trigger(qtbot, window, "debug.continue")
        trigger(qtbot, window, "view.colorByZeros")
        qtbot.waitUntil(lambda: table.model().index(3, OperatorColumn.VALUE).data() != "")
        # Half of the ReLU's inputs are negative; poolings keep the larger halves.
        values = [table.model().index(n, OperatorColumn.VALUE).data() for n in range(4)]
        assert values[1] == "50 %"
        assert self.click(qtbot, window, OperatorColumn.VALUE)[0] in {"act10", "pool", "act9"}
        title = table.model().headerData(OperatorColumn.VALUE, Qt.Orientation.Horizontal)
        assert title == "↓Zeros"
        trigger(qtbot, window, "view.colorByFamily")
        assert table.isColumnHidden(OperatorColumn.VALUE)
        assert self.rows(window) == ["in", "act10", "pool", "act9", "out"]

    def test_it_is_remembered(self, qtbot, window, open_window):
        self.click(qtbot, window, OperatorColumn.NAME)
        window.close()
        again = open_window()
        assert again.operators_panel.order == "NAME"
        again.operators_panel.sort_by(-1)
        again.close()
        assert open_window().operators_panel.order == ""

    def test_a_narrow_list_keeps_types_and_names(self, qtbot, window):
        table = window.operators_panel.table
        for width in (346, 190):
            table.resize(width, 200)
            widths = [table.columnWidth(c) for c in (OperatorColumn.TYPE, OperatorColumn.NAME)]
            assert min(widths) >= 30
            assert sum(table.columnWidth(c) for c in OperatorColumn) <= width
        assert table.columnWidth(OperatorColumn.OUTPUT) <= 1


class TestWeights:
    """Those of layer1.conv: a bias of 4, and a weight of 4x3x3x3."""

    @pytest.fixture
    def window(self, open_window, residual):
        return open_window(residual, ["ones"])

    @pytest.fixture
    def weight(self, window):
        """Read from the file, which has a weight's bytes as they are."""
        path = window.session.graph.bin_path
        with zipfile.ZipFile(path) as archive:
            found = np.frombuffer(archive.read("layer1.conv.weight"), np.float32)
        return found.reshape(4, 3, 3, 3)

    def weight_view(self, window, name):
        window.properties_panel.catch_up()
        views = window.properties_panel.findChildren(WeightView)
        return next(view for view in views if view.name == name and view.isVisibleTo(window))

    def test_by_command(self, qtbot, window, weight):
        assert not enabled(window, "view.showWeight")
        window.session.select("layer1.conv")
        trigger(qtbot, window, "view.showWeight")
        view = window.tensor_view
        np.testing.assert_array_equal(view.pane.model.value, weight)
        assert view.strip.tabs.currentIndex() == 1
        assert view.strip.tabs.tabText(1) == "layer1.conv weight"
        pane = view.pane
        pane.show_channel(2)
        pane.plane.picked.emit(1, 0)
        assert pane.picked.value == weight[0, 2, 1, 0]
        pane.copying.copy_expression()
        assert QApplication.clipboard().text() == (
            "graph.operator('layer1.conv').attributes['weight'][0, 2, 1, 0]"
        )

    @pytest.mark.parametrize("place", ["head", "body"])
    def test_by_double_click(self, qtbot, window, weight, place):
        window.session.select("layer1.conv")
        shown = self.weight_view(window, "weight")
        was_open = shown.head.isChecked()
        for click in (qtbot.mouseClick, qtbot.mouseDClick):  # what Qt sends, in this order
            click(getattr(shown, place), Qt.MouseButton.LeftButton, pos=QPoint(8, 8))
        np.testing.assert_array_equal(window.tensor_view.pane.model.value, weight)
        assert shown.head.isChecked() == was_open

    def test_by_the_context_menu(self, qtbot, window):
        window.session.select("layer1.conv")
        shown = self.weight_view(window, "bias")
        assert shown.contextMenuPolicy() is Qt.ContextMenuPolicy.ActionsContextMenu
        shown.findChild(QAction, "showWeight").trigger()
        values = window.tensor_view.pane.model.value
        np.testing.assert_array_equal(values, np.array([0.5, -0.25, 0, 1], np.float32))

    def test_its_tab_stays_while_the_model_runs_and_goes_with_it(self, qtbot, window, weight):
        view = window.tensor_view
        window.session.select("layer1.conv")
        trigger(qtbot, window, "view.showWeight")
        trigger(qtbot, window, "debug.step")
        trigger(qtbot, window, "debug.step")
        np.testing.assert_array_equal(view.pane.model.value, weight)
        view.strip.tabs.setCurrentIndex(0)
        assert view.pane.model.name == view.operand == "1"
        window.session.select("layer1.conv")
        trigger(qtbot, window, "view.showWeight")
        assert view.strip.tabs.count() == 2  # the same tab
        trigger(qtbot, window, "file.reload")
        qtbot.waitUntil(lambda: view.strip.tabs.count() == 1)

    def test_a_large_one_is_read_in_the_background(self, qtbot, window, monkeypatch, weight):
        monkeypatch.setattr("kuiper_studio.panels.weight_list.AT_ONCE", 10)
        window.session.select("layer1.conv")
        trigger(qtbot, window, "view.showWeight")
        qtbot.waitUntil(lambda: window.tensor_view.strip.tabs.count() == 2)
        np.testing.assert_array_equal(window.tensor_view.pane.model.value, weight)

    def test_without_the_bin_there_is_none(self, qtbot, open_window, residual):
        residual.with_suffix(".bin").unlink()
        window = open_window(residual)
        window.session.select("layer1.conv")
        assert not enabled(window, "view.showWeight")


def test_the_window_fits_a_small_screen_at_twice_the_size(qtbot, window):
    """A screen of 1440 pixels has 720 of them then; the longest texts are elided."""
    trigger(qtbot, window, "debug.continue")
    window.status_bar.show_hovered("[0, 1023, 1023, 1023] 0.123456", "#fff")
    window.status_bar.show_picked("[0, 1023, 1023, 1023] 0.12345678901234")
    window.resize(720, 600)
    qtbot.wait(1)
    assert window.width() == 720
    assert window.minimumSizeHint().width() <= 720
    bar = window.tensor_view.findChild(QWidget, "tensorRange")
    assert bar.width() >= bar.childrenRect().width()


def test_every_menu_fits_a_screen_of_768_pixels(window):
    """Below the menu bar, in one column."""
    for menu in window.menuBar().findChildren(QMenu):
        if menu.title():
            menu.aboutToShow.emit()
            lines = [menu.actionGeometry(action).height() for action in menu.actions()]
            assert sum(lines) <= 740, menu.title()


def test_every_command_says_what_it_does(window):
    """More than its name, in a sentence or two, and with its key."""
    for command in (*COMMANDS, *TENSOR_COMMANDS):
        bare = command.text.replace("&", "").rstrip("…").lower()
        assert command.tip.lower() not in ("", bare), command.id
        assert command.tip[0].isupper() or not command.tip[0].isalpha(), command.id
        assert not command.tip.endswith("."), command.id
        assert len(command.tip) <= 180, command.id
    for name, action in window.commands.actions.items():
        keys = window.commands.shown_keys.get(name)
        assert not keys or keys in action.toolTip(), name


class TestWhatIsMissing:
    """A disabled command says why it is."""

    def tip(self, window, command):
        return window.actions_by_id[command].toolTip().split("\n")

    @staticmethod
    def disabled(window):
        return [action for action in window.commands.actions.values() if not action.isEnabled()]

    def test_in_tool_tips(self, qtbot, window):
        about = "Pick the element that differs most, to see where in the tensor it is (Shift+V)"
        assert self.tip(window, "analyse.worstElement") == [
            about,
            "There is no comparison yet: Analyse → Compare…",
        ]
        assert self.tip(window, "debug.stepBack")[1:] == ["No operator has run yet"]
        assert len(self.tip(window, "debug.step")) == 1
        trigger(qtbot, window, "debug.continue")
        assert self.tip(window, "debug.step")[1:] == [
            "The run is finished: step back, or restart"
        ]
        assert len(self.tip(window, "debug.stepBack")) == 1
        buttons = [b for b in window.findChildren(QToolButton) if b.text() == "Step"]
        assert "The run is finished" in buttons[0].toolTip()

    def test_of_all_commands(self, qtbot, open_window, window):
        empty = open_window()
        for shown in (window, empty):
            assert self.disabled(shown)
            for action in self.disabled(shown):
                about, why = action.toolTip().split("\n")
                assert about, action.objectName()
                assert why[0].isupper(), action.objectName()
                assert not why.endswith("."), action.objectName()
        assert self.tip(empty, "debug.step")[1:] == ["No model is open"]

    def test_other_keys_leave_it(self, window):
        window.commands.use_keys(Keymap("jetbrains"))
        assert self.tip(window, "debug.stepBack")[1:] == ["No operator has run yet"]

    def test_in_the_palette(self, qtbot, window):
        trigger(qtbot, window, "view.commandPalette")
        palette = window.findChild(CommandPalette)
        palette.box.setText("> worst")
        entry = palette.model.entry(0)
        assert entry.missing == "there is no comparison yet: Analyse → Compare…"
        spoken = palette.model.index(0).data(Qt.ItemDataRole.AccessibleTextRole)
        assert spoken.endswith("there is no comparison yet: Analyse → Compare…")
        palette.box.setText("> reload")
        assert palette.model.entry(0).missing == ""
