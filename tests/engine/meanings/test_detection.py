"""Boxes of detectors from outputs made by hand: where they are, which stay, what they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from reading_tools import best_of, centred, ends_of, logit, read, slow_suppress

from engine.errors import MeaningError
from engine.meanings import find_reading
from engine.meanings.boxes import suppress, turned_overlaps
from engine.meanings.readings.anchored import retina_anchors, ssd_boxes

RNG = np.random.default_rng(16)
# In pixels of an input of 640×640; the second overlaps the first.
BUS, BUS_AGAIN, PERSON = (20, 40, 420, 440), (30, 50, 430, 450), (450.0, 100, 550, 500)
CELLS = 6400 + 1600 + 400


def dense(cells, classes, objectness):
    """Rows of a head, (1, cells, 4 + objectness + classes), with three boxes in them."""
    rows = np.full((1, cells, 4 + objectness + classes), 1e-4, np.float32)
    rows[0, :, :4] = 10
    for place, (box, entry, score) in enumerate(
        ((BUS, 5, 0.9), (BUS_AGAIN, 5, 0.8), (PERSON, 0, 0.7))
    ):
        row = rows[0, 100 * place + 7]
        row[:4] = centred(box)
        if objectness:
            row[4] = 0.95
        row[4 + objectness + entry] = score
    return rows


def assert_bus_and_person(found, scale=1.0):
    np.testing.assert_allclose(found.corners, [BUS, PERSON], rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(found.scores, [0.9 * scale, 0.7 * scale], rtol=1e-5)
    assert found.names == ("bus", "person")
    assert [row.name for row in found.rows] == ["bus", "person"]


def test_boxes_with_objectness():
    rows = dense(3 * CELLS, 80, 1)
    assert best_of(ends_of(rows)) == ("yolov5", 0.95)
    found = read("yolov5", rows)
    assert_bus_and_person(found, 0.95)
    assert (found.candidates, found.passed) == (25200, 3)


def test_boxes_of_one_per_cell_with_objectness():
    rows = dense(CELLS, 80, 1)
    assert best_of(ends_of(rows))[0] == "yolov5"
    assert_bus_and_person(read("yolov5", rows), 0.95)


def test_boxes_without_objectness():
    head = np.ascontiguousarray(dense(CELLS, 80, 0).transpose(0, 2, 1))
    assert best_of(ends_of(head)) == ("yolov8", 0.95)
    assert_bus_and_person(read("yolov8", head))


def test_scores_that_are_logits_get_their_sigmoid():
    head = dense(CELLS, 80, 0)
    head[..., 4:] = logit(head[..., 4:])
    assert_bus_and_person(read("yolov8", head.transpose(0, 2, 1)))


def test_threshold_and_overlap():
    head = dense(CELLS, 80, 0).transpose(0, 2, 1)
    assert len(read("yolov8", head, threshold=0.75).names) == 1
    assert read("yolov8", head, iou=1.0).names == ("bus", "bus", "person")
    assert read("yolov8", head, threshold=1.0).names == ()


@pytest.mark.parametrize("split", [False, True])
def test_raw_maps_with_anchors(split):
    """The bus lies in cell (7, 6) of stride 32, by the anchor of 373×326."""
    maps = [np.full((1, 3, s, s, 85), -12.0, np.float32) for s in (80, 40, 20)]
    cell = maps[2][0, 2, 7, 6]
    x, y, width, height = centred(BUS)
    cell[0] = logit((x / 32 - 6 + 0.5) / 2)
    cell[1] = logit((y / 32 - 7 + 0.5) / 2)
    cell[2] = logit(np.sqrt(width / 373) / 2)
    cell[3] = logit(np.sqrt(height / 326) / 2)
    cell[4], cell[5 + 5] = logit(0.9), logit(0.8)
    if not split:
        maps = [
            np.ascontiguousarray(each[0].transpose(0, 3, 1, 2)).reshape(
                1, 255, *each.shape[2:4]
            )
            for each in maps
        ]
    assert best_of(ends_of(*maps))[0] == "yolov5-maps"
    found = read("yolov5-maps", *maps)
    np.testing.assert_allclose(found.corners, [BUS], rtol=1e-4)
    np.testing.assert_allclose(found.scores, [0.72], rtol=1e-4)
    assert found.names == ("bus",)


def test_raw_maps_of_edges_in_bins():
    """A person in cell (4, 10) of stride 32; the bins of an edge are all on one distance."""
    maps = [np.full((1, 144, s, s), -12.0, np.float32) for s in (80, 40, 20)]
    for edge, distance in enumerate((3, 2, 5, 7)):
        maps[2][0, 16 * edge + distance, 4, 10] = 40
    maps[2][0, 64, 4, 10] = logit(0.6)
    assert best_of(ends_of(*maps))[0] == "yolov8-maps"
    found = read("yolov8-maps", *maps)
    expected = [32 * each for each in (10.5 - 3, 4.5 - 2, 10.5 + 5, 4.5 + 7)]
    np.testing.assert_allclose(found.corners, [expected], rtol=1e-4)
    assert found.names == ("person",)


def test_boxes_end_to_end_stay_as_they_are():
    rows = np.zeros((1, 300, 6), np.float32)
    rows[0, 0] = (*BUS, 0.9, 5)
    rows[0, 1] = (*BUS_AGAIN, 0.8, 5)
    assert best_of(ends_of(rows))[0] == "yolov10"
    found = read("yolov10", rows)
    np.testing.assert_allclose(found.corners, [BUS, BUS_AGAIN])
    assert found.classes.tolist() == [5, 5]


def test_masks_are_sums_of_prototypes_within_the_box():
    head = np.full((1, 4 + 80 + 32, CELLS), 1e-4, np.float32)
    head[0, :4] = 10
    head[0, :4, 9] = centred(BUS)
    head[0, 4 + 5, 9] = 0.9
    head[0, 84:, 9] = 0
    head[0, 84 + 3, 9] = 2
    prototypes = RNG.standard_normal((1, 32, 160, 160)).astype(np.float32)
    assert best_of(ends_of(head, prototypes)) == ("yolov8", 0.95)
    found = read("yolov8", head, prototypes)
    inside = np.zeros((160, 160), bool)
    inside[10:110, 5:105] = True  # a quarter of the pixels of the input
    np.testing.assert_array_equal(found.masks, [(prototypes[0, 3] > 0) & inside])
    assert found.names == ("bus",)


def test_persons_with_key_points():
    head = np.full((1, 56, CELLS), 1e-4, np.float32)
    head[0, :4] = 10
    head[0, :4, 50] = centred(PERSON)
    head[0, 4, 50] = 0.8
    points = RNG.uniform(0, 600, (17, 3)).astype(np.float32)
    points[:, 2] = np.linspace(0.1, 0.9, 17)
    head[0, 5:, 50] = points.reshape(-1)
    assert best_of(ends_of(head))[0] == "yolov8-pose"
    found = read("yolov8-pose", head)
    np.testing.assert_allclose(found.corners, [PERSON], rtol=1e-5)
    np.testing.assert_allclose(found.points, [points], rtol=1e-5)


def test_boxes_about_the_cells_of_the_grid():
    """YOLOX leaves the grid to the user: offsets in cells, and logarithms of sizes."""
    rows = np.full((1, CELLS, 85), 1e-4, np.float32)
    rows[0, :, :4] = RNG.normal(size=(CELLS, 4)) / 4
    place, stride = 6400 + 40 * 12 + 7, 16  # row 12 and column 7 at stride 16
    x, y, width, height = centred(BUS)
    rows[0, place, :4] = (
        x / stride - 7, y / stride - 12, np.log(width / stride), np.log(height / stride)
    )  # fmt: skip
    rows[0, place, 4:6] = 0.95, 0.9
    assert best_of(ends_of(rows))[0] == "yolov5"
    found = read("yolov5", rows)
    np.testing.assert_allclose(found.corners, [BUS], rtol=1e-4, atol=1e-3)
    assert found.names == ("person",)
    assert "YOLOX" in found.note
    assert read("yolov5", rows, grid="pixels").corners[0, 2] < 40
    with pytest.raises(MeaningError, match="one box for each cell"):
        read("yolov5", dense(3 * CELLS, 80, 1), grid="YOLOX")


def turned_head(boxes):
    head = np.full((1, 20, CELLS), 1e-4, np.float32)
    head[0, 2:4] = 10
    for place, (box, entry, score) in enumerate(boxes):
        head[0, [0, 1, 2, 3, 19], place] = box
        head[0, 4 + entry, place] = score
    return head


def test_turned_boxes():
    quarter = np.pi / 2
    head = turned_head(
        (
            ((100, 100, 80, 20, 0), 1, 0.9),
            ((102, 101, 80, 20, 0.05), 1, 0.8),  # the first again
            ((100, 100, 80, 20, quarter), 1, 0.7),  # across it
            ((300, 200, 60, 40, quarter / 2), 0, 0.6),
        )
    )
    output = replace(ends_of(head).outputs[0], pieces=(4, 15, 1))
    ends = replace(ends_of(head), outputs=(output,))
    assert best_of(ends) == ("yolov8-obb", 0.95)
    found = read("yolov8-obb", head, ends=ends)
    assert found.names == ("ship", "ship", "plane")
    # The third is upright: 20 wide and 80 high. The last reaches as far as its corners.
    np.testing.assert_allclose(
        found.corners[:2], [[60, 90, 140, 110], [90, 60, 110, 140]], atol=1e-3
    )
    reach = (30 + 20) * np.sqrt(0.5)
    np.testing.assert_allclose(
        found.corners[2], [300 - reach, 200 - reach, 300 + reach, 200 + reach], atol=1e-3
    )
    assert found.rows[2].detail == "300 200 60×40 45°"
    assert found.passed == 4


def test_overlap_of_turned_boxes():
    box = np.array([50.0, 50, 40, 10, 0.3])
    changes = ([0, 0, 0, 0, 0], [0, 0, 0, 0, np.pi], [500, 0, 0, 0, 0], [10, 0, 0, 0, 0])
    others = box + np.array(changes)
    found = turned_overlaps(box, others)
    np.testing.assert_allclose(found[:3], [1, 1, 0], atol=1e-6)
    assert 0.2 < found[3] < 0.8


def test_no_persons():
    found = read("yolov8-pose", np.full((1, 56, CELLS), 1e-4, np.float32))
    assert (found.rows, found.points.shape) == ((), (0, 17, 3))


def test_maps_beside_others_are_no_boxes_of_yolo():
    """The proposals of Faster R-CNN: objectness and deltas for each anchor."""
    sizes = ((15, 80), (15, 40), (15, 20), (60, 80), (60, 40), (60, 20))
    maps = [np.zeros((1, count, side, side), np.float32) for count, side in sizes]
    assert find_reading("yolov5-maps").fits(ends_of(*maps)).score < 0.5
    assert find_reading("yolov5-maps").fits(ends_of(*maps[3:])).score >= 0.5


def test_queries_by_softmax_without_the_class_of_no_object():
    logits = np.zeros((1, 100, 92), np.float32)
    logits[..., 91] = 12
    logits[0, 3, [6, 91]] = 12, 9  # COCO's number of a bus is 6
    boxes = np.full((1, 100, 4), 0.1, np.float32)
    boxes[0, 3] = centred(BUS) / 640
    ends = ends_of(logits, boxes, types=(("nn.Linear",), ("F.sigmoid",)))
    assert best_of(ends)[0] == "detr"
    found = read("detr", logits, boxes)
    powers = np.exp(logits[0, 3].astype(np.float64))
    np.testing.assert_allclose(found.corners, [BUS], rtol=1e-5)
    np.testing.assert_allclose(found.scores, [powers[6] / powers.sum()])
    assert found.names == ("bus",)


def test_queries_by_sigmoid():
    logits = np.full((1, 300, 80), -9, np.float32)
    logits[0, 7, 5] = logit(0.6)
    boxes = np.full((1, 300, 4), 0.1, np.float32)
    boxes[0, 7] = centred(BUS) / 640
    found = read("detr", logits, boxes)
    np.testing.assert_allclose(found.scores, [0.6], rtol=1e-6)
    assert found.names == ("bus",)


def encode(box, anchor, weights):
    """The deltas that lead from a default box to a box."""
    (x, y, w, h), (ax, ay, aw, ah) = centred(box), centred(anchor)
    deltas = np.array([(x - ax) / aw, (y - ay) / ah, np.log(w / aw), np.log(h / ah)])
    return deltas * weights


def test_ssd_about_its_default_boxes():
    size = (300, 300)
    box = (40, 60, 200, 220)
    boxes = ssd_boxes(size, 8732)
    scores, deltas = np.zeros((1, 8732, 91), np.float32), np.zeros((1, 8732, 4), np.float32)
    scores[..., 0] = 15  # background
    scores[0, 8600, [0, 6]] = 0, 15
    deltas[0, 8600] = encode(box, boxes[8600], (10, 10, 5, 5))
    ends = ends_of(deltas, scores, inputs=((1, 3, *size),))
    assert best_of(ends) == ("ssd", 0.95)
    found = read("ssd", deltas, scores, ends=ends)
    np.testing.assert_allclose(found.corners, [box], rtol=1e-4)
    assert found.names == ("bus",)


def test_retinanet_about_its_anchors():
    size = (256, 320)
    anchors = retina_anchors(size)
    scores = np.full((1, len(anchors), 91), -12, np.float32)
    deltas = np.zeros((1, len(anchors), 4), np.float32)
    box = (40, 60, 200, 220)
    place = len(anchors) - 40
    deltas[0, place] = encode(box, anchors[place], 1)
    scores[0, place, 1] = logit(0.8)
    ends = ends_of(scores, deltas, inputs=((1, 3, *size),))
    assert best_of(ends) == ("retinanet", 0.95)
    found = read("retinanet", scores, deltas, ends=ends)
    np.testing.assert_allclose(found.corners, [box], rtol=1e-4)
    np.testing.assert_allclose(found.scores, [0.8], rtol=1e-5)
    assert found.names == ("person",)


def test_default_boxes_are_those_of_torchvision():
    """Figures by torchvision 0.28's DefaultBoxGenerator and AnchorGenerator."""
    for boxes, figures in (
        (
            ssd_boxes((300, 300), 8732),
            {
                0: (-6.5, -6.5, 14.5, 14.5),
                3: (-3.425, -10.849, 11.425, 18.849),
                6000: (264.18, 8.09, 327.82, 39.91),
                8600: (155.498, 51.833, 420.502, 140.167),
                8731: (57.723, 0, 242.277, 300),
            },
        ),
        (
            ssd_boxes((320, 320), 3234),
            {
                0: (-24, -24, 40, 40),
                5: (-10.475, -47.426, 26.475, 63.426),
                2500: (111.005, 15.668, 304.995, 80.332),
                3233: (72.243, 0, 247.757, 320),
            },
        ),
        (
            retina_anchors((256, 320)),
            {
                0: (-23, -11, 23, 11),
                8: (-18, -35, 18, 35),
                4000: (12, 68, 52, 108),
                15353: (-75, -446, 499, 702),
            },
        ),
    ):
        for place, expected in figures.items():
            np.testing.assert_allclose(boxes[place], expected, atol=1e-3)
    assert len(retina_anchors((256, 320))) == 15354


def test_boxes_that_the_model_lists():
    boxes = np.array([BUS, BUS_AGAIN, PERSON], np.float32)
    classes, scores = np.array([6, 6, 1]), np.array([0.9, 0.8, 0.7], np.float32)
    assert best_of(ends_of(boxes, classes, scores)) == ("boxes", 0.85)
    found = read("boxes", boxes, classes, scores, names="COCO 91")
    np.testing.assert_allclose(found.corners, [BUS, PERSON])
    assert found.names == ("bus", "person")


def test_boxes_from_0_to_1_with_scores_of_each_class():
    boxes = np.array([[BUS, BUS_AGAIN, PERSON]], np.float32) / 640
    scores = np.array([[[0.05, 0.95], [0.1, 0.9], [0.9, 0.1]]], np.float32)
    found = read("boxes", boxes, scores, labels=("background", "face"))
    np.testing.assert_allclose(found.corners, [BUS], rtol=1e-5)
    assert found.names == ("face",)


def test_suppression_is_that_of_a_slow_loop():
    low = RNG.uniform(0, 80, (60, 2))
    corners = np.concatenate([low, low + RNG.uniform(5, 40, (60, 2))], 1)
    scores, classes = RNG.uniform(0, 1, 60), RNG.integers(0, 3, 60)
    for limit in (0.0, 0.2, 0.5, 0.8):
        kept = suppress(corners, scores, classes, limit)
        assert kept.tolist() == slow_suppress(corners, scores, classes, limit)


def test_numbers_that_are_none_and_boxes_inside_out_are_left_out():
    head = dense(CELLS, 80, 0).transpose(0, 2, 1).copy()
    head[0, 0, 7] = np.nan
    head[0, 2, 107] = -50
    assert read("yolov8", head).names == ("person",)


def test_thousands_of_sure_boxes_are_bounded():
    head = np.full((1, 84, CELLS), 0.9, np.float32)
    head[0, :4] = RNG.uniform(1, 600, (4, CELLS))
    found = read("yolov8", head, iou=1.0)
    assert (len(found.names), found.passed) == (300, CELLS)


def test_what_does_not_fit_says_why():
    with pytest.raises(MeaningError, match="no output has one box with classes"):
        read("yolov8", np.zeros((1, 1000), np.float32))


def test_fcos_about_its_cells():
    """torchvision counts edges in strides, from the upper left corner of a cell."""
    size = (256, 320)
    cells = sum((256 // s) * (320 // s) for s in (8, 16, 32)) + 4 * 5 + 2 * 3
    scores = np.full((1, cells, 91), -12, np.float32)
    edges = np.zeros((1, cells, 4), np.float32)
    centreness = np.full((1, cells, 1), -12, np.float32)
    place = 32 * 40 + 3 * 20 + 5  # row 3, column 5 at stride 16
    edges[0, place] = (1, 2, 3, 4)
    scores[0, place, 1], centreness[0, place] = logit(0.9), logit(0.4)
    ends = ends_of(scores, edges, centreness, inputs=((1, 3, *size),))
    assert best_of(ends) == ("fcos", 0.95)
    found = read("fcos", scores, edges, centreness, ends=ends)
    x, y = 5 * 16, 3 * 16
    np.testing.assert_allclose(found.corners, [[x - 16, y - 32, x + 48, y + 64]], rtol=1e-6)
    np.testing.assert_allclose(found.scores, [0.6], rtol=1e-5)  # root of 0.36


def test_four_numbers_without_a_picture_are_no_boxes():
    """A decision transformer predicts actions of four numbers beside states."""
    states, actions = np.zeros((1, 6, 17), np.float32), np.zeros((1, 6, 4), np.float32)
    ends = ends_of(states, actions, inputs=((1, 6, 17), (1, 6, 4)))
    assert best_of(ends)[1] < 0.5
    seen = ends_of(states, actions, inputs=((1, 3, 64, 64),))
    assert best_of(seen) == ("detr", 0.6)


def test_distances_to_sides_are_no_boxes_of_queries():
    """FCOS gives how central each place is beside classes and distances."""
    classes, sides, central = (np.zeros((1, 84, n), np.float32) for n in (9, 4, 1))
    assert best_of(ends_of(classes, sides))[0] == "detr"
    assert best_of(ends_of(classes, sides, central))[1] < 0.5


def test_six_features_of_tokens_are_no_boxes():
    rows = np.zeros((2, 19, 6), np.float32)
    assert best_of(ends_of(rows, inputs=((2, 19, 12),)))[1] < 0.5
    assert best_of(ends_of(rows))[0] == "yolov10"
