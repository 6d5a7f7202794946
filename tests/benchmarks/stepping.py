"""Single steps, and what a session and the window cost beside the kernels."""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import engine
from benchmarks.measure import Row, alternate, spell_seconds
from benchmarks.processes import answer_of
from engine.values import value_nbytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measure import Bench

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "unet" / "unet.pnnx.param"
NETWORKS = {"resnet18": 224, "mobilenet_v2": 224, "efficientnet_b0": 224, "swin_t": 224}
MICROSECONDS, MEGABYTES = 40, 2  # two copies of the input are 1.2
PASSES = 5  # in a round
# At most for a pass in the window. It takes some 3 ms more than run(), whatever the network.
_IN_WINDOW = {"resnet18": 1.15}
_WARMING = 4  # passes until nothing is found out any more
_REST = 0.3  # seconds in which a window draws what a run has left
_UNTIL_TUNED = 3.0  # seconds of rest, in which an engine that has something to tune tells of it


def rows(bench: Bench) -> Iterator[Row]:
    """The shipped U-Net; then some of the exported networks."""
    yield from _of_network(bench, "the sample unet", SAMPLE, 96)
    for name, size in bench.chosen(NETWORKS).items():
        yield from _of_network(bench, name, bench.model(f"{name}.pnnx.param"), size)


def _of_network(bench: Bench, name: str, path: Path, size: int) -> Iterator[Row]:
    found = answer_of(steps, str(path), size, bench.rounds)
    yield Row(
        f"{name}, step by step",
        spell_seconds(found["steps"]),
        found["ratio"],
        1.05,
        "run()",
        spell_seconds(found["run"]),
    )
    beside = found["beside"] * 1e6
    yield Row("… a step beside its kernel", f"{beside:.1f} µs", beside, MICROSECONDS, unit="µs")
    window = answer_of(runs_in_window, str(path), size, bench.rounds)
    yield Row(
        "… run() in the window",
        spell_seconds(window["window"]),
        window["ratio"],
        _IN_WINDOW.get(name),
        "run()",
        spell_seconds(window["run"]),
    )
    memory = answer_of(memory_of_reuse, str(path), size)
    for which in ("second", "later"):
        yield Row(
            f"… fresh memory for a {which} input",
            f"{memory[which]:.2f} MB",
            memory[which],
            MEGABYTES,
            "all operands",
            f"{memory['operands']:.3g} MB",
            unit="MB",
        )


def steps(path: str, size: int, rounds: int) -> dict[str, float]:
    """Time a pass as single steps and as one run; for a process of its own.

    Returns
    -------
    dict
        Seconds of both, the ratio, and what a step takes beside its kernel, in the median.
    """
    session, image = _warm(path, size), _image(size, 1)
    beside = []

    def one_by_one() -> float:
        session.feed([image])
        started = time.perf_counter()
        while session.state is not engine.SessionState.FINISHED:
            session.step()
        took = time.perf_counter() - started
        inside = sum(record.seconds for record in session.records)
        beside.append((took - inside) / len(session.records))
        return took

    def at_once() -> float:
        session.feed([image])
        started = time.perf_counter()
        session.run()
        return time.perf_counter() - started

    # Passes of a few milliseconds scatter by more than the two differ: many of them.
    times = alternate({"steps": one_by_one, "run": at_once}, PASSES * rounds)
    return {
        "steps": times.median("steps"),
        "run": times.median("run"),
        "ratio": times.ratio("steps", "run"),
        "beside": statistics.median(beside),
    }


def runs_in_window(path: str, size: int, rounds: int) -> dict[str, float]:
    """Time a pass in the window, from the command to the state; for a process of its own.

    Returns
    -------
    dict
        Seconds of it and of a session's run in the median, and the ratio.
    """
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QEventLoop, QSettings, QTimer

    from kuiper_studio.app import make_window
    from kuiper_studio.session import RunState

    session, image = _warm(path, size), _image(size, 1)
    with tempfile.TemporaryDirectory() as folder:
        settings = QSettings(f"{folder}/settings.ini", QSettings.Format.IniFormat)
        window = make_window(path, [image], settings=settings, engine="process")
    window.show()
    shown, loop, ended, tuning = window.session, QEventLoop(window), [0.0], [""]

    def note_end() -> None:
        if shown.state is RunState.FINISHED:
            ended[0] = time.perf_counter()
            loop.quit()

    def rest(seconds: float = _REST) -> None:
        QTimer.singleShot(round(1e3 * seconds), loop.quit)
        loop.exec()

    def in_window() -> float:
        shown.restart()
        rest()
        started = time.perf_counter()
        shown.resume()
        loop.exec()
        rest()  # what is left to draw is not the session's
        return ended[0] - started

    def let_it_tune() -> None:
        in_window()
        rest(_UNTIL_TUNED)
        while tuning[0]:
            rest()

    def alone() -> float:
        session.feed([image])
        started = time.perf_counter()
        session.run()
        return time.perf_counter() - started

    shown.state_changed.connect(note_end)
    shown.tuning.progressed.connect(lambda text: tuning.__setitem__(0, text))
    for _ in range(_WARMING):
        let_it_tune()
    times = alternate({"window": in_window, "run": alone}, PASSES * rounds)
    window.close()
    return {
        "window": times.median("window"),
        "run": times.median("run"),
        "ratio": times.ratio("window", "run"),
    }


def memory_of_reuse(path: str, size: int) -> dict[str, float]:
    """Memory that further inputs take, in MB; for a process of its own.

    Returns
    -------
    dict
        What the second and what a later input takes: of Python and NumPy in the highest, or
        of the system, whichever is more; and what all operands are together.
    """
    _warm(path, size)  # which learns what computes what
    session = engine.Session(engine.load(path))
    tracemalloc.start()
    taken = []
    for seed in range(_WARMING + 1):
        before, faults = tracemalloc.get_traced_memory()[0], _faults()
        tracemalloc.reset_peak()
        session.feed([_image(size, seed)])
        session.run()
        peak = tracemalloc.get_traced_memory()[1] - before
        taken.append(max(peak, (_faults() - faults) * resource.getpagesize()) / 1e6)
    operands = sum(value_nbytes(session.value(name)) for name in session.graph.operands)
    return {"second": taken[1], "later": taken[-1], "operands": operands / 1e6}


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def _warm(path: str, size: int) -> engine.Session:
    """Give a session that has found out what computes it fastest."""
    session = engine.Session(engine.load(path))
    for seed in range(_WARMING):
        session.feed([_image(size, seed)])
        session.run()
        session.tune()
    return session


def _image(size: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((1, 3, size, size), np.float32)
