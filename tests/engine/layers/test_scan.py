"""Running sums, products and extremes."""

from __future__ import annotations

import itertools
import math
import operator

import numpy as np
import pytest

X = np.array([[3, 1, 2, 2], [1, 5, 4, 5]], np.float32)


@pytest.mark.parametrize(
    ("name", "function"), [("cumsum", operator.add), ("cumprod", operator.mul),
                           ("cummax", max), ("cummin", min)],
)  # fmt: skip
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_against_accumulate(run, name, function, dim):
    result = run(f"torch.{name}", X, dim=dim)
    values = result[0] if isinstance(result, tuple) else result
    expected = [list(itertools.accumulate(row, function)) for row in (X.T if dim == 0 else X)]
    np.testing.assert_array_equal(values.T if dim == 0 else values, expected)


def test_running_extremes_point_at_the_last(run):
    assert run("torch.cummax", X, dim=1)[1].tolist() == [[0, 0, 0, 0], [0, 1, 1, 3]]
    assert run("torch.cummin", X, dim=1)[1].tolist() == [[0, 1, 1, 1], [0, 0, 0, 0]]


def test_logcumsumexp(run):
    result = run("torch.logcumsumexp", np.array([0, 0, 1000], np.float32), dim=0)
    np.testing.assert_allclose(result, [0, math.log(2), 1000], rtol=1e-6)


def test_with_a_dtype(run):
    result = run("torch.cumsum", np.array([1.9, 1.9], np.float32), dim=0, dtype="torch.int")
    assert result.dtype == np.int32
    assert result.tolist() == [1, 2]


def test_sums_are_exact_to_the_end(run):
    x = np.full(100_000, 0.1, np.float32)
    result = run("torch.cumsum", x, dim=0)
    assert result[-1] == pytest.approx(float(x[0]) * 100_000, rel=1e-7)
