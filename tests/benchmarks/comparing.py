"""A comparison, beside a pass of the network that is compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import engine
from benchmarks.measure import alternate, timed
from engine.pnnx import Attribute, load, save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.measure import Bench, Row

_FAULTY = "convbn2d_29"  # a convolution in the middle of the network


def rows(bench: Bench) -> Iterator[Row]:
    """resnet50 as it runs when tuned, beside a dump of what NumPy computes, read anew.

    Once as it is, and once with a bias that is lost, whose operator and reason are found.
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
        "the same with a fault": _lose_bias(param, bench.folder),
    }.items():
        yield _row(bench, what, file, folder, image)


def _row(bench: Bench, what: str, param: Path, reference: Path, image: np.ndarray) -> Row:
    session = engine.Session(engine.load(param))
    session.feed([image])
    session.run()
    session.tune()

    def run() -> None:
        session.restart()
        session.run()

    times = alternate(
        {"pass": timed(run), "comparison": timed(lambda: engine.compare(session, reference))},
        bench.rounds,
    )
    return times.row(what, "comparison", "pass", 3)


def _lose_bias(param: Path, folder: Path) -> Path:
    """Write the network with a bias of zeros."""
    graph = load(param)
    weights = next(each.attrs for each in graph.operators if each.name == _FAULTY)
    weights["bias"] = Attribute.from_array(np.zeros_like(weights["bias"].array))
    save(graph, folder / "faulty.pnnx.param", folder / "faulty.pnnx.bin")
    return folder / "faulty.pnnx.param"
