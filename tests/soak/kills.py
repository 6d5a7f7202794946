"""Ends the engine's process at random moments, and sees whether the window gets over it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import numpy as np

import engine
from engine.dump import DumpOptions, write_dump
from engine.errors import EngineError
from engine.inputs import InputSource
from kuiper_studio.session import RunState
from soak.settling import SETTLED, handle_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from kuiper_studio.main_window import MainWindow

__all__ = ["kill_engines"]

_LONGEST_DELAY: Final = 0.06  # seconds from what is asked for to the kill
_LEFT_ALONE: Final = frozenset({RunState.READY, RunState.STOPPED, RunState.FINISHED})
_EACH: Final = 10  # kills before another model is opened


class _Model:
    """A model with one input, what it gives by NumPy, and a dump of that.

    Parameters
    ----------
    path : Path
    folder : Path
        Where the dump is written.
    rng : numpy.random.Generator
    """

    def __init__(self, path: Path, folder: Path, rng: np.random.Generator) -> None:
        self.path = path
        self.graph = engine.load(path)
        (operand,) = self.graph.input_operands
        given = rng.random(operand.shape, dtype=np.float32)
        self.source = InputSource("array", array=given)
        session = engine.Session(self.graph, backend="numpy")
        session.feed([given])
        session.run()
        self.output = self.graph.output_operands[0].name
        self.expected = np.asarray(session.value(self.output))
        self.dump = folder / f"dump_of_{path.stem}"
        write_dump(session, self.dump, DumpOptions(format="folder"))


def kill_engines(
    window: MainWindow,
    paths: Sequence[Path],
    folder: Path,
    rng: np.random.Generator,
    count: int,
) -> Iterator[str]:
    """Kill the engine while it does something, or nothing.

    Afterwards the user has to click once at most (Reload, or the input again), the model gives
    what NumPy does, and a comparison with that says so.

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
    models = [_Model(path, folder, rng) for path in paths]
    for first in range(0, count, _EACH):
        model = models[first // _EACH % len(models)]
        window.session.prepare_source_list([model.source])
        window.session.open(model.path)
        window.session.wait_idle(SETTLED)
        for number in range(first, min(first + _EACH, count)):
            yield from _kill(window, model, folder, rng, f"kill {number + 1}")


def _kill(
    window: MainWindow, model: _Model, folder: Path, rng: np.random.Generator, title: str
) -> Iterator[str]:
    session = window.session
    moments = _moments(window, model, folder, rng)
    moment = str(rng.choice(list(moments)))
    where = f"{title}, of {model.path.name} while {moment}"
    if moment == "reporting":
        session.compare(model.dump)
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
    if not np.allclose(np.asarray(found), model.expected, rtol=1e-4, atol=1e-5):
        yield f"{where}: other values"
    if moment in {"comparing", "reporting"}:
        session.compare(model.dump)
        session.wait_idle(SETTLED)
        comparison = session.comparing.comparison
        if comparison is None or comparison.verdict != "same":
            yield f"{where}: compared again, it is {comparison}"


def _moments(
    window: MainWindow, model: _Model, folder: Path, rng: np.random.Generator
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
        "checking": session.self_check,
        "comparing": lambda: session.compare(model.dump),
        "reporting": lambda: session.write_report(folder / "killed.html"),
        "doing nothing": lambda: None,
    }


def _kill_later(pid: int, seconds: float) -> None:
    def kill() -> None:
        with suppress(ProcessLookupError):  # it has ended for another reason
            os.kill(pid, signal.SIGKILL)

    threading.Timer(seconds, kill).start()


def _click(window: MainWindow, source: InputSource) -> None:
    """Do the one thing that the window asks for."""
    session = window.session
    if session.state is RunState.NEED_INPUT:
        session.set_source_list([source])
    else:
        session.reload()
    session.wait_idle(SETTLED)
