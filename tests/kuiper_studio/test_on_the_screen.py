"""What the window puts on a screen: its own size, and no other windows."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from typing_extensions import override

from kuiper_studio.app import make_window
from kuiper_studio.session import Failure

# What screens leave to windows: one of 1366x768 with a panel below, and one beside it.
SMALL = QRect(0, 0, 1366, 768 - 28)
BESIDE = QRect(1366, 40, 1440, 860)


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


class TestSize:
    def test_a_first_window_fits_a_small_screen_with_its_frame(self, qapp, settings):
        window = make_window(settings=settings)
        assert window.size() == QSize(1440, 900)
        window.fit_into(SMALL)
        assert 1300 <= window.width() <= 1366 - 2
        assert 660 <= window.height() <= 740 - 26
        assert not window.testAttribute(Qt.WidgetAttribute.WA_Moved)

    @pytest.mark.parametrize("screen", [QSize(1920, 1080), QSize(2560, 1440)])
    def test_a_first_window_takes_most_of_a_large_screen(self, qapp, settings, screen):
        window = make_window(settings=settings)
        window.fit_into(QRect(QPoint(0, 0), screen))
        share = window.width() * window.height() / (screen.width() * screen.height())
        assert 0.85 <= share <= 0.9
        assert not window.testAttribute(Qt.WidgetAttribute.WA_Moved)

    def test_a_remembered_size_stays_on_a_large_screen(self, qapp, settings):
        first = make_window(settings=settings)
        first.resize(700, 600)
        first.show()
        first.close()
        window = make_window(settings=settings)
        window.fit_into(QRect(0, 0, 2560, 1440))
        assert window.size() == QSize(700, 600)

    @pytest.mark.parametrize("available", [SMALL, BESIDE])
    @pytest.mark.parametrize("place", [QPoint(-300, -50), QPoint(5000, 3000)])
    def test_a_window_is_brought_back_onto_the_screen(self, qapp, settings, available, place):
        window = make_window(settings=settings)
        window.setGeometry(QRect(place, QSize(1400, 850)))
        window.fit_into(available)
        room = window.geometry()
        assert available.contains(room)
        assert room.top() - available.top() >= 20  # for the title

    def test_a_window_that_fits_stays_where_it_is(self, qapp, settings):
        window = make_window(settings=settings)
        window.setGeometry(QRect(1500, 120, 900, 700))
        window.fit_into(BESIDE)
        assert window.geometry() == QRect(1500, 120, 900, 700)

    def test_a_model_and_a_message_fit_a_small_screen(self, open_window, samples):
        """All docks are there, and the message is a long one."""
        window = open_window(samples / "digits" / "digits.pnnx.param", ["random:1"])
        window.show_error("The input cannot be used", "It has another shape. " * 12)
        window.fit_into(SMALL)
        QApplication.processEvents()
        assert window.banner.isVisible()
        assert window.height() <= 740 - 26


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
