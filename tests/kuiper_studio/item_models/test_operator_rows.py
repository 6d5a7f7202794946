"""Sorting and choosing of rows about operators, as a table shows them."""

from __future__ import annotations

import random
from typing import NamedTuple

import pytest
from PySide6.QtCore import QAbstractItemModel, Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QTableView

from kuiper_studio.item_models.operator_rows import (
    OperatorRowsModel,
    SortModel,
    index_column,
    name_column,
    number_column,
)

RISES, FALLS = Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder
INDEX, NAME, ERROR = range(3)


class Label(NamedTuple):
    index: int
    name: str
    type: str = "nn.ReLU"


class Found(NamedTuple):
    operator: Label
    error: float | None


ROWS = [
    Found(Label(0, "stem"), 0.5),
    Found(Label(1, "left"), None),
    Found(Label(2, "right"), 2.0),
    Found(Label(3, "add"), 0.5),
    Found(Label(4, "head"), -1.0),
]


def make_model(rows: list[Found]) -> tuple[OperatorRowsModel, SortModel]:
    columns = [index_column(), name_column("…"), number_column("error", "…", lambda r: r.error)]
    source = OperatorRowsModel(columns)
    source.show_rows(rows)
    return source, SortModel(source, source)


def shown(model: QAbstractItemModel, column: int = INDEX) -> list[str]:
    return [model.index(row, column).data() for row in range(model.rowCount())]


@pytest.mark.parametrize(
    ("column", "order", "expected"),
    [
        (INDEX, FALLS, "4 3 2 1 0"),
        (NAME, RISES, "3 4 1 2 0"),
        # Equal ones in execution order, either way; without a number they are the least.
        (ERROR, RISES, "1 4 0 3 2"),
        (ERROR, FALLS, "2 0 3 4 1"),
        (-1, RISES, "0 1 2 3 4"),
    ],
)
def test_rows_are_sorted_by_a_column(column, order, expected):
    _, model = make_model(ROWS)
    model.sort(column, order)
    assert shown(model) == expected.split()
    assert model.row_at(model.index(0, 0)).operator.index == int(expected[0])


def test_other_rows_are_sorted_in_the_same_way():
    source, model = make_model([])
    QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.sort(ERROR, FALLS)
    assert model.headerData(ERROR, Qt.Orientation.Horizontal) == "error"
    source.show_rows(ROWS)
    assert shown(model) == ["2", "0", "3", "4", "1"]
    source.show_rows(ROWS[:2])
    assert shown(model, NAME) == ["stem", "left"]
    assert shown(model, ERROR) == ["0.5", "–"]


def test_only_accepted_rows_are_shown():
    _, model = make_model(ROWS)
    model.sort(NAME)
    model.show_only(lambda row: row.error is not None and row.error > 0)
    assert shown(model, NAME) == ["add", "right", "stem"]
    assert model.index_of(2).row() == 1
    assert not model.index_of(1).isValid()
    model.show_only(None)
    assert shown(model, NAME) == ["add", "head", "left", "right", "stem"]


def test_the_current_row_stays_current_while_it_is_shown(qtbot):
    _, model = make_model(ROWS)
    table = QTableView()
    qtbot.addWidget(table)
    table.setModel(model)
    table.setSortingEnabled(True)
    table.sortByColumn(INDEX, RISES)
    table.selectRow(2)
    table.sortByColumn(ERROR, FALLS)
    assert [each.row() for each in table.selectionModel().selectedRows()] == [0]
    assert table.currentIndex().siblingAtColumn(NAME).data() == "right"
    model.show_only(lambda row: row.operator.name != "right")
    assert not table.currentIndex().isValid()
    assert not table.selectionModel().hasSelection()
    model.show_only(None)
    assert shown(model) == ["2", "0", "3", "4", "1"]


def test_thousands_of_rows_are_sorted():
    draw = random.Random(0)
    numbers = [draw.choice([None, draw.random()]) for _ in range(3000)]
    _, model = make_model([Found(Label(n, f"n{n}"), each) for n, each in enumerate(numbers)])
    model.sort(ERROR, RISES)
    missing = [n for n, each in enumerate(numbers) if each is None]
    rest = [
        n for _, n in sorted((each, n) for n, each in enumerate(numbers) if each is not None)
    ]
    assert shown(model) == [str(n) for n in missing + rest]
