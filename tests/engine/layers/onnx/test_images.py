"""ONNX's convolutions, poolings and resizing; the cases of its package cover the rest."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers import OperatorCall, build_layer

LINE = np.array([[[1, 2, 3, 4]]], np.float32)
ONES = np.ones((1, 1, 3), np.float32)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [6, 9]),
        ({"pads": (1, 0)}, [3, 6, 9]),
        ({"pads": (0, 1)}, [6, 9, 7]),
        ({"auto_pad": "SAME_UPPER", "strides": (2,)}, [6, 7]),
        ({"auto_pad": "SAME_LOWER", "strides": (2,)}, [3, 9]),
        ({"auto_pad": "VALID", "pads": (1, 1)}, [6, 9]),
        ({"dilations": 2, "pads": (1, 1)}, [2 + 4, 1 + 3]),
    ],
)
def test_conv(run, params, expected):
    result = run("Conv", LINE, ONES, kernel_shape=(3,), **params)
    np.testing.assert_array_equal(result, np.float32([[expected]]), strict=True)


def test_conv_with_groups_and_bias(run):
    x = np.float32([[[1, 2], [3, 4]]])
    weight = np.float32([[[10]], [[100]]])
    result = run("Conv", x, weight, np.float32([1, 2]), group=2)
    np.testing.assert_array_equal(result, [[[11, 21], [302, 402]]])


def test_a_padding_that_is_not_known(run):
    with pytest.raises(ParameterError, match="auto_pad=HALF is not known"):
        run("Conv", LINE, ONES, auto_pad="HALF")


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [1, 1, 3, 2, 2]),
        ({"pads": (1, 0)}, [1, 3, 2, 2]),
        ({"pads": (1, 1), "output_padding": 1}, [1, 3, 2, 2]),
        ({"output_padding": 1}, [1, 1, 3, 2, 2, 0]),
        ({"auto_pad": "SAME_UPPER"}, [1, 1, 3, 2]),
        ({"auto_pad": "SAME_LOWER"}, [1, 3, 2, 2]),
        ({"output_shape": (3,)}, [1, 3, 2]),
    ],
)
def test_conv_transpose(run, params, expected):
    x = np.float32([[[1, 2]]])  # steps of 2: 1 1 1 . . and . . 2 2 2
    result = run("ConvTranspose", x, ONES, strides=2, **params)
    np.testing.assert_array_equal(result, np.float32([[expected]]), strict=True)


def test_a_bias_is_everywhere(run):
    result = run(
        "ConvTranspose", LINE[..., :1], ONES, np.float32([5]), output_padding=0, pads=0
    )
    np.testing.assert_array_equal(result, [[[6, 6, 6]]])


def test_conv_integer(run):
    x, w = np.array([[[3, 5]]], np.uint8), np.array([[[2, 1]]], np.uint8)
    result = run("ConvInteger", x, w, np.array(1, np.uint8), np.array([1], np.uint8))
    np.testing.assert_array_equal(result, np.array([[[2]]], np.int32), strict=True)


def test_deform_conv_without_a_bias_but_with_a_mask(run):
    x, weight = np.float32([[[[1, 2], [3, 4]]]]), np.float32([[[[1]]]])
    offset = np.zeros((1, 2, 2, 2), np.float32)
    offset[0, 1, 0, 0] = 1  # one column to the right
    mask = np.full((1, 1, 2, 2), 0.5, np.float32)
    result = run("DeformConv", x, weight, offset, mask, kernel_shape=(1, 1))
    np.testing.assert_array_equal(result, [[[[1, 1], [1.5, 2]]]])


def test_columns_to_image(run):
    columns = np.float32([[[1, 2, 3], [4, 5, 6]]])  # three windows of two
    result = run("Col2Im", columns, np.array([4]), np.array([2]))
    np.testing.assert_array_equal(result, [[[1, 2 + 4, 3 + 5, 6]]])
    padded = run("Col2Im", columns, np.array([2]), np.array([2]), pads=(1, 1))
    np.testing.assert_array_equal(padded, [[[6, 8]]])


IMAGE = np.float32([[[[1, 2, 3], [4, 9, 6], [7, 8, 5]]]])


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        ("MaxPool", {}, [[9, 9], [9, 9]]),
        ("MaxPool", {"strides": (2, 2), "auto_pad": "SAME_UPPER"}, [[9, 6], [8, 5]]),
        ("MaxPool", {"strides": (2, 2), "auto_pad": "SAME_LOWER"}, [[1, 3], [7, 9]]),
        ("MaxPool", {"strides": (2, 2), "ceil_mode": 1}, [[9, 6], [8, 5]]),
        ("AveragePool", {}, [[4, 5], [7, 7]]),
        ("AveragePool", {"pads": (1, 1, 0, 0)}, [[1, 1.5, 2.5], [2.5, 4, 5], [5.5, 7, 7]]),
        ("AveragePool", {"pads": (1, 1, 0, 0), "count_include_pad": 1},
         [[0.25, 0.75, 1.25], [1.25, 4, 5], [2.75, 7, 7]]),
        ("LpPool", {"p": 1}, [[16, 20], [28, 28]]),
        ("LpPool", {"strides": (2, 2)}, [[(1 + 4 + 16 + 81) ** 0.5]]),
    ],
)  # fmt: skip
def test_pool(run, operator_type, params, expected):
    result = run(operator_type, IMAGE, kernel_shape=(2, 2), **params)
    np.testing.assert_allclose(result, np.float32([[expected]]), rtol=1e-6, strict=True)


def pooled(**params):
    call = OperatorCall("op", "MaxPool", {"kernel_shape": 2, **params}, {}, ("",), 2)
    return build_layer(call).forward(np.stack([IMAGE[0], IMAGE[0]]))


def test_places_count_in_the_whole_input():
    _, places = pooled(strides=2)
    assert places.ravel().tolist() == [4, 9 + 4]
    _, by_columns = pooled(strides=2, storage_order=1, dilations=2, kernel_shape=2)
    assert by_columns.ravel().tolist() == [2, 9 + 2]  # 7 is in row 2 of column 0


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        ("GlobalMaxPool", {}, 9),
        ("GlobalAveragePool", {}, 5),
        ("GlobalLpPool", {"p": 1}, 45),
    ],
)
def test_pool_of_everything(run, operator_type, params, expected):
    result = run(operator_type, IMAGE, **params)
    np.testing.assert_allclose(result, np.float32([[[[expected]]]]), rtol=1e-6, strict=True)


def test_pool_of_no_image(run):
    with pytest.raises(LayerError, match="the input must be N×C×H…; its shape is 3×3"):
        run("MaxPool", IMAGE[0, 0], kernel_shape=2)


def test_max_unpool(run):
    x, places = np.float32([[[[5, 6]]]]), np.array([[[[1, 6]]]])
    result = run("MaxUnpool", x, places, kernel_shape=(2, 2), strides=(2, 2))
    np.testing.assert_array_equal(result, [[[[0, 5, 0, 0], [0, 0, 6, 0]]]])
    larger = run(
        "MaxUnpool", x, places, np.array([1, 1, 2, 5]), kernel_shape=(2, 2), strides=(2, 2)
    )
    np.testing.assert_array_equal(larger, [[[[0, 5, 0, 0, 0], [0, 0, 6, 0, 0]]]])


def test_regions(run):
    box = np.float32([[0, 0, 0, 2, 2]])
    result = run("MaxRoiPool", IMAGE, box, pooled_shape=(1, 1))
    np.testing.assert_array_equal(result, [[[[9]]]])
    aligned = run(
        "RoiAlign", IMAGE, np.float32([[0, 0, 2, 2]]), np.array([0]),
        output_height=2, output_width=2, sampling_ratio=1,
    )  # fmt: skip
    np.testing.assert_allclose(aligned, [[[[1, 2], [4, 9]]]])
    with pytest.raises(LayerError, match="mode=max is not supported"):
        run("RoiAlign", IMAGE, np.float32([[0, 0, 2, 2]]), np.array([0]), mode="max")


# Resizing

ROW = np.float32([1, 2, 3, 4])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"scales": 2.0}, [1, 1, 2, 2, 3, 3, 4, 4]),
        ({"scales": 0.5, "coordinate_transformation_mode": "asymmetric"}, [1, 3]),
        ({"sizes": 3, "coordinate_transformation_mode": "align_corners"}, [1, 2, 4]),
        ({"sizes": 3, "coordinate_transformation_mode": "align_corners",
          "nearest_mode": "round_prefer_ceil"}, [1, 3, 4]),
        ({"sizes": 3, "coordinate_transformation_mode": "align_corners",
          "nearest_mode": "ceil"}, [1, 3, 4]),
        ({"sizes": 3, "coordinate_transformation_mode": "align_corners",
          "nearest_mode": "floor"}, [1, 2, 4]),
        ({"sizes": 2, "mode": "linear"}, [1.5, 3.5]),
        ({"sizes": 7, "mode": "linear", "coordinate_transformation_mode": "align_corners"},
         [1, 1.5, 2, 2.5, 3, 3.5, 4]),
        ({"sizes": 1, "mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
         [1]),
        ({"sizes": 1, "mode": "linear"}, [2.5]),
        ({"scales": 0.5, "mode": "linear", "antialias": 1},
         [(1 * 4 + 2 * 3 + 3) / 8, (2 + 3 * 3 + 4 * 4) / 8]),
        ({"scales": 2.0, "mode": "cubic", "exclude_outside": 1,
          "coordinate_transformation_mode": "asymmetric"},
         [1, (0.59375 * 3 - 0.09375 * 3) / 1.09375, 2, 2.5, 3,
          (-0.09375 * 2 + 0.59375 * 7) / 1.09375, 4, 4.25]),
        ({"sizes": 3, "mode": "linear", "roi": (0.0, 1.5), "extrapolation_value": 9.0,
          "coordinate_transformation_mode": "tf_crop_and_resize"}, [1, 3.25, 9]),
    ],
)  # fmt: skip
def test_resize(run, params, expected):
    result = run("Resize", ROW, **params)
    if params.get("exclude_outside"):  # the last is between 4 and the outside
        result, expected = result[:-1], expected[:-1]
    np.testing.assert_allclose(result, np.float32(expected), rtol=1e-6, strict=True)


def test_resize_of_chosen_axes(run):
    x = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(
        run("Resize", x, axes=(-1,), scales=(2.0,)), [[1, 1, 2, 2], [3, 3, 4, 4]]
    )
    for policy, shape in (("not_larger", (4, 4)), ("not_smaller", (6, 6))):
        result = run("Resize", x, sizes=(4, 6), keep_aspect_ratio_policy=policy)
        assert result.shape == shape


def test_operands_that_stand_in_the_places_of_others(run):
    # A region of interest and scales that are not given are not in the file.
    np.testing.assert_array_equal(run("Resize", ROW, np.array([2])), [1, 3])
    np.testing.assert_array_equal(run("Resize", ROW, np.float32([0.5])), [1, 3])


def test_integers_are_cut(run):
    result = run("Resize", np.array([1, 2], np.uint8), sizes=3, mode="linear",
                 coordinate_transformation_mode="align_corners")  # fmt: skip
    np.testing.assert_array_equal(result, np.array([1, 1, 2], np.uint8), strict=True)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "neither scales nor sizes are given"),
        ({"scales": (1.0, 2.0, 3.0)}, "3 scales do not fit 1 axes"),
        ({"sizes": 3, "mode": "spline"}, "mode=spline is not one of"),
        ({"sizes": 3, "coordinate_transformation_mode": "x"}, "x is not known"),
    ],
)
def test_resize_that_cannot_be(run, params, message):
    with pytest.raises((LayerError, ParameterError), match=message):
        run("Resize", ROW, **params)


def test_upsample(run):
    np.testing.assert_array_equal(run("Upsample", ROW[:2], np.float32([2])), [1, 1, 2, 2])


def test_affine_grid_and_grid_sample(run):
    turned = np.float32([[[-1, 0, 0], [0, 1, 0]]])  # left and right change places
    grid = run("AffineGrid", turned, np.array([1, 1, 3, 3]))
    result = run("GridSample", IMAGE, grid, mode="linear")
    np.testing.assert_allclose(result, IMAGE[..., ::-1], rtol=1e-5)
