"""Exports the open model again at random moments: it must not change until it is reloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.inputs import InputSource
from kuiper_studio.session import RunState
from rewriting import SIZE, WEIGHTED, export, scaled
from soak.settling import SETTLED, handle_events, open_with

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kuiper_studio.main_window import MainWindow

__all__ = ["rewrite_models"]

_LINES = (
    f"pnnx.Input in 0 1 0 #0=(1,{SIZE})f32",
    f"nn.Linear first 1 1 0 1 {WEIGHTED}",
    f"nn.Linear second 1 1 1 2 {WEIGHTED}",
    "pnnx.Output out 1 0 2",
)
_NOTICED = 20.0  # seconds


def rewrite_models(
    window: MainWindow, folder: Path, rng: np.random.Generator, count: int
) -> Iterator[str]:
    """Export a model again while it is shown, stepped or run; `count` times each.

    Parameters
    ----------
    window : MainWindow
    folder : Path
    rng : numpy.random.Generator
    count : int

    Yields
    ------
    str
        What should not be.
    """
    param = folder / "rewritten.pnnx.param"
    export(param, scaled(2, 3), _LINES)
    known, factor = 6, 2
    session = window.session
    open_with(session, param, InputSource("array", array=np.ones((1, SIZE), np.float32)))
    for number in range(3 * count):
        moment = ("looking", "stepping", "running")[number % 3]
        where = f"export {number + 1}, while {moment}"
        session.restart()
        if moment == "looking":
            session.select(str(rng.choice(["first", "second"])))
        elif moment == "stepping":
            session.step()
            session.step()
        else:
            session.resume()
        handle_events(lambda: False, float(rng.random()) * 0.01)
        factor = factor % 50 + 1  # another one each time
        export(param, scaled(factor, 3))
        session.wait_idle(SETTLED)
        place = session.position
        if not handle_events(lambda: session.files_notice is not None, _NOTICED):
            yield f"{where}: no notice"
        yield from _check(window, known, where)
        session.restart()
        session.wait_idle(SETTLED)
        for _ in range(place):
            session.step()
        session.wait_idle(SETTLED)
        window.actions_by_id["file.reload"].trigger()
        session.wait_idle(SETTLED)
        if session.position != place:
            yield f"{where}: reloaded from {place} to {session.position}"
        if session.files_notice is not None:
            yield f"{where}: the notice stays after reloading"
        known = factor * 3
        yield from _check(window, known, where)


def _check(window: MainWindow, known: int, where: str) -> Iterator[str]:
    """Check that the model multiplies by the weights that it was opened with."""
    session = window.session
    session.resume()
    session.wait_idle(SETTLED)
    if session.state is not RunState.FINISHED:
        yield f"{where}: {session.state.name}: {session.failure}"
        return
    found = np.asarray(session.fetch("2"))
    if not np.array_equal(found, np.full((1, SIZE), known, np.float32)):
        yield f"{where}: {found[0, 0]} instead of {known}"
