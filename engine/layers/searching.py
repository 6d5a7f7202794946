"""Search in sorted numbers, and counts of whole numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.annotations import OperandOf
from engine.layers.arguments import as_int, require_steps
from engine.layers.registry import register
from engine.layers.windows import new_output
from engine.promotion import promote
from engine.values import Array, Value

__all__ = ["bincount", "bucketize", "one_hot", "searchsorted"]


@register("torch.searchsorted", "aten::searchsorted")
def searchsorted(
    sorted_sequence: Array,
    input: OperandOf[Any],
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Array | None = None,
) -> Array:
    """Indices at which numbers keep a sequence sorted: ``torch.searchsorted``.

    Parameters
    ----------
    sorted_sequence : ndarray of shape (N,) or (..., N)
        Increasing along the last dimension.
    input : ndarray of shape (..., M), of any shape for a sequence of shape (N,), or number
        Numbers to insert.
    out_int32 : bool
        Whether to return int32 instead of int64.
    right : bool
        Whether to insert after equal numbers, instead of before.
    side : str, optional
        ``left`` or ``right``, instead of `right`.
    sorter : int64 ndarray of the sequence's shape, optional
        Order that sorts the sequence.

    Returns
    -------
    int64 or int32 ndarray of the input's shape
    """
    if side not in {None, "left", "right"} or (side == "left" and right):
        raise LayerError(f"side={side} with right={right} is neither left nor right")
    way = "right" if right or side == "right" else "left"
    if sorter is not None:
        sorted_sequence = np.take_along_axis(sorted_sequence, sorter, -1)
    sequence, values = promote(sorted_sequence, np.asarray(input))
    dtype = np.int32 if out_int32 else np.int64
    if sequence.ndim == 1:
        return np.asarray(np.searchsorted(sequence, values, way), dtype)  # type: ignore[call-overload]
    if sequence.shape[:-1] != values.shape[:-1]:
        raise LayerError(
            f"sequences of shape {describe_shapes([sequence.shape])} do not fit values of "
            f"shape {describe_shapes([values.shape])}",
            InferStatus.kInferArraySizeMismatch,
        )
    require_steps(math.prod(values.shape[:-1]), "sequences")
    result = np.empty(values.shape, dtype)
    for place in np.ndindex(*values.shape[:-1]):
        result[place] = np.searchsorted(sequence[place], values[place], way)  # type: ignore[call-overload]
    return result


@register("torch.bucketize", "aten::bucketize")
def bucketize(
    input: OperandOf[Any], boundaries: Array, out_int32: bool = False, right: bool = False
) -> Array:
    """Index of each number's bucket: ``torch.bucketize``.

    Parameters
    ----------
    input : ndarray of any shape, or number
        Numbers to sort into buckets.
    boundaries : ndarray of shape (N,)
        Increasing.
    out_int32 : bool
        Whether to return int32 instead of int64.
    right : bool
        Whether a bucket begins with its boundary, rather than ending with it.

    Returns
    -------
    int64 or int32 ndarray of the input's shape
        From 0 to N.
    """
    return searchsorted(boundaries, input, out_int32, right)


@register("F.one_hot", "aten::one_hot")
def one_hot(input: Array, num_classes: Value = -1) -> Array:
    """Vectors with a 1 at the index of each class: ``F.one_hot``.

    Parameters
    ----------
    input : int64 ndarray of shape (...)
    num_classes : int
        C; one more than the largest class by default.

    Returns
    -------
    int64 ndarray of shape (..., C)
    """
    count = as_int(num_classes, "num_classes")
    if count == -1:
        count = int(input.max(initial=-1)) + 1
    if input.dtype.kind not in "iu" or count < 1:
        raise LayerError(f"{input.dtype} cannot be {count} classes")
    if input.size and not 0 <= input.min() <= input.max() < count:
        raise LayerError(f"a class is not one of the {count} classes")
    result = new_output((*input.shape, count), np.dtype(np.int64), 0)
    np.put_along_axis(result, input[..., np.newaxis].astype(np.int64), 1, -1)
    return result


@register("torch.bincount", "Tensor.bincount", "aten::bincount")
def bincount(input: Array, weights: Array | None = None, minlength: int = 0) -> Array:
    """Number of occurrences of each whole number: ``torch.bincount``.

    Parameters
    ----------
    input : integer ndarray of shape (N,)
        Not negative.
    weights : ndarray of shape (N,), optional
        Weight of each element.
    minlength : int
        Minimum length of the result.

    Returns
    -------
    ndarray of shape (max(minlength, largest + 1),)
        int64; with weights float64, or float32 for those of float32.
    """
    if input.ndim != 1 or input.dtype.kind not in "iu" or input.min(initial=0) < 0:
        raise LayerError("only whole numbers of at least 0, in one dimension, can be counted")
    new_output((int(input.max(initial=0)),), np.dtype(np.int64))
    if weights is None:
        return np.bincount(input, minlength=minlength).astype(np.int64, copy=False)
    if weights.shape != input.shape:
        raise LayerError("the number of weights differs from the number of elements")
    dtype = np.float32 if weights.dtype == np.float32 else np.float64
    return np.bincount(input, weights, minlength).astype(dtype)
