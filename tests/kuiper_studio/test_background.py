"""Background: work on another thread, answers on the window's."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QObject, Slot

from kuiper_studio.background import Background


class Listener(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.heard = []

    @Slot(object)
    def hear(self, done) -> None:
        self.heard.append((done, threading.current_thread()))


@pytest.fixture
def listener(qapp) -> Listener:
    return Listener()


def test_answers_on_the_windows_thread(qtbot, listener) -> None:
    background = Background()
    background.finished.connect(listener.hear)
    threads = []

    def work() -> int:
        threads.append(threading.current_thread())
        return 42

    background.submit("key", work)
    qtbot.waitUntil(lambda: bool(listener.heard))
    done, thread = listener.heard[0]
    assert (done.key, done.result, done.error) == ("key", 42, "")
    assert thread is threading.main_thread()
    assert threads[0] is not threading.main_thread()


def test_answers_failures_too(qtbot, listener) -> None:
    background = Background()
    background.finished.connect(listener.hear)
    background.submit(1, lambda: 1 // 0)
    qtbot.waitUntil(lambda: bool(listener.heard))
    done, _ = listener.heard[0]
    assert done.result is None
    assert "division" in done.error


def test_close_drops_what_has_not_begun(qtbot, listener) -> None:
    gate, begun, ran = threading.Event(), threading.Event(), []
    background = Background()
    background.finished.connect(listener.hear)
    background.submit("first", lambda: (begun.set(), gate.wait(10)))
    background.submit("second", ran.append, 2)
    assert begun.wait(10)
    background.close()
    gate.set()
    qtbot.wait(60)  # longer than the answers are asked for
    assert (listener.heard, ran) == ([], [])
