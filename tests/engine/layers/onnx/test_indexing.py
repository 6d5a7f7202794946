"""ONNX's operators that take, replace and choose elements by their places."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)


def ints(*values):
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("indices", "axis", "expected"),
    [
        (ints(1, 0), 0, [[4, 5, 6], [1, 2, 3]]),
        (ints([2, -1], [0, 0]), 1, [[[3, 3], [1, 1]], [[6, 6], [4, 4]]]),
        (1, 1, [2, 5]),
    ],
)
def test_gather(run, indices, axis, expected):
    result = run("Gather", X, indices, axis=axis)
    np.testing.assert_array_equal(result, np.array(expected, np.float32), strict=True)


def test_gather_elements(run):
    result = run("GatherElements", X, ints([2, 0], [-1, 1]), axis=1)
    np.testing.assert_array_equal(result, np.float32([[3, 1], [6, 5]]), strict=True)


@pytest.mark.parametrize(
    ("indices", "batch_dims", "expected"),
    [
        (ints([0, 1], [1, -1]), 0, [2, 6]),
        (ints([1], [0]), 0, [[4, 5, 6], [1, 2, 3]]),
        (ints([[0, 1]], [[1, 2]]), 0, [[2], [6]]),
        (ints([2], [0]), 1, [3, 4]),
    ],
)
def test_gather_nd(run, indices, batch_dims, expected):
    result = run("GatherND", X, indices, batch_dims=batch_dims)
    np.testing.assert_array_equal(result, np.array(expected, np.float32), strict=True)


def test_gather_nd_of_too_long_vectors(run):
    with pytest.raises(LayerError, match="do not fit each other: their shapes are 2×3, 1×3"):
        run("GatherND", X, ints([0, 0, 0]))


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [
        ("none", [[1, 20, 3], [7, 5, 30]]),
        ("add", [[1, 32, 3], [11, 5, 36]]),
        ("mul", [[1, 400, 3], [28, 5, 180]]),
        ("max", [[1, 20, 3], [7, 5, 30]]),
        ("min", [[1, 2, 3], [4, 5, 6]]),
    ],
)
@pytest.mark.parametrize(
    ("operator_type", "operands", "params"),
    [
        (
            "ScatterElements",
            (ints([1, 1], [2, 0]), np.float32([[10, 20], [30, 7]])),
            {"axis": 1},
        ),
        ("ScatterND", (ints([0, 1], [0, 1], [1, -1], [1, 0]), np.float32([10, 20, 30, 7])), {}),
    ],
)
def test_scatter(run, operator_type, operands, params, reduction, expected):
    # Two numbers come to the same place, the middle of the first row.
    result = run(operator_type, X, *operands, reduction=reduction, **params)
    np.testing.assert_array_equal(result, np.array(expected, np.float32), strict=True)
    np.testing.assert_array_equal(X, [[1, 2, 3], [4, 5, 6]])


def test_scatter_of_whole_rows(run):
    result = run("ScatterND", X, ints([1]), np.float32([[7, 8, 9]]))
    np.testing.assert_array_equal(result, [[1, 2, 3], [7, 8, 9]])


@pytest.mark.parametrize("operator_type", ["ScatterElements", "ScatterND"])
def test_scatter_that_is_not_known(run, operator_type):
    with pytest.raises(LayerError, match="reduction is mean, not one of none, add"):
        run(operator_type, X, ints([0]), np.float32([[1]]), reduction="mean")


def test_scatter_nd_that_does_not_fit(run):
    with pytest.raises(LayerError, match="their shapes are 2×3, 1×1, 1×2"):
        run("ScatterND", X, ints([0]), np.float32([[1, 2]]))


@pytest.mark.parametrize(
    ("mode", "starts", "expected"),
    [
        ("linear", ints(1), [[1, 8, 9, 4]]),
        ("circular", ints(3), [[9, 2, 3, 8]]),
        ("linear", None, [[8, 9, 3, 4]]),
    ],
)
def test_tensor_scatter(run, mode, starts, expected):
    cache, update = np.float32([[[1], [2], [3], [4]]]), np.float32([[[8], [9]]])
    operands = (cache, update) if starts is None else (cache, update, starts)
    result = run("TensorScatter", *operands, mode=mode)
    np.testing.assert_array_equal(result[..., 0], expected)


def test_tensor_scatter_beyond_the_end(run):
    with pytest.raises(LayerError, match="2 steps from 3 on exceed a cache of 4"):
        run("TensorScatter", np.zeros((1, 4, 1)), np.zeros((1, 2, 1)), ints(3))


GRID = np.arange(12).reshape(3, 4)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"starts": (1, 0), "ends": (3, 3)}, GRID[1:3, 0:3]),
        ({"starts": 1, "ends": 2147483647, "axes": -1}, GRID[:, 1:]),
        ({"starts": (0,), "ends": (-1,), "axes": (1,), "steps": (2,)}, GRID[:, 0:3:2]),
        ({"starts": 3, "ends": -2147483648, "axes": 1, "steps": -1}, GRID[:, ::-1]),
        ({"starts": 20, "ends": 0, "axes": 1, "steps": -2}, GRID[:, 3:0:-2]),
    ],
)
def test_slice(run, arguments, expected):
    np.testing.assert_array_equal(run("Slice", GRID, **arguments), expected)


def test_slice_by_operands(run):
    result = run("Slice", GRID, ints(1), ints(2), ints(0))
    np.testing.assert_array_equal(result, GRID[1:2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"starts": (0, 0), "ends": (1,)}, "not equally long"),
        ({"starts": 0, "ends": 1, "axes": 0, "steps": 0}, "a step is 0"),
        ({"starts": 0, "ends": 1, "axes": 2}, "axis 2 is not in a tensor of 2"),
    ],
)
def test_slice_that_does_not_fit(run, arguments, message):
    with pytest.raises(LayerError, match=message):
        run("Slice", GRID, **arguments)


def test_reverse_sequence(run):
    x = np.array([[0, 4, 8], [1, 5, 9], [2, 6, 10]], np.float32)  # steps × samples
    by_time = run("ReverseSequence", x, ints(3, 2, 1), time_axis=0, batch_axis=1)
    np.testing.assert_array_equal(by_time, [[2, 5, 8], [1, 4, 9], [0, 6, 10]])
    by_batch = run("ReverseSequence", x.T, ints(3, 2, 1), time_axis=1, batch_axis=0)
    np.testing.assert_array_equal(by_batch, by_time.T)


@pytest.mark.parametrize(
    ("params", "values", "indices"),
    [
        ({}, [[3, 2], [6, 5]], [[2, 1], [2, 1]]),
        ({"largest": 0}, [[1, 2], [4, 5]], [[0, 1], [0, 1]]),
        ({"axis": 0}, [[4, 5, 6], [1, 2, 3]], [[1, 1, 1], [0, 0, 0]]),
    ],
)
def test_top_k(run, params, values, indices):
    found = run("TopK", X, 2, **params)
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], ints(*indices), strict=True)


def test_hardmax(run):
    x = np.float32([[1, 3, 3], [2, 0, 1]])
    np.testing.assert_array_equal(run("Hardmax", x), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(run("Hardmax", x, axis=0), [[0, 1, 1], [1, 0, 0]])


def test_non_zero(run):
    result = run("NonZero", np.array([[1, 0], [2, 3]]))
    np.testing.assert_array_equal(result, ints([0, 1, 1], [0, 0, 1]), strict=True)


def test_compress(run):
    condition = np.array([False, True])
    np.testing.assert_array_equal(run("Compress", X, condition, axis=1), [[2], [5]])
    np.testing.assert_array_equal(run("Compress", X, condition), [2])


@pytest.mark.parametrize(
    ("axis", "expected"),
    [(-1, [[0, 0, 9], [9, 0, 0], [0, 0, 0]]), (0, [[0, 9, 0], [0, 0, 0], [9, 0, 0]])],
)
def test_one_hot(run, axis, expected):
    result = run("OneHot", ints(-1, 0, 3), 3, np.float32([0, 9]), axis=axis)
    np.testing.assert_array_equal(result, np.float32(expected), strict=True)


def test_unique(run):
    x = np.float32([2, 1, 1, 3, 2])
    in_order = run("Unique", x)
    assert [part.tolist() for part in in_order] == [
        [1, 2, 3], [1, 0, 3], [1, 0, 0, 2, 1], [2, 2, 1],
    ]  # fmt: skip
    as_they_come = run("Unique", x, sorted=0)
    assert [part.tolist() for part in as_they_come] == [
        [2, 1, 3], [0, 1, 3], [0, 1, 1, 2, 0], [2, 2, 1],
    ]  # fmt: skip
    rows = run("Unique", np.float32([[1, 0], [1, 0], [0, 2]]), axis=0)
    assert rows[0].tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, [[1, 2, 3], [0, 5, 6]]),
        ({"upper": 0}, [[1, 0, 0], [4, 5, 0]]),
        ({"k": 1}, [[0, 2, 3], [0, 0, 6]]),
        ({"k": -1, "upper": 0}, [[0, 0, 0], [4, 0, 0]]),
    ],
)
def test_trilu(run, params, expected):
    np.testing.assert_array_equal(run("Trilu", X, **params), np.float32(expected), strict=True)


@pytest.mark.parametrize(
    ("params", "sums", "products"),
    [
        ({}, [1, 3, 6], [1, 2, 6]),
        ({"reverse": 1}, [6, 5, 3], [6, 6, 3]),
        ({"exclusive": 1}, [0, 1, 3], [1, 1, 2]),
        ({"exclusive": 1, "reverse": 1}, [5, 3, 0], [6, 3, 1]),
    ],
)
def test_running_sums_and_products(run, params, sums, products):
    x = np.array([1, 2, 3], np.int32)
    for operator_type, expected in (("CumSum", sums), ("CumProd", products)):
        result = run(operator_type, x, np.array(0), **params)
        np.testing.assert_array_equal(result, np.array(expected, np.int32), strict=True)
