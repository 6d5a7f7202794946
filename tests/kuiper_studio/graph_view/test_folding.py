"""What is visible as groups open and close."""

from __future__ import annotations

import gc

import pytest

from kuiper_studio.graph_view.folding import Folding, short_name
from kuiper_studio.layout.groups import Group, OutlineRow

BLOCKS = tuple(Group(f"layers.{n}", 2 + 4 * n, 5 + 4 * n) for n in range(12))
STACK = Group("layers", 2, 49, BLOCKS, is_stack=True)
INNER = Group("head.mlp", 53, 58)
HEAD = Group("head", 51, 60, (INNER,))
ROOT = Group("", 0, 61, (STACK, HEAD))


@pytest.fixture
def folding():
    return Folding(ROOT)


def shown(folding):
    """Boxes as numbers and names, frames as lists with their name first."""
    visible = folding.visible(lambda _group: 0.0)
    frames = iter(visible.frames)

    def spell(nest):
        found = []
        for item in nest.items:
            if isinstance(item, int):
                box = visible.boxes[item]
                found.append(box if isinstance(box, int) else box.name)
            else:
                found.append([next(frames).name, *spell(item)])
        return found

    return spell(visible.nest)


def test_everything_is_closed_at_first(folding):
    assert shown(folding) == [0, 1, "layers", 50, "head", 61]
    assert folding.is_closed


def test_a_group_opens_into_a_frame(folding):
    folding.open(HEAD)
    assert shown(folding)[4] == ["head", 51, 52, "head.mlp", 59, 60]
    folding.open(INNER)
    assert shown(folding)[4][3] == ["head.mlp", 53, 54, 55, 56, 57, 58]
    assert folding.close(55) == INNER
    assert folding.close(55) == HEAD
    assert folding.close(55) is None
    assert folding.is_closed


def test_a_stack_opens_into_its_blocks(folding):
    folding.open(STACK)
    assert shown(folding)[2:14] == [f"layers.{n}" for n in range(12)]
    folding.open(BLOCKS[3])
    assert shown(folding)[5] == ["layers.3", 14, 15, 16, 17]
    assert folding.close(14) == BLOCKS[3]  # the others stay as they are
    assert shown(folding)[2:14] == [f"layers.{n}" for n in range(12)]
    assert folding.close(14) == STACK
    assert folding.is_closed


def test_an_operator_is_revealed_between_two_smaller_stacks(folding):
    folding.reveal(24)
    assert shown(folding)[2:5] == [
        "layers.0…4",
        ["layers.5", 22, 23, 24, 25],
        "layers.6…11",
    ]
    assert folding.close(24) == STACK  # as one stack, as it was
    assert shown(folding) == [0, 1, "layers", 50, "head", 61]


def test_a_group_closes_around_an_open_one_that_begins_with_it():
    inner = Group("body.stem", 1, 5)
    outer = Group("body", 1, 20, (inner,))
    folding = Folding(Group("", 0, 21, (outer,)))
    folding.open(outer)
    folding.open(inner)
    assert folding.close_group(outer) == outer
    assert shown(folding) == [0, "body", 21]
    folding.open(outer)  # what was open in it still is
    assert shown(folding)[1][1][0] == "body.stem"
    assert folding.close_group(inner) == inner
    assert shown(folding)[1][:3] == ["body", "body.stem", 6]


def test_a_list_has_a_row_for_each_group_and_for_what_is_in_the_open_ones(folding):
    assert [row.item for row in folding.outline()] == [0, 1, STACK, 50, HEAD, 61]
    folding.open(HEAD)
    folding.reveal(24)
    rows = folding.outline()
    assert rows[:5] == (
        OutlineRow(0, 0),
        OutlineRow(1, 0),
        OutlineRow(Group("layers.0…4", 2, 21, BLOCKS[:5], is_stack=True), 0, "layers.0…4"),
        OutlineRow(BLOCKS[5], 0, "layers.5", is_open=True),
        OutlineRow(22, 1),
    )
    assert [(row.first, row.last, row.depth) for row in rows[9:]] == [
        (50, 50, 0), (51, 60, 0), (51, 51, 1), (52, 52, 1), (53, 58, 1), (59, 59, 1),
        (60, 60, 1), (61, 61, 0),
    ]  # fmt: skip


@pytest.mark.parametrize("place", [2, 49])
def test_the_first_and_the_last_block_have_a_stack_on_one_side_only(folding, place):
    folding.reveal(place)
    assert len(shown(folding)) == 7


def test_two_operators_are_revealed_in_one_stack(folding):
    folding.reveal(24)
    folding.reveal(46)
    assert [item if isinstance(item, str) else item[0] for item in shown(folding)[2:6]] == [
        "layers.0…4",
        "layers.5",
        "layers.6…10",
        "layers.11",
    ]
    assert folding.close(24) == BLOCKS[5]  # another block is open
    assert folding.can_close(46)


def test_what_can_be_closed(folding):
    assert not folding.can_close(55)
    assert not folding.can_close(24)
    folding.open(HEAD)
    assert folding.can_close(55)
    assert not folding.can_close(0)
    folding.open(STACK)
    assert folding.can_close(24)


def test_all_are_opened_and_closed(folding):
    folding.open_all()
    visible = folding.visible(lambda _group: 0.0)
    assert visible.boxes == tuple(range(62))
    assert [group.name for group in visible.frames] == [
        *(f"layers.{n}" for n in range(12)),
        "head",
        "head.mlp",
    ]
    folding.close_all()
    assert shown(folding) == [0, 1, "layers", 50, "head", 61]


def test_a_large_stack_opens_into_smaller_ones():
    blocks = tuple(Group(f"block {n + 1}", 3 * n, 3 * n + 2) for n in range(1000))
    root = Group("", 0, 3000, (Group("block 1…1000", 0, 2999, blocks, is_stack=True),))
    folding = Folding(root)
    folding.open(root.children[0])
    parts = folding.visible(lambda _group: 0.0).boxes[:-1]
    assert len(parts) == 24
    assert [part.name for part in parts[:2]] == ["block 1…41", "block 42…83"]
    assert sum(len(part.children) for part in parts) == 1000
    folding.open(parts[1])  # 42 blocks
    inner = folding.visible(lambda _group: 0.0).boxes
    assert [part.name for part in inner[1:3]] == ["block 42…48", "block 49…55"]
    assert folding.crumbs(0)[-1].text == "block 1 (1 of 1000)"


def test_crumbs_say_which_of_equal_blocks_it_is(folding):
    assert [crumb.text for crumb in folding.crumbs(24)] == ["layers", "layers.5 (6 of 12)"]
    assert [crumb.text for crumb in folding.crumbs(55)] == ["head", "mlp"]
    assert folding.crumbs(0) == ()


@pytest.mark.parametrize(
    ("name", "outer", "short"),
    [
        ("layer1", "", "layer1"),
        ("features.denseblock1", "", "features.denseblock1"),
        ("encoder.layers.encoder_layer_5", "", "encoder_layer_5"),
        ("encoder.layers.encoder_layer_5", "encoder.layers", "encoder_layer_5"),
        ("model.backbone.features.12.3", "", "features.12.3"),
        ("layer1.0", "layer1", "layer1.0"),
        ("block 3", "", "block 3"),
    ],
)
def test_short_names(name, outer, short):
    assert short_name(Group(name, 0, 9), Group(outer, 0, 9)) == short


def test_nothing_is_left_for_the_cycle_collector():
    folding = Folding(Group("", 0, 9, (Group("a", 1, 6, (Group("a.b", 2, 4),)),)))
    folding.open_all()
    gc.collect()
    gc.disable()
    try:
        assert len(folding.visible(lambda _group: 10.0).boxes) == 10
        assert len(folding.outline()) == 12
        assert gc.collect() == 0
    finally:
        gc.enable()
