"""Checks and normalises index tensors, and combines elements by index.

Element-wise operators index the flattened tensor. There, ``take`` and ``ufunc.at`` of NumPy are
several times as fast as with one tensor of indices per dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import along
from engine.layers.windows import blocks

if TYPE_CHECKING:
    from engine.values import Array

__all__ = [
    "Join",
    "flat_positions",
    "join_at",
    "normalize_indices",
    "replace_at",
    "require_integers",
    "take_along",
]

# Combines new elements with those at positions of a flat array, one after the other.
Join: TypeAlias = Callable[[Any, Any, Any], object]

_CHUNK: Final = 1 << 18  # elements whose positions are computed at once


def require_integers(index: Array) -> Array:
    """Check that a tensor of indices holds integers."""
    if index.dtype.kind not in "iu":
        raise LayerError(f"indices have the dtype {index.dtype}, not an integer one")
    return index


def normalize_indices(index: Array, size: int, axis: int) -> Array:
    """Count indices from the front.

    Parameters
    ----------
    index : integer ndarray of any shape
        From ``-size`` to ``size - 1``.
    size, axis : int
        Of the indexed dimension.

    Returns
    -------
    int64 ndarray of the same shape
        `index` itself if no index is negative.

    Raises
    ------
    LayerError
        With the first of the indices that are farthest out of range.
    """
    if not require_integers(index).size:
        return index.astype(np.intp)
    low, high = int(index.min()), int(index.max())
    if low < -size or high >= size:
        wrong = high if high >= size else low
        raise LayerError(f"index {wrong} is not in dim {axis} of size {size}")
    index = index.astype(np.intp, copy=False)
    return np.where(index < 0, index + size, index) if low < 0 else index


def take_along(input: Array, axis: int, index: Array) -> Array:
    """Take places of one axis: ``input[:, index]`` for the axis 1.

    Parameters
    ----------
    input : ndarray of shape (A, N, B)
    axis : int
    index : integer ndarray of any shape (K)
        From -N to N - 1.

    Returns
    -------
    ndarray of shape (A, *K, B)
        A copy.

    Raises
    ------
    IndexError
        With the index that is out of range.
    """
    # `take` is several times as fast, but first copies a whole view or unaligned weight.
    if input.flags.c_contiguous and input.flags.aligned:
        return np.asarray(input.take(require_integers(index), axis))
    return np.asarray(input[along(axis, require_integers(index))])


def flat_positions(
    shape: tuple[int, ...], axis: int, index: Array, part: tuple[slice, ...]
) -> Array:
    """Positions of ``array[i, index[i, j, k], k]`` in the flattened array.

    Parameters
    ----------
    shape : tuple of int
        Of the array.
    axis : int
        The indexed dimension; 1 in the formula.
    index : int64 ndarray, not larger than the array in the other dimensions
        Counted from the front.
    part : tuple of slice
        The requested part of the indices; with start and stop.

    Returns
    -------
    int64 ndarray of the shape of that part
        A new array.
    """
    places: Array = index[part] * math.prod(shape[axis + 1 :])
    for other, taken_of in enumerate(part):
        if other != axis:
            line = np.arange(taken_of.start, taken_of.stop) * math.prod(shape[other + 1 :])
            places += line.reshape(-1, *(1,) * (len(shape) - other - 1))
    return places


def replace_at(flat: Array, places: Array, new: Array) -> None:
    """Replace elements; the last one wins."""
    flat[places] = new


def join_at(join: Join, result: Array, axis: int, index: Array, new: Array) -> None:
    """Join elements by index along an axis, as in ``result[i, index[i, j, k], k] += new[i, j, k]``.

    Parameters
    ----------
    join : callable
        ``ufunc.at``, or `replace_at`.
    result : C-contiguous ndarray of shape (A, N, B)
        Written in place.
    axis : int
    index : int64 ndarray of shape (a, K, b)
        Counted from the front.
    new : ndarray of the shape of `index` and the dtype of `result`
    """  # noqa: E501
    if not index.size:
        return
    flat = result.reshape(-1)
    for part in blocks(index.shape, 1, _CHUNK):
        places = flat_positions(result.shape, axis, index, part)
        join(flat, places.reshape(-1), new[part].reshape(-1))
