"""At any moment of a run, all views show the operators that the snapshot says."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QModelIndex, QObject, Qt, QTimer, Slot
from PySide6.QtWidgets import QLabel

from kuiper_studio.engine_service import reports
from kuiper_studio.item_models import OperatorColumn, OperatorRole
from kuiper_studio.item_models.statuses import DisplayStatus

COUNT = 600
PATIENCE_MS = 40
KINDS = ("nn.ReLU r{0}", "nn.Sigmoid s{0}", "nn.Tanh t{0}")


@pytest.fixture
def window(open_window, make_pair, monkeypatch, qtbot):
    """With a chain that is reported often."""
    monkeypatch.setattr(reports, "SECONDS_BETWEEN_REPORTS", 0.004)
    shapes = "#{0}=(2,3)f32 #{1}=(2,3)f32"
    lines = [
        f"{KINDS[i % 3].format(i)} 1 1 {i} {i + 1} {shapes.format(i, i + 1)}"
        for i in range(COUNT)
    ]
    param = make_pair("pnnx.Input in 0 1 0 #0=(2,3)f32", *lines, f"pnnx.Output out 1 0 {COUNT}")
    made = open_window(param, [np.ones((2, 3), np.float32)])
    canvas = made.graph_view.canvas
    qtbot.waitUntil(lambda: canvas.laid_out)
    canvas.set_grouping(False)  # so that it says which operator is next, not in which group
    qtbot.waitUntil(lambda: canvas.laid_out)
    return made


class Watcher(QObject):
    """Looks at all views behind each reply, and between events after a random time."""

    def __init__(self, window, rng) -> None:
        super().__init__(window)
        self.window, self._rng = window, rng
        self.positions: list[int] = []
        self.differences: list[str] = []
        self._marked = {0}  # rows of the next operator, as painted when they last changed
        window.operators_panel.model.dataChanged.connect(self.paint)
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.look)
        window.session.settled.connect(self.look)  # behind all views
        self._timer.start()

    @Slot(QModelIndex, QModelIndex)
    def paint(self, first, last) -> None:
        """Look at rows that are announced as changed; a table paints only these."""
        model = self.window.operators_panel.model
        rows = range(first.row(), last.row() + 1)
        self._marked = {*self._marked.difference(rows), *(r for r in rows if is_next(model, r))}

    @Slot()
    def look(self) -> None:
        position = self.window.session.snapshot.position
        self.positions.append(position)
        self.differences += [
            f"at {position}: {each}" for each in differences(self.window, self._marked)
        ]
        self._timer.start(int(self._rng.integers(0, 6)))


def differences(window, marked):
    """What the views show otherwise than the snapshot; `marked` are rows of the table."""
    session = window.session
    snapshot, operators = session.snapshot, session.graph.operators
    position, ran = snapshot.position, len(snapshot.records)
    following = operators[min(position, len(operators) - 1)]
    last = operators[max(ran - 1, 0)]
    shown_operand = (last.outputs or last.inputs)[0].name

    table = window.operators_panel.table
    if marked != ({position} if position < len(operators) else set()):
        yield f"the table marks rows {marked}"
    selected = table.currentIndex().data(OperatorRole.OPERATOR)
    if ran and selected is not following:
        yield f"the table selects {selected}"

    said = window.graph_view.canvas.accessibleDescription()
    wanted = [f"{len(operators)} operators, {ran} executed."]
    if position < len(operators):
        wanted.append(f"Next: {following.type} {following.name},")
    if ran:
        wanted.append(f"Selected: {following.type} {following.name},")
    if not all(each in said for each in wanted):
        yield f"the graph says {said}"

    if ran and window.tensor_view.operand != shown_operand:
        yield f"the tensor view shows {window.tensor_view.operand}"
    shown = window.tensor_view.pane.model.name
    is_coming = session.tensors.is_coming(shown_operand)
    if shown not in {"", shown_operand} and ran and not is_coming:
        yield f"the tensor view has the elements of {shown}"

    executed = int((window.timeline_panel.canvas.model.status == DisplayStatus.EXECUTED).sum())
    if executed != ran:
        yield f"the timeline shows {executed} as executed"
    if f"{position} of {len(operators)}" not in texts(window.status_bar):
        yield f"the status bar says {texts(window.status_bar)}"


def is_next(model, row):
    """Whether a row of the table is marked as that of the next operator."""
    state = model.index(row, OperatorColumn.STATE)
    return state.data(Qt.ItemDataRole.ToolTipRole).startswith("next to run")


def texts(widget):
    return " ".join(label.text() for label in widget.findChildren(QLabel))


def run_watched(qtbot, window, start, seed):
    watcher = Watcher(window, np.random.default_rng(seed))
    start()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=20_000)
    qtbot.wait(2 * PATIENCE_MS)
    watcher.look()
    assert "\n".join(watcher.differences[:5]) == ""
    panel, selected = window.properties_panel, window.session.selected
    qtbot.waitUntil(lambda: panel.operator.name == selected)  # they follow a little later
    return watcher.positions


@pytest.mark.parametrize("seed", range(3))
def test_in_a_free_run(qtbot, window, seed):
    positions = run_watched(qtbot, window, window.actions_by_id["debug.continue"].trigger, seed)
    assert positions[-1] == COUNT + 2
    assert len(set(positions)) > 2  # not only before and behind it


@pytest.mark.parametrize("seed", range(2))
def test_while_f10_is_held(qtbot, window, seed):
    step = window.actions_by_id["debug.step"]

    def hold():
        for _ in range(60):
            step.trigger()
            qtbot.wait(3)

    positions = run_watched(qtbot, window, hold, seed)
    assert positions[-1] == 60
    assert len(set(positions)) > 10
