"""Errors of the window's own code are told, and do not end it."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading

import pytest
from PySide6.QtCore import QObject, Signal

from kuiper_studio.unexpected_errors import UnexpectedErrors

# A list's IndexError has no instance before Python 3.12. It leaves paintEvent and then event.
_CLASS = """
from PySide6.QtWidgets import QWidget

class Painted(QWidget):
    def paintEvent(self, event):
        [1, 2][5]

    def event(self, event):
        return super().event(event)
"""
_APPLICATION = """
from kuiper_studio.app import make_application
application = make_application()
"""
_SHOW = """
from PySide6.QtCore import QTimer
widget = Painted()
widget.show()
QTimer.singleShot(100, application.quit)
application.exec()
print("still up")
"""


@pytest.mark.parametrize("code", [_APPLICATION + _CLASS, _CLASS + _APPLICATION])
def test_an_error_that_leaves_two_overrides_does_not_end_the_process(code):
    command = [sys.executable, "-c", code + _SHOW]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert "still up" in ended.stdout
    assert "list index out of range" in ended.stderr


class Faulty(QObject):
    asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.asked.connect(self.answer)

    def answer(self) -> None:
        raise ValueError("no such channel")


def test_an_error_of_a_slot_is_logged_once_and_printed_each_time(qtbot, caplog):
    faulty = Faulty()
    with qtbot.captureExceptions() as printed, UnexpectedErrors():
        faulty.asked.emit()
        faulty.asked.emit()
    assert [str(error) for _kind, error, _trace in printed] == ["no such channel"] * 2
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    place = "(ValueError at test_unexpected_errors.py, line"
    assert f"no such channel {place}" in record.getMessage()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_of_a_thread_is_logged(caplog):
    with UnexpectedErrors():
        thread = threading.Thread(target=[].pop)
        thread.start()
        thread.join()
    (record,) = caplog.records
    assert "pop from empty list (IndexError" in record.getMessage()


def test_hooks_are_given_back():
    hooks = sys.excepthook, threading.excepthook
    with UnexpectedErrors():
        assert (sys.excepthook, threading.excepthook) != hooks
    assert (sys.excepthook, threading.excepthook) == hooks
