"""Cancels comparisons, and opens files with a harmful exporter: nothing must be left."""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from engine.inputs import InputSource
from kuiper_studio.session import RunState
from soak.computed import ComputedModel
from soak.models import write_branches, write_pair
from soak.settling import SETTLED, handle_events, open_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kuiper_studio.main_window import MainWindow
    from soak.traces import Traces

__all__ = ["cancel_comparisons", "install_exporter", "run_bad_exporters"]

_SOURCE: Final = Path(__file__).parents[1] / "engine" / "conversion" / "data" / "traced.pt"
_SIZE: Final = 96  # of the square weights of the model that takes longer
_DEPTH: Final = 150
_PROGRAMS: Final = "programs"
_EXPORTER: Final = f"#!{sys.executable}\nimport os, signal, subprocess, sys, time\n"
_DEEDS: Final = {
    "hangs": "time.sleep(600)",
    "spins": "while True: pass",
    "crashes": "os.kill(os.getpid(), signal.SIGSEGV)",
    "refuses to end": "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)",
    "writes half": "open('model.pnnx.param', 'w').write('7767517\\n9')\nos.abort()",
    "writes nothing": "sys.exit(0)",
    "leaves a child": "subprocess.Popen(['sleep', '600'])\nsys.exit(3)",
    "talks": "while True: print('x' * 1000)",
    "closes its output": "os.close(1); os.close(2)\ntime.sleep(600)",
    "takes memory": "keep = []\nwhile True: keep.append(bytearray(1 << 26))",
}
_ENDLESS: Final = frozenset({"hangs", "spins", "refuses to end", "talks", "closes its output"})
_LONGEST_DELAY: Final = 0.6  # seconds from opening to stopping


def cancel_comparisons(
    window: MainWindow, traces: Traces, folder: Path, rng: np.random.Generator, count: int
) -> Iterator[str]:
    """Cancel a comparison at random moments.

    Parameters
    ----------
    window : MainWindow
    traces : Traces
    folder : Path
    rng : numpy.random.Generator
    count : int

    Yields
    ------
    str
        What should not be.
    """
    session = window.session
    model = ComputedModel(_write_long(folder, rng), folder, rng)
    open_with(session, model.path, model.source)
    session.resume()
    session.wait_idle(SETTLED)
    references = (model.dump, _write_long(folder, rng, "another"), model.path)
    lasting = [_compare(window, path) for path in references]
    for number in range(count):
        path, seconds = references[number % 3], lasting[number % 3]
        where = f"comparison {number + 1}, with {path.name}"
        position = session.position
        session.studies.compare(path)
        handle_events(lambda: not session.busy, float(rng.random()) * seconds)
        was_busy = session.busy
        pid = session.engine_pid
        if was_busy:
            session.stop()
        if not session.wait_idle(SETTLED):
            yield f"{where}: busy for {SETTLED:.0f} s"
            return
        if was_busy and session.engine_pid != pid:
            yield f"{where}: the engine had to be ended"
        if session.state is not RunState.FINISHED or session.position != position:
            yield f"{where}: {session.state.name} at {session.position}: {session.failure}"
            return
        if not model.gives(session.fetch(model.output)):
            yield f"{where}: other values"
        yield from _strangers(window, traces, where)


def install_exporter(folder: Path) -> None:
    """Put a program before pnnx on the path, before the engine is started with that path."""
    programs = folder / _PROGRAMS
    programs.mkdir()
    exporter = programs / "pnnx"
    exporter.write_text("")
    exporter.chmod(0o755)
    os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"


def run_bad_exporters(
    window: MainWindow, traces: Traces, folder: Path, rng: np.random.Generator, count: int
) -> Iterator[str]:
    """Open a file whose exporter hangs, crashes or worse, over an open model.

    `install_exporter` must have been called.

    Parameters
    ----------
    window : MainWindow
    traces : Traces
    folder : Path
    rng : numpy.random.Generator
    count : int

    Yields
    ------
    str
        What should not be.
    """
    session = window.session
    exporter = folder / _PROGRAMS / "pnnx"
    open_with(session, write_branches(folder, rng, "shown"), InputSource("random"))
    before = session.model_path
    source = Path(shutil.copy(_SOURCE, folder / "bad.pt"))
    for number in range(count):
        deed = str(rng.choice(list(_DEEDS)))
        where = f"export {number + 1}, which {deed}"
        exporter.write_text(_EXPORTER + _DEEDS[deed])
        if rng.random() < 0.3:  # as a reference
            session.studies.compare(source)
            where += ", to compare with"
        else:
            window.opening.open_model(source)
        handle_events(lambda: not session.busy, float(rng.random()) * _LONGEST_DELAY)
        if deed in _ENDLESS or rng.random() < 0.5:
            started = time.monotonic()
            if session.busy:
                session.stop()
            if not session.wait_idle(SETTLED):
                yield f"{where}: busy {time.monotonic() - started:.0f} s after Stop"
                return
        if not session.wait_idle(SETTLED):
            yield f"{where}: busy for {SETTLED:.0f} s"
            return
        if session.model_path != before or session.state is RunState.FAILED:
            yield f"{where}: {session.state.name} {session.model_path}: {session.failure}"
            return
        yield from _strangers(window, traces, where)


def _strangers(window: MainWindow, traces: Traces, where: str) -> Iterator[str]:
    """Yield other processes than the engine, and left files."""
    pid = window.session.engine_pid
    for left in traces.left(frozenset({pid} if pid is not None else ())):
        yield f"{where}: {left}"


def _compare(window: MainWindow, path: Path) -> float:
    """Compare to the end; return the seconds that it takes."""
    started = time.monotonic()
    window.session.studies.compare(path)
    window.session.wait_idle(SETTLED)
    return time.monotonic() - started


def _write_long(folder: Path, rng: np.random.Generator, name: str = "long_net") -> Path:
    """Write a chain of linear operators."""
    weighted = (
        f"bias=False in_features={_SIZE} out_features={_SIZE} @weight=({_SIZE},{_SIZE})f32"
    )
    lines = [f"nn.Linear l{i} 1 1 {i} {i + 1} {weighted}" for i in range(_DEPTH)]
    weights = {
        f"l{i}.weight": rng.normal(0, _SIZE**-0.5, (_SIZE, _SIZE)).astype(np.float32)
        for i in range(_DEPTH)
    }
    ends = (f"pnnx.Input in 0 1 0 #0=(1,{_SIZE})f32", f"pnnx.Output out 1 0 {_DEPTH}")
    return write_pair(folder, name, (ends[0], *lines, ends[1]), weights)
