"""Ends the engine's process at random moments, and sees whether the window gets over it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

import engine
from engine.dump import DumpOptions
from engine.errors import EngineError
from engine.inputs import InputSource
from kuiper_studio.session import RunState
from soak.settling import SETTLED, handle_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kuiper_studio.main_window import MainWindow

__all__ = ["kill_engines"]

_LONGEST_DELAY = 0.06  # seconds from what is asked for to the kill
_LEFT_ALONE = frozenset({RunState.READY, RunState.STOPPED, RunState.FINISHED})


def kill_engines(
    window: MainWindow, param: Path, folder: Path, rng: np.random.Generator, count: int
) -> Iterator[str]:
    """Kill the engine while it opens, steps, runs, exports, sends values, or does nothing.

    Afterwards the user has to click once at most (Reload, or the input again), and the model
    gives what NumPy does.

    Parameters
    ----------
    window : MainWindow
    param : Path
        Of a model with one input.
    folder : Path
        Where it exports to.
    rng : numpy.random.Generator
    count : int

    Yields
    ------
    str
        What should not be.
    """
    session = window.session
    graph = engine.load(param)
    (operand,) = graph.input_operands
    given = rng.random(operand.shape, dtype=np.float32)
    source = InputSource("array", array=given)
    expected = engine.Session(graph, backend="numpy")
    expected.feed([given])
    expected.run()
    name = graph.output_operands[0].name
    session.prepare_source_list([source])
    session.open(param)
    session.wait_idle(SETTLED)

    def step() -> None:
        for _ in range(int(rng.integers(1, 6))):
            session.step()

    def run() -> None:
        session.restart()
        session.resume()

    def look() -> None:
        for _ in range(5):
            chosen = graph.operators[int(rng.integers(len(graph.operators)))]
            session.select(chosen.name)

    def export() -> None:
        session.export_dump(folder / "killed", DumpOptions(overwrite=True))

    moments: dict[str, Callable[[], None]] = {
        "opening": lambda: session.open(param), "stepping": step, "running": run,
        "looking": look, "exporting": export, "doing nothing": lambda: None,
    }  # fmt: skip
    for number in range(1, count + 1):
        moment = str(rng.choice(list(moments)))
        where = f"kill {number}, while {moment}"
        pid = session.engine_pid
        assert pid is not None
        _kill_later(pid, float(rng.random()) * _LONGEST_DELAY)
        moments[moment]()
        if not handle_events(lambda pid=pid: session.engine_pid != pid, SETTLED):
            yield f"{where}: the engine was not started anew"
            return
        if not session.wait_idle(SETTLED):
            yield f"{where}: busy for {SETTLED:.0f} s"
            return
        if session.state not in _LEFT_ALONE:
            _click(window, source)
        if session.state not in _LEFT_ALONE:
            yield f"{where}: {session.state.name} after a click: {session.failure}"
            return
        session.restart()
        session.resume()
        session.wait_idle(SETTLED)
        try:
            found = session.fetch(name)
        except EngineError as exc:
            yield f"{where}: {exc}"
            continue
        if not np.allclose(np.asarray(found), expected.outputs()[0], rtol=1e-4, atol=1e-5):
            yield f"{where}: other values"


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
