"""Operators that join tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import axis_of, require_array
from engine.layers.registry import register
from engine.promotion import promote
from engine.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["block_diag", "cat", "members_of", "stack"]


@register("aten::cat", "aten::concat", "aten::concatenate", operands="tensors dim")
@register("torch.cat", "torch.concat", "torch.concatenate")
def cat(*tensors: Value, dim: int = 0) -> Array:
    """Join tensors along one of their dimensions: ``torch.cat``.

    Parameters
    ----------
    *tensors : ndarray of shape (A, N, B), or one tuple of them
        They differ in N at most; those of shape (0,) are left out. Their dtypes are promoted
        to a common one.
    dim : int

    Returns
    -------
    ndarray of shape (A, N + N + ..., B)
        A copy.
    """
    arrays = promote(*members_of(tensors))
    joined = [array for array in arrays if array.shape != (0,)] or list(arrays[:1])
    axis = axis_of(dim, joined[0].ndim)
    rests = {array.shape[:axis] + array.shape[axis + 1 :] for array in joined}
    if len(rests) > 1 or joined[0].ndim == 0:
        raise LayerError(
            f"shapes {_describe_shapes(joined)} cannot be joined along dim {dim}",
            InferStatus.kInferArraySizeMismatch,
        )
    return np.concatenate(joined, axis)


@register("aten::stack", operands="tensors dim")
@register("torch.stack")
def stack(*tensors: Value, dim: int = 0) -> Array:
    """Join tensors along a new dimension: ``torch.stack``.

    Parameters
    ----------
    *tensors : ndarray of shape (A, B), or one tuple of them
        Of one shape. Their dtypes are promoted to a common one.
    dim : int
        Index of the new dimension.

    Returns
    -------
    ndarray of shape (A, number of tensors, B)
        A copy.
    """
    arrays = promote(*members_of(tensors))
    if len({array.shape for array in arrays}) > 1:
        raise LayerError(
            f"shapes {_describe_shapes(arrays)} are not all the same",
            InferStatus.kInferArraySizeMismatch,
        )
    return np.stack(arrays, axis_of(dim, arrays[0].ndim + 1))


@register("torch.hstack", "aten::hstack")
def hstack(*tensors: Value) -> Array:
    """Join tensors side by side: ``torch.hstack``.

    Parameters
    ----------
    *tensors : ndarray of any shape, or one tuple of them

    Returns
    -------
    ndarray
        ``torch.cat`` along the second dimension, of vectors along their only one.
    """
    arrays = [np.atleast_1d(array) for array in members_of(tensors)]
    return cat(*arrays, dim=min(1, arrays[0].ndim - 1))


@register("torch.vstack", "torch.row_stack", "aten::vstack", "aten::row_stack")
def vstack(*tensors: Value) -> Array:
    """Join tensors one above the other, vectors as rows: ``torch.vstack``.

    Parameters
    ----------
    *tensors : ndarray of any shape, or one tuple of them

    Returns
    -------
    ndarray
        ``torch.cat`` along the first dimension.
    """
    return cat(*map(np.atleast_2d, members_of(tensors)), dim=0)


@register("torch.dstack", "aten::dstack")
def dstack(*tensors: Value) -> Array:
    """Join tensors along the third dimension: ``torch.dstack``.

    Parameters
    ----------
    *tensors : ndarray of any shape, or one tuple of them
        A vector of N counts as 1×N×1, a matrix of N×M as N×M×1.

    Returns
    -------
    ndarray
        ``torch.cat`` along the third dimension.
    """
    return cat(*map(np.atleast_3d, members_of(tensors)), dim=2)


@register("torch.column_stack", "aten::column_stack")
def column_stack(*tensors: Value) -> Array:
    """Join tensors side by side, vectors as columns: ``torch.column_stack``.

    Parameters
    ----------
    *tensors : ndarray of any shape, or one tuple of them

    Returns
    -------
    ndarray
        ``torch.cat`` along the second dimension.
    """
    columns = (a.reshape(a.size, 1) if a.ndim <= 1 else a for a in members_of(tensors))
    return cat(*columns, dim=1)


@register("torch.block_diag", "aten::block_diag")
def block_diag(*tensors: Value) -> Array:
    """Put matrices along the diagonal of a matrix of zeros: ``torch.block_diag``.

    Parameters
    ----------
    *tensors : ndarray of shape (M, N), or one tuple of them
        Vectors and numbers count as one row.

    Returns
    -------
    ndarray of shape (M + M + ..., N + N + ...)
    """
    blocks = promote(*map(np.atleast_2d, members_of(tensors)))
    if any(block.ndim > 2 for block in blocks):
        raise LayerError(f"shapes {_describe_shapes(blocks)} are not all matrices")
    heights, widths = zip(*(block.shape for block in blocks), strict=True)
    result = np.zeros((sum(heights), sum(widths)), blocks[0].dtype)
    row = column = 0
    for block in blocks:
        result[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return result


def _make_at_least(count: int, grow: Callable[[Array], Array]) -> Callable[..., Value]:
    def at_least(*tensors: Value) -> Value:
        grown = tuple(map(grow, members_of(tensors)))
        return grown if tensors and isinstance(tensors[0], tuple) else grown[0]

    at_least.__name__ = at_least.__qualname__ = f"atleast_{count}d"
    at_least.__doc__ = f"""Give tensors at least {count} dimensions: ``torch.atleast_{count}d``.

    Parameters
    ----------
    *tensors : ndarray, or one tuple of them

    Returns
    -------
    ndarray, or a tuple of them
        Views. A vector of shape (N,) becomes (1, N), and (1, N, 1) of three dimensions.
    """
    return at_least


for _count, _grow in enumerate((np.atleast_1d, np.atleast_2d, np.atleast_3d), 1):
    register(f"torch.atleast_{_count}d", f"aten::atleast_{_count}d")(
        _make_at_least(_count, _grow)
    )


def members_of(tensors: tuple[Value, ...]) -> tuple[Array, ...]:
    """Return the tensors to join, given one by one or as one tuple."""
    if len(tensors) == 1 and isinstance(tensors[0], tuple):
        tensors = tensors[0]
    if not tensors:
        raise LayerError("there is nothing to join", InferStatus.kInferInputsEmpty)
    return tuple(require_array(t, f"operand {i}") for i, t in enumerate(tensors))


def _describe_shapes(arrays: list[Array] | tuple[Array, ...]) -> str:
    return describe_shapes(array.shape for array in arrays)
