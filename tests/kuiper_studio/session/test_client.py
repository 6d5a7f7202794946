"""The client hands replies on in order, and leaves keys and clicks their turn."""

from __future__ import annotations

import threading
import time

import pytest
from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from engine.states import SessionState
from kuiper_studio.engine_service.protocol import CloseRequest, Done, Status, WeightsKept
from kuiper_studio.session.client import EngineClient


class Slow(QObject):
    """Takes replies, each as long as a view may."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[object] = []

    @Slot(object, object)
    def take(self, reply, _request) -> None:
        time.sleep(0.005)
        self.taken.append(reply)


@pytest.fixture
def client(qapp):
    made = EngineClient("thread")
    yield made
    made.close()


def send(client, replies):
    """Let replies come in from another thread, all before any is handled."""
    receive = client._transport._server._send
    thread = threading.Thread(target=lambda: [receive(reply) for reply in replies])
    thread.start()
    thread.join()


def test_in_order(client, qtbot):
    slow = Slow()
    client.received.connect(slow.take)
    replies = [WeightsKept(number) for number in range(60)]
    run_id = client.ask(CloseRequest)
    client._transport._server._queue.clear()
    send(client, [*replies, done := Done(run_id, Status(0, SessionState.NEED_INPUT, 0))])
    qtbot.waitUntil(lambda: done in slow.taken)
    assert slow.taken[:60] == replies


def test_a_click_comes_before_most_of_many_replies(client, qtbot):
    slow, seen = Slow(), []
    client.received.connect(slow.take)
    button = QPushButton()
    qtbot.addWidget(button)
    button.clicked.connect(lambda: seen.append(len(slow.taken)))
    send(client, [WeightsKept(number) for number in range(100)])
    QTest.qWait(0)  # handles all events that were posted
    assert len(slow.taken) < 20
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: len(slow.taken) == 100)
    assert seen[0] < 20


def test_nothing_comes_of_an_engine_that_is_no_more(client, qtbot):
    slow = Slow()
    client.received.connect(slow.take)
    send(client, [WeightsKept(number) for number in range(100)])
    QTest.qWait(0)
    client.restart()
    count = len(slow.taken)
    QTest.qWait(50)
    assert len(slow.taken) == count < 100


def test_other_timers_that_are_always_due_hold_nothing_up(client, qtbot):
    slow = Slow()
    client.received.connect(slow.take)
    busy = QTimer(interval=1)
    busy.timeout.connect(lambda: time.sleep(0.004))
    busy.start()
    send(client, [WeightsKept(number) for number in range(30)])
    qtbot.waitUntil(lambda: len(slow.taken) == 30)
    busy.stop()
