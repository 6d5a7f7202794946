"""Histograms of absolute values and the thresholds from them, against slow loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.datasets.calibration.magnitudes import BINS, Magnitudes
from engine.datasets.calibration.thresholds import METHODS, find_threshold, kl_threshold
from engine.errors import EngineError


def magnitudes_of(*arrays):
    found = Magnitudes()
    for array in arrays:
        found.add(np.asarray(array, np.float32))
    return found


def slow_kl(histogram):
    """ncnn's search, one bin and one level at a time."""
    total = sum(histogram)
    normed = [count / total for count in histogram]
    best, least = 128, math.inf
    for threshold in range(128, len(normed)):
        clip = [0.0001 + share for share in normed[:threshold]]
        clip[-1] += sum(normed[threshold:])
        width = threshold / 128
        expanded = [0.0001] * threshold
        for level in range(128):
            start, end = level * width, (level + 1) * width
            overlaps = []
            for place in range(math.floor(start), min(math.ceil(end), threshold)):
                overlap = min(end, place + 1) - max(start, place)
                if overlap > 0:
                    overlaps.append((place, overlap))
            mean = sum(normed[p] * o for p, o in overlaps) / sum(o for _, o in overlaps)
            for place, overlap in overlaps:
                expanded[place] += overlap * mean
        divergence = sum(a * math.log(a / b) for a, b in zip(clip, expanded, strict=True))
        if divergence < least:
            best, least = threshold, divergence
    return best


class TestMagnitudes:
    def test_counts_by_hand(self):
        found = magnitudes_of([0, 0, -1, 0.5, math.nan, math.inf, 3.99])
        assert (found.zeros, found.nonfinite, found.count) == (2, 2, 5)
        assert found.largest == np.float32(3.99)
        counts = found.histogram.counts
        assert {int(k): int(counts[k]) for k in np.flatnonzero(counts)} == {
            BINS // 4: 1, BINS // 8: 1, int(np.float32(3.99) / 4 * BINS): 1,
        }  # fmt: skip

    @pytest.mark.parametrize("seed", [3, 4])
    def test_merging_in_any_order_gives_equal_counts(self, seed):
        rng = np.random.default_rng(seed)
        arrays = [
            rng.standard_normal(int(rng.integers(1, 500))) * 10.0 ** rng.integers(-3, 6)
            for _ in range(12)
        ]
        whole = magnitudes_of(*arrays)
        parts = [magnitudes_of(array) for array in arrays]
        rng.shuffle(parts)
        while len(parts) > 1:
            first, second = parts.pop(), parts.pop(0)
            first.merge(second)
            parts.append(first)
        (merged,) = parts
        for name, array in whole.to_arrays().items():
            assert np.array_equal(merged.to_arrays()[name], array), name
        again = Magnitudes.from_arrays(whole.to_arrays())
        again.merge(magnitudes_of([1e9]))
        whole.merge(magnitudes_of([1e9]))
        assert np.array_equal(again.histogram.counts, whole.histogram.counts)

    def test_a_histogram_is_near_the_exact_one(self):
        values = np.abs(np.random.default_rng(7).standard_normal(100_000)).astype(np.float32)
        exact, _ = np.histogram(values, 2048, (0, values.max()))
        found = magnitudes_of(values).spread(2048)
        assert found.sum() == pytest.approx(len(values))
        # A value counts for the wrong bin only near an edge.
        assert np.abs(np.cumsum(found) - np.cumsum(exact)).max() < 30

    def test_quantiles_include_zeros(self):
        found = magnitudes_of([0] * 50, np.arange(1, 51))
        assert found.quantile(0.4) == 0
        assert found.quantile(0.75) == pytest.approx(25, abs=64 / BINS)
        assert found.quantile(1) == 50

    def test_tiny_and_empty_values(self):
        found = magnitudes_of(np.zeros(3), np.zeros(0), [1e-38, -1e-44])
        assert (found.zeros, found.count, int(found.histogram.counts.sum())) == (3, 5, 2)
        found.add(np.float32([3e38]))
        assert found.histogram.counts[0] == 2
        assert (found.count, found.largest) == (6, float(np.float32(3e38)))


class TestThresholds:
    @pytest.mark.parametrize("seed", range(3))
    def test_kl_equals_a_slow_loop(self, seed):
        rng = np.random.default_rng(seed)
        values = np.abs(rng.standard_t(3, 20_000))
        histogram, _ = np.histogram(values, 400, (0, values.max()))
        assert kl_threshold(histogram.astype(float)) == slow_kl(histogram.tolist()) + 0.5

    def test_kl_of_even_levels_keeps_all(self):
        # 256 even bins are 128 even levels: nothing is lost; fewer bins clip some.
        assert slow_kl([1] * 257) + 0.5 == kl_threshold(np.ones(257)) > 250

    def test_kl_cuts_a_lone_outlier(self):
        values = np.random.default_rng(5).uniform(0, 1, 50_000)
        found = find_threshold(magnitudes_of(values, [100.0]), "kl")
        assert found == pytest.approx(100 * 128.5 / 2048)  # the fewest bins there may be

    def test_aciq_by_hand(self):
        # 0.175 * (1 + sqrt(pi * ln 4)) = 0.540208...; sqrt(2 ln 65536) = 4.70964...
        values = np.zeros(65536)
        values[0] = -10
        expected = 3.92403714 * 10 * 2 * 0.5402084 / 4.7096403
        assert find_threshold(magnitudes_of(values, values / 2), "aciq") == pytest.approx(
            expected, rel=1e-6
        )

    @pytest.mark.parametrize("count", [1, 9])
    def test_aciq_of_few_values_is_their_largest(self, count):
        assert find_threshold(magnitudes_of(np.full(count, 2.0)), "aciq") == 2

    def test_minmax_and_percentile(self):
        found = magnitudes_of(np.linspace(-1, 0, 10_001))
        assert find_threshold(found, "minmax") == 1
        assert find_threshold(found, "percentile", 90) == pytest.approx(0.9, abs=2e-4)

    def test_a_percentile_of_mostly_zeros_is_the_largest(self):
        assert find_threshold(magnitudes_of(np.eye(1000)[0] * 5), "percentile", 99) == 5

    @pytest.mark.parametrize("method", METHODS)
    def test_zeros_have_no_threshold(self, method):
        assert find_threshold(magnitudes_of(np.zeros(10)), method) == 0

    def test_unknown_method(self):
        with pytest.raises(EngineError, match="choose kl, aciq, minmax, percentile"):
            find_threshold(Magnitudes(), "eq")
