"""Padding and cropping."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError

IMAGE = np.array([[[1, 2, 3], [4, 5, 6]]], np.float32)


@pytest.mark.parametrize(
    ("operator_type", "params", "expected"),
    [
        pytest.param(
            "nn.ZeroPad2d",
            {"padding": (1, 0, 0, 1)},
            [[0, 1, 2, 3], [0, 4, 5, 6], [0, 0, 0, 0]],
            id="zero",
        ),
        pytest.param(
            "nn.ConstantPad2d",
            {"padding": (0, 1, 1, 0), "value": 7.5},
            [[7.5, 7.5, 7.5, 7.5], [1, 2, 3, 7.5], [4, 5, 6, 7.5]],
            id="constant",
        ),
        pytest.param(
            "nn.ConstantPad2d",
            {"padding": 1, "value": 0},
            [[0, 0, 0, 0, 0], [0, 1, 2, 3, 0], [0, 4, 5, 6, 0], [0, 0, 0, 0, 0]],
            id="one-number",
        ),
        pytest.param(
            "nn.ReflectionPad2d",
            {"padding": (2, 1, 1, 0)},
            [[6, 5, 4, 5, 6, 5], [3, 2, 1, 2, 3, 2], [6, 5, 4, 5, 6, 5]],
            id="reflection",
        ),
        pytest.param(
            "nn.ReplicationPad2d",
            {"padding": (2, 0, 0, 1)},
            [[1, 1, 1, 2, 3], [4, 4, 4, 5, 6], [4, 4, 4, 5, 6]],
            id="replication",
        ),
        pytest.param(
            "nn.CircularPad2d",
            {"padding": (1, 2, 1, 0)},
            [[6, 4, 5, 6, 4, 5], [3, 1, 2, 3, 1, 2], [6, 4, 5, 6, 4, 5]],
            id="circular",
        ),
        pytest.param(
            "F.pad",
            {"pad": (-1, 0, 1, -1), "mode": "constant", "value": None},
            [[0, 0], [2, 3]],
            id="negative-crops",
        ),
        pytest.param(
            "F.pad",
            {"pad": (-1, 1), "mode": "replicate"},
            [[2, 3, 3], [5, 6, 6]],
            id="crop-and-replicate",
        ),
        pytest.param(
            "F.pad", {"pad": (), "mode": "constant"}, [[1, 2, 3], [4, 5, 6]], id="none"
        ),
    ],
)
def test_values(run, operator_type, params, expected):
    y = run(operator_type, IMAGE, **params)
    np.testing.assert_array_equal(y, [expected])
    assert y.dtype == np.float32


def test_any_number_of_axes(run):
    y = run("F.pad", np.ones((1, 1), "f4"), pad=(0, 0, 1, 0), value=2.0)
    np.testing.assert_array_equal(y, [[2], [1]])


def test_pad_as_an_operand(run):
    names = ("input", "pad")
    for pad in ((1, 0), np.array([1, 0])):
        y = run("F.pad", np.ones((1, 2), "f4"), pad, names=names, mode="constant")
        np.testing.assert_array_equal(y, [[0, 1, 1]])


def test_value_as_an_operand(run):
    names = ("input", "value")
    y = run("F.pad", np.ones((1, 1), "f4"), np.array(3.0), names=names, pad=(1, 0))
    np.testing.assert_array_equal(y, [[3, 1]])


@pytest.mark.parametrize("dtype", ["?", "u1", "i8", "f2", "f8", "c8"])
def test_dtypes_stay(run, dtype):
    x = np.array([[1, 0]], dtype)
    assert run("nn.ZeroPad1d", x, padding=1).dtype == np.dtype(dtype)
    assert run("nn.ReplicationPad1d", x, padding=1).dtype == np.dtype(dtype)


@pytest.mark.parametrize(
    ("operator_type", "params", "message"),
    [
        (
            "F.pad",
            {"pad": (3, 0), "mode": "reflect"},
            "axis 2 of size 3 is too short to reflect 3 positions; at most 2 fit",
        ),
        (
            "F.pad",
            {"pad": (0, 4), "mode": "circular"},
            "axis 2 of size 3 is too short to wrap 4 positions around",
        ),
        (
            "F.pad",
            {"pad": (2, -2), "mode": "circular"},
            "axis 2 of size 1 is too short to wrap 2 positions around",
        ),
        (
            "F.pad",
            {"pad": (-2, -2)},
            "axis 2 of size 3 cannot be padded by -2 and -2",
        ),
        (
            "F.pad",
            {"pad": (1, 2, 3)},
            "pad=(1, 2, 3) must be pairs of numbers, at most 3 of them",
        ),
        (
            "F.pad",
            {"pad": (1, 1), "mode": "mirror"},
            "padding mode mirror is not one of reflect, replicate, circular",
        ),
    ],
)
def test_errors(run, operator_type, params, message):
    with pytest.raises(LayerError) as caught:
        run(operator_type, IMAGE, **params)
    assert str(caught.value) == message


def test_wrong_number_of_paddings(run):
    with pytest.raises(ParameterError, match=r"padding=\(1, 2\) has 2 numbers, 4 are needed"):
        run("nn.ZeroPad2d", IMAGE, padding=(1, 2))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("pad", [(1, 2, 0, 3, 2, 1), (3, 0, 1, 1, 0, 2), (-1, 2, 2, -1, 0, 1)])
@pytest.mark.parametrize("batched", [True, False])
def test_against_pytorch(run, rank, mode, pad, batched):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(rank).random((2, 3, *(4, 5, 6)[:rank]), dtype=np.float32)
    x = x if batched else x[0]
    pad = pad[: 2 * rank]
    value = 0.5 if mode == "constant" else None
    expected = torch.nn.functional.pad(torch.from_numpy(x), pad, mode, value)
    found = run("F.pad", x, pad=pad, mode=mode, value=value)
    np.testing.assert_array_equal(found, expected.numpy())


@pytest.mark.parametrize(
    ("kind", "rank"),
    list(itertools.product(("Zero", "Reflection", "Replication", "Circular"), (1, 2, 3))),
)
def test_modules_against_pytorch(run, kind, rank):
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(rank).random((2, *(4, 5, 6)[:rank]), dtype=np.float32)
    padding = (1, 2, 3, 0, 2, 1)[: 2 * rank]
    expected = getattr(torch.nn, f"{kind}Pad{rank}d")(padding)(torch.from_numpy(x))
    found = run(f"nn.{kind}Pad{rank}d", x, padding=padding)
    np.testing.assert_array_equal(found, expected.numpy())
