"""What is shown of a value: slices, ranges, maps, and what is remembered."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.axes import Axis, Layout
from engine.axes import Kind as Meaning
from engine.comparison.measures import measure
from kuiper_studio.tensor_view.choice import Scope, ValueRange
from kuiper_studio.tensor_view.element import Counterpart
from kuiper_studio.tensor_view.facts import channel_facts, percentile_range, thinned
from kuiper_studio.tensor_view.view_model import TensorViewModel

SIGNED = np.linspace(-1, 3, 2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
# Of three channels the second varies most, and the last not at all.
WAVES = np.outer([1, 4, 0], np.linspace(-1, 1, 20)).reshape(1, 3, 4, 5)
POSITIVE = np.linspace(0, 8, 3 * 4 * 5, dtype=np.float32).reshape(1, 3, 4, 5)


@pytest.fixture
def model():
    return TensorViewModel()


def show(model, value, name="x"):
    model.set_value(name, value)
    return model


# Slices


def test_planes_are_views_of_the_sample(model):
    show(model, SIGNED).set_fixed(0, 1)
    model.set_channel(2)
    assert np.shares_memory(model.plane, SIGNED)
    np.testing.assert_array_equal(model.plane, SIGNED[1, 2])
    np.testing.assert_array_equal(model.raw_plane, SIGNED[1, 2])


def test_of_channels_last_only_the_shown_channel_is_copied(model):
    show(model, SIGNED).set_channels_last(True)
    assert np.shares_memory(model.planes, SIGNED)
    for channel in (3, 1, 3):
        model.set_channel(channel)
        np.testing.assert_array_equal(model.plane, SIGNED[0, :, :, channel])
        assert model.plane.flags.c_contiguous
    model.set_fixed(0, 1)
    np.testing.assert_array_equal(model.plane, SIGNED[1, :, :, 3])


def test_depth_of_five_dimensions(model):
    value = np.arange(2 * 3 * 4 * 5 * 6).reshape(2, 3, 4, 5, 6)
    show(model, value).set_fixed(1, 3)
    model.set_channel(1)
    np.testing.assert_array_equal(model.plane, value[0, 1, 3])
    assert model.element(2, 5).index == (0, 1, 3, 2, 5)


def test_vector_is_one_row_and_a_table_of_one_column(model):
    show(model, np.arange(10.0).reshape(1, 10))
    assert model.planes.shape == (1, 1, 10)
    assert model.raw_plane.shape == (10, 1)


def test_channels_of_one_pixel_are_a_vector_of_the_sample(model):
    value = np.arange(12.0).reshape(2, 6, 1, 1)
    show(model, value).set_fixed(0, 1)
    assert model.planes[0, 0].tolist() == [6, 7, 8, 9, 10, 11]
    assert model.element(0, 4).index == (1, 4, 0, 0)


@pytest.mark.parametrize("value", [None, 5, 2.5, True, "text", ()])
def test_values_that_are_no_arrays(model, value):
    show(model, value)
    assert not model.has_picture
    assert model.picked() is None
    assert model.element(0, 0) is None
    assert model.describe()


def test_members_of_nested_tuples(model):
    show(model, (SIGNED, (POSITIVE, 7)))
    assert model.members == 3
    assert model.array is SIGNED
    model.set_member(1)
    assert model.array is POSITIVE
    assert model.describe() == "[1] 1×3×4×5 f32"
    assert model.expression((0, 1, 2, 3)) == "session.value('x')[1][0][0, 1, 2, 3]"
    model.set_member(2)
    assert model.array is None
    assert model.member_value == 7


def test_pages_of_channels(model):
    value = np.zeros((1, 600, 2, 2), np.float32)
    value[0, 520] = 1
    show(model, value).set_channel(520)
    assert (model.page, model.pages) == (2, 3)
    assert model.page_planes().shape == (88, 2, 2)
    assert model.page_facts().high[8] == 1


def test_indexes_stay_within_a_smaller_value(model):
    show(model, np.zeros((4, 64, 20, 20)))
    model.set_fixed(0, 3)
    model.set_channel(63)
    model.set_pick((19, 19))
    show(model, np.zeros((2, 8, 5, 6)))
    assert model.choice.fixed == (1,)
    assert model.channel == 7
    assert model.choice.pick == (4, 5)


# Elements


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(np.full((2, 2), 0.7607457, np.float32), "0.7607457", id="f32"),
        pytest.param(np.full((2, 2), 0.1), "0.1", id="f64"),
        pytest.param(np.full((2, 2), 0.1, np.float16), "0.1", id="f16"),
        pytest.param(np.full((2, 2), 2**60 + 1), "1152921504606846977", id="i64"),
        pytest.param(np.full((2, 2), 1 - 2j, np.complex64), "(1-2j)", id="c64"),
        pytest.param(np.full((2, 2), fill_value=True), "True", id="bool"),
        pytest.param(np.full((2, 2), np.nan), "nan", id="nan"),
    ],
)
def test_elements_are_exact_whatever_the_range(model, value, text):
    show(model, value)
    model.set_range(100, 200)
    element = model.element(1, 0)
    assert element.text == text
    assert str(element) == f"[1, 0] {text}"
    assert element.value.dtype == value.dtype


def test_elements_outside(model):
    show(model, SIGNED)
    assert model.element(4, 0) is None
    assert model.element(0, -1) is None


def test_expression_of_a_scalar(model):
    assert show(model, np.array(1.0)).expression(()) == "session.value('x')[()]"


# Range and map


@pytest.mark.parametrize(
    ("value", "color_map", "expected"),
    [
        pytest.param(SIGNED, "RdBu_r", (-3, 3), id="signed"),
        pytest.param(POSITIVE, "viridis", (0, 8), id="unsigned"),
        pytest.param(-POSITIVE, "viridis", (-8, 0), id="negative"),
        pytest.param(np.zeros((2, 2)), "viridis", (-1e-6, 1e-6), id="zeros"),
        pytest.param(np.ones((2, 2), bool), "viridis", (0, 1), id="all-true"),
        pytest.param(np.zeros((2, 2), bool), "viridis", (0, 1), id="all-false"),
        pytest.param(np.full((2, 2), 7), "viridis", (6.5, 7.5), id="one-integer"),
        pytest.param(np.full((2, 2), 50.0), "viridis", (50 - 5e-5, 50 + 5e-5), id="constant"),
        pytest.param(np.full((2, 2), np.nan), "viridis", (0, 1), id="all-NaN"),
        pytest.param(np.array([[np.inf, 1], [-np.inf, 2]]), "viridis", (1, 2), id="infinite"),
        pytest.param(np.array([[3 + 4j, 0], [1, 1]]), "viridis", (0, 5), id="complex"),
        pytest.param(np.array([[True, False]] * 2), "viridis", (0, 1), id="bool"),
    ],
)
def test_automatic_range_and_map(model, value, color_map, expected):
    show(model, value)
    assert model.color_map == color_map
    assert (model.range.low, model.range.high) == pytest.approx(expected)


def test_range_is_unknown_where_nothing_is_finite(model):
    assert show(model, np.array([[np.nan, np.inf]] * 2)).data_range is None


def test_diverging_map_by_choice_keeps_zero_white(model):
    show(model, POSITIVE).set_map("PuOr")
    assert model.range == ValueRange(-8, 8)
    model.set_symmetric(False)
    assert model.range == ValueRange(0, 8)


def test_sequential_map_by_choice_is_not_symmetric(model):
    show(model, SIGNED).set_map("grey")
    assert model.range == ValueRange(-1, 3)
    model.set_map(None)
    assert model.range == ValueRange(-3, 3)


@pytest.mark.parametrize(
    ("low", "high"), [(2, 1), (1, 1), (math.nan, 1), (0, math.inf), (0, 5e-324)]
)
def test_impossible_ranges_are_ignored(model, low, high):
    show(model, POSITIVE).set_range(low, high)
    assert model.range == ValueRange(0, 8)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        pytest.param(-3, 1.5, (-1.5, 1.5), id="high-moved"),
        pytest.param(-2, 3, (-2, 2), id="low-moved"),
    ],
)
def test_symmetric_range_follows_the_end_that_moved(model, low, high, expected):
    show(model, SIGNED).set_range(low, high)
    assert (model.range.low, model.range.high) == expected


def test_symmetry_is_put_on_the_present_range(model):
    show(model, SIGNED).set_symmetric(False)
    model.set_range(-0.5, 2)
    model.set_symmetric(True)
    assert model.range == ValueRange(-2, 2)


def test_reset_and_autofit(model):
    show(model, SIGNED).reset_range()
    assert model.range == ValueRange(-1, 1)
    model.autofit()
    assert model.range == ValueRange(-3, 3)
    show(model, POSITIVE, "y").reset_range()
    assert model.range == ValueRange(0, 1)


def test_axis_contains_data_and_range(model):
    show(model, POSITIVE)
    model.set_range(2, 4)
    assert model.axis == ValueRange(0, 8)
    model.set_range(2, 20)
    assert model.axis == ValueRange(0, 20)


def test_zoomed_axis(model):
    show(model, POSITIVE).set_range(2, 4)
    model.zoom_axis()
    assert model.axis == ValueRange(2, 4)
    model.set_range(1, 4)  # typed: beyond the axis
    assert model.axis == ValueRange(1, 4)
    model.autofit()
    assert model.axis == ValueRange(0, 8)


def test_percentiles(model):
    value = np.arange(1001.0).reshape(7, 143)
    value[0, 0], value[6, 142] = -1e9, 1e9
    show(model, value)
    model.set_symmetric(False)
    model.cut_percentiles()
    assert (model.range.low, model.range.high) == pytest.approx((10, 990))


def test_percentiles_of_nothing_finite(model):
    show(model, np.full((3, 3), np.nan)).cut_percentiles()
    assert model.choice.range is None


def test_scope_of_a_channel(model):
    show(model, POSITIVE).set_scope(Scope.CHANNEL)
    model.set_channel(1)
    low, high = POSITIVE[0, 1].min(), POSITIVE[0, 1].max()
    assert (model.range.low, model.range.high) == pytest.approx((low, high))
    lows, highs = model.page_range()
    assert lows.shape == (3, 1, 1)
    np.testing.assert_allclose(highs.ravel(), [POSITIVE[0, c].max() for c in range(3)])
    model.set_range(0, 1)
    assert model.page_range() == (0, 1)


def test_map_does_not_change_from_channel_to_channel(model):
    show(model, SIGNED).set_scope(Scope.CHANNEL)
    model.set_channel(2)  # all positive
    assert model.color_map == "RdBu_r"


# What is remembered


def test_choices_are_remembered_by_operand(model):
    show(model, POSITIVE, "a")
    model.set_channel(2)
    model.set_range(1, 2)
    model.set_map("magma")
    show(model, WAVES, "b")
    assert (model.channel, model.color_map) == (1, "RdBu_r")
    show(model, POSITIVE * 2, "a")
    assert model.channel == 2
    assert model.range == ValueRange(1, 2)
    assert model.color_map == "magma"
    assert model.remembered("b").channel is None
    assert model.remembered("c") is None


def test_automatic_range_follows_the_values(model):
    show(model, POSITIVE, "a")
    show(model, POSITIVE * 2, "a")
    assert model.range == ValueRange(0, 16)


def test_forget(model):
    show(model, WAVES, "a").set_channel(2)
    model.forget_choices()
    show(model, WAVES, "a")
    assert model.channel == 1


def test_a_channel_that_tells_something_comes_first(model):
    image = np.zeros((1, 6, 8, 8), np.float32)
    image[0, 4, 2:5] = 3
    show(model, image, "a")
    assert model.channel == 4
    assert model.choice.channel is None


def test_another_value_may_have_another_telling_channel_until_one_is_chosen(model):
    image = np.zeros((1, 6, 8, 8), np.float32)
    image[0, 4, 2:5] = 3
    show(model, image, "a")
    show(model, np.roll(image, 1, axis=1), "a")
    assert model.channel == 5
    model.set_channel(0)
    show(model, image, "a")
    assert model.channel == 0


def test_the_channel_stays_from_sample_to_sample(model):
    image = np.zeros((2, 6, 8, 8), np.float32)
    image[0, 4, 2:5] = image[1, 1, 2:5] = 3
    show(model, image, "a")
    model.set_fixed(0, 1)
    assert model.channel == 4


# Facts


def test_channel_facts():
    planes = np.zeros((4, 2, 2), np.float32)
    planes[1] = [[1, 2], [3, np.nan]]
    planes[2] = np.inf
    planes[3] = 0.25
    facts = channel_facts(planes)
    np.testing.assert_array_equal(facts.low, [0, 1, np.nan, 0.25])
    np.testing.assert_array_equal(facts.high, [0, 3, np.nan, 0.25])
    assert facts.special.tolist() == [0, 1, 4, 0]
    assert [facts.flat_text(c) for c in range(4)] == ["0", "", "", "0.25"]


def test_thinned():
    values = np.arange(10)
    assert thinned(values, 10) is not None
    assert thinned(values, 10).tolist() == list(range(10))
    assert thinned(values, 4).tolist() == [0, 3, 6, 9]


def test_percentile_range():
    assert percentile_range(np.arange(101.0), 10) == (10, 90)
    assert percentile_range(np.array([np.nan])) is None


def test_a_folded_value_is_compared_at_the_same_elements():
    grid = Axis(Meaning.TOKEN, 6, (Axis(Meaning.ROW, 2), Axis(Meaning.COLUMN, 3)))
    layout = Layout((Axis(Meaning.BATCH, 1), grid, Axis(Meaning.FEATURE, 4)))
    ours = np.arange(24, dtype=np.float32).reshape(1, 6, 4)
    theirs = ours.copy()
    theirs[0, 5, 2] += 3
    measures = measure(ours, theirs)
    model = TensorViewModel()
    counterpart = Counterpart(theirs, measures, worst=(0, 5, 2))
    model.set_value("x", ours, counterpart=counterpart, layout=layout)
    assert model.reading.plane == (2, 3)
    assert model.channel == 2  # of the worst element
    np.testing.assert_array_equal(model.other_plane(), theirs[0, :, 2].reshape(2, 3))
    np.testing.assert_array_equal(model.difference_plane(), [[0, 0, 0], [0, 0, -3]])
    element = model.element(1, 2)
    assert (element.index, element.value) == ((0, 5, 2), ours[0, 5, 2])
    assert "reference 25.0" in element.compared
