"""ONNX's element-wise operators, activations and conversions."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

X = np.array([-2, -0.5, 0, 0.25, 3], np.float32)
E = np.exp


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        ("Celu", {"alpha": 2.0}, [2 * (E(-1) - 1), 2 * (E(-0.25) - 1), 0, 0.25, 3]),
        ("Elu", {"alpha": 2.0}, [2 * (E(-2) - 1), 2 * (E(-0.5) - 1), 0, 0.25, 3]),
        ("HardSigmoid", {}, [0.1, 0.4, 0.5, 0.55, 1]),
        ("HardSigmoid", {"alpha": 1.0, "beta": 0.0}, [0, 0, 0, 0.25, 1]),
        ("HardSwish", {}, [-1 / 3, -0.5 * 2.5 / 6, 0, 0.25 * 3.25 / 6, 3]),
        ("LeakyRelu", {"alpha": 0.5}, [-1, -0.25, 0, 0.25, 3]),
        ("Relu", {}, [0, 0, 0, 0.25, 3]),
        ("Selu", {"alpha": 2.0, "gamma": 3.0}, [6 * (E(-2) - 1), 6 * (E(-0.5) - 1), 0, 0.75,
                                                9]),
        ("Shrink", {"lambd": 0.4}, [-2, -0.5, 0, 0, 3]),
        ("Shrink", {"lambd": 0.4, "bias": 0.25}, [-1.75, -0.25, 0, 0, 2.75]),
        ("Softsign", {}, [-2 / 3, -1 / 3, 0, 0.2, 0.75]),
        ("Swish", {"alpha": 2.0}, [-2 / (1 + E(4)), -0.5 / (1 + E(1)), 0, 0.25 / (1 + E(-0.5)),
                                   3 / (1 + E(-6))]),
        ("ThresholdedRelu", {"alpha": 0.25}, [0, 0, 0, 0, 3]),
    ],
)  # fmt: skip
def test_activation(run, operator_type, params, expected):
    result = run(operator_type, X, **params)
    np.testing.assert_allclose(result, np.array(expected, np.float32), rtol=1e-6, strict=True)


def test_prelu_broadcasts_as_any_operand(run):
    x = np.array([[-1, 2, -3], [-4, 5, 6]], np.float32)
    result = run("PRelu", x, np.array([1, 2, 3], np.float32) / 10)
    np.testing.assert_allclose(result, np.float32([[-0.1, 2, -0.9], [-0.4, 5, 6]]), strict=True)


@pytest.mark.parametrize(
    ("operator_type", "expected"),
    [
        ("Max", [[3, 4], [3, 5]]),
        ("Min", [[1, 1], [1, 1]]),
        ("Sum", [[6, 8], [5, 9]]),
        ("Mean", [[2, 8 / 3], [5 / 3, 3]]),
    ],
)
def test_several_operands(run, operator_type, expected):
    x = np.array([[2, 4], [1, 5]], np.float32)
    column, one = np.array([[3], [3]], np.float32), np.array([1], np.float32)
    result = run(operator_type, x, column, one)
    np.testing.assert_allclose(result, np.array(expected, np.float32), rtol=1e-6, strict=True)


def test_no_operand(run):
    with pytest.raises(LayerError, match="no operand"):
        run("Max")


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({}, [-2, -0.5, 0, 0.25, 3]),
        ({"min": -1.0}, [-1, -0.5, 0, 0.25, 3]),
        ({"max": 0.0}, [-2, -0.5, 0, 0, 0]),
        ({"min": -1.0, "max": 1}, [-1, -0.5, 0, 0.25, 1]),
    ],
)
def test_clip(run, ends, expected):
    np.testing.assert_array_equal(run("Clip", X, **ends), np.array(expected, np.float32))


def test_clip_by_operands(run):
    x = np.array([1, 7, 9], np.int8)
    result = run("Clip", x, np.array(2, np.int8), np.array(8, np.int8))
    np.testing.assert_array_equal(result, np.array([2, 7, 8], np.int8), strict=True)


@pytest.mark.parametrize(("fmod", "expected"), [(0, [2, -2, 1, 0]), (1, [-1, 1, 1, 0])])
def test_mod(run, fmod, expected):
    a, b = np.array([-4, 4, 4, 6], np.int32), np.array([3, -3, 3, 2], np.int32)
    np.testing.assert_array_equal(run("Mod", a, b, fmod=fmod), np.array(expected, np.int32))


@pytest.mark.parametrize(("direction", "expected"), [("LEFT", [4, 8]), ("RIGHT", [0, 2])])
def test_bit_shift(run, direction, expected):
    x, y = np.array([1, 4], np.uint8), np.array([2, 1], np.uint8)
    np.testing.assert_array_equal(run("BitShift", x, y, direction=direction), expected)


def test_where(run):
    result = run("Where", np.array([[True], [False]]), np.float32([1, 2]), np.float32([3]))
    np.testing.assert_array_equal(result, np.float32([[1, 2], [3, 3]]), strict=True)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [True, False, True, False]),
        ({"detect_negative": 0}, [True, False, False, False]),
        ({"detect_positive": 0}, [False, False, True, False]),
    ],
)
def test_is_inf(run, params, expected):
    x = np.array([np.inf, 1, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(run("IsInf", x, **params), expected)
    np.testing.assert_array_equal(run("IsNaN", x), [False, False, False, True])


@pytest.mark.parametrize(
    ("code", "dtype"),
    [(1, np.float32), (2, np.uint8), (6, np.int32), (7, np.int64), (9, np.bool_), (11, float)],
)
def test_cast(run, code, dtype):
    result = run("Cast", np.array([0, 1.75, -3], np.float32).clip(0), to=code)
    wanted = [0, 1.75, 0] if np.dtype(dtype).kind == "f" else [0, 1, 0]
    np.testing.assert_array_equal(result, np.array(wanted, dtype), strict=True)


def test_cast_to_what_is_not_known(run):
    with pytest.raises(
        (LayerError, ParameterError), match="17 is not the number of a known dtype"
    ):
        run("Cast", X, to=17)


def test_cast_like(run):
    assert run("CastLike", X, np.zeros(1, np.float64)).dtype == np.float64


def test_bit_cast(run):
    result = run("BitCast", np.array([1, -2], np.float32), to=6)
    np.testing.assert_array_equal(result, np.array([0x3F800000, -0x40000000], np.int32))
    with pytest.raises(LayerError, match="have different widths"):
        run("BitCast", X, to=7)
