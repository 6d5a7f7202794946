from __future__ import annotations

import re

from PySide6.QtCore import Qt

from kuiper_studio.item_models import LEVEL_ROLE, LogColumn, LogModel
from kuiper_studio.item_models import log as log_module


def test_lines_arrive(empty_session, qtmodeltester) -> None:
    empty_session.workspace.log("info", "before")
    model = LogModel(empty_session)
    empty_session.workspace.log("error", "two\nlines")
    assert [model.index(row, LogColumn.TEXT).data() for row in range(2)] == [
        "before",
        "two lines",
    ]
    assert model.index(1, LogColumn.TEXT).data(Qt.ItemDataRole.ToolTipRole) == "two\nlines"
    assert model.index(1, 0).data(LEVEL_ROLE) == "error"
    assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d{3}", model.index(0, LogColumn.TIME).data())
    qtmodeltester.check(model)


def test_text_of_all_lines(empty_session) -> None:
    model = LogModel(empty_session)
    empty_session.workspace.log("info", "one")
    empty_session.workspace.log("warning", "two")
    lines = model.text().splitlines()
    assert [line.split("\t")[1:] for line in lines] == [["info", "one"], ["warning", "two"]]
    model.clear()
    assert model.text() == ""


def test_the_oldest_lines_go(empty_session, monkeypatch, qtmodeltester) -> None:
    monkeypatch.setattr(log_module, "LIMIT", 3)
    model = LogModel(empty_session)
    for number in range(5):
        empty_session.workspace.log("info", str(number))
    texts = [model.index(row, LogColumn.TEXT).data() for row in range(model.rowCount())]
    assert texts == ["2", "3", "4"]
    qtmodeltester.check(model)
