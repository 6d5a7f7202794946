"""Work that has a turn of the event loop for itself."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer

from kuiper_studio.turns import take_turn


def test_other_events_come_in_between(qtbot):
    done, owner = [], QObject()
    tick = QTimer(interval=0)
    tick.timeout.connect(lambda: done.append("event"))
    tick.start()
    for number in range(3):
        take_turn(owner, lambda number=number: done.append(number))
    assert done == []
    qtbot.waitUntil(lambda: 2 in done)
    tick.stop()
    assert [each for each in done if each != "event"] == [0, 1, 2]
    assert "event" in done[done.index(0) : done.index(1)]
    assert "event" in done[done.index(1) : done.index(2)]


def test_nothing_is_done_for_what_is_gone(qtbot):
    done, owner, other = [], QObject(), QObject()
    take_turn(owner, lambda: done.append("gone"))
    take_turn(other, lambda: done.append("there"))
    owner.deleteLater()
    del owner
    qtbot.waitUntil(lambda: bool(done))
    assert done == ["there"]


def test_an_error_does_not_keep_others_from_their_turn(qtbot):
    done, owner = [], QObject()

    def fail():
        done.append("failed")
        raise ValueError

    with qtbot.captureExceptions() as errors:
        take_turn(owner, fail)
        take_turn(owner, lambda: done.append("next"))
        qtbot.waitUntil(lambda: "next" in done)
    assert done == ["failed", "next"]
    assert len(errors) == 1
