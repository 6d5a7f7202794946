"""Weights in the main window."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from driving import enabled, trigger
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QApplication

from kuiper_studio.panels.weight_view import WeightView


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
