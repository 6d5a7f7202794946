"""The small pieces that panels are made of."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QDockWidget, QLabel, QMainWindow, QMenu, QToolButton

from kuiper_studio.elided_label import ElidedLabel, ElidedLines
from kuiper_studio.panels.dock_title import DockTitleBar
from kuiper_studio.panels.panel import Panel
from kuiper_studio.panels.section import Section


class WithActions(Panel):
    def title_actions(self):
        first = QAction("First", self)
        second = QAction("Second", self)
        second.setMenu(QMenu(self))
        return first, second


@pytest.fixture
def panel(qtbot, empty_session, theme) -> Panel:
    made = WithActions("things", "Things", empty_session, theme)
    qtbot.addWidget(made)
    return made


def test_suffix_is_announced_when_it_changes(panel) -> None:
    heard = []
    panel.suffix_changed.connect(heard.append)
    panel.set_suffix("1")
    panel.set_suffix("1")
    panel.set_suffix("2")
    assert heard == ["1", "2"]


def test_dock_title_follows_its_panel(qtbot, panel, theme) -> None:
    panel.set_suffix("6 / 51")
    bar = DockTitleBar.of(panel, theme)
    qtbot.addWidget(bar)
    labels = [label.text() for label in bar.findChildren(QLabel)]
    assert labels == ["Things", "6 / 51"]
    panel.set_suffix("7 / 51")
    assert bar.findChildren(QLabel)[1].text() == "7 / 51"
    names = [b.accessibleName() or b.text() for b in bar.findChildren(QToolButton)]
    assert set(names) == {"Close Things", "First", "Second"}


def test_dock_title_in_a_dock(qtbot, empty_session, theme) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    panel = WithActions("things", "Things", empty_session, theme)
    dock = QDockWidget("Things", window)
    bar = DockTitleBar.of(panel, theme)
    bar.close_requested.connect(dock.close)
    dock.setTitleBarWidget(bar)
    dock.setWidget(panel)
    window.addDockWidget(Qt.LeftDockWidgetArea, dock)
    window.show()
    assert bar.height() == 30
    close = next(b for b in bar.findChildren(QToolButton) if "Close" in b.accessibleName())
    close.click()
    assert dock.isHidden()


def test_section_folds(qtbot, theme) -> None:
    body = QLabel("body")
    section = Section("Title", body, theme)
    qtbot.addWidget(section)
    section.show()
    qtbot.mouseClick(section.head, Qt.LeftButton)
    assert body.isHidden()
    section.head.setFocus()
    qtbot.keyClick(section.head, Qt.Key_Space)
    assert body.isVisible()
    section.head.setChecked(False)
    section.unfold()
    assert body.isVisible()


def test_lines_that_do_not_fit_are_elided_in_the_middle_of_the_last(qtbot) -> None:
    label = ElidedLines("secondary", 2)
    qtbot.addWidget(label)
    label.resize(200, 40)
    label.show()
    words = [f"word{place}" for place in range(40)]
    label.setText(" ".join(words))
    first, last = label.lines()
    count = len(first.split())
    assert first.split() == words[:count]
    assert last.startswith(words[count])
    assert "…" in last
    assert last.endswith("39")
    assert label.toolTip() == " ".join(words)
    line = label.fontMetrics().lineSpacing()
    heights = [label.height()]
    for text in ("one", "", "n" * 40):
        label.setText(text)
        heights.append(label.height())
    assert heights == [2 * line, line, line, 2 * line]
    assert "".join(label.lines()) == "n" * 40  # a long name is broken anywhere
    label.resize(1000, 40)
    assert label.lines() == ["n" * 40]


@pytest.mark.parametrize("make", [ElidedLabel, lambda: ElidedLines("", 1)])
def test_a_short_text_takes_the_place_of_one_that_does_not_fit(qtbot, make) -> None:
    label = make()
    qtbot.addWidget(label)
    whole = "The image is letterboxed in the reference. Set fit=letterbox."
    label.show_text(whole, "Set fit=letterbox.")
    width = label.fontMetrics().horizontalAdvance(whole)
    label.resize(width + 20, 40)
    label.show()
    assert label.lines() == [whole]
    label.resize(width - 20, 40)
    assert label.lines() == ["Set fit=letterbox."]
    assert label.toolTip() == whole
    label.setText(whole)  # without a short one
    assert "…" in label.lines()[0]


def test_elided_label_keeps_the_whole_text_in_its_tip(qtbot) -> None:
    label = ElidedLabel("mono")
    qtbot.addWidget(label)
    label.setText("layer1.0.conv")
    assert label.toolTip() == "layer1.0.conv"
    assert label.minimumSizeHint().width() < label.sizeHint().width()
