from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication

from kuiper_studio.panels.log_panel import LogPanel


@pytest.fixture
def panel(qtbot, empty_session, theme) -> LogPanel:
    made = LogPanel(empty_session, theme)
    qtbot.addWidget(made)
    made.resize(500, 100)
    made.show()
    return made


def test_the_suffix_counts(panel, empty_session) -> None:
    assert panel.suffix == ""
    empty_session.workspace.log("info", "one")
    empty_session.workspace.log("error", "two")
    assert panel.suffix == "2"


def test_actions(panel, empty_session) -> None:
    empty_session.workspace.log("info", "one")
    empty_session.workspace.log("error", "two")
    copy, clear = panel.title_actions()
    copy.trigger()
    assert QGuiApplication.clipboard().text().endswith("two")
    assert len(QGuiApplication.clipboard().text().splitlines()) == 2
    clear.trigger()
    assert panel.suffix == ""


def test_the_latest_line_stays_in_view(qtbot, panel, empty_session) -> None:
    bar = panel.table.verticalScrollBar()
    for number in range(50):
        empty_session.workspace.log("info", str(number))
    qtbot.waitUntil(lambda: bar.maximum() > 0 and bar.value() == bar.maximum())


def test_but_not_while_reading_older_ones(qtbot, panel, empty_session) -> None:
    bar = panel.table.verticalScrollBar()
    for number in range(50):
        empty_session.workspace.log("info", str(number))
    qtbot.waitUntil(lambda: bar.value() == bar.maximum() > 0)
    bar.setValue(3)
    before = bar.maximum()
    empty_session.workspace.log("info", "more")
    qtbot.waitUntil(lambda: bar.maximum() > before)
    assert bar.value() == 3


def test_copying_a_line(qtbot, panel, empty_session) -> None:
    empty_session.workspace.log("warning", "look here")
    panel.table.selectRow(0)
    panel.table.copy()  # by Ctrl+C in the window
    assert QGuiApplication.clipboard().text().split("\t")[1:] == ["warning", "look here"]
