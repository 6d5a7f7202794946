"""A comparison, beside a pass of the network that is compared."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

import engine
from benchmarks.measure import Row, alternate, spell_seconds, timed
from benchmarks.processes import answer_of
from engine.pnnx import Attribute, load, save

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Bench

_FAULTY: Final = "convbn2d_29"  # a convolution in the middle of the network
_NOISE: Final = 0.3  # of the deviation of a weight
_GAP_MS: Final = 50.0
_PATIENCE: Final = 120.0  # seconds


def rows(bench: Bench) -> Iterator[Row]:
    """resnet50 as it runs when tuned, beside a dump of what NumPy computes, read anew.

    Once as it is, once with a bias that is lost, whose operator and reason are found, and once
    with other numbers in a weight, for which all reasons are tried in vain. Last how long the
    window does not answer.
    """
    param = bench.model("resnet50.pnnx.param")
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)
    plain = engine.Session(engine.load(param), backend="numpy")
    plain.feed([image])
    plain.run()
    folder = bench.folder / "reference"
    engine.write_dump(plain, folder)
    for what, file in {
        "compare resnet50 with a dump": param,
        "the same with a fault": _change(param, "bias", np.zeros_like, bench.folder),
        "the same with an unexplained fault": _change(param, "weight", _disturb, bench.folder),
    }.items():
        yield _row(bench, what, file, folder, image)
    np.save(bench.folder / "image.npy", image)
    waits = answer_of(longest_waits, str(param), str(bench.folder / "image.npy"), str(folder))
    for what, seconds in zip(
        ("longest wait of the window meanwhile", "its longest wait to show the result"),
        waits,
        strict=True,
    ):
        yield Row(what, spell_seconds(seconds), 1e3 * seconds, _GAP_MS, unit="ms")


def longest_waits(param: str, image: str, reference: str) -> tuple[float, float]:
    """Longest time between two turns of the event loop until the rows are there, and then."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtCore import QSettings, Qt, QTimer
    from PySide6.QtWidgets import QApplication

    from kuiper_studio.app import make_application, make_window

    make_application()
    settings = QSettings(str(Path(image).with_name("window.ini")), QSettings.Format.IniFormat)
    window = make_window(param, [image], settings=settings)
    window.resize(1440, 900)
    window.show()
    session = window.session
    session.resume()
    session.wait_idle(_PATIENCE)
    beats = [time.perf_counter()]
    timer = QTimer(interval=1, timerType=Qt.TimerType.PreciseTimer)
    timer.timeout.connect(lambda: beats.append(time.perf_counter()))

    def handle_events(seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            QApplication.processEvents()
            time.sleep(0.0005)

    handle_events(1.0)  # what follows a run is measured and shown
    timer.start()
    handle_events(0.1)
    del beats[:-1]
    arrived: list[float] = []
    session.comparing.changed.connect(lambda: arrived.append(time.perf_counter()))
    session.studies.compare(reference)
    while not arrived and time.perf_counter() - beats[0] < _PATIENCE:
        handle_events(0.01)
    handle_events(0.5)
    timer.stop()
    window.close()
    waits = np.diff(beats)
    there = int(np.searchsorted(beats, arrived[-1])) - 1
    return float(waits[:there].max()), float(waits[there:].max())


def _row(bench: Bench, what: str, param: Path, reference: Path, image: np.ndarray) -> Row:
    session = engine.Session(engine.load(param))
    session.feed([image])
    session.run()
    session.tune()

    def run() -> None:
        session.restart()
        session.run()

    def run_settled() -> float:
        run()  # after a comparison a pass takes up to twice as long
        return timed(run)()

    times = alternate(
        {"pass": run_settled, "comparison": timed(lambda: engine.compare(session, reference))},
        bench.rounds,
    )
    return times.row(what, "comparison", "pass", 3)


def _change(
    param: Path, name: str, change: Callable[[np.ndarray], np.ndarray], folder: Path
) -> Path:
    """Write the network with other numbers in a weight."""
    graph = load(param)
    weights = next(each.attrs for each in graph.operators if each.name == _FAULTY)
    weights[name] = Attribute.from_array(change(weights[name].array))
    path = folder / f"other_{name}.pnnx.param"
    save(graph, path, path.with_suffix(".bin"))
    return path


def _disturb(weight: np.ndarray) -> np.ndarray:
    """Add noise to a weight."""
    noise = np.random.default_rng(0).normal(0.0, _NOISE * float(weight.std()), weight.shape)
    return (weight + noise).astype(weight.dtype)
