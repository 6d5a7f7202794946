"""What commands can know of the window."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from kuiper_studio.command_state import command_state
from kuiper_studio.commands import CommandState
from kuiper_studio.selection_history import SelectionHistory
from kuiper_studio.session import RunState

NET = (
    "pnnx.Input in 0 1 0 #0=(2,3)f32",
    "nn.Linear fc 1 1 0 1 bias=False in_features=3 out_features=3 @weight=(3,3)f32",
    "my.Own strange 1 1 1 2",
    "pnnx.Output out 1 0 2",
)
CANVAS = SimpleNamespace(
    has_groups=True, is_grouped=False, can_open_group=True, can_close_group=False
)
TENSORS = SimpleNamespace(has_theirs=True, has_worst=False)
PLAIN = SimpleNamespace(
    has_groups=False, is_grouped=False, can_open_group=False, can_close_group=False
)
ALONE = SimpleNamespace(has_theirs=False, has_worst=False)


@pytest.fixture
def opened(open_model, make_pair):
    return open_model(make_pair(*NET, weights={"fc.weight": np.zeros((3, 3), np.float32)}))


def test_without_a_model_nothing_is_there(empty_session):
    history = SelectionHistory(empty_session)
    found = command_state(empty_session, history, PLAIN, ALONE)
    assert found == CommandState(RunState.EMPTY)


def test_what_views_know(empty_session):
    found = command_state(empty_session, SelectionHistory(empty_session), CANVAS, TENSORS)
    assert found == CommandState(
        RunState.EMPTY, has_theirs=True, has_groups=True, can_open_group=True
    )


@pytest.mark.parametrize(
    ("name", "has_output", "can_supply", "lacks_layer"),
    [
        ("in", True, False, False),
        ("fc", True, True, False),
        ("strange", True, True, True),
        ("out", False, False, False),
    ],
)
def test_the_selected_operator(opened, name, has_output, can_supply, lacks_layer):
    opened.select(name)
    found = command_state(opened, SelectionHistory(opened), PLAIN, ALONE)
    assert found.selected
    assert (found.has_output, found.can_supply) == (has_output, can_supply)
    assert found.lacks_layer is lacks_layer
    assert found.has_weights is (name == "fc")


def test_where_the_user_came_from(opened):
    history = SelectionHistory(opened)
    opened.select("fc")
    opened.select("strange")
    found = command_state(opened, history, PLAIN, ALONE)
    assert (found.can_go_back, found.can_go_forward) == (True, False)
    history.go_back()
    found = command_state(opened, history, PLAIN, ALONE)
    assert found.can_go_forward


def test_a_breakpoint_can_be_undone(opened):
    opened.toggle_breakpoint("fc")
    assert command_state(opened, SelectionHistory(opened), PLAIN, ALONE).can_undo
