"""Distances and angles between vectors."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from engine.errors import InferStatus, LayerError, describe_shapes
from engine.layers.arguments import axis_of, cast, require_ndim, require_products, require_steps
from engine.layers.norm import vector_norm
from engine.layers.reduction import accumulator
from engine.layers.registry import register
from engine.layers.windows import new_output
from engine.promotion import float_dtype, promote
from engine.values import Array

__all__ = ["cdist", "cosine_similarity", "dist", "pairwise_distance", "pdist"]

_MOST_POWERS: Final = 1 << 38  # bytes of differences


@register("F.pairwise_distance", "torch.pairwise_distance", "nn.PairwiseDistance")
@register("aten::pairwise_distance")
def pairwise_distance(
    x1: Array, x2: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Array:
    """Distance between vectors, pair by pair: ``F.pairwise_distance``.

    Parameters
    ----------
    x1, x2 : ndarray of shape (..., D), broadcast to one shape
    p : float
        Order of the norm of their difference.
    eps : float
        Added to each difference, so that the derivative exists for equal vectors.
    keepdim : bool
        Keep the last dimension with size 1.

    Returns
    -------
    ndarray of shape (...)
    """
    left, right = promote(x1, x2)
    dtype = float_dtype(left.dtype)
    with np.errstate(all="ignore"):
        difference = (left - right).astype(dtype, copy=False) + dtype.type(eps)
    return vector_norm(difference, p, -1, keepdim)


@register("F.cosine_similarity", "torch.cosine_similarity", "nn.CosineSimilarity")
@register("aten::cosine_similarity")
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    """Cosine of the angle between vectors: ``F.cosine_similarity``.

    Parameters
    ----------
    x1, x2 : ndarray, broadcast to one shape
    dim : int
        Dimension of the vectors.
    eps : float
        Smallest divisor of a vector.

    Returns
    -------
    ndarray of the common shape without `dim`
    """
    arrays = promote(x1, x2)
    left, right = np.broadcast_arrays(*(a.astype(accumulator(a.dtype)) for a in arrays))
    axis = axis_of(dim, left.ndim)
    units = [
        x / np.maximum(np.sqrt(np.sum(np.square(x), axis, keepdims=True)), eps)
        for x in (left, right)
    ]
    return cast(np.asarray(np.sum(units[0] * units[1], axis)), arrays[0].dtype)


@register("torch.cdist", "aten::cdist")
def cdist(x1: Array, x2: Array, p: float = 2.0, compute_mode: str | int | None = None) -> Array:
    """Distance of each vector of one list to each of another: ``torch.cdist``.

    Parameters
    ----------
    x1 : ndarray of shape (..., P, D)
    x2 : ndarray of shape (..., R, D)
        The leading dimensions are broadcast.
    p : float
        Order of the norm of their difference.
    compute_mode : str
        No effect: changes only PyTorch's speed.

    Returns
    -------
    ndarray of shape (..., P, R)
    """
    left, right = promote(x1, x2)
    if min(left.ndim, right.ndim) < 2 or left.shape[-1] != right.shape[-1]:
        raise _make_shape_error(x1, x2)
    try:
        batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    except ValueError:
        raise _make_shape_error(x1, x2) from None
    result = new_output((*batch, left.shape[-2], right.shape[-2]), left.dtype)
    require_steps(left.shape[-2], "vectors")
    require_products(math.prod((*batch, left.shape[-2], *right.shape[-2:])), _MOST_POWERS)
    for row in range(
        left.shape[-2]
    ):  # row by row, because the array of all differences would be large
        result[..., row, :] = vector_norm(left[..., row, np.newaxis, :] - right, p, -1)
    return result


@register("F.pdist", "torch.pdist", "aten::pdist")
def pdist(input: Array, p: float = 2.0) -> Array:
    """Distance of each vector to each after it: ``F.pdist``.

    Parameters
    ----------
    input : ndarray of shape (N, D)
    p : float
        Order of the norm of their difference.

    Returns
    -------
    ndarray of shape (N * (N - 1) / 2,)
    """
    require_ndim(input, 2)
    return cdist(input, input, p)[np.triu_indices(len(input), 1)]


@register("torch.dist", "Tensor.dist", "aten::dist")
def dist(input: Array, other: Array, p: float = 2.0) -> Array:
    """Norm of the difference of two tensors: ``torch.dist``; of shape ()."""
    left, right = promote(input, other)
    return vector_norm(left - right, p)


def _make_shape_error(x1: Array, x2: Array) -> LayerError:
    shapes = describe_shapes([x1.shape, x2.shape])
    return LayerError(
        f"vectors of shapes {shapes} cannot be compared", InferStatus.kInferArraySizeMismatch
    )
