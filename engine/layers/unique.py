"""Operators that remove duplicate elements."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import axis_of, require_order
from engine.layers.layer import Outputs
from engine.layers.registry import register
from engine.values import Array, Value

__all__ = ["unique", "unique_consecutive"]


@register("aten::unique_dim", operands="input dim sorted return_inverse return_counts")
@register("torch.unique", "Tensor.unique", "aten::_unique2")
def unique(
    input: Array,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Outputs:
    """Elements without duplicates: ``torch.unique``.

    Parameters
    ----------
    input : ndarray of any shape
    sorted : bool
        No effect: the result is always sorted.
    return_inverse, return_counts : bool
        Whether to compute the second and third result; otherwise they are empty, except for
        slices.
    dim : int, optional
        Compare whole slices along this dimension; by default elements.

    Returns
    -------
    values : ndarray of shape (U,), or of the shape of `input` with U at `dim`
        A copy. NaN is equal to nothing.
    inverse : int64 ndarray of the shape of `input`, or (N,)
        Index in `values` of each element.
    counts : int64 ndarray of shape (U,)
        Number of occurrences of each value.
    """
    require_order(input)
    axis = _axis(input, dim)
    values, inverse, counts = np.unique(
        input, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    inverse = inverse.reshape(input.shape if axis is None else -1)
    return _results(axis, values, (inverse, return_inverse), (counts, return_counts))


@register("aten::unique_dim_consecutive", operands="input dim return_inverse return_counts")
@register("torch.unique_consecutive", "Tensor.unique_consecutive", "aten::unique_consecutive")
def unique_consecutive(
    input: Array,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Outputs:
    """Elements without consecutive duplicates: ``torch.unique_consecutive``.

    Parameters and results as ``torch.unique``, which removes all duplicates and sorts the
    elements.
    """
    axis = _axis(input, dim)
    slices = input.reshape(-1) if axis is None else np.moveaxis(input, axis, 0)
    count = len(slices)
    begins = np.ones(count, np.bool_)
    begins[1:] = (slices[1:] != slices[:-1]).any(tuple(range(1, slices.ndim)))
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, count))
    inverse: Array = np.repeat(np.arange(len(starts)), counts)
    values = np.take(input, starts, axis)
    inverse = inverse.reshape(input.shape if axis is None else -1)
    return _results(axis, values, (inverse, return_inverse), (counts, return_counts))


def _axis(input: Array, dim: Value) -> int | None:
    if dim is None:
        return None
    if not input.ndim:
        raise LayerError("a 0-d tensor has no slices to compare")
    return axis_of(dim, input.ndim)


def _results(axis: int | None, values: Array, *others: tuple[Array, bool]) -> Outputs:
    """Return the values and the other requested results; for slices always all results."""
    nothing = np.empty(0, np.int64)
    chosen = (numbers if wanted or axis is not None else nothing for numbers, wanted in others)
    return Outputs([values, *(numbers.astype(np.int64, copy=False) for numbers in chosen)])
