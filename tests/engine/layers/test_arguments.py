"""Readers of dims, sizes and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import LayerError
from engine.layers.arguments import (
    as_dtype,
    as_int,
    as_ints,
    axes_of,
    axis_of,
    cast,
    require_ndim,
)


@pytest.mark.parametrize(
    ("dim", "ndim", "axis"),
    [(0, 3, 0), (2, 3, 2), (-1, 3, 2), (-3, 3, 0), (0, 0, 0), (-1, 0, 0)],
)
def test_axis(dim, ndim, axis):
    assert axis_of(dim, ndim) == axis


@pytest.mark.parametrize(("dim", "ndim"), [(3, 3), (-4, 3), (1, 0), (-2, 0)])
def test_no_such_axis(dim, ndim):
    with pytest.raises(LayerError, match=f"dim {dim} is not in a tensor of {ndim} dimensions"):
        axis_of(dim, ndim)


@pytest.mark.parametrize(
    ("dims", "ndim", "axes"),
    [(None, 2, (0, 1)), ((), 2, (0, 1)), (1, 2, (1,)), ((-1, 0), 2, (1, 0)), (0, 0, ())],
)
def test_axes(dims, ndim, axes):
    assert axes_of(dims, ndim) == axes


def test_axes_twice():
    with pytest.raises(LayerError, match="has a dimension twice"):
        axes_of((0, -2), 2)


@pytest.mark.parametrize("value", [3, np.array(3), np.array([3], np.int32), np.array([[3]])])
def test_integer(value):
    assert as_int(value, "k") == 3


@pytest.mark.parametrize(
    ("value", "what"),
    [(2.5, "float"), (None, "None"), ("x", "str"), (np.ones(2, int), r"\(2,\)"),
     (np.array(1.5), r"\(\)"), ((1,), "tuple of 1")],
)  # fmt: skip
def test_no_integer(value, what):
    with pytest.raises(LayerError, match=f"k is {what}, not an integer"):
        as_int(value, "k")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ()), (4, (4,)), ((1, 2), (1, 2)), (np.array([1, 2]), (1, 2)),
        (np.array(5), (5,)), ((np.array(1), 2), (1, 2)), (np.zeros(0, np.int64), ()),
    ],
)  # fmt: skip
def test_integers(value, expected):
    assert as_ints(value, "size") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (None, None), ("torch.float", "f4"), ("torch.half", "f2"), ("torch.double", "f8"),
        ("torch.long", "i8"), ("torch.int", "i4"), ("torch.short", "i2"), ("torch.int8", "i1"),
        ("torch.uint8", "u1"), ("torch.bool", "?"), ("torch.complex64", "c8"),
        ("torch.complex128", "c16"), ("torch.complex32", "c8"), ("torch.bfloat16", "f4"),
        (6, "f4"), (4, "i8"), (11, "?"), (0, "u1"), (np.array(7), "f8"), ("float32", "f4"),
    ],
)  # fmt: skip
def test_dtype(name, expected):
    assert as_dtype(name) == (None if expected is None else np.dtype(expected))


@pytest.mark.parametrize("name", ["torch.floaty", "torch.quint8", 99, 13])
def test_no_dtype(name):
    with pytest.raises(LayerError, match="dtype .* is not known"):
        as_dtype(name)


@pytest.mark.parametrize(
    ("values", "source", "target", "expected"),
    [
        ([1.9, -1.9, 0.0], "f4", "i4", [1, -1, 0]),
        ([300.5, -1.0], "f4", "u1", [44, 255]),
        ([200, 300], "i8", "i1", [-56, 44]),
        ([0.0, 0.1, np.nan], "f4", "?", [False, True, True]),
        ([1 + 2j, 0j], "c8", "f4", [1, 0]),
        ([1 + 2j, 2j, 0j], "c8", "?", [True, True, False]),
        ([True, False], "?", "f2", [1, 0]),
        ([1e10], "f8", "f2", [np.inf]),
    ],
)
def test_cast(values, source, target, expected):
    result = cast(np.array(values, source), np.dtype(target))
    assert result.dtype == target
    np.testing.assert_array_equal(result, np.array(expected, target))


def test_cast_to_the_same_dtype_copies_nothing():
    x = np.ones(2)
    assert cast(x, x.dtype) is x


def test_wrong_rank():
    with pytest.raises(LayerError, match="mat2 has 1 dimensions, not 2 or 3: its shape is 4"):
        require_ndim(np.ones(4), (2, 3), "mat2")
