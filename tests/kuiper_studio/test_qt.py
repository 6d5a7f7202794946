"""What the window relies on in Qt for Python."""

from __future__ import annotations

import sys

import pytest
from PySide6.QtCore import QObject, Signal


class Speaker(QObject):
    said = Signal(object)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="True is immortal from Python 3.12 on")
def test_signals_keep_the_references_of_true():
    # PySide6 6.12.0 lost one with every signal; after a few hundred the process aborted.
    speaker = Speaker()
    before = sys.getrefcount(True)
    for _ in range(40):
        speaker.said.emit(None)
    assert sys.getrefcount(True) > before - 20
