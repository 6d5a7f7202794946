"""Operators on vectors in space, and on parts of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import as_int, axis_of, cast, require_ndim
from engine.layers.reduction import accumulator
from engine.layers.registry import register
from engine.layers.slicing import replace_part
from engine.promotion import promote
from engine.values import Array

__all__ = [
    "cross",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "trace",
    "tril",
    "triu",
]


@register("torch.cross", "Tensor.cross", "aten::cross")
def cross(input: Array, other: Array, dim: int | None = None) -> Array:
    """Cross product of vectors with three elements: ``torch.cross``.

    Parameters
    ----------
    input, other : ndarray, broadcast to one shape
    dim : int, optional
        Dimension of the vectors; by default the first one of size 3.

    Returns
    -------
    ndarray of the common shape
        A new array of the promoted dtype.
    """
    return _cross(input, other, dim)


@register("torch.linalg.cross", "aten::linalg_cross")
def linalg_cross(input: Array, other: Array, dim: int = -1) -> Array:
    """Cross product of vectors with three elements: ``torch.linalg.cross``.

    As ``torch.cross``, along the last dimension by default.
    """
    return _cross(input, other, dim)


def _cross(input: Array, other: Array, dim: int | None) -> Array:
    left, right = promote(input, other)
    try:
        left, right = np.broadcast_arrays(left, right)
    except ValueError:
        shapes = describe_shapes([left.shape, right.shape])
        raise LayerError(
            f"cannot broadcast shapes {shapes}", InferStatus.kInferArraySizeMismatch
        ) from None
    if dim is None and 3 not in left.shape:
        raise LayerError(f"no dimension of {describe_shapes([left.shape])} has size 3")
    axis = left.shape.index(3) if dim is None else axis_of(dim, left.ndim)
    if left.shape[axis] != 3:
        raise LayerError(f"dim {dim} has size {left.shape[axis]}, not 3")
    return np.cross(left, right, axis=axis)


@register("torch.diag", "Tensor.diag", "aten::diag")
def diag(input: Array, diagonal: int = 0) -> Array:
    """Make a diagonal matrix from a vector, or take a matrix's diagonal: ``torch.diag``.

    Parameters
    ----------
    input : ndarray of shape (N,) or (N, M)
    diagonal : int
        Number of the diagonal: above the main one if positive, below if negative.

    Returns
    -------
    ndarray of shape (N + abs(diagonal), N + abs(diagonal)), or of one dimension
        A copy.
    """
    require_ndim(input, (1, 2))
    return np.diag(input, as_int(diagonal, "diagonal")).copy()


@register("torch.diagonal", "Tensor.diagonal", "aten::diagonal")
def diagonal(input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Array:
    """Take the diagonals of matrices: ``torch.diagonal``.

    Parameters
    ----------
    input : ndarray with at least two dimensions
    offset : int
        Above the main diagonal if positive, below if negative.
    dim1, dim2 : int
        Rows and columns of the matrices.

    Returns
    -------
    ndarray
        A view of `input`, the diagonal as its last dimension.
    """
    rows, cols = axis_of(dim1, input.ndim, "dim1"), axis_of(dim2, input.ndim, "dim2")
    return np.diagonal(input, as_int(offset, "offset"), rows, cols)


@register("torch.linalg.diagonal", "aten::linalg_diagonal")
def linalg_diagonal(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Take the diagonals of matrices: ``torch.linalg.diagonal``.

    Of the last two dimensions by default; else as ``torch.diagonal``.
    """
    return diagonal(input, offset, dim1, dim2)


@register("torch.diag_embed", "Tensor.diag_embed", "aten::diag_embed")
def diag_embed(input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Array:
    """Make matrices from their diagonals: ``torch.diag_embed``.

    Parameters
    ----------
    input : ndarray of shape (..., N)
    offset : int
        Above the main diagonal if positive, below if negative.
    dim1, dim2 : int
        Dimensions of the rows and columns in the result.

    Returns
    -------
    ndarray of shape (..., N + abs(offset), N + abs(offset))
        Zero outside the diagonals.
    """
    if not input.ndim:
        raise LayerError("a 0-d tensor is no diagonal")
    shift = as_int(offset, "offset")
    size = input.shape[-1] + abs(shift)
    result = np.zeros((*input.shape[:-1], size, size), input.dtype)
    places = np.arange(input.shape[-1])
    result[..., places - min(shift, 0), places + max(shift, 0)] = input
    rows, cols = axis_of(dim1, result.ndim, "dim1"), axis_of(dim2, result.ndim, "dim2")
    if rows == cols:
        raise LayerError(f"rows and columns cannot both be dimension {rows}")
    return np.moveaxis(result, (-2, -1), (rows, cols))


@register("torch.diagflat", "Tensor.diagflat", "aten::diagflat")
def diagflat(input: Array, offset: int = 0) -> Array:
    """Make a matrix whose diagonal holds all elements: ``torch.diagflat``.

    Parameters
    ----------
    input : ndarray of any shape, with N elements
    offset : int
        Above the main diagonal if positive, below if negative.

    Returns
    -------
    ndarray of shape (N + abs(offset), N + abs(offset))
    """
    return diag_embed(input.reshape(-1), offset)


@register("torch.diagonal_scatter", "Tensor.diagonal_scatter", "aten::diagonal_scatter")
def diagonal_scatter(
    input: Array, src: Array, offset: int = 0, dim1: int = 0, dim2: int = 1
) -> Array:
    """Replace the diagonals of matrices: ``torch.diagonal_scatter``.

    Parameters
    ----------
    input, offset, dim1, dim2
        As in ``torch.diagonal``.
    src : ndarray
        Of the shape of the diagonals.

    Returns
    -------
    ndarray of the shape of `input`
        A copy.
    """
    places = diagonal(np.arange(input.size).reshape(input.shape), offset, dim1, dim2)
    return replace_part(input, np.unravel_index(places, input.shape), src)


@register("torch.trace", "Tensor.trace", "aten::trace")
def trace(input: Array) -> Array:
    """Sum of a matrix's diagonal: ``torch.trace``.

    Parameters
    ----------
    input : ndarray of shape (N, M)

    Returns
    -------
    ndarray of shape ()
        Of the input's dtype; int64 for bools and integers.
    """
    require_ndim(input, 2)
    wide = accumulator(input.dtype)
    return cast(np.asarray(np.trace(input, dtype=wide)), _sum_dtype(input.dtype))


def _sum_dtype(dtype: Any) -> Any:
    return dtype if dtype.kind in "fc" else np.dtype(np.int64)


@register("torch.tril", "Tensor.tril", "aten::tril")
def tril(input: Array, diagonal: int = 0) -> Array:
    """Lower triangles of matrices, zeros above: ``torch.tril``.

    Parameters
    ----------
    input : ndarray of shape (..., N, M)
    diagonal : int
        The last diagonal to keep; positive ones lie above the main one.

    Returns
    -------
    ndarray of the same shape
        A copy.
    """
    return np.tril(_check_matrices(input), as_int(diagonal, "diagonal"))


@register("torch.triu", "Tensor.triu", "aten::triu")
def triu(input: Array, diagonal: int = 0) -> Array:
    """Upper triangles of matrices, zeros below: ``torch.triu``.

    Parameters
    ----------
    input : ndarray of shape (..., N, M)
    diagonal : int
        The first diagonal to keep; positive ones lie above the main one.

    Returns
    -------
    ndarray of the same shape
        A copy.
    """
    return np.triu(_check_matrices(input), as_int(diagonal, "diagonal"))


def _check_matrices(array: Array) -> Array:
    if array.ndim < 2:
        raise LayerError(f"shape {describe_shapes([array.shape])} holds no matrices")
    return array
