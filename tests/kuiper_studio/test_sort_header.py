"""The arrow beside the title of the column that a table is sorted by."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QImage, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QTableView

from kuiper_studio.sort_header import SortHeader
from kuiper_studio.theme import Scheme, Theme

HEIGHT, WIDTH = 22, 100
ALIGN = Qt.ItemDataRole.TextAlignmentRole


@pytest.fixture
def table(qtbot):
    """Two columns: texts at the left, numbers at the right."""
    view = QTableView()
    qtbot.addWidget(view)
    model = QStandardItemModel(3, 2, view)
    model.setHorizontalHeaderLabels(["name", "value"])
    flow = Qt.Orientation.Horizontal
    model.setHeaderData(0, flow, Qt.AlignmentFlag.AlignLeft, ALIGN)
    model.setHeaderData(1, flow, Qt.AlignmentFlag.AlignRight, ALIGN)
    for row, (name, value) in enumerate([("b", "2"), ("c", "1"), ("a", "3")]):
        model.setItem(row, 0, QStandardItem(name))
        model.setItem(row, 1, QStandardItem(value))
    view.setModel(model)
    view.setStyleSheet(
        "QHeaderView::section { background: white; color: black; padding: 0 4px; border: 0; }"
    )
    SortHeader(Theme(Scheme.LIGHT), view).setFixedHeight(HEIGHT)
    view.setColumnWidth(0, WIDTH)
    view.setColumnWidth(1, WIDTH)
    view.resize(260, 160)
    view.show()
    qtbot.waitExposed(view)
    return view


def click(qtbot, table, column):
    """Click the middle of a title."""
    viewport = table.horizontalHeader().viewport()
    place = QPoint(column * WIDTH + WIDTH // 2, HEIGHT // 2)
    qtbot.mouseClick(viewport, Qt.MouseButton.LeftButton, pos=place)


def names(table):
    model = table.model()
    return [model.item(row, 0).text() for row in range(model.rowCount())]


def picture(table):
    """The titles as grey levels, as (height, width)."""
    image = table.horizontalHeader().grab().toImage()
    grey = image.convertToFormat(QImage.Format.Format_Grayscale8)
    lines = np.frombuffer(grey.constBits(), np.uint8).reshape(grey.height(), -1)
    return lines[:, : grey.width()].astype(int)


def arrow(before, after):
    """The columns of what was drawn, and the widths of its first and last line."""
    drawn = np.abs(after - before) > 60
    columns = np.flatnonzero(drawn.any(axis=0))
    lines = drawn.sum(axis=1)[drawn.any(axis=1)]
    return columns, lines[0], lines[-1]


def test_it_points_up_while_values_rise_and_down_while_they_fall(qtbot, table):
    plain = picture(table)

    click(qtbot, table, 0)
    columns, first, last = arrow(plain, picture(table))
    assert names(table) == ["a", "b", "c"]
    assert first < last  # a tip above
    # After the title, which begins at the left, and near it.
    title = np.flatnonzero((plain[:, :WIDTH] < 200).any(axis=0))
    assert title[-1] < columns[0] < title[-1] + 10

    click(qtbot, table, 0)
    _, first, last = arrow(plain, picture(table))
    assert names(table) == ["c", "b", "a"]
    assert first > last


def test_it_stands_before_a_title_at_the_right(qtbot, table):
    plain = picture(table)

    click(qtbot, table, 1)
    columns, first, last = arrow(plain, picture(table))

    assert names(table) == ["c", "b", "a"]  # 1, 2, 3
    assert first < last
    title = WIDTH + np.flatnonzero((plain[:, WIDTH : 2 * WIDTH] < 200).any(axis=0))
    assert title[0] - 12 < columns[-1] < title[0]
    # Numbers stay below their title: it is where it was.
    assert (
        picture(table)[:, title[0] : title[-1] + 1] == plain[:, title[0] : title[-1] + 1]
    ).all()
