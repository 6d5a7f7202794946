"""Look-up tables of vectors."""

from __future__ import annotations

import numpy as np

from engine.errors import LayerError
from engine.layers.annotations import WeightOf
from engine.layers.index_places import take_along
from engine.layers.registry import register
from engine.values import Array

__all__ = ["embedding", "embedding_renorm"]


@register("aten::embedding", operands="weight input padding_idx scale_grad_by_freq sparse")
@register("F.embedding", "torch.embedding")
def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Look up a row of a table for each index: ``F.embedding``.

    Parameters
    ----------
    input : integer ndarray of any shape
        From 0 to K - 1.
    weight : ndarray of shape (K, D)
    max_norm : float, optional
        Rows with a larger norm are scaled down to it.
    norm_type : float
        Order of that norm.
    padding_idx, scale_grad_by_freq, sparse
        No effect at inference.

    Returns
    -------
    ndarray of shape (..., D)
        A copy.
    """
    if input.dtype.kind not in "iu":
        raise LayerError(f"indices have the dtype {input.dtype}, not an integer one")
    if input.size and not 0 <= input.min() <= input.max() < len(weight):
        raise LayerError(
            f"indices run from {input.min()} to {input.max()}, the table has {len(weight)} rows"
        )
    rows = take_along(weight, 0, input)
    return rows if max_norm is None else _clip_norms(rows, max_norm, norm_type)


@register("aten::embedding_renorm", "torch.embedding_renorm_")
def embedding_renorm(
    weight: Array, indices: Array, max_norm: float, norm_type: float = 2.0
) -> Array:
    """Limit the norm of the rows to look up: the raw operator behind `max_norm`.

    Parameters
    ----------
    weight : ndarray of shape (K, D)
    indices : integer ndarray of any shape
        Rows to limit; the others stay unchanged.
    max_norm : float
    norm_type : float
        Order of that norm.

    Returns
    -------
    ndarray of shape (K, D)
        A copy.
    """
    places = np.unique(indices)
    result = weight.copy()
    result[places] = _clip_norms(weight[places], max_norm, norm_type)
    return result


def _clip_norms(rows: Array, max_norm: float, norm_type: float) -> Array:
    """Scale rows of shape (..., D) down to the norm `max_norm`."""
    lengths = np.linalg.norm(rows.reshape(-1, rows.shape[-1]), norm_type, axis=1)
    lengths = lengths.reshape(*rows.shape[:-1], 1)
    # PyTorch's constant that prevents an overflow of the division.
    factors = np.where(lengths > max_norm, max_norm / (lengths + 1e-7), 1)
    return np.asarray(rows * factors, rows.dtype)


@register("nn.Embedding")
def embedding_module(
    input: Array,
    weight: WeightOf[Array],
    num_embeddings: int | None = None,
    embedding_dim: int | None = None,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Look up a row of a table for each index: ``nn.Embedding``.

    Parameters
    ----------
    input : integer ndarray of any shape
        From 0 to K - 1.
    weight : ndarray of shape (K, D)
    max_norm : float, optional
        Rows with a larger norm are scaled down to it.
    norm_type : float
        Order of that norm.
    num_embeddings, embedding_dim
        K and D; the shape of `weight` determines them.
    padding_idx, scale_grad_by_freq, sparse
        No effect at inference.

    Returns
    -------
    ndarray of shape (..., D)
        A copy.
    """
    return embedding(input, weight, padding_idx, max_norm, norm_type)
