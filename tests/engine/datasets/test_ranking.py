"""Ranked inputs, against Python's sort of all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.datasets.ranking import Ranking, merge_ranked

TOP = 4
RNG = np.random.default_rng(3)
# Few different numbers, so many are equal; some are unknown.
VALUES = RNG.integers(0, 4, (150, 3)).astype(float)
VALUES[RNG.random(VALUES.shape) < 0.2] = np.nan
VALUES[7, 0], VALUES[8, 1] = np.inf, -np.inf
VALUES[:, 2] = np.nan
VALUES[[20, 90], 2] = 5.0, 5.0  # fewer than are kept


def ranked(inputs, batch):
    ranking = Ranking(("most", "least"), VALUES.shape[1], TOP)
    for begin in range(inputs.start, inputs.stop, batch):
        few = np.arange(begin, min(begin + batch, inputs.stop))
        ranking.add(few, VALUES[few])
    return ranking.finish()


def expected(row, *, largest):
    """The known inputs of a row, the best first and of equals the first one."""
    known = [i for i, value in enumerate(VALUES[:, row]) if math.isfinite(value)]
    best = sorted(known, key=lambda i: (-VALUES[i, row] if largest else VALUES[i, row], i))
    return best[:TOP]


def check(found):
    for name, largest in (("most", True), ("least", False)):
        for row in range(VALUES.shape[1]):
            best = expected(row, largest=largest)
            missing = TOP - len(best)
            assert found[f"{name}_inputs"][row].tolist() == best + [-1] * missing
            values = found[f"{name}_values"][row]
            np.testing.assert_array_equal(values[: len(best)], VALUES[best, row])
            assert np.isnan(values[len(best) :]).all()


@pytest.mark.parametrize("batch", [1, 7, 64, 150])
def test_the_first_of_equal_inputs_comes_first(batch):
    check(ranked(range(150), batch))


def test_ranges_are_merged_in_their_order():
    one, other = ranked(range(70), 7), ranked(range(70, 150), 7)
    check(
        merge_ranked(one, other, "most", largest=True)
        | merge_ranked(one, other, "least", largest=False)
    )


@pytest.mark.parametrize("shape", [(2, 3), (3, 1), (0, 2)])
@pytest.mark.parametrize("name", ["most_values", "most_inputs"])
def test_ranked_inputs_of_other_shapes_are_not_merged(name, shape):
    one = {"most_values": np.zeros((2, 2)), "most_inputs": np.zeros((2, 2), np.int64)}
    other = one | {name: np.zeros(shape, one[name].dtype)}
    for pair in ((one, other), (other, one)):
        with pytest.raises(ValueError, match=r"ranked inputs have the shapes .*\(2, 2\)"):
            merge_ranked(*pair, "most", largest=True)
