"""Elements picked by steps in memory."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError

X = np.arange(12).reshape(3, 4)


@pytest.mark.parametrize(
    ("size", "stride", "offset", "expected"),
    [
        ((2, 3), (4, 1), None, [[0, 1, 2], [4, 5, 6]]),
        ((2, 2), (1, 5), 1, [[1, 6], [2, 7]]),
        ((3,), (0,), 5, [5, 5, 5]),
        ((3, 2, 2), (2, 4, 1), 0, [[[0, 1], [4, 5]], [[2, 3], [6, 7]], [[4, 5], [8, 9]]]),
        (None, None, 7, 7),
        ((0, 2), (1, 1), 99, np.zeros((0, 2))),
    ],
)
def test_values(run, size, stride, offset, expected):
    result = run("torch.as_strided", X, size=size, stride=stride, storage_offset=offset)
    assert np.shape(result) == np.shape(expected)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("size", "stride", "offset", "reason"),
    [
        ((4, 4), (4, 1), 0, "element 15 is beyond the input's 12"),
        ((2,), (1,), 11, "element 12 is beyond"),
        ((2, 2), (1,), 0, "do not belong together"),
        ((2,), (-1,), 5, "do not belong together"),
    ],
)
def test_beyond(run, size, stride, offset, reason):
    with pytest.raises(LayerError, match=reason):
        run("torch.as_strided", X, size=size, stride=stride, storage_offset=offset)


@pytest.mark.parametrize(
    ("dimension", "size", "step", "expected"),
    [
        (0, 2, 1, [[[0, 4], [1, 5], [2, 6], [3, 7]], [[4, 8], [5, 9], [6, 10], [7, 11]]]),
        (1, 3, 2, [[[0, 1, 2]], [[4, 5, 6]], [[8, 9, 10]]]),
        (-1, 2, 2, [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]),
        (0, 3, 9, [[[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]]),
    ],
)
def test_windows_of_a_dimension(run, dimension, size, step, expected):
    assert run("aten::unfold", X, dimension, size, step).tolist() == expected


def test_windows_of_a_scalar(run):
    assert run("Tensor.unfold", np.array(7), dimension=0, size=1, step=1).tolist() == [7]


@pytest.mark.parametrize(("size", "step"), [(4, 1), (2, 0), (-1, 1)])
def test_windows_that_do_not_fit(run, size, step):
    with pytest.raises(LayerError, match=f"no windows of size {size} at steps of {step}"):
        run("aten::unfold", X, 0, size, step)


def test_scatter(run):
    x = np.zeros((2, 3), np.float32)
    src = np.array([[1, 2], [3, 4]])
    result = run("torch.as_strided_scatter", x, src, size=(2, 2), stride=(3, 1))
    assert (result.tolist(), result.dtype) == ([[1, 2, 0], [3, 4, 0]], np.float32)
    with pytest.raises(LayerError, match="the part and its replacement differ in shape"):
        run("torch.as_strided_scatter", x, src[0], size=(2, 2), stride=(3, 1))
