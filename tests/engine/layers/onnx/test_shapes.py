"""ONNX's operators that make and rearrange tensors."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        ("Size", {}, np.array(6, np.int64)),
        ("Shape", {}, np.array([2, 3], np.int64)),
        ("Shape", {"start": 1}, np.array([3], np.int64)),
        ("Shape", {"start": -2, "end": -1}, np.array([2], np.int64)),
        ("EyeLike", {"k": 1, "dtype": 7}, np.array([[0, 1, 0], [0, 0, 1]], np.int64)),
        ("EyeLike", {}, np.float32([[1, 0, 0], [0, 1, 0]])),
        ("Reshape", {"shape": (3, -1)}, np.float32([[0, 1], [2, 3], [4, 5]])),
        ("Reshape", {"shape": (0, 1, -1)}, X.reshape(2, 1, 3)),
        ("Flatten", {"axis": 0}, X.reshape(1, 6)),
        ("Flatten", {}, X),
        ("Unsqueeze", {"axes": (0, -1)}, X.reshape(1, 2, 3, 1)),
        ("Transpose", {}, np.float32([[0, 3], [1, 4], [2, 5]])),
        ("Transpose", {"perm": (0, 1)}, X),
        ("Expand", {"shape": (2, 1, 3)}, np.stack([X, X])),
        ("Tile", {"repeats": (1, 2)}, np.float32([[0, 1, 2, 0, 1, 2], [3, 4, 5, 3, 4, 5]])),
        ("Identity", {}, X),
    ],
)  # fmt: skip
def test_one_operand(run, operator_type, params, expected):
    np.testing.assert_array_equal(run(operator_type, X, **params), expected, strict=True)


def test_a_size_of_zero_is_a_size_where_it_is_allowed(run):
    nothing = np.zeros((2, 0), np.float32)
    assert run("Reshape", nothing, shape=(0, 5), allowzero=1).shape == (0, 5)
    assert run("Reshape", nothing, np.array([0, 0, 7])).shape == (2, 0, 7)


def test_squeeze(run):
    x = np.zeros((1, 3, 1), np.float32)
    assert run("Squeeze", x).shape == (3,)
    assert run("Squeeze", x, axes=-1).shape == (1, 3)
    assert run("Squeeze", x, np.array([0])).shape == (3, 1)


def test_concat(run):
    assert run("Concat", X, X, X, axis=-1).shape == (2, 9)


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((1, 7, 2), np.array([1, 3, 5], np.int64)),
        ((3.0, 1.0, -0.5), np.float32([3, 2.5, 2, 1.5])),
        ((np.int32(0).reshape(()), np.array(3, np.int32), 1), np.array([0, 1, 2], np.int32)),
        ((5, 1, 1), np.zeros(0, np.int64)),
    ],
)
def test_range(run, operands, expected):
    np.testing.assert_array_equal(run("Range", *operands), expected, strict=True)


def test_range_that_never_ends(run):
    with pytest.raises(LayerError, match="delta is 0"):
        run("Range", 1, 2, 0)


def test_constant_of_shape(run):
    zeros = run("ConstantOfShape", np.array([2, 1]))
    np.testing.assert_array_equal(zeros, np.zeros((2, 1), np.float32), strict=True)
    ones = run("ConstantOfShape", (3,), value=1)
    np.testing.assert_array_equal(ones, np.ones(3, np.int64), strict=True)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"pads": (0, 1, 0, 2), "value": 9.0}, [[9, 0, 1, 2, 9, 9], [9, 3, 4, 5, 9, 9]]),
        ({"pads": (1, 0, 0, -1)}, [[0, 0], [0, 1], [3, 4]]),
        ({"pads": (0, 1, 0, 1), "mode": "reflect"}, [[1, 0, 1, 2, 1], [4, 3, 4, 5, 4]]),
        ({"pads": (0, 1, 0, 1), "mode": "edge"}, [[0, 0, 1, 2, 2], [3, 3, 4, 5, 5]]),
        ({"pads": (0, 1, 0, 1), "mode": "wrap"}, [[2, 0, 1, 2, 0], [5, 3, 4, 5, 3]]),
        ({"pads": (1, 1), "axes": (-1,)}, [[0, 0, 1, 2, 0], [0, 3, 4, 5, 0]]),
    ],
)
def test_pad(run, params, expected):
    np.testing.assert_array_equal(run("Pad", X, **params), np.float32(expected), strict=True)


def test_pad_by_operands(run):
    sizes = np.array([0, 1, 0, 0])
    np.testing.assert_array_equal(
        run("Pad", X, sizes, np.array(7, np.float32)), [[7, 0, 1, 2], [7, 3, 4, 5]]
    )
    # A value that is not given is not in the file: what comes then are the axes.
    np.testing.assert_array_equal(
        run("Pad", X, np.array([1, 0]), np.array([1])), [[0, 0, 1, 2], [0, 3, 4, 5]]
    )


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"pads": (1, 1, 1)}, LayerError, "2 axes need 4 pads, not 3"),
        ({"pads": (1, 1, 1, 1), "mode": "mirror"}, ParameterError, "mode=mirror is unknown"),
    ],
)
def test_pad_that_does_not_fit(run, params, error, message):
    with pytest.raises(error, match=message):
        run("Pad", X, **params)


@pytest.mark.parametrize(
    ("shape", "axes", "expected"),
    [
        ((2, 1), None, [[1], [4]]),
        ((4, 2), None, [[0, 0], [0, 1], [3, 4], [0, 0]]),
        ((5,), (1,), [[0, 0, 1, 2, 0], [0, 3, 4, 5, 0]]),
        ((3,), (0,), [[0, 1, 2], [3, 4, 5], [0, 0, 0]]),
    ],
)
def test_center_crop_pad(run, shape, axes, expected):
    result = run("CenterCropPad", X, np.array(shape), axes=axes)
    np.testing.assert_array_equal(result, np.float32(expected), strict=True)


def test_space_and_depth(run):
    x = np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1)
    dcr = run("DepthToSpace", x, blocksize=2)
    np.testing.assert_array_equal(dcr, np.float32([[[[0, 2], [4, 6]], [[1, 3], [5, 7]]]]))
    crd = run("DepthToSpace", x, blocksize=2, mode="CRD")
    np.testing.assert_array_equal(crd, np.float32([[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]))
    np.testing.assert_array_equal(run("SpaceToDepth", dcr, blocksize=2), x)
    np.testing.assert_array_equal(run("SpaceToDepth", crd, blocksize=2, mode="CRD"), x)
