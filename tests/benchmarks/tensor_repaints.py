"""Repainting a tensor, and measuring a large one while the window goes on."""

from __future__ import annotations

import os
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.measure import Row, spell_seconds
from benchmarks.processes import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Bench

_SHAPES: Final = ((64, 112, 112), (512, 28, 28), (2048, 7, 7), (3, 640, 640))
_FRAME_MS: Final = 16.0
_GAP_MS: Final = 50.0
_LARGE: Final = (50, 1000, 1000)


def rows(bench: Bench) -> Iterator[Row]:
    """Every change of the whole view; then the mosaic alone, beside pyqtgraph's."""
    for shape in _SHAPES:
        name = "×".join(map(str, shape))
        for what, seconds in answer_of(repaint, shape, bench.rounds).items():
            median, worst = statistics.median(seconds), max(seconds)
            ours = f"{spell_seconds(median)}, worst {spell_seconds(worst)}"
            yield Row(f"{what}, {name}", ours, 1e3 * median, _FRAME_MS, unit="ms")
        ours, theirs = answer_of(mosaics, shape, bench.rounds)
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        yield Row(
            f"mosaic of another value, {name}",
            spell_seconds(statistics.median(ours)),
            ratio,
            1,
            "ImageItem",
            spell_seconds(statistics.median(theirs)),
        )
    gap, took = answer_of(longest_gap)
    yield Row(
        "longest wait of the window, 50 million elements",
        f"{spell_seconds(gap)} of {spell_seconds(took)}",
        1e3 * gap,
        _GAP_MS,
        unit="ms",
    )


def repaint(shape: list[int], rounds: int) -> dict[str, list[float]]:
    """Seconds from each change to its picture."""
    pane, drain = _pane()
    values = _values((1, *shape))
    pane.set_value("a", values[0])
    drain()
    changes: dict[str, Callable[[int], None]] = {
        "range": lambda turn: pane.range_bar.range_chosen.emit(-1 - turn / 64, 1 + turn / 64),
        "colour map": lambda turn: pane.actions_table.map_chosen.emit(
            ("viridis", "magma")[turn % 2]
        ),
        "channel": lambda turn: pane.show_channel(turn % shape[0]),
        "step": lambda turn: pane.set_value("ab"[turn % 2], values[turn % 2]),
    }
    return {what: _timed(change, drain, rounds) for what, change in changes.items()}


def mosaics(shape: list[int], rounds: int) -> tuple[list[float], list[float]]:
    """Seconds of our mosaic and of an ImageItem of the same size, with another value each."""
    pane, drain = _pane()
    import pyqtgraph

    from kuiper_studio.tensor_view.facts import channel_facts
    from kuiper_studio.tensor_view.mosaic_view import MosaicView

    pane.close()
    values = [value[:256] for value in _values(tuple(shape))]
    facts = [channel_facts(value) for value in values]
    ours = MosaicView(pane.theme)
    ours.resize(640, 400)
    ours.show()
    graphics = pyqtgraph.GraphicsView()
    box, image = pyqtgraph.ViewBox(), pyqtgraph.ImageItem()
    graphics.setCentralItem(box)
    box.addItem(image)
    graphics.resize(640, 400)
    graphics.show()
    pictures = [_mosaic(value) for value in values]
    image.setLookupTable(pane.colors.coloring().table)

    def show(turn: int) -> None:
        ours.set_page(values[turn % 2], facts[turn % 2], 0, len(values[0]))
        ours.set_coloring(pane.colors.coloring(), (-1.0 - turn / 64, 1.0))

    def show_image(turn: int) -> None:
        image.setImage(pictures[turn % 2], levels=(-1.0 - turn / 64, 1.0))

    seconds: tuple[list[float], list[float]] = [], []
    for turn in range(rounds + 2):
        for kept, change in zip(seconds, (show, show_image), strict=True):
            started = time.perf_counter()
            change(turn)
            drain()
            kept.append(time.perf_counter() - started)
    return seconds[0][2:], seconds[1][2:]


def longest_gap() -> tuple[float, float]:
    """Longest time between two turns of the event loop, and all until the answer is there."""
    pane, drain = _pane()
    from PySide6.QtCore import Qt, QTimer

    value = _values((1, *_LARGE))[0]
    pane.set_value("small", value[:, :, :50, :50])  # what is made once is made
    drain()
    beats = [time.perf_counter()]
    timer = QTimer(interval=1, timerType=Qt.TimerType.PreciseTimer)
    timer.timeout.connect(lambda: beats.append(time.perf_counter()))
    timer.start()
    drain()
    started = beats[-1]
    pane.set_value("a", value)
    while pane.measures.facts is None:
        drain()
        time.sleep(0.0005)
    drain()
    beats.append(time.perf_counter())
    return float(np.diff(beats).max()), beats[-1] - started


def _pane() -> tuple[Any, Callable[[], None]]:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from kuiper_studio.app import make_application
    from kuiper_studio.tensor_view.pane import TensorPane
    from kuiper_studio.theme import Scheme, Theme

    application = make_application()
    theme = Theme(Scheme.DARK)
    theme.apply(application)
    pane = TensorPane(theme)
    pane.resize(820, 330)  # as in a window of 1440 by 900
    pane.show()

    def drain() -> None:
        for _ in range(3):
            application.processEvents()

    drain()
    return pane, drain


def _values(shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    draw = np.random.default_rng(0)
    return [draw.standard_normal(shape, np.float32) for _ in range(2)]


def _mosaic(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Channels in a square, as one picture."""
    count, rows, columns = value.shape
    across = int(np.ceil(np.sqrt(count)))
    down = -(-count // across)
    picture = np.zeros((down, across, rows, columns), np.float32)
    picture.reshape(-1, rows, columns)[:count] = value
    return np.ascontiguousarray(
        picture.transpose(0, 2, 1, 3).reshape(down * rows, across * columns)
    )


def _timed(
    change: Callable[[int], None], drain: Callable[[], None], rounds: int
) -> list[float]:
    """Seconds of each turn but the first two."""
    seconds = []
    for turn in range(rounds + 2):
        started = time.perf_counter()
        change(turn)
        drain()
        seconds.append(time.perf_counter() - started)
    return seconds[2:]
