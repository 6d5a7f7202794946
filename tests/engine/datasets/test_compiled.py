"""Loops that Numba compiles, as plain Python and compiled, against sums of single rows."""

from __future__ import annotations

import importlib.util
from itertools import product
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from engine.datasets import compiled

WHOLE = {np.float32: np.int32, np.float64: np.int64}


@pytest.fixture(scope="module")
def plain():
    """The module without Numba, with pieces and blocks of few elements."""
    spec = importlib.util.spec_from_file_location("plain_loops", compiled.__file__)
    module = importlib.util.module_from_spec(spec)
    before, numba.config.DISABLE_JIT = numba.config.DISABLE_JIT, True
    try:
        spec.loader.exec_module(module)
    finally:
        numba.config.DISABLE_JIT = before
    module._PIECE, module._COLUMNS = 5, 3
    return module


def sums_of(loop, values, first=0, columns=None):
    """Let a loop sum an array whose channels are its second, or its last axis."""
    whole = WHOLE[values.dtype.type]
    channels = values.shape[1 if loop.__name__ == "sum_rows" else 2]
    shape = len(values), columns or channels
    low, high, total, squares = (np.full(shape, 7.0) for _ in range(4))
    zeros = np.full(shape, 7)
    with np.errstate(all="ignore"):
        loop(
            values, values.view(whole), whole(np.iinfo(whole).max), first,
            low, high, total, squares, zeros,
        )  # fmt: skip
    return SimpleNamespace(low=low, high=high, total=total, squares=squares, zeros=zeros)


def check(found, rows):
    """Compare with rows of elements, by inputs and channels."""
    for i, c in np.ndindex(rows.shape[:2]):
        row = rows[i, c].astype(np.float64)
        assert (found.low[i, c], found.high[i, c]) == (min(row), max(row))
        assert found.total[i, c] == pytest.approx(sum(row.tolist()), rel=1e-13, abs=1e-13)
        assert found.squares[i, c] == pytest.approx(sum(x * x for x in row.tolist()), rel=1e-13)
        assert found.zeros[i, c] == sum(x == 0 for x in row)


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("shape", [(1, 1, 1), (2, 7, 5), (2, 3, 6), (1, 4, 13)])
def test_sums_of_rows_and_columns_are_those_of_each_channel(plain, dtype, shape):
    rng = np.random.default_rng(0)
    rows = rng.normal(0, 3, shape).round().astype(dtype)
    columns = np.ascontiguousarray(rows.swapaxes(1, 2))
    for module in (plain, compiled):
        check(sums_of(module.sum_rows, rows), rows)
        check(sums_of(module.sum_columns, columns), rows)


@pytest.mark.parametrize("shape", [(1, 3, 4096), (1, 2, 10_000), (2, 2050, 40)])
def test_long_rows_and_many_columns_are_summed_in_pieces(shape):
    rows = np.random.default_rng(1).normal(1, 1, shape).astype(np.float32)
    wide = rows.astype(np.float64)
    for loop, values in (("sum_rows", rows), ("sum_columns", rows.swapaxes(1, 2).copy())):
        found = sums_of(getattr(compiled, loop), values)
        np.testing.assert_array_equal(found.low, rows.min(axis=2))
        np.testing.assert_array_equal(found.high, rows.max(axis=2))
        np.testing.assert_allclose(found.total, wide.sum(axis=2), rtol=1e-12)
        np.testing.assert_allclose(found.squares, (wide * wide).sum(axis=2), rtol=1e-12)


def test_only_the_columns_of_the_operand_are_written(plain):
    rows = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 4)
    for module, loop in product((plain, compiled), ("sum_rows", "sum_columns")):
        values = rows if loop == "sum_rows" else rows.swapaxes(1, 2).copy()
        found = sums_of(getattr(module, loop), values, first=2, columns=6)
        assert found.low.tolist() == [[7, 7, 1, 5, 9, 7]]
        assert found.total.tolist() == [[7, 7, 10, 26, 42, 7]]
        assert found.zeros.tolist() == [[7, 7, 0, 0, 0, 7]]


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 3, 40])
def test_the_ends_tell_of_any_element_that_is_not_finite(plain, bad, place):
    rows = np.random.default_rng(2).standard_normal((1, 2, 41)).astype(np.float32)
    rows[0, 1, place] = bad
    for module in (plain, compiled):
        for found in (
            sums_of(module.sum_rows, rows),
            sums_of(module.sum_columns, rows.swapaxes(1, 2).copy()),
        ):
            ends = np.isfinite(found.low) & np.isfinite(found.high)
            assert ends.tolist() == [[True, False]]


def test_the_sums_do_not_depend_on_where_an_array_lies():
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((1, 4, 777)).astype(np.float32)
    for loop, values in (("sum_rows", rows), ("sum_columns", rows.swapaxes(1, 2).copy())):
        expected = sums_of(getattr(compiled, loop), values)
        for moved in range(1, 17):
            room = np.zeros(values.size + moved, np.float32)
            there = room[moved:].reshape(values.shape)
            there[:] = values
            found = sums_of(getattr(compiled, loop), there)
            assert found.total.tobytes() == expected.total.tobytes()
            assert found.squares.tobytes() == expected.squares.tobytes()


@pytest.mark.parametrize(
    ("row", "facts", "counts"),
    [
        ([1, 2, 6], (1, 6, 3, 14), (3, 0, 0, 0, 0)),
        ([np.nan, 4, np.inf, 0, -np.inf, np.inf], (0, 4, 2, 8), (2, 1, 1, 2, 1)),
        ([np.nan, np.inf], (np.inf, -np.inf, 0, 0), (0, 0, 1, 1, 0)),
        ([2.5, 2.5, np.nan], (2.5, 2.5, 2.5, 0), (2, 0, 1, 0, 0)),
        ([0, 0, 0], (0, 0, 0, 0), (3, 3, 0, 0, 0)),
        # no sum of squares holds these: the second is exact in units of 2^-44
        ([3e200, -3e200, 0], (-3e200, 3e200, 0, np.inf), (3, 1, 0, 0, 0)),
        ([1 + 2**-44, 1, 1 - 2**-44], (1 - 2**-44, 1 + 2**-44, 1, 2**-87), (3, 0, 0, 0, 0)),
        ([1e308, -1e308, 1e308], (-1e308, 1e308, 1e308 / 3, np.inf), (3, 0, 0, 0, 0)),
        ([5e-324, 15e-324], (5e-324, 15e-324, 10e-324, 0), (2, 0, 0, 0, 0)),
    ],
)
def test_channels_with_any_elements_are_measured(plain, row, facts, counts):
    values = np.zeros((2, len(row), 3))
    values[1, :, 2] = row
    for module in (plain, compiled):
        found, numbers = np.full((4, 1), 7.0), np.full((5, 1), 7)
        with np.errstate(all="ignore"):
            module.measure_any(
                values.swapaxes(1, 2), np.array([1]), np.array([2]), found, numbers
            )
        np.testing.assert_allclose(found[:, 0], facts, rtol=1e-15)
        assert tuple(numbers[:, 0]) == counts
