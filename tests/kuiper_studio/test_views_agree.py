"""At any moment of a run, all views show the operators that the snapshot says."""

from __future__ import annotations

import numpy as np
import pytest
from PySide6.QtCore import QObject, QTimer, Slot
from PySide6.QtWidgets import QLabel

from kuiper_studio.engine_service import reports
from kuiper_studio.item_models import OperatorRole
from kuiper_studio.item_models.statuses import DisplayStatus
from kuiper_studio.turns import turns_are_left

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
    qtbot.waitUntil(lambda: made.graph_view.canvas.laid_out)
    return made


class Watcher(QObject):
    """Looks at all views behind each reply, and between events after a random time."""

    def __init__(self, window, rng) -> None:
        super().__init__(window)
        self.window, self._rng = window, rng
        self.positions: list[int] = []
        self.differences: list[str] = []
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self.look)
        window.session.settled.connect(self.look)  # behind all views
        self._timer.start()

    @Slot()
    def look(self) -> None:
        position = self.window.session.snapshot.position
        self.positions.append(position)
        self.differences += [f"at {position}: {each}" for each in differences(self.window)]
        self._timer.start(int(self._rng.integers(0, 6)))


def differences(window):
    """What the views show otherwise than the snapshot."""
    session = window.session
    snapshot, operators = session.snapshot, session.graph.operators
    position, ran = snapshot.position, len(snapshot.records)
    following = operators[min(position, len(operators) - 1)]
    last = operators[max(ran - 1, 0)]
    shown_operand = (last.outputs or last.inputs)[0].name

    model, table = window.operators_panel.model, window.operators_panel.table
    if model._current_row != (position if position < len(operators) else -1):
        yield f"the table marks row {model._current_row}"
    selected = table.currentIndex().data(OperatorRole.OPERATOR)
    if ran and selected is not following:
        yield f"the table selects {selected}"

    state = window.graph_view.canvas._state
    box_of = state.scene.box_of  # of the operator, or of the closed group that it is in
    if state.position != (box_of(position) if position < len(operators) else -1):
        yield f"the graph stands at {state.position}"
    if ran and state.selected != box_of(following.index):
        yield f"the graph selects {state.selected}"
    if state.count(DisplayStatus.EXECUTED) != ran:
        yield f"the graph shows {state.count(DisplayStatus.EXECUTED)} as executed"

    if ran and window.tensor_view.operand != shown_operand:
        yield f"the tensor view shows {window.tensor_view.operand}"
    shown = window.tensor_view._shown
    is_coming = session.tensors.is_coming(shown_operand)
    if shown is not None and shown[0] != shown_operand and ran and not is_coming:
        yield f"the tensor view has the elements of {shown[0]}"

    executed = int((window.timeline_panel.canvas.model.status == DisplayStatus.EXECUTED).sum())
    if executed != ran:
        yield f"the timeline shows {executed} as executed"
    if f"{position} of {len(operators)}" not in texts(window.status_bar):
        yield f"the status bar says {texts(window.status_bar)}"

    panel = window.properties_panel
    will_follow = panel._later.isActive() or turns_are_left()
    if panel._operator.name != session.selected and not will_follow:
        yield f"the properties show {panel._operator.name}, and follow no more"


def texts(widget):
    return " ".join(label.text() for label in widget.findChildren(QLabel))


def run_watched(qtbot, window, start, seed):
    watcher = Watcher(window, np.random.default_rng(seed))
    start()
    qtbot.waitUntil(lambda: not window.session.busy, timeout=20_000)
    qtbot.wait(2 * PATIENCE_MS)
    qtbot.waitUntil(lambda: not (window.properties_panel._later.isActive() or turns_are_left()))
    watcher.look()
    assert "\n".join(watcher.differences[:5]) == ""
    assert window.properties_panel._operator.name == window.session.selected
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
