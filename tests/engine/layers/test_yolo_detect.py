"""YOLOv5's detection head."""

from __future__ import annotations

import math

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

ANCHORS, CLASSES = 2, 3
PER_BOX = 5 + CLASSES
CELLS = [(4, 6), (2, 3)]  # rows, columns of each level
CHANNELS = [3, 5]
STRIDES = [8.0, 16.0]
SIZES = [[(10, 13), (16, 30)], [(30, 61), (62, 45)]]  # width, height of each anchor


def constants(offset, cells=CELLS):
    """Grid and anchor grid of each level, as YOLOv5 builds them."""
    pairs = []
    for (rows, columns), sizes in zip(cells, SIZES, strict=True):
        grid = np.zeros((1, ANCHORS, rows, columns, 2), np.float32)
        anchors = np.zeros_like(grid)
        for a, y, x in np.ndindex(ANCHORS, rows, columns):
            grid[0, a, y, x] = x + offset, y + offset
            anchors[0, a, y, x] = sizes[a]
        pairs.append((grid, anchors))
    return pairs


def weights_of_the_head(offset, order="pnnx"):
    rng = np.random.default_rng(11)
    weights = {}
    for level, channels in enumerate(CHANNELS):
        shape = (ANCHORS * PER_BOX, channels, 1, 1)
        weights[f"m.{level}.weight"] = rng.standard_normal(shape, dtype=np.float32)
        weights[f"m.{level}.bias"] = rng.standard_normal(shape[0], dtype=np.float32)
    (grid0, anchors0), (grid1, anchors1) = constants(offset)
    strides = np.array(STRIDES, np.float32)
    stored = {
        # As pnnx numbers them: coarse levels first, the strides in between.
        "pnnx": [anchors1, grid1, anchors0, strides, grid0],
        "grids first": [strides, grid0, anchors0, grid1, anchors1],
    }[order]
    return weights | {f"pnnx_{i}": array for i, array in enumerate(stored)}


def images(cells=CELLS):
    rng = np.random.default_rng(12)
    return [
        rng.standard_normal((2, channels, *size), dtype=np.float32)
        for channels, size in zip(CHANNELS, cells, strict=True)
    ]


def slow_head(weights, inputs):
    """The formula, box by box: y = (s * 2 - 0.5 + cell) * stride, (s * 2) ** 2 * anchor."""
    samples = []
    for n in range(len(inputs[0])):
        boxes = []
        for level, image in enumerate(inputs):
            w, b = weights[f"m.{level}.weight"], weights[f"m.{level}.bias"]
            for a, y, x in np.ndindex(ANCHORS, *image.shape[2:]):
                box = []
                for k in range(PER_BOX):
                    o = a * PER_BOX + k
                    value = float(b[o]) + sum(
                        float(w[o, c, 0, 0]) * float(image[n, c, y, x])
                        for c in range(CHANNELS[level])
                    )
                    box.append(1 / (1 + math.exp(-value)))
                box[0] = (box[0] * 2 - 0.5 + x) * STRIDES[level]
                box[1] = (box[1] * 2 - 0.5 + y) * STRIDES[level]
                box[2] = (box[2] * 2) ** 2 * SIZES[level][a][0]
                box[3] = (box[3] * 2) ** 2 * SIZES[level][a][1]
                boxes.append(box)
        samples.append(boxes)
    return np.array(samples)


@pytest.mark.parametrize("order", ["pnnx", "grids first"])
@pytest.mark.parametrize("offset", [0.0, -0.5], ids=["before-6.1", "since-6.1"])
def test_against_the_formula(run, offset, order):
    weights = weights_of_the_head(offset, order)
    y = run("models.yolo.Detect", *images(), weights=weights)
    assert y.dtype == np.float32
    assert y.shape == (2, ANCHORS * (24 + 6), PER_BOX)
    np.testing.assert_allclose(y, slow_head(weights, images()), rtol=1e-4, atol=1e-4)


def test_another_input_size(run):
    cells = [(8, 2), (4, 1)]
    weights = weights_of_the_head(-0.5)
    y = run("models.yolo.Detect", *images(cells), weights=weights)
    expected = slow_head(weights, images(cells))
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "parameter", "reason"),
    [
        ({"pnnx_3": None}, "strides", "no pnnx_* attribute holds 2 strides"),
        (
            {"pnnx_0": None},
            "grids",
            "the pnnx_* attributes hold no grid and anchor grid of shape 1×A×H×W×2 for each",
        ),
        ({"m.0.weight": None, "m.0.bias": None}, "weight", "m.0.weight is missing"),
    ],
)
def test_missing_constants(run, change, parameter, reason):
    weights = {k: v for k, v in weights_of_the_head(0).items() if change.get(k, v) is not None}
    with pytest.raises(ParameterError) as caught:
        run("models.yolo.Detect", weights=weights, names=("", ""))
    assert caught.value.parameter == parameter
    assert reason in caught.value.reason


def test_wrong_number_of_inputs(run):
    with pytest.raises(LayerError, match="1 inputs were given for 2 levels"):
        run("models.yolo.Detect", images()[0], weights=weights_of_the_head(0))


def test_channels_that_are_no_boxes(run):
    weights = weights_of_the_head(0)
    for level, channels in enumerate(CHANNELS):
        weights[f"m.{level}.weight"] = np.zeros((7, channels, 1, 1), np.float32)
        weights[f"m.{level}.bias"] = np.zeros(7, np.float32)
    with pytest.raises(LayerError, match="7 channels do not hold boxes of 2 anchors"):
        run("models.yolo.Detect", *images(), weights=weights)


def test_yolov5s_opens_with_its_head(shared):
    engine = pytest.importorskip("engine")
    graph = engine.load(shared / "models" / "yolov5s.pnnx.param")
    head = next(op for op in graph.operators if op.type == "models.yolo.Detect")
    assert [operand.shape for operand in head.inputs] == [
        (1, 128, 80, 80),
        (1, 256, 40, 40),
        (1, 512, 20, 20),
    ]
