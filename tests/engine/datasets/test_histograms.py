"""Histograms with bins of power-of-two widths."""

from __future__ import annotations

import numpy as np

from engine.datasets.histograms import PowerHistogram


def counted(values: list[float]) -> PowerHistogram:
    """Count numbers, which are float32."""
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


def places(found: PowerHistogram) -> list[float]:
    """The beginnings of the bins that are not empty."""
    return found.edges[:-1][found.counts > 0].tolist()


def test_a_number_just_below_zero_is_in_the_bin_below_it() -> None:
    """In steps of wide bins it is too small for a float32, and would be 0."""
    found = counted([-1e30, -1e-44, 1e30])
    width = 2.0**found.exponent
    assert width > 1e26
    assert found.counts.sum() == 3
    assert places(found)[1] == -width


def test_bins_are_no_narrower_than_the_steps_of_float32() -> None:
    """From 1 to 2 they are 2^-23 apart, and half as much below 1."""
    assert counted([1.0]).exponent == -23
    found = counted([1.0, 1 + 2.0**-23, 1 + 2.0**-22])
    assert found.exponent == -23
    assert places(found) == [1.0, 1 + 2.0**-23, 1 + 2.0**-22]


def test_the_width_depends_on_the_range_alone() -> None:
    """However small the numbers were that came before."""
    values = [-3e-33, 0.0, 2e-33, 5e30, 7e30]
    found = counted(values[:3])
    found.merge(counted(values[3:]))
    whole = counted(values)
    assert (found.exponent, found.first) == (whole.exponent, whole.first)
    assert found.counts.tolist() == whole.counts.tolist()
    assert found.counts.tolist() == np.histogram(values, found.edges)[0].tolist()
