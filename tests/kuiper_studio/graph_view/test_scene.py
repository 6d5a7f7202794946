"""What is drawn of a model, where it is, and the way the arrow keys go."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from PySide6.QtCore import QPointF, QRectF

import engine
from kuiper_studio.graph_view.geometry import Geometry, to_rects
from kuiper_studio.graph_view.scene import Scene, make_scene
from kuiper_studio.graph_view.walk import Step, neighbour
from kuiper_studio.layout import layout


@pytest.fixture
def scene(qapp, load_graph):
    return make_scene(load_graph())


@pytest.fixture
def geometry(scene):
    return Geometry(scene, layout(scene.request("left-right")))


def middle(geometry, name):
    return geometry.rect(geometry.scene.index[name]).center()


# Scene


def test_boxes_in_execution_order(scene):
    assert [box.name for box in scene.boxes] == [
        "image",
        "stem.relu",
        "block.0.sigmoid",
        "block.0.tanh",
        "side.relu",
        "add",
        "square",
        "out",
    ]
    assert scene.boxes[5].family.label == "EXPR"
    function, operands = scene.boxes[5].pending
    assert function == "add"
    assert operands.startswith("(a")
    assert operands.endswith("@2)")
    assert "…" in operands
    assert scene.boxes[1].pending == ("3×8×8", "f32")
    assert scene.boxes[7].operand == "6"  # an output shows what it takes


def test_operand_taken_twice_is_one_edge_with_its_count(scene):
    (edge,) = [edge for edge in scene.edges if edge.target == scene.index["square"]]
    assert edge.count == 2
    assert edge.text() == "2 × 3×8×8"
    assert edge.text(skip=True) == "5 · 2 × 3×8×8"
    assert edge.text("3×9×9") == "2 × 3×9×9"


def test_edges_of_a_box(scene):
    operands = [scene.edges[n].operand for n in scene.edges_of[scene.index["stem.relu"]]]
    assert operands == ["0", "1", "1", "1"]


@pytest.mark.parametrize(
    ("name", "width"), [("r", 112), ("a.rather.long.name.of.a.relu", None), ("x" * 300, 200)]
)
def test_width_grows_in_steps_and_then_names_are_elided_in_the_middle(
    qapp, load_graph, name, width
):
    scene = make_scene(load_graph(("pnnx.Input in 0 1 0", f"F.relu {name} 1 1 0 1")))
    box = scene.boxes[1]
    assert box.width % 8 == 0
    assert 112 <= box.width <= 200
    if width is not None:
        assert box.width == width
    if width == 200:
        assert box.name == name
        assert box.shown_name.startswith("xxx")
        assert "…" in box.shown_name[3:-3]


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        pytest.param("pnnx.Expression e 0 1 9 expr=None", ("None", ""), id="constant"),
        pytest.param("prim::Thing e 0 0", ("", ""), id="nothing-in-or-out"),
        pytest.param("torch.chunk e 1 2 0 9 10 chunks=2 dim=1", ("", "+1"), id="two-outputs"),
        pytest.param("F.relu e 1 1 0 9 #9=(1,?,8)i64", ("?×8", "i64"), id="unknown-dimension"),
    ],
)
def test_pending_lines(qapp, load_graph, line, lines):
    scene = make_scene(load_graph(("pnnx.Input in 0 1 0", line)))
    assert scene.boxes[1].pending == lines


# Geometry


def test_hits(geometry):
    point = middle(geometry, "add")
    assert geometry.box_at(point) == geometry.scene.index["add"]
    outside = QPointF(geometry.rect(0).left() - 2, geometry.rect(0).top() + 10)
    assert geometry.box_at(outside) == -1
    assert geometry.box_at(outside, slack=3) == 0


def test_edge_is_hit_within_six_pixels_on_the_screen(geometry):
    first, second = geometry.rect(0), geometry.rect(1)
    x, y = (first.right() + second.left()) / 2, first.center().y()
    assert geometry.scene.edges[geometry.edge_at(QPointF(x, y + 5.5), 1.0)].operand == "0"
    assert geometry.edge_at(QPointF(x, y + 6.5), 1.0) == -1
    assert geometry.edge_at(QPointF(x, y + 11), 0.5) != -1


def test_what_is_visible(geometry):
    assert geometry.boxes_in(geometry.bounds).tolist() == list(range(8))
    assert geometry.boxes_in(geometry.rect(3)).tolist() == [3]
    assert geometry.boxes_in(QRectF(-500, -500, 10, 10)).tolist() == []
    assert len(geometry.edges_in(geometry.bounds)) == len(geometry.scene.edges)


def test_line_ends_under_its_arrow_head_which_ends_before_the_box(geometry):
    edge = 0
    path, head = geometry.path(edge), geometry.arrow(edge)
    target = geometry.rect(geometry.scene.edges[edge].target)
    assert head.boundingRect().right() == target.left() - 1
    assert head.boundingRect().width() == 8
    assert head.boundingRect().height() == 7
    assert head.boundingRect().left() < path.boundingRect().right() < target.left() - 1


def test_long_lines_are_clipped_around_what_is_visible(geometry):
    layout = geometry.layout
    line = np.array([[0.0, 0.0], [9000.0, 0.0], [9000.0, 50.0]])
    geometry.layout = replace(layout, branches=(line, *layout.branches[1:]))
    here, nearer = QRectF(4300, -100, 600, 200), QRectF(4350, -60, 500, 100)
    away = QRectF(7300, -100, 600, 200)
    for visible in (here, away):
        box = geometry.path(0, visible).boundingRect()
        assert box.left() < visible.left()
        assert box.right() > visible.right()
        assert box.width() < 3000
    assert geometry.path(0, here) is geometry.path(0, nearer)  # nothing is made anew
    far = QRectF(8500, -100, 600, 200)
    assert geometry.path(0, far).boundingRect().bottom() > 30  # the end under the arrow


def test_corners_are_round(geometry):
    skip = int(geometry.layout.skips.argmax())
    path = geometry.path(skip)
    kinds = [path.elementAt(i).type.name for i in range(path.elementCount())]
    assert kinds.count("CurveToElement") == 2


@pytest.mark.parametrize("orientation", ["left-right", "top-down"])
def test_cells_grow_so_that_they_are_seen_from_far(scene, orientation):
    geometry = Geometry(scene, layout(scene.request(orientation)))
    boxes = np.arange(len(scene.boxes))
    assert np.array_equal(geometry.grown(boxes, 10, 10), geometry.rects)
    (grown,) = to_rects(geometry.grown(boxes[:1], 300, 250))
    expected = (250, 300) if orientation == "left-right" else (300, 250)
    assert grown.size().toTuple() == expected
    assert grown.center() == geometry.rect(0).center()


def test_empty_scene(qapp, load_graph):
    scene = make_scene(load_graph(("pnnx.Input in 0 1 0",)))
    geometry = Geometry(scene, layout(scene.request("top-down")))
    assert geometry.edge_at(QPointF(0, 0), 1.0) == -1
    assert not len(geometry.segments_in(geometry.bounds, 0.0, 10))


@pytest.mark.parametrize("model", ["residual", "failing"])
def test_edges_are_the_lines_of_the_layout(qapp, load_graph, model):
    scene = make_scene(load_graph(model))
    found = layout(scene.request("left-right"))
    assert found.lines == tuple((e.source, e.target, e.operand) for e in scene.edges)


def test_scene_without_a_model_has_a_layout_of_nothing(qapp):
    found = layout(Scene().request("top-down"))
    assert (found.lines, found.bounds) == ((), (0, 0, 0, 0))


# Walking


@pytest.mark.parametrize(
    ("start", "step", "end"),
    [
        pytest.param("image", Step.FORWARD, "stem.relu", id="along"),
        pytest.param("stem.relu", Step.FORWARD, "block.0.sigmoid", id="main-chain-first"),
        pytest.param("add", Step.BACK, "block.0.tanh", id="back-in-the-row"),
        pytest.param("side.relu", Step.BACK, "stem.relu", id="back-from-branch"),
        pytest.param("side.relu", Step.FORWARD, "add", id="join"),
        pytest.param("block.0.sigmoid", Step.BEHIND, "side.relu", id="sibling"),
        pytest.param("side.relu", Step.BEFORE, "block.0.sigmoid", id="sibling-back"),
        pytest.param("out", Step.FORWARD, "out", id="end"),
        pytest.param("image", Step.BACK, "image", id="start"),
        pytest.param("image", Step.BEFORE, "image", id="no-row-before"),
    ],
)
def test_neighbour(geometry, start, step, end):
    index = geometry.scene.index
    assert neighbour(geometry, index[start], step) == index[end]


@pytest.mark.shared
@pytest.mark.parametrize(("name", "count"), [("resnet18_batch1", 51), ("yolov5s", 142)])
def test_real_models(qapp, shared, name, count):
    scene = make_scene(engine.load(shared / "models" / f"{name}.pnnx.param"))
    geometry = Geometry(scene, layout(scene.request("left-right")))
    assert len(scene.boxes) == count
    # The main chain is one straight line from the input to the end.
    main = [n for n in range(count) if geometry.layout.rows[n] == 0]
    assert len({geometry.rect(n).center().y() for n in main}) == 1
    assert sorted(geometry.layout.layers[main]) == list(range(len(main)))
