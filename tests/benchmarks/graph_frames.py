"""Laying out ten thousand operators, moving over thousands in view, and opening groups."""

from __future__ import annotations

import os
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

from benchmarks.graphs import SHAPES, write_model
from benchmarks.measure import Absent, Row, spell_seconds
from benchmarks.processes import answer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measure import Bench

_COUNT: Final = 10_000
_IN_VIEW: Final = 3000
_LAYOUT_SECONDS: Final = 1.5
_FRAME_MS: Final = 16.0
_EXPAND_MS: Final = 100.0
_OPENED: Final = 8  # groups, the largest first
_FRAMES: Final = 60
# From all of the graph to single boxes with their pictures.
_ZOOMS: Final = (0.02, 0.05, 0.1, 0.2, 0.34, 0.4, 0.6, 1.0, 2.0)


def rows(bench: Bench) -> Iterator[Row | str]:
    """Graphs of every shape; what counts of a movement is its 95th percentile."""
    for shape in SHAPES:
        path = write_model(bench.folder / "graph.param", shape, _COUNT)
        yield _layout_row(f"layout of 10 000 operators, {shape}", str(path), bench)
    for name in ("densenet121", "swin_t"):
        try:
            path = bench.model(f"{name}.pnnx.param")
        except Absent as exc:
            yield str(exc)
        else:
            yield _layout_row(f"layout of {name}", str(path), bench)
    for shape in SHAPES:
        path = write_model(bench.folder / "graph.param", shape, _COUNT)
        for what, seconds in answer_of(move, str(path)).items():
            seconds.sort()
            median, late = statistics.median(seconds), seconds[int(0.95 * len(seconds))]
            yield Row(
                f"{what}, {shape}",
                f"{spell_seconds(median)}, worst {spell_seconds(seconds[-1])}",
                1e3 * late,
                _FRAME_MS,
                unit="ms",
            )
        seconds = answer_of(expand, str(path))
        yield Row(
            f"a group of 10 000 operators opens, {shape}",
            f"median {spell_seconds(statistics.median(seconds))}",
            1e3 * max(seconds),
            _EXPAND_MS,
            unit="ms",
        )


def _layout_row(what: str, path: str, bench: Bench) -> Row:
    took = answer_of(lay_out, path, bench.rounds)
    return Row(what, spell_seconds(took), took, _LAYOUT_SECONDS, unit="s")


def lay_out(path: str, rounds: int) -> float:
    """Median of the seconds that a layout takes, the graph for networkx included."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    import engine
    from kuiper_studio.app import make_application
    from kuiper_studio.graph_view.scene import lay_out as lay_out_scene
    from kuiper_studio.graph_view.scene import make_scene

    _application = make_application()
    scene = make_scene(engine.load(path))
    seconds = []
    for _ in range(min(rounds, 3)):
        started = time.perf_counter()
        lay_out_scene(scene, "left-right")
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def move(path: str) -> dict[str, list[float]]:
    """Seconds of each frame, by what was done, on a canvas of 1440 by 900."""
    session, canvas = _open_canvas(path)

    def frames(change: Callable[[int], None]) -> list[float]:
        seconds = []
        for number in range(_FRAMES):
            change(number)
            started = time.perf_counter()
            canvas.repaint()
            seconds.append(time.perf_counter() - started)
        return seconds

    def pan(number: int) -> None:
        canvas.viewport.pan(-23 if number % 40 < 20 else 23, -7)

    found = {}
    canvas.viewport.fit()
    canvas.repaint()
    found["all 10 000 in view, panned"] = frames(pan)
    _show(canvas, _zoom_with(canvas, _IN_VIEW))
    found["3000 in view, panned"] = frames(pan)
    found["3000 in view, zoomed"] = frames(
        lambda number: _zoom(canvas, canvas.zoom * (1.03 if number % 20 < 10 else 1 / 1.03))
    )
    nearer: list[float] = []
    for zoom in _ZOOMS:
        _show(canvas, zoom)
        nearer += frames(pan)
    found["nearer, at nine zooms, panned"] = nearer
    session.close()
    return found


def expand(path: str) -> list[float]:
    """Seconds until each of some groups is open and painted."""
    session, canvas = _open_canvas(path)
    canvas.set_grouping(True)
    seconds = []
    for _ in range(_OPENED):
        cards = [box.card for box in canvas._scene.boxes if box.card is not None]
        if not cards:
            break
        canvas.pick_group(max(cards, key=lambda card: card.group.size).group)
        started = time.perf_counter()
        canvas.open_group()
        canvas.repaint()
        seconds.append(time.perf_counter() - started)
    session.close()
    return seconds


def _open_canvas(path: str) -> tuple[Any, Any]:
    """A session with the model, and the graph of it."""
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from kuiper_studio.app import make_application
    from kuiper_studio.graph_view.canvas import GraphCanvas
    from kuiper_studio.session import StudioSession
    from kuiper_studio.theme import Scheme, Theme

    application = make_application()
    theme = Theme(Scheme.DARK)
    theme.apply(application)
    session = StudioSession(backend="numpy")
    canvas = GraphCanvas(session, theme)
    canvas.resize(1440, 900)
    canvas.show()
    session.open(path)
    while session.graph is None or session.busy or not canvas.laid_out:
        application.processEvents()
        time.sleep(0.001)
    canvas.viewport.reduced_motion = True
    canvas.set_grouping(False)
    while not canvas.laid_out:
        application.processEvents()
        time.sleep(0.001)
    return session, canvas


def _zoom(canvas: Any, zoom: float) -> None:
    from PySide6.QtCore import QPointF

    canvas.viewport.zoom_about(QPointF(720, 450), zoom)


def _show(canvas: Any, zoom: float) -> None:
    """Look at the middle of the graph."""
    _zoom(canvas, zoom)
    boxes = canvas._scene.boxes
    canvas.viewport.reduced_motion = True
    canvas.center_on(boxes[len(boxes) // 2].name)
    canvas.repaint()


def _zoom_with(canvas: Any, count: int) -> float:
    """The zoom at which about so many boxes are in view."""
    canvas.viewport.fit()
    while len(canvas._geometry.boxes_in(canvas.visible_area())) > count:
        _zoom(canvas, canvas.zoom * 1.1)
    return float(canvas.zoom)
