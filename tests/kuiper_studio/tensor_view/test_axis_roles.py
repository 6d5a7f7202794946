"""Where axes go, without widgets: every arrangement against NumPy's indexing."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from engine.axes import Axis, Layout
from engine.axes import Kind as Meaning
from kuiper_studio.tensor_view.axis_roles import (
    AxisRole,
    are_possible,
    offered_roles,
    roles_from_names,
    with_role,
)
from kuiper_studio.tensor_view.reading import Kind
from kuiper_studio.tensor_view.view_model import TensorViewModel

ROW, COLUMN, FACET, COLOR, SLIDER = (
    AxisRole.ROW, AxisRole.COLUMN, AxisRole.FACET, AxisRole.COLOR, AxisRole.SLIDER,
)  # fmt: skip
GRID = Axis(Meaning.TOKEN, 6, (Axis(Meaning.ROW, 2), Axis(Meaning.COLUMN, 3)))
TOKENS = Axis(
    Meaning.TOKEN, 11,
    segments=(Axis(Meaning.CLASS_TOKEN, 1), Axis(Meaning.REGISTER_TOKEN, 4), GRID),
)  # fmt: skip


def model_of(value, layout=None):
    model = TensorViewModel()
    model.set_value("x", value, layout=layout)
    return model


def arrange(model, roles):
    for axis, role in enumerate(roles):
        model.set_role(axis, role)


@pytest.fixture
def value():
    return np.random.default_rng(5).normal(size=(3, 4, 5, 6)).astype(np.float32)


@pytest.mark.parametrize("roles", list(permutations([ROW, COLUMN, FACET, SLIDER])))
def test_every_arrangement_shows_the_array_s_elements(value, roles):
    model = model_of(value)
    arrange(model, roles)
    assert model.roles == roles
    row, column, facet, slider = (roles.index(each) for each in (ROW, COLUMN, FACET, SLIDER))
    model.set_fixed(0, 2)
    model.set_channel(1)
    index = [0, 0, 0, 0]
    index[slider], index[facet] = 2, 1
    assert model.planes.shape == tuple(value.shape[axis] for axis in (facet, row, column))
    for place in np.ndindex(value.shape[row], value.shape[column]):
        index[row], index[column] = place
        assert model.plane[place] == value[tuple(index)]
        assert model.element(*place).index == tuple(index)


def test_an_index_leads_to_its_place(value):
    model = model_of(value)
    arrange(model, (COLUMN, SLIDER, ROW, FACET))
    model.set_place((2, 3, 4, 5))
    assert model.choice.fixed == (3,)
    assert model.channel == 5
    assert model.choice.pick == (4, 2)
    assert model.picked().value == value[2, 3, 4, 5]


def test_one_axis_alone_is_a_vector(value):
    model = model_of(value[0])
    arrange(model, (SLIDER, SLIDER, COLUMN))
    assert model.reading.kind is Kind.VECTOR
    model.set_fixed(0, 2)
    model.set_fixed(1, 1)
    np.testing.assert_array_equal(model.planes[0, 0], value[0, 2, 1])


def test_a_mosaic_of_rows_without_columns(value):
    model = model_of(value[0])
    model.set_role(0, SLIDER)
    model.set_role(1, SLIDER)
    model.set_role(0, FACET)
    assert model.planes.shape == (4, 1, 6)
    np.testing.assert_array_equal(model.planes[:, 0], value[0, :, 0])


def test_three_positions_are_red_green_and_blue(value):
    model = model_of(value)
    model.set_role(0, FACET)
    model.set_role(1, COLOR)
    assert model.roles == (FACET, COLOR, ROW, COLUMN)
    model.set_channel(2)
    np.testing.assert_array_equal(model.color_plane(), value[2, :3])
    model.set_colors((3, 0, 9))
    assert model.choice.colors == (3, 0, 3)
    np.testing.assert_array_equal(model.color_plane(), value[2, [3, 0, 3]])
    np.testing.assert_array_equal(
        model.page_color_planes(), value[:, [3, 0, 3]].transpose(1, 0, 2, 3)
    )
    element = model.element(4, 5)
    assert element.index == (2, 3, 4, 5)
    assert str(value[2, 0, 4, 5]) in str(element)
    assert model.color_map == "grey"
    assert model.range.low == -model.range.high  # grey is zero


def test_what_can_be_shown():
    assert not are_possible((SLIDER, SLIDER), (2, 3))
    assert not are_possible((FACET, SLIDER), (2, 3))
    assert not are_possible((ROW, ROW), (2, 3))
    assert not are_possible((ROW, COLOR), (9, 2))
    assert not are_possible((ROW,), (9, 2))
    assert offered_roles((ROW, COLUMN), (2, 3), 0) == (ROW, COLUMN, FACET, SLIDER)
    assert offered_roles((SLIDER, COLUMN), (2, 3), 1) == (ROW, COLUMN)
    assert with_role((FACET, ROW, COLUMN), 0, ROW) == (ROW, FACET, COLUMN)


def test_places_stay_with_their_axes(value):
    model = model_of(value)
    model.set_fixed(0, 2)
    model.set_channel(3)
    model.swap_axes(0, 1)  # the sample is now a tile, and the channel on the slider
    assert model.roles == (FACET, SLIDER, ROW, COLUMN)
    assert model.channel == 2
    np.testing.assert_array_equal(model.plane, value[2, 3])


def test_roles_are_remembered_by_meaning(value):
    kinds = (Meaning.BATCH, Meaning.HEAD, Meaning.QUERY, Meaning.KEY)

    def laid_out(array):
        return Layout(tuple(map(Axis, kinds, array.shape)))

    model = model_of(value, laid_out(value))
    model.set_role(2, FACET)
    chosen = (SLIDER, ROW, FACET, COLUMN)
    assert model.roles == chosen
    other = np.ones((2, 9, 7, 7))
    model.set_value("other", other, layout=laid_out(other))
    assert model.roles == chosen
    model.set_value("plain", value)
    assert model.roles == (SLIDER, FACET, ROW, COLUMN)
    again = model_of(value, laid_out(value))
    assert again.restore_roles(model.chosen_roles)
    assert again.roles == chosen
    again.reset_roles()
    assert again.roles == (SLIDER, FACET, ROW, COLUMN)
    assert not again.chosen_roles


def test_names_of_other_versions_are_left_out():
    known = {"a": ("ROW", "COLUMN"), "b": ("ROW", "SPIRAL")}
    assert roles_from_names(known) == {"a": (ROW, COLUMN)}


def test_tokens_beside_the_grid_can_be_shown():
    value = np.random.default_rng(3).normal(size=(1, 11, 8)).astype(np.float32)
    layout = Layout((Axis(Meaning.BATCH, 1), TOKENS, Axis(Meaning.FEATURE, 8)))
    model = model_of(value, layout)
    assert model.parts == (("class", "registers", "2×3 tokens"), 2)
    assert model.planes.shape == (8, 2, 3)
    model.set_part(0)
    assert model.reading.kind is Kind.VECTOR
    np.testing.assert_array_equal(model.planes[0, 0], value[0, 0])
    assert model.element(0, 5).index == (0, 0, 5)
    model.set_part(1)
    np.testing.assert_array_equal(model.plane, value[0, 1:5])
    assert model.element(2, 5).index == (0, 3, 5)
    model.set_part(2)
    assert model.planes.shape == (8, 2, 3)
