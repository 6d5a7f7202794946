"""Histograms with bins of power-of-two widths."""

from __future__ import annotations

import numpy as np

from engine.datasets.histograms import PowerHistogram


def counted(values: list[float]) -> PowerHistogram:
    found = PowerHistogram()
    array = np.array(values, np.float32)
    found.cover(float(array.min()), float(array.max()))
    found.add(array)
    return found


def test_merging_leaves_the_arrays_of_both_as_they_are() -> None:
    one, other = counted([0.0, 0.25, 1.0]), counted([0.5, 0.75])
    kept = one.counts, other.counts
    for counts in kept:
        counts.flags.writeable = False  # as arrays of a file are
    before = [counts.copy() for counts in kept]
    one.merge(other)
    values = [0.0, 0.25, 0.5, 0.75, 1.0]
    assert one.counts.tolist() == np.histogram(values, one.edges)[0].tolist()
    for counts, copy in zip(kept, before, strict=True):
        assert np.array_equal(counts, copy)
