"""ONNX's normalisations, products, quantisation, losses and suppression."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

X = np.float32([[[1, 3], [2, 6]]])  # N×C×L
TWO, ONE = np.float32([2, 3]), np.float32([1, 0])


@pytest.mark.parametrize(
    ("operator_type", "operands", "params", "expected"),
    [
        ("BatchNormalization", (TWO, ONE, ONE, np.float32([4, 9])), {},
         [[2 * 0 / 2 + 1, 2 * 2 / 2 + 1], [3 * 2 / 3, 3 * 6 / 3]]),
        ("InstanceNormalization", (TWO, ONE), {}, [[-1, 3], [-3, 3]]),
        ("GroupNormalization", (TWO, ONE), {"num_groups": 2}, [[-1, 3], [-3, 3]]),
        ("LpNormalization", (), {"p": 1}, [[0.25, 0.75], [0.25, 0.75]]),
        ("LpNormalization", (), {"axis": 1}, [[5**-0.5, 5**-0.5], [2 * 5**-0.5, 2 * 5**-0.5]]),
        ("MeanVarianceNormalization", (), {"axes": (0, 2)}, [[-1, 1], [-1, 1]]),
        ("LRN", (), {"size": 1, "alpha": 1.0, "beta": 1.0}, [[0.5, 0.3], [0.4, 6 / 37]]),
        ("LRN", (), {"size": 2, "alpha": 2.0, "beta": 1.0},
         [[1 / 6, 3 / 46], [2 / 5, 6 / 37]]),
    ],
)  # fmt: skip
def test_normalization(run, operator_type, operands, params, expected):
    result = run(operator_type, X, *operands, **params)
    np.testing.assert_allclose(result, np.float32([expected]), rtol=1e-4, strict=True)


def test_layer_normalization(run):
    result, mean, inverse = run("LayerNormalization", X, TWO, ONE, epsilon=0.0)
    np.testing.assert_allclose(result, [[[-1, 3], [-1, 3]]], rtol=1e-6)
    np.testing.assert_allclose(mean, [[[2], [4]]])
    np.testing.assert_allclose(inverse, [[[1], [0.5]]])
    (whole, *_) = run("LayerNormalization", X, np.float32(1).reshape(1, 1), axis=1, epsilon=0.0)
    np.testing.assert_allclose(whole, (X - 3) / np.sqrt(3.5), rtol=1e-6)


def test_rms_normalization(run):
    result = run("RMSNormalization", X, TWO, epsilon=0.0)
    np.testing.assert_allclose(
        result, [[[2 / 5**0.5, 9 / 5**0.5], [4 / 20**0.5, 18 / 20**0.5]]], rtol=1e-6
    )


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [[1 * 5 + 2 * 7 + 1, 1 * 6 + 2 * 8 + 1]]),
        ({"transB": 1}, [[1 * 5 + 2 * 6 + 1, 1 * 7 + 2 * 8 + 1]]),
        ({"alpha": 0.5, "beta": 2.0}, [[9.5 + 2, 11 + 2]]),
    ],
)
def test_gemm(run, params, expected):
    a, b = np.float32([[1, 2]]), np.float32([[5, 6], [7, 8]])
    result = run("Gemm", a, b, np.float32([1]), **params)
    np.testing.assert_array_equal(result, np.float32(expected), strict=True)
    if not params:
        turned = run("Gemm", a.T, b, transA=1)
        np.testing.assert_array_equal(turned, np.float32([[19, 22]]))


def test_matmul_and_det(run):
    matrix = np.float32([[1, 2], [3, 4]])
    np.testing.assert_array_equal(run("MatMul", matrix, matrix), [[7, 10], [15, 22]])
    np.testing.assert_allclose(run("Det", matrix), -2, rtol=1e-6)


# Quantisation

U8 = np.uint8


@pytest.mark.parametrize(
    ("scale", "zero", "params", "expected"),
    [
        (2.0, np.array(10, U8), {}, np.array([[10, 12, 255], [9, 10, 0]], U8)),
        (np.float32([2, 1]), np.array([0, 5], np.int8), {"axis": 0},
         np.array([[0, 2, 127], [4, 5, -128]], np.int8)),
        (2.0, None, {}, np.array([[0, 2, 255], [0, 0, 0]], U8)),
        (2.0, None, {"output_dtype": 3}, np.array([[0, 2, 127], [-1, 0, -128]], np.int8)),
    ],
)  # fmt: skip
def test_quantize_linear(run, scale, zero, params, expected):
    x = np.float32([[1, 3, 600], [-1.2, 0, -300]])
    operands = (scale,) if zero is None else (scale, zero)
    if params.get("output_dtype") or (zero is not None and zero.ndim):
        x[1] = [-1.2, 0, -300]
    np.testing.assert_array_equal(run("QuantizeLinear", x, *operands, **params), expected)


def test_blocks_share_a_scale(run):
    x = np.array([[1, 2, 3, 4]], np.int8)
    result = run("DequantizeLinear", x, np.float32([[1, 10]]), axis=1, block_size=2)
    np.testing.assert_array_equal(result, np.float32([[1, 2, 30, 40]]), strict=True)


def test_dequantize_linear(run):
    x = np.array([[3, 5], [3, 5]], U8)
    result = run("DequantizeLinear", x, np.float32([2, 1]), np.array([1, 3], U8), axis=0)
    np.testing.assert_array_equal(result, np.float32([[4, 8], [0, 2]]), strict=True)


def test_dynamic_quantize_linear(run):
    result, scale, zero = run("DynamicQuantizeLinear", np.float32([-1, 0, 1.55]))
    np.testing.assert_allclose(scale, np.float32(2.55 / 255), rtol=1e-6)
    assert zero.item() == 100
    assert result.tolist() == [0, 100, 255]
    nothing = run("DynamicQuantizeLinear", np.zeros(2, np.float32))
    assert [part.tolist() for part in nothing] == [[0, 0], 0, 0]


def test_quantised_products(run):
    a, b = np.array([[3, 5]], U8), np.array([[2], [4]], U8)
    product = run("MatMulInteger", a, b, np.array(1, U8), np.array([2], U8))
    np.testing.assert_array_equal(product, np.array([[8]], np.int32), strict=True)
    one = np.array(1, U8)
    small = run("QLinearMatMul", a, 0.5, one, b, 0.25, one * 2, 0.5, one * 7)
    np.testing.assert_array_equal(small, np.array([[7 + 2]], U8), strict=True)


def test_qlinear_conv(run):
    x, w = np.array([[[3, 5]]], U8), np.array([[[2]]], U8)
    zero = np.array(1, U8)
    result = run(
        "QLinearConv", x, 0.5, zero, w, np.float32([1]), np.array([0], U8), 0.25, zero,
        np.array([3], np.int32),
    )  # fmt: skip
    # ((3 - 1) * 2 + 3) * 0.5 / 0.25 + 1, and ((5 - 1) * 2 + 3) * 2 + 1
    np.testing.assert_array_equal(result, np.array([[[15, 23]]], U8), strict=True)


def test_quantisation_to_floats(run):
    with pytest.raises(LayerError, match="there is no quantisation to float32"):
        run("QuantizeLinear", X, 1.0, output_dtype=1)


# Losses and suppression


def test_losses(run):
    scores = np.log(np.float32([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]))
    labels = np.array([0, 2], np.int32)
    each = run("NegativeLogLikelihoodLoss", scores, labels, reduction="none")
    np.testing.assert_allclose(each, [-np.log(0.5), -np.log(0.8)], rtol=1e-6)
    loss, logs = run("SoftmaxCrossEntropyLoss", scores + 3, labels, ignore_index=0)
    np.testing.assert_allclose(loss, -np.log(0.8), rtol=1e-6)
    np.testing.assert_allclose(logs, scores, rtol=1e-5)


BOXES = np.float32([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [2, 2, 3, 3], [3, 3, 2, 2]]])
SCORES = np.float32([[[0.5, 0.75, 0.6, 0.1]]])


@pytest.mark.parametrize(
    ("operands", "params", "expected"),
    [
        ((10, 0.5), {}, [1, 2]),
        ((1, 0.5), {}, [1]),
        ((), {}, []),
        ((10, 0.9), {}, [1, 2, 0]),
        ((10, 0.9, 0.55), {}, [1, 2]),
    ],
)
def test_non_max_suppression(run, operands, params, expected):
    operands = tuple(np.array([value]) for value in operands)
    result = run("NonMaxSuppression", BOXES, SCORES, *operands, **params)
    wanted = np.array([[0, 0, box] for box in expected], np.int64).reshape(-1, 3)
    np.testing.assert_array_equal(result, wanted, strict=True)


def test_boxes_by_their_centres(run):
    centred = np.float32([[[0.5, 0.5, 1, 1], [0.5, 0.6, 1, 1], [2.5, 2.5, 1, 1]]])
    result = run("NonMaxSuppression", centred, SCORES[..., :3], 5, 0.5, center_point_box=1)
    assert result[:, 2].tolist() == [1, 2]
