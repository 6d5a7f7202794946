"""How the main window is arranged, what fits into it, and what it remembers of that."""

from __future__ import annotations

from driving import CHAIN, dock, label, trigger
from on_screen import find
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QTabBar, QToolButton, QWidget


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


def test_a_result_that_was_open_is_open_again_with_its_panel(open_window, make_pair, image):
    path = make_pair(*CHAIN)
    first = open_window(path, [image])
    assert first.findChild(QLabel, "dataSetTitle") is None  # nobody has seen it
    dock(first, "dataSet").toggleViewAction().trigger()
    assert label(first, "dataSetTitle") == "No data set"
    first.close()
    second = open_window(path, [image])
    assert second.findChild(QLabel, "dataSetTitle").isVisible()
    assert label(second, "dataSetTitle") == "No data set"


def test_all_parts_of_the_properties_fit_beside_each_other(window):
    window.session.select("relu")
    tabs = find(window, QTabBar, "Parts of the properties")
    for place in range(tabs.count()):  # the tab that is current has a bold title
        tabs.setCurrentIndex(place)
        assert [arrow for arrow in tabs.findChildren(QToolButton) if arrow.isVisible()] == []


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
