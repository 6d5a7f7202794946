"""The import of pyqtgraph in steps, each in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys

_IN_TURNS = """
import sys, threading
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication
from shiboken6 import Shiboken
from kuiper_studio.tensor_view.chart_import import import_chart, import_chart_in_turns

defined = set()
Shiboken.Object.__init_subclass__ = classmethod(
    lambda cls, **_: defined.add(threading.current_thread())
)
application = QApplication([])
begun = []
ended = []
import_chart_in_turns(application, lambda: ended.append(True))
assert not ended, "all in one turn"
turns = 0
while not ended:
    application.processEvents()
    turns += 1
    {meanwhile}
assert defined == {{threading.main_thread()}}, defined
assert turns > {least}, turns
"""
_SAME = """
import pyqtgraph
from kuiper_studio.tensor_view.vector_chart import VectorChart

assert issubclass(pyqtgraph.GraphicsView, __import__("PySide6").QtWidgets.QGraphicsView)
assert sys.modules["pyqtgraph"] is pyqtgraph
assert pyqtgraph.ViewBox.__module__ == "pyqtgraph.graphicsItems.ViewBox.ViewBox"
assert "feature" in __import__("builtins").__import__.__name__
"""
_NAMES = "import pyqtgraph; print(sorted(vars(pyqtgraph)))"


def _run(code: str) -> str:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_it_is_imported_in_turns_by_the_thread_of_the_window():
    _run(_IN_TURNS.format(meanwhile="", least=10) + _SAME)


def test_who_needs_it_before_has_it_at_once():
    _run(_IN_TURNS.format(meanwhile="import_chart()", least=0) + _SAME)


def test_the_package_has_all_that_a_plain_import_gives():
    by_steps = _run(
        "from kuiper_studio.tensor_view.chart_import import import_chart\n"
        f"import_chart()\n{_NAMES}"
    )
    assert by_steps == _run(_NAMES)
