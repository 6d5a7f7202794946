"""Opens the models of some seeds in a window, runs them and looks at them; see `worker`."""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PySide6.QtCore import QSettings
from PySide6.QtWidgets import QApplication

from engine.inputs import InputSource
from hostile.models import model_of, write_model
from hostile.worker import BOUND, main
from kuiper_studio.app import make_window
from kuiper_studio.session import RunState

if TYPE_CHECKING:
    from types import TracebackType

    from kuiper_studio.main_window import MainWindow

_MOST_SELECTED: Final = 8
_LOOKS: Final = 5  # times that events are handled while an operator is selected
_SETTLED: Final = 300.0  # seconds; whoever started this process counts sooner


class Windows:
    """Opens models in a window.

    Parameters
    ----------
    window : MainWindow
    folder : Path
        Empty.
    """

    def __init__(self, window: MainWindow, folder: Path) -> None:
        self._window, self._folder = window, folder
        self._raised: list[str] = []
        sys.excepthook = self._on_exception
        window.session.memory.set_bound(BOUND)

    def run(self, seed: int, way: str) -> str:
        """Open the model of a seed, run it, and look at its tensors."""
        session = self._window.session
        if session.graph is not None:  # the engine may be starting otherwise
            session.close_model()
        session.set_backend(way)
        path = write_model(model_of(seed), self._folder)
        session.next_model.set_sources([InputSource("random")])
        session.open(path)
        pid = session.engine_pid
        session.wait_idle(_SETTLED)
        if session.graph is not None:
            session.resume()
            session.wait_idle(_SETTLED)
            for operator in [*session.graph.operators][-_MOST_SELECTED:]:
                session.select(operator.name)
                for _ in range(_LOOKS):
                    QApplication.processEvents()
        raised, self._raised = self._raised, []
        if raised:
            return f"unforeseen {'; '.join(raised)}"
        if session.engine_pid != pid:
            return f"ended: {session.failure}"
        finished = session.failure is None and session.state is RunState.FINISHED
        return "ran" if finished else f"refused: {session.failure}"

    def _on_exception(
        self, kind: type[BaseException], error: BaseException, _: TracebackType | None
    ) -> None:
        self._raised.append(f"{kind.__name__}: {error}")


def _open_window() -> None:
    with tempfile.TemporaryDirectory() as name:
        settings = QSettings(str(Path(name) / "settings.ini"), QSettings.Format.IniFormat)
        window = make_window(settings=settings, engine="process")
        window.resize(1440, 900)
        window.show()
        main(lambda folder: Windows(window, folder))
        window.close()


if __name__ == "__main__":
    with contextlib.redirect_stderr(io.StringIO()):  # libraries say much
        _open_window()
