"""A comparison, beside a pass of the network that is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import engine
from benchmarks.measure import alternate, timed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measure import Bench, Row


def rows(bench: Bench) -> Iterator[Row]:
    """resnet50 as it runs when tuned, beside a dump of what NumPy computes, read anew."""
    graph = engine.load(bench.model("resnet50.pnnx.param"))
    image = np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)
    plain, session = engine.Session(graph, backend="numpy"), engine.Session(graph)
    for each in (plain, session):
        each.feed([image])
        each.run()
    folder = bench.folder / "reference"
    engine.write_dump(plain, folder)
    session.tune()

    def run() -> None:
        session.restart()
        session.run()

    times = alternate(
        {"pass": timed(run), "comparison": timed(lambda: engine.compare(session, folder))},
        bench.rounds,
    )
    yield times.row("compare resnet50 with a dump", "comparison", "pass", 3)
