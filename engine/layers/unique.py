"""Each element of a tensor once."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.layers.arguments import axis_of, require_order
from engine.layers.layer import Outputs
from engine.layers.registry import register
from engine.values import Array

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
    """Each element once: ``torch.unique``.

    Parameters
    ----------
    input : ndarray of any shape
    sorted : bool
        Of no effect: they always come in order.
    return_inverse, return_counts : bool
        Whether the second and third result are wanted; they are empty otherwise, but for
        slices.
    dim : int, optional
        Compare whole slices along it; all elements without.

    Returns
    -------
    values : ndarray of shape (U,), or of the shape of `input` with U at `dim`
        A copy. NaN is equal to nothing.
    inverse : int64 ndarray of the shape of `input`, or (N,)
        Where in `values` each element is.
    counts : int64 ndarray of shape (U,)
        How often each comes.
    """
    require_order(input)
    axis = None if dim is None else axis_of(dim, input.ndim)
    if axis is not None and not input.ndim:
        raise LayerError("a 0-d tensor has no slices to compare")
    values, inverse, counts = np.unique(
        input, return_inverse=True, return_counts=True, axis=axis, equal_nan=False
    )
    shape = input.shape if axis is None else (input.shape[axis],)
    flags = (return_inverse, return_counts) if axis is None else (True, True)
    return _wanted(values, inverse.reshape(shape), counts, flags)


@register("aten::unique_dim_consecutive", operands="input dim return_inverse return_counts")
@register("torch.unique_consecutive", "Tensor.unique_consecutive", "aten::unique_consecutive")
def unique_consecutive(
    input: Array,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Outputs:
    """Elements without their repetitions that follow directly: ``torch.unique_consecutive``.

    Parameters and results are as ``torch.unique`` has them; that looks for repetitions
    anywhere, and brings the elements in order.
    """
    axis = None if dim is None else axis_of(dim, input.ndim)
    if axis is None:
        rows = input.reshape(-1, 1)
    elif input.ndim:
        rows = np.moveaxis(input, axis, 0)
        rows = rows.reshape(len(rows), -1)
    else:
        raise LayerError("a 0-d tensor has no slices to compare")
    begins = np.ones(len(rows), np.bool_)
    begins[1:] = (rows[1:] != rows[:-1]).any(1)
    starts = np.flatnonzero(begins)
    counts = np.diff(np.append(starts, len(rows)))
    inverse: Array = np.repeat(np.arange(len(starts)), counts)
    if axis is None:
        values, inverse = input.reshape(-1)[starts], inverse.reshape(input.shape)
    else:
        values = np.take(input, starts, axis)
    flags = (return_inverse, return_counts) if axis is None else (True, True)
    return _wanted(values, inverse, counts, flags)


def _wanted(values: Array, inverse: Array, counts: Array, flags: tuple[bool, bool]) -> Outputs:
    nothing = np.empty(0, np.int64)
    others = (
        numbers.astype(np.int64, copy=False) if wanted else nothing
        for numbers, wanted in zip((inverse, counts), flags, strict=True)
    )
    return Outputs([values, *others])
