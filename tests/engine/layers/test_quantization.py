"""Quantisation."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

X = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.25, 300, -300, np.inf], np.float32)


@pytest.mark.parametrize(
    ("dtype", "zero_point", "integers"),
    [
        ("torch.quint8", 1, [2, 2, 4, 0, 0, 0, 1, 255, 0, 255]),
        (13, 1, [2, 2, 4, 0, 0, 0, 1, 255, 0, 255]),
        ("torch.qint8", 0, [0, 2, 2, 0, -2, -2, 0, 127, -128, 127]),
        ("torch.qint32", 0, [0, 2, 2, 0, -2, -2, 0, 300, -300, 2**31]),
    ],
)
def test_quantize_by_hand(run, dtype, zero_point, integers):
    y = run(
        "torch.quantize_per_tensor", X / 2, np.float32([0.5]), np.array(zero_point), dtype=dtype
    )
    np.testing.assert_array_equal(y, (np.float32(integers) - zero_point) / 2)
    assert y.dtype == np.float32
    assert run("torch.dequantize", y) is not None


def test_the_module_tells_the_dtype_by_its_zero_point(run):
    x = np.array([-200, 50, 200], np.float32)
    params = {"scale": 1.0, "dtype": "torch.qint8"}
    y = run("nn.quantized.Quantize", x, zero_point=10, **params)
    np.testing.assert_array_equal(y, [-10, 50, 200])
    y = run("nn.quantized.Quantize", x, zero_point=-10, **params)
    np.testing.assert_array_equal(y, [-118, 50, 137])
    np.testing.assert_array_equal(run("nn.quantized.DeQuantize", y), y)


CHANNELS = {
    "weight": np.array([[2, -4], [100, 1]], np.int8),
    "weight.q_per_channel_scales": np.array([0.5, 0.01]),
    "weight.q_per_channel_zero_points": np.array([0, 0]),
    "bias": np.array([0.1, -2], np.float32),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # 1 * 1 + 3 * (-2) + 0.1 and 1 * 1 + 3 * 0.01 - 2, to multiples of 0.25
        ("nn.quantized.Linear", [-5, -1]),
        ("nn.intrinsic.quantized.LinearReLU", [0, 0]),
    ],
)
def test_linear_by_hand(run, name, expected):
    x = np.array([[1, 3]], np.float32)
    y = run(name, x, weights=CHANNELS, scale=0.25, zero_point=40)
    np.testing.assert_array_equal(y, [expected])


@pytest.mark.parametrize(
    ("name", "expected"),
    [("nn.quantized.Conv2d", -1.0), ("nn.intrinsic.quantized.ConvReLU2d", 0.0)],
)
def test_convolution_by_hand(run, name, expected):
    weights = CHANNELS | {"weight": CHANNELS["weight"].reshape(2, 2, 1, 1)}
    x = np.array([1, 3], np.float32).reshape(1, 2, 1, 1)
    y = run(
        name, x, weights=weights, scale=0.25, zero_point=40, kernel_size=(1, 1),
        in_channels=2, out_channels=2, padding_mode="zeros", groups=1,
    )  # fmt: skip
    assert y.shape == (1, 2, 1, 1)
    assert y[0, 1, 0, 0] == expected


def test_a_weight_without_scales(run):
    with pytest.raises(ParameterError, match="pnnx does not store its scale"):
        run(
            "nn.quantized.Linear", X, weights={"weight": CHANNELS["weight"]}, scale=1.0,
            zero_point=0,
        )  # fmt: skip


def test_functions_of_quantised_tensors(run):
    a, b = np.array([1.0, -3.0], np.float32), np.array([0.25, 2.0], np.float32)
    joined = run("nn.quantized.cat", (a, b), 0, 0.5, 4)
    np.testing.assert_array_equal(joined, [1, -2, 0, 2])
    names = ("arg_0", "arg_1")
    for name, expected in (("add", [1, -1]), ("add_relu", [1, 0]), ("mul", [0, -2])):
        y = run(f"pnnx.custom_op.quantized.{name}", a, b, names=names, arg_2=0.5, arg_3=4)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize(("zero_point", "expected"), [(2, [0, 2, 2, 4]), (1, [0, 2, 2, 4])])
def test_arithmetic_rounds_before_the_zero_point_is_added(run, zero_point, expected):
    """Halves go to the even multiple of the scale, odd though the zero point may be."""
    halves, none = np.array([0.5, 1.5, 2.5, 3.5], np.float32), np.zeros(4, np.float32)
    for name, other in (("add", none), ("add_relu", none), ("mul", none + 1)):
        y = run(f"quantized::{name}", halves, other, 1.0, zero_point)
        assert y.tolist() == expected


def test_fake_quantisation_by_hand(run):
    y = run("aten::fake_quantize_per_tensor_affine", X, 1.0, 1, 0, 255)
    np.testing.assert_array_equal(y, [0, 2, 2, 0, -1, -1, 0, 254, -1, 254])
    x = np.array([[1.0, 2.0], [1.0, 2.0]], np.float16)
    scales, zeros = np.array([0.75, 3.0], np.float32), np.array([0, 0], np.int32)
    y = run("torch.fake_quantize_per_channel_affine", x, scales, zeros, 0, -8, 7)
    np.testing.assert_array_equal(y, np.array([[0.75, 2.25], [0, 3]], np.float16))
    assert y.dtype == np.float16


@pytest.mark.parametrize(
    ("name", "operands", "sentence"),
    [
        ("torch.quantize_per_tensor", (X, 0.0, 0, "torch.quint8"), "scale=0.0 is not positive"),
        (
            "torch.quantize_per_tensor",
            (X, 1.0, 0, "torch.int8"),
            "dtype torch.int8 is not one of",
        ),
        ("torch.quantize_per_tensor", (X, X, 0, "torch.qint8"), "scale is not one number"),
        (
            "torch.fake_quantize_per_channel_affine",
            (X, X[:3], X[:3], 0, 0, 255),
            "there are 10 channels, but 3 scales",
        ),
        (
            "torch.fake_quantize_per_tensor_affine",
            (X, -1.0, 0, 0, 255),
            "a scale is not positive",
        ),
    ],
)
def test_refusals(run, name, operands, sentence):
    with pytest.raises(LayerError, match=sentence):
        run(name, *operands)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fake_quantisation_against_pytorch(run, dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    x = (8 * rng.standard_normal((3, 4, 50))).astype(dtype)
    scales = rng.uniform(0.02, 0.2, 4).astype(np.float32)
    zeros = rng.integers(-5, 5, 4).astype(np.int32)
    expected = torch.fake_quantize_per_channel_affine(
        *map(torch.from_numpy, (x, scales, zeros)), 1, -128, 127
    )
    y = run("torch.fake_quantize_per_channel_affine", x, scales, zeros, 1, -128, 127)
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-5, atol=1e-6)
    expected = torch.fake_quantize_per_tensor_affine(torch.from_numpy(x), 0.07, 3, 0, 255)
    y = run("torch.fake_quantize_per_tensor_affine", x, 0.07, 3, 0, 255)
    np.testing.assert_allclose(y, expected.numpy(), rtol=1e-5, atol=1e-6)
