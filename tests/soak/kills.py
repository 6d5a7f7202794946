"""Ends the engine's process at random moments, and checks that the window recovers."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from engine.dump import DumpOptions
from engine.errors import EngineError
from kuiper_studio.session import RunState
from soak.computed import ComputedModel
from soak.settling import SETTLED, handle_events, open_with

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import numpy as np

    from engine.inputs import InputSource
    from kuiper_studio.main_window import MainWindow

__all__ = ["kill_engines"]

_LONGEST_DELAY: Final = 0.06  # seconds from a request to the kill
_LEFT_ALONE: Final = frozenset({RunState.READY, RunState.STOPPED, RunState.FINISHED})
_EACH: Final = 10  # kills before another model is opened


def kill_engines(
    window: MainWindow,
    paths: Sequence[Path],
    folder: Path,
    rng: np.random.Generator,
    count: int,
) -> Iterator[str]:
    """Kill the engine while it is busy, or idle.

    Afterwards one click of the user must suffice (Reload, or the input again). The model must
    give NumPy's result, and a comparison with it must find no difference.

    Parameters
    ----------
    window : MainWindow
    paths : sequence of Path
        Models with one input.
    folder : Path
        Where it exports to.
    rng : numpy.random.Generator
    count : int

    Yields
    ------
    str
        What should not be.
    """
    models = [ComputedModel(path, folder, rng) for path in paths]
    for first in range(0, count, _EACH):
        model = models[first // _EACH % len(models)]
        open_with(window.session, model.path, model.source)
        for number in range(first, min(first + _EACH, count)):
            yield from _kill(window, model, folder, rng, f"kill {number + 1}")


def _kill(
    window: MainWindow, model: ComputedModel, folder: Path, rng: np.random.Generator, title: str
) -> Iterator[str]:
    session = window.session
    moments = _moments(window, model, folder, rng)
    moment = str(rng.choice(list(moments)))
    where = f"{title}, of {model.path.name} while {moment}"
    if moment == "reporting":
        session.studies.compare(model.dump)
        session.wait_idle(SETTLED)
    pid = session.engine_pid
    assert pid is not None
    _kill_later(pid, float(rng.random()) * _LONGEST_DELAY)
    moments[moment]()
    if not handle_events(lambda: session.engine_pid != pid, SETTLED):
        yield f"{where}: the engine was not started anew"
        return
    if not session.wait_idle(SETTLED):
        yield f"{where}: busy for {SETTLED:.0f} s"
        return
    if session.state not in _LEFT_ALONE:
        _click(window, model.source)
    if session.state not in _LEFT_ALONE:
        yield f"{where}: {session.state.name} after a click: {session.failure}"
        return
    session.restart()
    session.resume()
    session.wait_idle(SETTLED)
    try:
        found = session.fetch(model.output)
    except EngineError as exc:
        yield f"{where}: {exc}"
        return
    if not model.gives(found):
        yield f"{where}: other values"
    if moment in {"comparing", "reporting"}:
        session.studies.compare(model.dump)
        session.wait_idle(SETTLED)
        comparison = session.comparing.comparison
        if comparison is None or comparison.verdict != "same":
            yield f"{where}: compared again, it is {comparison}"


def _moments(
    window: MainWindow, model: ComputedModel, folder: Path, rng: np.random.Generator
) -> dict[str, Callable[[], None]]:
    session, operators = window.session, model.graph.operators

    def step() -> None:
        for _ in range(int(rng.integers(1, 6))):
            session.step()

    def run() -> None:
        session.restart()
        session.resume()

    def look() -> None:
        for _ in range(5):
            session.select(operators[int(rng.integers(len(operators)))].name)

    def export() -> None:
        session.export_dump(folder / "killed", DumpOptions(overwrite=True))

    return {
        "opening": lambda: session.open(model.path),
        "stepping": step,
        "running": run,
        "looking": look,
        "exporting": export,
        "checking": session.studies.self_check,
        "comparing": lambda: session.studies.compare(model.dump),
        "reporting": lambda: session.studies.write_report(folder / "killed.html"),
        "doing nothing": lambda: None,
    }


def _kill_later(pid: int, seconds: float) -> None:
    def kill() -> None:
        with suppress(ProcessLookupError):  # it has ended for another reason
            os.kill(pid, signal.SIGKILL)

    threading.Timer(seconds, kill).start()


def _click(window: MainWindow, source: InputSource) -> None:
    """Click what the window asks for."""
    session = window.session
    if session.state is RunState.NEED_INPUT:
        session.set_source_list([source])
    else:
        session.reload()
    session.wait_idle(SETTLED)
