"""Reductions, against Python's own arithmetic."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest

from engine.errors import InferStatus, LayerError

X = np.array([[1, 2, 3], [4, 5, 9]], np.float32)
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "kwargs", "expected"),
    [
        ("sum", {}, 24),
        ("sum", {"dim": 0}, [5, 7, 12]),
        ("sum", {"dim": -1, "keepdim": True}, [[6], [18]]),
        ("sum", {"dim": (0, 1), "keepdim": True}, [[24]]),
        ("sum", {"dim": None, "keepdim": True}, [[24]]),
        ("mean", {}, 4),
        ("mean", {"dim": (1,)}, [2, 6]),
        ("prod", {"dim": 1}, [6, 180]),
        ("prod", {}, 1080),
        ("amax", {"dim": (0,)}, [4, 5, 9]),
        ("amin", {"dim": None}, 1),
        ("amin", {"dim": (-1, 0)}, 1),
        ("all", {"dim": 1}, [True, True]),
        ("any", {}, True),
        ("logsumexp", {"dim": 1}, [math.log(math.e + math.e**2 + math.e**3),
                                   math.log(math.e**4 + math.e**5 + math.e**9)]),
        ("var", {"dim": 1}, [1, 7]),
        ("var", {"dim": 1, "unbiased": False}, [2 / 3, 14 / 3]),
        ("var", {"dim": 1, "correction": 2}, [2, 14]),
        ("std", {"dim": (0,)}, [3 / math.sqrt(2), 3 / math.sqrt(2), 6 / math.sqrt(2)]),
        ("std", {}, statistics.stdev([1, 2, 3, 4, 5, 9])),
        ("norm", {"p": 2}, math.sqrt(136)),
        ("norm", {"p": "fro", "dim": 1}, [math.sqrt(14), math.sqrt(122)]),
        ("norm", {"p": 1, "dim": 0, "keepdim": True}, [[5, 7, 12]]),
        ("norm", {"p": INF, "dim": 1}, [3, 9]),
        ("norm", {"p": "-inf", "dim": 1}, [1, 4]),
        ("norm", {"p": 0}, 6),
        ("norm", {"p": 3, "dim": 1}, [36 ** (1 / 3), 918 ** (1 / 3)]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["torch", "Tensor"])
def test_by_hand(run, form, name, kwargs, expected):
    result = run(f"{form}.{name}", X, **kwargs)
    assert result.dtype == (np.bool_ if name in {"all", "any"} else np.float32)
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("sum", "?", "i8"), ("sum", "u1", "i8"), ("sum", "i4", "i8"), ("sum", "f2", "f2"),
        ("sum", "f8", "f8"), ("sum", "c8", "c8"), ("prod", "i4", "i8"), ("prod", "?", "i8"),
        ("mean", "f2", "f2"), ("mean", "c8", "c8"), ("amax", "i4", "i4"), ("amax", "?", "?"),
        ("all", "u1", "u1"), ("any", "f4", "?"), ("logsumexp", "i8", "f4"), ("var", "c8", "f4"),
        ("norm", "c16", "f8"), ("cumsum", "?", "i8"), ("cumprod", "i4", "i8"),
        ("cumsum", "f2", "f2"),
    ],
)  # fmt: skip
def test_dtypes(run, name, dtype, expected):
    assert run(f"torch.{name}", np.ones((2, 3), dtype), dim=0).dtype == expected


@pytest.mark.parametrize(("dtype", "expected"), [("torch.double", "f8"), ("torch.int", "i4")])
def test_dtype_argument(run, dtype, expected):
    result = run("torch.sum", np.array([1.9, 2.9], np.float32), dtype=dtype)
    assert result.dtype == expected
    assert result == pytest.approx(4.8 if expected == "f8" else 3)


@pytest.mark.parametrize("dtype", [np.int64, np.bool_])
def test_no_mean_of_integers(run, dtype):
    with pytest.raises(LayerError, match="there is no mean of"):
        run("torch.mean", np.ones(3, dtype))


def test_small_numbers_are_not_lost_in_a_large_sum(run):
    """A plain float32 sum along the first axis stays at 2**24."""
    x = np.ones((3, 2), np.float32)
    x[0] = 2**24
    assert run("torch.sum", x, dim=0).tolist() == [2**24 + 2] * 2
    many = np.full((200_000, 2), 0.1, np.float32)
    exact = math.fsum([float(np.float32(0.1))] * 200_000)
    np.testing.assert_allclose(run("torch.sum", many, dim=0), exact, rtol=1e-7)


def test_logsumexp_does_not_overflow(run):
    x = np.array([1000.0, 1000.0], np.float32)
    assert run("torch.logsumexp", x, dim=0) == pytest.approx(1000 + math.log(2))
    assert run("torch.logsumexp", np.array([-INF, -INF]), dim=0) == -INF
    assert run("torch.logsumexp", np.array([INF, 1.0]), dim=0) == INF


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sum", 0), ("mean", NAN), ("prod", 1), ("all", True), ("any", False), ("var", NAN),
     ("std", NAN), ("logsumexp", -INF), ("norm", 0), ("nansum", 0), ("nanmean", NAN)],
)  # fmt: skip
def test_of_nothing(run, name, expected):
    """PyTorch's values for no elements."""
    result = run(f"torch.{name}", np.zeros((0, 2), np.float32), dim=0)
    np.testing.assert_array_equal(result, [expected, expected])


@pytest.mark.parametrize("name", ["amax", "amin", "max", "min", "argmax", "median"])
def test_no_choice_from_nothing(run, name):
    with pytest.raises(LayerError, match="no elements to choose from") as caught:
        run(f"torch.{name}", np.zeros((2, 0), np.float32), dim=1)
    assert caught.value.status is InferStatus.kInferInputsEmpty
    assert run(f"torch.{name}", np.zeros((2, 0), np.float32), dim=0) is not None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("sum", NAN), ("mean", NAN), ("prod", NAN), ("amax", NAN), ("amin", NAN), ("var", NAN),
     ("norm", NAN), ("logsumexp", NAN), ("all", True), ("nansum", 3), ("nanmean", 1.5)],
)  # fmt: skip
def test_of_nan(run, name, expected):
    result = run(f"torch.{name}", np.array([1, NAN, 2], np.float32), dim=0)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "amax", "std", "norm", "cumsum"])
def test_of_a_scalar(run, name):
    result = run(f"torch.{name}", np.array(2.5, np.float32), dim=0)
    assert result.shape == ()
    np.testing.assert_array_equal(result, NAN if name == "std" else 2.5)


def test_spread_with_mean(run):
    variance, mean = run("torch.var_mean", X, dim=1)
    np.testing.assert_array_equal(variance, [1, 7])
    np.testing.assert_array_equal(mean, [2, 6])
    deviation, mean = run("torch.std_mean", X, dim=1, keepdim=True, correction=0)
    np.testing.assert_allclose(deviation, [[math.sqrt(2 / 3)], [math.sqrt(14 / 3)]], rtol=1e-6)
    assert mean.shape == (2, 1)


def test_nuclear_norm(run):
    x = np.array([[3, 0], [0, -4]], np.float32)
    np.testing.assert_allclose(run("torch.norm", x, p="nuc"), 7, rtol=1e-6)
    with pytest.raises(LayerError, match="takes 2 dimensions, not 1"):
        run("torch.norm", x, p="nuc", dim=0)


def test_no_norm_of_integers(run):
    with pytest.raises(LayerError, match="a norm needs floating-point numbers, not int64"):
        run("torch.norm", np.ones(3, np.int64))


@pytest.mark.parametrize(
    ("name", "kwargs", "expected"),
    [
        ("ReduceSum", {}, [[24]]),
        ("ReduceSum", {"axes": (1,), "keepdims": 0}, [6, 18]),
        ("ReduceMax", {"axes": 0, "keepdims": 1}, [[4, 5, 9]]),
        ("ReduceMin", {"axes": (0, 1), "keepdims": 0}, 1),
        ("ReduceMean", {"axes": (-1,), "keepdims": 0}, [2, 6]),
        ("ReduceProd", {"axes": (1,), "keepdims": 0}, [6, 180]),
        ("ReduceL1", {"axes": (1,), "keepdims": 0}, [6, 18]),
        ("ReduceL2", {"axes": (1,), "keepdims": 0}, [math.sqrt(14), math.sqrt(122)]),
        ("ReduceLogSum", {"axes": (1,), "keepdims": 0}, [math.log(6), math.log(18)]),
        ("ReduceSumSquare", {"axes": (1,), "keepdims": 0}, [14, 122]),
        ("ReduceSum", {"noop_with_empty_axes": 1}, X),
    ],
)
def test_raw_onnx(run, name, kwargs, expected):
    result = run(name, X, **kwargs)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-6)
