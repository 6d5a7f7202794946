"""Boxes in frames: what must hold for every one, and small ones by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kuiper_studio.layout.nested import (
    TAB_HEIGHT,
    LevelLayouts,
    Nest,
    NestedRequest,
    lay_out_nested,
)

BOX = (112.0, 94.0)
LR, TD = "left-right", "top-down"


def request(nest, edges, orientation=LR):
    lines = tuple((source, target, str(source)) for source, target in edges)
    sizes = (BOX,) * len(nest.boxes())
    return NestedRequest(nest, lines, sizes, orientation, (30.0,) * len(lines))


def chain(count):
    return [(n, n + 1) for n in range(count - 1)]


@pytest.mark.parametrize("orientation", [LR, TD])
def test_a_chain_through_a_frame_is_straight(orientation):
    """One input, one output, one row: the frame's middle is where the chain is."""
    nest = Nest((0, Nest((1, 2)), 3))
    result = lay_out_nested(request(nest, chain(4), orientation))
    across = 1 if orientation == LR else 0
    middles = result.positions[:, across] + np.array(BOX)[across] / 2
    if orientation == LR:
        assert set(middles.tolist()) == {middles[0]}
        assert [len(route) for route in result.routes] == [2, 2, 2]
    (frame,) = result.frames.tolist()
    assert frame[1] + TAB_HEIGHT <= result.positions[1, 1]


def test_a_skip_around_a_frame_and_into_it():
    nest = Nest((0, Nest((1, 2, 3)), 4))
    result = lay_out_nested(request(nest, [*chain(5), (0, 4), (0, 3)]))
    assert result.skips.tolist() == [False] * 4 + [True, False]
    left, top, right, bottom = result.frames[0]
    around = result.routes[4]  # passes the frame above
    assert around[:, 1].min() < top
    inside = result.routes[5]  # and this one enters where the chain does
    assert inside[0, 0] < left < inside[-1, 0] < right
    assert top < inside[:, 1].min()
    assert bottom > inside[:, 1].max()


def test_an_edge_leaves_two_frames_and_enters_another():
    nest = Nest((Nest((0, Nest((1,)))), Nest((2, 3)), 4))
    result = lay_out_nested(request(nest, [*chain(5), (1, 3)]))
    outer, inner, other = result.frames.tolist()
    assert outer[0] < inner[0] < inner[2] < outer[2] < other[0]
    route = result.routes[4]
    assert route[0].tolist() == pytest.approx(
        [result.positions[1, 0] + BOX[0], result.positions[1, 1] + BOX[1] / 2]
    )
    assert route[-1, 0] <= result.positions[3, 0] + BOX[0]


def test_what_one_operand_shares_is_drawn_once():
    """Two consumers in another frame: the way there belongs to the first of them."""
    nest = Nest((Nest((0,)), Nest((1, 2))))
    result = lay_out_nested(request(nest, [(0, 1), (0, 2), (1, 2)]))
    assert np.array_equal(result.branches[0], result.routes[0])
    left = result.frames[1, 0]
    assert result.routes[1][0, 0] < left
    assert result.branches[1][:, 0].min() >= left
    assert result.label_room[1] == 0  # and so does the text


@st.composite
def nested(draw):
    count = draw(st.integers(1, 16))
    edges = [
        (source, target)
        for target in range(1, count)
        for source in draw(st.sets(st.integers(0, target - 1), max_size=3))
    ]

    def nest(first, last, depth):
        items, place = [], first
        while place < last:
            size = draw(st.integers(1, last - place))
            if depth < 3 and size > 1 and size < last - first and draw(st.booleans()):
                items.append(nest(place, place + size, depth + 1))
                place += size
            else:
                items.append(place)
                place += 1
        return Nest(tuple(items), draw(st.sampled_from([0.0, 300.0])))

    return nest(0, count, 0), edges, draw(st.sampled_from([LR, TD]))


@given(nested())
@settings(max_examples=80, deadline=None)
def test_boxes_are_in_their_frames_and_edges_join_their_boxes(drawn):
    nest, edges, orientation = drawn
    result = lay_out_nested(request(nest, edges, orientation))
    rects = np.hstack((result.positions, result.positions + BOX))
    frames = nest.frames()
    for frame, (left, top, right, bottom) in zip(frames, result.frames.tolist(), strict=True):
        inside = set(frame.boxes())
        for box, rect in enumerate(rects.tolist()):
            apart = rect[2] <= left or rect[0] >= right or rect[3] <= top or rect[1] >= bottom
            within = (
                left < rect[0]
                and rect[2] < right
                and top + TAB_HEIGHT <= rect[1]
                and rect[3] < bottom
            )
            assert within if box in inside else apart
        assert right - left >= frame.name_width
    for one, other in itertools.combinations(rects.tolist(), 2):
        assert (
            one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        )
    for (source, target), route in zip(edges, result.routes, strict=True):
        steps = np.abs(np.diff(route, axis=0))
        assert (steps.min(axis=1) < 1e-6).all()  # level or plumb
        for box, point in ((source, route[0]), (target, route[-1])):
            left, top, right, bottom = rects[box]
            assert left - 1e-6 <= point[0] <= right + 1e-6
            assert top - 1e-6 <= point[1] <= bottom + 1e-6
    _, _, width, height = result.bounds
    assert rects.min() >= 0
    assert (rects[:, 2:] <= (width + 1e-6, height + 1e-6)).all()


def test_frames_that_were_laid_out_before_lie_as_if_they_were_new():
    edges = [*chain(9), (0, 4), (2, 7)]
    known = LevelLayouts()
    for inner in (Nest((3, 4)), Nest((3, Nest((4, 5)))), Nest((3, 4, 5))):
        nest = Nest((0, Nest((1, 2)), inner, *range(len(inner.boxes()) + 3, 9)))
        again = lay_out_nested(request(nest, edges), known=known)
        new = lay_out_nested(request(nest, edges))
        np.testing.assert_array_equal(again.positions, new.positions)
        np.testing.assert_array_equal(again.frames, new.frames)
        for route, expected in zip(again.branches, new.branches, strict=True):
            np.testing.assert_array_equal(route, expected)
