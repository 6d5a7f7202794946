"""Distances and angles between vectors."""

from __future__ import annotations

import numpy as np

from engine.layers.arguments import axis_of, cast
from engine.layers.norm import vector_norm
from engine.layers.reduction import accumulator
from engine.layers.registry import register
from engine.promotion import promote
from engine.values import Array

__all__ = ["cosine_similarity", "pairwise_distance"]


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
        Added to each difference, so that equal vectors have a derivative.
    keepdim : bool
        Keep the last dimension with size 1.

    Returns
    -------
    ndarray of shape (...)
    """
    left, right = promote(x1, x2)
    with np.errstate(all="ignore"):
        difference = left - right + left.dtype.type(eps)
    return vector_norm(difference, p, -1, keepdim)


@register("F.cosine_similarity", "torch.cosine_similarity", "nn.CosineSimilarity")
@register("aten::cosine_similarity")
def cosine_similarity(x1: Array, x2: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    """Cosine of the angle between vectors: ``F.cosine_similarity``.

    Parameters
    ----------
    x1, x2 : ndarray, broadcast to one shape
    dim : int
        Where the vectors lie.
    eps : float
        Least length that a vector is divided by.

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
