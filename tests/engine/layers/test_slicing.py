"""Parts of a tensor by position."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError, ParameterError
from engine.layers.slicing import slice_tensor

X = np.arange(60).reshape(3, 4, 5)
TO_THE_END = 2147483647


def one(dim, start, end, step):
    return {"dim": dim, "start": start, "end": end, "step": step}


def several(dims, starts, ends, steps, selects):
    return {"dims": dims, "starts": starts, "ends": ends, "steps": steps, "selects": selects}


SLICES = [
    (one(0, 1, 3, 1), np.s_[1:3]),
    (one(1, 0, TO_THE_END, 2), np.s_[:, 0::2]),
    (one(-1, -3, -1, 1), np.s_[:, :, -3:-1]),
    (one(2, None, None, 1), np.s_[:]),
    (one(2, 4, 2, 1), np.s_[:, :, 4:2]),
    (one(0, -9, 9, 1), np.s_[:]),
    (several((0, 2), (1, 0), (3, 4), (1, 2), (TO_THE_END,) * 2), np.s_[1:3, :, 0:4:2]),
    (several((0, 1), (0, 1), (0, TO_THE_END), (0, 1), (2, TO_THE_END)), np.s_[2, 1:]),
    (several((0, 1, 2), (0,) * 3, (0,) * 3, (0,) * 3, (-1, 2, 3)), np.s_[-1, 2, 3]),
    (several((-1, -3), (1, 0), (2, 1), (1, 1), (TO_THE_END,) * 2), np.s_[0:1, :, 1:2]),
]


@pytest.mark.parametrize(("params", "index"), SLICES)
def test_slice(run, params, index):
    np.testing.assert_array_equal(run("Tensor.slice", X, **params), X[index])


@pytest.mark.parametrize(("params", "index"), SLICES)
def test_slice_copy(run, params, index):
    expected = X.copy()
    expected[index] = -1
    names = ("self", "src")
    result = run("Tensor.slice_copy", X, np.array(-1.0), names=names, **params)
    np.testing.assert_array_equal(result, expected)
    assert result.dtype == X.dtype


def test_slice_copy_of_a_number(run):
    found = run(
        "Tensor.slice_copy", np.zeros((2, 3), "f"), 7, names=("self", "src"), **one(1, 1, 2, 1)
    )
    assert found.tolist() == [[0, 7, 0], [0, 7, 0]]
    assert found.dtype == np.float32


def test_slice_by_operands(run):
    result = run(
        "Tensor.slice", X, 1, np.array(3), names=("input", "start", "end"), dim=0, step=1
    )
    np.testing.assert_array_equal(result, X[1:3])
    lists = run(
        "Tensor.slice", X, (1, 0), names=("input", "starts"), dims=(0, 2), ends=(3, 2),
        steps=(1, 1), selects=(TO_THE_END,) * 2,
    )  # fmt: skip
    np.testing.assert_array_equal(lists, X[1:3, :, 0:2])


def test_slice_is_a_view():
    assert np.shares_memory(slice_tensor(X, 1, 1, 3), X)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (one(0, 2, 0, -1), X[2:0:-1]),
        (one(0, -1, -2147483648, -1), X[::-1]),
        (one(0, TO_THE_END, None, -2), X[::-2]),
        (several((0, 1), (2, 0), (-5, 1), (-1, 1), (TO_THE_END,) * 2), X[::-1, 0:1]),
    ],
)
def test_a_negative_step_goes_backwards(run, params, expected):
    # PyTorch has none; they come from ONNX.
    np.testing.assert_array_equal(run("Tensor.slice", X, **params), expected)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        (one(3, 0, 1, 1), "dim 3 is not in"),
        (one(0, 0, 1, 0), "step is 0"),
        (several((0,), (0,), (0,), (0,), (3,)), "index 3 is not in dim 0 of size 3"),
        (several((0,), (0, 1), (0,), (0,), (3,)), "not equally long"),
    ],
)
def test_slices_that_cannot_be(run, params, reason):
    with pytest.raises(LayerError, match=reason):
        run("Tensor.slice", X, **params)


@pytest.mark.parametrize(
    ("dim", "index", "expected"), [(0, 2, X[2]), (1, -1, X[:, -1]), (-1, 0, X[..., 0])]
)
def test_select(run, dim, index, expected):
    np.testing.assert_array_equal(run("Tensor.select", X, dim=dim, index=index), expected)
    by_operand = run("torch.select", X, index, names=("input", "index"), dim=dim)
    np.testing.assert_array_equal(by_operand, expected)


def test_select_of_several(run):
    np.testing.assert_array_equal(run("Tensor.select", X, dim=1, index=(2, 0)), X[:, [2, 0]])


def test_select_down_to_a_scalar(run):
    result = np.asarray(run("Tensor.select", X[0, 0], dim=0, index=3))
    assert result.shape == ()
    assert result == 3


@pytest.mark.parametrize(
    ("start", "length", "expected"), [(0, 2, X[:, 0:2]), (-2, 2, X[:, 2:4]), (4, 0, X[:, 4:4])]
)
def test_narrow(run, start, length, expected):
    np.testing.assert_array_equal(
        run("torch.narrow", X, dim=1, start=start, length=length), expected
    )


@pytest.mark.parametrize(("start", "length"), [(3, 2), (-5, 1), (0, -1), (5, 0)])
def test_narrow_beyond(run, start, length):
    with pytest.raises(LayerError, match="leave dim 1 of size 4"):
        run("torch.narrow", X, dim=1, start=start, length=length)


def test_slice_scatter(run):
    expected = X.copy()
    expected[:, 1:4:2] = 7
    src = np.full((3, 2, 5), 7)
    result = run("torch.slice_scatter", X, src, dim=1, start=1, end=4, step=2)
    np.testing.assert_array_equal(result, expected)
    with pytest.raises(LayerError, match="differ in shape: 3×2×5, 3×1×5"):
        run("torch.slice_scatter", X, src[:, :1], dim=1, start=1, end=4, step=2)


def test_select_scatter(run):
    expected = X.copy()
    expected[:, 2] = 7
    result = run("torch.select_scatter", X, np.full((3, 5), 7), dim=1, index=2)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("indexes", "operands", "expected"),
    [
        ((0, "@0"), (5,), (0, 5)),
        (("@1", "2147483647", "@0"), (np.array(3), 4), (4, TO_THE_END, 3)),
        ((1, 2), (), (1, 2)),
    ],
)
def test_slice_indexes(run, indexes, operands, expected):
    assert run("pnnx.SliceIndexes", *operands, indexes=indexes) == expected


@pytest.mark.parametrize(
    ("indexes", "reason"), [(("@1",), "no operand @1"), (("x",), "neither")]
)
def test_wrong_slice_indexes(run, indexes, reason):
    with pytest.raises(ParameterError, match=reason):
        run("pnnx.SliceIndexes", 1, indexes=indexes)
