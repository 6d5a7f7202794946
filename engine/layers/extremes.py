"""Operators that select elements by order: the largest, the median, sorted elements.

NaN is larger than every number, as in PyTorch. Of equal elements the first is chosen.
Indices are int64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.errors import InferStatus, LayerError
from engine.layers.arguments import along, as_int, axis_of, require_order, require_steps
from engine.layers.layer import Outputs
from engine.layers.partition import order_by_nth_element
from engine.layers.reduction import REDUCTIONS, reduce
from engine.layers.registry import register
from engine.promotion import as_operand, is_numbers, promote
from engine.values import Array, Value

__all__ = [
    "argmax",
    "argmin",
    "argsort",
    "kthvalue",
    "maximum",
    "median",
    "minimum",
    "mode",
    "msort",
    "nanmedian",
    "sort",
    "topk",
]


@register("torch.max", "Tensor.max", "aten::max")
def maximum(
    input: Array,
    dim: Array | int | None = None,
    keepdim: bool = False,
    *,
    other: Array | None = None,
) -> Value:
    """Largest element, along a dimension with its index: ``torch.max``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int, optional
        Dimension to reduce; all elements by default.
    keepdim : bool
        Keep the dimension with size 1.
    other : ndarray, optional
        Compare element by element with another tensor instead: ``torch.maximum``.

    Returns
    -------
    ndarray, or values and indices where `dim` is given
        NaN if an element is NaN.
    """
    return _find_extreme(input, dim, keepdim, other, "amax")


@register("torch.min", "Tensor.min", "aten::min")
def minimum(
    input: Array,
    dim: Array | int | None = None,
    keepdim: bool = False,
    *,
    other: Array | None = None,
) -> Value:
    """Smallest element, along a dimension with its index: ``torch.min``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int, optional
        Dimension to reduce; all elements by default.
    keepdim : bool
        Keep the dimension with size 1.
    other : ndarray, optional
        Compare element by element with another tensor instead: ``torch.minimum``.

    Returns
    -------
    ndarray, or values and indices where `dim` is given
        NaN if an element is NaN.
    """
    return _find_extreme(input, dim, keepdim, other, "amin")


@register("torch.argmax", "Tensor.argmax", "aten::argmax")
def argmax(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Index of the largest element: ``torch.argmax``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int, optional
        Dimension to reduce. By default the index refers to the flattened tensor.
    keepdim : bool
        Keep the reduced dimension with size 1.

    Returns
    -------
    int64 ndarray
    """
    return _index_of(np.argmax, input, dim, keepdim)


@register("torch.argmin", "Tensor.argmin", "aten::argmin")
def argmin(input: Array, dim: int | None = None, keepdim: bool = False) -> Array:
    """Index of the smallest element: ``torch.argmin``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int, optional
        Dimension to reduce. By default the index refers to the flattened tensor.
    keepdim : bool
        Keep the reduced dimension with size 1.

    Returns
    -------
    int64 ndarray
    """
    return _index_of(np.argmin, input, dim, keepdim)


@register("torch.topk", "Tensor.topk", "aten::topk")
def topk(
    input: Array, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> Outputs:
    """Largest or smallest elements, with their indices: ``torch.topk``.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    k : int
        How many, at most N.
    dim : int
    largest : bool
        Return the largest elements, largest first, or the smallest, smallest first.
    sorted : bool
        If false, the order is the one that PyTorch has on CPUs.

    Returns
    -------
    values : ndarray of shape (A, k, B)
    indices : int64 ndarray of shape (A, k, B)
    """
    axis, count = axis_of(dim, input.ndim), as_int(k, "k")
    length = input.shape[axis] if input.ndim else 1
    if not 0 <= count <= length:
        raise LayerError(f"k is {count}, there are {length} elements along dim {dim}")
    order = _order(input, axis, descending=largest)
    # PyTorch sorts anyway if `k` is small.
    if not sorted and 64 * count > length > 1:
        order = _restore_nth_order(input, order, axis, count)
    return _take_along(input, order[along(axis, slice(count))] if input.ndim else order, axis)


@register("aten::sort", operands=("input dim descending", "input stable dim descending"))
@register("torch.sort", "Tensor.sort")
def sort(input: Array, dim: int = -1, descending: bool = False, stable: bool = True) -> Outputs:
    """Sort along a dimension: ``torch.sort``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int
    descending : bool
        Largest first.
    stable : bool
        No effect: equal elements always keep their order.

    Returns
    -------
    values, indices : ndarray, int64 ndarray of the same shape
    """
    axis = axis_of(dim, input.ndim)
    return _take_along(input, _order(input, axis, descending), axis)


@register("torch.msort", "Tensor.msort", "aten::msort")
def msort(input: Array) -> Array:
    """Sort along the first dimension: ``torch.msort``.

    Parameters
    ----------
    input : ndarray of any shape

    Returns
    -------
    ndarray of the same shape
        A copy.
    """
    axis = axis_of(0, input.ndim)
    return np.take_along_axis(input, _order(input, axis, descending=False), axis)


@register("aten::argsort", operands=("input dim descending", "input stable dim descending"))
@register("torch.argsort", "Tensor.argsort")
def argsort(
    input: Array, dim: int = -1, descending: bool = False, stable: bool = True
) -> Array:
    """Indices that sort along a dimension: ``torch.argsort``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int
    descending : bool
        Largest first.
    stable : bool
        No effect: equal elements always keep their order.

    Returns
    -------
    int64 ndarray of the same shape
    """
    return _order(input, axis_of(dim, input.ndim), descending)


@register("torch.kthvalue", "Tensor.kthvalue", "aten::kthvalue")
def kthvalue(input: Array, k: int, dim: int = -1, keepdim: bool = False) -> Outputs:
    """K-th smallest element with its index: ``torch.kthvalue``.

    Parameters
    ----------
    input : ndarray of any shape
    k : int
        From 1.
    dim : int
    keepdim : bool
        Keep the dimension with size 1.

    Returns
    -------
    values, indices : ndarray, int64 ndarray
    """
    axis, place = axis_of(dim, input.ndim), as_int(k, "k")
    length = input.shape[axis] if input.ndim else 1
    if not 1 <= place <= length:
        raise LayerError(f"k is {place}, there are {length} elements along dim {dim}")
    order = _order(input, axis, descending=False)
    if input.ndim:
        order = order[along(axis, slice(place - 1, place))]
    return _take_along(input, order, axis, keepdim=keepdim)


@register("torch.median", "Tensor.median", "aten::median")
def median(input: Array, dim: int | None = None, keepdim: bool = False) -> Value:
    """Median element, the lower of two: ``torch.median``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int, optional
        Dimension to reduce; all elements by default.
    keepdim : bool
        Keep the dimension with size 1.

    Returns
    -------
    ndarray, or values and indices where `dim` is given
        NaN if an element is NaN.
    """
    return _median(input, dim, keepdim, ignore_nan=False)


@register("torch.nanmedian", "Tensor.nanmedian", "aten::nanmedian")
def nanmedian(input: Array, dim: int | None = None, keepdim: bool = False) -> Value:
    """Median element, the lower of two, ignoring NaN: ``torch.nanmedian``.

    Parameters and result as ``torch.median``; NaN if all elements are NaN.
    """
    return _median(input, dim, keepdim, ignore_nan=True)


def _median(array: Array, dim: int | None, keepdim: bool, *, ignore_nan: bool) -> Value:
    if dim is None:
        if not array.size and array.dtype.kind == "f":
            return np.array(np.nan, array.dtype)
        return _median_along(array.reshape(-1), 0, keepdim=False, ignore_nan=ignore_nan)[0]
    axis = axis_of(dim, array.ndim)
    return _median_along(array, axis, keepdim=keepdim, ignore_nan=ignore_nan)


def _median_along(array: Array, axis: int, *, keepdim: bool, ignore_nan: bool) -> Outputs:
    order = _order(array, axis, descending=False)
    if not array.ndim:
        return _take_along(array, order, axis)
    _require_elements(array.shape[axis])
    unordered = np.isnan(array)  # NaN comes last in order
    numbers = array.shape[axis] - np.count_nonzero(unordered, axis, keepdims=True)
    middle = np.maximum(numbers - 1, 0) // 2
    indices = np.take_along_axis(order, middle, axis)
    if not ignore_nan:
        first = np.expand_dims(unordered.argmax(axis), axis)
        indices = np.where(unordered.any(axis, keepdims=True), first, indices)
    return _take_along(array, indices, axis, keepdim=keepdim)


@register("torch.mode", "Tensor.mode", "aten::mode")
def mode(input: Array, dim: int = -1, keepdim: bool = False) -> Outputs:
    """Most frequent element along a dimension, with its index: ``torch.mode``.

    Parameters
    ----------
    input : ndarray of any shape
    dim : int
    keepdim : bool
        Keep the dimension with size 1.

    Returns
    -------
    values, indices : ndarray, int64 ndarray
        The smallest of equally frequent elements, and the index of its last occurrence.
    """
    axis = axis_of(dim, input.ndim)
    order = _order(input, axis, descending=False)
    if not input.ndim:
        return _take_along(input, order, axis)
    _require_elements(input.shape[axis])
    rows = np.moveaxis(np.take_along_axis(input, order, axis), axis, -1)
    require_steps(rows.shape[-1], "elements")
    runs = np.ones(rows.shape, np.int64)  # length of the run of equal elements that ends here
    for place in range(1, rows.shape[-1]):
        runs[..., place] += runs[..., place - 1] * (rows[..., place - 1] == rows[..., place])
    longest = np.expand_dims(runs.argmax(-1), axis)
    return _take_along(input, np.take_along_axis(order, longest, axis), axis, keepdim=keepdim)


def _find_extreme(input: Array, dim: Value, keepdim: bool, other: Value, name: str) -> Value:
    if isinstance(dim, np.ndarray):  # TorchScript's overload has the other tensor here
        dim, other = None, dim
    if is_numbers(dim):  # a constant vector of ONNX
        other, dim = as_operand(dim, input.dtype), None
    if isinstance(other, np.ndarray):
        left, right = promote(input, other)
        with np.errstate(all="ignore"):
            return np.asarray((np.maximum if name == "amax" else np.minimum)(left, right))
    if dim is None:
        return reduce(REDUCTIONS[name], input, None, keepdim)
    choose = np.argmax if name == "amax" else np.argmin
    indices = _index_of(choose, input, dim, keepdim=True)
    return _take_along(input, indices, axis_of(dim, input.ndim), keepdim=keepdim)


def _index_of(choose: Callable[..., Any], input: Array, dim: Value, keepdim: bool) -> Array:
    require_order(input)
    if dim is None:
        _require_elements(input.size)
        return np.asarray(choose(input)).reshape((1,) * input.ndim if keepdim else ())
    axis = axis_of(dim, input.ndim)
    if not input.ndim:
        return np.zeros((), np.int64)
    _require_elements(input.shape[axis])
    return np.asarray(choose(input, axis, keepdims=keepdim))


def _require_elements(count: int) -> None:
    if not count:
        raise LayerError("there are no elements to choose from", InferStatus.kInferInputsEmpty)


def _order(array: Array, axis: int, descending: bool) -> Array:
    """Indices that sort along an axis, equal elements in their order, NaN the largest."""
    require_order(array)
    if not array.ndim:
        return np.zeros((), np.int64)
    if not descending:
        return np.argsort(array, axis, kind="stable")
    # Sort the reversed array and reverse the result, so that equal elements keep their order.
    backwards = np.argsort(np.flip(array, axis), axis, kind="stable")
    order: Array = array.shape[axis] - 1 - np.flip(backwards, axis)
    return order


def _restore_nth_order(array: Array, order: Array, axis: int, count: int) -> Array:
    """Reorder sorted elements to the order of ``std::nth_element``."""
    in_order = np.moveaxis(np.take_along_axis(array, order, axis), axis, -1)
    left, right = in_order[..., :-1], in_order[..., 1:]
    differs = (left != right) & ~(np.isnan(left) & np.isnan(right))
    ranks = np.zeros(in_order.shape, np.int64)
    np.cumsum(differs, -1, out=ranks[..., 1:])
    by_rank = np.moveaxis(order, axis, -1)
    keys = np.empty_like(ranks)
    np.put_along_axis(keys, by_rank, ranks, -1)
    rows = [
        order_by_nth_element(r, count - 1) for r in keys.reshape(-1, array.shape[axis]).tolist()
    ]
    return np.moveaxis(np.array(rows, np.int64).reshape(keys.shape), -1, axis)


def _take_along(array: Array, indices: Array, axis: int, *, keepdim: bool = True) -> Outputs:
    """Elements at indices along an axis, and the indices."""
    if not array.ndim:
        return Outputs((array, indices))
    values = np.take_along_axis(array, indices, axis)
    if keepdim:
        return Outputs((values, indices))
    return Outputs((values.squeeze(axis), indices.squeeze(axis)))
