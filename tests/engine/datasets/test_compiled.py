"""Loops that Numba compiles, as plain Python and compiled, against sums of single rows."""

from __future__ import annotations

import importlib.util
import math
from itertools import product

import numba
import numpy as np
import pytest

from engine.datasets import compiled

WHOLE = {np.float32: np.int32, np.float64: np.int64}


def loaded_anew():
    """Load the module once more, as another process does."""
    spec = importlib.util.spec_from_file_location("loops", compiled.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def plain():
    """The module without Numba, with pieces and blocks of few elements."""
    before, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, True
    try:
        module = loaded_anew()
    finally:
        numba.config.DISABLE_JIT = before
    module._PIECE, module._LANES, module._LEAST_ROWS = 5, 6, 2
    return module


def rank_one(module):
    """Rank an input, and return whether the code for it was kept by another process."""
    best, inputs = np.full((1, 2), np.nan), np.full((1, 2), -1)
    module.rank(np.array([[3.0]]), np.array([[8]]), 1.0, best, inputs)
    assert (best[0, 0], inputs.tolist()) == (3, [[8, -1]])
    return bool(module.rank.stats.cache_hits)


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_code_is_kept_and_compiled_again_where_it_is_damaged(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert not rank_one(loaded_anew())
    assert rank_one(loaded_anew())
    (kept,) = (path for path in tmp_path.rglob("*") if path.suffix == suffix)
    kept.write_bytes(b"")
    assert not rank_one(loaded_anew())
    assert rank_one(loaded_anew())


@pytest.mark.parametrize(
    ("at", "error"),
    [("FunctionCache.__init__", RuntimeError), ("IndexDataCacheFile.save", OSError)],
)
def test_code_that_cannot_be_kept_is_compiled(tmp_path, monkeypatch, at, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(f"numba.core.caching.{at}", fail)
    assert not rank_one(loaded_anew())


def measured(loop, values, first=0, columns=None, ends=(np.nan, np.nan)):
    """Let a loop measure (inputs, channels, size), or (inputs, groups, size, width)."""
    whole = WHOLE[values.dtype.type]
    channels = values.shape[1] * (1 if loop.__name__ == "measure_rows" else values.shape[3])
    shape = len(values), columns or channels
    facts, counts = np.full((4, *shape), 7.0), np.full((6, *shape), 7)
    ends = tuple(map(values.dtype.type, ends))
    most = whole(np.iinfo(whole).max)
    with np.errstate(all="ignore"):
        reach = loop(values, values.view(whole), most, ends, first, facts, counts)
    return facts, counts, reach


def columns_of(rows, width=None):
    """Arrange rows of elements as columns of one group, or of groups of so many."""
    inputs, channels, size = rows.shape
    grouped = rows.reshape(inputs, -1, width or channels, size)
    return np.ascontiguousarray(grouped.swapaxes(2, 3))


def by_both(module, rows):
    """Measure rows of elements as they are, and as columns, alone and in groups."""
    yield measured(module.measure_rows, rows)
    channels = rows.shape[1]
    for width in {channels, 1, next(n for n in (2, 3, channels) if channels % n == 0)}:
        yield measured(module.measure_columns, columns_of(rows, width))


def check(found, rows):
    """Compare with rows of finite elements, by inputs and channels."""
    facts, counts, ends = found
    assert ends == (rows.min(), rows.max())
    for i, c in np.ndindex(rows.shape[:2]):
        row = rows[i, c].astype(np.float64).tolist()
        mean = math.fsum(row) / len(row)
        apart = math.fsum((x - mean) ** 2 for x in row)
        expected = [min(row), max(row), mean, apart]
        assert facts[:, i, c].tolist() == pytest.approx(expected, rel=1e-12, abs=1e-13)
        assert counts[:, i, c].tolist() == [len(row), sum(x == 0 for x in row), 0, 0, 0, 0]


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 7, 5), (2, 3, 6), (1, 4, 13)])
def test_rows_and_columns_are_measured_channel_by_channel(plain, dtype, shape):
    rows = np.random.default_rng(0).normal(0, 3, shape).round().astype(dtype)
    for module in (plain, compiled):
        for found in by_both(module, rows):
            check(found, rows)


@pytest.mark.parametrize("shape", [(1, 3, 4096), (1, 2, 10_000), (2, 1030, 20)])
def test_long_rows_and_many_columns_are_measured_in_pieces(shape):
    rows = np.random.default_rng(1).normal(1, 1, shape).astype(np.float32)
    for found in by_both(compiled, rows):
        check(found, rows)


def test_only_the_columns_of_the_operand_are_written(plain):
    rows = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 4)
    for module, loop in product((plain, compiled), ("measure_rows", "measure_columns")):
        values = rows if loop == "measure_rows" else columns_of(rows)
        facts, counts, _ = measured(getattr(module, loop), values, first=2, columns=6)
        assert facts[0].tolist() == [[7, 7, 1, 5, 9, 7]]
        assert facts[2].tolist() == [[7, 7, 2.5, 6.5, 10.5, 7]]
        assert counts[0].tolist() == [[7, 7, 4, 4, 4, 7]]
        assert counts[4].tolist() == [[7, 7, 0, 0, 0, 7]]


@pytest.mark.parametrize("dtype", WHOLE)
def test_elements_at_and_beyond_two_ends_are_saturated(plain, dtype):
    row = [0.0, 0.1, 0.25, 0.5, 0.75, 0.8, np.nan, np.inf, -np.inf]
    rows = np.array([[row, [0.5] * 9]], dtype)
    for module in (plain, compiled):
        for ends, count in (((0.25, 0.75), 7), ((-np.inf, 0.5), 5), ((np.nan, np.nan), 0)):
            for loop, values in (
                (module.measure_rows, rows),
                (module.measure_columns, columns_of(rows)),
            ):
                counts = measured(loop, values, ends=ends)[1]
                assert counts[5].tolist() == [[count, 9 if ends[1] == 0.5 else 0]]


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 3, 40])
def test_an_element_that_is_not_finite_is_found_wherever_it_is(plain, bad, place):
    rows = np.random.default_rng(2).standard_normal((1, 2, 41)).astype(np.float32)
    rows[0, 1, place] = bad
    rest = np.delete(rows[0, 1], place)
    kind = [np.isnan(bad), bad == np.inf, bad == -np.inf]
    for module in (plain, compiled):
        for facts, counts, ends in by_both(module, rows):
            assert counts[:, 0, 1].tolist() == [40, 0, *kind, 0]
            assert facts[:2, 0, 1].tolist() == [rest.min(), rest.max()]
            assert facts[2, 0, 1] == pytest.approx(rest.mean(dtype=np.float64), rel=1e-12)
            assert counts[:, 0, 0].tolist() == [41, 0, 0, 0, 0, 0]
            both = np.concatenate([rows[0, 0], rest])
            assert ends == (both.min(), both.max())


def test_what_is_measured_does_not_depend_on_where_an_array_lies():
    rows = np.random.default_rng(3).standard_normal((1, 4, 777)).astype(np.float32)
    for loop, values in (
        ("measure_rows", rows), ("measure_columns", columns_of(rows)),
        ("measure_columns", columns_of(rows, 2)),
    ):  # fmt: skip
        expected = measured(getattr(compiled, loop), values)[0]
        for moved in range(1, 17):
            room = np.zeros(values.size + moved, np.float32)
            there = room[moved:].reshape(values.shape)
            there[:] = values
            found = measured(getattr(compiled, loop), there)[0]
            assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("row", "facts", "counts"),
    [
        ([1, 2, 6], (1, 6, 3, 14), (3, 0, 0, 0, 0)),
        ([np.nan, 4, np.inf, 0, -np.inf, np.inf], (0, 4, 2, 8), (2, 1, 1, 2, 1)),
        ([np.nan, np.inf], (np.inf, -np.inf, 0, 0), (0, 0, 1, 1, 0)),
        ([2.5, 2.5, np.nan], (2.5, 2.5, 2.5, 0), (2, 0, 1, 0, 0)),
        ([np.inf, np.inf], (np.inf, -np.inf, 0, 0), (0, 0, 0, 2, 0)),
        ([0, 0, 0], (0, 0, 0, 0), (3, 3, 0, 0, 0)),
        # What no sum of squares holds; the second is exact in units of 2^-44.
        ([3e200, -3e200, 0], (-3e200, 3e200, 0, np.inf), (3, 1, 0, 0, 0)),
        ([1 + 2**-44, 1, 1 - 2**-44], (1 - 2**-44, 1 + 2**-44, 1, 2**-87), (3, 0, 0, 0, 0)),
        ([1e308, -1e308, 1e308], (-1e308, 1e308, 1e308 / 3, np.inf), (3, 0, 0, 0, 0)),
        ([3e-160, 0, 0], (0, 3e-160, 1e-160, 6e-320), (3, 2, 0, 0, 0)),
        ([5e-324, 15e-324], (5e-324, 15e-324, 10e-324, 0), (2, 0, 0, 0, 0)),
    ],
)
def test_channels_may_hold_anything(plain, row, facts, counts):
    rows = np.ones((2, 3, len(row)))
    rows[1, 2] = row
    for module in (plain, compiled):
        for found, numbers, _ in by_both(module, rows):
            np.testing.assert_allclose(found[:, 1, 2], facts, rtol=1e-15)
            assert tuple(numbers[:, 1, 2]) == (*counts, 0)
            assert found[:, 0, 0].tolist() == [1, 1, 1, 0]


@pytest.mark.parametrize("dtype", WHOLE)
def test_runs_of_elements_are_counted_in_bins(plain, dtype):
    values = np.arange(24, dtype=dtype).reshape(2, 12) / 2
    values[0, 1], values[0, 5], values[1, 7] = np.nan, np.inf, -np.inf
    for module in (plain, compiled):
        bins = np.zeros(14, int)
        # Elements 0, 1, 5 and 6 of the one input, and 2, 3, 7 and 8 of the other.
        module.count_runs(values, np.array([0, 2]), 10, 2, 5, (12, 1), 1.0, -1, bins)
        assert bins.tolist() == [0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 1, 0, 0]


def test_runs_of_blocked_channels_are_those_of_their_pixels(plain):
    """Four channels of three pixels in groups of two; runs go from one channel to the next."""
    logical = np.arange(12.0).reshape(1, 4, 3)
    blocked = np.ascontiguousarray(logical.reshape(1, 2, 2, 3).swapaxes(2, 3)).reshape(1, 12)
    for module in (plain, compiled):
        bins = np.zeros(12, int)
        module.count_runs(blocked, np.array([1]), 12, 4, 6, (3, 2), 1.0, 0, bins)
        assert np.flatnonzero(bins).tolist() == [1, 2, 3, 4, 7, 8, 9, 10]
        assert bins.sum() == 8


def test_ranks_go_to_the_first_of_equals(plain):
    values = np.array([[2, 5, np.nan], [3, 5, np.inf], [2, 4, 1], [9, 6, np.nan]], float)
    inputs = np.repeat([[10], [11], [12], [13]], 3, axis=1)
    for module in (plain, compiled):
        best, numbers = np.full((3, 2), np.nan), np.full((3, 2), -1)
        module.rank(values, inputs, 1.0, best, numbers)
        np.testing.assert_array_equal(best, [[9, 3], [6, 5], [1, np.nan]])
        assert numbers.tolist() == [[13, 11], [13, 10], [12, -1]]
        best, numbers = np.full((3, 2), np.nan), np.full((3, 2), -1)
        module.rank(values, inputs, -1.0, best, numbers)
        np.testing.assert_array_equal(best, [[2, 2], [4, 5], [1, np.nan]])
        assert numbers.tolist() == [[10, 12], [12, 10], [12, -1]]


def test_counts_of_inputs_are_added_and_those_without_an_element_but_0(plain):
    counts = np.array(
        [[[3, 0], [2, 0]], [[3, 0], [1, 0]], *[[[0, 0], [k, 0]] for k in range(4)]]
    )
    for module in (plain, compiled):
        totals = np.ones((7, 2), int)
        module.add_counts(np.array([3, 0]), counts, totals)
        assert totals.tolist() == [[7, 1], [5, 1], [1, 1], [2, 1], [3, 1], [4, 1], [2, 1]]


def test_no_inputs_are_ranked(plain):
    """Elements around the arrays show what would be written beyond them."""
    values, inputs = np.array([[3.0, 4.0]]), np.array([[8, 9]])
    for module in (compiled, plain):
        whole, numbers = np.full(4, -1.0), np.full(4, -1)
        best, best_inputs = whole[1:1].reshape(2, 0), numbers[1:1].reshape(2, 0)
        module.rank(values, inputs, 1.0, best, best_inputs)
        assert (whole == -1).all()
        assert (numbers == -1).all()
