"""Layouts of small graphs by hand, and what must hold for every graph."""

from __future__ import annotations

import gc
import itertools
import threading
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.runtime.structure import find_structure
from kuiper_studio.layout import Layout, LayoutCancelledError, LayoutRequest, layout
from kuiper_studio.layout.channels import _free_shift, _take_slot

BOX = (112.0, 94.0)
LR, TD = "left-right", "top-down"


def triples(edges):
    """Edges as (source, target, operand); those without an operand carry their source's."""
    return [(s, t, *(rest or [str(s)])) for s, t, *rest in edges]


def request(count, edges, orientation=LR, sizes=None, **options):
    """Each operand goes to a consumer once; inputs are in the order of the edges."""
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((source, target) for source, target, _ in triples(edges))
    lines = sorted(dict.fromkeys(triples(edges)), key=lambda line: line[1])
    return LayoutRequest(
        *find_structure(graph), tuple(lines), sizes or (BOX,) * count, orientation, **options
    )


def layout_of(count, edges, orientation=LR, sizes=None, **options) -> Layout:
    """A layout whose lines are in the order of the edges."""
    found = layout(request(count, edges, orientation, sizes, **options))
    order = [found.lines.index(edge) for edge in triples(edges)]
    assert set(order) == set(range(len(found.lines)))
    return replace(
        found,
        lines=tuple(found.lines[line] for line in order),
        routes=tuple(found.routes[line] for line in order),
        branches=tuple(found.branches[line] for line in order),
        skips=found.skips[order],
        label_points=found.label_points[order],
        label_sides=found.label_sides[order],
        label_room=found.label_room[order],
    )


def chain(count):
    return [(i, i + 1) for i in range(count - 1)]


def points(array):
    return [tuple(float(x) for x in point) for point in array]


# By hand


def test_nothing():
    result = layout_of(0, [])
    assert result.positions.shape == (0, 2)
    assert result.bounds == (0, 0, 0, 0)
    assert result.routes == ()
    assert not result.positions.flags.writeable


def test_one_node():
    result = layout_of(1, [])
    assert points(result.positions) == [(0, 0)]
    assert result.bounds == (0, 0, 112, 94)


@pytest.mark.parametrize(
    ("orientation", "positions", "route", "bounds"),
    [
        pytest.param(
            LR, [(0, 0), (165, 0), (330, 0)], [(112, 47), (165, 47)], (0, 0, 442, 94), id="lr"
        ),
        pytest.param(
            TD, [(0, 0), (0, 128), (0, 256)], [(56, 94), (56, 128)], (0, 0, 112, 350), id="td"
        ),
    ],
)
def test_chain(orientation, positions, route, bounds):
    result = layout_of(3, chain(3), orientation)
    assert points(result.positions) == positions
    assert points(result.routes[0]) == route
    assert result.bounds == bounds
    assert result.layers.tolist() == [0, 1, 2]
    assert result.rows.tolist() == [0, 0, 0]
    assert not result.skips.any()


def test_skip_connection_runs_above_and_the_chain_stays_straight():
    result = layout_of(4, [*chain(4), (0, 3)])
    # 40 px above the boxes, from the middle of the source's top to that of the target's.
    assert points(result.positions) == [(0, 40), (165, 40), (330, 40), (495, 40)]
    assert points(result.routes[3]) == [(56, 40), (56, 0), (551, 0), (551, 40)]
    assert result.skips.tolist() == [False, False, False, True]
    assert result.label_sides.tolist() == [-1, -1, -1, 0]
    assert points(result.label_points)[3] == (303.5, 0)
    assert result.label_room[3] == 495


def test_skip_connection_runs_beside_a_top_down_chain():
    result = layout_of(4, [*chain(4), (0, 3)], TD)
    assert points(result.positions) == [(40, 0), (40, 128), (40, 256), (40, 384)]
    assert points(result.routes[3]) == [(40, 47), (0, 47), (0, 431), (40, 431)]


@pytest.mark.parametrize(
    ("skips", "heights"),
    [
        pytest.param([(0, 2), (2, 4)], [40, 40], id="one-after-the-other"),
        pytest.param([(0, 6), (1, 4)], [54, 40], id="nested"),
        pytest.param([(0, 3), (2, 5)], [40, 54], id="overlapping"),
        pytest.param([(0, 6), (1, 5), (2, 4)], [68, 54, 40], id="nested-twice"),
    ],
)
def test_lanes_are_packed_by_what_they_span(skips, heights):
    result = layout_of(7, [*chain(7), *[(s, t, f"skip{s}") for s, t in skips]])
    top = result.positions[0, 1]
    assert [top - result.routes[6 + i][1, 1] for i in range(len(skips))] == heights


def test_branch_lies_below_and_joins_beside_the_main_chain():
    # 0 → 1 → 2 → 3 and 0 → 4 → 3: the short branch waits in its row for the join.
    result = layout_of(5, [(0, 1), (1, 2), (2, 3), (0, 4), (4, 3)])
    assert result.rows.tolist() == [0, 0, 0, 0, 1]
    assert result.layers.tolist() == [0, 1, 2, 3, 1]
    assert result.positions[4, 1] == 94 + 24
    fork, join = points(result.routes[3]), points(result.routes[4])
    assert fork[0] == (112, 47)
    assert fork[-1] == (165, 165)
    assert fork[1][0] == fork[2][0]
    assert join[0] == (277, 165)
    assert join[1][1] == 165  # along its own row to the last gap
    assert 330 + 112 < join[1][0] < 495
    assert join[-1] == (495, 57)  # its port is below the one of the main chain
    assert result.label_sides[3] == 1  # the line comes from above: text below


def test_shorter_of_two_branches_lies_nearer():
    edges = [*chain(5), (0, 5), (5, 4), (0, 6), (6, 7), (7, 4), (0, 8), (8, 3)]
    result = layout_of(9, edges)
    assert result.rows.tolist() == [0, 0, 0, 0, 0, 2, 3, 3, 1]


def test_constant_stands_beside_its_consumer():
    result = layout_of(6, [*chain(4), (4, 5), (5, 3)])
    assert result.layers.tolist() == [0, 1, 2, 3, 1, 2]
    assert result.rows.tolist() == [0, 0, 0, 0, 1, 1]


def test_operand_taken_twice_is_one_line():
    result = layout(request(2, [(0, 1, "a"), (0, 1, "a")]))
    assert result.lines == ((0, 1, "a"),)
    assert [points(route) for route in result.routes] == [[(112, 47), (165, 47)]]


def test_two_operands_between_the_same_nodes_are_two_lines():
    result = layout_of(2, [(0, 1, "a"), (0, 1, "b")])
    assert points(result.routes[0]) == [(112, 40), (165, 40)]
    assert points(result.routes[1]) == [(112, 54), (165, 54)]


def test_two_long_operands_between_the_same_nodes_do_not_share_a_line():
    edges = [*chain(5), (0, 5, "a"), (5, 4, "b"), (5, 4, "c")]
    result = layout_of(6, edges)
    assert points(result.routes[5]) != points(result.routes[6])
    assert result.skips.tolist()[5:] == [False, True]


def test_uses_of_one_operand_share_a_lane():
    result = layout_of(6, [*chain(6), (0, 2), (0, 4)])
    first, second = points(result.routes[5]), points(result.routes[6])
    assert first[1][1] == second[1][1]
    assert points(result.branches[5]) == first
    # The second use branches off where the first goes down.
    assert points(result.branches[6]) == [(first[2][0] - 10, 0), *second[2:]]


def test_lane_below_for_what_lies_below():
    # Two parallel chains; the skip within the lower one stays below it.
    edges = [*chain(7), (0, 7), (7, 8), (8, 9), (9, 10), (10, 6), (7, 10)]
    result = layout_of(11, edges)
    row = result.positions[7, 1]
    assert result.rows[7:].tolist() == [1, 1, 1, 1]
    assert result.skips[-1]
    assert result.routes[-1][1, 1] == row + 94 + 40


def test_lane_reaches_a_covered_box_through_the_gap():
    # 2 is in row 1 with row 2 under it: the skip from 0 comes down before its layer.
    edges = [*chain(6), (0, 6), (6, 7), (7, 8), (8, 5), (0, 9), (9, 10), (10, 11), (11, 5)]
    result = layout_of(12, [*edges, (0, 8), (6, 8)])
    for route in (result.routes[-2], result.routes[-1]):
        assert_clear_of_boxes(route, result, LR)
        assert points(route)[-1][0] == result.positions[8, 0]


def test_components_do_not_overlap_and_singles_share_a_shelf():
    result = layout_of(7, chain(4))
    assert result.components.tolist() == [0, 0, 0, 0, 1, 2, 3]
    assert result.positions[4:, 1].tolist() == [142, 142, 142]
    assert result.positions[4:, 0].tolist() == [0, 160, 320]


def test_gaps_grow_to_texts_only_along_the_flow():
    wide = layout_of(2, chain(2), label_widths=(90.0,))
    assert wide.positions[1, 0] == 112 + 90 + 12
    tall = layout_of(2, chain(2), TD, label_widths=(90.0,))
    assert tall.positions[1, 1] == 94 + 34


def test_text_of_a_skip_connection_widens_no_gap():
    edges = [*chain(3), (0, 2)]
    result = layout_of(3, edges, label_widths=(0.0, 0.0, 500.0))
    assert result.positions[1, 0] == 165


def test_lines_from_and_to_a_row_keep_apart_where_chains_swap_rows():
    # 0 and 1 both start; 0 feeds the branch, 1 the main chain, through one gap.
    edges = [(0, 2, "a"), (2, 3, "b"), (0, 4, "c"), (1, 2, "d")]
    result = layout_of(5, edges)
    assert result.rows.tolist() == [0, 1, 0, 0, 1]
    out, into = points(result.routes[3]), points(result.routes[2])
    assert out[0][1] != into[-1][1] or into[1][0] > out[1][0]


def test_chain_waits_in_its_own_row():
    # 7 needs 3 as well, so there are layers between 6 and 7; the line between is straight.
    result = layout_of(8, [*chain(6), (0, 6), (6, 7), (3, 7), (7, 5)])
    assert result.rows[6:].tolist() == [1, 1]
    assert result.layers[6:].tolist() == [1, 4]
    row = result.positions[6, 1] + 47
    assert points(result.routes[6]) == [(277, row), (660, row)]
    assert not result.skips.any()


def test_long_edge_takes_a_free_row():
    # 6 hangs on 2; what it takes from 0 comes along its row, which is free before it.
    result = layout_of(7, [*chain(6), (2, 6), (0, 6), (6, 5)])
    row = result.positions[6, 1] + 47
    assert result.rows[6] == 1
    assert not result.skips.any()
    assert points(result.routes[6])[2][1] == pytest.approx(row, abs=10)


def test_nothing_is_left_for_the_cycle_collector():
    """With ten thousand operators it took a tenth of a second to collect lanes and links."""
    asked = request(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 2), (0, 4), (1, 4)])
    layout(asked)
    gc.collect()
    gc.disable()
    try:
        assert sum(layout(asked).skips) == 3
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_gap_is_the_callers():
    result = layout_of(2, chain(2), layer_gap=80)
    assert result.positions[1, 0] == 192


def test_many_operands_into_one_node_stay_within_its_side():
    count = 60
    edges = [(i, count, str(i)) for i in range(count)]
    result = layout_of(count + 1, edges)
    top = result.positions[count, 1]
    ends = sorted(route[-1, 1] for route in result.routes)
    assert top + 12 <= ends[0]
    assert ends[-1] <= top + 94 - 12
    assert len(set(ends)) == count


@pytest.mark.parametrize(
    ("lines", "slots"),
    [
        pytest.param([(0, 1), (2, 3), (4, 5)], [0, 0, 0], id="apart"),
        pytest.param([(0, 2), (1, 3), (4, 5)], [0, 1, 0], id="third-fits-the-first"),
        pytest.param([(0, 1), (1, 2)], [0, 1], id="touching-rows"),
        pytest.param([(0, 5), (1, 2), (3, 4)], [0, 1, 1], id="order-is-kept"),
    ],
)
def test_turns_that_do_not_meet_share_a_slot(lines, slots):
    extents = []
    assert [_take_slot(extents, low, high) for low, high in lines] == slots


def test_ports_keep_off_what_leaves_the_box_before():
    assert _free_shift([0.0], []) == 0
    assert _free_shift([0.0], [0.0]) == 5
    assert _free_shift([0.0, 5.0], [0.0, 10.0]) == 2.5
    crowded = [float(i) for i in range(-40, 40)]
    assert _free_shift([0.0], crowded) == 0


@pytest.mark.parametrize("edge", [(0, 2), (-1, 0)])
def test_node_without_a_size_is_refused(edge):
    with pytest.raises(ValueError, match="2 sizes were given for 3 nodes"):
        layout(request(2, [edge]))


@pytest.mark.parametrize("calls", [0, 1, 3, 6, 9])
def test_cancel(calls):
    counter = itertools.count()
    edges = [*chain(9), *[(0, i) for i in range(2, 9)], (0, 9), (9, 8)]
    with pytest.raises(LayoutCancelledError):
        layout(request(12, edges), lambda: next(counter) >= calls)


def test_not_cancelled():
    layout(request(3, chain(3)), threading.Event().is_set)


def test_large_graph():
    # A layout that is worse than linear in the operators does not come back from this.
    count = 10_000
    edges = [*chain(count), *[(i, i + 4) for i in range(0, count - 4, 3)]]
    placed = layout(request(count, edges))
    assert len(np.unique(placed.positions, axis=0)) == count


# For every graph


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 14))
    pairs = [(s, t) for s in range(count) for t in range(s + 1, count)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=30)) if pairs else []
    keys = draw(st.lists(st.sampled_from("ab"), min_size=len(edges), max_size=len(edges)))
    sizes = draw(
        st.lists(
            st.tuples(st.integers(14, 25).map(lambda n: 8.0 * n), st.just(94.0)),
            min_size=count,
            max_size=count,
        )
    )
    carried = [(s, t, f"{s}{k}") for (s, t), k in zip(edges, keys, strict=True)]
    return request(count, carried, draw(st.sampled_from((LR, TD))), tuple(sizes))


def boxes(result: Layout, sizes):
    return [
        (x, y, x + w, y + h)
        for (x, y), (w, h) in zip(result.positions.tolist(), sizes, strict=True)
    ]


def assert_clear_of_boxes(route, result, orientation, sizes=None):
    """No segment passes through the inside of any box; touching is allowed at its ends."""
    sizes = sizes or [BOX] * len(result.positions)
    for (x0, y0), (x1, y1) in itertools.pairwise(points(route)):
        left, right = sorted((x0, x1))
        top, bottom = sorted((y0, y1))
        for a, b, c, d in boxes(result, sizes):
            inside = left < c and right > a and top < d and bottom > b
            assert not inside, ((x0, y0), (x1, y1), (a, b, c, d))


@settings(max_examples=150, deadline=None)
@given(graphs())
def test_every_layout(given_request):
    sizes = given_request.sizes
    result = layout(given_request)
    along = 0 if given_request.orientation == LR else 1
    placed = boxes(result, sizes)
    for first, second in itertools.combinations(placed, 2):
        apart_x = first[2] <= second[0] or second[2] <= first[0]
        apart_y = first[3] <= second[1] or second[3] <= first[1]
        assert apart_x or apart_y
    x, y, width, height = result.bounds
    everything = np.concatenate([np.array(placed).reshape(-1, 2), *result.routes])
    assert everything.min(axis=0) == pytest.approx((x, y))
    assert everything.max(axis=0) == pytest.approx((x + width, y + height))
    assert result.lines == given_request.lines
    for (source, target, _), route in zip(result.lines, result.routes, strict=True):
        assert result.layers[source] < result.layers[target]
        assert placed[source][along + 2] <= placed[target][along]
        steps = np.diff(route, axis=0)
        assert ((steps == 0).sum(axis=1) >= 1).all()  # orthogonal
        assert_clear_of_boxes(route, result, given_request.orientation, sizes)
        for end, node in ((route[0], source), (route[-1], target)):
            a, b, c, d = placed[node]
            on_side = (end[0] in (a, c) and b <= end[1] <= d) or (
                end[1] in (b, d) and a <= end[0] <= c
            )
            assert on_side


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_different_nets_share_no_line(given_request):
    """Two nets may cross, but no stretch of a line belongs to both."""
    result = layout(given_request)
    segments: dict[tuple[bool, float], list[tuple[float, float, tuple[int, str]]]] = {}
    for (source, _, key), route in zip(result.lines, result.routes, strict=True):
        for (x0, y0), (x1, y1) in itertools.pairwise(points(route)):
            level = x0 == x1
            fixed, ends = (x0, (y0, y1)) if level else (y0, (x0, x1))
            segments.setdefault((level, round(fixed, 3)), []).append(
                (min(ends), max(ends), (source, key))
            )
    for there in segments.values():
        for (a, b, first), (c, d, second) in itertools.combinations(there, 2):
            assert first == second or b <= c + 1e-6 or d <= a + 1e-6


@settings(max_examples=30, deadline=None)
@given(graphs())
def test_same_request_same_layout(given_request):
    first, second = layout(given_request), layout(given_request)
    assert np.array_equal(first.positions, second.positions)
    for a, b in zip(first.routes, second.routes, strict=True):
        assert np.array_equal(a, b)
