"""Tensors made from numbers."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

X = np.zeros((2, 3), np.float16)


@pytest.mark.parametrize(
    ("operands", "names", "params", "expected", "dtype"),
    [
        ((), (), {"end": 4, "dtype": None}, [0, 1, 2, 3], "i8"),
        ((4,), ("",), {}, [0, 1, 2, 3], "i8"),
        ((4,), ("end",), {"start": 2}, [2, 3], "i8"),
        ((np.array(1, np.int32), np.array(7)), ("start", "end"), {"step": 2}, [1, 3, 5], "i8"),
        ((), (), {"start": 0, "end": 1, "step": 0.25}, [0, 0.25, 0.5, 0.75], "f4"),
        ((), (), {"start": 5, "end": 1, "step": -2, "dtype": "torch.float"}, [5, 3], "f4"),
        ((), (), {"end": 0}, [], "i8"),
        ((), (), {"end": 2.5, "dtype": "torch.int"}, [0, 1, 2], "i4"),
    ],
)
def test_arange(run, operands, names, params, expected, dtype):
    result = run("torch.arange", *operands, names=names, **params)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"end": 3, "step": 0}, "step is 0"),
        ({"start": 3, "end": 1}, "no step of 1 leads from 3"),
    ],
)
def test_no_range(run, params, reason):
    with pytest.raises(LayerError, match=reason):
        run("torch.arange", **params)


@pytest.mark.parametrize(
    ("operator_type", "operands", "params", "expected"),
    [
        ("torch.zeros", (), {"size": (2, 2)}, np.zeros((2, 2), np.float32)),
        ("torch.ones", ((1, 2),), {"dtype": "torch.int"}, np.ones((1, 2), np.int32)),
        ("torch.empty", (), {"size": (3,), "dtype": None}, np.zeros(3, np.float32)),
        ("torch.ones", (), {"size": None}, np.ones((), np.float32)),
        ("torch.full", (), {"size": (2,), "fill_value": 7}, np.array([7, 7])),
        ("torch.full", (), {"size": (1,), "fill_value": 0.5}, np.array([0.5], np.float32)),
        ("torch.full", ((1,), np.array(2.5)), {}, np.array([2.5])),
        ("torch.zeros_like", (X,), {}, np.zeros((2, 3), np.float16)),
        ("torch.ones_like", (X,), {"dtype": "torch.bool"}, np.ones((2, 3), bool)),
        ("torch.empty_like", (X,), {}, np.zeros((2, 3), np.float16)),
        ("torch.full_like", (X,), {"fill_value": 1.5}, np.full((2, 3), 1.5, np.float16)),
        ("Tensor.new_zeros", (X,), {"size": (1,)}, np.zeros(1, np.float16)),
        ("Tensor.new_ones", (X, (2,)), {"dtype": "torch.long"}, np.ones(2, np.int64)),
        ("Tensor.new_empty", (X,), {"size": (2,)}, np.zeros(2, np.float16)),
        ("Tensor.new_full", (X,), {"size": (1,), "fill_value": 3}, np.full(1, 3, np.float16)),
        ("aten::new_full", (X, (2,), 7, 4, None, None, None), {}, np.array([7, 7])),
        ("Tensor.fill", (X,), {"value": 2}, np.full((2, 3), 2, np.float16)),
        ("Tensor.fill", (X, np.array(3.0)), {}, np.full((2, 3), 3, np.float16)),
        ("torch.eye", (), {"n": 2, "m": 3}, np.array([[1, 0, 0], [0, 1, 0]], np.float32)),
        ("torch.full", (), {"size": (1,), "fill_value": 1, "layout": None, "device": "cpu",
                            "pin_memory": False, "requires_grad": False}, np.array([1])),
        ("aten::full", ((1,), 2, None, 0, "cpu", False), {}, np.array([2])),
        ("aten::ones_like", (X, 7, None, "cpu", False, None), {}, np.ones((2, 3))),
        ("torch.linspace", (), {"start": 0, "end": 1, "steps": 3},
         np.array([0, 0.5, 1], np.float32)),
    ],
)  # fmt: skip
def test_constants(run, operator_type, operands, params, expected):
    result = run(operator_type, *operands, **params)
    assert result.dtype == expected.dtype
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [((2,), [[1, 0], [0, 1]]), ((2, 3), [[1, 0, 0], [0, 1, 0]])],
)
def test_eye_as_torchscript_calls_it(run, sizes, expected):
    result = run("aten::eye", *sizes, 3, None, None, False)
    assert result.dtype == np.int32
    assert result.tolist() == expected


def test_linspace_as_torchscript_calls_it(run):
    result = run("aten::linspace", 0, 1, 3, 7, None, None, False)
    assert result.dtype == np.float64
    assert result.tolist() == [0, 0.5, 1]


def test_zero(run):
    result = run("aten::zero", np.array([[1, 2]], np.int16))
    assert result.dtype == np.int16
    assert result.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    ("bounds", "expected"), [((3,), [0, 1, 2]), ((1, 3), [1, 2]), ((5, 0, -2), [5, 3, 1])]
)
def test_arange_as_torchscript_calls_it(run, bounds, expected):
    result = run("aten::arange", *bounds, 6, None, "cpu", False)
    assert result.dtype == np.float32
    assert result.tolist() == expected


def test_logspace(run):
    result = run("torch.logspace", start=-1, end=2, steps=4)
    np.testing.assert_allclose(result, [0.1, 1, 10, 100], rtol=1e-6)
    assert result.dtype == np.float32
    result = run("torch.logspace", start=0, end=3, steps=4, base=2.0, dtype="torch.int64")
    assert result.tolist() == [1, 2, 4, 8]
