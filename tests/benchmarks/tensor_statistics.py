"""Statistics and histogram of a large tensor, beside one pass over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.measure import alternate, timed
from engine.statistics import histogram, sampling_step, statistics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measure import Bench, Row

ELEMENTS = 50_000_000


def rows(bench: Bench) -> Iterator[Row]:
    """A tensor of 50 million elements, as the tensor view goes through it."""
    array = np.random.default_rng(0).standard_normal(ELEMENTS, np.float32)

    def both() -> None:
        found = statistics(array)
        histogram(array, found.min, found.max, step=sampling_step(array.size))

    low, high = float(array.min()), float(array.max())
    times = alternate(
        {
            "numpy.min": timed(lambda: np.min(array)),
            "statistics": timed(lambda: statistics(array)),
            "histogram": timed(lambda: histogram(array, low, high)),
            "both": timed(both),
        },
        bench.rounds,
    )
    yield times.row("statistics of 50 million float32", "statistics", "numpy.min")
    yield times.row("histogram of all of them", "histogram", "numpy.min")
    yield times.row("statistics and the sampled histogram shown", "both", "numpy.min", 3)
