"""The main window without a mouse: where the keyboard is, and where Tab leads."""

from __future__ import annotations

import pytest
from driving import dock, trigger
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QApplication,
    QDockWidget,
    QMenu,
    QScrollArea,
    QToolButton,
    QWidget,
)


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

    def test_tab_comes_to_results_in_the_order_of_their_docks(self, window):
        for name in ("dataSet", "history", "comparison", "output"):
            dock(window, name).show()
        widget, names = window.nextInFocusChain(), []
        while widget is not window:
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
                names.append(widget.accessibleName())
            widget = widget.nextInFocusChain()
        wanted = (
            "Close Properties", "Close Comparison", "Operands beside the reference's tensors",
            "Close History of a place", "Operators at the place", "Close Output",
            "Meaning of the output", "Close Data set", "Which inputs", "Timeline",
        )  # fmt: skip
        places = [names.index(name) for name in wanted]
        assert places == sorted(places)

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


def test_everything_that_tab_reaches_has_a_name(qtbot, window):
    """In every dock, as a screen reader tells it."""
    nameless = set()
    for each in window.findChildren(QDockWidget):
        if each.objectName() != "origin":
            each.show()
            each.raise_()
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
