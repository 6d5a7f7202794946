"""What the window puts on a screen: no other windows."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from typing_extensions import override

from kuiper_studio.session import Failure


class ShownWindows(QObject):
    """Takes down the widgets that appear as windows of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[QWidget] = []

    @override
    def eventFilter(self, watched, event):
        is_widget = isinstance(watched, QWidget)
        if event.type() == QEvent.Type.Show and is_widget and watched.isWindow():
            self.seen.append(watched)
        return False


@pytest.fixture
def shown_windows(qapp):
    """The widgets that appear as windows of their own while a test runs."""
    watch = ShownWindows()
    qapp.installEventFilter(watch)
    yield watch.seen
    qapp.removeEventFilter(watch)


class TestWindows:
    def test_nothing_but_the_main_window_appears(
        self, qtbot, open_window, residual, shown_windows
    ):
        window = open_window(residual, ["random:1"])
        session = window.session
        for operator in session.graph.operators:
            session.select(operator.name)
            window.properties_panel.catch_up()
            session.step()
            qtbot.waitUntil(lambda: not session.busy, timeout=10_000)
        assert shown_windows == [window]

    @pytest.mark.parametrize("view", ["graph_view", "operators_panel", "timeline_panel"])
    def test_right_click_on_an_operator_with_weights_shows_its_menu_alone(
        self, qtbot, open_window, residual, shown_windows, view
    ):
        window = open_window(residual, ["random:1"])
        window.session.select("tail")  # it has no weights
        window.properties_panel.catch_up()
        shown_windows.clear()
        source = getattr(window, view)
        getattr(source, "canvas", source).menu_requested.emit("layer1.conv", QPoint(5, 5))
        window.properties_panel.catch_up()  # what it does a moment after the selection
        assert [type(shown) for shown in shown_windows] == [QMenu]
        menu = QApplication.activePopupWidget()
        assert menu is shown_windows[0]
        menu.close()

    def test_a_message_appears_within_the_window(self, open_window, residual, shown_windows):
        window = open_window(residual, ["random:1"])
        shown_windows.clear()
        window.banner.show_failure(Failure("title", "reason", "hint", operator="strange"))
        assert shown_windows == []
