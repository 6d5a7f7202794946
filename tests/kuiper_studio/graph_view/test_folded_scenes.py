"""Edges between closed groups and operators, against a slow loop."""

from __future__ import annotations

import random

import pytest

from kuiper_studio.graph_view.folded_scenes import FoldedScenes, Wires
from kuiper_studio.graph_view.folding import Folding
from kuiper_studio.graph_view.scene import make_scene
from kuiper_studio.layout.groups import Group

OPERATORS = 30


@pytest.fixture
def graph(load_graph):
    """Thirty operators that take one to three operands of before, one of them twice."""
    draw = random.Random(3)
    lines = ["pnnx.Input in 0 1 0"]
    for number in range(1, OPERATORS):
        takes = [draw.randrange(number) for _ in range(draw.randint(1, 3))]
        takes += takes[:1] * draw.randint(0, 1)
        names = " ".join(map(str, takes))
        lines.append(f"custom.Op n{number} {len(takes)} 1 {names} {number}")
    return load_graph((*lines, f"pnnx.Output out 1 0 {OPERATORS - 1}"))


def slow_edges(graph, boxes):
    """Source, target, operand, how often it is taken, and how many operands it stands for."""
    first = [box.index for box in boxes]
    home = [max(n for n, start in enumerate(first) if start <= k) for k in range(OPERATORS + 1)]
    between = {}
    for operator in graph.operators:
        for operand in operator.inputs:
            ends = home[operand.producer.index], home[operator.index]
            if ends[0] != ends[1]:
                between.setdefault(ends, []).append(operand.name)
    found = []
    for ends, names in sorted(between.items(), key=lambda item: item[0][1]):
        different = list(dict.fromkeys(names))
        if any(boxes[end].card is not None for end in ends):
            found.append((*ends, different[-1], 1, len(different)))
        else:
            found += [(*ends, name, names.count(name), 1) for name in different]
    return found


def test_edges_of_open_and_closed_groups(graph):
    groups = (Group("a", 2, 9, (Group("a.b", 4, 7),)), Group("c", 12, 20))
    folding = Folding(Group("", 0, OPERATORS, groups))
    scenes = FoldedScenes(graph, Wires.of(graph))
    for group in (None, groups[0], groups[0].children[0], groups[1]):
        if group is not None:
            folding.open(group)
        scene = scenes.make(folding)
        found = [(e.source, e.target, e.operand, e.count, e.bundled) for e in scene.edges]
        assert found == slow_edges(graph, scene.boxes)


def test_boxes_that_stay_are_not_made_again(graph):
    folding = Folding(Group("", 0, OPERATORS, (Group("a", 2, 9), Group("c", 12, 20))))
    scenes = FoldedScenes(graph, Wires.of(graph))
    before = scenes.make(folding).boxes
    folding.reveal(3)
    after = scenes.make(folding).boxes
    assert after[0] is before[0]
    assert after[-1] is before[-1]


def test_boxes_are_made_ahead_and_shared_with_the_flat_scene(graph):
    folding = Folding(Group("", 0, OPERATORS, (Group("a", 2, 9), Group("c", 12, 20))))
    scenes = FoldedScenes(graph, Wires.of(graph))
    while not scenes.are_prepared:
        scenes.prepare(OPERATORS)
    flat = scenes.make_flat()
    alone = make_scene(graph)
    assert flat.boxes == alone.boxes
    assert flat.edges == alone.edges
    folding.open_all()
    opened = scenes.make(folding)
    assert all(one is other for one, other in zip(opened.boxes, flat.boxes, strict=True))
    assert len(opened.frames) == 2
    assert opened.nest is not None


@pytest.mark.parametrize("times", [0, 1, 3, 4, 100])
def test_groups_may_open_while_edges_are_made_ahead(graph, times):
    folding = Folding(Group("", 0, OPERATORS, (Group("a", 2, 9), Group("c", 12, 20))))
    scenes = FoldedScenes(graph, Wires.of(graph))
    for _ in range(times):
        scenes.prepare((OPERATORS + 1) // 2)
    folding.open_all()
    for _ in range(2):
        opened = scenes.make(folding)
        alone = make_scene(graph)
        assert sorted(map(repr, opened.edges)) == sorted(map(repr, alone.edges))
        touching = [opened.edges[n] for n in opened.edges_of[3]]
        assert touching == [edge for edge in opened.edges if 3 in (edge.source, edge.target)]
        folding.close_all()
        assert len(scenes.make(folding).boxes) < OPERATORS
        folding.open_all()
