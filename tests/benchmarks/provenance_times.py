"""How long the panel takes to say where an element comes from, from the key to the picture."""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import time
from typing import TYPE_CHECKING, Any, Final

from benchmarks.interactions import NETWORKS, Watch
from benchmarks.measure import Absent, Row, spell_seconds
from benchmarks.processes import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Bench

_COUNT: Final = 40  # elements of a network, each of an operator drawn at random
_SEED: Final = 16
_TARGET_MS: Final = 50.0
_SIZE: Final = (1440, 900)
_COMPLETE_S: Final = 20.0


def rows(bench: Bench) -> Iterator[Row | str]:
    """Random elements of each network, and a step upstream; the target is that of 95 in 100."""
    for name in (n for n in NETWORKS if not bench.only or n in bench.only):
        try:
            path, inputs = (
                bench.model(f"{name}.{end}") for end in ("pnnx.param", "inputs.npz")
            )
        except Absent as exc:
            yield str(exc)
            continue
        for what, seconds in answer_of(explain, str(path), str(inputs)).items():
            seconds.sort()
            median = spell_seconds(statistics.median(seconds))
            late = seconds[min(int(0.95 * len(seconds)), len(seconds) - 1)]
            ours = f"{median} {spell_seconds(seconds[-1])}"
            title = f"{name}: {what}, median and worst"
            yield Row(title, ours, 1e3 * late, _TARGET_MS, unit="ms")


def explain(path: str, inputs: str) -> dict[str, list[float]]:
    """Seconds from the key, or the click, until nothing is painted in the panel any more."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QSettings

    from kuiper_studio.app import make_application, make_window

    application = make_application()
    with tempfile.TemporaryDirectory() as folder:
        settings = QSettings(f"{folder}/settings.ini", QSettings.Format.IniFormat)
        window = make_window(path, [inputs], settings=settings, engine="process")
        window.resize(*_SIZE)
        window.show()
        watch = Watch(application, window)
        watch.settle()
        window.actions_by_id["debug.continue"].trigger()
        watch.settle()
        found = _Asker(application, window, watch).ask_all()
        window.close()
    return found


class _Asker:
    """Asks where elements come from, and waits for the panel."""

    def __init__(self, application: Any, window: Any, watch: Watch) -> None:
        from PySide6.QtCore import QEvent, QObject

        self._application, self._window, self._watch = application, window, watch
        self._panel, self._painted = window.provenance_panel, False
        asker = self

        class Painted(QObject):
            def eventFilter(self, watched: Any, event: Any) -> bool:  # noqa: N802
                if event.type() is QEvent.Type.Paint:
                    asker.note(watched)
                return False

        self._filter = Painted()
        application.installEventFilter(self._filter)

    def note(self, painted: Any) -> None:
        """Note that something has been painted."""
        self._painted = self._painted or (
            painted.isWidgetType() and self._panel.isAncestorOf(painted)
        )

    def ask_all(self) -> dict[str, list[float]]:
        """Seconds of all elements, by how they were asked for."""
        draw = random.Random(_SEED)
        session, pane = self._window.session, self._window.tensor_view.pane
        key = self._window.actions_by_id["analyse.explain"]
        operators = [each for each in session.graph.operators if each.outputs and each.inputs]
        found: dict[str, list[float]] = {"key P": [], "a step upstream": []}
        for number in range(_COUNT + 1):  # the first one imports the rules
            session.select(draw.choice(operators).name)
            self._watch.settle()
            array = pane.model.array
            if array is None or not array.size:
                continue
            pane.show_element(tuple(draw.randrange(size) for size in array.shape))
            self._watch.settle()
            for what, action in (("key P", key.trigger), ("a step upstream", self._walk)):
                took = self._time(action)
                if number and took:
                    found[what].append(took)
        return {what: seconds for what, seconds in found.items() if seconds}

    def _walk(self) -> None:
        table = self._panel.table
        if table.model().rowCount():
            table.activated.emit(table.model().index(0, 0))

    def _time(self, action: Callable[[], object]) -> float:
        """Seconds until the end of the last turn that painted something in the panel."""
        explaining = self._window.session.explaining
        self._painted = False
        begun, last = time.perf_counter(), 0.0
        action()
        rested = begun
        while time.perf_counter() - rested < 0.1 and time.perf_counter() - begun < _COMPLETE_S:
            started = time.perf_counter()
            self._application.processEvents()
            ended = time.perf_counter()
            if self._painted:
                last, self._painted = ended - begun, False
            waits = explaining.provenance is None or explaining.field is None
            if ended - started > 2e-4 or self._window.session.busy or (
                waits and explaining.place is not None and not explaining.reason
            ):  # fmt: skip
                rested = ended
            time.sleep(2e-4)
        return last
