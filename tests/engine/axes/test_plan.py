"""Folded views against indexing written as loops."""

from __future__ import annotations

import numpy as np
import pytest

from engine.axes import Axis, Kind, Layout, plan_view

FEATURES = Axis(Kind.FEATURE, 5)
BATCH = Axis(Kind.BATCH, 1)


def grid(rows: int, columns: int) -> Axis:
    factors = (Axis(Kind.ROW, rows), Axis(Kind.COLUMN, columns))
    return Axis(Kind.TOKEN, rows * columns, factors)


def windows(rows: int, columns: int, shift: int = 0) -> Axis:
    factors = (Axis(Kind.ROW, rows, shift=shift), Axis(Kind.COLUMN, columns, shift=shift))
    return Axis(Kind.WINDOW, rows * columns, factors)


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape)


def test_tokens_fold_to_their_grid_without_the_class_token() -> None:
    tokens = Axis(Kind.TOKEN, 7, segments=(Axis(Kind.CLASS_TOKEN, 1), grid(2, 3)))
    plan = plan_view(Layout((BATCH, tokens, FEATURES)), (1, 7, 5))
    assert plan is not None
    array = numbers(1, 7, 5)
    folded = plan.fold(array)
    assert folded.shape == plan.folded_shape == (1, 5, 2, 3)
    for channel in range(5):
        for row in range(2):
            for column in range(3):
                assert (
                    folded[0, channel, row, column] == array[0, 1 + 3 * row + column, channel]
                )
    assert np.shares_memory(folded, array)
    assert not plan.is_whole
    assert plan.place((0, 0, 2)) is None
    assert plan.place((0, 4, 2)) == (0, 2, 1, 0)


def test_what_follows_the_grid_has_no_place_in_it() -> None:
    tokens = Axis(Kind.TOKEN, 7, segments=(grid(2, 3), Axis(Kind.REGISTER_TOKEN, 1)))
    plan = plan_view(Layout((BATCH, tokens, FEATURES)), (1, 7, 5))
    assert plan is not None
    assert plan.place((0, 5, 2)) == (0, 2, 1, 2)  # the last of the grid
    assert plan.place((0, 6, 2)) is None


def test_rows_and_columns_of_the_same_number_are_still_turned() -> None:
    plan = plan_view(Layout((FEATURES, Axis(Kind.COLUMN, 3), Axis(Kind.ROW, 3))), (5, 3, 3))
    assert plan is not None
    array = numbers(5, 3, 3)
    np.testing.assert_array_equal(plan.fold(array), array.transpose(0, 2, 1))


def test_windows_are_outside_wherever_their_dimension_is() -> None:
    image = numbers(4, 6, 5)
    cut = np.empty((4, 6, 5), int)  # position inside, window, feature
    for row, column in np.ndindex(4, 6):
        inside, window = 2 * (row % 2) + column % 2, 3 * (row // 2) + column // 2
        cut[inside, window] = image[row, column]
    plan = plan_view(Layout((grid(2, 2), windows(2, 3), FEATURES)), (4, 6, 5))
    assert plan is not None
    np.testing.assert_array_equal(plan.fold(cut), image.transpose(2, 0, 1))


def test_windows_are_joined_and_unrolled() -> None:
    layout = Layout((windows(2, 2, shift=3), grid(2, 2), FEATURES))  # rolled by -1 of 4
    image = numbers(4, 4, 5)
    rolled = np.roll(image, (-1, -1), (0, 1))
    cut = np.stack(
        [rolled[2 * r : 2 * r + 2, 2 * c : 2 * c + 2].reshape(4, 5)
         for r in range(2) for c in range(2)]
    )  # fmt: skip
    plan = plan_view(layout, (4, 4, 5))
    assert plan is not None
    np.testing.assert_array_equal(plan.fold(cut), image.transpose(2, 0, 1))


def test_windows_of_a_volume_are_joined_along_all_three_axes() -> None:
    kinds = (Kind.DEPTH, Kind.ROW, Kind.COLUMN)
    outer = Axis(Kind.WINDOW, 8, tuple(Axis(kind, 2) for kind in kinds))
    inner = Axis(Kind.TOKEN, 12, tuple(map(Axis, kinds, (3, 2, 2))))
    volume = numbers(6, 4, 4, 5)
    cut = np.stack(
        [volume[3 * p : 3 * p + 3, 2 * r : 2 * r + 2, 2 * c : 2 * c + 2].reshape(12, 5)
         for p in range(2) for r in range(2) for c in range(2)]
    )  # fmt: skip
    plan = plan_view(Layout((outer, inner, FEATURES)), (8, 12, 5))
    assert plan is not None
    assert plan.folded_shape == (6, 5, 4, 4)
    np.testing.assert_array_equal(plan.fold(cut), volume.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("heads", [1, 3])
def test_channels_last_become_pictures(heads: int) -> None:
    axes = (Axis(Kind.HEAD, heads), Axis(Kind.ROW, 2), Axis(Kind.COLUMN, 3), FEATURES)
    plan = plan_view(Layout(axes), (heads, 2, 3, 5))
    assert plan is not None
    array = numbers(heads, 2, 3, 5)
    np.testing.assert_array_equal(plan.fold(array), np.moveaxis(array, -1, 1))
    assert [role.name for role in plan.roles] == ["heads", "features", "rows", "columns"]


@pytest.mark.parametrize("kind", [Kind.FEATURE, Kind.CHANNEL])
def test_time_runs_from_left_to_right(kind: Kind) -> None:
    axes = (BATCH, Axis(Kind.TIME, 7), Axis(kind, 5))
    plan = plan_view(Layout(axes), (1, 7, 5))
    assert plan is not None
    array = numbers(1, 7, 5)
    np.testing.assert_array_equal(plan.fold(array), array.transpose(0, 2, 1))
    assert plan.index((0, 4, 6)) == (0, 6, 4)
    assert [role.name for role in plan.roles] == ["batch", kind.value, "time"]


def test_a_spectrogram_runs_from_left_to_right() -> None:
    """Its tokens fold to frequencies and time, as its frames do."""
    side = Axis(Kind.FREQUENCY, 2), Axis(Kind.TIME, 3)
    for axes, shape, order in (
        ((BATCH, side[1], side[0]), (1, 3, 2), (0, 2, 1)),
        ((BATCH, Axis(Kind.TOKEN, 6, side), FEATURES), (1, 6, 5), (0, 3, 1, 2)),
    ):
        plan = plan_view(Layout(axes), shape)
        assert plan is not None
        array = numbers(*shape)
        parts = array.reshape(1, 2, 3, 5) if len(order) > 3 else array
        np.testing.assert_array_equal(plan.fold(array), parts.transpose(order))
        assert [role.name for role in plan.roles][-2:] == ["frequencies", "time"]


def test_every_element_is_found_in_both_directions() -> None:
    layout = Layout((windows(2, 3, shift=2), Axis(Kind.HEAD, 2), grid(2, 2), FEATURES))
    shape = (6, 2, 4, 5)
    plan = plan_view(layout, shape)
    assert plan is not None
    array = numbers(*shape)
    folded = plan.fold(array)
    for index in np.ndindex(shape):
        place = plan.place(index)
        assert place is not None
        assert folded[place] == array[index]
        assert plan.index(place) == index


@pytest.mark.parametrize(
    ("axes", "shape"),
    [
        ((BATCH, FEATURES, Axis(Kind.ROW, 2), Axis(Kind.COLUMN, 3)), (1, 5, 2, 3)),  # as it is
        ((BATCH, Axis(Kind.TOKEN, 6), FEATURES), (1, 6, 5)),  # no grid
        ((BATCH, FEATURES, Axis(Kind.TIME, 7)), (1, 5, 7)),  # as it is
        ((Axis(Kind.HEAD, 2), Axis(Kind.QUERY, 4), Axis(Kind.KEY, 4)), (2, 4, 4)),
        ((BATCH, grid(2, 3), FEATURES), (1, 7, 5)),  # another shape
        ((BATCH, grid(2, 3), FEATURES), (1, 6)),
        ((BATCH, Axis(Kind.TOKEN, 7, grid(2, 3).factors), FEATURES), (1, 7, 5)),
        ((Axis(Kind.ROW, 0), Axis(Kind.COLUMN, 3), FEATURES), (0, 3, 5)),
        ((BATCH, Axis(Kind.TOKEN, 6, segments=(grid(0, 3), FEATURES)), FEATURES), (1, 6, 5)),
        ((BATCH, Axis(Kind.TOKEN, 1, grid(1, 1).factors), FEATURES), (1, 1, 5)),  # one element
        ((BATCH, Axis(Kind.TIME, 7), Axis(Kind.COORDINATE, 4)), (1, 7, 4)),  # no features
        ((grid(2, 3), grid(2, 2), FEATURES), (6, 4, 5)),  # which one is inside?
        ((), ()),
    ],
)
def test_other_arrays_are_shown_as_they_are(
    axes: tuple[Axis, ...], shape: tuple[int, ...]
) -> None:
    assert plan_view(Layout(axes), shape) is None
