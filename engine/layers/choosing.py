"""Operators that select elements by a condition."""

from __future__ import annotations

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import cast
from engine.layers.elementwise import Operand
from engine.layers.registry import register
from engine.promotion import as_operand, result_dtype
from engine.values import Array, Value

__all__ = ["masked_fill", "masked_select", "nonzero", "places", "where"]


@register("torch.where", "Tensor.where", "aten::where")
def where(
    condition: Array, input: Operand | None = None, other: Operand | None = None
) -> Value:
    """Choose between two tensors, element by element: ``torch.where``.

    Parameters
    ----------
    condition : bool ndarray of any shape
    input, other : ndarray, broadcast with `condition` to one shape, or number
        Elements where the condition is true, and where it is false. Without both, the result
        is the indices where it is true.

    Returns
    -------
    ndarray of the common shape, or a tuple of int64 ndarray, one per dimension
        Of the promoted dtype of the two.
    """
    if input is None or other is None:
        return places(condition)
    dtype = result_dtype(input, other)
    try:
        return np.where(condition, as_operand(input, dtype), as_operand(other, dtype))
    except ValueError:
        raise _make_shape_error(condition, input, other) from None


@register("Tensor.masked_fill", "torch.masked_fill", "aten::masked_fill")
def masked_fill(input: Array, mask: Array, value: Operand) -> Array:
    """Replace the elements where a mask is true: ``Tensor.masked_fill``.

    Parameters
    ----------
    input : ndarray of any shape
    mask : bool ndarray, broadcast with `input` to one shape
    value : number, or ndarray of shape ()

    Returns
    -------
    ndarray of the common shape
        A copy of the input's dtype.
    """
    try:
        return np.where(mask, cast(np.asarray(value), input.dtype), input)
    except ValueError:
        raise _make_shape_error(input, mask) from None


@register("torch.masked_select", "Tensor.masked_select", "aten::masked_select")
def masked_select(input: Array, mask: Array) -> Array:
    """Take the elements where a mask is true: ``torch.masked_select``.

    Parameters
    ----------
    input : ndarray of any shape
    mask : bool ndarray, broadcast with `input` to one shape

    Returns
    -------
    ndarray of shape (number of true elements,)
        A copy.
    """
    try:
        array, chosen = np.broadcast_arrays(input, mask)
    except ValueError:
        raise _make_shape_error(input, mask) from None
    taken: Array = array[chosen]
    return taken


@register("Tensor.masked_scatter", "torch.masked_scatter", "aten::masked_scatter")
def masked_scatter(input: Array, mask: Array, source: Array) -> Array:
    """Replace the elements where a mask is true by successive ones of another tensor.

    ``Tensor.masked_scatter``.

    Parameters
    ----------
    input : ndarray of any shape
    mask : bool ndarray, broadcast with `input` to one shape
    source : ndarray with at least as many elements as are true

    Returns
    -------
    ndarray of the common shape
        A copy.
    """
    shape = np.broadcast_shapes(input.shape, mask.shape)
    result, chosen = np.broadcast_to(input, shape).copy(), np.broadcast_to(mask, shape)
    count = int(np.count_nonzero(chosen))
    if count > source.size:
        raise LayerError(f"the mask selects {count} elements, source has {source.size}")
    result[chosen] = cast(source, input.dtype).reshape(-1)[:count]
    return result


@register("torch.nonzero", "Tensor.nonzero", "aten::nonzero")
@register("torch.argwhere", "Tensor.argwhere", "aten::argwhere")
def nonzero(input: Array) -> Array:
    """Indices of the elements that are not zero: ``torch.nonzero``.

    Parameters
    ----------
    input : ndarray with D dimensions

    Returns
    -------
    int64 ndarray of shape (number of elements that are not zero, D)
    """
    return np.stack(places(input), axis=1)[:, : input.ndim]


@register("aten::nonzero_numpy")
def places(input: Array) -> tuple[Array, ...]:
    """Indices of the elements that are not zero: ``torch.nonzero`` with ``as_tuple=True``.

    Parameters
    ----------
    input : ndarray of any shape

    Returns
    -------
    tuple of int64 ndarray, one per dimension
        A 0-d tensor counts as a vector.
    """
    return tuple(np.nonzero(np.atleast_1d(input)))


def _make_shape_error(*operands: Value) -> LayerError:
    shapes = describe_shapes(o.shape for o in operands if isinstance(o, np.ndarray))
    return LayerError(f"cannot broadcast shapes {shapes}", InferStatus.kInferArraySizeMismatch)
