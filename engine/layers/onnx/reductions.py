"""Reductions of ONNX, which keep reduced axes with size 1 by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from engine.layers.arguments import axes_of, axis_of, cast
from engine.layers.layer import Ints
from engine.layers.reduction import REDUCTIONS, Reduction, accumulator
from engine.layers.registry import register
from engine.promotion import float_dtype
from engine.values import Array

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.promotion import DType

__all__ = ["arg_max", "arg_min"]

Axes = tuple[int, ...]


def _sum(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.sum(x, axes, accumulator(x.dtype), keepdims=keepdim))


def _sum_of_squares(x: Array, axes: Axes, keepdim: bool) -> Array:
    return _sum(np.square(x.astype(accumulator(x.dtype))), axes, keepdim)


def _log_of_sum(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.log(_sum(x, axes, keepdim)))


def _norm1(x: Array, axes: Axes, keepdim: bool) -> Array:
    return _sum(np.abs(x), axes, keepdim)


def _norm2(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.sqrt(_sum_of_squares(x, axes, keepdim)))


def _max(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.max(x, axes, keepdims=keepdim, initial=_find_limits(x.dtype)[0]))


def _min(x: Array, axes: Axes, keepdim: bool) -> Array:
    return np.asarray(np.min(x, axes, keepdims=keepdim, initial=_find_limits(x.dtype)[1]))


def _find_limits(dtype: DType) -> tuple[Any, Any]:
    """Return the lowest and highest number of a dtype: the extremes of an empty set."""
    if dtype.kind == "f":
        return -np.inf, np.inf
    if dtype.kind == "b":
        return False, True
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def _keep_dtype(dtype: DType) -> DType:
    return dtype


_TABLE: Final = {
    "ReduceMax": Reduction("largest of the elements", _max, _keep_dtype),
    "ReduceMin": Reduction("smallest of the elements", _min, _keep_dtype),
    "ReduceSum": REDUCTIONS["sum"],
    "ReduceMean": REDUCTIONS["mean"],
    "ReduceProd": REDUCTIONS["prod"],
    "ReduceLogSumExp": REDUCTIONS["logsumexp"],
    "ReduceLogSum": Reduction("logarithm of the sum of the elements", _log_of_sum, float_dtype),
    "ReduceSumSquare": Reduction("sum of the elements' squares", _sum_of_squares, _keep_dtype),
    "ReduceL1": Reduction("sum of the elements' absolute values", _norm1, _keep_dtype),
    "ReduceL2": Reduction("root of the sum of the elements' squares", _norm2, _keep_dtype),
}


def _make_reduction(reduction: Reduction) -> Callable[..., Array]:
    def compute(
        data: Array,
        axes: Ints | Array | None = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,
    ) -> Array:
        chosen = axes_of(axes, data.ndim, "axes")
        if noop_with_empty_axes and not np.size(() if axes is None else axes):
            chosen = ()  # no axis is reduced
        return cast(reduction.kernel(data, chosen, bool(keepdims)), data.dtype)

    return compute


def _register_all() -> None:
    for name, reduction in _TABLE.items():
        function = _make_reduction(reduction)
        function.__name__ = function.__qualname__ = name
        function.__doc__ = (
            f"{reduction.sentence}: ONNX ``{name}``.\n\n"
            "Reduces `axes`, all by default, and keeps them with size 1 unless `keepdims` is "
            "0. The result has the input's dtype."
        )
        register(name)(function)


_register_all()


@register("ArgMax")
def arg_max(data: Array, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """Index of the largest element along an axis: ONNX ``ArgMax``.

    Parameters
    ----------
    data : ndarray of any shape
    axis : int
        Dimension to search.
    keepdims : int
        Whether the dimension stays, with size 1.
    select_last_index : int
        Whether to return the last of equal elements, not the first.

    Returns
    -------
    int64 ndarray
    """
    return _index_of(np.argmax, data, axis, keepdims, select_last_index)


@register("ArgMin")
def arg_min(data: Array, axis: int = 0, keepdims: int = 1, select_last_index: int = 0) -> Array:
    """Index of the smallest element along an axis: ONNX ``ArgMin``.

    Parameters
    ----------
    data, axis, keepdims, select_last_index
        As in ``ArgMax``.

    Returns
    -------
    int64 ndarray
    """
    return _index_of(np.argmin, data, axis, keepdims, select_last_index)


def _index_of(
    choose: Callable[..., Any], data: Array, axis: int, keepdims: int, last: int
) -> Array:
    place = axis_of(axis, data.ndim, "axis")
    if not last:
        return np.asarray(choose(data, place, keepdims=bool(keepdims)))
    from_behind = choose(np.flip(data, place), place, keepdims=bool(keepdims))
    return np.asarray(data.shape[place] - 1 - from_behind)
