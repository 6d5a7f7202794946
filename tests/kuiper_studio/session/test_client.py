"""Replies of the engine reach the window in order, and leave time for its other events."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from PySide6.QtCore import QEventLoop, QTimer

from kuiper_studio.session import client as module
from kuiper_studio.session.client import EngineClient

REPLIES = ["first", "second", "third", "fourth"]


class Engine:
    """An engine that says what a test has it say."""

    pid = None

    def __init__(self, receive):
        self.say = receive

    def close(self, *, waits=False):
        pass


@pytest.fixture
def engine(qapp, monkeypatch):
    """The client of an engine, and the engine."""
    engines = []
    monkeypatch.setattr(
        module, "ThreadTransport", lambda receive: engines.append(Engine(receive)) or engines[0]
    )
    client = EngineClient("thread")
    yield client, engines[0]
    client.close()


def test_events_come_between_replies_that_take_long(engine, qtbot):
    client, says = engine
    seen = []
    client.received.connect(lambda reply, _request: (time.sleep(0.01), seen.append(reply)))
    tick = QTimer(interval=0)
    tick.timeout.connect(lambda: seen.append("event"))
    tick.start()
    for reply in REPLIES:
        says.say(reply)
    qtbot.waitUntil(lambda: REPLIES[-1] in seen)
    tick.stop()
    assert [each for each in seen if each != "event"] == REPLIES
    for one, next_one in pairwise(REPLIES):
        assert "event" in seen[seen.index(one) : seen.index(next_one)]


def test_replies_come_while_a_dialog_of_an_earlier_one_is_open(engine, qtbot):
    client, says = engine
    seen, dialog = [], QEventLoop()

    def take(reply, _request):
        seen.append(reply)
        if reply == "first":
            dialog.exec()
        elif reply == "fourth":
            dialog.quit()

    client.received.connect(take)
    QTimer.singleShot(2000, dialog.quit)  # where it would stay open for ever
    for reply in REPLIES[:3]:
        says.say(reply)
    QTimer.singleShot(50, lambda: says.say("fourth"))
    qtbot.waitUntil(lambda: "fourth" in seen, timeout=1500)
    assert seen == REPLIES


def test_nothing_comes_of_an_engine_that_was_closed(engine, qtbot):
    client, says = engine
    seen = []
    client.received.connect(lambda reply, _request: seen.append(reply))
    says.say("first")
    client.close()
    qtbot.wait(50)
    assert seen == []
