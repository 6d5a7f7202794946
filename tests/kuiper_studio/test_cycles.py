"""Objects of Qt that only a cycle keeps are destroyed on the GUI thread."""

from __future__ import annotations

import threading
import weakref

from PySide6.QtCore import QCoreApplication, QObject, QTimer

from kuiper_studio import cycles
from kuiper_studio.cycles import CycleCollector


class Cycle(QObject):
    """Keeps itself, and has what must be destroyed on its thread."""

    def __init__(self) -> None:
        super().__init__()
        self.me = self
        self.timer = QTimer(self)
        self.timer.start(10_000)


def make_objects() -> None:
    for _ in range(20):
        assert len([[] for _ in range(10_000)]) == 10_000


def test_destroyed_between_events_whoever_makes_objects(qtbot):
    threads = []
    for _ in range(50):
        weakref.finalize(Cycle(), lambda: threads.append(threading.current_thread()))
    other = threading.Thread(target=make_objects)
    other.start()
    other.join()
    assert threads == []
    kept = [[] for _ in range(10_000)]
    qtbot.waitUntil(lambda: len(threads) == 50)
    assert set(threads) == {threading.main_thread()}
    assert len(kept) == 10_000


def test_not_before_the_window_is_at_rest(qtbot, monkeypatch):
    """Work between events holds it back, until there are many more objects."""
    ends = []
    weakref.finalize(Cycle(), lambda: ends.append("cycle"))
    kept = [[] for _ in range(5_000)]
    monkeypatch.setattr(cycles, "_RESTING", 0.0)  # any work is too much
    qtbot.wait(200)
    assert ends == []
    monkeypatch.undo()
    qtbot.waitUntil(lambda: ends == ["cycle"])
    weakref.finalize(Cycle(), lambda: ends.append("another"))
    monkeypatch.setattr(cycles, "_RESTING", 0.0)
    kept += [[] for _ in range(50_000)]
    qtbot.waitUntil(lambda: "another" in ends)
    assert len(kept) == 55_000


def test_not_at_once_after_an_answer_that_makes_many_objects(qtbot):
    """Its painting comes first."""
    ends = []
    weakref.finalize(Cycle(), lambda: ends.append("cycle"))
    kept = [[] for _ in range(50_000)]
    qtbot.wait(0)
    assert ends == []
    qtbot.waitUntil(lambda: ends == ["cycle"])
    assert len(kept) == 50_000


def test_an_application_has_one(qapp):
    CycleCollector.ensure(qapp)
    CycleCollector.ensure(qapp)
    assert len(QCoreApplication.instance().findChildren(CycleCollector)) == 1
