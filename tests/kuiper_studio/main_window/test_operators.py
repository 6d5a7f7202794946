"""The list of operators and the selection in the main window."""

from __future__ import annotations

import numpy as np
import pytest
from driving import CHAIN, enabled, trigger
from PySide6.QtCore import QPoint, Qt

from kuiper_studio.item_models import OperatorColumn


class TestSelectionHistory:
    def test_back_and_forward(self, qtbot, window):
        session = window.session
        assert not enabled(window, "view.back")
        for name in ("relu", "out", "twice"):
            session.select(name)
        went = []
        for command in ("back", "back", "forward", "back"):
            trigger(qtbot, window, f"view.{command}")
            went.append(session.selected)
        assert went == ["out", "relu", "out", "relu"]
        session.select("twice")  # what lay ahead is another way now
        assert not enabled(window, "view.forward")
        trigger(qtbot, window, "view.back")
        assert session.selected == "relu"

    def test_steps_count_once(self, qtbot, window):
        session = window.session
        session.select("out")
        for _ in range(3):
            trigger(qtbot, window, "debug.step")
        assert session.selected == "out"
        trigger(qtbot, window, "debug.stepBack")
        assert session.selected == "twice"
        trigger(qtbot, window, "view.back")
        assert session.selected == "out"

    def test_another_model_has_its_own(self, qtbot, window, make_pair):
        window.session.select("twice")
        assert enabled(window, "view.back")
        window.session.open(make_pair(*CHAIN, name="other"))
        qtbot.waitUntil(lambda: window.session.model_path.name == "other.pnnx.param")
        qtbot.waitUntil(lambda: not window.session.busy)
        assert not enabled(window, "view.back")


class TestSortByTime:
    def rows(self, window):
        rows = window.operators_panel.rows
        return [rows.index(row, OperatorColumn.NAME).data() for row in range(rows.rowCount())]

    def slowest_first(self, window):
        """By a loop over the records; those without a time behind, in execution order."""
        left = list(enumerate(window.session.snapshot.records))
        found = []
        while left:
            slowest = left[0]
            for candidate in left:
                if candidate[1].seconds > slowest[1].seconds:
                    slowest = candidate
            left.remove(slowest)
            found.append(slowest[0])
        names = [op.name for op in window.session.graph.operators]
        found, rest = [names[index] for index in found], names
        return found + [name for name in rest if name not in found]

    def test_by_command_and_back(self, qtbot, window):
        order = ["in", "relu", "twice", "out"]
        trigger(qtbot, window, "debug.step")
        trigger(qtbot, window, "debug.step")
        trigger(qtbot, window, "debug.step")
        assert self.rows(window) == order
        trigger(qtbot, window, "view.sortByTime")
        assert self.rows(window) == self.slowest_first(window)
        assert self.rows(window)[-1] == "out"  # it has not run
        trigger(qtbot, window, "debug.step")  # its time comes
        assert self.rows(window) == self.slowest_first(window)
        trigger(qtbot, window, "view.sortByTime")
        assert self.rows(window) == order

    def test_by_a_click_on_the_header(self, qtbot, window):
        trigger(qtbot, window, "debug.continue")
        header = window.operators_panel.table.horizontalHeader()
        for title in ("↓ms", "↑ms", "ms"):
            left = header.sectionViewportPosition(OperatorColumn.MS)
            qtbot.mouseClick(
                header.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(left + 12, 8)
            )
            shown = header.model().headerData(OperatorColumn.MS, Qt.Orientation.Horizontal)
            assert shown == title
            padding = 2 * 4  # of the style sheet
            room = header.sectionSize(OperatorColumn.MS) - padding
            assert header.fontMetrics().horizontalAdvance(title) <= room
        assert self.rows(window) == ["in", "relu", "twice", "out"]

    def test_the_selected_operator_stays(self, qtbot, window):
        trigger(qtbot, window, "debug.continue")
        window.session.select("relu")
        trigger(qtbot, window, "view.sortByTime")
        table = window.operators_panel.table
        row = self.slowest_first(window).index("relu")
        assert (window.session.selected, table.currentIndex().row()) == ("relu", row)


class TestOrderOfTheList:
    """Any column sorts it."""

    rows = TestSortByTime.rows

    @pytest.fixture
    def window(self, open_window, make_pair):
        chain = (
            "pnnx.Input in 0 1 0 #0=(1,2,4,4)f32",
            "nn.ReLU act10 1 1 0 1 #0=(1,2,4,4)f32 #1=(1,2,4,4)f32",
            "F.max_pool2d pool 1 1 1 2 kernel_size=(2,2) stride=(2,2) #2=(1,2,2,2)f32",
            "nn.ReLU act9 1 1 2 3 #3=(1,2,2,2)f32",
            "pnnx.Output out 1 0 3",
        )
        return open_window(make_pair(*chain), [np.linspace(-1, 1, 32, dtype=np.float32)
                                               .reshape(1, 2, 4, 4)])  # fmt: skip

    def click(self, qtbot, window, column):
        header = window.operators_panel.table.horizontalHeader()
        place = QPoint(header.sectionViewportPosition(column) + 4, 8)
        qtbot.mouseClick(header.viewport(), Qt.MouseButton.LeftButton, pos=place)
        return self.rows(window)

    def test_names_and_types(self, qtbot, window):
        order = ["in", "act10", "pool", "act9", "out"]
        column = OperatorColumn.NAME
        assert self.click(qtbot, window, column) == ["act9", "act10", "in", "out", "pool"]
        assert self.click(qtbot, window, column) == ["pool", "out", "in", "act10", "act9"]
        assert self.click(qtbot, window, column) == order
        column = OperatorColumn.TYPE
        assert self.click(qtbot, window, column) == ["pool", "act10", "act9", "in", "out"]
        assert window.operators_panel.table.accessibleName() == "Operators by type"
        assert self.click(qtbot, window, OperatorColumn.INDEX) == order
        assert self.click(qtbot, window, OperatorColumn.INDEX) == order[::-1]
        assert self.click(qtbot, window, OperatorColumn.INDEX) == order

    def test_outputs_by_their_size_and_none_last(self, qtbot, window):
        column = OperatorColumn.OUTPUT
        assert self.click(qtbot, window, column) == ["in", "act10", "pool", "act9", "out"]
        assert self.click(qtbot, window, column) == ["pool", "act9", "in", "act10", "out"]

    def test_what_operators_are_coloured_by(self, qtbot, window):
        table = window.operators_panel.table
        assert table.isColumnHidden(OperatorColumn.VALUE)
        trigger(qtbot, window, "debug.continue")
        trigger(qtbot, window, "view.colorByZeros")
        qtbot.waitUntil(lambda: table.model().index(3, OperatorColumn.VALUE).data() != "")
        # Half of the ReLU's inputs are negative; poolings keep the larger halves.
        values = [table.model().index(n, OperatorColumn.VALUE).data() for n in range(4)]
        assert values[1] == "50 %"
        assert self.click(qtbot, window, OperatorColumn.VALUE)[0] in {"act10", "pool", "act9"}
        title = table.model().headerData(OperatorColumn.VALUE, Qt.Orientation.Horizontal)
        assert title == "↓Zeros"
        trigger(qtbot, window, "view.colorByFamily")
        assert table.isColumnHidden(OperatorColumn.VALUE)
        assert self.rows(window) == ["in", "act10", "pool", "act9", "out"]

    def test_it_is_remembered(self, qtbot, window, open_window):
        self.click(qtbot, window, OperatorColumn.NAME)
        window.close()
        again = open_window()
        assert again.operators_panel.order == "NAME"
        again.operators_panel.sort_by(-1)
        again.close()
        assert open_window().operators_panel.order == ""

    def test_a_narrow_list_keeps_types_and_names(self, qtbot, window):
        table = window.operators_panel.table
        for width in (346, 190):
            table.resize(width, 200)
            widths = [table.columnWidth(c) for c in (OperatorColumn.TYPE, OperatorColumn.NAME)]
            assert min(widths) >= 30
            assert sum(table.columnWidth(c) for c in OperatorColumn) <= width
        assert table.columnWidth(OperatorColumn.OUTPUT) <= 1
