"""Export: the dump of all operands, beside bare loops of `numpy.save`.

A dump is on the disk when it takes its name, so the loop with the same promise is the measure.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import numpy as np

import engine
from benchmarks.measure import Absent, alternate, timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from benchmarks.measure import Bench, Row


def rows(bench: Bench) -> Iterator[Row]:
    """Everything that resnet50 computes, into the same folder."""
    session = engine.Session(engine.load(bench.model("resnet50.pnnx.param")), backend="numpy")
    session.feed([np.random.default_rng(0).standard_normal((1, 3, 224, 224), np.float32)])
    session.run()
    arrays = [session.value(name) for name in session.graph.operands]
    size = sum(array.nbytes for array in arrays)
    if shutil.disk_usage(bench.folder).free < 3 * size:
        raise Absent("the disk is too full")
    dump, plain = bench.folder / "dump", bench.folder / "plain"
    written = timed(lambda: engine.write_dump(session, dump))
    saved = timed(lambda: _save_all(plain, arrays, synced=False))
    synced = timed(lambda: _save_all(plain, arrays, synced=True))
    times = alternate(
        {
            "dump": lambda: _afresh(dump, written),
            "synced": lambda: _afresh(plain, synced),
            "save": lambda: _afresh(plain, saved),
        },
        bench.rounds,
    )
    what = f"dump all {len(arrays)} operands of resnet50 ({size / 1e6:.0f} MB)"
    yield times.row(what, "dump", "synced", 1.15, beside="a loop of numpy.save and fsync")
    yield times.row(what, "dump", "save", beside="a loop of numpy.save, not synced")


def _afresh(folder: Path, run: Callable[[], float]) -> float:
    """Write into a new folder while the system writes nothing else to the disk."""
    shutil.rmtree(folder, ignore_errors=True)
    if hasattr(os, "sync"):  # not on Windows
        os.sync()
    return run()


def _save_all(folder: Path, arrays: Sequence[np.ndarray], *, synced: bool) -> None:
    folder.mkdir()
    for index, array in enumerate(arrays):
        with (folder / f"{index}.npy").open("wb") as file:
            np.save(file, array)
            if synced:
                file.flush()
                os.fsync(file.fileno())
