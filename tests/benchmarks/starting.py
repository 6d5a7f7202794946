"""From the start of the process to the painted graph, beside a bare window."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.measure import alternate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Bench, Row

_ROOT: Final = Path(__file__).resolve().parent.parent.parent

# Both end with the moment of the painting; nothing else is imported, not even what measures.
_BARE: Final = """
import os, time
from PySide6.QtWidgets import QApplication, QWidget
import pyqtgraph

class Window(QWidget):
    def paintEvent(self, event):
        os.write(1, str(time.monotonic()).encode())
        os._exit(0)

application = QApplication([])
window = Window()
window.resize(1440, 900)
window.show()
application.exec()
"""
_STUDIO: Final = """
import os, sys, time
from kuiper_studio.cli.program import import_window, main
from kuiper_studio.engine_service.transport import start_early
from pathlib import Path
start_early(Path(sys.argv[1]))
import_window()  # in the order of the command line
from kuiper_studio.graph_view.canvas import GraphCanvas

paint = GraphCanvas.paintEvent
def paint_and_end(canvas, event):
    paint(canvas, event)
    if canvas.laid_out and not canvas.box_rect("pnnx_input_0").isNull():
        os.write(1, str(time.monotonic()).encode())
        os._exit(0)

GraphCanvas.paintEvent = paint_and_end
main(sys.argv[1:])
"""


def rows(bench: Bench) -> Iterator[Row]:
    """ResNet-18, with compiled modules as after an installation, and without any."""
    model = str(bench.model("resnet18.pnnx.param"))
    for what, target, compiled in (
        ("resnet18 painted", 2.0, bench.folder / "bytecode"),
        ("the same, before Python has compiled anything", None, None),
    ):
        times = alternate(
            {"studio": _start(_STUDIO, compiled, model), "window": _start(_BARE, compiled)},
            bench.rounds,
        )
        yield times.row(what, "studio", "window", target, beside="bare window with pyqtgraph")


def _start(code: str, compiled: Path | None, *arguments: str) -> Callable[[], float]:
    """Time from the start of a process to what it writes when it has painted."""

    def run() -> float:
        with tempfile.TemporaryDirectory() as fresh:
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(_ROOT), os.environ.get("PYTHONPATH", "")]),
                "PYTHONPYCACHEPREFIX": str(compiled or fresh),
                "QT_QPA_PLATFORM": "offscreen",
                "XDG_CONFIG_HOME": fresh,
            }
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            started = time.monotonic()
            output = subprocess.run(
                [sys.executable, "-c", code, *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=True,
            ).stdout
            return float(output) - started

    return run
