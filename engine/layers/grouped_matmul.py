"""Grouped matrix products, as used by mixtures of experts.

Every token is routed to one expert. Tokens are sorted by expert, and `offs` contains the end of
each expert's tokens.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import require_ndim, require_steps
from engine.layers.matmul import matmul
from engine.layers.registry import register
from engine.promotion import promote_types
from engine.values import Array

__all__ = ["grouped_mm"]


@register("aten::_grouped_mm", "torch._grouped_mm", "F.grouped_mm", unused="out_dtype")
def grouped_mm(
    mat_a: Array, mat_b: Array, offs: Array | None = None, bias: Array | None = None
) -> Array:
    """Multiply matrices group by group: ``torch.nn.functional.grouped_mm``.

    An array of three dimensions holds one matrix per group. A matrix is split into groups at
    `offs`: `mat_a` along M, `mat_b` along N, or both along K.

    Parameters
    ----------
    mat_a : ndarray of shape (M, K) or (G, M, K)
    mat_b : ndarray of shape (K, N) or (G, K, N)
    offs : ndarray of shape (G,), optional
        End of each group; only omitted if no operand is split. Whole numbers may be floats, as
        in files that lost the dtype of their sum.
    bias : None
        PyTorch does not support a bias yet.

    Returns
    -------
    ndarray of shape (M, N), or (G, M, N) if both or none are split
        A new array. Elements after the last group are 0; PyTorch leaves them undefined.
    """
    require_ndim(mat_a, (2, 3), "mat_a")
    require_ndim(mat_b, (2, 3), "mat_b")
    if bias is not None:
        raise LayerError("a bias is not supported; neither does PyTorch support one")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise _make_shape_error(mat_a, mat_b)
    if offs is None:
        if mat_a.ndim == 2 or mat_b.ndim == 2:
            raise LayerError("a matrix must be split into groups, but offs is missing")
        return _multiply_pairs(mat_a, mat_b)
    if mat_a.ndim == mat_b.ndim == 3:
        raise LayerError("offs is given, but there is no matrix to split into groups")
    if mat_a.ndim == mat_b.ndim:
        groups = _split_groups(offs, mat_a.shape[1])
        products = [matmul(mat_a[:, group], mat_b[group]) for group in groups]
        return (
            np.stack(products)
            if products
            else _multiply_pairs(mat_a[None][:0], mat_b[None][:0])
        )
    by_rows = mat_a.ndim == 2
    groups = _split_groups(offs, len(mat_a) if by_rows else mat_b.shape[1])
    if len(groups) != len(mat_b if by_rows else mat_a):
        raise _make_shape_error(mat_a, mat_b)
    dtype = promote_types(mat_a.dtype, mat_b.dtype)
    result = np.zeros((mat_a.shape[-2], mat_b.shape[-1]), dtype)
    for number, group in enumerate(groups):
        if by_rows:
            result[group] = matmul(mat_a[group], mat_b[number])
        else:
            result[:, group] = matmul(mat_a[number], mat_b[:, group])
    return result


def _multiply_pairs(mat_a: Array, mat_b: Array) -> Array:
    if len(mat_a) != len(mat_b):
        raise _make_shape_error(mat_a, mat_b)
    return matmul(mat_a, mat_b)


def _split_groups(offs: Array, size: int) -> list[slice]:
    """Split `size` rows or columns at `offs`."""
    require_ndim(offs, 1, "offs")
    is_whole = offs.dtype.kind == "f" and bool(
        (np.isfinite(offs) & (offs == np.floor(offs))).all()
    )
    if offs.dtype.kind not in "iu" and not is_whole:
        raise LayerError(f"offs has the dtype {offs.dtype}, and is not of whole numbers")
    require_steps(len(offs), "groups")
    bounds = [0, *map(int, offs.tolist())]
    if bounds != sorted(bounds) or bounds[-1] > size:
        raise LayerError(f"offs must ascend from 0 to at most {size}")
    return [slice(begin, end) for begin, end in pairwise(bounds)]


def _make_shape_error(mat_a: Array, mat_b: Array) -> LayerError:
    return LayerError(
        f"shapes {describe_shapes([mat_a.shape, mat_b.shape])} cannot be multiplied by groups",
        InferStatus.kInferArraySizeMismatch,
    )
