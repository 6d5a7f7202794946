"""Paths that can be no file's, and names that begin with what Qt takes for a mark."""

from __future__ import annotations

import numpy as np
import pytest
from on_screen import find
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QApplication, QLabel, QPushButton

from kuiper_studio.elided_label import ElidedLabel
from kuiper_studio.item_models import OperatorColumn, OperatorRole
from kuiper_studio.panels.dropping import dropped_model
from kuiper_studio.panels.recents import RecentModel, to_json
from kuiper_studio.session import RunState

CHAIN = (
    "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
    "nn.ReLU relu 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
    "pnnx.Output out 1 0 1",
)
MARKS = ("\ufeff", "\ufffe")
IMPOSSIBLE = ("a" * 300, "a\0b")


@pytest.fixture
def window(qtbot, open_window, make_pair):
    window = open_window(make_pair(*CHAIN), [np.ones((1, 2, 4, 4), np.float32)])
    qtbot.waitUntil(lambda: not window.session.busy)
    return window


@pytest.mark.parametrize("name", IMPOSSIBLE)
class TestPaths:
    @pytest.mark.parametrize("suffix", [".npy", ".npz", ".png", ".npz:x", ""])
    def test_as_an_input(self, qtbot, window, name, suffix):
        window.opening.feed_files([name + suffix])
        assert "The input cannot be used" in window.banner.plain_text()
        card = window.input_panel.cards["0"]
        card.use_file(name + suffix)
        assert window.session.fed_shapes == {"0": (1, 2, 4, 4)}  # what was there before

    @pytest.mark.parametrize("suffix", [".param", ".bin", ".npy", ".txt", ""])
    def test_dropped(self, qtbot, window, name, suffix):
        with qtbot.waitSignal(window.session.workspace.logged):
            window.opening.open_dropped([name + suffix])
        qtbot.waitUntil(lambda: not window.session.busy)
        assert window.banner.isVisible()
        assert window.session.state is RunState.READY
        assert dropped_model([name]) == ""

    def test_opened(self, qtbot, window, name):
        for open_it in (window.opening.load_layers, window.session.use_kernels_of):
            with qtbot.waitSignal(window.session.failed):
                open_it(name)
        assert window.session.state is RunState.READY

    def test_remembered(self, qtbot, settings, open_window, name):
        entry = RecentModel(f"/{name}.param", 3, "2026-01-01T10:00:00")
        settings.setValue("recents", to_json([entry]))
        window = open_window()
        assert window.opening.recent_models.entries() == (entry,)
        menu = window.menuBar().addMenu("recent")
        window.opening.fill_recent_models(menu)
        assert not menu.actions()[0].isEnabled()


@pytest.mark.parametrize("mark", MARKS)
def test_a_name_that_begins_with_a_byte_order_mark(qtbot, open_window, make_pair, mark):
    path = make_pair(
        f"pnnx.Input {mark}in 0 1 {mark}0 #{mark}0=(3)f32",
        f"nn.ReLU {mark}relu 1 1 {mark}0 {mark}1 #{mark}1=(3)f32",
        f"my.Strange {mark}odd 1 1 {mark}1 2",
        "pnnx.Output out 1 0 2",
    )
    window = open_window(path, [np.float32([-1, 2, 3])])
    session = window.session
    qtbot.waitUntil(lambda: session.graph is not None and not session.busy)
    assert session.selected == f"{mark}in"
    table = window.operators_panel.table
    rows = window.operators_panel.rows
    index = rows.index(1, OperatorColumn.BREAKPOINT)
    table.setCurrentIndex(index)
    assert session.selected == f"{mark}relu"
    place = table.visualRect(index).center()
    qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert session.breakpoints == {f"{mark}relu"}
    session.step()
    session.step()
    session.wait_idle()
    assert session.fetch(f"{mark}1").tolist() == [0, 2, 3]
    session.resume()
    session.wait_idle()
    assert window.banner.isVisible()
    asked = []
    window.banner.supply_requested.disconnect()
    window.banner.supply_requested.connect(asked.append)
    find(window.banner, QPushButton, "Supply output…").click()
    assert asked == [f"{mark}odd"]
    session.step_back()
    session.wait_idle()
    assert rows.index(1, 0).data(OperatorRole.OPERATOR).name == f"{mark}relu"
    heard = []
    window.operators_panel.menu_requested.disconnect()
    window.operators_panel.menu_requested.connect(lambda name, _: heard.append(name))
    table.menu_requested.emit(QModelIndex(rows.index(1, 0)), QPoint())
    assert heard == [f"{mark}relu"]
    card = window.input_panel.cards[f"{mark}0"]
    card.choice.setCurrentIndex(2)
    card.choice.activated.emit(2)  # zeros
    session.wait_idle()
    session.step()
    session.wait_idle()
    assert session.fetch(f"{mark}0").tolist() == [0, 0, 0]


class TestLongNames:
    """Names of 260 characters in every place that a file has for them."""

    STEM = "a_module_with_a_name_that_never_ends." * 7

    @pytest.fixture
    def window(self, qtbot, open_window, make_pair):
        stem = self.STEM
        window = open_window(
            make_pair(
                f"pnnx.Input {stem}in 0 1 {stem}0 #{stem}0=(1,3,8,8)f32",
                f"nn.ReLU {stem}relu 1 1 {stem}0 {stem}1 #{stem}1=(1,3,8,8)f32",
                (
                    f"Vendor.{stem}Type {stem}custom 1 1 {stem}1 {stem}2 "
                    f"{stem}key={stem}value @{stem}weight=(3,3)f32"
                ),
                f"pnnx.Output {stem}out 1 0 {stem}2",
                weights={f"{stem}custom.{stem}weight": np.ones((3, 3), np.float32)},
            ),
            [np.ones((1, 3, 8, 8), np.float32)],
        )
        window.resize(1366, 700)
        qtbot.waitUntil(lambda: not window.session.busy)
        return window

    def test_the_window_stays_within_the_screen(self, qtbot, window):
        session = window.session
        session.step()
        qtbot.waitUntil(lambda: not session.busy)
        window.session.run_to(f"{self.STEM}out")
        qtbot.waitUntil(lambda: not session.busy and window.banner.isVisible())
        for operator in session.graph.operators:
            session.select(operator.name)
            window.properties_panel.catch_up()
            QApplication.processEvents()
            assert window.width() == 1366
            assert window.minimumSizeHint().width() < 1200

    def test_a_shortened_text_is_whole_in_its_tool_tip(self, qtbot, window):
        window.session.run_to(f"{self.STEM}out")
        qtbot.waitUntil(lambda: not window.session.busy and window.banner.isVisible())
        shown = [
            label for label in window.banner.findChildren(QLabel) if "never" in label.text()
        ]
        assert shown
        assert all(self.STEM not in label.text() for label in shown)
        assert any(self.STEM in label.toolTip() for label in shown)
        assert self.STEM in window.banner.plain_text()  # what is copied


def test_a_short_name_stands_beside_what_follows_it(qapp):
    label = ElidedLabel()
    label.setText("o")
    assert label.minimumSizeHint().width() <= QFontMetrics(label.font()).horizontalAdvance("oo")
