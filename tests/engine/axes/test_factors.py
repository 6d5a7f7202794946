"""Relations of factors, worked out by hand."""

from __future__ import annotations

import pytest

from engine.axes.factors import Factors, Rank
from engine.axes.layout import Kind


@pytest.fixture
def factors() -> Factors:
    return Factors()


def sizes(factors: Factors, dims: tuple[tuple[int, ...], ...]) -> list[list[object]]:
    return [[factors.sizes[factor] for factor in dim] for dim in dims]


def test_flattening_keeps_factors_and_unflattening_finds_them_again(factors: Factors) -> None:
    image = factors.make_dims((1, 768, 7, 7))
    tokens = factors.regroup(image, (1, 768, 49))
    assert tokens == (image[0], image[1], (*image[2], *image[3]))
    assert factors.regroup(tokens, (1, 768, 7, 7)) == image


def test_reshape_splits_factors(factors: Factors) -> None:
    dims = factors.make_dims((1, 50, 2304))
    split = factors.regroup(dims, (1, 50, 3, 12, 64))
    assert sizes(factors, split) == [[1], [50], [3], [12], [64]]
    assert factors.regroup(split, (1, 50, 2304)) == dims  # the parts are whole again


def test_windows_are_two_levels_of_rows_and_columns(factors: Factors) -> None:
    image = factors.make_dims((1, 56, 56, 96))
    cut = factors.regroup(image, (1, 8, 7, 8, 7, 96))
    ordered = (cut[0], cut[1], cut[3], cut[2], cut[4], cut[5])
    windows = factors.regroup(ordered, (64, 49, 96))
    assert sizes(factors, windows) == [[1, 8, 8], [7, 7], [96]]


def test_a_later_split_applies_to_all_same_factors(factors: Factors) -> None:
    one, other = factors.make(768), factors.make(768)
    factors.unify((one,), (other,))
    factors.regroup(((one,),), (12, 64))
    assert [factors.sizes[leaf] for leaf in factors.leaves((other,))] == [12, 64]


def test_different_splits_are_refined_where_they_nest(factors: Factors) -> None:
    one, other = factors.make(56), factors.make(56)
    factors.regroup(((one,),), (8, 7))
    factors.regroup(((other,),), (4, 14))
    factors.unify((one,), (other,))
    assert [factors.sizes[leaf] for leaf in factors.leaves((one,))] == [4, 2, 7]


def test_a_reshape_may_add_another_split(factors: Factors) -> None:
    image = factors.make_dims((56, 96))
    windows = factors.regroup(image, (8, 7, 96))
    grid = factors.regroup(windows, (7, 8, 96))  # 8 and 7 are 56 again, and 7 times 8
    assert sizes(factors, grid) == [[7], [8], [96]]
    assert factors.wholes(grid[0][0]) == factors.wholes(windows[0][0]) == image[0]
    assert factors.regroup(grid, (56, 96)) == image
    assert factors.regroup(image, (7, 8, 96))[2] == image[1]


def test_splits_that_do_not_nest_stay_as_they_are(factors: Factors) -> None:
    one, other = factors.make(768), factors.make(768)
    factors.regroup(((one,),), (12, 64))
    factors.regroup(((other,),), (8, 96))
    factors.unify((one,), (other,))
    assert [factors.sizes[leaf] for leaf in factors.leaves((one,))] == [12, 64]


def test_reshape_of_unknown_sizes_keeps_equal_ends(factors: Factors) -> None:
    dims = factors.make_dims(("%n", None, 5, 8))
    found = factors.regroup(dims, ("%n", None, 8))
    assert (found[0], found[2]) == (dims[0], dims[3])
    assert found[1] not in dims


def test_rolling_back_returns_the_original_positions(factors: Factors) -> None:
    (rows,) = factors.make_dims((56,))
    rolled = factors.roll(rows, -3)
    assert rolled != rows
    assert factors.roll(rolled, 3) == rows
    assert factors.roll(rows, 53) == rolled  # the same, the long way round
    assert factors.shifts[rolled[0]] == (rows[0], 53)


def test_kin_share_evidence_but_not_positions(factors: Factors) -> None:
    (rows,) = factors.make_dims((56,))
    pooled = factors.derive(rows, 28)
    factors.claim(pooled, Kind.ROW, Rank.DECLARED)
    assert factors.kind(rows[0]) is Kind.ROW
    assert factors.find(rows[0]) != factors.find(pooled[0])


def test_stronger_evidence_is_kept_in_either_order(factors: Factors) -> None:
    for ranks in ((Rank.EXPECTED, Rank.DECLARED), (Rank.DECLARED, Rank.EXPECTED)):
        kinds = {Rank.EXPECTED: Kind.FEATURE, Rank.DECLARED: Kind.ROW}
        one, other = factors.make(9), factors.make(9)
        factors.claim((one,), kinds[ranks[0]], ranks[0])
        factors.claim((other,), kinds[ranks[1]], ranks[1])
        factors.unify((one,), (other,))
        assert factors.kind(one) is factors.kind(other) is Kind.ROW


def test_rows_and_columns_of_a_square_stay_different(factors: Factors) -> None:
    rows, columns = factors.make(14), factors.make(14)
    factors.claim((rows,), Kind.ROW, Rank.DECLARED)
    factors.claim((columns,), Kind.COLUMN, Rank.DECLARED)
    factors.unify((rows,), (columns,))
    assert (factors.kind(rows), factors.kind(columns)) == (Kind.ROW, Kind.COLUMN)
    assert factors.find(rows) != factors.find(columns)


def test_parts_have_the_meaning_of_their_whole(factors: Factors) -> None:
    ((whole,),) = dims = factors.make_dims((56,))
    outer, inner = factors.regroup(dims, (8, 7))
    factors.claim((whole,), Kind.ROW, Rank.DECLARED)
    factors.settle()
    assert factors.kind(outer[0]) is factors.kind(inner[0]) is Kind.ROW


@pytest.mark.parametrize("shape", [(0,), (0, 3), (), (1, 1), (None,), ("%a", 2), (7, 11)])
def test_any_shapes_can_be_regrouped(factors: Factors, shape: tuple[object, ...]) -> None:
    for source in ((0, 4), (1,), (), (6, 4), (None, 2), (2**31 - 1, 2)):
        dims = factors.make_dims(source)
        found = factors.regroup(dims, shape)
        assert [factors.extent(dim) for dim in found] == list(shape)
        for one in dims:
            for other in found:
                factors.unify(one, other)
    factors.settle()
